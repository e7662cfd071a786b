// The subcommands of a command, each with what it runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "cli/commands.hpp"

namespace argiope {

class Subcommands {
 public:
  // `parent` outlives this.
  explicit Subcommands(const CLI::App& parent) : parent_(&parent) {}

  // What the subcommand that was added to the parent last runs.
  void add(std::function<int()> run) {
    subcommands_.emplace_back(parent_->get_subcommands(nullptr).back(), std::move(run));
  }

  // Runs the one that was asked for.
  int run() const {
    for (const auto& [subcommand, run] : subcommands_) {
      if (subcommand->parsed()) return run();
    }
    return kExitUsage;
  }

 private:
  const CLI::App* parent_;
  std::vector<std::pair<const CLI::App*, std::function<int()>>> subcommands_;
};

}  // namespace argiope

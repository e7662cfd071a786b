// The command `argiope`: finds the subcommand, runs it, and turns whatever goes wrong into a sentence and an exit status.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/version.hpp"

int main(int argc, char** argv) {
  using namespace argiope;
  // Standard output belongs to results; everything said on the way goes to standard error.
  spdlog::set_default_logger(spdlog::stderr_color_mt("argiope"));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");

  CLI::App app{
      "Argiope runs work when it is due, in order of importance, at a pace its target can bear;\n"
      "and it crawls the web that way.",
      "argiope"};
  app.set_version_flag("-V,--version", fmt::format("argiope {}", kVersion));
  app.require_subcommand(1);
  app.footer(
      "argiope COMMAND --help says more. Try: argiope site, and in another terminal argiope crawl "
      "http://127.0.0.1:8080/");
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
  auto crawl = add_crawl_command(app);
  commands.emplace_back(app.get_subcommand("crawl"), std::move(crawl));
  auto site = add_site_command(app);
  commands.emplace_back(app.get_subcommand("site"), std::move(site));
  auto next = add_next_command(app);
  commands.emplace_back(app.get_subcommand("next"), std::move(next));

  const auto named = [&](const auto& entry) { return entry.first->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, named)) {
    fmt::print(stderr, "argiope: \"{}\" is no command; argiope --help lists them\n", argv[1]);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitFinished : kExitUsage;
  }
  try {
    for (const auto& [command, run] : commands) {
      if (command->parsed()) return run();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "argiope: {}\n", error.what());
    return kExitNothing;
  }
  return kExitUsage;
}

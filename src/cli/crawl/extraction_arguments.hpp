// Those options of `argiope crawl` that say what is taken from pages, and what is told of it at the end.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/sinks.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

struct ExtractionArguments {
  std::string file;
  std::vector<std::string> fields;
  std::string output = "-";
  std::string format;
  std::size_t threads = 0;

  void add_to(CLI::App& command, const char* group);
  bool is_asked() const noexcept { return !file.empty() || !fields.empty(); }
  // `read`: what reads a file of rules.
  // Errors: invalid_input naming the option and what is wrong with it; those of `read`.
  using ReadRules = std::function<Result<ExtractionRules>(const std::string& path)>;
  Result<ExtractionOptions> options(const ReadRules& read) const;
};

// For people: how many records from how many pages, where they are, and what was wrong with which field.
void print_extraction(std::FILE* out, const ExtractionReport& report, std::string_view output);
// The members of the summary's object "extraction".
void write_extraction(JsonWriter& json, const ExtractionReport& report);

}  // namespace argiope

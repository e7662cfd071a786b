#include "cli/crawl/extraction_arguments.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "cli/file_kind.hpp"
#include "cli/number_option.hpp"

namespace argiope {

// One option, two lines: no formatter sees that.
// clang-format off
void ExtractionArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--field", fields, "Take this from each page: NAME=css:SELECTOR, xpath:, meta:, og:, jsonld:, json:, readable:, page: or re:; NAME:TYPE and NAME[] for types and lists (repeatable; docs/extraction.md)")
      ->group(group)->type_name("NAME=SOURCE")->allow_extra_args(false);
  command.add_option("--extract", file, "Take what the rules in this TOML file say from the pages that they match")
      ->group(group)->type_name("FILE");
  command.add_option("--output", output, "Where records go, as they come: FILE.csv, or FILE.jsonl and any other name as JSON Lines; a file is gone on with; - for standard output")
      ->group(group)->type_name("FILE")->capture_default_str();
  command.add_option("--output-format", format, "Of records, whatever the file's name (default: by its name, else jsonl)")
      ->check(CLI::IsMember({"jsonl", "csv"}))->group(group)->type_name("FORMAT");
  command.add_option("--extract-threads", threads, "Threads that read pages (default: as many as there are processors, at most 8)")
      ->check(whole_number(1, 256))->group(group)->type_name("N");
}
// clang-format on

Result<ExtractionOptions> ExtractionArguments::options(const ReadRules& read) const {
  ExtractionOptions options;
  if (!file.empty()) {
    auto rules = or_other_kind(read(file), file, FileKind::rules);
    if (!rules) return fail(rules.error().code, fmt::format("--extract {}", rules.error().message));
    options.rules = std::move(*rules);
  }
  if (!fields.empty()) {
    if (!file.empty()) return fail(Errc::invalid_input, "--field: with --extract, fields are in its file");
    ExtractionRule& rule = options.rules.rules.emplace_back();
    for (const std::string& text : fields) {
      auto field = parse_field(text);
      if (!field) return fail(Errc::invalid_input, fmt::format("--field {}", field.error().message));
      rule.fields.push_back(std::move(*field));
    }
  }
  // Before anything is opened.
  if (auto compiled = Extractor::compile(options.rules); !compiled) {
    const std::string_view option = file.empty() ? "--field: " : "--extract: ";
    return fail(compiled.error().code, std::string(option) + compiled.error().message);
  }
  options.output = output;
  options.threads = threads;
  if (!format.empty()) {
    options.format = format == "csv" ? ExtractionOptions::Format::csv : ExtractionOptions::Format::jsonl;
  }
  return options;
}

void print_extraction(std::FILE* out, const ExtractionReport& report, std::string_view output) {
  fmt::print(out, "Extracted {} from {}{}\n", counted(report.records, "record"), counted(report.pages, "page"),
             output == "-" ? std::string{} : fmt::format(" to {}", printable(output)));
  if (report.empty > 0) fmt::print(out, "  {} without a record\n", counted(report.empty, "page"));
  if (report.dropped > 0)
    fmt::print(out, "  {} dropped: a required field was missing\n", counted(report.dropped, "record"));
  if (report.known > 0)
    fmt::print(out, "  {} had been extracted by an interrupted run\n", counted(report.known, "page"));
  if (report.refused > 0) {
    fmt::print(out, "  {} could not be read; the first: {}\n", counted(report.refused, "page"),
               printable(report.refused_example));
  }
  for (const FieldReport& field : report.fields) {
    if (field.values < report.records) {
      fmt::print(out, "  {}: in {} of {}\n", printable(field.name), field.values, report.records);
    }
    if (field.troubles > 0) {
      fmt::print(out, "  {}: {} of no use; the first: {}\n", printable(field.name), counted(field.troubles, "value"),
                 printable(field.example));
    }
  }
}

void write_extraction(JsonWriter& json, const ExtractionReport& report) {
  json.member("pages", report.pages);
  json.member("records", report.records);
  json.member("empty", report.empty);
  json.member("dropped", report.dropped);
  json.member("refused", report.refused);
  json.member("known", report.known);
  json.object("fields", [&] {
    for (const FieldReport& field : report.fields) {
      json.object(field.name, [&] {
        json.member("values", field.values);
        json.member("troubles", field.troubles);
      });
    }
  });
}

}  // namespace argiope

// Events as JSON and CSV, and what all kinds of sinks share.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/internal/csv.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/file_writing.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/results/result_sink.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSecretFileBytes = 4096;

// A value that has come as JSON, in one line. In texts line breaks are written as escapes.
std::string one_line_json(const std::string& value) {
  if (value.empty()) return "null";
  std::string line = value;
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

// With the comma behind it; numbers are no formulas.
std::string csv_cell_of_json(const JsonValue& value) {
  std::string cell;
  if (const auto text = value.if_text()) {
    append_csv_text(cell, *text);
  } else {
    const std::string json = value.json();
    append_csv_field(cell, json == "null" ? std::string_view{} : json);
  }
  return cell;
}

Result<std::string> read_secret_file(const std::string& path) {
  auto secret = read_file_text(path, kMostSecretFileBytes, FileReading::again);
  if (!secret)
    return fail(secret.error().code, fmt::format("{}: cannot be read: {}", printable(path), secret.error().message));
  return secret;
}

}  // namespace

std::string SinkContext::path(const std::string& named) const {
  return (std::filesystem::path(means.folder) / named).lexically_normal().string();
}

Result<std::string> SinkContext::secret() const {
  Result<std::string> secret;
  std::string where;
  if (!sink.secret_file.empty()) {
    where = printable(sink.secret_file);
    secret = read_secret_file(path(sink.secret_file));
  } else if (!sink.secret_variable.empty()) {
    where = fmt::format("variable {}", printable(sink.secret_variable));
    const char* const own = means.variable ? nullptr : std::getenv(sink.secret_variable.c_str());
    const auto value = means.variable   ? means.variable(sink.secret_variable)
                       : own == nullptr ? std::nullopt
                                        : std::optional<std::string>(own);
    if (!value)
      return fail(Errc::not_found, fmt::format("{} of the environment, which has the secret, is not set", where));
    secret = *value;
  } else {
    return secret;
  }
  while (secret && (secret->ends_with('\n') || secret->ends_with('\r'))) secret->pop_back();
  if (secret && secret->empty()) return fail(Errc::invalid_input, fmt::format("{}: the secret is empty", where));
  return secret;
}

std::string_view sink_page(const FeedRow& row) noexcept { return shown_url(row.page_name, row.url); }

void append_event_json(std::string& out, std::string_view project, const FeedRow& row) {
  JsonWriter json(out);
  json.object([&] {
    json.member("number", row.number);
    json.member("project", project);
    json.member("page", sink_page(row));
    if (sink_page(row) != row.page_name) json.member("name", row.page_name);
    json.member("part", row.part);
    json.member("rule", row.rule);
    json.member("news", to_string(row.news));
    json.member("at", to_rfc3339_ms(row.at));
    json.key("value");
    json.raw(one_line_json(row.value));
  });
}

std::string events_as_lines(std::string_view project, const SinkBatch& batch) {
  std::string lines;
  std::string line;
  for (const FeedRow& row : batch.rows) {
    line.clear();
    append_event_json(line, project, row);
    lines.append(line) += '\n';
  }
  return lines;
}

std::string event_csv_header(const std::vector<std::string>& columns) {
  std::string header = "number,project,page,part,rule,news,at,";
  for (const std::string& column : columns) append_csv_text(header, column);
  if (columns.empty()) header += "value,";
  end_csv_line(header);
  return header;
}

void append_event_csv(std::string& out, std::string_view project, const std::vector<std::string>& columns,
                      const FeedRow& row) {
  append_csv_field(out, fmt::to_string(row.number));
  append_csv_field(out, project);
  append_csv_text(out, sink_page(row));
  append_csv_text(out, row.part);
  append_csv_text(out, row.rule);
  append_csv_field(out, to_string(row.news));
  append_csv_field(out, to_rfc3339_ms(row.at));
  if (columns.empty()) {
    append_csv_field(out, one_line_json(row.value));
    return end_csv_line(out);
  }
  std::vector<std::string> cells(columns.size(), ",");
  if (const auto text = JsonText::parse(row.value)) {
    JsonErrors errors;
    text->root(errors).for_each_name([&](std::string_view name, const JsonValue& value) {
      const auto found = std::ranges::find(columns, name);
      if (found != columns.end()) cells[static_cast<std::size_t>(found - columns.begin())] = csv_cell_of_json(value);
    });
  }
  for (const std::string& cell : cells) out += cell;
  end_csv_line(out);
}

}  // namespace argiope

#include "project/results/internal/result_export.hpp"

#include <algorithm>
#include <utility>

#include "base/internal/csv.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

constexpr std::string_view kExportFormats[] = {"jsonl", "csv", "json"};
constexpr std::string_view kValueColumn = "value";
constexpr std::size_t kKeptCellBytes = 1'024;  // of memory, from one row to the next

std::string column_named(std::string_view member) {
  if (member == "url" || member == "part") return "value." + std::string(member);
  return std::string(member);
}

// As a cell of CSV; numbers are no formulas.
void append_cell(std::string& out, const JsonValue& value) {
  if (const auto text = value.if_text()) return append_csv_text(out, *text);
  const std::string json = value.json();
  append_csv_field(out, json == "null" ? std::string_view{} : json);
}

}  // namespace

std::string_view to_string(ExportFormat format) noexcept { return kExportFormats[static_cast<std::size_t>(format)]; }
std::optional<ExportFormat> export_format_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kExportFormats, name);
  return found == std::end(kExportFormats) ? std::nullopt
                                           : std::optional(static_cast<ExportFormat>(found - kExportFormats));
}

std::vector<std::string> columns_of(const ProjectDefinition& project) {
  std::vector<std::string> columns;
  for (const ProjectRule& rule : project.rules) {
    for (const FieldRule& field : rule.extraction.fields) {
      if (std::ranges::find(columns, field.name) == columns.end()) columns.push_back(field.name);
    }
  }
  return columns;
}

ScanResults results_of(PageStore& store, ProjectId project) {
  return [&store, project](const std::optional<PageStore::ResultPlace>& after,
                           const std::function<bool(const ResultRow&)>& visit) {
    return store.scan_results(project, after, visit);
  };
}

ResultExport::ResultExport(ScanResults scan, ResultExportOptions options)
    : scan_(std::move(scan)), options_(std::move(options)) {
  if (options_.format != ExportFormat::csv) return;
  stage_ = Stage::columns;
  for (const std::string& name : options_.columns) add_column(column_named(name));
}

Result<bool> ResultExport::scan_on(const std::function<void(const ResultRow&)>& visit,
                                   const std::function<bool()>& is_enough) {
  std::size_t seen = 0;
  bool has_more = false;
  const auto scanned = scan_(after_, [&](const ResultRow& row) {
    if (seen == kStepResults || is_enough()) {
      has_more = true;
      return false;
    }
    ++seen;
    after_ = {row.page, row.part};
    if (is_wanted(row)) visit(row);
    return true;
  });
  if (!scanned) return std::unexpected(scanned.error());
  return has_more;
}

bool ResultExport::is_wanted(const ResultRow& row) const {
  return options_.rules.empty() || std::ranges::find(options_.rules, row.rule) != options_.rules.end();
}

Result<bool> ResultExport::step(std::string& out) {
  if (stage_ == Stage::columns) {
    auto more = scan_on([&](const ResultRow& row) { find_columns(row); }, [] { return false; });
    if (!more) return more;
    if (*more) return true;
    after_.reset();
    stage_ = Stage::front;
    return true;
  }
  if (stage_ == Stage::front) {
    write_front(out);
    stage_ = Stage::rows;
  }
  const std::size_t before = out.size();
  auto more =
      scan_on([&](const ResultRow& row) { write_row(row, out); }, [&] { return out.size() - before >= kStepBytes; });
  if (more && !*more) write_end(out);
  return more;
}

// --- columns

// Whether it has one now.
bool ResultExport::add_column(std::string_view name) {
  if (places_.contains(name)) return true;
  if (columns_.size() >= kMostColumns || name.size() > kMostColumnBytes) return false;
  places_.emplace(name, columns_.size());
  columns_.emplace_back(name);
  return true;
}

void ResultExport::find_columns(const ResultRow& row) {
  const auto json = JsonText::parse(row.value);
  if (!json) return;
  JsonErrors errors;
  const JsonValue value = json->root(errors);
  if (!value.is_object()) return void(add_column(kValueColumn));
  value.for_each_member([&](std::string_view name, const JsonValue&) {
    if (!places_.contains(name) || name == "url" || name == "part") add_column(column_named(name));
  });
}

// --- rows

void ResultExport::write_front(std::string& out) const {
  if (options_.format == ExportFormat::json) out += '[';
  if (options_.format != ExportFormat::csv) return;
  append_csv_field(out, "url");
  append_csv_field(out, "part");
  for (const std::string& name : columns_) append_csv_text(out, name);
  end_csv_line(out);
}

void ResultExport::write_row(const ResultRow& row, std::string& out) {
  ++results_;
  if (options_.format == ExportFormat::csv) return write_csv(row, out);
  if (options_.format == ExportFormat::json) out += results_ == 1 ? "\n" : ",\n";
  JsonWriter json(out);
  json.object([&] {
    json.member("page", row.page_name);
    json.member("url", shown_url(row.page_name, row.url));
    json.member("rule", row.rule);
    json.member("part", row.part);
    json.member("added_at", row.added_at);
    json.member("changed_at", row.changed_at);
    json.key("value");
    json.raw(row.value.empty() ? std::string_view("null") : row.value);
  });
  if (options_.format == ExportFormat::jsonl) out += '\n';
}

void ResultExport::write_csv(const ResultRow& row, std::string& out) {
  cells_.resize(columns_.size());
  for (std::string& cell : cells_) {
    if (cell.capacity() > kKeptCellBytes) cell = std::string();
    cell.clear();
  }
  const auto put = [&](std::string_view column, const JsonValue& value) {
    const auto place = places_.find(column);
    if (place == places_.end()) {
      ++left_out_;
      return;
    }
    std::string& cell = cells_[place->second];
    cell.clear();
    append_cell(cell, value);
  };
  if (const auto json = JsonText::parse(row.value)) {
    JsonErrors errors;
    const JsonValue value = json->root(errors);
    if (!value.is_object()) put(kValueColumn, value);
    value.for_each_member([&](std::string_view name, const JsonValue& member) {
      name == "url" || name == "part" ? put(column_named(name), member) : put(name, member);
    });
  } else {
    ++left_out_;  // no JSON that is read here: nested too deeply, or damaged
  }
  append_csv_text(out, shown_url(row.page_name, row.url));
  append_csv_text(out, row.part);
  for (const std::string& cell : cells_) cell.empty() ? out += ',' : out += cell;
  end_csv_line(out);
}

void ResultExport::write_end(std::string& out) const {
  if (options_.format == ExportFormat::json) out += results_ == 0 ? "]\n" : "\n]\n";
}

// --- all at once

Result<ResultExportReport> export_results(const ScanResults& scan, const ResultExportOptions& options,
                                          const std::function<bool(std::string_view)>& take) {
  ResultExport exported(scan, options);
  std::string bytes;
  bool goes_on = true;
  while (goes_on) {
    bytes.clear();
    auto more = exported.step(bytes);
    if (!more) return std::unexpected(std::move(more.error()));
    goes_on = (bytes.empty() || take(bytes)) && *more;
  }
  return ResultExportReport{exported.results(), exported.left_out()};
}

Result<ResultExportReport> export_results(const ScanResults& scan, const ResultExportOptions& options,
                                          const std::string& path) {
  OutputFile file("results to", path);
  auto report = export_results(scan, options, [&](std::string_view bytes) {
    file.write(bytes);
    return file.ok();
  });
  if (!report) return report;
  if (auto finished = file.finish(); !finished) return std::unexpected(std::move(finished.error()));
  return report;
}

}  // namespace argiope

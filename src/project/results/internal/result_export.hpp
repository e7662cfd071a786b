// The results of a project as JSON Lines, CSV or a JSON array. Bytes come in steps of bounded size, so that a daemon's
// loop may do other things in between, and whatever the number of results only one step is in memory.
//
//   {"page":…,"url":…,"rule":…,"part":…,"added_at":…,"changed_at":…,"value":…}     JSON Lines, an element of the array
//   url,part,title,price                                                           CSV
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/output_file.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

enum class ExportFormat : std::uint8_t { jsonl, csv, json };
std::string_view to_string(ExportFormat format) noexcept;  // "jsonl"
std::optional<ExportFormat> export_format_named(std::string_view name) noexcept;

struct ResultExportOptions {
  ExportFormat format = ExportFormat::jsonl;
  // The first columns of CSV behind url and part, whether or not results have them: columns_of(). Other members come
  // behind them in the order in which they are met.
  std::vector<std::string> columns;
  std::vector<std::string> rules;  // only results of their pages; empty: of all
};

// The names of the fields of all rules, each once, in the order of the rules.
std::vector<std::string> columns_of(const ProjectDefinition& project);

// Reads results in their order from behind `after` on, as PageStore::scan_results() does.
using ScanResults = std::function<Result<void>(const std::optional<PageStore::ResultPlace>& after,
                                               const std::function<bool(const ResultRow&)>& visit)>;
// Lifetime: the store outlives it.
ScanResults results_of(PageStore& store, ProjectId project);

// In CSV a member of a result is a cell of its name; "value.url" and "value.part" where it has the name of one of the
// first two columns. Text stands as it is, with an apostrophe before it where a spreadsheet would take it for a
// formula; null is empty; lists and objects are JSON. A result that is no object is in the column "value". Line ends
// are CRLF (RFC 4180).
//
// Errors:  those of the store; what was written is then no whole export.
// Threads: the store's owner's.
// Cost:    CSV reads all results twice, for the columns first.
class ResultExport {
 public:
  static constexpr std::size_t kStepBytes = 256 * 1024;
  static constexpr std::size_t kStepResults = 2'000;
  // Of CSV. Members that are beyond, or have a longer name, are left out and counted.
  static constexpr std::size_t kMostColumns = 2'000;
  static constexpr std::size_t kMostColumnBytes = 1'000;

  ResultExport(ScanResults scan, ResultExportOptions options);

  // Appends some more to `out`: about kStepBytes, or one result that is larger; nothing, while columns are looked for.
  // False: that was all, and it is not to be called again.
  Result<bool> step(std::string& out);

  std::uint64_t results() const noexcept { return results_; }    // written so far
  std::uint64_t left_out() const noexcept { return left_out_; }  // cells of members without a column

 private:
  enum class Stage : std::uint8_t { columns, front, rows };

  // visit(row) for the next rows; false: there were no more.
  Result<bool> scan_on(const std::function<void(const ResultRow&)>& visit, const std::function<bool()>& is_enough);
  bool is_wanted(const ResultRow& row) const;
  void find_columns(const ResultRow& row);
  bool add_column(std::string_view name);
  void write_front(std::string& out) const;
  void write_row(const ResultRow& row, std::string& out);
  void write_csv(const ResultRow& row, std::string& out);
  void write_end(std::string& out) const;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  const ScanResults scan_;
  const ResultExportOptions options_;
  Stage stage_ = Stage::front;
  std::optional<PageStore::ResultPlace> after_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> places_;  // of columns_
  std::vector<std::string> cells_;
  std::uint64_t results_ = 0, left_out_ = 0;
};

struct ResultExportReport {
  std::uint64_t results = 0;
  std::uint64_t left_out = 0;
};

// All of them, in one go. `take` gets the bytes as they come; false: it wants no more, which is no error.
Result<ResultExportReport> export_results(const ScanResults& scan, const ResultExportOptions& options,
                                          const std::function<bool(std::string_view)>& take);
// Into a file that is there whole or not at all; "-" is standard output.
// Errors: also OutputFile's.
Result<ResultExportReport> export_results(const ScanResults& scan, const ResultExportOptions& options,
                                          const std::string& path);

}  // namespace argiope

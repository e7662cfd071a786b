// `argiope project results`: what a project has found, for other programs.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/url.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_told.hpp"
#include "cli/command_files.hpp"
#include "cli/commands.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_place.hpp"
#include "cli/project/result_file.hpp"

namespace argiope {
namespace {

struct ProjectResultsArguments {
  std::string name;
  ProjectPlace place;
  std::string format;  // empty: by the file's name
  std::string output = "-";
  std::vector<std::string> rules;
};

int after_export(const Result<ResultExportReport>& written) {
  if (!written) return complain_of_project(written.error(), kExitNothing);
  if (written->left_out > 0) {
    fmt::print(stderr, "argiope: {} left out: more columns than {}\n", counted(written->left_out, "cell"),
               ResultExport::kMostColumns);
  }
  return kExitFinished;
}

// --- from a daemon

struct ToldResults {
  std::vector<ResultRow> rows;
  std::vector<std::string> columns;
  std::optional<std::string> next;  // what to ask for behind them; nullopt: there are no more
};

ToldResults read_told_results(const JsonValue& told) {
  ToldMembers in(told);
  ToldResults results;
  in.for_each("results", [&](const JsonValue& result) {
    ToldMembers its(result);
    ResultRow& row = results.rows.emplace_back();
    its.read("page", row.page_name);
    its.read("url", row.url);
    its.read("rule", row.rule);
    its.read("part", row.part);
    its.read("added_at", row.added_at);
    its.read("changed_at", row.changed_at);
    const JsonValue* const value = its.find("value");
    row.value = value == nullptr ? "null" : value->json();
  });
  in.for_each("columns",
              [&](const JsonValue& column) { results.columns.push_back(std::string(column.if_text().value_or(""))); });
  in.read("next", results.next);
  return results;
}

// Its results, some at a time. Places are the daemon's cursors: of a row that was read, the place is not known.
class ToldResultScan {
 public:
  ToldResultScan(ProjectDaemon& daemon, const ProjectResultsArguments& arguments)
      : daemon_(daemon), arguments_(arguments) {}

  Result<ToldResults> first() { return ask(std::nullopt); }
  // As ScanResults has it, for who goes on where he has stopped or begins anew.
  Result<void> scan(bool from_start, const std::function<bool(const ResultRow&)>& visit) {
    if (from_start) {
      batch_ = {};
      at_ = 0;
      cursor_.reset();
      has_more_ = true;
    }
    for (;;) {
      for (; at_ < batch_.size(); ++at_) {
        if (!visit(batch_[at_])) return {};
      }
      if (!has_more_) return {};
      auto told = ask(cursor_);
      if (!told) return std::unexpected(std::move(told.error()));
      batch_ = std::move(told->rows);
      at_ = 0;
      for (ResultRow& row : batch_) row.page = ++count_;  // in their order, from which the export goes on
      cursor_ = std::move(told->next);
      has_more_ = cursor_.has_value();
    }
  }

 private:
  Result<ToldResults> ask(const std::optional<std::string>& after) {
    std::string what = "results?limit=1000";
    if (after) what += "&after=" + percent_encode(*after);
    if (arguments_.rules.size() == 1) what += "&rule=" + percent_encode(arguments_.rules.front());
    return daemon_.get(path_of_project(arguments_.name, what), read_told_results);
  }

  ProjectDaemon& daemon_;
  const ProjectResultsArguments& arguments_;
  std::vector<ResultRow> batch_;
  std::size_t at_ = 0;
  PageId count_ = 0;
  std::optional<std::string> cursor_;
  bool has_more_ = true;
};

int write_told_results(const ProjectResultsArguments& arguments) {
  auto daemon = ProjectDaemon::open(arguments.place.daemon);
  if (!daemon) return complain_of_daemon(daemon.error());
  ToldResultScan results(**daemon, arguments);
  // Before a file is made: whether there is such a project.
  auto first = results.first();
  if (!first) return complain_of_daemon(first.error());
  const ExportFormat format = export_format_named(arguments.format).value_or(export_format_of(arguments.output));
  const ResultExportOptions options{.format = format, .columns = std::move(first->columns), .rules = arguments.rules};
  return after_export(export_results([&](const auto& after, const auto& visit) { return results.scan(!after, visit); },
                                     options, arguments.output));
}

// --- from a database

int run_project_results(const ProjectResultsArguments& arguments) {
  CommandFiles files;
  if (arguments.place.daemon.empty()) files.reads_database("--db", arguments.place.database);
  files.writes("--output", arguments.output);
  if (const auto good = files.check(); !good) return complain_of_project(good.error(), status_for(good.error()));
  if (!arguments.place.daemon.empty()) return write_told_results(arguments);
  auto store = look_at_pages(arguments.place.database);
  if (!store) return complain_of_project(store.error(), kExitNothing);
  const auto record = find_project(**store, arguments.name, Deleted::included);
  if (!record) return complain_of_project(record.error(), status_for(record.error()));
  const ExportFormat format = export_format_named(arguments.format).value_or(export_format_of(arguments.output));
  return after_export(
      write_results(**store, *record, {.format = format, .columns = {}, .rules = arguments.rules}, arguments.output));
}

}  // namespace

ExportFormat export_format_of(std::string_view file) noexcept {
  return file.ends_with(".csv")    ? ExportFormat::csv
         : file.ends_with(".json") ? ExportFormat::json
                                   : ExportFormat::jsonl;
}

Result<ResultExportReport> write_results(PageStore& store, const ProjectRecord& project, ResultExportOptions options,
                                         const std::string& file) {
  if (auto version = version_of(store, project)) {
    if (auto definition = definition_of(*version)) options.columns = columns_of(*definition);
  }
  return export_results(results_of(store, project.id), options, file);
}

std::function<int()> add_project_results(CLI::App& project) {
  auto arguments = std::make_shared<ProjectResultsArguments>();
  CLI::App* command = project.add_subcommand("results", "Write a project's results: JSON Lines, CSV or a JSON array.");
  command->add_option("NAME", arguments->name, "The project")->required()->type_name("");
  arguments->place.add_to(*command);
  command->add_option("-o,--output", arguments->output, "Where to write it; \"-\": standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--format", arguments->format, "jsonl, csv or json (default: by the file's name, else jsonl)")
      ->check(CLI::IsMember({"jsonl", "csv", "json"}))
      ->type_name("FORMAT");
  command->add_option("--rule", arguments->rules, "Only results of pages with this rule (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->footer(
      "CSV has a column for each field of the project's rules, then others as results have them; JSON has each result "
      "whole.\n"
      "It works beside a running owner, in memory of a bounded size.\n"
      "Exit status: 0, 2 there is no such project, 3 the database cannot be read or the file not written.\n"
      "Example: argiope project results shop -o prices.csv");
  return [arguments] { return run_project_results(*arguments); };
}

}  // namespace argiope

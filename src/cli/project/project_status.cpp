// `argiope project status`: what each project is doing, as it is stored or as its daemon says.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_place.hpp"
#include "cli/table.hpp"
#include "project/rules/internal/failure_pause.hpp"
#include "project/rules/internal/project_counters.hpp"
#include "project/run/internal/round_json.hpp"

namespace argiope {
namespace {

using Count = ProjectCounters::Count;
using Span = ProjectCounters::Span;
constexpr Count kCountsShown[] = {Count::pending, Count::success, Count::retry, Count::failed};
constexpr Span kSpansShown[] = {Span::m5, Span::h1, Span::d1};

struct ProjectStatusArguments {
  std::string name;  // empty: all
  ProjectPlace place;
  bool json = false;
};

// The facts that are shown of a project, wherever it is.
struct ShownStatus {
  std::string name, group, status, doing, trouble;
  std::optional<double> rate;
  std::uint32_t burst = 1, weight = 1;
  std::int64_t pages = 0, version = 0;
  std::uint64_t results = 0;
  std::array<std::array<std::int64_t, std::size(kSpansShown)>, std::size(kCountsShown)>
      counts{};                                             // visits that ended, and those that are pending
  std::array<std::int64_t, std::size(kCountsShown)> all{};  // pages as they are now; of retries none
  std::optional<WallTime> until;                            // of a pause after failures
  std::optional<RoundRecord> round;                         // the newest
  WallTime made_at{}, changed_at{};
  std::optional<WallTime> deleted_at;
  bool is_whole = true;  // of one that was deleted a daemon tells no more than its name and when
};

// --- from a database

// As far as what is stored tells.
std::string doing_of(const ProjectRecord& record, const FailurePause& pause, const std::optional<RoundRecord>& round,
                     bool has_owner, WallTime now) {
  const ProjectStatus said = status_of(record);
  if (record.deleted_at) return "deleted";
  if (said != ProjectStatus::running && said != ProjectStatus::debug) return "stopped";
  if (!record.trouble.empty()) return "standing";
  if (!has_owner) return "not run";
  switch (pause.state(now)) {
    case FailurePause::State::paused: return "paused";
    case FailurePause::State::probing: return "probing";
    case FailurePause::State::running: break;
  }
  return round && !round->ended ? "visiting" : "waiting";
}

Result<ShownStatus> read_status(PageStore& store, ProjectRecord record, bool has_owner, WallTime now) {
  ShownStatus shown;
  std::optional<ProjectDefinition> definition;  // nullopt: it cannot be read
  if (auto version = version_of(store, record)) {
    if (auto read = definition_of(*version)) definition = std::move(*read);
  }
  ProjectCounters counters;
  if (auto read = ProjectCounters::read(record.counters); read && !record.counters.empty()) counters = std::move(*read);
  FailurePause pause;
  if (auto read = FailurePause::read(record.pause); read && !record.pause.empty()) pause = *read;
  auto rounds = store.rounds(record.id, 1);
  if (!rounds) return std::unexpected(std::move(rounds.error()));
  if (!rounds->empty()) shown.round = std::move(rounds->front());
  const auto results = store.count_results(record.id);
  if (!results) return std::unexpected(results.error());
  shown.results = *results;
  shown.doing = doing_of(record, pause, shown.round, has_owner, now);
  shown.until = pause.next_change();
  shown.rate = record.rate ? record.rate : definition ? definition->rate : std::nullopt;
  shown.burst = record.burst.value_or(definition ? definition->burst : 1);
  shown.weight = definition ? definition->weight : 1;
  for (std::size_t i = 0; i < std::size(kCountsShown); ++i) {
    for (std::size_t k = 0; k < std::size(kSpansShown); ++k)
      shown.counts[i][k] = static_cast<std::int64_t>(counters.sum(kCountsShown[i], kSpansShown[k], now));
    shown.all[i] = counters.all(kCountsShown[i]);
  }
  shown.pages = counters.all(Count::pending) + counters.all(Count::success) + counters.all(Count::failed);
  shown.version = record.version;
  shown.made_at = record.made_at;
  shown.changed_at = record.changed_at;
  shown.deleted_at = record.deleted_at;
  shown.name = std::move(record.name);
  shown.group = std::move(record.group);
  shown.status = std::move(record.status);
  shown.trouble = std::move(record.trouble);
  return shown;
}

// --- from a daemon

RoundRecord read_round(const JsonValue& told) {
  ToldMembers in(told);
  RoundRecord round;
  in.read("number", round.number);
  in.read("cause", round.cause);
  in.read("began", round.began);
  in.read("ended", round.ended);
  in.read("pages", round.pages);
  in.read("failed", round.failed);
  in.read("results", round.results);
  return round;
}

ShownStatus read_told_status(const JsonValue& told) {
  ToldMembers in(told);
  ShownStatus shown;
  in.read("name", shown.name);
  in.read("group", shown.group);
  in.read("status", shown.status);
  in.read("doing", shown.doing);
  in.read("trouble", shown.trouble);
  if (shown.doing == "paused" || shown.doing == "probing") in.read("until", shown.until);
  in.read("rate", shown.rate);
  in.read("burst", shown.burst);
  in.read("weight", shown.weight);
  in.read("pages", shown.pages);
  in.read("version", shown.version);
  in.read("results", shown.results);
  in.read("made_at", shown.made_at);
  in.read("changed_at", shown.changed_at);
  if (const JsonValue* const counts = in.find("counts")) {
    ToldMembers spans(*counts);
    const auto read_counts = [&](std::string_view span, const auto& into) {
      const JsonValue* const of_span = spans.find(span);
      if (of_span == nullptr) return;
      ToldMembers kinds(*of_span);
      for (std::size_t i = 0; i < std::size(kCountsShown); ++i) kinds.read(to_string(kCountsShown[i]), into(i));
    };
    for (std::size_t k = 0; k < std::size(kSpansShown); ++k) {
      read_counts(to_string(kSpansShown[k]), [&](std::size_t i) -> std::int64_t& { return shown.counts[i][k]; });
    }
    read_counts("all", [&](std::size_t i) -> std::int64_t& { return shown.all[i]; });
  }
  in.for_each("rounds", [&](const JsonValue& round) {
    if (!shown.round) shown.round = read_round(round);
  });
  return shown;
}

struct ToldProjects {
  std::vector<std::string> names;
  std::vector<ShownStatus> deleted;
};

ToldProjects read_told_projects(const JsonValue& told) {
  ToldMembers in(told);
  ToldProjects all;
  in.for_each("projects",
              [&](const JsonValue& project) { ToldMembers(project).read("name", all.names.emplace_back()); });
  in.for_each("deleted", [&](const JsonValue& project) {
    ShownStatus& shown = all.deleted.emplace_back(ShownStatus{.doing = "deleted", .is_whole = false});
    ToldMembers its(project);
    its.read("name", shown.name);
    its.read("deleted_at", shown.deleted_at);
  });
  return all;
}

// --- shown

std::string round_of(const ShownStatus& status) {
  if (!status.round) return "-";
  return fmt::format("{}{}", status.round->number, status.round->ended ? "" : ", under way");
}

std::string counts_of(const ShownStatus& status, std::size_t what) {
  std::string text;
  for (const std::int64_t count : status.counts[what]) text += fmt::format("{} ", count);
  return kCountsShown[what] == Count::retry ? text + "-" : text + fmt::to_string(status.all[what]);
}

void print_statuses(const std::vector<ShownStatus>& statuses, WallTime now) {
  Table table({"GROUP", "NAME", "STATUS", "DOING", "RATE/BURST", "PAGES", "RESULTS", "PENDING 5m 1h 1d all", "SUCCESS",
               "RETRY", "FAILED", "ROUND", "CHANGED"});
  for (const ShownStatus& status : statuses) {
    if (!status.is_whole) {
      table.add(
          {"-", one_line(status.name, kMostOfName), "-", status.doing, "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const std::string rate = status.rate ? fmt::format("{}/{}", *status.rate, status.burst) : "-";
    table.add({status.group.empty() ? "-" : one_line(status.group, kMostOfName), one_line(status.name, kMostOfName),
               status.status, status.doing, rate, fmt::to_string(status.pages), fmt::to_string(status.results),
               counts_of(status, 0), counts_of(status, 1), counts_of(status, 2), counts_of(status, 3), round_of(status),
               to_rfc3339(status.changed_at)});
  }
  table.print();
  for (const ShownStatus& status : statuses) {
    if (!status.trouble.empty()) fmt::print("{}: {}\n", printable(status.name), printable(status.trouble));
    if (status.until && *status.until > now && !status.deleted_at) {
      fmt::print("{}: its visits kept failing: until {}\n", printable(status.name), to_rfc3339(*status.until));
    }
    if (status.deleted_at) {
      fmt::print("{}: deleted {}; argiope project restore {} brings it back within 24 h\n", printable(status.name),
                 to_rfc3339(*status.deleted_at), printable(status.name));
    }
  }
}

void write_status(JsonWriter& out, const ShownStatus& status) {
  out.member("name", status.name);
  if (!status.is_whole) {
    out.member("doing", status.doing);
    return out.member("deleted_at", status.deleted_at);
  }
  out.member("group", status.group);
  out.member("status", status.status);
  out.member("doing", status.doing);
  out.member("trouble", status.trouble);
  out.member("rate", status.rate);
  out.member("burst", status.burst);
  out.member("weight", status.weight);
  out.member("pages", status.pages);
  out.member("results", status.results);
  out.member("version", status.version);
  out.object("counters", [&] {
    for (std::size_t i = 0; i < std::size(kCountsShown); ++i) {
      out.object(to_string(kCountsShown[i]), [&] {
        for (std::size_t k = 0; k < std::size(kSpansShown); ++k)
          out.member(to_string(kSpansShown[k]), status.counts[i][k]);
        if (kCountsShown[i] != Count::retry) out.member("all", status.all[i]);
      });
    }
  });
  out.key("round");
  if (!status.round) {
    out.null();
  } else {
    out.object([&] { write_round(out, *status.round); });
  }
  out.member("made_at", status.made_at);
  out.member("changed_at", status.changed_at);
  out.member("deleted_at", status.deleted_at);
}

int show_statuses(const ProjectStatusArguments& arguments, const std::vector<ShownStatus>& statuses,
                  const std::string& owner, WallTime now) {
  if (!arguments.json) {
    print_statuses(statuses, now);
    return kExitFinished;
  }
  fmt::print("{}\n", json_object([&](JsonWriter& out) {
               out.member("owner", owner.empty() ? std::nullopt : std::optional(owner));
               out.array("projects", [&] {
                 for (const ShownStatus& status : statuses) out.object([&] { write_status(out, status); });
               });
             }));
  return kExitFinished;
}

void in_order(std::vector<ShownStatus>& statuses) {
  std::ranges::sort(statuses, {}, [](const ShownStatus& status) { return std::pair(status.group, status.name); });
}

int run_on_daemon_status(const ProjectStatusArguments& arguments) {
  auto daemon = ProjectDaemon::open(arguments.place.daemon);
  if (!daemon) return complain_of_daemon(daemon.error());
  auto told = (*daemon)->get("/v1/projects", read_told_projects);
  if (!told) return complain_of_daemon(told.error());
  std::vector<ShownStatus> statuses = std::move(told->deleted);
  if (!arguments.name.empty()) {
    std::erase_if(statuses, [&](const ShownStatus& deleted) { return deleted.name != arguments.name; });
    told->names.clear();
    if (statuses.empty()) told->names.push_back(arguments.name);
  }
  for (const std::string& name : told->names) {
    auto status = (*daemon)->get(path_of_project(name), read_told_status);
    if (!status && status.error().code == Errc::not_found && arguments.name.empty()) continue;  // it has gone meanwhile
    if (!status) return complain_of_daemon(status.error());
    statuses.push_back(std::move(*status));
  }
  in_order(statuses);
  return show_statuses(arguments, statuses, (*daemon)->name(), calendar_now());
}

int run_project_status(const ProjectStatusArguments& arguments) {
  if (!arguments.place.daemon.empty()) return run_on_daemon_status(arguments);
  const std::string& database = arguments.place.database;
  auto store = look_at_pages(database);
  if (!store) return complain_of_project(store.error(), kExitNothing);
  std::vector<ProjectRecord> records;
  if (arguments.name.empty()) {
    auto all = (*store)->projects();
    if (!all) return complain_of_project(all.error(), kExitNothing);
    records = std::move(*all);
  } else {
    auto one = find_project(**store, arguments.name, Deleted::included);
    if (!one) return complain_of_project(one.error(), status_for(one.error()));
    records.push_back(std::move(*one));
  }
  const WallTime now = calendar_now();
  const std::string owner = owner_of_pages(database);
  std::vector<ShownStatus> statuses;
  for (ProjectRecord& record : records) {
    auto status = read_status(**store, std::move(record), !owner.empty(), now);
    if (!status) return complain_of_project(status.error(), kExitNothing);
    statuses.push_back(std::move(*status));
  }
  in_order(statuses);
  return show_statuses(arguments, statuses, owner, now);
}

}  // namespace

std::function<int()> add_project_status(CLI::App& project) {
  auto arguments = std::make_shared<ProjectStatusArguments>();
  CLI::App* command =
      project.add_subcommand("status", "Say what each project is doing: its pages, results, rate, round and counters.");
  command->add_option("NAME", arguments->name, "One project (default: all)")->type_name("");
  arguments->place.add_to(*command);
  command->add_flag("--json", arguments->json, "JSON instead of a table");
  command->footer(
      "It works beside a running owner, whose newest counters come a few seconds late. Counters are of the last 5 "
      "minutes, hour and day,\n"
      "and of all pages as they are now.\n"
      "Exit status: 0, 2 there is no such project, 3 the database cannot be read.\n"
      "Example: argiope project status -d pages.db");
  return [arguments] { return run_project_status(*arguments); };
}

}  // namespace argiope

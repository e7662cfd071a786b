// The commands that only look: `argiope schedule list`, `show`, `history` and `explain`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "cli/number_option.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/schedule/schedule_print.hpp"
#include "cli/standard_output.hpp"
#include "cli/table.hpp"
#include "engine/internal/schedule_status_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kUpcoming = 5;
constexpr std::size_t kRunsShown = 5;

struct ScheduleLookArguments {
  JobStoreArguments store;
  std::vector<std::string> names;
  std::uint64_t after = 0;
  std::size_t limit = 100;
};
using LookPointer = std::shared_ptr<ScheduleLookArguments>;

// The newest of its history that has a job.
Coro<Result<std::optional<ScheduleRun>>> last_run(ScheduleBook& book, const ScheduleStatus& status) {
  std::optional<ScheduleRun> last;
  if (status.place.fired == 0) co_return last;
  auto runs = co_await book.history(status.name, kRunsKept);
  if (!runs && runs.error().code == Errc::not_found) co_return last;  // removed since it was listed
  if (!runs) co_return std::unexpected(std::move(runs.error()));
  const auto found = std::ranges::find_if(*runs, [](const ScheduleRun& run) { return run.job != 0; });
  if (found != runs->end()) last = std::move(*found);
  co_return last;
}

Coro<Result<int>> list_schedules(const ScheduleLookArguments& look, ScheduleBook& book) {
  const WallTime now = EventLoop::current().clock().wall_now();
  Table table(schedule_heading());
  std::size_t shown = 0;
  ScheduleId after = look.after;
  while (shown < look.limit) {
    const auto page = co_await or_return(book.list(after, std::min(kListPage, look.limit - shown)));
    if (page.empty()) break;
    after = page.back().id;
    shown += page.size();
    for (const ScheduleStatus& status : page) {
      if (look.store.json) {
        fmt::print("{}\n", to_json(status));
        continue;
      }
      const auto last = co_await or_return(last_run(book, status));
      table.add(schedule_row(status, last, now));
    }
  }
  if (look.store.json) co_return kExitFinished;
  if (shown == 0) {
    fmt::print("No schedules.\n");
    co_return kExitFinished;
  }
  table.print();
  if (shown == look.limit) fmt::print("There may be more: --limit N shows N, --after {} goes on from here.\n", after);
  co_return kExitFinished;
}

// The planned times to come, as long as it is not paused.
std::vector<WallTime> upcoming(const ScheduleStatus& status) {
  std::vector<WallTime> times;
  if (!status.schedule || status.place.next == WallTime::max()) return times;
  const Schedule& schedule = *status.schedule;
  std::size_t most = kUpcoming;
  if (schedule.max_runs != 0) {
    most = std::min<std::size_t>(most, schedule.max_runs - std::min(schedule.max_runs, status.place.fired));
  }
  std::optional<WallTime> next = status.place.next;
  while (next && times.size() < most) {
    times.push_back(*next);
    next = schedule.trigger.next(*next);
  }
  return times;
}

// As to_json(status), with the times to come.
std::string details_json(const ScheduleStatus& status) {
  return json_object(
      [&](JsonWriter& out) {
        write_members(out, status);
        const TimeZone zone = zone_of(status);
        out.array("upcoming", [&] {
          for (const WallTime time : upcoming(status)) out.value(format_timestamp(time, zone));
        });
      },
      JsonEscapes::letters);
}

Coro<Result<int>> show_schedules(const ScheduleLookArguments& look, ScheduleBook& book) {
  int status = kExitFinished;
  for (const std::string& name : look.names) {
    auto found = co_await book.get(name);
    if (!found) {
      status = complain(found.error());
      if (status != kExitUsage) co_return status;
      continue;
    }
    if (look.store.json) {
      fmt::print("{}\n", details_json(*found));
      continue;
    }
    const auto runs = co_await or_return(book.history(name, kRunsShown));
    fmt::print("{}", schedule_details(*found, runs, upcoming(*found), EventLoop::current().clock().wall_now()));
  }
  co_return status;
}

Coro<Result<int>> show_history(const ScheduleLookArguments& look, ScheduleBook& book) {
  const std::string& name = look.names.front();
  const ScheduleStatus found = co_await or_return(book.get(name));
  const auto runs = co_await or_return(book.history(name, look.limit));
  if (look.store.json) {
    for (const ScheduleRun& run : runs)
      fmt::print("{}\n", json_object([&](JsonWriter& json) { write_members(json, run); }));
    co_return kExitFinished;
  }
  if (runs.empty()) {
    fmt::print("No runs yet.\n");
    co_return kExitFinished;
  }
  const TimeZone zone = zone_of(found);
  Table table(run_heading());
  for (const ScheduleRun& run : runs) table.add(run_row(run, zone));
  table.print();
  co_return kExitFinished;
}

// The bytes as they are to standard output; whose they are to standard error, where people read along.
Coro<Result<int>> show_output(const ScheduleLookArguments& look, ScheduleBook& book) {
  const std::string& name = look.names.front();
  const ScheduleStatus found = co_await or_return(book.get(name));
  const std::optional<ScheduleOutput> output = co_await or_return(book.output(name));
  if (look.store.json) {
    fmt::print("{}\n", output ? json_object([&](JsonWriter& json) { write_members(json, *output); }) : "null");
    co_return kExitFinished;
  }
  if (!output) {
    fmt::print(stderr, "No run has printed anything yet.\n");
    co_return kExitFinished;
  }
  const ScheduleOutput& last = *output;
  if (::isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "{}\n", output_heading(last, zone_of(found)));
  }
  co_await or_return(print_now(last.output));
  co_return kExitFinished;
}

Coro<Result<int>> explain_schedules(const ScheduleLookArguments& look, ScheduleBook& book) {
  int status = kExitFinished;
  for (const std::string& name : look.names) {
    auto why = co_await book.explain(name);
    if (!why) {
      status = complain(why.error());
      if (status != kExitUsage) co_return status;
    } else if (look.store.json) {
      fmt::print("{}\n", to_json(*why));
    } else {
      fmt::print("schedule {}: {}\n", one_line(name, kMostOfName), printable(to_sentence(*why)));
    }
  }
  co_return status;
}

}  // namespace

// clang-format off
std::function<int()> add_schedule_list(CLI::App& schedule) {
  LookPointer look = std::make_shared<ScheduleLookArguments>();
  CLI::App* command = schedule.add_subcommand("list", "List schedules: when each comes next, and how its last run ended");
  look->store.add_to(*command);
  command->add_option("--limit", look->limit, "So many at most")->check(whole_number(1, 100'000'000))->type_name("N")->capture_default_str();
  command->add_option("--after", look->after, "Those with greater ids")->check(whole_number(0))->type_name("ID");
  command->footer("Times are in each schedule's zone. Example: argiope schedule list --json | jq -r 'select(.paused).name'");
  return [look] { return look_at_book(look->store, [&](Book& book) { return list_schedules(*look, book.schedules()); }); };
}

std::function<int()> add_schedule_show(CLI::App& schedule) {
  LookPointer look = std::make_shared<ScheduleLookArguments>();
  CLI::App* command = schedule.add_subcommand("show", "Show everything about schedules, with the next times and the last runs");
  look->store.add_to(*command);
  command->add_option("NAME", look->names, "Their names")->required()->type_name("");
  return [look] { return look_at_book(look->store, [&](Book& book) { return show_schedules(*look, book.schedules()); }); };
}

std::function<int()> add_schedule_history(CLI::App& schedule) {
  LookPointer look = std::make_shared<ScheduleLookArguments>();
  look->limit = kRunsKept;
  CLI::App* command = schedule.add_subcommand("history", "Show what happened at a schedule's last planned times, newest first");
  look->store.add_to(*command);
  command->add_option("NAME", look->names, "Its name")->required()->expected(1)->type_name("");
  command->add_option("--limit", look->limit, "So many at most")->check(whole_number(1, kRunsKept))->type_name("N")->capture_default_str();
  command->footer("Of each schedule the last 20 are kept. A job's own story: argiope job show ID\n"
      "ENDED AFTER counts from its firing, waits in its queue and between attempts included.");
  return [look] { return look_at_book(look->store, [&](Book& book) { return show_history(*look, book.schedules()); }); };
}

std::function<int()> add_schedule_output(CLI::App& schedule) {
  LookPointer look = std::make_shared<ScheduleLookArguments>();
  CLI::App* command = schedule.add_subcommand("output", "Print the output of the last run that had any, however long ago");
  look->store.add_to(*command);
  command->add_option("NAME", look->names, "Its name")->required()->expected(1)->type_name("");
  command->footer(
      "Of a command: its standard output, and when it has failed the end of its standard error; of a request: the answer.\n"
      "With --json also which run it was, of which job, and how it ended. Example: argiope schedule output backup");
  return [look] { return look_at_book(look->store, [&](Book& book) { return show_output(*look, book.schedules()); }); };
}

std::function<int()> add_schedule_explain(CLI::App& schedule) {
  LookPointer look = std::make_shared<ScheduleLookArguments>();
  CLI::App* command = schedule.add_subcommand("explain", "Why does a schedule not run now, and when will it?");
  look->store.add_to(*command);
  command->add_option("NAME", look->names, "Their names")->required()->type_name("");
  command->footer("This says what the store shows; argiope schedule run reports a missing function or a full queue.");
  return [look] { return explain_schedules(look->store, look->names); };
}
// clang-format on

int explain_schedules(const JobStoreArguments& arguments, const std::vector<std::string>& names) {
  const ScheduleLookArguments look{.store = arguments, .names = names};
  return look_at_book(arguments, [&](Book& book) { return explain_schedules(look, book.schedules()); });
}

}  // namespace argiope

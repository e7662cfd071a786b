// The commands that change schedules that are there: `argiope schedule pause`, `resume`, `remove` and `run-now`.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/json_writer.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/schedule/schedule_print.hpp"
#include "cli/table.hpp"

namespace argiope {
namespace {

struct ScheduleChange {
  JobStoreArguments store;
  std::vector<std::string> names;
  std::string by;
  std::string from = "where-it-was";
};

// Changes one schedule, and tells what was done: a sentence, or a line of JSON.
using ChangeOne = std::function<Coro<Result<std::string>>(ScheduleBook& book, const std::string& name)>;

Coro<Result<int>> change_each(const ScheduleChange& arguments, ScheduleBook& book, const ChangeOne& change) {
  int status = kExitFinished;
  for (const std::string& name : arguments.names) {
    auto told = co_await change(book, name);
    if (told) {
      fmt::print("{}\n", *told);
    } else if (status = complain(told.error()); status != kExitUsage) {
      co_return status;
    }
  }
  co_return status;
}

std::string when_next(const ScheduleStatus& status) {
  const WallTime next = status.place.next;
  if (next == WallTime::max()) return "no times are left";
  const WallTime now = EventLoop::current().clock().wall_now();
  return fmt::format("next {}, {}", format_timestamp(next, zone_of(status)), distance(next - now));
}

Coro<Result<std::string>> pause_one(const ScheduleChange& arguments, ScheduleBook& book, const std::string& name) {
  const auto status = co_await or_return(book.pause(name, arguments.by));
  if (arguments.store.json) co_return to_json(status);
  co_return "paused " + one_line(name, kMostOfName);
}

Coro<Result<std::string>> resume_one(const ScheduleChange& arguments, ScheduleBook& book, const std::string& name) {
  const ResumeFrom from = arguments.from == "now" ? ResumeFrom::now : ResumeFrom::where_it_was;
  const auto status = co_await or_return(book.resume(name, from));
  if (arguments.store.json) co_return to_json(status);
  co_return fmt::format("resumed {}: {}", one_line(name, kMostOfName), when_next(status));
}

Coro<Result<std::string>> remove_one(const ScheduleChange& arguments, ScheduleBook& book, const std::string& name) {
  const auto id = co_await or_return(book.remove(name));
  if (arguments.store.json) {
    co_return json_object([&](JsonWriter& json) {
      json.member("name", name);
      json.member("id", id);
      json.member("outcome", "removed");
    });
  }
  co_return "removed " + one_line(name, kMostOfName);
}

Coro<Result<std::string>> run_one(const ScheduleChange& arguments, ScheduleBook& book, const std::string& name) {
  const auto job = co_await or_return(book.run_now(name));
  if (arguments.store.json) {
    co_return json_object([&](JsonWriter& json) {
      json.member("name", name);
      json.member("job", job);
    });
  }
  co_return fmt::to_string(job);
}

using Arguments = std::shared_ptr<ScheduleChange>;
using ChangeWith = Coro<Result<std::string>>(const ScheduleChange&, ScheduleBook&, const std::string&);

Arguments add_common(CLI::App& command) {
  Arguments arguments = std::make_shared<ScheduleChange>();
  arguments->store.add_to(command);
  command.add_option("NAME", arguments->names, "Their names")->required()->type_name("");
  return arguments;
}

std::function<int()> changing(Arguments arguments, ChangeWith& change) {
  return [arguments, &change] {
    return run_on_book(arguments->store, StoreAccess::share, IfMissing::complain, [&](Book& book) -> Coro<Result<int>> {
      const ChangeOne one = [&](ScheduleBook& opened, const std::string& name) {
        return change(*arguments, opened, name);
      };
      co_return co_await change_each(*arguments, book.schedules(), one);
    });
  };
}

}  // namespace

// clang-format off
std::function<int()> add_schedule_pause(CLI::App& schedule) {
  CLI::App* command = schedule.add_subcommand("pause", "Pause schedules until they are resumed; active runs go on");
  Arguments arguments = add_common(*command);
  command->add_option("--by", arguments->by, "The name of the one who pauses it, for explain (default: $USER)")->envname("USER")->type_name("WHO");
  command->footer("Example: argiope schedule pause backup --by ann");
  return changing(std::move(arguments), pause_one);
}

std::function<int()> add_schedule_resume(CLI::App& schedule) {
  CLI::App* command = schedule.add_subcommand("resume", "Let schedules that are paused run again");
  Arguments arguments = add_common(*command);
  command->add_option("--from", arguments->from, "where-it-was: the times of the pause are due, by the schedule's own policies;\n"
                                                 "now: they are missed")
      ->check(CLI::IsMember({"now", "where-it-was"}))->capture_default_str()->type_name("WHERE");
  return changing(std::move(arguments), resume_one);
}

std::function<int()> add_schedule_remove(CLI::App& schedule) {
  CLI::App* command = schedule.add_subcommand("remove", "Forget schedules and their history; jobs they have put stay");
  return changing(add_common(*command), remove_one);
}

std::function<int()> add_schedule_run_now(CLI::App& schedule) {
  CLI::App* command = schedule.add_subcommand("run-now", "Put a run of schedules at once, whatever their times and policies say");
  Arguments arguments = add_common(*command);
  command->footer("Prints the id of each run's job. Their planned times stay as they are.");
  return changing(std::move(arguments), run_one);
}
// clang-format on

}  // namespace argiope

// The commands that only look: `argiope job list`, `show`, `stats` and `explain`.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "argiope/async/coro.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/job/job_command.hpp"
#include "cli/job/job_print.hpp"
#include "cli/number_option.hpp"
#include "cli/standard_output.hpp"
#include "cli/table.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

const std::vector<std::string> kStates = {"delayed", "ready", "running", "done", "cancelled", "buried"};

struct LookArguments {
  JobStoreArguments store;
  std::vector<std::string> jobs;
  std::string queue;
  std::string state;
  std::string key;
  bool by_key = false;
  bool payload = false, result = false;  // raw
  std::uint64_t after = 0;
  std::size_t limit = 100;
};

Result<int> print_jobs(const LookArguments& look, const std::vector<JobRecord>& found) {
  if (look.store.json) {
    for (const JobRecord& record : found) fmt::print("{}\n", to_json(record));
    return kExitFinished;
  }
  if (found.empty()) {
    fmt::print("No such jobs.\n");
    return kExitFinished;
  }
  Table table(job_heading());
  for (const JobRecord& record : found) table.add(job_row(record));
  table.print();
  if (found.size() == look.limit) {
    fmt::print("There may be more: --limit N shows N, --after {} goes on from here.\n", found.back().id);
  }
  return kExitFinished;
}

Coro<Result<int>> list_jobs(const LookArguments& look, Book& book) {
  JobFilter filter{.queue = look.queue, .after = look.after, .limit = look.limit};
  if (!look.queue.empty()) {
    if (auto known = co_await book.queue(look.queue); !known) co_return std::unexpected(std::move(known.error()));
  }
  if (const auto state = std::ranges::find(kStates, look.state); state != kStates.end()) {
    filter.state = static_cast<JobState>(state - kStates.begin());
  }
  if (look.by_key) filter.key = look.key;
  auto found = co_await book.list(std::move(filter));
  if (!found) co_return std::unexpected(std::move(found.error()));
  co_return print_jobs(look, *found);
}

Coro<Result<int>> show_jobs(const LookArguments& look, Book& book) {
  int status = kExitFinished;
  for (const std::string& name : look.jobs) {
    auto id = co_await book.find(name);
    auto record = id ? co_await book.get(*id) : Result<JobRecord>(std::unexpected(std::move(id.error())));
    if (!record) {
      status = complain(record.error());
      continue;
    }
    if (look.payload || look.result) {
      co_await or_return(print_now(look.payload ? record->payload : record->result));
      continue;
    }
    auto history = co_await book.history(record->id);
    if (!history) co_return std::unexpected(std::move(history.error()));
    if (look.store.json) {
      fmt::print("{}\n", job_details_json(*record, *history));
    } else {
      fmt::print("{}", job_details(*record, *history));
    }
  }
  co_return status;
}

std::string stats_json(const std::vector<std::pair<std::string, StateCounts>>& counted, const std::string& durability) {
  return json_object([&](JsonWriter& json) {
    if (!durability.empty()) json.member("durability", durability);
    json.object("queues", [&] {
      for (const auto& [name, counts] : counted) {
        json.object(name, [&, &of = counts] {
          json.member("ready", of.ready);
          json.member("delayed", of.delayed);
          json.member("running", of.running);
          json.member("done", of.done);
          json.member("buried", of.buried);
          json.member("cancelled", of.cancelled);
        });
      }
    });
  });
}

Coro<Result<int>> print_stats(const LookArguments& look, Book& book) {
  auto counted = co_await book.counts(look.queue);
  if (!counted) co_return std::unexpected(std::move(counted.error()));
  if (look.store.json) {
    fmt::print("{}\n", stats_json(*counted, book.durability()));
    co_return kExitFinished;
  }
  if (counted->empty()) {
    fmt::print("No queues yet.\n");
    co_return kExitFinished;
  }
  Table table({"QUEUE", "READY", "DELAYED", "RUNNING", "DONE", "BURIED", "CANCELLED"});
  for (const auto& [name, counts] : *counted) {
    std::vector<std::string> row{one_line(name, 60)};
    for (const std::uint64_t count :
         {counts.ready, counts.delayed, counts.running, counts.done, counts.buried, counts.cancelled}) {
      row.push_back(std::to_string(count));
    }
    table.add(std::move(row));
  }
  table.print();
  if (const std::string durability = book.durability(); !durability.empty()) {
    fmt::print("Durability: {}\n", printable(durability));
  }
  co_return kExitFinished;
}

Coro<Result<int>> explain_jobs(const std::vector<std::string>& jobs, bool json, Book& book) {
  int status = kExitFinished;
  for (const std::string& name : jobs) {
    auto id = co_await book.find(name);
    auto why = id ? co_await book.explain(*id) : Result<JobExplanation>(std::unexpected(std::move(id.error())));
    if (!why) {
      status = complain(why.error());
      continue;
    }
    if (json) {
      fmt::print("{}\n", to_json(*why));
    } else {
      fmt::print("job {} ({}): {}\n", why->id, to_string(why->state), printable(to_sentence(*why)));
    }
  }
  co_return status;
}

using Look = std::shared_ptr<LookArguments>;

}  // namespace

// clang-format off
std::function<int()> add_job_list(CLI::App& job) {
  Look look = std::make_shared<LookArguments>();
  CLI::App* command = job.add_subcommand("list", "List jobs, oldest first");
  look->store.add_to(*command);
  CLI::Option* const queue = command->add_option("QUEUE", look->queue, "Of this queue alone")->type_name("");
  command->add_option("--queue", look->queue, "The same")->excludes(queue)->type_name("NAME");
  command->add_option("--state", look->state, "In this state alone")->check(CLI::IsMember(kStates))->type_name("STATE");
  command->add_option_function<std::string>("--key", [look](const std::string& key) {
    look->key = key;
    look->by_key = true;
  }, "Of this key alone")->type_name("KEY");
  command->add_option("--limit", look->limit, "At most N")->check(whole_number(1, 100'000'000))->type_name("N")->capture_default_str();
  command->add_option("--after", look->after, "Those with greater ids")->check(whole_number(0))->type_name("ID");
  command->footer("Example: argiope job list mail --state buried --json | jq -r .error | sort | uniq -c");
  return [look] { return look_at_book(look->store, [&](Book& book) { return list_jobs(*look, book); }); };
}

std::function<int()> add_job_show(CLI::App& job) {
  Look look = std::make_shared<LookArguments>();
  CLI::App* command = job.add_subcommand("show", "Show everything about jobs, failed attempts included");
  look->store.add_to(*command);
  command->add_option("JOB", look->jobs, "Ids or names")->required()->type_name("");
  command->add_flag("--payload", look->payload, "Of one job: its payload and nothing else, byte by byte");
  command->add_flag("--result", look->result, "Of one job: its result, what its command has printed")->excludes("--payload");
  command->footer("Example: argiope job show 17 --result > picture.png");
  return [look] {
    if ((look->payload || look->result) && (look->jobs.size() != 1 || look->store.json)) {
      return complain("--payload and --result are of one job, and without --json", kExitUsage);
    }
    return look_at_book(look->store, [&](Book& book) { return show_jobs(*look, book); });
  };
}

std::function<int()> add_job_stats(CLI::App& job) {
  Look look = std::make_shared<LookArguments>();
  CLI::App* command = job.add_subcommand("stats", "How many jobs of each queue are in which state");
  look->store.add_to(*command);
  command->add_option("--queue", look->queue, "Of this queue alone")->type_name("NAME");
  command->footer(
      "\"done\" and \"cancelled\" count those that are still kept: a day and a week, unless the queue says otherwise\n"
      "(argiope job queue NAME --keep-done SPAN). \"delayed\" counts those that wait for other jobs, too; delayed jobs whose\n"
      "time has come count as ready.");
  return [look] { return look_at_book(look->store, [&](Book& book) { return print_stats(*look, book); }); };
}

std::function<int()> add_job_explain(CLI::App& job) {
  Look look = std::make_shared<LookArguments>();
  CLI::App* command = job.add_subcommand("explain", "Why does a job not run now, and when will it?");
  look->store.add_to(*command);
  command->add_option("JOB", look->jobs, "Ids or names")->required()->type_name("");
  command->footer(
      "While a worker runs elsewhere, this says what the store shows: the job is not due, waits for others, its queue is\n"
      "paused or at its concurrency limit, or other jobs are ahead. Only the worker knows rates, rests, and which queues\n"
      "it serves; where they matter, this says so.");
  return [look] { return explain_job(look->store, look->jobs); };
}
// clang-format on

int explain_job(const JobStoreArguments& arguments, const std::vector<std::string>& jobs) {
  return look_at_book(arguments, [&](Book& book) { return explain_jobs(jobs, arguments.json, book); });
}

}  // namespace argiope

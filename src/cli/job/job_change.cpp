// The commands that change jobs that are there: `argiope job cancel`, `kick`, `retry` and `delete`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "argiope/async/coro.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "cli/job/job_command.hpp"
#include "cli/number_option.hpp"

namespace argiope {
namespace {

void print_outcome(JobId id, std::string_view outcome) {
  fmt::print("{}\n", json_object([&](JsonWriter& json) {
               json.member("id", id);
               json.member("outcome", outcome);
             }));
}

struct ChangeArguments {
  JobStoreArguments store;
  std::vector<std::string> jobs;  // or, with `all`, one queue
  bool all = false;
  std::string state;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::string why;
};

// One of the four, as a word that stands in messages and as what it does.
struct Verb {
  std::string_view name;
  std::string_view past;
  ChangeKind kind;
  std::vector<JobState> of_all;  // whom --all means
  std::string_view whom;         // in words
};

const Verb kCancel{
    "cancel", "cancelled", ChangeKind::cancel, {JobState::ready, JobState::delayed}, "waits, runs or is buried"};
const Verb kKick{"kick", "kicked", ChangeKind::kick, {JobState::buried}, "is buried or delayed"};
const Verb kDelete{"delete",
                   "deleted",
                   ChangeKind::erase,
                   {JobState::ready, JobState::delayed, JobState::done, JobState::cancelled, JobState::buried},
                   "does not run"};

class Changer {
 public:
  Changer(const ChangeArguments& arguments, const Verb& verb, Book& book)
      : arguments_(arguments), verb_(verb), book_(book) {}

  Coro<Result<int>> run() {
    if (auto done = arguments_.all ? co_await change_all() : co_await change_named(); !done) {
      co_return std::unexpected(std::move(done.error()));
    }
    if (arguments_.all && !arguments_.store.json) {
      fmt::print("{} {}\n", verb_.past, counted(changed_, "job"));
    }
    co_return status_;
  }

 private:
  Coro<Result<void>> change_named() {
    for (const std::string& name : arguments_.jobs) {
      auto id = co_await book_.find(name);
      if (!id) {
        status_ = complain(id.error());
        continue;
      }
      std::vector<JobId> one{*id};
      if (auto done = co_await change(std::move(one), true); !done) co_return done;
    }
    co_return Result<void>{};
  }

  Coro<Result<void>> change_all() {
    const std::string queue = arguments_.jobs.front();
    if (auto known = co_await book_.queue(queue); !known) co_return std::unexpected(std::move(known.error()));
    for (const JobState state : verb_.of_all) {
      if (!arguments_.state.empty() && to_string(state) != arguments_.state) continue;
      JobFilter filter{.queue = queue, .state = state, .payloads = false};
      for (bool more = true; more && changed_ < arguments_.limit;) {
        filter.limit = std::min(kListPage, arguments_.limit - changed_);
        auto page = co_await book_.list(filter);
        if (!page) co_return std::unexpected(std::move(page.error()));
        more = page->size() == filter.limit;
        if (page->empty()) break;
        filter.after = page->back().id;
        std::vector<JobId> ids;
        for (const JobRecord& record : *page) ids.push_back(record.id);
        if (auto done = co_await change(std::move(ids), false); !done) co_return done;
      }
    }
    co_return Result<void>{};
  }

  // `named`: by the user, who is to hear of those that cannot be changed.
  Coro<Result<void>> change(std::vector<JobId> ids, bool named) {
    std::vector<Change> changes;
    for (const JobId id : ids) changes.push_back({.id = id, .kind = verb_.kind, .error = arguments_.why});
    auto replies = co_await book_.change(std::move(changes));
    if (!replies) co_return std::unexpected(std::move(replies.error()));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      using enum ChangeOutcome;
      const auto outcome = (*replies)[i].outcome;
      if (outcome == changed) {
        ++changed_;
        if (arguments_.store.json) {
          print_outcome(ids[i], verb_.past);
        } else if (named) {
          fmt::print("{} {}\n", verb_.past, ids[i]);
        }
      } else if (outcome == asked) {
        ++changed_;
        if (arguments_.store.json) {
          print_outcome(ids[i], "asked");
        } else if (named) {
          fmt::print("asked {} to stop: it runs\n", ids[i]);
        }
      } else if (named) {
        status_ = complain(outcome == not_found ? fmt::format("job {}: there is no such job", ids[i])
                           : outcome == running
                               ? fmt::format("job {}: it runs; wait until it has ended", ids[i])
                               : fmt::format("job {}: cannot be {}; only what {} can", ids[i], verb_.past, verb_.whom),
                           kExitUsage);
      }
    }
    co_return Result<void>{};
  }

  const ChangeArguments& arguments_;
  const Verb& verb_;
  Book& book_;
  std::size_t changed_ = 0;
  int status_ = kExitFinished;
};

std::function<int()> add_change(CLI::App& job, const Verb& verb, const std::string& description, const char* examples) {
  auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* command = job.add_subcommand(std::string(verb.name), description);
  arguments->store.add_to(*command);
  command->add_option("JOB", arguments->jobs, "Ids or names; with --all, a queue")->required()->type_name("");
  command->add_flag("--all", arguments->all, "All jobs of a queue");
  std::vector<std::string> states;
  for (const JobState state : verb.of_all) states.emplace_back(to_string(state));
  command->add_option("--state", arguments->state, "With --all: those in this state alone")
      ->check(CLI::IsMember(states))
      ->type_name("STATE")
      ->needs("--all");
  command->add_option("--limit", arguments->limit, "With --all: at most N")
      ->check(whole_number(0))
      ->type_name("N")
      ->needs("--all");
  if (verb.kind == ChangeKind::cancel)
    command->add_option("--why", arguments->why, "The reason, kept with the job")->type_name("TEXT");
  command->footer(examples);
  return [arguments, &verb] {
    if (arguments->all && arguments->jobs.size() != 1) return complain("--all takes one queue", kExitUsage);
    return run_on_book(arguments->store, StoreAccess::share, IfMissing::complain, [&](Book& book) -> Coro<Result<int>> {
      Changer changer(*arguments, verb, book);
      co_return co_await changer.run();
    });
  };
}

// --- retry ---------------------------------------------------------------------------------------------------------

// The id that will run, or the error to say.
Coro<Result<JobId>> retry_one(Book& book, const JobRecord& record) {
  if (record.state == JobState::running) {
    co_return fail(Errc::refused, fmt::format("job {}: it runs; wait until it has ended", record.id));
  }
  if (record.pending > 0) {
    co_return fail(Errc::refused,
                   fmt::format("job {}: it waits for other jobs; argiope job explain {}", record.id, record.id));
  }
  if (record.state == JobState::ready) co_return record.id;
  if (record.state == JobState::buried || record.state == JobState::delayed) {
    const auto replies = co_await or_return(book.change({{.id = record.id, .kind = ChangeKind::kick}}));
    if (replies.front().outcome == ChangeOutcome::changed) co_return record.id;
    co_return fail(Errc::refused, fmt::format("job {}: another process has changed it; look again", record.id));
  }
  // It has ended, and that stays true: a copy runs.
  NewJob copy;
  copy.queue = record.queue;
  copy.key = record.key;
  copy.priority = record.priority;
  copy.function = record.function;
  copy.payload = record.payload;
  copy.max_attempts = record.max_attempts;
  copy.lease_time = record.lease_time;
  const PutReply put = co_await or_return(book.put(std::move(copy)));
  co_return put.id;
}

Coro<Result<int>> retry(const ChangeArguments& arguments, Book& book) {
  int status = kExitFinished;
  for (const std::string& name : arguments.jobs) {
    auto id = co_await book.find(name);
    auto record = id ? co_await book.get(*id) : Result<JobRecord>(std::unexpected(std::move(id.error())));
    auto again = record ? co_await retry_one(book, *record) : Result<JobId>(std::unexpected(std::move(record.error())));
    if (!again) {
      status = complain(again.error());
      if (status != kExitUsage) co_return status;
    } else if (arguments.store.json) {
      fmt::print("{}\n", json_object([&](JsonWriter& json) {
                   json.member("id", *again);
                   json.member("of", record->id);
                 }));
    } else {
      fmt::print("{}\n", *again);
    }
  }
  co_return status;
}

}  // namespace

std::function<int()> add_job_cancel(CLI::App& job) {
  return add_change(
      job, kCancel,
      "Cancel jobs that wait or are buried, and those that wait for them. A job that runs is asked to stop",
      "Examples: argiope job cancel 17 order-18\n"
      "          argiope job cancel mail --all --state delayed --limit 100");
}

std::function<int()> add_job_kick(CLI::App& job) {
  return add_change(job, kKick, "Make buried or delayed jobs ready now; buried ones get all their attempts again",
                    "Examples: argiope job kick 17\n          argiope job kick mail --all --limit 10");
}

std::function<int()> add_job_delete(CLI::App& job) {
  return add_change(job, kDelete, "Forget jobs that do not run",
                    "Examples: argiope job delete 17\n          argiope job delete mail --all --state done");
}

std::function<int()> add_job_retry(CLI::App& job) {
  auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* command =
      job.add_subcommand("retry", "Run jobs again now: buried and delayed ones, and copies of those that have ended");
  arguments->store.add_to(*command);
  command->add_option("JOB", arguments->jobs, "Ids or names")->required()->type_name("");
  command->footer("Prints the id that will run: the job's own, or that of its copy. Example: argiope job retry 17");
  return [arguments] {
    return run_on_book(arguments->store, StoreAccess::share, IfMissing::complain,
                       [&](Book& book) { return retry(*arguments, book); });
  };
}

}  // namespace argiope

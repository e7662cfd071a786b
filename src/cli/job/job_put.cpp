// `argiope job put`: one job from options, or one job a line from a file or a pipe.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "cli/end_signals.hpp"
#include "cli/error_advice.hpp"
#include "cli/job/job_command.hpp"
#include "cli/job/job_feed.hpp"
#include "cli/kept_file.hpp"
#include "cli/line_input.hpp"
#include "cli/number_option.hpp"
#include "cli/span_option.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

struct PutArguments {
  JobStoreArguments store;
  std::string queue;
  std::string payload;
  std::string file;
  std::string id, key, unique, function, due_at;
  std::string unique_policy = "keep";
  std::string if_failed = "cancel";
  bool run_again = false;
  std::int64_t priority = 0;
  Duration delay{};
  std::uint64_t max_attempts = 0;
  std::vector<std::string> waits_for;
  std::string batch;
};

// clang-format off
void add_options(CLI::App& command, PutArguments& put) {
  put.store.add_to(command);
  command.add_option("QUEUE", put.queue, "Its queue; - reads jobs from standard input, one JSON object a line")->type_name("");
  command.add_option("PAYLOAD", put.payload, "The worker gets it on its standard input")->type_name("");
  command.add_option("--file", put.file, "Read jobs from FILE instead, one JSON object a line")->type_name("FILE");
  const char* const group = "The job";
  command.add_option("--priority", put.priority, "Higher runs first (default: 0)")
      ->check(whole_number(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()))->group(group)->type_name("N");
  add_span(command, "--delay", put.delay, "Not before this time has passed", {.most = std::chrono::days{100 * 366}})->group(group);
  command.add_option("--due-at", put.due_at, "Not before this time, as 2026-01-31T12:00:05Z or milliseconds since 1970")
      ->group(group)->type_name("TIME")->excludes("--delay");
  command.add_option("--key", put.key, "Its target: limits of a queue can hold for each key")->group(group);
  command.add_option("--id", put.id, "Your own number or name for it; putting it again adds nothing")->group(group);
  command.add_option("--unique", put.unique, "At most one job of this name waits in the queue")->group(group)->type_name("NAME");
  command.add_option("--unique-policy", put.unique_policy, "If one does: keep it, replace it, or merge (the higher priority, the earlier time)")
      ->check(CLI::IsMember({"keep", "replace", "merge"}))->group(group);
  command.add_flag("--run-again", put.run_again, "If one of that name runs: run once more afterwards")->group(group);
  command.add_option("--function", put.function, "The function that a worker in a program calls")->group(group);
  command.add_option("--max-attempts", put.max_attempts, "Runs before it is buried (default: the queue's)")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()))->group(group)->type_name("N");
  command.add_option("--waits-for", put.waits_for, "Not before this job has ended (repeatable)")
      ->group(group)->type_name("ID")->allow_extra_args(false);
  command.add_option("--if-failed", put.if_failed, "If that one is buried or cancelled: run anyway, or be cancelled too")
      ->check(CLI::IsMember({"run", "cancel"}))->group(group);
  command.add_option("--batch", put.batch, "Join the batch that this job completes")->group(group)->type_name("ID");
  command.footer(
      "Prints the job's id (or the name you gave it) once it is committed. Examples:\n"
      "  argiope job put mail 'to: ann' --key example.org --priority 5 --store sqlite:jobs.db\n"
      "  argiope job put report --due-at 2026-12-24T06:00:00Z --id christmas-report\n"
      "  echo '{\"queue\":\"mail\",\"payload\":{\"to\":\"ann\"},\"delay_ms\":1500}' | argiope job put -\n"
      "Members of such an object: queue, id, key, unique, unique_policy, run_again, priority, due_at, delay_ms,\n"
      "function, payload (or payload_base64), max_attempts, lease_time_ms, waits_for, if_failed, batch; ids there may be names.");
}
// clang-format on

Result<NewJob> job_of(const PutArguments& put, WallTime now) {
  NewJob job;
  const auto id = parse_job_id(put.id);
  if (!id) return std::unexpected(id.error());
  if (*id) {
    job.id = **id;
  } else {
    job.name = put.id;
    for (const char c : job.name) {
      if (static_cast<unsigned char>(c) < 0x20) {
        return fail(Errc::invalid_input, "--id: no control characters in the name of a job");
      }
    }
  }
  job.queue = put.queue;
  job.key = put.key;
  job.unique = put.unique;
  job.unique_policy = put.unique_policy == "replace" ? UniquePolicy::replace
                      : put.unique_policy == "merge" ? UniquePolicy::merge
                                                     : UniquePolicy::keep;
  job.run_again = put.run_again;
  job.priority = static_cast<std::int32_t>(put.priority);
  if (!put.due_at.empty()) {
    const auto due = parse_due("--due-at", put.due_at);
    if (!due) return std::unexpected(due.error());
    job.due_at = *due;
  } else if (put.delay > Duration{}) {
    job.due_at = WallTime{saturating_add(TimePoint{now.time_since_epoch()}, put.delay).time_since_epoch()};
  }
  job.function = put.function;
  job.payload = put.payload;
  job.max_attempts = static_cast<std::uint32_t>(put.max_attempts);
  job.if_failed = put.if_failed == "run" ? DependencyPolicy::run : DependencyPolicy::cancel;
  return job;
}

// Empty: it has a number.
std::string name_of(const PutArguments& put) {
  const auto id = parse_job_id(put.id);
  return id && !*id ? put.id : std::string();
}

Coro<Result<PutReply>> put_job(const PutArguments& put, Book& book) {
  auto job = job_of(put, EventLoop::current().clock().wall_now());
  if (!job) co_return std::unexpected(std::move(job.error()));
  for (const std::string& name : put.waits_for) {
    // One that has ended need not be known any more.
    auto id = co_await or_return(parse_job_id(name));
    if (!id) id = co_await or_return(book.find(name));
    job->waits_for.push_back(*id);
  }
  if (!put.batch.empty()) {
    auto id = co_await book.find(put.batch);
    if (!id) co_return std::unexpected(std::move(id.error()));
    job->batch = *id;
  }
  const std::string queue = job->queue;
  Result<PutReply> reply = co_await book.put(std::move(*job));
  if (!reply) co_return std::unexpected(with_queue_option(reply.error(), queue));
  co_return reply;
}

Coro<Result<int>> put_one(const PutArguments& put, Book& book) {
  const PutReply reply = co_await or_return(put_job(put, book));
  const std::string name = name_of(put);
  if (put.store.json) {
    fmt::print("{}", put_reply_json(reply, name));
  } else {
    fmt::print("{}\n", name.empty() ? std::to_string(reply.id) : printable(name));
  }
  co_return kExitFinished;
}

// `work` of the feed, which ends early by a signal; `interrupted` says which was the first.
template <class Status>
Coro<Result<Status>> heeding_signals(JobFeed& feed, int& interrupted, Coro<Result<Status>> work) {
  EventLoop& loop = EventLoop::current();
  EndSignals signals;
  signals.listen(loop, [&feed] { feed.stop(); });
  auto status = co_await std::move(work);
  signals.forget(loop);
  if (signals.came() && interrupted == kExitInterrupted) interrupted = signals.exit_status();
  if (status && *status == kExitInterrupted) co_return Status(interrupted);
  co_return status;
}

int put_lines(const PutArguments& put, InputFile file) {
  JobFeed feed(std::move(file), put.file.empty() ? "standard input" : put.file, put.store.json);
  int interrupted = kExitInterrupted;
  std::optional<int> ended;  // without a line that a store would be made for
  const auto good = rehearse(put.store, [&](Book& empty) -> Coro<Result<int>> {
    if (auto place = check_kept_database("--store", put.store.file()); !place)
      co_return std::unexpected(std::move(place.error()));
    ended = co_await or_return(heeding_signals(feed, interrupted, feed.find_good(empty)));
    co_return kExitFinished;
  });
  if (!good) return complain(good.error());
  if (ended) return *ended;
  return run_on_book(put.store, StoreAccess::share, IfMissing::make,
                     [&](Book& book) { return heeding_signals(feed, interrupted, feed.run(book)); });
}

int run_put(const PutArguments& put) {
  const bool from_lines = put.queue == "-" || !put.file.empty();
  if (!from_lines && put.queue.empty()) {
    return complain("put what? Give a QUEUE and its PAYLOAD, or - to read jobs from standard input", kExitUsage);
  }
  if (!put.file.empty() && !put.queue.empty() && put.queue != "-") {
    return complain(
        fmt::format("--file {}: its lines name their queues; {} is one too many", put.file, in_quotes(put.queue)),
        kExitUsage);
  }
  auto file = open_lines("--file", put.file);
  if (!file) return complain(file.error().message, kExitUsage);
  if (from_lines) return put_lines(put, std::move(*file));
  const auto good = rehearse(put.store, [&](Book& book) -> Coro<Result<int>> {
    co_await or_return(put_job(put, book));
    co_return kExitFinished;
  });
  if (!good) return complain(good.error());
  return run_on_book(put.store, StoreAccess::share, IfMissing::make, [&](Book& book) { return put_one(put, book); });
}

}  // namespace

std::function<int()> add_job_put(CLI::App& job) {
  auto put = std::make_shared<PutArguments>();
  CLI::App* command = job.add_subcommand("put", "Put a job into a queue, or many from a stream of JSON lines");
  add_options(*command, *put);
  return [put] { return run_put(*put); };
}

}  // namespace argiope

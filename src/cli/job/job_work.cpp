// `argiope job work`: the owner of a store, and the worker that runs a command for each of its jobs.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/calls/command.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/engine/worker.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/human.hpp"
#include "cli/job/job_command.hpp"
#include "cli/job/job_progress.hpp"
#include "cli/owner.hpp"
#include "cli/span_option.hpp"

namespace argiope {
namespace {

// Between two looks whether there is anything left.
constexpr Duration kLookInterval = std::chrono::milliseconds{100};
constexpr std::size_t kMostDelayedLookedAt = 10'000;

struct WorkArguments {
  JobStoreArguments store;
  std::vector<std::string> queues;
  std::vector<std::string> command;
  std::size_t concurrency = 1;
  bool until_empty = false;
  Duration linger = std::chrono::seconds{60};
  std::optional<Duration> timeout, lease;
  std::string name;
  bool create = false;
  bool fail_on_buried = false;
  bool quiet = false;
};

// clang-format off
void add_options(CLI::App& command, WorkArguments& work) {
  work.store.add_to(command);
  command.add_option("QUEUE", work.queues, "Whose jobs to run; queues share by their weights")->required()->type_name("");
  command.add_option("-c,--concurrency", work.concurrency, "Jobs that run at once")
      ->check(CLI::Range(1, 10'000))->type_name("N")->capture_default_str();
  using std::chrono::milliseconds;
  add_span(command, "--timeout", work.timeout, "Stop a job that takes longer; it has failed (default: never)", {milliseconds{1}});
  add_span(command, "--lease", work.lease, "Set the queues' lease: a job whose worker is silent for this long is run again",
           {milliseconds{100}, std::chrono::days{12}});
  command.add_option("--name", work.name, "The worker's name in the store (default: host:process)")->type_name("TEXT");
  command.add_flag("--until-empty", work.until_empty, "End when nothing is ready or running, and no retry is due soon");
  add_span_with_default(command, "--linger", work.linger, "With --until-empty: wait for retries that are due within this time");
  command.add_flag("--create", work.create, "Make the queue even if another has nearly the same name");
  command.add_flag("--fail-on-buried", work.fail_on_buried, "Exit with 1 when a job was buried");
  command.add_flag("--quiet", work.quiet, "No progress and no summary; errors only");
  command.footer(
      "The command after -- is run for each job: the payload on its standard input; ARGIOPE_JOB_ID, _NAME, _QUEUE, _KEY,\n"
      "_ATTEMPT and _TOKEN in its environment. What it prints is the job's result. Exit status 0: done; 65: buried at once;\n"
      "anything else: tried again later, until the queue's attempts are used up, with the last line of standard error\n"
      "as the error. A job may run twice when its worker is killed: make that harmless.\n"
      "One process owns a store at a time; other commands may put, look and change meanwhile.\n"
      "--until-empty does not wait for jobs that were put with a later time, nor for those of paused queues.\n"
      "Ctrl-C lets running jobs end (10 s at most), twice stops them; stopped jobs are run again later.\n"
      "Examples:\n"
      "  argiope job work mail --store sqlite:jobs.db --concurrency 8 -- ./send-mail\n"
      "  argiope job work mail report --until-empty --fail-on-buried -- sh -c 'cat > \"out/$ARGIOPE_JOB_ID\"'");
}
// clang-format on

class WorkCommand {
 public:
  explicit WorkCommand(const WorkArguments& arguments) : arguments_(arguments) {}

  int run() {
    const auto where = arguments_.store.where();
    if (!where) return complain(where.error());
    if (auto good = check_command(arguments_.command); !good) return complain(good.error());
    AsioBackend backend(clock_);
    EventLoop loop(backend);
    const TimePoint start = clock_.now();
    const int status =
        run_as_owner(loop, *where, "one worker at a time owns a store. Stop that one, or give it more --concurrency",
                     false, [this](Engine& engine) { return work(engine); });
    seconds_ = to_seconds(clock_.now() - start);
    print_summary(status == kExitFinished);
    if (status != kExitFinished) return status;
    if (signals_ > 0) return kExitInterrupted;
    return arguments_.fail_on_buried && counts_.buried > 0 ? kExitBroken : kExitFinished;
  }

 private:
  Coro<Result<void>> work(Engine& engine) {
    for (const std::string& queue : arguments_.queues) {
      if (auto set = co_await prepare(engine, queue); !set) co_return set;
    }
    const auto listener = engine.add_listener(kAllJobEvents, [this](const JobEvent& event) { note(event); });
    Worker worker(engine, {.name = arguments_.name.empty() ? default_worker_name() : arguments_.name,
                           .queues = arguments_.queues,
                           .concurrency = arguments_.concurrency,
                           .drain_limit = kDrain});
    worker.add_default(as_command(
        {.args = arguments_.command, .timeout = arguments_.timeout.value_or(Duration::max()), .grace = kGrace}));
    EventLoop& loop = EventLoop::current();
    Task<Result<void>> running = loop.create_task(worker.run(), "worker");
    const auto on_signal = [&] { interrupt(worker, running); };
    for (const int number : {SIGINT, SIGTERM}) loop.add_signal_handler(number, on_signal);
    Task<void> progress, watch;
    if (!arguments_.quiet) progress = loop.create_task(progress_.run(engine, worker, counts_), "progress");
    if (arguments_.until_empty) watch = loop.create_task(stop_when_empty(engine, worker), "until empty");
    Result<void> result;
    try {
      result = co_await running;
    } catch (const CancelledError&) {  // by the second signal
    }
    if (progress) progress.cancel();
    if (watch) watch.cancel();
    for (const int number : {SIGINT, SIGTERM}) loop.remove_signal_handler(number);
    progress_.clear();
    engine.remove_listener(listener);
    if (result && failure_) co_return std::unexpected(*failure_);
    co_return result;
  }

  // The queue is there, and has the lease that was asked for.
  Coro<Result<void>> prepare(Engine& engine, const std::string& queue) {
    auto config = engine.config(queue);
    if (!config && config.error().code != Errc::not_found) co_return std::unexpected(std::move(config.error()));
    if (!config && !arguments_.create) {
      auto may = may_make_queue(queue, engine.queue_names());
      if (!may) co_return std::unexpected(std::move(may.error()));
      if (*may && !arguments_.quiet)
        spdlog::info("queue {} is new: nothing has been put into it yet", in_quotes(queue));
    }
    QueueConfig wanted = config ? *config : default_queue_policy();
    const Duration lease = arguments_.lease.value_or(wanted.lease_time);
    if (config && wanted.lease_time == lease) co_return Result<void>{};
    wanted.lease_time = lease;
    co_return co_await engine.book().configure(queue, std::move(wanted));
  }

  void note(const JobEvent& event) {
    switch (event.kind) {
      case JobEventKind::done: ++counts_.done; break;
      case JobEventKind::retrying: ++counts_.retried; break;
      case JobEventKind::buried: ++counts_.buried; break;
      case JobEventKind::released:
      case JobEventKind::expired: ++counts_.released; break;
      case JobEventKind::cancelled: ++counts_.cancelled; break;
      default: return;
    }
    if (event.kind == JobEventKind::retrying || event.kind == JobEventKind::buried) {
      if (!arguments_.quiet) {
        progress_.clear();
        spdlog::warn("job {}: attempt {} failed{}: {}", event.id, event.attempt,
                     event.kind == JobEventKind::buried ? " and the job is buried" : "", event.text);
      }
    }
    ended_.set();
  }

  void interrupt(Worker& worker, Task<Result<void>>& running) {
    progress_.clear();
    if (signals_++ == 0) {
      if (!arguments_.quiet) {
        std::fputs("Stopping: letting what runs end (at most 10 s; again: at once).\n", stderr);
      }
      return worker.stop();
    }
    if (!arguments_.quiet) std::fputs("Stopping at once.\n", stderr);
    running.cancel();
    // Again, for the first may have met the worker before it began to wait for its jobs. Commands are killed after they
    // have been told why, so that it does not count as a failure of theirs.
    EventLoop& loop = EventLoop::current();
    loop.call_later(kTellAgain, [task = running]() mutable {
      if (!task.done()) task.cancel();
    });
    loop.call_later(2 * kTellAgain, kill_commands);
  }

  // --- until empty

  Coro<void> stop_when_empty(Engine& engine, Worker& worker) {
    for (;;) {
      if (worker.counts().running == 0) {
        auto left = co_await something_left(engine.store());
        if (!left) failure_ = left.error();
        if (!left || (!*left && worker.counts().running == 0)) co_return worker.stop();
      }
      ended_.clear();
      try {
        co_await Timeout(saturating_add(EventLoop::current().time(), kLookInterval)).run(wait_for_end());
      } catch (const TimeoutError&) {
      }
      if (engine.failure()) co_return;
    }
  }
  Coro<void> wait_for_end() { co_await ended_.wait(); }

  // The store knows what other processes have put, too.
  Coro<Result<bool>> something_left(Store& store) {
    const auto queues = co_await store.queues();
    if (!queues) co_return std::unexpected(queues.error());
    const auto counted = co_await store.counts();
    if (!counted) co_return std::unexpected(counted.error());
    due_later_ = 0;
    next_due_ = WallTime::max();
    for (const StoredQueue& queue : *queues) {
      if (std::ranges::find(arguments_.queues, queue.name) == arguments_.queues.end()) continue;
      const auto counts = std::ranges::find(*counted, queue.id, &QueueCounts::queue);
      if (counts == counted->end()) continue;
      if (counts->counts.running > 0) co_return true;
      const QueueLimits& limits = queue.config.limits;
      if (limits.paused || limits.rate == 0) continue;
      if (counts->counts.ready > 0) co_return true;
      if (counts->counts.delayed == 0) continue;
      auto soon = co_await due_soon(store, queue.id);
      if (!soon) co_return std::unexpected(std::move(soon.error()));
      if (*soon) co_return true;
    }
    co_return false;
  }

  // Whether a delayed job is due, or is one that has failed before and is due again before long. Notes those that are neither.
  Coro<Result<bool>> due_soon(Store& store, QueueId queue) {
    auto delayed = co_await store.read_shelf(queue, {.shelf = Shelf::delayed, .limit = kMostDelayedLookedAt});
    if (!delayed) co_return std::unexpected(std::move(delayed.error()));
    const WallTime now = clock_.wall_now();
    const WallTime horizon{saturating_add(TimePoint{now.time_since_epoch()}, arguments_.linger).time_since_epoch()};
    if (std::ranges::any_of(*delayed, [&](const WaitingJob& job) {
          return job.due_at <= now || (job.attempts > 0 && job.due_at <= horizon);
        })) {
      co_return true;
    }
    if (!delayed->empty()) {
      next_due_ = std::min(next_due_, delayed->front().due_at);
      due_later_ += delayed->size();
    }
    co_return false;
  }

  // --- the end

  void print_summary(bool well) const {
    const bool finished = well && signals_ == 0;
    if (arguments_.store.json) {
      fmt::print("{}\n", json_object([&](JsonWriter& json) {
                   json.member("done", counts_.done);
                   json.member("retried", counts_.retried);
                   json.member("buried", counts_.buried);
                   json.member("cancelled", counts_.cancelled);
                   json.member("released", counts_.released);
                   json.key("seconds");
                   json.fixed(seconds_, 3);
                   json.member("finished", finished);
                   json.member("due_later", due_later_);
                 }));
    } else if (!arguments_.quiet) {
      fmt::print("{} after {}: {} done, {} failed and tried again, {} buried", finished ? "Finished" : "Stopped",
                 human_duration(seconds_), counts_.done, counts_.retried, counts_.buried);
      if (counts_.cancelled > 0) fmt::print(", {} cancelled", counts_.cancelled);
      if (counts_.released > 0) fmt::print(", {} given back", counts_.released);
      fmt::print("\n");
      if (finished && due_later_ > 0) {
        fmt::print("{} {} due later, the first {} ({}).\n", due_later_, due_later_ == 1 ? "job is" : "jobs are",
                   to_rfc3339(next_due_), distance(next_due_ - clock_.wall_now()));
      }
    }
    std::fflush(stdout);
  }

  const WorkArguments& arguments_;
  SystemClock clock_;
  JobProgress progress_{stderr};
  WorkCounts counts_;
  Event ended_;
  int signals_ = 0;
  double seconds_ = 0;
  std::optional<Error> failure_;
  std::size_t due_later_ = 0;  // as of the last look whether anything is left
  WallTime next_due_ = WallTime::max();
};

}  // namespace

std::function<int()> add_job_work(CLI::App& job, const std::vector<std::string>& command) {
  auto work = std::make_shared<WorkArguments>();
  CLI::App* subcommand = job.add_subcommand("work", "Run a command for each job of some queues");
  add_options(*subcommand, *work);
  return [work, &command] {
    if (command.empty()) {
      // The program's name, and perhaps its arguments, were taken for queues.
      std::string line = work->queues.front() + " --";
      for (std::size_t i = 1; i < work->queues.size(); ++i) line += ' ' + work->queues[i];
      if (work->queues.size() == 1) line += " sh -c 'cat'";
      return complain(fmt::format("which command? Write it after --, as in: argiope job work {}", printable(line)),
                      kExitUsage);
    }
    work->command = command;
    return WorkCommand(*work).run();
  };
}

}  // namespace argiope

// `argiope job work`: a worker that runs a command for each job, of a store that this process owns, or of a daemon.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/engine/worker.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/daemon_store.hpp"
#include "cli/end_signals.hpp"
#include "cli/error_advice.hpp"
#include "cli/human.hpp"
#include "cli/job/job_command.hpp"
#include "cli/job/job_progress.hpp"
#include "cli/number_option.hpp"
#include "cli/owner.hpp"
#include "cli/span_option.hpp"
#include "remote/internal/http_book.hpp"
#include "remote/internal/http_job_source.hpp"

namespace argiope {
namespace {

// How long a daemon that is away is waited for after the first signal.
constexpr Duration kPatienceAtEnd = std::chrono::seconds{5};

struct WorkArguments {
  JobStoreArguments store;
  std::vector<std::string> queues;
  std::vector<std::string> command;
  std::size_t concurrency = 1;
  bool until_empty = false;
  Duration linger = std::chrono::seconds{60};
  std::optional<Duration> timeout, lease;
  std::vector<int> ok_status;
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
      ->check(whole_number(1, 10'000))->type_name("N")->capture_default_str();
  using std::chrono::milliseconds;
  add_span(command, "--timeout", work.timeout, "Stop a job that takes longer; it has failed (default: never)", {milliseconds{1}});
  add_span(command, "--lease", work.lease, "Set the queues' lease: a job whose worker is silent for this long is run again",
           {milliseconds{100}, std::chrono::days{12}});
  add_ok_status(command, work.ok_status);
  command.add_option("--name", work.name, "The worker's name in the store (default: host:process)")->type_name("TEXT");
  command.add_flag("--until-empty", work.until_empty, "End when nothing is ready or running, and no retry is due soon");
  add_span_with_default(command, "--linger", work.linger, "With --until-empty: wait for retries that are due within this time");
  command.add_flag("--create", work.create, "Make the queue even if another has nearly the same name");
  command.add_flag("--fail-on-buried", work.fail_on_buried, "Exit with 1 when a job was buried");
  command.add_flag("--quiet", work.quiet, "No progress and no summary; errors only");
  command.footer(
      "The command after -- is run for each job: the payload on its standard input; ARGIOPE_JOB_ID, _NAME, _QUEUE, _KEY,\n"
      "_ATTEMPT and _TOKEN in its environment. Its output is the job's result. Exit status 0: done; 65: buried at once;\n"
      "anything else: tried again later, until the queue's attempts are used up, with the last line of standard error\n"
      "as the error. A job may run twice when its worker is killed: make that harmless.\n"
      "One process owns a store at a time; other commands may put, look and change meanwhile. With --store http://HOST:7733\n"
      "the daemon owns it, and workers on any machines share its jobs. A daemon that is away is waited for.\n"
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
    if (auto good = rehearse(arguments_.store, [this](Book& book) { return make_queues(book); }); !good)
      return complain(good.error());
    AsioBackend backend(clock_);
    EventLoop loop(backend);
    const TimePoint start = clock_.now();
    const int status = is_daemon(*where) ? run_for_daemon(loop, backend, *where) : run_as_its_owner(loop, *where);
    seconds_ = to_seconds(clock_.now() - start);
    print_summary(status == kExitFinished);
    if (status != kExitFinished) return status;
    if (ended_by_.came()) return ended_by_.exit_status();
    return arguments_.fail_on_buried && counts_.buried > 0 ? kExitBroken : kExitFinished;
  }

 private:
  // Whose jobs are run.
  struct Site {
    Book& book;
    std::function<std::string()> more;           // for the line that shows the work
    std::function<void(Duration)> set_patience;  // how long a daemon that is away is waited for
    bool is_remote;
  };

  int run_as_its_owner(EventLoop& loop, const std::string& where) {
    EngineOptions options = owner_options();
    options.fires_schedules = false;
    return run_as_owner(loop, where, "one worker at a time owns a store. Stop that one, or give it more --concurrency",
                        std::move(options), [this](Engine& engine) { return work(engine); });
  }

  int run_for_daemon(EventLoop& loop, AsioBackend& backend, const std::string& where) {
    const auto address = daemon_address(where);
    if (!address) return complain(with_store_option(address.error()));
    DaemonStore daemon(*address, backend);
    const auto worked = loop.run_until_complete(work(daemon.client()));
    return worked ? kExitFinished : complain(with_store_option(worked.error()));
  }

  Coro<Result<void>> work(Engine& engine) {
    const Site site{.book = engine.book(),
                    .more = [&engine] { return fmt::format("{} in memory  ", engine.in_memory()); },
                    .set_patience = [](Duration) {},
                    .is_remote = false};
    if (auto ready = co_await prepare(site); !ready) co_return ready;
    const auto listener = engine.add_listener(kAllJobEvents, [this](const JobEvent& event) { note(event); });
    Worker worker(engine, worker_options());
    const auto worked = co_await work(site, worker);
    engine.remove_listener(listener);
    co_return worked;
  }

  Coro<Result<void>> work(ApiClient& client) {
    Book book = Book::of_remote(std::make_shared<HttpBook>(client));
    const Site site{.book = book,
                    .more = [] { return std::string(); },
                    .set_patience = [&client](Duration patience) { client.set_patience(patience); },
                    .is_remote = true};
    if (auto ready = co_await prepare(site); !ready) co_return ready;
    const auto source = std::make_shared<HttpJobSource>(client, [this](const JobEvent& event) { note(event); });
    const WorkerOptions options = worker_options();
    // Before anything is found to be left: who may not lease must hear of it also where nothing is.
    co_await or_return(source->check({.queues = options.queues, .worker = options.name}));
    client.set_patience(Duration::max());
    Worker worker(source, options);
    const auto worked = co_await work(site, worker);
    client.set_patience(Duration{});
    co_await source->close();
    co_return worked;
  }

  WorkerOptions worker_options() const {
    return {.name = arguments_.name.empty() ? default_worker_name() : arguments_.name,
            .queues = arguments_.queues,
            .concurrency = arguments_.concurrency,
            .drain_limit = kDrain,
            .until_empty = arguments_.until_empty,
            .linger = arguments_.linger};
  }

  Coro<Result<void>> work(const Site& site, Worker& worker) {
    worker.add_default(as_command({.args = arguments_.command,
                                   .timeout = arguments_.timeout.value_or(Duration::max()),
                                   .grace = kGrace,
                                   .ok_status = arguments_.ok_status}));
    EventLoop& loop = EventLoop::current();
    Task<Result<void>> running = loop.create_task(worker.run(), "worker");
    ended_by_.listen(loop, [&] { interrupt(site, worker, running); });
    Task<void> progress;
    if (!arguments_.quiet) progress = loop.create_task(progress_.run(worker, counts_, site.more), "progress");
    Result<void> result;
    try {
      result = co_await running;
    } catch (const CancelledError&) {  // by the second signal
    }
    if (progress) progress.cancel();
    ended_by_.forget(loop);
    progress_.clear();
    due_later_ = worker.due_later();
    co_return result;
  }

  // In an empty store.
  Coro<Result<int>> make_queues(Book& book) const {
    QueueConfig wanted = default_queue_policy();
    wanted.lease_time = arguments_.lease.value_or(wanted.lease_time);
    for (const std::string& queue : arguments_.queues) co_await or_return(book.configure(queue, wanted));
    co_return kExitFinished;
  }

  // The queues are there, and have the lease that was asked for.
  Coro<Result<void>> prepare(const Site& site) {
    for (const std::string& queue : arguments_.queues) {
      if (auto ready = co_await prepare(site, queue); !ready) co_return ready;
    }
    co_return Result<void>{};
  }

  Coro<Result<void>> prepare(const Site& site, const std::string& queue) {
    const auto there = co_await site.book.queue(queue);
    if (!there && there.error().code != Errc::not_found) co_return std::unexpected(there.error());
    if (!there && !arguments_.create) co_await or_return(check_new(queue, co_await or_return(site.book.queues())));
    QueueConfig wanted = there ? there->config : default_queue_policy();
    const Duration lease = arguments_.lease.value_or(wanted.lease_time);
    if (there && wanted.lease_time == lease) co_return Result<void>{};
    // A daemon lets a worker wait for a queue that is not there. A worker need not be allowed to change policies.
    if (site.is_remote && !arguments_.lease) co_return Result<void>{};
    wanted.lease_time = lease;
    co_return co_await site.book.configure(queue, std::move(wanted));
  }

  Result<void> check_new(const std::string& queue, const std::vector<StoredQueue>& there) const {
    std::vector<std::string> names;
    for (const StoredQueue& known : there) names.push_back(known.name);
    auto may = may_make_queue(queue, names);
    if (!may) return std::unexpected(std::move(may.error()));
    if (*may && !arguments_.quiet) spdlog::info("queue {} is new: nothing has been put into it yet", in_quotes(queue));
    return {};
  }

  void note(const JobEvent& event) {
    const JobId expired = std::exchange(expired_, event.kind == JobEventKind::expired ? event.id : 0);
    switch (event.kind) {
      case JobEventKind::done: ++counts_.done; break;
      case JobEventKind::retrying: ++counts_.retried; break;
      case JobEventKind::buried:
        ++counts_.buried;
        if (event.id == expired) --counts_.released;  // one run, which is told as both
        break;
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
  }

  void interrupt(const Site& site, Worker& worker, Task<Result<void>>& running) {
    progress_.clear();
    site.set_patience(signals_ == 0 ? kPatienceAtEnd : Duration{});
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
                   json.member("due_later", due_later_.jobs);
                 }));
    } else if (!arguments_.quiet) {
      fmt::print("{} after {}: {} done, {} failed and tried again, {} buried", finished ? "Finished" : "Stopped",
                 human_duration(seconds_), counts_.done, counts_.retried, counts_.buried);
      if (counts_.cancelled > 0) fmt::print(", {} cancelled", counts_.cancelled);
      if (counts_.released > 0) fmt::print(", {} given back", counts_.released);
      fmt::print("\n");
      if (finished && due_later_.jobs > 0) {
        fmt::print("{} due later, the first {} ({}).\n", counted(due_later_.jobs, "job is", "jobs are"),
                   to_rfc3339(due_later_.first), distance(due_later_.first - clock_.wall_now()));
      }
    }
    std::fflush(stdout);
  }

  const WorkArguments& arguments_;
  SystemClock clock_;
  JobProgress progress_{stderr};
  WorkCounts counts_;
  JobId expired_ = 0;  // the last event was its lease's running out
  EndSignals ended_by_;
  int signals_ = 0;
  double seconds_ = 0;
  Worker::DueLater due_later_;
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

// `argiope schedule run`: the owner of a store, who fires its schedules and runs their commands and HTTP calls.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/time/time_zone.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/authorities_option.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/end_signals.hpp"
#include "cli/error_advice.hpp"
#include "cli/human.hpp"
#include "cli/live_line.hpp"
#include "cli/number_option.hpp"
#include "cli/owner.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/table.hpp"

namespace argiope {
namespace {

// Between two looks whether anything is left, or has broken.
constexpr Duration kLookAroundInterval = std::chrono::milliseconds{100};
constexpr std::size_t kSchedulesAtOnce = 10'000;
constexpr std::size_t kMostOfEvent = 200;
// A run that is later than this is called late.
constexpr Duration kLate = std::chrono::seconds{1};

struct RunArguments {
  JobStoreArguments store;
  std::vector<std::string> executors;  // NAME or NAME=N
  std::size_t concurrency = 16;
  std::vector<std::string> queues;  // worked off by `command`
  std::vector<std::string> command;
  std::vector<int> ok_status;
  bool create = false;
  bool allow_private = false;
  std::string user_agent = "argiope";
  std::string ca_file;
  bool until_idle = false;
  bool fail_on_failed = false;
  bool quiet = false;
};

// clang-format off
void add_options(CLI::App& command, RunArguments& run) {
  run.store.add_to(command);
  command.add_option("-c,--concurrency", run.concurrency, "Commands and requests of an executor that run at once")
      ->check(whole_number(1, 10'000))->type_name("N")->capture_default_str();
  command.add_option("--executor", run.executors, "Another executor beside \"default\", with N at once (repeatable)")
      ->type_name("NAME[=N]")->allow_extra_args(false);
  command.add_option("--work", run.queues, "Run the command after -- for the jobs of this queue, as argiope job work does (repeatable)")
      ->type_name("QUEUE")->allow_extra_args(false);
  add_ok_status(command, run.ok_status)->needs("--work");
  command.add_flag("--create", run.create, "Make the queue of --work even if another has nearly the same name");
  command.add_flag("--allow-private", run.allow_private, "Let requests connect to private and loopback addresses");
  command.add_option("--user-agent", run.user_agent, "The User-Agent of requests")->type_name("TEXT")->capture_default_str();
  command.add_option("--ca-file", run.ca_file, "Trust the authorities in this PEM file, too")->check(authorities_file())->type_name("FILE");
  command.add_flag("--until-idle", run.until_idle, "End when no schedule has a planned time left and no run is active");
  command.add_flag("--fail-on-failed", run.fail_on_failed, "Exit with 1 when a run has failed");
  command.add_flag("--quiet", run.quiet, "No log of events, no progress and no summary; errors only");
  command.footer(
      "Each event is a line: of the log on standard error, or with --json of JSON on standard output.\n"
      "One process owns a store at a time; other commands may add, change and look at schedules and jobs meanwhile, and\n"
      "their changes take effect within a fraction of a second. Jobs of queues without an executor are put, and wait for\n"
      "--work or another worker.\n"
      "Runs that were due while nothing ran are handled at the start, by each schedule's policies.\n"
      "Ctrl-C lets active runs end (10 s at most), twice stops them; stopped runs are run again later. kill -9 neither\n"
      "loses nor repeats a planned time: its job, its entry in the history and its count are one transaction.\n"
      "Examples:\n"
      "  argiope schedule run --store sqlite:jobs.db\n"
      "  argiope schedule run --executor heavy=1 --work mail -- ./send-mail");
}
// clang-format on

struct ExecutorSpec {
  std::string name;
  std::size_t concurrency = 0;
};
Result<ExecutorSpec> parse_executor(const std::string& text, std::size_t usual) {
  ExecutorSpec spec{text, usual};
  if (const std::size_t equals = text.rfind('='); equals != std::string::npos) {
    spec.name = text.substr(0, equals);
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, spec.concurrency);
    if (error != std::errc{} || stop != end || spec.concurrency < 1 || spec.concurrency > 10'000) {
      return fail(Errc::invalid_input, fmt::format("--executor {}: NAME=N with N from 1 to 10000", text));
    }
  }
  if (spec.name.empty()) return fail(Errc::invalid_input, fmt::format("--executor {}: needs a name", text));
  return spec;
}

struct RunCounts {
  std::uint64_t fired = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t missed = 0;   // planned times
  std::uint64_t skipped = 0;  // the same
};

std::string time_text(WallTime time) { return format_timestamp(std::chrono::floor<std::chrono::milliseconds>(time)); }

// The planned times of an event, in words.
std::string planned_text(const ScheduleEvent& event) {
  if (event.count <= 1 || event.last_planned == event.planned) return time_text(event.planned);
  return fmt::format("{} times from {} to {}", event.count, time_text(event.planned), time_text(event.last_planned));
}

std::string sentence(const ScheduleEvent& event) {
  using enum ScheduleEventKind;
  const std::string name = one_line(event.name, kMostOfEvent);
  const std::string text = one_line(event.text, kMostOfEvent);
  const std::string why = text.empty() ? "" : ": " + text;
  switch (event.kind) {
    case scheduler_started: return "scheduler started";
    case scheduler_shutdown: return "scheduler stopped";
    case scheduler_paused: return "scheduler paused";
    case scheduler_resumed: return "scheduler resumed";
    case executor_added: return fmt::format("executor {} added", in_quotes(text));
    case executor_removed: return fmt::format("executor {} removed", in_quotes(text));
    case schedule_added: return name + ": added";
    case schedule_removed: return (name.empty() ? fmt::format("schedule {}", event.schedule) : name) + ": removed";
    case schedule_modified: return name + ": changed" + why;
    case all_schedules_removed: return "all schedules removed";
    case job_submitted: {
      const Duration late = event.at - event.planned;
      return fmt::format("{}: run {} of {}, job {}{}", name, event.run, time_text(event.planned), event.job,
                         late >= kLate ? fmt::format(" ({} late)", human_duration(to_seconds(late))) : "");
    }
    case job_executed: return fmt::format("{}: run {} done{}", name, event.run, why);
    case job_error: return fmt::format("{}: run {} failed{}", name, event.run, why);
    case job_cancelled: return fmt::format("{}: run {} cancelled{}", name, event.run, why);
    case job_missed: return fmt::format("{}: missed {}{}", name, planned_text(event), why);
    case job_max_instances: return fmt::format("{}: skipped {}{}", name, planned_text(event), why);
    case schedule_finished: return name + ": over, no runs are left";
    case schedule_unmarked: return name + ": can be run again";
    default: return {};
  }
  return {};
}

std::string event_json(const ScheduleEvent& event) {
  return json_object([&](JsonWriter& json) {
    const auto text = [&](std::string_view member, std::string_view value) {
      if (!value.empty()) json.member(member, value);
    };
    const auto number = [&](std::string_view member, std::uint64_t value) {
      if (value != 0) json.member(member, value);
    };
    json.member("event", to_string(event.kind));
    json.member("at", to_rfc3339(event.at));
    text("schedule", event.name);
    number("id", event.schedule);
    text("queue", event.queue);
    number("job", event.job);
    number("run", event.run);
    if (event.planned != WallTime{}) json.member("planned", event.planned);
    if (event.last_planned != WallTime{} && event.last_planned != event.planned) {
      json.member("last_planned", event.last_planned);
      number("count", event.count);
    }
    text("text", event.text);
    if (event.jump != Duration{}) {
      json.member("jump_ms", std::chrono::round<std::chrono::milliseconds>(event.jump).count());
    }
  });
}

bool is_trouble(ScheduleEventKind kind) {
  using enum ScheduleEventKind;
  return kind == job_error || kind == job_missed || kind == job_max_instances;
}

class RunCommand {
 public:
  explicit RunCommand(const RunArguments& arguments) : arguments_(arguments) {}

  int run() {
    if (auto read = read_arguments(); !read) return complain(read.error());
    const auto where = arguments_.store.where();
    if (!where) return complain(where.error());
    if (auto good = rehearse(arguments_.store, [this](Book& book) { return make_queues(book); }); !good)
      return complain(good.error());
    if (arguments_.quiet) spdlog::set_level(spdlog::level::err);
    AsioBackend backend(clock_);
    EventLoop loop(backend);
    const AddressGuard guard(arguments_.allow_private, kAllowPrivateAdvice);
    CaresResolver resolver({}, backend);
    HttpClient client({.user_agent = arguments_.user_agent, .accept = "*/*", .extra_ca_file = arguments_.ca_file},
                      backend, resolver, guard);
    const TimePoint start = clock_.now();
    const int status = run_as_owner(loop, *where,
                                    "one process at a time owns a store, argiope schedule run or job work. "
                                    "Stop that one; adding and changing schedules works without owning it",
                                    owner_options(), [&](Engine& engine) { return work(engine, client); });
    client.close_idle();
    seconds_ = to_seconds(clock_.now() - start);
    print_summary(status == kExitFinished);
    if (status != kExitFinished) return status;
    if (ended_by_.came()) return ended_by_.exit_status();
    return arguments_.fail_on_failed && counts_.failed > 0 ? kExitBroken : kExitFinished;
  }

 private:
  Result<void> read_arguments() {
    executors_.push_back({std::string(kScheduleExecutor), arguments_.concurrency});
    for (const std::string& text : arguments_.executors) {
      auto spec = parse_executor(text, arguments_.concurrency);
      if (!spec) return std::unexpected(std::move(spec.error()));
      if (spec->name == kScheduleExecutor) {
        executors_.front() = *spec;
      } else if (std::ranges::find(executors_, spec->name, &ExecutorSpec::name) != executors_.end()) {
        return fail(Errc::invalid_input, fmt::format("--executor {}: there is one of that name", text));
      } else {
        executors_.push_back(std::move(*spec));
      }
    }
    for (const std::string& queue : arguments_.queues) {
      if (std::ranges::find(executors_, queue, &ExecutorSpec::name) != executors_.end()) {
        return fail(Errc::invalid_input, fmt::format("--work {}: is an executor's queue", queue));
      }
    }
    if (arguments_.queues.empty() != arguments_.command.empty()) {
      return fail(Errc::invalid_input, "--work QUEUE and the command after -- need each other");
    }
    if (!arguments_.command.empty()) {
      if (auto good = check_command(arguments_.command); !good) return good;
    }
    if (!is_header_safe(arguments_.user_agent)) {
      return fail(Errc::invalid_input, "--user-agent: no control characters");
    }
    return {};
  }

  // In an empty store.
  Coro<Result<int>> make_queues(Book& book) const {
    for (const ExecutorSpec& executor : executors_)
      co_await or_return(book.configure(executor.name, default_queue_policy()));
    for (const std::string& queue : arguments_.queues)
      co_await or_return(book.configure(queue, default_queue_policy()));
    co_return kExitFinished;
  }

  Coro<Result<void>> work(Engine& engine, HttpTransport& transport) {
    Scheduler& scheduler = engine.scheduler();
    const auto heard = scheduler.add_listener(kAllScheduleEvents, [this](const ScheduleEvent& event) { note(event); });
    const auto listened = engine.add_listener(kAllJobEvents, [this](const JobEvent& event) { note(event); });
    for (const ExecutorSpec& spec : executors_) {
      auto added = co_await scheduler.add_executor(spec.name, {.concurrency = spec.concurrency, .drain_limit = kDrain});
      if (added)
        added = scheduler.add_function(spec.name, std::string(kCommandFunction),
                                       watched(as_command_call(scheduler, kGrace)));
      if (added)
        added = scheduler.add_function(spec.name, std::string(kHttpFunction),
                                       as_http_call(transport, {.refused_waits = !arguments_.until_idle}));
      if (!added) co_return added;
    }
    for (const std::string& queue : arguments_.queues) {
      if (engine.config(queue)) continue;
      if (!arguments_.create) {
        const auto may = may_make_queue(queue, engine.queue_names());
        if (!may) co_return std::unexpected(may.error());
      }
      if (auto made = co_await engine.book().configure(queue, default_queue_policy()); !made) co_return made;
    }
    Worker worker(engine, {.name = default_worker_name(),
                           .queues = arguments_.queues,
                           .concurrency = arguments_.concurrency,
                           .drain_limit = kDrain});
    if (!arguments_.queues.empty())
      worker.add_default(
          watched(as_command({.args = arguments_.command, .grace = kGrace, .ok_status = arguments_.ok_status})));

    EventLoop& loop = EventLoop::current();
    Task<Result<void>> working;
    if (!arguments_.queues.empty()) working = loop.create_task(worker.run(), "worker");
    ended_by_.listen(loop, [&] { interrupt(scheduler, worker); });
    Task<void> progress;
    if (!arguments_.quiet && !arguments_.store.json) progress = loop.create_task(show(scheduler), "progress");
    Task<void> watch = loop.create_task(watch_over(engine, scheduler), "watch");
    scheduler.start();
    co_await stop_.wait();

    worker.stop();
    Result<void> result = co_await scheduler.shutdown(true);
    if (working) {
      const Result<void> ended = co_await working;
      if (result) result = ended;
    }
    if (hurry_) (void)co_await hurry_;  // it only ends the jobs sooner
    watch.cancel();
    if (progress) progress.cancel();
    ended_by_.forget(loop);
    line_.clear();
    engine.remove_listener(listened);
    scheduler.remove_listener(heard);
    if (result && failure_) co_return std::unexpected(*failure_);
    co_return result;
  }

  // The same, and when nothing can be started any more it is known why.
  JobFunction watched(JobFunction run) {
    return [this, shared = std::make_shared<const JobFunction>(std::move(run))](JobContext& context) {
      return watch_run(shared, context);
    };
  }
  Coro<void> watch_run(std::shared_ptr<const JobFunction> run, JobContext& context) {
    try {
      co_await (*run)(context);
    } catch (const WorkerUnfit& unfit) {
      if (!failure_) failure_ = Error{Errc::io, unfit.what()};
      throw;
    }
  }

  // --- what happens

  void note(const ScheduleEvent& event) {
    using enum ScheduleEventKind;
    switch (event.kind) {
      case job_submitted: ++counts_.fired; break;
      case job_executed: ++counts_.done; break;
      case job_error: ++counts_.failed; break;
      case job_cancelled: ++counts_.cancelled; break;
      case job_missed: counts_.missed += event.count; break;
      case job_max_instances: counts_.skipped += event.count; break;
      default: break;
    }
    if (arguments_.quiet) return;
    if (arguments_.store.json) return print_line(event_json(event));
    // Of those the library itself says more.
    if (event.kind == schedule_marked || event.kind == calendar_jumped) return line_.clear();
    line_.clear();
    spdlog::log(is_trouble(event.kind) ? spdlog::level::warn : spdlog::level::info, "{}", sentence(event));
  }

  void note(const JobEvent& event) {
    switch (event.kind) {
      case JobEventKind::leased: running_.insert(event.id); return;
      case JobEventKind::done:
      case JobEventKind::buried:
      case JobEventKind::cancelled:
      case JobEventKind::released:
      case JobEventKind::expired:
      case JobEventKind::retrying: running_.erase(event.id); break;
      default: return;
    }
    const bool is_failure =
        event.kind == JobEventKind::retrying || (event.kind == JobEventKind::buried && event.schedule == 0);
    if (!is_failure || arguments_.quiet || arguments_.store.json) return;
    line_.clear();
    spdlog::warn("job {}: attempt {} failed{}: {}", event.id, event.attempt,
                 event.kind == JobEventKind::buried ? " and the job is buried" : ", to be tried again", event.text);
  }

  static void print_line(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  Coro<void> show(Scheduler& scheduler) {
    for (;;) {
      co_await sleep(line_.interval());
      const auto next = scheduler.next_due();
      const std::string when = next ? "next " + distance(*next - clock_.wall_now()) : std::string("none to come");
      line_.show(fmt::format("{} schedules  {}  {} fired  {} running  {} done  {} failed  {} missed  {} skipped",
                             scheduler.size(), when, counts_.fired, running_.size(), counts_.done, counts_.failed,
                             counts_.missed, counts_.skipped));
    }
  }

  // --- the end

  void interrupt(Scheduler& scheduler, Worker& worker) {
    line_.clear();
    stop_.set();
    if (signals_++ == 0) {
      if (!arguments_.quiet) std::fputs("Stopping: letting what runs end (at most 10 s; again: at once).\n", stderr);
      return;
    }
    if (signals_ > 2) return;
    if (!arguments_.quiet) std::fputs("Stopping at once.\n", stderr);
    // Commands are killed after they have been told why, so that it does not count as a failure of theirs.
    worker.stop(true);
    EventLoop& loop = EventLoop::current();
    hurry_ = loop.create_task(scheduler.shutdown(false), "at once");
    loop.call_later(2 * kTellAgain, kill_commands);
  }

  Coro<void> watch_over(Engine& engine, Scheduler& scheduler) {
    while (!stop_.is_set()) {
      co_await sleep(kLookAroundInterval);
      if (!failure_) failure_ = engine.failure();
      if (!failure_) failure_ = scheduler.failure();
      if (!failure_ && arguments_.until_idle && running_.empty() && !scheduler.next_due()) {
        auto idle = co_await is_idle(engine.store());
        if (!idle) failure_ = idle.error();
        if (idle && *idle) stop_.set();
      }
      if (failure_) stop_.set();
    }
  }

  // No schedule has a time to come, and no run is left.
  static Coro<Result<bool>> is_idle(Store& store) {
    for (ScheduleId after = 0;;) {
      auto page = co_await store.schedules({.after = after, .limit = kSchedulesAtOnce, .texts = false});
      if (!page) co_return std::unexpected(std::move(page.error()));
      if (page->empty()) co_return true;
      for (const StoredSchedule& schedule : *page) {
        if (schedule.active > 0 || (schedule.place.next != WallTime::max() && !schedule.place.paused)) co_return false;
      }
      after = page->back().id;
    }
  }

  void print_summary(bool well) const {
    const bool finished = well && signals_ == 0;
    if (arguments_.store.json) {
      print_line(json_object([&](JsonWriter& json) {
        json.member("event", "summary");
        json.member("fired", counts_.fired);
        json.member("done", counts_.done);
        json.member("failed", counts_.failed);
        json.member("cancelled", counts_.cancelled);
        json.member("missed", counts_.missed);
        json.member("skipped", counts_.skipped);
        json.key("seconds");
        json.fixed(seconds_, 3);
        json.member("finished", finished);
      }));
    } else if (!arguments_.quiet) {
      print_line(fmt::format("{} after {}: {} fired, {} done, {} failed, {} missed, {} skipped",
                             finished ? "Finished" : "Stopped", human_duration(seconds_), counts_.fired, counts_.done,
                             counts_.failed, counts_.missed, counts_.skipped));
    }
  }

  const RunArguments& arguments_;
  std::vector<ExecutorSpec> executors_;
  SystemClock clock_;
  LiveLine line_{stderr};
  RunCounts counts_;
  std::unordered_set<JobId> running_;
  Event stop_;
  Task<Result<void>> hurry_;
  EndSignals ended_by_;
  int signals_ = 0;
  double seconds_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

std::function<int()> add_schedule_run(CLI::App& schedule, const std::vector<std::string>& command) {
  auto run = std::make_shared<RunArguments>();
  CLI::App* subcommand =
      schedule.add_subcommand("run", "Fire the schedules of a store, and run their commands and requests");
  add_options(*subcommand, *run);
  return [run, &command] {
    run->command = command;
    return RunCommand(*run).run();
  };
}

}  // namespace argiope

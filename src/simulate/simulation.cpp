#include "simulate/internal/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/store/store.hpp"
#include "argiope/time/time_zone.hpp"
#include "simulate/collector.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kMostSteps = 720;
constexpr std::size_t kMostStripParts = 180;
constexpr std::uint32_t kSubBuckets = 128;
// How often to see whether it has become too much.
constexpr Duration kLookInterval = std::chrono::minutes{1};
constexpr std::uint64_t kLookEvents = 256;
constexpr std::size_t kPutTogether = 1'000;

// The shortest step of a round length that needs no more than kMostSteps.
Duration step_of(Duration span) {
  using namespace std::chrono;
  constexpr Duration kRound[] = {seconds{1}, seconds{2}, seconds{5},  seconds{10}, seconds{30}, minutes{1},
                                 minutes{2}, minutes{5}, minutes{10}, minutes{20}, minutes{30}, hours{1},
                                 hours{2},   hours{4},   hours{6},    hours{12},   days{1},     days{2}};
  for (const Duration step : kRound) {
    if (span / step <= kMostSteps) return step;
  }
  return ceil<days>(span / kMostSteps);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

std::string shown(const Trigger& trigger) {
  if (const CronExpression* cron = trigger.cron_expression()) return cron->text();
  if (const CalendarInterval* calendar = trigger.calendar_interval()) {
    std::string out = "every";
    const auto unit = [&](int count, std::string_view name) {
      if (count != 0) out += fmt::format(" {} {}", count, name);
    };
    unit(calendar->years, "years");
    unit(calendar->months, "months");
    unit(calendar->weeks, "weeks");
    unit(calendar->days, "days");
    return out + fmt::format(", {:02}:{:02}:{:02}", calendar->hour, calendar->minute, calendar->second);
  }
  if (const auto interval = trigger.interval()) return "every " + format_duration(*interval);
  if (const auto date = trigger.date()) return "once, " + format_timestamp(*date);
  return trigger.to_json();
}

// The fate of jobs that have ended is told by events: their records would only fill memory.
QueueConfig forgetful(QueueConfig config) {
  config.keep_done = config.keep_cancelled = config.keep_buried = Duration::zero();
  return config;
}

class Simulation {
 public:
  Simulation(const Configuration& configuration, const SimulationOptions& options)
      : configuration_(configuration),
        options_(options),
        steps_(static_cast<std::size_t>((options.span - Duration{1}) / step_of(options.span)) + 1),
        strip_steps_((steps_ + kMostStripParts - 1) / kMostStripParts),
        collector_(configuration, options.from, (steps_ + strip_steps_ - 1) / strip_steps_, strip_steps_) {
    report_.strip_steps = strip_steps_;
    report_.from = options.from;
    report_.until = options.from + options.span;
    report_.seed = configuration.simulation.seed;
    report_.zone = options.zone;
    report_.step = step_of(options.span);
    started_.resize(configuration.simulation.jobs.size() + 1);
    for (const Schedule& schedule : configuration.schedules) {
      hashes_.push_back(hash_of(schedule.name));
      behaviours_.push_back(behaviour_of(&schedule.name, schedule.job.queue, schedule.job.function));
    }
  }

  Coro<Result<SimulationReport>> run() {
    // Nobody sets this calendar, and nobody shares this store: to look for that every second would only take time.
    Engine engine =
        co_await or_return(Engine::open("memory:", {.poll_interval = std::chrono::minutes{1},
                                                    .seed = configuration_.simulation.seed,
                                                    .schedules = {.look_interval = std::chrono::hours{1}}}));
    const auto done = co_await run_on(engine);
    const auto closed = co_await engine.close();
    co_await or_return(done);
    co_await or_return(closed);
    co_return std::move(report_);
  }

 private:
  Coro<Result<void>> run_on(Engine& engine) {
    for (const ConfiguredQueue& queue : configuration_.queues) {
      co_await or_return(engine.book().configure(queue.name, forgetful(queue.config)));
    }
    co_return co_await fire_all(engine, engine.scheduler());
  }

  Coro<Result<void>> fire_all(Engine& engine, Scheduler& scheduler) {
    const auto added = co_await or_return(engine.book().schedules().add_all(configuration_.schedules));
    for (std::size_t i = 0; i < added.size(); ++i) {
      collector_.name_schedule(added[i].id, static_cast<std::uint32_t>(i));
    }
    co_await or_return(add_executors(scheduler));
    engine.add_listener(kAllJobEvents, [this](const JobEvent& event) {
      if (over_) return;
      collector_.hear(event);
      if (++heard_ % kLookEvents == 0 && is_enough()) wake_.set();
    });
    scheduler.add_listener(kHeard, [this](const ScheduleEvent& event) {
      if (!over_) collector_.hear(event);
    });
    for (const auto& [queue, jobs] : options_.expected) {
      putting_.push_back(EventLoop::current().create_task(put_expected(engine.book(), queue, jobs), "put"));
    }
    scheduler.start();
    const TimePoint start = EventLoop::current().time();
    Duration passed{}, step_end{};
    while (passed < options_.span && report_.stopped.empty()) {
      if (passed == step_end) step_end = std::min(step_end + report_.step, options_.span);
      passed = std::min(passed + kLookInterval, step_end);
      // A job that is due at the end belongs to what follows.
      co_await sleep_until_enough(start + passed - Duration{1});
      if (auto failure = scheduler.failure()) co_return std::unexpected(std::move(*failure));
      if (auto failure = engine.failure()) co_return std::unexpected(std::move(*failure));
      if (is_enough()) passed = std::min(passed, EventLoop::current().time() - start + Duration{1});
      if (passed == step_end || !report_.stopped.empty()) collector_.end_step(options_.from + passed);
      if (options_.progress) options_.progress(options_.from + passed, collector_.runs());
    }
    over_ = true;
    for (Task<void>& task : putting_) task.cancel();
    report_.until = options_.from + passed;
    collector_.finish(report_, report_.until);
    co_return co_await explain(engine.book().schedules());
  }

  // Why it ends early is in the report then.
  bool is_enough() {
    if (!report_.stopped.empty()) return true;
    if (collector_.live_jobs() > options_.most_jobs) {
      report_.stopped = fmt::format("more than {} jobs have not ended", options_.most_jobs);
    } else if (options_.give_up) {
      report_.stopped = options_.give_up().value_or("");
    }
    return !report_.stopped.empty();
  }
  Coro<void> sleep_until_enough(TimePoint when) {
    Handle timer = EventLoop::current().call_at(when, [this] { wake_.set(); });
    co_await wake_.wait();
    wake_.clear();
    timer.cancel();
  }

  // --- jobs that no schedule puts
  Coro<void> put_expected(Book& book, const std::string& queue, const ExpectedJobs& jobs) {
    const std::uint64_t count = jobs.waiting.size() + jobs.more_waiting;
    for (std::uint64_t i = 0; i < count;) {
      std::vector<NewJob> some;
      for (; i < count && some.size() < kPutTogether; ++i) some.push_back(waiting_job(queue, jobs, i));
      co_await put_some(book, queue, std::move(some));
    }
    Random random{mix64(configuration_.simulation.seed ^ hash_of(queue))};
    while (jobs.arrivals_per_second > 0) {
      const double gap = -std::log(1 - random.unit()) / jobs.arrivals_per_second;
      if (gap > to_seconds(options_.span)) co_return;
      co_await sleep(from_seconds(gap));
      std::vector<NewJob> one;
      one.push_back({.queue = queue});
      co_await put_some(book, queue, std::move(one));
    }
  }
  NewJob waiting_job(const std::string& queue, const ExpectedJobs& jobs, std::uint64_t number) const {
    NewJob job{.queue = queue};
    if (jobs.waiting.empty()) return job;
    const ExpectedJobs::Waiting& like = jobs.waiting[number % jobs.waiting.size()];
    job.key = like.key;
    job.priority = like.priority;
    if (like.due_in > Duration::zero()) job.due_at = options_.from + like.due_in;
    return job;
  }
  Coro<void> put_some(Book& book, const std::string& queue, std::vector<NewJob> jobs) {
    const auto replies = co_await book.put_each(std::move(jobs));
    if (!replies) co_return;  // the engine has failed, and says so
    for (const auto& reply : *replies) {
      if (!reply) collector_.refuse(queue);
    }
  }

  Coro<Result<void>> add_executors(Scheduler& scheduler) {
    std::set<std::string> queues;
    std::set<std::string> silent;  // those that nobody here works off
    for (const ConfiguredQueue& queue : configuration_.queues) {
      if (queue.workers == 0) {
        silent.insert(queue.name);
        continue;
      }
      auto done = co_await scheduler.add_executor(queue.name, {.concurrency = queue.workers});
      if (!done) co_return done;
      queues.insert(queue.name);
      if (!options_.expected.contains(queue.name)) continue;
      // Theirs name no function.
      co_await or_return(scheduler.add_function(queue.name, "", [this](JobContext& context) { return work(context); }));
    }
    for (const Schedule& schedule : configuration_.schedules) {
      const JobTemplate& job = schedule.job;
      if (silent.contains(job.queue)) continue;
      if (queues.insert(job.queue).second) {
        auto done = co_await scheduler.add_executor(job.queue, {.concurrency = ConfiguredQueue{}.workers});
        if (!done) co_return done;
      }
      auto done =
          scheduler.add_function(job.queue, job.function, [this](JobContext& context) { return work(context); });
      if (!done) co_return done;
    }
    co_return Result<void>{};
  }

  // All that is simulated.
  Coro<void> work(JobContext& context) {
    const JobRecord& job = context.job();
    const std::uint32_t* index = collector_.index_of(job.schedule);
    const std::size_t which = index == nullptr ? behaviour_of(nullptr, job.queue, job.function) : behaviours_[*index];
    const SimulatedJobs& behaviour = behaviour_at(which);
    const std::uint64_t number = started_[which]++;
    // By the run and not by the order of runs, so that a change of one schedule leaves the others' jobs as they are.
    const std::uint64_t whose = index == nullptr ? hash_of(job.queue) : hashes_[*index];
    const std::uint64_t run = index == nullptr ? job.id : job.run;
    Random random{mix64(configuration_.simulation.seed ^ whose) ^ mix64(run * 1'000 + context.attempt())};
    const Duration duration = behaviour.duration.draw(number, random);
    const bool fails = random.chance(behaviour.failures) || std::ranges::binary_search(behaviour.failing, number + 1);
    if (duration > Duration::zero()) co_await sleep(duration);
    if (fails) throw std::runtime_error("simulated failure");
  }
  const SimulatedJobs& behaviour_at(std::size_t which) const {
    const SimulationConfig& simulation = configuration_.simulation;
    return which < simulation.jobs.size() ? simulation.jobs[which] : simulation.others;
  }
  // `schedule`: its name; null for a job of none.
  std::size_t behaviour_of(const std::string* schedule, const std::string& queue, const std::string& function) const {
    const auto& jobs = configuration_.simulation.jobs;
    const auto fits = std::ranges::find_if(jobs, [&](const SimulatedJobs& entry) {
      return (!entry.schedule || (schedule != nullptr && *entry.schedule == *schedule)) &&
             (!entry.queue || *entry.queue == queue) && (!entry.function || *entry.function == function);
    });
    return static_cast<std::size_t>(fits - jobs.begin());
  }

  Coro<Result<void>> explain(ScheduleBook& schedules) {
    for (std::size_t i = 0; i < report_.schedules.size(); ++i) {
      ScheduleFindings& findings = report_.schedules[i];
      findings.trigger = shown(configuration_.schedules[i].trigger);
      const auto why = co_await or_return(schedules.explain(findings.name));
      findings.next = why.next;
      const SimulationConfig& simulation = configuration_.simulation;
      if (behaviours_[i] == simulation.jobs.size() && !simulation.others_given)
        report_.assumed.push_back(findings.name);
      const CronExpression* cron = configuration_.schedules[i].trigger.cron_expression();
      if (cron != nullptr && cron->never()) {
        findings.why = "never: there is no such date until 2199";
      } else if (findings.runs == 0 || (why.reason != ScheduleReason::not_due && why.reason != ScheduleReason::due)) {
        findings.why = to_sentence(why);
      }
    }
    report_.daylight = find_daylight_surprises(configuration_.schedules, report_.from, report_.until);
    co_return Result<void>{};
  }

  static constexpr auto kHeard = static_cast<std::uint32_t>(ScheduleEventKind::job_submitted) |
                                 static_cast<std::uint32_t>(ScheduleEventKind::job_missed) |
                                 static_cast<std::uint32_t>(ScheduleEventKind::job_max_instances) |
                                 static_cast<std::uint32_t>(ScheduleEventKind::schedule_marked);

  const Configuration& configuration_;
  const SimulationOptions& options_;
  const std::size_t steps_, strip_steps_;
  Collector collector_;
  SimulationReport report_;
  std::vector<std::uint64_t> hashes_;    // of the schedules' names
  std::vector<std::size_t> behaviours_;  // of the schedules, numbers for behaviour_at()
  std::vector<std::uint64_t> started_;   // attempts, by behaviour
  std::vector<Task<void>> putting_;
  Event wake_;  // the time waited for has come, or it is enough
  std::uint64_t heard_ = 0;
  bool over_ = false;
};

}  // namespace

// --- Lateness --------------------------------------------------------------------------------------------------------

void Lateness::add(Duration late) {
  const auto value = static_cast<std::uint64_t>(std::max(late, Duration::zero()).count());
  // Below 128 ns exactly; above by the power of two and the seven bits after the first.
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - 8);
  const auto bucket = static_cast<std::uint32_t>(shift) * kSubBuckets + static_cast<std::uint32_t>(value >> shift);
  ++buckets_[bucket];
  ++count_;
  max_ = std::max(max_, late);
}

Duration Lateness::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
  if (wanted >= count_) return max_;
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (seen <= wanted) continue;
    const std::uint32_t shift = bucket < 2 * kSubBuckets ? 0 : bucket / kSubBuckets - 1;
    const std::uint64_t low = static_cast<std::uint64_t>(bucket - shift * kSubBuckets) << shift;
    return std::min(max_, Duration{static_cast<Duration::rep>(low)});
  }
  return max_;
}

std::string_view to_string(Trend trend) noexcept {
  constexpr std::string_view kNames[] = {"keeps_up", "never_empty", "piles_up", "not_worked"};
  return kNames[static_cast<std::size_t>(trend)];
}

Result<SimulationReport> simulate(const Configuration& configuration, const SimulationOptions& options) {
  VirtualBackend backend(options.from);
  EventLoop loop(backend);
  Simulation simulation(configuration, options);
  return loop.run_until_complete(simulation.run());
}

}  // namespace argiope

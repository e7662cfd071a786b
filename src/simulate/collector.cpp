#include "simulate/collector.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

// The limit to the remembered sets of schedules that fire together: so many schedules in all of them.
constexpr std::size_t kMostCollisionIds = 2'000'000;
constexpr std::size_t kCollisionsShown = 50;
constexpr std::size_t kMostStrips = 500;

template <class T>
std::int64_t unit_of(WallTime at, T length) {
  return at.time_since_epoch() / length;
}

}  // namespace

// --- Gauge -----------------------------------------------------------------------------------------------------------

void Gauge::advance(WallTime at) noexcept {
  if (at <= since_) return;
  const double area = static_cast<double>(value_) * to_seconds(at - since_);
  area_ += area;
  step_area_ += area;
  if (value_ > most_) {
    most_ = value_;
    most_since_ = since_;
  }
  if (value_ == 0 && !zero_since_) zero_since_ = since_;
  step_most_ = lasted_ ? std::max(step_most_, value_) : value_;
  step_least_ = lasted_ ? std::min(step_least_, value_) : value_;
  lasted_ = true;
  since_ = at;
}

double Gauge::mean_until(WallTime at) noexcept {
  advance(at);
  return at > begin_ ? area_ / to_seconds(at - begin_) : 0;
}

Level Gauge::end_step(WallTime at) noexcept {
  advance(at);
  const double length = to_seconds(at - std::max(step_begin_, begin_));
  const Level level{length > 0 ? step_area_ / length : static_cast<double>(value_), lasted_ ? step_most_ : value_,
                    lasted_ ? step_least_ : value_};
  step_begin_ = at;
  step_area_ = 0;
  lasted_ = false;
  return level;
}

void Collector::Window::add(WallTime at) noexcept {
  const std::int64_t now = unit_of(at, length);
  count = now == unit ? count + 1 : 1;
  unit = now;
  if (count <= peak.most) return;
  peak.most = count;
  peak.at = WallTime{now * length};
}

// --- Collector -------------------------------------------------------------------------------------------------------

Collector::Collector(const Configuration& configuration, WallTime from, std::size_t strips, std::size_t strip_steps)
    : configuration_(configuration), from_(from), strip_steps_(strip_steps) {
  running_.start(from);
  for (const ConfiguredQueue& queue : configuration.queues) {
    QueueFindings& findings = queues_[queue_of(queue.name)].findings;
    findings.configured = true;
    findings.workers = queue.workers;
  }
  schedules_.reserve(configuration.schedules.size());
  for (const Schedule& schedule : configuration.schedules) {
    ScheduleState& state = schedules_.emplace_back();
    state.findings.name = schedule.name;
    state.findings.queue = schedule.job.queue;
    state.findings.zone = schedule.trigger.zone();
    if (schedules_.size() <= kMostStrips) state.findings.fires.resize(strips);
    state.running.start(from);
    queue_of(schedule.job.queue);
  }
}

void Collector::name_schedule(ScheduleId id, std::uint32_t index) { indices_.emplace(id, index); }

const std::uint32_t* Collector::index_of(ScheduleId id) const {
  const auto found = indices_.find(id);
  return found == indices_.end() ? nullptr : &found->second;
}

std::uint32_t Collector::queue_of(std::string_view name) {
  const auto [found, is_new] = queue_indices_.emplace(name, static_cast<std::uint32_t>(queues_.size()));
  if (is_new) {
    QueueState& state = queues_.emplace_back();
    state.findings.name = name;
    state.findings.workers = ConfiguredQueue{}.workers;
    state.waiting.start(from_);
    state.running.start(from_);
  }
  return found->second;
}

void Collector::hear(const JobEvent& event) {
  using enum JobEventKind;
  if (event.kind == added) {
    LiveJob& job = jobs_[event.id];
    job.queue = queue_of(event.queue);
    job.due = std::max(event.at, event.due_at);
    QueueState& queue = queues_[job.queue];
    ++queue.findings.put;
    queue.waiting.add(1, event.at);
    return;
  }
  const auto found = jobs_.find(event.id);
  if (found == jobs_.end() || found->second.has_ended) return;
  LiveJob& job = found->second;
  QueueState& queue = queues_[job.queue];
  const auto run = [&](bool runs) {
    if (job.running == runs) return;
    job.running = runs;
    const int by = runs ? 1 : -1;
    queue.running.add(by, event.at);
    running_.add(by, event.at);
    if (job.schedule != kNobody) schedules_[job.schedule].running.add(by, event.at);
  };
  switch (event.kind) {
    case leased:
      queue.waiting.add(-1, event.at);
      run(true);
      if (!job.has_begun) {
        job.has_begun = true;
        job.begun_at = event.at;
        if (job.schedule != kNobody) begin(job);
      }
      return;
    case retrying:
      ++queue.findings.retries;
      if (job.schedule != kNobody) ++schedules_[job.schedule].findings.retries;
      [[fallthrough]];
    case released:
    case expired:
      run(false);
      queue.waiting.add(1, event.at);
      return;
    case done:
    case buried:
    case cancelled: break;
    default: return;
  }
  if (!job.running) queue.waiting.add(-1, event.at);
  run(false);
  QueueFindings& of_queue = queue.findings;
  ++(event.kind == done ? of_queue.done : event.kind == buried ? of_queue.failed : of_queue.cancelled);
  if (const std::uint32_t* index = index_of(event.schedule)) {
    ScheduleFindings& of_schedule = schedules_[*index].findings;
    ++(event.kind == done ? of_schedule.done : event.kind == buried ? of_schedule.failed : of_schedule.cancelled);
  }
  job.has_ended = true;
  if (event.schedule == 0 && job.schedule == kNobody && job.has_begun) begin_unscheduled(job);
  if (job.schedule != kNobody || event.schedule == 0) jobs_.erase(found);
}

void Collector::hear(const ScheduleEvent& event) {
  using enum ScheduleEventKind;
  const std::uint32_t* index = index_of(event.schedule);
  if (index == nullptr) return;
  ScheduleState& state = schedules_[*index];
  ScheduleFindings& findings = state.findings;
  switch (event.kind) {
    case job_missed: findings.missed += event.count; return;
    case job_max_instances: findings.skipped += event.count; return;
    case schedule_marked: ++queues_[queue_of(findings.queue)].findings.refused; return;
    case job_submitted: break;
    default: return;
  }
  ++findings.runs;
  if (!findings.first) findings.first = event.planned;
  findings.last = event.planned;
  count_fire(*index, event.at);
  const auto found = jobs_.find(event.job);
  if (found == jobs_.end()) return;
  LiveJob& job = found->second;
  job.schedule = *index;
  job.due = configuration_.schedules[*index].trigger.due_at(event.planned);
  if (job.has_begun) begin(job);
  if (job.running) state.running.add(1, event.at);
  if (job.has_ended) jobs_.erase(found);
}

void Collector::begin(LiveJob& job) {
  const Duration late = std::max(job.begun_at - job.due, Duration::zero());
  schedules_[job.schedule].findings.lateness.add(late);
  queues_[job.queue].findings.lateness.add(late);
}

// Whether a schedule has put a job is known when it has ended, or all has.
void Collector::begin_unscheduled(LiveJob& job) { queues_[job.queue].findings.lateness.add(job.begun_at - job.due); }

void Collector::count_fire(std::uint32_t schedule, WallTime at) {
  ++runs_;
  ++step_fires_;
  if (auto& fires = schedules_[schedule].findings.fires; !fires.empty()) {
    ++fires[std::min(fires_.size() / strip_steps_, fires.size() - 1)];
  }
  second_.add(at);
  minute_.add(at);
  hour_.add(at);
  if (const std::int64_t now = unit_of(at, std::chrono::seconds{1}); now != present_second_) {
    end_second();
    present_second_ = now;
  }
  fired_.push_back(schedule);
}

void Collector::end_second() {
  std::vector<std::uint32_t> all = std::exchange(fired_, {});
  if (all.size() < 2) return;
  std::vector<std::uint32_t> who = all;
  std::ranges::sort(who);
  const auto [first, last] = std::ranges::unique(who);
  who.erase(first, last);
  if (who.size() < 2) return;
  ++seconds_shared_;
  for (const std::uint32_t schedule : all) ++schedules_[schedule].findings.together;
  std::uint64_t hash = who.size();
  for (const std::uint32_t schedule : who) hash = mix64(hash ^ schedule);
  const auto found = collisions_.find(hash);
  if (found != collisions_.end()) {
    ++found->second.seconds;
  } else if (collision_ids_ + who.size() <= kMostCollisionIds) {
    collision_ids_ += who.size();
    collisions_[hash] = {std::move(who), 1, WallTime{std::chrono::seconds{present_second_}}};
  }
}

void Collector::end_step(WallTime at) {
  fires_.push_back(std::exchange(step_fires_, 0));
  running_steps_.push_back(running_.end_step(at));
  for (QueueState& queue : queues_) queue.findings.depth.push_back(queue.waiting.end_step(at));
}

// From the second half, so that how it began does not matter. A queue that is filled in bursts and worked off again
// keeps up, however high the bursts: the lowest level of each eighth of the time counts.
void Collector::judge(QueueFindings& queue, Duration step) const {
  const bool nothing_begun = queue.most_running == 0 && queue.done + queue.failed + queue.retries == 0;
  if (nothing_begun && queue.waiting > 0) queue.trend = Trend::not_worked;
  const std::size_t half = queue.depth.size() / 2;
  const std::size_t steps = queue.depth.size() - half;
  if (steps < 8) return;
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (std::size_t i = half; i < queue.depth.size(); ++i) {
    mean_x += static_cast<double>(i);
    mean_y += queue.depth[i].mean;
  }
  mean_x /= static_cast<double>(steps);
  mean_y /= static_cast<double>(steps);
  for (std::size_t i = half; i < queue.depth.size(); ++i) {
    const double x = static_cast<double>(i) - mean_x;
    xy += x * (queue.depth[i].mean - mean_y);
    xx += x * x;
  }
  std::int64_t floors[4];
  for (std::size_t part = 0; part < 4; ++part) {
    const auto first = queue.depth.begin() + static_cast<std::ptrdiff_t>(half + part * steps / 4);
    const auto end = queue.depth.begin() + static_cast<std::ptrdiff_t>(half + (part + 1) * steps / 4);
    floors[part] =
        std::min_element(first, end, [](const Level& a, const Level& b) { return a.least < b.least; })->least;
  }
  const bool rises = floors[0] < floors[1] && floors[1] < floors[2] && floors[2] < floors[3];
  if (queue.trend == Trend::keeps_up) {
    queue.trend = rises ? Trend::piles_up : std::ranges::min(floors) > 0 ? Trend::never_empty : Trend::keeps_up;
  }
  if (queue.trend != Trend::keeps_up) queue.growth_per_day = xy / xx / to_seconds(step) * 86'400;
}

void Collector::finish(SimulationReport& report, WallTime at) {
  end_second();
  for (auto& [id, job] : jobs_) {
    const bool has_begun = std::exchange(job.has_begun, true);
    // At least so late.
    if (!has_begun) job.begun_at = at;
    if (job.schedule == kNobody) {
      if (job.due <= at && !job.has_ended) begin_unscheduled(job);
    } else if (!has_begun) {
      ++schedules_[job.schedule].findings.waiting;
      begin(job);
    }
  }
  report.runs = runs_;
  report.fires = std::move(fires_);
  report.running = std::move(running_steps_);
  running_.advance(at);
  report.at_once = {static_cast<std::uint64_t>(running_.most()), std::nullopt};
  if (running_.most() > 0) report.at_once.at = running_.most_since();
  report.in_a_second = second_.peak;
  report.in_a_minute = minute_.peak;
  report.in_an_hour = hour_.peak;
  for (ScheduleState& state : schedules_) {
    ScheduleFindings& findings = state.findings;
    state.running.advance(at);
    findings.most_running = state.running.most();
    report.missed += findings.missed;
    report.skipped += findings.skipped;
    report.schedules.push_back(std::move(findings));
  }
  for (QueueState& state : queues_) {
    QueueFindings& findings = state.findings;
    findings.mean_running = state.running.mean_until(at);
    findings.most_running = state.running.most();
    state.waiting.advance(at);
    findings.most_waiting = state.waiting.most();
    if (findings.most_waiting > 0) findings.most_waiting_at = state.waiting.most_since();
    findings.waiting = state.waiting.value();
    findings.empty_at = state.waiting.zero_since();
    judge(findings, report.step);
    report.done += findings.done;
    report.failed += findings.failed;
    report.cancelled += findings.cancelled;
    report.retries += findings.retries;
    report.queues.push_back(std::move(findings));
  }
  std::ranges::sort(report.queues, {}, &QueueFindings::name);
  report.seconds_shared = seconds_shared_;
  for (auto& [hash, collision] : collisions_) report.collisions.push_back(std::move(collision));
  std::ranges::sort(report.collisions, [](const Collision& a, const Collision& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.schedules < b.schedules;
  });
  if (report.collisions.size() > kCollisionsShown) report.collisions.resize(kCollisionsShown);
}

}  // namespace argiope

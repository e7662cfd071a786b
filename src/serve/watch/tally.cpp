#include "serve/watch/tally.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "serve/base/scheduler_of.hpp"

namespace argiope {

namespace {

constexpr Duration kSecond = std::chrono::seconds{1};
constexpr std::uint64_t kMinute = 60;  // seconds

constexpr std::uint32_t bit(JobEventKind kind) noexcept { return static_cast<std::uint32_t>(kind); }
constexpr std::uint32_t bit(ScheduleEventKind kind) noexcept { return static_cast<std::uint32_t>(kind); }

constexpr std::uint32_t kCounted =
    bit(JobEventKind::added) | bit(JobEventKind::leased) | bit(JobEventKind::done) | bit(JobEventKind::retrying) |
    bit(JobEventKind::buried) | bit(JobEventKind::cancelled) | bit(JobEventKind::expired) | bit(JobEventKind::released);
// Not what is said of runs that end: their names would have to be read from the store.
constexpr std::uint32_t kCountedOfSchedules =
    bit(ScheduleEventKind::job_submitted) | bit(ScheduleEventKind::job_missed) |
    bit(ScheduleEventKind::job_max_instances) | bit(ScheduleEventKind::schedule_marked);

std::optional<Tallied> tallied(JobEventKind kind) noexcept {
  switch (kind) {
    case JobEventKind::added: return Tallied::added;
    case JobEventKind::leased: return Tallied::leased;
    case JobEventKind::done: return Tallied::done;
    case JobEventKind::retrying: return Tallied::retried;
    case JobEventKind::buried: return Tallied::buried;
    case JobEventKind::cancelled: return Tallied::cancelled;
    case JobEventKind::expired: return Tallied::expired;
    case JobEventKind::released: return Tallied::released;
    default: return std::nullopt;
  }
}

}  // namespace

void SpanHistogram::observe(Duration span) noexcept {
  const double seconds = std::max(0.0, to_seconds(span));
  ++counts[static_cast<std::size_t>(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin())];
  sum += seconds;
}

std::uint64_t SpanHistogram::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void SpanHistogram::add(const SpanHistogram& other) noexcept {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
}

Tally::Tally(Engine& engine)
    : engine_(engine), loop_(EventLoop::current()), ticker_(loop_, [this] {
        ++second_;
        ticker_.at(saturating_add(loop_.time(), kSecond));
      }) {
  listener_ = engine_.add_listener(kCounted, [this](const JobEvent& event) { note(event); });
  if (Scheduler* scheduler = scheduler_of(engine_)) {
    schedule_listener_ =
        scheduler->add_listener(kCountedOfSchedules, [this](const ScheduleEvent& event) { note(event); });
  }
  ticker_.at(saturating_add(loop_.time(), kSecond));
}

Tally::~Tally() { close(); }

void Tally::close() {
  ticker_.stop();
  if (listener_ != 0) engine_.remove_listener(std::exchange(listener_, 0));
  if (schedule_listener_ != 0) scheduler_of(engine_)->remove_listener(std::exchange(schedule_listener_, 0));
}

void Tally::note(const JobEvent& event) {
  const auto kind = tallied(event.kind);
  if (!kind) return;
  ++heard_;
  Counted& queue = queue_named(event.queue);
  count(queue, *kind);
  if (*kind == Tallied::added) count_put(queue);
  if (*kind == Tallied::buried && event.id == expired_) ++queue.buried_by_expiry;
  expired_ = *kind == Tallied::expired ? event.id : 0;
  if (*kind == Tallied::leased) {
    began(queue, event);
  } else if (*kind != Tallied::added) {
    ended(queue, event);
  }
}

void Tally::note(const ScheduleEvent& event) {
  switch (event.kind) {
    case ScheduleEventKind::job_submitted:
      count_scheduled(queue_named(event.queue));
      return lateness_.observe(event.at - event.planned);
    case ScheduleEventKind::job_missed:
    case ScheduleEventKind::job_max_instances: missed_ += event.count; return;
    case ScheduleEventKind::schedule_marked: ++marked_; return;
    default: return;
  }
}

void Tally::count(Counted& queue, Tallied kind) {
  const auto place = static_cast<std::size_t>(kind);
  if (queue.second != second_) catch_up(queue, second_);
  ++queue.totals[place];
  ++queue.seconds[second_ % queue.seconds.size()][place];
}

void Tally::count_put(Counted& queue) {
  const std::uint64_t minute = second_ / kMinute;
  if (minute != std::exchange(queue.minute, minute)) queue.put_in_minute = 0;
  if (++queue.put_in_minute == 1) ++queue.minutes_put;
}

// A schedule is told of after its job was, which was counted as anybody's.
void Tally::count_scheduled(Counted& queue) {
  ++queue.scheduled;
  if (queue.put_in_minute > 0 && --queue.put_in_minute == 0) --queue.minutes_put;
}

// The seconds in which nothing was heard of the queue.
void Tally::catch_up(Counted& queue, std::uint64_t second) {
  const std::uint64_t missed = std::min<std::uint64_t>(second - queue.second, queue.seconds.size());
  for (std::uint64_t i = 0; i < missed; ++i) queue.seconds[(second - i) % queue.seconds.size()] = {};
  queue.second = second;
}

void Tally::began(Counted& queue, const JobEvent& event) {
  if (event.due_at != WallTime{}) queue.waits.observe(event.at - event.due_at);
  if (leased_at_.size() < kMostRuns) leased_at_.insert_or_assign(event.id, event.at);
}

void Tally::ended(Counted& queue, const JobEvent& event) {
  const auto began = leased_at_.find(event.id);
  if (began == leased_at_.end()) return;
  queue.runs.observe(event.at - began->second);
  leased_at_.erase(began);
}

Tally::Counted& Tally::queue_named(std::string_view name) {
  if (last_ != nullptr && last_->first == name) return last_->second;
  auto found = queues_.find(name);
  if (found == queues_.end()) {
    const bool is_full = queues_.size() >= kMostQueues;
    found = queues_.try_emplace(std::string(is_full ? kOthers : name)).first;
  }
  last_ = &*found;
  return found->second;
}

PerTallied<double> Tally::rates(std::string_view queue) const {
  PerTallied<double> rates{};
  const auto found = queues_.find(queue);
  if (found == queues_.end() || second_ == 0) return rates;
  const Counted& counted = found->second;
  const std::uint64_t seconds = std::min<std::uint64_t>(second_, kRateSeconds);
  for (std::uint64_t ago = 1; ago <= seconds; ++ago) {
    const std::uint64_t second = second_ - ago;
    if (second > counted.second) continue;
    const auto& counts = counted.seconds[second % counted.seconds.size()];
    for (std::size_t i = 0; i < rates.size(); ++i)
      rates[i] += static_cast<double>(counts[i]) / static_cast<double>(seconds);
  }
  return rates;
}

}  // namespace argiope

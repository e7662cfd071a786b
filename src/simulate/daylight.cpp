// Which times of schedules a change of the clocks leaves out or repeats, and what becomes of them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "argiope/time/time_zone.hpp"
#include "simulate/internal/simulation.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kMostCounted = 10'000;
constexpr std::size_t kMostFound = 10'000;

// The cron and calendar triggers that a trigger is made of.
void collect_parts(const Trigger& trigger, std::vector<Trigger>& out) {
  if (trigger.cron_expression() != nullptr || trigger.calendar_interval() != nullptr) out.push_back(trigger);
  for (const Trigger& part : trigger.parts()) collect_parts(part, out);
}

class Finder {
 public:
  Finder(std::vector<DaylightSurprise>& found, WallTime from, WallTime until)
      : found_(found), from_(from), until_(until) {}

  void look_at(const Schedule& schedule) {
    std::vector<Trigger> parts;
    collect_parts(schedule.trigger, parts);
    const WallTime from = std::max(from_, schedule.trigger.start().value_or(from_));
    const WallTime until = std::min(until_, schedule.trigger.end().value_or(until_));
    for (const Trigger& trigger : parts) {
      const TimeZone& zone = trigger.zone();
      auto change = zone.next_transition(from);
      for (; change && change->at < until && found_.size() < kMostFound; change = zone.next_transition(change->at)) {
        if (change->from == change->to) continue;
        DaylightSurprise surprise{.schedule = schedule.name, .zone = zone, .change = change->at};
        surprise.gap = change->to > change->from;
        // The local times that are left out, or come twice.
        const LocalTime begin{change->at.time_since_epoch() + std::min(change->from, change->to)};
        const LocalTime end{change->at.time_since_epoch() + std::max(change->from, change->to)};
        if (const CronExpression* cron = trigger.cron_expression()) {
          count(*cron, begin, end, surprise);
          if (surprise.times > 0) explain(*cron, surprise);
        } else {
          count_calendar(trigger, *change, begin, end, surprise);
        }
        if (surprise.times > 0) found_.push_back(std::move(surprise));
      }
    }
  }

 private:
  static void count(const CronExpression& cron, LocalTime begin, LocalTime end, DaylightSurprise& out) {
    auto local = cron.first_at_or_after(begin);
    if (!local || *local >= end) return;
    out.first = out.last = *local;
    for (; local && *local < end && out.times < kMostCounted; local = cron.first_at_or_after(*local + kSecond)) {
      out.last = *local;
      ++out.times;
    }
  }
  static void explain(const CronExpression& cron, DaylightSurprise& out) {
    const CronOptions& options = cron.options();
    out.policy = out.gap ? to_string(options.dst_gap) : to_string(options.dst_overlap);
    out.effect = out.gap ? gap_effect(options.dst_gap, out.times)
                         : overlap_effect(options.dst_overlap, cron.follows_elapsed_time());
  }
  static std::string gap_effect(DstGap policy, std::uint64_t times) {
    switch (policy) {
      case DstGap::next:
        return times == 1 ? "runs at the first instant after the gap" : "runs once, at the first instant after the gap";
      case DstGap::shift: return "runs as much later as the clock jumps";
      case DstGap::skip: return "does not run";
    }
    return "";
  }
  static std::string overlap_effect(DstOverlap policy, bool follows_elapsed_time) {
    const bool both = policy == DstOverlap::both || (policy == DstOverlap::vixie && follows_elapsed_time);
    if (both) return "runs both times";
    return policy == DstOverlap::second ? "runs the second time only" : "runs the first time only";
  }

  // A calendar interval has one time of day; whether the day is one of its own is asked of it with the policies that
  // leave out nothing.
  static void count_calendar(const Trigger& trigger, const TimeZone::Transition& change, LocalTime begin, LocalTime end,
                             DaylightSurprise& out) {
    CalendarInterval interval = *trigger.calendar_interval();
    const Duration time_of_day = std::chrono::hours{interval.hour} + std::chrono::minutes{interval.minute} +
                                 std::chrono::seconds{interval.second};
    LocalTime local = std::chrono::floor<std::chrono::days>(begin) + time_of_day;
    if (local < begin) local += std::chrono::days{1};
    if (local >= end) return;
    const DstGap gap = std::exchange(interval.dst_gap, DstGap::shift);
    const DstOverlap overlap = std::exchange(interval.dst_overlap, DstOverlap::first);
    out.policy = out.gap ? to_string(gap) : to_string(overlap);
    const WallTime planned{local.time_since_epoch() - change.from};
    const bool is_within = planned >= trigger.start().value_or(planned) && planned <= trigger.end().value_or(planned);
    const auto every = Trigger::calendar(interval);
    if (!is_within || !every || every->next(planned - Duration{1}) != planned) return;
    out.times = 1;
    out.first = out.last = local;
    out.effect = out.gap ? gap_effect(gap, 1) : overlap_effect(overlap, false);
  }

  static constexpr Duration kSecond = std::chrono::seconds{1};
  std::vector<DaylightSurprise>& found_;
  const WallTime from_, until_;
};

}  // namespace

std::vector<DaylightSurprise> find_daylight_surprises(const std::vector<Schedule>& schedules, WallTime from,
                                                      WallTime until) {
  std::vector<DaylightSurprise> found;
  Finder finder(found, from, until);
  for (const Schedule& schedule : schedules) finder.look_at(schedule);
  std::ranges::sort(found, {}, [](const DaylightSurprise& surprise) {
    return std::tie(surprise.change, surprise.schedule, surprise.first);
  });
  return found;
}

}  // namespace argiope

// Which times of schedules a change of the clocks leaves out or repeats, and what becomes of them.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <tuple>

#include "argiope/time/timestamp.hpp"
#include "simulate/internal/simulation.hpp"

namespace argiope {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostCounted = 10'000;
constexpr std::size_t kMostFound = 10'000;

// The cron and calendar triggers that a trigger is made of.
void collect_parts(const json::object& form, std::vector<json::object>& out) {
  const std::string_view type = form.at("type").as_string();
  if (type == "cron" || type == "calendar") out.push_back(form);
  if (type != "and" && type != "or") return;
  for (const json::value& part : form.at("triggers").as_array()) collect_parts(part.as_object(), out);
}

class Finder {
 public:
  Finder(std::vector<DaylightSurprise>& found, WallTime from, WallTime until)
      : found_(found), from_(from), until_(until) {}

  void look_at(const Schedule& schedule) {
    std::vector<json::object> parts;
    collect_parts(schedule.trigger.to_json(), parts);
    const WallTime from = std::max(from_, schedule.trigger.start().value_or(from_));
    const WallTime until = std::min(until_, schedule.trigger.end().value_or(until_));
    for (const json::object& form : parts) {
      const auto trigger = Trigger::from_json(form);
      if (!trigger) continue;
      const TimeZone& zone = trigger->zone();
      auto change = zone.next_transition(from);
      for (; change && change->at < until && found_.size() < kMostFound; change = zone.next_transition(change->at)) {
        if (change->from == change->to) continue;
        DaylightSurprise surprise{.schedule = schedule.name, .zone = zone, .change = change->at};
        surprise.gap = change->to > change->from;
        // The local times that are left out, or come twice.
        const LocalTime begin{change->at.time_since_epoch() + std::min(change->from, change->to)};
        const LocalTime end{change->at.time_since_epoch() + std::max(change->from, change->to)};
        if (const CronExpression* cron = trigger->cron_expression()) {
          count(*cron, begin, end, surprise);
          if (surprise.times > 0) explain(*cron, surprise);
        } else {
          count_calendar(form, *change, begin, end, surprise);
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
  static void count_calendar(json::object form, const TimeZone::Transition& change, LocalTime begin, LocalTime end,
                             DaylightSurprise& out) {
    const auto number = [&](std::string_view member) {
      const json::value* value = form.if_contains(member);
      return value == nullptr ? std::int64_t{0} : value->as_int64();
    };
    const Duration time_of_day = std::chrono::hours{number("hour")} + std::chrono::minutes{number("minute")} +
                                 std::chrono::seconds{number("second")};
    LocalTime local = std::chrono::floor<std::chrono::days>(begin) + time_of_day;
    if (local < begin) local += std::chrono::days{1};
    if (local >= end) return;
    const auto text = [&](std::string_view member, std::string_view usual) {
      const json::value* value = form.if_contains(member);
      return value == nullptr ? std::string(usual) : std::string(value->as_string());
    };
    out.policy = out.gap ? text("dst_gap", "next") : text("dst_overlap", "vixie");
    form["dst_gap"] = "shift";
    form["dst_overlap"] = "first";
    const auto trigger = Trigger::from_json(form);
    const WallTime planned{local.time_since_epoch() - change.from};
    if (!trigger || trigger->next(planned - Duration{1}) != planned) return;
    out.times = 1;
    out.first = out.last = local;
    out.effect = out.gap ? gap_effect(parse_dst_gap(out.policy).value_or(DstGap::next), 1)
                         : overlap_effect(parse_dst_overlap(out.policy).value_or(DstOverlap::vixie), false);
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

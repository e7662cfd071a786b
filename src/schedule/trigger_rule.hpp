// What a Trigger is inside: one of six rules, each with its own arithmetic.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "argiope/schedule/trigger.hpp"
#include "schedule/calendar_series.hpp"
#include "schedule/resolve.hpp"

namespace argiope::detail {

inline constexpr Duration kTick{1};
inline WallTime just_before(WallTime time) { return time == WallTime::min() ? time : time - kTick; }
inline WallTime just_after(WallTime time) { return time == WallTime::max() ? time : time + kTick; }

struct DateRule {
  WallTime time;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;
};

struct IntervalRule {
  Duration interval;
  WallTime anchor;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;
};

struct CalendarRule {
  CalendarInterval interval;
  CalendarSeries series;
  DstPolicy policy;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;
};

struct CronRule {
  CronExpression expression;
  TimeZone zone;        // in force
  TimeZone given_zone;  // what it was made with
  DstPolicy policy;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;
};

// The times at which all parts are due within the threshold, the earliest of each such group. Groups overlap when a part
// comes more often than the threshold is long. Then, in each run of groups that are no further apart than the threshold,
// the first one counts, and after each that counts the first one made of times that it has not used up: what
// APScheduler, which remembers what it has used, gives when it is started before them.
struct AllRule {
  std::vector<Trigger> parts;
  Duration threshold;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;

 private:
  using Times = std::vector<WallTime>;
  std::optional<WallTime> settle(Times& times) const;
  std::optional<WallTime> first_group(WallTime from) const;
  std::optional<WallTime> last_group(WallTime until) const;
  std::optional<WallTime> group_after(WallTime group) const;
  WallTime run_begin(WallTime group) const;
  WallTime reach(WallTime time) const;
};

struct AnyRule {
  std::vector<Trigger> parts;
  std::optional<WallTime> next(WallTime after) const;
  std::optional<WallTime> previous(WallTime before) const;
};

}  // namespace argiope::detail

namespace argiope {

struct Trigger::Rule {
  std::variant<detail::DateRule, detail::IntervalRule, detail::CalendarRule, detail::CronRule, detail::AllRule,
               detail::AnyRule>
      kind;
};

}  // namespace argiope

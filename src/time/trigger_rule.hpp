// The inside of a Trigger: one of six rules, each with its own arithmetic.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "argiope/time/trigger.hpp"
#include "time/calendar_series.hpp"
#include "time/internal/instants.hpp"
#include "time/resolve.hpp"

namespace argiope::detail {

// Nanoseconds since the epoch.
inline std::int64_t ticks(WallTime time) { return time.time_since_epoch().count(); }

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

// The times at which all parts are due within the threshold, the earliest of each such group. Groups overlap when a
// part comes more often than the threshold is long. Then, in each run of groups that are no further apart than the
// threshold, the first one counts, and after each that counts the first one made of times that it has not used up: what
// APScheduler, which remembers what it has used, gives when it is started before them.
struct AllRule {
  std::vector<Trigger> parts;
  Duration threshold;
  std::optional<WallTime> next(WallTime after, Search& search) const;
  std::optional<WallTime> previous(WallTime before, Search& search) const;

 private:
  using Times = std::vector<WallTime>;
  bool leap(Times& times) const;
  std::optional<WallTime> settle(Times& times, Search& search) const;
  std::optional<WallTime> first_group(WallTime from, Search& search) const;
  // Not before `floor`.
  std::optional<WallTime> last_group(WallTime until, WallTime floor, Search& search) const;
  std::optional<WallTime> group_after(WallTime group, Search& search) const;
  WallTime run_begin(WallTime group, Search& search) const;
  WallTime reach(WallTime time) const;
  WallTime reach_back(WallTime time) const;
};

struct AnyRule {
  std::vector<Trigger> parts;
  std::optional<WallTime> next(WallTime after, Search& search) const;
  std::optional<WallTime> previous(WallTime before, Search& search) const;
};

// The rule of a trigger that is an interval that does not end; null of others.
const IntervalRule* interval_of(const Trigger& trigger) noexcept;
// Each rule answers with what it is made of, as far as the search goes; those without parts always.
template <class Rule>
std::optional<WallTime> next_of(const Rule& rule, WallTime after, Search& search) {
  if constexpr (requires { rule.next(after, search); }) {
    return rule.next(after, search);
  } else {
    if (search.left > 0) --search.left;
    return rule.next(after);
  }
}
template <class Rule>
std::optional<WallTime> previous_of(const Rule& rule, WallTime before, Search& search) {
  if constexpr (requires { rule.previous(before, search); }) {
    return rule.previous(before, search);
  } else {
    if (search.left > 0) --search.left;
    return rule.previous(before);
  }
}

}  // namespace argiope::detail

namespace argiope {

struct Trigger::Rule {
  std::variant<detail::DateRule, detail::IntervalRule, detail::CalendarRule, detail::CronRule, detail::AllRule,
               detail::AnyRule>
      kind;
};

}  // namespace argiope

// From local times to instants: which instants a series of local times names in a zone, by the policies for the times
// that daylight saving skips and repeats.
//
// Time is walked in periods of one offset. Within a period instants and local times have the same order, so one search
// in local time answers; what a change of the offset adds (the skipped times) or takes away (one of two passes) belongs
// to the period that begins or ends with it. A series is asked for its next local time first, and periods that have
// none of them are never looked at.
#pragma once

#include <algorithm>
#include <optional>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"
#include "time/internal/instants.hpp"

namespace argiope::detail {

// No offset of a zone reaches a day.
inline constexpr Duration kMostOffset = std::chrono::hours{24};
// Nothing recurs outside of these: CronExpression::kFirstYear and kLastYear, and a day around.
inline constexpr WallTime kEarliest = std::chrono::sys_days{std::chrono::year{1969} / 12 / 30};
inline constexpr WallTime kLatest = std::chrono::sys_days{std::chrono::year{2200} / 1 / 3};

struct DstPolicy {
  DstGap gap = DstGap::next;
  DstOverlap overlap = DstOverlap::first;  // never vixie: that is first or both by what the series is
};

inline LocalTime local_at(WallTime time, Duration offset) { return LocalTime{time.time_since_epoch() + offset}; }
inline WallTime instant_at(LocalTime local, Duration offset) { return WallTime{local.time_since_epoch() - offset}; }

// The first instant at or after `from`. Series has first_at_or_after and last_at_or_before of LocalTime.
template <class Series>
std::optional<WallTime> first_instant(const Series& series, const TimeZone& zone, DstPolicy policy, WallTime from) {
  from = std::max(from, kEarliest);
  while (from <= kLatest) {
    const TimeZone::Period period = zone.period_at(from);
    LocalTime low = local_at(from, period.offset);
    LocalTime end = local_at(period.end, period.offset);
    const bool begins_with_gap = period.offset > period.offset_before;
    std::optional<WallTime> found;
    if (begins_with_gap && policy.gap != DstGap::skip) {
      const LocalTime gap = local_at(period.begin, period.offset_before);
      const LocalTime gap_end = local_at(period.begin, period.offset);
      if (policy.gap == DstGap::next) {
        if (from <= period.begin) {
          const auto skipped = series.first_at_or_after(gap);
          if (skipped && *skipped < gap_end) return period.begin;
        }
      } else if (local_at(from, period.offset_before) < gap_end) {
        const auto skipped = series.first_at_or_after(std::max(gap, local_at(from, period.offset_before)));
        if (skipped && *skipped < gap_end) found = instant_at(*skipped, period.offset_before);
      }
    }
    if (period.offset < period.offset_before && policy.overlap == DstOverlap::first) {
      low = std::max(low, local_at(period.begin, period.offset_before));
    }
    const LocalTime overlap = local_at(period.end, period.offset_after);
    if (overlap < end && policy.overlap == DstOverlap::second) end = overlap;

    std::optional<LocalTime> local = series.first_at_or_after(low);
    if (local && *local < end) {
      const WallTime at = instant_at(*local, period.offset);
      return found ? std::min(*found, at) : at;
    }
    if (found) return found;
    // The next period may come back to local times before `low`; otherwise nothing is lost by going to `local` at once.
    if (overlap < low && overlap < local_at(period.end, period.offset)) {
      from = period.end;
      continue;
    }
    while (local) {
      const TimeZone::LocalInstants at = zone.resolve(*local);
      if (at.kind != TimeZone::LocalKind::gap) {
        return at.kind == TimeZone::LocalKind::overlap && policy.overlap == DstOverlap::second ? at.second : at.first;
      }
      if (policy.gap == DstGap::next) return at.transition;
      if (policy.gap == DstGap::shift) break;
      local = series.first_at_or_after(local_at(at.transition, *local - local_at(at.second, Duration{})));
    }
    if (!local) return std::nullopt;
    from = std::max(period.end, zone.resolve(*local).transition);
  }
  return std::nullopt;
}

// The last instant at or before `until`.
template <class Series>
std::optional<WallTime> last_instant(const Series& series, const TimeZone& zone, DstPolicy policy, WallTime until) {
  until = std::min(until, kLatest);
  while (until >= kEarliest) {
    const TimeZone::Period period = zone.period_at(until);
    LocalTime high = local_at(until, period.offset);
    LocalTime begin = local_at(period.begin, period.offset);
    const LocalTime before = local_at(period.begin, period.offset_before);
    std::optional<WallTime> found;
    if (begin > before && policy.gap != DstGap::skip) {
      if (policy.gap == DstGap::next) {
        const auto skipped = series.last_at_or_before(begin - kTick);
        if (skipped && *skipped >= before) found = period.begin;
      } else {
        const auto skipped = series.last_at_or_before(std::min(begin - kTick, local_at(until, period.offset_before)));
        if (skipped && *skipped >= before) found = instant_at(*skipped, period.offset_before);
      }
    }
    if (before > begin && policy.overlap == DstOverlap::first) begin = before;
    const LocalTime overlap = local_at(period.end, period.offset_after);
    if (policy.overlap == DstOverlap::second && period.offset_after < period.offset) {
      high = std::min(high, overlap - kTick);
    }
    std::optional<LocalTime> local = series.last_at_or_before(high);
    if (local && *local >= begin) {
      const WallTime at = instant_at(*local, period.offset);
      return found ? std::max(*found, at) : at;
    }
    if (found) return found;
    // The period before may reach beyond `high`.
    if (before > high) {
      until = period.begin - kTick;
      continue;
    }
    while (local) {
      const TimeZone::LocalInstants at = zone.resolve(*local);
      if (at.kind == TimeZone::LocalKind::overlap) {
        return policy.overlap == DstOverlap::first ? at.first : at.second;
      }
      if (policy.gap == DstGap::shift) break;  // a skipped time may land after this one
      if (at.kind == TimeZone::LocalKind::unique) return at.first;
      if (policy.gap == DstGap::next) return at.transition;
      local = series.last_at_or_before(local_at(at.transition, zone.offset_at(at.transition - kTick)) - kTick);
    }
    if (!local) return std::nullopt;
    until = std::min(period.begin - kTick, WallTime{local->time_since_epoch()} + kMostOffset);
  }
  return std::nullopt;
}

}  // namespace argiope::detail

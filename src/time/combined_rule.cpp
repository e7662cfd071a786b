// Triggers made of others: when all of them are due, or any.
#include <algorithm>
#include <limits>

#include "base/internal/wall_time.hpp"
#include "time/trigger_rule.hpp"

namespace argiope::detail {
namespace {

// Groups that one run of overlapping groups is walked back over before it is cut.
constexpr int kMostRun = 1'000;

// The smallest i from 0 on with low <= a * i mod m <= high; nullopt when there is none. As Euclid's algorithm, in as
// many steps.
std::optional<__int128> first_multiple_within(__int128 a, __int128 m, __int128 low, __int128 high) {
  if (low == 0) return 0;
  a %= m;
  if (a == 0) return std::nullopt;
  const __int128 first = (low + a - 1) / a;
  if (first * a <= high) return first;
  // No multiple of `a` lies between the two before the first turn: after how many turns does one?
  const auto turns = first_multiple_within(m % a, a, (a - high % a) % a, (a - low % a) % a);
  if (!turns) return std::nullopt;
  return (low + m * *turns + a - 1) / a;
}

}  // namespace

const IntervalRule* interval_of(const Trigger& trigger) noexcept { return trigger.interval_rule(); }

WallTime AllRule::reach(WallTime time) const { return saturating_add(time, threshold); }
WallTime AllRule::reach_back(WallTime time) const { return saturating_add(time, -threshold); }

// Two intervals that are not near each other go to where they are next, without a walk. False: they never are.
bool AllRule::leap(Times& times) const {
  std::size_t one = parts.size(), two = parts.size();
  for (std::size_t i = 0; i < parts.size() && two == parts.size(); ++i) {
    if (interval_of(parts[i]) == nullptr) continue;
    (one == parts.size() ? one : two) = i;
  }
  if (two == parts.size()) return true;
  if (times[one] > times[two]) std::swap(one, two);
  if (reach(times[one]) >= times[two]) return true;
  const __int128 step = interval_of(parts[one])->interval.count(), other = interval_of(parts[two])->interval.count();
  const __int128 width = 2 * static_cast<__int128>(threshold.count());
  if (width >= other) return true;
  // one + i * step may lie up to the threshold around two + j * other: i * step mod other from `low` on, `width` wide.
  __int128 low = (static_cast<__int128>(ticks(times[two])) - ticks(times[one]) - threshold.count()) % other;
  if (low < 0) low += other;
  if (low == 0 || low + width >= other) return true;
  const auto steps = first_multiple_within(step, other, low, low + width);
  if (!steps) return false;
  const auto advance = [](WallTime from, __int128 by, __int128 count) -> std::optional<WallTime> {
    constexpr __int128 kMost = std::numeric_limits<std::int64_t>::max();
    if (count > (kMost - ticks(from)) / by) return std::nullopt;
    return WallTime{Duration{static_cast<std::int64_t>(ticks(from) + by * count)}};
  };
  const auto meets = advance(times[one], step, *steps);
  if (!meets) return false;
  times[one] = *meets;
  const WallTime least = reach_back(*meets);
  if (times[two] >= least) return true;
  const __int128 behind = static_cast<__int128>(ticks(least)) - ticks(times[two]);
  const auto met = advance(times[two], other, (behind + other - 1) / other);
  if (!met) return false;
  times[two] = *met;
  return true;
}

// From times of which every part has one, its first that is not used up, to the first group; the parts that are too
// early for the latest are asked again.
std::optional<WallTime> AllRule::settle(Times& times, Search& search) const {
  for (;;) {
    if (!leap(times)) return std::nullopt;
    const auto [earliest, latest] = std::ranges::minmax(times);
    if (latest <= reach(earliest)) return earliest;
    // A group has a time of every part.
    search.clear = reach_back(latest);
    if (!search.spend()) return std::nullopt;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (reach(times[i]) >= latest) continue;
      const auto time = parts[i].next(reach_back(latest) - kTick, search);
      if (search.ran_out) {
        search.clear = reach_back(std::max(latest, search.clear));  // as far as the part has looked
        return std::nullopt;
      }
      if (!time) return std::nullopt;
      times[i] = *time;
    }
  }
}

std::optional<WallTime> AllRule::first_group(WallTime from, Search& search) const {
  Times times;
  for (const Trigger& part : parts) {
    const auto time = part.next(just_before(from), search);
    if (search.ran_out) {
      search.clear = std::clamp(reach_back(search.clear), from, std::max(from, search.clear));
      return std::nullopt;
    }
    if (!time) return std::nullopt;
    times.push_back(*time);
  }
  return settle(times, search);
}

std::optional<WallTime> AllRule::group_after(WallTime group, Search& search) const {
  Times times;
  for (const Trigger& part : parts) {
    const auto used = part.next(just_before(group), search);
    const auto time = used && !search.ran_out ? part.next(*used, search) : std::nullopt;
    if (!time || search.ran_out) return std::nullopt;
    times.push_back(*time);
  }
  return settle(times, search);
}

std::optional<WallTime> AllRule::last_group(WallTime until, WallTime floor, Search& search) const {
  while (until >= floor) {
    if (!search.spend()) return std::nullopt;
    // The last time of any part; it begins a group if the others follow within the threshold.
    std::optional<WallTime> begin;
    for (const Trigger& part : parts) begin = std::max(begin, part.previous(just_after(until), search));
    if (search.ran_out || !begin || *begin < floor) return std::nullopt;
    std::optional<WallTime> bound;
    for (const Trigger& part : parts) {
      const auto follows = part.next(just_before(*begin), search);
      if (search.ran_out) return std::nullopt;
      if (follows && *follows <= reach(*begin)) continue;
      // Only its time before can belong to a group, which then begins no later than that.
      const auto before = part.previous(*begin, search);
      if (search.ran_out || !before) return std::nullopt;
      bound = bound ? std::min(*bound, *before) : *before;
    }
    if (!bound) return begin;
    until = *bound;
  }
  return std::nullopt;
}

WallTime AllRule::run_begin(WallTime group, Search& search) const {
  if (threshold == Duration::zero()) return group;
  for (int round = 0; round < kMostRun && !search.ran_out; ++round) {
    const auto before = last_group(just_before(group), reach_back(group), search);
    if (!before) return group;
    group = *before;
  }
  return group;
}

std::optional<WallTime> AllRule::next(WallTime after, Search& search) const {
  const auto first = first_group(just_after(after), search);
  if (!first || search.ran_out || threshold == Duration::zero()) return first;
  // Whether it counts depends on those that it overlaps with.
  const auto last = last_group(after, reach_back(*first), search);
  std::optional<WallTime> group = first;
  if (last && !search.ran_out) {
    group = run_begin(*last, search);
    while (group && *group <= after && !search.ran_out) group = group_after(*group, search);
  }
  if (!search.ran_out) return group;
  search.clear = *first;
  return std::nullopt;
}

std::optional<WallTime> AllRule::previous(WallTime before, Search& search) const {
  const auto last = last_group(just_before(before), WallTime::min(), search);
  if (!last || search.ran_out) return std::nullopt;
  WallTime found = run_begin(*last, search);
  while (!search.ran_out) {
    const auto group = group_after(found, search);
    if (search.ran_out) break;
    if (!group || *group >= before) return found;
    found = *group;
  }
  return std::nullopt;
}

// Each part has its share of the search, or the first could leave none for the others.
std::optional<WallTime> AnyRule::next(WallTime after, Search& search) const {
  std::optional<WallTime> found, clear;
  std::uint64_t left = search.left;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Search share{left / (parts.size() - i)};
    left -= share.left;
    const auto time = parts[i].next(after, share);
    left += share.left;
    if (share.ran_out) {
      clear = clear ? std::min(*clear, share.clear) : share.clear;
    } else if (time && (!found || *time < *found)) {
      found = time;
    }
  }
  search.left = left;
  // One that is found before anything else can be is still the answer.
  if (!clear || (found && *found <= *clear)) return found;
  search.ran_out = true;
  search.clear = *clear;
  return std::nullopt;
}

std::optional<WallTime> AnyRule::previous(WallTime before, Search& search) const {
  std::optional<WallTime> found;
  for (const Trigger& part : parts) found = std::max(found, part.previous(before, search));
  return found;
}

}  // namespace argiope::detail

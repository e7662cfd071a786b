#include "argiope/time/trigger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "argiope/base/random.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/wall_time.hpp"
#include "time/cron_parser.hpp"
#include "time/trigger_rule.hpp"

namespace argiope {
namespace detail {
namespace {

// How many whole intervals lie between; `from` is not after `to`. Unsigned, it fits, and is quicker divided than 128
// bits.
std::uint64_t intervals_between(std::int64_t from, std::int64_t to, Duration interval) {
  return (static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)) /
         static_cast<std::uint64_t>(interval.count());
}

std::optional<WallTime> at_step(const IntervalRule& rule, __int128 step) {
  const __int128 at = ticks(rule.anchor) + step * rule.interval.count();
  if (at > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return WallTime{Duration{static_cast<std::int64_t>(at)}};
}

}  // namespace

std::optional<WallTime> DateRule::next(WallTime after) const {
  return time > after ? std::optional(time) : std::nullopt;
}
std::optional<WallTime> DateRule::previous(WallTime before) const {
  return time < before ? std::optional(time) : std::nullopt;
}

std::optional<WallTime> IntervalRule::next(WallTime after) const {
  if (after < anchor) return anchor;
  return at_step(*this, __int128{intervals_between(ticks(anchor), ticks(after), interval)} + 1);
}
std::optional<WallTime> IntervalRule::previous(WallTime before) const {
  if (before <= anchor) return std::nullopt;
  return at_step(*this, intervals_between(ticks(anchor), ticks(before) - 1, interval));
}

std::optional<WallTime> CalendarRule::next(WallTime after) const {
  return first_instant(series, interval.zone, policy, just_after(after));
}
std::optional<WallTime> CalendarRule::previous(WallTime before) const {
  return last_instant(series, interval.zone, policy, just_before(before));
}

std::optional<WallTime> CronRule::next(WallTime after) const {
  return first_instant(expression, zone, policy, just_after(after));
}
std::optional<WallTime> CronRule::previous(WallTime before) const {
  return last_instant(expression, zone, policy, just_before(before));
}

}  // namespace detail

namespace {

using namespace detail;

template <class Kind>
std::shared_ptr<const Trigger::Rule> make_rule(Kind kind) {
  return std::make_shared<const Trigger::Rule>(Trigger::Rule{std::move(kind)});
}

DstOverlap overlap_in_force(DstOverlap overlap, bool follows_elapsed_time) {
  if (overlap != DstOverlap::vixie) return overlap;
  return follows_elapsed_time ? DstOverlap::both : DstOverlap::first;
}

}  // namespace

Trigger Trigger::at(WallTime time) { return Trigger(make_rule(DateRule{time})); }

Result<Trigger> Trigger::every(Duration interval, WallTime anchor) {
  if (interval < std::chrono::milliseconds{1}) {
    return fail(Errc::invalid_input, fmt::format("interval of {} ns: at least 1 ms", interval.count()));
  }
  return Trigger(make_rule(IntervalRule{interval, anchor}));
}

Result<Trigger> Trigger::calendar(const CalendarInterval& interval) {
  const auto in = [](int value, int low, int high) { return value >= low && value <= high; };
  if (!in(interval.years, 0, 1000) || !in(interval.months, 0, 12'000) || !in(interval.weeks, 0, 52'000) ||
      !in(interval.days, 0, 365'000)) {
    return fail(Errc::invalid_input, "calendar interval: years, months, weeks and days from 0 to a thousand years");
  }
  if (interval.years + interval.months + interval.weeks + interval.days == 0) {
    return fail(Errc::invalid_input, "calendar interval: at least one of years, months, weeks and days");
  }
  if (!in(interval.hour, 0, 23)) return bad_field("hour", fmt::to_string(interval.hour), "0 to 23");
  if (!in(interval.minute, 0, 59)) return bad_field("minute", fmt::to_string(interval.minute), "0 to 59");
  if (!in(interval.second, 0, 59)) return bad_field("second", fmt::to_string(interval.second), "0 to 59");
  if (!interval.start.ok() || !in(int{interval.start.year()}, CronExpression::kFirstYear, CronExpression::kLastYear)) {
    return fail(Errc::invalid_input, "calendar interval: a start_date that exists, from 1970 to 2199");
  }
  const DstPolicy policy{interval.dst_gap, overlap_in_force(interval.dst_overlap, false)};
  return Trigger(make_rule(CalendarRule{interval, CalendarSeries(interval), policy}));
}

Trigger Trigger::cron(CronExpression expression, const TimeZone& zone) {
  const CronOptions& options = expression.options();
  const DstPolicy policy{options.dst_gap, overlap_in_force(options.dst_overlap, expression.follows_elapsed_time())};
  const TimeZone in_force = expression.zone().value_or(zone);
  return Trigger(make_rule(CronRule{std::move(expression), in_force, zone, policy}));
}

Result<Trigger> Trigger::all_of(std::vector<Trigger> parts, Duration threshold) {
  if (parts.empty()) return fail(Errc::invalid_input, "and: at least one trigger");
  if (threshold < Duration::zero() || threshold > std::chrono::years{1}) {
    return fail(Errc::invalid_input, "and: a threshold of 0 to a year");
  }
  return Trigger(make_rule(AllRule{std::move(parts), threshold}));
}

Result<Trigger> Trigger::any_of(std::vector<Trigger> parts) {
  if (parts.empty()) return fail(Errc::invalid_input, "or: at least one trigger");
  return Trigger(make_rule(AnyRule{std::move(parts)}));
}

Result<Trigger> Trigger::parse(std::string_view text, const CronOptions& options, const TimeZone& zone,
                               WallTime anchor) {
  const std::string_view trimmed = trim(text);
  if (trimmed.starts_with('{')) {
    if (text.size() > CronExpression::kMostBytes) return fail(Errc::too_large, "trigger: at most 4096 bytes");
    return from_json(trimmed);
  }
  constexpr std::string_view kEvery = "@every ";
  if (options.dialect != CronDialect::systemd && trimmed.starts_with(kEvery)) {
    const auto interval = parse_duration(trimmed.substr(kEvery.size()));
    if (!interval) return std::unexpected(interval.error());
    if (anchor > WallTime::max() - *interval) return fail(Errc::invalid_input, "@every: the anchor is too late");
    return every(*interval, anchor + *interval);
  }
  auto expression = CronExpression::parse(text, options);
  if (!expression) return std::unexpected(std::move(expression.error()));
  return cron(std::move(*expression), zone);
}

Trigger Trigger::starting(WallTime time) const {
  Trigger copy = *this;
  copy.bounds_.start = time;
  return copy;
}
Trigger Trigger::ending(WallTime time) const {
  Trigger copy = *this;
  copy.bounds_.end = time;
  return copy;
}
Trigger Trigger::with_jitter(Duration most, std::uint64_t seed) const {
  Trigger copy = *this;
  copy.bounds_.jitter = std::max(most, Duration::zero());
  copy.bounds_.seed = seed;
  return copy;
}

std::optional<WallTime> Trigger::next(WallTime after, Search& search) const {
  if (bounds_.start) after = std::max(after, just_before(*bounds_.start));
  const auto found = std::visit([&](const auto& kind) { return next_of(kind, after, search); }, rule_->kind);
  if (!bounds_.end) return found;
  // A time that was not found by then would be too late.
  if (search.ran_out && search.clear > *bounds_.end) search.ran_out = false;
  return found && *found > *bounds_.end ? std::nullopt : found;
}

std::optional<WallTime> Trigger::previous(WallTime before, Search& search) const {
  if (bounds_.end) before = std::min(before, just_after(*bounds_.end));
  const auto found = std::visit([&](const auto& kind) { return previous_of(kind, before, search); }, rule_->kind);
  return found && bounds_.start && *found < *bounds_.start ? std::nullopt : found;
}

std::optional<WallTime> Trigger::next(WallTime after) const { return search(after).time; }

std::optional<WallTime> Trigger::previous(WallTime before) const {
  Search search{kMostQuestions};
  const auto found = previous(before, search);
  return search.ran_out ? std::nullopt : found;
}

Trigger::Answer Trigger::search(WallTime after, std::uint64_t most_questions) const {
  Search search{most_questions};
  const auto found = next(after, search);
  if (!search.ran_out) return {.time = found};
  return {.decided = false, .clear = std::max(search.clear, just_after(after))};
}

std::optional<std::string> why_undecided(const Trigger::Answer& answer) {
  if (answer.decided) return std::nullopt;
  return fmt::format(
      "no time was found until {} at which all parts of an \"and\" are due, with {} questions to them; make it simpler",
      format_timestamp(std::chrono::ceil<std::chrono::seconds>(answer.clear)), Trigger::kMostQuestions);
}

bool Trigger::needs_search() const noexcept {
  if (std::holds_alternative<AllRule>(rule_->kind)) return true;
  const auto* any = std::get_if<AnyRule>(&rule_->kind);
  return any != nullptr && std::ranges::any_of(any->parts, &Trigger::needs_search);
}

std::uint64_t Trigger::count(WallTime first, WallTime last, std::uint64_t most) const {
  if (const auto* interval = std::get_if<IntervalRule>(&rule_->kind)) {
    const auto from = next(just_before(first));
    const auto until = previous(just_after(last));
    if (!from || !until || *until < *from) return 0;
    const auto span = static_cast<__int128>(ticks(*until)) - ticks(*from);
    return static_cast<std::uint64_t>(span / interval->interval.count()) + 1;
  }
  std::uint64_t found = 0;
  Search search{kMostQuestions};
  if (!needs_search()) search.left = std::numeric_limits<std::uint64_t>::max();
  for (auto time = next(just_before(first), search); time && *time <= last && found < most && !search.ran_out;
       time = next(*time, search)) {
    ++found;
  }
  return found;
}

std::optional<WallTime> Trigger::next_fire_time(std::optional<WallTime> previous, WallTime now) const {
  if (previous) return next(*previous);
  const bool is_date = std::holds_alternative<DateRule>(rule_->kind);
  return next(is_date ? WallTime::min() : just_before(now));
}

WallTime Trigger::due_at(WallTime planned) const {
  if (bounds_.jitter <= Duration::zero()) return planned;
  const auto drawn = mix64(bounds_.seed ^ mix64(static_cast<std::uint64_t>(planned.time_since_epoch().count())));
  const auto range = static_cast<unsigned __int128>(bounds_.jitter.count()) + 1;
  const Duration later{static_cast<std::int64_t>(drawn * range >> 64)};
  WallTime due = saturating_add(planned, later);
  if (const auto following = next(planned)) due = std::min(due, std::max(planned, just_before(*following)));
  return due;
}

std::optional<WallTime> Trigger::start() const noexcept { return bounds_.start; }
std::optional<WallTime> Trigger::end() const noexcept { return bounds_.end; }

const TimeZone& Trigger::zone() const noexcept {
  static const TimeZone kUtc;
  if (const auto* cron = std::get_if<CronRule>(&rule_->kind)) return cron->zone;
  if (const auto* calendar = std::get_if<CalendarRule>(&rule_->kind)) return calendar->interval.zone;
  if (const auto* all = std::get_if<AllRule>(&rule_->kind)) return all->parts.front().zone();
  if (const auto* any = std::get_if<AnyRule>(&rule_->kind)) return any->parts.front().zone();
  return kUtc;
}

std::optional<std::pair<Duration, WallTime>> Trigger::plain_interval() const noexcept {
  const auto* interval = std::get_if<IntervalRule>(&rule_->kind);
  if (interval == nullptr || bounds_ != Bounds{}) return std::nullopt;
  return std::pair(interval->interval, interval->anchor);
}

std::optional<WallTime> Trigger::date() const noexcept {
  const auto* date = std::get_if<DateRule>(&rule_->kind);
  return date == nullptr ? std::nullopt : std::optional(date->time);
}

std::optional<Duration> Trigger::interval() const noexcept {
  const auto* interval = std::get_if<IntervalRule>(&rule_->kind);
  return interval == nullptr ? std::nullopt : std::optional(interval->interval);
}

const CronExpression* Trigger::cron_expression() const noexcept {
  const auto* cron = std::get_if<CronRule>(&rule_->kind);
  return cron == nullptr ? nullptr : &cron->expression;
}

const CalendarInterval* Trigger::calendar_interval() const noexcept {
  const auto* calendar = std::get_if<CalendarRule>(&rule_->kind);
  return calendar == nullptr ? nullptr : &calendar->interval;
}

std::span<const Trigger> Trigger::parts() const noexcept {
  if (const auto* all = std::get_if<AllRule>(&rule_->kind)) return all->parts;
  if (const auto* any = std::get_if<AnyRule>(&rule_->kind)) return any->parts;
  return {};
}

bool Trigger::follows_elapsed_time() const noexcept {
  const auto all = [](const std::vector<Trigger>& parts) {
    return std::ranges::all_of(parts, &Trigger::follows_elapsed_time);
  };
  if (std::holds_alternative<IntervalRule>(rule_->kind)) return true;
  if (const auto* cron = std::get_if<CronRule>(&rule_->kind)) return cron->expression.follows_elapsed_time();
  if (const auto* both = std::get_if<AllRule>(&rule_->kind)) return all(both->parts);
  if (const auto* any = std::get_if<AnyRule>(&rule_->kind)) return all(any->parts);
  return false;
}

const IntervalRule* Trigger::interval_rule() const noexcept {
  return bounds_.end ? nullptr : std::get_if<IntervalRule>(&rule_->kind);
}

bool operator==(const Trigger& a, const Trigger& b) { return a.to_json() == b.to_json(); }

}  // namespace argiope

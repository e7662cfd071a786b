// When something is due: Trigger, and the cron expressions that it may hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// Cron expressions in several dialects: from text to the local times they name. Which instants those are, in a zone
// with daylight saving time, is the Trigger's business.

// Whose language an expression is written in (docs/cron.md puts them side by side).
enum class CronDialect : std::uint8_t {
  argiope,      // 5 fields, with seconds before and a year after them if wanted; everything crontabs have grown
  vixie,        // 5 fields, as Vixie cron and its heirs read a crontab
  quartz,       // 6 fields from seconds on, a year if wanted; weekdays from Sunday, 1
  apscheduler,  // `hour=5 day='last fri'`, APScheduler's keywords; or 5 fields; weekdays from Monday, 0
  systemd,      // OnCalendar=
};

// Which fields stand where.
enum class CronLayout : std::uint8_t {
  five,         // minute hour day-of-month month day-of-week
  six,          // second before them
  optional,     // five; a sixth stands before them: second; a seventh after them: year
  quartz,       // six; a seventh stands after them: year
  year_last,    // five; a sixth stands after them: year; a seventh before them: second
  second_last,  // five; a sixth stands after them: second; a seventh after that: year
};

enum class WeekdayNumbers : std::uint8_t {
  sunday_0,       // 0 to 6
  sunday_0_or_7,  // 0 to 7
  sunday_1,       // 1 to 7
  monday_0,       // 0 to 6
};

// Which days are meant when day-of-month and day-of-week are both restricted, that is, neither is `*` or `?`.
enum class DomDow : std::uint8_t {
  both,    // those that both name
  either,  // those that one of them names
  vixie,   // either; but both when one field begins with `*`, such as `*/2`
  quartz,  // cannot be: one of the fields must be `?`
};

// A local time that the clock jumps over in spring.
enum class DstGap : std::uint8_t {
  next,   // runs at the first instant after the gap
  shift,  // runs as long after the gap's begin as it would have been: 2:30 at 3:30
  skip,   // does not run
};

// A local time that comes twice in autumn.
enum class DstOverlap : std::uint8_t {
  vixie,  // a fixed time of day runs the first time only; one with `*`, `-` or `/` in second, minute or hour follows
          // elapsed time and runs both times
  first,
  second,
  both,
};

enum class QuestionMark : std::uint8_t { in_days, anywhere, never };
// How wide a step may be.
enum class StepLimit : std::uint8_t {
  field,  // no more than the field's highest value
  range,  // no more than last − first of its range
  none,
};

struct CronOptions {
  CronDialect dialect = CronDialect::argiope;
  CronLayout layout = CronLayout::optional;
  WeekdayNumbers weekday_numbers = WeekdayNumbers::sunday_0_or_7;
  DomDow dom_dow = DomDow::either;
  DstGap dst_gap = DstGap::next;
  DstOverlap dst_overlap = DstOverlap::vixie;
  QuestionMark question_mark = QuestionMark::in_days;
  StepLimit step_limit = StepLimit::field;
  bool wrap_ranges = true;        // `fri-mon`, `55-5`
  bool day_rules = true;          // L, L-n, LW, nW, nL, n#k
  bool upper_case_names = false;  // `jan` is wrong
  bool refuse_never = false;      // an expression that no date matches is wrong, not just idle

  // The options by which the dialect's own program goes; of daylight saving time, what it should do: next and vixie,
  // but systemd skips and runs once, as it documents.
  static CronOptions of(CronDialect dialect) noexcept;

  friend bool operator==(const CronOptions&, const CronOptions&) noexcept = default;
};

// The names are those of the enumerators. Parsing gives Errc::invalid_input that lists them: `dialect "kron": argiope,
// vixie, quartz, apscheduler or systemd`. dom_dow is also known as `and` (both) and `or` (either).
std::string_view to_string(CronDialect value) noexcept;
std::string_view to_string(DomDow value) noexcept;
std::string_view to_string(DstGap value) noexcept;
std::string_view to_string(DstOverlap value) noexcept;
Result<CronDialect> parse_cron_dialect(std::string_view name);
Result<DomDow> parse_dom_dow(std::string_view name);
Result<DstGap> parse_dst_gap(std::string_view name);
Result<DstOverlap> parse_dst_overlap(std::string_view name);

// APScheduler's keywords and their values: {"day_of_week", "mon-fri"}.
using CronFields = std::vector<std::pair<std::string, std::string>>;

namespace detail {
struct CompiledCron;
}

// An expression, understood. Immutable; copies share.
//
// Range:   years 1970 to 2199. An expression whose dates do not exist (30 February) is valid and never comes.
// Errors:  Errc::invalid_input, which points at the part: `minute "61": 0 to 59`.
// Threads: any.
// Cost:    first_at_or_after and last_at_or_before look at no more than a bit set a year and allocate nothing.
class CronExpression {
 public:
  static constexpr int kFirstYear = 1970;
  static constexpr int kLastYear = 2199;
  static constexpr std::size_t kMostBytes = 4096;

  // `text` in the dialect of `options`. A crontab's `TZ=Zone` or `CRON_TZ=Zone` may stand before it.
  static Result<CronExpression> parse(std::string_view text, const CronOptions& options = {});
  // APScheduler's CronTrigger(year=…, month=…, day=…, week=…, day_of_week=…, hour=…, minute=…, second=…): what is not
  // given is `*` before the last field that is, and the least value after it.
  static Result<CronExpression> from_fields(const CronFields& fields,
                                            const CronOptions& options = CronOptions::of(CronDialect::apscheduler));

  // The text of which parse() makes the same again; spaces are single, and an OnCalendar= is in systemd's normal form.
  const std::string& text() const noexcept;
  const CronOptions& options() const noexcept;
  // The zone that the expression itself names.
  const std::optional<TimeZone>& zone() const noexcept;
  // The time of day is not fixed: DstOverlap::vixie runs it both times.
  bool follows_elapsed_time() const noexcept;

  std::optional<LocalTime> first_at_or_after(LocalTime from) const noexcept;
  std::optional<LocalTime> last_at_or_before(LocalTime until) const noexcept;
  bool never() const noexcept;

 private:
  explicit CronExpression(std::shared_ptr<const detail::CompiledCron> compiled) noexcept
      : compiled_(std::move(compiled)) {}
  std::shared_ptr<const detail::CompiledCron> compiled_;
};

// The fields that APScheduler 4's from_crontab makes of five crontab fields: keywords, with Sunday 0 or 7 by name.
Result<CronFields> fields_of_crontab(std::string_view text);

// Triggers: when a schedule is due. A date, an interval, a calendar interval, a cron expression, or several of them
// combined; each a set of instants that can be asked for its next and its last one from anywhere.

// Every so many months and days at a time of day, from `start` on: APScheduler's CalendarIntervalTrigger. Days are
// added after months. A month that has no such day (31 April) is left out; the next one is still counted from it.
struct CalendarInterval {
  int years = 0, months = 0, weeks = 0, days = 0;
  int hour = 0, minute = 0, second = 0;
  std::chrono::year_month_day start;  // the first date
  TimeZone zone;
  DstGap dst_gap = DstGap::next;
  DstOverlap dst_overlap = DstOverlap::vixie;  // of a fixed time of day: the first

  friend bool operator==(const CalendarInterval&, const CalendarInterval&) noexcept = default;
};

namespace detail {
struct IntervalRule;
// How much work a question may still be. Each rule asks its parts with the same search, so that nesting multiplies
// nothing.
struct Search {
  std::uint64_t left;
  bool ran_out = false;  // what was given since is no answer
  WallTime clear{};      // then: nothing is planned after the time asked for and before this one
  bool spend() noexcept {
    ran_out = ran_out || left == 0;
    if (left > 0) --left;
    return !ran_out;
  }
};
}  // namespace detail

// A value; immutable, copies share. The plan is a set of instants and does not depend on what was asked before or on
// restarts: no trigger remembers anything.
//
// Range:   cron and calendar intervals come from 1970 to 2199; dates and intervals wherever WallTime reaches.
// Errors:  Errc::invalid_input from what takes text or JSON, or parameters that make no sense.
// Threads: any.
// Cost:    no next() or previous() takes more than 50 µs, whatever the gap (bench/cron.cpp). One with all_of() in it
//          may have to walk: it asks dates, intervals, calendars and expressions no more than kMostQuestions times in
//          all, however it is nested; two intervals are solved at once, however rarely they meet.
class Trigger {
 public:
  static constexpr std::uint64_t kMostQuestions = 20'000;
  static constexpr std::size_t kMostJsonBytes = 64 * 1024;
  static constexpr std::size_t kMostParts = 256;  // of and, or: all of them together, in what is read

  // Once.
  static Trigger at(WallTime time);
  // At `anchor` and every `interval` of elapsed time after it, whatever clocks do; at least a millisecond.
  static Result<Trigger> every(Duration interval, WallTime anchor);
  static Result<Trigger> calendar(const CalendarInterval& interval);
  // In the expression's own zone if it names one, otherwise in `zone`. Daylight saving by the expression's options.
  static Trigger cron(CronExpression expression, const TimeZone& zone = {});
  // When all parts are due within `threshold` of each other, at the earliest of them; then each part's times within the
  // threshold are used up. APScheduler's AndTrigger, whose threshold is a second.
  static Result<Trigger> all_of(std::vector<Trigger> parts, Duration threshold = std::chrono::seconds{1});
  // When any part is due. APScheduler's OrTrigger.
  static Result<Trigger> any_of(std::vector<Trigger> parts);

  // Reads the text that a person writes: a cron expression in the dialect of `options`, "@every 90s", or a JSON form
  // (below). An @every counts from `anchor`, and first comes an interval after it.
  static Result<Trigger> parse(std::string_view text, const CronOptions& options = {}, const TimeZone& zone = {},
                               WallTime anchor = WallTime{});

  // The same trigger, with nothing before `time`, or nothing after it.
  Trigger starting(WallTime time) const;
  Trigger ending(WallTime time) const;
  // The same trigger, whose times are put off by up to `most`, drawn from `seed` (see due_at).
  Trigger with_jitter(Duration most, std::uint64_t seed) const;

  // The first planned time after `after`; nullopt when there is none, or none that kMostQuestions find.
  std::optional<WallTime> next(WallTime after) const;
  // The last planned time before `before`; nullopt as next().
  std::optional<WallTime> previous(WallTime before) const;
  // As next(), and tells what was not found from what is not there.
  struct Answer {
    std::optional<WallTime> time;
    bool decided = true;
    WallTime clear{};  // undecided: nothing is planned before this time, from which the search can go on
  };
  Answer search(WallTime after, std::uint64_t most_questions = kMostQuestions) const;
  // Whether a question may be undecided: there is an all_of() in it.
  bool needs_search() const noexcept;
  // For those that ask several questions and bound the work of all of them.
  std::optional<WallTime> next(WallTime after, detail::Search& search) const;
  std::optional<WallTime> previous(WallTime before, detail::Search& search) const;
  std::optional<WallTime> previous_fire_time(WallTime before) const { return previous(before); }
  // How many planned times there are from `first` to `last`, both included; of an interval exactly and at once, of
  // others counted, up to `most` and as far as kMostQuestions go.
  std::uint64_t count(WallTime first, WallTime last, std::uint64_t most) const;
  // As APScheduler asks: the one after `previous`, even if it is past; without `previous` the first one at or after
  // `now`, or a date whenever it was.
  std::optional<WallTime> next_fire_time(std::optional<WallTime> previous, WallTime now) const;

  // When what is planned for `planned` is to run: then, or up to the jitter later, but before the next planned time.
  // The same for the same seed and the same planned time.
  WallTime due_at(WallTime planned) const;

  std::optional<WallTime> start() const noexcept;
  std::optional<WallTime> end() const noexcept;
  // The zone its times are best shown in; UTC for dates and intervals.
  const TimeZone& zone() const noexcept;
  // Interval and anchor of an interval trigger that has neither start nor end nor jitter; nullopt for any other.
  std::optional<std::pair<Duration, WallTime>> plain_interval() const noexcept;
  // The time of a date trigger, the interval of an interval trigger; nullopt for any other.
  std::optional<WallTime> date() const noexcept;
  std::optional<Duration> interval() const noexcept;
  // The expression of a cron trigger; nullptr for any other.
  const CronExpression* cron_expression() const noexcept;
  // The interval of a calendar trigger; nullptr for any other.
  const CalendarInterval* calendar_interval() const noexcept;
  // The parts of an all_of() or any_of(); nothing for any other. Valid as long as this trigger or a copy of it.
  std::span<const Trigger> parts() const noexcept;

  // {"type":"cron","expression":"0 5 * * *","zone":"Europe/Berlin",…}; docs/cron.md lists the types and their members.
  // from_json takes what to_json gives, and the members it leaves out have their defaults.
  // Errors: invalid_input for what is no JSON object of at most kMostJsonBytes; what is wrong in it is told with the
  //         members that lead to it: `triggers[1].every: duration "soon": a time such as …`.
  std::string to_json() const;
  static Result<Trigger> from_json(std::string_view json);

  // The same set, planned the same way.
  friend bool operator==(const Trigger& a, const Trigger& b);
  // Made of the same one by copying, hence equal; asked at once, and false says nothing.
  bool is_copy_of(const Trigger& other) const noexcept { return rule_ == other.rule_ && bounds_ == other.bounds_; }

  struct Rule;

  // An interval, or an expression whose time of day is not fixed (CronExpression::follows_elapsed_time), or made of
  // such.
  bool follows_elapsed_time() const noexcept;
  // For rules made of others.
  const detail::IntervalRule* interval_rule() const noexcept;

 private:
  struct Bounds {
    std::optional<WallTime> start, end;
    Duration jitter{};
    std::uint64_t seed = 0;
    friend bool operator==(const Bounds&, const Bounds&) noexcept = default;
  };
  explicit Trigger(std::shared_ptr<const Rule> rule) noexcept : rule_(std::move(rule)) {}

  std::shared_ptr<const Rule> rule_;
  Bounds bounds_;
};

// Why an answer is not decided, in the words of an error; nullopt when it is decided.
std::optional<std::string> why_undecided(const Trigger::Answer& answer);

}  // namespace argiope

// Cron expressions in several dialects: from text to the local times they name. Which instants those are, in a zone
// with daylight saving time, is the Trigger's business.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

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

}  // namespace argiope

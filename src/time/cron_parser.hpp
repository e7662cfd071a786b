// The parsers of the dialects, each from text to sets; and what they share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/field_error.hpp"
#include "time/compiled_cron.hpp"

namespace argiope::detail {

// A field of an expression: what it is called in errors, and its least and greatest value as written.
struct FieldSpec {
  std::string_view name;
  int low, high;
};

std::string_view trim(std::string_view text) noexcept;
std::vector<std::string_view> split_words(std::string_view text);
std::vector<std::string_view> split_list(std::string_view text, char separator);
bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
// Digits only, at most 9 of them.
std::optional<int> parse_number(std::string_view text) noexcept;
// 1 to 12, or −1; weekdays from Sunday, 0. Three letters.
int month_of(std::string_view name, bool upper_case_only = false) noexcept;
int weekday_of_name(std::string_view name, bool upper_case_only = false) noexcept;
inline constexpr std::string_view kLongWeekdayNames[] = {"sunday",   "monday", "tuesday", "wednesday",
                                                         "thursday", "friday", "saturday"};
inline constexpr std::string_view kWeekdayNames[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

// Into `out`, of which `options` are set; prepare() is left to the caller.
Result<void> parse_crontab(std::string_view text, CompiledCron& out);
Result<void> parse_keywords(const CronFields& fields, CompiledCron& out);
Result<CronFields> split_keywords(std::string_view text);
Result<void> parse_on_calendar(std::string_view text, CompiledCron& out);

// One field of a crontab, for the parser of keywords.
struct NumberField {
  FieldSpec spec;
  enum class Kind : std::uint8_t { number, month, weekday } kind = Kind::number;
};
// The values one element names (`5`, `*/2`, `mon-fri/2`), into a set of bits; a year's bit 0 is
// CronExpression::kFirstYear.
using ValueSet = std::array<std::uint64_t, 4>;
Result<void> parse_values(std::string_view element, const NumberField& field, const CronOptions& options,
                          ValueSet& out);
FieldSpec weekday_spec(WeekdayNumbers numbers) noexcept;

inline constexpr NumberField kSecondField{{"second", 0, 59}};
inline constexpr NumberField kMinuteField{{"minute", 0, 59}};
inline constexpr NumberField kHourField{{"hour", 0, 23}};
inline constexpr NumberField kDayField{{"day-of-month", 1, 31}};
inline constexpr NumberField kMonthField{{"month", 1, 12}, NumberField::Kind::month};
inline constexpr NumberField kYearField{{"year", CronExpression::kFirstYear, CronExpression::kLastYear}};

}  // namespace argiope::detail

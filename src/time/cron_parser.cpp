// Crontab expressions: fields of lists of ranges with steps, and the rules for days that crontabs have grown.
#include "time/cron_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/internal/printable.hpp"

namespace argiope::detail {
namespace {

constexpr std::string_view kLongMonthNames[] = {"january", "february", "march",     "april",   "may",      "june",
                                                "july",    "august",   "september", "october", "november", "december"};
constexpr std::string_view kMonthNames[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                            "jul", "aug", "sep", "oct", "nov", "dec"};

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool name_matches(std::string_view text, std::string_view name, bool upper_case_only) noexcept {
  const bool has_lower = std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
  return !(upper_case_only && has_lower) && equal_ignoring_case(text, name);
}

template <std::size_t N>
int index_of_name(std::string_view text, const std::string_view (&names)[N], bool upper_case_only) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    if (name_matches(text, names[i], upper_case_only)) return static_cast<int>(i);
  }
  return -1;
}

void set(ValueSet& out, int bit) noexcept { out[static_cast<std::size_t>(bit) / 64] |= std::uint64_t{1} << bit % 64; }

std::string expected(const NumberField& field) {
  const FieldSpec& spec = field.spec;
  switch (field.kind) {
    case NumberField::Kind::month: return fmt::format("{} to {}, or jan to dec", spec.low, spec.high);
    case NumberField::Kind::weekday: return fmt::format("{} to {}, or sun to sat", spec.low, spec.high);
    case NumberField::Kind::number: break;
  }
  return fmt::format("{} to {}", spec.low, spec.high);
}

// Sunday 0 from a weekday's number as written.
int weekday_from(int number, WeekdayNumbers numbers) noexcept {
  switch (numbers) {
    case WeekdayNumbers::sunday_1: return number - 1;
    case WeekdayNumbers::monday_0: return (number + 1) % 7;
    case WeekdayNumbers::sunday_0:
    case WeekdayNumbers::sunday_0_or_7: break;
  }
  return number % 7;
}
int weekday_number(int weekday, WeekdayNumbers numbers) noexcept {
  switch (numbers) {
    case WeekdayNumbers::sunday_1: return weekday + 1;
    case WeekdayNumbers::monday_0: return (weekday + 6) % 7;
    case WeekdayNumbers::sunday_0:
    case WeekdayNumbers::sunday_0_or_7: break;
  }
  return weekday;
}

// The other dialects' own programs take three letters only; and Cronos, with which ours agrees, says of SUNDAY that it
// is wrong.
bool takes_long_names(std::string_view text, const CronOptions& options) noexcept {
  const bool is_a_word = std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
  return is_a_word && options.dialect == CronDialect::argiope && !options.upper_case_names;
}

// A number or a name, in the numbers the field is written in.
std::optional<int> parse_value(std::string_view text, const NumberField& field, const CronOptions& options) noexcept {
  std::optional<int> value = parse_number(text);
  if (!value && field.kind == NumberField::Kind::month) {
    int month = month_of(text, options.upper_case_names);
    if (month < 0 && takes_long_names(text, options)) month = 1 + index_of_name(text, kLongMonthNames, false);
    if (month > 0) value = month;
  }
  if (!value && field.kind == NumberField::Kind::weekday) {
    int weekday = weekday_of_name(text, options.upper_case_names);
    if (weekday < 0 && takes_long_names(text, options)) weekday = index_of_name(text, kLongWeekdayNames, false);
    if (weekday >= 0) value = weekday_number(weekday, options.weekday_numbers);
  }
  if (value && (*value < field.spec.low || *value > field.spec.high)) return std::nullopt;
  return value;
}

// How many weekdays (k) or how far (n) stands behind `#` or `L-`: a number of one or two digits.
std::optional<int> parse_count(std::string_view text, int low, int high) noexcept {
  const auto count = parse_number(text);
  return count && text.size() <= 2 && *count >= low && *count <= high ? count : std::nullopt;
}

bool starts_with_l(std::string_view text) noexcept { return !text.empty() && lower(text.front()) == 'l'; }
bool ends_with(std::string_view text, char letter) noexcept { return !text.empty() && lower(text.back()) == letter; }

class DayFields {
 public:
  DayFields(const CronOptions& options, CompiledCron& out) : options_(options), out_(out) {}

  Result<void> parse_dom(std::string_view text) { return parse(text, kDayField, out_.dom, &DayFields::dom_element); }
  Result<void> parse_dow(std::string_view text) {
    const NumberField field{weekday_spec(options_.weekday_numbers), NumberField::Kind::weekday};
    return parse(text, field, out_.dow, &DayFields::dow_element);
  }

 private:
  using Element = Result<bool> (DayFields::*)(std::string_view, std::string_view, bool);

  Result<void> parse(std::string_view text, const NumberField& field, DayRule& rule, Element special) {
    rule.restricted = text != "*" && text != "?";
    rule.starred = text.starts_with('*') || text.starts_with('?');
    if (text == "?" && options_.question_mark != QuestionMark::never) return {};
    bool is_first = true;
    for (const std::string_view element : split_list(text, ',')) {
      if (options_.day_rules) {
        const Result<bool> taken = (this->*special)(element, text, is_first);
        if (!taken) return std::unexpected(taken.error());
        is_first = false;
        if (*taken) continue;
      }
      ValueSet values{};
      // `29-L`: no day is beyond the last.
      std::string to_the_last;
      std::string_view plain = element;
      if (field.kind == NumberField::Kind::number && options_.day_rules) {
        const std::size_t dash = element.find('-');
        if (dash != element.npos && starts_with_l(element.substr(dash + 1)) &&
            (dash + 2 == element.size() || element[dash + 2] == '/')) {
          to_the_last = fmt::format("{}31{}", element.substr(0, dash + 1), element.substr(dash + 2));
          plain = to_the_last;
        }
      }
      if (auto parsed = parse_values(plain, field, options_, values); !parsed) {
        return plain == element ? parsed : bad_field(field.spec.name, element, "1 to 31, then L");
      }
      if (field.kind == NumberField::Kind::weekday) {
        rule.weekdays |= static_cast<std::uint8_t>(values[0]);
      } else {
        rule.days |= static_cast<std::uint32_t>(values[0]);
      }
    }
    return {};
  }

  // L, L-n, LW, L-nW and nW. False: none of these.
  Result<bool> dom_element(std::string_view element, std::string_view field, bool is_first) {
    DayRule& rule = out_.dom;
    const bool working_day = ends_with(element, 'w');
    std::string_view rest = working_day ? element.substr(0, element.size() - 1) : element;
    if (!working_day && !starts_with_l(rest)) return false;
    if (working_day && !is_first) {
      return bad_field("day-of-month", element, fmt::format("in the list {}, a day with W can only come first", field));
    }
    if (starts_with_l(rest)) {
      int before = 0;
      if (rest.size() > 1) {
        const auto count = rest[1] == '-' ? parse_count(rest.substr(2), 0, 30) : std::nullopt;
        if (!count) return bad_field("day-of-month", element, "L, L-1 to L-30, and W behind it");
        before = *count;
      }
      (working_day ? rule.last_nearest : rule.last) |= 1u << before;
      return true;
    }
    const auto day = parse_number(rest);
    if (!day || *day < 1 || *day > 31) return bad_field("day-of-month", element, "W follows one day, 1 to 31, or L");
    rule.nearest |= 1u << *day;
    return true;
  }

  // n#k and nL; Quartz's L, which is Saturday.
  Result<bool> dow_element(std::string_view element, std::string_view field_text, bool) {
    DayRule& rule = out_.dow;
    const NumberField field{weekday_spec(options_.weekday_numbers), NumberField::Kind::weekday};
    const auto weekday = [&](std::string_view text) -> std::optional<int> {
      const auto number = parse_value(text, field, options_);
      if (!number) return std::nullopt;
      return weekday_from(*number, options_.weekday_numbers);
    };
    if (const std::size_t hash = element.find('#'); hash != element.npos) {
      const auto which = parse_count(element.substr(hash + 1), 1, 5);
      const auto day = weekday(element.substr(0, hash));
      if (!day || !which) return bad_field("day-of-week", element, "a weekday, #, and 1 to 5");
      rule.nth[*which] |= static_cast<std::uint8_t>(1 << *day);
      return true;
    }
    const bool is_quartz = options_.dialect == CronDialect::quartz;
    // As croniter writes it: L5 is 5L.
    if (starts_with_l(element) && element.size() > 1 && !is_quartz) {
      const auto last = weekday(element.substr(1));
      if (!last) return bad_field("day-of-week", element, "L follows a weekday, or stands before it");
      rule.last_weekdays |= static_cast<std::uint8_t>(1 << *last);
      return true;
    }
    if (!ends_with(element, 'l')) return false;
    if (is_quartz && field_text.contains(',')) {
      return bad_field("day-of-week", field_text, "L stands alone, or behind a weekday that does");
    }
    if (element.size() == 1 && is_quartz) {
      rule.weekdays |= 1 << 6;
      return true;
    }
    const auto day = weekday(element.substr(0, element.size() - 1));
    if (!day) return bad_field("day-of-week", element, "L follows a weekday");
    rule.last_weekdays |= static_cast<std::uint8_t>(1 << *day);
    return true;
  }

  const CronOptions& options_;
  CompiledCron& out_;
};

struct FieldTexts {
  std::string_view second = "0", minute, hour, dom, month, dow, year = "*";
};

std::string_view layout_text(CronLayout layout) noexcept {
  switch (layout) {
    case CronLayout::five: return "5 (minute hour day-of-month month day-of-week)";
    case CronLayout::six: return "6 (second minute hour day-of-month month day-of-week)";
    case CronLayout::optional: return "5 to 7 ([second] minute hour day-of-month month day-of-week [year])";
    case CronLayout::quartz: return "6 or 7 (second minute hour day-of-month month day-of-week [year])";
    case CronLayout::year_last: return "5 to 7 ([second] minute hour day-of-month month day-of-week [year])";
    case CronLayout::second_last: return "5 to 7 (minute hour day-of-month month day-of-week [second [year]])";
  }
  return "";
}

Result<FieldTexts> assign(const std::vector<std::string_view>& words, CronLayout layout, std::string_view text) {
  const std::size_t count = words.size();
  const std::size_t least = layout == CronLayout::six || layout == CronLayout::quartz ? 6 : 5;
  const std::size_t most = layout == CronLayout::five ? 5 : layout == CronLayout::six ? 6 : 7;
  if (count < least || count > most) {
    return fail(Errc::invalid_input, fmt::format("expression {}: {} field{} where there should be {}", in_quotes(text),
                                                 count, count == 1 ? "" : "s", layout_text(layout)));
  }
  const bool seconds_first =
      layout != CronLayout::second_last && (count == 7 || (count == 6 && layout != CronLayout::year_last));
  const std::size_t at = seconds_first ? 1 : 0;
  FieldTexts fields{
      .minute = words[at], .hour = words[at + 1], .dom = words[at + 2], .month = words[at + 3], .dow = words[at + 4]};
  if (seconds_first) fields.second = words[0];
  if (layout == CronLayout::second_last) {
    if (count >= 6) fields.second = words[5];
    if (count == 7) fields.year = words[6];
  } else if (count == 7 || (count == 6 && layout == CronLayout::year_last)) {
    fields.year = words.back();
  }
  return fields;
}

Result<ValueSet> parse_list(std::string_view text, const NumberField& field, const CronOptions& options) {
  ValueSet values{};
  for (const std::string_view element : split_list(text, ',')) {
    if (auto parsed = parse_values(element, field, options, values); !parsed) return std::unexpected(parsed.error());
  }
  return values;
}

Result<std::string_view> expand_macro(std::string_view macro) {
  struct Macro {
    std::string_view name, expression;
  };
  static constexpr Macro kMacros[] = {
      {"@every_second", "* * * * * *"}, {"@every_minute", "* * * * *"}, {"@hourly", "0 * * * *"},
      {"@daily", "0 0 * * *"},          {"@midnight", "0 0 * * *"},     {"@weekly", "0 0 * * 0"},
      {"@monthly", "0 0 1 * *"},        {"@yearly", "0 0 1 1 *"},       {"@annually", "0 0 1 1 *"},
  };
  for (const Macro& known : kMacros) {
    if (equal_ignoring_case(macro, known.name)) return known.expression;
  }
  return fail(Errc::invalid_input,
              fmt::format("expression {}: @hourly, @daily (@midnight), @weekly, @monthly, @yearly (@annually), "
                          "@every_minute, @every_second, or @every and a time such as 90s",
                          in_quotes(macro)));
}

// "TZ=Europe/Berlin …": the zone goes to `out`, the rest is returned.
Result<std::string_view> take_zone(std::string_view text, CompiledCron& out) {
  for (const std::string_view prefix : {"CRON_TZ=", "TZ="}) {
    if (!text.starts_with(prefix)) continue;
    const std::size_t space = std::min(text.find_first_of(" \t"), text.size());
    auto zone = TimeZone::find(text.substr(prefix.size(), space - prefix.size()));
    if (!zone) return std::unexpected(zone.error());
    out.zone = *zone;
    return trim(text.substr(space));
  }
  return text;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trim(text); !text.empty();) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
    words.push_back(text.substr(0, end));
    text = trim(text.substr(end));
  }
  return words;
}

std::vector<std::string_view> split_list(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::optional<int> parse_number(std::string_view text) noexcept {
  if (text.empty() || text.size() > 9 || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  int value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return value;
}

int month_of(std::string_view name, bool upper_case_only) noexcept {
  const int index = index_of_name(name, kMonthNames, upper_case_only);
  return index < 0 ? -1 : index + 1;
}

int weekday_of_name(std::string_view name, bool upper_case_only) noexcept {
  return index_of_name(name, kWeekdayNames, upper_case_only);
}

FieldSpec weekday_spec(WeekdayNumbers numbers) noexcept {
  switch (numbers) {
    case WeekdayNumbers::sunday_0_or_7: return {"day-of-week", 0, 7};
    case WeekdayNumbers::sunday_1: return {"day-of-week", 1, 7};
    case WeekdayNumbers::sunday_0:
    case WeekdayNumbers::monday_0: break;
  }
  return {"day-of-week", 0, 6};
}

// element = ("*" | value ["-" value]) ["/" step]; a value with a step and no end goes on to the highest.
Result<void> parse_values(std::string_view element, const NumberField& field, const CronOptions& options,
                          ValueSet& out) {
  const FieldSpec& spec = field.spec;
  const bool is_weekday = field.kind == NumberField::Kind::weekday;
  const auto bad = [&](std::string_view part, std::string_view why) { return bad_field(spec.name, part, why); };

  const std::size_t slash = element.find('/');
  const std::string_view range = element.substr(0, slash);
  const bool is_star = range == "*" || (range == "?" && options.question_mark == QuestionMark::anywhere);
  int first = spec.low, last = spec.high, step = 1;
  if (!is_star) {
    const std::size_t dash = range.find('-');
    const std::string_view first_text = range.substr(0, dash);
    const auto value = parse_value(first_text, field, options);
    if (!value) return bad(first_text.empty() ? element : first_text, expected(field));
    first = *value;
    if (dash != range.npos) {
      const std::string_view last_text = range.substr(dash + 1);
      const auto end = parse_value(last_text, field, options);
      if (!end)
        return bad(last_text.empty() || last_text.find('-') != last_text.npos ? element : last_text, expected(field));
      last = *end;
    } else if (slash == element.npos) {
      last = first;
    }
  }
  // Sunday as 7 begins a range as 0 does; and ends one as 7 does.
  if (is_weekday && options.weekday_numbers == WeekdayNumbers::sunday_0_or_7) {
    if (first == 7 && last < 7) first = 0;
    if (last == 0 && first > 0) last = 7;
  }
  const bool wraps = last < first;
  if (wraps && (!options.wrap_ranges || spec.name == kYearField.spec.name)) {
    return bad(range, "a range goes from the lower value to the higher");
  }
  // In a circle there is one value less than Sunday's two numbers say.
  const int circle = is_weekday ? 7 : spec.high - spec.low + 1;
  if (wraps) last += circle;
  if (slash != element.npos) {
    const std::string_view step_text = element.substr(slash + 1);
    const int most = options.step_limit == StepLimit::field   ? spec.high
                     : options.step_limit == StepLimit::range ? last - first
                                                              : 999'999'999;
    const auto given = parse_number(step_text);
    if (!given || *given < 1 || *given > most) {
      if (most < 1) return bad(element, "no step fits into this range");
      return bad(element, most == 999'999'999 ? "a step of at least 1" : fmt::format("a step of 1 to {}", most));
    }
    step = *given;
  }
  for (long long at = first; at <= last; at += step) {
    const int value = spec.low + static_cast<int>((at - spec.low) % (wraps ? circle : 1000));
    if (is_weekday) {
      set(out, weekday_from(value, options.weekday_numbers));
    } else {
      set(out, spec.name == kYearField.spec.name ? value - spec.low : value);
    }
  }
  return {};
}

Result<void> parse_crontab(std::string_view text, CompiledCron& out) {
  auto rest = take_zone(trim(text), out);
  if (!rest) return std::unexpected(rest.error());
  const CronOptions& options = out.options;
  CronLayout layout = options.layout;
  std::string_view expression = *rest;
  out.text = fmt::format("{}", fmt::join(split_words(text), " "));
  if (expression.starts_with('@')) {
    const auto expanded = expand_macro(expression);
    if (!expanded) return std::unexpected(expanded.error());
    expression = *expanded;
    layout = CronLayout::optional;
  }
  const auto fields = assign(split_words(expression), layout, expression);
  if (!fields) return std::unexpected(fields.error());

  const auto into = [&](std::string_view field_text, const NumberField& field, auto& target) -> Result<void> {
    const auto values = parse_list(field_text, field, options);
    if (!values) return std::unexpected(values.error());
    target = static_cast<std::remove_reference_t<decltype(target)>>((*values)[0]);
    return {};
  };
  if (auto done = into(fields->second, kSecondField, out.seconds); !done) return done;
  if (auto done = into(fields->minute, kMinuteField, out.minutes); !done) return done;
  if (auto done = into(fields->hour, kHourField, out.hours); !done) return done;
  // A macro's own `*` and 0 mean the same in every dialect.
  const bool is_macro = rest->starts_with('@');
  CronOptions day_options = options;
  if (is_macro) day_options.weekday_numbers = WeekdayNumbers::sunday_0_or_7;
  DayFields days(day_options, out);
  if (auto done = days.parse_dom(fields->dom); !done) return done;
  if (auto done = into(fields->month, kMonthField, out.months); !done) return done;
  if (auto done = days.parse_dow(fields->dow); !done) return done;
  const auto years = parse_list(fields->year, kYearField, options);
  if (!years) return std::unexpected(years.error());
  out.years = *years;
  if (options.dom_dow == DomDow::quartz && !is_macro && (fields->dom == "?") == (fields->dow == "?")) {
    return bad_field("day-of-week", fields->dow,
                     fmt::format("either this or day-of-month {} must be ?", in_quotes(fields->dom)));
  }
  out.follows_elapsed_time =
      fmt::format("{} {} {}", fields->second, fields->minute, fields->hour).find_first_of("*-/") != std::string::npos;
  return {};
}

}  // namespace argiope::detail

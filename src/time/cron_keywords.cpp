// APScheduler's keyword fields, in which `last`, `2nd wed` and ISO weeks can be said, and what its from_crontab makes
// of five fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/internal/printable.hpp"
#include "time/cron_parser.hpp"

namespace argiope::detail {
namespace {

// In APScheduler's order: what follows the last one given takes its least value, what precedes it any.
constexpr std::string_view kKeywords[] = {"year", "month", "day", "week", "day_of_week", "hour", "minute", "second"};
constexpr std::string_view kLeast[] = {"*", "1", "1", "*", "*", "0", "0", "0"};
constexpr std::size_t kKeywordCount = std::size(kKeywords);

int keyword_index(std::string_view name) noexcept {
  const auto found = std::ranges::find(kKeywords, name);
  return found == std::end(kKeywords) ? -1 : static_cast<int>(found - std::begin(kKeywords));
}

std::unexpected<Error> unknown_keyword(std::string_view name) {
  return bad_field("field", name, "year, month, day, week, day_of_week, hour, minute or second");
}

// "last", "3rd fri", "last fri". False: none of these.
Result<bool> parse_day_words(std::string_view element, DayRule& rule) {
  const auto words = split_words(element);
  if (words.empty()) return false;
  if (words.size() == 1) {
    if (!equal_ignoring_case(words[0], "last")) return false;
    rule.last |= 1;
    return true;
  }
  static constexpr std::string_view kOrdinals[] = {"1st", "2nd", "3rd", "4th", "5th"};
  const auto same = [&](std::string_view ordinal) { return equal_ignoring_case(ordinal, words[0]); };
  const auto ordinal = std::ranges::find_if(kOrdinals, same);
  const bool is_last = same("last");
  const int weekday = weekday_of_name(words[1]);
  if (words.size() > 2 || weekday < 0 || (!is_last && ordinal == std::end(kOrdinals))) {
    return bad_field("day", element, "1st to 5th or last, and sun to sat");
  }
  const auto bit = static_cast<std::uint8_t>(1 << weekday);
  if (is_last) {
    rule.last_weekdays |= bit;
  } else {
    rule.nth[1 + static_cast<std::size_t>(ordinal - std::begin(kOrdinals))] |= bit;
  }
  return true;
}

NumberField field_of(std::size_t keyword, const CronOptions& options) {
  FieldSpec weekday = weekday_spec(options.weekday_numbers);
  weekday.name = "day_of_week";
  const std::array<NumberField, kKeywordCount> fields{kYearField,
                                                      kMonthField,
                                                      NumberField{{"day", 1, 31}},
                                                      NumberField{{"week", 1, 53}},
                                                      NumberField{weekday, NumberField::Kind::weekday},
                                                      kHourField,
                                                      kMinuteField,
                                                      kSecondField};
  return fields[keyword];
}

void store(std::size_t keyword, const ValueSet& values, CompiledCron& out) {
  switch (keyword) {
    case 0: out.years = values; break;
    case 1: out.months = static_cast<std::uint16_t>(values[0]); break;
    case 2: out.dom.days = static_cast<std::uint32_t>(values[0]); break;
    case 3: out.weeks = values[0]; break;
    case 4: out.dow.weekdays = static_cast<std::uint8_t>(values[0]); break;
    case 5: out.hours = static_cast<std::uint32_t>(values[0]); break;
    case 6: out.minutes = values[0]; break;
    default: out.seconds = values[0]; break;
  }
}

}  // namespace

Result<void> parse_keywords(const CronFields& fields, CompiledCron& out) {
  std::array<std::string, kKeywordCount> texts;
  std::size_t given = 0;  // one past the last keyword given
  for (const auto& [name, value] : fields) {
    const int index = keyword_index(name);
    if (index < 0) return unknown_keyword(name);
    const std::string_view text = trim(value);
    if (text.empty()) return bad_field(name, value, "there is nothing in it");
    texts[static_cast<std::size_t>(index)] = text;
    given = std::max(given, static_cast<std::size_t>(index) + 1);
  }
  out.text.clear();
  for (std::size_t i = 0; i < kKeywordCount; ++i) {
    std::string& text = texts[i];
    if (!text.empty()) {
      const bool quoted = text.find(' ') != text.npos;
      out.text += fmt::format("{}{}={}{}{}", out.text.empty() ? "" : " ", kKeywords[i], quoted ? "'" : "", text,
                              quoted ? "'" : "");
    } else {
      text = i < given ? "*" : kLeast[i];
    }
    const NumberField field = field_of(i, out.options);
    ValueSet values{};
    for (const std::string_view element : split_list(text, ',')) {
      if (i == 2) {
        const auto taken = parse_day_words(element, out.dom);
        if (!taken) return std::unexpected(taken.error());
        if (*taken) continue;
      }
      if (auto parsed = parse_values(trim(element), field, out.options, values); !parsed) return parsed;
    }
    store(i, values, out);
  }
  out.dom.restricted = texts[2] != "*";
  out.dow.restricted = texts[4] != "*";
  if (texts[3] == "*") out.weeks = 0;
  out.dom.starred = texts[2].starts_with('*');
  out.dow.starred = texts[4].starts_with('*');
  out.follows_elapsed_time = (texts[5] + texts[6] + texts[7]).find_first_of("*-/") != std::string::npos;
  return {};
}

// `hour=5, day='last fri' minute=*/5`: a value in quotes, or up to the next keyword.
Result<CronFields> split_keywords(std::string_view text) {
  CronFields fields;
  const auto is_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  for (text = trim(text); !text.empty();) {
    const std::size_t equals = text.find('=');
    const std::string_view name = trim(text.substr(0, equals));
    if (equals == text.npos || keyword_index(name) < 0) return unknown_keyword(name);
    text = trim(text.substr(equals + 1));
    std::string_view value;
    if (!text.empty() && (text.front() == '\'' || text.front() == '"')) {
      const std::size_t end = text.find(text.front(), 1);
      if (end == text.npos) return bad_field(name, text, "the quotation mark is not closed");
      value = text.substr(1, end - 1);
      text.remove_prefix(end + 1);
    } else {
      // The name before the next "=" belongs to the next field.
      std::size_t end = text.find('=');
      if (end == text.npos) {
        end = text.size();
      } else {
        while (end > 0 && text[end - 1] == ' ') --end;
        while (end > 0 && is_name(text[end - 1])) --end;
      }
      value = text.substr(0, end);
      text.remove_prefix(end);
    }
    value = trim(value);
    while (value.ends_with(',')) value = trim(value.substr(0, value.size() - 1));
    if (std::ranges::any_of(fields, [&](const auto& field) { return field.first == name; })) {
      return bad_field(name, value, "the field is there twice");
    }
    fields.emplace_back(name, value);
    text = trim(text);
    if (text.starts_with(',')) text = trim(text.substr(1));
  }
  if (fields.empty()) return fail(Errc::invalid_input, "expression \"\": there is nothing in it");
  return fields;
}

}  // namespace argiope::detail

namespace argiope {

Result<CronFields> fields_of_crontab(std::string_view text) {
  using namespace detail;
  const auto words = split_words(text);
  if (words.size() != 5) {
    return fail(Errc::invalid_input,
                fmt::format("expression {}: {} field{} where there should be 5 (minute hour day-of-month month "
                            "day-of-week)",
                            in_quotes(trim(text)), words.size(), words.size() == 1 ? "" : "s"));
  }
  std::string weekdays(words[4]);
  if (weekdays != "*") {
    const CronOptions options;
    ValueSet values{};
    for (const std::string_view element : split_list(words[4], ',')) {
      const NumberField field{weekday_spec(options.weekday_numbers), NumberField::Kind::weekday};
      if (auto parsed = parse_values(element, field, options, values); !parsed) return std::unexpected(parsed.error());
    }
    // From Monday on, runs as ranges.
    const auto has = [&](int since_monday) { return (values[0] >> (since_monday + 1) % 7 & 1) != 0; };
    weekdays.clear();
    for (int day = 0; day < 7; ++day) {
      if (!has(day)) continue;
      int end = day;
      while (end < 6 && has(end + 1)) ++end;
      weekdays += fmt::format("{}{}", weekdays.empty() ? "" : ",", kWeekdayNames[(day + 1) % 7]);
      if (end > day) weekdays += fmt::format("-{}", kWeekdayNames[(end + 1) % 7]);
      day = end;
    }
  }
  CronFields fields{{"hour", std::string(words[1])},
                    {"minute", std::string(words[0])},
                    {"day", std::string(words[2])},
                    {"month", std::string(words[3])},
                    {"day_of_week", weekdays}};
  CronOptions named = CronOptions::of(CronDialect::apscheduler);
  if (auto valid = CronExpression::from_fields(fields, named); !valid) return std::unexpected(valid.error());
  return fields;
}

}  // namespace argiope

// systemd's calendar events, OnCalendar= (systemd.time(7)): [weekdays] [date] [time] [zone], or one word for all of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/internal/printable.hpp"
#include "time/calendar.hpp"
#include "time/cron_parser.hpp"

namespace argiope::detail {
namespace {

// start, start + repeat … up to stop; stop −1: up to the end of the unit. Of seconds, in microseconds.
struct Component {
  std::int64_t start;
  std::int64_t stop = -1;
  std::int64_t repeat = 0;
  friend auto operator<=>(const Component&, const Component&) = default;
};
// Empty: any value.
using Chain = std::vector<Component>;

constexpr std::int64_t kMicros = 1'000'000;

struct Calendar {
  std::uint8_t weekdays = 0x7f;
  Chain year, month, day, hour, minute, second;
  bool day_from_end = false;
  std::string zone;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool at_end() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_.front(); }
  std::string_view rest() const { return text_; }
  bool take(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  // A number, for seconds with up to six decimals that count (more are rounded); in microseconds then.
  std::optional<std::int64_t> number(bool with_fraction) {
    std::size_t size = 0;
    while (size < text_.size() && text_[size] >= '0' && text_[size] <= '9') ++size;
    const auto whole = parse_number(text_.substr(0, size));
    if (!whole) return std::nullopt;
    text_.remove_prefix(size);
    if (!with_fraction) return *whole;
    std::int64_t micros = *whole * kMicros;
    // Not the `..` of a range.
    if (peek() == '.' && text_.size() > 1 && text_[1] >= '0' && text_[1] <= '9') {
      text_.remove_prefix(1);
      std::int64_t unit = kMicros;
      bool rounded = false;
      while (peek() >= '0' && peek() <= '9') {
        unit /= 10;
        if (unit > 0) {
          micros += (peek() - '0') * unit;
        } else if (!rounded) {
          micros += peek() >= '5' ? 1 : 0;
          rounded = true;
        }
        text_.remove_prefix(1);
      }
    }
    return micros;
  }

  // "*" or a list of `start[..stop][/repeat]`.
  std::optional<Chain> chain(bool seconds) {
    Chain parts;
    if (take("*") && peek() != '/') return parts;
    if (peek() == '/') {  // */repeat counts from 0
      text_.remove_prefix(1);
      const auto repeat = number(seconds);
      if (!repeat || *repeat == 0) return std::nullopt;
      parts.push_back({0, -1, *repeat});
      if (!take(",")) return parts;
    }
    do {
      Component part{};
      const auto start = number(seconds);
      if (!start) return std::nullopt;
      part.start = *start;
      if (take("..")) {
        const auto stop = number(seconds);
        if (!stop) return std::nullopt;
        part.stop = *stop;
        part.repeat = seconds ? kMicros : 1;
      }
      if (take("/")) {
        const auto repeat = number(seconds);
        if (!repeat || *repeat == 0) return std::nullopt;
        part.repeat = *repeat;
      }
      parts.push_back(part);
    } while (take(","));
    return parts;
  }

 private:
  std::string_view text_;
};

int long_weekday(std::string_view name) {
  for (int day = 0; day < 7; ++day) {
    if (equal_ignoring_case(name, kLongWeekdayNames[day]) || equal_ignoring_case(name, kWeekdayNames[day])) return day;
  }
  return -1;
}

// "Mon,Wed..Fri"; nullopt when it is something else.
std::optional<std::uint8_t> parse_weekdays(std::string_view word) {
  std::uint8_t days = 0;
  if (word.ends_with(',')) word.remove_suffix(1);
  for (const std::string_view part : split_list(word, ',')) {
    std::size_t dots = part.find("..");
    std::size_t width = 2;
    if (dots == part.npos) {
      dots = part.find('-');
      width = 1;
    }
    const int first = long_weekday(part.substr(0, dots));
    const int last = dots == part.npos ? first : long_weekday(part.substr(dots + width));
    if (first < 0 || last < 0) return std::nullopt;
    // Monday is the first day of a week and Sunday the last.
    const auto since_monday = [](int day) { return (day + 6) % 7; };
    if (since_monday(last) < since_monday(first)) return std::nullopt;
    for (int day = since_monday(first); day <= since_monday(last); ++day) {
      days |= static_cast<std::uint8_t>(1 << (day + 1) % 7);
    }
  }
  return days;
}

std::string_view shorthand(std::string_view word) {
  struct Shorthand {
    std::string_view word, meaning;
  };
  static constexpr Shorthand kShorthands[] = {
      {"minutely", "*-*-* *:*:00"},
      {"hourly", "*-*-* *:00:00"},
      {"daily", "*-*-* 00:00:00"},
      {"weekly", "Mon *-*-* 00:00:00"},
      {"monthly", "*-*-01 00:00:00"},
      {"quarterly", "*-01,04,07,10-01 00:00:00"},
      {"semiannually", "*-01,07-01 00:00:00"},
      {"semi-annually", "*-01,07-01 00:00:00"},
      {"biannually", "*-01,07-01 00:00:00"},
      {"bi-annually", "*-01,07-01 00:00:00"},
      {"yearly", "*-01-01 00:00:00"},
      {"annually", "*-01-01 00:00:00"},
      {"anually", "*-01-01 00:00:00"},
  };
  for (const Shorthand& known : kShorthands) {
    if (equal_ignoring_case(word, known.word)) return known.meaning;
  }
  return word;
}

// A range ends with the last of its steps.
void normalize(Chain& chain) {
  for (Component& part : chain) {
    if (part.stop > part.start && part.repeat > 0) part.stop -= (part.stop - part.start) % part.repeat;
  }
}

Result<void> check(Chain& chain, std::string_view name, std::int64_t low, std::int64_t high, bool seconds = false,
                   bool from_end = false) {
  normalize(chain);
  const std::int64_t unit = seconds ? kMicros : 1;
  for (const Component& part : chain) {
    const auto told = [&](std::int64_t value) {
      return seconds ? fmt::format("{}", static_cast<double>(value) / kMicros) : fmt::format("{}", value);
    };
    const auto range = fmt::format("{} to {}", low, seconds ? 59 : high);
    if (part.start < low || part.start > high) return bad_field(name, told(part.start), range);
    if (part.stop >= 0 && (part.stop > high || part.stop < part.start)) {
      return bad_field(name, told(part.stop), range + ", and not below the range's begin");
    }
    // Days from the end are counted down to the last one.
    const bool no_room = part.stop >= 0 ? part.start + part.repeat > part.stop && (part.repeat > unit || seconds)
                         : from_end     ? part.start - part.repeat < low
                                        : part.repeat > 0 && part.start + part.repeat > high && name != "day";
    if (part.repeat > high - low || no_room) {
      return bad_field(name, told(part.repeat), "a step this wide never comes");
    }
  }
  return {};
}

Result<void> parse_date(std::string_view word, Calendar& out) {
  const auto bad = [&] { return bad_field("date", word, "[year-]month-day, or ~ before a day counted from the last"); };
  Reader reader(word);
  std::vector<Chain> parts;
  for (;;) {
    auto part = reader.chain(false);
    if (!part || parts.size() == 3) return bad();
    parts.push_back(std::move(*part));
    if (reader.at_end()) break;
    if (out.day_from_end) return bad();  // ~ stands before the day only
    out.day_from_end = reader.peek() == '~';
    if (!reader.take("~") && !reader.take("-")) return bad();
  }
  if (parts.size() < 2) return bad();
  if (parts.size() == 3) out.year = parts[0];
  out.month = parts[parts.size() - 2];
  out.day = parts.back();
  if (out.day.empty()) out.day_from_end = false;
  const auto century = [](std::int64_t& year) {
    if (year >= 0 && year < 70) {
      year += 2000;
    } else if (year >= 70 && year < 100) {
      year += 1900;
    }
  };
  for (Component& part : out.year) {
    century(part.start);
    century(part.stop);
  }
  if (auto done = check(out.year, "year", CronExpression::kFirstYear, CronExpression::kLastYear); !done) return done;
  if (auto done = check(out.month, "month", 1, 12); !done) return done;
  // Of February there are only 28 days to count back for sure.
  return check(out.day, "day", 1, out.day_from_end ? 28 : 31, false, out.day_from_end);
}

Result<void> parse_time(std::string_view word, Calendar& out) {
  const auto bad = [&] { return bad_field("time", word, "hour:minute[:second]"); };
  Reader reader(word);
  auto hour = reader.chain(false);
  if (!hour || !reader.take(":")) return bad();
  auto minute = reader.chain(false);
  if (!minute) return bad();
  Chain second{{0}};
  if (reader.take(":")) {
    auto given = reader.chain(true);
    if (!given) return bad();
    second = std::move(*given);
  }
  if (!reader.at_end()) return bad();
  out.hour = std::move(*hour);
  out.minute = std::move(*minute);
  out.second = std::move(second);
  if (auto done = check(out.hour, "hour", 0, 23); !done) return done;
  if (auto done = check(out.minute, "minute", 0, 59); !done) return done;
  return check(out.second, "second", 0, 60 * kMicros - 1, true);
}

// "@86400": seconds since 1970-01-01T00:00Z, as a date and time of UTC.
Result<void> parse_timestamp(std::string_view word, Calendar& out) {
  const auto seconds = word.size() <= 12 ? [&]() -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    for (const char c : word.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return word.size() > 1 ? std::optional(value) : std::nullopt;
  }()
      : std::nullopt;
  if (!seconds || *seconds >= std::int64_t{day_number(CronExpression::kLastYear + 1, 1, 1)} * 86400) {
    return bad_field("time", word, "@ and seconds since 1970, up to the year 2199");
  }
  const Date date = date_of(static_cast<int>(*seconds / 86400));
  out.year = {{date.year}};
  out.month = {{date.month}};
  out.day = {{date.day}};
  out.hour = {{*seconds % 86400 / 3600}};
  out.minute = {{*seconds % 3600 / 60}};
  out.second = {{*seconds % 60 * kMicros}};
  out.zone = "UTC";
  return {};
}

Result<Calendar> parse_calendar(std::string_view text) {
  Calendar out;
  auto words = split_words(text);
  if (words.empty() || text.front() == ' ') {
    return fail(Errc::invalid_input, fmt::format("expression {}: [weekdays] [date] [time] [zone]", in_quotes(text)));
  }
  // The zone is a last word that names one.
  if (words.size() > 1) {
    const bool is_utc = equal_ignoring_case(words.back(), "UTC");
    if (is_utc || TimeZone::find(words.back())) {
      out.zone = is_utc ? "UTC" : std::string(words.back());
      words.pop_back();
    }
  }
  std::string meaning;
  if (words.size() == 1) {
    meaning = shorthand(words[0]);
    words = split_words(meaning);
  }
  std::size_t at = 0;
  bool has_any = false;
  if (const auto days = parse_weekdays(words[at])) {
    out.weekdays = *days;
    has_any = true;
    ++at;
  } else if ((words[at].front() | 0x20) >= 'a' && (words[at].front() | 0x20) <= 'z') {
    return bad_field("weekday", words[at], "Mon to Sun, lists, ranges such as Mon..Fri; or hourly, daily, weekly …");
  }
  out.hour = out.minute = out.second = {{0}};
  if (at < words.size() && words[at].starts_with('@')) {
    if (auto done = parse_timestamp(words[at], out); !done) return std::unexpected(done.error());
    ++at;
    has_any = true;
  }
  if (at < words.size() && words[at].find(':') == std::string_view::npos) {
    if (auto done = parse_date(words[at], out); !done) return std::unexpected(done.error());
    ++at;
    has_any = true;
  }
  if (at < words.size()) {
    if (auto done = parse_time(words[at], out); !done) return std::unexpected(done.error());
    ++at;
    has_any = true;
  }
  if (at < words.size()) return bad_field("expression", words[at], "neither a zone nor in its place");
  if (!has_any) return fail(Errc::invalid_input, fmt::format("expression {}: there is nothing in it", in_quotes(text)));
  for (Chain* chain : {&out.year, &out.month, &out.day, &out.hour, &out.minute, &out.second}) {
    std::ranges::sort(*chain);
    const auto copies = std::ranges::unique(*chain);
    chain->erase(copies.begin(), copies.end());
  }
  const auto is_star = [](const Component& part) { return part == Component{0, -1, kMicros}; };
  if (std::ranges::any_of(out.second, is_star)) out.second.clear();
  return out;
}

std::string format_chain(const Chain& chain, int width, bool seconds = false) {
  if (chain.empty()) return "*";
  const auto value = [&](std::int64_t number) {
    if (!seconds) return fmt::format("{:0{}}", number, width);
    const std::int64_t micros = number % kMicros;
    return micros == 0 ? fmt::format("{:02}", number / kMicros) : fmt::format("{:02}.{:06}", number / kMicros, micros);
  };
  const auto step = [&](std::int64_t number) {
    if (!seconds) return fmt::format("{}", number);
    const std::int64_t micros = number % kMicros;
    return micros == 0 ? fmt::format("{}", number / kMicros) : fmt::format("{}.{:06}", number / kMicros, micros);
  };
  std::string out;
  for (const Component& part : chain) {
    if (!out.empty()) out += ',';
    out += value(part.start);
    if (part.stop >= 0) out += ".." + value(part.stop);
    if (part.repeat > 0 && !(part.stop >= 0 && part.repeat == (seconds ? kMicros : 1))) out += "/" + step(part.repeat);
  }
  return out;
}

std::string format_calendar(const Calendar& calendar) {
  std::string out;
  if (calendar.weekdays != 0x7f) {
    const auto has = [&](int since_monday) { return (calendar.weekdays >> (since_monday + 1) % 7 & 1) != 0; };
    const auto name = [](int since_monday) {
      std::string text(kWeekdayNames[(since_monday + 1) % 7]);
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
      return text;
    };
    for (int day = 0; day < 7; ++day) {
      if (!has(day)) continue;
      int end = day;
      while (end < 6 && has(end + 1)) ++end;
      if (!out.empty()) out += ',';
      out += name(day);
      if (end > day) out += (end > day + 1 ? ".." : ",") + name(end);
      day = end;
    }
    out += ' ';
  }
  out += fmt::format("{}-{}{}{} {}:{}:{}", format_chain(calendar.year, 4), format_chain(calendar.month, 2),
                     calendar.day_from_end ? '~' : '-', format_chain(calendar.day, 2), format_chain(calendar.hour, 2),
                     format_chain(calendar.minute, 2), format_chain(calendar.second, 2, true));
  return calendar.zone.empty() ? out : out + " " + calendar.zone;
}

template <class Visit>
void for_each_value(const Chain& chain, std::int64_t low, std::int64_t high, Visit visit) {
  if (chain.empty()) {
    for (std::int64_t value = low; value <= high; ++value) visit(value);
  }
  for (const Component& part : chain) {
    const std::int64_t stop = part.stop >= 0 ? part.stop : part.repeat > 0 ? high : part.start;
    for (std::int64_t value = part.start; value <= stop; value += std::max<std::int64_t>(part.repeat, 1)) visit(value);
  }
}

}  // namespace

Result<void> parse_on_calendar(std::string_view text, CompiledCron& out) {
  const auto calendar = parse_calendar(text);
  if (!calendar) return std::unexpected(calendar.error());
  out.text = format_calendar(*calendar);
  if (!calendar->zone.empty()) {
    auto zone = TimeZone::find(calendar->zone);
    if (!zone) return std::unexpected(zone.error());
    out.zone = *zone;
  }
  for_each_value(calendar->year, CronExpression::kFirstYear, CronExpression::kLastYear,
                 [&](std::int64_t year) { out.add_year(static_cast<int>(year)); });
  for_each_value(calendar->month, 1, 12,
                 [&](std::int64_t month) { out.months |= static_cast<std::uint16_t>(1 << month); });
  out.dom.restricted = !calendar->day.empty();
  if (calendar->day_from_end) {
    // The first value is the farther one from the end here: ~7/1 is the last seven days, ~2..5 the second to fifth
    // last.
    for (const Component& part : calendar->day) {
      const std::int64_t step = std::max<std::int64_t>(part.repeat, 1);
      if (part.stop < 0 && part.repeat > 0) {
        for (std::int64_t day = part.start; day >= 1; day -= step) out.dom.last |= 1u << (day - 1);
      } else {
        const std::int64_t farthest = part.stop < 0 ? part.start : part.stop;
        for (std::int64_t day = farthest; day >= part.start; day -= step) out.dom.last |= 1u << (day - 1);
      }
    }
  } else {
    for_each_value(calendar->day, 1, 31, [&](std::int64_t day) { out.dom.days |= 1u << day; });
  }
  out.dow.restricted = calendar->weekdays != 0x7f;
  out.dow.weekdays = calendar->weekdays;
  for_each_value(calendar->hour, 0, 23, [&](std::int64_t hour) { out.hours |= 1u << hour; });
  for_each_value(calendar->minute, 0, 59, [&](std::int64_t minute) { out.minutes |= std::uint64_t{1} << minute; });
  const bool whole = std::ranges::all_of(
      calendar->second, [](const Component& part) { return part.start % kMicros == 0 && part.repeat % kMicros == 0; });
  if (whole) {
    out.seconds = 0;
    Chain seconds = calendar->second;
    for (Component& part : seconds) {
      part = {part.start / kMicros, part.stop < 0 ? -1 : part.stop / kMicros, part.repeat / kMicros};
    }
    for_each_value(seconds, 0, 59, [&](std::int64_t second) { out.seconds |= std::uint64_t{1} << second; });
  } else {
    for (const Component& part : calendar->second) {
      const std::int64_t stop = part.stop >= 0 ? part.stop : part.repeat > 0 ? 60 * kMicros - 1 : part.start;
      out.fractions.push_back({std::chrono::microseconds{part.start}, std::chrono::microseconds{stop},
                               std::chrono::microseconds{part.repeat}});
    }
  }
  const auto varies = [](const Chain& chain) {
    return chain.empty() || std::ranges::any_of(chain, [](const Component& part) { return part.repeat > 0; });
  };
  out.follows_elapsed_time = varies(calendar->hour) || varies(calendar->minute) || varies(calendar->second);
  return {};
}

}  // namespace argiope::detail

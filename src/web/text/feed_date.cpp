#include "web/text/internal/feed_date.hpp"

#include <algorithm>
#include <chrono>

#include "base/internal/date_text.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using std::chrono::minutes;
using std::chrono::sys_days;

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2261;  // the last whole one that a WallTime holds

struct Clock24 {
  int hour = 0, minute = 0, second = 0;
  Duration fraction{};
  bool is_sound() const noexcept {
    return hour >= 0 && hour <= 24 && minute >= 0 && minute <= 59 && second >= 0 && second <= 60;
  }
};

std::optional<sys_days> day_of(int year, int month, int day) noexcept {
  using namespace std::chrono;
  if (year < kFirstYear || year > kLastYear || month < 1 || day < 1) return std::nullopt;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  return date.ok() ? std::optional(sys_days{date}) : std::nullopt;
}

std::optional<FeedDate> moment_of(sys_days day, const Clock24& time, minutes offset) noexcept {
  if (!time.is_sound()) return std::nullopt;
  const WallTime at = WallTime{day} + std::chrono::hours{time.hour} + minutes{time.minute - offset.count()} +
                      std::chrono::seconds{time.second} + time.fraction;
  if (at < WallTime{}) return std::nullopt;
  return FeedDate{at, FeedDate::Precision::moment};
}

// "hh:mm" or "hh:mm:ss".
bool read_time(DateText& text, Clock24& time) noexcept {
  time.hour = text.number(1, 2);
  text.expect(":");
  time.minute = text.number(2, 2);
  if (text.take(':')) time.second = text.number(2, 2);
  return text.is_good();
}

std::string_view take_word(DateText& text) noexcept {
  const std::string_view rest = text.rest();
  const auto* const end = std::ranges::find_if_not(rest, is_alpha);
  const std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  text.skip(word.size());
  return word;
}

void skip_space(DateText& text) noexcept {
  while (text.take_any(" \t\n\f\r-")) {
  }
}

minutes zone_of(std::string_view name) noexcept {
  struct Zone {
    std::string_view name;
    int hours;
  };
  constexpr Zone kZones[] = {{"est", -5}, {"edt", -4}, {"cst", -6}, {"cdt", -5}, {"mst", -7},
                             {"mdt", -6}, {"pst", -8}, {"pdt", -7}, {"cet", 1},  {"cest", 2}};
  for (const Zone& zone : kZones) {
    if (equals_lower(name, zone.name)) return minutes{zone.hours * 60};
  }
  return minutes{0};
}

}  // namespace

std::optional<FeedDate> parse_w3c_date(std::string_view written) noexcept {
  using Precision = FeedDate::Precision;
  DateText text(trim_space(written));
  const int year = text.number(4, 4);
  int month = 1, day = 1;
  Precision precision = Precision::year;
  if (text.take('-')) {
    month = text.number(2, 2);
    precision = Precision::month;
    if (text.take('-')) {
      day = text.number(2, 2);
      precision = Precision::day;
    }
  }
  const auto date = day_of(year, month, day);
  if (!date || !text.is_good()) return std::nullopt;
  if (text.is_over()) return FeedDate{*date, precision};
  if (precision != Precision::day || !text.take_any("Tt ")) return std::nullopt;
  Clock24 time;
  if (!read_time(text, time)) return std::nullopt;
  if (text.take('.')) time.fraction = text.fraction();
  text.take(' ');
  minutes offset{0};
  if (!text.is_over() && !text.take_any("Zz")) {
    const auto east = text.offset(DateText::Offset::in_hours);
    if (!east) return std::nullopt;
    offset = *east;
  }
  return text.is_over() ? moment_of(*date, time, offset) : std::nullopt;
}

std::optional<FeedDate> parse_rfc822_date(std::string_view written) noexcept {
  DateText text(trim_space(written));
  if (!take_word(text).empty()) text.take(',');
  skip_space(text);
  const int day = text.number(1, 2);
  skip_space(text);
  const int month = month_named(take_word(text));
  skip_space(text);
  int year = text.number(2, 4);
  if (month == 0 || !text.is_good()) return std::nullopt;
  if (year < 100) year += year < 70 ? 2000 : 1900;
  const auto date = day_of(year, month, day);
  if (!date) return std::nullopt;
  skip_space(text);
  if (text.is_over()) return FeedDate{*date, FeedDate::Precision::day};
  Clock24 time;
  if (!read_time(text, time)) return std::nullopt;
  while (text.take(' ')) {
  }
  const auto offset = text.offset(DateText::Offset::in_hours);
  return moment_of(*date, time, offset ? *offset : zone_of(take_word(text)));
}

std::optional<FeedDate> parse_feed_date(std::string_view text) noexcept {
  const auto date = parse_w3c_date(text);
  return date ? date : parse_rfc822_date(text);
}

WallTime latest_of(const FeedDate& date) noexcept {
  if (date.precision != FeedDate::Precision::day) return date.at;
  return date.at + std::chrono::days{1} - std::chrono::milliseconds{1};
}

}  // namespace argiope

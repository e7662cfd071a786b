#include "web/text/internal/feed_date.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using std::chrono::minutes;
using std::chrono::sys_days;

constexpr int kFirstYear = 1970;
constexpr int kLastYear = 2261;  // the last whole one that a WallTime holds

// A text, number by number.
class DateText {
 public:
  explicit DateText(std::string_view text) noexcept : rest_(trim_space(text)) {}

  bool is_over() const noexcept { return rest_.empty(); }
  bool take(char c) noexcept {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // A number of `least` to `most` digits; -1: there is none.
  int number(std::size_t least, std::size_t most) noexcept {
    std::size_t count = 0;
    int value = 0;
    while (count < rest_.size() && is_digit(rest_[count])) {
      if (++count > most) return -1;
      value = value * 10 + (rest_[count - 1] - '0');
    }
    if (count < least) return -1;
    rest_.remove_prefix(count);
    return value;
  }
  std::string_view word() noexcept {
    std::size_t count = 0;
    while (count < rest_.size() && is_alpha(rest_[count])) ++count;
    const std::string_view found = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return found;
  }
  void skip_space() noexcept {
    while (!rest_.empty() && (is_space(rest_.front()) || rest_.front() == '-')) rest_.remove_prefix(1);
  }
  // Digits of which nothing but their being there matters.
  bool fraction(Duration& out) noexcept {
    Duration unit = std::chrono::milliseconds{100};
    std::size_t count = 0;
    for (; count < rest_.size() && is_digit(rest_[count]); ++count, unit /= 10) out += unit * (rest_[count] - '0');
    rest_.remove_prefix(count);
    return count > 0;
  }
  // "+01:00", "-0730", "+01"; nullopt: it is none.
  std::optional<minutes> offset() noexcept {
    const bool west = !rest_.empty() && rest_.front() == '-';
    if (!west && (rest_.empty() || rest_.front() != '+')) return std::nullopt;
    rest_.remove_prefix(1);
    std::size_t digits = 0;
    while (digits < rest_.size() && is_digit(rest_[digits])) ++digits;
    if (digits != 2 && digits != 4) return std::nullopt;
    int value = number(digits, digits);
    int rest = 0;
    if (digits == 4) {
      rest = value % 100;
      value /= 100;
    } else if (take(':')) {
      rest = number(2, 2);
    }
    if (rest < 0 || rest > 59 || value > 23) return std::nullopt;
    const minutes span{value * 60 + rest};
    return west ? -span : span;
  }

 private:
  std::string_view rest_;
};

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
  if (time.hour < 0 || !text.take(':')) return false;
  time.minute = text.number(2, 2);
  if (time.minute < 0) return false;
  if (text.take(':')) time.second = text.number(2, 2);
  return time.second >= 0;
}

// From January; 0: none.
int month_of(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                        "jul", "aug", "sep", "oct", "nov", "dec"};
  if (name.size() < 3) return 0;
  const auto found =
      std::ranges::find_if(kMonths, [&](std::string_view month) { return starts_with_lower(name, month); });
  return found == kMonths.end() ? 0 : static_cast<int>(found - kMonths.begin()) + 1;
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
  DateText text(written);
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
  if (!date) return std::nullopt;
  if (text.is_over()) return FeedDate{*date, precision};
  if (precision != Precision::day || !(text.take('T') || text.take('t') || text.take(' '))) return std::nullopt;
  Clock24 time;
  if (!read_time(text, time)) return std::nullopt;
  if (text.take('.') && !text.fraction(time.fraction)) return std::nullopt;
  text.take(' ');
  minutes offset{0};
  if (!text.is_over() && !text.take('Z') && !text.take('z')) {
    const auto east = text.offset();
    if (!east) return std::nullopt;
    offset = *east;
  }
  return text.is_over() ? moment_of(*date, time, offset) : std::nullopt;
}

std::optional<FeedDate> parse_rfc822_date(std::string_view written) noexcept {
  DateText text(written);
  if (!text.word().empty()) text.take(',');
  text.skip_space();
  const int day = text.number(1, 2);
  text.skip_space();
  const int month = month_of(text.word());
  text.skip_space();
  int year = text.number(2, 4);
  if (day < 0 || month == 0 || year < 0) return std::nullopt;
  if (year < 100) year += year < 70 ? 2000 : 1900;
  const auto date = day_of(year, month, day);
  if (!date) return std::nullopt;
  text.skip_space();
  if (text.is_over()) return FeedDate{*date, FeedDate::Precision::day};
  Clock24 time;
  if (!read_time(text, time)) return std::nullopt;
  while (text.take(' ')) {
  }
  const auto offset = text.offset();
  return moment_of(*date, time, offset ? *offset : zone_of(text.word()));
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

// DateText: dates and times from the front of a text, part by part: what the readers of RFC 3339, HTTP's, feeds' and
// cookies' dates share. Which parts there are, and in which order, is theirs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace argiope {

inline constexpr std::array<std::string_view, 12> kMonthNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// 1 to 12 where `text` begins with the name of a month, in letters of any case; else 0.
constexpr int month_named(std::string_view text) noexcept {
  const auto is_it = [text](std::string_view name) {
    return std::ranges::equal(text.substr(0, name.size()), name,
                              [](char a, char b) { return (a | 0x20) == (b | 0x20); });
  };
  const auto* const found = std::ranges::find_if(kMonthNames, is_it);
  return found == kMonthNames.end() ? 0 : static_cast<int>(found - kMonthNames.begin()) + 1;
}

// After a mistake it takes no more and is_good() is false. What may be there or not is no mistake.
class DateText {
 public:
  explicit constexpr DateText(std::string_view text) noexcept : rest_(text) {}

  constexpr std::string_view rest() const noexcept { return rest_; }
  constexpr bool is_good() const noexcept { return is_good_; }
  constexpr bool is_over() const noexcept { return is_good_ && rest_.empty(); }
  constexpr bool next_is_digit() const noexcept { return is_good_ && count_digits(1) == 1; }

  // The character, where it is there.
  constexpr bool take(char c) noexcept {
    if (!is_good_ || !rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  constexpr bool take_any(std::string_view of) noexcept {
    return !rest_.empty() && of.contains(rest_[0]) && take(rest_[0]);
  }
  // One of these has to be there.
  constexpr void expect_any(std::string_view of) noexcept { is_good_ = take_any(of); }
  constexpr void expect(std::string_view text) noexcept {
    is_good_ = is_good_ && rest_.starts_with(text);
    if (is_good_) rest_.remove_prefix(text.size());
  }
  constexpr void skip(std::size_t count) noexcept { rest_.remove_prefix(std::min(count, rest_.size())); }

  // A number in just so many digits, whatever follows.
  constexpr int digits(std::size_t count) noexcept {
    if (!is_good_ || count_digits(count) < count) return fail();
    int number = 0;
    for (; count > 0; --count, rest_.remove_prefix(1)) number = number * 10 + (rest_.front() - '0');
    return number;
  }
  // A number of so many digits and no more.
  constexpr int number(std::size_t least, std::size_t most) noexcept {
    const std::size_t count = count_digits(most + 1);
    return count >= least && count <= most ? digits(count) : fail();
  }
  // Digits behind a point, at least one; those below a nanosecond are dropped.
  constexpr std::chrono::nanoseconds fraction() noexcept {
    if (!next_is_digit()) fail();
    std::int64_t sum = 0;
    for (std::int64_t unit = 100'000'000; next_is_digit(); unit /= 10) sum += unit * digits(1);
    return std::chrono::nanoseconds{sum};
  }

  enum class Offset : std::uint8_t { with_colon, without_colon, in_hours };  // each with those before it
  // "+01:00", "-0730", "+01", as far as `form` goes; what is none is no mistake.
  constexpr std::optional<std::chrono::minutes> offset(Offset form) noexcept {
    const bool is_west = rest_.starts_with('-');
    if (!take_any("+-")) return std::nullopt;
    const int hours = digits(2);
    int minutes = 0;
    if (take(':') || (form != Offset::with_colon && (form != Offset::in_hours || next_is_digit()))) {
      minutes = digits(2);
    } else if (form != Offset::in_hours) {
      fail();
    }
    if (!is_good_ || hours > 23 || minutes > 59 || next_is_digit()) {
      is_good_ = true;
      return std::nullopt;
    }
    return std::chrono::minutes{(hours * 60 + minutes) * (is_west ? -1 : 1)};
  }

 private:
  // No more than `most`: what follows may be long, and each part is looked at once.
  constexpr std::size_t count_digits(std::size_t most) const noexcept {
    const std::string_view next = rest_.substr(0, most);
    return std::min(next.find_first_not_of("0123456789"), next.size());
  }
  constexpr int fail() noexcept {
    is_good_ = false;
    return 0;
  }

  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace argiope

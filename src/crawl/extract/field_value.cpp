#include "crawl/extract/field_value.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "crawl/extract/number_signs.hpp"
#include "crawl/extract/numerals.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostDigits = 40;

// A separator that may stand between the digits of one number.
struct Separator {
  char kind;  // '.', ',', '\'' or ' '
  std::size_t length;
};
std::optional<Separator> separator_at(std::string_view text) {
  struct Spelled {
    std::string_view bytes;
    char kind;
  };
  // The raised point; apostrophes, and the accents and the prime that take their place.
  constexpr Spelled kSpelled[] = {{".", '.'},  {"·", '.'},  {",", ','},  {"'", '\''}, {"’", '\''}, {"‘", '\''},
                                  {"ʼ", '\''}, {"´", '\''}, {"`", '\''}, {"′", '\''}, {"＇", '\''}};
  if (const std::size_t space = number_space_at(text); space > 0) return Separator{' ', space};
  for (const Spelled& spelled : kSpelled) {
    if (text.starts_with(spelled.bytes)) return Separator{spelled.kind, spelled.bytes.size()};
  }
  return std::nullopt;
}

std::size_t digits_at(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

// A number's groups of digits, and what separates them.
struct Groups {
  std::vector<std::string_view> digits;
  std::string separators;   // one kind between two groups
  std::size_t length = 0;   // in bytes
  bool goes_on = false;     // behind the last separator's kind come digits that are no group of thousands
  bool is_typeset = false;  // with other spaces than those of a keyboard
  bool has_dash = false;    // "1.299,-": a comma, point or colon and a dash in the place of a fraction
};

// From the first digit on.
Groups groups_at(std::string_view text) {
  Groups groups;
  while (true) {
    const std::size_t count = digits_at(text.substr(groups.length));
    groups.digits.push_back(text.substr(groups.length, count));
    groups.length += count;
    const auto separator = separator_at(text.substr(groups.length));
    if (!separator) {
      // "1.299:-", as in Sweden
      groups.has_dash = text.substr(groups.length).starts_with(':') && begins_with_dash(text.substr(groups.length + 1));
      return groups;
    }
    const std::size_t next = digits_at(text.substr(groups.length + separator->length));
    // A space or an apostrophe is a part of a number only before three digits.
    const bool joins = separator->kind == '.' || separator->kind == ',' ? next > 0 : next == 3 && count <= 3;
    if (!joins) {
      groups.goes_on = next > 0 && groups.separators.ends_with(separator->kind);
      const bool is_point = separator->kind == ',' || separator->kind == '.';
      groups.has_dash = is_point && begins_with_dash(text.substr(groups.length + separator->length));
      return groups;
    }
    groups.separators += separator->kind;
    groups.is_typeset = groups.is_typeset || (separator->kind == ' ' && separator->length > 1);
    groups.length += separator->length;
  }
}

// Whether the first `count` groups are a whole number: one alone, or thousands behind up to three digits, with one kind
// of separator between all. In India all but the last have two.
bool are_whole(const Groups& groups, std::size_t count) {
  if (count < 2) return true;
  const std::string_view separators = std::string_view(groups.separators).substr(0, count - 1);
  const auto& digits = groups.digits;
  if (digits[0].size() > 3 || digits[0][0] == '0' || digits[count - 1].size() != 3) return false;
  if (separators.find_first_not_of(separators[0]) != std::string_view::npos) return false;
  const auto middle_has = [&](std::size_t size) {
    return std::all_of(digits.begin() + 1, digits.begin() + static_cast<std::ptrdiff_t>(count - 1),
                       [size](std::string_view group) { return group.size() == size; });
  };
  return middle_has(3) || (separators[0] == ',' && digits[0].size() < 3 && middle_has(2));
}

// "128 256 512": three numbers or more of three digits, each larger than the one before, or each smaller.
bool is_list(const Groups& groups) {
  const auto& digits = groups.digits;
  const bool has_spaces = groups.separators.find_first_not_of(' ') == std::string::npos && !groups.is_typeset;
  const auto is_one = [](std::string_view group) { return group.size() == 3 && group[0] != '0'; };
  if (digits.size() < 3 || !has_spaces || !std::ranges::all_of(digits, is_one)) return false;
  return std::ranges::is_sorted(digits, std::less_equal{}) || std::ranges::is_sorted(digits, std::greater_equal{});
}

// How many groups are before the decimal point, where all of them make one number. nullopt: they make none, as those of
// a date, an address or a list.
std::optional<std::size_t> whole_groups(const Groups& groups, char decimal) {
  const std::size_t count = groups.digits.size();
  const std::string& separators = groups.separators;
  if (groups.goes_on) return std::nullopt;
  if (count == 1) return count;
  const char last = separators.back();
  const bool is_point = decimal == '\0' ? last == '.' || last == ',' : last == decimal;
  const bool is_thousands = decimal == '\0' ? count > 2 || last != '.' || groups.has_dash : last != decimal;
  if (is_thousands && are_whole(groups, count)) return count;
  const bool is_alone = separators.find(last) == separators.size() - 1;
  return is_point && is_alone && are_whole(groups, count - 1) ? std::optional(count - 1) : std::nullopt;
}

std::string_view without_zeros(std::string_view digits) {
  const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  return digits.substr(std::min(first, digits.empty() ? 0 : digits.size() - 1));
}

// "e3", "E-5" right behind a number.
std::string_view exponent_at(std::string_view text) {
  if (text.empty() || to_lower(text[0]) != 'e') return {};
  const std::size_t sign = text.size() > 1 && (text[1] == '+' || text[1] == '-') ? 1 : 0;
  const std::size_t digits = digits_at(text.substr(1 + sign));
  const std::size_t length = 1 + sign + digits;
  const bool ends = length == text.size() || !is_alnum(text[length]);
  return digits > 0 && digits <= 3 && ends ? text.substr(0, length) : std::string_view{};
}

// "1.5e3" becomes "1500". False: it has too many digits to be whole.
bool without_exponent(std::string& number) {
  const std::size_t mark = number.find_first_of("eE");
  if (mark == std::string::npos) return true;
  int by = 0;
  const char* const digits = number.data() + mark + (number[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, number.data() + number.size(), by);
  number.resize(mark);
  if (by < -static_cast<int>(kMostDigits) || by > static_cast<int>(kMostDigits)) return false;
  const std::size_t sign = number[0] == '-' ? 1 : 0;
  std::size_t point = std::min(number.find('.'), number.size());
  if (point < number.size()) number.erase(point, 1);
  const auto missing = static_cast<std::ptrdiff_t>(sign) - (static_cast<std::ptrdiff_t>(point) + by) + 1;
  if (missing > 0) {
    number.insert(sign, static_cast<std::size_t>(missing), '0');
    point += static_cast<std::size_t>(missing);
  }
  const auto at = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(point) + by);
  if (at > number.size()) number.append(at - number.size(), '0');
  if (at < number.size()) number.insert(at, 1, '.');
  return true;
}

// Of a text in ASCII's numerals.
std::optional<std::string> first_number(std::string_view text, char decimal) {
  const std::size_t first = static_cast<std::size_t>(std::ranges::find_if(text, is_digit) - text.begin());
  if (first == text.size()) return std::nullopt;
  // ".5", ",5" without a digit before the point; the point of "S/.5" is of the currency's sign
  const bool has_point = first > 0 && (text[first - 1] == '.' || text[first - 1] == ',');
  const bool begins_with_point = has_point && (first == 1 || (!is_alnum(text[first - 2]) && text[first - 2] != '/'));
  Groups groups = groups_at(text.substr(first));
  const auto whole_count = whole_groups(groups, decimal);
  if (!whole_count || (begins_with_point && groups.digits.size() > 1)) return std::nullopt;
  const std::string_view before = text.substr(0, begins_with_point ? first - 1 : first);
  std::string_view behind = text.substr(first + groups.length);
  if (groups.digits.size() == *whole_count && begins_with_raised_cents(before, behind)) {
    groups.digits.push_back(behind.substr(1, 2));
    behind.remove_prefix(3);
  }
  if (is_list(groups) || is_of_another_size(before, text.substr(first, groups.length), behind)) return std::nullopt;
  std::string whole, fraction;
  for (std::size_t i = 0; i < groups.digits.size(); ++i) {
    (begins_with_point || i >= *whole_count ? fraction : whole) += groups.digits[i];
  }
  if (whole.size() + fraction.size() > kMostDigits) return std::nullopt;
  std::string number = is_negative(before, behind, fraction.size() == 2) ? "-" : "";
  number += whole.empty() ? "0" : without_zeros(whole);
  if (!fraction.empty()) number.append(".").append(fraction);
  number += exponent_at(behind);
  double value = 0;
  const auto [end, trouble] = std::from_chars(number.data(), number.data() + number.size(), value);
  return trouble == std::errc{} && end == number.data() + number.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::string> number_in(std::string_view text, char decimal) {
  const bool is_plain = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return is_plain ? first_number(text, decimal) : first_number(in_ascii_numerals(text, decimal), decimal);
}

std::optional<std::string> integer_in(std::string_view text, char decimal) {
  auto number = number_in(text, decimal);
  if (!number) return std::nullopt;
  if (!without_exponent(*number)) return std::nullopt;
  const std::size_t point = number->find('.');
  if (point != std::string::npos) {
    if (number->find_first_not_of('0', point + 1) != std::string::npos) return std::nullopt;
    number->resize(point);
  }
  std::int64_t value = 0;
  const auto [end, trouble] = std::from_chars(number->data(), number->data() + number->size(), value);
  if (trouble != std::errc{} || end != number->data() + number->size()) return std::nullopt;
  return std::to_string(value);
}

std::optional<bool> truth_in(std::string_view text) {
  text = trim_space(text);
  for (const std::string_view yes : {"true", "yes", "y", "on", "1"}) {
    if (equals_lower(text, yes)) return true;
  }
  for (const std::string_view no : {"false", "no", "n", "off", "0"}) {
    if (equals_lower(text, no)) return false;
  }
  return std::nullopt;
}

}  // namespace argiope

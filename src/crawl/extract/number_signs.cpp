#include "crawl/extract/number_signs.hpp"

#include <algorithm>
#include <iterator>

#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// Of the keyboard; and those that typesetters use: no-break, of a third to a sixth of an em, figure, punctuation, thin,
// hair, narrow no-break.
constexpr std::string_view kSpaces[] = {" ",      "\t",     "\n",     "\u00a0", "\u2004", "\u2005",
                                        "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u202f"};
constexpr std::string_view kMinus = "−";
constexpr std::string_view kEnDash = "–";
constexpr std::string_view kSuperscripts[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "⁺", "⁻"};

bool is_capital(char c) noexcept { return c >= 'A' && c <= 'Z'; }

// Words behind a number that make another one of it, in lower case: English, German, the Romance and Nordic languages,
// Dutch, Polish, Czech, Hungarian, Russian and Ukrainian, Greek, Turkish, Indonesian, Vietnamese, Thai, Arabic,
// Persian, Hebrew, Hindi.
constexpr std::string_view kMultipliers =
    "dozen hundred thousand million millions billion billions trillion trillions bn mn tn lakh lakhs crore crores "
    "dutzend tsd tausend mio mia mrd milliarde milliarden millionen billionen mille millier milliers milliard "
    "milliards "
    "mil millón millones mill mila milione milioni miliardo miliardi mln mlrd milhão milhões bilhão bilhões milioane "
    "miliarde mii "
    "duizend miljoen miljard tusen tusind miljon miljoner miljard miljarder millioner milliarder mkr mdkr tkr "
    "milj miljoonaa tuhatta miljardia ezer millió milliárd "
    "tys tis tisíc mld milion miliony milionów milionů miliardów miliard miliardy tisuća milijun milijuna "
    "тыс тысяч тысячи тысяча млн млрд трлн миллион миллиона миллионов миллиард миллиардов тис тисяч мільйон мільйонів "
    "χιλ εκατ δισ εκατομμύρια δισεκατομμύρια "
    "bin milyon milyar ribu rb juta jt miliar nghìn triệu tỷ พัน หมื่น แสน ล้าน "
    "ألف آلاف الف مليون ملايين مليار مليارات هزار میلیون میلیارد אלף אלפים מיליון מיליארד हजार हज़ार लाख करोड़";
// The same in Chinese, Japanese and Korean, and fractions: what follows them may be of the same word.
constexpr std::string_view kMultiplyingSigns =
    "百 千 仟 万 萬 億 亿 兆 백 천 만 억 조 ½ ⅓ ⅔ ¼ ¾ ⅕ ⅖ ⅗ ⅘ ⅙ ⅚ ⅐ ⅛ ⅜ ⅝ ⅞ ⅑ ⅒";

template <class Fits>
bool any_token(std::string_view list, Fits fits) {
  bool found = false;
  for_each_token(list, is_space, [&](std::string_view token) { found = found || fits(token); });
  return found;
}

// Its length in bytes.
std::size_t last_character_of(std::string_view text) {
  std::size_t length = std::min<std::size_t>(text.size(), 1);
  while (length < text.size() && (static_cast<unsigned char>(text[text.size() - length]) & 0xc0u) == 0x80) ++length;
  return length;
}

void skip_spaces(std::string_view& text) {
  while (const std::size_t space = number_space_at(text)) text.remove_prefix(space);
}
void drop_spaces_behind(std::string_view& text) {
  while (!text.empty() && number_space_at(text.substr(text.size() - last_character_of(text))) > 0)
    text.remove_suffix(last_character_of(text));
}

std::string_view word_at(std::string_view text) {
  const auto in_word = [](char c) { return is_alnum(c) || static_cast<unsigned char>(c) >= 0x80; };
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, in_word) - text.begin()));
}

// The length of a currency's sign at the front: "$", "£", "€" and all others that Unicode has in one place.
std::size_t currency_sign_at(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t length = utf8_length(text);
  if (length == 0) return 0;
  const char32_t character = code_point_of(text.substr(0, length));
  const bool is_one = character == U'$' || (character >= 0xa2 && character <= 0xa5) ||
                      (character >= 0x20a0 && character <= 0x20cf) || character == 0xff04 ||
                      (character >= 0xffe0 && character <= 0xffe6);
  return is_one ? length : 0;
}
bool ends_with_currency_sign(std::string_view text) {
  return !text.empty() && currency_sign_at(text.substr(text.size() - last_character_of(text))) > 0;
}

// "€", "US$", "CHF" behind `text`.
void drop_currency_behind(std::string_view& text) {
  if (ends_with_currency_sign(text)) text.remove_suffix(last_character_of(text));
  std::size_t letters = 0;
  while (letters < text.size() && is_capital(text[text.size() - letters - 1])) ++letters;
  if (letters <= 3) text.remove_suffix(letters);
}

// Whether there is nothing but a currency's sign or code.
bool is_currency(std::string_view text) {
  drop_spaces_behind(text);
  skip_spaces(text);
  drop_currency_behind(text);
  return text.empty();
}

bool begins_with_letter(std::string_view text) {
  return !text.empty() &&
         (is_alnum(text[0]) || (static_cast<unsigned char>(text[0]) >= 0x80 && currency_sign_at(text) == 0));
}
bool ends_with_letter(std::string_view text) {
  return !text.empty() &&
         (is_alnum(text.back()) || (static_cast<unsigned char>(text.back()) >= 0x80 && !ends_with_currency_sign(text)));
}

// "× 10^", "x10²".
bool begins_with_power_of_ten(std::string_view text) {
  skip_spaces(text);
  constexpr std::string_view kTimes[] = {"×", "x", "X", "*", "·", "⋅", "∙"};
  const auto* const times = std::ranges::find_if(kTimes, [&](std::string_view one) { return text.starts_with(one); });
  if (times == std::end(kTimes)) return false;
  text.remove_prefix(times->size());
  skip_spaces(text);
  if (!text.starts_with("10")) return false;
  text.remove_prefix(2);
  const auto begins_with = [&](std::string_view one) { return text.starts_with(one); };
  return text.starts_with('^') || text.starts_with("**") || std::ranges::any_of(kSuperscripts, begins_with);
}

}  // namespace

std::size_t number_space_at(std::string_view text) noexcept {
  const auto* const space = std::ranges::find_if(kSpaces, [&](std::string_view one) { return text.starts_with(one); });
  return space == std::end(kSpaces) ? 0 : space->size();
}

bool begins_with_dash(std::string_view text) noexcept {
  return text.starts_with('-') || text.starts_with(kMinus) || text.starts_with(kEnDash) || text.starts_with("—");
}

bool is_negative(std::string_view before, std::string_view behind, bool has_cents) {
  // Accounts have the minus behind the number, or brackets in its place.
  if (has_cents && (behind.starts_with('-') || behind.starts_with(kMinus)) &&
      is_currency(behind.substr(behind.starts_with('-') ? 1 : kMinus.size()))) {
    return true;
  }
  if (has_cents && trim_space(before).starts_with('(') && trim_space(behind).ends_with(')')) {
    const std::string_view end = trim_space(behind);
    if (is_currency(trim_space(before).substr(1)) && is_currency(end.substr(0, end.size() - 1))) return true;
  }
  std::string_view left = before;
  drop_spaces_behind(left);
  const auto ends_with_minus = [](std::string_view text) {
    return text.ends_with('-') || text.ends_with(kMinus) || text.ends_with(kEnDash);
  };
  if (!ends_with_minus(left)) {
    drop_currency_behind(left);
    drop_spaces_behind(left);
  }
  // At the very front, and right before the number: it is a mark of a list otherwise, or of a range.
  if (left.ends_with(kEnDash)) return left == kEnDash && !before.contains(' ');
  const bool is_spaced = left.size() < before.size() && is_space(before[left.size()]);
  const std::size_t size = left.ends_with(kMinus) ? kMinus.size() : left.ends_with('-') ? 1 : 0;
  if (size == 0) return false;
  left.remove_suffix(size);
  // "A4-5" and "3-5" are no negative numbers.
  if (size == 1 && !left.empty() && is_alnum(left.back())) return false;
  drop_spaces_behind(left);
  return !is_spaced || !ends_with_letter(left);
}

bool begins_with_raised_cents(std::string_view before, std::string_view behind) {
  const auto is_digit_at = [&](std::size_t place) { return place < behind.size() && is_digit(behind[place]); };
  if (!behind.starts_with('^') || !is_digit_at(1) || !is_digit_at(2) || is_digit_at(3)) return false;
  drop_spaces_behind(before);
  behind.remove_prefix(3);
  skip_spaces(behind);
  return ends_with_currency_sign(before) || currency_sign_at(behind) > 0;
}

bool is_of_another_size(std::string_view before, std::string_view digits, std::string_view behind) {
  constexpr std::string_view kLetters = "kKMB";
  constexpr std::string_view kLettersBehindSpace = "kKM";
  constexpr std::string_view kLettersOfMoney = "kKmMbBtT";
  const auto begins_with = [&](std::string_view one) { return behind.starts_with(one); };
  if (behind.starts_with('^') || begins_with_power_of_ten(behind)) return true;
  if (digits == "10" && std::ranges::any_of(kSuperscripts, begins_with)) return true;
  if (digits == "0" && behind.size() > 1 && to_lower(behind[0]) == 'x' && hex_value(behind[1]) >= 0) return true;
  const std::size_t all = behind.size();
  skip_spaces(behind);
  if (behind.empty()) return false;
  const std::string_view letters = ends_with_currency_sign(before) ? kLettersOfMoney
                                   : behind.size() < all           ? kLettersBehindSpace
                                                                   : kLetters;
  if (letters.contains(behind[0]) && !begins_with_letter(behind.substr(1))) return true;
  const std::string_view word = word_at(behind);
  return any_token(kMultipliers, [&](std::string_view one) { return equals_lower(word, one); }) ||
         any_token(kMultiplyingSigns, begins_with);
}

}  // namespace argiope

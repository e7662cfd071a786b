// Dates as people and machines write them; see field_value.hpp for which.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/internal/printable.hpp"
#include "crawl/extract/field_value.hpp"
#include "crawl/extract/numerals.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostDateBytes = 100;
constexpr std::string_view kMinusSign = "−";

// The months, in lower case: English, German, the Romance and Nordic languages, Dutch; Russian, Ukrainian, Polish,
// Czech, Slovak, Finnish, Turkish, Hungarian, Greek, Arabic. Of "listopada", which is October in Croatia and November
// in Poland, nothing is known.
constexpr std::string_view kMonthNames[] = {
    "january januar jänner janvier enero gennaio janeiro januari jan jän janv ene gen января январь янв "
    "січня січень stycznia styczeń ledna leden januára január tammikuuta tammikuu ocak oca ιανουαρίου "
    "ιανουάριος ianuarie ian يناير",
    "february februar februari février febrero febbraio fevereiro feber feb fév févr fev февраля февраль "
    "фев лютого лютий lutego luty února únor februára február helmikuuta helmikuu şubat şub φεβρουαρίου "
    "φεβρουάριος februarie فبراير",
    "march märz mars marzo março maart mar mär mrz mrt marts марта март мар березня березень marca marzec "
    "března březen maaliskuuta maaliskuu mart március μαρτίου μάρτιος martie مارس",
    "april avril abril aprile apr avr abr апреля апрель апр квітня квітень kwietnia kwiecień dubna duben "
    "apríla apríl huhtikuuta huhtikuu nisan nis április απριλίου απρίλιος aprilie أبريل ابريل إبريل",
    "may mai mayo maggio maio mei mag maj maja мая май травня травень května květen mája máj toukokuuta "
    "toukokuu mayıs május μαΐου μάιος مايو",
    "june juni juin junio giugno junho jun giu июня июнь июн червня червень czerwca czerwiec června "
    "červen júna jún kesäkuuta kesäkuu haziran haz június ιουνίου ιούνιος iunie يونيو",
    "july juli juillet julio luglio julho jul juil lug июля июль июл липня липень lipca lipiec července "
    "červenec júla júl heinäkuuta heinäkuu temmuz tem július ιουλίου ιούλιος iulie يوليو",
    "august août agosto augustus aug aoû ago augusti августа август авг серпня серпень sierpnia sierpień "
    "srpna srpen augusta elokuuta elokuu ağustos ağu augusztus αυγούστου αύγουστος أغسطس",
    "september septembre septiembre setiembre settembre setembro sep sept set сентября сентябрь сен сент "
    "вересня вересень września wrzesień září septembra syyskuuta syyskuu eylül eyl szeptember σεπτεμβρίου "
    "σεπτέμβριος septembrie سبتمبر",
    "october oktober octobre octubre ottobre outubro oct okt ott out октября октябрь окт жовтня жовтень "
    "października październik října říjen októbra október lokakuuta lokakuu ekim eki οκτωβρίου οκτώβριος "
    "octombrie أكتوبر",
    "november novembre noviembre novembro nov ноября ноябрь ноя нояб листопада листопад listopadu "
    "novembra marraskuuta marraskuu kasım kas νοεμβρίου νοέμβριος noiembrie نوفمبر",
    "december dezember décembre diciembre dicembre dezembro dec dez déc dic декабря декабрь дек грудня "
    "грудень grudnia grudzień prosince prosinec decembra joulukuuta joulukuu aralık ara δεκεμβρίου "
    "δεκέμβριος decembrie ديسمبر",
};
// Words that may stand beside the parts of a date and say nothing of it.
constexpr std::string_view kFillers[] = {"t",
                                         "at",
                                         "on",
                                         "of",
                                         "the",
                                         "um",
                                         "uhr",
                                         "am",
                                         "den",
                                         "der",
                                         "le",
                                         "du",
                                         "à",
                                         "de",
                                         "del",
                                         "el",
                                         "a",
                                         "las",
                                         "il",
                                         "alle",
                                         "ore",
                                         "om",
                                         "op",
                                         "st",
                                         "nd",
                                         "rd",
                                         "th",
                                         "er",
                                         "h",
                                         "o",
                                         "às",
                                         "feira",
                                         "kl",
                                         "klo",
                                         "г",
                                         "года",
                                         "р",
                                         "published",
                                         "posted",
                                         "updated",
                                         "modified",
                                         "created",
                                         "last",
                                         "date",
                                         "datum",
                                         "stand",
                                         "veröffentlicht",
                                         "aktualisiert",
                                         "publié",
                                         "publicado",
                                         "pubblicato"};
constexpr std::string_view kWeekdays[] = {
    "mon",         "tue",       "wed",       "thu",     "fri",      "sat",         "sun",         "mo",
    "di",          "mi",        "do",        "fr",      "sa",       "so",          "dienstag",    "mittwoch",
    "freitag",     "sonntag",   "sonnabend", "lun",     "mar",      "mer",         "jeu",         "ven",
    "sam",         "dim",       "mié",       "jue",     "vie",      "sáb",         "dom",         "gio",
    "sab",         "seg",       "ter",       "qua",     "qui",      "sex",         "maa",         "din",
    "woe",         "don",       "vri",       "zat",     "zon",      "mandag",      "måndag",      "tisdag",
    "tirsdag",     "onsdag",    "torsdag",   "fredag",  "lördag",   "lørdag",      "söndag",      "søndag",
    "понедельник", "вторник",   "среда",     "четверг", "пятница",  "суббота",     "воскресенье", "пн",
    "вт",          "ср",        "чт",        "пт",      "сб",       "вс",          "нд",          "poniedziałek",
    "wtorek",      "środa",     "czwartek",  "piątek",  "sobota",   "niedziela",   "pondělí",     "úterý",
    "středa",      "čtvrtek",   "pátek",     "neděle",  "tiistai",  "keskiviikko", "torstai",     "perjantai",
    "lauantai",    "sunnuntai", "pazartesi", "salı",    "çarşamba", "perşembe",    "cuma",        "cumartesi",
    "pazar"};

struct NamedZone {
  std::string_view name;
  int minutes;
};
// RFC 2822, 4.3, and the European ones.
constexpr NamedZone kZones[] = {
    {"z", 0},       {"ut", 0},     {"utc", 0},    {"gmt", 0},    {"est", -300}, {"edt", -240},
    {"cst", -360},  {"cdt", -300}, {"mst", -420}, {"mdt", -360}, {"pst", -480}, {"pdt", -420},
    {"wet", 0},     {"west", 60},  {"cet", 60},   {"cest", 120}, {"mez", 60},   {"mesz", 120},
    {"eet", 120},   {"eest", 180}, {"msk", 180},  {"jst", 540},  {"kst", 540},  {"bst", 60},
    {"hkt", 480},   {"sgt", 480},  {"wib", 420},  {"sast", 120}, {"brt", -180}, {"akst", -540},
    {"akdt", -480}, {"hst", -600}, {"aest", 600}, {"aedt", 660}, {"nzst", 720}, {"nzdt", 780}};
// Those whose offset depends on the day: a time in one has none.
constexpr std::string_view kZonesWithoutOffset[] = {"et", "ct", "mt", "pt"};

struct DateToken {
  enum class Kind : std::uint8_t { number, word, sign };
  Kind kind;
  std::string text;     // words in lower case
  int value = 0;        // of a number, cut to nine digits
  bool spaced = false;  // space before it
  bool is(char sign) const { return kind == Kind::sign && text[0] == sign; }
  bool is_number(std::size_t least, std::size_t most) const {
    return kind == Kind::number && text.size() >= least && text.size() <= most;
  }
};

// Of ASCII, Latin-1, Greek and Cyrillic: the letters that names of months and days begin with.
std::string lower_words(std::string_view text) {
  std::string lower = in_lower_case(text);
  for (std::size_t i = 0; i + 1 < lower.size(); ++i) {
    const auto lead = static_cast<unsigned char>(lower[i]);
    auto second = static_cast<unsigned char>(lower[i + 1]);
    const auto set = [&](unsigned char its_lead, int by) {
      lower[i] = static_cast<char>(its_lead);
      lower[i + 1] = static_cast<char>(second + by);
    };
    if (lead == 0xc3 && second >= 0x80 && second <= 0x9e && second != 0x97) set(0xc3, 0x20);
    if (lead == 0xce && second >= 0x91 && second <= 0x9f) set(0xce, 0x20);
    if (lead == 0xce && second >= 0xa0 && second <= 0xa9) set(0xcf, -0x20);
    if (lead == 0xd0 && second >= 0x80 && second <= 0x8f) set(0xd1, 0x10);
    if (lead == 0xd0 && second >= 0x90 && second <= 0x9f) set(0xd0, 0x20);
    if (lead == 0xd0 && second >= 0xa0 && second <= 0xaf) set(0xd1, -0x20);
  }
  return lower;
}

// How many bytes of white space there are: no-break, thin and narrow spaces too, and marks of direction, which browsers
// put between a time and its half of the day.
std::size_t space_at(std::string_view text) {
  constexpr std::string_view kOthers[] = {"\xc2\xa0",     "\xe2\x80\x87", "\xe2\x80\x89", "\xe2\x80\xaf",
                                          "\xe2\x80\x8e", "\xe2\x80\x8f", "\xef\xbb\xbf"};
  if (is_space(text.front())) return 1;
  for (const std::string_view other : kOthers) {
    if (text.starts_with(other)) return other.size();
  }
  return 0;
}

bool is_letter_at(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return is_alpha(text[at]);
  return space_at(text.substr(at)) == 0 && !text.substr(at).starts_with(kMinusSign);
}

std::vector<DateToken> date_tokens(std::string_view text) {
  std::vector<DateToken> tokens;
  bool spaced = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool is_letter = is_alpha(c) || static_cast<unsigned char>(c) >= 0x80;
    if (const std::size_t space = space_at(text.substr(at)); space > 0) {
      spaced = true;
      at += space;
      continue;
    }
    if (text.substr(at).starts_with(kMinusSign)) {
      tokens.push_back({.kind = DateToken::Kind::sign, .text = "-", .spaced = std::exchange(spaced, false)});
      at += kMinusSign.size();
      continue;
    }
    std::size_t end = at + 1;
    if (is_digit(c)) {
      while (end < text.size() && is_digit(text[end])) ++end;
    } else if (is_letter) {
      while (end < text.size() && is_letter_at(text, end)) ++end;
    }
    DateToken token{is_digit(c) ? DateToken::Kind::number
                    : is_letter ? DateToken::Kind::word
                                : DateToken::Kind::sign,
                    lower_words(text.substr(at, end - at))};
    token.spaced = std::exchange(spaced, false);
    if (token.kind == DateToken::Kind::number) token.value = std::stoi(token.text.substr(0, 9));
    tokens.push_back(std::move(token));
    at = end;
  }
  return tokens;
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::ranges::find(words, word) != std::end(words);
}

// 1 to 12, or 0.
int month_named(std::string_view word) {
  for (int month = 0; month < 12; ++month) {
    bool found = false;
    for_each_token(kMonthNames[month], is_space, [&](std::string_view name) { found = found || name == word; });
    if (found) return month + 1;
  }
  return 0;
}

bool is_weekday(std::string_view word) {
  return std::ranges::any_of(
      kWeekdays, [&](std::string_view day) { return word == day || (day.size() > 2 && word.starts_with(day)); });
}

// "2026年11月28日(土) 10時20分", "2026년 11월 28일" as "2026-11-28 10:20". Empty: the text has no such signs.
std::string from_date_signs(std::string_view text) {
  struct DateSign {
    std::string_view sign, as;
  };
  // The number before a sign is what the sign says; names of weekdays say nothing.
  constexpr DateSign kDateSigns[] = {
      {"日曜日", ""},   {"月曜日", ""},   {"火曜日", ""},   {"水曜日", ""},   {"木曜日", ""},   {"金曜日", ""},
      {"土曜日", ""},   {"星期一", ""},   {"星期二", ""},   {"星期三", ""},   {"星期四", ""},   {"星期五", ""},
      {"星期六", ""},   {"星期日", ""},   {"星期天", ""},   {"周一", ""},     {"周二", ""},     {"周三", ""},
      {"周四", ""},     {"周五", ""},     {"周六", ""},     {"周日", ""},     {"월요일", ""},   {"화요일", ""},
      {"수요일", ""},   {"목요일", ""},   {"금요일", ""},   {"토요일", ""},   {"일요일", ""},   {"上午", " am "},
      {"午前", " am "}, {"오전", " am "}, {"下午", " pm "}, {"午後", " pm "}, {"오후", " pm "}, {"年", "-"},
      {"년", "-"},      {"月", "-"},      {"월", "-"},      {"日", " "},      {"일", " "},      {"時", ":"},
      {"时", ":"},      {"시", ":"},      {"分", ":"},      {"분", ":"},      {"秒", " "},      {"초", " "}};
  const auto is_of_them = [](char c) {
    return static_cast<unsigned char>(c) >= 0xe3 && static_cast<unsigned char>(c) <= 0xed;
  };
  if (std::ranges::none_of(text, is_of_them)) return {};
  const std::string numerals = in_ascii_numerals(text, '\0');
  std::string out;
  for (std::string_view rest = numerals; !rest.empty();) {
    if (rest.starts_with('(')) {
      rest.remove_prefix(std::min(rest.find(')'), rest.size() - 1) + 1);
      continue;
    }
    const auto found =
        std::ranges::find_if(kDateSigns, [rest](const DateSign& one) { return rest.starts_with(one.sign); });
    const bool is_sign = found != std::end(kDateSigns);
    const bool is_needless = !is_sign && is_space(rest.front()) && (out.ends_with('-') || out.ends_with(':'));
    if (!is_needless) out += is_sign ? found->as : rest.substr(0, 1);
    rest.remove_prefix(is_sign ? found->sign.size() : 1);
  }
  while (!out.empty() && (is_space(out.back()) || out.back() == '-' || out.back() == ':')) out.pop_back();
  return out;
}

// The digits of "/Date(1764327480000+0100)/", as JSON of ASP.NET has it; empty: it is no such thing.
std::string milliseconds_of_json(std::string_view text) {
  constexpr std::string_view kBegin = "/Date(", kEnd = ")/";
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) return {};
  text.remove_prefix(kBegin.size());
  return std::string(text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin())));
}

class DateReader {
 public:
  // `text` is `given` with what takes the place of ASCII's digits and signs replaced.
  DateReader(std::string_view given, std::string_view text, std::optional<bool> day_first)
      : given_(given), tokens_(date_tokens(text)), day_first_(day_first) {}

  Result<std::string> read() {
    if (auto stamp = read_unix_time()) return *stamp;
    if (tokens_.empty() || tokens_[0].is('-')) return wrong("this is no date");
    take_compact();
    if (!take_time() || !take_words()) return wrong("this is no date");
    if (auto taken = take_date(); !taken) return std::unexpected(std::move(taken.error()));
    if (month_ < 1 || month_ > 12 || year_ < 1 || year_ > 9999) return wrong("there is no such date");
    const auto date = std::chrono::year{year_} / month_ / std::max(day_, 1);
    if (!date.ok() || (has_day_ && day_ < 1) || hour_ > 23 || minute_ > 59 || second_ > 60)
      return wrong("there is no such date");
    return written();
  }

 private:
  std::unexpected<Error> wrong(std::string_view why) const {
    return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(given_, 60), why));
  }

  // Ten digits, or thirteen, or ten with a fraction, which is left out.
  std::optional<std::string> read_unix_time() const {
    const bool has_fraction = tokens_.size() == 3 && is_number(0, 10, 10) && is_sign(1, '.') && is_number(2, 1, 9);
    if ((tokens_.size() != 1 && !has_fraction) || tokens_[0].kind != DateToken::Kind::number) return std::nullopt;
    const std::string& digits = tokens_[0].text;
    if (digits.size() != 10 && digits.size() != 13) return std::nullopt;
    const std::chrono::sys_seconds time{std::chrono::seconds{std::stoll(digits.substr(0, 10))}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                       clock.minutes().count(), clock.seconds().count());
  }

  // "20260312143000".
  bool take_digits_alone() {
    if (tokens_.size() != 1 || !is_number(0, 14, 14)) return false;
    const auto part = [&](std::size_t at, std::size_t size) { return std::stoi(tokens_[0].text.substr(at, size)); };
    year_ = part(0, 4);
    month_ = part(4, 2);
    day_ = part(6, 2);
    hour_ = part(8, 2);
    minute_ = part(10, 2);
    second_ = part(12, 2);
    has_day_ = has_time_ = true;
    tokens_.clear();
    return true;
  }
  // "20260312", and "T143000" behind it.
  void take_compact() {
    if (take_digits_alone()) return;
    if (!tokens_[0].is_number(8, 8)) return;
    year_ = tokens_[0].value / 10000;
    month_ = tokens_[0].value / 100 % 100;
    day_ = tokens_[0].value % 100;
    has_day_ = true;
    std::size_t used = 1;
    if (tokens_.size() > 2 && tokens_[1].text == "t" && (tokens_[2].is_number(6, 6) || tokens_[2].is_number(4, 4))) {
      const bool has_seconds = tokens_[2].text.size() == 6;
      const int clock = has_seconds ? tokens_[2].value : tokens_[2].value * 100;
      has_time_ = true;
      hour_ = clock / 10000;
      minute_ = clock / 100 % 100;
      second_ = clock % 100;
      used = 3 + take_zone(3);
    }
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(used));
  }

  const DateToken* at(std::size_t place) const { return place < tokens_.size() ? &tokens_[place] : nullptr; }
  bool is_sign(std::size_t place, char sign) const { return at(place) != nullptr && at(place)->is(sign); }
  bool is_number(std::size_t place, std::size_t least, std::size_t most) const {
    return at(place) != nullptr && at(place)->is_number(least, most);
  }

  // "14:30:05.25 pm +01:00", wherever it is; takes it out.
  bool take_time() {
    for (std::size_t i = 0; !has_time_ && i + 2 < tokens_.size(); ++i) {
      if (!is_number(i, 1, 2) || !separates_time(i) || !is_number(i + 2, 2, 2)) continue;
      has_time_ = true;
      hour_ = tokens_[i].value;
      minute_ = tokens_[i + 2].value;
      std::size_t end = i + 3;
      if (is_sign(end, ':') && is_number(end + 1, 2, 2)) {
        second_ = tokens_[end + 1].value;
        end += 2;
        if ((is_sign(end, '.') || is_sign(end, ',')) && is_number(end + 1, 1, 9) && !tokens_[end + 1].spaced) {
          fraction_ = tokens_[end + 1].text;
          end += 2;
        }
      }
      end += take_half_of_day(end);
      end += take_zone(end);
      if (i > 0 && is_half_of_day(i - 1)) take_half_of_day(--i);
      if (i > 0 && is_between_date_and_time(tokens_[i - 1])) --i;
      tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(i),
                    tokens_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return hour_ >= 0;
  }
  // Between hours and minutes: "14:30", "14h30", "14.30 Uhr", "kl. 14.30".
  bool separates_time(std::size_t hours) const {
    if (is_sign(hours + 1, ':') || is_word(hours + 1, "h")) return true;
    const std::size_t before = hours >= 2 && is_sign(hours - 1, '.') ? hours - 2 : hours - 1;
    const bool is_announced = hours > 0 && (is_word(before, "kl") || is_word(before, "klo") || is_word(before, "ore"));
    return is_sign(hours + 1, '.') && (is_announced || is_word(hours + 3, "uhr"));
  }
  static bool is_between_date_and_time(const DateToken& token) {
    constexpr std::string_view kBetween[] = {"|", ":", "·", "•", "–", "—"};
    return is_one_of(token.text, kBetween);
  }
  bool is_word(std::size_t place, std::string_view word) const {
    return at(place) != nullptr && at(place)->kind == DateToken::Kind::word && at(place)->text == word;
  }
  bool is_half_of_day(std::size_t place) const { return is_word(place, "am") || is_word(place, "pm"); }
  // How many tokens: "pm", "p.m.".
  std::size_t take_half_of_day(std::size_t place) {
    const DateToken* const word = at(place);
    if (word == nullptr || word->kind != DateToken::Kind::word) return 0;
    const bool dotted = (word->text == "a" || word->text == "p") && is_sign(place + 1, '.') &&
                        at(place + 2) != nullptr && at(place + 2)->text == "m";
    if (!dotted && word->text != "am" && word->text != "pm") return 0;
    const bool afternoon = word->text[0] == 'p';
    if (hour_ < 1 || hour_ > 12) hour_ = -1;
    if (hour_ == 12) hour_ = 0;
    if (afternoon && hour_ >= 0) hour_ += 12;
    return dotted ? (is_sign(place + 3, '.') ? 4 : 3) : 1;
  }
  // How many tokens: "Z", "GMT", "+01:00", "-0800", "+01", "GMT+1" and "(CET)" behind any of them.
  std::size_t take_zone(std::size_t place) {
    std::size_t taken = 0;
    if (const DateToken* const word = at(place); word != nullptr && word->kind == DateToken::Kind::word) {
      if (is_one_of(word->text, kZonesWithoutOffset)) return 1;
      // "Europe/Berlin"
      if (is_sign(place + 1, '/') && at(place + 2) != nullptr && at(place + 2)->kind == DateToken::Kind::word) return 3;
      const auto* const zone = std::ranges::find(kZones, word->text, &NamedZone::name);
      if (zone == std::end(kZones)) return 0;
      offset_ = zone->minutes;
      taken = 1;
    }
    if (is_offset(place + taken)) {
      const int sign = is_sign(place + taken, '+') ? 1 : -1;
      const DateToken& number = tokens_[place + taken + 1];
      const bool has_minutes = number.text.size() > 2;
      int minutes = has_minutes ? number.value / 100 * 60 + number.value % 100 : number.value * 60;
      taken += 2;
      if (!has_minutes && is_sign(place + taken, ':') && is_number(place + taken + 1, 2, 2)) {
        minutes += tokens_[place + taken + 1].value;
        taken += 2;
      }
      offset_ = sign * minutes;
    }
    if (taken > 0) taken += zone_names_at(place + taken);
    if (offset_ && std::abs(*offset_) >= 24 * 60) hour_ = -1;
    return taken;
  }
  // How many tokens: "CET" behind an offset, "(CET)", "(Central European Standard Time)", "[Europe/Berlin]".
  std::size_t zone_names_at(std::size_t place) const {
    const DateToken* const word = at(place);
    if (word == nullptr) return 0;
    if (word->kind == DateToken::Kind::word) {
      return std::ranges::find(kZones, word->text, &NamedZone::name) != std::end(kZones) ? 1 : 0;
    }
    if (!word->is('(') && !word->is('[')) return 0;
    const char closing = word->is('(') ? ')' : ']';
    for (std::size_t end = place + 1; at(end) != nullptr; ++end) {
      if (is_sign(end, closing)) return end + 1 - place;
    }
    return 0;
  }
  // "+01", "-0800", " +0100", " +01:00", but not " - 14", which may be the end of a span, nor " -14:30".
  bool is_offset(std::size_t place) const {
    if ((!is_sign(place, '+') && !is_sign(place, '-')) || !is_number(place + 1, 1, 4)) return false;
    const DateToken& number = tokens_[place + 1];
    if (!tokens_[place].spaced || number.text.size() == 4) return true;
    return is_sign(place, '+') && !number.spaced && number.text.size() == 2 && is_sign(place + 2, ':') &&
           is_number(place + 3, 2, 2);
  }

  // A month's name is noted, words that say nothing are taken out; any other word makes it no date.
  bool take_words() {
    std::vector<DateToken> rest;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      // "(Sunday)"
      const bool is_in_brackets = is_sign(i, '(') && is_sign(i + 2, ')') &&
                                  tokens_[i + 1].kind == DateToken::Kind::word && is_weekday(tokens_[i + 1].text);
      if (is_in_brackets) {
        i += 2;
        continue;
      }
      DateToken& token = tokens_[i];
      if (token.kind != DateToken::Kind::word) {
        rest.push_back(std::move(token));
        continue;
      }
      const int month = month_named(token.text);
      // "mar" is a Tuesday in French and Spanish, where a month follows.
      if (month > 0 && (month_ == 0 || is_weekday_name_)) {
        is_weekday_name_ = is_weekday(token.text);
        month_ = month;
        has_name_ = true;
      } else if (!is_weekday(token.text) && !is_one_of(token.text, kFillers)) {
        return false;
      } else if (is_sign(i + 1, ':')) {
        ++i;  // "Updated: …"
      }
    }
    tokens_ = std::move(rest);
    return true;
  }

  Result<void> take_date() {
    if (year_ != 0) return tokens_.empty() ? Result<void>{} : wrong("this is no date");
    std::vector<DateToken> numbers;
    std::string signs;
    for (const DateToken& token : tokens_) {
      if (token.kind == DateToken::Kind::number) {
        numbers.push_back(token);
      } else if (!token.is(',')) {
        signs += token.text;
      }
    }
    if (signs.find_first_not_of("-/.") != std::string::npos || numbers.empty()) return wrong("this is no date");
    return has_name_ ? with_month_name(numbers) : in_numbers(numbers, signs.empty() ? ' ' : signs[0]);
  }

  // Day and year, or a year alone.
  Result<void> with_month_name(const std::vector<DateToken>& numbers) {
    if (numbers.size() > 2) return wrong("this is no date");
    for (const DateToken& number : numbers) {
      const bool is_year = number.text.size() == 4 || (number.text.size() == 2 && day_ != 0);
      if (is_year && year_ == 0) {
        year_ = full_year(number);
      } else if (number.text.size() <= 2 && day_ == 0) {
        day_ = number.value;
        has_day_ = true;
      } else {
        return wrong("this is no date");
      }
    }
    return year_ == 0 ? wrong("a date without a year") : Result<void>{};
  }

  Result<void> in_numbers(const std::vector<DateToken>& numbers, char sign) {
    if (numbers.size() == 2 && numbers[0].text.size() == 4 && numbers[1].text.size() == 2) {
      year_ = numbers[0].value;
      month_ = numbers[1].value;
      return {};
    }
    if (numbers.size() != 3) return wrong("this is no date");
    has_day_ = true;
    if (numbers[0].text.size() == 4) {
      if (numbers[1].text.size() > 2 || numbers[2].text.size() > 2) return wrong("this is no date");
      year_ = numbers[0].value;
      month_ = numbers[1].value;
      day_ = numbers[2].value;
      return {};
    }
    const auto is_short = [](const DateToken& number) { return number.text.size() <= 2; };
    if (!is_short(numbers[0]) || !is_short(numbers[1])) return wrong("this is no date");
    if (numbers[2].text.size() != 4 && numbers[2].text.size() != 2) return wrong("this is no date");
    year_ = full_year(numbers[2]);
    const bool either =
        sign != '.' && numbers[0].value <= 12 && numbers[1].value <= 12 && numbers[0].value != numbers[1].value;
    if (either && !day_first_) return wrong("day or month first? Set day_first");
    const bool day_is_first = sign == '.' || (either ? *day_first_ : numbers[1].value <= 12);
    day_ = numbers[day_is_first ? 0 : 1].value;
    month_ = numbers[day_is_first ? 1 : 0].value;
    return {};
  }
  // RFC 2822, 4.3: two digits are of 1950 to 2049.
  static int full_year(const DateToken& number) {
    return number.text.size() == 4 ? number.value : number.value + (number.value < 50 ? 2000 : 1900);
  }

  std::string written() const {
    std::string text = fmt::format("{:04}-{:02}", year_, month_);
    if (day_ == 0 && !has_day_) return text;
    text += fmt::format("-{:02}", day_);
    if (!has_time_) return text;
    text += fmt::format("T{:02}:{:02}:{:02}", hour_, minute_, second_);
    if (!fraction_.empty()) text.append(".").append(fraction_);
    if (!offset_) return text;
    if (*offset_ == 0) return text + 'Z';
    const int size = std::abs(*offset_);
    return text + fmt::format("{}{:02}:{:02}", *offset_ < 0 ? '-' : '+', size / 60, size % 60);
  }

  std::string_view given_;
  std::vector<DateToken> tokens_;
  std::optional<bool> day_first_;
  int year_ = 0, month_ = 0, day_ = 0;
  bool has_day_ = false, has_name_ = false;
  bool is_weekday_name_ = false;  // the month may be a weekday, as "mar" is
  bool has_time_ = false;
  int hour_ = 0, minute_ = 0, second_ = 0;  // hour -1: it cannot be
  std::string fraction_;
  std::optional<int> offset_;  // minutes east of UTC
};

}  // namespace

Result<std::string> date_in(std::string_view text, std::optional<bool> day_first) {
  text = trim_space(text);
  if (text.size() > kMostDateBytes)
    return fail(Errc::invalid_input, fmt::format("{}: this is no date", in_quotes(text, 60)));
  const std::string of_script = milliseconds_of_json(text);
  if (!of_script.empty()) return DateReader(text, of_script, day_first).read();
  const std::string of_signs = from_date_signs(text);
  const bool is_ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return DateReader(text,
                    !of_signs.empty() ? of_signs
                    : is_ascii        ? std::string(text)
                                      : in_ascii_numerals(text, '\0'),
                    day_first)
      .read();
}

}  // namespace argiope

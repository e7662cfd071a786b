#include "argiope/web/robots.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>

#include "argiope/web/detail/charset.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// How a byte of a path or pattern is written for comparison (RFC 9309, 2.2.2 and 2.2.3).
//
// The RFC has reserved characters compared in their escaped form, and its table escapes them where they separate
// nothing ("/foo/bar?baz=https://foo.bar"). Escaping all of them would make "%2F" a "/"; so one that can only be data
// means the same escaped or not, one that separates is never mixed up with its escape, and "/" and "?" separate in the
// path only.
enum class Spelling : std::uint8_t {
  plain,      // unreserved, or reserved and never a separator: its escape is undone
  separator,  // stays as it is, and so does its escape
  escaped,    // the others; "*" and "$" among them, so that in a pattern they are special and their escapes are not
  percent,    // begins an escape, or is to be escaped itself
};

constexpr std::array<Spelling, 256> kSpellings = [] {
  std::array<Spelling, 256> table{};
  table.fill(Spelling::escaped);
  for (int c = 0; c < 0x80; ++c) {
    if (is_alnum(static_cast<char>(c))) table[static_cast<std::size_t>(c)] = Spelling::plain;
  }
  for (const char c : std::string_view("-._~!'(),;:@[]")) table[static_cast<unsigned char>(c)] = Spelling::plain;
  for (const char c : std::string_view("/?&=+")) table[static_cast<unsigned char>(c)] = Spelling::separator;
  table['%'] = Spelling::percent;
  return table;
}();
constexpr Spelling spelling(char c) noexcept { return kSpellings[static_cast<unsigned char>(c)]; }

// Most paths are in their normal form already.
bool is_normal(std::string_view path) noexcept {
  bool normal = true;
  for (const char c : path) normal = normal & (spelling(c) <= Spelling::separator);
  return normal;
}

void append_escape(std::string& to, char c) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  to.append({'%', kHex[byte >> 4], kHex[byte & 15]});
}

// Appends the normal form of `text`. A path has its separators' escapes undone behind the first "?", where they
// separate nothing; a pattern's stay, as with wildcards nobody knows where they will be compared, and see
// query_separator().
enum class Kind : std::uint8_t { path, pattern };
void append_normal(std::string& to, std::string_view text, Kind kind) {
  const std::size_t query = kind == Kind::path ? text.find('?') : std::string_view::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool was_escaped = false;
    if (c == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      c = static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      was_escaped = true;
    }
    const bool special = kind == Kind::pattern && !was_escaped && (c == '*' || (c == '$' && i + 1 == text.size()));
    const bool bare = spelling(c) == Spelling::plain || special ||
                      (spelling(c) == Spelling::separator && (!was_escaped || ((c == '/' || c == '?') && i > query)));
    if (bare) {
      to += c;
    } else {
      append_escape(to, c);
    }
    if (was_escaped) i += 2;
  }
}

// The byte that the pattern's escape at `p` also stands for in a query, or 0.
constexpr char query_separator(std::string_view pattern, std::size_t p) noexcept {
  const std::string_view escape = pattern.substr(p, 3);
  return escape == "%2F" ? '/' : escape == "%3F" ? '?' : '\0';
}

constexpr std::array<std::uint64_t, 9> kHeadMasks = [] {
  std::array<std::uint64_t, 9> masks{};
  for (std::size_t size = 1; size < 8; ++size) masks[size] = (std::uint64_t{1} << (8 * size)) - 1;
  masks[8] = ~std::uint64_t{0};
  return masks;
}();

// The first eight bytes, zeros behind the end: no normal path holds a zero.
std::uint64_t load_head(std::string_view text) noexcept {
  std::uint64_t head = 0;
  if (text.size() >= 8) {
    std::memcpy(&head, text.data(), 8);
  } else {
    for (std::size_t i = 0; i < text.size(); ++i) head |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  return head;
}
static_assert(std::endian::native == std::endian::little, "load_head() and kHeadMasks agree on little-endian machines");

// A run of letters, digits, "-" and "_"; what follows, such as a version, is nobody's concern. (Digits are no part of
// the RFC's tokens, but of real crawlers' names.)
std::string_view leading_token(std::string_view text) noexcept {
  std::size_t size = 0;
  while (size < text.size() && (is_alnum(text[size]) || text[size] == '-' || text[size] == '_')) ++size;
  return text.substr(0, size);
}

constexpr std::size_t kLongestNumber = 64;

enum class Key : std::uint8_t { user_agent, allow, disallow, crawl_delay, sitemap, other };

// In lower case. The misspellings are those Google accepts.
constexpr std::pair<std::string_view, Key> kKeys[] = {
    {"user-agent", Key::user_agent},   {"useragent", Key::user_agent},
    {"user agent", Key::user_agent},   {"allow", Key::allow},
    {"disallow", Key::disallow},       {"dissallow", Key::disallow},
    {"dissalow", Key::disallow},       {"disalow", Key::disallow},
    {"diasllow", Key::disallow},       {"disallaw", Key::disallow},
    {"sitemap", Key::sitemap},         {"site-map", Key::sitemap},
    {"crawl-delay", Key::crawl_delay},
};

Key find_key(std::string_view name) noexcept {
  for (const auto& [known, key] : kKeys) {
    if (equals_lower(name, known)) return key;
  }
  return Key::other;
}

struct Line {
  Key key = Key::other;
  std::string_view value;
};

// "key: value # comment"; also "key value", if it is that and nothing more.
Line read_line(std::string_view text) noexcept {
  text = trim_space(text.substr(0, text.find('#')));
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    return {find_key(trim_space(text.substr(0, colon))), trim_space(text.substr(colon + 1))};
  }
  const std::size_t gap = text.find_first_of(" \t");
  if (gap == std::string_view::npos) return {};
  const std::string_view value = trim_space(text.substr(gap));
  if (value.find_first_of(" \t") != std::string_view::npos) return {};
  return {find_key(text.substr(0, gap)), value};
}

// nullopt for what is no length of time; "10s" and "+10" are 10, "0,5" is a half.
std::optional<Duration> read_delay(std::string_view value) {
  std::string text(value.substr(value.starts_with('+') ? 1 : 0, kLongestNumber));
  std::ranges::replace(text, ',', '.');
  double seconds = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // More than any number (1e400) is for ever, as "inf" is; less than any (1e-400) is nothing.
  if (ec == std::errc::result_out_of_range && text.front() != '-') {
    return text.contains("e-") || text.contains("E-") ? Duration{} : RobotsRules::kLongestCrawlDelay;
  }
  if (ec != std::errc{} || !(seconds >= 0)) return std::nullopt;
  return std::min(from_seconds(seconds), RobotsRules::kLongestCrawlDelay);
}

}  // namespace

RobotsVerdict robots_policy(int status) noexcept {
  if (status >= 200 && status < 300) return RobotsVerdict::parse;
  // 304 was not asked for: there are rules, and nobody has told them.
  if (status >= 300 && status < 500 && status != 304 && status != 429) return RobotsVerdict::allow_all;
  return RobotsVerdict::disallow_all;
}

RobotsVerdict robots_policy(const Error& error) noexcept {
  return error.code == Errc::not_found ? RobotsVerdict::allow_all : RobotsVerdict::disallow_all;
}

// Reads a file line by line, keeping the groups that name us apart from those for everybody.
class RobotsParser {
 public:
  explicit RobotsParser(std::string_view product_token) : token_(leading_token(product_token)) {}

  RobotsRules parse(std::string_view file) {
    if (file.size() >= RobotsRules::kMostBytes) {
      file = file.substr(0, RobotsRules::kMostBytes);
      file = file.substr(0, file.find_last_of("\r\n") + 1);
    }
    if (file.starts_with("\xef\xbb\xbf")) file.remove_prefix(3);
    while (!file.empty()) {
      const std::size_t end = std::min(file.find_first_of("\r\n"), file.size());
      take(read_line(file.substr(0, end)));
      file.remove_prefix(std::min(end + 1, file.size()));
    }
    // RFC 9309, 2.2.1: the group for everybody counts only where none names us.
    RobotsRules rules = std::move(named_ ? ours_ : everybodys_);
    rules.sitemaps_ = std::move(sitemaps_);
    rules.put_in_order();
    return rules;
  }

 private:
  void take(const Line& line) {
    switch (line.key) {
      case Key::user_agent: user_agent(line.value); break;
      case Key::allow:
      case Key::disallow: rule(line.value, line.key == Key::allow); break;
      case Key::crawl_delay: delay(line.value); break;
      case Key::sitemap:
        if (!line.value.empty() && sitemaps_.size() < RobotsRules::kMostSitemaps) sitemaps_.emplace_back(line.value);
        break;
      case Key::other: break;
    }
  }

  // User-agent lines open one group together until its first rule; other records do not come between (2.2.4).
  void user_agent(std::string_view value) {
    if (!naming_) for_us_ = for_everybody_ = false;
    naming_ = true;
    if (value.starts_with('*')) {
      for_everybody_ = for_everybody_ || leading_token(value.substr(1)).empty();
    } else if (!token_.empty() && equals_ignoring_case(leading_token(value), token_)) {
      for_us_ = named_ = true;
    }
  }

  void rule(std::string_view pattern, bool allow) {
    naming_ = false;
    if (for_us_) ours_.add(pattern, allow);
    if (for_everybody_) everybodys_.add(pattern, allow);
  }

  void delay(std::string_view value) {
    const auto wait = read_delay(value);
    if (!wait) return;
    if (for_us_) ours_.crawl_delay_ = std::max(ours_.crawl_delay_, wait);
    if (for_everybody_) everybodys_.crawl_delay_ = std::max(everybodys_.crawl_delay_, wait);
  }

  std::string_view token_;
  RobotsRules ours_;
  RobotsRules everybodys_;
  std::vector<std::string> sitemaps_;
  bool naming_ = false;  // no rule has come since the last user-agent line
  bool for_us_ = false;
  bool for_everybody_ = false;
  bool named_ = false;
};

RobotsRules RobotsRules::disallow_all() {
  RobotsRules rules;
  rules.add("/", false);
  return rules;
}

RobotsRules RobotsRules::parse(std::string_view file, std::string_view product_token) {
  // Some editors write UTF-16. It has to be UTF-8, of which the parser skips the mark.
  const bool is_utf16 = file.starts_with("\xff\xfe") || file.starts_with("\xfe\xff");
  if (!is_utf16) return RobotsParser(product_token).parse(file);
  const CharsetDecision charset = detect_charset(file, {});
  file = file.substr(charset.bom_length, 2 * kMostBytes);
  return RobotsParser(product_token).parse(to_utf8(file, charset.name).value_or(std::string{}));
}

void RobotsRules::add(std::string_view pattern, bool allow) {
  // An empty pattern matches nothing.
  if (pattern.empty() || rules_.size() == kMostRules) return;
  const std::size_t offset = text_.size();
  // Paths begin with "/", so that a pattern that does not was meant to.
  if (pattern.front() != '/' && pattern.front() != '*') text_ += '/';
  append_normal(text_, pattern, Kind::pattern);
  const std::string_view normal = std::string_view(text_).substr(offset);
  std::size_t prefix = 0;
  while (prefix < normal.size() && normal[prefix] != '*' && normal[prefix] != '$' &&
         query_separator(normal, prefix) == '\0') {
    ++prefix;
  }
  const std::size_t head_size = std::min<std::size_t>(prefix, 8);
  rules_.push_back({load_head(normal.substr(0, head_size)), static_cast<std::uint32_t>(offset),
                    static_cast<std::uint32_t>(normal.size()), static_cast<std::uint8_t>(head_size), allow,
                    prefix == normal.size()});
}

void RobotsRules::put_in_order() {
  std::ranges::sort(
      rules_, [](const Rule& a, const Rule& b) { return a.size != b.size ? a.size > b.size : a.allow && !b.allow; });
  rules_.shrink_to_fit();
  text_.shrink_to_fit();
}

bool RobotsRules::allowed(std::string_view path_and_query) const {
  if (rules_.empty()) return true;
  std::string normal;
  if (!is_normal(path_and_query)) {
    append_normal(normal, path_and_query, Kind::path);
    path_and_query = normal;
  }
  if (path_and_query == "/robots.txt") return true;
  const std::size_t query = path_and_query.find('?');
  const std::uint64_t head = load_head(path_and_query);
  std::size_t steps_left = kMostSteps;
  for (const Rule& rule : rules_) {
    if ((head & kHeadMasks[rule.head_size]) != rule.head) continue;
    if (matches(rule, path_and_query, query, steps_left)) return rule.allow;
    if (steps_left == 0) return false;
  }
  return true;
}

// "*" matches any run of bytes, "$" at the end the end. Only the last "*" met is ever widened, which suffices as the
// ones before it have taken the least they could; so the cost is at most pattern times path. The rule's head is known
// to fit.
bool RobotsRules::matches(const Rule& rule, std::string_view path, std::size_t query,
                          std::size_t& steps_left) const noexcept {
  std::string_view pattern = std::string_view(text_).substr(rule.offset, rule.size);
  if (rule.plain) return rule.size <= 8 || path.substr(8).starts_with(pattern.substr(8));
  const bool anchored = pattern.ends_with('$');
  if (anchored) pattern.remove_suffix(1);
  std::size_t p = rule.head_size, s = rule.head_size;
  std::size_t star = std::string_view::npos, resume = 0;
  for (; steps_left > 0; --steps_left) {
    if (p == pattern.size() && (!anchored || s == path.size())) return true;
    if (p < pattern.size() && pattern[p] == '*') {
      if (p + 1 == pattern.size()) return true;
      star = p++;
      resume = s;
    } else if (p < pattern.size() && s < path.size() && pattern[p] == path[s]) {
      ++p;
      ++s;
    } else if (p < pattern.size() && s < path.size() && s > query && path[s] == query_separator(pattern, p)) {
      p += 3;
      ++s;
    } else if (star != std::string_view::npos && resume < path.size()) {
      p = star + 1;
      ++resume;
      // On to where the text behind the "*" can begin. Escapes have more than one beginning.
      if (p < pattern.size() && pattern[p] != '*' && pattern[p] != '%') resume = path.find(pattern[p], resume);
      if (resume == std::string_view::npos) return false;
      s = resume;
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace argiope

#include "argiope/web/robots.hpp"

#include <algorithm>
#include <charconv>

#include "web/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRules = 50'000;

// RFC 3986, 2.3
constexpr bool is_unreserved(char c) noexcept {
  return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

// "*" matches any run of bytes, "$" at the end the end. Each "*" is tried at its first fitting place only and moved on
// when the rest fails, so the cost is at most pattern times path.
bool matches(std::string_view pattern, std::string_view path) noexcept {
  const bool anchored = pattern.ends_with('$');
  if (anchored) pattern.remove_suffix(1);
  std::size_t p = 0, s = 0, star = std::string_view::npos, resume = 0;
  for (;;) {
    if (p == pattern.size() && (!anchored || s == path.size())) return true;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = s;
    } else if (p < pattern.size() && s < path.size() && pattern[p] == path[s]) {
      ++p;
      ++s;
    } else if (star != std::string_view::npos && resume < path.size()) {
      p = star + 1;
      s = ++resume;
    } else {
      return false;
    }
  }
}

}  // namespace

std::string normalize_robots_path(std::string_view path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string normal;
  normal.reserve(path.size());
  const auto escape = [&](unsigned char byte) { normal.append({'%', kHex[byte >> 4], kHex[byte & 15]}); };
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    if (byte == '%' && i + 2 < path.size() && hex_value(path[i + 1]) >= 0 && hex_value(path[i + 2]) >= 0) {
      const auto value = static_cast<unsigned char>(hex_value(path[i + 1]) * 16 + hex_value(path[i + 2]));
      if (is_unreserved(static_cast<char>(value))) {
        normal += static_cast<char>(value);
      } else {
        escape(value);
      }
      i += 2;
    } else if (byte >= 0x80 || byte <= 0x20) {
      escape(byte);
    } else {
      normal += static_cast<char>(byte);
    }
  }
  return normal;
}

RobotsVerdict robots_policy(int status) noexcept {
  if (status >= 200 && status < 300) return RobotsVerdict::parse;
  if (status == 429 || status >= 500) return RobotsVerdict::disallow_all;
  return RobotsVerdict::allow_all;
}

RobotsVerdict robots_policy(const Error& error) noexcept {
  return error.code == Errc::not_found ? RobotsVerdict::allow_all : RobotsVerdict::disallow_all;
}

// Reads a file line by line, keeping the groups that name us apart from those for everybody.
class RobotsParser {
 public:
  explicit RobotsParser(std::string_view product_token) : token_(product_token) {}

  RobotsRules parse(std::string_view file) {
    if (file.size() > RobotsRules::kMostBytes) {
      file = file.substr(0, RobotsRules::kMostBytes);
      file = file.substr(0, file.find_last_of("\r\n") + 1);
    }
    if (file.starts_with("\xef\xbb\xbf")) file.remove_prefix(3);
    while (!file.empty()) {
      const std::size_t end = std::min(file.find_first_of("\r\n"), file.size());
      line(file.substr(0, end));
      file.remove_prefix(std::min(end + 1, file.size()));
    }
    // RFC 9309, 2.2.1: the group for everybody counts only where none names us.
    RobotsRules rules = std::move(named_ ? ours_ : everybodys_);
    rules.sitemaps_ = std::move(sitemaps_);
    std::ranges::sort(rules.rules_, [](const auto& a, const auto& b) {
      return a.pattern.size() != b.pattern.size() ? a.pattern.size() > b.pattern.size() : a.allow && !b.allow;
    });
    return rules;
  }

 private:
  void line(std::string_view text) {
    text = text.substr(0, text.find('#'));
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = trim_space(text.substr(0, colon));
    const std::string_view value = trim_space(text.substr(colon + 1));
    if (equals_ignoring_case(key, "user-agent")) {
      user_agent(value);
    } else if (equals_ignoring_case(key, "allow") || equals_ignoring_case(key, "disallow")) {
      rule(value, to_lower(key.front()) == 'a');
    } else if (equals_ignoring_case(key, "crawl-delay")) {
      delay(value);
    } else if (equals_ignoring_case(key, "sitemap")) {
      // Belongs to no group, and does not end one.
      if (!value.empty() && sitemaps_.size() < RobotsRules::kMostSitemaps) sitemaps_.emplace_back(value);
    }
  }

  // Consecutive user-agent lines open one group together; the first rule closes the list.
  void user_agent(std::string_view value) {
    if (!naming_) for_us_ = for_everybody_ = false;
    naming_ = true;
    // The product token is the leading run of letters, "-" and "_"; a version behind it is nobody's concern.
    std::size_t length = 0;
    while (length < value.size() && is_unreserved(value[length]) && value[length] != '.' &&
           value[length] != '~') {
      ++length;
    }
    if (value.starts_with('*')) {
      for_everybody_ = true;
    } else if (length > 0 && equals_ignoring_case(value.substr(0, length), token_)) {
      for_us_ = named_ = true;
    }
  }

  template <class Change>
  void change_groups(Change&& change) {
    naming_ = false;
    if (for_us_) change(ours_);
    if (for_everybody_) change(everybodys_);
  }

  void rule(std::string_view pattern, bool allow) {
    change_groups([&](RobotsRules& group) {
      // An empty pattern matches nothing; one that does not begin with "/" or "*" cannot match a path.
      if (pattern.empty() || group.rules_.size() == kMostRules) return;
      std::string normal = normalize_robots_path(pattern);
      if (normal.front() != '/' && normal.front() != '*') normal.insert(normal.begin(), '/');
      const bool plain = normal.find('*') == std::string::npos && normal.back() != '$';
      group.rules_.push_back({std::move(normal), allow, plain});
    });
  }

  void delay(std::string_view value) {
    double seconds = 0;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (ec != std::errc{} || !(seconds >= 0)) return;
    const Duration wait = std::min(from_seconds(seconds), RobotsRules::kLongestCrawlDelay);
    change_groups([&](RobotsRules& group) { group.crawl_delay_ = wait; });
  }

  std::string_view token_;
  RobotsRules ours_;
  RobotsRules everybodys_;
  std::vector<std::string> sitemaps_;
  bool naming_ = false;  // the last line of any group was a user-agent line
  bool for_us_ = false;
  bool for_everybody_ = false;
  bool named_ = false;
};

RobotsRules RobotsRules::disallow_all() {
  RobotsRules rules;
  rules.rules_.push_back({"/", false, true});
  return rules;
}

RobotsRules RobotsRules::parse(std::string_view file, std::string_view product_token) {
  return RobotsParser(product_token).parse(file);
}

bool RobotsRules::allowed(std::string_view path_and_query) const {
  if (rules_.empty()) return true;
  if (path_and_query == "/robots.txt") return true;
  std::string normal;
  const bool needs_normalising = std::ranges::any_of(path_and_query, [](char c) {
    return c == '%' || static_cast<unsigned char>(c) >= 0x80 || static_cast<unsigned char>(c) <= 0x20;
  });
  if (needs_normalising) {
    normal = normalize_robots_path(path_and_query);
    path_and_query = normal;
  }
  for (const Rule& rule : rules_) {
    if (rule.plain ? path_and_query.starts_with(rule.pattern) : matches(rule.pattern, path_and_query)) return rule.allow;
  }
  return true;
}

}  // namespace argiope

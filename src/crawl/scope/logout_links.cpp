#include "crawl/scope/logout_links.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kLogoutWords[] = {"logout",    "logoff",      "signout",      "signoff",   "endsession",
                                             "ausloggen", "deconnexion", "cerrarsesion", "uitloggen", "wyloguj"};
// Prefixes of one: "Special:UserLogout", "auth-signout", "do_logout". Of two that begin alike the longer comes first.
constexpr std::string_view kLogoutPrefixes[] = {"users",    "user", "accounts", "account", "members", "member", "admin",
                                                "customer", "auth", "session",  "sso",     "saml",    "oauth2", "oauth",
                                                "oidc",     "do",   "perform",  "special", "my",      "wp"};
constexpr std::size_t kLongestLogoutName = 40;
// Of names that lead to a page or a program: "logout.png" is a picture.
constexpr std::string_view kPageExtensions[] = {"php",  "php5", "phtml", "asp",    "aspx", "ashx", "jsp",
                                                "jspx", "jsf",  "do",    "action", "cgi",  "pl",   "py",
                                                "cfm",  "html", "htm",   "xhtml",  "dll",  "exe"};

// The letters and digits of a name in lower case; longer ones are no logout.
class Squeezed {
 public:
  explicit Squeezed(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '%' && at + 2 < text.size() && hex_value(text[at + 1]) >= 0 && hex_value(text[at + 2]) >= 0) {
        at += 2;
        continue;
      }
      if (!is_alnum(text[at])) continue;
      if (size_ == letters_.size()) {
        size_ = 0;
        return;
      }
      letters_[size_++] = to_lower(text[at]);
    }
  }
  std::string_view text() const noexcept { return {letters_.data(), size_}; }

 private:
  std::array<char, kLongestLogoutName> letters_;
  std::size_t size_ = 0;
};

bool is_logout_word(std::string_view name) noexcept {
  for (bool shorter = true; shorter;) {
    if (std::ranges::find(kLogoutWords, name) != std::end(kLogoutWords)) return true;
    shorter = false;
    for (const std::string_view prefix : kLogoutPrefixes) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      shorter = true;
      break;
    }
  }
  return false;
}

// "logout", "Log-Out", "logout.php", "logout;jsessionid=1", "user.logout".
bool is_logout_name(std::string_view name) noexcept {
  name = name.substr(0, name.find(';'));
  if (is_logout_word(Squeezed(name).text())) return true;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const auto is_extension = [&](std::string_view extension) { return equals_lower(name.substr(dot + 1), extension); };
  return std::ranges::any_of(kPageExtensions, is_extension) && is_logout_word(Squeezed(name.substr(0, dot)).text());
}

// Calls `visit` for each part of `text` between separators, until it gives true; whether it did.
template <class Visit>
bool any_part(std::string_view text, char separator, Visit visit) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (visit(text.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

// A value with a slash is a place to go to afterwards, as in "?next=/logout".
bool is_logout_parameter(std::string_view pair) noexcept {
  const std::size_t equals = pair.find('=');
  if (is_logout_name(pair.substr(0, equals))) return true;
  if (equals == std::string_view::npos) return false;
  const std::string_view value = pair.substr(equals + 1);
  const bool has_slash = value.contains('/') || value.contains("%2F") || value.contains("%2f");
  return !has_slash && is_logout_name(value);
}

std::vector<std::string> naming_a_logout(const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns) {
    std::string letters;
    for (const char c : pattern) {
      if (is_alnum(c)) letters += to_lower(c);
    }
    const auto has = [&](std::string_view word) { return letters.contains(word); };
    if (std::ranges::any_of(kLogoutWords, has)) found.push_back(pattern);
  }
  return found;
}

UrlPatterns compile_logouts(const std::vector<std::string>& patterns) {
  auto compiled = UrlPatterns::compile(naming_a_logout(patterns));
  if (!compiled) throw std::invalid_argument(compiled.error().message);
  return *std::move(compiled);
}

}  // namespace

bool reads_as_logout(std::string_view href) noexcept {
  const std::size_t scheme = href.find("://");
  const std::size_t path = href.find_first_of("/?#", scheme == std::string_view::npos ? 0 : scheme + 3);
  if (path == std::string_view::npos) return false;
  std::string_view rest = href.substr(path);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t query = rest.find('?');
  if (any_part(rest.substr(0, query), '/', is_logout_name)) return true;
  return query != std::string_view::npos && any_part(rest.substr(query + 1), '&', is_logout_parameter);
}

LogoutGuard::LogoutGuard(const std::vector<std::string>& include) : let_through_(compile_logouts(include)) {}

}  // namespace argiope

// cookies.txt: cookies as the tools of thirty years exchange them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "argiope/web/http_session.hpp"
#include "base/internal/counted.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kHttpOnlyMark = "#HttpOnly_";
constexpr std::size_t kCookieLineFields = 7;

enum CookieColumn : std::uint8_t {
  kCookieDomain,
  kCookieWithSubdomains,
  kCookiePath,
  kCookieSecure,
  kCookieExpires,
  kCookieName,
  kCookieValue
};
using CookieLine = std::array<std::string_view, kCookieLineFields>;

// Nothing that a line holds is told: all of it may be a secret.
std::unexpected<Error> bad_cookie_line(std::size_t number, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("line {}: {}", number, what));
}

// The fields between tabs; the value may have tabs itself. How many there were.
std::size_t split_cookie_line(std::string_view line, CookieLine& fields) {
  std::size_t count = 0;
  for (; count < kCookieLineFields; ++count) {
    const std::size_t tab = count == kCookieValue ? std::string_view::npos : line.find('\t');
    fields[count] = line.substr(0, tab);
    if (tab == std::string_view::npos) return count + 1;
    line.remove_prefix(tab + 1);
  }
  return count;
}

// Seconds since 1970; what stands behind a point does not count.
std::optional<std::int64_t> seconds_of_field(std::string_view text) {
  text = text.substr(0, text.find('.'));
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return seconds;
}

WallTime wall_time_of_seconds(std::int64_t seconds) {
  constexpr std::int64_t kMost =
      std::chrono::floor<std::chrono::seconds>(WallTime::max()).time_since_epoch().count() - 1;
  return WallTime{std::chrono::seconds{std::min(seconds, kMost)}};
}

Result<Cookie> cookie_of_line(std::string_view line, std::size_t number) {
  Cookie cookie;
  cookie.http_only = line.starts_with(kHttpOnlyMark);
  if (cookie.http_only) line.remove_prefix(kHttpOnlyMark.size());
  CookieLine fields;
  const std::size_t count = split_cookie_line(line, fields);
  // An editor may have taken away the tab at the end, and with it an empty value.
  if (count + 1 < kCookieLineFields) {
    return bad_cookie_line(number, fmt::format("seven fields with tabs between them make a cookie, and here {} {}; are "
                                               "the tabs spaces? Lines of cookies.txt are domain, TRUE or FALSE, path, "
                                               "TRUE or FALSE, time, name, value",
                                               count == 1 ? "is" : "are", counted(count, "field")));
  }
  std::string_view domain = fields[kCookieDomain];
  if (domain.starts_with('.')) domain.remove_prefix(1);
  // A host that is not ASCII is one of IDNA.
  const auto url = Url::parse(fmt::format("http://{}/", domain));
  if (domain.starts_with('.') || domain.find_first_of("/?#@\\") != std::string_view::npos || !url ||
      !url->port().empty()) {
    return bad_cookie_line(number, "its first field is no domain");
  }
  const auto seconds = seconds_of_field(fields[kCookieExpires]);
  if (!seconds) {
    return bad_cookie_line(number, "its fifth field is no time: seconds since 1970, or 0 until the session ends");
  }
  cookie.domain.assign(url->host());
  cookie.host_only = !equals_lower(fields[kCookieWithSubdomains], "true");
  cookie.path.assign(fields[kCookiePath].starts_with('/') ? fields[kCookiePath] : "/");
  cookie.secure = equals_lower(fields[kCookieSecure], "true");
  if (*seconds > 0) cookie.expires = wall_time_of_seconds(*seconds);
  cookie.name.assign(fields[kCookieName]);
  if (count == kCookieLineFields) cookie.value.assign(fields[kCookieValue]);
  return cookie;
}

std::string_view as_cookie_flag(bool flag) noexcept { return flag ? "TRUE" : "FALSE"; }

}  // namespace

Result<std::vector<Cookie>> parse_cookies_txt(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (const std::string_view start = trim_space(text); start.starts_with('[') || start.starts_with('{')) {
    return fail(Errc::invalid_input, "this is JSON; cookies are read in the format of Netscape's cookies.txt");
  }
  std::vector<Cookie> cookies;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_comment = line.starts_with('#') && !line.starts_with(kHttpOnlyMark);
    if (is_comment || trim_space(line).empty()) continue;
    auto cookie = cookie_of_line(line, number);
    if (!cookie) return std::unexpected(std::move(cookie.error()));
    cookies.push_back(std::move(*cookie));
  }
  return cookies;
}

std::string format_cookies_txt(const std::vector<Cookie>& cookies) {
  std::string text = "# Netscape HTTP Cookie File\n";
  for (const Cookie& cookie : cookies) {
    if (cookie.name.contains('\t') || cookie.path.contains('\t')) continue;
    const std::int64_t expires =
        cookie.expires ? std::chrono::ceil<std::chrono::seconds>(*cookie.expires).time_since_epoch().count() : 0;
    text += fmt::format("{}{}{}\t{}\t{}\t{}\t{}\t{}\t{}\n", cookie.http_only ? kHttpOnlyMark : "",
                        cookie.host_only ? "" : ".", cookie.domain, as_cookie_flag(!cookie.host_only), cookie.path,
                        as_cookie_flag(cookie.secure), expires, cookie.name, cookie.value);
  }
  return text;
}

}  // namespace argiope

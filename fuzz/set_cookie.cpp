// Set-Cookie: fields of some servers in turn, into one jar of little room; then what each of them is sent. A line of
// the input that begins with "@" says which URL the next ones come from.
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/web/http_session.hpp"
#include "fuzz/require.hpp"
#include "web/session/cookie_date.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  constexpr WallTime kNow{std::chrono::seconds{1767225600}};
  std::string_view input(reinterpret_cast<const char*>(data), size);
  (void)parse_cookie_date(input);
  const CookieLimits limits{.cookies_per_site = 4, .bytes_per_site = 3000, .cookies = 8, .bytes = 8000};
  CookieJar jar(limits);
  jar.watch();
  Url from = *Url::parse("https://www.example.org/a/b");
  WallTime now = kNow;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    now += std::chrono::seconds{1};
    if (line.starts_with('@')) {
      if (auto url = Url::parse(line.substr(1))) from = std::move(*url);
      continue;
    }
    const std::string before = jar.field_for(from, now);
    const bool changed = jar.take(from, line, now);
    const std::string after = jar.field_for(from, now);
    require(changed || before == after);  // what is sent differs only when that is told
    for (const char c : after) require((c >= ' ' || c == '\t' || c < 0) && c != 0x7f);  // a field is one line
    require(jar.size() <= limits.cookies);                                              // there is room for so many
  }
  // What is kept survives a file.
  const std::string text = format_cookies_txt(jar.all(now));
  const auto again = parse_cookies_txt(text);
  require(again.has_value());  // what is written is read
  CookieJar second(limits);
  for (const Cookie& cookie : *again) require(second.put(cookie, now));  // and each of it is sound
  require(format_cookies_txt(second.all(now)) == text);                  // and the same
  (void)jar.take_changes(now);
  return 0;
}

// cookies.txt: any file; then what of it a jar takes, written and read again.
#include <cstdint>
#include <string_view>

#include "argiope/web/http_session.hpp"
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  constexpr WallTime kNow{std::chrono::seconds{1767225600}};
  const auto cookies = parse_cookies_txt({reinterpret_cast<const char*>(data), size});
  if (!cookies) return 0;
  CookieJar jar;
  for (const Cookie& cookie : *cookies) jar.put(cookie, kNow);
  const std::string text = format_cookies_txt(jar.all(kNow));
  const auto again = parse_cookies_txt(text);
  require(again.has_value());  // what is written is read
  CookieJar second;
  for (const Cookie& cookie : *again) require(second.put(cookie, kNow));  // and each of it is sound
  require(format_cookies_txt(second.all(kNow)) == text);                  // and the same
  return 0;
}

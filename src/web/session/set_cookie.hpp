// One Set-Cookie field, taken apart (RFC 6265bis, 5.6). The jar decides what becomes of it (cookies.cpp).
#pragma once

#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

// RFC 6265bis, 5.5.
inline constexpr Duration kLongestCookieLife = std::chrono::days{400};
inline constexpr std::size_t kMostCookieBytes = 4096;     // of name and value
inline constexpr std::size_t kMostAttributeBytes = 1024;  // of an attribute's value; longer ones are passed over

// Views into the field. SameSite, Partitioned, Priority and unknown attributes are passed over: they are about pages
// inside of pages, which a program without windows has none of.
struct SetCookie {
  std::string_view name;  // may be empty
  std::string_view value;
  std::string_view domain;               // without its leading dot; empty: the host's own
  std::optional<std::string_view> path;  // empty: what the URL's default is, by an attribute of its own
  std::optional<WallTime> expires;       // Max-Age before Expires; nullopt: with the session
  bool secure = false;
  bool http_only = false;
};

// nullopt for one to ignore: control characters, more than kMostCookieBytes, neither name nor value.
// Cost: linear in the field.
std::optional<SetCookie> parse_set_cookie(std::string_view field, WallTime now);

}  // namespace argiope

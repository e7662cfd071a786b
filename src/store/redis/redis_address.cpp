#include "store/redis/redis_address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kPlain = "redis://", kTls = "rediss://";
constexpr std::size_t kMostPrefixBytes = 100;
constexpr double kLongestTimeoutSeconds = 86'400;

std::optional<std::string> redis_unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (text.size() - i < 3) return std::nullopt;
    const char* const digits = text.data() + i + 1;
    const auto read = std::from_chars(digits, digits + 2, byte, 16);
    if (read.ec != std::errc{} || read.ptr != digits + 2) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

// The part before `mark`, which is taken off with it; nullopt: there is none.
std::optional<std::string_view> take_until(std::string_view& text, std::size_t mark) {
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, mark);
  text.remove_prefix(mark + 1);
  return before;
}

}  // namespace

std::string RedisAddress::shown() const {
  if (host.starts_with('/')) return fmt::format("redis {} database {}", host, database);
  return fmt::format("redis {}:{} database {}", host, port, database);
}

bool is_redis(std::string_view where) noexcept { return where.starts_with(kPlain) || where.starts_with(kTls); }

// A password with a raw "/" in it would end the place early, so all before the last "@" goes.
std::string redis_url_without_password(std::string_view where) {
  const std::size_t scheme = where.find("//") + 2, at = where.rfind('@');
  if (at == std::string_view::npos || at < scheme) return std::string(where);
  return std::string(where.substr(0, scheme)).append(where.substr(at + 1));
}

// The text as it was given is in no error: a password may be anywhere in it.
Result<RedisAddress> parse_redis_url(std::string_view url) {
  const auto wrong = [](std::string_view what) {
    return fail(Errc::invalid_input,
                fmt::format("store redis://…: {}; give redis://[user:password@]host[:port][/DB][?prefix=…]", what));
  };
  if (url.starts_with(kTls)) {
    return fail(Errc::unsupported,
                "store rediss://…: this build's Redis client (hiredis 0.14) has no TLS; give redis:// through a tunnel "
                "(stunnel, spiped) or a Unix socket");
  }
  if (!url.starts_with(kPlain)) return wrong("another scheme");
  std::string_view rest = url.substr(kPlain.size());
  std::string_view options;
  if (const auto before = take_until(rest, rest.find('?'))) {
    options = std::exchange(rest, *before);
  }
  RedisAddress address;
  std::string_view place = rest, database;
  if (const auto before = take_until(place, place.find('/'))) {
    database = std::exchange(place, *before);
  }
  if (!database.empty() && !read_number(database, address.database)) return wrong("the database is a number");
  if (auto who = take_until(place, place.rfind('@'))) {
    std::string_view password = *who;
    const auto user = take_until(password, password.find(':'));
    auto plain_user = redis_unescaped(user ? *user : *who), plain_password = redis_unescaped(user ? password : "");
    if (!plain_user || !plain_password) return wrong("a % in user or password has two hexadecimal digits behind it");
    address.user = std::move(*plain_user);
    address.password = std::move(*plain_password);
    if (address.password.empty() && !address.user.empty()) return wrong("the password is missing");
  }
  std::string_view host = place;
  if (const std::size_t colon = place.rfind(':'); colon != std::string_view::npos && !place.ends_with(']')) {
    host = place.substr(0, colon);
    if (!read_number(place.substr(colon + 1), address.port) || address.port == 0) return wrong("the port is a number");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto plain_host = redis_unescaped(host);
  if (!plain_host) return wrong("a % in the host has two hexadecimal digits behind it");
  if (!plain_host->empty()) address.host = *plain_host;
  while (!options.empty()) {
    std::string_view option = options;
    if (const auto before = take_until(options, options.find('&'))) {
      option = *before;
    } else {
      options = {};
    }
    if (option.starts_with("prefix=")) {
      const auto prefix = redis_unescaped(option.substr(7));
      const bool is_good = prefix && !prefix->empty() && prefix->size() <= kMostPrefixBytes &&
                           prefix->find_first_of("{}") == std::string::npos;
      if (!is_good) return wrong("the prefix has 1 to 100 bytes and no braces");
      address.prefix = *prefix;
    } else if (option == "durability=none") {
      address.keeps_nothing = true;
    } else if (option.starts_with("store_timeout=")) {
      double seconds = 0;
      if (!read_number(option.substr(14), seconds) || !(seconds > 0) || seconds > kLongestTimeoutSeconds) {
        return wrong("store_timeout is a number of seconds, at most a day");
      }
      address.store_timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    } else {
      return wrong("its options are prefix=…, store_timeout=SECONDS and durability=none");
    }
  }
  return address;
}

}  // namespace argiope

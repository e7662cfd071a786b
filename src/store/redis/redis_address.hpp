// Where a store on Redis is: what its URL says:
// redis://[user:password@]host[:port][/DB][?prefix=…&durability=none&store_timeout=SECONDS]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

struct RedisAddress {
  std::string host = "localhost";  // a path: of a Unix socket
  std::uint16_t port = 6379;
  std::string user, password;  // empty: none
  std::uint32_t database = 0;
  std::string prefix = "argiope";
  bool keeps_nothing = false;  // durability=none: a server that forgets all when it ends is good enough
  Duration store_timeout = std::chrono::seconds{30};  // how long a call waits for a server that is away

  // Without user and password.
  std::string shown() const;
};

// Whether it has the scheme of such a URL, or that of one with TLS.
bool is_redis(std::string_view where) noexcept;
// Such a URL without user and password.
std::string redis_url_without_password(std::string_view where);
// Bytes may be written as %XX, as those of a socket's path must be: redis://%2Frun%2Fredis.sock/0.
// Errors: invalid_input, which repeats no password; unsupported for rediss://.
Result<RedisAddress> parse_redis_url(std::string_view url);

}  // namespace argiope

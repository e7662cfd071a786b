// How a host is asked whether it answers and what its robots.txt says: the numbers of RFC 9309, patience, and what
// counts as a sign of life. The crawl's shards and the projects' HostDesk go by it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

inline constexpr Duration kRobotsLifetime = std::chrono::hours{24};  // RFC 9309, 2.4
inline constexpr std::size_t kRobotsBytes = 500 * 1024;              // RFC 9309, 2.5
inline constexpr int kRobotsRedirects = 5;                           // RFC 9309, 2.3.1.2
inline constexpr std::uint32_t kMostRobotsChallenges = 3;
// For the first questions to a host of which nobody knows whether it answers. If it does not, it is asked again with
// all the time there is, from among the slow ones.
inline constexpr Duration kFirstPatience = std::chrono::seconds{3};
inline constexpr Duration kRestAfterPatience = std::chrono::milliseconds{250};

// Whether who failed so is alive: it answered, if only with what is of no use.
inline bool says_something(const Error& error, const HttpResponse& response) noexcept {
  return response.connected && error.code != Errc::network && error.code != Errc::timeout;
}
constexpr bool is_plea(int status) noexcept { return status == 408 || status == 425 || status == 429; }
// Statuses that a later attempt may change. A Retry-After that comes with one is the whole host's (RFC 9110, 10.2.3).
constexpr bool is_temporary(int status) noexcept { return is_plea(status) || status >= 500; }

}  // namespace argiope

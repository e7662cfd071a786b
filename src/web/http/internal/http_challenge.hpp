// The challenges of a server with a 401, or a proxy with a 407: the fields WWW-Authenticate and Proxy-Authenticate (RFC
// 9110, 11.6.1), taken apart. How a challenge is answered is in http_authenticator.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argiope {

inline constexpr std::size_t kMostChallenges = 16;
inline constexpr std::size_t kMostChallengeParameters = 64;  // of one

struct HttpChallenge {
  std::string scheme;  // lower case: "basic", "digest", "negotiate"
  std::string token;   // where it is a token68 and no list of parameters
  // Names in lower case, values without quotes and backslashes; each name once, the first counts.
  std::vector<std::pair<std::string, std::string>> parameters;

  // Null when there is none of that name, which is in lower case.
  const std::string* parameter(std::string_view name) const noexcept;
};

// All challenges of several fields, one a line; a field may have several, with commas between. A malformed one is
// passed over as far as it can be told; nothing is beyond the limits above.
// Cost: linear in the text.
std::vector<HttpChallenge> parse_challenges(std::string_view fields);

}  // namespace argiope

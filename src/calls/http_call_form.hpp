// The common part of the forms of HTTP calls: url, method, headers, timeout.
#pragma once

#include <functional>
#include <string_view>

#include "argiope/calls/calls.hpp"
#include "base/internal/json_members.hpp"

namespace argiope::detail {

// `usual`: the method where none is said. `read_more` reads the members that not all forms have, when the others have
// been read.
Result<HttpCall> read_http_call(std::string_view json, HttpMethod usual,
                                const std::function<void(JsonMembers& in, HttpCall& call)>& read_more);

}  // namespace argiope::detail

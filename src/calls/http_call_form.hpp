// What the forms of HTTP calls have in common: url, method, headers, timeout.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/calls/http_call.hpp"
#include "base/internal/json_members.hpp"

namespace argiope::detail {

// `usual`: the method where none is said. `read_more` reads the members that not all forms have, when the others have been
// read.
Result<HttpCall> read_http_call(std::string_view json, HttpMethod usual,
                                const std::function<void(JsonMembers& in, HttpCall& call)>& read_more);

// How long the answer asks to wait before the same is sent again; nullopt: it does not say. A second at least, whatever it says: a
// server in trouble must not be flooded because it says 0, or a moment that is past.
std::optional<Duration> wait_asked_for(const HttpResponse& response, WallTime now);

}  // namespace argiope::detail

// The kept part of the answer to a request that came under a key, so that it can be given again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/jobs/detail/requests.hpp"

namespace argiope {

// A few bytes for each item: outcomes, ids and errors. The form is in files.
std::string remembered(const OnceReply& reply);
// The answer as of a repetition; nullopt for what remembered() has not written.
std::optional<OnceReply> recalled(std::string_view bytes);

}  // namespace argiope

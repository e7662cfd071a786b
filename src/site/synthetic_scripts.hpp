// The pages of a synthetic web that are something only to who runs their scripts, from /scripts/1 on: each leads to the
// next by another means. /scripts/loop never ends, /scripts/huge grows beyond all limits, and /scripts/away asks for
// what no page should.
#pragma once

#include <cstdint>

#include "site/internal/synthetic_web.hpp"

namespace argiope {

inline constexpr std::uint32_t kScriptedPages = 9;

// Fills in the answer; false when there is no such place. Pure.
bool answer_scripts(const SyntheticRequest& request, SyntheticReply& reply);

}  // namespace argiope

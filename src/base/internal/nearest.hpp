// Names that were misspelt: what was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argiope {

// The one of `names` that `word` is a slip of the fingers away from, or the beginning of; empty when none is, or when
// several are as near.
std::string nearest(std::string_view word, const std::vector<std::string>& names);
// `; did you mean "mail"?`, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace argiope

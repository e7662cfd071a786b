// White space in text, as readers of a page see it.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// The words of `text` with one space between them, as CSS collapses white space by default; U+00A0 counts as a space.
std::string collapse_space(std::string_view text);

}  // namespace argiope

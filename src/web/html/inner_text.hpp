// The text that a reader sees of an element.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace argiope {

// The text in `html` from byte `behind` to the first tag of `ends` ("/h1", "a"), or to the page's end: as link_text()
// has it, at most `most` bytes. Looks at 64 KiB at most.
std::string inner_text(std::string_view html, std::size_t behind, std::initializer_list<std::string_view> ends,
                       std::size_t most);

}  // namespace argiope

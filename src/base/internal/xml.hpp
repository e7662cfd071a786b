// Text in XML 1.0, and in HTML, whatever it holds.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// `text` for an element's content, or an attribute's value in double quotes: escaped, with U+FFFD for what is not UTF-8
// and for characters that XML 1.0 (2.2) does not have; line feeds and tabs stay, which attributes read as spaces.
std::string xml_escaped(std::string_view text);

}  // namespace argiope

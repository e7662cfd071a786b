// The encoding that a page declares in its own first bytes. Private to the charset code.
#pragma once

#include <string_view>

#include "web/text/encodings.hpp"

namespace argiope {

// "Prescan a byte stream to determine its encoding" (HTML standard, 13.2.3.2) over the first 1,024 bytes, with the XML
// declaration that the standard looks at when no meta element says anything. Null when nothing is declared.
const Encoding* prescan_encoding(std::string_view bytes) noexcept;

}  // namespace argiope

// The Link header field (RFC 8288), as far as it names a page's canonical URL (RFC 6596).
#pragma once

#include <string_view>

namespace argiope {

// The target of the first link with the relation `canonical` in `value`, as it is written: "/a" of `</a>; rel="canonical"`. Empty
// without one. Links that say they are another page's (`anchor`) do not count. A view into `value`.
std::string_view canonical_in_link_header(std::string_view value) noexcept;

}  // namespace argiope

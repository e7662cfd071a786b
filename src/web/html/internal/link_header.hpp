// The Link header field (RFC 8288), as far as it names a page's canonical URL (RFC 6596).
#pragma once

#include <string_view>

#include "argiope/web/url.hpp"

namespace argiope {

// The target of the first link with the relation `canonical` in `value`, as it is written: "/a" of
// `</a>; rel="canonical"`. Empty without one. Of several `rel` of a link the first counts; it has words between spaces,
// as in HTML, and a comma within quotes ends no link. Links with an `anchor` that is not `page` itself are another's,
// and do not count. A view into `value`.
std::string_view canonical_in_link_header(std::string_view value, const Url& page);

}  // namespace argiope

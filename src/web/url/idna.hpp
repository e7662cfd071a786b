// Host names beyond ASCII, by ICU's implementation of UTS 46.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// The URL Standard's "domain to ASCII" (not strict) of a domain in UTF-8; false when it fails.
// Needed only for names that are not ASCII: the others are merely lower-cased.
bool domain_to_ascii(std::string_view domain, std::string& out);

}  // namespace argiope

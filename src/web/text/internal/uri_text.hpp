// URLs for readers that insist on RFC 3986, which allows fewer characters than the URL Standard does.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// The same URL, or relative reference, with what RFC 3986 allows nowhere, or not there, as %XX: brackets outside a
// host, a second "#", a "%" that begins no escape.
std::string as_rfc3986(std::string_view url);

// A reference of a header field, which has no encoding: bytes that are no ASCII as %XX, one by one, as browsers read
// them.
std::string reference_of_bytes(std::string_view bytes);

// A relative reference that names a URL of the web without its scheme: "example.com/page?x" of
// "https://example.com/page?x". No colon is in its first segment, where it would end a scheme.
std::string without_scheme(std::string_view url);

}  // namespace argiope

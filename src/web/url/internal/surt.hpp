// SURT: a URL as indexes of archives sort it, with the host turned round: "com,example)/path?query".
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// As pywb and the surt library for Python have it: no scheme, no "www." in front and no user; port unless it is the
// scheme's own; percent-encoding undone where it is not needed, lower case, no doubled or last slash, no session id of
// a known kind; the parameters of the query in order. A text that is no http(s) URL is its own key. Never has a space.
std::string surt_key(std::string_view url);

}  // namespace argiope

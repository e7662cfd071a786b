// Who registers what: the public suffix list (https://publicsuffix.org), newest of the machine's and the one compiled in.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// The domain that somebody has registered, to which the host belongs: "example.co.uk" of "www.example.co.uk". The host itself
// where it is an address, a public suffix ("co.uk", "github.io"), or a name without dots.
// `host` as Url spells it: lower case, ASCII, IPv6 in brackets.
// Cost: half a microsecond. Threads: any.
std::string registrable_domain(std::string_view host);

// Whether anybody may register names below it, so that two of them have nothing to do with each other: "com", "co.uk",
// "github.io". Never an address. `host` as above.
bool is_public_suffix(std::string_view host);

}  // namespace argiope

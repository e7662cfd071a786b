// The hosts that may share cookies, and what a "domain" is to people: the public suffix list
// (https://publicsuffix.org), by libpsl. The list is the newest that the machine has, or the one that libpsl was built
// with.
#pragma once

#include <string_view>

namespace argiope {

// Whether the names below `host` belong to many owners: "com", "co.uk", "github.io"; so does any single label that the
// list does not know, as "localhost". Never of an address. `host` is spelled as Url spells it.
//
// Cost: half a microsecond. Threads: any; the list is read at the first call.
bool is_public_suffix(std::string_view host);

// The domain that its owner has registered, to which the host belongs: "example.co.uk" of "www.example.co.uk". The host
// itself where it is an address, a public suffix, or a name without dots. A view into `host`.
// Cost and threads: as above.
std::string_view registrable_domain(std::string_view host);

}  // namespace argiope

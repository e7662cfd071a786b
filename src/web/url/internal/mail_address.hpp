// Whether a mail address can be one, by its letters alone: nobody is asked.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// The fault of an address, in words; empty: nothing. RFC 5321 (4.1.2, 4.5.3.1), with the letters of all scripts that
// RFC 6531 adds; without comments, which no link has.
std::string mail_address_trouble(std::string_view address);

// The same of all addresses of a `mailto:` URL (RFC 6068): those before "?", and of its fields to, cc and bcc. One
// without any address has to have fields, as links that share something by mail do.
std::string mailto_trouble(std::string_view url);

}  // namespace argiope

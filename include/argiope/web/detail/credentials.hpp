// Names and passwords for servers that ask for them by HTTP authentication, and .netrc, where people keep them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// Sent to one server alone, when it has asked: nothing goes to another host or port, nor to http what is for https.
struct HttpCredentials {
  std::string where;  // "https://host:8443": scheme, name and port, as Url::site_key() has them
  std::string name;
  std::string password;
  bool goes_as_basic = false;  // a header field says the same already: a basic challenge then means that it is wrong

  friend bool operator==(const HttpCredentials&, const HttpCredentials&) = default;
};

struct NetrcEntry {
  std::string machine;  // as Url spells a host; empty: "default", for all that have no entry
  std::string name;
  std::string password;

  friend bool operator==(const NetrcEntry&, const NetrcEntry&) = default;
};

// The format of ftp's .netrc as curl and wget read it: words with space between, also in double quotes with "\",
// comments behind "#", macros passed over. Entries without a name are left out; of a machine the first counts.
// Errors: invalid_input, naming the line and never what it holds.
// Cost:   linear in the text.
Result<std::vector<NetrcEntry>> parse_netrc(std::string_view text);

}  // namespace argiope

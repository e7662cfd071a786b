// A file of certificate authorities, looked at before anything is asked.
#pragma once

#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// Whether HttpClientOptions::extra_ca_file can be this file.
// Errors: invalid_input naming the file and what is wrong with it.
Result<void> check_authorities(const std::string& file);

}  // namespace argiope

// The library's errors, with the option of the command that is the way out. The library knows no options.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// For AddressGuard, whose refusals it ends.
inline constexpr const char* kAllowPrivateAdvice = "--allow-private would connect to it";

// Of open_store(): --store names another file.
Error with_store_option(Error error);
// Of a database of SQLite: --db names another file. Where it is a file of another kind: what it is.
Error with_database_option(Error error, const std::string& database);
// Of a put: the option of `argiope job queue` that allows larger payloads.
Error with_queue_option(Error error, std::string_view queue);

}  // namespace argiope

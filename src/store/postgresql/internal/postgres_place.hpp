// PostgresPlace: which store a URL names, "postgresql://user@host/db?schema=…".
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

struct PostgresPlace {
  std::string connection;                             // for libpq: the URL without what is ours alone
  std::string schema = "argiope";                     // where the tables are
  Duration store_timeout = std::chrono::seconds{30};  // how long a call waits for a server that is away
  std::string shown;                                  // for people: without the password
};

// Whether it has the scheme of such a URL.
bool is_postgresql(std::string_view where) noexcept;
// Errors: invalid_input, which does not repeat the password.
Result<PostgresPlace> parse_postgres_place(std::string_view where);
// Such a URL without a password: neither that before the host nor one among the parameters.
std::string without_password(std::string_view where);
// As a statement has a name of the user's.
std::string quoted_identifier(std::string_view name);

}  // namespace argiope

#include "cli/error_advice.hpp"

#include <fmt/format.h>

#include "cli/file_kind.hpp"

namespace argiope {

Error with_store_option(Error error) {
  if (error.message.starts_with("store ")) error.message.insert(0, "--");
  if (error.code == Errc::wrong_format) error.message += "; --store names another file";
  return error;
}

Error with_database_option(Error error, const std::string& database) {
  if (error.code != Errc::wrong_format) return error;
  if (const auto other = other_kind(database, FileKind::database)) error.message = "database " + other->message;
  error.message += "; --db names another file";
  return error;
}

Error with_queue_option(Error error, std::string_view queue) {
  if (error.code != Errc::too_large) return error;
  error.message += fmt::format("; argiope job queue {} --max-payload BYTES changes that", queue);
  return error;
}

}  // namespace argiope

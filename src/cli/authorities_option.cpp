#include "cli/authorities_option.hpp"

#include <string>

#include "web/net/internal/authorities.hpp"

namespace argiope {

CLI::Validator authorities_file() {
  return CLI::Validator(
      [](std::string& text) {
        const auto good = check_authorities(text);
        return good ? std::string() : good.error().message;
      },
      "");
}

}  // namespace argiope

#include "calls/internal/call_functions.hpp"

#include <utility>

#include "argiope/calls/calls.hpp"

namespace argiope {

Result<void> check_call(std::string_view function, std::string_view payload) {
  if (function == kCommandFunction) {
    if (auto call = parse_command_call(payload); !call) return std::unexpected(std::move(call.error()));
  } else if (function == kHttpFunction) {
    if (auto call = parse_http_call(payload); !call) return std::unexpected(std::move(call.error()));
  }
  return {};
}

}  // namespace argiope

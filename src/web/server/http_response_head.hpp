// The head of a server's answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/web/http_server.hpp"
#include "web/http/internal/reason_phrase.hpp"

namespace argiope {

struct HttpFraming {
  // The word to the client on the connection: nothing is keep-alive in HTTP/1.1.
  std::string_view connection;
  bool chunked = false;
  // Else, where it is set.
  std::optional<std::uint64_t> length;
};

// Throws std::invalid_argument, with `out` unchanged, when `response` has a status or a field that cannot be sent.
void append_response_head(std::string& out, const ServerResponse& response, const HttpFraming& framing,
                          std::string_view date);

// 204 and 304 end with their head.
constexpr bool may_have_body(int status) noexcept { return status != 204 && status != 304; }

}  // namespace argiope

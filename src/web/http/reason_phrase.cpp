#include "web/http/internal/reason_phrase.hpp"

#include <ostream>

// It needs the one above.
#include <boost/beast/http/status.hpp>

namespace argiope {

std::string_view reason_phrase(int status) noexcept {
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return reason == "<unknown-status>" ? "Unknown" : std::string_view(reason.data(), reason.size());
}

}  // namespace argiope

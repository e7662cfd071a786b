#include "argiope/base/error.hpp"

namespace argiope {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_input: return "invalid_input";
    case Errc::too_large: return "too_large";
    case Errc::not_found: return "not_found";
    case Errc::refused: return "refused";
    case Errc::wrong_format: return "wrong_format";
    case Errc::newer_version: return "newer_version";
    case Errc::older_version: return "older_version";
    case Errc::busy: return "busy";
    case Errc::io: return "io";
    case Errc::disk_full: return "disk_full";
    case Errc::corrupt: return "corrupt";
    case Errc::timeout: return "timeout";
    case Errc::network: return "network";
    case Errc::tls: return "tls";
    case Errc::dns: return "dns";
    case Errc::protocol: return "protocol";
    case Errc::cancelled: return "cancelled";
    case Errc::unsupported: return "unsupported";
    case Errc::internal: return "internal";
    case Errc::conflict: return "conflict";
  }
  return "unknown";
}

}  // namespace argiope

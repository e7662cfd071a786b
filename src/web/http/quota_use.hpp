// The way in which a client heeds HttpRequest::quota, by whatever version of HTTP.
#pragma once

#include <cstdint>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/byte_rate.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

inline void take_from_quota(ByteQuota* quota, std::uint64_t bytes, HttpResponse& response) noexcept {
  if (quota == nullptr) return;
  quota->take(bytes);
  response.quota_bytes += bytes;
}
inline bool is_used_up(const ByteQuota* quota) noexcept { return quota != nullptr && quota->is_used_up(); }
inline Error over_quota() { return {Errc::too_large, "the quota of bytes was used up before the answer was whole"}; }

}  // namespace argiope

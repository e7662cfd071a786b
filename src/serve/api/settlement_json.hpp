// Settlements as JSON: how workers elsewhere say how their runs ended.
#pragma once

#include <cstdint>

#include "argiope/engine/detail/lease.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/raw_json.hpp"

namespace argiope {

inline constexpr std::size_t kMostFollowUps = 1'000;

// {"token":41,"outcome":"done"} and, as the outcome has them:
//
//   result, result_base64   done, retry, bury: as a new job's payload
//   error                   retry, bury, cancel
//   delay_ms                retry, release
//   priority                retry, bury, release
//   follow_ups              new jobs, at most kMostFollowUps; names of other jobs are not looked up in them
//
// Mistakes go to the value's errors, and the settlement then stands for nothing. `raw`: of `value`. `now`: as of
// parse_new_job.
RunEnd read_settlement(const JsonValue& value, WallTime now, RawJson& raw);

}  // namespace argiope

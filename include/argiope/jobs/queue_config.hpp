// QueueConfig: the policy of one named queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/retry.hpp"

namespace argiope {

enum class CapacityPolicy : std::uint8_t {
  wait,    // a put waits until there is room
  refuse,  // a put gets Errc::refused
};

struct QueueConfig {
  QueueLimits limits;  // rate, burst, concurrency, paused
  // While it is paused: when that ends by itself, and from then on this means nothing. The epoch: it does not.
  WallTime paused_until{};
  KeyLimits key_limits;  // the same for each key, and the delay between its jobs
  RetryPolicy retry;
  Duration lease_time = std::chrono::seconds{60};
  std::uint32_t max_lease_expiries = 3;
  std::uint64_t capacity = std::numeric_limits<std::uint64_t>::max();  // jobs that have not ended
  CapacityPolicy at_capacity = CapacityPolicy::refuse;
  std::size_t max_payload_bytes = 1024 * 1024;
  // How long jobs are kept after their end; 0: not at all. Buried ones are kept until they are kicked or deleted,
  // unless a time is set.
  Duration keep_done{};
  Duration keep_cancelled{};
  Duration keep_buried = Duration::max();
  // A waiting job's priority counts as one higher for each such span it has been ready; 0: never.
  Duration ageing{};
  // Its share when a worker serves several queues that have work: twice the weight, twice the jobs. 1 to 1000.
  std::uint32_t weight = 1;
};

// The priority by which a job ranks that is ready since `ready_at`. Without ageing that is its own. With it, what
// counts is priority + age / ageing; since all jobs age alike, their order is that of priority − ready_at / ageing,
// which never changes. (Counted from 2026, so that it fits for 68 years with an ageing of a second, the shortest that
// is kept.)
std::int32_t ranked_priority(std::int32_t priority, WallTime ready_at, Duration ageing) noexcept;

// As one JSON object, and back. Members that are missing keep the value they have in `base`; durations are in
// whole milliseconds with names that end in _ms; "unlimited" stands for no limit. A text to be read may also give a
// duration under its name without _ms, as a span of base/clock.hpp: "retry_first":"100ms".
// Errors: invalid_input naming the member that is unknown, of the wrong type or out of range.
std::string to_json(const QueueConfig& config);
Result<QueueConfig> parse_queue_config(std::string_view json, const QueueConfig& base = {});

}  // namespace argiope

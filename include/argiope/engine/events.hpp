// The events of jobs, for listeners in the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "argiope/jobs/job.hpp"

namespace argiope {

// Bits, to be combined into a mask.
enum class JobEventKind : std::uint32_t {
  added = 1 << 0,
  changed = 1 << 1,    // a put was merged into it or replaced it, or its priority or time was set
  due = 1 << 2,        // delayed -> ready, once its owner's memory holds it
  leased = 1 << 3,     // ready -> running
  done = 1 << 4,       // running -> done
  retrying = 1 << 5,   // running -> delayed or ready, after a failure
  buried = 1 << 6,     // running -> buried
  cancelled = 1 << 7,  // -> cancelled
  released = 1 << 8,   // running -> ready or delayed, without having failed
  // running -> ready, for the lease ran out or its holder has gone; where that buries the job, buried follows at once
  expired = 1 << 9,
  kicked = 1 << 10,     // buried or delayed -> ready
  unblocked = 1 << 11,  // the jobs it waited for have ended
  progress = 1 << 12,   // a run has said how far it is, or has printed more
  erased = 1 << 13,
  queue_changed = 1 << 14,  // configured, paused or resumed; has no job
};
inline constexpr std::uint32_t kAllJobEvents = (1u << 15) - 1;

std::string_view to_string(JobEventKind kind) noexcept;

struct JobEvent {
  JobEventKind kind{};
  JobId id = 0;
  std::string_view queue;
  WallTime at{};
  std::uint32_t attempt = 0;  // leased and what ends a lease: which one it is
  // added, retrying, released: when it is to run; the epoch: at once. leased, for the first time: since when it could
  // have run.
  WallTime due_at{};
  std::string_view text;  // error, worker or progress message; done: JobContext::finding
  double fraction = 0;    // progress
  // Of an event that ends a job which a schedule has put: whose run it was. 0: no schedule's, or the job goes on.
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
};

// Called on the owner's loop when the change is committed, in the order of the changes of each job. The views end with
// the call. It may add and remove listeners, itself too; what it throws is logged and counted
// (Engine::listener_errors).
using JobListener = std::function<void(const JobEvent&)>;

}  // namespace argiope

// The life of a job: its states, which of them may follow which, and why one that is ready waits. No queue here; every
// store and every face of Argiope speaks of jobs in these words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace argiope {

//          put(due later)            put(due now)
//               │                        │
//               ▼         due            ▼       lease            done ─► DONE
//           DELAYED ─────────────────► READY ───────────► RUNNING ─┤
//               ▲                      ▲  ▲                │  │    └─ cancelled ─► CANCELLED
//               │  retry (back-off)    │  └─ lease expired─┘  │
//               └──────────────────────┼───── failed, attempts left
//                                      └─ kick ── BURIED ◄─── failed for good, or lease expired max times
//
// Besides: whatever waits can be cancelled, a READY job that is made due later is DELAYED again, and a lease that is
// given back goes the way of one that expired.
enum class JobState : std::uint8_t { delayed, ready, running, done, cancelled, buried };

constexpr std::string_view to_string(JobState state) noexcept {
  constexpr std::string_view kNames[] = {"delayed", "ready", "running", "done", "cancelled", "buried"};
  return kNames[static_cast<std::size_t>(state)];
}

// True for the arrows of the drawing, and for no others.
constexpr bool may_move(JobState from, JobState to) noexcept {
  using enum JobState;
  switch (from) {
    case delayed: return to == ready || to == cancelled;
    case ready: return to == running || to == delayed || to == cancelled;
    case running: return to == done || to == cancelled || to == delayed || to == ready || to == buried;
    case buried: return to == ready || to == cancelled;
    case done:
    case cancelled: return false;
  }
  return false;
}

// Why a job does not run. Of several reasons the one named is the first of this list that holds.
enum class WaitReason : std::uint8_t {
  none,  // it is the next one
  not_found,
  running,
  ended,  // done or cancelled
  buried,
  other_jobs,  // delayed: jobs that it waits for have not ended
  not_due,     // delayed
  no_owner,    // no process owns the partition, so none leases from this store
  queue_paused,
  queue_concurrency,
  queue_rate,  // the queue's bucket is empty
  key_resting,
  key_concurrency,
  key_rate,
  more_important_jobs,
  no_worker,  // no worker asks for jobs of this queue
};

constexpr std::string_view to_string(WaitReason reason) noexcept {
  constexpr std::string_view kNames[] = {"none",
                                         "not found",
                                         "running",
                                         "ended",
                                         "buried",
                                         "waits for other jobs",
                                         "not due",
                                         "partition without owner",
                                         "queue paused",
                                         "queue at concurrency",
                                         "queue bucket empty",
                                         "key resting",
                                         "key at concurrency",
                                         "key bucket empty",
                                         "more important jobs ahead",
                                         "no worker"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace argiope

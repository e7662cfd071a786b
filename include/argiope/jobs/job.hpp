// The life of a job: its states, and which of them may follow which. The drawing is in docs/jobs.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace argiope {

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

// Why a READY job does not run.
enum class WaitReason : std::uint8_t {
  none,  // it would be the next one
  not_found,
  not_due,              // delayed
  running,
  queue_paused,
  queue_rate,           // the queue's bucket is empty
  queue_concurrency,
  key_resting,
  key_rate,
  key_concurrency,
  more_important_jobs,  // `ahead` of them
};

constexpr std::string_view to_string(WaitReason reason) noexcept {
  constexpr std::string_view kNames[] = {"none",        "not found", "not due",  "running",
                                         "queue paused", "queue rate", "queue concurrency", "key resting",
                                         "key rate",     "key concurrency", "more important jobs"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace argiope

// JobRow: what the rules of a job's life (job_transitions.hpp) read of a job, as a store keeps it (store_rows.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"

namespace argiope {

// The request breaks its contract. Thrown by the rules and by who keeps the rows: nothing of the request is done.
struct RequestRefused {
  Error error;
};

// Where a job stands: on a shelf, or how it has ended. One that runs keeps the shelf that it was leased from, and goes
// back there when its lease is over. The numbers are in files.
enum class RowState : std::uint8_t { ready, set_aside, delayed, waiting, done, cancelled, buried };

constexpr RowState row_state(Shelf shelf) noexcept { return static_cast<RowState>(shelf); }
constexpr RowState row_state(JobState ended) noexcept {
  return ended == JobState::done        ? RowState::done
         : ended == JobState::cancelled ? RowState::cancelled
                                        : RowState::buried;
}
constexpr bool has_shelf(RowState state) noexcept { return state <= RowState::waiting; }
// It waits for time and turn alone.
constexpr bool is_leasable(RowState state) noexcept { return state < RowState::waiting; }
constexpr JobState state_of(RowState state) noexcept {
  switch (state) {
    case RowState::ready:
    case RowState::set_aside: return JobState::ready;
    case RowState::delayed:
    case RowState::waiting: return JobState::delayed;
    case RowState::done: return JobState::done;
    case RowState::cancelled: return JobState::cancelled;
    case RowState::buried: break;
  }
  return JobState::buried;
}

// The part of a job that the rules read. The rest of it (payload, result, error …) they only write.
struct JobRow {
  JobId id = 0;
  QueueId queue = 0;
  RowState state = RowState::ready;
  std::int32_t rank = 0;
  std::int32_t priority = 0;
  std::int64_t due_ms = 0;
  std::uint32_t attempts = 0;
  std::uint32_t expiries = 0;
  std::uint32_t pending = 0;          // jobs it waits for
  bool cancelled_with_others = true;  // DependencyPolicy::cancel
  std::int64_t flags = 0;
  std::uint64_t token = 0;  // of its lease; 0: it does not run
  std::uint64_t fence = 0;  // leases with tokens up to this one are over
  std::int64_t ended_ms = 0;
  std::string key;
  std::string unique;
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
  std::uint64_t tally = 0;  // packed: job_tally.hpp

  // They are in files. Things that a row does not have need not be looked for.
  static constexpr std::int64_t kHasDependants = 1;
  static constexpr std::int64_t kHasHistory = 2;
  static constexpr std::int64_t kHasNames = 4;  // a name, a unique one, or both
  static constexpr std::int64_t kIsRun = 8;     // of a schedule
  static constexpr std::int64_t kCancelAsked = 16;

  bool runs() const noexcept { return token != 0; }
  bool has_ended() const noexcept { return !has_shelf(state); }
  bool holds_unique() const noexcept { return !unique.empty() && has_shelf(state); }
  JobState shown_state() const noexcept { return runs() ? JobState::running : state_of(state); }
};

// The rest of a job whose record went when it was done.
struct ErasedJob {
  bool has_dependants = false;
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
};

// A request that came under a key.
struct KeptRequest {
  std::string digest;
  std::string reply;  // request_memory.hpp
};

struct JobCounters {
  JobId last_id = 0;
  JobId last_chosen_id = 0;  // the largest above kMostCountedId that a caller has chosen
  std::uint64_t last_token = 0;
  friend bool operator==(const JobCounters&, const JobCounters&) = default;
};

// The rows and names that requests are about to look at, as far as the requests say: of ids that are gone, whether they
// had failed; of names and unique names, the rows of who holds them too. Those that wait for a job that ends are not
// among them: they come with take_dependants().
struct NeededRows {
  std::vector<JobId> ids;
  std::vector<JobId> ends;  // jobs that are done: a driver may know all it needs of their leases; not in empty()
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> uniques;  // queue, unique name
  std::vector<ScheduleId> schedules;
  std::vector<std::string> requests;  // by their keys
  bool empty() const noexcept {
    return ids.empty() && names.empty() && uniques.empty() && schedules.empty() && requests.empty();
  }
};

}  // namespace argiope

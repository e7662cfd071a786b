// The rules that all stores of jobs agree on: how times are kept, which requests are well formed, where a job that
// waits belongs. Pure functions; how jobs are kept is each store's own.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"
#include "jobs/internal/stored_time.hpp"

namespace argiope::job_rules {

inline constexpr std::size_t kMostAttemptsKept = 20;
inline constexpr std::size_t kMostListed = 10'000;

using stored_time::from_ms;
using stored_time::stored;
using stored_time::to_ms;

struct Place {
  Shelf shelf;
  std::int32_t rank;
};
// Of a job that waits for no other. Times as stored.
inline Place place(std::int32_t priority, WallTime due_at, WallTime now, bool set_aside, Duration ageing) noexcept {
  const Shelf shelf = due_at > now ? Shelf::delayed : set_aside ? Shelf::set_aside : Shelf::ready;
  return {shelf, ranked_priority(priority, std::max(due_at, now), ageing)};
}
// The rank of a job whose priority changes and whose age does not.
inline std::int32_t shifted(std::int32_t rank, std::int32_t from, std::int32_t to) noexcept {
  const std::int64_t sum = std::int64_t{rank} + to - from;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                                            std::numeric_limits<std::int32_t>::max()));
}

// How long a lease of a job lasts that has asked for so long; as kept. 0: as its queue says.
inline std::int64_t lease_ms(Duration asked) noexcept {
  return std::chrono::ceil<std::chrono::milliseconds>(asked).count();
}
// Until when a lease goes of a job that has this lease time of its own.
inline std::int64_t lease_end(const LeaseRequest& request, std::int64_t own_lease_ms) noexcept {
  return own_lease_ms == 0 || request.at == WallTime{} ? to_ms(request.until) : to_ms(request.at) + own_lease_ms;
}

constexpr bool has_ended(JobState state) noexcept {
  return state == JobState::done || state == JobState::cancelled || state == JobState::buried;
}

// Whether a job that is shown so is one of those that a list of jobs in that state wants. `due_by`: as JobFilter's.
inline bool is_listed_as(JobState wanted, JobState shown, std::uint32_t pending, WallTime due_at,
                         std::optional<WallTime> due_by) noexcept {
  const bool is_due = shown == JobState::delayed && pending == 0 && due_by && due_at <= *due_by;
  return wanted == (is_due ? JobState::ready : shown);
}

// Counts payloads and results of the jobs of one call of lease(): see kMostLeasedBytes.
class LeasedBytes {
 public:
  // There is no room for any more.
  bool is_full() const noexcept { return is_full_; }
  // Whether there is room for a job of that size, which is counted then; or else for no other either.
  bool take(std::size_t bytes) noexcept {
    is_full_ = is_full_ || (has_some_ && bytes > kMostLeasedBytes - std::min(taken_, kMostLeasedBytes));
    if (is_full_) return false;
    has_some_ = true;
    taken_ += bytes;
    return true;
  }

 private:
  std::size_t taken_ = 0;
  bool has_some_ = false;
  bool is_full_ = false;
};

// The check of a request that needs no look at the store.
Result<void> check(const PutRequest& request);
// The same of one that is no run of a schedule.
Result<void> check_plain(const PutRequest& request);
Result<void> check_plain(const std::vector<PutRequest>& requests);
// Each token must be greater than `last`, and than the one before it.
Result<void> check(const std::vector<LeaseRequest>& leases, std::uint64_t last);
Result<void> check(const RequestKey& key);
// As it is kept: durations in whole milliseconds. Errors: invalid_input for what cannot be kept.
Result<QueueConfig> stored(const QueueConfig& config);
Result<void> check_name(std::string_view what, std::string_view name);

// Refusals that depend on what is stored.
Error unknown_queue(QueueId queue);
Error not_empty(std::string_view queue);
Error not_yet_there(JobId waited_for);
Error no_batch(JobId batch);
Error cycle(JobId batch);
Error taken(const NewJob& job);
Error out_of_reach(std::string_view member, JobId id);
Error no_ids_left();
Error no_such_put(std::size_t place);
Error no_such_shelf();
Error not_ended();
Error closed();

// How a job failed, in a word.
inline constexpr std::string_view kBuried = "buried";
inline constexpr std::string_view kCancelled = "cancelled";
inline constexpr std::string_view kDeleted = "deleted";
// Empty where it has not.
constexpr std::string_view how_failed(JobState state) noexcept {
  return state == JobState::buried ? kBuried : state == JobState::cancelled ? kCancelled : std::string_view{};
}
// The same word, which lives as long as the program.
constexpr std::string_view how_failed(std::string_view stored) noexcept {
  return stored == kBuried ? kBuried : stored == kDeleted ? kDeleted : kCancelled;
}
// "job 7, which it waited for, was buried"
std::string cancelled_with(JobId waited_for, std::string_view what_befell_it);

}  // namespace argiope::job_rules

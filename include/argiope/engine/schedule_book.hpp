// ScheduleBook: what any process that has a store open may do with its schedules, whether or not a Scheduler fires
// them: a command that adds or pauses while a scheduler runs elsewhere, or while none does. The scheduler sees its
// changes when it next looks at the store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// What ConflictPolicy means here: with replace the id, the history and the runs stay, a pause stays, and where the schedule
// stands stays unless its trigger differs: a program may replace its schedules each time it starts and loses no run.
// APScheduler 4 calls the policies exception, replace and do_nothing.
enum class AddOutcome : std::uint8_t {
  added,
  replaced,
  kept,    // ConflictPolicy::keep: the old one
  exists,  // ConflictPolicy::fail: the same
};
struct AddReply {
  AddOutcome outcome = AddOutcome::added;
  ScheduleId id = 0;  // of the schedule that is there now
};

// A schedule as it stands in the store.
struct ScheduleStatus {
  ScheduleId id = 0;
  std::uint64_t version = 0;
  std::string name;
  std::optional<Schedule> schedule;  // nullopt: what the store holds cannot be read, and `trouble` says why
  std::string trouble;
  std::string trigger, definition;  // as the store has them
  SchedulePlace place;
  std::uint32_t active = 0;  // runs that have not ended
  std::string paused_by;     // while it is paused
  WallTime paused_at{};
};
// One line: {"name":…,"id":…,"next":…,"last":…,"runs":…,"missed":…,"active":…,"paused":…,"schedule":{…}}. Times in RFC 3339,
// in the trigger's zone.
std::string to_json(const ScheduleStatus& status);

enum class ResumeFrom : std::uint8_t {
  now,           // planned times of the pause are missed
  where_it_was,  // they are due, and the misfire policy applies
};

// Times are the calendar's, from `clock`.
//
// Suspends: until the effect is committed.
// Errors:   those of the store; not_found for a name that is not there; invalid_input for what breaks a bound; refused where
//           said. An edit never makes a second schedule of a name, and never leaves one half done. Edits of the same schedule at
//           the same moment all take effect, one after the other.
// Threads:  the loop's own.
class ScheduleBook {
 public:
  // Both outlive the book. The store was opened with any access; what writes needs more than to read.
  // `new_queue`: the policy of a queue that run_now() has to make; give what the owner's BrokerOptions::new_queue is.
  ScheduleBook(Store& store, const Clock& clock, QueueConfig new_queue = {})
      : store_(&store), clock_(&clock), new_queue_(std::move(new_queue)) {}

  // Begins with the first planned time from now on; a date is due whenever it was. Errors: refused when there is one of that
  // name and the policy is to fail.
  Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict = ConflictPolicy::fail);
  // Each by itself, those that are new in one transaction. Errors: invalid_input for one of them, and then none is added.
  Coro<Result<std::vector<AddReply>>> add_all(std::vector<Schedule> schedules,
                                              ConflictPolicy conflict = ConflictPolicy::fail);
  Coro<Result<ScheduleStatus>> get(std::string name);
  // In the order of their ids, those after `after`; at most 10,000 at a time.
  Coro<Result<std::vector<ScheduleStatus>>> list(ScheduleId after = 0, std::size_t limit = 1000);
  // `change` is called with the schedule as it is; again, when another change came first. With another trigger it goes
  // on with the first planned time from now on. Its name stays: invalid_input. Errors: wrong_format when it cannot be
  // read.
  Coro<Result<ScheduleStatus>> modify(std::string name, std::function<void(Schedule&)> change);
  Coro<Result<ScheduleStatus>> reschedule(std::string name, Trigger trigger);
  // Pausing what is paused, and resuming what is not, changes nothing. Runs under way go on.
  Coro<Result<ScheduleStatus>> pause(std::string name, std::string by = {});
  Coro<Result<ScheduleStatus>> resume(std::string name, ResumeFrom from = ResumeFrom::where_it_was);
  // Its history goes with it, its jobs stay. The id it had.
  Coro<Result<ScheduleId>> remove(std::string name);
  // How many there were.
  Coro<Result<std::uint64_t>> remove_all();
  // Puts a run at once, whatever its trigger, pause and max_instances say, and leaves its planned times as they are. Not
  // where this process owns the queues, for its broker would not hear of the job: Scheduler::run_now().
  Coro<Result<JobId>> run_now(std::string name);
  // What became of its last planned times, the newest first; at most kRunsKept.
  Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit = 20);
  // What the last of its runs that left a result has left; nullopt when none has.
  Coro<Result<std::optional<ScheduleOutput>>> output(std::string name);

 private:
  friend class SchedulerImpl;
  struct Edited;
  using Change = std::function<Result<void>(Edited&)>;
  Coro<Result<ScheduleStatus>> edit(std::string name, Change change);
  Coro<Result<AddReply>> replace(Schedule schedule);
  Coro<Result<StoredSchedule>> find(std::string name);

  Store* store_;
  const Clock* clock_;
  QueueConfig new_queue_;
};

}  // namespace argiope

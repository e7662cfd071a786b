// ScheduleBook: what anyone may do with the schedules of a store, whether or not an engine fires them:
// Book::schedules(). Beside the owner, a command adds or pauses while a scheduler runs elsewhere, or while none does;
// the scheduler sees its changes when it next looks at the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// The meaning of ConflictPolicy here: with replace the id, the history and the runs stay, a pause stays, and where the
// schedule stands stays unless its trigger differs: a program may replace its schedules each time it starts and loses
// no run. APScheduler 4 calls the policies exception, replace and do_nothing.
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
// One line: {"name":…,"id":…,"next":…,"last":…,"runs":…,"missed":…,"active":…,"paused":…,"schedule":{…}}. Times in RFC
// 3339, in the trigger's zone.
std::string to_json(const ScheduleStatus& status);

enum class ResumeFrom : std::uint8_t {
  now,           // planned times of the pause are missed
  where_it_was,  // they are due, and the misfire policy applies
};

// Why a schedule does not run now. Of several reasons the one named is the first of this list that holds.
enum class ScheduleReason : std::uint8_t {
  unreadable,         // what the store holds of it is from another version, or damaged
  paused,             // see paused_by
  finished,           // no more planned times
  max_runs,           // it has had all its runs
  scheduler_stopped,  // it was not started, or was shut down
  scheduler_paused,
  unknown_executor,  // its queue has no executor here, and `foreign_queues` is off
  unknown_function,  // its executor has no such function
  queue_full,        // its queue has no room; tried again
  job_refused,       // its job is refused for another reason: a payload larger than its queue takes; tried again
  overlap,           // max_instances of its runs have not ended
  not_due,
  due,  // it is on its way
};
std::string_view to_string(ScheduleReason reason) noexcept;

struct ScheduleExplanation {
  ScheduleId id = 0;
  std::string name;
  ScheduleReason reason = ScheduleReason::not_due;
  std::string text;                // what cannot be read, the executor or function that is missing, the error
  std::optional<WallTime> next;    // planned
  std::optional<WallTime> due_at;  // when it is to run: with its jitter
  TimeZone zone;                   // to show times in
  std::string paused_by;           // empty: not said
  WallTime paused_at{};
  std::uint32_t active = 0;
  std::uint32_t max_instances = 1;
  Overlap overlap = Overlap::skip;  // what happens to a time that comes while max_instances are active
  std::uint64_t fired = 0;
  std::uint64_t missed = 0;
  std::optional<ScheduleRun> last_misfire;  // the last missed or skipped entry of its history
  // The oldest of its runs that have not ended, and why that one's job does not run now: Book::explain() in a sentence.
  std::optional<ScheduleRun> active_run;
  std::string active_text;
};
// One sentence for people: `runs next at 2026-03-29T03:00:00+02:00; paused by alice since …`.
std::string to_sentence(const ScheduleExplanation& explanation);
// One line; reasons as to_string() has them, with _ for spaces.
std::string to_json(const ScheduleExplanation& explanation);

// docs/from-apscheduler.md compares it with APScheduler's BaseScheduler, name by name. Times are the calendar's.
//
// Suspends: until the effect is committed.
// Cancel:   cancelling the wait does not undo a change.
// Errors:   those of the store; not_found for a name that is not there; invalid_input for what breaks a bound; refused
//           where said. An edit never makes a second schedule of a name, and never leaves one half done. Edits of the
//           same schedule at the same moment all take effect, one after the other.
// Lifetime: as its Book.
// Threads:  the loop's own.
class ScheduleBook {
 public:
  struct State;
  explicit ScheduleBook(std::shared_ptr<State> state) noexcept;  // Book makes it

  // Begins with the first planned time from now on; a date is due whenever it was. Errors: refused when there is one of
  // that name and the policy is to fail.
  Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict = ConflictPolicy::fail);
  // In one transaction; of those to be replaced that another process changes, or that come due, at that moment, in one
  // that follows. With the policy to fail, one whose name is there is told of, and keeps no other back. Errors:
  // invalid_input for one of them, and then none is added.
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
  // Puts a run at once, whatever its trigger, pause and max_instances say, and leaves its planned times as they are.
  // Errors: too_large for a payload above the queue's limit; of the owner refused for a queue without room, and
  //         not_found when its executor or function is not there.
  Coro<Result<JobId>> run_now(std::string name);
  // The fates of its last planned times, the newest first; at most kRunsKept.
  Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit = 20);
  // The result of the last of its runs that left one; nullopt when none has.
  Coro<Result<std::optional<ScheduleOutput>>> output(std::string name);
  // Beside the owner: as far as the store tells.
  Coro<Result<ScheduleExplanation>> explain(std::string name);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace argiope

// RemoteBook: what a Book does whose store is behind a daemon. Book and ScheduleBook pass on to it what they are asked, and
// keep for themselves what is the same for every store: Book::of_remote().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/engine/schedule_book.hpp"

namespace argiope {

// As the functions of Book and ScheduleBook whose names they have. A name that is empty is asked for like any other.
//
// Errors:  as theirs; those of the way to the daemon are network, timeout, tls, dns and protocol, and refused for who may
//          not.
// Threads: the loop's own.
class RemoteBook {
 public:
  virtual ~RemoteBook() = default;

  // --- jobs
  virtual Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) = 0;
  // `last_completes`: the last one waits for those before it.
  virtual Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) = 0;
  virtual Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) = 0;
  virtual Coro<Result<JobId>> find(std::string id_or_name) = 0;
  virtual Coro<Result<JobRecord>> get(JobId id) = 0;
  virtual Coro<Result<JobOutput>> output(JobId id, OutputLook look) = 0;
  virtual Coro<Result<std::vector<Attempt>>> history(JobId id) = 0;
  virtual Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) = 0;
  virtual Coro<Result<JobExplanation>> explain(JobId id) = 0;

  // --- queues
  virtual Coro<Result<std::vector<NamedCounts>>> counts(std::string only) = 0;
  virtual Coro<Result<StoredQueue>> queue(std::string name) = 0;
  virtual Coro<Result<std::vector<StoredQueue>>> queues() = 0;
  virtual Coro<Result<void>> configure(std::string queue, QueueConfig config) = 0;
  // `until`: of a pause; the epoch: until it is resumed.
  virtual Coro<Result<void>> set_paused(std::string queue, bool paused, WallTime until) = 0;
  virtual Coro<Result<void>> erase_queue(std::string queue) = 0;

  // --- schedules
  // Of schedules that have been checked; all or none.
  virtual Coro<Result<std::vector<AddReply>>> add_schedules(std::vector<Schedule> schedules,
                                                            ConflictPolicy conflict) = 0;
  virtual Coro<Result<ScheduleStatus>> get_schedule(std::string name) = 0;
  virtual Coro<Result<std::vector<ScheduleStatus>>> list_schedules(ScheduleId after, std::size_t limit) = 0;
  // `before` becomes `after`, of the same name; what differs is changed.
  virtual Coro<Result<ScheduleStatus>> change_schedule(Schedule before, Schedule after) = 0;
  virtual Coro<Result<ScheduleStatus>> pause_schedule(std::string name, std::string by) = 0;
  virtual Coro<Result<ScheduleStatus>> resume_schedule(std::string name, ResumeFrom from) = 0;
  virtual Coro<Result<void>> remove_schedule(std::string name) = 0;
  virtual Coro<Result<JobId>> run_schedule_now(std::string name) = 0;
  virtual Coro<Result<std::vector<ScheduleRun>>> schedule_history(std::string name, std::size_t limit) = 0;
  virtual Coro<Result<std::optional<ScheduleOutput>>> schedule_output(std::string name) = 0;
  virtual Coro<Result<ScheduleExplanation>> explain_schedule(std::string name) = 0;
};

}  // namespace argiope

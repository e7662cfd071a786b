// RemoteBook: the JobBook of a store that is behind a daemon, and what a ScheduleBook does there: Book::of_remote().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/book.hpp"
#include "engine/internal/job_book.hpp"

namespace argiope {

// As the functions of ScheduleBook whose names they have. A name that is empty is asked for like any other.
//
// Errors:  as theirs; those of the way to the daemon are network, timeout, tls, dns and protocol, and refused for who
//          may not.
// Threads: the loop's own.
class RemoteBook : public JobBook {
 public:
  // On a loop that runs.
  RemoteBook() : clock_(EventLoop::current().clock(), Duration{}) {}

  // A daemon tells the calendar's times.
  const JobClock& clock() const final { return clock_; }
  Coro<Result<OnceReply>> once(OnceCall call) final;
  Coro<Result<JobSlice>> look(JobFilter filter) final;
  Coro<Result<std::vector<NamedCounts>>> counts_of(std::vector<std::string> names) final;

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

 private:
  const JobClock clock_;
};

}  // namespace argiope

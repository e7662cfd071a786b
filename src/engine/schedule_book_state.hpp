// The inside of a book's schedules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/engine/detail/lease.hpp"
#include "engine/store_use.hpp"

namespace argiope {

class Broker;
class RemoteBook;
class ScheduleWriter;
class SchedulerImpl;

// As JobBook.
struct ScheduleBook::State : std::enable_shared_from_this<ScheduleBook::State> {
  struct Edited;
  using Edit = std::function<Result<void>(Edited&)>;

  State(Store& its_store, const Clock& its_clock, QueueConfig its_new_queue, bool its_owned,
        std::shared_ptr<Broker> its_owner, std::shared_ptr<SchedulerImpl> its_scheduler);
  State(std::shared_ptr<RemoteBook> its_remote, const Clock& its_clock);

  template <class T>
  Coro<T> to_its_end(Coro<T> work);
  Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict);
  Coro<Result<std::vector<AddReply>>> add_all(std::vector<Schedule> schedules, ConflictPolicy conflict);
  Coro<Result<std::vector<AddReply>>> write_all(std::vector<Schedule> schedules, ConflictPolicy conflict);
  Coro<Result<std::vector<AddReply>>> replace_all(std::vector<Schedule> schedules);
  Coro<Result<PutSchedule>> replacement_of(const Schedule& schedule, ScheduleWriter& writer);
  Coro<Result<StoredSchedule>> find(std::string name);
  Coro<Result<ScheduleStatus>> get(std::string name);
  Coro<Result<std::vector<ScheduleStatus>>> list(ScheduleId after, std::size_t limit);
  Coro<Result<ScheduleStatus>> modify(std::string name, std::function<void(Schedule&)> change);
  Coro<Result<ScheduleStatus>> pause(std::string name, std::string by);
  Coro<Result<ScheduleStatus>> resume(std::string name, ResumeFrom from);
  Coro<Result<ScheduleStatus>> edit(std::string name, Edit change);
  Coro<Result<ScheduleStatus>> modify_remote(std::string name, std::function<void(Schedule&)> change);
  ScheduleStatus taken(StoredSchedule stored);
  Coro<Result<std::optional<ScheduleStatus>>> write_edit(StoredSchedule stored, Edited edited);
  Coro<Result<ScheduleId>> remove(std::string name);
  Coro<Result<ScheduleId>> remove_remote(std::string name);
  Coro<Result<std::uint64_t>> remove_all();
  Coro<Result<std::uint64_t>> remove_all_remote();
  Coro<Result<JobId>> run_now(std::string name);
  Coro<Result<FireReply>> fire(FireCall call);
  Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit);
  Coro<Result<std::optional<ScheduleOutput>>> output(std::string name);
  Coro<Result<ScheduleExplanation>> explain(std::string name);
  Coro<Result<void>> explain_run(ScheduleExplanation& why);
  WallTime now() const;

  StoreUse store;
  const Clock& clock;
  const QueueConfig new_queue;
  const bool owned;                                // by whatever process
  const std::shared_ptr<Broker> owner;             // null beside the owner
  const std::shared_ptr<SchedulerImpl> scheduler;  // null where this process fires no schedules
  const std::shared_ptr<RemoteBook> remote;        // of a daemon elsewhere; mostly null

  std::function<Coro<Result<JobExplanation>>(JobId)> explain_job;  // of its book
};

}  // namespace argiope

// A book's inside. Split over several files: book.cpp (opening, changes, queues, looks), book_putting.cpp (puts beside the owner),
// explaining.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/engine/book.hpp"
#include "engine/broker.hpp"
#include "engine/calendar_memory.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/internal/remote_book.hpp"
#include "engine/job_news.hpp"
#include "engine/schedule_book_state.hpp"
#include "engine/store_use.hpp"

namespace argiope {

// All of a book. Its coroutines keep it, so that it may outlive its Book until they have ended.
struct Book::State {
  State(Store& its_store, BookOptions its_options, std::shared_ptr<Broker> its_owner);
  explicit State(std::shared_ptr<RemoteBook> its_remote);
  // Makes `schedules` of its schedules_state, which may ask it why a job does not run.
  static void connect_schedules(const std::shared_ptr<State>& state);
  void let_go() noexcept;

  // --- time
  const JobClock& clock() const;
  Coro<Result<void>> set_clock();
  Coro<Result<CalendarMemory>> recall_after_jump();
  void as_of_now(JobRecord& record) const;
  StoredQueue as_of_now(StoredQueue queue) const;

  // --- puts beside the owner
  // What decides about puts into a queue.
  struct Known {
    QueueId id = 0;
    std::size_t max_payload_bytes = 0;
    std::uint64_t capacity = 0;
    CapacityPolicy at_capacity{};
    TimePoint until{};
  };
  const Known* find_known(const std::string& name) const;
  Coro<Result<Known>> get_known(std::string name);
  Coro<Result<StoredQueue>> open_queue(std::string name);
  Coro<Result<std::uint64_t>> live_in(QueueId queue);
  Coro<Result<std::optional<Error>>> why_not(const NewJob& job, Known& queue);
  Coro<Result<PutReply>> put(NewJob job);
  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs);
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes);
  Coro<Result<OnceReply>> once(OnceCall call);
  Coro<Result<OnceReply>> put_once(OnceCall call);
  Coro<Result<void>> wait_for_room(const std::map<std::string, std::uint64_t>& wanted);
  Coro<Result<std::vector<Result<PutReply>>>> send(std::vector<PutRequest> requests, Refusal refusal);

  // --- changes
  Coro<Result<void>> apply(Change change);
  void set_times(Change& change) const;
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes);
  Coro<Result<std::vector<ChangeReply>>> change_as_owner(std::vector<Change> changes);
  Coro<Result<void>> configure(std::string name, QueueConfig config, JobReachRef asker);
  Coro<Result<void>> set_paused(std::string name, bool paused, WallTime until = {});
  Coro<Result<void>> erase_queue(std::string name);
  Coro<Result<void>> write_config(std::string name, QueueConfig config, JobReachRef asker);

  // --- looks
  Coro<Result<JobId>> find(std::string id_or_name);
  Coro<Result<JobRecord>> get(JobId id);
  Coro<Result<JobOutput>> output(JobId id, OutputLook look);
  Coro<Result<std::vector<Attempt>>> history(JobId id);
  Coro<Result<JobSlice>> look(JobFilter filter);
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter);
  Coro<Result<StoredQueue>> queue(std::string name);
  Coro<Result<std::vector<StoredQueue>>> queues();
  Coro<Result<std::vector<NamedCounts>>> counts(std::string only);
  Coro<Result<std::vector<NamedCounts>>> counts_of(std::vector<std::string> names);
  // Of the queues that `wants` says yes to.
  Coro<Result<std::vector<NamedCounts>>> counts_where(std::function<bool(const std::string& name)> wants);
  Coro<Result<std::uint64_t>> count_due(QueueId queue);

  // --- explaining
  Coro<Result<JobExplanation>> explain(JobId id);
  Coro<Result<bool>> explain_by_record(const JobRecord& record, JobExplanation& why);
  Coro<Result<void>> explain_waiting(const JobRecord& record, const StoredQueue& queue, JobExplanation& why);
  Coro<Result<std::optional<WaitReason>>> held_by_limits(const JobRecord& record, const StoredQueue& queue,
                                                         JobExplanation& why);

  // --- looks that may go through much of the store. In the owner's book one follows the other, and while others are at
  // work on the store there are pauses between them, of many times what they take: they have a tenth of its time.
  template <class T, class Rows>
  Coro<Result<T>> in_turn(Coro<Result<T>> look, Rows rows) {
    if (!owner) co_return co_await std::move(look);
    const auto turn = co_await looking.scoped();
    if (EventLoop::current().time() < look_again_at) co_await sleep(look_again_at - EventLoop::current().time());
    Result<T> found = co_await std::move(look);
    const std::size_t looked = found ? rows(*found) : 0;
    const bool others_are_at_work = std::exchange(calls_seen, owner->store_calls()) != owner->store_calls();
    if (looked < kFewLookedAt) co_return found;
    if (others_are_at_work) {
      look_again_at = saturating_add(EventLoop::current().time(), static_cast<std::int64_t>(looked) * kPauseForARow);
    }
    co_await yield_now();
    co_return found;
  }
  static constexpr std::size_t kRowsALook = 512;  // a part of a millisecond
  static constexpr std::size_t kFewLookedAt = 64;
  static constexpr Duration kPauseForARow = std::chrono::microseconds{8};

  std::unique_ptr<Store> opened;  // where the book has opened it
  StoreUse store;
  const BookOptions options;
  const std::shared_ptr<Broker> owner;  // null beside the owner
  JobNews news{owner};                  // for those who wait for output
  const std::shared_ptr<RemoteBook> remote;  // does what the store and the owner do elsewhere; mostly null
  std::optional<JobClock> own_clock;    // beside the owner
  TimePoint clock_until{};              // when that is to be compared with the store's
  std::map<std::string, Known> known;
  Lock looking;
  TimePoint look_again_at = TimePoint::min();
  std::uint64_t calls_seen = 0;  // Broker::store_calls() when the last look ended
  Lock configuring;  // a pause is made from the policy that the change before it has left
  std::shared_ptr<ScheduleBook::State> schedules_state;
  std::optional<ScheduleBook> schedules;
};

}  // namespace argiope

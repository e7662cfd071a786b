// The JobBooks of a store at hand: the owner's, and one beside the owner; what they share is in StoreJobBook. Files:
// store_book.cpp, owner_book.cpp, beside_book.cpp, explaining.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "engine/broker.hpp"
#include "engine/calendar_memory.hpp"
#include "engine/internal/job_book.hpp"
#include "engine/job_news.hpp"

namespace argiope {

class StoreJobBook : public JobBook {
 public:
  void let_go() noexcept override { store_.let_go(); }

  Coro<Result<void>> configure(std::string name, QueueConfig config, JobReachRef asker) override;
  Coro<Result<void>> set_paused(std::string name, bool paused, WallTime until) override;
  Coro<Result<void>> erase_queue(std::string name) override;

  Coro<Result<JobId>> find(std::string id_or_name) override;
  Coro<Result<JobRecord>> get(JobId id) override;
  Coro<Result<std::vector<Attempt>>> history(JobId id) override;
  Coro<Result<JobSlice>> look(JobFilter filter) override;
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override;
  Coro<Result<StoredQueue>> queue(std::string name) override;
  Coro<Result<std::vector<StoredQueue>>> queues() override;
  Coro<Result<std::vector<NamedCounts>>> counts(std::string only) override;
  Coro<Result<std::vector<NamedCounts>>> counts_of(std::vector<std::string> names) override;
  Coro<Result<JobExplanation>> explain(JobId id) override;

 protected:
  explicit StoreJobBook(Store& store) : store_(store) {}

  StoredQueue as_of_now(StoredQueue queue) const;
  // The part of a record that `look` wants.
  static JobOutput output_of(JobRecord record, const OutputLook& look);

  StoreUse store_;

  // The process that works on the store.
  enum class OwnerIs : std::uint8_t { here, elsewhere, nobody };

 private:
  static constexpr std::size_t kRowsALook = 512;  // a part of a millisecond
  static constexpr std::size_t kFewLookedAt = 64;
  static constexpr Duration kPauseForARow = std::chrono::microseconds{8};

  // --- what differs
  // Makes clock() what it is now; before all that has to do with times.
  virtual Coro<Result<void>> set_clock() = 0;
  // Grows with what others ask of the store by this process; nullopt: it works for this book alone.
  virtual std::optional<std::uint64_t> calls_of_others() const = 0;
  // In the store's times.
  virtual Coro<Result<void>> write_config(std::string name, QueueConfig config, JobReachRef asker) = 0;
  virtual Coro<Result<void>> erase_named(std::string name) = 0;
  virtual OwnerIs owner() const = 0;
  // Says of a job that runs what there is to say; false for any other.
  virtual bool explain_run(const JobRecord& record, JobExplanation& why) const = 0;
  // Memory's knowledge of a job that waits.
  virtual std::optional<Explanation> look_in_memory(const JobRecord& record) = 0;
  // The reason of its queue that keeps a job, as far as it is known; if it is not, that is noted.
  virtual Coro<Result<std::optional<WaitReason>>> held_by(const JobRecord& record, const StoredQueue& queue,
                                                          JobExplanation& why) = 0;

  Coro<Result<void>> configure_in_turn(std::string name, QueueConfig config, JobReachRef asker);
  void as_of_now(JobRecord& record) const;
  // Of the queues that `wants` says yes to.
  Coro<Result<std::vector<NamedCounts>>> counts_where(std::function<bool(const std::string& name)> wants);
  Coro<Result<std::uint64_t>> count_due(QueueId queue);
  Coro<Result<bool>> explain_by_record(const JobRecord& record, JobExplanation& why);
  Coro<Result<void>> explain_waiting(const JobRecord& record, const StoredQueue& queue, JobExplanation& why);

  // Looks that may go through much of the store. In the owner's book one follows the other, and while others are at
  // work on the store there are pauses between them, of many times what they take: they have a tenth of its time.
  template <class T, class Rows>
  Coro<Result<T>> in_turn(Coro<Result<T>> look, Rows rows) {
    if (!calls_of_others()) co_return co_await std::move(look);
    const auto turn = co_await looking_.scoped();
    if (EventLoop::current().time() < look_again_at_) co_await sleep(look_again_at_ - EventLoop::current().time());
    Result<T> found = co_await std::move(look);
    const std::size_t looked = found ? rows(*found) : 0;
    const std::uint64_t calls = calls_of_others().value_or(0);
    const bool others_are_at_work = std::exchange(calls_seen_, calls) != calls;
    if (looked < kFewLookedAt) co_return found;
    if (others_are_at_work) {
      look_again_at_ = saturating_add(EventLoop::current().time(), static_cast<std::int64_t>(looked) * kPauseForARow);
    }
    co_await yield_now();
    co_return found;
  }

  Lock looking_;
  TimePoint look_again_at_ = TimePoint::min();
  std::uint64_t calls_seen_ = 0;  // calls_of_others() when the last look ended
  Lock configuring_;              // a pause is made from the policy that the change before it has left
};

class OwnerJobBook final : public StoreJobBook {
 public:
  OwnerJobBook(Store& store, std::shared_ptr<Broker> owner) : StoreJobBook(store), owner_(std::move(owner)) {}
  void let_go() noexcept override;
  const JobClock& clock() const override { return owner_->clock(); }

  Coro<Result<PutReply>> put(NewJob job) override { return owner_->puts.put(std::move(job)); }
  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) override {
    return owner_->puts.put_each(std::move(jobs));
  }
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) override {
    return owner_->puts.put_all(std::move(jobs), last_completes);
  }
  Coro<Result<OnceReply>> once(OnceCall call) override { return owner_->once(std::move(call)); }
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override;
  Coro<Result<JobOutput>> output(JobId id, OutputLook look) override;
  Coro<Result<StoredQueue>> queue(std::string name) override;

 private:
  Coro<Result<void>> set_clock() override;
  std::optional<std::uint64_t> calls_of_others() const override { return owner_->store_calls(); }
  Coro<Result<void>> write_config(std::string name, QueueConfig config, JobReachRef asker) override {
    return owner_->queues.configure(std::move(name), std::move(config), std::move(asker));
  }
  Coro<Result<void>> erase_named(std::string name) override { return owner_->queues.erase(std::move(name)); }
  OwnerIs owner() const override { return OwnerIs::here; }
  bool explain_run(const JobRecord& record, JobExplanation& why) const override {
    return owner_->runs.explain(record.id, why);
  }
  std::optional<Explanation> look_in_memory(const JobRecord& record) override {
    return owner_->leases.look_in_memory(record.queue, record.id);
  }
  Coro<Result<std::optional<WaitReason>>> held_by(const JobRecord& record, const StoredQueue& queue,
                                                  JobExplanation& why) override;

  const std::shared_ptr<Broker> owner_;
  JobNews news_{owner_};  // for those who wait for output
};

class BesideJobBook final : public StoreJobBook {
 public:
  BesideJobBook(Store& store, BookOptions options) : StoreJobBook(store), options_(std::move(options)) {}
  const JobClock& clock() const override { return *clock_; }
  Coro<Result<void>> set_clock() override;  // to be called first

  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) override;
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) override;
  Coro<Result<OnceReply>> once(OnceCall call) override;
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override;
  Coro<Result<JobOutput>> output(JobId id, OutputLook look) override;

 private:
  // The facts that decide about puts into a queue.
  struct Known {
    QueueId id = 0;
    std::size_t max_payload_bytes = 0;
    std::uint64_t capacity = 0;
    CapacityPolicy at_capacity{};
    TimePoint until{};
  };

  std::optional<std::uint64_t> calls_of_others() const override { return std::nullopt; }
  Coro<Result<void>> write_config(std::string name, QueueConfig config, JobReachRef asker) override;
  Coro<Result<void>> erase_named(std::string name) override;
  OwnerIs owner() const override { return options_.owned ? OwnerIs::elsewhere : OwnerIs::nobody; }
  bool explain_run(const JobRecord& record, JobExplanation& why) const override;
  std::optional<Explanation> look_in_memory(const JobRecord&) override { return std::nullopt; }
  Coro<Result<std::optional<WaitReason>>> held_by(const JobRecord& record, const StoredQueue& queue,
                                                  JobExplanation& why) override;

  Coro<Result<CalendarMemory>> recall_after_jump();
  void set_times(Change& change) const;
  const Known* find_known(const std::string& name) const;
  Coro<Result<Known>> get_known(std::string name);
  Coro<Result<StoredQueue>> open_queue(std::string name);
  Coro<Result<std::uint64_t>> live_in(QueueId queue);
  Coro<Result<std::optional<Error>>> why_not(const NewJob& job, Known& queue);
  Coro<Result<OnceReply>> put_once(OnceCall call);
  Coro<Result<void>> wait_for_room(const std::map<std::string, std::uint64_t>& wanted);
  Coro<Result<std::vector<Result<PutReply>>>> send(std::vector<PutRequest> requests, Refusal refusal);

  const BookOptions options_;
  std::optional<JobClock> clock_;
  TimePoint clock_until_{};  // when that is to be compared with the store's
  std::map<std::string, Known> known_;
};

}  // namespace argiope

// Who works for a store of jobs: one thread takes all calls that wait, runs them in one transaction and commits it; where a
// commit must reach the disk, a second one syncs it. Only then are the callers woken, each loop once. While one commit syncs the
// next is made, and those that come meanwhile share the next sync.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "async/internal/loop_ref.hpp"
#include "jobs/internal/job_rules.hpp"
#include "store/sqlite_jobs.hpp"

namespace argiope {

enum class CallKind : std::uint8_t { read, write, take_changes /* writes if others have changed jobs */ };

// A call on its way to the thread and its reply on the way back. The loop's part is not touched by the thread, which may
// outlive the loop.
class StoreCall {
 public:
  StoreCall(EventLoop& loop, CallKind kind, std::size_t jobs) : loop_(loop), home_(loop), kind_(kind), jobs_(jobs) {}
  virtual ~StoreCall() = default;
  virtual void run(SqliteJobs& jobs) = 0;
  virtual void fail(const Error& error) = 0;
  virtual void deliver() = 0;

  EventLoop& loop() const noexcept { return loop_; }  // on its own thread only
  const LoopRef& home() const noexcept { return home_; }
  CallKind kind() const noexcept { return kind_; }
  std::size_t jobs() const noexcept { return jobs_; }

 private:
  EventLoop& loop_;
  const LoopRef home_;
  const CallKind kind_;
  const std::size_t jobs_;
};

template <class T, class Act>
class StoreCallOf final : public StoreCall {
 public:
  StoreCallOf(EventLoop& loop, CallKind kind, std::size_t jobs, Act act)
      : StoreCall(loop, kind, jobs), future_(loop.create_future<Result<T>>()), act_(std::move(act)) {}
  const Future<Result<T>>& future() const noexcept { return future_; }

  void run(SqliteJobs& jobs) override {
    try {
      if constexpr (std::is_void_v<T>) {
        act_(jobs);
        result_ = Result<T>{};
      } else {
        result_ = Result<T>{act_(jobs)};
      }
    } catch (RequestRefused& refused) {
      result_ = std::unexpected(std::move(refused.error));
    }
  }
  void fail(const Error& error) override { result_ = std::unexpected(error); }
  void deliver() override {
    loop().end_outside_work();
    if (!future_.done()) future_.set_result(std::move(*result_));  // else it was cancelled, and has no taker
  }

 private:
  Future<Result<T>> future_;
  Act act_;
  std::optional<Result<T>> result_;
};

// Threads: submit() from any loop's, before stop() and after; stop() from any, one at a time.
class JobStoreThread {
 public:
  explicit JobStoreThread(std::unique_ptr<SqliteJobs> jobs);
  ~JobStoreThread() { (void)stop(); }

  template <class T, class Act>
  Future<Result<T>> submit(CallKind kind, std::size_t jobs, Act act) {
    EventLoop& loop = EventLoop::current();
    auto call = std::make_unique<StoreCallOf<T, Act>>(loop, kind, jobs, std::move(act));
    Future<Result<T>> future = call->future();
    if (!push(std::move(call))) future.set_result(std::unexpected(job_rules::closed()));
    return future;
  }
  std::optional<Error> failure() const;
  std::uint64_t last_token() const noexcept { return last_token_; }
  // Finishes what was submitted.
  Result<void> stop();

 private:
  using Calls = std::vector<std::unique_ptr<StoreCall>>;
  // What loops share with the thread; a callback that is left over may outlive the store.
  struct Shared;
  class WakeUp;
  // A transaction that is over.
  struct Finished {
    Calls calls;
    std::size_t jobs;
    bool wrote;
  };

  // False once it has been stopped.
  bool push(std::unique_ptr<StoreCall> call);
  void work();
  // Whether it has committed what must be synced.
  bool run(std::span<const std::unique_ptr<StoreCall>> batch);
  void attempt_one(StoreCall& call, bool writes);
  void give_up(std::span<const std::unique_ptr<StoreCall>> batch, const Error& error, bool writes);
  void note_failure(const Error& error);
  void finish(Finished finished);
  void sync();
  // Syncs them if need be and tells their callers. Of whichever thread has something to sync; never of both.
  void settle(std::vector<Finished> transactions);
  void move_log();
  static void deliver(Calls calls);

  std::unique_ptr<SqliteJobs> jobs_;
  std::atomic<std::uint64_t> last_token_;  // of `jobs_`, which ends before this
  std::shared_ptr<Shared> shared_;
  std::optional<Error> sync_failed_;
  std::thread thread_;
  std::thread syncer_;  // none if nothing needs it
};

}  // namespace argiope

// Who works for a store of jobs: one thread takes all calls that wait, runs them in one transaction and commits it; where a
// commit must reach the disk, a second one syncs it. Only then are the callers woken, each loop once. While one commit syncs the
// next is made, and those that come meanwhile share the next sync.
#pragma once

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
#include "store/sqlite_jobs.hpp"

namespace argiope {

enum class CallKind : std::uint8_t { read, write, take_changes /* writes if others have changed jobs */ };

// A call on its way to the thread and its reply on the way back. The loop's part is not touched by the thread.
class StoreCall {
 public:
  StoreCall(EventLoop& loop, CallKind kind, std::size_t jobs) noexcept : loop_(loop), kind_(kind), jobs_(jobs) {}
  virtual ~StoreCall() = default;
  virtual void run(SqliteJobs& jobs) = 0;
  virtual void fail(const Error& error) = 0;
  virtual void deliver() = 0;

  EventLoop& loop() const noexcept { return loop_; }
  CallKind kind() const noexcept { return kind_; }
  std::size_t jobs() const noexcept { return jobs_; }

 private:
  EventLoop& loop_;
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

// Threads: submit() from any loop's; stop() once, from any.
class JobStoreThread {
 public:
  explicit JobStoreThread(std::unique_ptr<SqliteJobs> jobs);
  ~JobStoreThread() { (void)stop(); }

  template <class T, class Act>
  Future<Result<T>> submit(CallKind kind, std::size_t jobs, Act act) {
    EventLoop& loop = EventLoop::current();
    auto call = std::make_unique<StoreCallOf<T, Act>>(loop, kind, jobs, std::move(act));
    Future<Result<T>> future = call->future();
    push(std::move(call));
    return future;
  }
  std::optional<Error> failure() const;
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

  void push(std::unique_ptr<StoreCall> call);
  void work();
  // Whether it has committed what must be synced.
  bool run(std::span<const std::unique_ptr<StoreCall>> batch);
  void attempt_one(StoreCall& call, bool writes);
  void note_failure(const Error& error);
  void finish(Finished finished);
  void sync();
  // Syncs them if need be and tells their callers. Of whichever thread has something to sync; never of both.
  void settle(std::vector<Finished> transactions);
  void move_log();
  static void deliver(Calls calls);

  std::unique_ptr<SqliteJobs> jobs_;
  std::shared_ptr<Shared> shared_;
  std::optional<Error> sync_failed_;
  std::thread thread_;
  std::thread syncer_;  // none if nothing needs it
};

}  // namespace argiope

// AwaitedCalls: calls to a GroupCommit that coroutines make and await. Each comes from the loop of its caller, and is
// answered there; what one turn of a loop asks for is one transaction, and is answered in one turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "async/internal/loop_ref.hpp"
#include "store/sqlite/internal/group_commit.hpp"

namespace argiope {

// Must be held by a shared_ptr: a callback that is left over on a loop may outlive its owner.
//
// Threads:  submit() from any that runs a loop, before stop() and after; stop() from any, one at a time.
// Lifetime: a loop may end before its answers come, which are dropped then.
class AwaitedCalls : public std::enable_shared_from_this<AwaitedCalls> {
 public:
  using Kind = GroupCommit::Call::Kind;

  explicit AwaitedCalls(std::unique_ptr<Transactions> transactions)
      : commit_(std::move(transactions), {.most_in_transaction = kMostInTransaction}, deliver) {}

  // `act()` gives a Result<T>; it runs in a transaction and throws nothing but DatabaseFailed. `writes`: as
  // GroupCommit::Call::writes(); null: true. `is_patient`: as GroupCommit::Call's. Errors: those of `act`,
  // DatabaseFailed's; `stopped`, at once, after stop(). Cancelling the wait does not undo the call.
  template <class T, class Act>
  Future<Result<T>> submit(Kind kind, std::size_t size, Act act, Error (*stopped)(),
                           std::function<bool()> writes = nullptr, bool is_patient = false) {
    EventLoop& loop = EventLoop::current();
    auto call = std::make_unique<CallOf<T, Act>>(loop, kind, size, std::move(act), std::move(writes), is_patient);
    Future<Result<T>> future = call->future();
    if (!push(std::move(call))) future.set_result(std::unexpected(stopped()));
    return future;
  }
  std::optional<Error> failure() const { return commit_.failure(); }
  // As GroupCommit's.
  Result<void> stop() { return commit_.stop(); }

 private:
  // So that those who wait for the first need not wait for a million others.
  static constexpr std::size_t kMostInTransaction = 256;

  // A call on its way to the thread and its reply on the way back. The loop's part is not touched by the thread, which
  // may outlive the loop.
  class Call : public GroupCommit::Call {
   public:
    Call(EventLoop& loop, Kind kind, std::size_t size, std::function<bool()> writes, bool is_patient)
        : GroupCommit::Call(kind, size, is_patient), loop_(loop), home_(loop), writes_(std::move(writes)) {}
    bool writes() final { return writes_ == nullptr || writes_(); }
    virtual void deliver() = 0;
    EventLoop& loop() const noexcept { return loop_; }  // on its own thread only
    const LoopRef& home() const noexcept { return home_; }

   private:
    EventLoop& loop_;
    const LoopRef home_;
    const std::function<bool()> writes_;
  };

  template <class T, class Act>
  class CallOf final : public Call {
   public:
    CallOf(EventLoop& loop, Kind kind, std::size_t size, Act act, std::function<bool()> writes, bool is_patient)
        : Call(loop, kind, size, std::move(writes), is_patient),
          future_(loop.create_future<Result<T>>()),
          act_(std::move(act)) {}
    const Future<Result<T>>& future() const noexcept { return future_; }
    void run() override { result_ = act_(); }
    void fail(const Error& error) override { result_ = std::unexpected(error); }
    void deliver() override {
      this->loop().end_outside_work();
      if (!future_.done()) future_.set_result(std::move(*result_));  // else it was cancelled, and has no taker
    }

   private:
    Future<Result<T>> future_;
    Act act_;
    std::optional<Result<T>> result_;
  };
  class WakeUp;

  // False once it has been stopped.
  bool push(std::unique_ptr<Call> call);
  static void deliver(GroupCommit::Calls calls);

  GroupCommit commit_;
  std::atomic<const EventLoop*> waking_ = nullptr;  // the loop that will wake the thread at the end of its turn
};

}  // namespace argiope

#include "store/jobs/awaited_calls.hpp"

#include <algorithm>
#include <vector>

namespace argiope {

// Wakes the thread when called or dropped.
class AwaitedCalls::WakeUp {
 public:
  explicit WakeUp(std::shared_ptr<AwaitedCalls> calls) noexcept : calls_(std::move(calls)) {}
  WakeUp(WakeUp&&) noexcept = default;
  ~WakeUp() {
    if (calls_ != nullptr) (*this)();
  }
  void operator()() noexcept {
    const auto calls = std::exchange(calls_, nullptr);
    calls->waking_ = nullptr;
    calls->commit_.wake();
  }

 private:
  std::shared_ptr<AwaitedCalls> calls_;
};

// The thread is woken after all that is ready on the loop has run: what its tasks ask for in one turn is one
// transaction, and not the first of them one and the rest another. For a call that is large by itself it is woken at
// once, and works on it while the loop makes the next; so it is where another loop was about to wake it.
bool AwaitedCalls::push(std::unique_ptr<Call> call) {
  EventLoop& loop = call->loop();
  const bool large = call->size() >= GroupCommit::kLarge;
  loop.begin_outside_work();
  if (!commit_.submit(std::move(call))) {
    loop.end_outside_work();
    return false;
  }
  const EventLoop* waking = nullptr;
  if (large) {
    commit_.wake();
  } else if (waking_.compare_exchange_strong(waking, &loop)) {
    loop.call_soon(WakeUp(shared_from_this()));
  } else if (waking != &loop) {
    commit_.wake();
  }
  return true;
}

// The calls of a loop that is gone go with it.
void AwaitedCalls::deliver(GroupCommit::Calls calls) {
  const auto home_of = [](const std::unique_ptr<GroupCommit::Call>& call) -> const LoopRef& {
    return static_cast<const Call&>(*call).home();
  };
  const auto send = [&](GroupCommit::Calls to_one_loop) {
    const LoopRef home = home_of(to_one_loop.front());
    home.call_soon([delivered = std::move(to_one_loop)] {
      for (const auto& call : delivered) static_cast<Call&>(*call).deliver();
    });
  };
  while (!calls.empty()) {
    const LoopRef home = home_of(calls.front());
    GroupCommit::Calls others;  // nearly always none
    for (auto& call : calls) {
      if (home_of(call) != home) others.push_back(std::move(call));
    }
    if (!others.empty()) std::erase(calls, nullptr);
    send(std::exchange(calls, std::move(others)));
  }
}

}  // namespace argiope

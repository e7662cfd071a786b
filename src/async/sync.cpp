#include "argiope/async/sync.hpp"

#include <exception>
#include <string>

namespace argiope {
namespace detail {

void wake_first(IntrusiveList<ListWaiter>& list) noexcept {
  ListWaiter& first = list.front();
  first.set_woken();
  wake_task(first);
}
void wake_all(IntrusiveList<ListWaiter>& list) noexcept {
  while (!list.empty()) wake_first(list);
}

}  // namespace detail

// --- Condition -------------------------------------------------------------------------------------------------

void Condition::require_locked(const char* what) const {
  if (!locked()) throw std::logic_error(std::string(what) + " on a condition whose lock is not held");
}

Coro<void> Condition::wait() {
  require_locked("wait()");
  release();
  detail::Pause notification(waiters_);
  std::exception_ptr cancellation;
  try {
    co_await notification;
  } catch (const CancelledError&) {
    cancellation = std::current_exception();
  }
  for (bool held = false; !held;) {
    try {
      co_await acquire();
      held = true;
    } catch (const CancelledError&) {
      cancellation = std::current_exception();
    }
  }
  if (cancellation == nullptr) co_return;
  if (notification.woken()) notify();
  std::rethrow_exception(cancellation);
}

void Condition::notify(std::size_t n) {
  require_locked("notify()");
  for (; n > 0 && !waiters_.empty(); --n) detail::wake_first(waiters_);
}

void Condition::notify_all() {
  require_locked("notify_all()");
  detail::wake_all(waiters_);
}

// --- Barrier ---------------------------------------------------------------------------------------------------

// One task's stay, from coming to leaving, however it leaves.
class Barrier::Visit {
 public:
  explicit Visit(Barrier& barrier) noexcept : barrier_(barrier), index_(barrier.inside_++) {}
  ~Visit() {
    if (--barrier_.inside_ > 0) return;
    if (barrier_.state_ != State::broken) barrier_.state_ = State::filling;
    detail::wake_all(barrier_.outside_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  std::size_t index() const noexcept { return index_; }

 private:
  Barrier& barrier_;
  std::size_t index_;
};

Barrier::Barrier(std::ptrdiff_t parties) : parties_(static_cast<std::size_t>(parties)) {
  if (parties < 1) throw std::invalid_argument("a barrier needs at least one party");
}

Coro<std::size_t> Barrier::wait() {
  while (state_ == State::draining || state_ == State::resetting) co_await detail::Pause(outside_);
  if (broken()) throw BrokenBarrierError();
  const Visit visit(*this);
  if (inside_ == parties_) {
    state_ = State::draining;
    detail::wake_all(waiting_);
  } else {
    co_await detail::Pause(waiting_);
    if (state_ != State::draining) throw BrokenBarrierError();
  }
  co_return visit.index();
}

void Barrier::reset() noexcept {
  state_ = inside_ > 0 ? State::resetting : State::filling;
  wake_everybody();
}

void Barrier::abort() noexcept {
  state_ = State::broken;
  wake_everybody();
}

void Barrier::wake_everybody() noexcept {
  detail::wake_all(waiting_);
  detail::wake_all(outside_);
}

}  // namespace argiope

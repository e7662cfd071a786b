#include <stdexcept>

#include "argiope/async/event_loop.hpp"

namespace argiope {

void Timeout::enter() {
  if (task_ != nullptr) throw std::logic_error("this Timeout is running already: every run() needs one of its own");
  if (entered_) throw std::logic_error("this Timeout has run already: every run() needs one of its own");
  entered_ = true;
  task_ = detail::this_thread.task;
  cancelling_before_ = task_->cancelling();
  arm();
}

void Timeout::arm() {
  handle_.cancel();
  handle_ = Handle{};
  if (when_ == kNever || task_ == nullptr) return;
  const auto strike = [this] {
    expired_ = true;
    task_->cancel({});
  };
  // A timeout that has come already strikes at the first wait, even if that is only a yield.
  EventLoop& loop = EventLoop::current();
  handle_ = when_ <= loop.time() ? loop.call_soon(strike) : loop.call_at(when_, strike);
}

void Timeout::reschedule(TimePoint when) {
  if (expired_) throw std::logic_error("this Timeout has expired already");
  if (entered_ && task_ == nullptr) throw std::logic_error("this Timeout has run already");
  when_ = when;
  arm();
}

bool Timeout::leave() noexcept {
  handle_.cancel();
  detail::TaskCore& task = *std::exchange(task_, nullptr);
  return expired_ && task.uncancel() <= cancelling_before_;
}

}  // namespace argiope

#include <atomic>

#include "argiope/async/threads.hpp"

namespace argiope::detail {

struct ChannelCore::Port {
  explicit Port(EventLoop& of) noexcept : loop(&of) {}
  EventLoop* loop;
  // Served by other threads, and not yet woken.
  Waiters served;
  // A delivery is on its way to the loop. Changed with the mutex held, but by a delivery that is dropped.
  std::atomic<bool> posted = false;
};

// The call that is posted to a loop whose waiters were served. Dropped without having run when the loop is destroyed;
// another loop may then come to live at its address, and must get deliveries of its own.
class ChannelCore::Delivery {
 public:
  Delivery(std::shared_ptr<ChannelCore> core, Port& port) noexcept : core_(std::move(core)), port_(&port) {}
  Delivery(Delivery&&) noexcept = default;
  Delivery& operator=(Delivery&&) = delete;
  ~Delivery() {
    if (core_ != nullptr) port_->posted = false;
  }
  void operator()() noexcept {
    const auto core = std::move(core_);
    core->deliver(*port_);
  }

 private:
  std::shared_ptr<ChannelCore> core_;
  Port* port_;
};

ChannelCore::ChannelCore() = default;
ChannelCore::~ChannelCore() = default;

void ChannelCore::ChannelWaiter::leave() noexcept {
  std::lock_guard lock(core->mutex);
  unlink();
  parked = false;
}

ChannelCore::Port& ChannelCore::port_of(EventLoop& loop) {
  for (const auto& port : ports_) {
    if (port->loop == &loop) return *port;
  }
  return *ports_.emplace_back(std::make_unique<Port>(loop));
}

void ChannelCore::attach(std::coroutine_handle<> self, ChannelWaiter& waiter) {
  waiter.kept = shared_from_this();
  waiter.on_cancel = &ChannelCore::cancel;
  this_thread.task->park(self, waiter);
}

void ChannelCore::park(std::coroutine_handle<> self, ChannelWaiter& waiter, Waiters& waiters) {
  waiter.port = &port_of(*this_thread.loop);
  attach(self, waiter);
  waiter.parked = true;
  waiters.push_back(waiter);
}

void ChannelCore::yield_served(std::coroutine_handle<> self, ChannelWaiter& waiter) {
  attach(self, waiter);
  wake_served(waiter);
}

void ChannelCore::cancel(Waiter& cancelled) {
  auto& waiter = static_cast<ChannelWaiter&>(cancelled);
  TaskCore& task = *waiter.target.task();
  bool has_nothing = false;
  {
    std::lock_guard lock(waiter.core->mutex);
    has_nothing = waiter.give_back();
    waiter.unlink();
  }
  const bool is_ready = !std::exchange(waiter.parked, false);
  if (!has_nothing) {
    task.cancel_late();
    if (!is_ready) wake_served(waiter);
  } else if (is_ready) {
    task.cancel_served();
  } else {
    task.wake_cancelled(waiter);
  }
}

void ChannelCore::wake(ChannelWaiter& waiter) {
  Port& port = *waiter.port;
  waiter.unlink();
  if (port.loop == this_thread.loop) {
    tell(waiter);
    return;
  }
  port.served.push_back(waiter);
  if (port.posted.exchange(true)) return;
  // With the mutex held, because the loop is there for as long as its waiter is.
  port.loop->call_soon_threadsafe(Delivery(shared_from_this(), port));
}

void ChannelCore::tell(ChannelWaiter& waiter) noexcept {
  waiter.parked = false;
  if (waiter.refused) {
    wake_task(waiter);
  } else {
    wake_served(waiter);
  }
}

void ChannelCore::refuse_all(Waiters& waiters) {
  while (!waiters.empty()) {
    auto& waiter = static_cast<ChannelWaiter&>(waiters.front());
    waiter.refused = true;
    wake(waiter);
  }
}

void ChannelCore::deliver(Port& port) noexcept {
  Waiters served;
  {
    std::lock_guard lock(mutex);
    served.splice_back(port.served);
    port.posted = false;
  }
  while (!served.empty()) {
    auto& waiter = static_cast<ChannelWaiter&>(served.front());
    waiter.unlink();
    tell(waiter);
  }
}

}  // namespace argiope::detail

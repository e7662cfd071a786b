#include "argiope/async/channel.hpp"

#include <atomic>

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

void ChannelCore::park(std::coroutine_handle<> self, ChannelWaiter& waiter, Waiters& waiters) {
  waiter.port = &port_of(*this_thread.loop);
  this_thread.task->park(self, waiter);
  waiter.on_cancel = [](Waiter& cancelled) {
    auto& leaving = static_cast<ChannelWaiter&>(cancelled);
    leaving.leave();
    leaving.target.task()->wake_cancelled(leaving);
  };
  waiter.parked = true;
  waiters.push_back(waiter);
}

void ChannelCore::wake(ChannelWaiter& waiter) {
  Port& port = *waiter.port;
  waiter.unlink();
  if (port.loop == this_thread.loop) {
    waiter.parked = false;
    wake_task(waiter);
    return;
  }
  port.served.push_back(waiter);
  if (port.posted.exchange(true)) return;
  // With the mutex held, because the loop is there for as long as its waiter is.
  port.loop->call_soon_threadsafe(Delivery(shared_from_this(), port));
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
    waiter.parked = false;
    wake_task(waiter);
  }
}

}  // namespace argiope::detail

#include "async/descriptors.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace argiope {
namespace detail {

void Descriptors::add(int fd, Interest interest, std::function<void()> function) {
  if (!function) throw std::invalid_argument("a reader or writer needs a function to call");
  auto shared = std::make_shared<std::function<void()>>(std::move(function));
  remove(fd, interest);
  free_side(fd, interest).function = std::move(shared);
  try {
    arm(fd, interest);
  } catch (...) {
    remove(fd, interest);
    throw;
  }
}

void Descriptors::arm(int fd, Interest interest) {
  watched_.at(fd).watch->start(interest, [this, fd, interest] {
    watched_.at(fd).side(interest).scheduled = loop_.call_soon([this, fd, interest] {
      // Armed before the call, which may remove it and may throw.
      const auto function = watched_.at(fd).side(interest).function;
      arm(fd, interest);
      (*function)();
    });
  });
}

bool Descriptors::remove(int fd, Interest interest) noexcept {
  const auto found = watched_.find(fd);
  if (found == watched_.end()) return false;
  Side& side = found->second.side(interest);
  // Freed last: what it captured may come back here.
  const auto function = std::exchange(side.function, nullptr);
  if (function == nullptr) return false;
  std::exchange(side.scheduled, Handle{}).cancel();
  found->second.watch->stop(interest);
  forget_if_idle(fd);
  return true;
}

Descriptors::Side& Descriptors::free_side(int fd, Interest interest) {
  auto found = watched_.find(fd);
  if (found == watched_.end()) {
    auto watch = loop_.backend().watch(fd);
    found = watched_.try_emplace(fd).first;
    found->second.watch = std::move(watch);
  }
  Side& side = found->second.side(interest);
  if (side.claimed || side.function != nullptr) {
    throw std::logic_error(fmt::format("descriptor {} is watched for {} already, by {}: one at a time", fd,
                                       interest == Interest::read ? "reading" : "writing",
                                       side.claimed ? "a task that waits" : "a reader or writer that was added"));
  }
  return side;
}

Watch& Descriptors::claim(int fd, Interest interest) {
  free_side(fd, interest).claimed = true;
  return *watched_.at(fd).watch;
}

void Descriptors::give_up(int fd, Interest interest) noexcept {
  const auto found = watched_.find(fd);
  if (found == watched_.end()) return;
  found->second.side(interest).claimed = false;
  found->second.watch->stop(interest);
  forget_if_idle(fd);
}

void Descriptors::forget_if_idle(int fd) noexcept {
  const auto found = watched_.find(fd);
  for (const Side& side : found->second.sides) {
    if (side.claimed || side.function != nullptr) return;
  }
  watched_.erase(found);
}

}  // namespace detail

// --- EventLoop's part ----------------------------------------------------------------------------------------------

detail::Descriptors& EventLoop::descriptors() {
  if (descriptors_ == nullptr) descriptors_ = std::make_unique<detail::Descriptors>(*this);
  return *descriptors_;
}

void EventLoop::add_reader(int fd, std::function<void()> function) {
  descriptors().add(fd, Interest::read, std::move(function));
}
void EventLoop::add_writer(int fd, std::function<void()> function) {
  descriptors().add(fd, Interest::write, std::move(function));
}
bool EventLoop::remove_reader(int fd) noexcept {
  return descriptors_ != nullptr && descriptors_->remove(fd, Interest::read);
}
bool EventLoop::remove_writer(int fd) noexcept {
  return descriptors_ != nullptr && descriptors_->remove(fd, Interest::write);
}
Watch& EventLoop::claim(int fd, Interest interest) { return descriptors().claim(fd, interest); }
void EventLoop::give_up(int fd, Interest interest) noexcept {
  if (descriptors_ != nullptr) descriptors_->give_up(fd, interest);
}

}  // namespace argiope

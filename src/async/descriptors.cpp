// Readers and writers: what the loop keeps of the descriptors it watches.
#include <fmt/format.h>

#include <stdexcept>

#include "argiope/async/event_loop.hpp"

namespace argiope {

using detail::WatchedDescriptor;

void EventLoop::add_reader(int fd, std::function<void()> function) {
  add_watcher(fd, Interest::read, std::move(function));
}
void EventLoop::add_writer(int fd, std::function<void()> function) {
  add_watcher(fd, Interest::write, std::move(function));
}
bool EventLoop::remove_reader(int fd) noexcept { return remove_watcher(fd, Interest::read); }
bool EventLoop::remove_writer(int fd) noexcept { return remove_watcher(fd, Interest::write); }

void EventLoop::add_watcher(int fd, Interest interest, std::function<void()> function) {
  if (!function) throw std::invalid_argument("a reader or writer needs a function to call");
  auto shared = std::make_shared<std::function<void()>>(std::move(function));
  remove_watcher(fd, interest);
  claim(fd, interest);
  WatchedDescriptor::Side& side = descriptors_.at(fd).side(interest);
  side.claimed = false;
  side.function = std::move(shared);
  try {
    arm_watcher(fd, interest);
  } catch (...) {
    remove_watcher(fd, interest);
    throw;
  }
}

void EventLoop::arm_watcher(int fd, Interest interest) {
  descriptors_.at(fd).watch->start(interest, [this, fd, interest] {
    descriptors_.at(fd).side(interest).scheduled = call_soon([this, fd, interest] {
      // Armed before the call, which may remove it and may throw.
      const auto function = descriptors_.at(fd).side(interest).function;
      arm_watcher(fd, interest);
      (*function)();
    });
  });
}

bool EventLoop::remove_watcher(int fd, Interest interest) noexcept {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return false;
  WatchedDescriptor::Side& side = found->second.side(interest);
  // Freed last: what it captured may come back here.
  const auto function = std::exchange(side.function, nullptr);
  if (function == nullptr) return false;
  std::exchange(side.scheduled, Handle{}).cancel();
  found->second.watch->stop(interest);
  forget_if_idle(fd);
  return true;
}

Watch& EventLoop::claim(int fd, Interest interest) {
  auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) {
    auto watch = backend_.watch(fd);
    found = descriptors_.try_emplace(fd).first;
    found->second.watch = std::move(watch);
  }
  WatchedDescriptor::Side& side = found->second.side(interest);
  if (side.claimed || side.function != nullptr) {
    throw std::logic_error(fmt::format("descriptor {} is watched for {} already, by {}: one at a time", fd,
                                       interest == Interest::read ? "reading" : "writing",
                                       side.claimed ? "a task that waits" : "a reader or writer that was added"));
  }
  side.claimed = true;
  return *found->second.watch;
}

void EventLoop::give_up(int fd, Interest interest) noexcept {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return;
  found->second.side(interest).claimed = false;
  found->second.watch->stop(interest);
  forget_if_idle(fd);
}

void EventLoop::forget_if_idle(int fd) noexcept {
  const auto found = descriptors_.find(fd);
  if (found == descriptors_.end()) return;
  for (const WatchedDescriptor::Side& side : found->second.sides) {
    if (side.claimed || side.function != nullptr) return;
  }
  // Out of the map before it is destroyed, so that nothing sees it half gone.
  const auto gone = descriptors_.extract(found);
}

}  // namespace argiope

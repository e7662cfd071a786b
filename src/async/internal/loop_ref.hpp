// LoopRef: what another thread keeps of a loop that it owes an answer, and that may be gone by then.
#pragma once

#include <functional>
#include <memory>

#include "argiope/async/event_loop.hpp"

namespace argiope {

// Names one loop for ever: never another one that comes to live at the same address later.
//
// Threads: any. The loop must be alive when it is made, and may end at any moment afterwards.
// Cost:    to make one counts a reference; a call takes a lock of that loop's own.
class LoopRef {
 public:
  explicit LoopRef(EventLoop& loop) noexcept : life_(loop.life()) {}
  // As EventLoop::call_soon_threadsafe. False where the loop is gone: `function` has been dropped. A loop that ends
  // before it has run `function` drops it too.
  bool call_soon(std::move_only_function<void()> function) const;
  bool operator==(const LoopRef&) const = default;

 private:
  std::shared_ptr<detail::LoopLife> life_;
};

}  // namespace argiope

#include <algorithm>
#include <stdexcept>

#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"

namespace argiope::detail {
namespace {

bool is_enough(const FutureCore& ended, When when) noexcept {
  return when == When::first_completed || (when == When::first_exception && ended.state() == FutureState::failed);
}

// Callbacks that are taken back however the wait ends.
struct Handles {
  std::vector<Handle> handles;
  ~Handles() {
    for (Handle& handle : handles) handle.cancel();
  }
};

}  // namespace

Coro<void> wait_until(std::vector<FutureCore*> futures, When when, TimePoint deadline) {
  if (futures.empty()) throw std::invalid_argument("wait for no future at all");
  require_same_loop(futures);
  std::size_t remaining = 0;
  bool enough = false;
  for (const FutureCore* future : futures) {
    if (!future->done()) {
      ++remaining;
    } else if (is_enough(*future, when)) {
      enough = true;
    }
  }
  if (remaining == 0 || enough) {
    if (!may_go_on()) co_await yield_now();
    co_return;
  }

  Event wake_up;
  Handles callbacks;
  callbacks.handles.reserve(remaining + 1);
  for (FutureCore* future : futures) {
    if (future->done()) continue;
    callbacks.handles.push_back(future->add_done_callback([&, future] {
      if (--remaining == 0 || is_enough(*future, when)) wake_up.set();
    }));
  }
  if (deadline != kNever) {
    callbacks.handles.push_back(EventLoop::current().call_at(deadline, [&] { wake_up.set(); }));
  }
  co_await wake_up.wait();
}

}  // namespace argiope::detail

// The machine's time, and what a test adds to it: what takes an hour is over at once, and no stop of the machine is
// taken for one.
#pragma once

#include <utility>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"

namespace argiope {

class AdvancingClock final : public Clock {
 public:
  Duration ahead{};
  TimePoint now() const noexcept override { return saturating_add(real_.now(), ahead); }
  WallTime wall_now() const noexcept override { return real_.wall_now(); }

 private:
  SystemClock real_;
};

// As RealTime.
struct AdvancingTime {
  AdvancingClock clock;
  AsioBackend backend{clock};
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return loop.run_until_complete(std::move(coro));
  }
};

}  // namespace argiope

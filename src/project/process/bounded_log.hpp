// Keeps a script from filling its project's log.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "project/process/internal/processor.hpp"

namespace argiope {

// So many bytes a minute, and how many more there were.
class BoundedLog {
 public:
  BoundedLog(EventLoop& loop, std::size_t most, const std::function<void(PageLog)>& to)
      : loop_(loop), most_(most), to_(to) {}

  void add(PageLog line) {
    const TimePoint now = loop_.time();
    if (now >= window_end_) {
      tell_dropped();
      window_end_ = now + kWindow;
      left_ = most_;
    }
    if (line.text.size() > left_) {
      left_ = 0;
      dropped_ += line.text.size();
      return;
    }
    left_ -= line.text.size();
    if (to_) to_(std::move(line));
  }
  void tell_dropped() {
    if (dropped_ > 0 && to_) to_({"warning", fmt::format("{} bytes of the log are left out", dropped_)});
    dropped_ = 0;
  }

 private:
  static constexpr Duration kWindow = std::chrono::minutes{1};

  EventLoop& loop_;
  const std::size_t most_;
  const std::function<void(PageLog)> to_;
  TimePoint window_end_ = TimePoint::min();
  std::size_t left_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace argiope

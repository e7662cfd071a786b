// A line that shows something at work: rewritten in place on a terminal, a plain log line now and then elsewhere.
#pragma once

#include <cstdio>
#include <string>

#include "argiope/base/clock.hpp"

namespace argiope {

// From one line to the next: on a terminal, and in a log.
inline constexpr Duration kLiveInterval = std::chrono::milliseconds{200};
inline constexpr Duration kPlainInterval = std::chrono::seconds{10};

class LiveLine {
 public:
  // A terminal or not by itself.
  explicit LiveLine(std::FILE* out);
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;

  // How long to wait from one show() to the next.
  Duration interval() const noexcept;
  void show(std::string line);
  // Takes the line away, so that something else can be printed.
  void clear();

 private:
  std::FILE* out_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace argiope

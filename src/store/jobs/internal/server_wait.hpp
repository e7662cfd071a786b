// ServerWait: how long the calls of a store wait for its server, whatever they wait in.
//
// The rule, the same for every server: a wait has `limit` from its beginning. When it was in vain, trouble has begun,
// and all that follows (pauses, connections, answers) has what is left of the same time, until the server has answered
// a whole transaction, or the time is over and the call fails; the next one has all of the time again. After hurry()
// a time that is over is the last: what follows fails at once where the server does not answer at once.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "store/sqlite/internal/alarm.hpp"

namespace argiope {

// Suspends: never; its waits block the thread.
// Threads:  one at a time, but hurry() and is_over(), which any may call.
class ServerWait {
 public:
  // `name`: of the store, for the log, which tells once of a trouble and of its end; empty: it tells nothing.
  // Errors: std::system_error.
  ServerWait(std::string name, Duration limit) : name_(std::move(name)), limit_(limit) {}

  // Something is asked, to be waited for with await().
  void begin() noexcept;
  // Whether `descriptor` is ready for `events` (poll's) in time, or before `sooner` goes off. At once where it is.
  bool await(int descriptor, short events, const Alarm* sooner = nullptr) const noexcept;
  // Of what was begun last, or of the trouble; 0: none.
  Duration left() const noexcept { return alarm_.left(); }
  bool is_over() const noexcept { return alarm_.has_gone_off(); }
  // What was waited for has not come, or was refused for the moment: waits a while. False: the time is over, cause() is
  // the call's error.
  bool pause(std::string_view why, Duration pause);
  // Why the last pause() was called; where the end of a trouble's time may have cut that off, why the one before.
  const std::string& cause() const noexcept { return cause_; }
  // Whether a time is over after hurry(): nothing is waited for any more.
  bool has_given_up() const;
  // The server has answered all that was asked.
  void answered();
  // What waits now, and all that will, has no more than `limit`. 0: it is given up, nothing is waited for any more.
  void hurry(Duration limit) noexcept;

 private:
  const std::string name_;
  std::string cause_;
  bool in_trouble_ = false, told_ = false;
  Alarm alarm_;
  mutable std::mutex mutex_;  // of what follows
  Duration limit_;
  bool hurried_ = false, given_up_ = false;
};

}  // namespace argiope

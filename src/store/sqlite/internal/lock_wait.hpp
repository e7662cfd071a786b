// How long a connection waits while another process keeps its file locked. SQLite asks after each try; between two
// tries the connection's thread sleeps. Time is counted by those pauses, not by a clock.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "argiope/base/clock.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

// Threads: begin_hurry() and end_hurry() from any, the rest from the connection's.
class LockWait {
 public:
  // Waits of `limit` each, at first. The log tells of one that has taken as long as `warning`, and of its end.
  LockWait(std::string path, Duration limit, Duration warning)
      : path_(std::move(path)), limit_(limit), warning_(warning) {}
  LockWait(const LockWait&) = delete;

  // The connection must not outlive it.
  void serve(SqliteDatabase& database) noexcept;
  // From now on waits take as long as it takes, but for hurries.
  void be_patient();
  // A caller waits for the write: until as many hurries have ended as have begun, all waits, that which is under way
  // included, take no longer than `limit` together.
  void begin_hurry();
  void end_hurry();
  // The lock has been had. Says so where the wait was told of.
  void over();

 private:
  bool try_again(int tries);

  const std::string path_;
  const Duration limit_, warning_;
  Duration waited_{};
  bool told_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool patient_ = false;
  int hurries_ = 0;
  Duration left_{};  // in a hurry
};

}  // namespace argiope

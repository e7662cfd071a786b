// ReadTurns: whose requests that only look are answered now, and how long they leave the daemon to those who write.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "argiope/async/sync.hpp"
#include "argiope/web/http_server.hpp"

namespace argiope {

// Of the reads that read much some run at a time, and fewer of one caller, so that a caller that asks without end
// leaves turns for the others. First come, first served.
//
// While others write, each caller's reads have one part in kShare of the time: after a read they wait for kShare - 1
// times as long as it took, kLongestRest at most, and a small one counts as kLeast. So they are delayed and never
// refused: each read rests for so long after the one before it, and those of a caller that come together wait for all
// that are before them. Reads of other callers do not wait for them. With nobody at work they wait for nothing.
//
// Threads: the loop's own.
class ReadTurns {
  struct Caller;
  class Reading;

 public:
  static constexpr std::ptrdiff_t kAtOnce = 4;
  static constexpr std::ptrdiff_t kOfOneCaller = 2;
  static constexpr int kShare = 5;
  // With what client and server do for a small answer on a machine that they share.
  static constexpr Duration kLeast = std::chrono::microseconds{200};
  static constexpr Duration kLongestRest = std::chrono::milliseconds{100};
  // Others write for as long after each change.
  static constexpr Duration kRecent = std::chrono::milliseconds{20};

  // `changes`: how many changes there have been; it never falls. Empty: nobody writes.
  explicit ReadTurns(std::function<std::uint64_t()> changes = {}) : changes_(std::move(changes)) {}

  // Whether others write now.
  bool others_write();
  // Lets in a read of `who`, any, which has not begun. Requests of one caller are let in first come, first served, so
  // that connections that each ask for one thing at a time take turns.
  // Suspends: while others write, and the caller has had its share.
  // Cancel:   nothing is counted.
  Coro<void> let_in(std::string who);

  // Ends with its last copy; what was read until then counts. Lifetime: within that of its ReadTurns.
  using Turn = std::shared_ptr<const Reading>;
  // Lets in one that reads much. Suspends: until it is the caller's turn.
  Coro<Turn> next(std::string who);

  // How often reads have waited because others wrote. One that reads much may wait twice: to be let in, and for its
  // turn.
  std::uint64_t waits() const noexcept { return waits_; }

 private:
  std::shared_ptr<Caller> caller_of(const std::string& who);
  Coro<void> let_in(std::shared_ptr<Caller> caller);
  bool others_write(TimePoint now);
  // Counts what `caller` has read since `began`, of which other reads of it may have counted a part.
  void count(Caller& caller, TimePoint began, TimePoint now);

  const std::function<std::uint64_t()> changes_;
  std::uint64_t changes_seen_ = 0;
  TimePoint changed_at_ = TimePoint::min();
  std::uint64_t waits_ = 0;
  Semaphore all_{kAtOnce};
  std::map<std::string, std::shared_ptr<Caller>> callers_;  // those that nothing is to be known of go
};

// `handler`, whose reads wait for those who write. `reader`: who asks, for a request that only looks; nullopt: it does
// more, and is answered at once.
HttpHandler behind_writes(std::shared_ptr<ReadTurns> turns,
                          std::function<std::optional<std::string>(const ServerRequest&)> reader, HttpHandler handler);

}  // namespace argiope

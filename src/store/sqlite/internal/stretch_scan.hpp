// scan_stretches: reads all rows of a table by their ids. Connections of its own read stretches of ids on threads of
// their own, while the caller works off those that are there, in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

inline constexpr std::uint64_t kStretchIds = 2048;

// The rows from id `first_` to `last_`. A `Stretch` is what a reader fills and the caller is shown, and is used again:
//
//   bool is_empty() const;  // there is no row with these ids
//   std::int64_t next;      // then: an id behind them, of the next row; 0: there is none
//
// A `Reader` has a connection, and `Result<void> read(std::uint64_t first, std::uint64_t last, Stretch& stretch)`,
// called by one thread at a time.
template <class Stretch>
class StretchScan {
 public:
  StretchScan(std::uint64_t first, std::uint64_t last) : first_(first), last_(last), next_(first), at_(first) {}

  // Calls `show(stretch)` until it returns false, for all that is not empty.
  template <class Reader, class Show>
  Result<void> run_alone(Reader& reader, const Show& show) {
    Stretch stretch;
    for (std::uint64_t at = first_; at <= last_;) {
      const std::uint64_t last = at + kStretchIds - 1;
      if (auto read = reader.read(at, last, stretch); !read) return read;
      if (stretch.is_empty() && stretch.next == 0) return {};
      if (!stretch.is_empty() && !show(std::as_const(stretch))) return {};
      at = stretch.is_empty() ? static_cast<std::uint64_t>(stretch.next) : last + 1;
    }
    return {};
  }

  // The same with a thread for each reader; `show` is called by this one.
  template <class Reader, class Show>
  Result<void> run(std::vector<std::unique_ptr<Reader>> readers, const Show& show) {
    std::vector<std::jthread> threads;
    // Waiters are told, whatever ends this.
    struct Ending {
      StretchScan& scan;
      ~Ending() { scan.end({}); }
    } ending{*this};
    for (auto& reader : readers) {
      threads.emplace_back([this, reader = std::move(reader)] { read_on(*reader); });
    }
    auto done = work_off(show);
    end({});
    return done;
  }

 private:
  static constexpr std::size_t kMostAhead = 6;  // stretches that are read and not yet worked off

  void end(std::optional<Error> failure) {
    std::lock_guard lock(mutex_);
    ended_ = true;
    if (failure && !failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  // On a thread that reads.
  template <class Reader>
  void read_on(Reader& reader) {
    for (;;) {
      std::unique_ptr<Stretch> stretch;
      std::uint64_t at = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || next_ < at_ + kMostAhead * kStretchIds; });
        if (ended_ || next_ > last_) return;
        at = next_;
        next_ += kStretchIds;
        if (!idle_.empty()) {
          stretch = std::move(idle_.back());
          idle_.pop_back();
        }
      }
      if (!stretch) stretch = std::make_unique<Stretch>();
      if (auto read = reader.read(at, at + kStretchIds - 1, *stretch); !read) return end(std::move(read.error()));
      std::lock_guard lock(mutex_);
      // Nothing is there for a while: others need not look either.
      if (stretch->is_empty()) next_ = std::max(next_, stretch->next == 0 ? last_ + 1 : begin_of(stretch->next));
      ready_.emplace(at, std::move(stretch));
      changed_.notify_all();
    }
  }

  template <class Show>
  Result<void> work_off(const Show& show) {
    for (std::uint64_t at = first_; at <= last_;) {
      std::unique_ptr<Stretch> stretch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || ready_.contains(at); });
        if (!ready_.contains(at)) return failure_ ? Result<void>(std::unexpected(*failure_)) : Result<void>{};
        stretch = std::move(ready_.extract(at).mapped());
      }
      std::uint64_t behind = at + kStretchIds;
      if (stretch->is_empty()) {
        behind = stretch->next == 0 ? last_ + 1 : std::max(behind, begin_of(stretch->next));
      } else if (!show(std::as_const(*stretch))) {
        return {};
      }
      std::lock_guard lock(mutex_);
      at = at_ = behind;
      ready_.erase(ready_.begin(), ready_.lower_bound(at));  // empty ones
      idle_.push_back(std::move(stretch));
      changed_.notify_all();
    }
    return {};
  }

  // Of the stretch that has it.
  std::uint64_t begin_of(std::int64_t id) const noexcept {
    return first_ + (static_cast<std::uint64_t>(id) - first_) / kStretchIds * kStretchIds;
  }

  const std::uint64_t first_, last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_;  // to be read by whoever comes first
  std::uint64_t at_;    // to be worked off next
  std::map<std::uint64_t, std::unique_ptr<Stretch>> ready_;
  std::vector<std::unique_ptr<Stretch>> idle_;
  std::optional<Error> failure_;
  bool ended_ = false;
};

// `reader` reads it all where that is quickly done; else it and another one, which `open()` gives as
// Result<unique_ptr<Reader>>.
template <class Stretch, class Reader, class Open, class Show>
Result<void> scan_stretches(std::uint64_t first, std::uint64_t last, std::unique_ptr<Reader> reader, const Open& open,
                            const Show& show) {
  constexpr std::size_t kMostThreads = 2;
  constexpr std::uint64_t kWorthThreads = 50'000;  // ids: as many milliseconds' work as threads cost
  if (last < first) return {};
  StretchScan<Stretch> scan(first, last);
  if (last - first < kWorthThreads) return scan.run_alone(*reader, show);
  std::vector<std::unique_ptr<Reader>> readers;
  readers.push_back(std::move(reader));
  const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  while (readers.size() < threads) {
    Result<std::unique_ptr<Reader>> another = open();
    if (!another) return std::unexpected(std::move(another.error()));
    readers.push_back(std::move(*another));
  }
  return scan.run(std::move(readers), show);
}

}  // namespace argiope

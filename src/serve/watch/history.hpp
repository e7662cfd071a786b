// History: what was counted of each queue over the last hour and the last day, for plots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/engine/engine.hpp"
#include "serve/watch/event_feed.hpp"
#include "serve/watch/tally.hpp"

namespace argiope {

// One step of it.
struct HistoryPoint {
  WallTime at{};  // its end
  PerTallied<std::uint32_t> counts{};
  std::uint32_t ready = 0, running = 0;  // at its end
  // From when jobs could have run until they were leased, of those leased in it. p95: to the next bound of
  // SpanHistogram above, and to its last bound beyond that.
  float wait_mean_s = 0, wait_p95_s = 0;
};

// Counts every ten seconds. Where it has a file, it goes on from what the process before has counted; the file has it a
// minute later at most, and all of it after stop().
//
// Cost:     the file at most some three times what is kept, a line a point. Some 40 KiB for each of at most kMostQueues
//           queues, the first that were heard of; all are counted in the whole.
// Lifetime: what it is given outlives it, or stop() is called before.
// Threads:  the loop's own; made on a running loop.
class History {
 public:
  static constexpr std::size_t kMostQueues = 300;
  struct Resolution {
    Duration step;
    std::size_t points;
  };
  static constexpr Resolution kFine{std::chrono::seconds{10}, 360};
  static constexpr Resolution kCoarse{std::chrono::minutes{5}, 288};

  // `file`: empty: what is counted ends with the process.
  History(Engine& engine, EventFeed& events, std::string file = {});
  ~History();
  // Reads the file. Unreadable parts are told in the log and left out: nothing depends on them.
  void open();
  // Counts no more. The counts stay.
  void stop();

  // Oldest first. `queue`: empty, all together. Null: nothing is known of it.
  const std::deque<HistoryPoint>* points(std::string_view queue, bool is_fine) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace argiope

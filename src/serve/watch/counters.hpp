// Counters: how many jobs of each queue are in which state, and the rates of a Tally, as one snapshot for all who look.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/engine/engine.hpp"
#include "base/internal/json_writer.hpp"
#include "serve/watch/tally.hpp"

namespace argiope {

// Whether a queue or schedule of that name may be seen. Empty: all.
using MaySee = std::function<bool(std::string_view)>;

// Lifetime: what it is given outlives its calls.
// Threads:  the loop's own.
class Counters {
 public:
  // `daemon`: the daemon's own numbers as a JSON object, for who sees all; may be empty.
  Counters(Engine& engine, const Tally& tally, std::function<std::string()> daemon)
      : engine_(engine), tally_(tally), daemon_(std::move(daemon)) {}

  // Counts anew, unless that was done within `age`. Those who ask at the same time share one count.
  // Errors: of the store; what was counted before stays.
  Coro<Result<void>> refresh(Duration age);
  // Asks the engine nothing more, which may then go: refresh() answers `cancelled`.
  void close() noexcept { closed_ = true; }
  // How often it was counted, and when last; 0: not yet.
  std::uint64_t number() const noexcept { return number_; }
  TimePoint taken_at() const noexcept { return taken_at_; }
  // visit(name, const StateCounts&), by name.
  template <class Visit>
  void for_each_queue(Visit visit) const {
    for (const Entry& entry : entries_) visit(std::string_view(entry.name), entry.counts);
  }
  // {"at","queues":{"mail":{"ready",…,"added_rate",…}},"totals":{…},"daemon":{…}}; totals are of what is seen.
  std::string json(const MaySee& may_see) const;

 private:
  struct Entry {
    std::string name;
    StateCounts counts;
    PerTallied<double> rates;
    std::string json;
  };

  std::string write(const MaySee& may_see) const;

  Engine& engine_;
  const Tally& tally_;
  const std::function<std::string()> daemon_;
  Lock lock_;
  std::vector<Entry> entries_;
  std::string whole_;  // for who sees all
  WallTime at_{};
  TimePoint taken_at_{};
  std::uint64_t number_ = 0;
  bool closed_ = false;
};

// "ready", "delayed", "running", "done", "buried" and "cancelled".
void write_members(JsonWriter& json, const StateCounts& counts);

}  // namespace argiope

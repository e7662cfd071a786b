// Tally: how many jobs of each queue were put, leased and ended since the daemon began, how often in a second of late,
// how long they waited and ran; and how late schedules fire. Counted as it happens, whether anybody looks or not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"
#include "async/internal/ticker.hpp"

namespace argiope {

// The counted events of jobs. `retried`, `buried`, `expired` and `released` are ends of a run, as `done` is. A run that
// ends by an expiry that buries its job is counted as both.
enum class Tallied : std::uint8_t { added, leased, done, retried, buried, cancelled, expired, released };
inline constexpr std::array<std::string_view, 8> kTalliedNames{"added",  "leased",    "done",    "retried",
                                                               "buried", "cancelled", "expired", "released"};
template <class T>
using PerTallied = std::array<T, kTalliedNames.size()>;

// How many spans were at most so long: as Prometheus counts them, but each in one place.
struct SpanHistogram {
  static constexpr std::array<double, 13> kBounds{0.001, 0.005, 0.01, 0.05, 0.1,  0.5, 1,
                                                  5,     10,    60,   300,  1800, 7200};  // seconds

  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;  // seconds

  std::uint64_t count() const noexcept;
  // A span below zero, which a clock that was set back makes, counts as none.
  void observe(Duration span) noexcept;
  void add(const SpanHistogram& other) noexcept;
};

// Of one queue.
struct QueueTally {
  PerTallied<std::uint64_t> totals{};
  std::uint64_t scheduled = 0;         // of those added, by schedules
  std::uint64_t minutes_put = 0;       // in so many minutes a job came that no schedule had put
  std::uint64_t buried_by_expiry = 0;  // of those buried; counted as expired, too
  SpanHistogram waits;                 // from when a job could have run until it was leased
  SpanHistogram runs;                  // from its lease to the run's end
};

// Cost:     some 50 ns for each event of a job; memory for at most kMostQueues queues, those that come later are
//           counted together, and for at most kMostRuns runs under way, of which others have no length.
// Lifetime: its engine outlives it, or close() is called before.
// Threads:  the loop's own.
class Tally {
 public:
  static constexpr std::size_t kMostQueues = 10'000;
  static constexpr std::size_t kMostRuns = 100'000;
  static constexpr std::size_t kRateSeconds = 10;
  static constexpr std::string_view kOthers = "_other";

  explicit Tally(Engine& engine);
  ~Tally();
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // Hears nothing more of the engine, which may then go. The counts stay.
  void close();

  // visit(name, const QueueTally&), in no order. The counts that many queues share have the name kOthers.
  template <class Visit>
  void for_each_queue(Visit visit) const {
    for (const auto& [name, counted] : queues_) visit(std::string_view(name), static_cast<const QueueTally&>(counted));
  }
  // A second, over the last ten whole ones, or as many as there have been. Zeros for a queue of which nothing was
  // heard.
  PerTallied<double> rates(std::string_view queue) const;
  // How many events of jobs it has counted.
  std::uint64_t heard() const noexcept { return heard_; }
  // Since when it counts.
  std::uint64_t seconds() const noexcept { return second_; }

  // From planned times to the puts of their runs.
  const SpanHistogram& lateness() const noexcept { return lateness_; }
  // Planned times that were not run.
  std::uint64_t missed() const noexcept { return missed_; }
  // Schedules that have been marked because they cannot run.
  std::uint64_t marked() const noexcept { return marked_; }

 private:
  struct Counted : QueueTally {
    // The last seconds, this one included, each in its place modulo the number of places.
    std::array<PerTallied<std::uint32_t>, kRateSeconds + 1> seconds{};
    std::uint64_t second = 0;
    std::uint64_t minute = 0;         // in which a job came last
    std::uint64_t put_in_minute = 0;  // in it, and by no schedule
  };
  struct Name : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void note(const JobEvent& event);
  void note(const ScheduleEvent& event);
  void count(Counted& queue, Tallied kind);
  void count_put(Counted& queue);
  void count_scheduled(Counted& queue);
  void began(Counted& queue, const JobEvent& event);
  void ended(Counted& queue, const JobEvent& event);
  Counted& queue_named(std::string_view name);
  static void catch_up(Counted& queue, std::uint64_t second);

  Engine& engine_;
  EventLoop& loop_;
  std::uint64_t listener_ = 0;
  std::uint64_t schedule_listener_ = 0;  // 0: schedules are fired elsewhere
  std::unordered_map<std::string, Counted, Name, std::equal_to<>> queues_;
  std::pair<const std::string, Counted>* last_ = nullptr;  // of the event before: mostly the next one's too
  std::unordered_map<JobId, WallTime> leased_at_;
  JobId expired_ = 0;  // the job of the event before, if it was its lease that ran out
  SpanHistogram lateness_;
  std::uint64_t heard_ = 0;
  std::uint64_t missed_ = 0;
  std::uint64_t marked_ = 0;
  std::uint64_t second_ = 0;  // since it began
  Ticker ticker_;
};

}  // namespace argiope

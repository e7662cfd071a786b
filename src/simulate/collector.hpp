// Collector: listens to the engine and the scheduler of a simulation, and adds up. Its memory grows with the number of
// schedules, steps and jobs that have not ended, and not with the runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/engine/engine.hpp"
#include "argiope/store/store.hpp"
#include "config/internal/configuration.hpp"
#include "simulate/internal/report.hpp"

namespace argiope {

// A count over time. A value that lasts no time does not count.
class Gauge {
 public:
  void start(WallTime at) noexcept { since_ = begin_ = at; }
  void add(std::int64_t by, WallTime at) noexcept {
    advance(at);
    value_ += by;
  }
  void advance(WallTime at) noexcept;
  std::int64_t value() const noexcept { return value_; }
  std::int64_t most() const noexcept { return most_; }
  WallTime most_since() const noexcept { return most_since_; }
  // Since when it was 0 for the first time.
  std::optional<WallTime> zero_since() const noexcept { return zero_since_; }
  double mean_until(WallTime at) noexcept;
  // Of the step that ends now.
  Level end_step(WallTime at) noexcept;

 private:
  std::int64_t value_ = 0, most_ = 0;
  WallTime begin_{}, since_{}, most_since_{};
  std::optional<WallTime> zero_since_;
  double area_ = 0;
  // Of the present step:
  bool lasted_ = false;
  double step_area_ = 0;
  WallTime step_begin_{};
  std::int64_t step_most_ = 0, step_least_ = 0;
  friend class Collector;
};

class Collector {
 public:
  // `strips`: of how many parts of the time line to keep when each of the first schedules fires, `strip_steps` steps
  // each.
  Collector(const Configuration& configuration, WallTime from, std::size_t strips, std::size_t strip_steps);

  // Takes the store's number of the schedule of that place in the configuration.
  void name_schedule(ScheduleId id, std::uint32_t index);
  const std::uint32_t* index_of(ScheduleId id) const;

  void hear(const JobEvent& event);
  void hear(const ScheduleEvent& event);
  // A job that no schedule puts was refused by its queue.
  void refuse(std::string_view queue) { ++queues_[queue_of(queue)].findings.refused; }
  void end_step(WallTime at);
  // All that is known at the end.
  void finish(SimulationReport& report, WallTime at);

  std::uint64_t live_jobs() const noexcept { return jobs_.size(); }
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  struct LiveJob {
    std::uint32_t schedule = kNobody;  // until the scheduler has told of it
    std::uint32_t queue = 0;
    WallTime due{};
    WallTime begun_at{};
    bool running = false;
    bool has_begun = false;
    bool has_ended = false;
  };
  struct QueueState {
    QueueFindings findings;
    Gauge waiting, running;
  };
  struct ScheduleState {
    ScheduleFindings findings;
    Gauge running;
  };
  // The most fires in one unit of the calendar.
  struct Window {
    Duration length;
    Peak peak{};
    std::int64_t unit = -1;
    std::uint64_t count = 0;
    void add(WallTime at) noexcept;
  };

  std::uint32_t queue_of(std::string_view name);
  void begin(LiveJob& job);
  void begin_unscheduled(LiveJob& job);
  void count_fire(std::uint32_t schedule, WallTime at);
  void end_second();
  void judge(QueueFindings& queue, Duration step) const;

  const Configuration& configuration_;
  const WallTime from_;
  const std::size_t strip_steps_;
  std::vector<ScheduleState> schedules_;
  std::unordered_map<ScheduleId, std::uint32_t> indices_;
  std::vector<QueueState> queues_;
  std::unordered_map<std::string, std::uint32_t> queue_indices_;
  std::unordered_map<JobId, LiveJob> jobs_;
  std::uint64_t runs_ = 0;
  std::vector<std::uint64_t> fires_;
  std::uint64_t step_fires_ = 0;
  std::vector<Level> running_steps_;
  Gauge running_;
  Window second_{std::chrono::seconds{1}}, minute_{std::chrono::minutes{1}}, hour_{std::chrono::hours{1}};
  // Of the present second: who has fired, and how often.
  std::int64_t present_second_ = -1;
  std::vector<std::uint32_t> fired_;
  std::uint64_t seconds_shared_ = 0;
  std::unordered_map<std::uint64_t, Collision> collisions_;  // by a hash of the schedules
  std::size_t collision_ids_ = 0;
};

}  // namespace argiope

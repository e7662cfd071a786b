// What a schedule's policies say, by the simplest means: every planned time is walked, one after the other, and nothing
// is shared with the planner. It is told when the scheduler has looked, and says what must have come of it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "argiope/jobs/schedule.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// One schedule, as it should be.
class ScheduleModel {
 public:
  static constexpr std::uint64_t kMostCounted = 1000;

  ScheduleModel(Schedule schedule, WallTime now) : schedule_(std::move(schedule)) {
    next_ = schedule_.trigger.next(now - Duration{1});
  }

  struct Run {
    WallTime planned;
    std::uint64_t active_before;
  };

  // Everything that is due at `now`, with so many runs active.
  void look(WallTime now, std::uint64_t active, bool paused) {
    if (paused) return;
    std::vector<WallTime> due;
    while (next_ && schedule_.trigger.due_at(*next_) <= now) {
      due.push_back(*next_);
      next_ = schedule_.trigger.next(*next_);
    }
    if (due.empty()) return;
    last_ = due.back();
    many_ = many_ || due.size() > kMostCounted;
    // Too late?
    std::vector<WallTime> in_time;
    for (const WallTime time : due) {
      const bool late = schedule_.misfire_grace && now - schedule_.trigger.due_at(time) > *schedule_.misfire_grace;
      if (late) {
        ++missed_;
      } else {
        in_time.push_back(time);
      }
    }
    // Together?
    if (!in_time.empty() && schedule_.coalesce != Coalesce::all) {
      missed_ += in_time.size() - 1;
      in_time = {schedule_.coalesce == Coalesce::latest ? in_time.back() : in_time.front()};
    }
    while (in_time.size() > schedule_.most_catch_up) {
      ++missed_;
      in_time.erase(in_time.begin());
    }
    // So many runs in all?
    if (schedule_.max_runs != 0) {
      while (in_time.size() + fired_ > schedule_.max_runs) in_time.pop_back();
    }
    if (in_time.empty()) return;
    // Too many at once?
    const bool full = active >= schedule_.max_instances;
    const bool one_waits = active > schedule_.max_instances;
    if ((schedule_.overlap == Overlap::skip && full) || (schedule_.overlap == Overlap::queue_one && one_waits)) {
      missed_ += in_time.size();
    } else {
      for (const WallTime time : in_time) runs_.push_back(time);
      fired_ += in_time.size();
    }
    if (schedule_.max_runs != 0 && fired_ >= schedule_.max_runs) next_.reset();
  }

  // The calendar was set back so far that what lies ahead had been led there by a wrong clock.
  void begin_anew_if_lost(WallTime now, Duration step_back) {
    const auto next = schedule_.trigger.next(now - Duration{1});
    const bool over = schedule_.max_runs != 0 && fired_ >= schedule_.max_runs;
    // Added while the clock was ahead.
    if (!last_ && next_ && !over && next && *next < *next_) {
      next_ = next;
      ++begun_anew_;
    }
    if (!last_ || *last_ - now <= step_back) return;
    if (over || !next || *next > *last_) return;
    next_ = next;
    last_.reset();
    ++begun_anew_;
  }

  void resume_from_now(WallTime now) {
    std::uint64_t count = 0;
    for (; next_ && *next_ < now; ++count) {
      last_ = next_;
      next_ = schedule_.trigger.next(*next_);
    }
    missed_ += count;
    many_ = many_ || count > kMostCounted;
  }

  const Schedule& schedule() const { return schedule_; }
  std::optional<WallTime> next() const { return next_; }
  const std::vector<WallTime>& runs() const { return runs_; }  // planned times, in the order fired
  std::uint64_t fired() const { return fired_; }
  std::uint64_t missed() const { return missed_; }
  // Whether so many were missed at once that they are only counted up to a bound.
  bool missed_many() const { return many_; }
  std::uint64_t begun_anew() const { return begun_anew_; }

 private:
  Schedule schedule_;
  std::optional<WallTime> next_, last_;
  std::vector<WallTime> runs_;
  bool many_ = false;
  std::uint64_t fired_ = 0, missed_ = 0, begun_anew_ = 0;
};

}  // namespace argiope

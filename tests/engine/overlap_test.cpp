// What becomes of planned times while runs go on: whenever a run ends, and however many there are, only those are
// skipped that the policy skips.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/random.hpp"
#include "engine/scheduler_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;

constexpr Overlap kWaiting[] = {Overlap::queue_one, Overlap::queue_all, Overlap::cancel_running};

// --- a run ends while the scheduler looks ----------------------------------------------------------------------------

// With SQLite a look takes as long as another thread needs; runs that end ever later after the planned time end at
// every point of it.
class OverlapOnEveryStore : public OnVirtualLoop, public testing::WithParamInterface<const char*> {
 protected:
  OverlapOnEveryStore() {
    const std::string where = GetParam() == std::string("memory") ? "memory:" : "sqlite:" + folder_.file("jobs.db");
    store_ = std::move(open_store(where, {.sync = SyncMode::off}).value());
  }
  Coro<void> look_while_runs_end() {
    auto engine = co_await open_engine(*store_, {.poll_interval = 1h, .schedules = {.look_interval = 1h}});
    (void)co_await engine->book().configure("default", {.lease_time = 24h});
    Scheduler* const scheduler = &engine->scheduler();
    (void)(co_await scheduler->add_executor("default")).value();
    int yields = 0;
    scheduler
        ->add_function("default", "",
                       [&](JobContext&) -> Coro<void> {
                         co_await sleep(10min);
                         for (int i = 0; i < yields; ++i) co_await yield_now();
                       })
        .value();
    scheduler->start();
    for (const Overlap overlap : kWaiting) {
      for (const Coalesce coalesce : {Coalesce::latest, Coalesce::all}) {
        for (yields = 0; yields < 2400; yields += 60) co_await look(engine->book().schedules(), overlap, coalesce);
      }
    }
    (void)(co_await scheduler->shutdown());
    (void)(co_await engine->close());
  }
  static Coro<void> look(ScheduleBook& schedules, Overlap overlap, Coalesce coalesce) {
    const WallTime start = EventLoop::current().clock().wall_now() + 1min;
    Schedule schedule{.name = "s", .trigger = Trigger::every(10min, start).value().ending(start + 10min)};
    schedule.overlap = overlap;
    schedule.coalesce = coalesce;
    (void)(co_await schedules.add(std::move(schedule))).value();
    co_await sleep(40min);
    const auto history = (co_await schedules.history("s")).value();
    EXPECT_EQ(history.size(), 2u);
    for (const ScheduleRun& run : history) {
      const bool cancelled = run.outcome == RunOutcome::cancelled && overlap == Overlap::cancel_running;
      EXPECT_TRUE(run.outcome == RunOutcome::done || cancelled)
          << to_string(overlap) << ' ' << to_string(coalesce) << ": " << to_string(run.outcome) << ' ' << run.error;
    }
    (void)(co_await schedules.remove("s")).value();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};
INSTANTIATE_TEST_SUITE_P(Stores, OverlapOnEveryStore, testing::Values("memory", "sqlite"),
                         [](const auto& about) { return std::string(about.param); });

TEST_P(OverlapOnEveryStore, ARunThatEndsWhileTheSchedulerLooksLosesNoPlannedTime) {
  loop_.run_until_complete(look_while_runs_end());
  EXPECT_TRUE(store_->close());
}

// --- more runs than the history holds --------------------------------------------------------------------------------

class OverlapTest : public SchedulerTest {
 protected:
  struct Ran {
    WallTime begun{}, ended{};
    bool cancelled = false;
  };

  // Looks and heartbeats are few, or hundreds of days take long.
  template <class Body>
  void days(Body body) {
    with_scheduler(std::move(body), {.look_interval = 1h}, {.poll_interval = 1h});
    store_.reopen();
  }
  Coro<void> work_for(std::function<Duration(WallTime)> takes) {
    value_or_throw(co_await engine_->book().configure("default", {.lease_time = 24h * 365}));
    value_or_throw(co_await scheduler_->add_executor("default", {.concurrency = 10'000}));
    value_or_throw(scheduler_->add_function("default", "", [this, takes](JobContext& context) -> Coro<void> {
      const auto clock = [] { return EventLoop::current().clock().wall_now(); };
      Ran& ran = runs_[at(context.payload())];
      ran.begun = clock();
      try {
        co_await sleep(takes(at(context.payload())));
      } catch (const CancelledError&) {
        runs_[at(context.payload())].cancelled = true;
        runs_[at(context.payload())].ended = clock();
        throw;
      }
      runs_[at(context.payload())].ended = clock();
    }));
    scheduler_->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_submitted),
                             [this](const ScheduleEvent& event) { submitted_.push_back(event.planned); });
    scheduler_->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_max_instances),
                             [this](const ScheduleEvent& event) { skipped_.push_back(event.last_planned); });
  }
  Schedule schedule(Overlap overlap, std::uint32_t instances) {
    Schedule made = every(10min);
    made.overlap = overlap;
    made.max_instances = instances;
    made.job.payload = "{planned_at}";
    made.job.fill_in = true;
    return made;
  }

  std::map<WallTime, Ran> runs_;  // by planned time
  std::vector<WallTime> submitted_, skipped_;
};

TEST_F(OverlapTest, FiftyInstancesLoseNoPlannedTime) {
  for (const Overlap overlap : kWaiting) {
    runs_.clear();
    skipped_.clear();
    submitted_.clear();
    days([&]() -> Coro<void> {
      co_await work_for([](WallTime) { return 12h + 1s; });
      Schedule made = schedule(overlap, 50);
      const WallTime from = EventLoop::current().clock().wall_now() + 10min;
      made.trigger = Trigger::every(10min, from).value().ending(from + 199 * 10min);
      made.name = std::string(to_string(overlap));
      co_await start_with(std::move(made), 240h);
      std::uint64_t most = 0;
      for (const auto& [planned, ran] : runs_) {
        std::uint64_t beside = 0;
        for (const auto& [other, its] : runs_) beside += its.begun <= ran.begun && ran.begun < its.ended ? 1 : 0;
        most = std::max(most, beside);
      }
      EXPECT_EQ(most, 50u) << to_string(overlap);
      if (overlap == Overlap::queue_one) {
        EXPECT_EQ(submitted_.size() + skipped_.size(), 200u);
      } else {
        EXPECT_EQ(submitted_.size(), 200u) << to_string(overlap);
        EXPECT_TRUE(skipped_.empty()) << to_string(overlap);
        EXPECT_EQ(runs_.size(), 200u) << to_string(overlap);
      }
      const auto cancelled = std::ranges::count_if(runs_, [](const auto& run) { return run.second.cancelled; });
      EXPECT_EQ(cancelled, overlap == Overlap::cancel_running ? 150 : 0);
    });
  }
}

TEST_F(OverlapTest, ARunThatManyHaveFollowedStillKnowsWhatItWasPlannedFor) {
  with_scheduler([&]() -> Coro<void> {
    JobId first = 0;
    scheduler_->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_submitted),
                             [&](const ScheduleEvent& event) { first = first == 0 ? event.job : first; });
    co_await work(12h);
    Schedule many = every(10min);
    many.max_instances = 50;
    co_await start_with(std::move(many), 8h);
    const auto run = value_or_throw(co_await scheduler_->run_of(first));
    EXPECT_TRUE(run);
    if (!run) co_return;
    EXPECT_EQ(run->run, 1u);
    EXPECT_EQ(run->planned, at("2026-01-01T00:00:00Z"));
  });
}

// --- a model ---------------------------------------------------------------------------------------------------------

// What the policy says of each planned time, by the runs that there were then: from when a run began and ended, and
// from nothing that the scheduler knows.
class OverlapModel : public OverlapTest, public testing::WithParamInterface<Overlap> {
 protected:
  std::uint64_t active_at(WallTime when) const {
    std::uint64_t active = 0;
    for (const WallTime planned : submitted_) {
      if (planned >= when) continue;
      const auto ran = runs_.find(planned);
      const bool has_ended = ran == runs_.end() ? vanished_at(planned) < when : ran->second.ended < when;
      active += has_ended ? 0 : 1;
    }
    return active;
  }
  // One that was cancelled before it began: when the run that is `instances` places after it was planned.
  WallTime vanished_at(WallTime planned) const { return planned + static_cast<int>(instances_) * 10min; }

  std::uint32_t instances_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Policies, OverlapModel,
                         testing::Values(Overlap::skip, Overlap::queue_one, Overlap::queue_all,
                                         Overlap::cancel_running),
                         [](const auto& about) { return std::string(to_string(about.param)); });

TEST_P(OverlapModel, EveryPlannedTimeRunsUnlessThePolicySkipsIt) {
  Random random(static_cast<std::uint64_t>(GetParam()) + 1);
  for (int trial = 0; trial < 12; ++trial) {
    instances_ = static_cast<std::uint32_t>(trial < 4 ? trial + 1 : 1 + random.below(45));
    runs_.clear();
    submitted_.clear();
    skipped_.clear();
    std::vector<WallTime> planned;
    days([&]() -> Coro<void> {
      const double load = (0.3 + random.unit() * 1.7) * instances_ * 600 * 2;
      std::map<WallTime, Duration> takes;
      co_await work_for([&](WallTime of) {
        // Never a whole number of seconds: no run ends when another is due.
        return takes.try_emplace(of, from_seconds(random.unit() * load) + 123'457us).first->second;
      });
      Schedule made = schedule(GetParam(), instances_);
      made.name = "s" + std::to_string(trial);
      const WallTime from = floor<std::chrono::minutes>(EventLoop::current().clock().wall_now()) + 10min;
      made.trigger = Trigger::every(10min, from).value().ending(from + 149 * 10min);
      for (int i = 0; i < 150; ++i) planned.push_back(from + i * 10min);
      co_await start_with(std::move(made), 24h * 40);
    });
    std::vector<WallTime> told = submitted_;
    told.insert(told.end(), skipped_.begin(), skipped_.end());
    std::ranges::sort(told);
    EXPECT_EQ(told, planned) << "each once, either run or skipped";
    for (const WallTime one : skipped_) {
      const std::uint64_t active = active_at(one);
      if (GetParam() == Overlap::skip) {
        EXPECT_EQ(active, instances_);
      } else {
        EXPECT_EQ(GetParam(), Overlap::queue_one);
        EXPECT_EQ(active, instances_ + 1);
      }
    }
    for (const WallTime one : submitted_) {
      const std::uint64_t active = active_at(one);
      if (GetParam() == Overlap::skip) EXPECT_LT(active, instances_);
      if (GetParam() == Overlap::queue_one) EXPECT_LE(active, instances_);
      const auto ran = runs_.find(one);
      if (GetParam() != Overlap::cancel_running) {
        EXPECT_TRUE(ran != runs_.end() && !ran->second.cancelled);
      } else if (ran == runs_.end() || ran->second.cancelled) {
        // Only for one that came when it was among the oldest.
        EXPECT_NE(std::ranges::find(planned, vanished_at(one)), planned.end());
        if (ran != runs_.end()) EXPECT_GE(ran->second.ended, vanished_at(one));
      }
    }
    // At no moment more than max_instances.
    for (const auto& [of, ran] : runs_) {
      std::uint64_t beside = 0;
      for (const auto& [other, its] : runs_) beside += its.begun <= ran.begun && ran.begun < its.ended ? 1 : 0;
      EXPECT_LE(beside, instances_);
    }
  }
}

}  // namespace
}  // namespace argiope

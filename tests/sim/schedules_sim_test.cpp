// Five years of a scheduler with schedules in twenty zones, whose process dies and starts again, whose machine sleeps,
// whose calendar jumps both ways, and whose schedules are paused and resumed: every planned time is run, missed or
// skipped exactly as its policies say, by a model that walks them one by one.
//
// ARGIOPE_SIM_SEEDS says how often (default 2), ARGIOPE_SIM_FIRST_SEED which seed is the first, ARGIOPE_SIM_YEARS how
// long.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/random.hpp"
#include "argiope/engine/engine.hpp"
#include "sim/schedules_sim_model.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/environment.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {
namespace {

constexpr const char* kZones[] = {"UTC",
                                  "Europe/Berlin",
                                  "Europe/London",
                                  "Europe/Moscow",
                                  "Africa/Cairo",
                                  "Africa/Casablanca",
                                  "America/New_York",
                                  "America/Los_Angeles",
                                  "America/Sao_Paulo",
                                  "America/St_Johns",
                                  "America/Santiago",
                                  "America/Havana",
                                  "Asia/Tokyo",
                                  "Asia/Kolkata",
                                  "Asia/Kathmandu",
                                  "Asia/Jerusalem",
                                  "Asia/Tehran",
                                  "Australia/Lord_Howe",
                                  "Pacific/Chatham",
                                  "Pacific/Apia"};
constexpr Duration kStepBack = 3h;
constexpr Duration kTick = 1ms;

class SchedulesLife {
 public:
  SchedulesLife(std::uint64_t seed, std::uint64_t years)
      : random_(seed), end_(WallTime{std::chrono::seconds{1'767'225'600}} + years * std::chrono::hours{24 * 365}) {}

  void run() {
    WallTime now{std::chrono::seconds{1'767'225'600}};  // 2026
    while (now < end_ && complaints_.empty()) {
      now = live(now);
      store_.reopen();
      ++lives_;
      // Nobody is there for a while; and sometimes the clock is set meanwhile.
      now += from_seconds(random_.unit() * random_.unit() * 3 * 86'400);
      if (random_.chance(0.1)) now -= from_seconds(random_.unit() * 8 * 3600);
    }
  }

  std::vector<std::string> complaints_;
  std::uint64_t lives_ = 0, looks_ = 0, jumps_ = 0, fired_ = 0, missed_ = 0, begun_anew_ = 0;
  std::size_t schedules() const { return all_.size(); }

 private:
  struct Scheduled {
    Scheduled(Schedule schedule, WallTime now) : model(std::move(schedule), now) {}
    ScheduleModel model;
    Duration takes{};
    ScheduleId id = 0;
    bool paused = false;
    std::uint32_t running = 0;
    std::uint64_t ended = 0;           // before this life and in it, as far as counted
    std::vector<TimePoint> ended_now;  // in this life, to be counted
    std::vector<WallTime> seen;        // planned times of the runs that were submitted
  };
  struct Life {
    explicit Life(WallTime start) : backend(start) {}
    VirtualBackend backend;
    std::unique_ptr<Engine> engine;
    bool running = true;  // or the whole is paused
    EventLoop loop{backend};
    WallTime now() const { return backend.clock().wall_now(); }
  };

  void complain(const Scheduled& one, const std::string& what) {
    // The first is the one to look at: others may follow from it.
    if (complaints_.size() >= 3) return;
    complaints_.push_back(to_json(one.model.schedule()) + ": " + what);
  }

  Trigger some_trigger(const TimeZone& zone, WallTime now) {
    const auto cron = [&](const std::string& text) { return Trigger::parse(text, {}, zone).value(); };
    const std::string minute = std::to_string(random_.below(60)) + ' ';
    const std::string hour = std::to_string(random_.below(5)) + ' ';
    switch (random_.below(6)) {
      case 0: return cron(minute + hour + "* * *");
      case 1: return cron("30 2 * * " + std::to_string(random_.below(7)));
      case 2: return cron("*/20 1-3 * * sun");
      case 3: return cron(minute + hour + "L * *");
      case 4:
        return Trigger::calendar({.months = 1,
                                  .hour = static_cast<int>(random_.below(24)),
                                  .start = std::chrono::year{2026} / 1 / 31,
                                  .zone = zone})
            .value();
      default: return Trigger::every(std::chrono::hours{7} + std::chrono::minutes{random_.below(600)}, now).value();
    }
  }

  Schedule some_schedule(const TimeZone& zone, WallTime now) {
    Schedule schedule{.name = "schedule " + std::to_string(all_.size()) + " in " + zone.name(),
                      .trigger = some_trigger(zone, now)};
    if (random_.chance(0.3)) schedule.trigger = schedule.trigger.with_jitter(from_seconds(1800), random_.next());
    if (random_.chance(0.1)) schedule.trigger = schedule.trigger.starting(now + std::chrono::days{random_.below(300)});
    if (random_.chance(0.1)) schedule.trigger = schedule.trigger.ending(now + std::chrono::days{random_.below(1500)});
    constexpr Duration kGraces[] = {1s, 1h, 24h};
    if (random_.chance(0.5)) schedule.misfire_grace = kGraces[random_.below(3)];
    schedule.coalesce = static_cast<Coalesce>(random_.below(3));
    schedule.most_catch_up = static_cast<std::uint32_t>(1 + random_.below(5));
    schedule.max_instances = static_cast<std::uint32_t>(1 + random_.below(3));
    schedule.overlap = static_cast<Overlap>(random_.below(4));
    if (random_.chance(0.1)) schedule.max_runs = 1 + random_.below(500);
    schedule.job.payload = std::to_string(all_.size());
    return schedule;
  }

  WallTime live(WallTime start) {
    Life life(start);
    const Duration lifetime = from_seconds(86'400 * (1 + 60 * random_.unit()));
    life.loop.run_until_complete(body(life, saturating_add(life.loop.time(), lifetime)));
    for (Scheduled& one : all_) one.ended += std::exchange(one.ended_now, {}).size();
    return life.now();
  }

  Coro<void> body(Life& life, TimePoint until) {
    EngineOptions engine_options;
    engine_options.poll_interval = 1h;
    engine_options.blame_old_leases = false;
    engine_options.window = 1000;
    engine_options.schedules = {.look_interval = 1h, .step_back = kStepBack};
    life.engine = co_await open_engine(store_, engine_options);
    QueueConfig config;
    config.lease_time = 24h * 365;
    (void)co_await life.engine->book().configure("default", config);
    life.engine->scheduler().add_listener(
        static_cast<std::uint32_t>(ScheduleEventKind::job_submitted),
        [this](const ScheduleEvent& event) { all_.at(by_id_.at(event.schedule)).seen.push_back(event.planned); });
    constexpr auto kEnds = static_cast<std::uint32_t>(JobEventKind::done) |
                           static_cast<std::uint32_t>(JobEventKind::buried) |
                           static_cast<std::uint32_t>(JobEventKind::cancelled);
    life.engine->add_listener(kEnds, [this, &life](const JobEvent& event) {
      if (event.schedule != 0) all_.at(by_id_.at(event.schedule)).ended_now.push_back(life.loop.time());
    });
    (void)co_await life.engine->scheduler().add_executor("default", {.concurrency = 100'000});
    (void)life.engine->scheduler().add_function("default", "", [this](JobContext& context) { return work(context); });
    if (all_.empty()) co_await add_all(life);
    life.engine->scheduler().start();
    co_await look_at_all(life);
    while (life.loop.time() < until && complaints_.empty()) {
      const TimePoint action =
          std::min(until, saturating_add(life.loop.time(), from_seconds(random_.unit() * 432'000)));
      co_await pass(life, action);
      if (life.loop.time() < until) co_await act(life);
    }
    co_await compare(life);
  }

  Coro<void> add_all(Life& life) {
    for (const char* zone : kZones) {
      for (int i = 0; i < 3; ++i) {
        Scheduled& one = all_.emplace_back(some_schedule(TimeZone::find(zone).value(), life.now()), life.now());
        // Never a whole number of seconds, so that no run ends when another is due. Those that line up must get
        // through.
        const bool lines_up = one.model.schedule().overlap == Overlap::queue_all;
        one.takes = from_seconds(600 + random_.unit() * random_.unit() * (lines_up ? 20'000 : 200'000)) + 123'457ns;
        one.id = (co_await life.engine->book().schedules().add(one.model.schedule())).value().id;
        by_id_[one.id] = all_.size() - 1;
      }
    }
  }

  Coro<void> work(JobContext& context) {
    Scheduled& one = all_.at(by_id_.at(context.job().schedule));
    if (++one.running > one.model.schedule().max_instances)
      complain(one, "run " + std::to_string(context.job().run) + ": more than max_instances at once");
    struct Ends {
      std::uint32_t& running;
      ~Ends() { --running; }
    } const ends{one.running};
    co_await sleep(one.takes);
  }

  // Runs that had not ended before `when`, by what was told of their ends.
  static std::uint64_t active(const Scheduled& one, TimePoint when) {
    const auto over = std::ranges::count_if(one.ended_now, [&](TimePoint end) { return end < when; });
    return one.model.fired() - one.ended - static_cast<std::uint64_t>(over);
  }

  void look(Life& life, Scheduled& one, WallTime now, TimePoint when) {
    if (!life.running || one.paused) return;
    one.model.begin_anew_if_lost(now, kStepBack);
    one.model.look(now, active(one, when), false);
    // And at what came due while the scheduler was given a tick for that.
    while (const auto next = one.model.next()) {
      const WallTime due = one.model.schedule().trigger.due_at(*next);
      if (due <= now || due >= life.now()) break;
      one.model.look(due, active(one, saturating_add(when, due - now)), false);
    }
    ++looks_;
    if (one.seen != one.model.runs() && one.seen.size() + one.model.runs().size() > 0) {
      const auto last = [](const std::vector<WallTime>& times) {
        return times.empty() ? std::string("none") : format_timestamp(times.back());
      };
      if (one.seen.size() != one.model.runs().size() || one.seen.back() != one.model.runs().back()) {
        complain(one, "at " + format_timestamp(now) + " " + std::to_string(one.seen.size()) + " runs, the last for " +
                          last(one.seen) + ", instead of " + std::to_string(one.model.runs().size()) +
                          ", the last for " + last(one.model.runs()));
      }
    }
  }

  Coro<void> look_at_all(Life& life) {
    const WallTime now = life.now();
    const TimePoint when = life.loop.time();
    co_await sleep(kTick);
    for (Scheduled& one : all_) look(life, one, now, when);
  }

  // Lets time pass, and looks at what has come due in it.
  Coro<void> pass(Life& life, TimePoint until) {
    while (complaints_.empty()) {
      Scheduled* first = nullptr;
      WallTime due = WallTime::max();
      for (Scheduled& one : all_) {
        if (!life.running || one.paused || !one.model.next()) continue;
        const WallTime its_due = one.model.schedule().trigger.due_at(*one.model.next());
        if (its_due < due) {
          due = its_due;
          first = &one;
        }
      }
      const TimePoint when = first == nullptr ? kNever : saturating_add(life.loop.time(), due - life.now());
      if (when > until) break;
      co_await sleep_until(std::max(saturating_add(when, kTick), life.loop.time()));
      look(life, *first, due, when);
    }
    co_await sleep_until(until);
  }

  Coro<void> jump(Life& life, Duration by) {
    ++jumps_;
    life.backend.manual_clock().set_wall(life.now() + by);
    life.engine->look_at_calendar();
    co_await look_at_all(life);
  }

  Coro<void> act(Life& life) {
    Scheduled& one = all_.at(random_.below(all_.size()));
    const std::string& name = one.model.schedule().name;
    switch (random_.below(8)) {
      case 0: co_return co_await jump(life, from_seconds(60 + random_.unit() * random_.unit() * 3 * 86'400));
      case 1: co_return co_await jump(life, -from_seconds(60 + random_.unit() * 2 * 3600));
      case 2: {
        // A wrong clock, put right after a while.
        if (!random_.chance(0.3)) co_return;
        const Duration wrong = from_seconds(random_.unit() * 20 * 86'400);
        co_await jump(life, wrong);
        co_await pass(life, saturating_add(life.loop.time(), from_seconds(random_.unit() * 86'400)));
        co_return co_await jump(life, -wrong);
      }
      case 3:
      case 4:
        if (!one.paused) {
          one.paused = (co_await life.engine->book().schedules().pause(name, "sim")).has_value();
          co_return;
        }
        [[fallthrough]];
      case 5: {
        if (!one.paused) co_return;
        const bool from_now = random_.chance(0.5);
        const WallTime now = life.now();
        const TimePoint when = life.loop.time();
        (void)co_await life.engine->book().schedules().resume(name,
                                                              from_now ? ResumeFrom::now : ResumeFrom::where_it_was);
        one.paused = false;
        if (from_now) one.model.resume_from_now(now);
        co_await sleep(kTick);
        co_return look(life, one, now, when);
      }
      default:
        if (life.running && !random_.chance(0.2)) co_return;
        life.running = !life.running;
        if (!life.running) co_return life.engine->scheduler().pause();
        life.engine->scheduler().resume();
        co_return co_await look_at_all(life);
    }
  }

  // What the store says of each at the end of a life.
  Coro<void> compare(Life& life) {
    fired_ = missed_ = begun_anew_ = 0;
    for (Scheduled& one : all_) {
      const auto status = (co_await life.engine->book().schedules().get(one.model.schedule().name)).value();
      const ScheduleModel& model = one.model;
      if (status.place.fired != model.fired()) complain(one, "the store counts other runs");
      if (model.missed_many() ? status.place.missed > model.missed() : status.place.missed != model.missed()) {
        complain(one, std::to_string(status.place.missed) + " missed instead of " + std::to_string(model.missed()));
      }
      if (status.place.next != model.next().value_or(WallTime::max())) complain(one, "another next time");
      if (one.seen != model.runs()) complain(one, "other runs");
      fired_ += model.fired();
      missed_ += model.missed();
      begun_anew_ += model.begun_anew();
    }
  }

  Random random_;
  WallTime end_;
  MemoryStore store_;
  std::vector<Scheduled> all_;
  std::unordered_map<ScheduleId, std::size_t> by_id_;
};

TEST(SchedulesSim, FiveYearsInTwentyZonesFireAsThePoliciesSay) {
  const std::uint64_t first = from_environment("ARGIOPE_SIM_FIRST_SEED", 1);
  const std::uint64_t seeds = from_environment("ARGIOPE_SIM_SEEDS", 2);
  const std::uint64_t years = from_environment("ARGIOPE_SIM_YEARS", 5);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SchedulesLife life(seed, years);
    life.run();
    ASSERT_EQ(life.complaints_, std::vector<std::string>{}) << "seed " << seed;
    EXPECT_GT(life.fired_, 1000u);
    EXPECT_GT(life.missed_, 100u);
    std::printf(
        "seed %llu: %zu schedules, %llu runs, %llu missed or skipped, %llu lives, %llu jumps, %llu begun anew\n",
        static_cast<unsigned long long>(seed), life.schedules(), static_cast<unsigned long long>(life.fired_),
        static_cast<unsigned long long>(life.missed_), static_cast<unsigned long long>(life.lives_),
        static_cast<unsigned long long>(life.jumps_), static_cast<unsigned long long>(life.begun_anew_));
  }
}

}  // namespace
}  // namespace argiope

// Days in the life of a broker with a thousand queues and a hundred thousand keys, workers that fail, vanish and are
// slow, and owners that die: what it promises of rates, concurrency and order holds at every instant, nobody waits in
// vain, and no job is lost.
//
// ARGIOPE_SIM_SEEDS says how many days (default 2), ARGIOPE_SIM_FIRST_SEED which is the first.
#include <gtest/gtest.h>

#include <memory>
#include <unordered_map>

#include "argiope/async/event_loop.hpp"
#include "sim/jobs_sim_model.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/environment.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {
namespace {

constexpr std::size_t kQueues = 1000;
constexpr std::size_t kKeysOfQueue = 100;
constexpr std::size_t kWorkers = 30;
constexpr std::size_t kQueuesOfWorker = 60;
constexpr std::size_t kJobs = 10'000;
// Small, so that windows are read on all the time; but large enough for one job of every key that may have to wait.
constexpr std::size_t kWindow = kKeysOfQueue / 2;
constexpr Duration kDay = 24h;
constexpr Duration kLease = 10min;

class JobsDay {
 public:
  explicit JobsDay(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kQueues; ++i) {
      configs_.push_back(some_config());
      model_.configure(i, configs_.back());
    }
    for (std::size_t i = 0; i < kWorkers; ++i) {
      // The first serve all queues between them.
      std::vector<std::size_t>& served = served_.emplace_back();
      for (std::size_t queue = i; queue < kQueues; queue += kWorkers) served.push_back(queue);
      while (served.size() < kQueuesOfWorker) served.push_back(random_.below(kQueues));
    }
  }

  void run() {
    WallTime now{std::chrono::seconds{1'800'000'000}};
    start_ = now;
    do {
      now = live(now);
      store_.reopen();
      model_.restarted();
      ++lives_;
    } while (!finished_);
  }

  JobsModel model_;
  std::uint64_t put_ = 0, added_ = 0, done_ = 0, buried_ = 0, runs_ = 0, expired_ = 0;
  int lives_ = 0;
  std::vector<std::string> in_vain_;
  std::uint64_t checks_ = 0;
  bool finished_ = false;

 private:
  struct Asked {
    std::size_t queue;
    std::string key;
    std::int32_t priority;
  };
  // From the opening of a store to the death of its owner; the loop is destroyed before the engine, as a process is.
  struct Life {
    explicit Life(WallTime start) : backend(start) {}
    VirtualBackend backend;
    std::unique_ptr<Engine> engine;
    std::vector<bool> idle = std::vector<bool>(kWorkers);
    EventLoop loop{backend};
    TimePoint now() const { return TimePoint{backend.clock().wall_now().time_since_epoch()}; }
  };

  QueueConfig some_config() {
    QueueConfig config;
    config.lease_time = kLease;
    config.max_lease_expiries = 50;
    config.retry = {.max_attempts = 5, .first = 10s, .factor = 3, .longest = 10min};
    if (random_.chance(0.3)) config.limits.rate = 0.05 + random_.unit();
    if (random_.chance(0.3)) config.limits.burst = 1.0 + static_cast<double>(random_.below(5));
    if (random_.chance(0.3)) config.limits.concurrency = static_cast<std::uint32_t>(1 + random_.below(5));
    if (random_.chance(0.4)) config.key_limits.rate = 0.02 + random_.unit();
    if (random_.chance(0.3)) config.key_limits.concurrency = static_cast<std::uint32_t>(1 + random_.below(2));
    if (random_.chance(0.2)) config.key_limits.delay = std::chrono::milliseconds{random_.below(30'000)};
    config.weight = static_cast<std::uint32_t>(1 + random_.below(4));
    return config;
  }
  static std::string name(std::size_t queue) { return "queue " + std::to_string(queue); }

  WallTime live(WallTime start) {
    Life life(start);
    // An owner lives for some hours; the last one until everything is done.
    const bool last = start - start_ >= kDay;
    const Duration lifetime = last ? kDay * 60 : from_seconds(3600 * (1 + 6 * random_.unit()));
    life.loop.run_until_complete(body(life, saturating_add(life.loop.time(), lifetime), last));
    return life.backend.clock().wall_now();
  }

  Coro<void> body(Life& life, TimePoint until, bool last) {
    EngineOptions options;
    options.window = kWindow;
    options.poll_interval = 10min;
    options.seed = random_.next();
    options.blame_old_leases = false;
    life.engine = co_await open_engine(store_, options);
    // What ran when the owner before died, waits again.
    for (const JobId id : std::exchange(running_, {})) {
      model_.ends(id, life.now());
      const Asked& asked = asked_.at(id);
      model_.waits(asked.queue, id, asked.key, asked.priority, TimePoint::min(), life.now());
    }
    life.engine->add_listener(kAllJobEvents, [&](const JobEvent& event) { note(life, event); });
    for (std::size_t i = 0; i < kQueues && lives_ == 0; ++i)
      (void)co_await life.engine->book().configure(name(i), configs_[i]);
    for (std::size_t i = 0; i < kWorkers; ++i) life.loop.create_task(work(life, i, random_.fork()));
    life.loop.create_task(check(life, random_.fork()));
    if (last) {
      while (model_.waiting() > 0 && life.loop.time() < until) co_await sleep(1h);
      finished_ = true;
      co_return;
    }
    Random random = random_.fork();
    while (life.loop.time() < until) {
      // Bursts, so that queues are long for a while.
      co_await sleep(from_seconds(random.unit() * 500));
      const std::size_t queue = random.below(kQueues);
      for (std::uint64_t n = random.chance(0.05) ? 400 : random.below(20); n > 0 && put_ < kJobs; --n) {
        life.loop.create_task(put(life, random.chance(0.8) ? queue : random.below(kQueues), random.fork()));
      }
    }
  }

  Coro<void> put(Life& life, std::size_t queue, Random random) {
    NewJob job;
    job.id = ++put_;
    job.queue = name(queue);
    // A few keys have most of the work.
    const double skewed = random.unit() * random.unit() * random.unit();
    job.key = "key " + std::to_string(static_cast<int>(skewed * kKeysOfQueue));
    job.priority = static_cast<std::int32_t>(random.below(4));
    if (random.chance(0.3)) job.due_at = life.backend.clock().wall_now() + from_seconds(random.unit() * 7200);
    asked_[job.id] = {queue, job.key, job.priority};
    auto reply = co_await life.engine->book().put(std::move(job));
    if (!reply) ADD_FAILURE() << reply.error().message;
  }

  // What the broker says it has committed, in its order.
  void note(Life& life, const JobEvent& event) {
    const TimePoint now = life.now();
    const auto waits = [&] {
      const Asked& asked = asked_.at(event.id);
      model_.waits(asked.queue, event.id, asked.key, asked.priority, TimePoint{event.due_at.time_since_epoch()}, now);
    };
    switch (event.kind) {
      case JobEventKind::added:
        ++added_;
        waits();
        break;
      case JobEventKind::leased:
        ++runs_;
        running_.insert(event.id);
        model_.starts(event.id, now);
        break;
      case JobEventKind::expired: ++expired_; [[fallthrough]];
      case JobEventKind::retrying:
      case JobEventKind::released:
        running_.erase(event.id);
        model_.ends(event.id, now);
        waits();
        break;
      case JobEventKind::done:
      case JobEventKind::buried:
        ++(event.kind == JobEventKind::done ? done_ : buried_);
        running_.erase(event.id);
        model_.ends(event.id, now);
        model_.gone(event.id);
        break;
      default: break;
    }
  }

  Coro<void> work(Life& life, std::size_t index, Random random) {
    LeaseCall call;
    call.worker = "worker " + std::to_string(index);
    for (const std::size_t queue : served_[index]) call.queues.push_back(name(queue));
    for (;;) {
      call.most = 1 + random.below(8);
      life.idle[index] = true;
      auto leased = co_await life.engine->lease(call);
      life.idle[index] = false;
      if (!leased || leased->empty()) co_return;
      if (random.chance(0.005)) {  // its process dies
        co_await sleep(from_seconds(random.unit() * 60));
        (void)co_await life.engine->worker_gone(call.worker);
        continue;
      }
      for (const LeasedJob& job : *leased) {
        co_await sleep(from_seconds(random.unit() * random.unit() * 20));
        Verdict verdict;
        const double fate = random.unit();
        if (fate < 0.01) continue;  // never heard of again
        if (fate < 0.10)
          verdict = {.outcome = Outcome::retry, .error = "failed"};
        else if (fate < 0.12)
          verdict = {.outcome = Outcome::bury, .error = "hopeless"};
        else if (fate < 0.14)
          verdict = {.outcome = Outcome::release, .delay = from_seconds(random.unit() * 100)};
        else if (fate < 0.15)
          verdict = {.outcome = Outcome::release};
        (void)co_await life.engine->settle(job.token, std::move(verdict));
      }
    }
  }

  // At random moments: is there a job that may start, for a worker who has nothing to do?
  Coro<void> check(Life& life, Random random) {
    for (;;) {
      co_await sleep(from_seconds(1 + random.unit() * 600));
      ++checks_;
      for (std::size_t worker = 0; worker < kWorkers; ++worker) {
        if (!life.idle[worker]) continue;
        for (const std::size_t queue : served_[worker]) {
          const auto id = model_.startable(queue, life.now());
          if (id && in_vain_.size() < 10) {
            in_vain_.push_back("job " + std::to_string(*id) + " of " + name(queue) + " may start and does not");
          }
        }
      }
    }
  }

  Random random_;
  MemoryStore store_;
  WallTime start_{};
  std::vector<QueueConfig> configs_;
  std::vector<std::vector<std::size_t>> served_;
  std::unordered_map<JobId, Asked> asked_;
  std::set<JobId> running_;
};

TEST(JobsSim, DaysWithAThousandQueuesBreakNoPromise) {
  const std::uint64_t first = from_environment("ARGIOPE_SIM_FIRST_SEED", 1);
  const std::uint64_t seeds = from_environment("ARGIOPE_SIM_SEEDS", 2);
  std::uint64_t jobs = 0, runs = 0, expired = 0, checks = 0;
  int lives = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    JobsDay day(seed);
    day.run();
    ASSERT_EQ(day.model_.complaints(), std::vector<std::string>{}) << "seed " << seed;
    ASSERT_EQ(day.in_vain_, std::vector<std::string>{}) << "seed " << seed;
    ASSERT_EQ(day.model_.waiting(), 0u) << "seed " << seed << ": jobs that never ended";
    ASSERT_EQ(day.done_ + day.buried_, day.added_) << "seed " << seed;
    jobs += day.added_;
    runs += day.runs_;
    expired += day.expired_;
    checks += day.checks_;
    lives += day.lives_;
  }
  std::printf(
      "%llu days: %llu jobs, %llu runs, %llu leases expired, %d owners, %llu checks for jobs that wait in vain\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(jobs),
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(expired), lives,
      static_cast<unsigned long long>(checks));
}

}  // namespace
}  // namespace argiope

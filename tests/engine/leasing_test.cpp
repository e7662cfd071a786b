// Leases of one's own length, of one given job, under a deadline, and those that outlive their owner.
#include "argiope/async/event_loop.hpp"
#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"
#include "support/slow_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class LeasingTest : public BrokerTest {
 protected:
  Coro<JobRecord> record(JobId id) {
    auto found = co_await engine_->book().get(id);
    if (!found) throw std::runtime_error(found.error().message);
    co_return std::move(*found);
  }
  static NewJob with_lease_time(NewJob job, Duration lease_time) {
    job.lease_time = lease_time;
    return job;
  }
  Coro<std::optional<LeasedJob>> lease_job(JobId id) {
    auto leased = co_await engine_->lease_job(id, {.worker = "w"});
    if (!leased) throw std::runtime_error(leased.error().message);
    co_return std::move(*leased);
  }
  static Verdict verdict(Outcome outcome) { return {.outcome = outcome}; }
  Coro<void> configure(QueueConfig config) { EXPECT_TRUE(co_await engine_->book().configure("q", std::move(config))); }
  // What a lease gives within `limit`; nothing: it has come to its end.
  Coro<std::vector<LeasedJob>> lease_within(Duration limit) {
    try {
      auto leased = co_await Timeout(loop_.time() + limit).run(engine_->lease({.queues = {"q"}, .most = 9}));
      co_return value_or_throw(std::move(leased));
    } catch (const TimeoutError&) {
      co_return std::vector<LeasedJob>{};
    }
  }
};

// --- a length of its own ---------------------------------------------------------------------------------------------

TEST_F(LeasingTest, AJobMayHaveALeaseTimeOfItsOwn) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 60s});
    const JobId quick = co_await put(with_lease_time(job("q"), 2s));
    const JobId plain = co_await put(job("q"));
    const auto leased = co_await lease_all("q");
    EXPECT_EQ(leased.at(0).lease_time, 2s);
    EXPECT_EQ(leased.at(0).until - loop_.time(), 2s);
    EXPECT_EQ(leased.at(0).job.lease_until, loop_.clock().wall_now() + 2s);
    EXPECT_EQ(leased.at(1).lease_time, 60s);
    co_await sleep(1500ms);
    EXPECT_TRUE(engine_->renew(leased.at(0).token));
    co_await sleep(1500ms);
    EXPECT_EQ((co_await record(quick)).state, JobState::running);
    co_await sleep(1s);
    EXPECT_EQ((co_await record(quick)).state, JobState::ready) << "it was not renewed again";
    EXPECT_EQ((co_await record(quick)).expiries, 1u);
    EXPECT_EQ((co_await record(plain)).state, JobState::running);
  });
}

TEST_F(LeasingTest, ALongLeaseTimeOfItsOwnOutlastsTheQueues) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 1s});
    co_await put(with_lease_time(job("q"), 1h));
    const LeasedJob leased = co_await one("q");
    co_await sleep(59min);
    EXPECT_TRUE(co_await settle(leased.token));
  });
}

TEST_F(LeasingTest, AWorkerRenewsThreeTimesInALeaseHoweverShort) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 1h});
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    int runs = 0;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      ++runs;
      co_await sleep(5min);
    });
    co_await put(with_lease_time(job("q"), 300ms));
    co_await put(job("q"));
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(worker.counts().done, 2u);
  });
}

TEST_F(LeasingTest, AWorkerFollowsALeaseTimeThatIsChangedWhileItRuns) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 30s});
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    int runs = 0;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      ++runs;
      co_await sleep(5min);
    });
    co_await put(job("q"));
    loop_.call_later(1min, [&] { loop_.create_task(configure({.lease_time = 1s})); });
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(runs, 1);
  });
}

TEST_F(LeasingTest, ALeaseTimeOfItsOwnBeginsWhenTheJobIsGiven) {
  SlowStore slow{store_};
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow);
    co_await put(with_lease_time(job("q"), 1s));
    slow.delay = 10s;
    auto leasing = loop_.create_task(engine_->lease({.queues = {"q"}}));
    auto leased = co_await leasing;
    slow.delay = {};
    EXPECT_EQ(leased->at(0).until - loop_.time(), 1s);
    co_await sleep(900ms);
    EXPECT_TRUE(co_await settle(leased->at(0).token));
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

// --- one given job ---------------------------------------------------------------------------------------------------

TEST_F(LeasingTest, AGivenJobIsLeasedBeforeItsTurnAndItsTime) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "first", 9));
    const JobId last = co_await put(job("q", "last", -9));
    const JobId late = co_await put(delayed("q", 1h, "late"));
    const auto leased = co_await lease_job(last);
    EXPECT_EQ(leased.value().job.payload, "last");
    EXPECT_EQ(leased->attempt, 1u);
    EXPECT_EQ((co_await lease_job(late)).value().job.payload, "late");
    EXPECT_EQ(co_await lease_job(last), std::nullopt) << "it runs";
    EXPECT_EQ(co_await payloads("q"), "first ");
    EXPECT_TRUE(co_await settle(leased->token));
    EXPECT_EQ((co_await engine_->lease_job(last, {})).error().code, Errc::not_found);
    EXPECT_EQ((co_await engine_->lease_job(99, {})).error().code, Errc::not_found);
  });
}

TEST_F(LeasingTest, AGivenJobThatIsBuriedBeginsAnew) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.capacity = 1});
    const JobId id = co_await put(job("q", "x"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token, verdict(Outcome::bury)));
    const auto leased = co_await lease_job(id);
    EXPECT_EQ(leased.value().attempt, 1u);
    EXPECT_EQ((co_await engine_->book().put(job("q"))).error().code, Errc::refused) << "it takes room again";
    EXPECT_TRUE(co_await settle(leased->token, verdict(Outcome::release)));
    EXPECT_EQ(co_await payloads("q"), "x ");
    EXPECT_EQ((co_await record(id)).tally, (JobTally{.runs = 3, .releases = 1, .buries = 1, .kicks = 1}));
  });
}

TEST_F(LeasingTest, AGivenJobNeedNotBeInMemory) {
  with_broker(
      [&]() -> Coro<void> {
        JobId last = 0;
        for (int i = 0; i < 100; ++i) last = co_await put(job("q", std::to_string(i), -i));
        const auto leased = co_await lease_job(last);
        EXPECT_EQ(leased.value().job.payload, "99");
        EXPECT_TRUE(co_await settle(leased->token, verdict(Outcome::release)));
        std::size_t count = 0;
        for (std::size_t more = 1; more > 0; count += more) more = (co_await lease_all("q", 10)).size();
        EXPECT_EQ(count, 100u) << "every job once";
      },
      {.window = 10});
}

TEST_F(LeasingTest, ForAGivenJobRatesAndPausesDoNotCountButHowManyRunDoes) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.limits = {.rate = 0.001, .burst = 1}, .key_limits = {.concurrency = 1}});
    std::vector<JobId> ids;
    for (const char* key : {"a", "b", "c", "c"}) ids.push_back(co_await put(job("q", key, 0, key)));
    EXPECT_TRUE(co_await lease_job(ids[0]));
    EXPECT_TRUE(co_await lease_job(ids[1])) << "the queue's permit is spent";
    EXPECT_TRUE(co_await engine_->book().pause("q"));
    const auto third = co_await lease_job(ids[2]);
    EXPECT_TRUE(third);
    EXPECT_EQ(co_await lease_job(ids[3]), std::nullopt) << "one of its key runs";
    EXPECT_TRUE(co_await settle(third->token));
    EXPECT_TRUE(co_await lease_job(ids[3]));
  });
}

TEST_F(LeasingTest, AGivenJobThatWaitsForOthersOrHasEndedIsNotLeased) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.keep_done = 1h, .keep_cancelled = 1h});
    const JobId first = co_await put(job("q"));
    NewJob second = job("q");
    second.waits_for = {first};
    const JobId waits = co_await put(second);
    EXPECT_EQ(co_await lease_job(waits), std::nullopt);
    EXPECT_TRUE(co_await engine_->book().cancel(first));
    EXPECT_EQ(co_await lease_job(first), std::nullopt);
    EXPECT_EQ(co_await lease_job(waits), std::nullopt) << "it was cancelled with it";
  });
}

TEST_F(LeasingTest, ALeaseOfAGivenJobThatIsCancelledGivesItBack) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q", "x"));
    for (int turns = 0; turns < 6; ++turns) {
      auto leasing = loop_.create_task(engine_->lease_job(id, {.worker = "w"}));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      const bool gave = leasing.done();
      leasing.cancel();
      co_await sleep(1s);
      if (gave) EXPECT_TRUE(co_await settle(leasing.result()->value().token, verdict(Outcome::release)));
      EXPECT_EQ((co_await record(id)).state, JobState::ready) << turns;
    }
    EXPECT_EQ(co_await payloads("q"), "x ");
  });
}

// --- priorities ------------------------------------------------------------------------------------------------------

TEST_F(LeasingTest, AJobMayComeBackWithAnotherPriority) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "low", 1));
    co_await put(job("q", "high", 2));
    const LeasedJob high = co_await one("q");
    EXPECT_TRUE(co_await settle(high.token, {.outcome = Outcome::release, .priority = 0}));
    EXPECT_EQ(co_await payloads("q"), "low high ");
  });
}

// --- a deadline ------------------------------------------------------------------------------------------------------

TEST_F(LeasingTest, ALeaseWhoseTimeIsOverTakesNothing) {
  with_broker([&]() -> Coro<void> {
    EXPECT_TRUE((co_await lease_within(1s)).empty());
    const JobId id = co_await put(delayed("q", 1s, "x"));
    // Before, at the moment when it becomes due, and after.
    for (const Duration limit : {Duration(900ms), Duration(100ms), Duration(1ms)}) {
      const auto leased = co_await lease_within(limit);
      if (leased.empty()) continue;
      EXPECT_TRUE(co_await settle(leased.at(0).token, verdict(Outcome::release)));
    }
    co_await sleep(1s);
    EXPECT_EQ((co_await record(id)).state, JobState::ready);
    EXPECT_EQ((co_await lease_within(1s)).size(), 1u);
  });
}

TEST_F(LeasingTest, AJobThatIsBeingWrittenDownWhenTheTimeIsOverIsGivenBack) {
  SlowStore slow{store_};
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow);
    const JobId id = co_await put(job("q", "x"));
    slow.delay = 10s;
    EXPECT_TRUE((co_await lease_within(1s)).empty());
    co_await sleep(1min);
    slow.delay = {};
    EXPECT_EQ((co_await record(id)).state, JobState::ready);
    EXPECT_EQ((co_await record(id)).attempts, 0u);
    EXPECT_EQ((co_await lease_within(1s)).size(), 1u);
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

// --- leases that outlive their owner ---------------------------------------------------------------------------------

class AdoptionTest : public LeasingTest {
 protected:
  Coro<std::vector<LeasedJob>> lease_remotely(std::string worker, std::size_t most = 9) {
    auto leased = co_await engine_->lease({.queues = {"q"}, .most = most, .worker = std::move(worker), .remote = true});
    co_return value_or_throw(std::move(leased));
  }
  // As if the owner's process had died and another begun.
  Coro<void> die_and_go_on(EngineOptions options = {}) {
    engine_.reset();
    co_await sleep(1h);
    store_.reopen();
    engine_ = co_await open_engine(store_, options);
  }
};

TEST_F(AdoptionTest, TheNextOwnerGoesOnWithTheLeasesOfRemoteWorkers) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 10s});
    const JobId id = co_await put(job("q", "remote"));
    const JobId own = co_await put(with_lease_time(job("q", "own"), 3s));
    const auto leased = co_await lease_remotely("r");
    const JobId local = co_await put(job("q", "local"));
    (void)co_await one("q");
    co_await die_and_go_on();
    EXPECT_EQ((co_await record(local)).state, JobState::ready) << "who ran it has gone";
    EXPECT_EQ((co_await record(local)).expiries, 1u);
    EXPECT_EQ((co_await record(id)).state, JobState::running);
    EXPECT_EQ((co_await record(id)).lease_until, loop_.clock().wall_now() + 10s);
    EXPECT_EQ((co_await record(own)).lease_until, loop_.clock().wall_now() + 3s);
    const auto running = engine_->running();
    EXPECT_EQ(running.size(), 2u);
    EXPECT_EQ(running.at(0).worker, "r");
    EXPECT_EQ(running.at(0).attempt, 1u);
    EXPECT_TRUE(running.at(0).remote);
    co_await sleep(2s);
    EXPECT_TRUE(engine_->renew(leased.at(1).token));
    co_await sleep(2s);
    EXPECT_TRUE(co_await settle(leased.at(1).token));
    EXPECT_TRUE(co_await settle(leased.at(0).token, verdict(Outcome::release)));
    EXPECT_EQ((co_await record(id)).tally.runs, 1u);
    EXPECT_EQ(co_await payloads("q"), "remote local ");
  });
}

TEST_F(AdoptionTest, ALeaseThatNobodyRenewsRunsOutAfterAFullLeaseTime) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.lease_time = 10s});
    const JobId id = co_await put(job("q"));
    const auto leased = co_await lease_remotely("r");
    co_await die_and_go_on();
    co_await sleep(9s);
    EXPECT_EQ((co_await record(id)).state, JobState::running);
    co_await sleep(2s);
    EXPECT_EQ((co_await record(id)).state, JobState::ready);
    EXPECT_EQ((co_await record(id)).expiries, 1u);
    EXPECT_FALSE(co_await settle(leased.at(0).token));
  });
}

TEST_F(AdoptionTest, AnOwnerThatClosesLeavesThemAndTheyCountAgainstTheLimits) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.limits = {.concurrency = 1}});
    co_await put(job("q"));
    co_await put(job("q", "next"));
    const auto leased = co_await lease_remotely("r");
    EXPECT_TRUE(co_await engine_->close());
    co_await die_and_go_on();
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_TRUE(co_await settle(leased.at(0).token));
    EXPECT_EQ(co_await payloads("q"), "next ");
  });
}

TEST_F(AdoptionTest, WhereLeasesAreNotAdoptedTheyEnd) {
  with_broker(
      [&]() -> Coro<void> {
        const JobId id = co_await put(job("q"));
        const auto leased = co_await lease_remotely("r");
        co_await die_and_go_on({.adopt_leases = false});
        EXPECT_EQ((co_await record(id)).state, JobState::ready);
        EXPECT_FALSE(co_await settle(leased.at(0).token));
      },
      {.adopt_leases = false});
}

TEST_F(AdoptionTest, AWorkerThatHasGoneLosesWhatWasAdopted) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    (void)co_await lease_remotely("r");
    co_await die_and_go_on();
    EXPECT_TRUE(co_await engine_->worker_gone("r"));
    EXPECT_EQ(co_await payloads("q"), "x ");
  });
}

TEST_F(AdoptionTest, ThatARunIsToStopIsKnownToTheNextOwner) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.keep_cancelled = 1h});
    const JobId id = co_await put(job("q"));
    const auto leased = co_await lease_remotely("r");
    EXPECT_TRUE(co_await engine_->book().cancel(id, "why not"));
    co_await die_and_go_on();
    EXPECT_TRUE(engine_->running(leased.at(0).token).value().cancel_asked);
    EXPECT_TRUE(co_await settle(leased.at(0).token, verdict(Outcome::release)));
    EXPECT_EQ((co_await record(id)).state, JobState::cancelled);
    EXPECT_EQ((co_await record(id)).error, "why not");
  });
}

TEST_F(AdoptionTest, AFileKeepsThemOverSeveralOwners) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    std::uint64_t token = 0;
    for (int owner = 0; owner < 4; ++owner) {
      Engine engine = value_or_throw(co_await Engine::open(where));
      if (owner == 0) {
        (void)value_or_throw(co_await engine.book().put(job("q")));
        token = value_or_throw(co_await engine.lease({.queues = {"q"}, .worker = "r", .remote = true})).at(0).token;
      }
      EXPECT_TRUE(engine.renew(token)) << owner;
      if (owner == 1) EXPECT_TRUE(co_await engine.close());
      if (owner == 3) EXPECT_TRUE(value_or_throw(co_await engine.settle(token, {})));
    }
  }));
}

// --- several at once -------------------------------------------------------------------------------------------------

TEST_F(LeasingTest, TheMostImportantJobOfAllQueuesMayComeFirst) {
  with_broker([&]() -> Coro<void> {
    std::vector<JobId> expected;
    for (const auto& [queue, priority] : {std::pair{"a", 1}, {"b", 9}, {"a", 5}, {"c", 5}, {"b", 1}}) {
      NewJob one = job(queue);
      one.priority = priority;
      expected.push_back(co_await put(std::move(one)));
    }
    expected = {expected[1], expected[2], expected[3], expected[0], expected[4]};
    const auto leased = value_or_throw(co_await engine_->lease_now(
        {.queues = {"a", "b", "c"}, .most = 9, .most_important_first = true, .worker = "w"}));
    std::vector<JobId> given;
    for (const LeasedJob& one : leased) given.push_back(one.job.id);
    EXPECT_EQ(given, expected);
  });
}

TEST_F(LeasingTest, SeveralRunsEndEachByItself) {
  with_broker([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) co_await put(job("q"));
    const auto leased = co_await lease_all("q");
    const auto settled = co_await engine_->settle_each({{leased.at(0).token, verdict(Outcome::done)},
                                                        {leased.at(0).token, verdict(Outcome::done)},
                                                        {leased.at(1).token, verdict(Outcome::bury)},
                                                        {leased.at(2).token, verdict(Outcome::release)}});
    std::vector<bool> held;
    for (const SettleReply& one : value_or_throw(settled)) held.push_back(one.settled);
    EXPECT_EQ(held, (std::vector<bool>{true, false, true, true}));
    EXPECT_EQ((co_await record(leased.at(1).job.id)).state, JobState::buried);
    EXPECT_EQ((co_await record(leased.at(2).job.id)).state, JobState::ready);
  });
}

}  // namespace
}  // namespace argiope

// What a broker does with jobs: takes them in, hands them out in order, writes down how they ended.
#include <gmock/gmock.h>

#include "argiope/engine/engine.hpp"
#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(BrokerTest, HandsOutTheMostImportantFirstAndEqualsInTheOrderPut) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "a"));
    co_await put(job("q", "b", 5));
    co_await put(job("q", "c"));
    co_await put(job("q", "d", -1));
    EXPECT_EQ(co_await payloads("q"), "b a c d ");
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

TEST_F(BrokerTest, ALeaseWaitsForAJob) {
  with_broker([&]() -> Coro<void> {
    auto waiting = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    co_await sleep(1s);
    EXPECT_FALSE(waiting.done());
    co_await put(job("q", "late"));
    auto leased = co_await waiting;
    EXPECT_EQ(leased->at(0).job.payload, "late");
    EXPECT_EQ(leased->at(0).attempt, 1u);
  });
}

TEST_F(BrokerTest, ADelayedJobIsHandedOutWhenItIsDue) {
  with_broker([&]() -> Coro<void> {
    co_await put(delayed("q", 10s, "later"));
    EXPECT_EQ(co_await payloads("q"), "");
    const TimePoint before = loop_.time();
    auto leased = co_await engine_->lease({.queues = {"q"}, .worker = "w"});
    EXPECT_EQ(leased->at(0).job.payload, "later");
    EXPECT_EQ(loop_.time() - before, 10s);
  });
}

TEST_F(BrokerTest, WhatIsDoneIsForgottenUnlessItIsToBeKept) {
  with_broker([&]() -> Coro<void> {
    QueueConfig keeps;
    keeps.keep_done = 1h;
    value_or_throw(co_await engine_->book().configure("kept", keeps));
    const JobId gone = co_await put(job("q"));
    const JobId kept = co_await put(job("kept"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    EXPECT_TRUE(co_await settle((co_await one("kept")).token, {.result = "42"}));
    EXPECT_EQ((co_await engine_->book().get(gone)).error().code, Errc::not_found);
    EXPECT_EQ((co_await engine_->book().get(kept))->result, "42");
    co_await sleep(1h + 2min);
    EXPECT_EQ((co_await engine_->book().get(kept)).error().code, Errc::not_found);
  });
}

TEST_F(BrokerTest, AFailedJobIsTriedAgainByTheQueuesPolicyAndThenBuried) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.retry = {.max_attempts = 3, .first = 1s, .factor = 4, .jitter = 0};
    value_or_throw(co_await engine_->book().configure("q", config));
    const JobId id = co_await put(job("q"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token, {.outcome = Outcome::retry, .error = "first"}));
    TimePoint failed = loop_.time();
    auto again = co_await engine_->lease({.queues = {"q"}});
    EXPECT_EQ(loop_.time() - failed, 1s);
    EXPECT_EQ(again->at(0).attempt, 2u);
    EXPECT_EQ(again->at(0).job.error, "first");
    failed = loop_.time();
    EXPECT_TRUE(co_await settle(again->at(0).token, {.outcome = Outcome::retry, .error = "second"}));
    again = co_await engine_->lease({.queues = {"q"}});
    EXPECT_EQ(loop_.time() - failed, 4s);
    EXPECT_TRUE(co_await settle(again->at(0).token, {.outcome = Outcome::retry, .error = "third"}));
    const auto record = co_await engine_->book().get(id);
    EXPECT_EQ(record->state, JobState::buried);
    EXPECT_EQ(record->attempts, 3u);
    auto history = co_await store_.history(id);
    EXPECT_EQ(history->size(), 3u);
    EXPECT_EQ(history->at(1).error, "second");
    // Kicked, it begins anew.
    EXPECT_TRUE(co_await engine_->book().kick(id));
    EXPECT_EQ((co_await one("q")).attempt, 1u);
  });
}

TEST_F(BrokerTest, AJobsOwnNumberOfAttemptsGoesBeforeTheQueues) {
  with_broker([&]() -> Coro<void> {
    NewJob once = job("q");
    once.max_attempts = 1;
    const JobId id = co_await put(once);
    EXPECT_TRUE(co_await settle((co_await one("q")).token, {.outcome = Outcome::retry, .error = "no"}));
    EXPECT_EQ((co_await engine_->book().get(id))->state, JobState::buried);
  });
}

TEST_F(BrokerTest, ADelayOfOnesOwnDoesNotMakeAJobImmortal) {
  with_broker([&]() -> Coro<void> {
    NewJob twice = job("q");
    twice.max_attempts = 2;
    const JobId id = co_await put(twice);
    for (int i = 0; i < 2; ++i) {
      auto leased = co_await engine_->lease({.queues = {"q"}});
      EXPECT_TRUE(co_await settle(leased->at(0).token, {.outcome = Outcome::retry, .error = "no", .delay = 1s}));
    }
    EXPECT_EQ((co_await engine_->book().get(id))->state, JobState::buried);
  });
}

TEST_F(BrokerTest, AJobToBeCancelledIsCancelledWhenItsWorkerNeverAnswers) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    (void)co_await one("q");
    EXPECT_TRUE(co_await engine_->book().cancel(id));
    co_await sleep(2min);
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found);
  });
}

TEST_F(BrokerTest, AStaleTokenSettlesNothing) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.lease_time = 10s;
    value_or_throw(co_await engine_->book().configure("q", config));
    co_await put(job("q", "x"));
    const LeasedJob first = co_await one("q");
    co_await sleep(11s);
    const LeasedJob second = co_await one("q");
    NewJob follow_up = job("q", "follow-up");
    Verdict verdict;
    verdict.follow_ups.push_back(follow_up);
    EXPECT_FALSE(co_await settle(first.token, std::move(verdict)));
    EXPECT_EQ(second.attempt, 2u);
    EXPECT_TRUE(co_await settle(second.token));
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

TEST_F(BrokerTest, ALeaseThatIsRenewedDoesNotRunOut) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.lease_time = 10s;
    value_or_throw(co_await engine_->book().configure("q", config));
    co_await put(job("q", "x"));
    const LeasedJob leased = co_await one("q");
    for (int i = 0; i < 5; ++i) {
      co_await sleep(6s);
      EXPECT_TRUE(engine_->renew(leased.token));
    }
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_TRUE(co_await settle(leased.token));
    EXPECT_FALSE(engine_->renew(leased.token));
  });
}

TEST_F(BrokerTest, AJobWhoseLeaseRunsOutTooOftenIsBuried) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.lease_time = 1s;
    config.max_lease_expiries = 2;
    value_or_throw(co_await engine_->book().configure("q", config));
    std::vector<JobEventKind> ends;
    const auto listener = engine_->add_listener(
        static_cast<std::uint32_t>(JobEventKind::expired) | static_cast<std::uint32_t>(JobEventKind::buried),
        [&](const JobEvent& event) { ends.push_back(event.kind); });
    const JobId id = co_await put(job("q"));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ((co_await engine_->lease({.queues = {"q"}}))->size(), 1u);
      co_await sleep(2s);
    }
    const auto record = co_await engine_->book().get(id);
    EXPECT_EQ(record->state, JobState::buried);
    EXPECT_EQ(record->error, "lease expired");
    EXPECT_EQ(record->expiries, 2u);
    EXPECT_EQ(record->tally.timeouts, 2u);
    EXPECT_EQ(record->tally.buries, 1u);
    EXPECT_EQ((co_await store_.history(id))->size(), 2u);
    EXPECT_EQ(ends, (std::vector{JobEventKind::expired, JobEventKind::expired, JobEventKind::buried}));
    engine_->remove_listener(listener);
  });
}

// pyspider gave a job that killed its process out again for ever.
TEST_F(BrokerTest, AJobThatRunsWhileItsOwnersDieIsBuriedUnlessOldLeasesAreNotBlamed) {
  JobId id = 0;
  with_broker([&]() -> Coro<void> { id = co_await put(job("q")); });
  const auto die_with_it = [&]() -> Coro<void> {
    const WallTime until = loop_.clock().wall_now() + 60s;
    auto leased = co_await store_.lease({{id, store_.last_token() + 1, until, "w"}});
    EXPECT_TRUE(leased && leased->at(0));
    store_.reopen();
  };
  const auto after = [&](bool blame, JobState state, std::uint32_t expiries) {
    loop_.run_until_complete(die_with_it());
    with_broker(
        [&]() -> Coro<void> {
          const auto record = co_await engine_->book().get(id);
          EXPECT_EQ(record->state, state);
          EXPECT_EQ(record->expiries, expiries);
          EXPECT_EQ(record->attempts, expiries);
        },
        {.blame_old_leases = blame});
  };
  after(false, JobState::ready, 0);
  after(true, JobState::ready, 1);
  after(true, JobState::ready, 2);
  loop_.run_until_complete(die_with_it());
  with_broker([&]() -> Coro<void> {
    const auto record = co_await engine_->book().get(id);
    EXPECT_EQ(record->state, JobState::buried);
    EXPECT_EQ(record->error, "the process that ran it has ended");
    EXPECT_EQ(record->expiries, 3u);
  });
}

TEST_F(BrokerTest, TheLeasesOfAWorkerThatIsGoneEndAtOnce) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    (void)co_await one("q");
    EXPECT_TRUE(co_await engine_->worker_gone("w"));
    EXPECT_EQ(co_await payloads("q"), "x ");
  });
}

TEST_F(BrokerTest, LeasesThatAreNamedEndAtOnceAndNoOthers) {
  with_broker([&]() -> Coro<void> {
    for (const char* payload : {"x", "y", "z"}) co_await put(job("q", payload));
    const auto leased = co_await engine_->lease({.queues = {"q"}, .most = 3, .worker = "w"});
    EXPECT_EQ((co_await engine_->end_leases({leased->at(0).token, leased->at(2).token, 12345})).value(), 2u);
    EXPECT_EQ(co_await payloads("q"), "x z ");
    EXPECT_TRUE(engine_->renew(leased->at(1).token));
  });
}

TEST_F(BrokerTest, AskingForJobsMakesNoQueueAndHearsOfOneThatIsMade) {
  with_broker([&]() -> Coro<void> {
    EXPECT_TRUE((co_await engine_->lease_now({.queues = {"p", "q"}}))->empty());
    auto waiting = loop_.create_task(engine_->lease({.queues = {"p", "q", "q"}}));
    auto other = loop_.create_task(engine_->lease({.queues = {"other"}}));
    co_await sleep(1s);
    EXPECT_EQ((co_await store_.queues())->size(), 0u);
    const JobId id = co_await put(job("q"));
    co_await sleep(1s);
    EXPECT_TRUE(waiting.done());
    if (waiting.done()) EXPECT_EQ(waiting.result()->at(0).job.id, id);
    EXPECT_FALSE(other.done());
    other.cancel();
    EXPECT_EQ((co_await store_.queues())->size(), 1u);
    EXPECT_EQ((co_await engine_->lease_now({.queues = {std::string(600, 'q')}})).error().code, Errc::invalid_input);
  });
}

TEST_F(BrokerTest, ManyLeasesOfAWorkerThatIsGoneHaveEndedWhenThatIsSaid) {
  with_broker([&]() -> Coro<void> {
    constexpr std::size_t kJobs = 100;
    for (std::size_t i = 0; i < kJobs; ++i) co_await put(job("q"));
    const auto leased = co_await engine_->lease({.queues = {"q"}, .most = kJobs, .worker = "w"});
    EXPECT_EQ(leased->size(), kJobs);
    EXPECT_TRUE(co_await engine_->worker_gone("w"));
    const auto counts = co_await store_.counts();
    EXPECT_EQ(counts->front().counts.ready, kJobs);
    EXPECT_EQ(counts->front().counts.running, 0u);
  });
}

TEST_F(BrokerTest, FollowUpsArePutInTheSameTransaction) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    Verdict verdict;
    verdict.follow_ups = {job("next", "a"), job("next", "b", 1)};
    EXPECT_TRUE(co_await settle((co_await one("q")).token, std::move(verdict)));
    EXPECT_EQ(co_await payloads("next"), "b a ");
  });
}

TEST_F(BrokerTest, ASnoozedJobComesBackLaterAndKeepsItsAttempt) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token, {.outcome = Outcome::release, .delay = 5s}));
    EXPECT_EQ(co_await payloads("q"), "");
    const TimePoint before = loop_.time();
    auto again = co_await engine_->lease({.queues = {"q"}});
    EXPECT_EQ(loop_.time() - before, 5s);
    EXPECT_EQ(again->at(0).attempt, 1u);
  });
}

// --- limits

TEST_F(BrokerTest, AQueueStartsNoMoreThanItsRate) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.limits.rate = 2;
    config.limits.burst = 1;
    value_or_throw(co_await engine_->book().configure("q", config));
    for (int i = 0; i < 5; ++i) co_await put(job("q"));
    const TimePoint start = loop_.time();
    for (int i = 0; i < 5; ++i) EXPECT_EQ((co_await engine_->lease({.queues = {"q"}, .most = 10}))->size(), 1u);
    EXPECT_EQ(loop_.time() - start, 2s);
  });
}

TEST_F(BrokerTest, ABusyKeyHoldsUpNoOther) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.key_limits.concurrency = 1;
    value_or_throw(co_await engine_->book().configure("q", config));
    for (const char* payload : {"a1", "a2", "a3"}) co_await put(job("q", payload, 9, "a"));
    for (const char* payload : {"b1", "b2"}) co_await put(job("q", payload, 0, "b"));
    EXPECT_EQ(co_await payloads("q"), "a1 b1 ");
    EXPECT_TRUE(co_await settle(tokens_.at(0)));
    EXPECT_EQ(co_await payloads("q"), "a2 ");
  });
}

TEST_F(BrokerTest, AFullQueueRefusesOrLetsWait) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.capacity = 2;
    value_or_throw(co_await engine_->book().configure("q", config));
    co_await put(job("q", "a"));
    co_await put(job("q", "b"));
    const auto refused = co_await engine_->book().put(job("q", "c"));
    EXPECT_EQ(refused.error().code, Errc::refused);
    EXPECT_THAT(refused.error().message, HasSubstr("\"q\" is full"));
    config.at_capacity = CapacityPolicy::wait;
    value_or_throw(co_await engine_->book().configure("q", config));
    auto waits = loop_.create_task(engine_->book().put(job("q", "c")));
    co_await sleep(1s);
    EXPECT_FALSE(waits.done());
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    EXPECT_TRUE(co_await waits);
    EXPECT_EQ(co_await payloads("q"), "b c ");
  });
}

TEST_F(BrokerTest, APutThatIsCancelledWhileItWaitsForRoomTakesNone) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.capacity = 1;
    config.at_capacity = CapacityPolicy::wait;
    value_or_throw(co_await engine_->book().configure("q", config));
    co_await put(job("q", "a"));
    auto first = loop_.create_task(engine_->book().put(job("q", "b")));
    auto second = loop_.create_task(engine_->book().put(job("q", "c")));
    co_await sleep(1s);
    first.cancel();
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    EXPECT_TRUE(co_await second);
    EXPECT_EQ(co_await payloads("q"), "c ");
  });
}

TEST_F(BrokerTest, QueuesShareByTheirWeights) {
  with_broker([&]() -> Coro<void> {
    QueueConfig heavy;
    heavy.weight = 3;
    value_or_throw(co_await engine_->book().configure("heavy", heavy));
    for (int i = 0; i < 100; ++i) {
      co_await put(job("heavy", "h"));
      co_await put(job("light", "l"));
    }
    auto leased = co_await engine_->lease({.queues = {"light", "heavy"}, .most = 40});
    EXPECT_EQ(std::ranges::count_if(*leased, [](const LeasedJob& one) { return one.job.payload == "h"; }), 30);
  });
}

TEST_F(BrokerTest, APausedQueueHandsOutNothing) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "a"));
    EXPECT_TRUE(co_await engine_->book().pause("q"));
    EXPECT_EQ(co_await payloads("q"), "");
    auto waiting = loop_.create_task(engine_->lease({.queues = {"q"}}));
    co_await sleep(1h);
    EXPECT_FALSE(waiting.done());
    EXPECT_TRUE(co_await engine_->book().resume("q"));
    EXPECT_EQ((co_await waiting)->at(0).job.payload, "a");
  });
}

// --- unique jobs, dependencies, batches

TEST_F(BrokerTest, APutWhileItsJobRunsRunsItOnceMoreIfAsked) {
  with_broker([&]() -> Coro<void> {
    NewJob unique = job("q", "first");
    unique.unique = "u";
    unique.run_again = true;
    co_await put(unique);
    const LeasedJob running = co_await one("q");
    unique.payload = "again";
    EXPECT_EQ((co_await engine_->book().put(unique))->outcome, PutOutcome::run_again);
    EXPECT_EQ((co_await engine_->book().put(unique))->outcome, PutOutcome::kept);
    EXPECT_EQ(co_await payloads("q"), "");  // not while the first runs
    EXPECT_TRUE(co_await settle(running.token));
    EXPECT_EQ(co_await payloads("q"), "again ");
  });
}

TEST_F(BrokerTest, MergingRaisesPriorityAndHastens) {
  with_broker([&]() -> Coro<void> {
    NewJob unique = delayed("q", 1h, "old");
    unique.unique = "u";
    unique.unique_policy = UniquePolicy::merge;
    co_await put(unique);
    co_await put(job("q", "other", 1));
    unique.payload = "new";
    unique.priority = 7;
    unique.due_at = {};
    EXPECT_EQ((co_await engine_->book().put(unique))->outcome, PutOutcome::changed);
    EXPECT_EQ(co_await payloads("q"), "old other ");
  });
}

TEST_F(BrokerTest, AJobWaitsForOthers) {
  with_broker([&]() -> Coro<void> {
    NewJob after = job("q", "after");
    after.waits_for = {co_await put(job("q", "a")), co_await put(job("q", "b"))};
    co_await put(after);
    EXPECT_EQ(co_await payloads("q"), "a b ");
    EXPECT_TRUE(co_await settle(tokens_.at(0)));
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_TRUE(co_await settle(tokens_.at(1)));
    EXPECT_EQ(co_await payloads("q"), "after ");
  });
}

TEST_F(BrokerTest, AJobPutAfterTheFailureOfOneThatItWaitsForIsCancelledWithItsBatch) {
  with_broker([&]() -> Coro<void> {
    const JobId first = co_await put(job("q", "a"));
    EXPECT_EQ(co_await payloads("q"), "a ");
    EXPECT_TRUE(co_await settle(tokens_.at(0), {.outcome = Outcome::bury, .error = "no"}));
    NewJob after = job("q", "after");
    after.batch = co_await put(job("q", "completion"));
    after.waits_for = {first};
    const auto reply = co_await engine_->book().put(after);
    EXPECT_EQ(reply->outcome, PutOutcome::cancelled);
    EXPECT_EQ(reply->cancelled->cancelled.size(), 1u);
    EXPECT_EQ(co_await payloads("q"), "") << "neither of them runs";
    after.batch = 0;
    after.if_failed = DependencyPolicy::run;
    co_await put(after);
    EXPECT_EQ(co_await payloads("q"), "after ");
  });
}

TEST_F(BrokerTest, ABatchHasOneCompletionJob) {
  with_broker([&]() -> Coro<void> {
    NewJob completion = job("q", "completion");
    completion.if_failed = DependencyPolicy::run;
    auto replies = co_await engine_->book().put_batch({job("q", "a"), job("q", "b")}, completion);
    EXPECT_EQ(replies->size(), 3u);
    EXPECT_EQ(co_await payloads("q"), "a b ");
    EXPECT_TRUE(co_await settle(tokens_.at(0), {.outcome = Outcome::bury, .error = "no"}));
    EXPECT_TRUE(co_await settle(tokens_.at(1)));
    EXPECT_EQ(co_await payloads("q"), "completion ");
  });
}

// --- cancelling

TEST_F(BrokerTest, CancellingAWaitingJobTakesItOut) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q", "a"));
    co_await put(job("q", "b"));
    EXPECT_TRUE(co_await engine_->book().cancel(id));
    EXPECT_EQ(co_await payloads("q"), "b ");
    EXPECT_EQ((co_await engine_->book().cancel(99)).error().code, Errc::not_found);
  });
}

TEST_F(BrokerTest, CancellingARunningJobAsksItsWorker) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q", "a"));
    std::uint64_t asked = 0;
    LeaseCall call{.queues = {"q"}, .worker = "w"};
    call.on_cancel = [&](std::uint64_t token) { asked = token; };
    auto leased = co_await engine_->lease(call);
    EXPECT_TRUE(co_await engine_->book().cancel(id, "not wanted"));
    EXPECT_EQ(asked, leased->at(0).token);
    EXPECT_EQ((co_await explained(id)).state, JobState::running);
    // However the worker puts it, the job is not tried again.
    EXPECT_TRUE(co_await settle(asked, {.outcome = Outcome::retry, .error = "interrupted"}));
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

TEST_F(BrokerTest, CancellingAJobOnItsWayToItsWorkerIsNotForgotten) {
  with_broker([&]() -> Coro<void> {
    for (int turns = 0; turns < 12; ++turns) {
      bool asked = false;
      LeaseCall call{.queues = {"q"}, .worker = "w"};
      call.on_cancel = [&](std::uint64_t) { asked = true; };
      auto waiting = loop_.create_task(engine_->lease(call));
      co_await yield_now();
      auto putting = loop_.create_task(put(job("q", "a")));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      const JobId id = static_cast<JobId>(turns) + 1;
      auto cancelled = co_await engine_->book().cancel(id);
      co_await putting;
      if (!cancelled) EXPECT_EQ(cancelled.error().code, Errc::not_found) << turns;  // it was not there yet
      co_await sleep(1s);
      if (waiting.done()) {
        // It reached the worker: which was asked to stop, unless nothing was to be cancelled when that was asked for.
        EXPECT_EQ(asked, cancelled.has_value()) << turns;
        EXPECT_TRUE(co_await settle(waiting.result()->at(0).token));
      } else {
        EXPECT_TRUE(cancelled) << turns;
        waiting.cancel();
        co_await sleep(1s);
      }
      EXPECT_EQ(co_await payloads("q"), "") << turns;
    }
  });
}

TEST_F(BrokerTest, KnowsThatNobodyWaitsAnyMore) {
  with_broker([&]() -> Coro<void> {
    value_or_throw(co_await engine_->book().configure("q", {}));
    value_or_throw(co_await engine_->book().pause("q"));
    auto waiting = loop_.create_task(engine_->lease({.queues = {"q"}}));
    co_await sleep(1s);
    waiting.cancel();
    co_await sleep(1s);
    value_or_throw(co_await engine_->book().resume("q"));
    EXPECT_EQ((co_await explained(co_await put(job("q")))).reason, WaitReason::no_worker);
  });
}

TEST_F(BrokerTest, ALeaseThatIsCancelledLosesNothing) {
  with_broker([&]() -> Coro<void> {
    for (int turns = 0; turns < 12; ++turns) {
      auto waiting = loop_.create_task(engine_->lease({.queues = {"q"}}));
      co_await yield_now();
      auto putting = loop_.create_task(put(job("q", "a")));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      waiting.cancel();
      co_await putting;
      co_await sleep(1s);
      // Either the wait had ended before, or the job is there for the next.
      std::uint64_t token = 0;
      if (waiting.cancelled()) {
        token = (co_await one("q")).token;
      } else {
        token = (co_await waiting)->at(0).token;
      }
      EXPECT_TRUE(co_await settle(token)) << turns;
    }
  });
}

// --- bad input

TEST_F(BrokerTest, RefusesWhatIsTooLargeOrNamesNoQueue) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.max_payload_bytes = 3;
    value_or_throw(co_await engine_->book().configure("q", config));
    EXPECT_EQ((co_await engine_->book().put(job("q", "1234"))).error().code, Errc::too_large);
    EXPECT_EQ((co_await engine_->book().put(job(""))).error().code, Errc::invalid_input);
    NewJob far = job("q");
    far.id = kMostJobId + 1;
    EXPECT_EQ((co_await engine_->book().put(far)).error().code, Errc::invalid_input);
    EXPECT_EQ((co_await engine_->book().counts())->at(0).second, StateCounts{});
  });
}

TEST_F(BrokerTest, KnowsOnlyConfiguredQueuesWhenToldSo) {
  with_broker(
      [&]() -> Coro<void> {
        EXPECT_EQ((co_await engine_->book().put(job("typo"))).error().code, Errc::not_found);
        EXPECT_TRUE(co_await engine_->book().configure("q", {}));
        EXPECT_TRUE(co_await engine_->book().put(job("q")));
      },
      {.create_queues = false});
}

TEST_F(BrokerTest, OneBadPutOfATurnHarmsNoOther) {
  with_broker([&]() -> Coro<void> {
    NewJob bad = job("q", "bad");
    bad.waits_for = {12345};  // a job that is not there yet
    auto good = loop_.create_task(engine_->book().put(job("q", "good")));
    auto refused = loop_.create_task(engine_->book().put(bad));
    auto also_good = loop_.create_task(engine_->book().put(job("q", "also")));
    EXPECT_TRUE(co_await good);
    EXPECT_EQ((co_await refused).error().code, Errc::invalid_input);
    EXPECT_TRUE(co_await also_good);
    EXPECT_EQ(co_await payloads("q"), "good also ");
  });
}

// --- clocks

TEST_F(BrokerTest, DelaysAndLeasesKeepTheirLengthWhenTheCalendarJumps) {
  with_broker([&]() -> Coro<void> {
    for (const Duration jump : {Duration{5h}, Duration{-7h}}) {
      co_await put(delayed("q", 10s, "x"));
      const TimePoint before = loop_.time();
      co_await sleep(1s);
      backend_.manual_clock().set_wall(loop_.clock().wall_now() + jump);
      co_await sleep(1s);
      auto leased = co_await engine_->lease({.queues = {"q"}});
      EXPECT_EQ(loop_.time() - before, 10s);
      EXPECT_TRUE(co_await settle(leased->at(0).token));
      // What is asked for by the calendar is meant by the new one.
      co_await put(delayed("q", 3s, "y"));
      const TimePoint now = loop_.time();
      leased = co_await engine_->lease({.queues = {"q"}});
      EXPECT_EQ(loop_.time() - now, 3s);
      EXPECT_TRUE(co_await settle(leased->at(0).token));
    }
  });
}

// --- windows

TEST_F(BrokerTest, AWindowThatIsSmallerThanTheQueueLosesNoOrder) {
  EngineOptions options;
  options.window = 8;
  with_broker(
      [&]() -> Coro<void> {
        Random random(7);
        for (int i = 0; i < 500; ++i) {
          NewJob made = job("q", std::to_string(i), static_cast<std::int32_t>(random.below(5)), std::to_string(i % 7));
          if (random.chance(0.3)) made.due_at = loop_.clock().wall_now() + from_seconds(random.unit() * 60);
          co_await put(made);
        }
        EXPECT_LT(engine_->in_memory(), 60u);
        co_await sleep(61s);
        std::optional<Rank> last;
        int seen = 0;
        for (;; ++seen) {
          auto leased = co_await lease_all("q", 1);
          if (leased.empty()) break;
          const Rank rank{leased[0].job.priority, leased[0].job.id};
          if (last) {
            EXPECT_TRUE(more_important(*last, rank)) << last->id << " before " << rank.id;
          }
          last = rank;
          EXPECT_TRUE(co_await settle(leased[0].token));
        }
        EXPECT_EQ(seen, 500);
      },
      options);
}

// pyspider had to have every task in memory to change it.
TEST_F(BrokerTest, AJobThatLiesInTheStoreComesForwardWhenItsPriorityIsRaised) {
  EngineOptions options;
  options.window = 8;
  with_broker(
      [&]() -> Coro<void> {
        JobId last = 0;
        for (int i = 0; i < 200; ++i) last = co_await put(job("q"));
        EXPECT_LT(engine_->in_memory(), 60u);
        EXPECT_TRUE(co_await engine_->book().set_priority(last, 1));
        EXPECT_EQ((co_await one("q")).job.id, last);
      },
      options);
}

TEST_F(BrokerTest, AKeyThatFillsTheWindowAndMayNotRunHoldsUpNoOther) {
  EngineOptions options;
  options.window = 16;
  with_broker(
      [&]() -> Coro<void> {
        QueueConfig config;
        config.key_limits.concurrency = 1;
        value_or_throw(co_await engine_->book().configure("q", config));
        for (int i = 0; i < 300; ++i) co_await put(job("q", "hog", 9, "hog"));
        for (int i = 0; i < 20; ++i) co_await put(job("q", "other", 0, "k" + std::to_string(i)));
        const LeasedJob hog = co_await one("q");
        EXPECT_EQ(hog.job.payload, "hog");
        for (int i = 0; i < 20; ++i) EXPECT_EQ((co_await one("q")).job.key, "k" + std::to_string(i));
        EXPECT_LT(engine_->in_memory(), 100u);
        // And the key's own order is kept all the while.
        EXPECT_TRUE(co_await settle(hog.token));
        JobId last = hog.job.id;
        for (int i = 1; i < 300; ++i) {
          const LeasedJob next = co_await one("q");
          EXPECT_EQ(next.job.id, last + 1);
          last = next.job.id;
          EXPECT_TRUE(co_await settle(next.token));
        }
      },
      options);
}

// --- events

TEST_F(BrokerTest, TellsEveryTransitionInOrder) {
  with_broker([&]() -> Coro<void> {
    std::vector<std::string> seen;
    const auto listener =
        engine_->add_listener(kAllJobEvents, [&](const JobEvent& event) { seen.emplace_back(to_string(event.kind)); });
    QueueConfig config;
    config.retry = {.max_attempts = 2, .first = 1s, .jitter = 0};
    value_or_throw(co_await engine_->book().configure("q", config));
    const JobId id = co_await put(delayed("q", 1s));
    auto leased = co_await engine_->lease({.queues = {"q"}});
    engine_->set_progress(leased->at(0).token, 0.5, "half");
    co_await settle(leased->at(0).token, {.outcome = Outcome::retry});
    leased = co_await engine_->lease({.queues = {"q"}});
    co_await settle(leased->at(0).token, {.outcome = Outcome::retry});
    value_or_throw(co_await engine_->book().kick(id));
    co_await settle((co_await one("q")).token);
    EXPECT_THAT(seen, ElementsAre("queue changed", "added", "due", "leased", "progress", "retrying", "due", "leased",
                                  "buried", "kicked", "leased", "done"));
    engine_->remove_listener(listener);
    co_await put(job("q"));
    EXPECT_EQ(seen.size(), 12u);
  });
}

}  // namespace
}  // namespace argiope

// What every Store promises, one fact a test.
#include <map>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "store/every_store_fixture.hpp"

namespace argiope {
namespace {

class StoreTest : public EveryStoreTest {
 protected:
  PutReply put(NewJob job, bool set_aside = false) {
    if (job.queue.empty()) job.queue = "q";
    auto replies = must(store_->put({{std::move(job), set_aside}}, kNow));
    return replies.empty() ? PutReply{} : replies[0].value();
  }
  Errc put_error(NewJob job) {
    if (job.queue.empty()) job.queue = "q";
    const auto replies = must(store_->put({{std::move(job), false}}, kNow));
    return replies.at(0) ? Errc{} : replies[0].error().code;
  }
  std::optional<JobRecord> lease(JobId id) { return must(store_->lease({{id, ++token_, kNow + 60s, "w"}}))[0]; }
  SettleReply settle(Settlement settlement) {
    if (settlement.token == 0) settlement.token = token_;
    if (settlement.at == WallTime{}) settlement.at = kNow + 1s;
    auto replies = must(store_->settle({std::move(settlement)}));
    return replies.empty() ? SettleReply{} : replies[0];
  }
  SettleReply run(JobId id, Outcome outcome = Outcome::done) {
    EXPECT_TRUE(lease(id));
    return settle({.id = id, .outcome = outcome});
  }
  ChangeReply change(Change change) {
    if (change.at == WallTime{}) change.at = kNow + 2s;
    return must(store_->change({change}))[0];
  }
  std::optional<JobRecord> get(JobId id) { return must(store_->get(id)); }
  JobState state(JobId id) { return get(id).value().state; }
  std::vector<JobId> ready(Rank after = {}, std::size_t limit = 100) {
    return ids(must(store_->read_shelf(1, {.after = after, .limit = limit})));
  }
  static std::vector<JobId> ids(const std::vector<WaitingJob>& jobs) {
    std::vector<JobId> all;
    for (const WaitingJob& job : jobs) all.push_back(job.id);
    return all;
  }
  static std::vector<JobId> ids(const std::vector<CancelledJob>& jobs) {
    std::vector<JobId> all;
    for (const CancelledJob& job : jobs) all.push_back(job.id);
    return all;
  }
  StateCounts counts() { return must(store_->counts()).at(0).counts; }

  using Ids = std::vector<JobId>;
};
INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, kEveryStore, name_of_store);

// --- queues ----------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, AQueueKeepsItsIdAndTheConfigurationItWasMadeWith) {
  QueueConfig config;
  config.weight = 7;
  config.keep_done = 5s;
  const StoredQueue first = must(store_->open_queue("a", config));
  EXPECT_EQ(first.id, 1u);
  EXPECT_EQ(must(store_->open_queue("a", {})).config.weight, 7u);
  EXPECT_EQ(must(store_->open_queue("b", {})).id, 2u);
  config.weight = 9;
  must(store_->configure(1, config));
  const auto all = must(store_->queues());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].config.weight, 9u);
  EXPECT_EQ(all[0].config.keep_done, Duration(5s));
  EXPECT_EQ(tried(store_->configure(3, config)).error().code, Errc::invalid_input);
}

TEST_P(StoreTest, AConfigurationThatCannotBeKeptIsRefused) {
  QueueConfig config;
  config.limits.burst = 0.5;
  EXPECT_EQ(tried(store_->open_queue("a", config)).error().code, Errc::invalid_input);
  EXPECT_EQ(tried(store_->open_queue("", {})).error().code, Errc::invalid_input);
  EXPECT_TRUE(must(store_->queues()).empty());
}

TEST_P(StoreTest, QueuesAreMadeByPuttingIntoThem) {
  put({.queue = "new"});
  EXPECT_EQ(must(store_->queues()).at(0).name, "new");
}

TEST_P(StoreTest, OnlyAQueueInWhichThereIsNothingIsErased) {
  must(store_->open_queue("q", {.keep_done = 1h, .weight = 7}));
  must(store_->open_queue("r", {}));
  put({});
  EXPECT_EQ(error_of(store_->erase_queue(1)), Errc::refused);
  lease(1);
  EXPECT_EQ(error_of(store_->erase_queue(1)), Errc::refused);
  settle({.id = 1, .keep = true});
  EXPECT_EQ(error_of(store_->erase_queue(1)), Errc::refused) << "a record is kept";
  change({.id = 1, .kind = ChangeKind::erase});
  must(store_->erase_queue(1));
  EXPECT_EQ(error_of(store_->erase_queue(1)), Errc::invalid_input);
  EXPECT_EQ(error_of(store_->configure(1, {})), Errc::invalid_input);
  EXPECT_EQ(must(store_->queues()).size(), 1u);
  EXPECT_EQ(must(store_->counts()).size(), 1u);
  put({});
  const auto again = must(store_->queues());
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].id, 1u) << "its own number, and no configuration";
  EXPECT_EQ(again[0].config.weight, 1u);
  EXPECT_EQ(counts().ready, 1u);
}

TEST_P(StoreTest, AQueueThatARefusedPutHasMadeAgainIsStillErased) {
  must(store_->open_queue("q", {}));
  must(store_->erase_queue(1));
  EXPECT_EQ(put_error({.waits_for = {77}}), Errc::invalid_input);
  EXPECT_TRUE(must(store_->queues()).empty());
  EXPECT_EQ(must(store_->open_queue("q", {.weight = 3})).config.weight, 3u);
}

// --- put -------------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, KeepsEverythingAJobIsPutWith) {
  NewJob job{.name = "n",
             .queue = "q",
             .key = std::string("k\0x", 3),
             .unique = "u",
             .priority = -5,
             .due_at = kNow + 1500ms,
             .function = "f",
             .payload = std::string("\0\xff", 2),
             .max_attempts = 9,
             .lease_time = 1500ms,
             .if_failed = DependencyPolicy::run};
  const PutReply reply = put(job);
  EXPECT_EQ(reply.outcome, PutOutcome::added);
  EXPECT_EQ(reply.job, (WaitingJob{1, 1, job.key, -5, job.due_at, 0, 0, Shelf::delayed}));
  JobRecord expected;
  expected.id = 1;
  expected.name = "n";
  expected.queue = "q";
  expected.key = job.key;
  expected.unique = "u";
  expected.state = JobState::delayed;
  expected.priority = -5;
  expected.due_at = job.due_at;
  expected.function = "f";
  expected.payload = job.payload;
  expected.max_attempts = 9;
  expected.lease_time = 1500ms;
  expected.if_failed = DependencyPolicy::run;
  expected.created_at = kNow;
  EXPECT_EQ(get(1), expected);
}

TEST_P(StoreTest, TimesAreKeptInMilliseconds) {
  put({.due_at = kNow + 1234567us});
  EXPECT_EQ(get(1)->due_at, kNow + 1234ms);
}

TEST_P(StoreTest, GivesIdsLargerThanAllBeforeThoseDeletedIncluded) {
  put({.id = 50});
  EXPECT_EQ(put({}).id, 51u);
  run(51);
  EXPECT_EQ(get(51), std::nullopt);
  EXPECT_EQ(put({}).id, 52u);
  EXPECT_EQ(put({.id = 7}).id, 7u);
  EXPECT_EQ(put({}).id, 53u);
}

TEST_P(StoreTest, ASecondPutOfAnIdOrANameChangesNothing) {
  put({.id = 5, .name = "n", .payload = "first"});
  EXPECT_EQ(put({.id = 5, .payload = "second"}).outcome, PutOutcome::kept);
  const PutReply named = put({.name = "n", .queue = "other", .payload = "third"});
  EXPECT_EQ(named.outcome, PutOutcome::kept);
  EXPECT_EQ(named.id, 5u);
  EXPECT_EQ(get(5)->payload, "first");
  EXPECT_EQ(must(store_->find_name("n")), JobId{5});
  EXPECT_EQ(must(store_->find_name("m")), std::nullopt);
  EXPECT_EQ(must(store_->queues()).size(), 1u);
}

TEST_P(StoreTest, ANameIsKnownForAsLongAsTheJobIsKept) {
  put({.name = "n"});
  lease(1);
  settle({.id = 1, .keep = true});
  EXPECT_EQ(put({.name = "n"}).outcome, PutOutcome::kept);
  must(store_->prune(1, JobState::done, kNow + 1h, 10));
  EXPECT_EQ(put({.name = "n"}).outcome, PutOutcome::added);
}

TEST_P(StoreTest, RefusesWhatBreaksTheContractAndThenDoesNothingOfACallThatIsRefusedWhole) {
  EXPECT_EQ(put_error({.id = kMostJobId + 1}), Errc::invalid_input);
  EXPECT_EQ(put_error({.name = std::string(513, 'x')}), Errc::invalid_input);
  EXPECT_EQ(put_error({.id = 4, .waits_for = {4}}), Errc::invalid_input);
  EXPECT_EQ(put_error({.waits_for = {1}}), Errc::invalid_input);  // there has been none yet
  EXPECT_EQ(put_error({.batch = 1}), Errc::invalid_input);
  const std::vector<PutRequest> late_mistake{{{.queue = "q"}}, {{.queue = "r", .waits_for = {9}}}};
  const std::vector<PutRequest> plain_mistake{{{.queue = "q"}}, {{.name = std::string(513, 'x'), .queue = "r"}}};
  for (const auto& requests : {late_mistake, plain_mistake}) {
    EXPECT_EQ(tried(store_->put(requests, kNow, Refusal::whole)).error().code, Errc::invalid_input);
  }
  EXPECT_TRUE(must(store_->queues()).empty());
  EXPECT_TRUE(must(store_->list({})).empty());
  EXPECT_EQ(put({}).id, 1u);
}

TEST_P(StoreTest, ARefusedRequestKeepsNoOtherOfItsCallBack) {
  const auto replies = must(store_->put({{{.queue = "q", .payload = "a"}},
                                         {{.queue = "lost", .waits_for = {9}}},
                                         {{.queue = "q", .payload = "b", .waits_for = {1}}},
                                         {{.name = std::string(513, 'x'), .queue = "lost"}},
                                         {.job = {.queue = "q"}, .run = 1},
                                         {{.queue = "q", .batch = 77}},
                                         {.job = {.queue = "q"}, .waits_for_those_before = true}},
                                        kNow));
  ASSERT_EQ(replies.size(), 7u);
  EXPECT_EQ(replies[0]->id, 1u);
  EXPECT_EQ(replies[2]->id, 2u);
  EXPECT_EQ(replies[6]->id, 3u) << "no id is lost to those that are refused";
  for (const std::size_t bad : {1u, 3u, 4u, 5u}) EXPECT_EQ(replies[bad].error().code, Errc::invalid_input) << bad;
  EXPECT_EQ(must(store_->queues()).size(), 1u);
  EXPECT_EQ(must(store_->waits_for(3, 10)), (Ids{1, 2}));
  EXPECT_EQ(must(store_->list({})).size(), 3u);
}

TEST_P(StoreTest, ARefusedCallLeavesOthersOfItsTurnAlone) {
  auto body = [&]() -> Coro<void> {
    auto good = loop_.create_task(store_->put({{{.queue = "q"}, false}}, kNow));
    auto bad = loop_.create_task(store_->put({{{.queue = "q"}}, {{.queue = "q", .batch = 77}}}, kNow, Refusal::whole));
    auto also_good = loop_.create_task(store_->put({{{.queue = "q"}, false}}, kNow));
    EXPECT_EQ((co_await good)->at(0)->id, 1u);
    EXPECT_FALSE((co_await bad).has_value());
    EXPECT_EQ((co_await also_good)->at(0)->id, 2u);
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(counts().ready, 2u);
}

TEST_P(StoreTest, AnIdThatACallerChoosesNeverEndsTheStoresOwn) {
  EXPECT_EQ(put({.id = kMostJobId}).id, kMostJobId);
  EXPECT_EQ(put({}).id, 1u);
  EXPECT_EQ(put({.waits_for = {kMostJobId}}).id, 2u);
  EXPECT_EQ(put_error({.waits_for = {3}}), Errc::invalid_input);
  EXPECT_EQ(put_error({.waits_for = {kMostCountedId}}), Errc::invalid_input) << "there has been none of that id";
  run(kMostJobId);
  EXPECT_EQ(put({.waits_for = {kMostJobId}}).id, 3u) << "it has been done";
  // The largest that the store's own go on from leaves as many as there were below it; those that are taken are left
  // out.
  EXPECT_EQ(put({.id = kMostCountedId + 2}).id, kMostCountedId + 2);
  EXPECT_EQ(put({}).id, 4u);
  EXPECT_EQ(put({.id = kMostCountedId}).id, kMostCountedId);
  EXPECT_EQ(put({}).id, kMostCountedId + 1);
  EXPECT_EQ(put({}).id, kMostCountedId + 3);
  EXPECT_EQ(put({.id = kMostCountedId + 2}).outcome, PutOutcome::kept);
}

TEST_P(StoreTest, AnIdThatWasChosenAndIsUsedAgainIsNotTakenForTheJobThatRan) {
  put({.id = kMostJobId});
  run(kMostJobId);
  put({.id = kMostJobId});
  EXPECT_EQ(state(kMostJobId), JobState::ready);
  EXPECT_TRUE(run(kMostJobId).settled);
}

// --- unique names ----------------------------------------------------------------------------------------------------

TEST_P(StoreTest, UniqueKeepLeavesTheJobThatWaits) {
  put({.unique = "u", .payload = "old"});
  const PutReply reply = put({.unique = "u", .priority = 9, .payload = "new"});
  EXPECT_EQ(reply.outcome, PutOutcome::kept);
  EXPECT_EQ(reply.id, 1u);
  EXPECT_EQ(get(1)->payload, "old");
  EXPECT_EQ(put({.queue = "other", .unique = "u"}).outcome, PutOutcome::added);
}

TEST_P(StoreTest, UniqueReplaceTakesPayloadFunctionPriorityKeyAndTime) {
  put({.key = "k", .unique = "u", .priority = 5, .payload = "old"});
  const PutReply reply = put({.key = "l",
                              .unique = "u",
                              .unique_policy = UniquePolicy::replace,
                              .priority = 1,
                              .due_at = kNow + 1h,
                              .function = "g",
                              .payload = "new",
                              .max_attempts = 4});
  EXPECT_EQ(reply.outcome, PutOutcome::changed);
  EXPECT_EQ(reply.job, (WaitingJob{1, 1, "l", 1, kNow + 1h, 0, 0, Shelf::delayed}));
  EXPECT_EQ(get(1)->payload, "new");
  EXPECT_EQ(get(1)->function, "g");
  EXPECT_EQ(get(1)->max_attempts, 0u);
  EXPECT_EQ(counts().delayed, 1u);
}

TEST_P(StoreTest, UniqueMergeTakesTheHigherPriorityAndTheEarlierTimeAndTheOldPayload) {
  const auto merge = [&](std::int32_t priority, WallTime due_at) {
    return put({.unique = "u",
                .unique_policy = UniquePolicy::merge,
                .priority = priority,
                .due_at = due_at,
                .payload = "new"});
  };
  put({.unique = "u", .priority = 5, .due_at = kNow + 1h, .payload = "old"});
  EXPECT_EQ(merge(4, kNow + 2h).outcome, PutOutcome::kept);
  EXPECT_EQ(merge(6, kNow + 2h).job, (WaitingJob{1, 1, "", 6, kNow + 1h, 0, 0, Shelf::delayed}));
  EXPECT_EQ(merge(0, kNow + 30min).job.due_at, kNow + 30min);
  EXPECT_EQ(merge(0, {}).job, (WaitingJob{1, 1, "", 6, {}, 0, 0, Shelf::ready}));
  EXPECT_EQ(get(1)->payload, "old");
  EXPECT_EQ(ready(), Ids{1});
}

TEST_P(StoreTest, AUniqueJobThatRunsSwallowsThePutUnlessItIsToRunAgain) {
  put({.unique = "u"});
  lease(1);
  EXPECT_EQ(put({.unique = "u"}).outcome, PutOutcome::kept);
  const PutReply again = put({.unique = "u", .run_again = true, .payload = "2"});
  EXPECT_EQ(again.outcome, PutOutcome::run_again);
  EXPECT_EQ(again.id, 2u);
  EXPECT_EQ(again.job.shelf, Shelf::waiting);
  EXPECT_EQ(get(1)->unique, "");
  // A third one meets the second.
  EXPECT_EQ(put({.unique = "u", .unique_policy = UniquePolicy::merge, .run_again = true, .priority = 3}).outcome,
            PutOutcome::changed);
  const SettleReply ended = settle({.id = 1, .outcome = Outcome::bury});
  ASSERT_EQ(ended.released.size(), 1u);
  EXPECT_EQ(ended.released[0], (WaitingJob{2, 1, "", 3, {}, 0, 0, Shelf::ready}));
}

TEST_P(StoreTest, AUniqueNameIsFreeWhenItsJobHasEnded) {
  put({.unique = "u"});
  run(1, Outcome::bury);
  EXPECT_EQ(put({.unique = "u"}).id, 2u);
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::kick}).outcome, ChangeOutcome::wrong_state);  // taken meanwhile
  run(2);
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::kick}).outcome, ChangeOutcome::changed);
  EXPECT_EQ(put({.unique = "u"}).id, 1u);
}

// --- leases ----------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, ALeasedJobIsOnNoShelfAndRuns) {
  put({.payload = "p"});
  put({});
  const auto leased = lease(1);
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->state, JobState::running);
  EXPECT_EQ(leased->payload, "p");
  EXPECT_EQ(leased->worker, "w");
  EXPECT_EQ(leased->lease_until, kNow + 60s);
  EXPECT_EQ(leased->attempts, 0u);
  EXPECT_EQ(get(1), leased);
  EXPECT_EQ(ready(), Ids{2});
  EXPECT_EQ(counts(), (StateCounts{.ready = 1, .running = 1}));
  EXPECT_EQ(must(store_->list({.state = JobState::running})).size(), 1u);
  EXPECT_EQ(must(store_->list({.state = JobState::ready})).size(), 1u);
}

TEST_P(StoreTest, AWorkerNeedNoName) {
  put({});
  const auto leased = must(store_->lease({{1, ++token_, kNow + 60s, ""}}));
  EXPECT_EQ(leased.at(0).value().worker, "");
  must(store_->renew({{1, token_, kNow + 90s, ""}}));
  EXPECT_EQ(state(1), JobState::running);
}

TEST_P(StoreTest, OnlyWhatWaitsCanBeLeased) {
  put({});
  put({.waits_for = {1}});
  EXPECT_EQ(lease(9), std::nullopt);
  EXPECT_EQ(lease(2), std::nullopt);
  EXPECT_TRUE(lease(1));
  EXPECT_EQ(lease(1), std::nullopt);
  const auto twice = must(store_->lease({{1, 100, kNow, "a"}, {1, 101, kNow, "b"}}));
  EXPECT_EQ(twice[0], std::nullopt);
  put({});
  const auto both = must(store_->lease({{3, 102, kNow, "a"}, {3, 103, kNow, "b"}}));
  EXPECT_EQ(both[0]->worker, "a");
  EXPECT_EQ(both[1], std::nullopt);
}

TEST_P(StoreTest, ALeaseOfAJobWithALeaseTimeOfItsOwnLastsSoLong) {
  put({.lease_time = 5s});
  put({});
  const auto lease = [&](JobId id, WallTime at) {
    return must(store_->lease({{.id = id, .token = ++token_, .until = kNow + 60s, .at = at}}))[0].value().lease_until;
  };
  EXPECT_EQ(lease(1, kNow), kNow + 5s);
  EXPECT_EQ(get(1)->lease_until, kNow + 5s);
  EXPECT_EQ(lease(2, kNow), kNow + 60s);
  put({.lease_time = 5s});
  EXPECT_EQ(lease(3, {}), kNow + 60s) << "who asks does not say when that was";
}

TEST_P(StoreTest, ALeaseTimeIsWithinItsBounds) {
  EXPECT_EQ(put_error({.lease_time = -1ms}), Errc::invalid_input);
  EXPECT_EQ(put_error({.lease_time = kLongestLease + 1ms}), Errc::invalid_input);
  EXPECT_EQ(put_error({.lease_time = kLongestLease}), Errc{});
}

TEST_P(StoreTest, AJobThatIsAskedForByItsIdIsLeasedThoughItIsDelayedOrBuried) {
  const auto by_id = [&](JobId id) {
    return must(store_->lease(
        {{.id = id, .token = ++token_, .until = kNow + 60s, .worker = "w", .at = kNow, .by_id = true}}))[0];
  };
  const JobId late = put({.due_at = kNow + 1h}).id;
  EXPECT_TRUE(by_id(late));
  EXPECT_EQ(settle({.id = late, .outcome = Outcome::release}).again->shelf, Shelf::ready) << "as if it had been kicked";
  const JobId buried = put({.unique = "u"}).id;
  run(buried, Outcome::bury);
  const auto leased = by_id(buried);
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->attempts, 0u);
  EXPECT_EQ(leased->tally, (JobTally{.runs = 2, .buries = 1, .kicks = 1}));
  EXPECT_EQ(by_id(buried), std::nullopt) << "it runs";
  settle({.id = buried, .token = leased->token, .outcome = Outcome::bury});
  put({.unique = "u"});
  EXPECT_EQ(by_id(buried), std::nullopt) << "another has taken its unique name";
  EXPECT_EQ(state(buried), JobState::buried);
  const JobId waits = put({.waits_for = {late}}).id;
  EXPECT_EQ(by_id(waits), std::nullopt);
  EXPECT_EQ(by_id(99), std::nullopt);
}

TEST_P(StoreTest, TokensOnlyGrow) {
  put({});
  put({});
  must(store_->lease({{1, 10, kNow, "w"}}));
  EXPECT_EQ(tried(store_->lease({{2, 10, kNow, "w"}})).error().code, Errc::invalid_input);
  EXPECT_EQ(tried(store_->lease({{2, 11, kNow, "w"}, {2, 11, kNow, "w"}})).error().code, Errc::invalid_input);
  EXPECT_EQ(state(2), JobState::ready);
}

TEST_P(StoreTest, TellsTheLastTokenAndTakesNoneThatAJsonReaderCannotHold) {
  put({});
  put({});
  EXPECT_EQ(store_->last_token(), 0u);
  must(store_->lease({{1, 10, kNow, "w"}}));
  EXPECT_EQ(store_->last_token(), 10u);
  EXPECT_EQ(error_of(store_->lease({{2, kMostToken + 1, kNow, "w"}})), Errc::invalid_input);
  EXPECT_EQ(store_->last_token(), 10u);
  EXPECT_TRUE(must(store_->lease({{2, kMostToken, kNow, "w"}})).at(0));
}

TEST_P(StoreTest, AStaleTokenSettlesNothingAndPutsNoFollowUp) {
  put({});
  lease(1);
  const SettleReply reply = settle({.id = 1, .token = token_ + 1, .follow_ups = {{{.queue = "q"}, false}}});
  EXPECT_FALSE(reply.settled);
  EXPECT_TRUE(reply.follow_ups.empty());
  EXPECT_EQ(state(1), JobState::running);
  EXPECT_TRUE(settle({.id = 1}).settled);
  EXPECT_FALSE(settle({.id = 1}).settled);
}

TEST_P(StoreTest, ASettlementWhoseFollowUpIsRefusedKeepsNoOtherBack) {
  for (int i = 0; i < 4; ++i) put({});
  must(store_->lease({{1, 1, kNow, "w"}, {2, 2, kNow, "w"}, {3, 3, kNow, "w"}, {4, 4, kNow, "w"}}));
  const PutRequest good{{.queue = "q", .payload = "good"}, false};
  const auto replies = must(store_->settle({
      {.id = 1, .token = 1, .at = kNow, .follow_ups = {good, {{.queue = "q", .batch = 77}, false}}},
      {.id = 2, .token = 2, .at = kNow, .follow_ups = {good}},
      {.id = 3, .token = 3, .at = kNow, .follow_ups = {{{.queue = ""}, false}}},
      {.id = 4, .token = 9, .at = kNow, .follow_ups = {{{.queue = ""}, false}}},  // stale: no one asks what follows it
  }));
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_FALSE(replies[0].settled);
  EXPECT_EQ(replies[0].refused.value().code, Errc::invalid_input);
  EXPECT_TRUE(replies[1].settled);
  EXPECT_FALSE(replies[2].settled);
  EXPECT_EQ(replies[2].refused.value().code, Errc::invalid_input);
  EXPECT_FALSE(replies[3].settled);
  EXPECT_FALSE(replies[3].refused);
  EXPECT_EQ(counts(), (StateCounts{.ready = 1, .running = 3}));
  EXPECT_EQ(must(store_->counts()).at(0).ended, 1u);
  // The lease goes on, and settles.
  EXPECT_TRUE(settle({.id = 1, .token = 1, .outcome = Outcome::retry}).settled);
  EXPECT_EQ(put({}).id, 6u);
}

TEST_P(StoreTest, ASettlementThatIsRefusedLeavesNoMemoryOfAFailure) {
  const JobId id = put({}).id;
  const JobId completion = put({.waits_for = {id}}).id;
  ASSERT_TRUE(lease(id));
  const SettleReply refused =
      settle({.id = id, .outcome = Outcome::cancel, .follow_ups = {{{.queue = "q", .batch = 77}}}});
  ASSERT_TRUE(refused.refused);
  EXPECT_EQ(state(id), JobState::running);
  EXPECT_EQ(get(completion)->pending, 1u);
  ASSERT_TRUE(settle({.id = id, .outcome = Outcome::done}).settled);
  EXPECT_EQ(put({.waits_for = {id}}).outcome, PutOutcome::added);
}

TEST_P(StoreTest, AKickForgetsTheLeasesThatRanOut) {
  const JobId id = put({}).id;
  run(id, Outcome::expire);
  run(id, Outcome::bury);
  EXPECT_EQ(get(id)->expiries, 1u);
  change({.id = id, .kind = ChangeKind::kick});
  EXPECT_EQ(get(id)->expiries, 0u);
  EXPECT_EQ(get(id)->attempts, 0u);
}

TEST_P(StoreTest, IdsThatCannotBeAreNotThere) {
  const JobId beyond = ~JobId{0};
  EXPECT_EQ(change({.id = beyond, .kind = ChangeKind::erase}).outcome, ChangeOutcome::not_found);
  EXPECT_FALSE(settle({.id = beyond, .token = 1}).settled);
  EXPECT_FALSE(get(beyond));
  EXPECT_EQ(must(store_->find_waiting({beyond})).at(0), std::nullopt);
}

TEST_P(StoreTest, ACancellationOfAJobThatRunsIsKeptUntilItsRunEnds) {
  must(store_->open_queue("q", {.keep_cancelled = 1h}));
  for (const Outcome outcome : {Outcome::retry, Outcome::bury, Outcome::cancel, Outcome::release, Outcome::expire}) {
    const JobId id = put({}).id;
    lease(id);
    EXPECT_FALSE(get(id)->cancel_asked);
    EXPECT_EQ(change({.id = id, .kind = ChangeKind::cancel, .error = "no more"}).outcome, ChangeOutcome::asked);
    EXPECT_EQ(state(id), JobState::running);
    EXPECT_TRUE(get(id)->cancel_asked);
    EXPECT_TRUE(must(store_->list({.state = JobState::running})).at(0).cancel_asked);
    const SettleReply reply = settle({.id = id, .outcome = outcome, .due_at = kNow + 1h, .error = "failed"});
    EXPECT_TRUE(reply.settled);
    EXPECT_EQ(reply.outcome, Outcome::cancel);
    EXPECT_FALSE(reply.again);
    EXPECT_EQ(state(id), JobState::cancelled);
    EXPECT_EQ(get(id)->error, "no more");
    EXPECT_FALSE(get(id)->cancel_asked);
  }
  EXPECT_EQ(counts(), (StateCounts{.cancelled = 5}));
}

TEST_P(StoreTest, AJobThatIsDoneAllTheSameIsDone) {
  for (const bool keep : {false, true}) {
    const JobId id = put({}).id;
    lease(id);
    EXPECT_EQ(change({.id = id, .kind = ChangeKind::cancel}).outcome, ChangeOutcome::asked);
    const SettleReply reply = settle({.id = id, .outcome = Outcome::done, .keep = keep, .result = "42"});
    EXPECT_EQ(reply.outcome, Outcome::done);
    EXPECT_EQ(get(id).has_value(), keep);
    if (keep) EXPECT_EQ(get(id)->error, "");
  }
  EXPECT_EQ(must(store_->counts()).at(0).ended, 2u);
}

TEST_P(StoreTest, ACancelledRunTakesItsDependantsAlong) {
  put({});
  put({.waits_for = {1}});
  lease(1);
  change({.id = 1, .kind = ChangeKind::cancel});
  EXPECT_EQ(ids(settle({.id = 1, .outcome = Outcome::retry}).cancelled), Ids{2});
}

TEST_P(StoreTest, ARenewalMovesTheEndAndAStaleOneIsPassedOver) {
  put({});
  lease(1);
  must(store_->renew({{1, token_, kNow + 2h, "w"}, {1, 99, kNow + 9h, "x"}, {7, 1, kNow, "y"}}));
  EXPECT_EQ(get(1)->lease_until, kNow + 2h);
  EXPECT_EQ(get(1)->worker, "w");
  EXPECT_TRUE(settle({.id = 1}).settled);
}

TEST_P(StoreTest, OutputIsTheResultOfARunUntilItsEndGivesAnother) {
  put({});
  lease(1);
  must(store_->write_output(1, token_, "so far"));
  EXPECT_EQ(get(1)->result, "so far");
  must(store_->write_output(1, token_ + 1, "of a stranger"));
  must(store_->write_output(7, token_, "of nobody"));
  EXPECT_EQ(get(1)->result, "so far");
  settle({.id = 1, .outcome = Outcome::expire});
  EXPECT_EQ(get(1)->result, "so far");
  must(store_->write_output(1, token_, "too late"));
  EXPECT_EQ(get(1)->result, "so far");
  lease(1);
  must(store_->write_output(1, token_, ""));
  EXPECT_EQ(get(1)->result, "");
  must(store_->write_output(1, token_, "again"));
  settle({.id = 1, .outcome = Outcome::bury, .result = "all of it"});
  EXPECT_EQ(get(1)->result, "all of it");
}

TEST_P(StoreTest, AJobThatIsDoneHasNoOutputButItsResult) {
  put({});
  put({});
  for (const JobId id : {1, 2}) {
    lease(id);
    must(store_->write_output(id, token_, "so far"));
  }
  settle({.id = 1, .token = token_ - 1, .keep = true});
  settle({.id = 2, .outcome = Outcome::cancel, .keep = true});
  EXPECT_EQ(get(1)->result, "");
  EXPECT_EQ(get(2)->result, "so far");
}

TEST_P(StoreTest, DoneDeletesTheRecordOrKeepsItUntilItIsPruned) {
  put({});
  put({});
  EXPECT_TRUE(run(1).settled);
  EXPECT_EQ(get(1), std::nullopt);
  lease(2);
  settle({.id = 2, .keep = true, .result = "r"});
  EXPECT_EQ(get(2)->state, JobState::done);
  EXPECT_EQ(get(2)->result, "r");
  EXPECT_EQ(get(2)->ended_at, kNow + 1s);
  EXPECT_EQ(must(store_->counts())[0], (QueueCounts{1, {.done = 1}, 2}));
  EXPECT_EQ(must(store_->prune(1, JobState::done, kNow + 1s, 10)), 0u);
  EXPECT_EQ(must(store_->prune(1, JobState::done, kNow + 2s, 10)), 1u);
  EXPECT_EQ(get(2), std::nullopt);
  EXPECT_EQ(tried(store_->prune(1, JobState::ready, kNow, 1)).error().code, Errc::invalid_input);
}

// What one call says of many jobs, against the same said of each alone.
TEST_P(StoreTest, JobsThatArePutLeasedAndSettledTogetherAreAsTheyWouldBeAlone) {
  constexpr JobId kJobs = 90;
  const auto job = [](JobId i, const char* queue) {
    NewJob job{.queue = queue, .key = i % 5 == 0 ? "k" : "", .payload = std::string(i * 100, 'x')};
    if (i % 11 == 0) job.name = queue + std::to_string(i);
    if (i % 13 == 0) job.unique = "u" + std::to_string(i);
    return job;
  };
  const auto end = [](JobId id, JobId i, std::uint64_t token) {
    constexpr Outcome kOutcomes[] = {Outcome::done, Outcome::done, Outcome::done, Outcome::bury, Outcome::release};
    Settlement settlement{.id = id, .token = token, .outcome = kOutcomes[i % 7 < 3 ? 0 : i % 5], .at = kNow + 1s};
    settlement.keep = i % 10 < 7;
    if (i % 17 == 0) settlement.result = "r";
    if (i > 60) settlement.at += std::chrono::milliseconds{i % 2};
    if (i % 19 == 0) settlement.follow_ups.push_back({{.queue = "f", .payload = "after"}});
    return settlement;
  };
  // Odd ones first, then some once more that were given back.
  const auto order = [] {
    Ids order;
    for (JobId i = 1; i <= kJobs; i += 2) order.push_back(i);
    for (JobId i = kJobs; i > 0; i -= 2) order.push_back(i);
    return order;
  }();

  std::vector<PutRequest> puts;
  for (JobId i = 1; i <= kJobs; ++i) puts.push_back({job(i, "q")});
  must(store_->put(std::move(puts), kNow));
  for (JobId i = 1; i <= kJobs; ++i) EXPECT_EQ(put(job(i, "alone")).id, kJobs + i);
  for (int round = 0; round < 2; ++round) {
    std::vector<LeaseRequest> leases;
    std::vector<Settlement> ends;
    for (const JobId i : order) {
      leases.push_back({i, ++token_, kNow + 60s, "w"});
      ends.push_back(end(i, i + round, token_));
    }
    const auto leased = must(store_->lease(std::move(leases)));
    const auto settled = must(store_->settle(std::move(ends)));
    for (std::size_t n = 0; n < order.size(); ++n) {
      auto alone = lease(kJobs + order[n]);
      ASSERT_EQ(leased[n].has_value(), alone.has_value()) << order[n];
      if (alone) EXPECT_EQ(leased[n]->payload, alone->payload);
      EXPECT_EQ(settled[n].settled, settle(end(kJobs + order[n], order[n] + round, token_)).settled) << order[n];
    }
  }
  for (JobId i = 1; i <= kJobs; ++i) {
    auto together = get(i), alone = get(kJobs + i);
    ASSERT_EQ(together.has_value(), alone.has_value()) << i;
    if (!alone) continue;
    if (!alone->name.empty()) alone->name = together->name;
    alone->id = i;
    alone->queue = "q";
    EXPECT_EQ(together, alone) << i;
  }
  const auto all = must(store_->counts());
  EXPECT_EQ(all[0].counts, all[1].counts);
  EXPECT_EQ(all[0].ended, all[1].ended);
  const auto pruned = must(store_->prune(1, JobState::done, kNow + 1h, 1000));
  EXPECT_GT(pruned, 20u);
  EXPECT_EQ(pruned, must(store_->prune(2, JobState::done, kNow + 1h, 1000)));
  EXPECT_EQ(must(store_->list({.queue = "q", .state = JobState::done})).size(), 0u);
  EXPECT_EQ(must(store_->counts())[0].counts, must(store_->counts())[1].counts);
}

TEST_P(StoreTest, RetryCountsTheAttemptAndComesBackWhenItIsDue) {
  put({.priority = 1});
  lease(1);
  const auto later =
      settle({.id = 1, .outcome = Outcome::retry, .due_at = kNow + 1min, .priority = 4, .error = "no", .worker = "w"});
  EXPECT_EQ(later.again, (WaitingJob{1, 1, "", 4, kNow + 1min, 1, 0, Shelf::delayed}));
  EXPECT_EQ(get(1)->error, "no");
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::delayed, .limit = 9}))), Ids{1});
  lease(1);
  EXPECT_EQ(settle({.id = 1, .outcome = Outcome::retry, .due_at = kNow}).again->shelf, Shelf::ready);
  EXPECT_EQ(must(store_->history(1)),
            (std::vector<Attempt>{{1, kNow + 1s, "retry", "no", "w"}, {2, kNow + 1s, "retry", "", ""}}));
}

TEST_P(StoreTest, ReleaseIsAsIfItHadNotBeenLeasedAndExpireCounts) {
  put({.priority = 3}, true);
  EXPECT_EQ(run(1, Outcome::release).again, (WaitingJob{1, 1, "", 3, {}, 0, 0, Shelf::set_aside}));
  EXPECT_TRUE(must(store_->history(1)).empty());
  EXPECT_EQ(run(1, Outcome::expire).again, (WaitingJob{1, 1, "", 3, {}, 1, 1, Shelf::set_aside}));
  EXPECT_EQ(must(store_->history(1)).at(0).outcome, "lease expired");
}

TEST_P(StoreTest, ReleaseAndBuryMayChangeThePriority) {
  put({.priority = 3}, true);
  lease(1);
  EXPECT_EQ(settle({.id = 1, .outcome = Outcome::release, .priority = -7}).again,
            (WaitingJob{1, 1, "", -7, {}, 0, 0, Shelf::set_aside}));
  lease(1);
  EXPECT_EQ(settle({.id = 1, .outcome = Outcome::release, .due_at = kNow + 1min, .priority = 5}).again,
            (WaitingJob{1, 1, "", 5, kNow + 1min, 0, 0, Shelf::delayed}));
  lease(1);
  settle({.id = 1, .outcome = Outcome::bury, .priority = 9});
  EXPECT_EQ(get(1)->priority, 9);
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::kick}).job->priority, 9);
}

TEST_P(StoreTest, WhatHasBecomeOfAJobsRunsIsCounted) {
  must(store_->open_queue("q", {.keep_done = 1h}));
  put({});
  run(1, Outcome::release);
  run(1, Outcome::expire);
  run(1, Outcome::bury);
  EXPECT_EQ(get(1)->tally, (JobTally{.runs = 3, .timeouts = 1, .releases = 1, .buries = 1}));
  change({.id = 1, .kind = ChangeKind::kick});
  EXPECT_EQ(get(1)->attempts, 0u);
  EXPECT_EQ(get(1)->tally, (JobTally{.runs = 3, .timeouts = 1, .releases = 1, .buries = 1, .kicks = 1}));
  EXPECT_EQ(lease(1)->tally.runs, 4u);
  settle({.id = 1, .keep = true});
  EXPECT_EQ(get(1)->tally.runs, 4u);
}

TEST_P(StoreTest, BuriedJobsStayUntilKickedAndThenBeginAnew) {
  put({});
  lease(1);
  settle({.id = 1, .outcome = Outcome::bury, .error = "bad"});
  EXPECT_EQ(get(1)->state, JobState::buried);
  EXPECT_EQ(get(1)->attempts, 1u);
  EXPECT_EQ(get(1)->error, "bad");
  const ChangeReply kicked = change({.id = 1, .kind = ChangeKind::kick});
  EXPECT_EQ(kicked.job, (WaitingJob{1, 1, "", 0, {}, 0, 0, Shelf::ready}));
  EXPECT_EQ(get(1)->ended_at, WallTime{});
}

TEST_P(StoreTest, TheLastTwentyFailedAttemptsAreKept) {
  put({});
  for (int i = 0; i < 25; ++i) run(1, Outcome::retry);
  const auto history = must(store_->history(1));
  ASSERT_EQ(history.size(), 20u);
  EXPECT_EQ(history.front().number, 6u);
  EXPECT_EQ(history.back().number, 25u);
  run(1);
  EXPECT_TRUE(must(store_->history(1)).empty());
}

TEST_P(StoreTest, FollowUpsArePutWithTheEndAndMayTakeItsUniqueName) {
  put({.unique = "u"});
  lease(1);
  const SettleReply reply = settle(
      {.id = 1, .follow_ups = {{{.queue = "q", .unique = "u", .waits_for = {1}}, false}, {{.queue = "r"}, false}}});
  ASSERT_EQ(reply.follow_ups.size(), 2u);
  EXPECT_EQ(reply.follow_ups[0].outcome, PutOutcome::added);
  EXPECT_EQ(reply.follow_ups[0].job.shelf, Shelf::ready);
  EXPECT_EQ(reply.follow_ups[1].job.queue, 2u);
}

// --- jobs that wait for others ---------------------------------------------------------------------------------------

TEST_P(StoreTest, AJobWaitsUntilAllItWaitsForHaveEnded) {
  put({});
  put({});
  put({.waits_for = {1, 2, 2}});
  EXPECT_EQ(get(3)->pending, 2u);
  EXPECT_EQ(state(3), JobState::delayed);
  EXPECT_EQ(must(store_->waits_for(3, 9)), (Ids{1, 2}));
  EXPECT_EQ(must(store_->waits_for(3, 1)), Ids{1});
  EXPECT_EQ(ready(), (Ids{1, 2}));
  EXPECT_TRUE(run(1).released.empty());
  const SettleReply last = run(2);
  ASSERT_EQ(last.released.size(), 1u);
  EXPECT_EQ(last.released[0].id, 3u);
  EXPECT_EQ(last.released[0].shelf, Shelf::ready);
  EXPECT_EQ(ready(), Ids{3});
}

TEST_P(StoreTest, AReleasedJobThatIsNotDueIsDelayed) {
  put({});
  put({.due_at = kNow + 1h, .waits_for = {1}});
  EXPECT_TRUE(must(store_->read_shelf(1, {.shelf = Shelf::delayed, .limit = 9})).empty());
  EXPECT_EQ(run(1).released.at(0).shelf, Shelf::delayed);
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::delayed, .limit = 9}))), Ids{2});
}

TEST_P(StoreTest, JobsThatHaveEndedOrWereDeletedAreNotWaitedFor) {
  put({});
  put({});
  run(1);
  run(2, Outcome::bury);
  EXPECT_EQ(put({.waits_for = {1, 2}}).job.shelf, Shelf::ready);
}

TEST_P(StoreTest, AFailureCancelsThoseThatWaitAndThoseThatWaitForThemUnlessTheyRunAnyway) {
  put({});
  put({.waits_for = {1}});
  put({.waits_for = {2}});
  put({.waits_for = {1}, .if_failed = DependencyPolicy::run});
  put({.waits_for = {1, 3}, .if_failed = DependencyPolicy::run});
  const SettleReply reply = run(1, Outcome::bury);
  EXPECT_EQ(ids(reply.cancelled), (Ids{2, 3}));
  EXPECT_EQ(ids(reply.released), (Ids{4, 5}));
  EXPECT_EQ(get(2), std::nullopt);  // the queue keeps none
  EXPECT_EQ(counts(), (StateCounts{.ready = 2, .buried = 1}));
}

TEST_P(StoreTest, CancelledDependantsAreKeptWhereTheQueueKeepsCancelledJobs) {
  QueueConfig config;
  config.keep_cancelled = 1h;
  must(store_->open_queue("q", config));
  put({});
  put({.waits_for = {1}});
  EXPECT_EQ(ids(change({.id = 1, .kind = ChangeKind::erase}).cancelled), Ids{2});
  EXPECT_EQ(get(2)->state, JobState::cancelled);
  EXPECT_EQ(get(2)->error, "job 1, which it waited for, was deleted");
  EXPECT_EQ(get(2)->pending, 0u);
}

TEST_P(StoreTest, ReleasedDependantsStayReleasedWhenABuriedJobIsKicked) {
  put({});
  put({.waits_for = {1}, .if_failed = DependencyPolicy::run});
  run(1, Outcome::bury);
  change({.id = 1, .kind = ChangeKind::kick});
  EXPECT_EQ(state(2), JobState::ready);
  EXPECT_TRUE(run(1).released.empty());
}

TEST_P(StoreTest, ABatchsCompletionWaitsForAllOfItsJobs) {
  put({});
  EXPECT_EQ(put({.batch = 1}).outcome, PutOutcome::added);
  put({.batch = 1});
  EXPECT_EQ(get(1)->pending, 2u);
  EXPECT_EQ(lease(1), std::nullopt);
  // One that follows joins before its forerunner is told to have ended.
  lease(2);
  const SettleReply reply = settle({.id = 2, .follow_ups = {{{.queue = "q", .batch = 1}, false}}});
  EXPECT_TRUE(reply.released.empty());
  run(3);
  EXPECT_EQ(ids(run(4).released), Ids{1});
  lease(1);
  EXPECT_EQ(put_error({.batch = 1}), Errc::invalid_input);  // too late
}

TEST_P(StoreTest, AJobOfABatchCannotWaitForTheBatch) {
  put({});
  put({.waits_for = {1}});
  EXPECT_EQ(put_error({.waits_for = {1}, .batch = 1}), Errc::invalid_input);
  EXPECT_EQ(put_error({.waits_for = {2}, .batch = 1}), Errc::invalid_input);
  EXPECT_EQ(get(1)->pending, 0u);
}

TEST_P(StoreTest, LongChainsAreCancelledWithoutRecursion) {
  put({});
  std::vector<PutRequest> chain;
  for (JobId id = 1; id < 5'000; ++id) chain.push_back({{.queue = "q", .waits_for = {id}}, false});
  must(store_->put(chain, kNow));
  EXPECT_EQ(run(1, Outcome::cancel).cancelled.size(), 4'999u);
  EXPECT_EQ(counts(), StateCounts{});
}

// --- changes ---------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, ChangesAreJudgedByState) {
  put({});
  put({.due_at = kNow + 1h});
  put({.waits_for = {1}});
  put({});
  lease(4);
  const auto outcome = [&](JobId id, ChangeKind kind) { return change({.id = id, .kind = kind}).outcome; };
  for (const ChangeKind kind :
       {ChangeKind::cancel, ChangeKind::kick, ChangeKind::set_priority, ChangeKind::set_due, ChangeKind::erase}) {
    EXPECT_EQ(outcome(99, kind), ChangeOutcome::not_found);
    if (kind != ChangeKind::cancel) EXPECT_EQ(outcome(4, kind), ChangeOutcome::running);
  }
  EXPECT_EQ(outcome(1, ChangeKind::kick), ChangeOutcome::wrong_state);
  EXPECT_EQ(outcome(3, ChangeKind::kick), ChangeOutcome::wrong_state);
  EXPECT_EQ(outcome(3, ChangeKind::set_due), ChangeOutcome::wrong_state);
  EXPECT_EQ(outcome(3, ChangeKind::set_priority), ChangeOutcome::changed);
  EXPECT_EQ(outcome(2, ChangeKind::kick), ChangeOutcome::changed);
  EXPECT_EQ(state(2), JobState::ready);
  EXPECT_EQ(outcome(2, ChangeKind::cancel), ChangeOutcome::changed);
  EXPECT_EQ(state(2), JobState::cancelled);
  EXPECT_EQ(outcome(2, ChangeKind::cancel), ChangeOutcome::wrong_state);
  EXPECT_EQ(outcome(2, ChangeKind::set_priority), ChangeOutcome::wrong_state);
  EXPECT_EQ(outcome(2, ChangeKind::erase), ChangeOutcome::changed);
  EXPECT_EQ(get(2), std::nullopt);
}

TEST_P(StoreTest, SetDueMovesBetweenTheShelves) {
  put({});
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::set_due, .due_at = kNow + 1h}).job,
            (WaitingJob{1, 1, "", 0, kNow + 1h, 0, 0, Shelf::delayed}));
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::set_due, .due_at = kNow}).job->shelf, Shelf::ready);
}

TEST_P(StoreTest, ShelveMovesReadyAndDueJobsAndPassesOverTheRest) {
  put({});
  put({.due_at = kNow + 1s});
  put({.waits_for = {1}});
  put({});
  lease(4);
  must(store_->shelve({1, 2, 3, 4, 99}, Shelf::set_aside));
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::set_aside, .after = {}, .limit = 9}, ""))), (Ids{1, 2}));
  EXPECT_EQ(state(2), JobState::ready);
  must(store_->shelve({2}, Shelf::ready));
  EXPECT_EQ(ready(), Ids{2});
  EXPECT_EQ(tried(store_->shelve({1}, Shelf::delayed)).error().code, Errc::invalid_input);
}

// --- windows ---------------------------------------------------------------------------------------------------------

TEST_P(StoreTest, LoadsReadyJobsByRankAndThenById) {
  for (const std::int32_t priority : {1, 3, 2, 3, -7, 2}) put({.priority = priority});
  EXPECT_EQ(ready(), (Ids{2, 4, 3, 6, 1, 5}));
  EXPECT_EQ(ready({}, 2), (Ids{2, 4}));
  EXPECT_EQ(ready({3, 4}, 2), (Ids{3, 6}));
  EXPECT_EQ(ready({2, 3}), (Ids{6, 1, 5}));
  lease(6);
  EXPECT_EQ(ready({2, 3}, 1), Ids{1});
  EXPECT_EQ(must(store_->count_before(1, {2, 6}, 99)), 3u);
  EXPECT_EQ(must(store_->count_before(1, {-9, 0}, 99)), 5u);
  EXPECT_EQ(must(store_->count_before(1, {-9, 0}, 2)), 2u);
  EXPECT_EQ(tried(store_->read_shelf(1, {.shelf = Shelf::waiting, .limit = 1})).error().code, Errc::invalid_input);
  EXPECT_EQ(tried(store_->read_shelf(2, {.after = {}, .limit = 1})).error().code, Errc::invalid_input);
}

TEST_P(StoreTest, AgeingRanksByAge) {
  QueueConfig config;
  config.ageing = 10s;
  must(store_->open_queue("q", config));
  put({.priority = 5});
  must(store_->put({{{.queue = "q", .priority = 9}, false}}, kNow + 100s));
  must(store_->put({{{.queue = "q", .priority = 16}, false}}, kNow + 100s));
  EXPECT_EQ(ready(), (Ids{3, 1, 2}));
  EXPECT_EQ(get(2)->priority, 9);
}

TEST_P(StoreTest, LoadsJobsSetAsideByKey) {
  for (const char* key : {"b", "a", "b", "", "c"}) put({.key = key, .priority = 1}, true);
  put({.key = "d"});
  lease(5);
  EXPECT_EQ(must(store_->keys_set_aside(1, std::nullopt, 9)), (std::vector<std::string>{"", "a", "b"}));
  EXPECT_EQ(must(store_->keys_set_aside(1, "", 9)), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(must(store_->keys_set_aside(1, "a", 1)), (std::vector<std::string>{"b"}));
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::set_aside, .after = {}, .limit = 9}, "b"))), (Ids{1, 3}));
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::set_aside, .after = {1, 1}, .limit = 9}, "b"))), Ids{3});
  EXPECT_EQ(must(store_->count_before(1, {1, 3}, 9, "b")), 1u);
  EXPECT_EQ(ready(), Ids{6});
}

TEST_P(StoreTest, LoadsDelayedJobsByTime) {
  for (const auto seconds : {3s, 1s, 2s, 1s}) put({.due_at = kNow + seconds});
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::delayed, .limit = 9}))), (Ids{2, 4, 3, 1}));
  EXPECT_EQ(ids(must(store_->read_shelf(1, {.shelf = Shelf::delayed, .due_after = {kNow + 1s, 2}, .limit = 2}))),
            (Ids{4, 3}));
}

TEST_P(StoreTest, ListsByQueueStateKeyAndId) {
  put({.key = "a", .payload = "p"});
  put({.queue = "r", .key = "a"});
  put({.key = "b"});
  run(3, Outcome::bury);
  const auto listed = [&](JobFilter filter) {
    Ids found;
    for (const JobRecord& record : must(store_->list(filter))) found.push_back(record.id);
    return found;
  };
  EXPECT_EQ(listed({}), (Ids{1, 2, 3}));
  EXPECT_EQ(listed({.queue = "q"}), (Ids{1, 3}));
  EXPECT_EQ(listed({.queue = "none"}), Ids{});
  EXPECT_EQ(listed({.state = JobState::buried}), Ids{3});
  EXPECT_EQ(listed({.queue = "q", .state = JobState::buried}), Ids{3});
  EXPECT_EQ(listed({.key = "a"}), (Ids{1, 2}));
  EXPECT_EQ(listed({.after = 1, .limit = 1}), Ids{2});
  EXPECT_EQ(must(store_->list({.payloads = false})).at(0).payload, "");
}

// --- requests with a key ---------------------------------------------------------------------------------------------

TEST_P(StoreTest, ARequestWithAKeyIsDoneOnceAndAnsweredAlike) {
  OnceRequest request{.key = {"k", "d"}, .now = kNow};
  request.puts.emplace_back(PutRequest{.job = {.name = "n", .queue = "q"}});
  request.puts.emplace_back(std::unexpected(Error{Errc::refused, "full"}));
  request.puts.emplace_back(PutRequest{.job = {.queue = "q", .waits_for = {77}}});
  request.puts.emplace_back(PutRequest{.job = {.name = "n", .queue = "q"}});
  const OnceReply first = must(store_->once(request));
  EXPECT_EQ(first.how, Repetition::first);
  EXPECT_EQ(first.puts.at(0)->job.id, 1u);
  const OnceReply again = must(store_->once(request));
  EXPECT_EQ(again.how, Repetition::repeated);
  for (const OnceReply& reply : {first, again}) {
    ASSERT_EQ(reply.puts.size(), 4u);
    EXPECT_EQ(reply.puts[0]->outcome, PutOutcome::added);
    EXPECT_EQ(reply.puts[0]->id, 1u);
    EXPECT_EQ(reply.puts[1].error().message, "full");
    EXPECT_EQ(reply.puts[2].error().code, Errc::invalid_input);
    EXPECT_EQ(reply.puts[3]->outcome, PutOutcome::kept);
  }
  EXPECT_EQ(counts().ready, 1u);
  request.key.digest = "another";
  EXPECT_EQ(must(store_->once(request)).how, Repetition::mismatch);
  EXPECT_EQ(counts().ready, 1u);
}

TEST_P(StoreTest, SettlementsAndChangesWithAKeyAreDoneOnce) {
  for (int i = 0; i < 4; ++i) put({});
  for (JobId id = 1; id <= 3; ++id) lease(id);
  OnceRequest request{.key = {"k", "d"}, .now = kNow};
  request.settlements.push_back({.id = 1, .token = 1, .follow_ups = {{.job = {.queue = "q"}}}});
  request.settlements.push_back({.id = 2, .token = 77});
  request.settlements.push_back(
      {.id = 3, .token = 3, .outcome = Outcome::bury, .follow_ups = {{.job = {.queue = "q", .batch = 99}}}});
  request.settlements.push_back({.id = 2, .token = 2, .outcome = Outcome::release});
  request.refused = {{}, {}, {}, Error{Errc::too_large, "a follow-up"}};
  request.changes.push_back({.id = 4, .kind = ChangeKind::set_priority, .at = kNow, .priority = 5});
  request.changes.push_back({.id = 99, .kind = ChangeKind::erase, .at = kNow});
  for (const Repetition how : {Repetition::first, Repetition::repeated}) {
    const OnceReply reply = must(store_->once(request));
    EXPECT_EQ(reply.how, how);
    EXPECT_TRUE(reply.settlements.at(0).settled);
    EXPECT_EQ(reply.settlements[0].follow_ups.at(0).id, 5u);
    EXPECT_FALSE(reply.settlements.at(1).settled);
    EXPECT_EQ(reply.settlements.at(2).refused.value().code, Errc::invalid_input);
    EXPECT_EQ(reply.settlements.at(3).refused.value().message, "a follow-up");
    EXPECT_EQ(reply.changes.at(0).outcome, ChangeOutcome::changed);
    EXPECT_EQ(reply.changes.at(1).outcome, ChangeOutcome::not_found);
  }
  EXPECT_EQ(get(4)->priority, 5);
  EXPECT_EQ(state(3), JobState::running) << "its settlement was refused";
  EXPECT_EQ(state(2), JobState::ready);
}

TEST_P(StoreTest, ARequestThatIsRefusedWholeMayBeTriedAgain) {
  OnceRequest request{.key = {"k", "d"}, .now = kNow, .refusal = Refusal::whole};
  request.puts.emplace_back(PutRequest{.job = {.queue = "q"}});
  request.puts.emplace_back(PutRequest{.job = {.queue = "q", .waits_for = {2}}});
  EXPECT_EQ(error_of(store_->once(request)), Errc::invalid_input);
  EXPECT_TRUE(must(store_->queues()).empty());
  request.puts.pop_back();
  EXPECT_EQ(must(store_->once(request)).how, Repetition::first);
}

TEST_P(StoreTest, WhoOnlyLooksForARequestDoesNothing) {
  OnceRequest request{.key = {"k", "d"}, .now = kNow, .only_look = true};
  request.puts.emplace_back(PutRequest{.job = {.queue = "q"}});
  EXPECT_EQ(must(store_->once(request)).how, Repetition::first);
  EXPECT_TRUE(must(store_->queues()).empty());
  request.only_look = false;
  EXPECT_EQ(must(store_->once(request)).how, Repetition::first);
  request.only_look = true;
  EXPECT_EQ(must(store_->once(request)).puts.at(0)->id, 1u);
  EXPECT_EQ(error_of(store_->once({.key = {"", "d"}})), Errc::invalid_input);
  EXPECT_EQ(error_of(store_->once({.key = {"k", std::string(65, 'd')}})), Errc::invalid_input);
  EXPECT_EQ(error_of(store_->once({.key = {std::string(513, 'k'), "d"}})), Errc::invalid_input);
}

TEST_P(StoreTest, RequestsAreForgottenByAgeAndByNumber) {
  const auto come = [&](std::string key, WallTime at) {
    return must(store_->once({.key = {std::move(key), "d"}, .now = at})).how;
  };
  for (int i = 0; i < 5; ++i) come(std::to_string(i), kNow + i * 1s);
  EXPECT_EQ(must(store_->prune_requests(kNow + 2s, 100, 1)), 1u);
  EXPECT_EQ(must(store_->prune_requests(kNow + 2s, 100, 100)), 1u);
  EXPECT_EQ(come("1", kNow + 9s), Repetition::first);
  EXPECT_EQ(come("2", kNow + 9s), Repetition::repeated);
  EXPECT_EQ(must(store_->prune_requests({}, 2, 100)), 2u);
  EXPECT_EQ(come("4", kNow + 9s), Repetition::repeated);
  EXPECT_EQ(come("3", kNow + 9s), Repetition::first);
}

TEST_P(StoreTest, RemembersOneNumberAName) {
  EXPECT_EQ(must(store_->recall("epoch")), std::nullopt);
  must(store_->remember("epoch", -5));
  must(store_->remember("epoch", -6));
  EXPECT_EQ(must(store_->recall("epoch")), std::optional<std::int64_t>(-6));
}

TEST_P(StoreTest, ACancelledCallTakesEffectAllTheSame) {
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(store_->put({{{.queue = "q"}, false}}, kNow));
    co_await yield_now();
    co_await yield_now();
    task.cancel();
    co_await yield_now();
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(counts().ready, 1u);
}

TEST_P(StoreTest, TheQueueIsToldOfEachThatIsCancelledWithAnother) {
  put({});
  put({.queue = "r", .waits_for = {1}});
  put({.queue = "s", .waits_for = {2}});
  EXPECT_EQ(change({.id = 1, .kind = ChangeKind::cancel}).cancelled, (std::vector<CancelledJob>{{2, 2}, {3, 3}}));
}

// --- jobs that reach those of some queues alone ----------------------------------------------------------------------

TEST_P(StoreTest, AJobNamesNoneThatIsOutOfItsReach) {
  const auto within = std::make_shared<const JobReach>("ann", [](std::string_view queue) { return queue == "q"; });
  put({.name = "theirs", .queue = "r"});                      // 1
  put({.name = "batch", .queue = "r", .due_at = kNow + 1h});  // 2
  put({.id = 100, .name = "ours"});
  EXPECT_EQ(put({.name = "theirs", .within = within}).outcome, PutOutcome::taken);
  EXPECT_EQ(put({.id = 1, .within = within}).outcome, PutOutcome::taken);
  EXPECT_EQ(put({.name = "theirs", .within = within}).id, 0u) << "nothing of it is told";
  EXPECT_EQ(put({.name = "ours", .within = within}).outcome, PutOutcome::kept);
  EXPECT_EQ(put({.id = 100, .within = within}).outcome, PutOutcome::kept);
  EXPECT_EQ(put_error({.waits_for = {1}, .within = within}), Errc::not_found);
  EXPECT_EQ(put_error({.waits_for = {99'999}, .within = within}), Errc::not_found) << "as one that there never was";
  EXPECT_EQ(put_error({.batch = 2, .within = within}), Errc::not_found);
  EXPECT_EQ(put_error({.batch = 99, .within = within}), Errc::not_found) << "as one that is not there";
  EXPECT_EQ(get(2)->pending, 0u);
  EXPECT_EQ(put({.waits_for = {100}, .within = within}).outcome, PutOutcome::added);
  EXPECT_EQ(put({.batch = 100, .within = within}).outcome, PutOutcome::added);
  const StateCounts before = counts();
  EXPECT_EQ(error_of(store_->put({{.job = {.queue = "q", .within = within}},
                                  {.job = {.name = "theirs", .queue = "q", .within = within}}},
                                 kNow, Refusal::whole)),
            Errc::conflict);
  EXPECT_EQ(counts(), before) << "all of it or nothing";
}

TEST_P(StoreTest, AFollowUpNamesNoneThatIsOutOfItsReach) {
  const auto within =
      std::make_shared<const JobReach>(JobReach{.has = [](std::string_view queue) { return queue == "q"; }});
  put({.name = "theirs", .queue = "r"});
  put({});
  lease(2);
  for (const NewJob& job :
       {NewJob{.name = "theirs", .queue = "q", .within = within},
        NewJob{.queue = "q", .waits_for = {1}, .within = within}, NewJob{.queue = "q", .batch = 1, .within = within}}) {
    const SettleReply reply = settle({.id = 2, .follow_ups = {{.job = job}}});
    EXPECT_FALSE(reply.settled);
    EXPECT_TRUE(reply.refused);
  }
  EXPECT_EQ(state(2), JobState::running);
  EXPECT_EQ(get(1)->pending, 0u);
}

// --- jobs that wait for one that has failed --------------------------------------------------------------------------

TEST_P(StoreTest, AJobThatWaitsForOneThatHasFailedIsCancelledAtOnce) {
  must(store_->open_queue("q", {.keep_cancelled = 1h}));
  put({});
  run(1, Outcome::bury);
  const PutReply reply = put({.waits_for = {1}});
  EXPECT_EQ(reply.outcome, PutOutcome::cancelled);
  EXPECT_EQ(reply.id, 2u);
  ASSERT_NE(reply.cancelled, nullptr);
  EXPECT_EQ(reply.cancelled->why, "job 1, which it waited for, was buried");
  const auto record = get(2);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, JobState::cancelled);
  EXPECT_EQ(record->error, reply.cancelled->why);
  EXPECT_EQ(record->ended_at, kNow);
  EXPECT_EQ(record->pending, 0u);
  EXPECT_EQ(counts(), (StateCounts{.buried = 1, .cancelled = 1}));
  EXPECT_EQ(put({.waits_for = {2}}).outcome, PutOutcome::cancelled) << "and so on down the line";
}

TEST_P(StoreTest, WithThePolicyRunItWaitsForEndsWhateverTheyWere) {
  put({});
  run(1, Outcome::bury);
  EXPECT_EQ(put({.waits_for = {1}, .if_failed = DependencyPolicy::run}).job.shelf, Shelf::ready);
  put({});
  EXPECT_EQ(put({.waits_for = {1, 3}, .if_failed = DependencyPolicy::run}).job.shelf, Shelf::waiting);
}

TEST_P(StoreTest, OneFailureAmongManyCancels) {
  put({});
  put({});
  run(2, Outcome::bury);
  EXPECT_EQ(put({.waits_for = {1, 2}}).outcome, PutOutcome::cancelled);
  EXPECT_TRUE(run(1).released.empty()) << "nothing waits for it";
  EXPECT_EQ(counts(), (StateCounts{.buried = 1}));
}

TEST_P(StoreTest, AFailureIsKnownWhenItsRecordIsGone) {
  for (int i = 0; i < 6; ++i) put({});
  change({.id = 1, .kind = ChangeKind::cancel, .keep = false});
  change({.id = 2, .kind = ChangeKind::erase});
  run(3, Outcome::cancel);
  run(4, Outcome::bury);
  change({.id = 4, .kind = ChangeKind::erase});
  run(5, Outcome::bury);
  must(store_->prune(1, JobState::buried, kNow + 1h, 10));
  lease(6);
  settle({.id = 6, .keep = true});
  change({.id = 6, .kind = ChangeKind::erase});
  const char* const why[] = {"cancelled", "deleted", "cancelled", "buried", "buried"};
  for (JobId id = 1; id <= 5; ++id) {
    const PutReply reply = put({.waits_for = {id}});
    ASSERT_NE(reply.cancelled, nullptr) << id;
    EXPECT_EQ(reply.cancelled->why, "job " + std::to_string(id) + ", which it waited for, was " + why[id - 1]);
  }
  EXPECT_EQ(put({.waits_for = {6}}).outcome, PutOutcome::added) << "it was done";
}

TEST_P(StoreTest, ThoseCancelledWithAnotherHaveFailedToo) {
  put({});
  put({.waits_for = {1}});
  run(1, Outcome::bury);
  EXPECT_EQ(get(2), std::nullopt);
  EXPECT_EQ(put({.waits_for = {2}}).cancelled->why, "job 2, which it waited for, was cancelled");
}

TEST_P(StoreTest, AFailureIsForgottenWhenItsIdIsUsedAgainOrOneOfTheSameRestFails) {
  put({});
  put({});
  change({.id = 1, .kind = ChangeKind::erase});
  change({.id = 2, .kind = ChangeKind::erase});
  put({.id = 1});
  run(1);
  EXPECT_EQ(put({.waits_for = {1}}).outcome, PutOutcome::added) << "it was done the second time";
  put({.id = 2 + kFailuresRemembered - 1});
  change({.id = 2 + kFailuresRemembered - 1, .kind = ChangeKind::erase});
  EXPECT_EQ(put({.waits_for = {2}}).outcome, PutOutcome::cancelled);
  put({.id = 2 + kFailuresRemembered});
  change({.id = 2 + kFailuresRemembered, .kind = ChangeKind::erase});
  EXPECT_EQ(put({.waits_for = {2}}).outcome, PutOutcome::added);
}

TEST_P(StoreTest, AJobThatIsKickedTakesItsFailureBack) {
  put({});
  run(1, Outcome::bury);
  change({.id = 1, .kind = ChangeKind::kick});
  EXPECT_EQ(put({.waits_for = {1}}).outcome, PutOutcome::added);
  EXPECT_EQ(run(1).released.size(), 1u);
}

TEST_P(StoreTest, ABatchIsToldOfAPartThatIsCancelledAtItsPut) {
  put({});
  run(1, Outcome::bury);
  put({.due_at = kNow + 1h});  // 2: would rather not run without all its parts
  put({.waits_for = {2}, .if_failed = DependencyPolicy::run});
  const PutReply reply = put({.waits_for = {1}, .batch = 2});
  EXPECT_EQ(reply.outcome, PutOutcome::cancelled);
  EXPECT_EQ(reply.cancelled->cancelled, (std::vector<CancelledJob>{{2, 1}}));
  EXPECT_EQ(ids(reply.cancelled->released), Ids{3});
  EXPECT_EQ(ready(), Ids{3});
  put({.if_failed = DependencyPolicy::run});  // 5: waits for ends
  const PutReply other = put({.waits_for = {1}, .batch = 5});
  EXPECT_EQ(ids(other.cancelled->released), Ids{5});
  EXPECT_EQ(ready(), (Ids{3, 5}));
  EXPECT_EQ(put_error({.waits_for = {1}, .batch = 2}), Errc::invalid_input) << "that one has ended";
}

TEST_P(StoreTest, ABatchOfWhichAPartHasFailedBeforeIsCancelled) {
  put({.name = "n"});
  run(1, Outcome::bury);
  const auto batch = must(store_->put(
      {{{.name = "n", .queue = "q"}}, {{.queue = "q"}}, {.job = {.queue = "q"}, .waits_for_those_before = true}},
      kNow));
  EXPECT_EQ(batch[0]->outcome, PutOutcome::kept);
  EXPECT_EQ(batch[1]->outcome, PutOutcome::added);
  EXPECT_EQ(batch[2]->outcome, PutOutcome::cancelled);
}

TEST_P(StoreTest, AUniqueNameIsFreeAgainWhenItsJobIsCancelledAtItsPut) {
  put({});
  run(1, Outcome::bury);
  EXPECT_EQ(put({.name = "n", .unique = "u", .waits_for = {1}}).outcome, PutOutcome::cancelled);
  EXPECT_EQ(put({.name = "n", .unique = "u"}).outcome, PutOutcome::added);
  must(store_->open_queue("kept", {.keep_cancelled = 1h}));
  const PutReply kept = put({.queue = "kept", .unique = "u", .waits_for = {1}});
  EXPECT_EQ(get(kept.id)->unique, "u");
  EXPECT_EQ(put({.queue = "kept", .unique = "u"}).outcome, PutOutcome::added);
}

TEST_P(StoreTest, AFollowUpOfAFailureThatWaitsForItIsCancelledWithIt) {
  put({});
  lease(1);
  const SettleReply reply =
      settle({.id = 1, .outcome = Outcome::bury, .follow_ups = {{{.queue = "q", .waits_for = {1}}}, {{.queue = "q"}}}});
  EXPECT_EQ(reply.follow_ups.at(0).outcome, PutOutcome::cancelled);
  EXPECT_EQ(reply.follow_ups.at(1).outcome, PutOutcome::added);
}

// --- ends in any order -----------------------------------------------------------------------------------------------

TEST_P(StoreTest, CallsUnderWayAreFinishedWhenTheStoreIsDestroyed) {
  auto body = [&]() -> Coro<void> {
    std::vector<Task<Result<std::vector<Result<PutReply>>>>> calls;
    for (int i = 0; i < 10; ++i) calls.push_back(loop_.create_task(store_->put({{{.queue = "q"}}}, kNow)));
    co_await yield_now();
    auto late = loop_.create_task(store_->put({{{.queue = "q"}}}, kNow));
    auto never_run = store_->list({});
    store_.reset();
    for (auto& call : calls) EXPECT_TRUE(co_await call);
    EXPECT_EQ((co_await late).error().code, Errc::cancelled) << "it had not begun";
    EXPECT_EQ((co_await std::move(never_run)).error().code, Errc::cancelled);
  };
  loop_.run_until_complete(body());
  store_ = std::move(*open_store("memory:"));
}

TEST_P(StoreTest, AfterItsCloseEveryCallAnswersCancelled) {
  put({});
  EXPECT_TRUE(store_->close());
  EXPECT_EQ(error_of(store_->put({{{.queue = "q"}}}, kNow)), Errc::cancelled);
  EXPECT_EQ(error_of(store_->get(1)), Errc::cancelled);
  EXPECT_EQ(error_of(store_->old_leases()), Errc::cancelled);
  EXPECT_EQ(store_->last_token(), 0u);
  EXPECT_TRUE(store_->close()) << "twice is as good as once";
}

TEST_P(StoreTest, ALookInSlicesFindsWhatAListDoes) {
  for (int i = 0; i < 40; ++i) put({.queue = i % 2 == 0 ? "even" : "odd", .key = i % 5 == 0 ? "five" : "k"});
  put({.id = 1'000'000, .queue = "even", .key = "five"});
  run(3);
  EXPECT_TRUE(lease(7));
  EXPECT_EQ(run(11, Outcome::bury).outcome, Outcome::bury);
  put({.queue = "odd", .due_at = kNow + 60s});
  using enum JobState;
  std::vector<JobFilter> filters = {{},
                                    {.queue = "odd"},
                                    {.key = "five"},
                                    {.queue = "even", .key = "five"},
                                    {.queue = "none"},
                                    {.key = "none"},
                                    {.state = running},
                                    {.state = buried},
                                    {.state = delayed},
                                    {.queue = "odd", .state = ready}};
  for (std::size_t i = 0, count = filters.size(); i < count; ++i) {
    filters.push_back(filters[i]);
    filters.back().newest_first = true;
  }
  for (const JobFilter& filter : filters) {
    JobFilter part = filter;
    part.most_looked = 7;
    part.limit = 4;
    std::vector<JobRecord> found;
    for (bool more = true; more;) {
      const JobSlice slice = must(store_->look(part));
      EXPECT_LE(slice.looked, 7u);
      EXPECT_LE(slice.jobs.size(), 4u);
      const bool gets_on = filter.newest_first ? part.after == 0 || slice.after < part.after : slice.after > part.after;
      EXPECT_TRUE(slice.is_last || gets_on);
      found.insert(found.end(), slice.jobs.begin(), slice.jobs.end());
      part.after = slice.after;
      more = !slice.is_last;
    }
    EXPECT_EQ(found, must(store_->list(filter)));
  }
  const JobSlice known = must(store_->look({.limit = 1}));
  EXPECT_EQ(known.newest, 1'000'001u);
  EXPECT_TRUE(must(store_->look({.after = known.newest, .up_to = known.newest})).is_last);
  EXPECT_EQ(must(store_->list({.after = 30, .up_to = 40})).size(), 10u);
}

TEST_P(StoreTest, AListGoesFromTheNewestJobDown) {
  for (int i = 0; i < 6; ++i) put({.queue = i % 2 == 0 ? "even" : "odd"});
  const auto ids_of = [&](JobFilter filter) {
    filter.newest_first = true;
    Ids found;
    for (const JobRecord& job : must(store_->list(std::move(filter)))) found.push_back(job.id);
    return found;
  };
  EXPECT_EQ(ids_of({}), (Ids{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(ids_of({.limit = 2}), (Ids{6, 5}));
  EXPECT_EQ(ids_of({.after = 5}), (Ids{4, 3, 2, 1}));
  EXPECT_EQ(ids_of({.queue = "odd", .after = 5, .up_to = 3}), (Ids{2}));
  EXPECT_EQ(ids_of({.after = 1}), Ids{});
  EXPECT_EQ(run(5, Outcome::bury).outcome, Outcome::bury);
  EXPECT_EQ(run(1, Outcome::bury).outcome, Outcome::bury);
  EXPECT_EQ(ids_of({.state = JobState::buried}), (Ids{5, 1}));
  EXPECT_TRUE(lease(2));
  EXPECT_EQ(ids_of({.state = JobState::running}).size(), 1u);
}

TEST_P(StoreTest, AListMayTakeThoseThatAreDueForReadyOnes) {
  put({.due_at = kNow + 10s});
  put({.due_at = kNow + 20s});
  put({});
  const auto ids_of = [&](JobState wanted, WallTime now) {
    Ids found;
    for (const JobRecord& job : must(store_->list({.state = wanted, .due_by = now}))) found.push_back(job.id);
    return found;
  };
  EXPECT_EQ(ids_of(JobState::ready, kNow + 15s), (Ids{1, 3}));
  EXPECT_EQ(ids_of(JobState::delayed, kNow + 15s), (Ids{2}));
  EXPECT_EQ(ids_of(JobState::ready, kNow), (Ids{3}));
}

TEST_P(StoreTest, ASliceEndsBehindSoManyBytesAndAListWithoutPayloadsHasNoResultsEither) {
  QueueConfig keeps;
  keeps.keep_done = 1h;
  must(store_->open_queue("q", keeps));
  for (int i = 0; i < 4; ++i) put({.payload = std::string(100, 'p')});
  EXPECT_TRUE(lease(1));
  settle({.id = 1, .outcome = Outcome::done, .keep = true, .result = std::string(1000, 'r')});
  JobSlice slice = must(store_->look({.most_bytes = 1'000}));
  EXPECT_EQ(slice.jobs.size(), 1u);
  EXPECT_FALSE(slice.is_last);
  slice = must(store_->look({.after = slice.after, .most_bytes = 150}));
  EXPECT_EQ(slice.jobs.size(), 2u);
  slice = must(store_->look({.payloads = false, .most_bytes = 1}));
  EXPECT_EQ(slice.jobs.size(), 4u) << "without them there are none";
  EXPECT_EQ(slice.jobs.at(0).result + slice.jobs.at(0).payload, "");
}

TEST_P(StoreTest, OneCallLeasesSoManyBytesAndLeavesTheRestAsTheyAre) {
  QueueConfig roomy;
  roomy.max_payload_bytes = 2 * kMostLeasedBytes;
  must(store_->open_queue("q", roomy));
  put({.payload = std::string(kMostLeasedBytes + 1, 'x')});
  put({.payload = std::string(kMostLeasedBytes / 2, 'y')});
  put({.payload = std::string(kMostLeasedBytes / 2, 'z')});
  put({});
  const auto asked = [&] {
    std::vector<LeaseRequest> leases;
    for (const JobId id : {1, 2, 3, 4}) leases.push_back({JobId(id), ++token_, kNow + 60s, "w"});
    return must(store_->lease(std::move(leases)));
  };
  auto leased = asked();
  EXPECT_EQ(leased.at(0).value().state, JobState::running) << "one, however large it is";
  for (const int left : {1, 2, 3}) EXPECT_TRUE(is_left_as_it_is(leased.at(left).value())) << left;
  EXPECT_EQ(ready(), (Ids{2, 3, 4}));
  EXPECT_EQ(store_->last_token(), token_) << "their tokens are spent";
  leased = asked();
  EXPECT_FALSE(leased.at(0));
  EXPECT_EQ(leased.at(1).value().payload.size() + leased.at(2).value().payload.size(), kMostLeasedBytes);
  EXPECT_EQ(leased.at(3).value().state, JobState::running) << "an empty one still fits";
  EXPECT_EQ(counts().running, 4u);
}

TEST_P(StoreTest, LoopsMayEndBeforeTheStoreThatOwesThemAnswers) {
  put({});
  const auto ask = [](Store& store, std::size_t jobs) -> Coro<void> {
    (void)co_await store.put(std::vector<PutRequest>(jobs, {{.queue = "q"}}), kNow);
  };
  for (int i = 0; i < 200; ++i) {
    // Each may come to live where the one before it was, and must not get its answers.
    VirtualBackend backend;
    EventLoop short_lived(backend);
    for (const std::size_t jobs : {1, 40, 40}) short_lived.create_task(ask(*store_, jobs));
    short_lived.run_once(TimePoint::min());
  }
  EXPECT_EQ(must(store_->counts()).at(0).counts.ready, 1u + 200u * 81u) << "what they asked for was done";
}

}  // namespace
}  // namespace argiope

// What every Store promises of schedules, one fact a test.
#include <string>
#include <vector>

#include "store/every_store_fixture.hpp"

namespace argiope {
namespace {

using enum PutScheduleOutcome;

class StoreSchedulesTest : public EveryStoreTest {
 protected:
  static PutSchedule schedule(std::string name, ConflictPolicy policy = ConflictPolicy::fail) {
    return {.name = std::move(name),
            .trigger = "every 1m",
            .definition = "do it",
            .place = {.next = kNow + 60s},
            .policy = policy};
  }
  PutScheduleReply put(PutSchedule wanted) { return must(store_->put_schedules({std::move(wanted)})).at(0); }
  ScheduleId add(std::string name) { return put(schedule(std::move(name))).id; }
  Errc put_error(PutSchedule wanted) { return error_of(store_->put_schedules({std::move(wanted)})); }
  std::optional<StoredSchedule> get(ScheduleId id) { return must(store_->load_schedules({id})).at(0); }
  std::vector<ScheduleRun> runs(ScheduleId id, std::size_t limit = kRunsKept) {
    return must(store_->schedule_runs(id, limit));
  }

  std::optional<ScheduleView> view(ScheduleLook look) { return must(store_->look_at_schedules({look})).at(0); }

  static PutRequest job(std::uint64_t run, std::string payload = "p") {
    PutRequest put;
    put.job.queue = "q";
    put.job.payload = std::move(payload);
    put.run = run;
    return put;
  }
  // As the schedule stands now, with one run begun.
  FireRequest step(ScheduleId id) {
    const StoredSchedule now = get(id).value();
    FireRequest request{.id = id, .version = now.version, .place = now.place};
    const std::uint64_t number = ++request.place.entries;
    ++request.place.fired;
    request.place.last = now.place.next;
    request.place.next = now.place.next + 60s;
    request.runs.push_back({.number = number,
                            .planned = now.place.next,
                            .last_planned = now.place.next,
                            .fired_at = now.place.next + 5ms});
    request.jobs.push_back(job(number));
    return request;
  }
  FireReply fire(FireRequest request) { return tried_fire(std::move(request)).value(); }
  JobId fired(ScheduleId id) { return fire(step(id)).jobs.at(0).id; }
  Result<FireReply> tried_fire(FireRequest request) { return must(store_->fire({std::move(request)}, kNow)).at(0); }
  Errc fire_error(FireRequest request) {
    const auto reply = tried_fire(std::move(request));
    return reply ? Errc{} : reply.error().code;
  }
  SettleReply end(JobId id, Settlement settlement) {
    EXPECT_TRUE(must(store_->lease({{id, ++token_, kNow + 60s, "w"}})).at(0));
    settlement.id = id;
    settlement.token = token_;
    if (settlement.at == WallTime{}) settlement.at = kNow + 70s;
    return must(store_->settle({std::move(settlement)})).at(0);
  }
  JobId put_job(NewJob wanted) {
    wanted.queue = "q";
    return must(store_->put({{std::move(wanted)}}, kNow)).at(0)->id;
  }
  std::optional<JobRecord> job_record(JobId id) { return must(store_->get(id)); }
};
INSTANTIATE_TEST_SUITE_P(Stores, StoreSchedulesTest, kEveryStore, name_of_store);

// --- put -------------------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, KeepsEverythingAScheduleIsPutWith) {
  const PutSchedule wanted{.name = std::string("n\0m", 3),
                           .trigger = "\xff trigger",
                           .definition = std::string("d\0", 2),
                           .place = {kNow + 1500ms, kNow - 1s, 3, 4, 99, true}};
  EXPECT_EQ(put(wanted), (PutScheduleReply{added, 1, 1}));
  const StoredSchedule expected{
      1, 1, wanted.name, wanted.trigger, wanted.definition, {kNow + 1500ms, kNow - 1s, 3, 4, 0, true}, 0};
  EXPECT_EQ(get(1), expected);
  EXPECT_EQ(must(store_->find_schedule(wanted.name)), expected);
  EXPECT_EQ(must(store_->schedules({})), std::vector{expected});
}

TEST_P(StoreSchedulesTest, AStepWhoseEntriesHaveJobsAlreadyIsRefusedWhole) {
  const ScheduleId id = add("a");
  FireRequest request = step(id);
  request.runs[0].job = 999;
  EXPECT_EQ(fire_error(request), Errc::invalid_input);
  EXPECT_EQ(get(id)->version, 1u);
  EXPECT_EQ(get(id)->active, 0u);
  EXPECT_TRUE(runs(id).empty());
}

TEST_P(StoreSchedulesTest, AStepMayCancelARunOfItsOwn) {
  const ScheduleId id = add("a");
  const JobId failed = put_job({});
  ASSERT_TRUE(must(store_->lease({{failed, ++token_, kNow + 60s, "w"}})).at(0));
  must(store_->settle({{.id = failed, .token = token_, .outcome = Outcome::bury, .at = kNow}}));
  FireRequest request = step(id);
  request.runs.push_back(request.runs[0]);
  ++request.runs[1].number;
  ++request.place.entries;
  request.jobs.push_back(job(request.runs[1].number));
  // The second is cancelled at its put, because of the one that failed, and the first, which waits for it, with it.
  request.jobs[1].job.batch = failed + 1;
  request.jobs[1].job.waits_for = {failed};
  const FireReply reply = fire(request);
  ASSERT_TRUE(reply.fired);
  EXPECT_EQ(reply.jobs.at(1).outcome, PutOutcome::cancelled);
  EXPECT_EQ(get(id)->active, 0u);
  const auto written = runs(id);
  ASSERT_EQ(written.size(), 2u);
  for (const ScheduleRun& run : written) EXPECT_EQ(run.outcome, RunOutcome::cancelled);
}

TEST_P(StoreSchedulesTest, AnEndThatIsRefusedLeavesNoOutput) {
  const ScheduleId id = add("a");
  const JobId run = fired(id);
  const SettleReply refused =
      end(run, {.outcome = Outcome::done, .result = "out", .follow_ups = {{{.queue = "q", .batch = 77}}}});
  ASSERT_TRUE(refused.refused);
  EXPECT_EQ(must(store_->schedule_output(id)), std::nullopt);
  EXPECT_EQ(runs(id).at(0).outcome, RunOutcome::running);
  EXPECT_EQ(get(id)->active, 1u);
}

TEST_P(StoreSchedulesTest, TimesAreKeptInMillisecondsAndNeverStaysNever) {
  PutSchedule wanted = schedule("a");
  wanted.place.next = WallTime::max();
  wanted.place.last = kNow + 1'234'567ns;
  put(wanted);
  EXPECT_EQ(get(1)->place.next, WallTime::max());
  EXPECT_EQ(get(1)->place.last, kNow + 1ms);
  wanted.name = "b";
  wanted.place.next = WallTime::min();
  put(wanted);
  EXPECT_EQ(get(2)->place.next, WallTime{});
}

TEST_P(StoreSchedulesTest, EmptyTextsAreTextsLikeOthers) {
  put({.name = "a"});
  EXPECT_EQ(get(1), (StoredSchedule{.id = 1, .version = 1, .name = "a"}));
}

TEST_P(StoreSchedulesTest, RefusesTextsThatAreTooLongAndAnEmptyNameAndThenDoesNothing) {
  PutSchedule wanted = schedule(std::string(513, 'n'));
  EXPECT_EQ(put_error(wanted), Errc::invalid_input);
  EXPECT_EQ(put_error(schedule("")), Errc::invalid_input);
  wanted = schedule("a");
  wanted.trigger.assign(kMostTriggerBytes + 1, 't');
  EXPECT_EQ(put_error(wanted), Errc::invalid_input);
  wanted = schedule("a");
  wanted.definition.assign(kMostDefinitionBytes + 1, 'd');
  EXPECT_EQ(put_error(wanted), Errc::invalid_input);
  EXPECT_FALSE(tried(store_->put_schedules({schedule("good"), schedule("")})));
  EXPECT_TRUE(must(store_->schedules({})).empty());
  wanted = schedule(std::string(512, 'n'));
  wanted.trigger.assign(kMostTriggerBytes, 't');
  wanted.definition.assign(kMostDefinitionBytes, 'd');
  put(wanted);
  EXPECT_EQ(get(1)->definition, wanted.definition);
}

TEST_P(StoreSchedulesTest, ASecondOfTheSameNameIsRefusedKeptOrReplacesTheFirst) {
  const ScheduleId id = add("a");
  EXPECT_EQ(put(schedule("a")), (PutScheduleReply{exists, id, 1}));
  EXPECT_EQ(put(schedule("a", ConflictPolicy::keep)), (PutScheduleReply{kept, id, 1}));
  PutSchedule other = schedule("a", ConflictPolicy::replace);
  other.trigger = "every 2m";
  other.definition = "do that";
  other.place = {.next = kNow + 120s, .paused = true};
  EXPECT_EQ(put(other), (PutScheduleReply{replaced, id, 2}));
  EXPECT_EQ(get(id), (StoredSchedule{id, 2, "a", "every 2m", "do that", {.next = kNow + 120s, .paused = true}, 0}));
  EXPECT_EQ(must(store_->schedules({})).size(), 1u);
}

TEST_P(StoreSchedulesTest, ItemsOfOneCallSeeThoseBeforeThem) {
  const auto replies = must(
      store_->put_schedules({schedule("a"), schedule("a"), schedule("b"), schedule("a", ConflictPolicy::replace)}));
  EXPECT_EQ(replies, (std::vector<PutScheduleReply>{{added, 1, 1}, {exists, 1, 1}, {added, 2, 1}, {replaced, 1, 2}}));
}

TEST_P(StoreSchedulesTest, AReplaceKeepsTheHistoryAndWhatRuns) {
  const ScheduleId id = add("a");
  const JobId first = fired(id);
  PutSchedule other = schedule("a", ConflictPolicy::replace);
  other.place.fired = 7;
  put(other);
  const StoredSchedule now = get(id).value();
  EXPECT_EQ(now.version, 3u);
  EXPECT_EQ(now.active, 1u);
  EXPECT_EQ(now.place.entries, 1u);
  EXPECT_EQ(now.place.fired, 7u);
  EXPECT_EQ(runs(id).at(0).job, first);
  fired(id);
  EXPECT_EQ(runs(id).at(0).number, 2u);
  EXPECT_EQ(get(id)->active, 2u);
}

TEST_P(StoreSchedulesTest, AChangeOfAnotherVersionThanItWasMadeFromDoesNothing) {
  const ScheduleId id = add("a");
  PutSchedule change = schedule("a");
  change.definition = "first";
  change.made_from = 1;
  EXPECT_EQ(put(change), (PutScheduleReply{replaced, id, 2}));
  change.definition = "second";
  EXPECT_EQ(put(change), (PutScheduleReply{stale, id, 2}));
  EXPECT_EQ(get(id)->definition, "first");
  change.made_from = 2;
  fired(id);
  EXPECT_EQ(put(change), (PutScheduleReply{stale, id, 3})) << "it has moved on since";
  change.name = "gone";
  EXPECT_EQ(put(change), (PutScheduleReply{stale, 0, 0}));
  EXPECT_EQ(must(store_->find_schedule("gone")), std::nullopt);
}

// --- erase and look --------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, WhatIsErasedIsGoneWithItsHistoryAndItsIdIsNotUsedAgain) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  add("b");
  EXPECT_EQ(must(store_->erase_schedules({id, 77, id})), 1u);
  EXPECT_EQ(get(id), std::nullopt);
  EXPECT_EQ(must(store_->find_schedule("a")), std::nullopt);
  EXPECT_TRUE(runs(id).empty());
  ASSERT_TRUE(job_record(job)) << "its jobs stay";
  EXPECT_EQ(must(store_->erase_schedules({2})), 1u);
  EXPECT_EQ(add("a"), 3u);
  EXPECT_TRUE(runs(3).empty());
}

TEST_P(StoreSchedulesTest, AJobOfAnErasedScheduleEndsAsOthersDo) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  must(store_->erase_schedules({id}));
  const SettleReply reply = end(job, {});
  EXPECT_TRUE(reply.settled);
  EXPECT_EQ(reply.ended_runs, (std::vector<EndedRun>{{id, 1, job, RunOutcome::done}}));
}

TEST_P(StoreSchedulesTest, ListsByIdInPages) {
  std::vector<PutSchedule> many;
  for (int i = 1; i <= 200; ++i) many.push_back(schedule("s" + std::to_string(i)));
  must(store_->put_schedules(std::move(many)));
  std::vector<ScheduleId> odd;
  for (ScheduleId id = 1; id <= 200; id += 2) odd.push_back(id);
  for (ScheduleId id = 65; id <= 128; ++id) odd.push_back(id);
  must(store_->erase_schedules(odd));
  std::vector<ScheduleId> ids;
  for (ScheduleId after = 0;;) {
    const auto page = must(store_->schedules({.after = after, .limit = 7}));
    for (const StoredSchedule& found : page) {
      ids.push_back(found.id);
      EXPECT_EQ(found.name, "s" + std::to_string(found.id));
    }
    if (page.size() < 7) break;
    after = ids.back();
  }
  std::vector<ScheduleId> expected;
  for (ScheduleId id = 2; id <= 200; id += 2) {
    if (id < 65 || id > 128) expected.push_back(id);
  }
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(must(store_->schedules({.after = 10'000})).size(), 0u);
  const auto bare = must(store_->schedules({.after = 198, .texts = false}));
  EXPECT_EQ(bare, (std::vector<StoredSchedule>{{.id = 200, .version = 1, .place = {.next = kNow + 60s}}}));
}

TEST_P(StoreSchedulesTest, LoadsThoseAskedForInTheOrderAskedFor) {
  add("a");
  add("b");
  const auto found = must(store_->load_schedules({2, 9, 1, 0, 2}));
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0]->name, "b");
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(found[2]->name, "a");
  EXPECT_FALSE(found[3]);
  EXPECT_EQ(found[4]->name, "b");
}

// --- fire ------------------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, AStepPutsItsJobWritesItsEntryAndMovesOn) {
  const ScheduleId id = add("a");
  const FireRequest request = step(id);
  const FireReply reply = fire(request);
  EXPECT_TRUE(reply.fired);
  EXPECT_EQ(reply.version, 2u);
  ASSERT_EQ(reply.jobs.size(), 1u);
  EXPECT_EQ(reply.jobs[0].outcome, PutOutcome::added);
  const StoredSchedule now = get(id).value();
  EXPECT_EQ(now.version, 2u);
  EXPECT_EQ(now.active, 1u);
  EXPECT_EQ(now.place, request.place);
  ScheduleRun entry = request.runs[0];
  entry.job = reply.jobs[0].id;
  EXPECT_EQ(runs(id), std::vector{entry});
  const JobRecord job = job_record(entry.job).value();
  EXPECT_EQ(job.schedule, id);
  EXPECT_EQ(job.run, 1u);
  EXPECT_EQ(job.payload, "p");
  EXPECT_EQ(job.created_at, kNow);
}

TEST_P(StoreSchedulesTest, AStaleStepDoesNothingAndTheOthersGoOn) {
  const ScheduleId a = add("a"), b = add("b");
  const FireRequest of_a = step(a), of_b = step(b);
  FireRequest of_none = of_b;
  of_none.id = 77;
  const auto replies = must(store_->fire({of_a, of_a, of_none, of_b}, kNow));
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_TRUE(replies[0]->fired);
  EXPECT_FALSE(replies[1]->fired) << "it has moved on in this very call";
  EXPECT_FALSE(replies[2]->fired);
  EXPECT_TRUE(replies[3]->fired);
  EXPECT_EQ(must(store_->counts()).at(0).counts.ready, 2u);
  put(schedule("a", ConflictPolicy::replace));
  const FireRequest before = [&] {
    auto made = step(a);
    --made.version;
    return made;
  }();
  EXPECT_FALSE(fire(before).fired);
  FireRequest gap = step(a);
  gap.place.entries = gap.runs[0].number = gap.jobs[0].run = 3;
  EXPECT_FALSE(fire(gap).fired);
  EXPECT_EQ(runs(a).size(), 1u);
}

TEST_P(StoreSchedulesTest, EntriesWithoutJobsSayWhatWasMissedOrSkipped) {
  const ScheduleId id = add("a");
  FireRequest request{.id = id, .version = 1, .place = {.next = kNow + 1h, .last = kNow, .missed = 5, .entries = 2}};
  const ScheduleRun missed{.number = 1,
                           .planned = kNow - 5h,
                           .last_planned = kNow - 2h,
                           .count = 4,
                           .fired_at = kNow,
                           .ended_at = kNow,
                           .outcome = RunOutcome::missed,
                           .error = "an hour late"};
  const ScheduleRun skipped{.number = 2,
                            .planned = kNow,
                            .last_planned = kNow,
                            .fired_at = kNow,
                            .ended_at = kNow,
                            .outcome = RunOutcome::skipped,
                            .error = "the run before it goes on"};
  request.runs = {missed, skipped};
  EXPECT_TRUE(fire(request).fired);
  EXPECT_EQ(runs(id), (std::vector{skipped, missed}));
  EXPECT_EQ(runs(id, 1), std::vector{skipped});
  EXPECT_EQ(get(id)->active, 0u);
}

TEST_P(StoreSchedulesTest, AStepMayWriteTheLastEntryAnewIfItWasNotRun) {
  const ScheduleId id = add("a");
  FireRequest first = step(id);
  first.jobs.clear();
  first.runs[0].outcome = RunOutcome::skipped;
  EXPECT_TRUE(fire(first).fired);

  FireRequest second = step(id);
  second.amended = runs(id).at(0);
  second.amended->count = 2;
  second.amended->last_planned = kNow + 120s;
  EXPECT_TRUE(fire(second).fired);
  ASSERT_EQ(runs(id).size(), 2u);
  EXPECT_EQ(runs(id)[0].number, 2u);
  EXPECT_EQ(runs(id)[1], *second.amended);

  // Neither one that runs, nor one before it.
  FireRequest third = step(id);
  third.amended = runs(id).at(0);
  EXPECT_EQ(fire_error(third), Errc::invalid_input);
  third.amended = runs(id).at(1);
  EXPECT_EQ(fire_error(third), Errc::invalid_input);
}

// Calls of one turn of the loop are one transaction.
TEST_P(StoreSchedulesTest, AStepSeesWhatWasPutAndErasedBeforeItInOneTransaction) {
  const ScheduleId id = add("a"), gone = add("b");
  FireRequest old_step = step(id), new_step = step(id), gone_step = step(gone);
  ++new_step.version;
  const auto replies = loop_.run_until_complete([&]() -> Coro<std::vector<Result<FireReply>>> {
    auto putting = loop_.create_task(store_->put_schedules({schedule("a", ConflictPolicy::replace)}));
    auto erasing = loop_.create_task(store_->erase_schedules({gone}));
    auto firing = loop_.create_task(store_->fire({old_step, new_step, gone_step}, kNow));
    EXPECT_TRUE(co_await putting);
    EXPECT_TRUE(co_await erasing);
    co_return value_or_throw(co_await firing);
  }());
  EXPECT_FALSE(replies.at(0)->fired);
  EXPECT_TRUE(replies.at(1)->fired);
  EXPECT_FALSE(replies.at(2)->fired);
  EXPECT_EQ(get(id)->version, 3u);
}

TEST_P(StoreSchedulesTest, AStepMayMoveOnWithoutEntries) {
  const ScheduleId id = add("a");
  EXPECT_TRUE(fire({.id = id, .version = 1, .place = {.next = WallTime::max(), .paused = true}}).fired);
  EXPECT_EQ(get(id)->place, (SchedulePlace{.next = WallTime::max(), .paused = true}));
  EXPECT_EQ(get(id)->version, 2u);
}

TEST_P(StoreSchedulesTest, TheLastTwentyEntriesAreKept) {
  const ScheduleId id = add("a");
  for (int i = 0; i < 27; ++i) fired(id);
  FireRequest request = step(id);
  for (int i = 0; i < 5; ++i) {
    request.runs.push_back({.number = ++request.place.entries, .outcome = RunOutcome::missed});
  }
  fire(request);
  const auto kept = runs(id, 100);
  ASSERT_EQ(kept.size(), kRunsKept);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].number, 33 - i);
  EXPECT_EQ(get(id)->active, 28u);
}

TEST_P(StoreSchedulesTest, AStepLongerThanTheHistoryLeavesItsLastEntries) {
  const ScheduleId id = add("a");
  FireRequest request{.id = id, .version = 1, .place = {.entries = 45}};
  for (std::uint64_t number = 1; number <= 45; ++number) {
    request.runs.push_back({.number = number});
    request.jobs.push_back(job(number));
  }
  const FireReply reply = fire(request);
  EXPECT_EQ(get(id)->active, 45u);
  EXPECT_EQ(runs(id).back().number, 26u);
  EXPECT_EQ(end(reply.jobs[0].id, {}).ended_runs.at(0).number, 1u);
  EXPECT_EQ(get(id)->active, 44u);
  EXPECT_EQ(runs(id).back().outcome, RunOutcome::running);
}

// --- one view --------------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, AViewTellsOfAllRunsThatGoOnHoweverManyEntriesHaveFollowed) {
  const ScheduleId id = add("a");
  std::vector<JobId> jobs;
  for (int i = 0; i < 50; ++i) jobs.push_back(fired(id));
  EXPECT_EQ(view({.id = id})->active_jobs, jobs);
  EXPECT_EQ(view({.id = id})->schedule, get(id));
  EXPECT_EQ(view({.id = id})->last_entry, runs(id).at(0));
  for (const int ended : {0, 1, 7, 29, 30, 31, 49}) end(jobs[static_cast<std::size_t>(ended)], {});
  for (const int ended : {49, 31, 30, 29, 7, 1, 0}) jobs.erase(jobs.begin() + ended);
  EXPECT_EQ(view({.id = id})->active_jobs, jobs);
  EXPECT_EQ(view({.id = id})->schedule.active, 43u);
  // Any part of them.
  for (const std::uint32_t left_out : {0u, 1u, 17u, 18u, 30u, 42u, 43u, 99u}) {
    for (const std::size_t most : {0uz, 1uz, 17uz, 18uz, 30uz, 99uz}) {
      const std::size_t there = jobs.size() - std::min<std::size_t>(left_out, jobs.size());
      const std::size_t taken = std::min(most, there);
      const std::vector<JobId> expected(jobs.begin() + static_cast<std::ptrdiff_t>(there - taken),
                                        jobs.begin() + static_cast<std::ptrdiff_t>(there));
      EXPECT_EQ(view({id, left_out, most})->active_jobs, expected) << left_out << " left out, at most " << most;
    }
  }
}

TEST_P(StoreSchedulesTest, AStepLongerThanTheHistoryForgetsNoRun) {
  const ScheduleId id = add("a");
  std::vector<JobId> jobs;
  for (int i = 0; i < 23; ++i) jobs.push_back(fired(id));
  const StoredSchedule now = get(id).value();
  FireRequest request{.id = id, .version = now.version, .place = now.place};
  for (int i = 0; i < 45; ++i) {
    request.runs.push_back({.number = ++request.place.entries, .planned = kNow + i * 1s});
    if (i % 3 == 0) {
      request.runs.back().outcome = RunOutcome::missed;
    } else {
      request.jobs.push_back(job(request.place.entries));
    }
  }
  for (const PutReply& put : fire(request).jobs) jobs.push_back(put.id);
  EXPECT_EQ(view({.id = id})->active_jobs, jobs);
  for (const JobId one : jobs) end(one, {});
  EXPECT_TRUE(view({.id = id})->active_jobs.empty());
  EXPECT_EQ(get(id)->active, 0u);
}

TEST_P(StoreSchedulesTest, ARunThatGoesOnIsFoundByItsNumberHoweverOld) {
  const ScheduleId id = add("a");
  FireRequest first = step(id);
  const ScheduleRun planned = first.runs[0];
  const JobId old = fire(first).jobs.at(0).id;
  for (int i = 0; i < 40; ++i) end(fired(id), {});
  const auto found = must(store_->schedule_run(id, 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->job, old);
  EXPECT_EQ(found->planned, planned.planned);
  EXPECT_EQ(found->fired_at, planned.fired_at);
  EXPECT_EQ(must(store_->schedule_run(id, 41)), runs(id).at(0));
  EXPECT_EQ(must(store_->schedule_run(id, 2)), std::nullopt) << "it has ended, and is not kept";
  EXPECT_EQ(must(store_->schedule_run(id, 0)), std::nullopt);
  EXPECT_EQ(must(store_->schedule_run(77, 1)), std::nullopt);
  FireRequest late = step(id);
  late.jobs[0].after_run = 1;
  EXPECT_EQ(must(store_->waits_for(fire(late).jobs.at(0).id, 9)), std::vector{old});
  end(old, {});
  EXPECT_EQ(must(store_->schedule_run(id, 1)), std::nullopt);
  must(store_->erase_schedules({id}));
  EXPECT_EQ(must(store_->schedule_run(id, 42)), std::nullopt);
}

TEST_P(StoreSchedulesTest, AViewOfWhatIsNotThereIsNone) {
  const ScheduleId id = add("a");
  const auto found = must(store_->look_at_schedules({{.id = 77}, {.id = id}, {.id = 0}}));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0]);
  EXPECT_TRUE(found[1]->active_jobs.empty());
  EXPECT_FALSE(found[1]->last_entry);
  EXPECT_FALSE(found[2]);
}

TEST_P(StoreSchedulesTest, ARefusedStepLeavesOlderRunsAsTheyWere) {
  const ScheduleId id = add("a");
  std::vector<JobId> jobs;
  for (int i = 0; i < 25; ++i) jobs.push_back(fired(id));
  FireRequest bad = step(id);
  bad.jobs[0].job.waits_for = {12345};
  EXPECT_EQ(fire_error(bad), Errc::invalid_input);
  EXPECT_EQ(view({.id = id})->active_jobs, jobs);
  EXPECT_EQ(runs(id).back().number, 6u);
}

TEST_P(StoreSchedulesTest, ARunThatComesAfterAnotherWaitsForItsJob) {
  const ScheduleId id = add("a");
  const JobId first = fired(id);
  FireRequest request = step(id);
  request.jobs[0].after_run = 1;
  request.runs.push_back({.number = ++request.place.entries});
  request.jobs.push_back(job(3));
  request.jobs[1].after_run = 2;
  const FireReply reply = fire(request);
  EXPECT_EQ(must(store_->waits_for(reply.jobs.at(0).id, 9)), std::vector{first});
  EXPECT_EQ(must(store_->waits_for(reply.jobs.at(1).id, 9)), std::vector{reply.jobs[0].id});
  end(first, {});
  FireRequest late = step(id);
  late.jobs[0].after_run = 1;
  EXPECT_EQ(fire(late).jobs.at(0).job.shelf, Shelf::ready) << "that one has ended";
}

TEST_P(StoreSchedulesTest, AStepMayPutJobsThatAreNoRuns) {
  const ScheduleId id = add("a");
  FireRequest request = step(id);
  request.jobs.insert(request.jobs.begin(), job(0, "besides"));
  const FireReply reply = fire(request);
  EXPECT_EQ(job_record(reply.jobs.at(0).id)->schedule, 0u);
  EXPECT_EQ(runs(id).at(0).job, reply.jobs.at(1).id);
  EXPECT_EQ(get(id)->active, 1u);
}

TEST_P(StoreSchedulesTest, ARunWhoseJobIsNotAddedIsSkipped) {
  const ScheduleId id = add("a");
  const JobId there = put_job({.name = "n"});
  FireRequest request = step(id);
  request.jobs[0].job.name = "n";
  const FireReply reply = fire(request);
  EXPECT_TRUE(reply.fired);
  EXPECT_EQ(reply.jobs.at(0).outcome, PutOutcome::kept);
  const ScheduleRun entry = runs(id).at(0);
  EXPECT_EQ(entry.outcome, RunOutcome::skipped);
  EXPECT_EQ(entry.job, there);
  EXPECT_EQ(entry.ended_at, entry.fired_at);
  EXPECT_EQ(get(id)->active, 0u);
  EXPECT_TRUE(end(there, {}).ended_runs.empty());
}

TEST_P(StoreSchedulesTest, StepsThatContradictThemselvesAreRefused) {
  const ScheduleId id = add("a");
  const FireRequest good = step(id);
  const auto refused = [&](auto spoil) {
    FireRequest request = good;
    spoil(request);
    EXPECT_EQ(fire_error(request), Errc::invalid_input);
  };
  refused([](FireRequest& r) { r.runs[0].number = 2; });
  refused([](FireRequest& r) { r.place.entries = 0; });
  refused([](FireRequest& r) { r.jobs.clear(); });
  refused([](FireRequest& r) { r.jobs.push_back(r.jobs[0]); });
  refused([](FireRequest& r) { r.runs[0].outcome = RunOutcome::missed; });
  refused([](FireRequest& r) { r.jobs[0].run = 9; });
  refused([](FireRequest& r) { r.jobs[0].after_run = 1; });
  refused([](FireRequest& r) { r.jobs[0].job.queue.clear(); });
  refused([](FireRequest& r) { r.jobs[0].job.waits_for = {12345}; });
  EXPECT_EQ(get(id)->version, 1u);
  EXPECT_TRUE(runs(id).empty());
  PutRequest alone = job(1);
  EXPECT_EQ(must(store_->put({alone}, kNow)).at(0).error().code, Errc::invalid_input) << "only steps have runs";
  EXPECT_TRUE(fire(good).fired);
}

TEST_P(StoreSchedulesTest, AStepThatIsRefusedHasDoneNothingAndTheOthersGoOn) {
  const ScheduleId a = add("a"), b = add("b");
  fired(a);
  const FireRequest of_a = step(a);
  FireRequest of_b = step(b);
  of_b.jobs[0].job.waits_for = {12345};
  const auto before = get(b);
  const auto replies = must(store_->fire({of_b, of_a, of_b}, kNow));
  EXPECT_EQ(replies[0].error().code, Errc::invalid_input);
  EXPECT_TRUE(replies[1]->fired);
  EXPECT_EQ(replies[2].error().code, Errc::invalid_input);
  EXPECT_EQ(get(b), before);
  EXPECT_EQ(runs(a).size(), 2u);
  EXPECT_TRUE(runs(b).empty());
  EXPECT_EQ(must(store_->counts()).at(0).counts.ready, 2u);
  EXPECT_FALSE(fire(of_a).fired) << "it has moved on";
}

TEST_P(StoreSchedulesTest, LongErrorsAreCutBetweenCharacters) {
  const ScheduleId id = add("a");
  FireRequest request{.id = id, .version = 1, .place = {.entries = 1}};
  const std::string front(kMostRunErrorBytes - 1, 'e');
  request.runs.push_back({.number = 1, .outcome = RunOutcome::missed, .error = front + "\xc3\xa9 and more"});
  fire(request);
  EXPECT_EQ(runs(id).at(0).error, front);
  const JobId job = fired(id);
  end(job, {.outcome = Outcome::bury, .error = front + "\xc3\xa9 and more"});
  EXPECT_EQ(runs(id).at(0).error, front);
}

// --- how runs end ----------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, TheEndOfAJobIsTheEndOfItsRun) {
  const ScheduleId id = add("a");
  const std::tuple<Outcome, RunOutcome, std::string> ends[] = {{Outcome::done, RunOutcome::done, "broken"},
                                                               {Outcome::bury, RunOutcome::failed, "broken"},
                                                               {Outcome::cancel, RunOutcome::cancelled, "broken"}};
  for (const auto& [outcome, expected, error] : ends) {
    for (const bool keep : {false, true}) {
      const JobId job = fired(id);
      const std::uint64_t number = get(id)->place.entries;
      const std::uint64_t version = get(id)->version;
      const SettleReply reply =
          end(job, {.outcome = outcome, .calendar_at = kNow + 5h, .keep = keep, .error = "broken"});
      EXPECT_EQ(reply.ended_runs, (std::vector<EndedRun>{{id, number, job, expected}}));
      const ScheduleRun entry = runs(id).at(0);
      EXPECT_EQ(entry.outcome, expected);
      EXPECT_EQ(entry.ended_at, kNow + 5h);
      EXPECT_EQ(entry.error, error);
      EXPECT_EQ(get(id)->active, 0u);
      EXPECT_EQ(get(id)->version, version);
      if (const auto kept = job_record(job)) EXPECT_EQ(kept->schedule + kept->run, 0u);
    }
  }
}

TEST_P(StoreSchedulesTest, ARunGoesOnWhileItsJobComesBack) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  for (const Outcome outcome : {Outcome::retry, Outcome::release, Outcome::expire}) {
    EXPECT_TRUE(end(job, {.outcome = outcome}).ended_runs.empty());
    EXPECT_EQ(runs(id).at(0).outcome, RunOutcome::running);
    EXPECT_EQ(get(id)->active, 1u);
    EXPECT_EQ(job_record(job)->run, 1u);
  }
  EXPECT_EQ(end(job, {}).ended_runs.size(), 1u);
}

TEST_P(StoreSchedulesTest, JobsThatAreCancelledOrErasedEndTheirRuns) {
  const ScheduleId id = add("a");
  for (const ChangeKind kind : {ChangeKind::cancel, ChangeKind::erase}) {
    const JobId job = fired(id);
    const ChangeReply reply =
        must(store_->change({{.id = job, .kind = kind, .at = kNow + 3s, .error = "not wanted"}})).at(0);
    ASSERT_EQ(reply.ended_runs.size(), 1u);
    EXPECT_EQ(reply.ended_runs[0].outcome, RunOutcome::cancelled);
    EXPECT_EQ(runs(id).at(0).outcome, RunOutcome::cancelled);
    EXPECT_EQ(runs(id).at(0).ended_at, kNow + 3s);
    EXPECT_EQ(runs(id).at(0).error, kind == ChangeKind::cancel ? "not wanted" : "");
    EXPECT_EQ(get(id)->active, 0u);
  }
}

TEST_P(StoreSchedulesTest, RunsThatAreCancelledWithTheOneTheyWaitForEndToo) {
  const ScheduleId a = add("a"), b = add("b");
  const JobId first = fired(a);
  FireRequest second = step(a);
  second.jobs[0].after_run = 1;
  const JobId waits = fire(second).jobs.at(0).id;
  FireRequest third = step(b);
  third.jobs[0].job.waits_for = {waits};
  const JobId last = fire(third).jobs.at(0).id;
  const SettleReply reply = end(first, {.outcome = Outcome::bury, .error = "broken"});
  EXPECT_EQ(reply.ended_runs, (std::vector<EndedRun>{{a, 1, first, RunOutcome::failed},
                                                     {a, 2, waits, RunOutcome::cancelled},
                                                     {b, 1, last, RunOutcome::cancelled}}));
  EXPECT_EQ(get(a)->active + get(b)->active, 0u);
  EXPECT_NE(runs(b).at(0).error.find("waited for"), std::string::npos);
}

TEST_P(StoreSchedulesTest, AJobThatIsKickedDoesNotCountAgain) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  end(job, {.outcome = Outcome::bury});
  must(store_->change({{.id = job, .kind = ChangeKind::kick, .at = kNow + 80s}}));
  EXPECT_EQ(get(id)->active, 0u);
  EXPECT_TRUE(end(job, {}).ended_runs.empty());
  EXPECT_EQ(runs(id).at(0).outcome, RunOutcome::failed);
  EXPECT_EQ(get(id)->active, 0u);
}

TEST_P(StoreSchedulesTest, AnEndThatIsRefusedWithItsFollowUpsHasNotEndedTheRun) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  must(store_->lease({{job, ++token_, kNow + 60s, "w"}}));
  Settlement settlement{.id = job, .token = token_, .at = kNow};
  settlement.follow_ups.push_back({.job = {.queue = "q", .waits_for = {12345}}});
  const auto replies = must(store_->settle({settlement}));
  EXPECT_FALSE(replies.at(0).settled);
  EXPECT_TRUE(replies.at(0).refused);
  EXPECT_EQ(get(id)->active, 1u);
  EXPECT_EQ(runs(id).at(0).outcome, RunOutcome::running);
  EXPECT_EQ(job_record(job)->run, 1u);
}

// --- outputs ---------------------------------------------------------------------------------------------------------

TEST_P(StoreSchedulesTest, TheLastOutputStaysThoughTheJobIsNotKept) {
  const ScheduleId id = add("a");
  EXPECT_EQ(must(store_->schedule_output(id)), std::nullopt);
  const JobId first = fired(id);
  end(first,
      {.outcome = Outcome::done, .calendar_at = kNow + 90s, .keep = false, .result = std::string("one\0\xff", 5)});
  EXPECT_FALSE(job_record(first));
  EXPECT_EQ(must(store_->schedule_output(id)),
            (ScheduleOutput{1, first, kNow + 90s, RunOutcome::done, "", std::string("one\0\xff", 5)}));
  // A run that prints nothing leaves it; one that fails has its own.
  end(fired(id), {.outcome = Outcome::done});
  EXPECT_EQ(must(store_->schedule_output(id))->run, 1u);
  const JobId third = fired(id);
  end(third, {.outcome = Outcome::bury, .result = "three", .error = "broken"});
  EXPECT_EQ(must(store_->schedule_output(id)),
            (ScheduleOutput{3, third, kNow + 70s, RunOutcome::failed, "broken", "three"}));
  EXPECT_EQ(must(store_->schedule_output(id + 1)), std::nullopt);
  EXPECT_EQ(must(store_->erase_schedules({id})), 1u);
  EXPECT_EQ(must(store_->schedule_output(id)), std::nullopt);
}

TEST_P(StoreSchedulesTest, ARunThatEndsAfterItsScheduleIsForgottenLeavesNoOutput) {
  const ScheduleId id = add("a");
  const JobId job = fired(id);
  must(store_->erase_schedules({id}));
  end(job, {.outcome = Outcome::done, .keep = true, .result = "late"});
  EXPECT_EQ(must(store_->schedule_output(id)), std::nullopt);
  EXPECT_EQ(job_record(job)->result, "late");
}

TEST_P(StoreSchedulesTest, WhatAFailedAttemptHasLeftStaysWithTheJob) {
  const JobId job = put_job({});
  end(job, {.outcome = Outcome::retry, .due_at = kNow, .result = "so far", .error = "broken"});
  EXPECT_EQ(job_record(job)->result, "so far");
  end(job, {.outcome = Outcome::bury, .result = "in the end", .error = "broken"});
  EXPECT_EQ(job_record(job)->result, "in the end");
}

}  // namespace
}  // namespace argiope

// Files of every version there has been are brought up to date, with all that is in them; files of later ones are
// refused.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <string>

#include "store/file_of_version_3.hpp"
#include "store/sqlite_store_fixture.hpp"

namespace argiope {
namespace {

class StoreMigrationTest : public SqliteStoreTest {
 protected:
  void set_meta(const char* name, std::uint64_t value) {
    run_sql(fmt::format("UPDATE meta SET value = {} WHERE name = '{}'", value, name).c_str());
  }
};

// As the sixth version of the schema was: jobs had no lease time of their own, and nothing was counted of their runs.
// As the fifth one was: no output of a schedule was kept. As the fourth one was: openings were counted, and
// of failed jobs nothing was known. As the third one was: of runs beyond the history nothing was known. As the second
// one was: indexes instead of tables of names and ended jobs. And as the first one was: no schedules either.
constexpr const char* kBackToVersion6 = R"sql(
  ALTER TABLE jobs DROP COLUMN lease_time;
  ALTER TABLE jobs DROP COLUMN tally;
  ALTER TABLE leases DROP COLUMN remote;
  ALTER TABLE queues DROP COLUMN erased;
  DROP TABLE requests;
  PRAGMA user_version = 6;
)sql";
constexpr const char* kFromVersion6ToVersion5 = "DROP TABLE schedule_outputs; PRAGMA user_version = 5;";
constexpr const char* kFromVersion6ToVersion4 = R"sql(
  DROP TABLE schedule_outputs;
  DROP TABLE failed_jobs;
  INSERT INTO meta VALUES ('epoch', 1);
  PRAGMA user_version = 4;
)sql";
constexpr const char* kFromVersion4ToVersion3 = "DROP TABLE older_runs; PRAGMA user_version = 3;";
constexpr const char* kFromVersion3ToVersion2 = R"sql(
  DROP TABLE unique_names; DROP TABLE names; DROP TABLE ended_jobs;
  CREATE UNIQUE INDEX jobs_unique ON jobs (queue_id, unique_name) WHERE unique_name IS NOT NULL AND state < 4;
  CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE name IS NOT NULL;
  CREATE INDEX jobs_ended ON jobs (queue_id, state, ended_at) WHERE state >= 4;
  UPDATE jobs SET flags = NULLIF(flags & 3, 0);
  PRAGMA user_version = 2;
)sql";
constexpr const char* kFromVersion2ToVersion1 = R"sql(
  DROP VIEW schedule_list; DROP VIEW schedule_history;
  DROP TABLE schedules; DROP TABLE places; DROP TABLE schedule_runs; DROP TABLE touched_schedules;
  ALTER TABLE jobs DROP COLUMN schedule_id;
  ALTER TABLE jobs DROP COLUMN run;
  DELETE FROM meta WHERE name = 'last_schedule';
  PRAGMA user_version = 1;
)sql";

TEST_F(StoreMigrationTest, AFileOfTheFirstVersionIsBroughtUpToDate) {
  auto owner = open();
  const JobId waits = put(*owner, {.due_at = kNow + 1h, .payload = std::string(20'000, 'p')});
  const JobId runs = put(*owner, {.name = "n", .unique = "u"});
  ASSERT_TRUE(lease(*owner, runs, 5));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion4);
  run_sql(kFromVersion4ToVersion3);
  run_sql(kFromVersion3ToVersion2);
  run_sql(kFromVersion2ToVersion1);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::older_version) << "a reader cannot";
  owner = open();
  EXPECT_EQ(ask(owner->get(waits))->value().payload.size(), 20'000u);
  EXPECT_EQ(state(*owner, runs), JobState::running);
  EXPECT_TRUE(settle(*owner, runs, 5));
  EXPECT_TRUE(ask(owner->schedules({}))->empty());
  const ScheduleId id = add_schedule(*owner, "a");
  EXPECT_EQ(id, 1u);
  const JobId fired = fire(*owner, id).jobs.at(0).id;
  ASSERT_TRUE(owner->close());
  owner = open();
  EXPECT_EQ(ask(owner->get(fired))->value().schedule, id);
  EXPECT_EQ(ask(owner->get(waits))->value().schedule, 0u);
}

TEST_F(StoreMigrationTest, NamesAndEndedJobsOfTheFirstVersionAreStillFound) {
  auto owner = open();
  const JobId unique = put(*owner, {.name = "first", .unique = "u"});
  const JobId buried = put(*owner, {.unique = "v"});
  const JobId plain = put(*owner);
  ASSERT_TRUE(lease(*owner, buried, 7));
  ASSERT_TRUE(settle(*owner, buried, 7, Outcome::bury));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion4);
  run_sql(kFromVersion4ToVersion3);
  run_sql(kFromVersion3ToVersion2);
  run_sql(kFromVersion2ToVersion1);
  owner = open();
  ASSERT_NE(owner, nullptr);
  EXPECT_EQ(ask(owner->find_name("first"))->value(), unique);
  EXPECT_EQ(put(*owner, {.unique = "u"}), unique);
  EXPECT_EQ(put(*owner, {.unique = "v"}), plain + 1) << "a buried job holds no unique name";
  EXPECT_EQ(ask(owner->list({.queue = "q", .state = JobState::buried}))->size(), 1u);
  ASSERT_TRUE(lease(*owner, unique, 8));
  ASSERT_TRUE(settle(*owner, unique, 8));
  EXPECT_EQ(put(*owner, {.name = "first", .unique = "u"}), plain + 2) << "its names went with it";
  const QueueId queue = ask(owner->queues())->at(0).id;
  EXPECT_EQ(*ask(owner->prune(queue, JobState::buried, kNow + 1s, 10)), 1u);
  EXPECT_FALSE(*ask(owner->get(buried)));
}

TEST_F(StoreMigrationTest, RunsOfAFileOfTheSecondVersionStillBelongToTheirSchedules) {
  auto owner = open();
  const ScheduleId id = add_schedule(*owner, "a");
  const JobId first = fire(*owner, id).jobs.at(0).id;
  const JobId second = fire(*owner, id).jobs.at(0).id;
  ASSERT_TRUE(lease(*owner, first, 1));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion4);
  run_sql(kFromVersion4ToVersion3);
  run_sql(kFromVersion3ToVersion2);
  owner = open();
  EXPECT_TRUE(settle(*owner, first, 1));
  ASSERT_TRUE(lease(*owner, second, 2));
  EXPECT_TRUE(settle(*owner, second, 2));
  EXPECT_EQ(schedule(*owner, id).active, 0u);
  EXPECT_EQ(last_run(*owner, id).outcome, RunOutcome::done);
}

TEST_F(StoreMigrationTest, WhoeverSharesAFileOfTheFirstVersionBringsItUpToDate) {
  put(*open());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion4);
  run_sql(kFromVersion4ToVersion3);
  run_sql(kFromVersion3ToVersion2);
  run_sql(kFromVersion2ToVersion1);
  auto other = open(StoreAccess::share);
  EXPECT_EQ(add_schedule(*other, "a"), 1u);
  EXPECT_EQ(state(*other, 1), JobState::ready);
}

TEST_F(StoreMigrationTest, RunsBeyondTheHistoryOfAnOlderVersionAreFoundAndCounted) {
  auto owner = open();
  const ScheduleId many = add_schedule(*owner, "many"), none = add_schedule(*owner, "none"),
                   one = add_schedule(*owner, "one");
  std::vector<JobId> jobs;
  for (int i = 0; i < 30; ++i) jobs.push_back(fire(*owner, many).jobs.at(0).id);
  const JobId only = fire(*owner, one).jobs.at(0).id;
  ASSERT_TRUE(lease(*owner, jobs[3], 5));
  ASSERT_TRUE(settle(*owner, jobs[3], 5));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion4);
  run_sql(kFromVersion4ToVersion3);
  run_sql("UPDATE places SET active = 7 WHERE schedule_id <> 1");  // counted wrong
  owner = open();
  jobs.erase(jobs.begin() + 3);
  const auto views = *ask(owner->look_at_schedules({{.id = many}, {.id = none}, {.id = one}}));
  EXPECT_EQ(views[0]->active_jobs, jobs);
  EXPECT_EQ(views[0]->schedule.active, 29u);
  EXPECT_TRUE(views[1]->active_jobs.empty());
  EXPECT_EQ(views[1]->schedule.active, 0u);
  EXPECT_EQ(views[2]->active_jobs, std::vector{only});
  EXPECT_EQ(views[2]->schedule.active, 1u);
}

TEST_F(StoreMigrationTest, AFileOfTheFifthVersionKeepsWhatItKnowsOfFailedJobsAndTakesOutputs) {
  auto owner = open();
  const ScheduleId id = add_schedule(*owner, "a");
  const JobId run = fire(*owner, id).jobs.at(0).id;
  const JobId failed = put(*owner);
  ASSERT_TRUE(lease(*owner, failed, 1));
  ASSERT_TRUE(settle(*owner, failed, 1, Outcome::bury));
  const QueueId queue = ask(owner->queues())->at(0).id;
  ASSERT_EQ(*ask(owner->prune(queue, JobState::buried, kNow + 1s, 10)), 1u);
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  run_sql(kFromVersion6ToVersion5);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::older_version) << "a reader cannot bring it up to date";
  owner = open();
  ASSERT_NE(owner, nullptr);
  EXPECT_EQ(*ask(owner->schedule_output(id)), std::nullopt);
  ASSERT_TRUE(lease(*owner, run, 2));
  ASSERT_TRUE(ask(owner->settle({{.id = run, .token = 2, .at = kNow, .result = "said"}}))->at(0).settled);
  EXPECT_EQ(ask(owner->schedule_output(id))->value().output, "said");
  const auto waits = ask(owner->put({{.job = {.queue = "q", .waits_for = {failed}}}}, kNow));
  EXPECT_EQ(waits->at(0)->outcome, PutOutcome::cancelled) << "though its record is gone, it is known to have failed";
  ASSERT_TRUE(owner->close());
  EXPECT_NE(open(StoreAccess::read), nullptr) << "now it is of the newest version";
}

TEST_F(StoreMigrationTest, JobsAndLeasesOfTheSixthVersionAreAsTheyWere) {
  auto owner = open();
  const JobId runs = put(*owner, {.name = "n"});
  const JobId waits = put(*owner, {.payload = std::string(20'000, 'p')});
  ASSERT_TRUE(lease(*owner, runs, 1));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion6);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::older_version) << "a reader cannot bring it up to date";
  owner = open();
  ASSERT_NE(owner, nullptr);
  const auto old = *ask(owner->old_leases());
  ASSERT_EQ(old.size(), 1u);
  EXPECT_FALSE(old[0].remote);
  EXPECT_EQ(ask(owner->get(waits))->value().lease_time, 0s);
  EXPECT_EQ(ask(owner->get(waits))->value().tally, JobTally{});
  EXPECT_EQ(ask(owner->get(waits))->value().payload.size(), 20'000u);
  EXPECT_TRUE(settle(*owner, runs, 1, Outcome::release));
  EXPECT_EQ(ask(owner->get(runs))->value().tally, (JobTally{.runs = 1, .releases = 1}));
  const JobId quick = put(*owner, {.lease_time = 1500us});
  EXPECT_EQ(ask(owner->get(quick))->value().lease_time, 2ms) << "in whole milliseconds, rounded up";
}

// --- the third version: tokens began at the number of the opening times 2^40 -----------------------------------------

TEST_F(StoreMigrationTest, AllThatIsInAFileOfTheThirdVersionIsThere) {
  run_sql(kFileOfVersion3);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::older_version) << "a reader cannot bring it up to date";
  auto owner = open();
  ASSERT_NE(owner, nullptr);
  EXPECT_EQ(state(*owner, 1), JobState::done);
  EXPECT_EQ(state(*owner, 2), JobState::delayed);
  EXPECT_EQ(state(*owner, 3), JobState::running);
  EXPECT_EQ(state(*owner, 4), JobState::ready);
  EXPECT_EQ(state(*owner, 5), JobState::buried);
  EXPECT_EQ(*ask(owner->waits_for(6, 10)), Ids{3});
  EXPECT_EQ(ask(owner->find_name("n"))->value(), 2u);
  EXPECT_EQ(ask(owner->history(5))->size(), 1u);
  EXPECT_EQ(ask(owner->find_schedule("nightly"))->value().id, 1u);
  EXPECT_EQ(put(*owner), 7u);
  EXPECT_EQ(ask(owner->get(3))->value().worker, "vm:4675");
  const auto settled = ask(owner->settle({{.id = 3, .token = ask(owner->old_leases())->at(0).token, .at = kNow}}));
  ASSERT_TRUE(settled->at(0).settled);
  EXPECT_EQ(settled->at(0).released.at(0).id, 6u);
  ASSERT_TRUE(owner->close());
  EXPECT_NE(open(StoreAccess::read), nullptr) << "now it is of the newest version";
}

TEST_F(StoreMigrationTest, TokensThatNoJsonReaderHoldsBeginAnew) {
  run_sql(kFileOfVersion3);
  // As the last opening before the store would have died, and a lease of the one that came next to it.
  const std::uint64_t last = (std::uint64_t{8'388'607} << 40) + 5;
  set_meta("epoch", 8'388'606);
  set_meta("last_token", last);
  auto owner = open();
  ASSERT_NE(owner, nullptr);
  EXPECT_LT(owner->last_token(), std::uint64_t{1} << 40) << "below all that were given while openings were counted";
  const auto old = *ask(owner->old_leases());
  ASSERT_EQ(old.size(), 1u);
  EXPECT_EQ(old[0].id, 3u);
  EXPECT_LE(old[0].token, owner->last_token());
  EXPECT_EQ(old[0].worker, "vm:4675");
  EXPECT_EQ(ask(owner->get(3))->value().token, old[0].token);
  EXPECT_FALSE(settle(*owner, 3, last)) << "who had a lease then has none now";
  EXPECT_FALSE(settle(*owner, 3, 9'223'368'738'319'892'481u));
  const std::uint64_t token = owner->last_token() + 1;
  EXPECT_EQ(lease(*owner, 3, token), std::nullopt) << "it runs";
  EXPECT_TRUE(lease(*owner, 4, token + 1));
  EXPECT_TRUE(lease(*owner, 2, token + 2)) << "what was written beside jobs holds up no lease";
  EXPECT_TRUE(settle(*owner, 4, token + 1, Outcome::release));
  EXPECT_TRUE(settle(*owner, 3, old[0].token, Outcome::expire));
  EXPECT_TRUE(lease(*owner, 4, token + 3)) << "given back, it may run again";
  owner = after_death_of(std::move(owner));
  EXPECT_GE(owner->last_token(), token + 3);
  EXPECT_EQ(ask(owner->old_leases())->size(), 2u);
  EXPECT_EQ(state(*owner, 4), JobState::running);
  EXPECT_EQ(state(*owner, 3), JobState::ready);
}

TEST_F(StoreMigrationTest, ALeaseThatWasOverIsStillOverWhenTokensBeginAnew) {
  run_sql(kFileOfVersion3);
  run_sql("UPDATE jobs SET fence = 9223368738319892481 WHERE job_id = 3");
  run_sql("UPDATE counts SET running = 0, ready = 2 WHERE queue_id = 2");
  auto owner = open();
  EXPECT_TRUE(ask(owner->old_leases())->empty());
  EXPECT_EQ(state(*owner, 3), JobState::ready);
  EXPECT_TRUE(lease(*owner, 3, owner->last_token() + 1));
}

TEST_F(StoreMigrationTest, TokensWithRoomAboveThemGoOn) {
  run_sql(kFileOfVersion3);
  const std::uint64_t last = (std::uint64_t{3} << 40) + 7;
  set_meta("last_token", last);
  run_sql("DELETE FROM leases");
  auto opened = open_store("sqlite:" + file_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->last_token(), last);
  EXPECT_EQ(ask((*opened)->lease({{4, last, kNow, "w"}})).error().code, Errc::invalid_input);
  EXPECT_TRUE(lease(**opened, 4, last + 1));
}

TEST_F(StoreMigrationTest, AStoreWhoseLastIdHadBeenChosenGivesIdsAgain) {
  run_sql(kFileOfVersion3);
  set_meta("last_id", kMostJobId);
  auto owner = open();
  EXPECT_EQ(put(*owner), kMostCountedId + 1);
  EXPECT_EQ(put(*owner), kMostCountedId + 2);
  EXPECT_TRUE(ask(owner->put({{{.queue = "q", .waits_for = {kMostJobId}}}}, kNow))->at(0))
      << "there has been one of that id";
}

TEST_F(StoreMigrationTest, AnOlderProcessThatOwnsTheFileMustEndBeforeOthersBringItUpToDate) {
  run_sql(kFileOfVersion3);
  const int older = ::open(file_.c_str(), O_RDWR);
  ASSERT_EQ(::flock(older, LOCK_EX), 0);
  const Error error = refusal(file_, StoreAccess::share);
  EXPECT_EQ(error.code, Errc::busy);
  EXPECT_NE(error.message.find("older argiope"), std::string::npos) << error.message;
  ::flock(older, LOCK_UN);
  auto other = open(StoreAccess::share);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(put(*other), 7u);
  EXPECT_NE(open(), nullptr) << "once it is, there may be an owner beside it";
  ::close(older);
}

TEST_F(StoreMigrationTest, AFileOfALaterVersionIsRefusedInASentenceThatSaysSo) {
  run_sql(kFileOfVersion3);
  run_sql("PRAGMA user_version = 99");
  for (const StoreAccess access : {StoreAccess::own, StoreAccess::share, StoreAccess::read}) {
    const Error error = refusal(file_, access);
    EXPECT_EQ(error.code, Errc::newer_version);
    EXPECT_EQ(error.message, "database " + file_ + ": made by a newer argiope (schema 99, this one knows 7)");
  }
}

}  // namespace
}  // namespace argiope

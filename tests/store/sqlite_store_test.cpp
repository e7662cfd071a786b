// What only a store on a file can do: be opened twice, be somebody else's, be full, be cut short.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "store/sqlite_store_fixture.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

TEST_F(SqliteStoreTest, KnowsTheSchemesThereAre) {
  const auto refused = open_store("postgres:x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_input);
  EXPECT_NE(refused.error().message.find("sqlite:FILE"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("--"), std::string::npos) << "a library knows no options";
}

// --- who opens it ----------------------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, HasOneOwner) {
  auto owner = open();
  const Error error = refusal(file_);
  EXPECT_EQ(error.code, Errc::busy);
  EXPECT_NE(error.message.find(file_), std::string::npos);
  ASSERT_TRUE(owner->close());
  EXPECT_NE(open(), nullptr);
}

TEST_F(SqliteStoreTest, SaysWhetherAFileHasAnOwner) {
  EXPECT_FALSE(has_owner("sqlite:" + file_)) << "there is no such file";
  EXPECT_FALSE(has_owner("memory:"));
  auto owner = open();
  EXPECT_TRUE(has_owner("sqlite:" + file_));
  ASSERT_TRUE(owner->close());
  EXPECT_FALSE(has_owner("sqlite:" + file_));
  auto other = open(StoreAccess::share);
  EXPECT_FALSE(has_owner("sqlite:" + file_)) << "to share is not to own";
}

TEST_F(SqliteStoreTest, OthersPutAndChangeWhileItIsOwnedAndTheOwnerHearsOfIt) {
  auto owner = open();
  const JobId first = put(*owner);
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, Ids{});
  auto other = open(StoreAccess::share);
  const JobId second = put(*other, {.unique = "u"});
  EXPECT_EQ(second, first + 1);
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, Ids{second});
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, Ids{});
  EXPECT_EQ(put(*owner), second + 1);
  ASSERT_TRUE(ask(other->open_queue("new", {})));
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, Ids{0});
  EXPECT_EQ(ask(owner->queues())->size(), 2u);
}

TEST_F(SqliteStoreTest, OthersCancelWhatRunsAndTheNextOwnerStillKnows) {
  auto owner = open();
  const JobId id = put(*owner);
  ASSERT_TRUE(lease(*owner, id, 7));
  {
    auto other = open(StoreAccess::share);
    EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::cancel, .error = "why"}}))->at(0).outcome,
              ChangeOutcome::asked);
  }
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, Ids{id});
  EXPECT_TRUE(ask(owner->get(id))->value().cancel_asked);
  EXPECT_EQ(ask(owner->get(id))->value().error, "why");
  owner.reset();
  owner = open();
  ASSERT_EQ(ask(owner->old_leases())->size(), 1u);
  EXPECT_TRUE(ask(owner->get(id))->value().cancel_asked);
  const auto replies = ask(owner->settle({{.id = id, .token = 7, .outcome = Outcome::expire, .at = kNow}}));
  EXPECT_EQ(replies->at(0).outcome, Outcome::cancel);
  EXPECT_FALSE(ask(owner->get(id))->has_value());
}

TEST_F(SqliteStoreTest, OthersSeeWhatRunsAndCannotTakeItAway) {
  auto owner = open();
  const JobId id = put(*owner, {.unique = "u"});
  auto other = open(StoreAccess::share);
  ASSERT_TRUE(lease(*owner, id, 7));
  EXPECT_EQ(state(*other, id), JobState::running);
  EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::erase}}))->at(0).outcome, ChangeOutcome::running);
  EXPECT_EQ(ask(other->put({{{.queue = "q", .unique = "u", .run_again = true}}}, kNow))->at(0)->outcome,
            PutOutcome::run_again);
  EXPECT_TRUE(settle(*owner, id, 7, Outcome::retry));
  EXPECT_EQ(state(*other, id), JobState::ready);
  EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::cancel}}))->at(0).outcome, ChangeOutcome::changed);
  EXPECT_EQ(lease(*owner, id, 8), std::nullopt);
}

TEST_F(SqliteStoreTest, OthersMayNotLease) {
  auto other = open(StoreAccess::share);
  put(*other);
  EXPECT_EQ(ask(other->lease({{1, 1, kNow, "w"}})).error().code, Errc::refused);
  EXPECT_EQ(ask(other->settle({})).error().code, Errc::refused);
  EXPECT_EQ(ask(other->renew({})).error().code, Errc::refused);
}

TEST_F(SqliteStoreTest, ReadersLookAndCreateNothing) {
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::not_found);
  EXPECT_FALSE(fs::exists(file_));
  auto owner = open();
  put(*owner);
  auto reader = open(StoreAccess::read);
  EXPECT_EQ(state(*reader, 1), JobState::ready);
  lease(*owner, 1, 1);
  EXPECT_EQ(state(*reader, 1), JobState::running);
  EXPECT_EQ(ask(reader->put({{{.queue = "q"}}}, kNow)).error().code, Errc::refused);
  EXPECT_EQ(ask(reader->open_queue("none", {})).error().code, Errc::refused);
}

TEST_F(SqliteStoreTest, OthersPutFireAndEraseSchedulesAndTheOwnerHearsOfIt) {
  auto owner = open();
  const ScheduleId first = add_schedule(*owner, "first");
  const JobId job = fire(*owner, first).jobs.at(0).id;
  EXPECT_EQ(*ask(owner->changed_elsewhere()), ChangedElsewhere{}) << "what it does itself is no news to it";
  auto other = open(StoreAccess::share);
  const ScheduleId second = add_schedule(*other, "second");
  EXPECT_EQ(*ask(owner->changed_elsewhere()), (ChangedElsewhere{{}, {second}}));
  EXPECT_EQ(add_schedule(*owner, "third"), second + 1);
  const JobId fired = fire(*other, first).jobs.at(0).id;
  EXPECT_EQ(*ask(owner->changed_elsewhere()), (ChangedElsewhere{{fired}, {first}}));
  ASSERT_TRUE(ask(other->change({{.id = job, .kind = ChangeKind::cancel, .keep = false}})));
  EXPECT_EQ(*ask(owner->changed_elsewhere()), (ChangedElsewhere{{job}, {first}})) << "a run of it has ended";
  EXPECT_EQ(schedule(*owner, first).active, 1u);
  ASSERT_TRUE(ask(other->put_schedules({{.name = "second", .policy = ConflictPolicy::replace}})));
  ASSERT_TRUE(ask(other->put_schedules({{.name = "third", .policy = ConflictPolicy::keep}})));
  ASSERT_TRUE(ask(other->erase_schedules({first, 77})));
  EXPECT_EQ(*ask(owner->changed_elsewhere()), (ChangedElsewhere{{}, {first, second}}));
  EXPECT_EQ(*ask(owner->changed_elsewhere()), ChangedElsewhere{});
}

TEST_F(SqliteStoreTest, AStepMadeBeforeOthersChangedTheScheduleDoesNothing) {
  auto owner = open();
  auto other = open(StoreAccess::share);
  const ScheduleId id = add_schedule(*owner, "a");
  const StoredSchedule before = schedule(*owner, id);
  EXPECT_TRUE(fire(*other, id).fired);
  EXPECT_FALSE(ask(owner->fire({{.id = id, .version = before.version, .place = before.place}}, kNow))->at(0)->fired);
  EXPECT_TRUE(fire(*owner, id).fired);
}

TEST_F(SqliteStoreTest, ReadersLookAtSchedulesAndChangeNone) {
  auto owner = open();
  const ScheduleId id = add_schedule(*owner, "a");
  fire(*owner, id);
  auto reader = open(StoreAccess::read);
  EXPECT_EQ(schedule(*reader, id), schedule(*owner, id));
  EXPECT_EQ(last_run(*reader, id), last_run(*owner, id));
  EXPECT_EQ(ask(reader->put_schedules({{.name = "b"}})).error().code, Errc::refused);
  EXPECT_EQ(ask(reader->erase_schedules({id})).error().code, Errc::refused);
  EXPECT_EQ(ask(reader->fire({}, kNow)).error().code, Errc::refused);
}

TEST_F(SqliteStoreTest, PeopleCanReadTheSchedules) {
  auto owner = open();
  fire(*owner, add_schedule(*owner, "a"));
  run_sql("SELECT name, trigger, next, paused, active FROM schedule_list");
  run_sql("SELECT name, number, outcome, planned, fired_at, job_id FROM schedule_history");
}

TEST_F(SqliteStoreTest, PeopleCanReadTheJobs) {
  auto owner = open();
  put(*owner, {.due_at = kNow + 1h});
  run_sql("SELECT job_id, queue, state, due_at FROM job_list");
}

// --- reopening -------------------------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, LeasesOfTheOwnerBeforeCountAsRunningUntilTheyAreSettled) {
  auto owner = open();
  for (int i = 0; i < 4; ++i) put(*owner);
  ASSERT_TRUE(ask(owner->lease({{1, 1, kNow, "a"}, {2, 2, kNow + 1s, "a"}, {3, 3, kNow, "b"}})));
  settle(*owner, 1, 1);
  ASSERT_TRUE(ask(owner->renew({{2, 2, kNow + 9s, "a"}})));
  settle(*owner, 3, 3, Outcome::release);
  owner = after_death_of(std::move(owner));
  EXPECT_EQ(*ask(owner->old_leases()), (std::vector<OldLease>{{2, 2, kNow + 9s, "a"}}));
  EXPECT_EQ(state(*owner, 2), JobState::running);
  EXPECT_EQ(state(*owner, 3), JobState::ready);
  EXPECT_EQ(ask(owner->counts())->at(0), (QueueCounts{1, {.ready = 2, .running = 1}, 1}));
  EXPECT_EQ(lease(*owner, 2, 10), std::nullopt);
  EXPECT_TRUE(settle(*owner, 2, 2, Outcome::expire));
  EXPECT_TRUE(ask(owner->old_leases())->empty());
  EXPECT_TRUE(lease(*owner, 2, 11));
}

TEST_F(SqliteStoreTest, OpensALongLogThatADeathHasLeft) {
  auto owner = open();
  for (int i = 0; i < 20; ++i) put(*owner, {.payload = std::string(50'000, 'p')});
  for (const SyncMode sync : {SyncMode::full, SyncMode::normal}) {
    const std::string image = copy_as_it_lies(sync == SyncMode::full ? "full.db" : "normal.db");
    ASSERT_GT(fs::file_size(image + "-wal"), 1'000'000u);
    auto opened = open_store("sqlite:" + image, {.sync = sync});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(ask((*opened)->counts())->at(0).counts.ready, 20u);
  }
}

TEST_F(SqliteStoreTest, AnIdThatIsUsedAgainIsNotTakenForTheJobThatRanBefore) {
  auto owner = open();
  put(*owner);
  put(*owner);
  ASSERT_TRUE(ask(owner->lease({{1, 1, kNow, "w"}, {2, 2, kNow, "w"}})));
  settle(*owner, 1, 1);
  put(*owner, {.id = 1});
  ASSERT_TRUE(owner->close());
  owner = open();
  EXPECT_EQ(state(*owner, 1), JobState::ready);
  EXPECT_EQ(state(*owner, 2), JobState::running);
}

TEST_F(SqliteStoreTest, SchedulesAreThereAfterADeathAndNoIdIsGivenTwice) {
  auto owner = open();
  const ScheduleId first = add_schedule(*owner, "first");
  const ScheduleId second = add_schedule(*owner, "second");
  const JobId job = fire(*owner, first).jobs.at(0).id;
  ASSERT_TRUE(ask(owner->erase_schedules({second})));
  lease(*owner, job, 1);
  const StoredSchedule before = schedule(*owner, first);
  owner = after_death_of(std::move(owner));
  EXPECT_EQ(schedule(*owner, first), before);
  EXPECT_EQ(last_run(*owner, first).outcome, RunOutcome::running);
  EXPECT_EQ(add_schedule(*owner, "third"), second + 1);
  const auto buried =
      ask(owner->settle({{.id = job, .token = 1, .outcome = Outcome::bury, .at = kNow, .error = "its owner died"}}));
  EXPECT_EQ(buried->at(0).ended_runs, (std::vector<EndedRun>{{first, 1, job, RunOutcome::failed}}));
  EXPECT_EQ(last_run(*owner, first).error, "its owner died");
  EXPECT_EQ(schedule(*owner, first).active, 0u);
}

// --- files that are not as they should be ----------------------------------------------------------------------------

TEST_F(SqliteStoreTest, RefusesForeignFilesAndLeavesThemAlone) {
  run_sql("CREATE TABLE theirs (x)");
  const std::string before = bytes_of(file_);
  for (const StoreAccess access : {StoreAccess::own, StoreAccess::share, StoreAccess::read}) {
    const Error error = refusal(file_, access);
    EXPECT_EQ(error.code, Errc::wrong_format);
    EXPECT_NE(error.message.find(file_), std::string::npos) << error.message;
  }
  EXPECT_EQ(bytes_of(file_), before);
  file_ = folder_.file("urls.db");
  ASSERT_TRUE((*open_url_store(file_))->close());
  EXPECT_EQ(refusal(file_).code, Errc::wrong_format);
  file_ = folder_.file("notes.txt");
  std::ofstream(file_) << std::string(500, 'x');
  EXPECT_EQ(refusal(file_).code, Errc::wrong_format);
  EXPECT_EQ(bytes_of(file_), std::string(500, 'x'));
}

TEST_F(SqliteStoreTest, RefusesANewerVersion) {
  ASSERT_TRUE(open()->close());
  run_sql("PRAGMA user_version = 99");
  EXPECT_EQ(refusal(file_).code, Errc::newer_version);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::newer_version);
}

TEST_F(SqliteStoreTest, SaysThatAFileIsDamaged) {
  auto owner = open();
  for (int i = 0; i < 100; ++i) put(*owner, {.payload = std::string(1'000, 'p')});
  ASSERT_TRUE(owner->close());
  std::fstream file(file_, std::ios::in | std::ios::out);
  file.seekp(4096);
  file << std::string(fs::file_size(file_) - 4096, '\xee');
  file.close();
  const Error error = refusal(file_);
  EXPECT_EQ(error.code, Errc::corrupt);
  EXPECT_NE(error.message.find(file_), std::string::npos);
}

TEST_F(SqliteStoreTest, SaysThatAFileCannotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everything";
  ASSERT_TRUE(open()->close());
  fs::permissions(file_, fs::perms::owner_read);
  EXPECT_EQ(refusal(file_).code, Errc::io);
}

TEST_F(SqliteStoreTest, NamesWhatCannotBeOpened) {
  const Error error = refusal("/nonexistent/jobs.db");
  EXPECT_EQ(error.code, Errc::io);
  EXPECT_NE(error.message.find("/nonexistent/jobs.db"), std::string::npos);
}

TEST_F(SqliteStoreTest, AFullDiskKeepsWhatWasAcknowledgedAndRefusesAllWritesUntilItIsOpenedAgain) {
  auto owner = open(StoreAccess::own, 400 * 1024);
  JobId last = 0;
  Error error;
  for (int i = 0; i < 10'000 && error.message.empty(); ++i) {
    const auto put = ask(owner->put({{{.queue = "q", .payload = std::string(1'000, 'p')}}}, kNow));
    if (put) {
      last = put->at(0)->id;
    } else {
      error = put.error();
    }
  }
  ASSERT_EQ(error.code, Errc::disk_full) << error.message;
  ASSERT_TRUE(owner->failure());
  EXPECT_EQ(ask(owner->change({{.id = 1, .kind = ChangeKind::erase}})).error().code, Errc::disk_full);
  EXPECT_EQ(state(*owner, last), JobState::ready) << "it can still be read";
  EXPECT_FALSE(owner->close());
  owner = open();
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, last);
  EXPECT_EQ(put(*owner), last + 1);
}

// --- tokens ----------------------------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, OpeningsUseUpNoTokens) {
  auto opened = open_store("sqlite:" + file_);
  const JobId id = put(**opened);
  ASSERT_TRUE(lease(**opened, id, (*opened)->last_token() + 1));
  const std::uint64_t last = (*opened)->last_token();
  for (int i = 0; i < 50; ++i) ASSERT_NE(open(StoreAccess::share), nullptr);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE((*opened)->close());
    opened = open_store("sqlite:" + file_);
    EXPECT_EQ((*opened)->last_token(), last);
  }
}

TEST_F(SqliteStoreTest, ATokenIsNeverGivenAgainAfterADeath) {
  auto owner = open();
  for (int i = 0; i < 3; ++i) put(*owner);
  for (JobId id = 1; id <= 3; ++id) ASSERT_TRUE(lease(*owner, id, owner->last_token() + 1));
  const std::uint64_t given = owner->last_token();
  EXPECT_EQ(given, 3u);
  settle(*owner, 3, given);
  owner = after_death_of(std::move(owner));
  EXPECT_EQ(owner->last_token(), given);
  EXPECT_EQ(ask(owner->lease({{3, given, kNow, "w"}})).error().code, Errc::invalid_input);
}

// --- a file that is gone ---------------------------------------------------------------------------------------------

constexpr const char* kGone = "removed or replaced";

class GoneFileTest : public SqliteStoreTest {
 protected:
  void expect_noticed(Store& store) {
    const auto put_there = ask(store.put({{{.queue = "q"}}}, kNow));
    ASSERT_FALSE(put_there) << "acknowledged into a file that nobody will find";
    EXPECT_EQ(put_there.error().code, Errc::io);
    EXPECT_NE(put_there.error().message.find(kGone), std::string::npos) << put_there.error().message;
    ASSERT_TRUE(store.failure());
    EXPECT_FALSE(ask(store.put({{{.queue = "q"}}}, kNow)));
    EXPECT_TRUE(ask(store.get(1))->has_value()) << "what it held can still be read";
    EXPECT_FALSE(store.close());
  }
};

TEST_F(GoneFileTest, IsNoticedByItsOwner) {
  auto owner = open();
  put(*owner);
  fs::remove(file_);
  expect_noticed(*owner);
}

TEST_F(GoneFileTest, IsNoticedByWhoSharesIt) {
  auto other = open(StoreAccess::share);
  put(*other);
  fs::remove(file_);
  expect_noticed(*other);
}

TEST_F(GoneFileTest, IsNoticedByAnOwnerThatHasNothingToWrite) {
  auto owner = open();
  put(*owner);
  fs::rename(file_, folder_.file("elsewhere.db"));
  const auto changes = ask(owner->changed_elsewhere());
  ASSERT_FALSE(changes);
  EXPECT_NE(changes.error().message.find(kGone), std::string::npos);
  EXPECT_TRUE(owner->failure());
}

TEST_F(GoneFileTest, IsNoticedWhereOnlyItsLogIsGone) {
  auto owner = open();
  put(*owner);
  fs::remove(file_ + "-wal");
  expect_noticed(*owner);
}

TEST_F(GoneFileTest, IsNoticedWhereAnotherLiesInItsPlaceWhichIsLeftAlone) {
  auto owner = open();
  put(*owner);
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file_ + suffix);
  auto next = open();
  ASSERT_NE(next, nullptr);
  for (int i = 0; i < 3; ++i) put(*next);
  expect_noticed(*owner);
  EXPECT_TRUE(fs::exists(file_ + "-wal"));
  EXPECT_EQ(put(*next), 4u);
  next = after_death_of(std::move(next));
  EXPECT_EQ(ask(next->counts())->at(0).counts.ready, 4u);
}

// --- what others leave for the owner to hear -------------------------------------------------------------------------

TEST_F(SqliteStoreTest, WhatOthersLeaveForAnOwnerIsBoundedWhileThereIsNone) {
  auto other = open(StoreAccess::share);
  const std::vector<PutRequest> many(4'000, {{.queue = "q"}});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ask(other->put(many, kNow)));
  for (int i = 0; i < 12'000; i += 100) add_schedule(*other, std::to_string(i));
  EXPECT_LE(count_of("touched") + count_of("touched_schedules"), 10'000);
  auto owner = open();
  ASSERT_NE(owner, nullptr);
  EXPECT_EQ(count_of("touched"), 0);
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, 20'000u);
}

TEST_F(SqliteStoreTest, AnOwnerHearsOfEverythingHoweverMuchOthersDo) {
  auto owner = open();
  auto other = open(StoreAccess::share);
  const std::vector<PutRequest> many(4'000, {{.queue = "q"}});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ask(other->put(many, kNow)));
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs.size(), 20'001u) << "the jobs and their queue";
}

TEST_F(SqliteStoreTest, WhoLooksForAnOwnerTurnsNoneAway) {
  put(*open());
  const int looks = ::open(file_.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(looks, LOCK_SH), 0);
  std::thread ends([&] { ::flock(looks, LOCK_UN); });
  EXPECT_NE(open(), nullptr);
  ends.join();
  ::close(looks);
}

}  // namespace
}  // namespace argiope

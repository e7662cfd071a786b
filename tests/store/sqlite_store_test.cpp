// What only a store on a file can do: be opened twice, be somebody else's, be full, be cut short.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "argiope/store/store.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr WallTime kNow{1'800'000'000s};

class SqliteStoreTest : public OnVirtualLoop {
 protected:
  std::unique_ptr<Store> open(StoreAccess access = StoreAccess::own, std::int64_t max_bytes = 0) {
    auto opened = tried(file_, access, max_bytes);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  static Result<std::unique_ptr<Store>> tried(const std::string& file, StoreAccess access = StoreAccess::own,
                                              std::int64_t max_bytes = 0) {
    return open_store("sqlite:" + file, {.access = access, .sync = SyncMode::off, .max_bytes = max_bytes});
  }
  Error refusal(const std::string& file, StoreAccess access = StoreAccess::own) {
    auto opened = tried(file, access);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  JobId put(Store& store, NewJob job = {}) {
    job.queue = "q";
    auto replies = ask(store.put({{.job = std::move(job)}}, kNow));
    EXPECT_TRUE(replies) << replies.error().message;
    return replies->at(0).id;
  }
  std::optional<JobRecord> lease(Store& store, JobId id, std::uint64_t token) {
    return ask(store.lease({{id, token, kNow + 60s, "w"}}))->at(0);
  }
  bool settle(Store& store, JobId id, std::uint64_t token, Outcome outcome = Outcome::done) {
    return ask(store.settle({{.id = id, .token = token, .outcome = outcome, .at = kNow}}))->at(0).settled;
  }
  ScheduleId add_schedule(Store& store, std::string name) {
    auto added = ask(store.put_schedules({{.name = std::move(name), .trigger = "t", .place = {.next = kNow}}}));
    EXPECT_TRUE(added) << added.error().message;
    return added->at(0).id;
  }
  StoredSchedule schedule(Store& store, ScheduleId id) { return ask(store.load_schedules({id}))->at(0).value(); }
  FireReply fire(Store& store, ScheduleId id) {
    const StoredSchedule now = schedule(store, id);
    FireRequest request{.id = id, .version = now.version, .place = now.place};
    request.runs.push_back({.number = ++request.place.entries, .planned = now.place.next, .fired_at = kNow});
    request.jobs.push_back({.job = {.queue = "q", .payload = "p"}, .run = request.place.entries});
    return ask(store.fire({std::move(request)}, kNow))->at(0);
  }
  ScheduleRun last_run(Store& store, ScheduleId id) { return ask(store.schedule_runs(id, 1))->at(0); }
  JobState state(Store& store, JobId id) { return ask(store.get(id))->value().state; }
  void run_sql(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  // A copy as a death now would leave it: the file and its log.
  std::string copy_as_it_lies(const std::string& name = "image.db") const {
    std::string image = folder_.file(name);
    fs::copy_file(file_, image);
    fs::copy_file(file_ + "-wal", image + "-wal");
    return image;
  }
  // As if `owner` had died now, and another had opened what it has left.
  std::unique_ptr<Store> after_death_of(std::unique_ptr<Store> owner) {
    std::string image = copy_as_it_lies();
    EXPECT_TRUE(owner->close());
    file_ = std::move(image);
    return open();
  }
  static std::string bytes_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  using Ids = std::vector<JobId>;
  TemporaryFolder folder_;
  std::string file_ = folder_.file("jobs.db");
};

TEST_F(SqliteStoreTest, KnowsTheSchemesThereAre) {
  const auto refused = open_store("postgres:x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_input);
  EXPECT_NE(refused.error().message.find("--store"), std::string::npos);
}

// --- who opens it ----------------------------------------------------------------------------------------------------

TEST_F(SqliteStoreTest, HasOneOwner) {
  auto owner = open();
  const Error error = refusal(file_);
  EXPECT_EQ(error.code, Errc::busy);
  EXPECT_NE(error.message.find(file_), std::string::npos);
  ASSERT_TRUE(owner->close());
  EXPECT_EQ(open()->epoch(), 2u);
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
  EXPECT_GT(other->epoch(), owner->epoch());
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
    EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::cancel, .error = "why"}}))->at(0).verdict,
              ChangeReply::Verdict::asked);
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
  EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::erase}}))->at(0).verdict, ChangeReply::Verdict::running);
  EXPECT_EQ(ask(other->put({{{.queue = "q", .unique = "u", .run_again = true}}}, kNow))->at(0).outcome,
            PutOutcome::run_again);
  EXPECT_TRUE(settle(*owner, id, 7, Outcome::retry));
  EXPECT_EQ(state(*other, id), JobState::ready);
  EXPECT_EQ(ask(other->change({{.id = id, .kind = ChangeKind::cancel}}))->at(0).verdict, ChangeReply::Verdict::changed);
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
  EXPECT_FALSE(ask(owner->fire({{.id = id, .version = before.version, .place = before.place}}, kNow))->at(0).fired);
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

// As the third version of the schema was: of runs beyond the history nothing was known.
constexpr const char* kBackToVersion3 = "DROP TABLE older_runs; PRAGMA user_version = 3;";
// As the second version of the schema was: indexes instead of tables of names and ended jobs. And as the first one was:
// no schedules either.
constexpr const char* kBackToVersion2 = R"sql(
  DROP TABLE older_runs;
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

TEST_F(SqliteStoreTest, AFileOfTheFirstVersionIsBroughtUpToDate) {
  auto owner = open();
  const JobId waits = put(*owner, {.due_at = kNow + 1h, .payload = std::string(20'000, 'p')});
  const JobId runs = put(*owner, {.name = "n", .unique = "u"});
  ASSERT_TRUE(lease(*owner, runs, 5));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion2);
  run_sql(kFromVersion2ToVersion1);
  EXPECT_EQ(refusal(file_, StoreAccess::read).code, Errc::wrong_format) << "a reader cannot";
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

TEST_F(SqliteStoreTest, RunsBeyondTheHistoryOfAnOlderVersionAreFoundAndCounted) {
  auto owner = open();
  const ScheduleId many = add_schedule(*owner, "many"), none = add_schedule(*owner, "none"),
                   one = add_schedule(*owner, "one");
  std::vector<JobId> jobs;
  for (int i = 0; i < 30; ++i) jobs.push_back(fire(*owner, many).jobs.at(0).id);
  const JobId only = fire(*owner, one).jobs.at(0).id;
  ASSERT_TRUE(lease(*owner, jobs[3], 5));
  ASSERT_TRUE(settle(*owner, jobs[3], 5));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion3);
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

TEST_F(SqliteStoreTest, NamesAndEndedJobsOfTheFirstVersionAreStillFound) {
  auto owner = open();
  const JobId unique = put(*owner, {.name = "first", .unique = "u"});
  const JobId buried = put(*owner, {.unique = "v"});
  const JobId plain = put(*owner);
  ASSERT_TRUE(lease(*owner, buried, 7));
  ASSERT_TRUE(settle(*owner, buried, 7, Outcome::bury));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion2);
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

TEST_F(SqliteStoreTest, RunsOfAFileOfTheSecondVersionStillBelongToTheirSchedules) {
  auto owner = open();
  const ScheduleId id = add_schedule(*owner, "a");
  const JobId first = fire(*owner, id).jobs.at(0).id;
  const JobId second = fire(*owner, id).jobs.at(0).id;
  ASSERT_TRUE(lease(*owner, first, 1));
  ASSERT_TRUE(owner->close());
  run_sql(kBackToVersion2);
  owner = open();
  EXPECT_TRUE(settle(*owner, first, 1));
  ASSERT_TRUE(lease(*owner, second, 2));
  EXPECT_TRUE(settle(*owner, second, 2));
  EXPECT_EQ(schedule(*owner, id).active, 0u);
  EXPECT_EQ(last_run(*owner, id).outcome, RunOutcome::done);
}

TEST_F(SqliteStoreTest, WhoeverSharesAFileOfTheFirstVersionBringsItUpToDate) {
  put(*open());
  run_sql(kBackToVersion2);
  run_sql(kFromVersion2ToVersion1);
  auto other = open(StoreAccess::share);
  EXPECT_EQ(add_schedule(*other, "a"), 1u);
  EXPECT_EQ(state(*other, 1), JobState::ready);
}

// --- files that are not as they should be ----------------------------------------------------------------------------

TEST_F(SqliteStoreTest, RefusesForeignFilesAndLeavesThemAlone) {
  run_sql("CREATE TABLE theirs (x)");
  const std::string before = bytes_of(file_);
  for (const StoreAccess access : {StoreAccess::own, StoreAccess::share, StoreAccess::read}) {
    const Error error = refusal(file_, access);
    EXPECT_EQ(error.code, Errc::wrong_format);
    EXPECT_NE(error.message.find("--store"), std::string::npos) << error.message;
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
      last = put->at(0).id;
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

}  // namespace
}  // namespace argiope

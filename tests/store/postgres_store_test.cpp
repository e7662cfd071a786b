// What a store in PostgreSQL does that others do not: share a server, be taken over, be put into by SQL. That it is a
// store like the others is in store_conformance_test.cpp and store_schedules_test.cpp.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jobs/internal/stored_time.hpp"
#include "store/internal/store_url.hpp"
#include "store/postgres_store_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// --- who opens it ----------------------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, KeepsAllForTheNextOpening) {
  auto store = open();
  ASSERT_EQ(put(*store, {.name = "a"}).value(), 1u);
  ASSERT_EQ(put(*store, {.name = "b"}).value(), 2u);
  ASSERT_TRUE(lease(*store, 2, 7));
  ASSERT_TRUE(ask(store->remember("offset", -5)));
  const auto job = ask(store->get(1)).value();
  ASSERT_TRUE(store->close());
  store = open();
  EXPECT_TRUE(ask(store->get(1)).value() == job);
  EXPECT_EQ(ask(store->recall("offset")).value(), std::optional<std::int64_t>{-5});
  const auto old = ask(store->old_leases());
  ASSERT_EQ(old->size(), 1u);
  EXPECT_EQ(old->at(0), (OldLease{2, 7, kNow + 60s, "w", false}));
  EXPECT_EQ(store->last_token(), 7u);
  EXPECT_EQ(put(*store).value(), 3u);
}

TEST_F(PostgresStoreTest, TellsWhatTheServerPromises) {
  EXPECT_THAT(open()->durability(), HasSubstr("fsync off, synchronous_commit on: "));
}

TEST_F(PostgresStoreTest, HasOneOwner) {
  EXPECT_FALSE(has_owner(where_));
  auto owner = open();
  EXPECT_TRUE(has_owner(where_));
  const Error error = refusal(where_);
  EXPECT_EQ(error.code, Errc::busy);
  EXPECT_THAT(error.message, HasSubstr(std::to_string(::getpid()) + " owns it, since 2"));
  ASSERT_TRUE(owner->close());
  EXPECT_FALSE(has_owner(where_));
  EXPECT_NE(open(), nullptr);
}

// A node that was stopped for longer than its lease, while another took the store over.
TEST_F(PostgresStoreTest, WritesNothingOnceAnotherHasTakenItOver) {
  auto first = open();
  ASSERT_TRUE(put(*first));
  server_->query("update " + schema_ + ".partitions set node = null");
  auto second = open();
  ASSERT_NE(second, nullptr);
  const auto refused = put(*first);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another process has taken it over"));
  EXPECT_TRUE(first->failure());
  EXPECT_EQ(count("jobs"), "1");
  EXPECT_EQ(put(*second).value(), 2u);
  EXPECT_FALSE(first->close());
  EXPECT_TRUE(has_owner(where_)) << "the first has not given back what is not its own";
}

TEST_F(PostgresStoreTest, AnOwnerThatOnlyLooksHearsThatAnotherHasTakenItOver) {
  auto first = open();
  ASSERT_TRUE(ask(first->changed_elsewhere()));
  server_->query("update " + schema_ + ".partitions set node = null");
  auto second = open();
  const auto refused = ask(first->queues());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another process has taken it over"));
  EXPECT_FALSE(ask(first->changed_elsewhere()));
  EXPECT_TRUE(first->failure()) << "which ends its engine";
}

// A process that stands by tries again after that.
TEST_F(PostgresStoreTest, WhatPassesByItselfRefusesNoTakeoverForGood) {
  ASSERT_TRUE(open()->close());
  server_->hold("select from " + schema_ + ".partitions for update");
  EXPECT_EQ(refusal(where_ + "&store_timeout=5").code, Errc::network);
  server_->release();
  EXPECT_NE(open(), nullptr);
}

TEST_F(PostgresStoreTest, ATakeoverForgetsWhateverWasNotedForTheOwnerBefore) {
  ASSERT_TRUE(open()->close());
  server_->query("set search_path to " + schema_ +
                 "; insert into touched (partition, is_schedule, id) select 0, 0, i from generate_series(1, 25000) i; "
                 "insert into writers select 0, i, 1, now() - interval '1 year' from generate_series(1, 15000) i");
  auto store = open();
  EXPECT_EQ(count("touched"), "0");
  EXPECT_EQ(count("writers"), "0");
  EXPECT_TRUE(put(*store));
}

TEST_F(PostgresStoreTest, WhoSharesItLeavesNothingOfItsOwnBehind) {
  for (int i = 0; i < 3; ++i) {
    auto other = open(StoreAccess::share);
    ASSERT_TRUE(put(*other));
    ASSERT_TRUE(other->close());
  }
  EXPECT_EQ(count("writers"), "0");
}

TEST_F(PostgresStoreTest, NeedsNoRightButToASchemaOfItsUser) {
  const std::string user = "user_" + schema_;
  const std::string of_user = "postgresql:///postgres?host=" + server_->path() + "&user=" + user + "&schema=" + schema_;
  server_->query("create role " + user + " login");
  EXPECT_THAT(refusal(of_user).message, HasSubstr("permission denied for database"));
  server_->query("create schema " + schema_);
  const Error no_right = refusal(of_user);
  EXPECT_EQ(no_right.code, Errc::refused);
  EXPECT_THAT(no_right.message, HasSubstr("grant usage on schema"));
  server_->query("alter schema " + schema_ + " owner to " + user);
  EXPECT_TRUE(put(*open_at(of_user)));
}

// A failover to a standby that did not have it takes the takeover away, with its epoch.
TEST_F(PostgresStoreTest, WritesNothingWhenAnotherHasTakenItOverFromALostTakeover) {
  auto first = open();
  server_->query("update " + schema_ + ".partitions set node = null, epoch = 0, version = 0");
  auto second = open();
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(put(*first));
  EXPECT_TRUE(put(*second));
}

TEST_F(PostgresStoreTest, RenewsTheLeaseOfAnOwnerThatOnlyReads) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  const std::string seconds = "select extract(epoch from until - now()) > 5 from " + schema_ + ".partitions";
  for (int i = 0; i < 2; ++i) {
    server_->query("update " + schema_ + ".partitions set until = now() + interval '4 s'");
    do {
      ASSERT_TRUE(ask(store->changed_elsewhere()));
    } while (server_->query(seconds) != "t");
  }
}

TEST_F(PostgresStoreTest, IsSharedWithItsOwner) {
  auto owner = open();
  auto other = open(StoreAccess::share);
  ASSERT_EQ(put(*owner).value(), 1u);
  EXPECT_TRUE(ask(owner->changed_elsewhere())->jobs.empty());
  ASSERT_EQ(put(*other).value(), 2u);
  ASSERT_EQ(put(*owner).value(), 3u) << "what it knew is outdated, and it does it again";
  ASSERT_TRUE(ask(other->put_schedules({{.name = "s", .trigger = "t", .place = {.next = kNow}}})));
  const auto changed = ask(owner->changed_elsewhere());
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_THAT(changed->jobs, ::testing::Contains(2u));
  EXPECT_EQ(changed->schedules, std::vector<ScheduleId>{1});
  EXPECT_TRUE(ask(owner->changed_elsewhere())->jobs.empty());
  EXPECT_EQ(ask(other->lease({{1, 9, kNow, "w"}})).error().code, Errc::refused);
  ASSERT_TRUE(lease(*owner, 2, 1));
  ASSERT_TRUE(ask(other->change({{.id = 2, .kind = ChangeKind::cancel, .at = kNow}})));
  EXPECT_TRUE(ask(owner->get(2))->value().cancel_asked);
  EXPECT_TRUE(settle(*owner, 2, 1));
}

TEST_F(PostgresStoreTest, JobsPutBySqlComeWithTheTransactionThatPutThem) {
  auto store = open();
  const std::string put_sql = "select " + schema_ + ".argiope_put('q', 'hello', name => 'n', priority => 3)";
  server_->query("begin; " + put_sql + "; rollback");
  server_->query("begin; " + put_sql + "; commit");
  std::vector<JobId> heard;
  while (heard.empty()) heard = ask(store->changed_elsewhere())->jobs;
  EXPECT_EQ(heard, std::vector<JobId>{1});
  const JobRecord job = ask(store->get(1))->value();
  EXPECT_EQ(job.payload, "hello");
  EXPECT_EQ(job.queue, "q");
  EXPECT_EQ(job.name, "n");
  EXPECT_EQ(job.priority, 3);
  EXPECT_EQ(count("inbox"), "0");
  ASSERT_TRUE(lease(*store, 1, 1));
  EXPECT_TRUE(settle(*store, 1, 1));
}

TEST_F(PostgresStoreTest, JobsPutBySqlWaitForAnOwnerAndComeInTheirOrder) {
  ASSERT_TRUE(open()->close());
  EXPECT_EQ(server_->query("select " + schema_ +
                           ".argiope_put_many('q', array(select i::text from generate_series(1, " + "1500) i))"),
            "1500");
  auto store = open();
  const auto first = ask(store->changed_elsewhere());
  EXPECT_EQ(first->jobs.size(), 1000u);
  EXPECT_TRUE(first->more);
  const auto second = ask(store->changed_elsewhere());
  EXPECT_EQ(second->jobs.size(), 500u);
  EXPECT_FALSE(second->more);
  EXPECT_EQ(ask(store->get(1500))->value().payload, "1500");
}

// Whatever somebody has done to the owner's calendar.
TEST_F(PostgresStoreTest, JobsPutBySqlAreDueByTheOwnersClock) {
  auto store = open();
  ASSERT_TRUE(ask(store->remember(kCalendarOffset, Duration{-1h}.count())));
  const std::string put_sql = "select " + schema_ + ".argiope_put('q', ''";
  server_->query(put_sql + "); " + put_sql + ", due_at => '2100-01-01 00:00 UTC'); " + put_sql +
                 ", due_at => '1600-01-01'); " + put_sql + ", due_at => 'infinity')");
  std::vector<JobId> heard;
  while (heard.empty()) heard = ask(store->changed_elsewhere())->jobs;
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(ask(store->get(1))->value().state, JobState::ready);
  EXPECT_EQ(ask(store->get(2))->value().due_at, WallTime{4'102'444'800s} - 1h);
  EXPECT_EQ(ask(store->get(3))->value().state, JobState::ready);
  EXPECT_EQ(ask(store->get(4))->value().state, JobState::delayed);
  EXPECT_LT(ask(store->get(1))->value().created_at, std::chrono::system_clock::now() - 59min);
}

TEST_F(PostgresStoreTest, OneLookTakesNoMoreOfWhatSqlHasPutThanAServerAnswersInTime) {
  ASSERT_TRUE(open()->close());
  server_->query("select " + schema_ + ".argiope_put_many('q', array_fill(repeat('x', 6000000), array[5]))");
  auto store = open();
  std::vector<std::size_t> taken;
  for (bool more = true; more; more = taken.back() != 0) taken.push_back(ask(store->changed_elsewhere())->jobs.size());
  EXPECT_EQ(taken, (std::vector<std::size_t>{2, 2, 1, 0}));
}

TEST_F(PostgresStoreTest, RefusesJobsOfSqlThatNoPutWouldTake) {
  ASSERT_TRUE(open()->close());
  EXPECT_THAT(server_->query("select " + schema_ + ".argiope_put('q', repeat('x', 67108865))"), HasSubstr("64 MiB"));
  const std::string put_sql = "select " + schema_ + ".argiope_put";
  EXPECT_THAT(server_->query(put_sql + "('', 'p')"), HasSubstr("a queue needs a name"));
  EXPECT_THAT(server_->query(put_sql + "('q', null)"), HasSubstr("NULL"));
  EXPECT_THAT(server_->query(put_sql + "(repeat('q', 513), 'p')"), HasSubstr("512 bytes"));
  EXPECT_THAT(server_->query(put_sql + "_many('q', array['a', 'b'], name => 'n')"), HasSubstr("one name"));
  EXPECT_EQ(count("inbox"), "0");
}

// The functions run with the rights of the tables' owner, so nothing of their caller's may come before its tables.
TEST_F(PostgresStoreTest, WhoPutsBySqlGetsNoRightOfTheTablesOwner) {
  ASSERT_TRUE(open()->close());
  const std::string app = "app_" + schema_;
  server_->query("create role " + app + "; grant usage on schema " + schema_ + " to " + app);
  const std::string said = server_->query(
      "set role " + app +
      "; create temp table ran_as (who text); grant all on ran_as to public; create temp table inbox (partition bigint "
      "default 0, n bigint, at bigint, queue bytea, payload bytea, name bytea, key bytea, unique_name bytea, function "
      "bytea, priority bigint, due_at bigint, max_attempts bigint); grant all on inbox to public; create function "
      "pg_temp.note() returns trigger language plpgsql as 'begin insert into pg_temp.ran_as values (current_user); "
      "return new; end'; create trigger note before insert on inbox for each row execute function pg_temp.note(); "
      "select " +
      schema_ + ".argiope_put('q', 'p'); select 'ran ' || count(*) from ran_as");
  EXPECT_THAT(said, HasSubstr("ran 0"));
  EXPECT_EQ(count("inbox"), "1");
}

// A pooler that gives each transaction another connection.
TEST_F(PostgresStoreTest, SaysThatAnotherConnectionAnswersIt) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  server_->query("alter function " + schema_ + ".argiope_begin rename to as_it_was; set search_path to " + schema_ +
                 "; create function argiope_begin(a bigint, b bigint, c bigint, d bigint, e bigint[], f bigint) "
                 "returns bigint language sql as 'select as_it_was(a, b, c, d, e, f + 1)'");
  cut_connections();  // statements are prepared anew
  const auto refused = put(*store);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("a pooler in transaction mode"));
  EXPECT_EQ(count("jobs"), "1");
}

TEST_F(PostgresStoreTest, IsReadByOthers) {
  EXPECT_EQ(refusal(where_, StoreAccess::read).code, Errc::not_found);
  auto owner = open();
  ASSERT_TRUE(put(*owner));
  auto reader = open(StoreAccess::read);
  EXPECT_TRUE(ask(reader->get(1))->has_value());
  EXPECT_FALSE(put(*reader));
}

TEST_F(PostgresStoreTest, IsMadeOnceByManyAtATime) {
  std::vector<std::thread> openers;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 4; ++i)
    openers.emplace_back([&] { opened += open_store(where_, {.access = StoreAccess::share}).has_value() ? 1 : 0; });
  for (std::thread& opener : openers) opener.join();
  EXPECT_EQ(opened, 4);
}

TEST_F(PostgresStoreTest, IsNotOpenedByAnOlderArgiope) {
  ASSERT_TRUE(open()->close());
  server_->query("update " + schema_ + ".meta set value = 99");
  EXPECT_EQ(refusal(where_).code, Errc::newer_version);
}

TEST_F(PostgresStoreTest, MayLieInAnySchema) {
  const std::string odd = server_->store("a%22%3B%20drop%20schema%20%C3%A4'b");
  auto store = open_at(odd);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(put(*store));
  const std::string odd_sql = "\\\"a\\\"\\\"; drop schema \xC3\xA4'b\\\"";  // as the shell and SQL quote it
  EXPECT_EQ(server_->query("select " + odd_sql + ".argiope_put('q', 'p')"), "");
  EXPECT_EQ(server_->query("select count(*) from " + odd_sql + ".inbox"), "1");
  EXPECT_EQ(refusal(server_->store("")).code, Errc::invalid_input);
  EXPECT_EQ(refusal(server_->store(std::string(64, 's'))).code, Errc::invalid_input);
}

// --- what it keeps ---------------------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, KeepsAnyBytesInDatabasesOfAnyEncoding) {
  server_->query("create database latin encoding 'LATIN1' template template0");
  const std::string odd("n\0\xff\xc3'\\\"\n", 8);
  for (const std::string& where :
       {where_, std::string("postgresql:///latin?host=" + server_->path() + "&user=argiope")}) {
    auto store = open_at(where);
    const JobId id =
        put(*store, {.name = odd, .queue = odd, .key = odd, .unique = odd, .function = odd, .payload = odd}).value();
    ASSERT_TRUE(ask(store->lease({{id, 1, kNow + 60s, odd}}))->at(0));
    ASSERT_TRUE(ask(store->settle(
        {{.id = id, .token = 1, .outcome = Outcome::retry, .at = kNow, .due_at = kNow, .error = odd, .worker = odd}})));
    const JobRecord job = ask(store->get(id))->value();
    EXPECT_EQ(job.name, odd);
    EXPECT_EQ(job.queue, odd);
    EXPECT_EQ(job.unique, odd);
    EXPECT_EQ(job.payload, odd);
    EXPECT_EQ(job.error, odd);
    EXPECT_EQ(ask(store->history(id))->at(0).worker, odd);
    EXPECT_EQ(ask(store->find_name(odd))->value_or(0), id);
  }
  EXPECT_THAT(server_->query("select queue, name from " + schema_ + ".job_list"), HasSubstr("\\377"));
}

TEST_F(PostgresStoreTest, KeepsTheGreatestIds) {
  auto store = open();
  ASSERT_EQ(put(*store, {.id = kMostJobId}).value(), kMostJobId);
  EXPECT_EQ(ask(store->list({}))->at(0).id, kMostJobId);
  EXPECT_EQ(ask(store->count_before(1, Rank::last(), 10)).value(), 1u);
  ASSERT_TRUE(lease(*store, kMostJobId, 1));
  EXPECT_TRUE(settle(*store, kMostJobId, 1));
}

TEST_F(PostgresStoreTest, DoesWithoutRequests) {
  auto store = open();
  EXPECT_TRUE(ask(store->put({}, kNow)));
  EXPECT_TRUE(ask(store->lease({})));
  EXPECT_TRUE(ask(store->settle({})));
  EXPECT_TRUE(ask(store->change({})));
  EXPECT_TRUE(ask(store->put_schedules({})));
  EXPECT_TRUE(ask(store->load_schedules({})));
}

// A server takes 1 GB at a time: one statement, or one parameter of it.
TEST_F(PostgresStoreTest, TakesBatchesThatAreLargerThanOneStatementMayBe) {
  const std::size_t bytes = std::size_t{std::getenv("ARGIOPE_FULL") == nullptr ? 12u : 400u} << 20;
  auto store = open();
  std::vector<PutRequest> requests(3);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].job = {.queue = "q", .payload = std::string(bytes, static_cast<char>('a' + i))};
  }
  server_->query("set search_path to " + schema_ +
                 "; create table inserts (at timestamptz); create function note() returns trigger language plpgsql as "
                 "'begin insert into " +
                 schema_ +
                 ".inserts values (now()); return null; end'; create trigger note after insert on jobs for each "
                 "statement execute function note()");
  const auto added = ask(store->put(std::move(requests), kNow));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(server_->query("select sum(octet_length(payload)) from " + schema_ + ".jobs"), std::to_string(3 * bytes));
  EXPECT_EQ(count("inserts"), "3") << "each goes alone";
}

TEST_F(PostgresStoreTest, SaysWhatTheServerHasAgainstIt) {
  const std::string folder = "host=" + server_->path();
  const Error nobody = refusal("postgresql://nobody:s%65cret@/postgres?" + folder + "&password=secret");
  EXPECT_EQ(nobody.code, Errc::network);
  EXPECT_THAT(nobody.message, HasSubstr("nobody"));
  EXPECT_THAT(nobody.message, HasSubstr("PGPASSWORD"));
  EXPECT_THAT(nobody.message, Not(HasSubstr("cret")));
  const Error nowhere = refusal("postgresql:///postgres?host=/nowhere&user=argiope");
  EXPECT_THAT(nowhere.message, HasSubstr("/nowhere"));
  const Error none = refusal("postgresql:///none?" + folder + "&user=argiope");
  EXPECT_THAT(none.message, HasSubstr("\"none\""));
  const Error wrong = refusal("postgresql://u:secret@/postgres?port=x%zz");
  EXPECT_EQ(wrong.code, Errc::invalid_input);
  EXPECT_THAT(wrong.message, Not(HasSubstr("secret")));
}

TEST(StoreUrlTest, IsShownWithoutItsPassword) {
  EXPECT_EQ(shown_store("postgresql://me:se:cr@et@h1,h2:5433/db?schema=s&password=secret&sslmode=require"),
            "postgresql://h1,h2:5433/db?schema=s&sslmode=require");
  EXPECT_EQ(shown_store("postgres://h/db?%70assword=x"), "postgres://h/db");
  EXPECT_EQ(shown_store("sqlite:a@b:c"), "sqlite:a@b:c");
  EXPECT_EQ(shown_store("postgres://u:secret@h:5433/db?password=a&b=secret&&schema=s"),
            "postgres://u@h:5433/db?schema=s");
  EXPECT_FALSE(why_no_store("postgresql://me@h/db?schema=s&store_timeout=5s"));
  EXPECT_TRUE(why_no_store("postgresql://me@h/db?store_timeout=soon"));
  EXPECT_TRUE(why_no_store("mysql://h/db"));
}

// Where a password has @, /, ? or : as they are, nobody knows where it ends.
TEST(StoreUrlTest, ThatMayBeReadInTwoWaysIsRefusedAndShowsNoPassword) {
  for (const std::string user : {"u:sec?ret@", "u:sec@ret@", "u:sec/ret@", "u:se@c/r@et@", "u:sec?a=ret@"}) {
    const std::string where = "postgresql://" + user + "h/db?schema=s";
    EXPECT_EQ(shown_store(where), "postgresql://h/db?schema=s");
    const auto why = why_no_store(where);
    ASSERT_TRUE(why) << where;
    EXPECT_THAT(*why, HasSubstr("%40"));
    EXPECT_THAT(*why, Not(HasSubstr("sec")));
    EXPECT_THAT(*why, Not(HasSubstr("ret")));
    EXPECT_FALSE(has_owner(where));
  }
  EXPECT_THAT(shown_store("postgresql://h/db?password=sec@ret"), Not(HasSubstr("sec")));
  EXPECT_EQ(shown_store("postgresql://u:a:b#c@h/db"), "postgresql://u@h/db");
  EXPECT_FALSE(why_no_store("postgresql://u:a:b%40%2F%3Fc@h/db"));
}

}  // namespace
}  // namespace argiope

// Events as clients of a stream see them, and counters.
#include "serve/watch/event_feed.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/broker_fixture.hpp"
#include "serve/watch/event_record.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kRun = 0xab;

// A client of a stream: what it was sent, and whether it takes more.
struct FeedClient {
  std::string got;
  bool stays = true;
  Event takes{true};

  EventFeed::Send send() {
    return [this](std::string_view piece) -> Coro<bool> {
      co_await takes.wait();
      got += piece;
      co_return stays;
    };
  }
  // The values of the lines that begin with `name: `.
  std::vector<std::string> all(std::string_view name) const {
    std::vector<std::string> values;
    std::string_view rest = got;
    const std::string start = std::string(name) + ": ";
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (line.starts_with(start)) values.emplace_back(line.substr(start.size()));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return values;
  }
  std::string last_id() const { return all("id").empty() ? "" : all("id").back(); }
};

class EventFeedTest : public BrokerTest {
 protected:
  // With a feed on an engine; streams are ended with it.
  template <class Body>
  void with_feed(Body body, EngineOptions engine = {}) {
    with_broker(
        [&]() -> Coro<void> {
          feed_.emplace(*engine_, options_, kRun);
          co_await body();
          feed_->stop();
          for (Task<void>& task : tasks_) co_await task;
          feed_.reset();
        },
        engine);
  }
  void connect(FeedClient& client, EventFeed::Wanted wanted) {
    tasks_.push_back(loop_.create_task(feed_->follow(std::move(wanted), client.send())));
  }
  static EventFeed::Wanted jobs_alone() {
    return {.schedules = false, .queues = false, .workers = false, .counters = false};
  }
  static EventFeed::Wanted after(std::string id) {
    EventFeed::Wanted wanted = jobs_alone();
    wanted.last_event_id = std::move(id);
    return wanted;
  }

  EventFeedOptions options_;
  std::optional<EventFeed> feed_;
  std::vector<Task<void>> tasks_;
};

TEST_F(EventFeedTest, AClientHearsOfAJobFromItsPutToItsEnd) {
  FeedClient client;
  with_feed([&]() -> Coro<void> {
    connect(client, jobs_alone());
    co_await sleep(1s);
    co_await put(job("mail"));
    const LeasedJob leased = co_await one("mail");
    co_await sleep(1s);
    co_await settle(leased.token, {.outcome = Outcome::bury, .error = "no such \"address\"\n"});
    co_await sleep(1s);
  });
  EXPECT_THAT(client.all("event"), ElementsAre("job", "job", "job"));
  EXPECT_THAT(
      client.all("data"),
      ElementsAre(R"({"event":"added","id":1,"queue":"mail","at":"2026-01-01T00:00:01Z"})",
                  HasSubstr(R"("event":"leased","id":1,"queue":"mail","at":"2026-01-01T00:00:01Z","attempt":1)"),
                  HasSubstr(R"("error":"no such \"address\"\u000a"})")));
  EXPECT_THAT(client.all("id"), ElementsAre("ab-0", "ab-1", "ab-2", "ab-3"));
}

TEST_F(EventFeedTest, SnapshotsOfManyQueuesThatNobodyTakesAreBounded) {
  constexpr std::size_t kMost = 400'000;
  options_.room = std::make_shared<AnswerRoom>(kMost);
  std::vector<FeedClient> slow(20);
  FeedClient other;
  with_feed([&]() -> Coro<void> {
    for (int i = 0; i < 400; ++i) co_await put(job(fmt::format("queue {}", i)));
    EventFeed::Wanted counters = {.jobs = false, .schedules = false, .queues = false, .workers = false};
    counters.who = "slow";
    for (FeedClient& client : slow) connect(client, counters);
    co_await sleep(3s);
    for (FeedClient& client : slow) client.takes.clear();
    co_await sleep(10s);
    EXPECT_GT(options_.room->bytes(), 40'000u);
    EXPECT_LE(options_.room->bytes(), kMost / 2) << "one caller has half of it";
    counters.who = "other";
    connect(other, counters);
    co_await sleep(10s);
    EXPECT_GE(other.all("event").size(), 9u) << "others hear of theirs";
    for (FeedClient& client : slow) client.takes.set();
    co_await sleep(5s);
    for (const FeedClient& client : slow) EXPECT_THAT(client.all("event"), testing::Contains("counters"));
    EXPECT_EQ(options_.room->bytes(), 0u);
  });
}

TEST_F(EventFeedTest, ASnapshotThatHasNoRoomIsMadeAgainWhenThereIsSome) {
  constexpr std::size_t kMost = 400'000;
  options_.room = std::make_shared<AnswerRoom>(kMost);
  FeedClient client;
  int looks = 0;
  with_feed([&]() -> Coro<void> {
    for (int i = 0; i < 400; ++i) co_await put(job(fmt::format("queue {}", i)));
    // Room for something, and not for it.
    auto others = options_.room->take("slow", kMost / 2 - 20'000);
    EventFeed::Wanted counters = {.jobs = false, .schedules = false, .queues = false, .workers = false};
    counters.who = "slow";
    counters.may_see = [&](std::string_view) {
      ++looks;
      return true;
    };
    connect(client, counters);
    co_await sleep(60s);
    EXPECT_THAT(client.all("event"), testing::Not(testing::Contains("counters")));
    EXPECT_EQ(looks, 400) << "it was made once";
    others.reset();
    co_await sleep(2s);
    EXPECT_THAT(client.all("event"), testing::Contains("counters"));
  });
}

TEST_F(EventFeedTest, WhatHappensTogetherComesInOnePieceAndSoon) {
  FeedClient client;
  std::size_t pieces = 0;
  with_feed([&]() -> Coro<void> {
    tasks_.push_back(loop_.create_task(feed_->follow(jobs_alone(), [&](std::string_view) -> Coro<bool> {
      ++pieces;
      co_return true;
    })));
    co_await sleep(1s);
    EXPECT_EQ(pieces, 1u) << "the greeting";
    for (int i = 0; i < 100; ++i) co_await put(job("mail"));
    co_await sleep(1ms);
    EXPECT_EQ(pieces, 2u) << "after a rest, at once";
    for (int i = 0; i < 100; ++i) co_await put(job("mail"));
    co_await sleep(1ms);
    EXPECT_EQ(pieces, 2u);
    co_await sleep(100ms);
    EXPECT_EQ(pieces, 3u);
  });
}

TEST_F(EventFeedTest, WhoComesBackGetsWhatItHasMissedAndNothingTwice) {
  FeedClient first, second;
  with_feed([&]() -> Coro<void> {
    connect(first, jobs_alone());
    co_await put(job("mail"));
    co_await sleep(1s);
    first.stays = false;
    co_await put(job("mail"));
    co_await sleep(1s);
    co_await put(job("mail"));
    connect(second, after("ab-1"));
    co_await sleep(1s);
  });
  EXPECT_EQ(first.last_id(), "ab-2");
  EXPECT_THAT(second.all("id"), ElementsAre("ab-1", "ab-2", "ab-3"));
  EXPECT_THAT(second.all("event"), ElementsAre("job", "job"));
}

TEST_F(EventFeedTest, AnIdOfAnotherRunOrOfNoneIsAnsweredByReset) {
  std::vector<std::string> ids{
      "ac-1", "nonsense", "", "ab-", "ab-7", "ab-18446744073709551615", "ab-99999999999999999999", "-1"};
  std::vector<FeedClient> clients(ids.size());
  with_feed([&]() -> Coro<void> {
    co_await sleep(1s);
    for (std::size_t i = 0; i < ids.size(); ++i) connect(clients[i], after(ids[i]));
    co_await sleep(1s);
    co_await put(job("mail"));
    co_await sleep(1s);
    EXPECT_EQ(feed_->resets(), ids.size());
  });
  for (const FeedClient& client : clients) EXPECT_THAT(client.all("event"), ElementsAre("reset", "job"));
  EXPECT_THAT(clients[0].all("data").front(), R"({"why":"another run"})");
  EXPECT_THAT(clients[4].all("data").front(), R"({"why":"too old"})");
}

TEST_F(EventFeedTest, ASlowClientIsToldResetAndGoesOnWithWhatHappensThen) {
  options_.kept = 10;
  FeedClient slow, quick;
  with_feed([&]() -> Coro<void> {
    connect(slow, jobs_alone());
    connect(quick, jobs_alone());
    co_await sleep(1s);
    slow.takes.clear();
    for (int i = 0; i < 30; ++i) {
      co_await put(job("mail"));
      co_await sleep(1s);
    }
    slow.takes.set();
    co_await sleep(1s);
    co_await put(job("mail"));
    co_await sleep(1s);
  });
  EXPECT_EQ(quick.all("event").size(), 31u);
  EXPECT_THAT(slow.all("event"), ElementsAre("job", "reset", "job"));
  EXPECT_EQ(slow.last_id(), "ab-31");
}

TEST_F(EventFeedTest, NothingIsRecordedWhileNobodyLooks) {
  options_.keep_for = 10s;
  FeedClient first, in_time, late;
  with_feed([&]() -> Coro<void> {
    co_await put(job("mail"));
    connect(first, jobs_alone());
    co_await put(job("mail"));
    co_await sleep(1s);
    first.stays = false;
    co_await put(job("mail"));
    co_await sleep(5s);
    EXPECT_EQ(feed_->streams(), 0u);
    co_await put(job("mail"));
    connect(in_time, after(first.last_id()));
    in_time.stays = false;
    co_await sleep(11s);
    co_await put(job("mail"));
    connect(late, after(in_time.last_id()));
    co_await sleep(1s);
  });
  EXPECT_THAT(in_time.all("event"), ElementsAre("job"));
  EXPECT_THAT(late.all("event"), ElementsAre("reset")) << "an event was missed";
}

TEST_F(EventFeedTest, AStreamMayBeginWithTheLastEventsAlsoThoseThatNobodyWatched) {
  options_.keep_for = 1s;
  FeedClient first, second, brief;
  const auto lately = [](std::size_t most) {
    EventFeed::Wanted wanted = jobs_alone();
    wanted.last = most;
    return wanted;
  };
  with_feed([&]() -> Coro<void> {
    co_await put(job("mail"));
    co_await settle((co_await one("mail")).token, {.outcome = Outcome::bury, .error = "at night"});
    connect(first, lately(50));
    co_await put(job("mail"));
    co_await settle((co_await one("mail")).token, {.outcome = Outcome::bury, .error = "by day"});
    co_await sleep(1s);
    connect(second, lately(50));
    connect(brief, lately(1));
    co_await sleep(1s);
  });
  EXPECT_THAT(first.all("data"),
              ElementsAre(HasSubstr("at night"), HasSubstr("added"), HasSubstr("leased"), HasSubstr("by day")));
  EXPECT_EQ(second.all("data"), first.all("data")) << "none twice";
  EXPECT_THAT(brief.all("data"), ElementsAre(HasSubstr("by day")));
}

TEST_F(EventFeedTest, AQueueAndWhatOneMaySeeBoundWhatOneIsTold) {
  FeedClient of_queue, of_team;
  EventFeed::Wanted wanted_of_queue{.counters = false, .queue = "mail"};
  EventFeed::Wanted wanted_of_team;
  wanted_of_team.may_see = [](std::string_view name) { return name.starts_with("sms"); };
  with_feed([&]() -> Coro<void> {
    connect(of_queue, wanted_of_queue);
    connect(of_team, wanted_of_team);
    co_await sleep(10ms);
    for (const char* queue : {"mail", "sms", "sms-bulk", "billing"}) co_await put(job(queue));
    feed_->tell("worker", R"({"event":"came","name":"secret:1"})");
    co_await sleep(5s);
  });
  EXPECT_THAT(of_queue.got, HasSubstr("\"queue\":\"mail\""));
  EXPECT_THAT(of_queue.got, Not(HasSubstr("sms")));
  EXPECT_THAT(of_queue.all("event"), ElementsAre("job", "worker"));
  EXPECT_THAT(of_team.got, HasSubstr("\"queue\":\"sms-bulk\""));
  for (const char* hidden : {"mail", "billing", "secret"}) EXPECT_THAT(of_team.got, Not(HasSubstr(hidden)));
}

TEST_F(EventFeedTest, CountersComeEachSecondAndAreCountedOnceForAll) {
  options_.daemon_counters = [] { return std::string(R"({"connections":3})"); };
  FeedClient here, there;
  const EventFeed::Wanted wanted{.jobs = false, .schedules = false, .queues = false};
  with_feed([&]() -> Coro<void> {
    for (int i = 0; i < 20; ++i) co_await put(job("mail"));
    co_await sleep(10s);
    connect(here, wanted);
    connect(there, wanted);
    co_await sleep(3500ms);
    here.stays = there.stays = false;
    co_await sleep(1s);
  });
  EXPECT_EQ(here.got, there.got);
  EXPECT_THAT(here.all("event"), ElementsAre("counters", "counters", "counters", "counters", "counters"));
  EXPECT_EQ(here.all("id").size(), 1u);
  EXPECT_THAT(
      here.all("data").front(),
      HasSubstr(R"("mail":{"ready":20,"delayed":0,"running":0,"done":0,"buried":0,"cancelled":0,"added_rate":2.0,)"));
  EXPECT_THAT(here.all("data").front(), HasSubstr(R"("daemon":{"connections":3})"));
}

TEST_F(EventFeedTest, ASilentStreamIsKeptOpenByComments) {
  FeedClient client;
  with_feed([&]() -> Coro<void> {
    connect(client, jobs_alone());
    co_await sleep(46s);
  });
  EXPECT_EQ(client.got,
            "retry: 2000\nid: ab-0\n\n: nothing happened\nid: ab-0\n\n: nothing happened\nid: ab-0\n\n"
            ": nothing happened\nid: ab-0\n\n");
}

TEST_F(EventFeedTest, WhatOneDoesNotWantToHearOfDoesNotMakeHimTooOld) {
  options_.kept = 20;
  FeedClient first, second;
  EventFeed::Wanted of_mail = jobs_alone();
  of_mail.queue = "mail";
  with_feed([&]() -> Coro<void> {
    connect(first, of_mail);
    for (int i = 0; i < 100; ++i) {
      co_await put(job("sms"));
      co_await sleep(1s);
    }
    EXPECT_THAT(first.all("event"), IsEmpty());
    of_mail.last_event_id = first.last_id();
    for (int i = 0; i < 5; ++i) co_await put(job("mail"));
    connect(second, of_mail);
    co_await sleep(1s);
    EXPECT_EQ(feed_->resets(), 0u);
  });
  EXPECT_EQ(second.all("event").size(), 5u);
}

TEST_F(EventFeedTest, ASnapshotForOneWhoMaySeeSomeHasTheTotalsOfThose) {
  with_feed([&]() -> Coro<void> {
    for (const char* queue : {"mail", "mail", "billing"}) co_await put(job(queue));
    const auto seen = co_await feed_->counters([](std::string_view name) { return name == "mail"; });
    EXPECT_TRUE(seen.has_value());
    EXPECT_THAT(*seen, HasSubstr(R"("totals":{"ready":2,)"));
    EXPECT_THAT(*seen, Not(HasSubstr("billing")));
    const auto all = co_await feed_->counters();
    EXPECT_THAT(*all, HasSubstr(R"("totals":{"ready":3,)"));
  });
}

TEST_F(EventFeedTest, ThereAreOnlySoManyStreams) {
  options_.most_streams = 2;
  with_feed([&]() -> Coro<void> {
    auto first = feed_->stream({});
    {
      const auto second = feed_->stream({});
      EXPECT_EQ(second.status, 200);
      EXPECT_EQ(feed_->stream({}).status, 429);
    }
    EXPECT_EQ(feed_->stream({}).status, 200) << "the second was never read";
    feed_->stop();
    EXPECT_EQ(feed_->stream({}).status, 503);
    co_return;
  });
}

TEST_F(EventFeedTest, EachHasAShareOfTheStreams) {
  options_.most_streams = 4;
  options_.most_streams_of_one = 2;
  with_feed([&]() -> Coro<void> {
    const EventFeed::Wanted greedy{.who = "greedy"}, other{.who = "other"};
    std::vector<ServerResponse> open;
    for (int i = 0; i < 2; ++i) open.push_back(feed_->stream(greedy));
    EXPECT_EQ(feed_->stream(greedy).status, 429);
    EXPECT_EQ(feed_->stream(other).status, 200);
    open.pop_back();
    EXPECT_EQ(feed_->stream(greedy).status, 200) << "one has ended";
    co_return;
  });
}

TEST_F(EventFeedTest, AStreamEndsWithTheRightThatLetItIn) {
  FeedClient gone, slow, stays;
  with_feed([&]() -> Coro<void> {
    const auto right = std::make_shared<AccessRight>(loop_.clock());
    EventFeed::Wanted wanted = jobs_alone();
    connect(stays, wanted);
    wanted.right = right;
    connect(gone, wanted);
    connect(slow, wanted);
    co_await sleep(1s);
    slow.takes.clear();
    co_await put(job("before"));
    co_await sleep(1s);
    right->end();
    co_await sleep(1s);
    EXPECT_EQ(feed_->streams(), 1u);
    co_await put(job("after"));
    co_await sleep(1s);
    connect(gone, wanted);
    co_await sleep(1s);
    EXPECT_EQ(feed_->streams(), 1u) << "and none begins";
  });
  EXPECT_THAT(gone.got, HasSubstr("before"));
  EXPECT_THAT(gone.got, Not(HasSubstr("after")));
  EXPECT_THAT(slow.got, Not(HasSubstr("before")));
  EXPECT_THAT(stays.got, HasSubstr("after"));
}

TEST_F(EventFeedTest, AStreamEndsWhenItsRightExpires) {
  FeedClient client;
  with_feed([&]() -> Coro<void> {
    EventFeed::Wanted wanted = jobs_alone();
    wanted.right = std::make_shared<AccessRight>(loop_.clock(), loop_.clock().wall_now() + 10s);
    connect(client, wanted);
    co_await sleep(9s);
    EXPECT_EQ(feed_->streams(), 1u);
    co_await sleep(1s);
    co_await put(job("late"));
    co_await sleep(1s);
    EXPECT_EQ(feed_->streams(), 0u);
  });
  EXPECT_THAT(client.got, Not(HasSubstr("late")));
}

TEST_F(EventFeedTest, CountersGoOnWhenOnceTheyCouldNotBeMade) {
  FeedClient client;
  int asked = 0;
  options_.daemon_counters = [&asked]() -> std::string {
    if (++asked <= 2) throw std::runtime_error("there is no memory");
    return "{}";
  };
  with_feed([&]() -> Coro<void> {
    connect(client, {.jobs = false, .schedules = false, .queues = false});
    co_await sleep(10s);
  });
  EXPECT_THAT(client.all("event"), Not(IsEmpty()));
}

TEST_F(EventFeedTest, SchedulesAreToldWithTheirRuns) {
  FeedClient client;
  with_feed([&]() -> Coro<void> {
    connect(client, {.jobs = false, .counters = false});
    auto added = co_await engine_->book().schedules().add(
        {.name = "nightly", .trigger = *Trigger::every(1min, loop_.clock().wall_now())});
    EXPECT_TRUE(added.has_value());
    engine_->scheduler().start();
    co_await sleep(61s);
    auto left = co_await engine_->scheduler().shutdown();
    EXPECT_TRUE(left.has_value());
    co_await sleep(1s);
  });
  EXPECT_THAT(client.got, HasSubstr(R"({"event":"schedule_added","id":1,"name":"nightly")"));
  EXPECT_THAT(client.got, HasSubstr(R"("event":"job_submitted","id":1,"name":"nightly")"));
}

TEST_F(EventFeedTest, ATenantHearsOfAScheduleOnlyWhereTheQueueOfItsJobsIsItsOwn) {
  FeedClient tenant, all;
  EventFeed::Wanted wanted{.jobs = false, .queues = false, .workers = false, .counters = false};
  wanted.may_see = [](std::string_view name) { return name.starts_with("b."); };
  with_feed([&]() -> Coro<void> {
    connect(tenant, wanted);
    connect(all, {.jobs = false, .queues = false, .workers = false, .counters = false});
    auto& schedules = engine_->book().schedules();
    for (const auto& [name, queue] :
         {std::pair("b.secret", "a.q"), std::pair("b.own", "b.q"), std::pair("b.moved", "b.q")}) {
      Schedule schedule{.name = name, .trigger = *Trigger::every(1h, loop_.clock().wall_now())};
      schedule.job.queue = queue;
      EXPECT_TRUE(co_await schedules.add(std::move(schedule)));
    }
    EXPECT_TRUE(co_await schedules.pause("b.secret"));
    EXPECT_TRUE(co_await schedules.modify("b.moved", [](Schedule& schedule) { schedule.job.queue = "a.moved"; }));
    for (const char* name : {"b.secret", "b.own", "b.moved"}) EXPECT_TRUE(co_await schedules.remove(name));
    co_await sleep(1s);
  });
  for (const char* told : {R"("schedule_added","id":2,"name":"b.own")", R"("schedule_removed","id":2,"name":"b.own")",
                           R"("schedule_added","id":3,"name":"b.moved")"}) {
    EXPECT_THAT(tenant.got, HasSubstr(told));
  }
  for (const char* hidden : {"b.secret", "schedule_modified", "a.moved", R"("schedule_removed","id":3)"}) {
    EXPECT_THAT(tenant.got, Not(HasSubstr(hidden)));
    EXPECT_THAT(all.got, HasSubstr(hidden));
  }
}

TEST_F(EventFeedTest, StreamsEndWhenTheFeedIsDestroyed) {
  FeedClient client;
  with_broker([&]() -> Coro<void> {
    feed_.emplace(*engine_, options_, kRun);
    Task<void> task = loop_.create_task(feed_->follow({}, client.send()));
    co_await sleep(500ms);
    feed_.reset();
    co_await put(job("mail"));
    co_await task;
  });
  EXPECT_THAT(client.all("event"), ElementsAre("counters"));
}

TEST(EventRecord, KeepsTheLastAndLeavesAGapWhereItForgets) {
  EventRecord record(3);
  for (const char* data : {"1", "2", "3", "4"}) record.add("worker", data, "");
  EXPECT_EQ(record.first(), 2u);
  EXPECT_EQ(record.next(), 5u);
  EXPECT_EQ(record.written(4), "event: worker\ndata: 4\n\n");
  record.forget();
  EXPECT_EQ(record.first(), 6u);
  EXPECT_EQ(record.next(), 6u);
  record.add("worker", "6", "");
  EXPECT_EQ(record.written(6), "event: worker\ndata: 6\n\n");
}

TEST(EventRecord, ALongTextIsCutBetweenItsCharacters) {
  EventRecord record(3);
  std::string text(299, 'x');
  text += "ä…";
  record.add(JobEvent{.kind = JobEventKind::buried, .id = 1, .queue = "q", .text = text});
  EXPECT_THAT(std::string(record.written(1)), HasSubstr(std::string(299, 'x') + "\"}"));
}

class TallyTest : public BrokerTest {};

TEST_F(TallyTest, RatesAreOfTheLastTenSeconds) {
  with_broker([&]() -> Coro<void> {
    Tally tally(*engine_);
    EXPECT_EQ(tally.rates("mail")[0], 0);
    co_await sleep(500ms);  // so that no second ends when a look is taken
    for (int i = 0; i < 100; ++i) {
      co_await put(job("mail"));
      co_await sleep(200ms);
    }
    EXPECT_NEAR(tally.rates("mail")[0], 5, 0.2);
    co_await sleep(5s);
    EXPECT_NEAR(tally.rates("mail")[0], 2.6, 0.2);
    co_await sleep(6s);
    EXPECT_EQ(tally.rates("mail")[0], 0);
    co_await put(job("mail"));
    co_await sleep(1s);
    EXPECT_NEAR(tally.rates("mail")[0], 0.1, 0.001);
  });
}

TEST_F(TallyTest, HowLongJobsWaitAndRunIsCounted) {
  with_broker([&]() -> Coro<void> {
    Tally tally(*engine_);
    co_await put(job("mail"));
    co_await put(delayed("mail", 4s));
    co_await sleep(10s);
    const auto leased = co_await lease_all("mail");
    EXPECT_EQ(leased.size(), 2u);
    co_await sleep(200ms);
    co_await settle(leased[0].token);
    co_await settle(leased[1].token, {.outcome = Outcome::retry, .error = "x", .delay = 0ms});
    for (const LeasedJob& again : co_await lease_all("mail")) co_await settle(again.token);
    tally.for_each_queue([](std::string_view name, const QueueTally& queue) {
      EXPECT_EQ(name, "mail");
      EXPECT_EQ(queue.totals, (PerTallied<std::uint64_t>{2, 3, 2, 1, 0, 0, 0, 0}));
      EXPECT_NEAR(queue.waits.sum, 16, 0.01) << "first runs alone";
      EXPECT_NEAR(queue.runs.sum, 0.4, 0.01);
    });
  });
}

TEST(SpanHistogram, EachSpanCountsInThePlaceOfTheFirstBoundThatIsNoSmaller) {
  SpanHistogram histogram;
  for (const Duration span : {Duration(-5s), Duration(0s), Duration(1ms), Duration(2ms), Duration(3h)})
    histogram.observe(span);
  EXPECT_EQ(histogram.counts[0], 3u);
  EXPECT_EQ(histogram.counts[1], 1u);
  EXPECT_EQ(histogram.counts.back(), 1u);
}

}  // namespace
}  // namespace argiope

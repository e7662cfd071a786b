// Requests with a key, at the owner's and beside it: done once, however often they come.
#include "engine/broker_fixture.hpp"
#include "support/slow_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using As = OnceCall::As;

class OnceTest : public BrokerTest {
 protected:
  Coro<OnceReply> once(OnceCall call) {
    auto reply = co_await engine_->book().once(std::move(call));
    if (!reply) throw std::runtime_error(reply.error().message);
    co_return std::move(*reply);
  }
  Coro<OnceReply> settle_once(std::string key, std::vector<RunEnd> ends) {
    auto reply = co_await engine_->settle_once({std::move(key), "d"}, std::move(ends));
    if (!reply) throw std::runtime_error(reply.error().message);
    co_return std::move(*reply);
  }
  Coro<StateCounts> counts() {
    const auto all = co_await engine_->book().counts("q");
    co_return all->at(0).second;
  }
  Coro<void> configure(QueueConfig config) { EXPECT_TRUE(co_await engine_->book().configure("q", std::move(config))); }
};

TEST_F(OnceTest, JobsArePutOnce) {
  with_broker([&]() -> Coro<void> {
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q", "a"), job("q", "b")}};
    const OnceReply first = co_await once(call);
    EXPECT_EQ(first.how, Repetition::first);
    EXPECT_EQ(first.puts.at(1)->id, 2u);
    const OnceReply again = co_await once(call);
    EXPECT_EQ(again.how, Repetition::repeated);
    EXPECT_EQ(again.puts.at(1)->id, 2u);
    OnceCall other = call;
    other.key.digest = "other";
    EXPECT_EQ((co_await once(other)).how, Repetition::mismatch);
    EXPECT_EQ(co_await payloads("q"), "a b ");
  });
}

TEST_F(OnceTest, ARepetitionIsAnsweredThoughTheQueueIsFullAndTakesNoRoom) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.capacity = 2});
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q", "a"), job("q", "b"), job("q", "c")}};
    const OnceReply first = co_await once(call);
    EXPECT_TRUE(first.puts.at(1));
    EXPECT_EQ(first.puts.at(2).error().code, Errc::refused);
    const OnceReply again = co_await once(call);
    EXPECT_TRUE(again.puts.at(1));
    EXPECT_EQ(again.puts.at(2).error().code, Errc::refused) << "what was answered";
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    EXPECT_TRUE(co_await engine_->book().put(job("q")));
    EXPECT_EQ((co_await engine_->book().put(job("q"))).error().code, Errc::refused);
  });
}

TEST_F(OnceTest, TwoOfOneKeyAtTheSameMomentAreOne) {
  with_broker([&]() -> Coro<void> {
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q", "a")}};
    auto first = loop_.create_task(once(call));
    auto second = loop_.create_task(once(call));
    EXPECT_EQ((co_await first).puts.at(0)->id, (co_await second).puts.at(0)->id);
    EXPECT_EQ(co_await payloads("q"), "a ");
  });
}

TEST_F(OnceTest, AllOrNoneIsPutAndARequestThatFailsMayBeTriedAgain) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.capacity = 2});
    OnceCall call{.key = {"k", "d"}, .jobs = {job("q"), job("q"), job("q")}, .as = As::all};
    EXPECT_EQ((co_await engine_->book().once(call)).error().code, Errc::refused);
    call.jobs.pop_back();
    EXPECT_EQ((co_await once(call)).how, Repetition::first);
    EXPECT_EQ((co_await counts()).ready, 2u);
  });
}

TEST_F(OnceTest, ABatchIsPutOnceWithItsCompletion) {
  with_broker([&]() -> Coro<void> {
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q", "a"), job("q", "completion")}, .as = As::batch};
    co_await once(call);
    EXPECT_EQ((co_await once(call)).puts.at(1)->id, 2u);
    EXPECT_EQ((co_await explained(2)).reason, WaitReason::other_jobs);
  });
}

TEST_F(OnceTest, ChangesAreMadeOnceAndARunIsAskedToStop) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.keep_cancelled = 1h});
    co_await put(job("q", "waits"));
    co_await put(job("q", "runs", 9));
    std::vector<std::uint64_t> stopped;
    LeaseCall lease{.queues = {"q"}, .worker = "w"};
    lease.on_cancel = [&](std::uint64_t token) { stopped.push_back(token); };
    const auto leased = co_await engine_->lease(std::move(lease));
    OnceCall call{.key = {"k", "d"}};
    for (JobId id = 1; id <= 3; ++id) call.changes.push_back({.id = id, .kind = ChangeKind::cancel});
    for (const Repetition how : {Repetition::first, Repetition::repeated}) {
      const OnceReply reply = co_await once(call);
      EXPECT_EQ(reply.how, how);
      EXPECT_EQ(reply.changes.at(0).outcome, ChangeOutcome::changed);
      EXPECT_EQ(reply.changes.at(1).outcome, ChangeOutcome::asked);
      EXPECT_EQ(reply.changes.at(2).outcome, ChangeOutcome::not_found);
    }
    EXPECT_EQ(stopped, std::vector{leased->at(0).token});
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_EQ((co_await counts()).cancelled, 1u) << "kept, as the queue says";
    EXPECT_TRUE(co_await settle(leased->at(0).token, Verdict{.outcome = Outcome::release}));
    EXPECT_EQ((co_await counts()).cancelled, 2u);
  });
}

TEST_F(OnceTest, RunsAreSettledOnce) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.retry = {.max_attempts = 1}});
    for (int i = 0; i < 3; ++i) co_await put(job("q"));
    const auto leased = co_await lease_all("q");
    std::vector<RunEnd> ends;
    for (const LeasedJob& run : leased) ends.push_back({run.token, {}});
    ends[0].verdict.follow_ups.push_back(job("next", "follow-up"));
    ends[1].verdict = {.outcome = Outcome::bury, .error = "bad"};
    ends[2].verdict.follow_ups.push_back(job("q"));
    ends[2].verdict.follow_ups[0].batch = 77;
    ends.push_back({99, {}});
    for (const Repetition how : {Repetition::first, Repetition::repeated}) {
      const OnceReply reply = co_await settle_once("k", ends);
      EXPECT_EQ(reply.how, how);
      EXPECT_TRUE(reply.settlements.at(0).settled);
      EXPECT_EQ(reply.settlements[0].follow_ups.at(0).id, 4u);
      EXPECT_TRUE(reply.settlements.at(1).settled);
      EXPECT_EQ(reply.settlements.at(2).refused.value().code, Errc::invalid_input);
      EXPECT_FALSE(reply.settlements.at(3).settled);
    }
    EXPECT_EQ(co_await payloads("next"), "follow-up ");
    EXPECT_EQ((co_await counts()).buried, 2u) << "the one whose follow-up was refused has failed";
    EXPECT_EQ((co_await counts()).running, 0u);
  });
}

TEST_F(OnceTest, AFollowUpThatIsTooLargeFailsItsRunAlone) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.retry = {.max_attempts = 1}, .max_payload_bytes = 10});
    co_await put(job("q"));
    std::vector<RunEnd> ends;
    ends.push_back({(co_await one("q")).token, {}});
    ends[0].verdict.follow_ups.push_back(job("q", "longer than ten bytes"));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ((co_await settle_once("k", ends)).settlements.at(0).refused.value().code, Errc::too_large);
    }
    EXPECT_EQ((co_await counts()).buried, 1u);
  });
}

TEST_F(OnceTest, TwoSettlementsOfOneKeyAtTheSameMomentAreOne) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    std::vector<RunEnd> ends;
    ends.push_back({(co_await one("q")).token, {}});
    auto first = loop_.create_task(settle_once("k", ends));
    auto second = loop_.create_task(settle_once("k", ends));
    EXPECT_TRUE((co_await first).settlements.at(0).settled);
    EXPECT_TRUE((co_await second).settlements.at(0).settled);
  });
}

TEST_F(OnceTest, ARequestIsForgottenAfterADay) {
  with_broker([&]() -> Coro<void> {
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q")}};
    co_await once(call);
    co_await sleep(kRequestsKept - 1min);
    EXPECT_EQ((co_await once(call)).how, Repetition::repeated);
    co_await sleep(5min);
    EXPECT_EQ((co_await once(call)).how, Repetition::first);
  });
}

TEST_F(OnceTest, BesideTheOwnerItIsTheSame) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Book book = value_or_throw(co_await Book::open(where));
    value_or_throw(co_await book.configure("q", {.capacity = 3}));
    const OnceCall call{.key = {"k", "d"}, .jobs = {job("q", "a"), job("q", "b")}};
    EXPECT_EQ(value_or_throw(co_await book.once(call)).how, Repetition::first);
    EXPECT_EQ(value_or_throw(co_await book.once(call)).how, Repetition::repeated);
    const OnceCall more{.key = {"l", "d"}, .jobs = {job("q"), job("r"), job("q")}};
    const OnceReply some = value_or_throw(co_await book.once(more));
    EXPECT_EQ(some.puts.at(0).error().code, Errc::refused) << "there is no room for both";
    EXPECT_TRUE(some.puts.at(1));
    OnceCall cancel{.key = {"m", "d"}, .changes = {{.id = 1, .kind = ChangeKind::cancel}}};
    EXPECT_EQ(value_or_throw(co_await book.once(cancel)).changes.at(0).outcome, ChangeOutcome::changed);
    EXPECT_EQ((co_await book.get(1)).error().code, Errc::not_found) << "the queue keeps no cancelled jobs";
    Engine engine = value_or_throw(co_await Engine::open(where));
    EXPECT_EQ(value_or_throw(co_await engine.book().once(call)).how, Repetition::repeated);
  }));
}

TEST_F(OnceTest, ABookBesideTheOwnerCountsAQueueOnceForAllJobsOfACall) {
  SlowStore counted{store_};
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Book book = value_or_throw(co_await Book::open(counted));
    value_or_throw(co_await book.configure("q", {.capacity = 30}));
    const std::vector<NewJob> jobs(40, job("q"));
    const auto replies = value_or_throw(co_await book.put_each(jobs));
    EXPECT_EQ(std::ranges::count_if(replies, [](const auto& reply) { return reply.has_value(); }), 30);
    EXPECT_EQ(counted.times_counted, 1u);
  }));
}

}  // namespace
}  // namespace argiope

// Why a job does not run: one test for every reason there is (docs/jobs.md, "Why does it not run?").
#include <gmock/gmock.h>

#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExplainTest : public BrokerTest {
 protected:
  WallTime now() const { return loop_.clock().wall_now(); }
  Coro<void> configure(QueueConfig config) {
    auto done = co_await engine_->book().configure("q", std::move(config));
    EXPECT_TRUE(done);
  }
  // Somebody who would take what he can get, but never another queue's jobs.
  Task<Result<std::vector<LeasedJob>>> somebody_waits() {
    return loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "somebody"}));
  }
};

TEST_F(ExplainTest, NotDue) {
  with_broker([&]() -> Coro<void> {
    const WallTime due = now() + 90s;
    const auto why = co_await explained(co_await put(delayed("q", 90s)));
    EXPECT_EQ(why.state, JobState::delayed);
    EXPECT_EQ(why.reason, WaitReason::not_due);
    EXPECT_EQ(why.until, due);
    EXPECT_EQ(to_sentence(why), "it is not due until 2026-01-01T00:01:30Z");
  });
}

TEST_F(ExplainTest, QueuePaused) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    value_or_throw(co_await engine_->book().pause("q"));
    const auto why = co_await explained(id);
    EXPECT_EQ(why.reason, WaitReason::queue_paused);
    EXPECT_EQ(why.state, JobState::ready);
    EXPECT_FALSE(why.until);
    EXPECT_EQ(to_sentence(why), "queue \"q\" is paused");
  });
}

TEST_F(ExplainTest, QueueBucketEmptyUntil) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.limits.rate = 0.1;
    co_await configure(config);
    co_await put(job("q"));
    const JobId second = co_await put(job("q"));
    (void)co_await one("q");
    const auto why = co_await explained(second);
    EXPECT_EQ(why.reason, WaitReason::queue_rate);
    EXPECT_EQ(why.until, now() + 10s);
  });
}

TEST_F(ExplainTest, QueueAtConcurrency) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.limits.concurrency = 1;
    co_await configure(config);
    co_await put(job("q"));
    const JobId second = co_await put(job("q"));
    (void)co_await one("q");
    EXPECT_EQ((co_await explained(second)).reason, WaitReason::queue_concurrency);
  });
}

TEST_F(ExplainTest, KeyRestingUntil) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q", {}, 0, "host"));
    const WallTime until = now() + 1h;
    EXPECT_TRUE(engine_->rest_key("q", "host", loop_.time() + 1h));
    const auto why = co_await explained(id);
    EXPECT_EQ(why.reason, WaitReason::key_resting);
    EXPECT_EQ(why.until, until);
    EXPECT_TRUE(engine_->wake_key("q", "host"));
    EXPECT_NE((co_await explained(id)).reason, WaitReason::key_resting);
  });
}

TEST_F(ExplainTest, KeyAtConcurrency) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.key_limits.concurrency = 1;
    co_await configure(config);
    co_await put(job("q", {}, 0, "host"));
    const JobId second = co_await put(job("q", {}, 0, "host"));
    (void)co_await one("q");
    EXPECT_EQ((co_await explained(second)).reason, WaitReason::key_concurrency);
  });
}

TEST_F(ExplainTest, KeyBucketEmptyUntil) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.key_limits.rate = 0.5;
    co_await configure(config);
    co_await put(job("q", {}, 0, "host"));
    const JobId second = co_await put(job("q", {}, 0, "host"));
    (void)co_await one("q");
    const auto why = co_await explained(second);
    EXPECT_EQ(why.reason, WaitReason::key_rate);
    EXPECT_EQ(why.until, now() + 2s);
  });
}

TEST_F(ExplainTest, MoreImportantJobsAhead) {
  EngineOptions options;
  options.window = 8;
  with_broker(
      [&]() -> Coro<void> {
        QueueConfig config;
        config.limits.rate = 0;
        co_await configure(config);
        for (int i = 0; i < 100; ++i) co_await put(job("q", {}, 1));
        const JobId last = co_await put(job("q"));
        config.limits.rate = kUnlimitedRate;
        co_await configure(config);
        const LeasedJob running = co_await one("q");
        const auto why = co_await explained(last);
        EXPECT_EQ(why.reason, WaitReason::more_important_jobs);
        EXPECT_EQ(why.ahead, 99u);
        EXPECT_EQ(to_sentence(why), "99 jobs are ahead of it, of higher priority or put before it");
        co_await settle(running.token);
      },
      options);
}

TEST_F(ExplainTest, NoWorker) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    const auto why = co_await explained(id);
    EXPECT_EQ(why.reason, WaitReason::no_worker);
    EXPECT_EQ(to_sentence(why), "no worker asks for jobs of queue \"q\"");
  });
}

// A partition without owner is what one sees who looks at a store that no broker has: see the command's tests.

TEST_F(ExplainTest, WaitsForOtherJobs) {
  with_broker([&]() -> Coro<void> {
    const JobId first = co_await put(job("q"));
    NewJob second = job("q");
    second.waits_for = {first};
    const auto why = co_await explained(co_await put(second));
    EXPECT_EQ(why.reason, WaitReason::other_jobs);
    EXPECT_EQ(why.state, JobState::delayed);
    EXPECT_THAT(why.waits_for, ElementsAre(first));
    EXPECT_EQ(to_sentence(why), "it waits for other jobs to end: 1");
  });
}

TEST_F(ExplainTest, Running) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    const LeasedJob running = co_await one("q");
    engine_->set_progress(running.token, 0.25, "a quarter");
    const auto why = co_await explained(id);
    EXPECT_EQ(why.reason, WaitReason::running);
    EXPECT_EQ(why.lease_until, now() + 60s);
    EXPECT_EQ(why.worker, "w");
    EXPECT_EQ(why.progress, 0.25);
    EXPECT_EQ(why.progress_message, "a quarter");
    EXPECT_THAT(to_sentence(why), HasSubstr("attempt 1 of 3, by w"));
  });
}

TEST_F(ExplainTest, BuriedAndEnded) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.keep_done = 1h;
    co_await configure(config);
    const JobId buried = co_await put(job("q"));
    const JobId done = co_await put(job("q"));
    co_await settle((co_await one("q")).token, {.outcome = Outcome::bury, .error = "hopeless"});
    co_await settle((co_await one("q")).token);
    EXPECT_EQ((co_await explained(buried)).reason, WaitReason::buried);
    EXPECT_EQ(to_sentence(co_await explained(buried)),
              "it is buried after 1 attempt: hopeless; kick it to run it again");
    EXPECT_EQ((co_await explained(done)).reason, WaitReason::ended);
    EXPECT_EQ((co_await explained(done)).state, JobState::done);
  });
}

TEST_F(ExplainTest, TheNextOne) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.limits.concurrency = 2;
    co_await configure(config);
    co_await put(job("q"));
    const LeasedJob running = co_await one("q");
    const auto why = co_await explained(co_await put(job("q")));
    EXPECT_EQ(why.reason, WaitReason::none);
    EXPECT_EQ(why.ahead, 0u);
    co_await settle(running.token);
  });
}

TEST_F(ExplainTest, AJobThatIsNotThereIsAnError) {
  with_broker([&]() -> Coro<void> {
    const auto why = co_await engine_->book().explain(17);
    EXPECT_EQ(why.error().code, Errc::not_found);
    EXPECT_EQ(why.error().message, "job 17: there is no such job");
  });
}

}  // namespace
}  // namespace argiope

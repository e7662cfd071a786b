// Ends that do not go as asked: follow-ups that cannot be put, and jobs that are cancelled while they run.
#include <gmock/gmock.h>

#include "argiope/engine/book.hpp"
#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::HasSubstr;

class SettlingTest : public BrokerTest {
 protected:
  static Verdict followed_by(NewJob follow_up) {
    Verdict verdict;
    verdict.follow_ups.push_back(std::move(follow_up));
    return verdict;
  }
  NewJob of_no_batch(std::string queue = "q") {
    NewJob made = job(std::move(queue));
    made.batch = 77;
    return made;
  }
  Coro<JobRecord> record(JobId id) {
    auto found = co_await engine_->book().get(id);
    if (!found) throw std::runtime_error(found.error().message);
    co_return std::move(*found);
  }
  Coro<void> configure(QueueConfig config) {
    auto done = co_await engine_->book().configure("q", std::move(config));
    EXPECT_TRUE(done);
  }
};

TEST_F(SettlingTest, OfSeveralRunsEachIsSettledByItself) {
  with_broker([&]() -> Coro<void> {
    for (const char* payload : {"a", "b", "c"}) co_await put(job("q", payload));
    const auto leased = co_await lease_all("q");
    std::vector<RunEnd> ends;
    ends.push_back({leased.at(0).token, {}});
    ends.push_back({leased.at(0).token, {}});
    ends.push_back({4711, {}});
    ends.push_back({leased.at(1).token, followed_by(of_no_batch())});
    ends.push_back({leased.at(2).token, followed_by(job("made by it", "d"))});
    const auto settled = value_or_throw(co_await engine_->settle_each(std::move(ends)));
    EXPECT_TRUE(settled.at(0).settled);
    EXPECT_FALSE(settled.at(1).settled);
    EXPECT_FALSE(settled.at(2).settled);
    EXPECT_EQ(settled.at(3).refused->code, Errc::invalid_input);
    EXPECT_TRUE(settled.at(4).settled);
    EXPECT_EQ(settled.at(4).follow_ups.at(0).outcome, PutOutcome::added);
    EXPECT_EQ(co_await payloads("made by it"), "d ");
  });
}

TEST_F(SettlingTest, ARefusedFollowUpIsAFailedAttemptOfItsOwnJobAlone) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.retry = {.max_attempts = 2, .first = 1s, .jitter = 0}, .keep_done = 1h});
    const JobId bad = co_await put(job("q", "bad"));
    const JobId good = co_await put(job("q", "good"));
    const auto leased = co_await lease_all("q");
    // In one turn, and so in one call of the store.
    auto first = loop_.create_task(engine_->settle(leased.at(0).token, followed_by(of_no_batch())));
    auto second = loop_.create_task(engine_->settle(leased.at(1).token, followed_by(job("next"))));
    const auto refused = co_await first;
    EXPECT_EQ(refused.error().code, Errc::invalid_input);
    EXPECT_TRUE((co_await second).value());
    EXPECT_EQ((co_await record(good)).state, JobState::done);
    EXPECT_EQ((co_await record(bad)).state, JobState::delayed);
    EXPECT_EQ((co_await record(bad)).attempts, 1u);
    EXPECT_THAT((co_await record(bad)).error,
                HasSubstr("a follow-up was refused: batch: job 77 cannot complete a batch"));
    EXPECT_EQ(co_await payloads("next"), " ");
    // Its last attempt buries it.
    auto again = co_await engine_->lease({.queues = {"q"}, .worker = "w"});
    EXPECT_FALSE(co_await engine_->settle(again->at(0).token, followed_by(of_no_batch())));
    EXPECT_EQ((co_await record(bad)).state, JobState::buried);
    const auto counts = co_await engine_->book().counts();
    for (const auto& [name, of_queue] : *counts) EXPECT_EQ(of_queue.running, name == "next" ? 1u : 0u) << name;
  });
}

TEST_F(SettlingTest, WhatTheBrokerItselfRefusesIsAFailedAttemptToo) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.max_payload_bytes = 10});
    const std::vector<std::pair<NewJob, Errc>> refused{{job("q", std::string(11, 'x')), Errc::too_large},
                                                       {job(""), Errc::invalid_input},
                                                       {job(std::string(513, 'q')), Errc::invalid_input},
                                                       {job("new", {}, 0, std::string(513, 'k')), Errc::invalid_input}};
    for (const auto& [follow_up, code] : refused) {
      const JobId id = co_await put(job("q", "x", 1));
      const auto settled = co_await engine_->settle((co_await one("q")).token, followed_by(follow_up));
      EXPECT_EQ(settled ? Errc::internal : settled.error().code, code);
      EXPECT_EQ((co_await record(id)).state, JobState::delayed);
    }
  });
}

TEST_F(SettlingTest, AFullQueueHasRoomAgainForWhatWasRefused) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.capacity = 2});
    co_await put(job("q"));
    EXPECT_FALSE(co_await engine_->settle((co_await one("q")).token, followed_by(of_no_batch())));
    co_await put(job("q"));
    EXPECT_EQ((co_await engine_->book().put(job("q"))).error().code, Errc::refused);
  });
}

TEST_F(SettlingTest, AWorkerGoesOnAfterRefusedFollowUps) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.retry = {.max_attempts = 1}});
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      if (context.payload() == "bad") context.follow_up(of_no_batch());
      co_return;
    });
    std::vector<JobId> bad;
    for (int i = 0; i < 20; ++i) {
      co_await put(job("q", "good"));
      bad.push_back(co_await put(job("q", "bad")));
    }
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(worker.counts().done, 20u);
    EXPECT_EQ(worker.counts().failed, 20u);
    for (const JobId id : bad) EXPECT_EQ((co_await record(id)).state, JobState::buried);
  });
}

TEST_F(SettlingTest, ASettlementThatNobodyWaitsForTakesEffect) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    const LeasedJob leased = co_await one("q");
    auto settling =
        loop_.create_task(engine_->settle(leased.token, followed_by(job("new", "follow-up"))), {}, Start::eagerly);
    settling.cancel();
    co_await let_others_run();
    EXPECT_EQ(co_await payloads("new"), "follow-up ");
  });
}

// --- cancelling what runs

TEST_F(SettlingTest, AJobThatWasToBeCancelledIsNotRunAgainByTheNextOwner) {
  JobId id = 0;
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(store_);
    co_await configure({.keep_cancelled = 1h});
    id = co_await put(job("q"));
    (void)co_await one("q");
    EXPECT_TRUE(co_await engine_->book().cancel(id, "no more"));
    engine_.reset();  // as if the process had died
    store_.reopen();
  }));
  with_broker([&]() -> Coro<void> {
    EXPECT_EQ((co_await record(id)).state, JobState::cancelled);
    EXPECT_EQ((co_await record(id)).error, "no more");
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

TEST_F(SettlingTest, AJobThatIsToBeCancelledIsCancelledHoweverItsRunEndsButWell) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.keep_done = 1h, .keep_cancelled = 1h});
    for (const Outcome outcome : {Outcome::done, Outcome::retry, Outcome::bury, Outcome::cancel, Outcome::release}) {
      const JobId id = co_await put(job("q"));
      const LeasedJob leased = co_await one("q");
      EXPECT_TRUE(co_await engine_->book().cancel(id));
      EXPECT_EQ((co_await record(id)).cancel_asked, true);
      EXPECT_TRUE(co_await settle(leased.token, {.outcome = outcome, .error = "x"}));
      EXPECT_EQ((co_await record(id)).state, outcome == Outcome::done ? JobState::done : JobState::cancelled);
    }
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

// A guest of the same file, as another process is one.
class BookBesideOwnerTest : public OnVirtualLoop {
 protected:
  std::unique_ptr<Store> open(StoreAccess access) {
    auto opened = open_store("sqlite:" + folder_.file("jobs.db"), {.access = access, .sync = SyncMode::off});
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  TemporaryFolder folder_;
};

TEST_F(BookBesideOwnerTest, AGuestCancelsWhatRuns) {
  auto store = open(StoreAccess::own);
  auto shared = open(StoreAccess::share);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*store);
    auto guest = std::move(*co_await Book::open(*shared));
    std::vector<std::string> told;
    engine->add_listener(static_cast<std::uint32_t>(JobEventKind::cancelled),
                         [&](const JobEvent& event) { told.emplace_back(event.text); });
    NewJob job;
    job.queue = "q";
    const JobId id = (co_await engine->book().put(job))->id;
    Worker worker(*engine, {.queues = {"q"}, .until_empty = true});
    Event begun;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      begun.set();
      co_await sleep(1h);
    });
    auto working = loop_.create_task(worker.run());
    co_await begun.wait();
    const TimePoint asked = loop_.time();
    const auto replies = co_await guest.change({{.id = id, .kind = ChangeKind::cancel, .error = "by a guest"}});
    EXPECT_EQ(replies->at(0).outcome, ChangeOutcome::asked);
    EXPECT_TRUE(co_await working);
    EXPECT_LE(loop_.time() - asked, 1s);
    EXPECT_EQ(told, std::vector<std::string>{"by a guest"});
    EXPECT_EQ((co_await engine->book().get(id)).error().code, Errc::not_found);
    EXPECT_TRUE(co_await engine->close());
  }));
  EXPECT_TRUE(shared->close());
  EXPECT_TRUE(store->close());
}

TEST_F(BookBesideOwnerTest, WhatAGuestHasCancelledIsNotRunAgainAlthoughTheOwnerNeverHeardOfIt) {
  auto store = open(StoreAccess::own);
  auto shared = open(StoreAccess::share);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*store, {.poll_interval = 1h});
    auto guest = std::move(*co_await Book::open(*shared));
    NewJob job;
    job.queue = "q";
    const JobId id = (co_await engine->book().put(job))->id;
    const auto leased = co_await engine->lease_now({.queues = {"q"}, .worker = "w"});
    (void)co_await guest.change({{.id = id, .kind = ChangeKind::cancel}});
    EXPECT_TRUE((co_await engine->settle(leased->at(0).token, {.outcome = Outcome::retry})).value());
    EXPECT_EQ((co_await engine->book().get(id)).error().code, Errc::not_found);
    co_await sleep(10min);
    EXPECT_TRUE((co_await engine->lease_now({.queues = {"q"}}))->empty());
    EXPECT_EQ(engine->in_memory(), 0u);
    EXPECT_TRUE(co_await engine->close());
  }));
  EXPECT_TRUE(shared->close());
  EXPECT_TRUE(store->close());
}

}  // namespace
}  // namespace argiope

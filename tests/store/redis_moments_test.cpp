// A store on Redis while others write between its trips, and while its server says nothing.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argiope/async/threads.hpp"
#include "store/redis_store_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class RedisMoments : public RedisStoreTest {
 protected:
  // Another thread and another connection.
  void beside(const std::function<void(EventLoop&, Store&)>& act) {
    VirtualBackend backend;
    EventLoop loop{backend};
    auto store = open_store(beside_, {.access = StoreAccess::share});
    if (!store) throw std::runtime_error(store.error().message);
    act(loop, **store);
    EXPECT_TRUE((*store)->close());
  }
  // `act` takes some trips. Before each of them once, those beside do theirs: what `act` gives is of one moment.
  void interfere(const std::function<void()>& prepare, const std::function<void(EventLoop&, Store&)>& theirs,
                 const std::function<void(Store&)>& act) {
    SocketProxy proxy(server_->folder(), RedisServer::kSocket);
    beside_ = where_;
    use(proxy);
    owner_ = open();
    constexpr std::size_t kMost = 100;
    std::size_t trip = 0;
    for (bool has_acted = true; has_acted;) {
      ASSERT_LT(++trip, kMost);
      prepare();
      proxy.before_request(trip, [&] { beside(theirs); });
      act(*owner_);
      ASSERT_FALSE(owner_->failure()) << "trip " << trip << ": " << owner_->failure()->message;
      has_acted = proxy.has_acted();
      proxy.before_request(0, nullptr);
    }
    EXPECT_GT(trip, 2u) << "it takes several trips";
    owner_.reset();
  }

  std::string beside_;
  std::unique_ptr<Store> owner_;
};

// --- others write between its trips ----------------------------------------------------------------------------------

TEST_F(RedisMoments, APutOfANameSeesTheJobOrNone) {
  JobId id = 0;
  interfere([&] { id = put(*owner_, {.name = "n"}).value(); },
            [&](EventLoop& loop, Store& store) {
              ASSERT_TRUE(loop.run_until_complete(store.change({{.id = id, .kind = ChangeKind::erase, .at = kNow}})));
            },
            [&](Store& store) {
              const auto again = put(store, {.name = "n"});
              ASSERT_TRUE(again) << again.error().message;
              EXPECT_EQ(kept(), 1u);
              ASSERT_TRUE(ask(store.change({{.id = *again, .kind = ChangeKind::erase, .at = kNow}})));
            });
}

TEST_F(RedisMoments, ALookSeesAJobWholeOrNotAtAll) {
  JobId id = 0;
  interfere([&] { id = put(*owner_, {.name = "n", .payload = "whole"}).value(); },
            [&](EventLoop& loop, Store& store) {
              ASSERT_TRUE(loop.run_until_complete(store.change({{.id = id, .kind = ChangeKind::erase, .at = kNow}})));
            },
            [&](Store& store) {
              const auto job = ask(store.get(id));
              ASSERT_TRUE(job) << job.error().message;
              if (*job) EXPECT_EQ((*job)->payload, "whole");
              const auto listed = ask(store.list({}));
              ASSERT_TRUE(listed) << listed.error().message;
              for (const JobRecord& one : *listed) EXPECT_EQ(one.payload, "whole");
              ASSERT_TRUE(ask(store.change({{.id = id, .kind = ChangeKind::erase, .at = kNow}})));
            });
}

TEST_F(RedisMoments, ALeaseGivesAJobWholeOrNone) {
  JobId id = 0;
  std::uint64_t token = 0;
  interfere([&] { id = put(*owner_, {.payload = "whole"}).value(); },
            [&](EventLoop& loop, Store& store) {
              ASSERT_TRUE(loop.run_until_complete(store.change({{.id = id, .kind = ChangeKind::erase, .at = kNow}})));
            },
            [&](Store& store) {
              if (const auto job = lease(store, id, ++token)) {
                EXPECT_EQ(job->payload, "whole");
                EXPECT_TRUE(settle(store, id, token));
              }
              EXPECT_EQ(kept(), 0u);
            });
}

TEST_F(RedisMoments, AJobsEndSeesThoseThatWaitForItOrNone) {
  JobId first = 0, waits = 0;
  std::uint64_t token = 0;
  interfere(
      [&] {
        first = put(*owner_).value();
        waits = put(*owner_, {.waits_for = {first}}).value();
        ASSERT_TRUE(lease(*owner_, first, ++token));
      },
      [&](EventLoop& loop, Store& store) {
        ASSERT_TRUE(loop.run_until_complete(store.change({{.id = waits, .kind = ChangeKind::erase, .at = kNow}})));
      },
      [&](Store& store) {
        EXPECT_TRUE(settle(store, first, token));
        ASSERT_TRUE(ask(store.change({{.id = waits, .kind = ChangeKind::erase, .at = kNow}})));
        EXPECT_EQ(kept(), 0u);
      });
}

TEST_F(RedisMoments, AStepSeesItsScheduleOrNone) {
  StoredSchedule schedule;
  interfere(
      [&] {
        ASSERT_TRUE(ask(owner_->put_schedules({{.name = "s", .trigger = "t", .place = {.next = kNow}}})));
        schedule = *ask(owner_->find_schedule("s")).value();
      },
      [&](EventLoop& loop, Store& store) {
        ASSERT_TRUE(loop.run_until_complete(store.erase_schedules({schedule.id})));
      },
      [&](Store& store) {
        FireRequest step{.id = schedule.id, .version = schedule.version, .place = {.next = kNow + 1h, .entries = 1}};
        step.runs.push_back({.number = 1, .planned = kNow, .fired_at = kNow, .outcome = RunOutcome::running});
        step.jobs.push_back({.job = {.queue = "q"}, .run = 1});
        const auto fired = ask(store.fire({step}, kNow));
        ASSERT_TRUE(fired) << fired.error().message;
        const auto seen = ask(store.look_at_schedules({{.id = schedule.id}}));
        ASSERT_TRUE(seen) << seen.error().message;
        if (seen->at(0)) EXPECT_EQ(seen->at(0)->schedule.name, "s");
        ASSERT_TRUE(ask(store.erase_schedules({schedule.id})));
      });
}

TEST_F(RedisMoments, WhoIsOvertakenAtReadingTimeAndAgainGetsItsTurn) {
  ASSERT_TRUE(put(*open(), {.payload = "p"}));
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  auto reader = open(StoreAccess::read);
  std::atomic<int> written = 0;
  // As others do, who wait for the lock.
  const std::function<void()> write = [&] {
    if (server_->ask("EXISTS", prefix_ + "lock") == "1") return;
    server_->ask("HSET", prefix_ + "meta", "version", "other." + std::to_string(++written));
    proxy.before_request(1, write);
  };
  proxy.before_request(1, write);
  const auto job = ask(reader->get(1));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ((*job)->payload, "p");
  EXPECT_GT(written, 1);
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "lock"), "0") << "it is given back";
}

TEST_F(RedisMoments, WhoMayOnlyReadIsOvertakenAndGoesOn) {
  use_own_server();
  ASSERT_TRUE(put(*open(), {.payload = "p"}));
  server_->ask("ACL", "SETUSER", "r", "on", ">x", "~*", "+@all", "-@write", "-@scripting");
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  where_ = RedisServer::url_at(proxy.folder(), "prefix=p", "r:x@");
  auto reader = open(StoreAccess::read);
  int written = 0;
  const std::function<void()> write = [&] {
    server_->ask("HSET", prefix_ + "meta", "version", "other." + std::to_string(++written));
    if (written < 60) proxy.before_request(1, write);
  };
  proxy.before_request(1, write);
  const auto job = ask(reader->get(1));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ((*job)->payload, "p");
  EXPECT_EQ(written, 60);
}

TEST_F(RedisMoments, ABatchIsNotSentTimeAndAgainWhileOthersHoldTheLock) {
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  auto owner = open();
  server_->ask("SET", prefix_ + "lock", "another");
  constexpr std::size_t kSize = 1'000'000;
  const std::size_t before = proxy.bytes();
  std::thread other([&] {
    const auto sent = [&] { return proxy.bytes() - before; };
    for (std::size_t seen = 0, asked = 0; asked < 20 && sent() < 5 * kSize; std::this_thread::yield()) {
      if (sent() > kSize && proxy.requests() != seen) ++asked;
      seen = proxy.requests();
    }
    server_->ask("DEL", prefix_ + "lock");
  });
  EXPECT_TRUE(put(*owner, {.payload = std::string(kSize, 'p')}));
  other.join();
  EXPECT_LT(proxy.bytes() - before, 3 * kSize);
}

// Its first sending arrives when another has just given the lock back.
TEST_F(RedisMoments, ABatchThatArrivesLateIsNotDoneAgain) {
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  for (const StoreAccess access : {StoreAccess::own, StoreAccess::share}) {
    auto store = open(access);
    ASSERT_TRUE(put(*store));
    const std::size_t before = kept();
    proxy.keep_request("EVALSHA");
    // Then it greets the server anew, sends the batch again, asks for the lock, and once more.
    int said = 0;
    const std::function<void()> arrive = [&] {
      if (proxy.has_kept()) ++said;
      if (said == 1) server_->ask("SET", prefix_ + "lock", "another");
      if (said < 4) return proxy.before_request(1, arrive);
      server_->ask("DEL", prefix_ + "lock");
      proxy.deliver_kept();
    };
    proxy.before_request(1, arrive);
    EXPECT_EQ(put(*store).value(), before + 1);
    EXPECT_TRUE(proxy.has_acted());
    EXPECT_EQ(kept(), before + 1);
    EXPECT_EQ(server_->ask("EXISTS", prefix_ + "lock"), "0");
    ASSERT_TRUE(store->close());
  }
}

// --- the server says nothing -----------------------------------------------------------------------------------------

class RedisSilence : public RedisMoments {
 protected:
  static constexpr std::chrono::seconds kPromptly{60};  // a hang alone reaches it

  void SetUp() override {
    RedisMoments::SetUp();
    if (server_ == nullptr) return;
    proxy_ = std::make_unique<SocketProxy>(server_->folder(), RedisServer::kSocket);
    where_ =
        RedisServer::url_at(proxy_->folder(), "durability=none&prefix=" + prefix_.substr(1, prefix_.find(':') - 1));
  }
  // What is said after the next batch, whose answer is lost, comes behind `act`.
  void lose_answer_to_batch_and(std::function<void()> act) {
    proxy_->lose_answer_to("EVALSHA");
    look_ = [this, act = std::move(act)] { proxy_->has_lost() ? act() : proxy_->before_request(1, look_); };
    proxy_->before_request(1, look_);
  }
  std::function<void()> look_;
  std::unique_ptr<SocketProxy> proxy_;
};

TEST_F(RedisSilence, IsWaitedForAsLongAsTheUrlSays) {
  ASSERT_TRUE(put(*open()));
  auto store = open_hasty();
  proxy_->before_request(1, [&] { proxy_->fall_silent(); });
  for (int i = 0; i < 2; ++i) {
    const auto began = std::chrono::steady_clock::now();
    const auto job = ask(store->get(1));
    ASSERT_FALSE(job);
    EXPECT_EQ(job.error().code, Errc::network);
    EXPECT_LT(std::chrono::steady_clock::now() - began, kPromptly);
  }
}

TEST_F(RedisSilence, IsWaitedForOnceByReadsThatCameTogether) {
  where_ += "&store_timeout=1";
  auto store = open();
  ASSERT_TRUE(put(*store));
  // Each transaction begins with one, and each read takes one: some are in the midst of theirs.
  proxy_->before_request(7, [&] { proxy_->fall_silent(); });
  const int before = proxy_->connections();
  loop_.run_until_complete([&]() -> Coro<void> {
    std::vector<Task<Result<std::optional<JobRecord>>>> reads;
    for (JobId id = 1; id <= 20; ++id) reads.push_back(loop_.create_task(store->get(id)));
    Result<std::optional<JobRecord>> last;
    for (auto& read : reads) last = co_await read;
    EXPECT_FALSE(last);
  }());
  EXPECT_LE(proxy_->connections(), before + 4);
}

TEST_F(RedisSilence, OfABatchInDoubtIsWaitedForAndThoseBehindItAreAnsweredInTime) {
  ASSERT_TRUE(put(*open()));
  for (const bool is_written : {false, true}) {
    auto store = open_hasty();
    std::promise<void> is_under_way;
    if (is_written) proxy_->lose_next_answer();
    proxy_->before_request(is_written ? 2 : 1, [&] {
      proxy_->fall_silent();
      is_under_way.set_value();
    });
    const std::size_t before = kept();
    const auto added = loop_.run_until_complete([&]() -> Coro<Result<std::vector<Result<PutReply>>>> {
      std::vector<PutRequest> requests(1);
      requests[0].job.queue = "q";
      auto putting = loop_.create_task(store->put(std::move(requests), kNow));
      co_await to_thread([&] { is_under_way.get_future().wait(); });
      const auto behind = co_await store->get(1);
      EXPECT_EQ(behind ? Errc{} : behind.error().code, Errc::network);
      EXPECT_FALSE(putting.done());
      EXPECT_EQ(kept(), before + (is_written ? 1 : 0));
      proxy_->speak_again();
      co_return co_await putting;
    }());
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(added->at(0)->id, before + 1);
    EXPECT_EQ(kept(), before + 1) << "it is done once";
    EXPECT_TRUE(store->close());
  }
}

TEST_F(RedisSilence, LeavesTheFateOfASharersBatchUnknown) {
  ASSERT_TRUE(put(*open()));
  auto beside = open_hasty(StoreAccess::share);
  lose_answer_to_batch_and([&] { proxy_->fall_silent(); });
  Result<JobId> unknown;
  do {
    unknown = put(*beside);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Errc::network);
  } while (!unknown.error().message.contains("whether the last batch was written is not known"));
  EXPECT_EQ(kept(), 2u);
}

TEST_F(RedisSilence, ASharersBatchIsDoneOnceThoughItsNoteIsGone) {
  auto beside = open(StoreAccess::share);
  ASSERT_TRUE(put(*beside));
  lose_answer_to_batch_and([&] {
    server_->ask("EVAL", "return redis.call('DEL', unpack(redis.call('KEYS', ARGV[1])))", "0", prefix_ + "batch:*");
  });
  EXPECT_EQ(put(*beside).value(), 2u);
  EXPECT_TRUE(proxy_->has_acted());
  EXPECT_EQ(kept(), 2u);
}

TEST_F(RedisSilence, TheFateOfABatchIsNotKnownWhereTheStoreIsGoneMeanwhile) {
  for (const StoreAccess access : {StoreAccess::share, StoreAccess::own}) {
    auto store = open(access);
    ASSERT_TRUE(put(*store));
    lose_answer_to_batch_and([&] { server_->ask("DEL", prefix_ + "meta"); });
    const auto unknown = put(*store);
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().message, HasSubstr("its keys are gone"));
    EXPECT_THAT(unknown.error().message, HasSubstr("whether the last batch was written is not known"));
  }
}

TEST_F(RedisSilence, IsNotWaitedForAtTheEnd) {
  where_ += "&store_timeout=86400";
  auto opened = open_store(where_, {.busy_limit = 100ms});
  ASSERT_TRUE(opened);
  auto& store = *opened;
  ASSERT_TRUE(put(*store));
  proxy_->before_request(1, [&] { proxy_->fall_silent(); });
  auto job = loop_.create_task(store->get(1));
  const auto began = std::chrono::steady_clock::now();
  loop_.run_until_complete([]() -> Coro<void> { co_await sleep(0s); }());
  EXPECT_TRUE(store->close());
  EXPECT_LT(std::chrono::steady_clock::now() - began, kPromptly);
  EXPECT_FALSE(loop_.run_until_complete(std::move(job)));
}

}  // namespace
}  // namespace argiope

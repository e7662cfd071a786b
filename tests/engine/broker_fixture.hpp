// An engine on a store in memory, over simulated time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/jobs/memory_store.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {

class BrokerTest : public OnVirtualLoop {
 protected:
  // Opens the engine, runs `body`, closes it.
  template <class Body>
  void with_broker(Body body, EngineOptions options = {}) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      engine_ = co_await open_engine(store_, options);
      co_await body();
      auto closed = co_await engine_->close();
      EXPECT_TRUE(closed);
      engine_.reset();
    }));
  }

  static NewJob job(std::string queue, std::string payload = {}, std::int32_t priority = 0, std::string key = {}) {
    NewJob made;
    made.queue = std::move(queue);
    made.payload = std::move(payload);
    made.priority = priority;
    made.key = std::move(key);
    return made;
  }
  NewJob delayed(std::string queue, Duration by, std::string payload = {}) {
    NewJob made = job(std::move(queue), std::move(payload));
    made.due_at = loop_.clock().wall_now() + by;
    return made;
  }
  Coro<JobId> put(NewJob what) {
    auto reply = co_await engine_->book().put(std::move(what));
    if (!reply) throw std::runtime_error(reply.error().message);
    co_return reply->id;
  }
  // What may start now, in the order given; they stay leased.
  Coro<std::vector<LeasedJob>> lease_all(std::string queue, std::size_t most = 1000) {
    LeaseCall call{.queues = {queue}, .most = most, .worker = "w"};
    auto leased = co_await engine_->lease_now(std::move(call));
    if (!leased) throw std::runtime_error(leased.error().message);
    co_return std::move(*leased);
  }
  Coro<std::string> payloads(std::string queue, std::size_t most = 1000) {
    std::string all;
    for (const LeasedJob& leased : co_await lease_all(queue, most)) {
      all += leased.job.payload;
      all += ' ';
      tokens_.push_back(leased.token);
    }
    co_return all;
  }
  Coro<LeasedJob> one(std::string queue) {
    auto leased = co_await lease_all(queue, 1);
    if (leased.empty()) throw std::runtime_error("nothing to lease");
    co_return std::move(leased.front());
  }
  Coro<bool> settle(std::uint64_t token, Verdict verdict = {}) {
    auto settled = co_await engine_->settle(token, std::move(verdict));
    if (!settled) throw std::runtime_error(settled.error().message);
    co_return *settled;
  }
  Coro<JobExplanation> explained(JobId id) {
    auto why = co_await engine_->book().explain(id);
    if (!why) throw std::runtime_error(why.error().message);
    co_return std::move(*why);
  }

  MemoryStore store_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::uint64_t> tokens_;
};

}  // namespace argiope

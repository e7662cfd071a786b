// Long bodies of requests are read on another thread.
#include "serve/api/read_apart.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api_fixture.hpp"

namespace argiope {
namespace {

class ReadApart : public OnVirtualLoop {
 protected:
  explicit ReadApart(std::size_t bytes = kLongBody) { request_.body.assign(bytes, 'x'); }

  // Whether every turn is free.
  bool all_are_free() const { return turns_.value() == static_cast<std::size_t>(kLongBodiesAtOnce); }

  Semaphore turns_{kLongBodiesAtOnce};
  ServerRequest request_;
  ApiCall call_{request_, Caller{}};
};

TEST_F(ReadApart, LongBodiesAreReadOnAnotherThreadAndShortOnesHere) {
  std::thread::id where;
  const auto read = [&]() -> Coro<void> {
    co_await read_apart(turns_, call_, [&] { where = std::this_thread::get_id(); });
  };
  loop_.run_until_complete(read());
  EXPECT_NE(where, std::this_thread::get_id());
  request_.body.pop_back();
  loop_.run_until_complete(read());
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(ReadApart, ACancelledReadEndsWhenItsThreadHasDone) {
  std::promise<void> goes_on;
  bool is_read = false;
  loop_.run_until_complete([&]() -> Coro<void> {
    auto task = EventLoop::current().create_task(read_apart(turns_, call_, [&] {
      goes_on.get_future().wait();
      is_read = true;
    }));
    for (int turn = 0; turn < 5; ++turn) co_await sleep(Duration{});
    for (int again = 0; again < 2; ++again) {
      task.cancel();
      for (int turn = 0; turn < 5; ++turn) co_await sleep(Duration{});
      EXPECT_FALSE(task.done()) << "its thread looks at what is the caller's";
    }
    goes_on.set_value();
    EXPECT_THROW(co_await task, CancelledError);
    EXPECT_TRUE(is_read);
  }());
}

TEST_F(ReadApart, WhatIsThrownThereReachesTheCaller) {
  EXPECT_THROW(loop_.run_until_complete(read_apart(turns_, call_, [] { throw std::runtime_error("no memory"); })),
               std::runtime_error);
}

TEST_F(ReadApart, AsManyAreReadAtOnceAsThereAreTurns) {
  std::promise<void> goes_on;
  const std::shared_future<void> may_go_on = goes_on.get_future().share();
  std::counting_semaphore<> begun{0};
  std::atomic<std::ptrdiff_t> at_once = 0;
  std::atomic<bool> too_many = false;
  const auto read = [&] {
    if (++at_once > kLongBodiesAtOnce) too_many = true;
    begun.release();
    may_go_on.wait();
    --at_once;
  };
  loop_.run_until_complete([&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3 * kLongBodiesAtOnce; ++i)
      tasks.push_back(EventLoop::current().create_task(read_apart(turns_, call_, read)));
    for (int turn = 0; turn < 5; ++turn) co_await sleep(Duration{});
    for (std::ptrdiff_t i = 0; i < kLongBodiesAtOnce; ++i) begun.acquire();
    EXPECT_TRUE(turns_.locked());
    goes_on.set_value();
    for (Task<void>& task : tasks) co_await task;
  }());
  EXPECT_FALSE(too_many);
  EXPECT_TRUE(all_are_free());
}

TEST_F(ReadApart, ACallKeepsItsTurnForAsLongAsItHasParsedText) {
  const auto parse = [this] { call_.parse(); };
  loop_.run_until_complete(read_apart(turns_, call_, parse));
  EXPECT_TRUE(all_are_free()) << "it is no JSON";
  request_.body = "{}" + std::string(kLongBody, ' ');
  ApiCall good(request_, Caller{});
  loop_.run_until_complete(read_apart(turns_, good, [&] { good.parse(); }));
  EXPECT_FALSE(all_are_free());
  EXPECT_TRUE(good.object());
  EXPECT_TRUE(good.read_all());
  EXPECT_TRUE(all_are_free());
  {
    ApiCall left(request_, Caller{});
    loop_.run_until_complete(read_apart(turns_, left, [&] { left.parse(); }));
    EXPECT_FALSE(all_are_free());
  }
  EXPECT_TRUE(all_are_free());
  ApiCall at_once(request_, Caller{});
  loop_.run_until_complete(read_apart(turns_, at_once, [&] {
    EXPECT_TRUE(at_once.object());
    EXPECT_TRUE(at_once.read_all());
  }));
  EXPECT_TRUE(all_are_free());
}

class LongBodies : public ApiTest {};

TEST_F(LongBodies, AreAnsweredAsShortOnesAre) {
  const std::string payload(1'000, 'x');
  std::string list, lines, settlements, renewals;
  for (int i = 0; i < 300; ++i) {
    const std::string job =
        fmt::format(R"({{"queue":"mail","payload":"{}"{}}})", payload, i == 7 ? R"(,"what":1)" : "");
    list += (i > 0 ? "," : "") + job;
    lines += job + "\n";
  }
  const Answered put_list = post("/v1/jobs", fmt::format(R"({{"jobs":[{}]}})", list));
  EXPECT_EQ(put_list.text("/replies/7/error/errors/0/pointer"), "/jobs/7/what");
  EXPECT_EQ(put_list.text("/replies/299/id"), "299");
  const Answered put_lines = ask(HttpMethod::post, "/v1/jobs", lines, {{"Content-Type", "application/x-ndjson"}});
  EXPECT_EQ(put_lines.text("/replies/7/error/errors/0/pointer"), "/jobs/7/what");
  EXPECT_EQ(put_lines.text("/replies/299/id"), "598");
  const Answered leased = post("/v1/leases", R"({"queues":["mail"],"worker":"w","most":300})");
  for (int i = 0; i < 300; ++i) {
    const std::string token = leased.text(fmt::format("/leases/{}/token", i));
    const char* const between = i > 0 ? "," : "";
    renewals += fmt::format(R"({}{{"token":{},"message":"{}"}})", between, token, payload.substr(0, 500));
    settlements += fmt::format(R"({}{{"token":{},"outcome":"{}","result":"{}"}})", between, token,
                               i == 7 ? "what" : "done", payload);
  }
  EXPECT_EQ(patch("/v1/leases", fmt::format(R"({{"leases":[{}]}})", renewals)).status, 200);
  const Answered settled = post("/v1/leases/settle", fmt::format(R"({{"settlements":[{}]}})", settlements));
  EXPECT_EQ(settled.text("/replies/7/error/errors/0/pointer"), "/settlements/7/outcome");
  EXPECT_EQ(settled.text("/replies/299/outcome"), "ok");
  const Answered again =
      post("/v1/leases", fmt::format(R"({{"queues":["mail"],"worker":"w","settle":[{}]}})", settlements));
  EXPECT_EQ(again.text("/settled/7/error/errors/0/pointer"), "/settle/7/outcome");
  EXPECT_EQ(again.text("/settled/299/outcome"), "lease_lost");
}

TEST_F(LongBodies, AreNotLookedAtBeforeWhoMayAsk) {
  ApiOptions options;
  options.queue_is_locked = [](std::string_view) { return true; };
  open(std::move(options));
  EXPECT_EQ(put("/v1/queues/mail", "{" + std::string(kLongBody, ' ')).problem(), put("/v1/queues/mail", "{").problem());
}

TEST_F(LongBodies, OfThoseThatWaitLeaveTheirTurnsToOthers) {
  const std::string blanks(kLongBody, ' ');
  std::vector<Task<Answered>> waiting;
  for (std::ptrdiff_t i = 0; i <= kLongBodiesAtOnce; ++i)
    waiting.push_back(start(HttpMethod::post, "/v1/leases", R"({"queues":["none"],"wait_ms":60000})" + blanks));
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","payload":1})" + blanks).status, 201);
  for (Task<Answered>& one : waiting) EXPECT_FALSE(one.done());
}

TEST_F(LongBodies, OfEveryRouteThatAreNoJsonAreRefused) {
  open();
  const std::string body = "{" + std::string(kLongBody, ' ');
  for (const auto& [method, path] : {std::pair{HttpMethod::post, "/v1/jobs"},
                                     {HttpMethod::post, "/v1/jobs/change"},
                                     {HttpMethod::patch, "/v1/leases"},
                                     {HttpMethod::post, "/v1/leases"},
                                     {HttpMethod::post, "/v1/leases/settle"},
                                     {HttpMethod::put, "/v1/queues/mail"},
                                     {HttpMethod::post, "/v1/schedules"},
                                     {HttpMethod::post, "/v1/next"},
                                     {HttpMethod::get, "/v1/jobs"},
                                     {HttpMethod::delete_, "/v1/queues/mail"}}) {
    EXPECT_EQ(ask(method, path, body).problem(), "invalid_input") << path;
    EXPECT_EQ(ask(method, path, body, {{"Content-Encoding", "gzip"}}).problem(), "unsupported_coding") << path;
    EXPECT_EQ(ask(method, path, body, {{"Content-Type", "text/plain"}}).problem(), "unsupported_media_type") << path;
  }
}

}  // namespace
}  // namespace argiope

// Requests to the whole daemon that only look, while others write, in virtual time: how long they wait does not depend
// on the machine.
#include <gtest/gtest.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/async/event_loop.hpp"
#include "serve/bounds/read_turns.hpp"
#include "serve/gate/gate.hpp"
#include "serve/internal/daemon.hpp"
#include "serve/soak_clients.hpp"
#include "sockets_in_virtual_time.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

constexpr WallTime kFirstRead{std::chrono::seconds{1'800'000'000}};
constexpr Duration kRest = ReadTurns::kShare * ReadTurns::kLeast;  // after a small read

class DaemonReads : public testing::Test {
 protected:
  ~DaemonReads() override {
    loop_.cancel_all_tasks();
    for (int i = 0; i < 100; ++i) loop_.run_once(TimePoint::min());
  }

  // `body` asks the daemon by client_.
  template <class Body>
  void with_daemon(Body body) {
    loop_.run_until_complete(living(std::move(body)));
  }
  template <class Body>
  Coro<void> living(Body body) {
    const auto engine = co_await open_engine(store_);
    ServeOptions options;
    options.store = "memory:";
    options.http = {{.host = {}, .port = 0, .unix_path = folder_.file("http")}};
    DaemonContext context{.run_id = 1, .version = "test", .worker_name = "test"};
    auto daemon = std::make_unique<Daemon>(*engine, std::move(options), std::move(context));
    EXPECT_TRUE(daemon->listen());
    engine->scheduler().start();  // else the daemon is not ready
    co_await body();
    client_.leave();
    co_await daemon->stop();
    EXPECT_TRUE(co_await engine->scheduler().shutdown(true));
    daemon.reset();
    EXPECT_TRUE(co_await engine->close());
  }
  // How long `count` requests for it take, one after the other, behind a put.
  Coro<Duration> reading(std::string path, int count) {
    const SoakReply put = co_await client_.post("/v1/jobs", R"({"queue":"mail"})");
    EXPECT_EQ(put.status, 201);
    const TimePoint began = loop_.time();
    for (int i = 0; i < count; ++i) {
      const SoakReply read = co_await client_.get(path);
      EXPECT_EQ(read.status, 200) << path;
    }
    co_return loop_.time() - began;
  }
  Coro<double> waits() {
    constexpr std::string_view kName = "\nargiope_read_waits_total ";
    const SoakReply told = co_await client_.get("/metrics");
    const std::size_t at = told.body.find(kName);
    double waits = -1;
    if (at != std::string::npos)
      std::from_chars(told.body.data() + at + kName.size(), told.body.data() + told.body.size(), waits);
    co_return waits;
  }

  SocketsInVirtualTime backend_{kFirstRead};
  TemporaryFolder folder_;
  MemoryStore store_;
  Trace trace_;
  SoakHttp client_{folder_.file("http"), trace_};
  EventLoop loop_{backend_};
};

TEST_F(DaemonReads, OfEveryKindWaitWhileOthersWrite) {
  with_daemon([&]() -> Coro<void> {
    for (const char* path :
         {"/", "/metrics", "/v1/counters", "/v1/jobs", "/v1/jobs/1", "/v1/openapi.json", "/v1/version"}) {
      const Duration took = co_await reading(path, 4);
      EXPECT_GE(took, 3 * kRest) << path;
      EXPECT_LT(took, 4 * ReadTurns::kLongestRest) << path;
    }
    EXPECT_GE(co_await waits(), 7 * 3);
  });
}

TEST_F(DaemonReads, OfHealthWaitForNobody) {
  with_daemon([&]() -> Coro<void> {
    EXPECT_LT(co_await reading("/healthz", 10), kRest);
    EXPECT_LT(co_await reading("/readyz", 10), kRest);
    co_await sleep(2 * ReadTurns::kRecent);
    EXPECT_EQ(co_await waits(), 0);
  });
}

TEST_F(DaemonReads, WaitForNothingWhenNobodyWrites) {
  with_daemon([&]() -> Coro<void> {
    co_await reading("/v1/version", 2);
    co_await sleep(2 * ReadTurns::kRecent);
    const double before = co_await waits();
    const TimePoint began = loop_.time();
    for (int i = 0; i < 10; ++i) (void)co_await client_.get("/v1/version");
    EXPECT_EQ(loop_.time(), began);
    EXPECT_EQ(co_await waits(), before);
  });
}

}  // namespace
}  // namespace argiope

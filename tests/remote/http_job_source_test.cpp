// A Worker on a daemon elsewhere works as one in the owner's process does, whatever happens to the connection.
#include "remote/internal/http_job_source.hpp"

#include "argiope/engine/worker.hpp"
#include "remote/settlement_telling.hpp"
#include "serve/api/settlement_json.hpp"
#include "serve/api_fixture.hpp"
#include "support/router_transport.hpp"

namespace argiope {
namespace {

using Loss = RouterTransport::Loss;

class HttpJobSourceTest : public ApiTest {
 protected:
  ~HttpJobSourceTest() override { transport_.loss = {}; }

  void connect(ApiOptions options = {}) {
    if (engine_ == nullptr) open(std::move(options));
    client_ = std::make_unique<ApiClient>(transport_, *ApiClient::parse_base("http://localhost:7733"),
                                          ApiClientOptions{.patience = Duration::max()});
    run([this]() -> Coro<void> {
      EXPECT_TRUE(co_await client_->tell({.path = "/v1/version"}));
      source_ =
          std::make_shared<HttpJobSource>(*client_, [this](const JobEvent& event) { events_.push_back(event.kind); });
      worker_ = std::make_unique<Worker>(source_, WorkerOptions{.name = "far", .queues = {"mail"}, .concurrency = 4});
    });
    transport_.sent = 0;
  }
  JobId put(std::string payload = "x") {
    JobId id = 0;
    run([&]() -> Coro<void> {
      id = value_or_throw(co_await engine_->book().put({.queue = "mail", .payload = std::move(payload)})).id;
    });
    return id;
  }
  // Works for so long.
  void work(Duration time) {
    run([this, time]() -> Coro<void> {
      Task<Result<void>> running = loop_.create_task(worker_->run());
      co_await sleep(time);
      worker_->stop();
      EXPECT_TRUE(co_await running);
      co_await source_->close();
    });
  }
  StateCounts counts() {
    StateCounts counts;
    run([&]() -> Coro<void> {
      const auto counted = value_or_throw(co_await engine_->book().counts());
      if (!counted.empty()) counts = counted.front().second;
    });
    return counts;
  }
  void keep_done() {
    run([&]() -> Coro<void> {
      QueueConfig config;
      config.keep_done = config.keep_cancelled = 24h;
      value_or_throw(co_await engine_->book().configure("mail", config));
    });
  }

  RouterTransport transport_{router_};
  std::unique_ptr<ApiClient> client_;
  std::shared_ptr<HttpJobSource> source_;
  std::unique_ptr<Worker> worker_;
  std::vector<JobEventKind> events_;
  std::vector<std::string> ran_;
};

TEST_F(HttpJobSourceTest, RunsTheJobsOfADaemonAndTellsHowTheyEnded) {
  open();
  keep_done();
  for (const char* payload : {"good", "bad", "worst"}) put(payload);
  connect();
  worker_->add_default([this](JobContext& context) -> Coro<void> {
    ran_.push_back(context.payload());
    if (context.payload() == "bad") throw std::runtime_error("try again");
    if (context.payload() == "worst") throw BuryJob("never again");
    context.set_result("well");
    co_return;
  });
  work(500ms);
  EXPECT_EQ(counts().done, 1u);
  EXPECT_EQ(counts().buried, 1u);
  EXPECT_EQ(counts().delayed + counts().ready, 1u);
  EXPECT_THAT(events_, testing::UnorderedElementsAre(JobEventKind::done, JobEventKind::retrying, JobEventKind::buried));
  EXPECT_EQ(get("/v1/jobs/1/output").body, "well");
}

TEST_F(HttpJobSourceTest, WaitsForJobsThatAreYetToCome) {
  open();
  keep_done();
  connect();
  worker_->add_default([this](JobContext& context) -> Coro<void> {
    ran_.push_back(context.payload());
    co_return;
  });
  run([this]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(100s);
    EXPECT_TRUE(co_await engine_->book().put({.queue = "mail", .payload = "late"}));
    co_await sleep(1s);
    worker_->stop();
    EXPECT_TRUE(co_await running);
  });
  EXPECT_THAT(ran_, testing::ElementsAre("late"));
  EXPECT_LE(transport_.sent, 10u) << "it polls and does not spin";
}

TEST_F(HttpJobSourceTest, RenewsLeasesForAsLongAsAJobRuns) {
  open();
  keep_done();
  put();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(10min); });
  work(11min);
  EXPECT_EQ(counts().done, 1u);
  EXPECT_THAT(events_, testing::ElementsAre(JobEventKind::done));
}

TEST_F(HttpJobSourceTest, StopsAJobThatIsCancelled) {
  open();
  keep_done();
  const JobId id = put();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(10min); });
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(1s);
    EXPECT_TRUE(co_await engine_->book().cancel(id));
    co_await sleep(HttpJobSource::kAskWithin);
    EXPECT_EQ(worker_->counts().running, 0u);
    worker_->stop();
    EXPECT_TRUE(co_await running);
  });
  EXPECT_EQ(counts().cancelled, 1u);
}

TEST_F(HttpJobSourceTest, TellsProgress) {
  open();
  const JobId id = put();
  connect();
  worker_->add_default([](JobContext& context) -> Coro<void> {
    context.progress(0.5, "half");
    co_await sleep(30s);
  });
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(20s);
    const auto why = co_await engine_->book().explain(id);
    EXPECT_EQ(why->progress, 0.5);
    EXPECT_EQ(why->progress_message, "half");
    co_await sleep(20s);
    worker_->stop();
    EXPECT_TRUE(co_await running);
  });
}

TEST_F(HttpJobSourceTest, GoesOnWithItsLeasesWhileTheDaemonIsAway) {
  open();
  keep_done();
  put();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(40s); });
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(1s);
    transport_.loss = [](std::size_t, const HttpRequest&) { return Loss::refused; };
    co_await sleep(50s);
    transport_.loss = {};
    co_await sleep(10s);
    worker_->stop();
    EXPECT_TRUE(co_await running);
  });
  EXPECT_EQ(counts().done, 1u);
  EXPECT_THAT(events_, testing::ElementsAre(JobEventKind::done));
}

TEST_F(HttpJobSourceTest, HearsAtOnceThatAJobIsCancelledWhenItHasPlacesLeftAndWhenItHasNone) {
  open();
  keep_done();
  for (int jobs : {1, 4}) {
    JobId id = 0;
    for (int i = 0; i < jobs; ++i) id = put();
    connect();
    worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(100s); });
    run([&]() -> Coro<void> {
      Task<Result<void>> running = loop_.create_task(worker_->run());
      co_await sleep(51s);
      EXPECT_TRUE(co_await engine_->book().cancel(id));
      co_await sleep(10ms);
      EXPECT_EQ(worker_->counts().running, static_cast<std::size_t>(jobs - 1));
      worker_->stop();
      EXPECT_TRUE(co_await running);
      co_await source_->close();
    });
  }
}

TEST_F(HttpJobSourceTest, ASlowJobCostsTheDaemonFewRequests) {
  open();
  keep_done();
  for (int i = 0; i < 4; ++i) put();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(100s); });
  work(101s);
  EXPECT_EQ(counts().done, 4u);
  EXPECT_LE(transport_.sent, 40u) << "a renewal each 5 s, and a request that waits each 30 s";
}

TEST_F(HttpJobSourceTest, AnAnswerWithLeasesThatWasLostHoldsNoJobUp) {
  open();
  keep_done();
  put();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_return; });
  transport_.loss = [&](std::size_t number, const HttpRequest&) {
    return number == 1 ? Loss::after_effect : Loss::none;
  };
  work(1s);
  EXPECT_EQ(counts().done, 1u);
  EXPECT_THAT(events_, testing::ElementsAre(JobEventKind::done));
}

// Whichever request is lost, and on whichever way.
TEST_F(HttpJobSourceTest, RunsEachJobOnceToItsEndWhicheverAnswerIsLost) {
  open();
  keep_done();
  for (const Loss loss : {Loss::refused, Loss::before_effect, Loss::after_effect}) {
    for (std::size_t lost = 1; lost <= 3; ++lost) {
      const std::uint64_t before = counts().done;
      put();
      put();
      connect();
      worker_->add_default([](JobContext&) -> Coro<void> { co_await sleep(1s); });
      transport_.loss = [&](std::size_t number, const HttpRequest&) { return number == lost ? loss : Loss::none; };
      work(3min);
      EXPECT_EQ(counts().done, before + 2) << static_cast<int>(loss) << ' ' << lost;
      EXPECT_EQ(counts().running + counts().ready + counts().delayed + counts().buried, 0u);
    }
  }
}

TEST_F(HttpJobSourceTest, OneThatStopsWhileItAsksLeavesNoLeaseBehind) {
  open();
  connect();
  worker_->add_default([](JobContext&) -> Coro<void> { co_return; });
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(1s);
    transport_.answer_takes = 500ms;
    EXPECT_TRUE(co_await engine_->book().put({.queue = "mail"}));
    co_await sleep(100ms);
    EXPECT_EQ(engine_->running().size(), 1u) << "its answer is on its way";
    worker_->stop();
    EXPECT_TRUE(co_await running);
    co_await source_->close();
  });
  EXPECT_EQ(counts().ready, 1u);
  EXPECT_EQ(get("/v1/jobs/1").text("/expiries"), "0");
  EXPECT_THAT(events_, testing::ElementsAre(JobEventKind::released));
}

TEST_F(HttpJobSourceTest, OneThatStopsWhileNothingIsThereEndsAtOnce) {
  open();
  connect();
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(1s);
    const TimePoint began = loop_.time();
    worker_->stop();
    EXPECT_TRUE(co_await running);
    co_await source_->close();
    EXPECT_LT(loop_.time() - began, 1s);
  });
  EXPECT_TRUE(get("/v1/workers").text("/workers/0/waiting") == "false");
}

TEST_F(HttpJobSourceTest, OneThatStopsIsNotHeldUpByADaemonThatIsGone) {
  open();
  connect();
  run([&]() -> Coro<void> {
    Task<Result<void>> running = loop_.create_task(worker_->run());
    co_await sleep(1s);
    transport_.loss = [](std::size_t, const HttpRequest&) { return Loss::refused; };
    const TimePoint began = loop_.time();
    worker_->stop();
    EXPECT_TRUE(co_await running);
    client_->set_patience(Duration{});
    co_await source_->close();
    EXPECT_LT(loop_.time() - began, 5s);
  });
  transport_.loss = {};
}

TEST_F(HttpJobSourceTest, ATokenThatMayNotWorkIsToldBeforeAnythingIsAsked) {
  open({}, {}, {.tokens = {token_named("secret", TokenScope::read)}});
  client_ = std::make_unique<ApiClient>(transport_, *ApiClient::parse_base("http://localhost:7733"),
                                        ApiClientOptions{.token = "secret"});
  run([this]() -> Coro<void> {
    source_ = std::make_shared<HttpJobSource>(*client_);
    const auto may = co_await source_->check({.queues = {"mail"}, .worker = "w"});
    EXPECT_FALSE(may);
    if (!may) EXPECT_EQ(may.error().code, Errc::refused);
  });
}

TEST_F(HttpJobSourceTest, EndsWhenItMayNotWork) {
  open();
  connect();
  transport_.loss = {};
  worker_ = std::make_unique<Worker>(source_, WorkerOptions{.name = "far", .queues = {std::string(600, 'q')}});
  run([&]() -> Coro<void> {
    const auto worked = co_await worker_->run();
    EXPECT_FALSE(worked);
  });
}

// --- what is sent

RunEnd read_back(std::uint64_t token, const Verdict& verdict) {
  const std::string text = json_object([&](JsonWriter& json) { write_settlement(json, token, verdict); });
  const auto parsed = JsonText::parse(text);
  JsonErrors errors;
  RawJson raw(text);
  auto run = read_settlement(parsed->root(errors), WallTime{}, raw);
  EXPECT_FALSE(errors) << text << (errors ? errors.error().message : "");
  return {run.token, std::move(run.verdict)};
}

TEST(SettlementTelling, KeepsWhatAnOutcomeMaySay) {
  const RunEnd done = read_back(7, {.outcome = Outcome::done,
                                    .result = std::string("\xff\0", 2),
                                    .error = "none",
                                    .follow_ups = {{.queue = "next", .payload = "p"}}});
  EXPECT_EQ(done.token, 7u);
  EXPECT_EQ(done.verdict.outcome, Outcome::done);
  EXPECT_EQ(done.verdict.result, std::string("\xff\0", 2));
  ASSERT_EQ(done.verdict.follow_ups.size(), 1u);
  EXPECT_EQ(done.verdict.follow_ups.front().payload, "p");

  const RunEnd retry =
      read_back(8, {.outcome = Outcome::retry, .result = "so far", .error = "why", .delay = 1500us, .priority = -1});
  EXPECT_EQ(retry.verdict.result, "so far");
  EXPECT_EQ(retry.verdict.error, "why");
  EXPECT_EQ(retry.verdict.delay, std::optional<Duration>(2ms));
  EXPECT_EQ(retry.verdict.priority, std::optional<std::int32_t>(-1));

  EXPECT_EQ(read_back(9, {.outcome = Outcome::release, .result = "x", .error = "y"}).verdict.outcome, Outcome::release);
  EXPECT_EQ(read_back(9, {.outcome = Outcome::cancel, .error = "cancelled"}).verdict.error, "cancelled");
  EXPECT_EQ(read_back(9, {.outcome = Outcome::bury, .error = "bad"}).verdict.outcome, Outcome::bury);
}

}  // namespace
}  // namespace argiope

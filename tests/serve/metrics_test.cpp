// What Prometheus is told, and what balancers are.
#include "serve/watch/metrics.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <regex>
#include <set>

#include "argiope/async/threads.hpp"
#include "engine/broker_fixture.hpp"
#include "serve/notify/notifier.hpp"
#include "serve/watch/health.hpp"
#include "serve/watch/process_stats.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(ARGIOPE_SOURCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without what Prometheus adds to the names of histograms.
std::set<std::string> metrics_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex name(R"(\b((argiope|process)_[a-z0-9_]+?)(_bucket|_count|_sum)?\b)");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) names.insert((*it)[1]);
  return names;
}

class MetricsTest : public BrokerTest {
 protected:
  template <class Body>
  void with_metrics(Body body) {
    with_broker([&]() -> Coro<void> {
      feed_.emplace(*engine_, EventFeedOptions{}, 1);
      metrics_.emplace(MetricsSources{.engine = *engine_,
                                      .events = *feed_,
                                      .requests = &requests_,
                                      .version = "0.1.0",
                                      .started_at = WallTime{std::chrono::seconds{1'700'000'000}}});
      co_await body();
      metrics_.reset();
      feed_.reset();
    });
  }
  Coro<std::string> page() { co_return (co_await metrics_->answer()).body; }

  RequestCounts requests_;
  std::optional<EventFeed> feed_;
  std::optional<Metrics> metrics_;
};

TEST_F(MetricsTest, ThePageIsWrittenOnAnotherThread) {
  std::promise<void> go_on;
  with_metrics([&]() -> Coro<void> {
    EXPECT_NE(co_await page(), "") << "counted for a second";
    // More than there are threads.
    const std::shared_future<void> gone_on = go_on.get_future().share();
    std::vector<Future<void>> before;
    for (int i = 0; i < 64; ++i) before.push_back(to_thread([gone_on] { gone_on.wait(); }));
    auto asked = loop_.create_task(page());
    for (int turn = 0; turn < 20; ++turn) co_await sleep(Duration{});
    EXPECT_FALSE(asked.done());
    go_on.set_value();
    const std::string text = co_await asked;
    EXPECT_THAT(text, HasSubstr("argiope_up 1\n"));
    for (Future<void>& one : before) co_await std::move(one);
  });
}

TEST_F(MetricsTest, JobsAreToldByQueueAndStateAndWhatBecameOfThem) {
  with_metrics([&]() -> Coro<void> {
    co_await put(job("mail"));
    co_await put(delayed("mail", 1h));
    const LeasedJob leased = co_await one("mail");
    co_await sleep(20ms);
    co_await settle(leased.token);
    const std::string text = co_await page();
    for (const char* expected :
         {"# TYPE argiope_jobs gauge\n", "argiope_jobs{queue=\"mail\",state=\"delayed\"} 1\n",
          "argiope_jobs_added_total{queue=\"mail\"} 2\n", "argiope_jobs_done_total{queue=\"mail\"} 1\n",
          "# TYPE argiope_job_run_seconds histogram\n",
          "argiope_job_run_seconds_bucket{queue=\"mail\",le=\"0.01\"} 0\n",
          "argiope_job_run_seconds_bucket{queue=\"mail\",le=\"0.05\"} 1\n",
          "argiope_job_run_seconds_bucket{queue=\"mail\",le=\"+Inf\"} 1\n",
          "argiope_job_run_seconds_count{queue=\"mail\"} 1\n", "argiope_up 1\n",
          "argiope_build_info{version=\"0.1.0\"} 1\n", "argiope_schedules 0\n",
          "process_start_time_seconds 1700000000\n"}) {
      EXPECT_THAT(text, HasSubstr(expected));
    }
  });
}

TEST_F(MetricsTest, ANameThatQuotesIsWrittenSoThatItIsRead) {
  with_metrics([&]() -> Coro<void> {
    co_await put(job("a\"b\\c\nd"));
    EXPECT_THAT(co_await page(), HasSubstr(R"(argiope_jobs_added_total{queue="a\"b\\c\nd"} 1)"));
  });
}

TEST_F(MetricsTest, QueuesBeyondTwoHundredAreSummed) {
  with_metrics([&]() -> Coro<void> {
    for (int i = 0; i < 200; ++i) co_await put(job(fmt::format("q{:03}", i)));
    co_await page();
    for (int i = 0; i < 50; ++i) co_await put(job(fmt::format("a{:03}", i)));
    co_await sleep(2s);
    const std::string text = co_await page();
    EXPECT_THAT(text, HasSubstr("argiope_jobs_added_total{queue=\"_other\"} 50\n"));
    EXPECT_THAT(text, HasSubstr("argiope_jobs{queue=\"_other\",state=\"ready\"} 50\n"));
    EXPECT_THAT(text, HasSubstr("argiope_jobs{queue=\"q199\",state=\"ready\"} 1\n")) << "who came first keeps his name";
    EXPECT_THAT(text, Not(HasSubstr("a000")));
  });
}

TEST_F(MetricsTest, RequestsAreCountedByRouteAndNotByPath) {
  with_metrics([&]() -> Coro<void> {
    const HttpHandler handler = requests_.counted("/v1/jobs/{job}", [](ServerRequest& request) -> Coro<ServerResponse> {
      if (request.path == "/v1/jobs/throw") throw std::runtime_error("no luck");
      co_await sleep(20ms);
      co_return ServerResponse::text(request.path == "/v1/jobs/1" ? 200 : 404, "");
    });
    for (const char* path : {"/v1/jobs/1", "/v1/jobs/2", "/v1/jobs/3", "/v1/jobs/throw"}) {
      ServerRequest request;
      request.path = path;
      try {
        co_await handler(request);
      } catch (const std::runtime_error&) {
      }
    }
    const std::string text = co_await page();
    EXPECT_THAT(text, HasSubstr("argiope_http_requests_total{route=\"/v1/jobs/{job}\",code=\"2xx\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("argiope_http_requests_total{route=\"/v1/jobs/{job}\",code=\"4xx\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("argiope_http_requests_total{route=\"/v1/jobs/{job}\",code=\"none\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("argiope_http_request_seconds_bucket{route=\"/v1/jobs/{job}\",le=\"0.05\"} 4\n"));
  });
}

TEST_F(MetricsTest, AreThoseOfTheDocumentationAndTheDashboardAsksForNoOthers) {
  Gate gate({}, loop_.clock());
  Watchdog watchdog(loop_, loop_.clock(), {.has_thread = false});
  const auto pages = open_page_store(":memory:");
  PageEngine page_engine({}, **pages);
  DaemonProjects projects{.engine = page_engine,
                          .store = **pages,
                          .is_locked = {},
                          .read_source = {},
                          .keep_script = {},
                          .try_script = {},
                          .failure = {}};
  with_metrics([&]() -> Coro<void> {
    Metrics metrics({.engine = *engine_,
                     .events = *feed_,
                     .requests = &requests_,
                     .gate = &gate,
                     .watchdog = &watchdog,
                     .projects = &projects});
    Notifier(*engine_, *feed_, {}).add_to(metrics);
    std::set<std::string> told = {"argiope_read_waits_total"};  // the daemon adds it
    const std::string text = (co_await metrics.answer()).body;
    const std::regex help(R"(# HELP (\w+) )");
    for (std::sregex_iterator it(text.begin(), text.end(), help), end; it != end; ++it) told.insert((*it)[1]);
    EXPECT_EQ(metrics_in(read_file("docs/monitoring.md")), told);
    for (const std::string& name : metrics_in(read_file("packaging/grafana-dashboard.json")))
      EXPECT_TRUE(told.contains(name)) << name;
  });
}

TEST_F(MetricsTest, TheDaemonAddsItsOwn) {
  with_metrics([&]() -> Coro<void> {
    double open = 3;
    metrics_->add(Metrics::Kind::gauge, "argiope_connections", "Open", {"protocol", "http"}, [&] { return open; });
    metrics_->add(Metrics::Kind::counter, "argiope_reloads_total", "Reloads", {}, [] { return 1; });
    metrics_->add(Metrics::Kind::gauge, "argiope_connections", "Open", {"protocol", "beanstalkd"}, [] { return 7; });
    open = 4;
    EXPECT_THAT(co_await page(), HasSubstr("# HELP argiope_connections Open\n# TYPE argiope_connections gauge\n"
                                           "argiope_connections{protocol=\"http\"} 4\n"
                                           "argiope_connections{protocol=\"beanstalkd\"} 7\n"));
  });
}

TEST_F(MetricsTest, ReadinessEndsWithDrainingAndLifeGoesOn) {
  with_broker([&]() -> Coro<void> {
    Duration waits{};
    Health health(*engine_, nullptr, {.waits_for_commit = [&] { return waits; }});
    EXPECT_EQ(health.healthz().body, "{\"status\":\"ok\"}\n");
    EXPECT_EQ(health.readyz().status, 503) << "the scheduler was not started";
    engine_->scheduler().start();
    EXPECT_EQ(health.readyz().status, 200);
    waits = 11s;
    EXPECT_THAT(health.readyz().body, HasSubstr("waited for its commit for 11s"));
    waits = {};
    health.drain();
    EXPECT_THAT(health.readyz().body, HasSubstr("urn:argiope:problem:draining"));
    EXPECT_EQ(health.healthz().status, 200);
    co_return;
  });
}

TEST(ProcessStats, AreReadBehindTheNameWhateverThatIs) {
  const ProcessStats stats =
      parse_process_stat("7 (a) R ) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 3 0 5 1048576 10 18\n", 100, 4096);
  EXPECT_DOUBLE_EQ(stats.cpu_seconds, 3);
  EXPECT_EQ(stats.threads, 3u);
  EXPECT_EQ(stats.virtual_bytes, 1'048'576u);
  EXPECT_EQ(stats.resident_bytes, 40'960u);
  EXPECT_EQ(parse_process_stat("", 100, 4096).resident_bytes, 0u);
  const ProcessStats ours = read_process_stats();
  EXPECT_GT(ours.resident_bytes, 1'000'000u);
  EXPECT_GT(ours.open_fds, 2u);
}

}  // namespace
}  // namespace argiope

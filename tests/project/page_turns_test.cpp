// Who goes first where several projects want the same: turns by weight, at a host's pace, at its connections and for
// the run's places.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

std::string weighted_project(const std::string& name, int weight, const std::string& host) {
  return R"({"project":{"name":")" + name + R"(","weight":)" + std::to_string(weight) + R"(,"start":["http://)" + host +
         "/" + name + R"("]},"rule":[{"name":"all"}]})";
}

class PageTurns : public testing::Test {
 protected:
  PageTurns() {
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 1'000'000;
    sim.web.answer = [this](const HttpRequest& request) -> std::optional<PageAnswer> {
      PageAnswer page = page_with({});
      // A start leads to pages enough.
      const std::string path(request.url.path_and_query());
      if (path.find('/', 1) == std::string::npos) {
        std::vector<std::string> links;
        for (int i = 0; i < 4000; ++i) links.push_back(path + "/" + std::to_string(i));
        page = page_with(links);
      }
      page.latency = latency;
      return page;
    };
  }
  void put(const std::string& name, int weight, const std::string& host) {
    if (!sim.engine) sim.begin();
    ASSERT_TRUE(sim.engine->put_project(draft_of(weighted_project(name, weight, host))));
  }
  // How many pages of each begin within the span.
  std::size_t requests_of(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::count_if(sim.web.log, [&](const PageWeb::Seen& seen) {
      const std::size_t path = seen.url.find('/', 7);
      return std::string_view(seen.url).substr(path + 1).starts_with(name);
    }));
  }
  double ratio_within(Duration span, std::string_view one, std::string_view other) {
    sim.web.log.clear();
    sim.pass(span);
    EXPECT_GT(requests_of(other), 0u);
    return static_cast<double>(requests_of(one)) / static_cast<double>(std::max<std::size_t>(requests_of(other), 1));
  }

  SimulatedProjects sim;
  Duration latency = 10ms;
};

TEST_F(PageTurns, AtAHostsPaceAreAsTheWeights) {
  sim.options.hosts.rate = 10;
  put("heavy", 3, "shared.test");
  put("light", 1, "shared.test");
  put("fast", 1, "other.test");  // takes turns at a host of its own meanwhile
  for (const char* name : {"heavy", "light", "fast"}) ASSERT_TRUE(sim.engine->start(name));
  sim.pass(5s);
  EXPECT_NEAR(ratio_within(100s, "heavy", "light"), 3, 0.2);
  put("heavy", 1, "shared.test");
  put("light", 3, "shared.test");
  EXPECT_NEAR(ratio_within(100s, "light", "heavy"), 3, 0.2) << "a new definition is in force at once";
}

TEST_F(PageTurns, AtAHostsConnectionsAreAsTheWeights) {
  sim.options.hosts.per_host = 4;
  latency = 500ms;
  put("heavy", 2, "shared.test");
  put("light", 1, "shared.test");
  for (const char* name : {"heavy", "light"}) ASSERT_TRUE(sim.engine->start(name));
  sim.pass(10s);
  EXPECT_NEAR(ratio_within(100s, "heavy", "light"), 2, 0.2);
}

TEST_F(PageTurns, ForTheRunsPlacesAreAsTheWeights) {
  sim.options.concurrency = 130;
  sim.options.hosts.per_host = 1000;
  latency = 2s;
  put("heavy", 3, "one.test");
  put("light", 1, "two.test");
  for (const char* name : {"heavy", "light"}) ASSERT_TRUE(sim.engine->start(name));
  sim.pass(20s);
  EXPECT_NEAR(ratio_within(40s, "heavy", "light"), 3, 0.7);
}

TEST_F(PageTurns, NoWeightStarvesAnother) {
  sim.options.hosts.rate = 10;
  put("heavy", 100, "shared.test");
  put("light", 1, "shared.test");
  for (const char* name : {"heavy", "light"}) ASSERT_TRUE(sim.engine->start(name));
  sim.pass(5s);
  EXPECT_NEAR(ratio_within(300s, "heavy", "light"), 100, 10);
}

TEST_F(PageTurns, AHeavyProjectThatHangsLeavesPlaces) {
  sim.options.concurrency = 64;
  sim.options.hosts.per_host = 1000;
  latency = 1s;
  put("heavy", 100, "one.test");
  put("light", 1, "two.test");
  ASSERT_TRUE(sim.engine->start("heavy"));
  sim.pass(5s);
  latency = 1h;
  sim.pass(2s);
  latency = 1s;
  ASSERT_TRUE(sim.engine->start("light"));
  sim.web.log.clear();
  sim.pass(30s);
  EXPECT_GT(requests_of("light"), 20u);
}

TEST_F(PageTurns, OfEqualProjectsNoneIsLeftOut) {
  sim.options.hosts.rate = 10;
  for (const char* name : {"a", "b", "c"}) put(name, 1, "shared.test");
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(sim.engine->start(name));
  sim.pass(5s);
  EXPECT_NEAR(ratio_within(60s, "a", "b"), 1, 0.1);
  EXPECT_NEAR(ratio_within(60s, "b", "c"), 1, 0.1);
}

// Its thread writes; what it has written is told when the test says so.
class LatePageStore final : public PromptPageStore {
 public:
  using PromptPageStore::PromptPageStore;
  bool flushed(std::uint64_t flush) const override { return !is_late && PromptPageStore::flushed(flush); }
  bool is_late = false;
};

TEST_F(PageTurns, AVisitHasItsPlaceUntilItIsInTheStore) {
  auto kept = std::make_unique<LatePageStore>(std::move(*open_page_store(":memory:")));
  LatePageStore& store = *kept;
  sim.store = std::move(kept);
  sim.options.concurrency = 8;
  sim.options.hosts.per_host = 1000;
  put("p", 1, "site.test");
  store.is_late = true;
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1min);
  EXPECT_EQ(sim.web.log.size(), 8u) << "so many at most are repeated after a death";
  EXPECT_EQ(sim.engine->visits(), 8u);
  store.is_late = false;
  sim.pass(1min);
  EXPECT_EQ(sim.web.log.size(), 4001u);
}

}  // namespace
}  // namespace argiope

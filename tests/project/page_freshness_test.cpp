// When pages are visited, told by the site's log alone: the table of docs/projects.md, over restarts, clocks that are
// set, outages and neighbours.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr const char* kSite = "http://site.test/";

std::string project_json(const std::string& name, const std::string& start, const std::string& rule,
                         const std::string& more = {}) {
  return R"({"project":{"name":")" + name + R"(","start":[")" + start + "\"]" + more + R"(},"rule":[{"name":"all")" +
         rule + "}]}";
}

class Freshness : public testing::Test {
 protected:
  Freshness() {
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 1000;
    sim.web.pages[kSite] = page_with({});
    sim.begin();
  }
  void put(const std::string& rule, const std::string& more = {}) {
    const auto id = sim.engine->put_project(draft_of(project_json("p", kSite, rule, more)));
    ASSERT_TRUE(id) << id.error().message;
  }
  AskVerdict ask(bool force = false, bool cancel = false) {
    AskedPage page{.url = kSite, .force = force, .cancel = cancel};
    const auto decision = sim.engine->ask("p", page);
    EXPECT_TRUE(decision);
    return decision ? decision->verdict : AskVerdict::drop;
  }
  std::size_t visits() const { return sim.web.times_asked(kSite); }
  void begin_again(std::uint32_t per_host) {
    sim.stop();
    sim.options.hosts.per_host = per_host;
    sim.begin();
  }
  // Asks for the site's page; soon afterwards everything fails, for ten minutes. Requests in that time.
  std::size_t asked_in_outage_of_ten_minutes() {
    bool is_out = false;
    std::size_t asked = 0;
    sim.web.answer = [&](const HttpRequest& request) -> std::optional<PageAnswer> {
      asked += is_out;
      if (is_out) return PageAnswer{.status = 500};
      return request.url.href() == kSite ? std::nullopt : std::optional(page_with({}));
    };
    ask();
    sim.pass(100ms);
    is_out = true;
    sim.pass(10min);
    sim.web.answer = [](const HttpRequest& request) -> std::optional<PageAnswer> {
      return request.url.href() == kSite ? std::nullopt : std::optional(page_with({}));
    };
    return asked;
  }

  SimulatedProjects sim;
};

TEST_F(Freshness, GoesByTheAgeOfTheRuleOfNow) {
  put(R"(,"age":"2h")");
  ask();
  sim.pass(1h);
  EXPECT_EQ(ask(), AskVerdict::drop);
  put(R"(,"age":"30m")");  // a changed age reaches what is known
  EXPECT_EQ(ask(), AskVerdict::again);
  sim.pass(10min);
  EXPECT_EQ(visits(), 2u);
  EXPECT_EQ(ask(), AskVerdict::drop);
  sim.pass(21min);
  ask();
  sim.pass(1min);
  EXPECT_EQ(visits(), 3u);
}

TEST_F(Freshness, GoesByTheVersion) {
  put("", R"(,"version":"1")");
  ask();
  sim.pass(1min);
  EXPECT_EQ(ask(), AskVerdict::drop);
  put("", R"(,"version":"2")");
  EXPECT_EQ(ask(), AskVerdict::again);
  sim.pass(1min);
  EXPECT_EQ(ask(), AskVerdict::drop);
  EXPECT_EQ(visits(), 2u);
}

TEST_F(Freshness, ForcedPagesAreVisitedAlsoWhileTheyAre) {
  sim.web.pages[kSite].latency = 10s;
  put("");
  ask();
  sim.pass(5s);
  EXPECT_EQ(ask(true), AskVerdict::after);
  sim.pass(1min);
  EXPECT_EQ(visits(), 2u);
  EXPECT_EQ(ask(true), AskVerdict::again);
  sim.pass(1min);
  EXPECT_EQ(visits(), 3u);
}

TEST_F(Freshness, CancellingEndsAVisitUnderWay) {
  sim.web.pages[kSite].latency = 10s;
  put("");
  ask();
  sim.pass(5s);
  ASSERT_EQ(sim.engine->under_way(), 1u);
  EXPECT_EQ(ask(false, true), AskVerdict::cancel);
  sim.pass(1s);
  EXPECT_EQ(sim.engine->under_way(), 0u);
  EXPECT_EQ(sim.web.under_way, 0u) << "the request is broken off";
  sim.pass(1h);
  EXPECT_EQ(visits(), 1u);
  EXPECT_EQ(ask(true), AskVerdict::again);
  sim.pass(1min);
  EXPECT_EQ(visits(), 2u);
}

TEST_F(Freshness, CancellingAVisitThatHasNotBegunLeavesItsHostFree) {
  sim.web.pages["http://site.test/other"] = page_with({});
  put("");
  ask();
  AskedPage other{.url = "http://site.test/other"};
  // The turn in which it is taken is over, and its task has not run yet.
  sim.loop.call_soon([this] { sim.loop.call_soon([this] { EXPECT_EQ(ask(false, true), AskVerdict::cancel); }); });
  sim.pass(1min);
  ASSERT_TRUE(sim.engine->ask("p", other));
  sim.pass(1min);
  EXPECT_EQ(sim.web.times_asked("http://site.test/other"), 1u);
  EXPECT_EQ(sim.engine->under_way(), 0u);
}

TEST_F(Freshness, RecrawlsComeAtSuccessAndAge) {
  put(R"(,"age":"1h","auto_recrawl":true)");
  ask();
  sim.pass(10h + 30min);
  ASSERT_EQ(visits(), 11u);
  for (std::size_t i = 1; i < sim.web.log.size(); ++i) {
    const Duration apart = sim.web.log[i].at - sim.web.log[i - 1].at;
    EXPECT_GE(apart, 1h);
    EXPECT_LE(apart, 1h + 3s);
  }
}

TEST_F(Freshness, RecrawlsThatAChangedRuleMakesDueComeThen) {
  put(R"(,"age":"10d","auto_recrawl":true)");
  ask();
  sim.pass(2h);
  ASSERT_EQ(visits(), 1u);
  put(R"(,"age":"1h","auto_recrawl":true)");
  sim.pass(10s);
  EXPECT_EQ(visits(), 2u) << "F13: it reaches what waits";
}

TEST_F(Freshness, ConditionalRequestsGoByTheLastSuccess) {
  sim.web.pages[kSite].headers = {{"ETag", "\"one\""}};
  sim.web.answer = [](const HttpRequest& request) -> std::optional<PageAnswer> {
    for (const auto& [name, value] : request.headers) {
      if (name == "If-None-Match" && value == "\"one\"") return PageAnswer{.status = 304};
    }
    return std::nullopt;
  };
  put(R"(,"age":"1h","auto_recrawl":true)");
  ask();
  sim.pass(3h + 10s);
  ASSERT_EQ(visits(), 4u);
  EXPECT_EQ(sim.engine->counters("p")->all(ProjectCounters::Count::success), 1);
  EXPECT_EQ(sim.engine->recent("p").front().status, 304);
  EXPECT_TRUE(sim.engine->recent("p").front().succeeded);
}

TEST_F(Freshness, AClockThatIsSetMovesWhatIsDueWithIt) {
  put(R"(,"age":"2h","auto_recrawl":true)");
  ask();
  sim.pass(10min);
  ASSERT_EQ(visits(), 1u);
  sim.backend.manual_clock().set_wall(sim.backend.clock().wall_now() + 3h);
  sim.pass(5s);
  EXPECT_EQ(visits(), 2u) << "set forward by three hours, it is due";
  sim.backend.manual_clock().set_wall(sim.backend.clock().wall_now() - 1h);
  sim.pass(2h + 10min);
  EXPECT_LE(visits(), 3u);
  sim.pass(1h);
  EXPECT_EQ(visits(), 3u) << "set back by one, it is due an hour later";
}

TEST_F(Freshness, ARestartChangesNothing) {
  put(R"(,"age":"1h","auto_recrawl":true)");
  ask();
  for (int i = 0; i < 7; ++i) {
    sim.pass(25min);
    sim.stop();
    sim.begin();
  }
  sim.pass(10s);
  EXPECT_EQ(visits(), 3u) << "at 0, 60 and 120 minutes";
}

TEST_F(Freshness, AnOutageOfTenMinutesCostsTenRequestsAndThreeForEachProbing) {
  std::vector<std::string> links;
  for (int i = 0; i < 300; ++i) links.push_back("/p/" + std::to_string(i));
  sim.web.pages[kSite] = page_with(links);
  begin_again(8);
  put("");
  const std::size_t in_outage = asked_in_outage_of_ten_minutes();
  EXPECT_EQ(in_outage, 10u + 3 * 1) << "a pause of 5 minutes, a probing, and one of 10";
  sim.pass(24h);
  EXPECT_EQ(sim.engine->counters("p")->all(ProjectCounters::Count::success), 301);
}

// What cannot be known before two hosts have failed: what may be under way until then comes on top.
TEST_F(Freshness, AnOutageOfManyHostsCostsLittleMoreThanWasUnderWay) {
  std::vector<std::string> links;
  for (int host = 0; host < 20; ++host) {
    for (int i = 0; i < 50; ++i) links.push_back("http://host" + std::to_string(host) + ".test/" + std::to_string(i));
  }
  sim.web.pages[kSite] = page_with(links);
  begin_again(2);
  put("", R"(,"scope":["*.test"])");
  const std::size_t in_outage = asked_in_outage_of_ten_minutes();
  EXPECT_GE(in_outage, 10u + 3);
  EXPECT_LE(in_outage, 20u * 2 + 10 + 3);
}

TEST_F(Freshness, OneBadHostOfTwentyPausesNothing) {
  std::vector<std::string> links;
  for (int host = 0; host < 20; ++host) {
    for (int i = 0; i < 20; ++i) links.push_back("http://host" + std::to_string(host) + ".test/" + std::to_string(i));
  }
  sim.web.pages[kSite] = page_with(links);
  sim.web.answer = [&](const HttpRequest& request) -> std::optional<PageAnswer> {
    if (request.url.href() == kSite) return std::nullopt;
    return request.url.host() == "host7.test" ? PageAnswer{.status = 500} : page_with({});
  };
  put("", R"(,"scope":["site.test","*.test"])");
  ask();
  sim.pass(30s);
  EXPECT_NE(sim.engine->project("p")->doing, ProjectStatusNow::Doing::paused);
  EXPECT_EQ(sim.engine->counters("p")->all(ProjectCounters::Count::success), 1 + 19 * 20);
}

// A project beside another one, each on hosts of its own; what a page of the bad one is like is a test's to say.
class Neighbours : public Freshness {
 protected:
  Neighbours() {
    for (int i = 0; i < 500; ++i) well.push_back("http://well.test/" + std::to_string(i));
    sim.web.pages["http://well.test/"] = page_with(well);
    sim.web.answer = [this](const HttpRequest& request) -> std::optional<PageAnswer> {
      const std::string host(request.url.host());
      if (host.starts_with("bad")) return bad_page(request.url);
      if (host == "well.test" && request.url.path_and_query() != "/") return page_with({});
      return std::nullopt;
    };
  }
  ~Neighbours() override { sim.stop(); }  // pages under way still ask what this part says of them
  static std::vector<std::string> bad_hosts() {
    std::vector<std::string> links;
    for (int i = 0; i < 500; ++i) links.push_back("http://bad" + std::to_string(i) + ".test/");
    return links;
  }
  double time_of_a_round(const std::string& name) {
    EXPECT_TRUE(sim.engine->put_project(draft_of(project_json(name, "http://well.test/", ""))));
    const TimePoint began = sim.loop.time();
    EXPECT_TRUE(sim.engine->start(name));
    while (sim.engine->project(name)->round) sim.pass(10ms);
    return to_seconds(sim.loop.time() - began);
  }
  // Its pages are tried again and again.
  void begin_bad_one(const std::string& more) {
    EXPECT_TRUE(sim.engine->put_project(draft_of(project_json(
        "bad", "http://bad.test/", R"(,"retries":1000,"retry_delay":["1s"])", R"(,"scope":["*.test"])" + more))));
    EXPECT_TRUE(sim.engine->start("bad"));
    sim.pass(5s);
  }
  void costs_its_neighbour_little(const std::string& more = {}) {
    const double alone = time_of_a_round("alone");
    begin_bad_one(more);
    const double beside = time_of_a_round("beside");
    EXPECT_LE(beside, alone * 1.05);
  }

  std::vector<std::string> well;
  std::function<PageAnswer(const Url&)> bad_page;
  std::size_t crashes = 0;
};

TEST_F(Neighbours, AStuckProjectCostsItsNeighbourNothing) {
  bad_page = [](const Url& url) {
    return url.host() == "bad.test" ? page_with(bad_hosts()) : PageAnswer{.latency = 1h};
  };
  costs_its_neighbour_little();
}

TEST_F(Neighbours, AFailingProjectCostsItsNeighbourNothing) {
  bad_page = [](const Url& url) {
    return url.host() == "bad.test" ? page_with(bad_hosts()) : PageAnswer{.status = 500};
  };
  sim.stop();
  sim.options.pause.after = 0;  // so that it goes on failing
  sim.begin();
  costs_its_neighbour_little();
  EXPECT_GE(sim.engine->counters("bad")->sum(ProjectCounters::Count::retry, ProjectCounters::Span::h1,
                                             sim.backend.clock().wall_now()),
            500);
}

TEST_F(Neighbours, AProjectWhoseScriptCrashesCostsItsNeighbourNothing) {
  sim.stop();
  sim.options.pause.after = 0;
  sim.options.make_processor = [this](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    return std::make_unique<TestProcessor>(ProcessorDescription{}, [this](const PageCall&) -> Coro<VisitAnswer> {
      ++crashes;
      co_await sleep(100ms);  // until it is known
      VisitAnswer answer;
      answer.failure = ProcessorFailure{.text = "killed its processor", .is_crash = true};
      co_return answer;
    });
  };
  sim.begin();
  bad_page = [](const Url& url) { return url.host() == "bad.test" ? page_with(bad_hosts()) : page_with({}); };
  costs_its_neighbour_little(R"(,"processor":["script"])");
  EXPECT_GT(crashes, 0u);
}

TEST_F(Neighbours, AFloodingProjectCostsItsNeighbourNothing) {
  // Each of its pages leads to ten that nothing has led to before, at many hosts.
  bad_page = [last = std::size_t{0}](const Url&) mutable {
    std::vector<std::string> links;
    for (int i = 0; i < 10; ++i, ++last)
      links.push_back("http://bad" + std::to_string(last % 500) + ".test/" + std::to_string(last));
    PageAnswer page = page_with(links);
    page.latency = 500ms;
    return page;
  };
  costs_its_neighbour_little();
  EXPECT_GT(sim.engine->project("bad")->pages, 10'000u);
}

}  // namespace
}  // namespace argiope

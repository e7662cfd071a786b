// The engine of projects, in virtual time: pages that are never asked for, or whose rule has gone; how long a page may
// take; and sinks that a file names no more, or that have something left at the end.
#include <gmock/gmock.h>

#include <algorithm>

#include "project/fetch/internal/page_fetcher.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kTwoRules = R"({"project":{"name":"shop","start":["http://shop.test/"],"scope":["*.test"]},
  "rule":[{"name":"item","match":"/item/*","follow":false,"fields":{"title":"css:h1"}},{"name":"list"}]})";

// Jobs that take their time to be put.
class SlowPutter final : public JobPutter {
 public:
  explicit SlowPutter(Duration takes) : takes_(takes) {}
  Coro<Result<void>> put(std::vector<SinkJob> jobs) override {
    co_await sleep(takes_);
    for (const SinkJob& job : jobs) put_.push_back(job.queue);
    co_return Result<void>{};
  }
  const std::vector<std::string>& queues() const { return put_; }

 private:
  const Duration takes_;
  std::vector<std::string> put_;
};

class PageEngineEndsTest : public testing::Test {
 protected:
  ProjectId put(const std::string& json) {
    const auto id = sim.engine->put_project(draft_of(json));
    EXPECT_TRUE(id) << (id ? "" : id.error().message);
    return id.value_or(0);
  }
  ProjectId run_round(const std::string& json) {
    sim.begin();
    const ProjectId id = put(json);
    EXPECT_TRUE(sim.engine->start("shop"));
    sim.finish_round("shop");
    return id;
  }
  std::vector<std::string> sinks_of(ProjectId project) {
    EXPECT_TRUE(sim.store->flush());
    std::vector<std::string> names;
    const auto rows = sim.store->sinks(project);
    EXPECT_TRUE(rows);
    for (const SinkRow& row : *rows) names.push_back(row.name);
    return names;
  }
  void use_jobs(JobPutter* jobs) {
    sim.options.sink_means = [jobs](const ProjectDefinition&) {
      return SinkMeans{.jobs = jobs, .folder = {}, .variable = {}, .log = {}};
    };
  }

  SimulatedProjects sim;
};

// --- what is never asked for

TEST_F(PageEngineEndsTest, WhatTheClientRefusesFailsAtOnce) {
  std::vector<std::string> links = {"/item/1"};
  for (int i = 0; i < 15; ++i) links.push_back("http://private" + std::to_string(i) + ".test/");
  for (int i = 0; i < 15; ++i) sim.web.refused["http://private" + std::to_string(i) + ".test"] = Errc::refused;
  links.push_back("/turned");
  sim.web.pages["http://shop.test/"] = page_with(links);
  sim.web.pages["http://shop.test/item/1"] = {.body = "<h1>One</h1>"};
  sim.web.pages["http://shop.test/turned"] = {.status = 302, .headers = {{"Location", "http://private3.test/"}}};
  const ProjectId shop = run_round(kTwoRules);
  EXPECT_LT(sim.loop.time().time_since_epoch(), 1min) << "nothing of it waits to be tried again";
  for (const char* name : {"http://private7.test/", "http://shop.test/turned"}) {
    const auto page = sim.page(shop, name);
    ASSERT_TRUE(page) << name;
    EXPECT_EQ(page->known.state, PageState::failed) << name;
    EXPECT_THAT(page->error, HasSubstr("it may not be asked")) << name;
  }
  EXPECT_EQ(sim.web.times_asked("http://shop.test/turned"), 1u);
  EXPECT_EQ(sim.results(shop).size(), 1u) << "nor does the project pause for it";
  EXPECT_EQ(sim.engine->given_up(), 16u);
}

TEST_F(PageEngineEndsTest, WhatNobodyHereCanRenderFailsAtOnce) {
  sim.options.make_processor = [](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    return std::make_unique<TestProcessor>(said, [](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        AskedPage page{.url = "http://shop.test/shown", .rule = "page"};
        page.settings.request.render = {.is_said = true, .value = RequestSettings::Render{}};
        answer.pages.push_back(std::move(page));
      }
      co_return answer;
    });
  };
  const ProjectId shop = run_round(R"({"project":{"name":"shop","processor":["true"]}})");
  const auto page = sim.page(shop, "http://shop.test/shown");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->known.state, PageState::failed);
  EXPECT_THAT(page->error, HasSubstr("request/render"));
  EXPECT_THAT(sim.web.log, IsEmpty());
  EXPECT_LT(sim.loop.time().time_since_epoch(), 1min);
}

TEST_F(PageEngineEndsTest, WhatAProxyRefusesIsTriedAgain) {
  EXPECT_TRUE(is_refused_by_us({Errc::refused, "10.0.0.1 is a private address"}));
  EXPECT_TRUE(is_refused_by_us({Errc::refused, "proxy: proxy.test: 10.0.0.1 is a private address"}))
      << "a page's own, which was not asked";
  EXPECT_FALSE(is_refused_by_us({Errc::refused, "proxy proxy.test:3128 wants a name and a password (407)"}));
  EXPECT_FALSE(is_refused_by_us({Errc::network, "the connection was reset"}));
}

TEST_F(PageEngineEndsTest, APageTakesAsLongAsTheEngineSays) {
  sim.options.page_timeout = 5s;
  sim.web.pages["http://shop.test/"] = {.body = "late", .latency = 10s};
  sim.begin();
  const ProjectId shop =
      put(R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"page","retries":0}]})");
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  ASSERT_EQ(sim.engine->recent("shop").size(), 1u);
  const VisitNote visit = sim.engine->recent("shop").front();
  EXPECT_THAT(visit.error, HasSubstr("no answer in time"));
  EXPECT_GE(visit.fetched, 5s);
  EXPECT_LT(visit.fetched, 6s);
  EXPECT_EQ(sim.page(shop, "http://shop.test/")->known.state, PageState::failed);
}

// --- rules that have gone

TEST_F(PageEngineEndsTest, PagesOfARuleThatHasGoneAreTakenByTheOthers) {
  sim.web.pages["http://shop.test/"] = page_with({"/item/1", "/item/2"});
  for (const char* name : {"1", "2"})
    sim.web.pages[std::string("http://shop.test/item/") + name] = {.body = "<h1>Item</h1><b>7</b>"};
  sim.begin();
  const ProjectId shop = put(kTwoRules);
  // They wait, and so does the one whose rule remains.
  for (const char* url : {"http://shop.test/item/1", "http://shop.test/item/2", "http://shop.test/list"}) {
    AskedPage page{.url = url};
    page.delay = 1h;
    ASSERT_TRUE(sim.engine->ask("shop", page)) << url;
  }
  put(R"({"project":{"name":"shop","start":["http://shop.test/list"],"scope":["*.test"]},
    "rule":[{"name":"product","match":"/item/1","follow":false,"fields":{"number":"css:b"}},{"name":"list","match":"/list"}]})");
  sim.pass(2h);
  EXPECT_THAT(sim.web.asked(), UnorderedElementsAre("http://shop.test/item/1", "http://shop.test/list"))
      << "the other one is no page of the project";
  const auto taken = sim.page(shop, "http://shop.test/item/1");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->rule, "product");
  EXPECT_EQ(taken->known.state, PageState::done);
  const auto results = sim.results(shop);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].value, R"({"number":"7"})");
  const auto left = sim.page(shop, "http://shop.test/item/2");
  ASSERT_TRUE(left);
  EXPECT_EQ(left->known.state, PageState::failed);
  EXPECT_THAT(left->error, HasSubstr("no rule of the project takes this page"));
  EXPECT_FALSE(sim.engine->project("shop")->round) << "the round of those asks is over";
}

TEST_F(PageEngineEndsTest, PagesWhoseRuleHasGoneAreTakenAtTheNextStart) {
  sim.web.pages["http://shop.test/item/1"] = {.body = "<h1>Item</h1><b>7</b>"};
  sim.begin();
  const ProjectId shop = put(kTwoRules);
  AskedPage page{.url = "http://shop.test/item/1"};
  page.delay = 1h;
  ASSERT_TRUE(sim.engine->ask("shop", page));
  put(R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"product","fields":{"number":"css:b"}}]})");
  sim.stop();
  sim.begin();
  sim.pass(2h);
  EXPECT_EQ(sim.page(shop, "http://shop.test/item/1")->rule, "product");
  EXPECT_EQ(sim.results(shop).size(), 1u);
}

TEST_F(PageEngineEndsTest, APageOfAScriptKeepsItsRuleWhereAnAskNamesNone) {
  std::vector<std::string> rules;
  sim.options.make_processor = [&rules](const ProjectDefinition&,
                                        ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    return std::make_unique<TestProcessor>(said, [&rules](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        answer.pages.push_back(AskedPage{.url = "http://shop.test/item/1", .rule = "item"});
      } else {
        rules.push_back(call.rule);
      }
      co_return answer;
    });
  };
  for (const char* name : {"1", "2"})
    sim.web.pages[std::string("http://shop.test/item/") + name] = {.body = "<h1>Item</h1>"};
  sim.begin();
  put(R"({"project":{"name":"shop","processor":["true"]}})");
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  for (const char* url : {"http://shop.test/item/1", "http://shop.test/item/1#part", "http://shop.test/item/2"}) {
    AskedPage page{.url = url};
    page.force = true;
    ASSERT_TRUE(sim.engine->ask("shop", page)) << url;
    sim.pass(1min);
  }
  EXPECT_THAT(rules, ElementsAre("item", "item", "item", "__call__"));
}

// --- sinks

constexpr const char* kNoSinks =
    R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"page","fields":{"title":"css:h1"}}]})";
constexpr const char* kTwoSinks =
    R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"page","fields":{"title":"css:h1"}}],
  "sink":[{"name":"one","queue":"first"},{"name":"two","queue":"second"}]})";

TEST_F(PageEngineEndsTest, SinksThatAFileNamesNoMoreAreForgotten) {
  SlowPutter jobs(1ms);
  use_jobs(&jobs);
  sim.web.pages["http://shop.test/"] = {.body = "<h1>Shop</h1>"};
  const ProjectId shop = run_round(kNoSinks);
  put(kTwoSinks);
  sim.pass(1s);
  EXPECT_THAT(jobs.queues(), UnorderedElementsAre("first", "second"));
  EXPECT_THAT(sinks_of(shop), ElementsAre("one", "two"));
  put(R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"page","fields":{"title":"css:h1"}}],"sink":[{"name":"two","queue":"second"}]})");
  sim.pass(1s);
  EXPECT_THAT(sinks_of(shop), ElementsAre("two"));
  put(kTwoSinks);
  sim.pass(1s);
  EXPECT_THAT(jobs.queues(), UnorderedElementsAre("first", "second", "first"))
      << "it is another, and gets all that there is";
  put(kNoSinks);
  sim.pass(1s);
  EXPECT_THAT(sinks_of(shop), IsEmpty());
}

TEST_F(PageEngineEndsTest, SinksMayFinishAtTheEnd) {
  sim.web.pages["http://shop.test/"] = {.body = "<h1>Shop</h1>"};
  SlowPutter jobs(5s);
  use_jobs(&jobs);
  sim.options.sinks_at_end = [] { return Duration{30s}; };
  run_round(kTwoSinks);
  sim.stop();
  EXPECT_THAT(jobs.queues(), UnorderedElementsAre("first", "second"));
}

TEST_F(PageEngineEndsTest, SinksHaveNoLongerThanTheyMay) {
  sim.web.pages["http://shop.test/"] = {.body = "<h1>Shop</h1>"};
  SlowPutter jobs(1h);
  use_jobs(&jobs);
  sim.options.sinks_at_end = [] { return Duration{2s}; };
  run_round(kTwoSinks);
  const TimePoint before = sim.loop.time();
  sim.stop();
  EXPECT_LT(sim.loop.time() - before, 10s);
  EXPECT_THAT(jobs.queues(), IsEmpty());
}

}  // namespace
}  // namespace argiope

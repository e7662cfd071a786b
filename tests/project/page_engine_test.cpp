// The engine of projects, in virtual time: what is visited, when, and what comes of it.
#include <gmock/gmock.h>

#include <algorithm>

#include "project/process/internal/secret_mask.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kShop = R"({"project":{"name":"shop","start":["http://shop.test/"]},
  "rule":[{"name":"item","match":"/item/*","follow":false,"fields":{"title":"css:h1"}},{"name":"list"}]})";

class PageEngineTest : public testing::Test {
 protected:
  PageEngineTest() {
    sim.web.pages["http://shop.test/"] = page_with({"/item/1", "/item/2", "/more"});
    sim.web.pages["http://shop.test/more"] = page_with({"/item/2", "/item/3", "http://elsewhere.test/"});
    for (const char* number : {"1", "2", "3"}) {
      sim.web.pages[std::string("http://shop.test/item/") + number] = {.body = std::string("<h1>Item ") + number +
                                                                               "</h1><a href='/hidden'>x</a>"};
    }
  }
  // Puts the project and visits until its round is over.
  ProjectId run_round(const std::string& json) {
    PageEngine& engine = sim.begin();
    const auto id = engine.put_project(draft_of(json));
    EXPECT_TRUE(id) << (id ? "" : id.error().message);
    const auto name = draft_of(json).definition.name;
    EXPECT_TRUE(engine.start(name));
    sim.finish_round(name);
    return id.value_or(0);
  }

  SimulatedProjects sim;
};

TEST_F(PageEngineTest, FollowsLinksByItsRulesAndKeepsResults) {
  const ProjectId shop = run_round(kShop);
  EXPECT_THAT(sim.web.asked(),
              UnorderedElementsAre("http://shop.test/", "http://shop.test/more", "http://shop.test/item/1",
                                   "http://shop.test/item/2", "http://shop.test/item/3"));
  std::vector<std::string> values;
  for (const ResultRow& row : sim.results(shop)) values.push_back(row.page_name + " " + row.value);
  EXPECT_THAT(values, UnorderedElementsAre(R"(http://shop.test/item/1 {"title":"Item 1"})",
                                           R"(http://shop.test/item/2 {"title":"Item 2"})",
                                           R"(http://shop.test/item/3 {"title":"Item 3"})"));
  const auto rounds = sim.store->rounds(shop, 10);
  ASSERT_TRUE(rounds);
  ASSERT_EQ(rounds->size(), 1u);
  EXPECT_TRUE(rounds->front().ended);
  EXPECT_EQ(rounds->front().pages, 5u);
  EXPECT_EQ(rounds->front().failed, 0u);
  EXPECT_EQ(rounds->front().results, 3u);
}

TEST_F(PageEngineTest, LeavesFreshPagesAloneAndVisitsOldOnesAgain) {
  std::string json = kShop;
  json.replace(json.find(R"("follow":false)"), 14, R"("follow":false,"age":"2h")");
  run_round(json);
  sim.web.log.clear();
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  EXPECT_THAT(sim.web.asked(), ElementsAre("http://shop.test/")) << "starts are forced; what they lead to is fresh";
  sim.pass(3h);
  sim.web.log.clear();
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  EXPECT_THAT(sim.web.asked(),
              UnorderedElementsAre("http://shop.test/", "http://shop.test/item/1", "http://shop.test/item/2"))
      << "/more is never old, and so nothing leads to item 3";
}

TEST_F(PageEngineTest, RecrawlsByItself) {
  run_round(R"({"project":{"name":"shop","start":["http://shop.test/"]},
    "rule":[{"name":"item","match":"/item/*","follow":false,"age":"1h","auto_recrawl":true},{"name":"list","follow":["/item/*"]}]})");
  sim.pass(5h + 30min);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/item/1"), 6u);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/"), 1u);
}

TEST_F(PageEngineTest, GoesOnWhereItWasStopped) {
  sim.web.pages["http://shop.test/item/2"].latency = 10s;
  PageEngine& engine = sim.begin();
  const auto shop = engine.put_project(draft_of(kShop));
  ASSERT_TRUE(shop);
  ASSERT_TRUE(engine.start("shop"));
  sim.pass(1500ms);
  const std::size_t before = sim.web.log.size();
  EXPECT_LT(before, 5u);
  sim.stop(true);
  PageEngine& again = sim.begin();
  sim.finish_round("shop");
  EXPECT_EQ(sim.results(*shop).size(), 3u);
  const auto rounds = sim.store->rounds(*shop, 10);
  ASSERT_EQ(rounds->size(), 1u) << "it is the same round";
  EXPECT_EQ(rounds->front().pages, 5u);
  EXPECT_TRUE(again.project("shop"));
}

TEST_F(PageEngineTest, RetriesWhatFailsAndGivesItUp) {
  sim.web.pages["http://shop.test/item/1"] = {.status = 500};
  const ProjectId shop = run_round(kShop);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/item/1"), 4u);
  const auto page = sim.page(shop, "http://shop.test/item/1");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->known.state, PageState::failed);
  EXPECT_EQ(page->status_code, 500);
  EXPECT_THAT(page->error, testing::HasSubstr("500"));
  const auto rounds = sim.store->rounds(shop, 1);
  EXPECT_EQ(rounds->front().pages, 8u);
  EXPECT_EQ(rounds->front().failed, 4u);
}

TEST_F(PageEngineTest, TakesAServersWordThatAPageIsNotThere) {
  std::vector<std::string> links;
  for (int i = 0; i < 30; ++i) links.push_back("/missing/" + std::to_string(i));
  links.push_back("/item/1");
  sim.web.pages["http://shop.test/"] = page_with(links);
  const ProjectId shop = run_round(kShop);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/missing/7"), 1u);
  EXPECT_EQ(sim.page(shop, "http://shop.test/missing/7")->known.state, PageState::failed);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/item/1"), 1u)
      << "however many are missing, the project does not pause";
  EXPECT_LT(sim.loop.time().time_since_epoch(), 1min);
}

TEST_F(PageEngineTest, TellsARoundsEndOnceToTheScript) {
  std::vector<std::string> calls;
  std::size_t finished = 0;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "on_start";
    said.on_finished = "on_finished";
    return std::make_unique<TestProcessor>(said, [&](const PageCall& call) -> Coro<VisitAnswer> {
      calls.push_back(call.rule);
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        answer.pages.push_back({.url = "http://shop.test/", .rule = "index"});
      } else if (call.event == PageEvent::finished) {
        ++finished;
      } else if (call.rule == "index") {
        answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "detail"});
        answer.pages.push_back({.url = "http://shop.test/item/2", .rule = "detail"});
      } else {
        answer.results = {{.part = "", .value_json = R"({"url":")" + call.url + "\"}"}};
        answer.save_json = "7";
      }
      co_return answer;
    });
  };
  const ProjectId shop = run_round(R"({"project":{"name":"shop","processor":["true"]}})");
  sim.pass(1min);
  EXPECT_THAT(calls, ElementsAre("on_start", "index", "detail", "detail", "on_finished"));
  EXPECT_EQ(sim.results(shop).size(), 2u);
  EXPECT_EQ(sim.page(shop, "http://shop.test/item/1")->save, "7");
  sim.stop();
  sim.begin();
  sim.pass(1h);
  EXPECT_EQ(finished, 1u);
}

TEST_F(PageEngineTest, TellsAScriptOfDebugWhenItsStatusBecomesThatOrAnother) {
  std::vector<ProjectStatus> told;
  sim.options.make_processor = [&](const ProjectDefinition& project,
                                   ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    told.push_back(project.status);
    ProcessorDescription said;
    said.on_start = "on_start";
    return std::make_unique<TestProcessor>(said, [](const PageCall&) -> Coro<VisitAnswer> { co_return VisitAnswer{}; });
  };
  PageEngine& engine = sim.begin();
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"shop","processor":["true"]}})")));
  sim.pass(1s);
  EXPECT_THAT(told, ElementsAre(ProjectStatus::running));
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::debug));
  sim.pass(1s);
  EXPECT_THAT(told, ElementsAre(ProjectStatus::running, ProjectStatus::debug));
  ASSERT_TRUE(engine.start("shop"));
  sim.finish_round("shop");
  EXPECT_EQ(engine.visits(), 1u) << "it goes on";
  // What stands still need not know, and comes back as it was.
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::stop));
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::debug));
  ASSERT_TRUE(engine.set_rate("shop", 5, std::nullopt));
  sim.pass(1s);
  EXPECT_EQ(told.size(), 2u);
  // A file says it, too.
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"shop","processor":["true"],"status":"DEBUG"}})")));
  sim.pass(1s);
  EXPECT_EQ(told.size(), 2u);
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"shop","processor":["true"]}})")));
  sim.pass(1s);
  EXPECT_THAT(told, ElementsAre(ProjectStatus::running, ProjectStatus::debug, ProjectStatus::running));
}

TEST_F(PageEngineTest, MakesAVersionOfAScriptThatHasChanged) {
  std::string script = "one";
  ProcessorWatch watch;
  sim.options.script_of = [&](const ProjectDefinition&) { return script; };
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch its) -> Result<std::unique_ptr<Processor>> {
    watch = std::move(its);
    return std::make_unique<TestProcessor>(ProcessorDescription{},
                                           [](const PageCall&) -> Coro<VisitAnswer> { co_return VisitAnswer{}; });
  };
  PageEngine& engine = sim.begin();
  PageEngine::Draft draft = draft_of(R"({"project":{"name":"shop","processor":["true"]}})");
  draft.source = "# as it was written";
  const ProjectId shop = engine.put_project(std::move(draft)).value_or(0);
  sim.pass(1s);
  ASSERT_EQ(engine.project("shop")->version, 1);
  EXPECT_EQ((*sim.store->version(shop, 1))->script, "one") << "the draft has said none";
  watch.changed();
  EXPECT_EQ(engine.project("shop")->version, 1) << "it is the same";
  script = "two";
  watch.changed();
  ASSERT_EQ(engine.project("shop")->version, 2);
  const auto version = sim.store->version(shop, 2);
  ASSERT_TRUE(version && *version);
  EXPECT_EQ((*version)->script, "two");
  EXPECT_EQ((*version)->source, "# as it was written");
  EXPECT_EQ((*version)->note, "the script has changed");
  script.clear();
  watch.changed();
  EXPECT_EQ(engine.project("shop")->version, 2) << "none can be read";
  // Of a processor that was let go of nothing counts.
  const ProcessorWatch old = watch;
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::debug));
  script = "three";
  old.changed();
  EXPECT_EQ(engine.project("shop")->version, 2);
  watch.changed();
  EXPECT_EQ(engine.project("shop")->version, 3);
}

TEST_F(PageEngineTest, SaysNoSecretsWhereItQuotesWhatAScriptHasSaid) {
  const auto mask = std::make_shared<SecretMask>();
  mask->add("open sesame");
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    auto script =
        std::make_unique<TestProcessor>(ProcessorDescription{.on_start = "on_start", .rules = {{"on_start", {}}}},
                                        [](const PageCall&) -> Coro<VisitAnswer> {
                                          VisitAnswer answer;
                                          answer.messages.push_back({.project = "p-open sesame", .message_json = "1"});
                                          answer.pages.push_back({.url = "open sesame"});
                                          co_return answer;
                                        });
    return masked_processor(std::move(script), mask);
  };
  std::vector<std::string> logged;
  sim.options.on_log = [&](const std::string&, const PageLog& line) { logged.push_back(line.text); };
  PageEngine& engine = sim.begin();
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"shop","processor":["true"]}})")));
  ASSERT_TRUE(engine.start("shop"));
  sim.pass(1s);
  EXPECT_THAT(logged, Contains(HasSubstr("a message was left out: there is no project \"p-***\"")));
  EXPECT_THAT(logged, Contains(HasSubstr("a page was left out: ")));
  EXPECT_THAT(logged, Not(Contains(HasSubstr("sesame"))));
  const auto page = sim.store->find_page(1, "data:,on_start");
  ASSERT_TRUE(page && *page);
  EXPECT_THAT((*page)->track, HasSubstr("p-***"));
  EXPECT_THAT((*page)->track, Not(HasSubstr("sesame")));
}

TEST_F(PageEngineTest, TellsOfEachPageWhatARuleCouldNotTake) {
  std::vector<std::string> logged;
  sim.options.on_log = [&](const std::string&, const PageLog& line) {
    logged.push_back(line.level + ": " + line.text);
  };
  sim.web.pages["http://shop.test/"] = page_with({"/1", "/2"}, "<h1>Shop</h1>");
  sim.web.pages["http://shop.test/1"] = page_with({}, "<h1>One</h1><b>1,50 EUR</b>");
  sim.web.pages["http://shop.test/2"] = page_with({}, "<b>2.50 EUR</b>");
  const ProjectId shop =
      run_round(R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"item","fields":{
    "name":{"css":"h1","required":true},"price":{"css":"b","type":"number","decimal":"."}}}]})");
  EXPECT_THAT(logged,
              testing::UnorderedElementsAre(
                  "warning: http://shop.test/1: field \"price\": \"1,50 EUR\": no number whose decimal sign is \".\"",
                  "warning: http://shop.test/2: field \"name\": it is required, and not there; 1 record left out"));
  EXPECT_THAT(sim.page(shop, "http://shop.test/2")->track,
              HasSubstr("field \\\"name\\\": it is required, and not there"));
}

TEST_F(PageEngineTest, KeepsWhatTheLastVisitOfAPageDid) {
  bool fails = true;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "on_start";
    return std::make_unique<TestProcessor>(said, [&](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "item", .force = true});
        co_return answer;
      }
      for (int i = 0; i < 1'000; ++i) answer.logs.push_back({"print", "line " + std::to_string(i)});
      answer.pages.push_back({.url = "no page", .rule = "item"});
      answer.results = {{.part = "", .value_json = "1"}};
      if (fails)
        answer.failure = ProcessorFailure{
            .text = "no", .kind = "ValueError", .where = "shop.py:3", .trace = std::string(10'000, 'x') + "é the end"};
      co_return answer;
    });
  };
  const ProjectId shop = run_round(R"({"project":{"name":"shop","processor":["true"]},"rule":[]})");
  const auto track = [&] { return sim.page(shop, "http://shop.test/item/1")->track; };
  EXPECT_THAT(track(), testing::StartsWith(R"({"fetch_ms":)"));
  EXPECT_THAT(track(), testing::HasSubstr(R"("pages":0,"results":1,"logs":[{"level":"print","text":"line )"));
  EXPECT_THAT(
      track(),
      testing::HasSubstr(R"({"level":"print","text":"line 999"},{"level":"warning","text":"a page was left out: url)"));
  EXPECT_THAT(track(), testing::HasSubstr(R"("logs_left_out":)"));
  EXPECT_THAT(track(),
              testing::HasSubstr(R"("failure":{"text":"no","kind":"ValueError","where":"shop.py:3","trace":"xxx)"));
  EXPECT_THAT(track(), testing::EndsWith("é the end\"}}"));
  EXPECT_LT(track().size(), 32'000u);
  fails = false;
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  EXPECT_THAT(track(), testing::Not(testing::HasSubstr("failure")));
  // A visit of which nothing can be said.
  sim.web.refused["http://shop.test"] = Errc::refused;
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  EXPECT_THAT(sim.page(shop, "http://shop.test/item/1")->known.state, PageState::failed);
}

TEST_F(PageEngineTest, WaitsForARetryAsTheScriptSays) {
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    said.retry_delay = {.jitter = 0, .table = {10s}};
    said.retry_delays = {{0, 10s}, {1, 20s}, {2, std::nullopt}};
    return std::make_unique<TestProcessor>(said, [](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "detail"});
      } else {
        answer.failure = ProcessorFailure{.text = "no"};
      }
      co_return answer;
    });
  };
  const ProjectId shop = run_round(R"({"project":{"name":"shop","processor":["true"]}})");
  ASSERT_EQ(sim.web.log.size(), 3u);
  EXPECT_NEAR(to_seconds(sim.web.log[1].at - sim.web.log[0].at), 10, 1.5);
  EXPECT_NEAR(to_seconds(sim.web.log[2].at - sim.web.log[1].at), 20, 1.5);
  EXPECT_EQ(sim.page(shop, "http://shop.test/item/1")->known.state, PageState::failed);
}

TEST_F(PageEngineTest, IsNoHarderOnAHostWithTwoProjects) {
  sim.options.hosts.rate = 2;
  for (int i = 0; i < 30; ++i) sim.web.pages["http://shop.test/p/" + std::to_string(i)] = page_with({});
  std::vector<std::string> links;
  for (int i = 0; i < 30; ++i) links.push_back("/p/" + std::to_string(i));
  sim.web.pages["http://shop.test/"] = page_with(links);
  PageEngine& engine = sim.begin();
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(engine.put_project(draft_of(std::string(R"({"project":{"name":")") + name +
                                            R"(","start":["http://shop.test/"]},"rule":[{"name":"all"}]})")));
    ASSERT_TRUE(engine.start(name));
  }
  sim.finish_round("one");
  sim.finish_round("two");
  ASSERT_EQ(sim.web.log.size(), 62u);
  for (std::size_t i = 1; i < sim.web.log.size(); ++i) EXPECT_GE(sim.web.log[i].at - sim.web.log[i - 1].at, 499ms) << i;
  EXPECT_LE(sim.web.log.back().at - sim.web.log.front().at, 35s);
}

TEST_F(PageEngineTest, StartsEachDayAndOnceForAllDaysThatWereMissed) {
  std::string json = kShop;
  json.replace(json.find(R"("start")"), 0, R"("every":"1d",)");
  run_round(json);
  sim.pass(3 * 24h);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/"), 4u);
  sim.stop();
  sim.backend.manual_clock().set_wall(sim.backend.clock().wall_now() + 10 * 24h);
  sim.begin();
  sim.pass(1h);
  EXPECT_EQ(sim.web.times_asked("http://shop.test/"), 5u);
}

TEST_F(PageEngineTest, TicksComeOnceEachAndOnceForAllThatWereMissed) {
  std::vector<std::string> ticks;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.ticks = {{"on_tick", 1h}};
    return std::make_unique<TestProcessor>(said, [&](const PageCall& call) -> Coro<VisitAnswer> {
      EXPECT_EQ(call.event, PageEvent::tick);
      ticks.push_back(call.context_json);
      co_return VisitAnswer{};
    });
  };
  const auto tick_at = [&](WallTime time) {
    return R"({"tick":)" + std::to_string(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count()) +
           "}";
  };
  const WallTime start = sim.backend.clock().wall_now();  // a whole hour
  PageEngine& engine = sim.begin();
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"p","processor":["true"]}})")));
  sim.pass(3h + 30min);
  EXPECT_THAT(ticks, ElementsAre(tick_at(start + 1h), tick_at(start + 2h), tick_at(start + 3h)));
  sim.stop();
  sim.backend.manual_clock().set_wall(start + 20h + 30min);
  sim.begin();
  sim.pass(45min);
  ASSERT_EQ(ticks.size(), 5u) << "those of 17 hours as one, and the next";
  EXPECT_EQ(ticks[3], tick_at(start + 20h));
  EXPECT_EQ(ticks[4], tick_at(start + 21h));
}

TEST_F(PageEngineTest, StopsAndGoesOnAsItsStatusSays) {
  PageEngine& engine = sim.begin();
  ASSERT_TRUE(engine.put_project(draft_of(kShop)));
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::stop));
  ASSERT_TRUE(engine.start("shop"));
  sim.pass(1h);
  EXPECT_TRUE(sim.web.log.empty());
  EXPECT_EQ(engine.project("shop")->doing, ProjectStatusNow::Doing::stopped);
  const auto why = engine.explain("shop", "http://shop.test/");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, "project_stopped");
  ASSERT_TRUE(engine.set_status("shop", ProjectStatus::running));
  sim.finish_round("shop");
  EXPECT_EQ(sim.web.log.size(), 5u);
}

TEST_F(PageEngineTest, StaysStoppedWhenItsFileChangesInOtherThings) {
  run_round(kShop);
  ASSERT_TRUE(sim.engine->set_status("shop", ProjectStatus::stop));
  std::string json = kShop;
  json.replace(json.find(R"("start")"), 0, R"("version":"2",)");
  ASSERT_TRUE(sim.engine->put_project(draft_of(json)));
  EXPECT_EQ(sim.engine->project("shop")->status, ProjectStatus::stop);
  json.replace(json.find(R"("start")"), 0, R"("status":"DEBUG",)");
  ASSERT_TRUE(sim.engine->put_project(draft_of(json)));
  EXPECT_EQ(sim.engine->project("shop")->status, ProjectStatus::debug);
}

TEST_F(PageEngineTest, RestoresWhatWasDeletedWithinADayAndForgetsItThen) {
  const ProjectId shop = run_round(kShop);
  ASSERT_TRUE(sim.engine->remove("shop"));
  EXPECT_FALSE(sim.engine->project("shop"));
  ASSERT_TRUE(sim.engine->restore("shop"));
  EXPECT_EQ(sim.engine->project("shop")->pages, 5u);
  ASSERT_TRUE(sim.engine->remove("shop"));
  sim.pass(25h);
  EXPECT_FALSE(sim.engine->restore("shop"));
  EXPECT_TRUE(sim.results(shop).empty());
}

TEST_F(PageEngineTest, GivesMessagesToTheProjectThatTheyAreFor) {
  std::vector<std::string> got;
  sim.options.make_processor = [&](const ProjectDefinition& project,
                                   ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    said.on_message = "on_message";
    return std::make_unique<TestProcessor>(said, [&, name = project.name](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start && name == "one")
        answer.messages.push_back({.project = "two", .message_json = R"({"n":1})"});
      if (call.event == PageEvent::message) got.push_back(name + " " + call.context_json);
      co_return answer;
    });
  };
  PageEngine& engine = sim.begin();
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"one","processor":["true"]}})")));
  ASSERT_TRUE(engine.put_project(draft_of(R"({"project":{"name":"two","processor":["true"]}})")));
  sim.pass(1s);
  ASSERT_TRUE(engine.start("one"));
  sim.pass(1min);
  EXPECT_THAT(got, ElementsAre(R"(two {"project":"one","message":{"n":1}})"));
}

TEST_F(PageEngineTest, TellsAScriptThatMayNotSendThereThatThereIsNoSuchProject) {
  std::vector<std::string> got;
  sim.options.make_processor = [&](const ProjectDefinition& project,
                                   ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    said.on_message = "on_message";
    return std::make_unique<TestProcessor>(said, [&, name = project.name](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start && name == "one")
        answer.messages = {{.project = "two", .message_json = "1"}, {.project = "three", .message_json = "2"}};
      if (call.event == PageEvent::message) got.push_back(name + " " + call.context_json);
      co_return answer;
    });
  };
  sim.options.may_send = [](std::string_view from, std::string_view to) { return from != "one" || to != "two"; };
  std::vector<std::string> told;
  sim.options.on_log = [&](const std::string& project, const PageLog& line) {
    told.push_back(project + " " + line.text);
  };
  PageEngine& engine = sim.begin();
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(
        engine.put_project(draft_of(fmt::format(R"({{"project":{{"name":"{}","processor":["true"]}}}})", name))));
  }
  sim.pass(1s);
  ASSERT_TRUE(engine.start("one"));
  sim.pass(1min);
  EXPECT_THAT(got, ElementsAre(R"(three {"project":"one","message":2})"));
  EXPECT_THAT(told, Contains(::testing::AllOf(::testing::StartsWith("one "),
                                              ::testing::HasSubstr(R"(there is no project "two")"))));
}

TEST_F(PageEngineTest, FetchesNothingForAMessageThatIsNamedAsAPageIs) {
  std::vector<std::string> calls;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    said.on_message = "on_message";
    return std::make_unique<TestProcessor>(said, [&](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      calls.push_back(call.rule + " " + call.url);
      if (call.event == PageEvent::start) answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "item"});
      if (call.event == PageEvent::fetch) {
        answer.results = {{.value_json = R"("page")"}};
        for (const char* name : {"", "#1", "#2"}) {
          answer.messages.push_back({.project = "shop", .message_json = "1", .url = call.url + name});
        }
      }
      if (call.event == PageEvent::message) answer.results = {{.value_json = R"("message")"}};
      co_return answer;
    });
  };
  PageEngine& engine = sim.begin();
  const auto shop = engine.put_project(draft_of(R"({"project":{"name":"shop","processor":["true"]}})"));
  ASSERT_TRUE(shop);
  sim.pass(1s);
  ASSERT_TRUE(engine.start("shop"));
  sim.pass(1min);
  EXPECT_THAT(calls, UnorderedElementsAre("start data:,on_start", "item http://shop.test/item/1",
                                          "on_message data:,on_message#http://shop.test/item/1",
                                          "on_message data:,on_message#http://shop.test/item/1#1",
                                          "on_message data:,on_message#http://shop.test/item/1#2"));
  EXPECT_THAT(sim.web.asked(), ElementsAre("http://shop.test/item/1"));
  std::vector<std::string> shown;
  for (const ResultRow& row : sim.results(*shop))
    shown.push_back(std::string(shown_url(row.page_name, row.url)) + " " + row.value);
  EXPECT_THAT(shown,
              UnorderedElementsAre(R"(http://shop.test/item/1 "page")", R"(http://shop.test/item/1 "message")",
                                   R"(http://shop.test/item/1#1 "message")", R"(http://shop.test/item/1#2 "message")"));
}

TEST_F(PageEngineTest, TakesANewVersionAtOnce) {
  run_round(kShop);
  sim.web.log.clear();
  std::string json = kShop;
  json.replace(json.find(R"("start")"), 0, R"("version":"2",)");
  ASSERT_TRUE(sim.engine->put_project(draft_of(json)));
  EXPECT_EQ(sim.engine->project("shop")->version, 2);
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  EXPECT_EQ(sim.web.log.size(), 5u) << "all have another tag now";
}

}  // namespace
}  // namespace argiope

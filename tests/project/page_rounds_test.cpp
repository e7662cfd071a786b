// Rounds: of each its end is told once, and what is known of them, and wanted of a project, outlives the engine.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "project/run/internal/round_wait.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class PageRounds : public testing::Test {
 protected:
  // A script that is told of the ends of rounds, and takes its time to say what it is.
  void have_script() {
    sim.options.make_processor = [this](const ProjectDefinition&,
                                        ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
      struct Script final : Processor {
        explicit Script(PageRounds& test) : test_(test) {}
        Coro<Result<ProcessorDescription>> describe() override {
          while (!test_.says) co_await sleep(100ms);
          ProcessorDescription said;
          said.on_start = "on_start";
          said.on_finished = "on_finished";
          co_return said;
        }
        Coro<VisitAnswer> process(const PageCall& call) override {
          if (call.event == PageEvent::finished) test_.told.push_back(call.context_json);
          if (call.event == PageEvent::start) ++test_.started;
          co_return VisitAnswer{};
        }
        std::size_t capacity() const override { return 2; }
        Coro<void> close() override { co_return; }
        PageRounds& test_;
      };
      return std::make_unique<Script>(*this);
    };
  }
  void put(const std::string& more = {}) {
    ASSERT_TRUE(sim.engine->put_project(draft_of(R"({"project":{"name":"p","processor":["script"])" + more + "}}")));
  }
  std::vector<std::string> rounds_told() const {
    std::vector<std::string> numbers;
    for (const std::string& context : told) numbers.push_back(context.substr(0, context.find(',')));
    return numbers;
  }
  // A visit each ten seconds, and starts go before what tells of their end.
  void three_rounds() {
    have_script();
    sim.begin();
    put(R"(,"rate":0.1)");
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(sim.engine->start("p"));
      sim.pass(i == 0 ? 1s : 10s);
    }
    const auto rounds = sim.store->rounds(1, 10);
    ASSERT_TRUE(rounds);
    ASSERT_EQ(rounds->size(), 3u);
    for (const RoundRecord& round : *rounds) EXPECT_TRUE(round.ended);
    EXPECT_THAT(told, testing::IsEmpty());
    EXPECT_FALSE(rounds->front().finished_told);
    EXPECT_TRUE(rounds->back().finished_told) << "what tells of it waits";
  }
  void restart() {
    sim.stop();
    sim.begin();
  }

  bool says = true;
  std::vector<std::string> told;
  int started = 0;
  SimulatedProjects sim;
};

TEST_F(PageRounds, EachEndIsToldOnceAndInOrderHoweverLongTheFirstWaits) {
  three_rounds();
  sim.pass(10min);
  EXPECT_THAT(rounds_told(), ElementsAre("{\"round\":1", "{\"round\":2", "{\"round\":3"));
  EXPECT_TRUE(sim.store->rounds(1, 1)->front().finished_told);
}

// What a run that ends with its rounds sees: whether it goes on, second by second.
class PageAfterRounds : public PageRounds {
 protected:
  // `finished`: what the script asks for when it is told of the end of a round.
  void have_script_that_asks(std::vector<std::string> finished, bool for_ever = false) {
    sim.options.make_processor = [=](const ProjectDefinition&,
                                     const ProcessorWatch&) -> Result<std::unique_ptr<Processor>> {
      ProcessorDescription said;
      said.on_finished = "on_finished";
      return std::make_unique<TestProcessor>(said, [=](const PageCall& call) -> Coro<VisitAnswer> {
        VisitAnswer answer;
        if (call.event == PageEvent::finished) {
          for (const std::string& url : finished) answer.pages.push_back({.url = url, .rule = "late"});
        } else if (for_ever && call.rule == "late") {
          answer.pages.push_back({.url = call.response.url + "+", .rule = "late"});
        }
        co_return answer;
      });
    };
    sim.begin();
    ASSERT_TRUE(sim.engine->put_project(
        draft_of(R"({"project":{"name":"p","start":["http://shop.test/"],"processor":["script"]}})")));
    ASSERT_TRUE(sim.engine->start("p"));
    while (!sim.engine->project("p")->round) sim.pass(10ms);  // its script is described first
    while (sim.engine->project("p")->round) sim.pass(10ms);
  }
  // How long such a run goes on.
  Duration goes_on() {
    const TimePoint began = sim.loop.time();
    AfterRounds after(*sim.engine, {"p"}, sim.loop.clock().wall_now());
    while (after.goes_on(sim.loop.clock().wall_now())) sim.pass(100ms);
    return sim.loop.time() - began;
  }
};

TEST_F(PageAfterRounds, WhatTheEndOfARoundAsksForIsVisitedHoweverSlowItsHostIs) {
  sim.web.pages["http://shop.test/"] = page_with({});
  sim.web.pages["http://slow.test/late"] = page_with({});
  sim.web.robots_latency["http://slow.test"] = 12s;
  have_script_that_asks({"http://slow.test/late"});
  EXPECT_GT(goes_on(), 11s);
  EXPECT_EQ(sim.web.times_asked("http://slow.test/late"), 1u);
}

TEST_F(PageAfterRounds, NothingIsWaitedForWhereNothingIsAskedFor) {
  sim.web.pages["http://shop.test/"] = page_with({});
  have_script_that_asks({});
  EXPECT_LT(goes_on(), 1s);
}

TEST_F(PageAfterRounds, AScriptThatNeverEndsDoesNotHoldTheRun) {
  sim.web.answer = [](const HttpRequest&) { return std::optional(page_with({})); };
  have_script_that_asks({"http://shop.test/late"}, true);
  EXPECT_LT(goes_on(), 20s);
  EXPECT_GT(sim.web.log.size(), 2u);
}

TEST_F(PageRounds, WhatIsStillToBeToldIsToldByTheNextRun) {
  three_rounds();
  restart();
  sim.pass(10min);
  EXPECT_THAT(rounds_told(), ElementsAre("{\"round\":1", "{\"round\":2", "{\"round\":3"));
  restart();
  sim.pass(10min);
  EXPECT_EQ(told.size(), 3u);
}

TEST_F(PageRounds, AStartThatWaitsForItsScriptIsInTheStore) {
  have_script();
  says = false;
  sim.begin();
  put();
  ASSERT_TRUE(sim.engine->start("p", "hand"));
  ASSERT_TRUE(sim.store->flush());
  const auto stored = sim.store->projects();
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->front().start_wanted, "hand") << "as a death leaves it";
  restart();
  EXPECT_EQ(started, 0);
  says = true;
  sim.pass(1min);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(sim.store->rounds(1, 1)->front().cause, "hand");
  ASSERT_TRUE(sim.store->flush());
  EXPECT_EQ(sim.store->projects()->front().start_wanted, std::nullopt);
  restart();
  sim.pass(1min);
  EXPECT_EQ(started, 1);
}

TEST_F(PageRounds, CoverageAndAlarmsOfARoundAreKeptWithIt) {
  std::vector<std::string> links;
  for (int i = 0; i < 10; ++i) links.push_back("/item/" + std::to_string(i));
  sim.web.pages["http://shop.test/"] = page_with(links);
  for (int i = 0; i < 10; ++i) {
    sim.web.pages["http://shop.test/item/" + std::to_string(i)] = {.body = i % 2 == 0 ? "<h1>Item</h1><b>5</b>"
                                                                                      : "<h1>Item</h1>"};
  }
  sim.options.hosts.rate = 1;
  sim.begin();
  ASSERT_TRUE(sim.engine->put_project(
      draft_of(R"({"project":{"name":"shop","start":["http://shop.test/"]},"alarm":{"coverage":{"price":0.9}},
    "rule":[{"name":"item","match":"/item/*","follow":false,"fields":{"title":"css:h1","price":"css:b"}},{"name":"list"}]})")));
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.pass(6s);
  restart();
  const auto counted = sim.engine->coverage("shop");
  ASSERT_EQ(counted.size(), 2u);
  EXPECT_GT(counted.front().records, 0u);
  EXPECT_LT(counted.front().records, 10u);
  sim.finish_round("shop");
  const std::vector<FieldCount> whole{{.field = "title", .records = 10, .found = 10},
                                      {.field = "price", .records = 10, .found = 5}};
  EXPECT_EQ(sim.engine->coverage("shop"), whole) << "of the whole round, over the restart";
  EXPECT_THAT(sim.engine->alarms("shop"), ElementsAre(HasSubstr("price is in 50% of 10 results")));
  restart();
  EXPECT_EQ(sim.engine->coverage("shop"), whole);
  EXPECT_THAT(sim.engine->alarms("shop"), ElementsAre(HasSubstr("price is in 50% of 10 results")));
  EXPECT_EQ(sim.store->rounds(1, 1)->front().fields, whole);
  AskedPage fresh{.url = "http://shop.test/item/1"};
  EXPECT_EQ(sim.engine->ask("shop", fresh)->verdict, AskVerdict::drop);
  EXPECT_FALSE(sim.engine->project("shop")->round);
  EXPECT_EQ(sim.engine->coverage("shop"), whole) << "an ask that has led to nothing is no round";
}

}  // namespace
}  // namespace argiope

// Why a page is not visited now, as the running engine tells: each reason, with its time.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Field;
using testing::HasSubstr;

constexpr const char* kExplainedSite = "http://site.test/";

std::string explained_project(const std::string& more, const std::string& rule = R"({"name":"all"})") {
  return R"({"project":{"name":"p","start":["http://site.test/"],"scope":["*.test"])" + more + R"(},"rule":[)" + rule +
         "]}";
}

class PageExplained : public testing::Test {
 protected:
  PageExplained() {
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 1000;
    sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return page_with({}); };
  }
  void put(const std::string& more = {}, const std::string& rule = R"({"name":"all"})") {
    if (!sim.engine) sim.begin();
    ASSERT_TRUE(sim.engine->put_project(draft_of(explained_project(more, rule))));
  }
  void ask(const std::string& url, std::optional<Duration> delay = std::nullopt) {
    ASSERT_TRUE(sim.engine->ask("p", AskedPage{.url = url, .delay = delay}));
  }
  PageExplanation why(const std::string& page) {
    EXPECT_TRUE(sim.store->flush());
    auto told = sim.engine->explain("p", page);
    EXPECT_TRUE(told);
    return told.value_or(PageExplanation{});
  }
  // In so long.
  std::optional<WallTime> in(Duration span) {
    return std::chrono::floor<std::chrono::milliseconds>(sim.backend.clock().wall_now()) + span;
  }

  auto about(Duration span) {
    return testing::Optional(AllOf(testing::Gt(*in(span - 100ms)), testing::Le(*in(span + 100ms))));
  }

  SimulatedProjects sim;
};

auto gives(std::string_view reason, const std::string& words) {
  return AllOf(Field("reason", &PageExplanation::reason, reason),
               Field("words", &PageExplanation::words, HasSubstr(words)));
}

TEST_F(PageExplained, ItsProjectIsStopped) {
  put();
  ask(kExplainedSite);
  ASSERT_TRUE(sim.engine->set_status("p", ProjectStatus::stop));
  EXPECT_THAT(why(kExplainedSite), gives("project_stopped", "its project is STOP"));
}

TEST_F(PageExplained, ItsProjectPausesAndThenProbes) {
  put();
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return PageAnswer{.status = 500}; };
  for (int i = 0; i < 30; ++i) ask("http://site.test/" + std::to_string(i));
  sim.pass(10s);
  const PageExplanation paused = why("http://site.test/29");
  EXPECT_THAT(paused, gives("project_paused", "kept failing"));
  ASSERT_TRUE(paused.until);
  EXPECT_GT(*paused.until, *in(4min + 45s));
  EXPECT_LE(*paused.until, *in(5min));
  const PageExplanation failed = why("http://site.test/0");
  EXPECT_THAT(failed, gives("not_due", "it has failed ("));
  EXPECT_THAT(failed.words, AllOf(HasSubstr("500"), HasSubstr("), and is tried again then")));
  EXPECT_THAT(failed.until, testing::Optional(testing::Gt(*in(10s))));
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return PageAnswer{.latency = 1h}; };
  sim.pass(5min);
  const PageExplanation probing = why("http://site.test/29");
  EXPECT_THAT(probing, gives("probing", "tries a few visits first"));
  EXPECT_TRUE(probing.until);
}

TEST_F(PageExplained, ItsProjectsRateHoldsItUp) {
  put(R"(,"rate":0.1)");
  ask(kExplainedSite);
  ask("http://site.test/2");
  sim.pass(1s);
  EXPECT_THAT(why("http://site.test/2"),
              AllOf(gives("project_rate", "its project's rate"), Field(&PageExplanation::until, about(9s))));
}

TEST_F(PageExplained, ItsProjectsRateHoldsItUpAlsoWhileItIsInNoQueue) {
  sim.options.queue_size = 16;
  put(R"(,"rate":0.1)");
  for (int i = 0; i < 100; ++i) ask("http://site.test/" + std::to_string(i));
  sim.pass(1s);
  EXPECT_THAT(why("http://site.test/99"),
              AllOf(gives("project_rate", "its project's rate"), Field(&PageExplanation::until, about(9s))));
  ASSERT_TRUE(sim.engine->set_rate("p", 0.0, std::nullopt));
  EXPECT_THAT(why("http://site.test/99"),
              AllOf(gives("project_rate", "its project's rate"), Field(&PageExplanation::until, std::nullopt)));
}

TEST_F(PageExplained, ItsHostRests) {
  put();
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> {
    return PageAnswer{.status = 503, .headers = {{"Retry-After", "600"}}};
  };
  ask(kExplainedSite);
  ask("http://site.test/2");
  sim.pass(1s);
  const PageExplanation told = why("http://site.test/2");
  EXPECT_THAT(told, gives("resting_host", "http://site.test: rests for "));
  ASSERT_TRUE(told.until);
  EXPECT_GT(*told.until, *in(9min + 58s));
}

TEST_F(PageExplained, ItsHostIsLost) {
  sim.options.pause.after = 0;
  put();
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> {
    return PageAnswer{.error = Errc::network, .connects = false};
  };
  for (int i = 0; i < 20; ++i) ask("http://site.test/" + std::to_string(i));
  sim.pass(2min);
  ask("http://site.test/last");
  const PageExplanation told = why("http://site.test/last");
  EXPECT_THAT(told, gives("resting_host", "http://site.test: it is asked again in "));
  EXPECT_TRUE(told.until);
}

TEST_F(PageExplained, ItsHostIsAtItsConnections) {
  sim.options.hosts.per_host = 2;
  put();
  ask(kExplainedSite);
  sim.pass(1s);
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return PageAnswer{.latency = 1min}; };
  for (const char* page : {"2", "3", "4"}) ask(kExplainedSite + std::string(page));
  sim.pass(1s);
  EXPECT_THAT(why("http://site.test/4"), gives("busy_host", "http://site.test: 2 of 2 requests are under way"));
  EXPECT_THAT(why("http://site.test/2"), gives("visiting", "it is being visited"));
}

TEST_F(PageExplained, ItsHostsPaceHoldsItUp) {
  sim.options.hosts.rate = 0.1;
  put();
  ask(kExplainedSite);
  ask("http://site.test/2");
  sim.pass(1s);
  const PageExplanation told = why("http://site.test/2");
  EXPECT_EQ(told.reason, "waiting_host") << told.words;
  ASSERT_TRUE(told.until);
  EXPECT_GT(*told.until, *in(8s));
  EXPECT_LE(*told.until, *in(9s));
}

TEST_F(PageExplained, ItsHostsRobotsTxtIsReadFirstAndForbidsIt) {
  sim.options.hosts.robots = true;
  sim.web.robots["http://site.test"] = "User-agent: *\nDisallow: /no\n";
  put();
  ask("http://site.test/no");
  sim.pass(5ms);
  EXPECT_THAT(why("http://site.test/no"), gives("reading_robots", "http://site.test: its robots.txt is being read"));
  sim.pass(10s);
  EXPECT_THAT(why("http://site.test/no"), gives("robots", "robots.txt forbids it; asked for now it would be: "));
}

TEST_F(PageExplained, ItIsNotDueOrFresh) {
  put({}, R"({"name":"all","age":"2h"})");
  ask("http://site.test/later", 3h);
  EXPECT_THAT(why("http://site.test/later"),
              AllOf(gives("not_due", "it was asked for then"), Field(&PageExplanation::until, in(3h))));
  ask(kExplainedSite);
  sim.pass(1s);
  const PageExplanation fresh = why(kExplainedSite);
  EXPECT_THAT(fresh, gives("fresh", "asked for now it would be: fresh until "));
  ASSERT_TRUE(fresh.until);
  EXPECT_GT(*fresh.until, *in(2h - 2s));
}

TEST_F(PageExplained, ItWasGivenUpWithItsError) {
  put();
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return PageAnswer{.status = 404}; };
  ask(kExplainedSite);
  sim.pass(1s);
  const PageExplanation told = why(kExplainedSite);
  EXPECT_THAT(told, gives("given_up", "its last visits failed: "));
  EXPECT_THAT(told.words, AllOf(HasSubstr("404"), HasSubstr("; asked for now it would be: ")));
}

TEST_F(PageExplained, ItsProjectHasNoProcessorYetOrOneThatIsRefused) {
  struct Silent final : Processor {
    Coro<Result<ProcessorDescription>> describe() override {
      co_await sleep(1000h);
      co_return ProcessorDescription{};
    }
    Coro<VisitAnswer> process(const PageCall&) override { co_return VisitAnswer{}; }
    std::size_t capacity() const override { return 1; }
    Coro<void> close() override { co_return; }
  };
  std::string refusal;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    if (!refusal.empty()) return std::unexpected(Error{Errc::unsupported, refusal});
    return std::make_unique<Silent>();
  };
  put(R"(,"processor":["script"])");
  ask(kExplainedSite);
  EXPECT_THAT(why(kExplainedSite), gives("project_standing", "its project's processor has not said yet what it is"));
  refusal = "the strict sandbox cannot be had here";
  put(R"(,"processor":["another"])");
  EXPECT_THAT(why(kExplainedSite),
              gives("project_standing", "its project stands still: the strict sandbox cannot be had here"));
}

TEST_F(PageExplained, MoreImportantPagesAreAhead) {
  sim.options.concurrency = 1;
  put();
  sim.web.answer = [](const HttpRequest&) -> std::optional<PageAnswer> { return PageAnswer{.latency = 1min}; };
  ask("http://slow.test/");
  sim.pass(1s);
  for (const char* page : {"", "2", "3"}) ask(kExplainedSite + std::string(page));
  EXPECT_THAT(why("http://site.test/3"), gives("ahead", "2 more important pages are ahead"));
  EXPECT_THAT(why("http://site.test/2"), gives("ahead", "1 more important page is ahead"));
  EXPECT_THAT(why(kExplainedSite), gives("soon", "nothing holds it up"));
}

TEST_F(PageExplained, AUrlInAnySpellingIsItsPage) {
  put({}, R"({"name":"all","match":"http://site.test/*"})");
  ask("http://site.test/a%20b");
  for (const char* spelling :
       {"http://site.test/a%20b", "HTTP://Site.TEST:80/a b#part", "http://site.test/x/../a%20b"}) {
    const PageExplanation told = why(spelling);
    EXPECT_TRUE(told.known) << spelling;
    EXPECT_EQ(told.name, "http://site.test/a%20b");
    EXPECT_TRUE(sim.engine->page_id("p", spelling)) << spelling;
  }
  EXPECT_THAT(why("http://site.test/other"), gives("unknown", "nothing has led to it yet"));
  EXPECT_THAT(why("http://other.test/"), gives("no_rule", "no rule matches it"));
  EXPECT_THAT(why("http://site.example/"), gives("off_scope", "out of scope"));
  EXPECT_THAT(why("no url"), gives("no_page", "it is not known, and no URL"));
  EXPECT_FALSE(sim.engine->page_id("p", "no url"));
}

}  // namespace
}  // namespace argiope

// What a project's file says of requests, in virtual time: what servers see of it, and who goes before it.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;

constexpr const char* kRulesWithRequests =
    R"({"project":{"name":"shop","start":["http://shop.test/"],"request":{"headers":{"User-Agent":"shop","X-All":"all"}}},
  "rule":[{"name":"item","match":"/item/*","follow":false,
           "request":{"method":"POST","body":"a=b","headers":{"x-all":"item","Authorization":"Bearer geheim"},"cookies":{"lang":"en"},"redirects":1}},
          {"name":"list"}]})";

PageSettings said_of_request(std::string_view json) {
  const auto settings = read_settings(R"({"request":)" + std::string(json) + "}");
  EXPECT_TRUE(settings) << json;
  return settings.value_or(PageSettings{});
}

class PageRequestsTest : public testing::Test {
 protected:
  PageRequestsTest() {
    sim.web.pages["http://shop.test/"] = page_with({"/item/1", "/more"});
    sim.web.pages["http://shop.test/more"] = page_with({});
    sim.web.pages["http://shop.test/item/1"] = page_with({});
  }
  void run_round(const std::string& json) {
    PageEngine& engine = sim.begin();
    const auto id = engine.put_project(draft_of(json));
    ASSERT_TRUE(id) << id.error().message;
    visit_all();
  }
  void visit_all() {
    ASSERT_TRUE(sim.engine->start("shop"));
    sim.finish_round("shop");
  }
  // The last request for it.
  PageWeb::Seen seen(std::string_view url) {
    const auto found = std::ranges::find(sim.web.log.rbegin(), sim.web.log.rend(), url, &PageWeb::Seen::url);
    EXPECT_NE(found, sim.web.log.rend()) << url;
    return found == sim.web.log.rend() ? PageWeb::Seen{} : *found;
  }
  std::string header(std::string_view url, std::string_view name) {
    std::string values;
    for (const auto& [one, value] : seen(url).headers) {
      if (one == name) values += (values.empty() ? "" : "|") + value;
    }
    return values;
  }

  SimulatedProjects sim;
};

TEST_F(PageRequestsTest, ServersSeeWhatTheRuleOfAPageSaysAndNoOther) {
  run_round(kRulesWithRequests);
  const PageWeb::Seen item = seen("http://shop.test/item/1");
  EXPECT_EQ(item.method, "POST");
  EXPECT_EQ(item.body, "a=b");
  EXPECT_THAT(item.headers, IsSupersetOf({Pair("x-all", "item"), Pair("User-Agent", "shop"),
                                          Pair("Authorization", "Bearer geheim"), Pair("Cookie", "lang=en")}));
  EXPECT_EQ(header("http://shop.test/item/1", "X-All"), "") << "its rule goes before all";
  for (const char* url : {"http://shop.test/", "http://shop.test/more"}) {
    const PageWeb::Seen list = seen(url);
    EXPECT_EQ(list.method, "GET");
    EXPECT_EQ(list.body, "");
    EXPECT_THAT(list.headers, IsSupersetOf({Pair("X-All", "all"), Pair("User-Agent", "shop")}));
    EXPECT_EQ(header(url, "Authorization"), "");
    EXPECT_EQ(header(url, "Cookie"), "");
  }
}

TEST_F(PageRequestsTest, RulesWithoutARequestAskAsTheyDid) {
  run_round(R"({"project":{"name":"shop","start":["http://shop.test/"]},"rule":[{"name":"all"}]})");
  const auto plain = seen("http://shop.test/more").headers;
  ASSERT_TRUE(sim.engine->put_project(
      draft_of(R"({"project":{"name":"shop","start":["http://shop.test/"],"version":2,"request":{"headers":{"A":"b"}}},
    "rule":[{"name":"all","request":null}]})")));
  visit_all();
  EXPECT_EQ(sim.web.times_asked("http://shop.test/more"), 2u);
  EXPECT_EQ(seen("http://shop.test/more").headers, plain) << "the rule takes back what all say";
}

TEST_F(PageRequestsTest, WhatProvesWhoWeAreStaysWithItsHost) {
  sim.web.pages["http://shop.test/item/1"] = {.status = 302, .headers = {{"Location", "http://elsewhere.test/item/1"}}};
  sim.web.pages["http://elsewhere.test/item/1"] = page_with({});
  run_round(kRulesWithRequests);
  EXPECT_EQ(header("http://shop.test/item/1", "Authorization"), "Bearer geheim");
  EXPECT_EQ(seen("http://elsewhere.test/item/1").method, "GET");
  EXPECT_EQ(seen("http://elsewhere.test/item/1").body, "");
  EXPECT_EQ(header("http://elsewhere.test/item/1", "Authorization"), "");
  EXPECT_EQ(header("http://elsewhere.test/item/1", "Cookie"), "");
  EXPECT_EQ(header("http://elsewhere.test/item/1", "User-Agent"), "shop");
}

TEST_F(PageRequestsTest, HoldAfterARestartAndChangeWithTheFile) {
  run_round(kRulesWithRequests);
  sim.stop();
  sim.web.log.clear();
  sim.begin();
  ASSERT_TRUE(sim.engine->ask("shop", {.url = "http://shop.test/item/1", .force = true}));
  sim.pass(1min);
  EXPECT_EQ(header("http://shop.test/item/1", "Authorization"), "Bearer geheim");
  const std::int64_t version = sim.engine->project("shop")->version;
  ASSERT_TRUE(sim.engine->put_project(draft_of(kRulesWithRequests)));
  EXPECT_EQ(sim.engine->project("shop")->version, version) << "it is the same";
  std::string other = kRulesWithRequests;
  other.replace(other.find("geheim"), 6, "other");
  ASSERT_TRUE(sim.engine->put_project(draft_of(other)));
  EXPECT_EQ(sim.engine->project("shop")->version, version + 1);
  ASSERT_TRUE(sim.engine->ask("shop", {.url = "http://shop.test/item/1", .force = true}));
  sim.pass(1min);
  EXPECT_EQ(header("http://shop.test/item/1", "Authorization"), "Bearer other");
}

TEST_F(PageRequestsTest, AreBeforeRobotsTxtAsThoseOfScripts) {
  sim.web.robots["http://shop.test"] = "User-agent: *\nDisallow: /item/\n";
  run_round(R"({"project":{"name":"shop","start":["http://shop.test/"]},
    "rule":[{"name":"item","match":"/item/*","request":{"robots":false}},{"name":"list"}]})");
  EXPECT_EQ(sim.web.times_asked("http://shop.test/item/1"), 1u);
}

TEST_F(PageRequestsTest, WithoutABrowserAPageToBeRenderedFails) {
  run_round(R"({"project":{"name":"shop","start":["http://shop.test/"]},
    "rule":[{"name":"item","match":"/item/*","request":{"render":{}}},{"name":"list"}]})");
  EXPECT_EQ(sim.web.times_asked("http://shop.test/item/1"), 0u);
  const auto page = sim.page(sim.engine->project("shop")->id, "http://shop.test/item/1");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->known.state, PageState::failed);
  EXPECT_THAT(page->error, HasSubstr("request/render"));
}

TEST_F(PageRequestsTest, StandBehindAllThatAScriptSays) {
  std::string told;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription said;
    said.on_start = "start";
    said.defaults = said_of_request(R"({"headers":{"B":"defaults","C":"defaults","D":"defaults"}})");
    said.rules["item"].settings = said_of_request(R"({"headers":{"B":"script","C":"script"}})");
    return std::make_unique<TestProcessor>(said, [&told](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      if (call.event == PageEvent::start) {
        answer.pages.push_back({.url = "http://shop.test/item/1",
                                .rule = "item",
                                .settings = said_of_request(R"({"headers":{"B":"page","G":null}})")});
        answer.pages.push_back({.url = "http://shop.test/more", .rule = "other"});
      } else if (call.rule == "item") {
        told = stored(call.settings);
      }
      co_return answer;
    });
  };
  run_round(
      R"({"project":{"name":"shop","processor":["true"],"request":{"headers":{"B":"all","C":"all","D":"all","E":"all","F":"all","G":"all"}}},
    "rule":[{"name":"item","match":"/item/*","request":{"headers":{"B":"file","C":"file","D":"file","E":"file","G":"file"}}}]})");
  EXPECT_THAT(seen("http://shop.test/item/1").headers,
              IsSupersetOf({Pair("B", "page"), Pair("C", "script"), Pair("D", "defaults"), Pair("E", "file"),
                            Pair("F", "all")}));
  EXPECT_EQ(header("http://shop.test/item/1", "G"), "") << "the page takes it back";
  EXPECT_THAT(told, HasSubstr(R"("E":"file")")) << "the script is told what was said of its page";
  EXPECT_THAT(seen("http://shop.test/more").headers,
              IsSupersetOf({Pair("B", "defaults"), Pair("E", "all"), Pair("G", "all")}))
      << "a rule that the file does not have";
}

TEST_F(PageRequestsTest, HoldForPagesThatAreTried) {
  sim.begin();
  const auto tried = sim.loop.run_until_complete(
      sim.engine->try_page({.definition = kRulesWithRequests, .page = {.url = "http://shop.test/item/1"}}));
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_EQ(tried->not_fetched, "");
  EXPECT_EQ(header("http://shop.test/item/1", "Authorization"), "Bearer geheim");
  for (const PageLog& line : tried->logs) EXPECT_THAT(line.text, Not(HasSubstr("geheim")));
}

}  // namespace
}  // namespace argiope

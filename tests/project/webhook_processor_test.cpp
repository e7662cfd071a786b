// WebhookProcessor in virtual time, against a server that answers what a test says: what is sent, what answers mean,
// and what becomes of pages while it is not there.
#include "project/process/internal/webhook_processor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/calls/calls.hpp"
#include "support/loop_fixture.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr std::string_view kHook = "http://127.0.0.1:9000/shop";

// The id in a page's line.
std::uint64_t id_in(std::string_view content) {
  const std::size_t at = content.find("\"id\":");
  return at == std::string_view::npos ? 0 : std::stoull(std::string(content.substr(at + 5, 20)));
}
bool is_describe(const HttpRequest& request) { return request.body.starts_with(R"({"type":"describe")"); }

PageCall shop_page(std::string body = "<h1>Lamp</h1>") {
  PageCall call;
  call.rule = "item";
  call.project = "shop";
  call.name = call.url = call.response.url = "https://shop.test/item/1";
  call.response.status = 200;
  call.response.body = std::move(body);
  return call;
}

class WebhookProcessorTest : public OnVirtualLoop {
 protected:
  WebhookProcessorTest() {
    web.answer = [this](const HttpRequest& request) -> std::optional<PageAnswer> {
      if (is_describe(request)) return describes;
      PageAnswer answer = pages;
      if (const std::size_t at = answer.body.find("ID"); at != std::string::npos)
        answer.body.replace(at, 2, std::to_string(id_in(request.body)));
      return answer;
    };
    options.url = *Url::parse(kHook);
    options.project = "shop";
    options.argiope = "0.1.0";
    options.watch.log = [this](PageLog line) { log += line.level + ": " + line.text + "\n"; };
    options.watch.trouble = [this](const std::string& why) { troubles.push_back(why); };
  }
  template <class Body>
  void with(Body body) {
    loop_.run_until_complete([](WebhookProcessorTest& test, Body to_run) -> Coro<void> {
      WebhookProcessor processor(EventLoop::current(), test.web, test.options);
      co_await to_run(processor);
      co_await processor.close();
    }(*this, std::move(body)));
  }
  // Of one page.
  VisitAnswer answer_of(const PageCall& call = shop_page()) {
    VisitAnswer answer;
    with([&](WebhookProcessor& processor) -> Coro<void> { answer = co_await processor.process(call); });
    return answer;
  }

  PageWeb web;
  PageAnswer describes{.body = R"({"type":"described","protocol":1,"concurrency":2,"on":{"start":"begin"}})"};
  PageAnswer pages{.body = R"({"type":"done","id":ID})"};
  WebhookProcessorOptions options;
  std::string log;
  std::vector<std::string> troubles;
};

TEST_F(WebhookProcessorTest, IsAskedWhatItIs) {
  describes.body = "{\"type\":\"log\",\"text\":\"hello\"}\n\n" + describes.body + "\r\n";
  with([&](WebhookProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    if (!described) co_return ADD_FAILURE() << described.error().message, void();
    EXPECT_EQ(described->on_start, "begin");
    EXPECT_EQ(described->concurrency, 2u);
    EXPECT_EQ(processor.capacity(), 2u);
  });
  ASSERT_EQ(web.log.size(), 1u);
  EXPECT_EQ(web.log[0].method, "POST");
  EXPECT_EQ(web.log[0].url, kHook);
  EXPECT_THAT(web.log[0].headers, AllOf(Contains(Pair("Content-Type", "application/x-argiope-processor")),
                                        Not(Contains(Pair("Argiope-Signature", testing::_)))));
  EXPECT_EQ(web.log[0].body, write_describe("shop", "0.1.0", {}));
  EXPECT_EQ(log, "info: hello\n");
  EXPECT_THAT(troubles, ElementsAre());
}

TEST_F(WebhookProcessorTest, GetsTheLineAndTheBodyAndAnswersAsAScript) {
  pages.body = R"({"type":"log","id":ID,"level":"print","text":"read"})"
               "\n"
               R"({"type":"more","id":1,"pages":[{"url":"/item/2","rule":"item"}]})"
               "\n"
               R"({"type":"done","id":1,"results":[{"value":{"price":3.5}}],"save":7})";
  const PageCall call = shop_page(std::string("a\n\0b", 4));
  const VisitAnswer answer = answer_of(call);
  EXPECT_FALSE(answer.failure) << answer.failure->text;
  ASSERT_EQ(answer.pages.size(), 1u);
  EXPECT_EQ(answer.pages[0].url, "https://shop.test/item/2");
  ASSERT_TRUE(answer.results);
  EXPECT_EQ(answer.results->at(0).value_json, R"({"price":3.5})");
  EXPECT_EQ(answer.save_json, "7");
  ASSERT_EQ(answer.logs.size(), 1u);
  EXPECT_EQ(answer.logs[0].text, "read");
  EXPECT_EQ(web.log.at(0).body, write_page(call, 1) + call.response.body);
}

TEST_F(WebhookProcessorTest, SignsWhatItSends) {
  options.secret = [] { return Result<std::string>("long and random"); };
  with([&](WebhookProcessor& processor) -> Coro<void> {
    EXPECT_TRUE(co_await processor.describe());
    const PageCall call = shop_page();
    EXPECT_FALSE((co_await processor.process(call)).failure);
  });
  ASSERT_EQ(web.log.size(), 2u);
  for (std::size_t id = 0; id < 2; ++id) {
    EXPECT_THAT(web.log[id].headers,
                Contains(Pair("Argiope-Signature", sign_push("long and random", web.log[id].wall,
                                                             static_cast<JobId>(id), web.log[id].body))));
  }
}

TEST_F(WebhookProcessorTest, IsNotAskedWithoutTheSecretThatSigns) {
  options.secret = [] { return Result<std::string>(fail(Errc::not_found, "no secret there")); };
  const VisitAnswer answer = answer_of();
  ASSERT_TRUE(answer.failure);
  EXPECT_TRUE(answer.failure->not_now);
  EXPECT_THAT(answer.failure->text, HasSubstr("no secret there"));
  EXPECT_THAT(web.log, testing::IsEmpty());
}

TEST_F(WebhookProcessorTest, AnswersThatAreNoneAreFailedAttemptsThatSayWhy) {
  const std::pair<std::string, std::string> kAnswers[] = {
      {"", "answered without `done`"},
      {"<html>", "no message: "},
      {"{\"type\":\"done\",\"id\":99}", "99"},
      {"{\"type\":\"done\",\"id\":ID}\n{\"type\":\"done\",\"id\":1}", "more behind its answer"},
      {R"({"type":"select","id":ID,"query":1,"css":"a"})", "select"},
      {describes.body, "`described` to a page"},
      {R"({"type":"more","id":ID,"pages":[]})", "without `done`"},
      {R"({"type":"done","id":ID,"error":{"text":"no price"}})", "no price"},
      {R"({"type":"done","id":ID,"pages":7})", "pages"},
  };
  for (const auto& [body, why] : kAnswers) {
    pages.body = "{\"type\":\"log\",\"text\":\"kept\"}\n" + body;
    const VisitAnswer answer = answer_of();
    ASSERT_TRUE(answer.failure) << body;
    EXPECT_THAT(answer.failure->text, HasSubstr(why)) << body;
    EXPECT_FALSE(answer.failure->not_now) << body;
    EXPECT_FALSE(answer.failure->is_crash) << body;
    EXPECT_EQ(answer.logs.empty() ? "" : answer.logs[0].text, "kept") << body;
  }
  EXPECT_THAT(troubles, ElementsAre());
}

TEST_F(WebhookProcessorTest, OtherStatusesAreFailedAttempts) {
  for (const int status : {301, 400, 403, 404, 500, 502}) {
    pages = {.status = status, .body = "no\x01pe"};
    const VisitAnswer answer = answer_of();
    ASSERT_TRUE(answer.failure) << status;
    EXPECT_THAT(answer.failure->text, AllOf(HasSubstr(fmt::format("POST http://127.0.0.1:9000: status {}: no", status)),
                                            Not(HasSubstr("\x01"))));
    EXPECT_FALSE(answer.failure->not_now) << status;
  }
  pages = {.status = 201, .body = R"({"type":"done","id":ID})"};
  EXPECT_FALSE(answer_of().failure);
}

TEST_F(WebhookProcessorTest, WaitsAsLongAsItIsAskedTo) {
  for (const int status : {429, 503}) {
    web.log.clear();
    with([&](WebhookProcessor& processor) -> Coro<void> {
      const PageAnswer good = pages;
      pages = {.status = status, .headers = {{"Retry-After", "60"}}};
      const PageCall call = shop_page();
      VisitAnswer answer = co_await processor.process(call);
      EXPECT_TRUE(answer.failure && answer.failure->not_now);
      EXPECT_EQ(answer.failure->delay, Duration(60s));
      pages = good;
      co_await sleep(20s);
      answer = co_await processor.process(call);
      EXPECT_TRUE(answer.failure && answer.failure->not_now);
      EXPECT_EQ(answer.failure->delay, Duration(40s));
      EXPECT_EQ(web.log.size(), 1u) << "it is let alone";
      co_await sleep(40s);
      EXPECT_FALSE((co_await processor.process(call)).failure);
      pages = {.status = status};
      EXPECT_EQ((co_await processor.process(call)).failure->delay, Duration(30s));
      pages = good;
    });
  }
  EXPECT_THAT(troubles, ElementsAre()) << "it is there";
}

TEST_F(WebhookProcessorTest, WhatIsNotThereIsTriedLessAndLessOftenAndNoAttemptFails) {
  with([&](WebhookProcessor& processor) -> Coro<void> {
    const PageAnswer good = pages;
    pages.error = Errc::network;
    pages.connects = false;
    const PageCall call = shop_page();
    for (const Duration wait : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
      const VisitAnswer answer = co_await processor.process(call);
      if (!answer.failure) co_return ADD_FAILURE() << "it was not there", void();
      EXPECT_TRUE(answer.failure->not_now);
      EXPECT_EQ(answer.failure->delay, wait);
      EXPECT_THAT(answer.failure->text, HasSubstr("cannot be reached"));
      const std::size_t asked = web.log.size();
      EXPECT_TRUE((co_await processor.process(call)).failure->not_now);
      EXPECT_EQ(web.log.size(), asked) << "not before that";
      co_await sleep(wait);
    }
    pages = good;
    EXPECT_THAT(processor.trouble(), HasSubstr("cannot be reached"));
    EXPECT_FALSE((co_await processor.process(call)).failure);
    EXPECT_EQ(processor.trouble(), "");
    pages.error = Errc::dns;
    pages.connects = false;
    EXPECT_EQ((co_await processor.process(call)).failure->delay, Duration(1s)) << "from the beginning again";
  });
  ASSERT_EQ(troubles.size(), 3u);
  EXPECT_EQ(troubles[1], "");
  EXPECT_THAT(log, HasSubstr("error: the processor cannot be reached"));
}

TEST_F(WebhookProcessorTest, PagesThatFindItGoneTogetherCountOnce) {
  describes.body = R"({"type":"described","protocol":1,"concurrency":10})";
  pages.error = Errc::network;
  pages.connects = false;
  with([&](WebhookProcessor& processor) -> Coro<void> {
    EXPECT_TRUE(co_await processor.describe());
    const PageCall call = shop_page();
    const auto one = [](WebhookProcessor& its, const PageCall& page) -> Coro<void> {
      const VisitAnswer answer = co_await its.process(page);
      EXPECT_TRUE(answer.failure && answer.failure->not_now);
      EXPECT_EQ(answer.failure->delay, Duration(1s));
    };
    co_await TaskGroup::run([&](TaskGroup& group) {
      for (int i = 0; i < 10; ++i) group.create_task(one(processor, call));
    });
    EXPECT_EQ(web.log.size(), 11u);
  });
}

TEST_F(WebhookProcessorTest, WhatBreaksUnderWayIsAFailedAttempt) {
  pages.error = Errc::network;
  VisitAnswer answer = answer_of();
  ASSERT_TRUE(answer.failure);
  EXPECT_FALSE(answer.failure->not_now);
  EXPECT_EQ(answer.failure->kind, "network");
  pages = {.body = R"({"type":"done","id":ID})", .latency = 1h};
  PageCall call = shop_page();
  call.time_limit = 5s;
  const TimePoint before = loop_.time();
  answer = answer_of(call);
  ASSERT_TRUE(answer.failure);
  EXPECT_FALSE(answer.failure->not_now);
  EXPECT_EQ(answer.failure->kind, "timeout");
  EXPECT_EQ(loop_.time() - before, Duration(7s)) << "the page's time, and 2 s";
}

TEST_F(WebhookProcessorTest, SendsNoMoreAtATimeThanItMay) {
  with([&](WebhookProcessor& processor) -> Coro<void> {
    EXPECT_TRUE(co_await processor.describe());
    const PageCall call = shop_page();
    std::size_t answered = 0;
    std::vector<Task<void>> tasks;
    const auto one = [](WebhookProcessor& its, const PageCall& page, std::size_t& count) -> Coro<void> {
      if (!(co_await its.process(page)).failure) ++count;
    };
    for (int i = 0; i < 7; ++i) tasks.push_back(loop_.create_task(one(processor, call, answered), "page"));
    co_await sleep(1ms);
    tasks[0].cancel();  // under way
    tasks[4].cancel();  // waits
    for (Task<void>& task : tasks) {
      try {
        co_await task;
      } catch (const CancelledError&) {
        // asked for
      }
    }
    EXPECT_EQ(answered, 5u);
    EXPECT_EQ(web.most_under_way, 2u);
    EXPECT_EQ(web.log.size(), 7u) << "describe, and all pages but the one that waited";
  });
}

TEST_F(WebhookProcessorTest, PagesWaitWhileWhatItSaysOfItselfIsWrong) {
  describes.body = R"({"type":"described","protocol":1,"error":{"text":"SHOP_DB is not set","where":"shop.py:3"}})";
  with([&](WebhookProcessor& processor) -> Coro<void> {
    const auto refused = co_await processor.describe();
    if (refused) co_return ADD_FAILURE() << "it has an error", void();
    EXPECT_EQ(refused.error().code, Errc::invalid_input);
    EXPECT_EQ(refused.error().message, "SHOP_DB is not set (shop.py:3)");
    const PageCall call = shop_page();
    EXPECT_TRUE((co_await processor.process(call)).failure->not_now);
    EXPECT_EQ(web.log.size(), 1u);
    for (const auto& [body, why] :
         std::vector<std::pair<std::string, std::string>>{{"", "without `described`"},
                                                          {"{}", "no message"},
                                                          {R"({"type":"done","id":1})", "no message"},
                                                          {R"({"type":"described","protocol":2})", "protocol"}}) {
      describes.body = body;
      const auto wrong = co_await processor.describe();
      EXPECT_THAT(wrong ? std::string("no error") : wrong.error().message, HasSubstr(why)) << body;
    }
    describes.body = R"({"type":"described","protocol":1})";
    EXPECT_TRUE(co_await processor.describe());
    EXPECT_FALSE((co_await processor.process(call)).failure);
  });
}

TEST_F(WebhookProcessorTest, ADescriptionWaitsForWhatIsNotThere) {
  with([&](WebhookProcessor& processor) -> Coro<void> {
    const PageAnswer good = describes;
    describes.error = Errc::network;
    describes.connects = false;
    const TimePoint before = loop_.time();
    EXPECT_FALSE(co_await processor.describe());
    EXPECT_FALSE(co_await processor.describe());
    EXPECT_GE(loop_.time() - before, Duration(1s));
    describes = {.status = 500, .body = "starting"};
    const auto failed = co_await processor.describe();
    EXPECT_THAT(failed ? std::string("no error") : failed.error().message, HasSubstr("status 500: starting"));
    describes = good;
    EXPECT_TRUE(co_await processor.describe());
  });
}

TEST_F(WebhookProcessorTest, IsAskedNowAndThenWhetherItHasChanged) {
  with([&](WebhookProcessor& processor) -> Coro<void> {
    const std::string good = describes.body;
    EXPECT_TRUE(co_await processor.describe());
    Task<void> change = loop_.create_task(processor.when_changed(), "change");
    for (int i = 0; i < 5; ++i) {
      describes.body = fmt::format("{{\"type\":\"log\",\"text\":\"call {}\"}}\n{}\n", i, good);
      co_await sleep(1min);
    }
    EXPECT_FALSE(change.done()) << "only what it logs is another";
    describes.error = Errc::network;
    co_await sleep(5min);
    EXPECT_FALSE(change.done()) << "nobody has said so";
    describes = {.body = R"({"type":"described","protocol":1,"concurrency":500})"};
    co_await change;
    EXPECT_TRUE(co_await processor.describe());
    EXPECT_EQ(processor.capacity(), WebhookProcessor::kMostConcurrency);
  });
}

TEST_F(WebhookProcessorTest, LongAnswersAreReadOnAThread) {
  std::string results;
  for (int i = 0; i < 5'000; ++i)
    results += fmt::format("{}{{\"part\":\"{}\",\"value\":{{\"n\":{}}}}}", i == 0 ? "" : ",", i, i);
  pages.body = R"({"type":"done","id":ID,"results":[)" + results + "]}";
  const VisitAnswer answer = answer_of();
  EXPECT_FALSE(answer.failure) << answer.failure->text;
  ASSERT_TRUE(answer.results);
  EXPECT_EQ(answer.results->size(), 5'000u);
}

// --- with a project

TEST(WebhookProjectTest, ARoundOutlastsAnOutageWithoutAFailedAttempt) {
  SimulatedProjects sim;
  bool is_down = false;
  sim.web.pages["https://shop.test/"] = page_with({"/item/1", "/item/2", "/item/3"});
  for (int i = 1; i <= 3; ++i)
    sim.web.pages[fmt::format("https://shop.test/item/{}", i)] = {.body = fmt::format("<h1>Item {}</h1>", i)};
  sim.web.answer = [&](const HttpRequest& request) -> std::optional<PageAnswer> {
    if (request.url.href() != kHook) return std::nullopt;
    if (is_down) return PageAnswer{.error = Errc::network, .connects = false};
    if (is_describe(request)) {
      return PageAnswer{
          .body =
              R"({"type":"described","protocol":1,"concurrency":2,"on":{"start":"start"},"rules":{"item":{"fields":{"title":"css:h1"}}}})"};
    }
    const std::uint64_t id = id_in(request.body);
    if (request.body.contains(R"("event":"start")"))
      return PageAnswer{.body = fmt::format(
                            R"({{"type":"done","id":{},"pages":[{{"url":"https://shop.test/","rule":"list"}}]}})", id)};
    if (request.body.contains(R"("rule":"list")")) {
      is_down = true;
      std::string list;
      for (int i = 1; i <= 3; ++i) list += fmt::format(R"({}{{"url":"item/{}","rule":"item"}})", i == 1 ? "" : ",", i);
      return PageAnswer{.body = fmt::format(R"({{"type":"done","id":{},"pages":[{}]}})", id, list)};
    }
    const std::size_t fields = request.body.find(R"("fields":)");
    const std::string value = request.body.substr(fields + 9, request.body.find("}}", fields) - fields - 8);
    return PageAnswer{.body = fmt::format(R"({{"type":"done","id":{},"results":[{{"value":{}}}]}})", id, value)};
  };
  sim.options.make_processor = [&](const ProjectDefinition& project,
                                   ProcessorWatch watch) -> Result<std::unique_ptr<Processor>> {
    WebhookProcessorOptions options{
        .url = *Url::parse(project.processor.webhook), .project = project.name, .argiope = "0.1.0"};
    options.watch = std::move(watch);
    return std::make_unique<WebhookProcessor>(sim.loop, sim.web, std::move(options));
  };
  PageEngine& engine = sim.begin();
  const auto put = engine.put_project(
      draft_of(fmt::format(R"({{"project":{{"name":"shop","processor":{{"webhook":"{}"}}}}}})", kHook)));
  ASSERT_TRUE(put) << put.error().message;
  ASSERT_TRUE(engine.start("shop"));
  sim.pass(10min);
  ASSERT_TRUE(engine.project("shop"));
  EXPECT_THAT(engine.project("shop")->trouble, HasSubstr("cannot be reached"));
  EXPECT_TRUE(engine.project("shop")->round);
  is_down = false;
  sim.finish_round("shop");
  EXPECT_EQ(engine.project("shop")->trouble, "");
  EXPECT_EQ(engine.visits_failed(), 0u);
  const auto results = sim.results(*put);
  ASSERT_EQ(results.size(), 3u);
  for (const ResultRow& row : results) EXPECT_THAT(row.value, HasSubstr("Item "));
}

}  // namespace
}  // namespace argiope

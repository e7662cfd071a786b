// Pages in a browser that a test plays: what it may do, what it is told, and what its misbehaviour comes to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/async/event_loop.hpp"
#include "argiope/render/page_renderer.hpp"
#include "render/devtools_message.hpp"
#include "sockets_in_virtual_time.hpp"
#include "support/fake_browser.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers what a test says.
class ScriptedParts final : public PageParts {
 public:
  std::vector<std::pair<PartKind, HttpRequest>> asked;
  std::function<Result<void>(const HttpRequest&, HttpResponse&)> answer;
  Duration takes{};
  std::vector<Cookie> jar;
  int under_way = 0;

  Coro<Result<void>> fetch(HttpRequest request, PartKind kind, HttpResponse& response) override {
    struct Count {
      int& count;
      explicit Count(int& counted) : count(counted) { ++count; }
      ~Count() { --count; }
    } const counts{under_way};
    asked.emplace_back(kind, request);
    co_await sleep(takes);
    response.status = 200;
    response.headers.content_type = "text/javascript";
    response.body = "1";
    co_return answer ? answer(request, response) : Result<void>{};
  }
  std::vector<Cookie> cookies() const override { return jar; }
};

class ChromiumRendererTest : public testing::Test {
 protected:
  ChromiumRendererTest() {
    request.url = *Url::parse("http://site.test/page");
    response.status = 200;
    response.headers.content_type = "text/html";
    response.body = "<p>as it came</p>";
    options.sandbox = false;
  }
  ~ChromiumRendererTest() override {
    loop.cancel_all_tasks();
    for (int i = 0; i < 64; ++i) loop.run_once(TimePoint::min());
    EXPECT_EQ(loop.task_count(), 0u);
  }

  template <class Body>
  void with_renderer(Body body) {
    ChromiumRenderer renderer(options, [this] { return std::make_unique<FakeBrowser>(script); });
    loop.run_until_complete([&]() -> Coro<void> {
      co_await body(renderer);
      co_await renderer.close();
    }());
  }
  Result<RenderedPage> rendered() {
    Result<RenderedPage> page = fail(Errc::internal, "not rendered");
    with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
      page = co_await renderer.render(request, response, parts, view);
    });
    EXPECT_EQ(parts.under_way, 0);
    return page;
  }
  const boost::json::object& told(const std::string& method, std::size_t which = 0) const {
    for (const auto& [name, params] : script->heard) {
      if (name == method && which-- == 0) return params;
    }
    static const boost::json::object kNone;
    ADD_FAILURE() << method << " was never called";
    return kNone;
  }

  SocketsInVirtualTime backend{WallTime{}};
  EventLoop loop{backend};
  std::shared_ptr<FakeBrowserScript> script = std::make_shared<FakeBrowserScript>();
  ScriptedParts parts;
  ChromiumOptions options;
  HttpRequest request;
  HttpResponse response;
  RenderOptions view;
};

TEST_F(ChromiumRendererTest, ThePageIsTheAnswerThatWasFetchedAndBecomesTheDocument) {
  script->document = "<!DOCTYPE html><html><a href=\"/made\">by a script \xC3\xA9</a></html>";
  response.fields = {{"Content-Type", "text/html"},
                     {"Content-Security-Policy", "default-src 'self'"},
                     {"Content-Encoding", "gzip"},
                     {"Set-Cookie", "a=1"}};
  Result<RenderedPage> page = fail(Errc::internal, "not rendered");
  with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
    page = co_await renderer.render(request, response, parts);
    co_await sleep(1s);  // its profile is forgotten meanwhile
  });
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->html, script->document);
  EXPECT_FALSE(page->is_cut);
  EXPECT_EQ(page->led_to, "");
  const auto& given = told("Fetch.fulfillRequest");
  EXPECT_EQ(from_base64(std::string(given.at("body").as_string())), response.body);
  const std::string fields = boost::json::serialize(given.at("responseHeaders"));
  EXPECT_THAT(fields, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(fields, testing::Not(HasSubstr("gzip")));
  EXPECT_THAT(fields, testing::Not(HasSubstr("a=1")));
  EXPECT_EQ(told("Browser.setDownloadBehavior").at("behavior").as_string(), "deny");
}

TEST_F(ChromiumRendererTest, ALargeDocumentComesInPiecesAndIsCutAtTheLimit) {
  script->document = "<html>" + std::string(5'000'000, 'x');
  request.body_limit = 4'000'000;
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->html, script->document.substr(0, request.body_limit));
  EXPECT_TRUE(page->is_cut);
}

TEST_F(ChromiumRendererTest, ScriptsStylesAndDataAreFetchedByUsAndTheRestIsRefused) {
  script->parts = {{.url = "http://site.test/s.js", .headers = R"({"Accept":"*/*","Cookie":"a=1"})"},
                   {.url = "http://site.test/s.css", .type = "Stylesheet"},
                   {.url = "http://api.test/d", .type = "XHR", .method = "POST", .post_data = std::string("a\0b", 3)},
                   {.url = "http://site.test/p.png", .type = "Image"},
                   {.url = "http://site.test/f.woff", .type = "Font"},
                   {.url = "http://site.test/beacon", .type = "Ping", .method = "POST"},
                   {.url = "http://site.test/w.js", .type = "Other"},
                   {.url = "http://site.test/next", .type = "Fetch", .headers = R"({"Sec-Purpose":"prefetch"})"}};
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(parts.asked.size(), 3u);
  EXPECT_EQ(parts.asked[0].first, PartKind::script);
  EXPECT_THAT(parts.asked[0].second.headers, testing::Contains(testing::Pair("Cookie", "a=1")));
  EXPECT_EQ(parts.asked[1].first, PartKind::style);
  EXPECT_EQ(parts.asked[2].first, PartKind::data);
  EXPECT_EQ(parts.asked[2].second.method, HttpMethod::post);
  EXPECT_EQ(parts.asked[2].second.body, std::string("a\0b", 3));
  int refused = 0;
  for (const auto& [url, answer] : script->answered_parts) refused += answer.contains("errorReason") ? 1 : 0;
  EXPECT_EQ(refused, 5);
}

TEST_F(ChromiumRendererTest, WhatIsNotFetchedIsRefusedToThePageAlone) {
  script->parts = {{.url = "http://10.0.0.1/secret"}, {.url = "http://site.test/cut"}};
  parts.answer = [](const HttpRequest& asked, HttpResponse& answer) -> Result<void> {
    if (asked.url.host() == "10.0.0.1") return fail(Errc::refused, "a private address");
    answer.damage = "the connection was closed";
    return {};
  };
  ASSERT_TRUE(rendered());
  ASSERT_EQ(script->answered_parts.size(), 2u);
  EXPECT_EQ(script->answered_parts[0].second.at("errorReason").as_string(), "BlockedByClient");
  EXPECT_EQ(script->answered_parts[1].second.at("errorReason").as_string(), "Failed");
}

TEST_F(ChromiumRendererTest, APageIsDoneWhenItHasAskedForNothingForAWhile) {
  script->parts = {{.url = "http://site.test/s.js"}};
  parts.takes = 3s;
  const TimePoint begun = loop.time();
  ASSERT_TRUE(rendered());
  EXPECT_EQ(loop.time() - begun, 3s + 500ms);
}

TEST_F(ChromiumRendererTest, OrSoLongAfterItHasLoaded) {
  options.wait = 7s;
  const TimePoint begun = loop.time();
  ASSERT_TRUE(rendered());
  EXPECT_EQ(loop.time() - begun, 7s);
}

TEST_F(ChromiumRendererTest, OrWhenItHasAnElement) {
  options.until = "#list > li";
  script->looks_until_there = 4;
  script->loads = false;
  const TimePoint begun = loop.time();
  ASSERT_TRUE(rendered());
  EXPECT_EQ(loop.time() - begun, 400ms);
  EXPECT_THAT(std::string(told("Runtime.evaluate").at("expression").as_string()), HasSubstr("\"#list > li\""));
}

TEST_F(ChromiumRendererTest, WithoutLoadingOrTheElementItIsAnErrorOfThatPage) {
  script->loads = false;
  auto page = rendered();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Errc::timeout);
  EXPECT_EQ(page.error().message, "not loaded after 30 s");
  options.until = "#never";
  script->looks_until_there = 1'000'000;
  page = rendered();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().message, "no element \"#never\" after 30 s");
}

TEST_F(ChromiumRendererTest, APageThatHasLoadedAndNeverRestsIsTakenAsItIs) {
  script->after["Page.navigate"] = {};
  script->after["Fetch.fulfillRequest"] = {
      R"({"method":"Page.lifecycleEvent","params":{"frameId":"T","loaderId":"L","name":"load"},"sessionId":"$S"})"};
  script->parts = {{.url = "http://site.test/poll", .type = "XHR"}};
  parts.takes = 1h;
  const TimePoint begun = loop.time();
  ASSERT_TRUE(rendered());
  EXPECT_EQ(loop.time() - begun, 30s);
}

TEST_F(ChromiumRendererTest, WhereItsScriptGoesIsARedirectAndNotFetched) {
  script->after["Fetch.fulfillRequest"] = {
      R"({"method":"Fetch.requestPaused","params":{"requestId":"N","frameId":"T","resourceType":"Document","request":{"url":"http://site.test/next","method":"GET","headers":{}}},"sessionId":"$S"})"};
  script->loads = false;
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->led_to, "http://site.test/next");
  EXPECT_EQ(told("Fetch.failRequest").at("requestId").as_string(), "N");
}

TEST_F(ChromiumRendererTest, ABrowserThatTriesHttpsFirstIsGivenThePageForItsOwnSchemeAlone) {
  script->before_document = {.url = "https://site.test/page", .type = "Document"};
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->led_to, "");
  ASSERT_EQ(script->answered_parts.size(), 1u);
  EXPECT_EQ(script->answered_parts[0].second.at("errorReason").as_string(), "ConnectionFailed");
}

TEST_F(ChromiumRendererTest, FramesStayEmptyAndFormsAreNotSent) {
  script->after["Fetch.fulfillRequest"] = {
      R"({"method":"Fetch.requestPaused","params":{"requestId":"F","frameId":"F1","resourceType":"Document","request":{"url":"http://site.test/frame","method":"GET","headers":{}}},"sessionId":"$S"})",
      R"({"method":"Fetch.requestPaused","params":{"requestId":"P","frameId":"T","resourceType":"Document","request":{"url":"http://site.test/buy","method":"POST","headers":{}}},"sessionId":"$S"})"};
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->led_to, "");
  EXPECT_EQ(script->count("Fetch.failRequest"), 2u);
}

TEST_F(ChromiumRendererTest, APageThatLoadsItselfAnewOrSendsAFormIsTakenAsItIs) {
  for (const char* const method : {"GET", "POST"}) {
    script->parts = {{.url = "http://site.test/page", .type = "Document", .method = method}};
    script->loads = false;
    const TimePoint begun = loop.time();
    const auto page = rendered();
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(page->led_to, "");
    EXPECT_EQ(page->reloads, method == std::string_view("GET"));
    EXPECT_EQ(loop.time() - begun, 500ms);
  }
}

TEST_F(ChromiumRendererTest, AStreamOfEventsIsRefused) {
  script->parts = {{.url = "http://site.test/events", .type = "XHR", .headers = R"({"Accept":"text/event-stream"})"},
                   {.url = "http://site.test/data", .type = "XHR", .headers = R"({"Accept":"*/*"})"}};
  ASSERT_TRUE(rendered());
  ASSERT_EQ(parts.asked.size(), 1u);
  EXPECT_EQ(parts.asked[0].second.url.href(), "http://site.test/data");
  EXPECT_EQ(script->answered_parts.size(), 2u);
}

TEST_F(ChromiumRendererTest, ACookieThatTheBrowserDoesNotTakeKeepsNoOtherFromIt) {
  script->bad_cookie = "bad";
  for (const char* const name : {"a", "b", "bad", "c"})
    parts.jar.push_back({.name = name, .value = "1", .domain = "site.test"});
  parts.jar.push_back({.name = "latin", .value = "\xE4", .domain = "site.test"});
  ASSERT_TRUE(rendered());
  std::string taken;
  for (const auto& [method, params] : script->heard) {
    if (method != "Storage.setCookies" || boost::json::serialize(params).find("bad") != std::string::npos) continue;
    for (const auto& cookie : params.at("cookies").as_array()) taken += cookie.as_object().at("name").as_string();
  }
  EXPECT_EQ(taken, "abc");
}

TEST_F(ChromiumRendererTest, UrlsThatItsScriptGivesItAndCookiesComeWithIt) {
  script->after["Fetch.fulfillRequest"] = {
      R"({"method":"Page.navigatedWithinDocument","params":{"frameId":"T","url":"http://site.test/a"},"sessionId":"$S"})",
      R"({"method":"Page.navigatedWithinDocument","params":{"frameId":"T","url":"http://site.test/a"},"sessionId":"$S"})",
      R"({"method":"Page.navigatedWithinDocument","params":{"frameId":"other","url":"http://site.test/b"},"sessionId":"$S"})"};
  script->cookies =
      R"([{"name":"js","value":"1","domain":"site.test","path":"/","expires":-1,"httpOnly":false,"secure":false,"session":true},
                        {"name":"d","value":"2","domain":".site.test","path":"/x","expires":1e99,"httpOnly":true,"secure":true,"session":false}])";
  parts.jar = {{.name = "known", .value = "1", .domain = "site.test"}};
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_THAT(page->own_urls, ElementsAre("http://site.test/a"));
  ASSERT_EQ(page->cookies.size(), 2u);
  EXPECT_EQ(page->cookies[0], (Cookie{.name = "js", .value = "1", .domain = "site.test"}));
  EXPECT_FALSE(page->cookies[1].host_only);
  EXPECT_TRUE(page->cookies[1].expires.has_value());
  EXPECT_EQ(told("Storage.setCookies").at("cookies").as_array().at(0).as_object().at("name").as_string(), "known");
}

TEST_F(ChromiumRendererTest, DialogsAreDismissedAndWorkersRun) {
  script->after["Fetch.fulfillRequest"] = {
      R"({"method":"Page.javascriptDialogOpening","params":{"message":"\ud83d","type":"alert"},"sessionId":"$S"})",
      R"({"method":"Target.attachedToTarget","params":{"sessionId":"W","targetInfo":{"type":"worker"}},"sessionId":"$S"})",
      R"({"method":"Target.attachedToTarget","params":{"sessionId":"X","targetInfo":{"type":"service_worker"}},"sessionId":"$S"})"};
  ASSERT_TRUE(rendered());
  EXPECT_FALSE(told("Page.handleJavaScriptDialog").at("accept").as_bool());
  EXPECT_EQ(script->count("Runtime.runIfWaitingForDebugger"), 1u);
}

// --- what is wanted of one page
// ------------------------------------------------------------------------------------------

TEST_F(ChromiumRendererTest, WithoutAViewThereIsNoScriptAndTheWindowIsTheBrowsers) {
  const auto page = rendered();
  ASSERT_TRUE(page);
  EXPECT_EQ(page->script_result, "");
  EXPECT_EQ(script->count("Emulation.setDeviceMetricsOverride"), 0u);
  EXPECT_EQ(script->count("Page.addScriptToEvaluateOnNewDocument"), 0u);
}

TEST_F(ChromiumRendererTest, AScriptRunsWhenThePageIsDoneWhichIsWaitedForOnceMore) {
  view.script = "function() { return [1]; } ;\n";
  script->script_gives = R"({"result":{"value":"[1]"}})";
  const TimePoint begun = loop.time();
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->script_result, "[1]");
  EXPECT_EQ(loop.time() - begun, 500ms + 500ms);
  EXPECT_EQ(script->count("Page.addScriptToEvaluateOnNewDocument"), 0u);
  const auto& read = told("Runtime.evaluate", 0);
  EXPECT_THAT(std::string(read.at("expression").as_string()), HasSubstr("(\nfunction() { return [1]; }\n)"));
  EXPECT_FALSE(read.contains("contextId")) << "it sees what the page's scripts see";
}

TEST_F(ChromiumRendererTest, OrBeforeThePagesOwnScripts) {
  view.script = "window.a = 1";
  view.script_at_start = true;
  script->script_gives = R"({"result":{"value":"1"}})";
  const TimePoint begun = loop.time();
  const auto page = rendered();
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->script_result, "1");
  EXPECT_EQ(loop.time() - begun, 500ms);
  EXPECT_THAT(std::string(told("Page.addScriptToEvaluateOnNewDocument").at("source").as_string()),
              HasSubstr("window.a = 1"));
  std::vector<std::string> order;
  for (const auto& [method, params] : script->heard) {
    if (method == "Page.navigate" || method == "Page.addScriptToEvaluateOnNewDocument") order.push_back(method);
  }
  EXPECT_THAT(order, ElementsAre("Page.addScriptToEvaluateOnNewDocument", "Page.navigate"));
}

TEST_F(ChromiumRendererTest, StatementsAreAScriptAndWhatIsNoneIsNotRun) {
  view.script = "scroll(); return 1";
  script->forms_not_read = 1;
  ASSERT_TRUE(rendered());
  EXPECT_THAT(std::string(told("Runtime.evaluate", 1).at("expression").as_string()),
              HasSubstr("{\nscroll(); return 1\n}"));
  script->forms_not_read = 2;
  script->heard.clear();
  const auto page = rendered();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Errc::invalid_input);
  EXPECT_EQ(script->count("Page.navigate"), 0u);
}

TEST_F(ChromiumRendererTest, AScriptThatFailsIsAnErrorOfThatPage) {
  view.script = "go()";
  struct Case {
    std::string gives;
    Errc code;
    std::string message;
  };
  for (const Case& one : {Case{R"({"exceptionDetails":{"exception":{"description":"TypeError: x\n    at y"}}})",
                               Errc::protocol, "its script has failed: TypeError: x"},
                          Case{R"({"exceptionDetails":{"exception":{"value":"its result is too large"}}})",
                               Errc::protocol, "its script has failed: its result is too large"},
                          Case{R"({"result":{"value":"no JSON"}})", Errc::protocol, "its script's result is no JSON"},
                          Case{R"({"result":{"value":")" + std::string(kMostScriptResult + 1, '1') + "\"}}",
                               Errc::too_large, "its script's result is too large"},
                          Case{"", Errc::timeout, "its script has not ended"}}) {
    script->script_gives = one.gives;
    const TimePoint begun = loop.time();
    const auto page = rendered();
    ASSERT_FALSE(page) << one.message;
    EXPECT_EQ(page.error().code, one.code) << one.message;
    EXPECT_EQ(page.error().message, one.message);
    if (one.code == Errc::timeout) EXPECT_EQ(loop.time() - begun, 30s);
  }
}

TEST_F(ChromiumRendererTest, AWindowHasTheSizeThatIsWanted) {
  view.width = 1024;
  ASSERT_TRUE(rendered());
  const auto& set = told("Emulation.setDeviceMetricsOverride");
  EXPECT_EQ(set.at("width").to_number<int>(), 1024);
  EXPECT_EQ(set.at("height").to_number<int>(), 0);
}

TEST_F(ChromiumRendererTest, ImagesAreFetchedWhereTheyAreWanted) {
  script->parts = {{.url = "http://site.test/p.png", .type = "Image"},
                   {.url = "http://site.test/f.woff", .type = "Font"}};
  view.images = true;
  ASSERT_TRUE(rendered());
  ASSERT_EQ(parts.asked.size(), 1u);
  EXPECT_EQ(parts.asked[0].first, PartKind::image);
}

// --- misbehaviour
// ----------------------------------------------------------------------------------------------------------

TEST_F(ChromiumRendererTest, ACrashOfThePageIsAnErrorOfThatPageAndTheBrowserGoesOn) {
  with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
    script->after["Fetch.fulfillRequest"] = {R"({"method":"Inspector.targetCrashed","params":{},"sessionId":"$S"})"};
    script->loads = false;
    auto page = co_await renderer.render(request, response, parts);
    EXPECT_FALSE(page);
    if (!page) EXPECT_EQ(page.error().message, "the page's process has crashed");
    script->after.clear();
    script->loads = true;
    page = co_await renderer.render(request, response, parts);
    EXPECT_TRUE(page);
    EXPECT_EQ(renderer.browsers_started(), 1u);
  });
}

TEST_F(ChromiumRendererTest, ABrowserThatEndsIsReplacedWhereverItEnds) {
  for (const char* const method : {"Target.createBrowserContext", "Target.attachToTarget", "Fetch.enable",
                                   "Page.navigate", "Fetch.fulfillRequest", "Runtime.evaluate"}) {
    with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
      script->ends_at = method;
      script->words = "noise\nFATAL: out of memory\nmore noise\n";
      auto page = co_await renderer.render(request, response, parts);
      EXPECT_FALSE(page) << method;
      if (!page) {
        EXPECT_EQ(page.error().code, Errc::network) << method;
        EXPECT_THAT(page.error().message, HasSubstr("the browser has ended: FATAL: out of memory")) << method;
      }
      script->ends_at.clear();
      page = co_await renderer.render(request, response, parts);
      EXPECT_TRUE(page) << method;
      EXPECT_EQ(renderer.browsers_started(), 2u) << method;
    });
  }
  EXPECT_EQ(script->browsers, script->ended);
}

TEST_F(ChromiumRendererTest, ABrowserThatDoesNotAnswerIsReplaced) {
  for (const char* const method :
       {"Target.createBrowserContext", "Target.createTarget", "Target.disposeBrowserContext"}) {
    with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
      script->silent = {method};
      (void)co_await renderer.render(request, response, parts);
      co_await sleep(1min);
      script->silent.clear();
      const auto page = co_await renderer.render(request, response, parts);
      EXPECT_TRUE(page) << method;
      EXPECT_EQ(renderer.browsers_started(), 2u) << method;
    });
  }
  EXPECT_EQ(script->browsers, script->ended);
}

TEST_F(ChromiumRendererTest, APageThatDoesNotAnswerIsAnErrorOfThatPage) {
  for (const char* const method : {"Fetch.enable", "Page.createIsolatedWorld", "Runtime.evaluate"}) {
    script->silent = {method};
    const auto page = rendered();
    ASSERT_FALSE(page) << method;
    EXPECT_EQ(page.error().code, Errc::timeout) << method;
    EXPECT_THAT(page.error().message, HasSubstr(method));
  }
}

TEST_F(ChromiumRendererTest, WhatABrowserRefusesIsAnErrorOfThatPage) {
  for (const char* const method : {"Target.createTarget", "Page.enable", "Runtime.evaluate"}) {
    script->refused = {method};
    const auto page = rendered();
    ASSERT_FALSE(page) << method;
    EXPECT_EQ(page.error().code, Errc::protocol) << method;
  }
}

TEST_F(ChromiumRendererTest, GarbageIsPassedOver) {
  script->after["Page.enable"] = {"",
                                  "nonsense",
                                  "[]",
                                  "{}",
                                  R"({"id":99999,"result":{}})",
                                  R"({"method":7})",
                                  R"({"method":"Fetch.requestPaused","params":{},"sessionId":"$S"})",
                                  R"({"method":"Page.frameNavigated","params":[],"sessionId":"$S"})"};
  EXPECT_TRUE(rendered());
}

TEST_F(ChromiumRendererTest, AMessageBeyondAllBoundsIsPassedOverAndTheBrowserGoesOn) {
  script->after["Page.enable"] = {std::string(std::size_t{65} << 20, 'x')};
  const auto page = rendered();
  EXPECT_TRUE(page) << page.error().message;
  EXPECT_EQ(script->browsers, 1);
}

TEST_F(ChromiumRendererTest, ABrowserThatCannotBeStartedIsAnErrorThatSaysWhy) {
  script->ends_at = "Browser.getVersion";
  script->words = "No usable sandbox!\n";
  with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
    const auto opened = co_await renderer.open();
    EXPECT_FALSE(opened);
    if (!opened)
      EXPECT_EQ(opened.error().message, "the browser cannot be started: the browser has ended: No usable sandbox!");
  });
}

// --- the pool
// --------------------------------------------------------------------------------------------------------------

TEST_F(ChromiumRendererTest, ABrowserIsReplacedAfterItsPages) {
  options.pages_per_browser = 3;
  with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
    for (int i = 0; i < 7; ++i) EXPECT_TRUE(co_await renderer.render(request, response, parts));
    EXPECT_EQ(renderer.browsers_started(), 3u);
  });
  EXPECT_EQ(script->browsers, script->ended);
}

TEST_F(ChromiumRendererTest, ACancelledPageLeavesNothingBehind) {
  script->parts = {{.url = "http://site.test/s.js"}};
  parts.takes = 1h;
  with_renderer([&](ChromiumRenderer& renderer) -> Coro<void> {
    auto task =
        loop.create_task(keeping([&]() -> Coro<void> { (void)co_await renderer.render(request, response, parts); }));
    co_await sleep(1s);
    EXPECT_EQ(parts.under_way, 1);
    task.cancel();
    bool cancelled = false;
    try {
      co_await task;
    } catch (const CancelledError&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(parts.under_way, 0);
    co_await sleep(1s);
    EXPECT_EQ(script->count("Target.disposeBrowserContext"), 1u);
  });
}

TEST(ChromiumOptionsTest, WhatCannotBeIsRefused) {
  ChromiumOptions options;
  options.sandbox = false;
  EXPECT_TRUE(check(options));
  options.until = "a[";
  EXPECT_FALSE(check(options));
  options.until.clear();
  options.pages = 0;
  EXPECT_FALSE(check(options));
  const auto found = find_chromium("/nowhere/chromium");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("/nowhere/chromium"));
}

// --- its messages
// ----------------------------------------------------------------------------------------------------------

TEST(DevToolsMessageTest, AnswersAndEventsAreToldApart) {
  const auto answer = DevToolsMessage::parse(R"({"id":3,"result":{"a":{"b":"c","n":1.5,"f":true}}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 3u);
  EXPECT_EQ(answer->text("/a/b"), "c");
  EXPECT_EQ(answer->number("/a/n"), 1.5);
  EXPECT_TRUE(answer->flag("/a/f"));
  EXPECT_EQ(answer->text("/a/x"), "");
  const auto refused = DevToolsMessage::parse(R"({"id":3,"error":{"code":-32000,"message":"no"}})");
  ASSERT_TRUE(refused && refused->error);
  EXPECT_EQ(*refused->error, "no");
  const auto event = DevToolsMessage::parse(R"({"method":"Page.x","params":{"url":"u"},"sessionId":"S"})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->id, 0u);
  EXPECT_EQ(event->method, "Page.x");
  EXPECT_EQ(event->session, "S");
}

TEST(DevToolsMessageTest, HalvesOfSurrogatePairsAreMended) {
  const auto event =
      DevToolsMessage::parse(R"({"method":"m","params":{"a":"\ud83d","b":"\ud83d\ude00","c":"\\ud83d \udc00x"}})");
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->text("/a"), "\xEF\xBF\xBD");
  EXPECT_EQ(event->text("/b"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(event->text("/c"), "\\ud83d \xEF\xBF\xBDx");
}

TEST(DevToolsMessageTest, ARequestIsReadWithItsBody) {
  const auto event = DevToolsMessage::parse(
      R"({"method":"Fetch.requestPaused","params":{"requestId":"R","frameId":"F","resourceType":"XHR","request":{"url":"http://h/","method":"POST","headers":{"A":"1"},"hasPostData":true,"postDataEntries":[{"bytes":"YQ=="},{"bytes":"Yg=="}]}}})");
  ASSERT_TRUE(event);
  const auto request = paused_request_of(*event);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->body, "ab");
  EXPECT_THAT(request->headers, ElementsAre(testing::Pair("A", "1")));
  const auto no_body = DevToolsMessage::parse(
      R"({"method":"Fetch.requestPaused","params":{"requestId":"R","request":{"url":"http://h/","hasPostData":true}}})");
  ASSERT_TRUE(no_body);
  EXPECT_FALSE(paused_request_of(*no_body));
}

}  // namespace
}  // namespace argiope

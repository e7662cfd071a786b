// Pages of projects that say `render`, by a renderer that a test plays: what they become, what their parts are sent
// with, and whom they are asked of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "desk_web.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

// Makes of each page what `make` says; without it, the page as it came.
class PlayedPageRenderer final : public PageRenderer {
 public:
  std::function<Coro<Result<RenderedPage>>(const HttpRequest&, const HttpResponse&, PageParts&)> make;
  std::vector<std::string> rendered;
  std::vector<RenderOptions> views;
  int closed = 0;

  Coro<Result<void>> open() override { co_return Result<void>{}; }
  Coro<Result<RenderedPage>> render(const HttpRequest& request, const HttpResponse& response, PageParts& parts,
                                    RenderOptions view) override {
    rendered.push_back(request.url.href());
    views.push_back(std::move(view));
    if (make) co_return co_await make(request, response, parts);
    co_return RenderedPage{.html = response.body, .cookies = parts.cookies()};
  }
  Coro<void> close() override {
    ++closed;
    co_return;
  }
};

struct RenderRig : DeskRig {
  RenderRig() {
    options.autothrottle = false;
    options.rate = 1000;
    web.reply = [this](const DeskRequest& request) -> DeskReply {
      if (const auto found = pages.find(request.url); found != pages.end()) return found->second;
      return {.status = request.target == "/robots.txt" ? 404 : 200,
              .body = "<p>as it came",
              .fields = {{"Content-Type", "text/html"}}};
    };
    rendering.renderer = renderer;
    order.settings.request.render = {true, RequestSettings::Render{}};
    open();
  }
  FetchedAnswer fetch() {
    return loop.run_until_complete([](RenderRig& rig) -> Coro<FetchedAnswer> {
      const auto entered = co_await rig.begun(rig.order.url);
      EXPECT_EQ(entered.leave, HostDesk::Leave::go);
      co_return co_await fetch_page(rig.order, rig.web, *rig.desk, std::ref(rig.hosts), &rig.rendering);
    }(*this));
  }
  // The page asks for these one after the other; what each was answered.
  void ask_for(std::vector<std::pair<HttpRequest, PartKind>> wanted) {
    renderer->make = [this, wanted](const HttpRequest&, const HttpResponse& response,
                                    PageParts& parts) -> Coro<Result<RenderedPage>> {
      for (const auto& [asked, kind] : wanted) {
        HttpResponse answer;
        const auto fetched = co_await parts.fetch(asked, kind, answer);
        answers.push_back(fetched ? std::to_string(answer.status)
                                  : fmt::format("{}: {}", to_string(fetched.error().code), fetched.error().message));
      }
      co_return RenderedPage{.html = response.body};
    };
  }
  DeskRequest last_asked(std::string_view url) const {
    const auto found = std::ranges::find(web.log.rbegin(), web.log.rend(), url, &DeskRequest::url);
    if (found != web.log.rend()) return *found;
    ADD_FAILURE() << url << " was not asked for";
    return {};
  }
  std::size_t times_asked(std::string_view url) const {
    return static_cast<std::size_t>(std::ranges::count(web.log, url, &DeskRequest::url));
  }
  void expect_all_left() {
    for (std::uint32_t host = 1; host < 10; ++host) EXPECT_EQ(desk->look(host).under_way, 0u) << host;
  }

  std::map<std::string, DeskReply> pages;
  std::shared_ptr<PlayedPageRenderer> renderer = std::make_shared<PlayedPageRenderer>();
  PageRendering rendering;
  FetchOrder order{.url = "http://a.test/"};
  std::vector<std::string> answers;
};

HttpRequest part_of(std::string_view url, std::vector<std::pair<std::string, std::string>> headers = {},
                    HttpMethod method = HttpMethod::get) {
  HttpRequest request;
  request.method = method;
  request.url = *Url::parse(url);
  request.headers = std::move(headers);
  return request;
}

Said<std::string> said_text(std::string text) { return {true, std::move(text)}; }

// --- what pages become
// -------------------------------------------------------------------------------------------------------------

TEST(PageRenderingTest, WithoutABrowserItIsRefusedAndNothingIsSent) {
  RenderRig rig;
  rig.rendering.renderer = nullptr;
  rig.rendering.why_not = "there is no browser in PATH";
  const FetchedAnswer answer = rig.fetch();
  EXPECT_EQ(answer.response.error_kind, "refused");
  EXPECT_EQ(answer.response.error_text, "request/render: there is no browser in PATH");
  EXPECT_TRUE(answer.is_refused);
  EXPECT_EQ(rig.times_asked("http://a.test/"), 0u);
  rig.expect_all_left();
}

TEST(PageRenderingTest, WhatScriptsMakeIsThePage) {
  RenderRig rig;
  rig.order.settings.request.render.value =
      RequestSettings::Render{.script = "go", .at_start = true, .width = 800, .height = 600, .images = true};
  rig.pages["http://a.test/"] = {
      .body = "<p>\xe9",
      .fields = {{"Content-Type", "text/html; charset=latin1"}, {"Content-Encoding", "gzip"}, {"X-A", "1"}}};
  rig.renderer->make = [](const HttpRequest&, const HttpResponse& response, PageParts&) -> Coro<Result<RenderedPage>> {
    EXPECT_EQ(response.body, "<p>\xe9");
    co_return RenderedPage{
        .html = "<p>made \xC3\xA9",
        .cookies = {{.name = "js", .value = "1", .domain = "a.test"}, {.name = "no", .value = "1", .domain = "b.test"}},
        .script_result = "[5]"};
  };
  const FetchedAnswer answer = rig.fetch();
  EXPECT_TRUE(answer.is_success) << answer.response.error_text;
  EXPECT_EQ(answer.response.body, "<p>made \xC3\xA9");
  EXPECT_EQ(answer.response.encoding, "UTF-8");
  EXPECT_THAT(answer.response.headers, ElementsAre(Pair("Content-Type", "text/html; charset=utf-8"), Pair("X-A", "1")));
  EXPECT_THAT(answer.response.cookies, ElementsAre(Pair("js", "1")));
  EXPECT_EQ(answer.response.script_result_json, "[5]");
  ASSERT_EQ(rig.renderer->views.size(), 1u);
  const RenderOptions& view = rig.renderer->views[0];
  EXPECT_EQ(view.script, "go");
  EXPECT_TRUE(view.script_at_start);
  EXPECT_TRUE(view.images);
  EXPECT_EQ(view.width, 800u);
  EXPECT_EQ(view.height, 600u);
  rig.expect_all_left();
}

TEST(PageRenderingTest, WhatIsNoPageComesAsItIs) {
  for (const DeskReply& reply :
       {DeskReply{.body = "{}", .fields = {{"Content-Type", "application/json"}}},
        DeskReply{.status = 404, .body = "<p>", .fields = {{"Content-Type", "text/html"}}},
        DeskReply{.body = "<p>", .fields = {{"Content-Type", "text/html"}}, .damage = "cut"},
        DeskReply{.body = "<p>", .fields = {{"Content-Type", "text/html"}}, .truncated = true}}) {
    RenderRig rig;
    rig.pages["http://a.test/"] = reply;
    const FetchedAnswer answer = rig.fetch();
    EXPECT_EQ(answer.response.status, reply.status);
    EXPECT_TRUE(rig.renderer->rendered.empty());
    EXPECT_EQ(answer.response.script_result_json, "");
  }
}

TEST(PageRenderingTest, APageThatSaysNothingOfItIsNotRendered) {
  RenderRig rig;
  rig.order.settings.request.render = {};
  EXPECT_EQ(rig.fetch().response.body, "<p>as it came");
  EXPECT_TRUE(rig.renderer->rendered.empty());
}

TEST(PageRenderingTest, IsAskedForAnewThoughItsServerSaysThatItHasNotChanged) {
  RenderRig rig;
  rig.order.etag = "\"last\"";
  rig.order.last_modified = "Thu, 01 Jan 2026 00:00:00 GMT";
  EXPECT_TRUE(rig.fetch().is_success);
  EXPECT_THAT(rig.last_asked("http://a.test/").headers, Not(Contains(Key("If-None-Match"))));
  EXPECT_THAT(rig.last_asked("http://a.test/").headers, Not(Contains(Key("If-Modified-Since"))));
  rig.order.settings.request.etag = {true, RequestSettings::Validator{true, "\"mine\""}};
  EXPECT_TRUE(rig.fetch().is_success);
  EXPECT_EQ(rig.last_asked("http://a.test/").field("If-None-Match"), "\"mine\"");
}

TEST(PageRenderingTest, WhyItWasNotRenderedIsTheErrorOfThePage) {
  RenderRig rig;
  Error error{Errc::timeout, "not loaded after 30 s"};
  rig.renderer->make = [&](const HttpRequest&, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    co_return std::unexpected(error);
  };
  FetchedAnswer answer = rig.fetch();
  EXPECT_FALSE(answer.is_success);
  EXPECT_EQ(answer.response.error_kind, "render");
  EXPECT_EQ(answer.response.error_text, "rendering: not loaded after 30 s");
  EXPECT_EQ(answer.response.status, 200);
  EXPECT_FALSE(answer.is_refused);
  error = {Errc::invalid_input, "its script is none"};
  answer = rig.fetch();
  EXPECT_EQ(answer.response.error_kind, "render");
  EXPECT_TRUE(answer.is_refused) << "it is none the next time either";
  rig.expect_all_left();
}

TEST(PageRenderingTest, ADocumentThatIsTooLargeIsNotKept) {
  RenderRig rig;
  rig.order.body_limit = 20;
  rig.renderer->make = [](const HttpRequest& request, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    EXPECT_EQ(request.body_limit, 20u);
    co_return RenderedPage{.html = std::string(20, 'x'), .is_cut = true};
  };
  const FetchedAnswer answer = rig.fetch();
  EXPECT_EQ(answer.response.error_kind, "too_large");
  EXPECT_EQ(answer.response.body, "");
}

TEST(PageRenderingTest, TheTimeItTakesIsNotThatOfThePagesRequests) {
  RenderRig rig;
  rig.order.timeout = 5s;
  rig.renderer->make = [&](const HttpRequest& request, const HttpResponse& response,
                           PageParts&) -> Coro<Result<RenderedPage>> {
    co_await sleep(20s);
    co_return RenderedPage{.html = response.body, .led_to = request.url.pathname() == "/" ? "http://a.test/next" : ""};
  };
  const FetchedAnswer answer = rig.fetch();
  EXPECT_TRUE(answer.is_success) << answer.response.error_text;
  EXPECT_EQ(answer.response.url, "http://a.test/next");
  EXPECT_GT(answer.response.took, 40s);
}

// --- where they lead
// -----------------------------------------------------------------------------------------------------------------

TEST(PageRenderingTest, WhereItsScriptGoesIsARedirect) {
  RenderRig rig;
  rig.order.settings.request.headers = {{"Authorization", said_text("secret")}};
  rig.renderer->make = [](const HttpRequest& request, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    const bool is_first = request.url.host() == "a.test";
    co_return RenderedPage{.html = "<p>" + request.url.href(),
                           .led_to = is_first ? "http://b.test/there" : "",
                           .script_result = is_first ? "1" : ""};
  };
  const FetchedAnswer answer = rig.fetch();
  EXPECT_TRUE(answer.is_success) << answer.response.error_text;
  EXPECT_EQ(answer.response.url, "http://b.test/there");
  EXPECT_EQ(answer.response.body, "<p>http://b.test/there");
  EXPECT_EQ(answer.response.script_result_json, "");
  EXPECT_EQ(rig.last_asked("http://b.test/there").field("Authorization"), "") << "it is the first server's alone";
  EXPECT_EQ(rig.times_asked("http://b.test/robots.txt"), 1u);
  rig.expect_all_left();
}

TEST(PageRenderingTest, ItLeadsNoFurtherThanRedirectsDo) {
  RenderRig rig;
  int pages = 0;
  rig.renderer->make = [&](const HttpRequest&, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    co_return RenderedPage{.html = "<p>", .led_to = fmt::format("http://a.test/{}", ++pages)};
  };
  FetchedAnswer answer = rig.fetch();
  EXPECT_EQ(answer.response.error_kind, "redirects");
  EXPECT_EQ(rig.renderer->rendered.size(), 6u);
  rig.order.settings.request.redirects = {true, 0};
  answer = rig.fetch();
  EXPECT_TRUE(answer.is_success) << "redirects are off, and the page is what it is";
  rig.expect_all_left();
}

TEST(PageRenderingTest, APageThatSetsACookieAndLoadsAnewIsAskedForWithIt) {
  RenderRig rig;
  int times = 0;
  rig.renderer->make = [&](const HttpRequest&, const HttpResponse&, PageParts& parts) -> Coro<Result<RenderedPage>> {
    EXPECT_EQ(parts.cookies().size(), times > 0 ? 1u : 0u);
    co_return RenderedPage{.html = "<p>",
                           .reloads = true,
                           .cookies = {{.name = "n", .value = std::to_string(times++), .domain = "a.test"}}};
  };
  EXPECT_TRUE(rig.fetch().is_success);
  EXPECT_EQ(times, 6) << "five times more at most";
  EXPECT_EQ(rig.last_asked("http://a.test/").field("Cookie"), "n=4");
  rig.expect_all_left();
}

// --- what they ask for
// ---------------------------------------------------------------------------------------------------------------

TEST(PageRenderingTest, PartsAreAskedForAsPagesAre) {
  RenderRig rig;
  rig.pages["http://b.test/robots.txt"] = {.body = "User-agent: *\nDisallow: /private",
                                           .fields = {{"Content-Type", "text/plain"}}};
  rig.ask_for({{part_of("http://a.test/s.js"), PartKind::script},
               {part_of("http://b.test/s.js"), PartKind::script},
               {part_of("http://b.test/private/s.js"), PartKind::script},
               {part_of("ftp://a.test/"), PartKind::data},
               {part_of("http://b.test/", {}, HttpMethod::post), PartKind::data},
               {part_of("http://a.test/api", {}, HttpMethod::post), PartKind::data},
               {part_of("http://a.test/p.png"), PartKind::image}});
  EXPECT_TRUE(rig.fetch().is_success);
  EXPECT_THAT(rig.answers,
              ElementsAre("200", "200", "refused: robots.txt", "refused: neither http nor https",
                          "refused: POST to another site: pages send GET, and POST to their own site", "200", "200"));
  EXPECT_EQ(rig.times_asked("http://b.test/private/s.js"), 0u);
  rig.expect_all_left();
}

TEST(PageRenderingTest, APageGetsSoManyPartsAndNoMore) {
  RenderRig rig;
  rig.rendering.limits = {.requests = 2, .bytes = 1000};
  rig.ask_for({3, {part_of("http://a.test/data"), PartKind::data}});
  rig.fetch();
  EXPECT_THAT(rig.answers, ElementsAre("200", "200", "refused: the page has asked for more than 2 parts"));
}

TEST(PageRenderingTest, ItsServerIsToldWhoAsksAndNobodyElse) {
  RenderRig rig;
  auto& said = rig.order.settings.request;
  said.headers = {{"Authorization", said_text("secret")},
                  {"X-Token", said_text("t")},
                  {"If-None-Match", said_text("\"e\"")},
                  {"Cookie", said_text("raw=1")}};
  said.cookies = {{"a", said_text("1")}};
  rig.pages["http://a.test/"] = {.body = "<p>",
                                 .fields = {{"Content-Type", "text/html"}, {"Set-Cookie", "site=2; Domain=a.test"}}};
  rig.ask_for({{part_of("http://a.test/s.js", {{"Cookie", "page=3"}, {"User-Agent", "forged"}, {"X-Own", "4"}}),
                PartKind::script},
               {part_of("http://www.a.test/s.js"), PartKind::script},
               {part_of("http://b.test/s.js", {{"Cookie", "page=3"}}), PartKind::script}});
  rig.fetch();
  const DeskRequest own = rig.last_asked("http://a.test/s.js");
  EXPECT_EQ(own.field("Authorization"), "secret");
  EXPECT_EQ(own.field("X-Token"), "t");
  EXPECT_EQ(own.field("X-Own"), "4");
  EXPECT_THAT(own.headers, Not(Contains(Key("User-Agent"))));
  EXPECT_THAT(own.headers, Not(Contains(Key("If-None-Match"))));
  for (const char* const cookie : {"page=3", "a=1", "site=2", "raw=1"})
    EXPECT_THAT(own.field("Cookie"), HasSubstr(cookie));
  const DeskRequest beside = rig.last_asked("http://www.a.test/s.js");
  EXPECT_EQ(beside.field("Cookie"), "site=2");
  EXPECT_THAT(beside.headers, Not(Contains(Key("Authorization"))));
  EXPECT_THAT(beside.headers, Not(Contains(Key("X-Token"))));
  const DeskRequest other = rig.last_asked("http://b.test/s.js");
  EXPECT_TRUE(other.headers.empty()) << other.field("Cookie");
}

TEST(PageRenderingTest, WhatIsForAllIsFetchedOnceAndWhatIsForOneIsNot) {
  RenderRig rig;
  rig.ask_for({{part_of("http://a.test/s.js"), PartKind::script}, {part_of("http://b.test/s.css"), PartKind::style}});
  rig.fetch();
  rig.fetch();
  EXPECT_EQ(rig.times_asked("http://a.test/s.js"), 1u);
  EXPECT_EQ(rig.times_asked("http://b.test/s.css"), 1u);
  rig.order.settings.request.cookies = {{"who", said_text("me")}};
  rig.fetch();
  rig.fetch();
  EXPECT_EQ(rig.times_asked("http://a.test/s.js"), 3u) << "another project's page must not get what this one was given";
  EXPECT_EQ(rig.times_asked("http://b.test/s.css"), 1u);
}

TEST(PageRenderingTest, PartsGoThePagesOwnWayAndWhatComesBySuchIsForNobodyElse) {
  RenderRig rig;
  rig.order.settings.request.proxy = said_text("http://p.test:3128");
  rig.ask_for({{part_of("http://a.test/s.js"), PartKind::script}, {part_of("http://b.test/s.js"), PartKind::script}});
  rig.fetch();
  for (const char* const url : {"http://a.test/s.js", "http://b.test/s.js"}) {
    const DeskRequest asked = rig.last_asked(url);
    ASSERT_NE(asked.way, nullptr) << url;
    EXPECT_TRUE(asked.way->proxy.has_value()) << url;
  }
  rig.order.settings.request.proxy = {};
  rig.fetch();
  EXPECT_EQ(rig.times_asked("http://a.test/s.js"), 2u);
  EXPECT_EQ(rig.last_asked("http://b.test/s.js").way, nullptr);
}

TEST(PageRenderingTest, AHostThatIsNotThereHoldsUpNoPage) {
  RenderRig rig;
  rig.pages["http://dead.test/robots.txt"] =
      rig.pages["http://dead.test/s.js"] = {.error = Errc::network, .connected = false};
  rig.ask_for({3, {part_of("http://dead.test/s.js"), PartKind::script}});
  rig.fetch();
  const TimePoint before = rig.loop.time();
  rig.answers.clear();
  EXPECT_TRUE(rig.fetch().is_success);
  EXPECT_THAT(rig.answers, testing::Each(testing::StartsWith("network: ")));
  EXPECT_LT(rig.loop.time() - before, 1s);
  rig.expect_all_left();
}

TEST(PageRenderingTest, WhatIsCancelledLeavesItsHosts) {
  for (const Duration after : {60ms, 120ms, 180ms, 240ms, 300ms}) {
    RenderRig rig;
    rig.ask_for({{part_of("http://a.test/data"), PartKind::data},
                 {part_of("http://b.test/data"), PartKind::data},
                 {part_of("http://a.test/data"), PartKind::data}});
    rig.loop.run_until_complete([](RenderRig& its, Duration span) -> Coro<void> {
      EXPECT_EQ((co_await its.begun(its.order.url)).leave, HostDesk::Leave::go);
      Task<FetchedAnswer> page = its.loop.create_task(
          fetch_page(its.order, its.web, *its.desk, std::ref(its.hosts), &its.rendering), "page", Start::eagerly);
      co_await sleep(span);
      if (page.done()) co_return;
      page.cancel();
      bool cancelled = false;
      try {
        (void)co_await page;
      } catch (const CancelledError&) {
        cancelled = true;
      }
      EXPECT_TRUE(cancelled);
      co_await sleep(1s);  // the desk's own questions end
    }(rig, after));
    rig.expect_all_left();
  }
}

// --- in the engine
// -------------------------------------------------------------------------------------------------------------------

constexpr const char* kScriptedShop =
    R"({"project":{"name":"shop","start":["http://shop.test/"],"scope":["*.test"],"processor":["python3","shop.py"]}})";

TEST(PageRenderingTest, AScriptGetsWhatWasRenderedAndWhatItsOwnScriptGave) {
  const auto renderer = std::make_shared<PlayedPageRenderer>();
  renderer->make = [](const HttpRequest&, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    co_return RenderedPage{.html = "<p>made", .script_result = R"({"a":1})"};
  };
  SimulatedProjects sim;
  sim.options.hosts.renderer = renderer;
  sim.web.pages["http://shop.test/"] = page_with({}, "as it came");
  sim.options.make_processor = [](const ProjectDefinition&,
                                  const ProcessorWatch&) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription description;
    description.defaults.request.render = {true, RequestSettings::Render{.script = "go"}};
    return std::make_unique<TestProcessor>(std::move(description), [](const PageCall& call) -> Coro<VisitAnswer> {
      VisitAnswer answer;
      answer.results = {
          {.part = "",
           .value_json = fmt::format(R"(["{}",{}])", call.response.body, call.response.script_result_json)}};
      co_return answer;
    });
  };
  sim.begin();
  const auto id = sim.engine->put_project(draft_of(kScriptedShop));
  ASSERT_TRUE(id) << id.error().message;
  sim.pass(1s);
  ASSERT_TRUE(sim.engine->start("shop"));
  sim.finish_round("shop");
  const auto results = sim.results(*id);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].value, R"(["<p>made",{"a":1}])");
  ASSERT_EQ(renderer->views.size(), 1u);
  EXPECT_EQ(renderer->views[0].script, "go");
  EXPECT_EQ(renderer->closed, 0);
  sim.stop();
  EXPECT_EQ(renderer->closed, 1);
}

}  // namespace
}  // namespace argiope

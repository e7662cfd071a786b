// Crawls whose pages are rendered, by a renderer that a test plays: what becomes of pages, and how what they ask for is
// fetched.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "argiope/async/event_loop.hpp"
#include "argiope/render/page_renderer.hpp"
#include "crawl/render/internal/part_cache.hpp"
#include "crawl/run/rendering.hpp"
#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Makes of each page what `make` says; without it, the page as it came.
class PlayedRenderer final : public PageRenderer {
 public:
  std::function<Coro<Result<RenderedPage>>(const HttpRequest&, const HttpResponse&, PageParts&)> make;
  Result<void> can_open;
  std::vector<std::string> rendered;
  int opened = 0, closed = 0;

  Coro<Result<void>> open() override {
    ++opened;
    co_return can_open;
  }
  Coro<Result<RenderedPage>> render(const HttpRequest& request, const HttpResponse& response, PageParts& parts,
                                    RenderOptions) override {
    rendered.push_back(request.url.href());
    if (make) co_return co_await make(request, response, parts);
    co_return RenderedPage{.html = response.body, .cookies = parts.cookies()};
  }
  Coro<void> close() override {
    ++closed;
    co_return;
  }
};

struct RenderedCrawl : Simulation {
  explicit RenderedCrawl(std::uint32_t hosts = 1, std::uint32_t pages = 3)
      : Simulation({.hosts = hosts,
                    .pages = pages,
                    .links = 3,
                    .features = bit(WebFeature::scripts) | bit(WebFeature::robots)}) {
    options.renderer = renderer;
  }
  std::map<std::string, UrlRecord> records() {
    std::map<std::string, UrlRecord> found;
    EXPECT_TRUE(store->scan(1, [&](const UrlRecord& record) {
      found[record.url] = record;
      return true;
    }));
    return found;
  }
  std::size_t times_asked(const std::string& target) const {
    std::size_t times = 0;
    for (const ServedRequest& served : transport.log) times += served.target == target ? 1u : 0u;
    return times;
  }
  std::shared_ptr<PlayedRenderer> renderer = std::make_shared<PlayedRenderer>();
};

HttpRequest part_request(std::string_view url, HttpMethod method = HttpMethod::get) {
  HttpRequest request;
  request.method = method;
  request.url = *Url::parse(url);
  return request;
}

// What came of the parts that the front page has asked for, and nothing else was rendered for.
std::vector<std::string> answers_to(RenderedCrawl& crawl, std::vector<std::pair<HttpRequest, PartKind>> wanted) {
  std::vector<std::string> answers;
  crawl.renderer->make = [&](const HttpRequest& request, const HttpResponse& response,
                             PageParts& parts) -> Coro<Result<RenderedPage>> {
    if (request.url.href() == "http://host0.test/") {
      for (auto& [asked, kind] : wanted) {
        HttpResponse answer;
        const auto fetched = co_await parts.fetch(asked, kind, answer);
        answers.push_back(fetched ? std::to_string(answer.status)
                                  : std::string(to_string(fetched.error().code)) + ": " + fetched.error().message);
      }
    }
    co_return RenderedPage{.html = response.body};
  };
  crawl.run();
  return answers;
}

TEST(RenderedCrawlTest, WhatScriptsMakeIsThePage) {
  RenderedCrawl crawl;
  std::vector<std::string> seen;
  crawl.options.on_page = [&](const Page& page) { seen.emplace_back(page.text()); };
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse&, PageParts&) -> Coro<Result<RenderedPage>> {
    co_return RenderedPage{.html = request.url.href() == "http://host0.test/" ? "<a href=/scripts/8>\xC3\xA9</a>"
                                                                              : "<p>other"};
  };
  const CrawlReport report = crawl.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(crawl.renderer->rendered, (std::vector<std::string>{"http://host0.test/", "http://host0.test/scripts/8"}));
  EXPECT_EQ(report.stats.rendered, 2u);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen.front(), "<a href=/scripts/8>\xC3\xA9</a>");
  const UrlRecord front = crawl.records()["http://host0.test/"];
  EXPECT_EQ(front.status_code, 200);
  EXPECT_EQ(front.size, 25);
  EXPECT_EQ(crawl.renderer->opened, 1);
  EXPECT_EQ(crawl.renderer->closed, 1);
}

TEST(RenderedCrawlTest, OnlyPagesAreRenderedAndOnlyThoseThatMatch) {
  RenderedCrawl crawl;
  crawl.options.render_only = {"/scripts/**"};
  crawl.run();
  EXPECT_EQ(crawl.renderer->rendered, (std::vector<std::string>{"http://host0.test/scripts/1"}));
}

TEST(RenderedCrawlTest, APageThatCannotBeRenderedIsTriedAgainAndThenAnError) {
  RenderedCrawl crawl;
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse& response,
                            PageParts&) -> Coro<Result<RenderedPage>> {
    if (request.url.href() == "http://host0.test/scripts/1") co_return fail(Errc::timeout, "not loaded after 30 s");
    co_return RenderedPage{.html = response.body};
  };
  const CrawlReport report = crawl.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(crawl.times_asked("/scripts/1"), 3u);
  EXPECT_EQ(report.stats.render_errors, 3u);
  EXPECT_EQ(report.failures.at("timeout"), 1u);
  const UrlRecord record = crawl.records()["http://host0.test/scripts/1"];
  EXPECT_EQ(record.state, UrlState::failed);
  EXPECT_EQ(record.error, "timeout: rendering: not loaded after 30 s");
}

TEST(RenderedCrawlTest, WhereAScriptHasGoneIsARedirect) {
  RenderedCrawl crawl;
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse& response,
                            PageParts&) -> Coro<Result<RenderedPage>> {
    RenderedPage page{.html = response.body};
    if (request.url.href() == "http://host0.test/scripts/1") {
      page.html = "<a href=/scripts/2>not followed</a>";
      page.led_to = "http://host0.test/scripts/5#there";
    }
    if (request.url.href() == "http://host0.test/scripts/5") page.led_to = "http://host0.test/scripts/5";  // nowhere
    co_return page;
  };
  crawl.run();
  auto records = crawl.records();
  EXPECT_EQ(records["http://host0.test/scripts/1"].redirect_to, "http://host0.test/scripts/5");
  EXPECT_EQ(records["http://host0.test/scripts/1"].status_code, 200);
  EXPECT_EQ(records["http://host0.test/scripts/5"].state, UrlState::done);
  EXPECT_EQ(records["http://host0.test/scripts/5"].redirect_to, "");
  EXPECT_FALSE(records.contains("http://host0.test/scripts/2"));
}

TEST(RenderedCrawlTest, UrlsThatAScriptGivesToThePageAreItsLinks) {
  RenderedCrawl crawl;
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse& response,
                            PageParts&) -> Coro<Result<RenderedPage>> {
    RenderedPage page{.html = response.body};
    if (request.url.href() == "http://host0.test/")
      page.own_urls = {"http://host0.test/scripts/6#x", "http://host0.test/#top", "nonsense"};
    co_return page;
  };
  crawl.run();
  auto records = crawl.records();
  ASSERT_TRUE(records.contains("http://host0.test/scripts/6"));
  EXPECT_EQ(records["http://host0.test/scripts/6"].depth, 1u);
}

TEST(RenderedCrawlTest, WhatAPageAsksForIsWhatACrawlMayAskFor) {
  RenderedCrawl crawl(2);
  crawl.options.exclude = {"/scripts/list.json"};
  const auto answers = answers_to(crawl, {{part_request("http://host0.test/scripts/links.js"), PartKind::script},
                                          {part_request("http://host1.test/scripts/links.js"), PartKind::script},
                                          {part_request("http://host0.test/private/1"), PartKind::data},
                                          {part_request("http://host1.test/private/1"), PartKind::data},
                                          {part_request("http://host0.test/scripts/list.json"), PartKind::data},
                                          {part_request("file:///etc/passwd"), PartKind::data},
                                          {part_request("http://host1.test/", HttpMethod::post), PartKind::data},
                                          {part_request("http://host0.test/", HttpMethod::post), PartKind::data},
                                          {part_request("http://host0.test/", HttpMethod::delete_), PartKind::data},
                                          {part_request("http://nobody.test/x"), PartKind::data},
                                          {part_request("http://host0.test/nowhere"), PartKind::data}});
  ASSERT_EQ(answers.size(), 11u);
  EXPECT_EQ(answers[0], "200");
  EXPECT_EQ(answers[1], "200");
  EXPECT_EQ(answers[2], "refused: robots.txt");
  EXPECT_EQ(answers[3], "refused: robots.txt");
  EXPECT_EQ(answers[4], "refused: excluded from the crawl");
  EXPECT_THAT(answers[5], HasSubstr("refused: "));
  EXPECT_THAT(answers[6], HasSubstr("refused: POST to another site"));
  EXPECT_EQ(answers[7], "200");
  EXPECT_THAT(answers[8], HasSubstr("refused: DELETE to its own site"));
  EXPECT_THAT(answers[9], HasSubstr("dns: "));
  EXPECT_EQ(answers[10], "404");
}

TEST(RenderedCrawlTest, WhatPagesAskForKeepsThePaceOfEachHost) {
  RenderedCrawl crawl(3, 6);
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse& response,
                            PageParts& parts) -> Coro<Result<RenderedPage>> {
    for (const char* const host : {"http://host0.test", "http://host1.test", "http://host2.test"}) {
      for (int i = 0; i < 3; ++i) {
        HttpResponse answer;
        (void)co_await parts.fetch(part_request(host + std::string("/scripts/list.json?") + std::to_string(i) +
                                                std::string(request.url.host())),
                                   PartKind::data, answer);
      }
    }
    co_return RenderedPage{.html = response.body};
  };
  const CrawlReport report = crawl.run();
  EXPECT_TRUE(report.finished);
  EXPECT_GE(report.stats.parts, 100u);
  std::map<std::uint32_t, TimePoint> last_begun, last_ended;
  for (const ServedRequest& served : crawl.transport.log) {
    if (last_begun.contains(served.host)) {
      EXPECT_GE(served.at - last_begun[served.host], 199ms) << served.target;
      EXPECT_GE(served.at, last_ended[served.host]) << served.target;
    }
    last_begun[served.host] = served.at;
    last_ended[served.host] = served.ended;
  }
}

TEST(RenderedCrawlTest, SoDoSeveralPagesOfOneHostAtATime) {
  RenderedCrawl crawl(1, 6);
  crawl.options.per_host = 4;
  crawl.options.rate = 5;
  int under_way = 0, most = 0;
  crawl.renderer->make = [&](const HttpRequest& request, const HttpResponse& response,
                             PageParts& parts) -> Coro<Result<RenderedPage>> {
    most = std::max(most, ++under_way);
    co_await sleep(2s);  // others begin meanwhile
    for (int i = 0; i < 5; ++i) {
      HttpResponse answer;
      (void)co_await parts.fetch(
          part_request(fmt::format("http://host0.test/scripts/list.json?{}{}", request.url.pathname(), i)),
          PartKind::data, answer);
    }
    --under_way;
    co_return RenderedPage{.html = response.body};
  };
  EXPECT_TRUE(crawl.run().finished);
  EXPECT_GE(most, 3);
  std::optional<TimePoint> last;
  for (const ServedRequest& served : crawl.transport.log) {
    if (served.target == "/robots.txt") continue;
    if (last) EXPECT_GE(served.at - *last, 199ms) << served.target;
    last = served.at;
  }
}

TEST(RenderedCrawlTest, WhatPagesAskForGoesWithTheSettingsOfItsHost) {
  RenderedCrawl crawl(2);
  HostSettings settings{.match = {"*"}};
  settings.user_agent = "Ours/1";
  settings.timeout = 2s;
  settings.headers.emplace().emplace_back("X-Key", "secret");
  crawl.options.hosts = {settings};
  crawl.options.robots = false;
  crawl.transport.before_reply = [&](const SyntheticRequest& asked, TimePoint) {
    SyntheticReply reply = crawl.web.reply(asked);
    if (asked.target == "/scripts/list.json?slow") reply.latency = 5s;
    return reply;
  };
  HttpRequest own = part_request("http://host0.test/scripts/list.json");
  own.headers.emplace_back("x-key", "of the page");
  const auto answers = answers_to(crawl, {{own, PartKind::data},
                                          {part_request("http://host1.test/scripts/list.json"), PartKind::data},
                                          {part_request("http://host0.test/scripts/list.json?slow"), PartKind::data}});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_THAT(answers[2], testing::StartsWith("timeout"));
  using Fields = std::vector<std::pair<std::string, std::string>>;
  for (const ServedRequest& served : crawl.transport.log) {
    if (served.target != "/scripts/list.json") continue;
    EXPECT_EQ(served.anonymous, served.host == 1);
    EXPECT_EQ(served.headers, served.host == 1 ? (Fields{{"User-Agent", "Ours/1"}})
                                               : (Fields{{"X-Key", "secret"}, {"User-Agent", "Ours/1"}}));
  }
}

TEST(RenderedCrawlTest, WhatAPageAsksForAnswersWhoAsksForAPassword) {
  RenderedCrawl crawl;
  crawl.options.credentials = {{.where = "http://host0.test", .name = "ann", .password = "secret"}};
  crawl.transport.before_reply = [&](const SyntheticRequest& asked, TimePoint) {
    SyntheticReply reply = crawl.web.reply(asked);
    if (asked.target == "/scripts/list.json" && asked.authorization.empty()) {
      reply.status = 401;
      reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"r\"");
    }
    return reply;
  };
  const auto answers = answers_to(crawl, {{part_request("http://host0.test/scripts/list.json"), PartKind::data}});
  EXPECT_EQ(answers, (std::vector<std::string>{"200"}));
}

TEST(RenderedCrawlTest, APageThatSetsACookieAndLoadsItselfAnewIsAskedForAgain) {
  RenderedCrawl crawl;
  crawl.renderer->make = [](const HttpRequest& request, const HttpResponse& response,
                            PageParts& parts) -> Coro<Result<RenderedPage>> {
    RenderedPage page{.html = response.body, .cookies = parts.cookies()};
    page.reloads = request.url.href() == "http://host0.test/scripts/1" || request.url.href() == "http://host0.test/";
    if (request.url.href() == "http://host0.test/scripts/1")
      page.cookies.push_back({.name = "seen", .value = "1", .domain = "host0.test"});
    co_return page;
  };
  EXPECT_TRUE(crawl.run().finished);
  EXPECT_EQ(crawl.times_asked("/scripts/1"), 2u);
  EXPECT_EQ(crawl.times_asked("/"), 1u);
  EXPECT_EQ(crawl.records()["http://host0.test/scripts/1"].state, UrlState::done);
}

TEST(RenderedCrawlTest, APageMayNotAskForever) {
  RenderedCrawl crawl;
  crawl.options.render_limits = {.requests = 2, .bytes = 50};
  auto answers = answers_to(crawl, {{part_request("http://host0.test/scripts/list.json"), PartKind::data},
                                    {part_request("http://host0.test/scripts/list.json"), PartKind::data},
                                    {part_request("http://host0.test/scripts/list.json"), PartKind::data}});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1], "200");
  EXPECT_EQ(answers[2], "refused: the page has asked for more than 2 parts");
  RenderedCrawl second;
  second.options.render_limits.bytes = 20;
  answers = answers_to(second, {{part_request("http://host0.test/scripts/links.js"), PartKind::script},
                                {part_request("http://host0.test/scripts/list.json"), PartKind::data}});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1], "too_large: the page's parts have more than 20 bytes");
}

TEST(RenderedCrawlTest, AScriptThatAllPagesHaveIsFetchedOnce) {
  RenderedCrawl crawl(1, 6);
  std::set<std::string> bodies;
  crawl.renderer->make = [&](const HttpRequest&, const HttpResponse& response,
                             PageParts& parts) -> Coro<Result<RenderedPage>> {
    HttpResponse script, data;
    (void)co_await parts.fetch(part_request("http://host0.test/scripts/links.js"), PartKind::script, script);
    (void)co_await parts.fetch(part_request("http://host0.test/scripts/list.json"), PartKind::data, data);
    bodies.insert(script.body);
    co_return RenderedPage{.html = response.body};
  };
  crawl.run();
  EXPECT_EQ(bodies.size(), 1u);
  EXPECT_EQ(crawl.times_asked("/scripts/links.js"), 1u);
  EXPECT_EQ(crawl.times_asked("/scripts/list.json"), crawl.renderer->rendered.size());
}

TEST(RenderedCrawlTest, CookiesAreThoseOfTheCrawlAndStayOnTheirSite) {
  RenderedCrawl crawl(2);
  crawl.options.given_cookies = {{.name = "crawl", .value = "1", .domain = "host0.test"},
                                 {.name = "other", .value = "1", .domain = "host1.test"}};
  crawl.renderer->make = [&](const HttpRequest& request, const HttpResponse& response,
                             PageParts& parts) -> Coro<Result<RenderedPage>> {
    RenderedPage page{.html = response.body, .cookies = parts.cookies()};
    if (request.url.href() == "http://host0.test/") {
      EXPECT_EQ(page.cookies.size(), 1u);
      HttpResponse answer;
      HttpRequest own = part_request("http://host0.test/scripts/list.json");
      own.headers = {
          {"Cookie", "script=2; crawl=1"}, {"User-Agent", "Browser"}, {"X-Token", "t"}, {"Sec-Fetch-Mode", "cors"}};
      (void)co_await parts.fetch(own, PartKind::data, answer);
      HttpRequest other = part_request("http://host1.test/scripts/list.json");
      other.headers = {{"Cookie", "script=2"}};
      (void)co_await parts.fetch(other, PartKind::data, answer);
      page.cookies.push_back({.name = "made", .value = "3", .domain = "host0.test"});
      page.cookies.push_back({.name = "forged", .value = "4", .domain = "host1.test"});
    }
    co_return page;
  };
  crawl.run();
  std::vector<std::string> sent;
  for (const ServedRequest& served : crawl.transport.log) {
    if (served.target == "/scripts/list.json") sent.push_back(served.cookie);
  }
  EXPECT_EQ(sent, (std::vector<std::string>{"script=2; crawl=1", ""}));
  std::set<std::string> names;
  for (const Cookie& cookie : crawl.cookies) names.insert(cookie.name);
  EXPECT_EQ(names, (std::set<std::string>{"crawl", "other", "made"}));
}

TEST(RenderedCrawlTest, SinksGetWhatWasFetchedAndWhatWasMadeOfIt) {
  struct Notes final : CrawlSink {
    std::map<std::string, std::string> fetched, made;
    std::vector<std::string> parts;
    Result<void> take(const Exchange& exchange) override {
      if (exchange.kind == ExchangeKind::part) parts.push_back(exchange.request.url.href());
      if (exchange.kind != ExchangeKind::page) return {};
      fetched[exchange.request.url.href()] = exchange.response.body;
      if (exchange.rendered != nullptr) made[exchange.request.url.href()] = exchange.page().body;
      return {};
    }
  };
  RenderedCrawl crawl;
  const auto notes = std::make_shared<Notes>();
  crawl.options.sinks = {notes};
  crawl.options.render_only = {"/scripts/*"};
  crawl.renderer->make = [](const HttpRequest&, const HttpResponse&, PageParts& parts) -> Coro<Result<RenderedPage>> {
    HttpResponse answer;
    (void)co_await parts.fetch(part_request("http://host0.test/scripts/links.js"), PartKind::script, answer);
    co_return RenderedPage{.html = "<p>made"};
  };
  crawl.run();
  EXPECT_THAT(notes->fetched["http://host0.test/scripts/1"], HasSubstr("nothing yet"));
  EXPECT_EQ(notes->made, (std::map<std::string, std::string>{{"http://host0.test/scripts/1", "<p>made"}}));
  EXPECT_EQ(notes->parts, (std::vector<std::string>{"http://host0.test/scripts/links.js"}));
}

TEST(RenderedCrawlTest, WithoutARendererThatOpensThereIsNoCrawl) {
  RenderedCrawl crawl;
  crawl.renderer->can_open = fail(Errc::network, "the browser cannot be started");
  Crawler crawler(crawl.options, *crawl.store, 1);
  ASSERT_TRUE(crawler.open(crawl.backend.clock().wall_now()));
  crawl.loop.run_until_complete([&]() -> Coro<void> { co_await crawler.work(0, crawl.transport, nullptr); }());
  const auto report = crawler.report();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "the browser cannot be started");
  EXPECT_TRUE(crawl.transport.log.empty());
  EXPECT_THROW(Crawler(crawl.options, *crawl.store, 1, 2), std::invalid_argument);
}

TEST(RenderedCrawlTest, APageThatGivesUpWhileItWaitsForAnAddressKeepsNobodyElseFromIt) {
  struct OneAddress final : Resolver {
    Coro<Result<AddressList>> resolve(std::string_view host) override {
      if (host == "host2.test") co_await sleep(2s);
      co_return AddressList{*IpAddress::parse("8.8.8.8")};
    }
  } resolver;
  RenderedCrawl crawl(4, 1);
  crawl.options.seeds.pop_back();
  crawl.resolver = &resolver;
  crawl.options.per_address = 1;
  crawl.options.robots = false;
  crawl.options.max_depth = 0;
  // The second host has the place until 2.5 s; the page of the first waits for it from 0.1 s to 1.1 s, the third host
  // from 2 s.
  crawl.transport.before_reply = [&](const SyntheticRequest& asked, TimePoint) {
    SyntheticReply reply = crawl.web.reply(asked);
    if (asked.host == 1) reply.latency = 2500ms;
    return reply;
  };
  int given_up = 0;
  crawl.renderer->make = [&](const HttpRequest& request, const HttpResponse& response,
                             PageParts& parts) -> Coro<Result<RenderedPage>> {
    if (request.url.host() == "host0.test") {
      co_await sleep(100ms);
      HttpResponse answer;
      try {
        (void)co_await timeout(1s).run(
            parts.fetch(part_request("http://host3.test/scripts/list.json"), PartKind::data, answer));
      } catch (const TimeoutError&) {
        ++given_up;
      }
    }
    co_return RenderedPage{.html = response.body};
  };
  crawl.options.max_time = 1h;
  EXPECT_EQ(crawl.run().stopped_by, "");
  EXPECT_EQ(given_up, 1);
  EXPECT_EQ(crawl.records()["http://host2.test/"].state, UrlState::done);
}

TEST(RenderedCrawlTest, ACrawlThatIsCancelledWhileAPageAsksEndsAtOnce) {
  RenderedCrawl crawl;
  crawl.renderer->make = [](const HttpRequest&, const HttpResponse& response,
                            PageParts& parts) -> Coro<Result<RenderedPage>> {
    for (int i = 0; i < 1000; ++i) {
      HttpResponse answer;
      (void)co_await parts.fetch(part_request("http://host0.test/scripts/list.json"), PartKind::data, answer);
    }
    co_return RenderedPage{.html = response.body};
  };
  crawl.options.render_limits.requests = 10'000;
  crawl.options.max_time = 20s;
  crawl.options.drain_limit = 1s;
  const CrawlReport report = crawl.run();
  EXPECT_EQ(report.stopped_by, "max_time");
  EXPECT_EQ(crawl.records()["http://host0.test/"].state, UrlState::queued);
  EXPECT_EQ(crawl.renderer->closed, 1);
}

TEST(RenderingTest, WhatIsKnownOfSitesIsBounded) {
  Rendering rendering{CrawlOptions{}};
  VirtualBackend backend;
  EventLoop loop{backend};
  const std::string first = "http://first.test";
  Lock& held = rendering.turn_of(first);
  loop.run_until_complete([&]() -> Coro<void> {
    const auto turn = co_await held.scoped();
    for (std::size_t i = 0; i < 3 * Rendering::kMostSites; ++i) {
      const std::string site = fmt::format("http://{}.test", i);
      (void)rendering.turn_of(site);
      rendering.note_silent(site, TimePoint{});
      EXPECT_TRUE(rendering.is_silent(site, TimePoint{59s}));
      EXPECT_FALSE(rendering.is_silent(site, TimePoint{1min}));
    }
    EXPECT_TRUE(rendering.turn_of(first).locked());
  }());
  EXPECT_LE(rendering.sites(), 2 * Rendering::kMostSites);
}

// --- what is kept of scripts and styles
// ------------------------------------------------------------------------------------

HttpResponse script_of(std::size_t bytes, std::vector<std::pair<std::string, std::string>> fields = {}) {
  HttpResponse response;
  response.status = 200;
  response.body = std::string(bytes, 'x');
  response.fields = std::move(fields);
  return response;
}

TEST(PartCacheTest, KeepsWhatMayBeKeptForAsLongAsItMay) {
  EXPECT_EQ(lifetime_of(script_of(1)), 5min);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Cache-Control", "public, max-age=10"}})), 10s);
  EXPECT_EQ(lifetime_of(script_of(1, {{"cache-control", "max-age=999999999999"}})), 1h);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Cache-Control", "private"}})), 0s);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Cache-Control", "max-age=5, no-store"}})), 0s);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Set-Cookie", "a=1"}})), 0s);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Vary", "Accept-Encoding, Origin"}})), 5min);
  EXPECT_EQ(lifetime_of(script_of(1, {{"Vary", "Cookie"}})), 0s);
  PartCache cache;
  HttpResponse found;
  const HttpRequest request = part_request("http://h/s.js");
  cache.put(request, script_of(7), TimePoint{});
  EXPECT_TRUE(cache.find(request, TimePoint{4min}, found));
  EXPECT_EQ(found.body.size(), 7u);
  HttpRequest other = request;
  other.headers = {{"Origin", "http://elsewhere"}};
  EXPECT_FALSE(cache.find(other, TimePoint{}, found));
  other = request;
  other.is_anonymous = true;
  EXPECT_FALSE(cache.find(other, TimePoint{}, found));
  EXPECT_FALSE(cache.find(request, TimePoint{5min}, found));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(PartCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  PartCache cache(10'000);
  HttpResponse found;
  for (const char* const url : {"http://h/1", "http://h/2", "http://h/3"})
    cache.put(part_request(url), script_of(2000), TimePoint{});
  EXPECT_TRUE(cache.find(part_request("http://h/1"), TimePoint{}, found));
  cache.put(part_request("http://h/4"), script_of(2000), TimePoint{});
  cache.put(part_request("http://h/5"), script_of(2000), TimePoint{});
  EXPECT_TRUE(cache.find(part_request("http://h/1"), TimePoint{}, found));
  EXPECT_FALSE(cache.find(part_request("http://h/2"), TimePoint{}, found));
  EXPECT_LE(cache.bytes(), 10'000u);
  cache.put(part_request("http://h/6"), script_of(5000), TimePoint{});
  EXPECT_FALSE(cache.find(part_request("http://h/6"), TimePoint{}, found));
}

}  // namespace
}  // namespace argiope

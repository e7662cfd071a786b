// A page's way to its answer: what is sent, where redirects lead, and what each end of the way is called.
#include "project/fetch/internal/page_fetcher.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/async/group.hpp"
#include "desk_web.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "support/cancellation_sweep.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Leave = HostDesk::Leave;

template <class Value>
Said<Value> as_said(Value value) {
  return {true, std::move(value)};
}

// Servers by URL.
struct FetchRig : DeskRig {
  FetchRig() {
    options.autothrottle = false;
    web.reply = [this](const DeskRequest& request) -> DeskReply {
      const auto found = pages.find(request.url);
      if (found != pages.end()) return found->second;
      return {.status = request.target == "/robots.txt" ? 404 : 200,
              .body = "ok",
              .fields = {{"Content-Type", "text/plain"}}};
    };
    open();
  }
  FetchedAnswer fetch(FetchOrder order) {
    return loop.run_until_complete([](FetchRig& rig, FetchOrder what) -> Coro<FetchedAnswer> {
      if (!is_data_url(what.url)) {
        const auto entered = co_await rig.begun(what.url, what.settings.request.robots.value.value_or(true));
        EXPECT_EQ(entered.leave, Leave::go);
      }
      co_return co_await fetch_page(what, rig.web, *rig.desk, std::ref(rig.hosts));
    }(*this, std::move(order)));
  }
  // Without robots.txt.
  std::vector<DeskRequest> asked() const {
    std::vector<DeskRequest> found;
    std::ranges::copy_if(web.log, std::back_inserter(found),
                         [](const DeskRequest& one) { return one.target != "/robots.txt"; });
    return found;
  }
  void expect_left() {
    for (std::uint32_t host = 1; host < 10; ++host) EXPECT_EQ(desk->look(host).under_way, 0u) << host;
  }

  std::map<std::string, DeskReply> pages;
};

DeskReply reply_leading_to(std::string where, int status = 302) {
  return {.status = status, .fields = {{"Location", std::move(where)}}};
}

// --- the request ----------------------------------------------------------------------------------------------------

TEST(PageRequest, IsAPlainGetWhereNothingIsSaid) {
  const auto request = request_of({.url = "HTTP://a.test/x y?q#part"});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->method, HttpMethod::get);
  EXPECT_EQ(request->url.href(), "http://a.test/x%20y?q");
  EXPECT_TRUE(request->headers.empty());
  EXPECT_EQ(request->timeout, 120s);
  EXPECT_EQ(request->body_limit, 10u * 1024 * 1024);
  EXPECT_TRUE(request->keep_fields);
}

TEST(PageRequest, TakesWhatIsSaid) {
  FetchOrder order{.url = "https://ann:p%20w@a.test/", .body_limit = 7};
  auto& said = order.settings.request;
  said.method = as_said<std::string>("put");
  said.body = as_said<std::string>("a=1");
  said.timeout = as_said<Duration>(5s);
  said.headers = {{"User-Agent", as_said<std::string>("shop")}, {"X-Gone", {true, std::nullopt}}};
  said.cookies = {{"a", as_said<std::string>("1")}, {"b", as_said<std::string>("2")}, {"c", {true, std::nullopt}}};
  const auto request = request_of(order);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->method, HttpMethod::put);
  EXPECT_EQ(request->url.href(), "https://a.test/");
  EXPECT_EQ(request->body, "a=1");
  EXPECT_EQ(request->timeout, 5s);
  EXPECT_EQ(request->body_limit, 7u);
  EXPECT_THAT(request->headers,
              ElementsAre(Pair("User-Agent", "shop"), Pair("Content-Type", "application/x-www-form-urlencoded"),
                          Pair("Cookie", "a=1; b=2"), Pair("Authorization", "Basic YW5uOnAgdw==")));
}

TEST(PageRequest, PostsABodyAndKeepsAContentTypeThatIsSaid) {
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.body = as_said<std::string>("{}");
  order.settings.request.headers = {{"content-type", as_said<std::string>("application/json")}};
  const auto request = request_of(order);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, HttpMethod::post);
  EXPECT_THAT(request->headers, ElementsAre(Pair("content-type", "application/json")));
}

TEST(PageRequest, AsksWhetherAPageHasChanged) {
  struct Case {
    Said<RequestSettings::Validator> etag;
    std::string method, expected;
  };
  for (const Case& one :
       {Case{{}, "GET", "\"last\""}, Case{{true, RequestSettings::Validator{true, "\"mine\""}}, "GET", "\"mine\""},
        Case{{true, RequestSettings::Validator{false, ""}}, "GET", ""}, Case{{true, std::nullopt}, "HEAD", "\"last\""},
        Case{{}, "POST", ""}}) {
    FetchOrder order{.url = "http://a.test/", .etag = "\"last\"", .last_modified = "Thu, 01 Jan 2026 00:00:00 GMT"};
    order.settings.request.etag = one.etag;
    order.settings.request.method = as_said(one.method);
    const auto request = request_of(order);
    ASSERT_TRUE(request);
    std::string etag, since;
    for (const auto& [name, value] : request->headers) (name == "If-None-Match" ? etag : since) = value;
    EXPECT_EQ(etag, one.expected);
    EXPECT_EQ(since, one.method == "POST" ? "" : order.last_modified);
  }
}

TEST(PageRequest, SaysWhatIsWrong) {
  const auto message = [](FetchOrder order) {
    const auto request = request_of(order);
    return request ? "" : request.error().message;
  };
  EXPECT_THAT(message({.url = "htp://x"}), HasSubstr("htp"));
  EXPECT_EQ(message({.url = "ftp://x/"}), "\"ftp://x/\": only http, https and data are fetched");
  EXPECT_THAT(message({.url = "http://"}), HasSubstr("http://"));
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.method = as_said<std::string>("BREW");
  EXPECT_EQ(message(order), "request/method: \"BREW\" is none of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS");
}

TEST(PageFetcher, LeavesOutWhatOnlyTheClientSaysAndSaysSo) {
  FetchRig rig;
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.headers = {{"Host", as_said<std::string>("b.test")},
                                    {"content-length", as_said<std::string>("5")},
                                    {"X-Two", as_said<std::string>("a\r\nb: c")},
                                    {"X: Y", as_said<std::string>("v")},
                                    {"X-Good", as_said<std::string>("v")}};
  order.settings.request.cookies = {{"bad\n", as_said<std::string>("1")}, {"good", as_said<std::string>("1")}};
  const FetchedAnswer answer = rig.fetch(order);
  EXPECT_TRUE(answer.is_success);
  EXPECT_THAT(rig.asked()[0].headers, ElementsAre(Pair("X-Good", "v"), Pair("Cookie", "good=1")));
  ASSERT_EQ(answer.notes.size(), 5u);
  EXPECT_EQ(answer.notes[0].level, "warning");
  EXPECT_EQ(answer.notes[0].text, "request/headers/Host: is left out: only Argiope can say it");
  EXPECT_EQ(answer.notes[2].text, "request/headers/X-Two: is left out: no header can be so");
  EXPECT_EQ(answer.notes[4].text, "request/cookies/bad\\n: is left out: no cookie can be so");
}

// --- the page's own way

TEST(PageRequest, HasAWayOfItsOwnWhereItSaysSo) {
  FetchOrder order{.url = "https://a.test/"};
  RequestSettings& said = order.settings.request;
  said.verify_certificate = as_said(true);
  EXPECT_EQ(request_of(order)->way, nullptr) << "as all others";
  said.verify_certificate = as_said(false);
  said.connect_timeout = as_said<Duration>(3s);
  said.proxy = as_said<std::string>("");
  const auto direct = request_of(order);
  ASSERT_TRUE(direct && direct->way);
  EXPECT_EQ(*direct->way, (HttpWay{.is_direct = true, .verifies = false, .connect_timeout = 3s}));
  said = {};
  said.proxy = as_said<std::string>("socks5://ann:secret@p.test:9");
  const auto proxied = request_of(order);
  ASSERT_TRUE(proxied && proxied->way);
  EXPECT_EQ(*proxied->way, (HttpWay{.proxy = *Proxy::parse("socks5://ann:secret@p.test:9")}));
  said.proxy = as_said<std::string>("ftp://ann:secret@p.test");
  const auto wrong = request_of(order);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              testing::AllOf(testing::StartsWith("request/proxy: "), testing::Not(HasSubstr("secret"))));
}

TEST(PageFetcher, GoesItsOwnWayOnAllOfItsRequestsAndAnonymouslyWhereOthersCouldHearIt) {
  FetchRig rig;
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.proxy = as_said<std::string>("http://p.test:3128");
  rig.pages["http://a.test/"] = reply_leading_to("https://b.test/");
  const FetchedAnswer answer = rig.fetch(order);
  EXPECT_TRUE(answer.is_success) << answer.response.error_text;
  const auto asked = rig.asked();
  ASSERT_EQ(asked.size(), 2u);
  for (const DeskRequest& one : asked) {
    ASSERT_NE(one.way, nullptr);
    EXPECT_EQ(one.way->proxy, *Proxy::parse("http://p.test:3128"));
  }
  EXPECT_TRUE(asked[0].is_anonymous);
  EXPECT_FALSE(asked[1].is_anonymous) << "the proxy hears nothing of it";
  for (const DeskRequest& one : rig.web.log) {
    if (one.target == "/robots.txt") EXPECT_EQ(one.way, nullptr) << "robots.txt is asked for as the run asks";
  }
  rig.expect_left();
}

TEST(PageFetcher, DoesNotVerifyOnTheWayOfAPageThatSaysSo) {
  FetchRig rig;
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.verifies()) return {.error = Errc::tls, .connected = false};
    return request.url == "https://a.test/" ? reply_leading_to("https://b.test/") : DeskReply{.body = "ok"};
  };
  FetchOrder order{.url = "https://a.test/"};
  order.settings.request.verify_certificate = as_said(false);
  order.settings.request.robots = as_said(false);
  EXPECT_TRUE(rig.fetch(order).is_success);
  for (const DeskRequest& one : rig.asked()) EXPECT_TRUE(one.is_anonymous);
  rig.expect_left();
}

// Other pages, of other projects too, ask it in another way.
TEST(PageFetcher, AHostIsNotBlamedForAPagesOwnWay) {
  struct Case {
    RequestSettings said;
    Errc code;
    bool is_blamed;
  };
  std::vector<Case> cases(5);
  cases[0] = {{.proxy = as_said<std::string>("http://p.test:1")}, Errc::network, false};
  cases[1] = {{.proxy = as_said<std::string>("")}, Errc::network, false};
  cases[2] = {{.connect_timeout = as_said<Duration>(1ms)}, Errc::timeout, false};
  cases[3] = {{.connect_timeout = as_said<Duration>(1ms)}, Errc::dns, true};
  cases[4] = {{.verify_certificate = as_said(false)}, Errc::network, true};
  for (const Case& one : cases) {
    FetchRig rig;
    rig.pages["https://a.test/"] = {.error = one.code, .connected = false};
    FetchOrder order{.url = "https://a.test/", .settings = {.request = one.said}};
    order.settings.request.robots = as_said(false);
    const FetchedAnswer answer = rig.fetch(order);
    EXPECT_FALSE(answer.is_success);
    EXPECT_EQ(answer.sent.error().code, one.code);
    EXPECT_EQ(!rig.desk->look(1).trouble.empty(), one.is_blamed) << &one - cases.data();
    rig.expect_left();
  }
}

TEST(PageFetcher, LeavesTheHostOfAnOrderThatIsWrong) {
  FetchRig rig;
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.method = as_said<std::string>("BREW");
  const FetchedAnswer answer = rig.fetch(order);
  EXPECT_EQ(answer.response.error_kind, "refused");
  EXPECT_EQ(answer.sent.error().code, Errc::invalid_input);
  rig.expect_left();
}

// --- the answer -----------------------------------------------------------------------------------------------------

TEST(PageFetcher, GivesTheAnswerAsItCame) {
  FetchRig rig;
  rig.pages["http://a.test/x"] = {.body = "<p>\xe9",
                                  .fields = {{"Content-Type", "text/html; charset=latin1"},
                                             {"X-A", "1"},
                                             {"x-a", "2"},
                                             {"ETag", "\"e\""},
                                             {"Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"},
                                             {"Set-Cookie", "lang=en; Path=/"},
                                             {"Set-Cookie", "gone=1; Max-Age=0"}}};
  const FetchedAnswer answer = rig.fetch({.url = "http://a.test/x#part"});
  EXPECT_TRUE(answer.is_success);
  EXPECT_TRUE(answer.sent);
  EXPECT_EQ(answer.response.url, "http://a.test/x");
  EXPECT_EQ(answer.response.status, 200);
  EXPECT_EQ(answer.response.headers.size(), 7u);
  EXPECT_THAT(answer.response.cookies, ElementsAre(Pair("lang", "en")));
  EXPECT_EQ(answer.response.encoding, "windows-1252");
  EXPECT_EQ(answer.response.took, 50ms);
  EXPECT_EQ(answer.response.error_kind, "");
  EXPECT_EQ(answer.response.body, "<p>\xe9");
  EXPECT_EQ(answer.etag, "\"e\"");
  EXPECT_EQ(answer.last_modified, "Thu, 01 Jan 2026 00:00:00 GMT");
  rig.expect_left();
}

TEST(PageFetcher, NamesTheEncodingOfTextAlone) {
  struct Case {
    std::string type, body, encoding;
  };
  for (const Case& one : {Case{"text/plain", "a", "UTF-8"}, Case{"application/json; charset=utf-8", "{}", "UTF-8"},
                          Case{"application/rss+xml", "<?xml version='1.0' encoding='koi8-r'?>", "KOI8-R"},
                          Case{"image/png", "\x89PNG", ""}, Case{"application/octet-stream", "text", ""},
                          Case{"", "<!doctype html>", "UTF-8"}, Case{"", "\x89PNG\r\n\x1a\n", ""},
                          Case{"text/plain; charset=shift_jis", "a", "Shift_JIS"}}) {
    FetchRig rig;
    rig.pages["http://a.test/"] = {.body = one.body, .fields = {{"Content-Type", one.type}}};
    EXPECT_EQ(rig.fetch({.url = "http://a.test/"}).response.encoding, one.encoding) << one.type;
  }
}

TEST(PageFetcher, TellsSuccessesFromOtherStatuses) {
  struct Case {
    int status;
    bool is_success, is_unchanged;
    std::string kind, text;
  };
  for (const Case& one :
       {Case{200, true, false, "", ""}, Case{204, true, false, "", ""}, Case{300, true, false, "", ""},
        Case{304, false, false, "status", "HTTP 304, though it was not asked whether it has changed"},
        Case{404, false, false, "status", "HTTP 404 Not Found"},
        Case{500, false, false, "status", "HTTP 500 Internal Server Error"},
        Case{999, false, false, "status", "HTTP 999 Unknown"}}) {
    FetchRig rig;
    rig.pages["http://a.test/"] = {.status = one.status};
    const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
    EXPECT_EQ(answer.is_success, one.is_success) << one.status;
    EXPECT_EQ(answer.is_unchanged, one.is_unchanged) << one.status;
    EXPECT_EQ(answer.response.error_kind, one.kind);
    EXPECT_EQ(answer.response.error_text, one.text);
    EXPECT_EQ(answer.response.status, one.status);
    EXPECT_EQ(answer.retry_after, std::nullopt);
  }
}

TEST(PageFetcher, KnowsThatNothingHasChangedWhereItAsked) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.status = 304};
  const FetchedAnswer answer = rig.fetch({.url = "http://a.test/", .etag = "\"one\""});
  EXPECT_TRUE(answer.is_unchanged);
  EXPECT_EQ(answer.response.error_text, "");
}

TEST(PageFetcher, SaysWhenAServerWantsToBeAskedAgain) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.status = 503, .fields = {{"Retry-After", "90"}}};
  EXPECT_EQ(rig.fetch({.url = "http://a.test/"}).retry_after, 90s);
  EXPECT_EQ(rig.desk->begin(1, *Url::parse("http://a.test/")).until, rig.loop.time() + 90s);
}

TEST(PageFetcher, NamesWhatFailed) {
  struct Case {
    Errc code;
    std::string kind;
  };
  for (const Case& one :
       {Case{Errc::dns, "dns"}, Case{Errc::tls, "tls"}, Case{Errc::timeout, "timeout"}, Case{Errc::network, "network"},
        Case{Errc::protocol, "network"}, Case{Errc::too_large, "too_large"}, Case{Errc::refused, "refused"}}) {
    FetchRig rig;
    rig.pages["http://a.test/"] = {.error = one.code};
    const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
    EXPECT_EQ(answer.response.error_kind, one.kind);
    EXPECT_EQ(answer.response.error_text, "made up");
    EXPECT_EQ(answer.response.status, 0);
    EXPECT_EQ(answer.response.url, "http://a.test/");
    EXPECT_EQ(answer.sent.error().code, one.code);
    EXPECT_FALSE(answer.is_success);
    rig.expect_left();
  }
}

TEST(PageFetcher, DoesNotKeepABodyThatIsTooLarge) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.body = "12345", .truncated = true};
  const FetchedAnswer answer = rig.fetch({.url = "http://a.test/", .body_limit = 5});
  EXPECT_EQ(answer.response.error_kind, "too_large");
  EXPECT_EQ(answer.response.error_text, "the body has more than 5 bytes");
  EXPECT_EQ(answer.response.status, 200);
  EXPECT_EQ(answer.response.body, "");
  EXPECT_FALSE(answer.is_success);
}

TEST(PageFetcher, TakesABodyThatWasCutShortAsFailed) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.body = "123", .damage = "the connection was closed early"};
  const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
  EXPECT_EQ(answer.response.error_kind, "network");
  EXPECT_EQ(answer.response.error_text, "the connection was closed early");
  EXPECT_EQ(answer.response.body, "123");
  EXPECT_FALSE(answer.is_success);
}

TEST(PageFetcher, HasOneTimeoutForAllOfItsWay) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.status = 302, .fields = {{"Location", "/2"}}, .latency = 3s};
  rig.pages["http://a.test/2"] = {.latency = 3s};
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.timeout = as_said<Duration>(5s);
  const FetchedAnswer answer = rig.fetch(order);
  EXPECT_EQ(answer.response.error_kind, "timeout");
  EXPECT_EQ(answer.response.took, 5s);
  EXPECT_EQ(answer.response.status, 0);
  EXPECT_EQ(rig.asked()[1].timeout, 2s);
}

// --- redirects ------------------------------------------------------------------------------------------------------

TEST(PageRedirects, ChangeTheMethodAsBrowsersDo) {
  struct Case {
    int status;
    std::string method, then;
    bool has_body;
  };
  for (const Case& one :
       {Case{301, "POST", "GET", false}, Case{302, "POST", "GET", false}, Case{303, "POST", "GET", false},
        Case{307, "POST", "POST", true}, Case{308, "POST", "POST", true}, Case{301, "PUT", "PUT", true},
        Case{302, "DELETE", "DELETE", true}, Case{303, "PUT", "GET", false}, Case{303, "HEAD", "HEAD", true},
        Case{301, "GET", "GET", true}, Case{308, "PATCH", "PATCH", true}}) {
    SCOPED_TRACE(fmt::format("{} of {}", one.status, one.method));
    FetchRig rig;
    rig.pages["http://a.test/"] = reply_leading_to("/there#part", one.status);
    FetchOrder order{.url = "http://a.test/"};
    order.settings.request.method = as_said(one.method);
    order.settings.request.body = as_said<std::string>("body");
    order.settings.request.headers = {{"X-Kept", as_said<std::string>("1")},
                                      {"Content-Language", as_said<std::string>("en")}};
    const FetchedAnswer answer = rig.fetch(order);
    EXPECT_TRUE(answer.is_success);
    EXPECT_EQ(answer.response.url, "http://a.test/there");
    const auto asked = rig.asked();
    ASSERT_EQ(asked.size(), 2u);
    EXPECT_EQ(to_string(asked[1].method), one.then);
    EXPECT_EQ(asked[1].body, one.has_body ? "body" : "");
    EXPECT_EQ(asked[1].field("X-Kept"), "1");
    EXPECT_EQ(asked[1].field("Content-Type").empty(), !one.has_body);
    EXPECT_EQ(asked[1].field("Content-Language").empty(), !one.has_body);
  }
}

TEST(PageRedirects, EndSomewhere) {
  struct Case {
    std::uint32_t most;
    std::string kind, text;
    std::size_t asked;
    bool is_success;
  };
  for (const Case& one : {Case{0, "", "", 1, true}, Case{1, "redirects", "more than 1 redirect", 2, false},
                          Case{3, "redirects", "more than 3 redirects", 4, false}, Case{4, "", "", 5, true}}) {
    FetchRig rig;
    for (int i = 0; i < 4; ++i) rig.pages[fmt::format("http://a.test/{}", i)] = reply_leading_to(std::to_string(i + 1));
    FetchOrder order{.url = "http://a.test/0"};
    order.settings.request.redirects = as_said(one.most);
    const FetchedAnswer answer = rig.fetch(order);
    EXPECT_EQ(answer.response.error_kind, one.kind) << one.most;
    EXPECT_EQ(answer.response.error_text, one.text);
    EXPECT_EQ(rig.asked().size(), one.asked);
    EXPECT_EQ(answer.is_success, one.is_success);
    EXPECT_EQ(answer.response.status, one.most == 4 ? 200 : 302);
    EXPECT_EQ(answer.response.url, fmt::format("http://a.test/{}", one.asked - 1));
    rig.expect_left();
  }
}

TEST(PageRedirects, LeadToPagesAlone) {
  struct Case {
    std::string location, text;
  };
  for (const Case& one : {Case{"", "HTTP 302 does not say where to"},
                          Case{"mailto:x@y", "redirect to \"mailto:x@y\", which is no http URL"},
                          Case{"data:,x", "redirect to \"data:,x\", which is no http URL"},
                          Case{"http://[", "redirect to \"http://[\", which is no http URL"}}) {
    FetchRig rig;
    rig.pages["http://a.test/"] = reply_leading_to(one.location);
    const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
    EXPECT_EQ(answer.response.error_kind, "redirects");
    EXPECT_EQ(answer.response.error_text, one.text);
    EXPECT_EQ(answer.response.status, 302);
    rig.expect_left();
  }
}

TEST(PageRedirects, TakeNothingThatProvesWhoWeAreToOthers) {
  struct Case {
    std::string from, to;
    bool is_kept;
  };
  for (const Case& one :
       {Case{"http://a.test/", "http://a.test/x", true}, Case{"http://a.test/", "https://a.test/x", true},
        Case{"https://a.test/", "http://a.test/x", false}, Case{"http://a.test/", "http://b.test/", false},
        Case{"http://a.test/", "http://sub.a.test/", false}, Case{"http://a.test/", "http://a.test:81/", false},
        Case{"http://a.test:81/", "https://a.test/", false}}) {
    SCOPED_TRACE(one.from + " to " + one.to);
    FetchRig rig;
    rig.pages[one.from] = reply_leading_to(one.to);
    FetchOrder order{.url = one.from};
    order.settings.request.headers = {{"Authorization", as_said<std::string>("Bearer t")},
                                      {"Cookie", as_said<std::string>("own=1")},
                                      {"X-Other", as_said<std::string>("1")}};
    EXPECT_TRUE(rig.fetch(order).is_success);
    const auto asked = rig.asked();
    ASSERT_EQ(asked.size(), 2u);
    EXPECT_EQ(asked[0].field("Authorization"), "Bearer t");
    EXPECT_EQ(asked[1].field("Authorization"), one.is_kept ? "Bearer t" : "");
    EXPECT_EQ(asked[1].field("Cookie"), one.is_kept ? "own=1" : "");
    EXPECT_EQ(asked[1].field("X-Other"), "1");
  }
}

TEST(PageRedirects, DoNotBringCredentialsBack) {
  FetchRig rig;
  rig.pages["http://a.test/"] = reply_leading_to("http://b.test/");
  rig.pages["http://b.test/"] = reply_leading_to("http://u:p@a.test/home");
  rig.fetch({.url = "http://ann:secret@a.test/"});
  const auto asked = rig.asked();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_NE(asked[0].field("Authorization"), "");
  EXPECT_EQ(asked[1].field("Authorization"), "");
  EXPECT_EQ(asked[2].field("Authorization"), "");
}

TEST(PageRedirects, TakeCookiesAlongThatAreSetOnTheWay) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {
      .status = 302, .fields = {{"Location", "/in"}, {"Set-Cookie", "s=1"}, {"Set-Cookie", "given=changed; Path=/"}}};
  rig.pages["http://a.test/in"] = {.status = 302, .fields = {{"Location", "http://b.test/"}, {"Set-Cookie", "s=2"}}};
  rig.pages["http://b.test/"] = {.status = 200, .fields = {{"Set-Cookie", "b=3"}}};
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.cookies = {{"given", as_said<std::string>("0")}, {"also", as_said<std::string>("1")}};
  const FetchedAnswer answer = rig.fetch(order);
  const auto asked = rig.asked();
  EXPECT_EQ(asked[0].field("Cookie"), "given=0; also=1");
  EXPECT_EQ(asked[1].field("Cookie"), "given=changed; also=1; s=1");
  EXPECT_EQ(asked[2].field("Cookie"), "");
  EXPECT_THAT(answer.response.cookies,
              testing::UnorderedElementsAre(Pair("given", "changed"), Pair("s", "2"), Pair("b", "3")));
}

TEST(PageRedirects, UseAndFillTheProjectsCookies) {
  FetchRig rig;
  CookieJar jar;
  const WallTime now = rig.loop.clock().wall_now();
  jar.put({.name = "kept", .value = "1", .domain = "a.test"}, now);
  jar.put({.name = "own", .value = "jar", .domain = "a.test"}, now);
  rig.pages["http://a.test/"] = {.fields = {{"Set-Cookie", "new=2"}}};
  FetchOrder order{.url = "http://a.test/", .jar = &jar};
  order.settings.request.cookies = {{"own", as_said<std::string>("page")}};
  rig.fetch(order);
  rig.fetch({.url = "http://a.test/", .jar = &jar});
  const auto asked = rig.asked();
  EXPECT_EQ(asked[0].field("Cookie"), "own=page; kept=1");
  EXPECT_EQ(asked[1].field("Cookie"), "kept=1; own=jar; new=2");
}

TEST(PageRedirects, AskTheNextHostsPolitely) {
  FetchRig rig;
  rig.pages["http://a.test/"] = reply_leading_to("http://b.test/x");
  rig.pages["http://b.test/robots.txt"] = {.body = "User-agent: *\nCrawl-delay: 5\n"};
  rig.pages["http://b.test/x"] = reply_leading_to("/y");
  const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
  EXPECT_TRUE(answer.is_success);
  const auto there = rig.web.of("http://b.test");
  ASSERT_EQ(there.size(), 3u);
  EXPECT_EQ(there[0].target, "/robots.txt");
  EXPECT_EQ(there[1].at - there[0].ended, 5s);
  EXPECT_EQ(there[2].at - there[1].ended, 5s);
  EXPECT_EQ(answer.response.took, there[2].ended - rig.asked()[0].at);
  rig.expect_left();
}

TEST(PageRedirects, EndWhereAHostMayNotBeAsked) {
  struct Case {
    const char* name;
    DeskReply robots;
    std::string kind, text;
  };
  for (const Case& one :
       {Case{"forbidden", {.body = "User-agent: *\nDisallow: /\n"}, "robots", "http://b.test: robots.txt forbids it"},
        Case{"lost", {.error = Errc::dns, .connected = false}, "dns", "made up"},
        Case{"late", {.body = "User-agent: *\nCrawl-delay: 500\n"}, "timeout", "http://b.test: rests for"}}) {
    SCOPED_TRACE(one.name);
    FetchRig rig;
    rig.pages["http://a.test/"] = reply_leading_to("http://b.test/");
    rig.pages["http://b.test/robots.txt"] = one.robots;
    const FetchedAnswer answer = rig.fetch({.url = "http://a.test/"});
    EXPECT_EQ(answer.response.error_kind, one.kind);
    EXPECT_THAT(answer.response.error_text, HasSubstr(one.text));
    EXPECT_EQ(answer.response.status, 0);
    EXPECT_EQ(answer.response.url, "http://b.test/");
    EXPECT_FALSE(answer.sent);
    EXPECT_LE(answer.response.took, 120s);
    rig.expect_left();
  }
}

TEST(PageRedirects, MayBeToldNotToHeedRobots) {
  FetchRig rig;
  rig.pages["http://a.test/"] = reply_leading_to("http://b.test/");
  rig.pages["http://b.test/robots.txt"] = {.body = "User-agent: *\nDisallow: /\n"};
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.robots = as_said(false);
  EXPECT_TRUE(rig.fetch(order).is_success);
  EXPECT_EQ(rig.web.count("/robots.txt"), 0u);
}

TEST(PageFetcher, AsksAgainWhenAServerHasToldHow) {
  FetchRig rig;
  int asked = 0;
  rig.web.reply = [&](const DeskRequest&) -> DeskReply {
    return ++asked < 3 ? DeskReply{.status = 401, .challenged = HttpChallenged::again} : DeskReply{};
  };
  FetchOrder order{.url = "http://a.test/"};
  order.settings.request.robots = as_said(false);
  EXPECT_TRUE(rig.fetch(order).is_success);
  ASSERT_EQ(rig.web.log.size(), 3u);
  EXPECT_GE(rig.web.log[1].at - rig.web.log[0].at, 200ms);
  rig.web.reply = [&](const DeskRequest&) -> DeskReply { return {.status = 401, .challenged = HttpChallenged::again}; };
  EXPECT_EQ(rig.fetch(order).response.error_kind, "status");
  EXPECT_EQ(rig.web.log.size(), 7u);
}

// Whatever is cancelled, and when: no host stays entered, and none is asked sooner for it.
struct CancelledFetch {
  Coro<void> run() {
    EventLoop& loop = EventLoop::current();
    options.autothrottle = false;
    options.delay = 1s;
    web.reply = [](const DeskRequest& request) -> DeskReply {
      if (request.target == "/robots.txt") return {.status = 404};
      if (request.url == "http://a.test/") return reply_leading_to("http://b.test/");
      if (request.url == "http://b.test/") return reply_leading_to("/2");
      return {};
    };
    desk.emplace(options, loop, web, nullptr, 1);
    // Outlives what the desk asks itself.
    loop.create_task([](HostDesk& open) -> Coro<void> {
      co_await sleep(1h);
      co_await open.close();
    }(*desk));
    const Url url = *Url::parse("http://a.test/");
    order.url = url.href();
    const auto entered = co_await desk->enter(hosts(url), url, true, kNever);
    EXPECT_EQ(entered.leave, Leave::go);
    const FetchedAnswer answer = co_await fetch_page(order, web, *desk, std::ref(hosts));
    EXPECT_TRUE(answer.is_success);
  }
  void check() {
    if (!desk) return;
    for (std::uint32_t host = 1; host <= 2; ++host) EXPECT_EQ(desk->look(host).under_way, 0u);
    EXPECT_EQ(web.under_way, 0u);
  }

  CrawlOptions options;
  DeskWeb web;
  DeskHosts hosts;
  FetchOrder order;
  std::optional<HostDesk> desk;
};

TEST(PageFetcher, LeavesWhatItHasEnteredWhereverItIsCancelled) { EXPECT_GT(sweep_cancellation<CancelledFetch>(), 10u); }

TEST(PageFetcher, KeepsTheDistanceToARequestThatWasCancelled) {
  FetchRig rig;
  rig.pages["http://a.test/"] = {.latency = 10s};
  rig.run([&]() -> Coro<void> {
    FetchOrder order{.url = "http://a.test/"};
    EXPECT_EQ((co_await rig.begun(order.url, false)).leave, Leave::go);
    auto task = rig.loop.create_task(fetch_page(order, rig.web, *rig.desk, std::ref(rig.hosts)));
    co_await sleep(50ms);
    task.cancel();
    co_await sleep(0ms);
    co_await sleep(0ms);
    EXPECT_EQ((co_await rig.begun(order.url, false)).leave, Leave::go);
    EXPECT_EQ(rig.loop.time() - rig.web.log[0].at, 200ms);
    rig.desk->give_back(1);
  });
}

// Callers whose pages lead from host to host, some of which are cancelled on their way, in orders drawn from a seed.
TEST(PageFetcher, KeepsEachHostsLimitsWhereverPagesLead) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    FetchRig rig;
    rig.options.hosts.push_back({.match = {"h1.test"}, .delay = 900ms});
    rig.options.hosts.push_back({.match = {"h2.test"}, .rate = 8, .per_host = 3});
    rig.open();
    rig.loop.shuffle_ready_tasks(Random{seed});
    Random random(seed);
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      if (request.target == "/robots.txt") return {.status = 404, .latency = 20ms};
      DeskReply reply = random.chance(0.5)
                            ? reply_leading_to(fmt::format("http://h{}.test/{}", random.below(3), rig.web.log.size()))
                            : DeskReply{};
      reply.latency = std::chrono::milliseconds{random.between(1, 700)};
      if (random.chance(0.05)) reply.error = Errc::network;
      return reply;
    };
    std::size_t ended = 0;
    rig.run([&]() -> Coro<void> {
      std::vector<Task<void>> tasks;
      for (int i = 0; i < 60; ++i) {
        tasks.push_back(rig.loop.create_task([](FetchRig& own, std::string url, std::size_t& count) -> Coro<void> {
          struct Counts {
            std::size_t& count;
            ~Counts() { ++count; }
          } const counts{count};
          if ((co_await own.begun(url)).leave != Leave::go) co_return;
          FetchOrder order{.url = url};
          co_await fetch_page(order, own.web, *own.desk, std::ref(own.hosts));
        }(rig, fmt::format("http://h{}.test/", i % 3), ended)));
      }
      while (ended < tasks.size()) {
        co_await sleep(std::chrono::milliseconds{random.between(1, 300)});
        Task<void>& unlucky = tasks[random.below(tasks.size())];
        if (!unlucky.done() && random.chance(0.1)) unlucky.cancel();
        EXPECT_LT(rig.loop.time().time_since_epoch(), 1h) << "somebody waits for ever";
        if (rig.loop.time().time_since_epoch() >= 1h) break;
      }
      co_await rig.desk->close();
      rig.expect_left();
    });
    for (int host = 0; host < 3; ++host) {
      const auto there = rig.web.of(fmt::format("http://h{}.test", host));
      EXPECT_GT(there.size(), 10u);
      for (std::size_t i = 1; i < there.size(); ++i) {
        EXPECT_GE(there[i].at - there[i - 1].at, host == 0 ? 200ms : host == 2 ? 125ms : 0ms) << host;
        // Those that were cancelled have no end of their own.
        if (host == 1 && there[i - 1].ended != kNever) {
          EXPECT_GE(there[i].at - there[i - 1].ended, 900ms);
        }
      }
    }
  }
}

// --- data: URLs -----------------------------------------------------------------------------------------------------

TEST(DataUrl, IsItsOwnAnswer) {
  struct Case {
    std::string url, type, body, encoding;
  };
  for (const Case& one : {
           Case{"data:,on_start", "text/plain;charset=US-ASCII", "on_start", "UTF-8"},
           Case{"data:,", "text/plain;charset=US-ASCII", "", "UTF-8"},
           Case{"DATA:text/html,<b>%41%zz%2", "text/html", "<b>A%zz%2", "UTF-8"},
           Case{"data:text/html;charset=latin1,%e9", "text/html;charset=latin1", "\xe9", "windows-1252"},
           Case{"data:;charset=utf-8,%C3%A9", "text/plain;charset=utf-8", "é", "UTF-8"},
           Case{"data:,é#part,more", "text/plain;charset=US-ASCII", "é", "UTF-8"},
           Case{"data:a,b,c", "text/plain;charset=US-ASCII", "b,c", "UTF-8"},
           Case{"data:;base64,aGk=", "text/plain;charset=US-ASCII", "hi", "UTF-8"},
           Case{"data:image/gif; BASE64,R0lG", "image/gif", "GIF", ""},
           Case{"data:text/plain;base64,a G%6b\n", "text/plain", "hi", "UTF-8"},
           Case{"data:text/plain;base64,aGk", "text/plain", "hi", "UTF-8"},
           Case{"data:text/plain;base64,aGl", "text/plain", "hi", "UTF-8"},
           Case{"data:text/plain;base64,aR==", "text/plain", "i", "UTF-8"},
           Case{"data:text/plain;base64,", "text/plain", "", "UTF-8"},
           Case{"data:text/plainbase64,aGk=", "text/plainbase64", "aGk=", "UTF-8"},
           Case{"data:application/json,{}", "application/json", "{}", "UTF-8"},
       }) {
    const PageResponse response = answer_of_data_url(one.url);
    EXPECT_EQ(response.error_kind, "") << one.url << response.error_text;
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.url, one.url);
    EXPECT_THAT(response.headers, ElementsAre(Pair("Content-Type", one.type))) << one.url;
    EXPECT_EQ(response.body, one.body) << one.url;
    EXPECT_EQ(response.encoding, one.encoding) << one.url;
  }
}

TEST(DataUrl, ThatIsNoneIsRefused) {
  for (const std::string_view url :
       {"data:", "data:text/html", "data:text/html#,x", "data:;base64,a", "data:;base64,a===", "data:;base64,a=bc",
        "data:;base64,aGk=aGk=", "data:;base64,a?b=", "http://a.test/"}) {
    const PageResponse response = answer_of_data_url(url);
    EXPECT_EQ(response.error_kind, "refused") << url;
    EXPECT_NE(response.error_text, "");
    EXPECT_EQ(response.status, 0);
    EXPECT_EQ(response.body, "");
  }
}

TEST(DataUrl, IsFetchedWithoutAHost) {
  FetchRig rig;
  const FetchedAnswer answer = rig.fetch({.url = "data:,hello"});
  EXPECT_TRUE(answer.is_success);
  EXPECT_EQ(answer.response.body, "hello");
  EXPECT_TRUE(rig.web.log.empty());
  EXPECT_FALSE(rig.fetch({.url = "data:hello"}).sent);
}

}  // namespace
}  // namespace argiope

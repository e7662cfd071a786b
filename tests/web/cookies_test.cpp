// The jar, dates and cookies.txt. Tests named Rfc6265 check a clause of that RFC (its number is above them), those
// named Rfc6265bis what its successor adds, those named CookieChoice what is our own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "argiope/web/http_session.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/session/cookie_date.hpp"
#include "web/url/internal/public_suffix.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kCookieNow{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

Url cookie_url(std::string_view text) { return *Url::parse(text); }

// A jar, and a clock that stands until it is moved.
struct JarAt {
  CookieJar jar;
  WallTime now = kCookieNow;

  bool take(std::string_view url, std::string_view field) { return jar.take(cookie_url(url), field, now); }
  std::string sent(std::string_view url) { return jar.field_for(cookie_url(url), now); }
};

// What is sent to `to` when an answer of `from` has said `field`.
std::string sent_back(std::string_view from, std::string_view field, std::string_view to) {
  JarAt at;
  at.take(from, field);
  return at.sent(to);
}
std::string sent_back(std::string_view field) {
  return sent_back("https://www.example.org/dir/page", field, "https://www.example.org/dir/other");
}

std::string date_of(std::string_view text) {
  const auto date = parse_cookie_date(text);
  return date ? format_http_date(*date) : "";
}

// --- the examples of section 3.1

TEST(Rfc6265, ASessionCookieIsReturnedUntilItIsRemoved) {
  JarAt at;
  EXPECT_TRUE(at.take("http://example.com/", "SID=31d4d96e407aad42"));
  EXPECT_EQ(at.sent("http://example.com/any/path"), "SID=31d4d96e407aad42");
}

TEST(Rfc6265, PathAndDomainDecideWhereACookieGoes) {
  JarAt at;
  at.take("https://site.example.com/", "SID=31d4d96e407aad42; Path=/; Domain=example.com");
  EXPECT_EQ(at.sent("https://example.com/"), "SID=31d4d96e407aad42");
  EXPECT_EQ(at.sent("https://other.site.example.com/"), "SID=31d4d96e407aad42");
  EXPECT_EQ(at.sent("https://notexample.com/"), "");
}

TEST(Rfc6265, SeveralCookiesAreSentInOneField) {
  JarAt at;
  at.take("https://example.com/", "SID=31d4d96e407aad42; Path=/; Secure; HttpOnly");
  at.take("https://example.com/", "lang=en-US; Path=/; Domain=example.com");
  EXPECT_EQ(at.sent("https://example.com/"), "SID=31d4d96e407aad42; lang=en-US");
  EXPECT_TRUE(at.take("https://example.com/", "lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Domain=example.com"));
  EXPECT_EQ(at.sent("https://example.com/"), "SID=31d4d96e407aad42");
}

TEST(Rfc6265, ALifeEndsAtItsTime) {
  JarAt at;
  at.take("https://example.com/", "lang=en-US; Expires=Fri, 09 Jan 2026 10:18:14 GMT");
  at.now += 8 * 24h + 10h;
  EXPECT_EQ(at.sent("https://example.com/"), "lang=en-US");
  at.now += 1h;
  EXPECT_EQ(at.sent("https://example.com/"), "");
  EXPECT_TRUE(at.jar.empty()) << "what has expired takes no room";
}

// 5.1.1
TEST(Rfc6265, DatesAreReadWhateverOrderAndDelimitersTheyHave) {
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "1994 nov 6 8:49:37", "08:49:37 november-06/94", "06th of November (94), 08:49:37 +0200"}) {
    EXPECT_EQ(date_of(text), "Sun, 06 Nov 1994 08:49:37 GMT") << text;
  }
  EXPECT_EQ(date_of("1 Jan 69 0:0:0"), "Tue, 01 Jan 2069 00:00:00 GMT");
  EXPECT_EQ(date_of("1 Jan 70 0:0:0"), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST(Rfc6265, WhatIsNoDateIsIgnored) {
  for (const char* text : {"", "tomorrow", "6 Nov 1994", "Nov 1994 08:49:37", "6 1994 08:49:37", "6 Nov 08:49:37",
                           "32 Jan 2026 0:0:0", "30 Feb 2026 0:0:0", "1 Jan 1600 0:0:0", "1 Jan 2026 24:0:0",
                           "1 Jan 2026 0:60:0", "1 Jan 2026 0:0:60", "1 Jan 2026 0:0:000", "1 Jan 12026 0:0:0"}) {
    EXPECT_EQ(date_of(text), "") << text;
  }
  EXPECT_EQ(sent_back("a=b; Expires=tomorrow"), "a=b") << "it then ends with the session";
}

TEST(CookieChoice, ADateBeyondWhatAClockCanShowIsTheNearestOne) {
  EXPECT_EQ(parse_cookie_date("1 Jan 9999 0:0:0"), WallTime::max());
  EXPECT_EQ(parse_cookie_date("1 Jan 1601 0:0:0"), WallTime::min());
}

// 5.1.3
TEST(Rfc6265, AHostGetsNoCookieOfAnother) {
  constexpr std::string_view kFrom = "https://www.example.org/";
  EXPECT_EQ(sent_back(kFrom, "a=b", "https://example.org/"), "") << "without Domain it is the host's alone";
  EXPECT_EQ(sent_back(kFrom, "a=b", "https://x.www.example.org/"), "");
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=example.org", "https://x.example.org/"), "a=b");
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=.EXAMPLE.org", "https://example.org/"), "a=b");
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=xample.org", kFrom), "") << "a part of a label is no domain";
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=x.www.example.org", kFrom), "") << "nor may a host speak for those below it";
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=example.net", "https://example.net/"), "");
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=..example.org", kFrom), "");
  EXPECT_EQ(sent_back(kFrom, "a=b; Domain=", "https://x.www.example.org/"), "") << "an empty one is none";
}

TEST(Rfc6265, AddressesHaveNoSubdomains) {
  EXPECT_EQ(sent_back("http://192.0.2.1/", "a=b; Domain=192.0.2.1", "http://192.0.2.1:8080/"), "a=b");
  EXPECT_EQ(sent_back("http://192.0.2.1/", "a=b; Domain=2.1", "http://192.0.2.1/"), "");
  EXPECT_EQ(sent_back("http://192.0.2.1/", "a=b; Domain=0.2.1", "http://192.0.2.1/"), "");
  EXPECT_EQ(sent_back("http://[2001:db8::1]/", "a=b", "http://[2001:db8::1]/"), "a=b");
}

TEST(Rfc6265, APortIsNoPartOfAHost) {
  EXPECT_EQ(sent_back("http://example.org:8080/", "a=b", "http://example.org/"), "a=b");
}

// 5.1.4
TEST(Rfc6265, APathIsThatOfTheCookieOrBelowIt) {
  const auto sent_below = [](std::string_view path, std::string_view to) {
    return sent_back("https://e.org/x", "a=b; Path=" + std::string(path), "https://e.org" + std::string(to)) == "a=b";
  };
  EXPECT_TRUE(sent_below("/foo", "/foo"));
  EXPECT_TRUE(sent_below("/foo", "/foo/bar"));
  EXPECT_TRUE(sent_below("/foo/", "/foo/bar"));
  EXPECT_TRUE(sent_below("/foo", "/foo?bar"));
  EXPECT_FALSE(sent_below("/foo", "/foobar"));
  EXPECT_FALSE(sent_below("/foo/", "/foo"));
  EXPECT_FALSE(sent_below("/foo", "/"));
  EXPECT_FALSE(sent_below("/foo", "/FOO"));
}

TEST(Rfc6265, WithoutAPathTheFolderOfThePageIsOne) {
  const auto sent_to = [](std::string_view from, std::string_view field, std::string_view to) {
    return sent_back("https://e.org" + std::string(from), field, "https://e.org" + std::string(to)) == "a=b";
  };
  EXPECT_TRUE(sent_to("/dir/page", "a=b", "/dir/other"));
  EXPECT_TRUE(sent_to("/dir/page", "a=b", "/dir"));
  EXPECT_FALSE(sent_to("/dir/page", "a=b", "/"));
  EXPECT_TRUE(sent_to("/page", "a=b", "/"));
  EXPECT_TRUE(sent_to("/dir/page?q=/a/b", "a=b; Path=relative", "/dir/")) << "what is no path is none";
  EXPECT_FALSE(sent_to("/dir/page", "a=b; Path=", "/other"));
}

// 5.2, 5.3
TEST(Rfc6265, TheLastOfAnAttributeCountsAndMaxAgeBeforeExpires) {
  EXPECT_EQ(sent_back("a=b; Path=/x; Path=/dir"), "a=b");
  EXPECT_EQ(sent_back("a=b; Max-Age=0; Max-Age=10"), "a=b");
  EXPECT_EQ(sent_back("a=b; Max-Age=10; Expires=Sun, 06 Nov 1994 08:49:37 GMT"), "a=b");
  EXPECT_EQ(sent_back("a=b; Expires=Sun, 06 Nov 2050 08:49:37 GMT; Max-Age=0"), "");
  EXPECT_EQ(sent_back("a=b; Max-Age=-1"), "");
  EXPECT_EQ(sent_back("a=b; Max-Age=-99999999999999999999"), "");
  EXPECT_EQ(sent_back("a=b; Max-Age=99999999999999999999"), "a=b");
  EXPECT_EQ(sent_back("a=b; Max-Age=1e3; Max-Age=+5; Max-Age="), "a=b") << "what is no number is passed over";
}

TEST(Rfc6265, ACookieThatIsKnownKeepsItsPlace) {
  JarAt at;
  at.take("https://e.org/", "a=1");
  at.now += 1s;
  at.take("https://e.org/", "b=2");
  EXPECT_TRUE(at.take("https://e.org/", "a=3"));
  EXPECT_FALSE(at.take("https://e.org/", "a=3; Max-Age=100")) << "nothing else is sent than before";
  EXPECT_EQ(at.sent("https://e.org/"), "a=3; b=2");
}

// 5.4
TEST(Rfc6265, LongerPathsComeFirst) {
  JarAt at;
  at.take("https://e.org/a/b/c", "x=1; Path=/");
  at.take("https://e.org/a/b/c", "x=2; Path=/a/b");
  at.take("https://e.org/a/b/c", "x=3; Path=/a");
  at.take("https://e.org/a/b/c", "y=4; Path=/a");
  EXPECT_EQ(at.sent("https://e.org/a/b/c"), "x=2; x=3; y=4; x=1");
}

TEST(Rfc6265, ASecureCookieIsNotSentInTheClear) {
  EXPECT_EQ(sent_back("https://e.org/", "a=b; Secure", "https://e.org/"), "a=b");
  EXPECT_EQ(sent_back("https://e.org/", "a=b; Secure", "http://e.org/"), "");
  EXPECT_EQ(sent_back("https://e.org/", "a=b", "http://e.org/"), "a=b");
}

// 5.3, step 5
TEST(Rfc6265, NobodySetsACookieForAPublicSuffix) {
  for (const auto& [host, domain] : {std::pair{"www.example.com", "com"},
                                     {"www.example.co.uk", "co.uk"},
                                     {"ann.github.io", "github.io"},
                                     {"a.example.xn--p1ai", "xn--p1ai"},
                                     {"a.intranet", "intranet"},
                                     {"www.example.com.", "com."}}) {
    const std::string url = "https://" + std::string(host) + "/";
    EXPECT_EQ(sent_back(url, "a=b; Domain=" + std::string(domain), url), "") << domain;
  }
  EXPECT_EQ(sent_back("https://github.io/", "a=b; Domain=github.io", "https://github.io/"), "a=b") << "it is its own";
  EXPECT_EQ(sent_back("https://github.io/", "a=b; Domain=github.io", "https://ann.github.io/"), "");
  EXPECT_EQ(sent_back("http://localhost/", "a=b; Domain=localhost", "http://localhost:8080/"), "a=b");
}

TEST(Rfc6265, InternationalHostsAreComparedInAscii) {
  EXPECT_EQ(sent_back("https://www.b\xc3\xbc"
                      "cher.example/",
                      "a=b; Domain=xn--bcher-kva.example", "https://xn--bcher-kva.example/"),
            "a=b");
  // RFC 6265bis, 5.7, step 8
  EXPECT_EQ(sent_back("https://xn--bcher-kva.example/",
                      "a=b; Domain=b\xc3\xbc"
                      "cher.example",
                      "https://xn--bcher-kva.example/"),
            "");
}

// --- what RFC 6265bis adds

// 5.6
TEST(Rfc6265bis, ACookieMayLackANameOrAValueButNotBoth) {
  EXPECT_EQ(sent_back("foo"), "foo");
  EXPECT_EQ(sent_back("=foo"), "foo");
  EXPECT_EQ(sent_back("foo="), "foo=");
  EXPECT_EQ(sent_back("="), "");
  EXPECT_EQ(sent_back("; Path=/"), "");
  EXPECT_EQ(sent_back(" a b = c d ; Secure"), "a b=c d");
  EXPECT_EQ(sent_back("a=\"b; c\""), "a=\"b") << "quotes mean nothing";
  EXPECT_EQ(sent_back("a=b=c"), "a=b=c");
  EXPECT_EQ(sent_back("a=%00%3b"), "a=%00%3b") << "nor do percent signs";
}

TEST(Rfc6265bis, AFieldWithControlCharactersIsIgnoredWhole) {
  for (const char c : {'\1', '\b', '\n', '\v', '\r', '\x1f', '\x7f'}) {
    EXPECT_EQ(sent_back(std::string("a=b") + c + "c"), "") << static_cast<int>(c);
    EXPECT_EQ(sent_back(std::string("a=b; Path=/dir; x=") + c), "") << static_cast<int>(c);
  }
  EXPECT_EQ(sent_back(std::string("a=b\0c", 5)), "");
  EXPECT_EQ(sent_back("\ta=b\tc\t"), "a=b\tc");
}

TEST(Rfc6265bis, NameAndValueAreAtMost4096Bytes) {
  EXPECT_EQ(sent_back("a=" + std::string(4095, 'x')).size(), 4097u);
  EXPECT_EQ(sent_back("a=" + std::string(4096, 'x')), "");
  EXPECT_EQ(sent_back(std::string(4097, 'x')), "");
}

TEST(Rfc6265bis, AnAttributeOfMoreThan1024BytesIsPassedOver) {
  EXPECT_EQ(sent_back("a=b; Path=/dir; Path=/" + std::string(1024, 'x')), "a=b");
  EXPECT_EQ(sent_back("a=b; Domain=example.org; Domain=" + std::string(1025, 'x')), "a=b");
}

// 5.5
TEST(Rfc6265bis, NoLifeIsLongerThan400Days) {
  for (const char* life : {"Max-Age=99999999999", "Expires=Fri, 31 Dec 9999 23:59:59 GMT"}) {
    JarAt at;
    at.take("https://e.org/", std::string("a=b; ") + life);
    at.now += 399 * 24h;
    EXPECT_EQ(at.sent("https://e.org/"), "a=b") << life;
    at.now += 25h;
    EXPECT_EQ(at.sent("https://e.org/"), "") << life;
  }
}

// 5.4, 5.7, steps 20 to 22
TEST(Rfc6265bis, ANameWithAPromiseIsTakenOnlyIfTheCookieKeepsIt) {
  const auto taken = [](std::string_view field, std::string_view from = "https://site.example/x") {
    JarAt at;
    return at.take(from, field);
  };
  EXPECT_TRUE(taken("__Secure-SID=12345; Secure; Domain=site.example"));
  EXPECT_TRUE(taken("__SECURE-SID=12345; Secure"));
  EXPECT_FALSE(taken("__Secure-SID=12345"));
  EXPECT_FALSE(taken("__secure-SID=12345; Domain=site.example"));
  EXPECT_FALSE(taken("__Secure-SID=12345; Secure", "http://site.example/"));
  EXPECT_TRUE(taken("__Host-SID=12345; Secure; Path=/"));
  EXPECT_TRUE(taken("__host-SID=12345; Secure; Path=/"));
  EXPECT_FALSE(taken("__Host-SID=12345; Secure")) << "without the attribute";
  EXPECT_FALSE(taken("__Host-SID=12345; Path=/"));
  EXPECT_FALSE(taken("__Host-SID=12345; Secure; Path=/x"));
  EXPECT_FALSE(taken("__Host-SID=12345; Secure; Domain=site.example; Path=/"));
  EXPECT_FALSE(taken("__Secure-x; Secure")) << "a value must not look like such a name";
  EXPECT_FALSE(taken("=__Host-x=y; Secure; Path=/"));
}

// 5.7, step 16
TEST(Rfc6265bis, WhatComesInTheClearOverlaysNoSecureCookie) {
  JarAt at;
  at.take("https://www.example.org/", "a=1; Secure; Path=/login; Domain=example.org");
  EXPECT_FALSE(at.take("http://www.example.org/", "a=2; Path=/login"));
  EXPECT_FALSE(at.take("http://www.example.org/", "a=2; Path=/login/en; Domain=www.example.org"));
  EXPECT_FALSE(at.take("https://www.example.org/", "a=1; Secure; Path=/login; Domain=example.org"));
  EXPECT_TRUE(at.take("http://www.example.org/", "a=3; Path=/"));
  EXPECT_TRUE(at.take("http://www.example.org/", "b=4; Path=/login"));
  EXPECT_TRUE(at.take("https://www.example.org/", "a=5; Path=/login"));
}

TEST(Rfc6265bis, WhatIsAboutPagesInPagesIsPassedOver) {
  EXPECT_EQ(sent_back("a=b; SameSite=Strict; Priority=High; Partitioned; Unknown=1"), "a=b");
  EXPECT_EQ(sent_back("a=b; SameSite=None"), "a=b");
}

// --- what is our own

TEST(CookieChoice, ThisMachineIsAsGoodAsTls) {
  for (const char* url : {"http://localhost:8080/", "http://app.localhost/", "http://127.0.0.1/", "http://[::1]/"}) {
    EXPECT_EQ(sent_back(url, "a=b; Secure", url), "a=b") << url;
  }
}

TEST(CookieChoice, OtherSchemesHaveNoCookies) {
  EXPECT_EQ(sent_back("ftp://e.org/", "a=b", "ftp://e.org/"), "");
  EXPECT_EQ(sent_back("https://e.org/", "a=b", "ftp://e.org/"), "");
}

TEST(CookieChoice, ASiteHasRoomForSomeAndThoseUsedLongestAgoGo) {
  CookieJar jar(CookieLimits{.cookies_per_site = 3});
  const Url page = cookie_url("https://www.e.org/");
  WallTime now = kCookieNow;
  jar.take(page, "a=1; Secure; Path=/x", now);
  for (const char* field : {"b=2; Path=/", "c=3; Domain=e.org; Path=/", "d=4; Path=/"})
    jar.take(page, field, now += 1s);
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(jar.field_for(page, now), "c=3; d=4") << "b has gone: a is secure, whenever it was used";
  jar.take(page, "e=5; Max-Age=5", now += 1s);
  EXPECT_EQ(jar.field_for(page, now), "d=4; e=5");
  jar.take(page, "f=6", now += 10s);
  EXPECT_EQ(jar.field_for(page, now), "d=4; f=6") << "what has expired goes first";
  jar.take(cookie_url("https://other.org/"), "g=7", now);
  EXPECT_EQ(jar.size(), 4u) << "another site has room of its own";
}

TEST(CookieChoice, InAllTheSiteUsedLongestAgoGivesWay) {
  CookieJar jar(CookieLimits{.cookies = 3});
  WallTime now = kCookieNow;
  for (const char* url : {"https://a.org/", "https://b.org/", "https://c.org/"})
    jar.take(cookie_url(url), "x=1", now += 1s);
  EXPECT_EQ(jar.field_for(cookie_url("https://a.org/"), now += 1s), "x=1");
  jar.take(cookie_url("https://d.org/"), "x=1", now += 1s);
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(jar.field_for(cookie_url("https://b.org/"), now), "");
  EXPECT_EQ(jar.field_for(cookie_url("https://a.org/"), now), "x=1");
}

TEST(CookieChoice, BytesAreBoundedToo) {
  CookieJar jar(CookieLimits{.bytes_per_site = 20'000, .bytes = 50'000});
  WallTime now = kCookieNow;
  for (int site = 0; site < 10; ++site) {
    for (int i = 0; i < 20; ++i) {
      const Url url = cookie_url("https://h" + std::to_string(site) + ".org/");
      jar.take(url, "n" + std::to_string(i) + "=" + std::string(2000, 'x'), now += 1s);
      EXPECT_LE(jar.field_for(url, now).size(), 20'000u);
    }
  }
  EXPECT_LE(jar.size(), 25u);
  EXPECT_GE(jar.size(), 15u);
  CookieJar tiny(CookieLimits{.bytes = 100});
  EXPECT_TRUE(tiny.take(cookie_url("https://e.org/"), "a=" + std::string(200, 'x'), now));
  EXPECT_TRUE(tiny.empty());
}

TEST(CookieChoice, ARequestHasNoMoreThanServersRead) {
  JarAt at;
  at.take("http://example.com/", "session=1");
  for (int i = 0; i < 100; ++i)
    at.take("http://example.com/", "seen" + std::to_string(i) + '=' + std::string(500, 'v'));
  at.take("http://example.com/", "late=2");
  const std::string sent = at.sent("http://example.com/");
  EXPECT_TRUE(sent.starts_with("session=1; seen0=v"));
  EXPECT_TRUE(sent.ends_with("; late=2"));
  EXPECT_GT(sent.size(), 7000u);
  EXPECT_LE(sent.size(), 8000u);
}

TEST(CookieChoice, WhatHasChangedIsToldOncePerSite) {
  JarAt at;
  at.take("https://www.a.org/", "x=1");
  at.jar.watch();
  EXPECT_TRUE(at.jar.take_changes(at.now).empty());
  at.take("https://www.a.org/", "y=2; Domain=a.org");
  at.take("https://other.a.org/", "z=3; Max-Age=100000");
  at.take("https://b.org/", "x=1");
  auto changes = at.jar.take_changes(at.now);
  ASSERT_EQ(changes.size(), 2u);
  if (changes[0].first != "a.org") std::swap(changes[0], changes[1]);
  EXPECT_EQ(changes[0].first, "a.org");
  EXPECT_EQ(changes[0].second.size(), 3u) << "all that the site has";
  EXPECT_EQ(changes[1].first, "b.org");
  at.now += 10s;
  at.take("https://other.a.org/", "z=3; Max-Age=100000");
  EXPECT_TRUE(at.jar.take_changes(at.now).empty()) << "a life that is a little longer is no change";
  at.take("https://b.org/", "x=; Max-Age=0");
  changes = at.jar.take_changes(at.now);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].second.empty()) << "it has none any more";
}

TEST(CookieChoice, ACookieFromElsewhereMustBeOneThatAServerMightHaveSet) {
  CookieJar jar;
  const Cookie good{.name = "a", .value = "b", .domain = "e.org"};
  EXPECT_TRUE(jar.put(good, kCookieNow));
  const auto put_with = [&](auto change) {
    Cookie cookie = good;
    change(cookie);
    return jar.put(cookie, kCookieNow);
  };
  EXPECT_FALSE(put_with([](Cookie& c) { c.expires = kCookieNow; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.value = "b\r\nEvil: c"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.value = "b; c=d"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.name = "a=b"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.domain = "E.org"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.domain = "e.org/x"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.domain = ""; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.path = "x"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.domain = "co.uk", c.host_only = false; }));
  EXPECT_TRUE(put_with([](Cookie& c) { c.domain = "co.uk"; }));
  EXPECT_FALSE(put_with([](Cookie& c) { c.name = "__Host-a"; }));
  EXPECT_EQ(jar.size(), 2u);
}

// --- cookies.txt

TEST(CookiesTxt, ReadsWhatCurlAndWgetWrite) {
  const auto cookies = parse_cookies_txt(
      "# Netscape HTTP Cookie File\n"
      "# https://curl.se/docs/http-cookies.html\n"
      "\n"
      ".example.org\tTRUE\t/\tFALSE\t1893456000\tlang\tde\r\n"
      "#HttpOnly_www.example.org\tFALSE\t/app\tTRUE\t0\tsid\tx=y z\n"
      "B\xc3\xbc"
      "cher.example\tFALSE\t/\tFALSE\t1893456000.5\tempty\n"
      "127.0.0.1\tFALSE\t/\tFALSE\t0\t\tnameless\twith a tab");
  ASSERT_TRUE(cookies) << cookies.error().message;
  ASSERT_EQ(cookies->size(), 4u);
  const Cookie lang{
      .name = "lang", .value = "de", .domain = "example.org", .expires = WallTime{1893456000s}, .host_only = false};
  EXPECT_EQ((*cookies)[0], lang);
  const Cookie sid{
      .name = "sid", .value = "x=y z", .domain = "www.example.org", .path = "/app", .secure = true, .http_only = true};
  EXPECT_EQ((*cookies)[1], sid);
  EXPECT_EQ((*cookies)[2].domain, "xn--bcher-kva.example");
  EXPECT_EQ((*cookies)[2].value, "");
  EXPECT_EQ((*cookies)[3].name, "");
  EXPECT_EQ((*cookies)[3].value, "nameless\twith a tab");
}

TEST(CookiesTxt, SaysWhichLineIsWrongAndNeverWhatItHolds) {
  const auto refusal = [](std::string_view text) {
    const auto cookies = parse_cookies_txt(text);
    EXPECT_FALSE(cookies);
    return cookies ? "" : cookies.error().message;
  };
  EXPECT_TRUE(refusal("#\nexample.org FALSE / FALSE 0 sid secret").starts_with("line 2: seven fields"));
  EXPECT_TRUE(refusal("e.org\tFALSE\t/\tFALSE\tsoon\tsid\tsecret").starts_with("line 1: its fifth field is no time"));
  EXPECT_TRUE(refusal("e.org/x\tFALSE\t/\tFALSE\t0\tsid\tsecret").starts_with("line 1: its first field is no domain"));
  EXPECT_TRUE(refusal("[{\"name\": \"sid\"}]").contains("JSON"));
  for (const char* text : {"secret", "secret\tFALSE\t/\tFALSE\tsecret\tsecret\tsecret"}) {
    EXPECT_FALSE(refusal(text).contains("secret"));
  }
}

TEST(CookiesTxt, WhatIsWrittenIsReadAgain) {
  JarAt at;
  at.take("https://www.example.org/a/b", "one=1; Secure; HttpOnly; Max-Age=1000");
  at.take("https://www.example.org/a/b", "two=2=3; Domain=example.org; Path=/");
  at.take("http://[2001:db8::1]/", "three");
  at.take("http://localhost/", "tab\tname=4");
  const std::string text = format_cookies_txt(at.jar.all(at.now));
  EXPECT_FALSE(text.contains("tab")) << "the format has no place for it";
  const auto cookies = parse_cookies_txt(text);
  ASSERT_TRUE(cookies) << cookies.error().message;
  EXPECT_EQ(cookies->size(), 3u);
  CookieJar again;
  for (const Cookie& cookie : *cookies) EXPECT_TRUE(again.put(cookie, at.now)) << cookie.name;
  for (const char* url : {"https://www.example.org/a/x", "http://www.example.org/a/x", "http://[2001:db8::1]/"}) {
    EXPECT_EQ(again.field_for(cookie_url(url), at.now), at.sent(url)) << url;
  }
  EXPECT_EQ(format_cookies_txt(again.all(at.now)), text);
}

}  // namespace
}  // namespace argiope

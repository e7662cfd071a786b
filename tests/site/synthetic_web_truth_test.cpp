// The synthetic web says what a crawl of it must find. A small crawler walks it here and finds that, no more, no less;
// then each feature by itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/robots.hpp"
#include "crawl/page/internal/link_harvester.hpp"
#include "site/internal/synthetic_web.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/text/internal/content_decoder.hpp"

namespace argiope {
namespace {

using Behaviour = SyntheticReply::Behaviour;
using Urls = std::vector<std::string>;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::array kLists = {&SyntheticTruth::pages,     &SyntheticTruth::redirects,  &SyntheticTruth::broken,
                               &SyntheticTruth::resources, &SyntheticTruth::disallowed, &SyntheticTruth::shunned};

Urls origins_of(std::uint32_t hosts) {
  Urls origins;
  for (std::uint32_t h = 0; h < hosts; ++h) origins.push_back(fmt::format("http://host-{}.test:8080", h));
  return origins;
}

SyntheticWebOptions sized(std::uint32_t hosts, std::uint32_t pages) {
  SyntheticWebOptions options;
  options.hosts = hosts;
  options.pages = pages;
  return options;
}

// Two hosts, of which the second is the evil one if there are hostile features.
SyntheticWebOptions with(WebFeatures features, std::uint32_t pages = 50) {
  SyntheticWebOptions options = sized(2, pages);
  options.features = features;
  return options;
}

SyntheticWeb web_of(const SyntheticWebOptions& options) { return {options, origins_of(options.hosts)}; }

SyntheticReply get(SyntheticWeb& web, std::uint32_t host, std::string_view target,
                   std::string_view accept = "gzip, br, zstd") {
  SyntheticRequest request;
  request.host = host;
  request.target = target;
  request.accept_encoding = accept;
  return web.reply(request);
}

std::string_view target_of(const SyntheticWeb& web, std::uint32_t host, std::string_view url) {
  return url.substr(web.origins()[host].size());
}

std::string header(const SyntheticReply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return {};
}

std::string decoded(const SyntheticReply& reply) {
  const std::string coding = header(reply, "Content-Encoding");
  if (coding.empty()) return reply.body;
  ContentDecoder decoder;
  std::string out;
  EXPECT_TRUE(decoder.start(coding, 64 << 20));
  EXPECT_TRUE(decoder.feed(reply.body, out));
  EXPECT_TRUE(decoder.finish());
  return out;
}

// A crawler without hurry or store: what it asked for, and what came of it.
class Walk {
 public:
  explicit Walk(SyntheticWeb& web) : web_(web), found_(web.options().hosts) {
    for (std::uint32_t h = 0; h < web.options().hosts; ++h) hosts_[web.origins()[h]] = h;
  }

  void run(const std::vector<std::uint32_t>& seeds) {
    for (const std::uint32_t seed : seeds) follow(parse(web_.origins()[seed] + "/"), false);
    while (!queue_.empty()) {
      const Url url = std::move(queue_.front());
      queue_.pop_front();
      visit(url);
    }
    for (SyntheticTruth& found : found_) {
      for (const auto list : kLists) std::ranges::sort(found.*list);
    }
  }

  const SyntheticTruth& found(std::uint32_t host) const { return found_[host]; }
  const std::set<std::string>& off_site() const { return off_site_; }
  std::size_t requests() const { return requests_; }

 private:
  static Url parse(std::string_view text, const Url* base = nullptr) {
    auto url = Url::parse(text, base);
    EXPECT_TRUE(url) << text;
    return url ? *url : Url{};
  }

  void follow(const Url& url, bool nofollow) {
    const auto known = hosts_.find(url.site_key());
    if (known == hosts_.end()) {
      off_site_.insert(url.href());
      return;
    }
    SyntheticTruth& found = found_[known->second];
    if (nofollow) {
      if (shunned_.insert(url.href()).second) found.shunned.push_back(url.href());
    } else if (seen_.insert(url.href()).second) {
      if (robots(known->second).allowed(url.path_and_query())) {
        queue_.push_back(url);
      } else {
        found.disallowed.push_back(url.href());
      }
    }
  }

  const RobotsRules& robots(std::uint32_t host) {
    auto [it, fresh] = robots_.try_emplace(host);
    if (!fresh) return it->second;
    const SyntheticReply reply = get(web_, host, "/robots.txt");
    const RobotsVerdict verdict =
        reply.behaviour == Behaviour::normal ? robots_policy(reply.status) : RobotsVerdict::disallow_all;
    if (verdict == RobotsVerdict::parse) it->second = RobotsRules::parse(reply.body, "argiope");
    if (verdict == RobotsVerdict::disallow_all) it->second = RobotsRules::disallow_all();
    return it->second;
  }

  void visit(const Url& url) {
    const std::uint32_t host = hosts_.at(url.site_key());
    SyntheticReply reply = get(web_, host, url.path_and_query());
    ++requests_;
    if (reply.status == 503) reply = get(web_, host, url.path_and_query());
    SyntheticTruth& found = found_[host];
    if (reply.status >= 300 && reply.status < 400) {
      found.redirects.push_back(url.href());
      follow(parse(header(reply, "Location"), &url), false);
    } else if (reply.status != 200) {
      found.broken.push_back(url.href());
    } else if (!reply.content_type.starts_with("text/html")) {
      found.resources.push_back(url.href());
    } else {
      found.pages.push_back(url.href());
      harvest(url, reply);
    }
  }

  // Sees also the links of pages that ask not to be followed by header; a page that asks in its text shows none.
  void harvest(const Url& url, const SyntheticReply& reply) {
    HttpResponse response;
    response.body = decoded(reply);
    response.headers.content_type = reply.content_type;
    const bool nofollow = parse_robots_tag(header(reply, "X-Robots-Tag"), "argiope").nofollow;
    LinkHarvester("argiope").harvest(
        url, response, 0, [&](const LinkHarvester::Link& link) { follow(link.url, nofollow || link.nofollow); });
  }

  SyntheticWeb& web_;
  std::map<std::string, std::uint32_t> hosts_;
  std::map<std::uint32_t, RobotsRules> robots_;
  std::set<std::string> seen_;
  std::set<std::string> shunned_;
  std::set<std::string> off_site_;
  std::deque<Url> queue_;
  std::vector<SyntheticTruth> found_;
  std::size_t requests_ = 0;
};

void expect_a_walk_finds_the_truth(const SyntheticWebOptions& options, const std::vector<std::uint32_t>& seeds = {0}) {
  SyntheticWeb web = web_of(options);
  Walk walk(web);
  walk.run(seeds);
  for (std::uint32_t h = 0; h < options.hosts; ++h) {
    SCOPED_TRACE(fmt::format("host {}", h));
    const SyntheticTruth truth = web.truth(h);
    const SyntheticTruth& found = walk.found(h);
    for (const auto list : kLists) {
      EXPECT_TRUE(std::ranges::is_sorted(truth.*list));
      // Of what to shun, a walk that does right sees only a part.
      if (list != &SyntheticTruth::shunned) EXPECT_EQ(found.*list, truth.*list);
    }
    EXPECT_TRUE(std::ranges::includes(truth.shunned, found.shunned));
    EXPECT_EQ(web.expected_pages(h), truth.pages.size());
  }
}

// ---- The truth

TEST(SyntheticWebTruth, IsWhatAWalkFromOneFrontPageFinds) { expect_a_walk_finds_the_truth(SyntheticWebOptions{}); }

TEST(SyntheticWebTruth, HoldsForWebsOfAnySize) {
  for (const std::uint32_t pages : {1u, 2u, 17u, 401u, 1500u}) {
    SCOPED_TRACE(fmt::format("{} pages", pages));
    expect_a_walk_finds_the_truth(sized(1, pages));
    expect_a_walk_finds_the_truth(sized(2, pages));
  }
}

TEST(SyntheticWebTruth, HoldsForOneLinkAPageAndForNothingButErrors) {
  SyntheticWebOptions options = sized(2, 600);
  options.links = 1;
  expect_a_walk_finds_the_truth(options);
  options.links = 20;
  options.errors = 1;
  expect_a_walk_finds_the_truth(options);
}

TEST(SyntheticWebTruth, HoldsWithAnyOneFeatureAndWithoutAnyOne) {
  for (std::uint32_t f = 0; bit(static_cast<WebFeature>(f)) <= kFriendlyFeatures; ++f) {
    const auto feature = static_cast<WebFeature>(f);
    SCOPED_TRACE(std::string(to_string(feature)));
    expect_a_walk_finds_the_truth(with(bit(feature), 120));
    expect_a_walk_finds_the_truth(with(kFriendlyFeatures & ~bit(feature), 120));
  }
}

TEST(SyntheticWebTruth, CanBeReachedFromAnyFrontPage) { expect_a_walk_finds_the_truth(sized(60, 5), {57}); }

TEST(SyntheticWebTruth, NeedsASeedForEachHostWithoutCrossLinks) {
  SyntheticWebOptions options = sized(3, 100);
  options.cross_links = false;
  SyntheticWeb web = web_of(options);
  Walk walk(web);
  walk.run({1});
  EXPECT_EQ(walk.found(1).pages, web.truth(1).pages);
  EXPECT_THAT(walk.found(0).pages, IsEmpty());
  expect_a_walk_finds_the_truth(options, {0, 1, 2});
}

TEST(SyntheticWebTruth, OfAPlainWebIsItsPagesAlone) {
  SyntheticWeb web = web_of(with(0, 300));
  Walk walk(web);
  walk.run({0});
  EXPECT_EQ(walk.requests(), 600u);
  EXPECT_EQ(web.truth(0).pages.size(), 300u);
  EXPECT_THAT(walk.off_site(), IsEmpty());
  EXPECT_EQ(get(web, 0, "/robots.txt").status, 404);
}

TEST(SyntheticWebTruth, OfAFriendlyWebHasSomeOfEverything) {
  SyntheticWeb web = web_of(SyntheticWebOptions{});
  for (std::uint32_t host = 0; host < 3; ++host) {
    const SyntheticTruth truth = web.truth(host);
    for (const auto list : kLists) EXPECT_GT((truth.*list).size(), 3u);
    EXPECT_GT(truth.pages.size(), 200u);
  }
}

TEST(SyntheticWebTruth, NamesForWhatMustNotBeFetchedUrlsThatWouldAnswer) {
  SyntheticWeb web = web_of(sized(1, 100));
  const SyntheticTruth truth = web.truth(0);
  for (const auto list : {&SyntheticTruth::disallowed, &SyntheticTruth::shunned}) {
    for (const std::string& url : truth.*list) EXPECT_EQ(get(web, 0, target_of(web, 0, url)).status, 200) << url;
  }
}

TEST(SyntheticWebTruth, LeavesOutOffSiteLinks) {
  SyntheticWeb web = web_of(sized(2, 50));
  Walk walk(web);
  walk.run({0});
  EXPECT_THAT(walk.off_site(), Contains("http://www.example.invalid/"));
  EXPECT_THAT(walk.off_site(), Contains("http://www.example.invalid/page-9"));
}

TEST(SyntheticWebTruth, OfAHostWhoseRobotsFailIsNothing) {
  for (const WebFeature feature :
       {WebFeature::robots_500, WebFeature::robots_silent, WebFeature::robots_reset, WebFeature::mute}) {
    SyntheticWeb web = web_of(with(kFriendlyFeatures | bit(feature)));
    const SyntheticReply reply = get(web, 1, "/robots.txt");
    EXPECT_TRUE(reply.status == 500 || reply.behaviour != Behaviour::normal);
    EXPECT_THAT(web.truth(1).pages, IsEmpty());
    Walk walk(web);
    walk.run({0});
    EXPECT_EQ(walk.found(0).pages, web.truth(0).pages);
    EXPECT_THAT(walk.found(1).pages, IsEmpty());
  }
}

// ---- Bytes

TEST(SyntheticWebBytes, AreEqualForEqualOptions) {
  SyntheticWeb one = web_of(sized(2, 100));
  SyntheticWeb two = web_of(sized(2, 100));
  for (const std::string& url : one.truth(1).pages) {
    const SyntheticReply first = get(one, 1, target_of(one, 1, url));
    const SyntheticReply second = get(two, 1, target_of(two, 1, url));
    EXPECT_EQ(first.body, second.body);
    EXPECT_EQ(first.headers, second.headers);
  }
}

TEST(SyntheticWebBytes, OfAnotherSeedAreOthersAtTheSameUrls) {
  SyntheticWebOptions options = sized(1, 100);
  options.errors = 0;
  SyntheticWeb one = web_of(options);
  options.seed = 2;
  SyntheticWeb two = web_of(options);
  EXPECT_EQ(one.truth(0).pages, two.truth(0).pages);
  EXPECT_NE(get(one, 0, "/").body, get(two, 0, "/").body);
}

TEST(SyntheticWebBytes, AreAsManyAsAskedInTheMedian) {
  for (const std::uint32_t size : {4096u, 40'000u}) {
    SyntheticWebOptions options = with(0, 500);
    options.size = size;
    SyntheticWeb web = web_of(options);
    std::vector<std::size_t> sizes;
    for (const std::string& url : web.truth(0).pages) sizes.push_back(get(web, 0, target_of(web, 0, url)).body.size());
    std::ranges::sort(sizes);
    EXPECT_NEAR(static_cast<double>(sizes[250]), size, size * 0.1);
    EXPECT_LT(sizes.front(), size * 2 / 3);
    EXPECT_GT(sizes[490], size * 3 / 2);
    EXPECT_LT(sizes[490], size * 3);
  }
}

TEST(SyntheticWebBytes, OfNowhereAreNotFound) {
  SyntheticWeb web = web_of(sized(1, 50));
  EXPECT_EQ(get(web, 0, "/docs/alpha/page-5.html").status, 200);
  EXPECT_EQ(get(web, 0, "/docs/alpha/page-5.html?any=query").status, 200);
  for (const std::string_view target :
       {"", "/docs", "/docs/alpha/page-05.html", "/docs/alpha/page-0.html", "/docs/alpha/page-50.html",
        "/docs/orb/page-5.html", "/docs/alpha/page-.html", "/docs/alpha/page-99999999999999999999.html",
        "/old/page-50.html", "/chain/step-21.html", "/drip/0", "/drip/", "/drip", "nonsense", "//",
        "/phantom/ghost-200.html"}) {
    EXPECT_EQ(get(web, 0, target).status, 404) << target;
  }
}

TEST(SyntheticWebBytes, NeedOptionsThatMakeAWeb) {
  EXPECT_THROW(web_of(sized(0, 1)), std::invalid_argument);
  EXPECT_THROW(web_of(sized(1, 0)), std::invalid_argument);
  EXPECT_THROW(SyntheticWeb(sized(2, 1), origins_of(1)), std::invalid_argument);
  SyntheticWebOptions options;
  options.errors = 1.5;
  EXPECT_THROW(web_of(options), std::invalid_argument);
  SyntheticWeb web = web_of(sized(1, 1));
  EXPECT_THROW(get(web, 1, "/"), std::out_of_range);
}

// ---- Friendly features

TEST(SyntheticWebFeature, VisitorsWhoKnowAPageAreToldSo) {
  SyntheticWeb web = web_of(sized(1, 50));
  const SyntheticReply first = get(web, 0, "/docs/alpha/page-2.html");
  const std::string tag = header(first, "ETag");
  const std::string modified = header(first, "Last-Modified");
  const auto again = [&](std::string_view if_none_match, std::string_view if_modified_since) {
    SyntheticRequest request;
    request.target = "/docs/alpha/page-2.html";
    request.if_none_match = if_none_match;
    request.if_modified_since = if_modified_since;
    return web.reply(request);
  };
  EXPECT_TRUE(parse_http_date(modified));
  EXPECT_EQ(again(tag, "").status, 304);
  EXPECT_THAT(again(tag, "").body, IsEmpty());
  EXPECT_EQ(header(again(tag, ""), "ETag"), tag);
  EXPECT_EQ(again("\"other\", " + tag, "").status, 304);
  EXPECT_EQ(again("", modified).status, 304);
  EXPECT_EQ(again("", "Fri, 01 Jan 1999 00:00:00 GMT").status, 200);
  EXPECT_EQ(again("", "yesterday").status, 200);
  EXPECT_EQ(again("\"other\"", modified).status, 200) << "the tag goes before the date";
}

TEST(SyntheticWebFeature, CompressedPagesTakeACodingThatTheVisitorAccepts) {
  SyntheticWeb web = web_of(with(bit(WebFeature::compressed)));
  std::set<std::string> seen;
  for (const std::string_view target :
       {"/docs/alpha/page-3.html", "/docs/alpha/page-11.html", "/docs/orb/page-19.html"}) {
    const SyntheticReply reply = get(web, 0, target);
    seen.insert(header(reply, "Content-Encoding"));
    EXPECT_EQ(decoded(reply), get(web, 0, target, "").body);
    EXPECT_LT(reply.body.size(), decoded(reply).size());
    EXPECT_EQ(header(get(web, 0, target, "zstd"), "Content-Encoding"), "zstd");
    EXPECT_EQ(header(get(web, 0, target, "gzip;q=0, br;q=0.0, zstd;q=0.1"), "Content-Encoding"), "zstd");
    EXPECT_EQ(header(get(web, 0, target, "identity, gzip;q=0"), "Content-Encoding"), "");
    EXPECT_EQ(header(reply, "Vary"), "Accept-Encoding");
  }
  EXPECT_EQ(seen, (std::set<std::string>{"gzip", "br", "zstd"}));
  EXPECT_EQ(header(get(web, 0, "/docs/alpha/page-4.html"), "Content-Encoding"), "");
}

TEST(SyntheticWebFeature, OddPagesAreWrittenInTheEncodingThatTheyTell) {
  SyntheticWeb web = web_of(with(bit(WebFeature::encodings), 400));
  std::set<std::string> names;
  for (const std::string& url : web.truth(0).pages) {
    const SyntheticReply reply = get(web, 0, target_of(web, 0, url));
    const CharsetDecision charset = detect_charset(reply.body, reply.content_type);
    names.emplace(charset.name);
    const auto text = to_utf8(std::string_view(reply.body).substr(charset.bom_length), charset.name);
    ASSERT_TRUE(text);
    EXPECT_THAT(*text, HasSubstr("<!DOCTYPE html>")) << url;
    EXPECT_THAT(*text, Not(HasSubstr("\xef\xbf\xbd"))) << url;
  }
  EXPECT_EQ(names, (std::set<std::string>{"UTF-8", "UTF-16LE", "UTF-16BE", "windows-1252", "Shift_JIS", "KOI8-R", "GBK",
                                          "EUC-KR"}));
}

TEST(SyntheticWebFeature, FlakyPagesFailOnceEachAndThenAnswer) {
  SyntheticWeb web = web_of(sized(2, 10));
  EXPECT_EQ(get(web, 0, "/flaky/1.html").status, 503);
  EXPECT_EQ(header(get(web, 1, "/flaky/1.html"), "Retry-After"), "1");
  EXPECT_EQ(get(web, 0, "/flaky/1.html").status, 200);
  EXPECT_EQ(get(web, 0, "/flaky/1.html").status, 200);
  EXPECT_EQ(get(web, 0, "/flaky/0.html").status, 503);
}

TEST(SyntheticWebFeature, RobotsMayAskForARest) {
  SyntheticWebOptions options = sized(1, 10);
  const auto file = [&] {
    SyntheticWeb web = web_of(options);
    return get(web, 0, "/robots.txt").body;
  };
  EXPECT_FALSE(RobotsRules::parse(file(), "argiope").crawl_delay());
  options.crawl_delay = std::chrono::milliseconds{1500};
  EXPECT_EQ(RobotsRules::parse(file(), "argiope").crawl_delay(), Duration(std::chrono::milliseconds{1500}));
  EXPECT_FALSE(RobotsRules::parse(file(), "badbot").allowed("/"));
}

TEST(SyntheticWebFeature, LatencyIsOfAllButRobots) {
  SyntheticWebOptions options = sized(1, 10);
  options.latency = std::chrono::milliseconds{100};
  SyntheticWeb web = web_of(options);
  EXPECT_EQ(get(web, 0, "/").latency, options.latency);
  EXPECT_EQ(get(web, 0, "/nowhere").latency, options.latency);
  EXPECT_EQ(get(web, 0, "/robots.txt").latency, Duration::zero());
}

// ---- Hostile features

TEST(SyntheticWebFeature, OnlyTheLastHostsAreEvil) {
  SyntheticWebOptions options = sized(4, 10);
  options.features = kFriendlyFeatures | kHostileFeatures;
  options.evil_hosts = 2;
  SyntheticWeb web = web_of(options);
  for (std::uint32_t host = 0; host < 4; ++host) {
    const bool evil = host >= 2;
    EXPECT_EQ(web.has(host, WebFeature::silent), evil);
    EXPECT_EQ(get(web, host, "/silent/0").status, evil ? 200 : 404);
    EXPECT_EQ(get(web, host, "/", "").body.find("/silent/0") != std::string::npos, evil);
    EXPECT_TRUE(web.has(host, WebFeature::robots));
  }
  options.evil_hosts = 0;
  EXPECT_FALSE(web_of(options).has(3, WebFeature::silent));
  options.evil_hosts = 100;
  EXPECT_TRUE(web_of(options).has(0, WebFeature::silent));
}

TEST(SyntheticWebFeature, TheFrontPageOfAnEvilHostLeadsToEachTrouble) {
  for (std::uint32_t f = 0; f < kWebFeatures; ++f) {
    const auto feature = static_cast<WebFeature>(f);
    if ((kHostileFeatures & bit(feature)) == 0) continue;
    SyntheticWeb web = web_of(with(bit(feature), 3));
    EXPECT_THAT(get(web, 1, "/").body, HasSubstr(fmt::format("<a href=\"/{}/", to_string(feature))));
  }
}

TEST(SyntheticWebFeature, EachTroubleBehavesAsItsNameSays) {
  SyntheticWeb web = web_of(with(kHostileFeatures));
  const auto behaviour = [&](std::string_view target) { return get(web, 1, target).behaviour; };
  EXPECT_EQ(behaviour("/drip/0"), Behaviour::drip);
  EXPECT_GT(get(web, 1, "/drip/0").drip_bytes_per_second, 0);
  EXPECT_EQ(behaviour("/reset/0"), Behaviour::reset);
  EXPECT_EQ(behaviour("/lengths/0"), Behaviour::cut);
  EXPECT_EQ(behaviour("/lengths/1"), Behaviour::surplus);
  EXPECT_EQ(behaviour("/silent/0"), Behaviour::silent);
  EXPECT_EQ(behaviour("/garbage/4"), Behaviour::garbage);
  EXPECT_EQ(behaviour("/flood/0"), Behaviour::flood);
  EXPECT_EQ(behaviour("/closed/0"), Behaviour::closed);
  EXPECT_EQ(get(web, 1, "/failing/0").status, 500);
  EXPECT_EQ(get(web, 1, "/failing/3").status, 504);
  EXPECT_GE(get(web, 1, "/headers/0").headers.size(), 1000u);
  EXPECT_GE(header(get(web, 1, "/headers/1"), "X-Long").size(), 1u << 20);
  for (const std::string_view target : {"/drip/0", "/reset/0", "/lengths/0", "/flood/0"}) {
    EXPECT_GT(get(web, 1, target).body.size(), 1000u) << target;
  }
}

TEST(SyntheticWebFeature, LoopsNeverLeadAnywhere) {
  SyntheticWeb web = web_of(with(kHostileFeatures));
  const std::map<std::string, std::size_t> urls_in_fifty_hops = {{"/loops/0", 2}, {"/loops/2", 1}, {"/loops/3", 50}};
  for (const auto& [start, urls] : urls_in_fifty_hops) {
    std::set<std::string> seen;
    std::string target = start;
    for (int hop = 0; hop < 50; ++hop) {
      const SyntheticReply reply = get(web, 1, target);
      ASSERT_EQ(reply.status, 302);
      seen.insert(target);
      target = header(reply, "Location");
    }
    EXPECT_EQ(seen.size(), urls) << start;
  }
}

TEST(SyntheticWebFeature, EndlessPagesLeadToEverNewOnes) {
  SyntheticWeb web = web_of(with(kHostileFeatures, 3));
  for (const char* start : {"/endless/0", "/endless/mirror/", "/endless/deep/", "/endless/search?q=silk&page=1"}) {
    std::set<std::string> seen;
    std::deque<Url> queue{*Url::parse(web.origins()[1] + start)};
    for (int i = 0; i < 100; ++i) {
      const Url page = queue.front();
      queue.pop_front();
      HttpResponse response;
      response.body = get(web, 1, page.path_and_query()).body;
      LinkHarvester("argiope").harvest(page, response, 0, [&](const LinkHarvester::Link& link) {
        if (link.url.pathname() != "/" && seen.insert(link.url.href()).second) queue.push_back(link.url);
      });
      ASSERT_FALSE(queue.empty()) << start;
    }
    EXPECT_GT(seen.size(), 150u) << start;
  }
}

TEST(SyntheticWebFeature, BombsAreSmallAndDecodeToMuch) {
  SyntheticWeb web = web_of(with(kHostileFeatures, 3));
  std::set<std::string> codings;
  for (const std::string_view target : {"/bomb/0", "/bomb/1", "/bomb/2", "/bomb/3"}) {
    const SyntheticReply reply = get(web, 1, target);
    EXPECT_LT(reply.body.size(), 400'000u) << target;
    codings.insert(header(reply, "Content-Encoding"));
    ContentDecoder decoder;
    std::string out;
    ASSERT_TRUE(decoder.start(header(reply, "Content-Encoding"), 12 << 20));
    const auto fed = decoder.feed(reply.body, out);
    EXPECT_TRUE(!fed || decoder.truncated()) << target;
  }
  EXPECT_EQ(codings, (std::set<std::string>{"gzip", "br", "zstd", "gzip, gzip"}));
}

TEST(SyntheticWebFeature, ThrottlingPagesAskTwiceForPatience) {
  SyntheticWeb web = web_of(with(kHostileFeatures));
  EXPECT_EQ(get(web, 1, "/throttling/0").status, 429);
  EXPECT_EQ(header(get(web, 1, "/throttling/0"), "Retry-After"), "2");
  EXPECT_EQ(get(web, 1, "/throttling/0").status, 200);
  EXPECT_EQ(get(web, 1, "/throttling/1").status, 429);
}

TEST(SyntheticWebFeature, ASlowHostAloneIsSlow) {
  SyntheticWeb web = web_of(with(bit(WebFeature::slow)));
  EXPECT_EQ(get(web, 0, "/").latency, Duration::zero());
  EXPECT_EQ(get(web, 1, "/").latency, web.options().slow_latency);
}

// ---- Names

TEST(SyntheticWebFeature, EachIsReadByTheNameItIsWrittenWith) {
  for (std::uint32_t f = 0; f < kWebFeatures; ++f) {
    const auto feature = static_cast<WebFeature>(f);
    EXPECT_EQ(parse_web_features(to_string(feature)), bit(feature));
    constexpr WebFeatures kFriends =
        kFriendlyFeatures | kGuardedFeatures | kRepeatedFeatures | kListedFeatures | bit(WebFeature::scripts);
    EXPECT_EQ(is_hostile(feature), (kFriends & bit(feature)) == 0);
  }
  EXPECT_EQ(parse_web_features("all"), kFriendlyFeatures | kHostileFeatures);
  EXPECT_EQ(parse_web_features("hostile"), kHostileFeatures);
  EXPECT_EQ(parse_web_features("guarded"), kGuardedFeatures);
  EXPECT_EQ(parse_web_features("repeated"), kRepeatedFeatures);
}

TEST(SyntheticWebFeature, ThatMakeAHostUselessAreNotAmongTheHostile) {
  EXPECT_EQ(kFriendlyFeatures & kHostileFeatures, 0u);
  for (const WebFeature extreme : {WebFeature::slow, WebFeature::robots_500, WebFeature::robots_silent,
                                   WebFeature::robots_reset, WebFeature::mute}) {
    EXPECT_EQ(kHostileFeatures & bit(extreme), 0u);
    EXPECT_TRUE(is_hostile(extreme));
  }
}

}  // namespace
}  // namespace argiope

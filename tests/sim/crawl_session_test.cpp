// What a crawl is to servers: cookies that walls want back, names and passwords, a login; and that none of it is sent
// elsewhere, faster than allowed, or lost with the run.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/internal/base64.hpp"
#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

const std::string kBasicField =
    "Basic " + to_base64(std::string(kSyntheticName) + ':' + std::string(kSyntheticPassword));

HttpCredentials credentials_for(std::string where, std::string_view password = kSyntheticPassword) {
  return {.where = std::move(where), .name = std::string(kSyntheticName), .password = std::string(password)};
}
LoginStep login_at(const std::string& origin, std::string_view password = kSyntheticPassword) {
  return {.page = *Url::parse(origin + "/login"),
          .fields = {{"name", std::string(kSyntheticName)}, {"password", std::string(password)}}};
}

// The guarded pages of a host that were answered with 200.
std::vector<std::string> let_in(const Simulation& sim, std::uint32_t host = 0) {
  std::set<std::string> found;
  const std::vector<std::string> guarded = sim.web.truth(host).guarded;
  for (const ServedRequest& request : sim.transport.log) {
    const std::string url = sim.web.origins()[host] + request.target;
    if (request.host == host && request.status == 200 && std::ranges::binary_search(guarded, url)) found.insert(url);
  }
  return {found.begin(), found.end()};
}
auto asked_with(const Simulation& sim, int status) {
  return std::ranges::count(sim.transport.log, status, &ServedRequest::status);
}
// One at a time, and no two closer than 5 a second allow.
void expect_polite(const Simulation& sim) {
  std::map<std::uint32_t, TimePoint> last;
  for (const ServedRequest& request : sim.transport.log) {
    const auto before = last.find(request.host);
    if (before != last.end()) {
      EXPECT_GE(request.at - before->second, 200ms) << request.target;
    }
    last[request.host] = request.at;
  }
}

TEST(CrawlSession, WallsThatWantACookieBackAreNoCircles) {
  Simulation sim({.hosts = 2, .pages = 8, .features = bit(WebFeature::cookies)});
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  for (const std::uint32_t host : {0u, 1u}) EXPECT_EQ(let_in(sim, host), sim.web.truth(host).guarded);
  EXPECT_EQ(report.broken_count, 0u);
  expect_polite(sim);
  EXPECT_LE(sim.transport.log.size(), 2 * (8u + 8 + 3 + 1)) << "no more than the walls make it";
}

TEST(CrawlSession, WithoutCookiesTheyAre) {
  Simulation sim({.hosts = 1, .pages = 8, .features = bit(WebFeature::cookies)});
  sim.options.cookies = false;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(let_in(sim).size(), 1u) << "the first step, which wants none";
  EXPECT_EQ(report.broken_count, 2u) << "the wall, and the second step";
  for (const ServedRequest& request : sim.transport.log) EXPECT_EQ(request.cookie, "");
  EXPECT_TRUE(sim.cookies.empty());
}

TEST(CrawlSession, ARedirectThatSetsEverNewCookiesEnds) {
  Simulation sim({.hosts = 1, .pages = 2, .features = 0});
  int count = 0;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target != "/") return reply;
    reply.status = 302;
    reply.headers = {{"Location", "/"}, {"Set-Cookie", "n=" + std::to_string(++count)}};
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(count, static_cast<int>(sim.options.max_redirects) + 1);
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].error, "more than 10 redirects");
}

TEST(CrawlSession, ADetourThatAKilledRunWasOnIsTakenByTheNext) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::cookies)});
  sim.options.max_pages = 1;
  int runs = 0;
  for (; runs < 60; ++runs) {
    if (sim.run().finished) break;
  }
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_GT(runs, 8);
}

TEST(CrawlSession, AnswersServersThatAskWhoIsThere) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::basic) | bit(WebFeature::digest)});
  sim.options.credentials = {credentials_for("http://host0.test")};
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_EQ(report.broken_count, 0u);
  EXPECT_FALSE(report.statuses.contains(401)) << "what is asked again counts once";
  EXPECT_EQ(asked_with(sim, 401), 2 + 1) << "one for each realm, and for a nonce that has grown stale";
  expect_polite(sim);
}

TEST(CrawlSession, WithoutANameTheyAreBroken) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::basic)});
  const CrawlReport report = sim.run();
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].status, 401);
}

TEST(CrawlSession, AWrongPasswordIsSentOnce) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::basic) | bit(WebFeature::digest)});
  sim.options.credentials = {credentials_for("http://host0.test", "guess")};
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.broken_count, 2u);
  const auto sent =
      std::ranges::count_if(sim.transport.log, [](const ServedRequest& r) { return !r.authorization.empty(); });
  EXPECT_EQ(sent, 2) << "for each realm";
}

TEST(CrawlSession, WhatIsForOneServerGoesToNoOther) {
  Simulation sim({.hosts = 3, .pages = 6, .features = kGuardedFeatures});
  sim.options.credentials = {credentials_for("http://host1.test")};
  sim.options.login = login_at("http://host1.test");
  sim.run();
  EXPECT_EQ(let_in(sim, 1), sim.web.truth(1).guarded);
  for (const ServedRequest& request : sim.transport.log) {
    if (request.host == 1) continue;
    EXPECT_EQ(request.authorization, "") << request.host << request.target;
    EXPECT_FALSE(request.cookie.contains("session=")) << request.host << request.target;
  }
}

TEST(CrawlSession, RobotsTxtMayAskWhoIsThereToo) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::robots) | bit(WebFeature::basic)});
  sim.options.credentials = {credentials_for("http://host0.test")};
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target != "/robots.txt" || request.authorization == kBasicField) return reply;
    reply.status = 401;
    reply.headers = {{"WWW-Authenticate", "Basic realm=\"all\""}};
    return reply;
  };
  sim.run();
  std::vector<int> statuses;
  for (const ServedRequest& request : sim.transport.log) {
    if (request.target == "/robots.txt") statuses.push_back(request.status);
  }
  EXPECT_EQ(statuses, (std::vector<int>{401, 200})) << "its rules count for who is let in";
  expect_polite(sim);
}

TEST(CrawlSession, ALoginComesFirstAtTheHostsPace) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::members)});
  sim.options.login = login_at("http://host0.test");
  const CrawlReport report = sim.run();
  ASSERT_TRUE(sim.logged_in) << sim.logged_in.error().message;
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_EQ(sim.transport.log[0].target, "/login");
  EXPECT_EQ(sim.transport.log[3].target, "/robots.txt");
  expect_polite(sim);
}

TEST(CrawlSession, ALoginThatFailsSaysWhyWithoutThePassword) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::members)});
  sim.options.login = login_at("http://host0.test", "guess-me");
  sim.run();
  ASSERT_FALSE(sim.logged_in);
  EXPECT_EQ(sim.logged_in.error().code, Errc::refused);
  EXPECT_THAT(sim.logged_in.error().message, testing::HasSubstr("asks for it again"));
  EXPECT_THAT(sim.logged_in.error().message, testing::Not(testing::HasSubstr("guess-me")));
  EXPECT_EQ(sim.transport.log[0].target, "/login");
}

TEST(CrawlSession, ARunGoesOnLoggedIn) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::members) | bit(WebFeature::cookies)});
  sim.options.login = login_at("http://host0.test");
  sim.options.max_pages = 6;
  EXPECT_EQ(sim.run().stopped_by, "max_pages");
  EXPECT_LT(let_in(sim).size(), sim.web.truth(0).guarded.size());
  sim.options.login.reset();
  sim.options.max_pages = 0;
  EXPECT_TRUE(sim.run().finished);
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_EQ(std::ranges::count(sim.transport.log, "/login", &ServedRequest::target), 2) << "of the first run";
}

TEST(CrawlSession, ALoginBeginsASessionOfItsOwn) {
  Simulation sim({.hosts = 1, .pages = 2, .features = bit(WebFeature::members)});
  sim.options.login = login_at("http://host0.test");
  sim.run();
  sim.transport.log.clear();
  sim.options.requeue = Requeue::all;
  sim.run();
  EXPECT_TRUE(sim.logged_in) << "though a browser with those cookies would be shown no form";
  EXPECT_EQ(sim.transport.log[0].cookie, "");
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
}

TEST(CrawlSession, LinksThatLogOutAreNotFollowedByWhoHasLoggedIn) {
  Simulation sim({.hosts = 1, .pages = 4, .features = bit(WebFeature::members)});
  const auto logouts = [&] { return std::ranges::count(sim.transport.log, "/logout", &ServedRequest::target); };
  sim.options.login = login_at("http://host0.test");
  const CrawlReport first = sim.run();
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_EQ(first.left_out, (std::map<std::string, std::uint64_t>{{"logout", 1}}));
  // A run that goes on with its cookies is as careful.
  sim.options.login.reset();
  sim.options.requeue = Requeue::all;
  sim.transport.log.clear();
  sim.run();
  EXPECT_EQ(let_in(sim), sim.web.truth(0).guarded);
  EXPECT_EQ(logouts(), 0);
  // Unless it is told otherwise, as by a pattern that names the link, or does without cookies.
  sim.options.requeue = Requeue::none;
  sim.options.include = {"/**"};
  sim.run();
  EXPECT_EQ(logouts(), 0) << "a pattern for everything does not mean it";
  sim.options.include = {"/**", "/logout"};
  const CrawlReport last = sim.run();
  EXPECT_EQ(logouts(), 1);
  EXPECT_TRUE(last.left_out.empty());
}

TEST(CrawlSession, WithoutALoginTheyAreLinksLikeOthers) {
  Simulation sim({.hosts = 1, .pages = 4, .features = 0});
  sim.options.seeds = {*Url::parse("http://host0.test/")};
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target == "/") reply.body += "<a href=/logout>";
    return reply;
  };
  sim.run();
  EXPECT_EQ(std::ranges::count(sim.transport.log, "/logout", &ServedRequest::target), 1);
  sim.options.given_cookies = {{.name = "a", .value = "1", .domain = "host0.test"}};
  sim.options.requeue = Requeue::all;
  sim.run();
  EXPECT_EQ(std::ranges::count(sim.transport.log, "/logout", &ServedRequest::target), 1)
      << "cookies that are given are a login, too";
}

TEST(CrawlSession, CookiesLastAsLongAsTheirServersSay) {
  Simulation sim({.hosts = 1, .pages = 2, .features = 0});
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target == "/") {
      reply.headers = {{"Set-Cookie", "session=1"}, {"Set-Cookie", "day=1; Max-Age=86400"}};
    } else if (request.cookie.contains("session")) {
      reply.headers = {{"Set-Cookie", "session=; Max-Age=0; Path=/"}};
    }
    return reply;
  };
  sim.options.age = 1h;
  sim.run();
  ASSERT_EQ(sim.cookies.size(), 1u) << "the other is gone";
  EXPECT_EQ(sim.cookies[0].name, "day");
  const auto saved = [&] {
    std::string text;
    EXPECT_TRUE(sim.store->scan_notes("cookies/", [&](const UrlNote& note) {
      text += note.name + "\n" + note.text;
      return true;
    }));
    return text;
  };
  EXPECT_THAT(saved(), testing::StartsWith("cookies/host0.test\n# Netscape HTTP Cookie File\n"));
  EXPECT_THAT(saved(), testing::HasSubstr("\tday\t1\n"));
  EXPECT_THAT(saved(), testing::Not(testing::HasSubstr("session")));
  sim.transport.before_reply = nullptr;
  sim.transport.log.clear();
  sim.backend.manual_clock().advance(10h);
  sim.run();
  EXPECT_EQ(sim.transport.log[0].cookie, "day=1") << "robots.txt is asked by the same visitor";
  sim.transport.log.clear();
  sim.backend.manual_clock().advance(20h);
  sim.run();
  EXPECT_EQ(sim.transport.log[0].cookie, "");
}

TEST(CrawlSession, CookiesThatAreGivenGoBeforeThoseThatWereSaved) {
  Simulation sim({.hosts = 1, .pages = 2, .features = 0});
  sim.options.given_cookies = {{.name = "a", .value = "1", .domain = "host0.test"}};
  sim.run();
  EXPECT_EQ(sim.transport.log[0].cookie, "a=1");
  sim.options.given_cookies[0].value = "2";
  sim.options.requeue = Requeue::all;
  sim.transport.log.clear();
  sim.run();
  EXPECT_EQ(sim.transport.log[0].cookie, "a=2");
  sim.options.given_cookies.clear();
  sim.transport.log.clear();
  sim.run();
  EXPECT_EQ(sim.transport.log[0].cookie, "a=2") << "they are saved as others are";
}

TEST(CrawlSession, LinksThatAreCheckedMayHaveWallsToo) {
  Simulation sim({.hosts = 2, .pages = 1, .features = 0});
  sim.options.seeds.pop_back();
  sim.options.check_links = true;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.host == 1 && request.target == "/" && request.cookie.empty()) {
      reply.status = 302;
      reply.headers = {{"Location", "/"}, {"Set-Cookie", "seen=1"}};
    }
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.broken_count, 0u);
  EXPECT_EQ(sim.transport.log.back().status, 200);
}

}  // namespace
}  // namespace argiope

#include "crawl/hosts/internal/robots_answer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "crawl/hosts/internal/host_question.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Kind = RobotsAnswer::Kind;

constexpr WallTime kAskedAt{std::chrono::hours{1'000}};

HttpResponse robots_response(int status, std::string body = {}, std::string retry_after = {}) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.headers.retry_after = std::move(retry_after);
  response.connected = true;
  return response;
}

RobotsAnswer judged(const HttpResponse& response, std::uint32_t attempts = 0) {
  return judge_robots({}, response, attempts, "spider", kAskedAt);
}

TEST(RobotsAnswer, GoesByTheStatus) {
  struct Row {
    int status;
    Kind kind;
    bool has_rules;
  };
  constexpr Row kRows[] = {
      {200, Kind::known, true},    {204, Kind::known, true},    {299, Kind::known, true},
      {301, Kind::known, false},   {304, Kind::refused, false}, {400, Kind::known, false},
      {401, Kind::known, false},   {403, Kind::known, false},   {404, Kind::known, false},
      {410, Kind::known, false},   {499, Kind::known, false},   {429, Kind::refused, false},
      {500, Kind::refused, false}, {503, Kind::refused, false}, {599, Kind::refused, false},
      {199, Kind::refused, false}, {0, Kind::refused, false},   {600, Kind::refused, false},
  };
  for (const Row& row : kRows) {
    const RobotsAnswer answer = judged(robots_response(row.status));
    EXPECT_EQ(answer.kind, row.kind) << row.status;
    EXPECT_EQ(answer.rules.has_value(), row.has_rules) << row.status;
    if (row.kind != Kind::refused) continue;
    EXPECT_EQ(answer.error.code, Errc::refused) << row.status;
    EXPECT_EQ(answer.error.message, "robots.txt answered HTTP " + std::to_string(row.status));
  }
}

TEST(RobotsAnswer, GoesByTheErrorWhereNobodyAnswered) {
  struct Row {
    Errc code;
    bool connected;
    Kind kind;
    const char* message;
  };
  constexpr Row kRows[] = {
      {Errc::dns, false, Kind::failed, "why"},
      {Errc::network, false, Kind::failed, "why"},
      {Errc::refused, false, Kind::failed, "why"},
      {Errc::network, true, Kind::failed, "robots.txt: why"},
      {Errc::timeout, true, Kind::failed, "robots.txt: why"},
      {Errc::protocol, true, Kind::failed, "robots.txt: why"},
      {Errc::not_found, true, Kind::known, ""},  // redirects that do not end, or lead to what is no URL of http
  };
  for (const Row& row : kRows) {
    HttpResponse response = robots_response(200, "User-agent: *\nDisallow: /");  // of what came before
    response.connected = row.connected;
    const RobotsAnswer answer = judge_robots(fail(row.code, "why"), response, 0, "spider", kAskedAt);
    EXPECT_EQ(answer.kind, row.kind) << row.message;
    EXPECT_FALSE(answer.rules);
    EXPECT_EQ(answer.error.message, row.message);
    if (row.kind == Kind::failed) EXPECT_EQ(answer.error.code, row.code);
  }
}

TEST(RobotsAnswer, AChallengeIsAnsweredAFewTimesInARow) {
  for (const int status : {401, 503}) {
    HttpResponse response = robots_response(status);
    response.challenged = HttpChallenged::again;
    for (std::uint32_t attempts = 0; attempts < kMostRobotsChallenges; ++attempts)
      EXPECT_EQ(judged(response, attempts).kind, Kind::challenged);
    EXPECT_EQ(judged(response, kMostRobotsChallenges).kind, status == 401 ? Kind::known : Kind::refused);
    // What was not answered at all was no challenge.
    EXPECT_EQ(judge_robots(fail(Errc::network, "why"), response, 0, "spider", kAskedAt).kind, Kind::failed);
  }
}

TEST(RobotsAnswer, ARefusalMaySayForHowLong) {
  EXPECT_EQ(judged(robots_response(503)).at_least, 0s);
  EXPECT_EQ(judged(robots_response(503, {}, "120")).at_least, 2min);
  EXPECT_EQ(judged(robots_response(429, {}, "Thu, 12 Feb 1970 00:00:00 GMT")).at_least, 1'008h - 1'000h);
  EXPECT_EQ(judged(robots_response(429, {}, "soon")).at_least, 0s);
  EXPECT_EQ(judged(robots_response(404, {}, "120")).at_least, 0s);  // no refusal
}

TEST(RobotsAnswer, KeepsRulesAloneAndTheDelayOfOurGroup) {
  RobotsAnswer answer = judged(robots_response(
      200, "User-agent: *\nDisallow: /\nUser-agent: spider\nDisallow: /no\nCrawl-delay: 3\nSitemap: http://a.test/s"));
  ASSERT_TRUE(answer.rules);
  EXPECT_EQ(answer.crawl_delay("http://a.test", 5min), 3s);
  EXPECT_EQ(answer.crawl_delay("http://a.test", 2s), 2s) << "no more than is heeded";
  EXPECT_EQ(answer.rules->sitemaps().size(), 1u);
  const auto rules = answer.take_rules();
  ASSERT_TRUE(rules);
  EXPECT_FALSE(rules->allowed("/no"));
  EXPECT_TRUE(rules->allowed("/"));
  EXPECT_FALSE(answer.rules);
  EXPECT_EQ(answer.crawl_delay("http://a.test", 5min), 0s);
  EXPECT_EQ(answer.take_rules(), nullptr);
}

TEST(RobotsAnswer, AFileWithoutRulesAllowsEverything) {
  RobotsAnswer answer = judged(robots_response(200, "User-agent: spider\nCrawl-delay: 7\n"));
  EXPECT_EQ(answer.crawl_delay("http://a.test", 5min), 7s);
  EXPECT_EQ(answer.take_rules(), nullptr);
  EXPECT_EQ(judged(robots_response(404)).take_rules(), nullptr);
}

}  // namespace
}  // namespace argiope

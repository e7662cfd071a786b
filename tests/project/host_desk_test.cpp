// What one host is asked by several callers together: never more than its limits allow, nothing before its robots.txt,
// and again and again where it cannot be reached.
#include "project/fetch/internal/host_desk.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/async/group.hpp"
#include "desk_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Leave = HostDesk::Leave;

CrawlOptions desk_options() {
  CrawlOptions options;
  options.autothrottle = false;
  return options;
}

bool asks_for_robots(const DeskRequest& request) { return request.target == "/robots.txt"; }

// --- limits ---------------------------------------------------------------------------------------------------------

struct DeskLimits {
  const char* name;
  std::string site;
  std::optional<double> rate;
  std::optional<Duration> delay;
  std::optional<std::uint32_t> per_host;
  std::string robots{};
  // What is to be seen.
  std::size_t at_most = 1;
  Duration between_starts{};
  Duration after_end{};
};

class DeskLimitsHold : public testing::TestWithParam<DeskLimits> {};

TEST_P(DeskLimitsHold, ForOneToFiveCallers) {
  const DeskLimits& limits = GetParam();
  constexpr int kEach = 30;
  for (int callers = 1; callers <= 5; ++callers) {
    SCOPED_TRACE(callers);
    DeskRig rig(desk_options());
    rig.options.rate = limits.rate;
    rig.options.delay = limits.delay;
    rig.options.per_host = limits.per_host;
    rig.open();
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      if (asks_for_robots(request))
        return {.status = limits.robots.empty() ? 404 : 200, .body = limits.robots, .latency = 30ms};
      return {.latency = std::chrono::milliseconds{20 + 37 * (rig.web.log.size() % 11)}};
    };
    rig.run([&]() -> Coro<void> {
      std::vector<Coro<void>> all;
      for (int caller = 0; caller < callers; ++caller) {
        // As many at a time as it likes.
        for (int worker = 0; worker < 10; ++worker) {
          all.push_back([](DeskRig& desk_rig, std::string site) -> Coro<void> {
            for (int page = 0; page < kEach / 10; ++page) {
              const auto answer = co_await desk_rig.visit(site + "/");
              EXPECT_EQ(answer.leave, Leave::go) << answer.words;
            }
          }(rig, limits.site));
        }
      }
      co_await gather(std::move(all));
    });
    const auto& log = rig.web.log;
    ASSERT_EQ(log.size(), static_cast<std::size_t>(1 + callers * kEach));
    EXPECT_TRUE(asks_for_robots(log.front()));
    EXPECT_LE(rig.web.most_under_way, limits.at_most);
    for (std::size_t i = 1; i < log.size(); ++i) {
      ASSERT_GE(log[i].at - log[i - 1].at, limits.between_starts) << i;
      if (limits.after_end > 0s) {
        ASSERT_GE(log[i].at - log[i - 1].ended, limits.after_end) << i;
      }
    }
    // Nobody was forgotten: the host is never idle for longer than its limits say.
    const Duration slowest =
        std::max({limits.between_starts, limits.after_end + 450ms, Duration{450ms / limits.at_most}});
    EXPECT_LE(log.back().at - log.front().at, slowest * static_cast<int>(log.size())) << "somebody waited for nothing";
    EXPECT_EQ(rig.desk->look(1).under_way, 0u);
    rig.close();
  }
}

INSTANTIATE_TEST_SUITE_P(
    HostDesk, DeskLimitsHold,
    testing::Values(DeskLimits{.name = "Usual", .site = "http://a.test", .between_starts = 200ms},
                    DeskLimits{.name = "Rate", .site = "http://a.test", .rate = 2, .between_starts = 500ms},
                    DeskLimits{.name = "RateOfSeveral",
                               .site = "http://a.test",
                               .rate = 10,
                               .per_host = 4,
                               .at_most = 4,
                               .between_starts = 100ms},
                    DeskLimits{.name = "Delay", .site = "http://a.test", .delay = 2s, .after_end = 2s},
                    DeskLimits{.name = "CrawlDelay",
                               .site = "http://a.test",
                               .robots = "User-agent: *\nCrawl-delay: 3\n",
                               .between_starts = 200ms,
                               .after_end = 3s},
                    DeskLimits{.name = "Loopback", .site = "http://127.0.0.1:8080", .at_most = 8}),
    [](const auto& limits) { return limits.param.name; });

TEST(HostDesk, AsksOneAtATimeUntilAHostHasAnswered) {
  DeskRig rig(desk_options());
  rig.options.robots = false;
  rig.options.per_host = 4;
  rig.options.rate = 1000;
  rig.open();
  const Url url = *Url::parse("http://a.test/");
  EXPECT_EQ(rig.desk->begin(1, url).leave, Leave::go);
  const auto second = rig.desk->begin(1, url);
  EXPECT_EQ(second.leave, Leave::wait);
  EXPECT_EQ(second.until, kNever);
  EXPECT_EQ(second.words, "one request at a time until it has answered");
  rig.run([&]() -> Coro<void> {
    HttpResponse response{.status = 200};
    response.connected = true;
    response.sent_at = rig.loop.time();
    rig.desk->end(1, {}, response);
    co_await sleep(10ms);
    EXPECT_EQ(rig.told[1], 1);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(rig.desk->begin(1, url).leave, Leave::go) << i;
      co_await sleep(10ms);
    }
    const auto fifth = rig.desk->begin(1, url);
    EXPECT_EQ(fifth.words, "4 of 4 requests are under way");
    EXPECT_EQ(rig.desk->look(1).words, fifth.words);
    EXPECT_EQ(rig.desk->look(1).doing, HostDesk::Doing::busy);
    EXPECT_EQ(rig.desk->look(1).waits_until, std::nullopt);
    EXPECT_EQ(rig.desk->look(1).under_way, 4u);
    EXPECT_EQ(rig.desk->look(1).at_most, 4u);
    EXPECT_EQ(rig.desk->look(1).site, "http://a.test");
  });
}

TEST(HostDesk, TakesBackAPermitThatWasNotUsed) {
  DeskRig rig(desk_options());
  rig.options.robots = false;
  rig.open();
  const Url url = *Url::parse("http://a.test/");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.desk->begin(1, url).leave, Leave::go) << i;
    rig.desk->give_back(1);
  }
  EXPECT_EQ(rig.desk->look(1).under_way, 0u);
  EXPECT_THROW(rig.desk->give_back(1), std::logic_error);
  EXPECT_THROW(rig.desk->end(2, {}, {}), std::logic_error);
}

TEST(HostDesk, GoesBySettingsOfHosts) {
  DeskRig rig(desk_options());
  rig.options.hosts.push_back(
      {.match = {"slow.test"}, .delay = 7s, .robots = false, .user_agent = "own/1", .headers = {{{"X-A", "1"}}}});
  rig.open();
  rig.run([&]() -> Coro<void> {
    co_await rig.visit("http://slow.test/");
    co_await rig.visit("http://slow.test/");
  });
  ASSERT_EQ(rig.web.log.size(), 2u);
  EXPECT_GE(rig.web.log[1].at - rig.web.log[0].ended, 7s);
  HttpRequest request;
  request.headers.emplace_back("x-a", "mine");
  rig.desk->dress(1, request);
  ASSERT_EQ(request.headers.size(), 2u);
  EXPECT_EQ(request.headers[1], (std::pair<std::string, std::string>("User-Agent", "own/1")));
}

TEST(HostDesk, FollowsTheLatencyOfPublicHosts) {
  DeskRig rig;
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    return {.status = asks_for_robots(request) ? 404 : 200, .latency = 2s};
  };
  rig.run([&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) co_await rig.visit("http://a.test/");
  });
  // Half a request under way on average.
  EXPECT_EQ(rig.web.log[5].at - rig.web.log[4].at, 4s);
}

// --- robots.txt -----------------------------------------------------------------------------------------------------

TEST(HostDesk, ReadsRobotsOnceForAllAndBeforeAllElse) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    return {.body = asks_for_robots(request) ? "User-agent: *\nDisallow: /no\n" : "page"};
  };
  rig.run([&]() -> Coro<void> {
    const Url yes = *Url::parse("http://a.test/yes");
    const auto first = rig.desk->begin(1, yes);
    EXPECT_EQ(first.words, "its robots.txt is being read");
    EXPECT_EQ(first.until, kNever);
    EXPECT_FALSE(rig.desk->look(1).robots_known);
    std::vector<Coro<HostDesk::Answer>> all;
    for (int i = 0; i < 3; ++i) all.push_back(rig.visit("http://a.test/yes"));
    all.push_back(rig.visit("http://a.test/no"));
    const auto answers = co_await gather(std::move(all));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)].leave, Leave::go);
    EXPECT_EQ(answers[3].leave, Leave::forbidden);
    EXPECT_TRUE(rig.desk->look(1).robots_known);
    // Who does not ask it may.
    EXPECT_EQ((co_await rig.visit("http://a.test/no", false)).leave, Leave::go);
  });
  EXPECT_EQ(rig.web.count("/robots.txt"), 1u);
  EXPECT_TRUE(asks_for_robots(rig.web.log.front()));
}

TEST(HostDesk, DoesNotReadRobotsForWhoDoesNotHeedThem) {
  DeskRig rig(desk_options());
  rig.open();
  rig.run([&]() -> Coro<void> { co_await rig.visit("http://a.test/", false); });
  EXPECT_EQ(rig.web.count("/robots.txt"), 0u);
}

TEST(HostDesk, ReadsRobotsAgainAfterADay) {
  DeskRig rig(desk_options());
  rig.open();
  bool allows = false;
  rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
    return {.body = asks_for_robots(request) && !allows ? "User-agent: *\nDisallow: /\nCrawl-delay: 9\n" : ""};
  };
  rig.run([&]() -> Coro<void> {
    EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::forbidden);
    EXPECT_EQ(rig.desk->look(1).delay, 9s);
    allows = true;
    co_await sleep(23h);
    EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::forbidden);
    EXPECT_EQ(rig.web.count("/robots.txt"), 1u);
    co_await sleep(61min);
    EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go);
    EXPECT_EQ(rig.desk->look(1).delay, std::nullopt);
  });
  EXPECT_EQ(rig.web.count("/robots.txt"), 2u);
}

TEST(HostDesk, TakesClientErrorsOfRobotsAsPermission) {
  for (const int status : {400, 401, 403, 404, 410, 451}) {
    DeskRig rig(desk_options());
    rig.open();
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      return {.status = asks_for_robots(request) ? status : 200};
    };
    rig.run([&]() -> Coro<void> { EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go) << status; });
  }
}

TEST(HostDesk, TakesServerErrorsOfRobotsAsAProhibitionThatIsAskedAgain) {
  for (const int status : {429, 500, 503}) {
    SCOPED_TRACE(status);
    DeskRig rig(desk_options());
    rig.open();
    bool fails = true;
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      return {.status = asks_for_robots(request) && fails ? status : 200};
    };
    rig.run([&]() -> Coro<void> {
      const auto answer = co_await rig.visit("http://a.test/");
      EXPECT_EQ(answer.leave, Leave::lost);
      EXPECT_EQ(answer.why.message, fmt::format("robots.txt answered HTTP {}", status));
      EXPECT_EQ(rig.web.log.size(), 3u);  // asked as often as a page would be
      EXPECT_EQ(rig.desk->look(1).trouble, answer.why.message);
      EXPECT_EQ(rig.desk->look(1).rests_until, answer.until);
      // Its other pages can be had.
      EXPECT_EQ((co_await rig.visit("http://a.test/", false)).leave, Leave::go);
      EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::lost);
      fails = false;
      co_await sleep_until(answer.until);
      EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go);
    });
  }
}

TEST(HostDesk, WaitsAsLongAsARobotsAnswerAsksFor) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
    if (!asks_for_robots(request) || rig.web.log.size() > 1) return {};
    return {.status = 503, .fields = {{"Retry-After", "900"}}};
  };
  rig.run([&]() -> Coro<void> { EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go); });
  EXPECT_GE(rig.web.log[1].at - rig.web.log[0].ended, 900s);
}

TEST(HostDesk, KeepsItsDistanceWhereRobotsAreRedirected) {
  DeskRig rig(desk_options());
  rig.options.delay = 4s;
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.url == "http://a.test/robots.txt") return {.status = 301, .fields = {{"Location", "/r"}}};
    if (request.url == "http://a.test/r") return {.status = 302, .fields = {{"Location", "http://b.test/r"}}};
    return {.body = request.url == "http://b.test/r" ? "User-agent: *\nDisallow: /no\n" : ""};
  };
  rig.run([&]() -> Coro<void> {
    EXPECT_EQ((co_await rig.visit("http://a.test/no")).leave, Leave::forbidden);
    EXPECT_EQ((co_await rig.visit("http://a.test/yes")).leave, Leave::go);
  });
  const auto own = rig.web.of("http://a.test");
  ASSERT_EQ(own.size(), 3u);
  for (std::size_t i = 1; i < own.size(); ++i) EXPECT_GE(own[i].at - own[i - 1].ended, 4s) << i;
}

// --- rests and losses -----------------------------------------------------------------------------------------------

TEST(HostDesk, RestsForAllWhenOnePageIsToldToComeLater) {
  for (const int status : {429, 503}) {
    DeskRig rig(desk_options());
    rig.open();
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      if (request.target == "/busy") return {.status = status, .fields = {{"Retry-After", "600"}}};
      return {.status = asks_for_robots(request) ? 404 : 200};
    };
    rig.run([&]() -> Coro<void> {
      co_await rig.visit("http://a.test/busy");
      const auto answer = rig.desk->begin(1, *Url::parse("http://a.test/other"));
      EXPECT_EQ(answer.leave, Leave::wait);
      EXPECT_EQ(answer.until, rig.loop.time() + 600s);
      EXPECT_EQ(answer.words, "rests for 10m");
      EXPECT_EQ(rig.desk->look(1).rests_until, answer.until);
      EXPECT_EQ(rig.desk->look(1).waits_until, answer.until);
      EXPECT_EQ(rig.desk->look(1).words, answer.words);
      EXPECT_EQ(rig.desk->doing(1), HostDesk::Doing::resting);
      co_await rig.visit("http://a.test/other");
    });
    EXPECT_EQ(rig.web.log.back().at - rig.web.log[1].ended, 600s);
  }
}

TEST(HostDesk, ComesBackToHostsThatCouldNotBeReachedEverMoreSeldom) {
  DeskRig rig(desk_options());
  rig.open();
  bool is_down = true;
  rig.web.reply = [&](const DeskRequest&) -> DeskReply {
    if (is_down) return {.latency = 10ms, .error = Errc::network, .connected = false};
    return {};
  };
  rig.run([&]() -> Coro<void> {
    std::vector<Duration> pauses;
    for (int i = 0; i < 6; ++i) {
      const auto answer = co_await rig.visit("http://a.test/");
      EXPECT_EQ(answer.leave, Leave::lost);
      EXPECT_EQ(answer.why.code, Errc::network);
      pauses.push_back(answer.until - rig.loop.time());
      // Nothing is asked meanwhile.
      const std::size_t asked = rig.web.log.size();
      co_await sleep_until(answer.until - 1s);
      EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::lost);
      EXPECT_EQ(rig.web.log.size(), asked);
      co_await sleep_until(answer.until);
    }
    EXPECT_EQ(pauses, (std::vector<Duration>{5min, 10min, 20min, 40min, 1h, 1h}));
    is_down = false;
    EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go);
    // What is over counts no more.
    is_down = true;
    for (;;) {
      const auto answer = co_await rig.visit("http://a.test/", false);
      if (answer.leave == Leave::go) continue;
      EXPECT_EQ(answer.until - rig.loop.time(), 5min);
      break;
    }
  });
}

TEST(HostDesk, AsksAHostThatIsSlowAtFirstWithMorePatience) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest&) -> DeskReply { return {.latency = 8s}; };
  rig.run([&]() -> Coro<void> { EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go); });
  ASSERT_EQ(rig.web.log.size(), 3u);
  EXPECT_EQ(rig.web.log[0].timeout, 3s);
  EXPECT_EQ(rig.web.log[1].timeout, 30s);
}

TEST(HostDesk, ProbesAHostWhosePagesDoNotAnswer) {
  DeskRig rig(desk_options());
  rig.open();
  bool is_silent = false;
  rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
    if (is_silent && request.method == HttpMethod::get) return {.latency = 50ms, .error = Errc::timeout};
    return {.status = asks_for_robots(request) ? 404 : 200};
  };
  rig.run([&]() -> Coro<void> {
    co_await rig.visit("http://a.test/");
    is_silent = true;
    for (int i = 0; i < 10; ++i) co_await rig.visit("http://a.test/silent");
    EXPECT_EQ(rig.desk->look(1).trouble, "it answered none of its last requests");
    is_silent = false;
    co_await rig.visit("http://a.test/");
  });
  ASSERT_EQ(rig.web.log.size(), 14u);
  EXPECT_EQ(rig.web.log[12].method, HttpMethod::head);
  EXPECT_EQ(rig.web.log[12].target, "/");
  EXPECT_EQ(rig.desk->look(1).trouble, "");
}

TEST(HostDesk, GivesUpAHostThatAnswersNothingButProbes) {
  DeskRig rig(desk_options());
  rig.open();
  bool is_silent = false;
  rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
    if (is_silent && request.method == HttpMethod::get) return {.latency = 30s, .error = Errc::timeout};
    return {.status = asks_for_robots(request) ? 404 : 200};
  };
  rig.run([&]() -> Coro<void> {
    co_await rig.visit("http://a.test/");
    is_silent = true;
    int visits = 0;
    HostDesk::Answer answer;
    do {
      answer = co_await rig.visit("http://a.test/silent");
    } while (answer.leave == Leave::go && ++visits < 1000);
    EXPECT_EQ(answer.leave, Leave::lost);
    EXPECT_EQ(answer.why.code, Errc::timeout);
    EXPECT_LT(visits, 200);
  });
}

// --- many hosts -----------------------------------------------------------------------------------------------------

TEST(HostDesk, SharesTheLimitOfAnAddress) {
  DeskRig rig(desk_options());
  rig.options.per_address = 2;
  DeskResolver resolver;
  for (int i = 0; i < 6; ++i) resolver.addresses[fmt::format("h{}.test", i)] = "8.8.8.8";
  resolver.addresses["other.test"] = "8.8.4.4";
  rig.open(&resolver);
  std::size_t there = 0, most = 0;
  rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
    if (request.site != "http://other.test") {
      there = static_cast<std::size_t>(std::ranges::count_if(
          rig.web.log, [](const DeskRequest& one) { return one.ended == kNever && one.site != "http://other.test"; }));
      most = std::max(most, there);
    }
    return {.status = asks_for_robots(request) ? 404 : 200, .latency = 2s};
  };
  rig.run([&]() -> Coro<void> {
    std::vector<Coro<void>> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back([](DeskRig& desk_rig, std::string site) -> Coro<void> {
        for (int page = 0; page < 5; ++page) EXPECT_EQ((co_await desk_rig.visit(site)).leave, Leave::go);
      }(rig, fmt::format("http://h{}.test/", i)));
    }
    all.push_back([](DeskRig& desk_rig) -> Coro<void> { co_await desk_rig.visit("http://other.test/"); }(rig));
    co_await gather(std::move(all));
  });
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(rig.web.log.size(), 6u * 6 + 2);
  // 36 requests of 2 s, two at a time.
  EXPECT_LE(rig.loop.time().time_since_epoch(), 40s);
  EXPECT_LE(rig.web.of("http://other.test").back().at.time_since_epoch(), 6s);
  rig.close();
}

TEST(HostDesk, AsksNoMoreHostsForTheirRobotsThanMayBeAskedAtOnce) {
  DeskRig rig(desk_options());
  rig.options.concurrency = 16;
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    // Every third is silent, which holds up the silent ones alone.
    return {.status = 404, .latency = request.site.back() == '0' ? 10min : 100ms};
  };
  rig.run([&]() -> Coro<void> {
    std::vector<Coro<HostDesk::Answer>> all;
    for (int i = 0; i < 200; ++i) all.push_back(rig.begun(fmt::format("http://h{}.test{}", i, i % 3 == 0 ? "0" : "1")));
    const auto answers = co_await gather(std::move(all));
    for (std::size_t i = 0; i < answers.size(); ++i)
      EXPECT_EQ(answers[i].leave, i % 3 == 0 ? Leave::lost : Leave::go) << i;
  });
  EXPECT_LE(rig.web.most_under_way, 16u);
  rig.close();
}

TEST(HostDesk, KeepsLittleOfHostsThatHaveNothingToDo) {
  DeskRig rig(desk_options());
  rig.open();
  constexpr int kHosts = 30'000;
  rig.run([&]() -> Coro<void> {
    for (int i = 0; i < kHosts; ++i) {
      const std::string url = fmt::format("http://h{}.test/", i);
      rig.desk->add(static_cast<std::uint32_t>(i + 1), fmt::format("http://h{}.test", i));
      co_await rig.visit(url);
    }
  });
  EXPECT_LE(rig.desk->active_hosts(), 11'000u);
  EXPECT_EQ(rig.desk->look(1).site, "http://h0.test");
  EXPECT_TRUE(rig.desk->look(1).robots_known);
  EXPECT_EQ(rig.desk->look(1).words, "nothing holds it up");
  EXPECT_EQ(rig.desk->doing(1), HostDesk::Doing::ready);
  EXPECT_EQ(rig.desk->look(99'999, "http://new.test").words, "nothing holds it up; its robots.txt is read first");
  EXPECT_GT(rig.desk->look(99'999, "http://new.test").at_most, 0u);
  rig.web.log.clear();
  rig.run([&]() -> Coro<void> { co_await rig.visit("http://h0.test/"); });
  EXPECT_EQ(rig.web.count("/robots.txt"), 0u);
  rig.close();
}

TEST(HostDesk, RemembersIdleHostsThatAreLost) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.site.starts_with("http://down")) return {.latency = 1ms, .error = Errc::dns, .connected = false};
    return {.status = 404, .latency = 1ms};
  };
  rig.run([&]() -> Coro<void> {
    const auto lost = co_await rig.visit("http://down.test/");
    EXPECT_EQ(lost.leave, Leave::lost);
    co_await sleep(1s);
    for (int i = 0; i < 6'000; ++i) {
      const std::string url = fmt::format("http://h{}.test/", i);
      (void)rig.desk->begin(rig.host_of(url), *Url::parse(url), false);
      rig.desk->give_back(rig.host_of(url));
    }
    EXPECT_LT(rig.desk->active_hosts(), 6'000u);
    EXPECT_EQ(rig.desk->look(1).trouble, "it could not be reached");
    EXPECT_TRUE(rig.desk->look(1).words.ends_with(": it could not be reached")) << rig.desk->look(1).words;
    EXPECT_EQ(rig.desk->doing(1), HostDesk::Doing::resting);
    const auto again = co_await rig.begun("http://down.test/");
    EXPECT_EQ(again.leave, Leave::lost);
    EXPECT_EQ(again.why.code, Errc::dns);
    EXPECT_GE(again.until, lost.until);
    EXPECT_LE(again.until, lost.until + 2s);
  });
}

// --- who verifies, and who does not

TEST(HostDesk, ReadsRobotsUnverifiedForPagesThatAskSoAndForThemAlone) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.target == "/robots.txt") return {.body = "User-agent: *\nDisallow: /no\n", .latency = 1ms};
    return {.latency = 1ms};
  };
  rig.run([&]() -> Coro<void> {
    const auto enter = [&](std::string url, bool verifies) -> Coro<Leave> {
      const auto answer = co_await rig.begun(url, true, kNever, verifies);
      if (answer.leave == Leave::go) (void)co_await rig.sent(url);
      co_return answer.leave;
    };
    EXPECT_EQ(co_await enter("https://a.test/1", false), Leave::go);
    EXPECT_EQ(co_await enter("https://a.test/no", false), Leave::forbidden);
    EXPECT_EQ(rig.web.count("/robots.txt"), 1u);
    EXPECT_FALSE(rig.web.log.front().verifies());
    EXPECT_TRUE(rig.web.log.front().is_anonymous);
    EXPECT_EQ(co_await enter("https://a.test/no", true), Leave::forbidden);
    EXPECT_EQ(rig.web.count("/robots.txt"), 2u) << "who does not verify may have read anybody's";
    EXPECT_TRUE(rig.web.log.back().verifies());
    EXPECT_EQ(co_await enter("https://a.test/no", false), Leave::forbidden);
    EXPECT_EQ(co_await enter("http://a.test/1", false), Leave::go);
    EXPECT_TRUE(rig.web.log.back().verifies()) << "there is nothing to verify";
    EXPECT_EQ(rig.web.count("/robots.txt"), 3u);
  });
}

TEST(HostDesk, AHostWithoutAGoodCertificateIsLostOnlyForWhoVerifies) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.verifies() && request.site == "https://a.test")
      return {.latency = 1ms, .error = Errc::tls, .connected = false};
    if (request.site == "https://broken.test") return {.latency = 1ms, .error = Errc::tls, .connected = false};
    return {.status = 404, .latency = 1ms};
  };
  rig.run([&]() -> Coro<void> {
    EXPECT_EQ((co_await rig.begun("https://a.test/")).leave, Leave::lost);
    const auto trusting = co_await rig.begun("https://a.test/", true, kNever, false);
    EXPECT_EQ(trusting.leave, Leave::go);
    rig.desk->give_back(rig.host_of("https://a.test/"));
    EXPECT_EQ((co_await rig.begun("https://a.test/")).leave, Leave::lost);

    EXPECT_EQ((co_await rig.begun("https://broken.test/", true, kNever, false)).leave, Leave::lost);
    const std::size_t asked = rig.web.log.size();
    EXPECT_EQ((co_await rig.begun("https://broken.test/", true, kNever, false)).leave, Leave::lost);
    EXPECT_EQ(rig.web.log.size(), asked) << "it rests, for what is no matter of certificates";
  });
}

TEST(HostDesk, GivesAnonymousRequestsNoFieldOfItsSettingsButTheAgent) {
  CrawlOptions options = desk_options();
  HostSettings settings;
  settings.match = {"a.test"};
  settings.headers = {{{"X-Key", "secret"}}};
  settings.user_agent = "shop/1";
  options.hosts.push_back(settings);
  DeskRig rig(options);
  rig.open();
  HttpRequest request;
  request.url = *Url::parse("https://a.test/");
  rig.desk->add(1, "https://a.test");
  request.is_anonymous = true;
  rig.desk->dress(1, request);
  EXPECT_THAT(request.headers, testing::ElementsAre(testing::Pair("User-Agent", "shop/1")));
  request.is_anonymous = false;
  rig.desk->dress(1, request);
  EXPECT_THAT(request.headers,
              testing::UnorderedElementsAre(testing::Pair("User-Agent", "shop/1"), testing::Pair("X-Key", "secret")));
}

// --- who waits, and the end -----------------------------------------------------------------------------------------

TEST(HostDesk, TellsOfFreeHostsLaterAndSurvivesWhatTheToldThrow) {
  DeskRig rig(desk_options());
  rig.open();
  std::vector<std::string> reports;
  rig.loop.set_exception_handler(
      [&](std::string_view where, const std::exception_ptr&) { reports.emplace_back(where); });
  bool is_inside = false;
  std::vector<std::uint32_t> told;
  rig.desk->on_free([&](std::uint32_t host) {
    EXPECT_FALSE(is_inside);
    told.push_back(host);
    if (host == 1) throw std::runtime_error("no");
  });
  rig.run([&]() -> Coro<void> {
    is_inside = true;
    (void)rig.desk->begin(1, *Url::parse("http://a.test/"));
    (void)rig.desk->begin(2, *Url::parse("http://b.test/"));
    is_inside = false;
    co_await sleep(1s);
  });
  EXPECT_EQ(told, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(reports, (std::vector<std::string>{"HostDesk::on_free"}));
}

TEST(HostDesk, TellsNobodyWhoWasNotToldToWait) {
  DeskRig rig(desk_options());
  rig.options.robots = false;
  rig.open();
  rig.run([&]() -> Coro<void> { co_await rig.visit("http://a.test/"); });
  EXPECT_TRUE(rig.told.empty());
}

TEST(HostDesk, ClosesWhileRobotsAreRead) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest&) -> DeskReply { return {.latency = 10s}; };
  rig.run([&]() -> Coro<void> {
    for (std::uint32_t host = 1; host <= 3; ++host)
      (void)rig.desk->begin(host, *Url::parse(fmt::format("http://h{}.test/", host)));
    co_await sleep(1s);
    EXPECT_EQ(rig.web.under_way, 3u);
    (void)rig.desk->begin(4, *Url::parse("http://h4.test/"));  // begun, but not yet run
    co_await rig.desk->close();
    EXPECT_EQ(rig.web.under_way, 0u);
    const auto answer = rig.desk->begin(1, *Url::parse("http://h1.test/"));
    EXPECT_EQ(answer.leave, Leave::wait);
    EXPECT_EQ(answer.words, "no host is asked any more");
    co_await rig.desk->close();
    rig.desk.reset();
    co_await sleep(1h);
  });
  EXPECT_EQ(rig.loop.task_count(), 0u);
  EXPECT_EQ(rig.loop.time().time_since_epoch(), 1h + 1s);
}

TEST(HostDesk, MayGoWhileItsQuestionsAreUnderWay) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest&) -> DeskReply { return {.latency = 10s}; };
  rig.run([&]() -> Coro<void> {
    (void)rig.desk->begin(1, *Url::parse("http://a.test/"));
    co_await sleep(1s);
    rig.desk.reset();
    co_await sleep(1s);
  });
  EXPECT_EQ(rig.web.under_way, 0u);
  EXPECT_EQ(rig.loop.task_count(), 0u);
}

TEST(HostDesk, AsksForRobotsElsewhereInTheTurnOfThatHost) {
  DeskRig rig(desk_options());
  rig.options.rate = 5;
  rig.options.per_host = 1;
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    if (request.target == "/robots.txt" && request.site != "http://main.test") {
      return {.status = 301, .fields = {{"Location", "http://main.test/robots.txt"}}};
    }
    return {.body = request.target == "/robots.txt" ? "User-agent: *\nDisallow: /no\n" : ""};
  };
  rig.run([&]() -> Coro<void> {
    std::vector<Task<void>> visits;
    for (int i = 0; i < 30; ++i) {
      visits.push_back(rig.loop.create_task([](DeskRig& desk_rig, int number) -> Coro<void> {
        EXPECT_EQ((co_await desk_rig.visit(fmt::format("http://h{}.test/no", number))).leave, Leave::forbidden);
      }(rig, i)));
    }
    for (auto& visit : visits) co_await visit;
  });
  const auto log = rig.web.of("http://main.test");
  EXPECT_EQ(log.size(), 30u);
  for (std::size_t i = 1; i < log.size(); ++i) {
    EXPECT_GE(log[i].at, log[i - 1].ended);
    EXPECT_GE(log[i].at - log[i - 1].at, 200ms);
  }
}

TEST(HostDesk, AsksTwoHostsThatNameEachOtherForRobotsToTheEnd) {
  DeskRig rig(desk_options());
  rig.open();
  rig.web.reply = [](const DeskRequest& request) -> DeskReply {
    const char* other = request.site == "http://a.test" ? "http://b.test/robots.txt" : "http://a.test/robots.txt";
    if (request.target == "/robots.txt") return {.status = 301, .fields = {{"Location", other}}};
    return {};
  };
  rig.run([&]() -> Coro<void> {
    auto other = rig.loop.create_task([](DeskRig& desk_rig) -> Coro<void> {
      EXPECT_EQ((co_await desk_rig.visit("http://b.test/")).leave, Leave::go);
    }(rig));
    EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go);
    co_await other;
  });
}

TEST(HostDesk, HeedsNoMoreOfACrawlDelayThanIsSaid) {
  for (const char* delay : {"86400", "1e9", "inf"}) {
    DeskRig rig(desk_options());
    rig.options.max_crawl_delay = 1min;
    rig.open();
    rig.web.reply = [&](const DeskRequest& request) -> DeskReply {
      return {.body = asks_for_robots(request) ? fmt::format("User-agent: *\nCrawl-delay: {}\n", delay) : ""};
    };
    rig.run([&]() -> Coro<void> { EXPECT_EQ((co_await rig.visit("http://a.test/")).leave, Leave::go); });
    EXPECT_GE(rig.web.log.at(1).at - rig.web.log[0].ended, 1min) << delay;
    EXPECT_LT(rig.web.log[1].at - rig.web.log[0].ended, 61s) << delay;
  }
}

TEST(HostDesk, LetsWhatWasRedirectedGoFirst) {
  DeskRig rig(desk_options());
  rig.options.robots = false;
  rig.open();
  const Url url = *Url::parse("http://a.test/");
  std::string order;
  rig.run([&]() -> Coro<void> {
    co_await rig.visit("http://a.test/");
    EXPECT_EQ((co_await rig.begun("http://a.test/")).leave, Leave::go);
    auto waits = rig.loop.create_task([](DeskRig& desk_rig, std::string& said) -> Coro<void> {
      co_await desk_rig.begun("http://a.test/");
      said += "begun ";
      (void)co_await desk_rig.sent("http://a.test/");
    }(rig, order));
    auto hops = rig.loop.create_task([](DeskRig& desk_rig, const Url& to, std::string& said) -> Coro<void> {
      EXPECT_EQ((co_await desk_rig.desk->enter(1, to, true, kNever)).leave, Leave::go);
      said += "hop ";
      (void)co_await desk_rig.sent("http://a.test/");
    }(rig, url, order));
    co_await sleep(1s);
    // One that cannot wait so long.
    const auto late = co_await rig.desk->enter(1, url, true, rig.loop.time() + 1s);
    EXPECT_EQ(late.leave, Leave::wait);
    EXPECT_EQ(late.words, "others were redirected to it before");
    (void)co_await rig.sent("http://a.test/");
    co_await hops;
    co_await waits;
  });
  EXPECT_EQ(order, "hop begun ");
}

}  // namespace
}  // namespace argiope

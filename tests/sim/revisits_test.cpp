// Crawls that fetch again, in virtual time: when each page is asked, what changes are noted, and what a dead host, a
// kill and a jump of the clock do to that.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "argiope/async/event_loop.hpp"
#include "crawl/report/internal/crawl_diff.hpp"
#include "sim/checked_site.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct LivingSite : CheckedSite {
  LivingSite() {
    sim.options.check_links = sim.options.check_assets = sim.options.check_fragments = false;
    sim.options.keep_links = sim.options.keep_facts = false;
    sim.options.rate = 1000;
    page("/", "<a href=/a>a</a><a href=/b>b</a>");
    page("/a", "a");
    page("/b", "b");
    const auto answer = sim.transport.before_reply;
    sim.transport.before_reply = [this, answer](const SyntheticRequest& request, TimePoint now) {
      for (const auto& [at, change] : later) {
        if (now >= at && done.insert(at).second) change();
      }
      conditions[std::string(request.target)] = std::string(request.if_none_match);
      SyntheticReply reply = answer(request, now);
      for (const auto& [name, value] : reply.headers) {
        if (name == "ETag" && value == request.if_none_match) {
          reply.status = 304;
          reply.body.clear();
        }
      }
      return reply;
    };
  }

  // For so long.
  CrawlReport run_for(Duration span) {
    sim.options.max_time = span;
    sim.transport.log.clear();
    return sim.run();
  }
  // Whole minutes at which a target was asked in the last run, from its beginning.
  std::vector<int> minutes(const std::string& target) const {
    std::vector<int> out;
    for (const ServedRequest& request : sim.transport.log) {
      if (request.target != target) continue;
      out.push_back(static_cast<int>(std::chrono::floor<std::chrono::minutes>(request.at - start).count()));
    }
    return out;
  }
  // Since the beginning of the run with this number: "kind /target".
  std::vector<std::string> changes(const std::string& since) {
    EXPECT_TRUE(sim.store->flush());
    auto diff = parse_since(*sim.store, since, sim.backend.clock().wall_now());
    EXPECT_TRUE(diff);
    std::vector<std::string> out;
    EXPECT_TRUE(diff_crawl(*sim.store, *diff, [&](const DiffEntry& entry) {
      out.push_back(std::string(to_string(entry.kind)) + " " +
                    entry.url.substr(std::string("http://host0.test").size()));
    }));
    return out;
  }
  void mark() { start = sim.backend.clock().now(); }

  TimePoint start = sim.backend.clock().now();
  std::map<TimePoint, std::function<void()>> later;
  std::set<TimePoint> done;
  std::map<std::string, std::string> conditions;  // If-None-Match of the last request for a target
};

TEST(Revisits, OfACrawlThatGoesOnComeAfterTheAge) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  const CrawlReport report = site.run_for(3h + 30min);
  EXPECT_EQ(report.stopped_by, "max_time");
  for (const char* target : {"/", "/a", "/b"})
    EXPECT_THAT(site.minutes(target), ElementsAre(0, 60, 120, 180)) << target;
  EXPECT_EQ(report.stats.kept_fresh, 3u);
  EXPECT_EQ(report.stats.queued, 0u);
}

TEST(Revisits, OfWhatIsQueuedAnewAreHeldAgainstTheLastAnswer) {
  LivingSite site;
  site.sim.run();
  EXPECT_THAT(site.changes("1"), UnorderedElementsAre("new /", "new /a", "new /b"));
  site.page("/a", "another a");
  site.replies.erase({0, "/b"});
  site.sim.options.requeue = Requeue::all;
  EXPECT_EQ(site.sim.run().stats.fetched, 3u);
  EXPECT_THAT(site.changes("2"), UnorderedElementsAre("changed /a", "gone /b"));
  site.page("/b", "b");
  site.sim.loop.run_until_complete([]() -> Coro<void> { co_await sleep(1s); }());
  site.sim.run();
  EXPECT_THAT(site.changes("3"), UnorderedElementsAre("mended /b"));
}

TEST(Revisits, ThatLieOnShelvesAreAskedAtOnceByARunThatDoesNotGoOn) {
  for (const bool is_adaptive : {false, true}) {
    LivingSite site;
    std::string links;
    for (int i = 0; i < 40; ++i) {
      links += fmt::format("<a href=/{}>x</a>", i);
      site.page(fmt::format("/{}", i), "x");
    }
    site.page("/", links);
    site.sim.options.queue_size = 8;
    site.sim.options.age = 24h;
    site.sim.options.forever = !is_adaptive;
    if (is_adaptive) site.sim.options.adaptive = RevisitBounds{24h, 48h};
    site.run_for(1h);
    site.sim.loop.run_until_complete([]() -> Coro<void> { co_await sleep(1s); }());
    site.sim.options.age = 0s;
    site.sim.options.forever = false;
    site.sim.options.adaptive.reset();
    const TimePoint begin = site.sim.backend.clock().now();
    const CrawlReport report = site.run_for(100h);
    EXPECT_EQ(report.stats.fetched, 41u);
    EXPECT_TRUE(report.finished);
    EXPECT_LT(site.sim.backend.clock().now() - begin, 1h);
  }
}

TEST(Revisits, FindNewPagesWhileTheyGoOn) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.later[site.start + 90min] = [&] {
    site.page("/", "<a href=/a>a</a><a href=/new>n</a>");
    site.page("/new", "new");
    site.replies.erase({0, "/b"});
  };
  site.run_for(4h + 30min);
  EXPECT_THAT(site.minutes("/new"), ElementsAre(120, 180, 240));
  EXPECT_THAT(site.minutes("/b"), ElementsAre(0, 60, 120, 180, 240)) << "what is gone may come back";
  EXPECT_THAT(site.changes(""), UnorderedElementsAre("new /", "new /a", "new /new", "broken /b"))
      << "since the run began all of it is new";
}

TEST(Revisits, GoOnWhereTheyWere) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.run_for(90min);
  site.mark();
  site.run_for(2h);
  for (const char* target : {"/", "/a", "/b"}) EXPECT_THAT(site.minutes(target), ElementsAre(30, 90)) << target;
  site.mark();
  site.sim.options.age = 10min;
  site.run_for(5min);
  for (const char* target : {"/", "/a", "/b"})
    EXPECT_THAT(site.minutes(target), ElementsAre(0)) << "overdue by the new age";
}

TEST(Revisits, AreOrdinaryAgainWithoutForever) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.run_for(90min);
  site.sim.options.forever = false;
  site.sim.options.max_time.reset();
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), IsEmpty()) << "half an hour old";
  site.sim.options.age = 20min;
  EXPECT_TRUE(site.run().finished);
  EXPECT_EQ(site.asked().size(), 3u);
}

TEST(Revisits, FitInASmallMemory) {
  LivingSite site;
  std::string links;
  for (int i = 0; i < 300; ++i) {
    const std::string target = "/p" + std::to_string(i);
    links += "<a href=" + target + ">x</a>";
    site.page(target, target);
  }
  site.page("/", links);
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.sim.options.queue_size = 10;
  const CrawlReport report = site.run_for(3h + 30min);
  EXPECT_EQ(report.stats.kept_fresh, 301u);
  EXPECT_LE(report.stats.in_memory, 60u);
  for (int i = 0; i < 300; ++i) EXPECT_THAT(site.minutes("/p" + std::to_string(i)), ElementsAre(0, 60, 120, 180)) << i;
}

TEST(Revisits, AdaptToWhatChanges) {
  LivingSite site;
  site.sim.options.adaptive = RevisitBounds{10min, 4h};
  site.sim.options.age = 40min;
  site.sim.options.forever = true;
  int version = 0;
  const auto answer = site.sim.transport.before_reply;
  site.sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = answer(request, now);
    if (request.target == "/a") reply.body = std::to_string(++version);
    return reply;
  };
  site.run_for(3h + 5min);
  EXPECT_THAT(site.minutes("/a"), ElementsAre(0, 40, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180));
  EXPECT_THAT(site.minutes("/b"), ElementsAre(0, 40, 100)) << "40 minutes, an hour, an hour and a half";
  site.mark();
  site.run_for(10min);
  EXPECT_THAT(site.minutes("/b"), ElementsAre(5)) << "its interval is kept over runs";
}

TEST(Revisits, AdaptOverRunsToo) {
  LivingSite site;
  site.sim.options.adaptive = RevisitBounds{10min, 4h};
  site.sim.options.age = 1h;
  site.run();
  const auto wait = [&](Duration span) {
    auto body = [&]() -> Coro<void> { co_await sleep(span); };
    site.sim.loop.run_until_complete(body());
  };
  wait(50min);
  site.run();
  EXPECT_THAT(site.asked(), IsEmpty());
  wait(15min);
  site.page("/a", "other");
  site.run();
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/a", "GET 0/b"));
  wait(31min);
  site.run();
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/a")) << "half an hour where it has changed";
}

TEST(Revisits, AskConditionallyAlsoAfterAFailure) {
  LivingSite site;
  site.replies[{0, "/a"}].headers.emplace_back("ETag", "\"one\"");
  site.run();
  EXPECT_EQ(site.conditions["/a"], "");
  int failures = 1;
  const auto answer = site.sim.transport.before_reply;
  site.sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = answer(request, now);
    if (request.target == "/a" && failures-- > 0) reply.status = 503;
    return reply;
  };
  site.sim.options.age = Duration{};
  const CrawlReport report = site.run();
  EXPECT_EQ(site.conditions["/a"], "\"one\"");
  EXPECT_EQ(report.statuses.at(304), 1u);
  EXPECT_THAT(site.changes(""), IsEmpty());
}

TEST(CrawlDiff, NamesWhatHasBecomeOfEachPage) {
  LivingSite site;
  for (const char* target : {"/gone", "/moved", "/broken", "/mended", "/same", "/changed"}) site.page(target, target);
  site.page("/",
            "<a href=/gone>1</a><a href=/moved>2</a><a href=/broken>3</a><a href=/mended>4</a><a href=/same>5</a><a "
            "href=/changed>6</a>");
  site.replies[{0, "/mended"}].status = 404;
  site.sim.options.age = Duration{};
  site.run();
  EXPECT_THAT(site.changes("1"), UnorderedElementsAre("new /", "new /gone", "new /moved", "new /broken",
                                                      "broken /mended", "new /same", "new /changed"));
  auto pause = [&]() -> Coro<void> { co_await sleep(1h); };
  site.sim.loop.run_until_complete(pause());
  site.replies.erase({0, "/gone"});
  site.redirect("/moved", 301, "/same");
  site.replies[{0, "/broken"}].status = 403;
  site.replies[{0, "/mended"}].status = 200;
  site.page("/changed", "other");
  site.page("/same", "/same");
  site.run();
  EXPECT_THAT(site.changes(""), UnorderedElementsAre("gone /gone", "moved /moved", "broken /broken", "mended /mended",
                                                     "changed /changed"));
  EXPECT_EQ(site.changes(""), site.changes("2"));
  EXPECT_EQ(site.changes(""), site.changes("30m"));
  site.sim.loop.run_until_complete(pause());
  site.page("/gone", "/gone");
  site.page("/broken", "/broken");
  site.run();
  EXPECT_THAT(site.changes(""), UnorderedElementsAre("mended /gone", "mended /broken"));
  EXPECT_THAT(site.changes("2"), UnorderedElementsAre("moved /moved", "mended /mended", "changed /changed"))
      << "what is as it was has not changed in all";
  EXPECT_EQ(parse_since(*site.sim.store, "99", WallTime{}).error().code, Errc::not_found);
  EXPECT_EQ(parse_since(*site.sim.store, "yesterday", WallTime{}).error().code, Errc::invalid_input);
}

TEST(Revisits, OfADeadHostMakeNothingGone) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.run_for(30min);
  const TimePoint down = site.sim.backend.clock().now() + 2h;
  site.sim.transport.connect_fails = [&](std::uint32_t, TimePoint now) {
    return now >= down && now < down + 24h ? std::optional(Errc::network) : std::nullopt;
  };
  site.mark();
  const CrawlReport report = site.run_for(30h);
  EXPECT_THAT(site.changes(""), IsEmpty());
  EXPECT_EQ(report.broken_count, 0u);
  EXPECT_EQ(report.stats.kept_fresh, 3u);
  for (const char* target : {"/", "/a", "/b"}) {
    const auto at = site.minutes(target);
    EXPECT_TRUE(std::ranges::none_of(at, [](int minute) { return minute >= 120 && minute < 26 * 60; })) << target;
    EXPECT_GE(std::ranges::count_if(at, [](int minute) { return minute >= 26 * 60; }), 2)
        << target << " is asked again when the host is back";
  }
}

TEST(Revisits, AreOfRunsThatAreWrittenDown) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.run_for(90min);
  site.sim.options.forever = false;
  site.sim.options.max_time.reset();
  site.run();
  std::vector<UrlRun> runs;
  ASSERT_TRUE(site.sim.store->scan_runs([&](const UrlRun& run) {
    runs.push_back(run);
    return true;
  }));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].stopped_by, "max_time");
  EXPECT_EQ(runs[0].fetched, 6u);
  EXPECT_EQ(std::chrono::floor<std::chrono::minutes>(runs[0].ended - runs[0].began), 90min);
  EXPECT_TRUE(runs[1].finished);
  EXPECT_EQ(runs[1].run_id, 2);
}

TEST(Revisits, KeepTheirPaceWhenTheClockJumps) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.later[site.start + 65min] = [&] {
    site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() + 24h);
  };
  site.later[site.start + 125min] = [&] {
    site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() - 48h);
  };
  site.run_for(4h + 30min);
  for (const char* target : {"/a", "/b"})
    EXPECT_THAT(site.minutes(target), ElementsAre(0, 60, 120, 180, 240)) << target;
}

// Times of the day at which `target` answers with a 503.
void be_busy(LivingSite& site, const std::string& target, std::function<bool(TimePoint)> when) {
  const auto answer = site.sim.transport.before_reply;
  site.sim.transport.before_reply = [answer, target, when](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = answer(request, now);
    if (request.target == target && when(now)) reply.status = 503;
    return reply;
  };
}

TEST(Revisits, KeepTheirIntervalOverAttemptsThatFail) {
  LivingSite site;
  site.sim.options.adaptive = RevisitBounds{10min, 24h};
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  be_busy(site, "/a", [&, failures = 0](TimePoint now) mutable { return now - site.start > 30min && failures++ < 1; });
  be_busy(site, "/b", [&](TimePoint now) { return now - site.start > 30min && now - site.start < 90min; });
  site.run_for(6h);
  EXPECT_THAT(site.minutes("/a"), ElementsAre(0, 60, 60, 150, 285))
      << "tried again at once, and then as if nothing had been";
  std::vector<int> b = site.minutes("/b");
  b.erase(std::unique(b.begin(), b.end()), b.end());
  EXPECT_THAT(b, ElementsAre(0, 60, 120, 150, 195, 262))
      << "what fails is asked again after the interval that it had, and then it has changed";
}

TEST(Revisits, KeepTheirIntervalWhileTheirHostIsDown) {
  LivingSite site;
  site.sim.options.adaptive = RevisitBounds{10min, 7 * 24h};
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  const TimePoint down = site.start + 30min;
  site.sim.transport.connect_fails = [&](std::uint32_t, TimePoint now) {
    return now >= down && now < down + 24h ? std::optional(Errc::network) : std::nullopt;
  };
  site.run_for(60h);
  const auto at = site.minutes("/b");
  ASSERT_GE(at.size(), 3u);
  EXPECT_LT(at[1], 26 * 60);
  EXPECT_NEAR(at[2] - at[1], 90, 1) << "an hour made half as long again";
}

TEST(Revisits, KeepTheirIntervalsWhenTheClockJumps) {
  LivingSite site;
  site.sim.options.adaptive = RevisitBounds{10min, 7 * 24h};
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.later[site.start + 5min] = [&] {
    site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() - 48h);
  };
  site.run_for(6h);
  EXPECT_THAT(site.minutes("/b"), ElementsAre(0, 60, 150, 285));
}

TEST(Revisits, OfPagesThatWallsWantACookieForBeginAtOnce) {
  LivingSite site;
  site.sim.options.age = 24h;
  site.sim.options.forever = true;
  site.sim.transport.before_reply = [&, answer = site.sim.transport.before_reply](const SyntheticRequest& request,
                                                                                  TimePoint now) {
    if (request.target == "/" && request.cookie.empty()) {
      SyntheticReply reply;
      reply.status = 302;
      reply.headers.emplace_back("Location", "/wall");
      return reply;
    }
    if (request.target == "/wall") {
      SyntheticReply reply;
      reply.status = 302;
      reply.headers.emplace_back("Location", "/");
      reply.headers.emplace_back("Set-Cookie", "seen=1");
      return reply;
    }
    return answer(request, now);
  };
  const CrawlReport report = site.run_for(1h);
  EXPECT_THAT(site.minutes("/"), ElementsAre(0, 0));
  EXPECT_THAT(site.minutes("/a"), ElementsAre(0));
  EXPECT_EQ(report.stats.kept_fresh, 4u);
  EXPECT_EQ(report.stats.queued, 0u);
}

TEST(Revisits, CountCopiesOnce) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.options.forever = true;
  site.sim.options.duplicates.skip_exact = true;
  site.sim.options.duplicates.trap_pages = 3;
  site.page("/b", "a");
  const CrawlReport report = site.run_for(9h + 30min);
  EXPECT_THAT(report.traps, IsEmpty()) << "one page is no row of them";
  EXPECT_EQ(site.minutes("/b").size(), 10u);
  EXPECT_EQ(report.left_out.at("duplicate"), 1u);
  site.sim.options.forever = false;
  site.sim.options.max_time.reset();
  EXPECT_EQ(site.run().left_out.at("duplicate"), 1u);
}

TEST(Revisits, ComeSoonerWhenAClockThatWasWrongIsSetBack) {
  LivingSite site;
  site.sim.options.age = 1h;
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() + 24h * 3650);
  site.run();
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() - 24h * 3650);
  site.run();
  EXPECT_EQ(site.asked().size(), 3u) << "fetched in the future, which nobody can have done";
  site.sim.options.forever = true;
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() - 24h * 365);
  site.mark();
  site.run_for(90min);
  EXPECT_EQ(site.minutes("/a").size(), 2u);
}

TEST(Revisits, TryNowWhatAClockThatWasWrongHasPutOff) {
  LivingSite site;
  const auto year = 24h * 365;
  be_busy(site, "/a", [&](TimePoint) { return true; });
  site.sim.options.retries = 10;
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() + year);
  site.run_for(5s);
  EXPECT_EQ(site.record("http://host0.test/a").state, UrlState::queued);
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() - year);
  site.mark();
  site.run_for(24h);
  EXPECT_THAT(site.minutes("/a"), testing::Contains(0));
}

TEST(Revisits, NoteNoChangeOfWhatWasNeverFetched) {
  LivingSite site;
  site.sim.options.check_links = true;
  site.sim.options.age = Duration{};
  site.page("/",
            "<a href=/a>a</a><a href=http://dead.test/1>1</a><a href=http://dead.test/2>2</a><a "
            "href=http://dead.test/3>3</a>");
  site.run();
  auto pause = [&]() -> Coro<void> { co_await sleep(1h); };
  site.sim.loop.run_until_complete(pause());
  site.run();
  std::size_t changes = 0;
  ASSERT_TRUE(site.sim.store->scan_changes(WallTime{}, [&](const UrlChange&) { return ++changes > 0; }));
  EXPECT_EQ(changes, 0u);
}

TEST(Revisits, OfPagesLeaveNothingToTheUrlsOfAHostThatIsGivenUp) {
  LivingSite site;
  site.sim.options.age = Duration{};
  site.sim.options.concurrency = 1;  // one place for all visits, one after the other
  site.sim.options.seeds.push_back(*Url::parse("http://host1.test/"));
  site.sim.transport.connect_fails = [](std::uint32_t host, TimePoint) {
    return host == 1 ? std::optional(Errc::network) : std::nullopt;
  };
  for (const char* page : {"/", "/a", "/b"}) site.replies[{0, page}].headers.emplace_back("ETag", "\"e\"");
  for (int run = 0; run < 3; ++run) {
    const CrawlReport report = site.run();
    EXPECT_EQ(report.lost_host_count, 1u) << run;
    EXPECT_EQ(site.record("http://host1.test/").state, UrlState::failed) << run;
    EXPECT_EQ(site.record("http://host1.test/").etag, "") << run;
    EXPECT_EQ(site.conditions["/b"], run == 0 ? "" : "\"e\"") << run;
  }
}

TEST(Revisits, DoNotAskWhetherARedirectOrAnErrorHasChanged) {
  LivingSite site;
  site.sim.options.age = 0s;
  site.redirect("/a", 301, "/moved");
  site.replies[{0, "/a"}].headers.emplace_back("ETag", "\"a\"");
  site.page("/b", "gone");
  site.replies[{0, "/b"}].status = 404;
  site.replies[{0, "/b"}].headers.emplace_back("ETag", "\"b\"");
  site.page("/moved", "m");
  site.replies[{0, "/moved"}].headers.emplace_back("ETag", "\"m\"");
  for (int run = 0; run < 3; ++run) {
    site.run();
    EXPECT_EQ(site.record("http://host0.test/a").redirect_to, "http://host0.test/moved") << run;
    EXPECT_EQ(site.record("http://host0.test/b").status_code, 404) << run;
  }
  EXPECT_EQ(site.conditions["/moved"], "\"m\"");
  EXPECT_THAT(site.changes("2"), testing::IsEmpty());
}

TEST(Revisits, APageThatIsNotModifiedThoughNobodyAskedIsNotKnown) {
  LivingSite site;
  site.replies[{0, "/a"}] = SyntheticReply{.status = 304};
  const CrawlReport report = site.run();
  EXPECT_EQ(site.record("http://host0.test/a").state, UrlState::failed);
  EXPECT_NE(site.record("http://host0.test/a").status_code, 200);
  EXPECT_THAT(site.record("http://host0.test/a").error, testing::HasSubstr("304"));
  EXPECT_TRUE(report.finished);
}

TEST(Revisits, ForgetADelayThatRobotsTxtNamesNoMore) {
  LivingSite site;
  site.sim.options.max_crawl_delay = 1h;
  site.sim.options.age = 6h;
  site.sim.options.forever = true;
  site.file("/robots.txt", "text/plain", "User-agent: *\nCrawl-delay: 600\n");
  site.later[site.start + 23h] = [&] { site.file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /no\n"); };
  site.later[site.start + 25h] = [&] {
    site.page("/", "<a href=/c>c</a><a href=/d>d</a>");
    site.page("/c", "c");
    site.page("/d", "d");
  };
  site.run_for(32h);
  const auto a = site.minutes("/a"), b = site.minutes("/b"), c = site.minutes("/c"), d = site.minutes("/d");
  ASSERT_FALSE(a.empty() || b.empty() || c.empty() || d.empty());
  EXPECT_GE(std::abs(a.front() - b.front()), 10);
  EXPECT_LE(std::abs(c.front() - d.front()), 1);
}

}  // namespace
}  // namespace argiope

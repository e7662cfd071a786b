// What sinks get of a crawl, and what becomes of the crawl when they fail.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// Notes what it is shown, and fails when it is told to.
class NotingSink final : public CrawlSink {
 public:
  struct Noted {
    ExchangeKind kind;
    std::string url;
    int status;
    WallTime began;
    std::uint32_t depth;
    std::int64_t url_id;
    bool kept_wire;
  };

  bool wants_wire() const noexcept override { return wants; }
  Result<void> take(const Exchange& exchange) override {
    if (noted.size() >= fails_after) return fail(Errc::disk_full, "the sink is full");
    noted.push_back({exchange.kind, exchange.request.url.href(), exchange.response.status, exchange.began,
                     exchange.depth, exchange.url_id, exchange.request.keep_wire});
    return {};
  }
  std::size_t backlog() const noexcept override { return has_backlog && has_backlog() ? 1'000'000'000 : 0; }
  Result<void> keep() override {
    ++kept;
    return {};
  }
  std::optional<UrlNote> note() const override { return its_note; }
  Result<void> finish() override {
    ++finished;
    return finish_fails ? fail(Errc::io, "the sink cannot end") : Result<void>{};
  }

  std::size_t count(ExchangeKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(noted, kind, &Noted::kind));
  }

  bool wants = false;
  std::size_t fails_after = 1'000'000;
  bool finish_fails = false;
  std::optional<UrlNote> its_note;
  std::function<bool()> has_backlog;
  std::vector<Noted> noted;
  int kept = 0;
  int finished = 0;
};

struct WithSink : Simulation {
  explicit WithSink(const SyntheticWebOptions& web) : Simulation(web) { options.sinks.push_back(sink); }
  std::shared_ptr<NotingSink> sink = std::make_shared<NotingSink>();

  // As run(), of a crawl that fails.
  Error failure() {
    Crawler crawler(options, *store, 1);
    EXPECT_TRUE(crawler.open(backend.clock().wall_now()));
    loop.run_until_complete(crawler.work(0, transport, nullptr));
    const auto report = crawler.report();
    EXPECT_FALSE(report);
    return report ? Error{} : report.error();
  }
};

TEST(CrawlSink, SeesEveryAnswerToAnyQuestion) {
  WithSink sim({.hosts = 2, .pages = 40, .features = *parse_web_features("redirects,broken")});
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  std::map<std::pair<std::uint32_t, std::string>, int> asked, shown;
  for (const ServedRequest& request : sim.transport.log) ++asked[{request.host, request.target}];
  for (const auto& noted : sim.sink->noted) {
    const Url url = *Url::parse(noted.url);
    const auto host =
        static_cast<std::uint32_t>(std::ranges::find(sim.web.origins(), url.site_key()) - sim.web.origins().begin());
    ++shown[{host, std::string(url.path_and_query())}];
  }
  EXPECT_EQ(shown, asked);
  EXPECT_EQ(sim.sink->count(ExchangeKind::page), report.stats.fetched);
  EXPECT_EQ(sim.sink->count(ExchangeKind::robots), 2u);
  EXPECT_EQ(sim.sink->finished, 1);
  std::set<std::int64_t> ids;
  for (const auto& noted : sim.sink->noted) {
    EXPECT_EQ(noted.url_id == 0, noted.kind != ExchangeKind::page);
    EXPECT_FALSE(noted.kept_wire);
    EXPECT_GE(noted.began, WallTime{1s});
    if (noted.url_id != 0) ids.insert(noted.url_id);
  }
  EXPECT_EQ(ids.size(), sim.sink->count(ExchangeKind::page));
}

TEST(CrawlSink, GetsTheWireWhereItWantsIt) {
  WithSink sim({.hosts = 1, .pages = 3, .features = 0});
  sim.sink->wants = true;
  sim.run();
  for (const auto& noted : sim.sink->noted) EXPECT_TRUE(noted.kept_wire) << noted.url;
}

TEST(CrawlSink, SeesChecksOfLinksAsWhatTheyAre) {
  WithSink sim({.hosts = 2, .pages = 20, .features = 0});
  sim.options.seeds.resize(1);
  sim.options.check_links = true;
  sim.run();
  EXPECT_GT(sim.sink->count(ExchangeKind::check), 0u);
  for (const auto& noted : sim.sink->noted) {
    if (noted.kind != ExchangeKind::check) continue;
    EXPECT_TRUE(noted.url.starts_with("http://host1.test/")) << noted.url;
  }
}

TEST(CrawlSink, SeesAnAnswerAgainAfterWhichItsUrlIsAskedAgain) {
  WithSink sim({.hosts = 1, .pages = 3, .features = 0});
  int refused = 0;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target != "/robots.txt" && refused < 2) {
      ++refused;
      reply.status = 503;
    }
    return reply;
  };
  EXPECT_TRUE(sim.run().finished);
  const auto unavailable = std::ranges::count(sim.sink->noted, 503, &NotingSink::Noted::status);
  EXPECT_EQ(unavailable, 2);
}

TEST(CrawlSink, ThatFailsEndsTheCrawlWhichGoesOnWithItLater) {
  WithSink sim({.hosts = 1, .pages = 30, .features = 0});
  sim.sink->fails_after = 10;
  const Error error = sim.failure();
  EXPECT_EQ(error.code, Errc::disk_full);
  EXPECT_EQ(error.message, "the sink is full");
  EXPECT_EQ(sim.sink->noted.size(), 10u);
  const auto taken = sim.sink->noted;
  sim.sink->fails_after = 1'000'000;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  std::set<std::string> pages;
  for (const auto& noted : sim.sink->noted) {
    if (noted.kind == ExchangeKind::page) pages.insert(noted.url);
  }
  EXPECT_EQ(pages.size(), 30u) << "what was not taken has been fetched again";
}

TEST(CrawlSink, ThatCannotEndIsAnErrorOfTheCrawl) {
  WithSink sim({.hosts = 1, .pages = 3, .features = 0});
  auto second = std::make_shared<NotingSink>();
  sim.options.sinks.push_back(second);
  sim.sink->finish_fails = true;
  EXPECT_EQ(sim.failure().message, "the sink cannot end");
  EXPECT_EQ(second->finished, 1) << "the others are ended all the same";
}

TEST(CrawlSink, ThatIsBehindIsWaitedFor) {
  WithSink sim({.hosts = 1, .pages = 30, .features = 0});
  sim.options.rate = 1000;
  const TimePoint until = sim.backend.clock().now() + 60s;
  bool was_behind = false;
  sim.sink->has_backlog = [&] {
    const bool is_behind = sim.sink->noted.size() >= 5 && sim.backend.clock().now() < until;
    was_behind = was_behind || is_behind;
    return is_behind;
  };
  EXPECT_TRUE(sim.run().finished);
  EXPECT_TRUE(was_behind);
  std::size_t meanwhile = 0;
  for (const ServedRequest& request : sim.transport.log) meanwhile += request.at < until ? 1 : 0;
  EXPECT_LE(meanwhile, 20u);
  EXPECT_GT(sim.backend.clock().now(), until);
}

TEST(CrawlSink, KeepsBeforeTheStoreCommits) {
  auto first = std::make_shared<NotingSink>(), second = std::make_shared<NotingSink>();
  EXPECT_FALSE(Crawler::keep_all({}));
  const auto keep = Crawler::keep_all({first, second});
  second->its_note = UrlNote{"sink/second", "as far as this"};
  const auto notes = keep();
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_EQ(notes->front().text, "as far as this");
  EXPECT_EQ(first->kept, 1);
  EXPECT_EQ(second->kept, 1);
}

}  // namespace
}  // namespace argiope

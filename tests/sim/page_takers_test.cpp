// A page is read once, however many take it: followed, checked, compared, extracted, archived, saved, and handed over.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "argiope/crawl/sinks.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "support/simulated_web.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// Keeps each page, to see later what was made of it.
class CountingSink final : public CrawlSink {
 public:
  Result<void> take(const Exchange& exchange) override {
    if (exchange.kind != ExchangeKind::page || exchange.response.status != 200) return {};
    pages.push_back(exchange.fetched->share());
    bodies.push_back(exchange.response.body.data());
    return {};
  }

  std::vector<std::shared_ptr<FetchedPage>> pages;
  std::vector<const char*> bodies;
};

struct AllTakers : Simulation {
  explicit AllTakers(WebFeatures features) : Simulation({.hosts = 2, .pages = 25, .features = features}) {
    options.check_links = options.check_assets = options.check_fragments = true;
    options.keep_links = options.keep_facts = options.feeds = true;
    options.requisites = Requisites::all;
    options.duplicates = {.skip_exact = true, .skip_near = true, .keep_simhashes = true, .canonical = true};
    options.duplicates.learn_parameters = true;
    options.on_page = [this](const Page& page) -> Coro<void> {
      texts += page.text().size();
      co_await sleep(1s);  // others are read meanwhile
      links += page.links().size();
    };
    ExtractionOptions extraction{.output = folder.file("records.jsonl"), .threads = 2};
    extraction.rules.rules = {
        {.fields = {*parse_field("title=page:title"), *parse_field("first=css:a"), *parse_field("all[]=re:href")}}};
    options.sinks = {counting, *ExtractionSink::open(extraction),
                     *WarcSink::open({.path = folder.file("archive"), .sync = false}, backend.clock(), Random{1}),
                     *SaveSink::open({.path = folder.file("mirror"), .sync = false}, Random{2})};
  }

  TemporaryFolder folder;
  std::shared_ptr<CountingSink> counting = std::make_shared<CountingSink>();
  std::size_t texts = 0, links = 0;
};

void expect_once(AllTakers& sim) {
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_GT(sim.texts, 0u);
  EXPECT_GT(sim.links, 50u);
  ASSERT_GE(sim.counting->pages.size(), 20u);
  std::size_t read = 0;
  for (std::size_t i = 0; i < sim.counting->pages.size(); ++i) {
    FetchedPage& page = *sim.counting->pages[i];
    const PageView::Made made = page.view.made();
    EXPECT_EQ(page.response.body.data(), sim.counting->bodies[i]) << "the body stays where it is";
    EXPECT_LE(made.texts, 1u) << page.url.href();
    EXPECT_LE(made.scans, 1u) << page.url.href();
    EXPECT_LE(made.surveys, 1u) << page.url.href();
    EXPECT_LE(made.words, 1u) << page.url.href();
    EXPECT_LE(made.trees, 1u) << page.url.href();
    read += made.texts == 1 && made.scans == 1 && made.surveys == 1 && made.words == 1 && made.trees == 1;
  }
  EXPECT_GE(read, 20u) << "all parts are made of pages";
}

TEST(PageTakers, HaveThePageReadOnceTogether) {
  AllTakers sim(0);
  expect_once(sim);
}

TEST(PageTakers, HavePagesOfAllCharsetsReadOnce) {
  AllTakers sim(*parse_web_features("encodings"));
  expect_once(sim);
}

}  // namespace
}  // namespace argiope

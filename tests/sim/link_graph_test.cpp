// The graph of a crawl: counts and orphans on sites made for it, PageRank against a plain computation, and its files.
#include "crawl/report/internal/link_graph.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "argiope/base/random.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "sim/checked_site.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t times_in(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// A page that was answered, and where it leads.
void add_page(UrlStore& store, std::int64_t id, std::vector<std::int64_t> targets, std::int64_t referrer = 1,
              int status = 200) {
  UrlBatch batch;
  batch.discovered.push_back(
      {.url_id = id, .url = "https://h.example/" + std::to_string(id), .depth = 1, .referrer = id == 1 ? 0 : referrer});
  UrlOutcome outcome;
  outcome.url_id = id;
  outcome.status_code = status;
  outcome.content_type = "text/html";
  outcome.mtime = WallTime{std::chrono::seconds{1000}};
  batch.outcomes.push_back(outcome);
  const bool redirect = status >= 300 && status < 400;
  batch.links.push_back({id, redirect, std::move(targets)});
  store.submit(std::move(batch));
}

LinkGraph graph_of(UrlStore& store) {
  EXPECT_TRUE(store.flush());
  auto graph = LinkGraph::read(store);
  EXPECT_TRUE(graph);
  return std::move(*graph);
}

TEST(LinkGraph, CountsEachLinkingPageOnceAndByRedirectsToo) {
  CheckedSite site;
  site.page("/",
            "<a href=/b>1</a><a href=/b#x>2</a><a href=/>self</a><a href=/r>3</a><img src=/p.png><a rel=nofollow "
            "href=/d>4</a>");
  site.page("/b", "<a href=/c>c</a>");
  site.page("/c", "<a href=/b>b</a><a href=/gone>x</a>");
  site.page("/d", "");
  site.redirect("/r", 302, "/c");
  site.file("/p.png", "image/png");
  site.run();
  const LinkGraph graph = graph_of(*site.sim.store);
  std::map<std::string, std::pair<int, int>> counts;
  for (const GraphPage& page : graph.pages())
    counts[(**site.sim.store->get(page.url_id)).url] = {page.inbound, page.outbound};
  EXPECT_EQ(counts,
            (std::map<std::string, std::pair<int, int>>{
                {"http://host0.test/", {0, 2}}, {"http://host0.test/b", {2, 1}}, {"http://host0.test/c", {2, 1}}}));
  EXPECT_EQ(graph.links(), 4u);
  for (const GraphPage& page : graph.pages()) EXPECT_FALSE(page.is_orphan) << page.url_id;
}

TEST(LinkGraph, FindsPagesToWhichNoLinkLeads) {
  auto store = std::move(*open_url_store(":memory:"));
  add_page(*store, 1, {2});
  add_page(*store, 2, {});
  add_page(*store, 3, {});     // a page linked to it once
  add_page(*store, 4, {}, 0);  // listed
  add_page(*store, 5, {4, 2}, 0, 200);
  add_page(*store, 6, {7}, 1, 301);
  add_page(*store, 7, {}, 6);                     // reached by a redirect alone
  store->submit({.links = {{5, true, {4, 2}}}});  // what a sitemap lists
  const LinkGraph graph = graph_of(*store);
  std::set<std::int64_t> orphans, listed;
  for (const GraphPage& page : graph.pages()) {
    if (page.is_orphan) orphans.insert(page.url_id);
    if (page.is_listed) listed.insert(page.url_id);
  }
  EXPECT_THAT(orphans, ElementsAre(3, 4));
  EXPECT_THAT(listed, ElementsAre(2, 4));
}

// With a matrix, as the definition has it.
std::vector<double> plain_page_rank(const std::vector<std::set<std::size_t>>& links) {
  const auto count = static_cast<double>(links.size());
  std::vector<double> rank(links.size(), 1 / count);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> next(links.size(), 0.15 / count);
    for (std::size_t from = 0; from < links.size(); ++from) {
      for (std::size_t to = 0; to < links.size(); ++to) {
        if (links[from].empty()) next[to] += 0.85 * rank[from] / count;
        if (links[from].contains(to)) next[to] += 0.85 * rank[from] / static_cast<double>(links[from].size());
      }
    }
    rank = next;
  }
  return rank;
}

TEST(PageRank, IsThatOfItsDefinitionOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const std::size_t count = 1 + random.below(40);
    std::vector<std::set<std::size_t>> links(count);
    auto store = std::move(*open_url_store(":memory:"));
    for (std::size_t page = 0; page < count; ++page) {
      std::vector<std::int64_t> targets;
      for (auto n = random.below(6); n > 0; --n) {
        const std::size_t to = random.below(count);
        targets.push_back(static_cast<std::int64_t>(to + 1));
        if (to != page) links[page].insert(to);
      }
      add_page(*store, static_cast<std::int64_t>(page + 1), targets);
    }
    const LinkGraph graph = graph_of(*store);
    const auto expected = plain_page_rank(links);
    double sum = 0;
    for (std::size_t page = 0; page < count; ++page) {
      EXPECT_NEAR(graph.pages()[page].rank, expected[page], 1e-8) << "seed " << seed;
      sum += graph.pages()[page].rank;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_TRUE(graph.converged());
    EXPECT_EQ(graph.pages()[0].rank, graph_of(*store).pages()[0].rank) << "to the bit";
  }
}

TEST(PageRank, OfNoPagesIsNone) {
  auto store = std::move(*open_url_store(":memory:"));
  EXPECT_TRUE(graph_of(*store).pages().empty());
}

class GraphExport : public testing::Test {
 protected:
  GraphExport() {
    site_.page("/",
               "<title>A \"title\", <x></title><a href='/b?x=1&y=\"2\"'>to, \"b\"</a>\n<a "
               "href='mailto:a@b.example'>m</a><img src=p.png>");
    site_.page("/b?x=1&y=%222%22", "<a href=/gone>x</a>");
    site_.file("/p.png", "image/png");
    site_.run();
  }
  std::string written(GraphFormat format) {
    const std::string file = folder_.file("out");
    const auto done = export_graph(*site_.sim.store, format, file);
    EXPECT_TRUE(done) << done.error().message;
    return file_text(file);
  }
  CheckedSite site_;
  TemporaryFolder folder_;
};

TEST_F(GraphExport, AsLinksHasALineForEach) {
  EXPECT_EQ(written(GraphFormat::links_csv),
            "from,to,kind,text,rel,line,fragment\r\n"
            "http://host0.test/,http://host0.test/b?x=1&y=%222%22,anchor,\"to, \"\"b\"\"\",,1,\r\n"
            "http://host0.test/,mailto:a@b.example,anchor,m,,2,\r\n"
            "http://host0.test/,http://host0.test/p.png,image,,,2,\r\n"
            "http://host0.test/b?x=1&y=%222%22,http://host0.test/gone,anchor,x,,1,\r\n");
}

TEST_F(GraphExport, AsLinksIsWhatTheCrawlGoesByWhereNoneAreKept) {
  CheckedSite site;
  site.sim.options.keep_links = site.sim.options.check_assets = false;
  site.page("/", "<a href=/b>b</a>");
  site.redirect("/b", 302, "/c");
  site.page("/c", "");
  site.run();
  const std::string file = folder_.file("plain");
  ASSERT_TRUE(export_graph(*site.sim.store, GraphFormat::links_csv, file));
  EXPECT_EQ(file_text(file),
            "from,to,kind,text,rel,line,fragment\r\nhttp://host0.test/,http://host0.test/b,link,,,,\r\n"
            "http://host0.test/b,http://host0.test/c,redirect,,,,\r\n");
}

TEST_F(GraphExport, AsPagesHasWhatIsKnownOfEach) {
  const std::string text = written(GraphFormat::pages_csv);
  EXPECT_EQ(times_in(text, "\r\n"), 5u);
  EXPECT_THAT(text, HasSubstr("\"A \"\"title\"\", <x>\""));
  EXPECT_THAT(text, HasSubstr("http://host0.test/gone,done,,404,"));
}

TEST_F(GraphExport, AsGraphmlEscapesNamesAndHasNoEdgeWithoutItsNodes) {
  const std::string text = written(GraphFormat::graphml);
  EXPECT_EQ(times_in(text, "<node "), 3u);
  EXPECT_EQ(times_in(text, "<edge "), 2u);
  EXPECT_THAT(text, HasSubstr("<data key=\"url\">http://host0.test/b?x=1&amp;y=%222%22</data>"));
  EXPECT_THAT(text, HasSubstr("<data key=\"title\">A &quot;title&quot;, &lt;x&gt;</data>"));
  EXPECT_THAT(text, Not(HasSubstr("p.png")));
}

TEST_F(GraphExport, AsDotQuotesNames) {
  auto store = std::move(*open_url_store(":memory:"));
  store->submit({{}, {{.url_id = 1, .url = "http://h/\"quoted\\"}}});
  const std::string file = folder_.file("dot");
  ASSERT_TRUE(export_graph(*store, GraphFormat::dot, file));
  EXPECT_THAT(file_text(file), HasSubstr("n1 [label=\"http://h/\\\"quoted\\\\\", URL="));
  EXPECT_THAT(written(GraphFormat::dot), HasSubstr("  n1 -> n2;\n"));
}

// --- sitemaps

class SitemapOut : public testing::Test {
 protected:
  void add(std::int64_t id, const std::string& url, const std::string& type = "text/html", int status = 200,
           UrlReason reason = UrlReason::none) {
    batch_.discovered.push_back({.url_id = id, .url = url});
    UrlOutcome outcome;
    outcome.url_id = id;
    outcome.status_code = status;
    outcome.content_type = type;
    outcome.reason = reason;
    outcome.last_modified = id == 1 ? "Sun, 06 Nov 1994 08:49:37 GMT" : id == 2 ? "yesterday" : "";
    batch_.outcomes.push_back(outcome);
  }
  SitemapCount write(const std::string& name, const std::string& base = {}) {
    store_->submit(std::exchange(batch_, {}));
    const auto count = write_sitemap(*store_, folder_.file(name), base);
    EXPECT_TRUE(count) << count.error().message;
    return count.value_or(SitemapCount{});
  }
  std::string text_of(const std::string& name) { return file_text(folder_.file(name)); }
  std::string unzipped(const std::string& name) {
    std::string out;
    char buffer[65536];
    const gzFile file = gzopen(folder_.file(name).c_str(), "rb");
    for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
    gzclose(file);
    return out;
  }

  TemporaryFolder folder_;
  std::unique_ptr<UrlStore> store_ = std::move(*open_url_store(":memory:"));
  UrlBatch batch_;
};

TEST_F(SitemapOut, HasThePagesOfTheSiteThatAreForIndexes) {
  add(1, "https://h.example/?a=1&b=<2>");
  add(2, "https://h.example/b");
  add(3, "https://h.example/p.pdf", "application/pdf");
  add(4, "https://h.example/gone", "text/html", 404);
  add(5, "https://h.example/hidden");
  add(6, "https://h.example/copy");
  add(7, "https://other.example/");
  add(8, "https://h.example/checked", "text/html", 200, UrlReason::checked);
  add(9, "https://h.example/self");
  batch_.facts.push_back({.url_id = 5, .noindex = true});
  batch_.facts.push_back({.url_id = 6, .canonical = "https://h.example/b"});
  batch_.facts.push_back({.url_id = 9, .canonical = "https://h.example/self"});
  const SitemapCount count = write("map.xml");
  EXPECT_EQ(count.urls, 3u);
  EXPECT_EQ(count.other_sites, 1u);
  EXPECT_EQ(count.files, 0u);
  EXPECT_EQ(
      text_of("map.xml"),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
      "<url><loc>https://h.example/?a=1&amp;b=%3C2%3E</loc><lastmod>1994-11-06T08:49:37Z</lastmod></url>\n"
      "<url><loc>https://h.example/b</loc></url>\n<url><loc>https://h.example/self</loc></url>\n</urlset>\n");
}

TEST_F(SitemapOut, IsAnIndexOfFilesBeyondFiftyThousandUrls) {
  for (std::int64_t id = 1; id <= 100'001; ++id) add(id, "https://h.example/" + std::to_string(id));
  const SitemapCount count = write("map.xml.gz", "https://cdn.example/maps/");
  EXPECT_EQ(count.urls, 0u) << "the base says which site it is";
  EXPECT_EQ(count.other_sites, 100'001u);
  const SitemapCount all = write("map.xml.gz");
  EXPECT_EQ(all.urls, 100'001u);
  EXPECT_EQ(all.files, 3u);
  const std::string index = unzipped("map.xml.gz");
  EXPECT_THAT(index, HasSubstr("<sitemapindex xmlns="));
  EXPECT_THAT(index, HasSubstr("<loc>https://h.example/map-3.xml.gz</loc>"));
  std::set<std::string> urls;
  for (int part = 1; part <= 3; ++part) {
    const std::string text = unzipped(fmt::format("map-{}.xml.gz", part));
    EXPECT_LE(times_in(text, "<url>"), 50'000u);
    for (std::size_t at = text.find("<loc>"); at != std::string::npos; at = text.find("<loc>", at + 1)) {
      urls.insert(text.substr(at + 5, text.find('<', at + 5) - at - 5));
    }
  }
  EXPECT_EQ(urls.size(), 100'001u);
}

TEST_F(SitemapOut, IsAnIndexOfFilesBeyondFiftyMebibytes) {
  const std::string path(1900, 'x');
  for (std::int64_t id = 1; id <= 30'000; ++id) add(id, "https://h.example/" + path + std::to_string(id));
  EXPECT_EQ(write("map", "https://h.example/maps/x").files, 2u);
  EXPECT_THAT(text_of("map"), HasSubstr("<loc>https://h.example/maps/map-2</loc>"));
  for (const char* part : {"map-1", "map-2"}) EXPECT_LE(std::filesystem::file_size(folder_.file(part)), 50u << 20);
}

TEST_F(SitemapOut, OfNoPagesIsEmptyAndABadBaseIsRefused) {
  EXPECT_EQ(write("map.xml").urls, 0u);
  EXPECT_THAT(text_of("map.xml"), HasSubstr("</urlset>"));
  const auto refused = write_sitemap(*store_, folder_.file("x"), "no url");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_input);
}

}  // namespace
}  // namespace argiope

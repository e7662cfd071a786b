// Pages that are there under many URLs: what a crawl leaves out when it is asked to, that nothing else is, and that a
// run without the options takes it up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

constexpr std::string_view kCopiedSite = "http://host0.test";

// The paths of the pages that were fetched, each as often as it was.
std::multiset<std::string> fetched(const Simulation& sim) {
  std::multiset<std::string> targets;
  for (const ServedRequest& request : sim.transport.log) {
    if (request.target != "/robots.txt" && !request.head) targets.insert(request.target);
  }
  return targets;
}

std::set<std::string> originals(const Simulation& sim) {
  std::set<std::string> targets;
  for (const std::string& url : sim.web.truth(0).originals) targets.insert(url.substr(kCopiedSite.size()));
  return targets;
}

std::map<std::string, UrlRecord> records(Simulation& sim) {
  std::map<std::string, UrlRecord> found;
  EXPECT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
    found[record.url.substr(record.url.starts_with(kCopiedSite) ? kCopiedSite.size() : 0)] = record;
    return true;
  }));
  return found;
}

// A site of a few pages, by their targets.
class SmallSite : public Simulation {
 public:
  explicit SmallSite(std::map<std::string, std::string> pages)
      : Simulation({.hosts = 1, .pages = 1, .features = 0}), pages_(std::move(pages)) {
    transport.before_reply = [this](const SyntheticRequest& request, TimePoint) {
      SyntheticReply reply;
      const auto found = pages_.find(std::string(request.target));
      reply.status = found == pages_.end() ? 404 : 200;
      if (found != pages_.end()) reply.body = found->second;
      if (const auto at = redirects.find(std::string(request.target)); at != redirects.end()) {
        reply.status = 302;
        reply.headers.emplace_back("Location", at->second);
      }
      return reply;
    };
  }
  std::map<std::string, std::string> redirects;

 private:
  std::map<std::string, std::string> pages_;
};

std::string links(std::initializer_list<std::string_view> hrefs, std::string_view text = {}) {
  std::string html(text);
  for (const std::string_view href : hrefs) html.append("<a href=\"").append(href).append("\">x</a>");
  return html;
}

TEST(StrippedParameters, AreNotFollowedAndTheFirstLinkThatHadThemIsStored) {
  SmallSite sim({{"/", links({"/a?utm_source=x", "/a?utm_source=y", "/b;jsessionid=1?q=2", "/c"})},
                 {"/a", "a"},
                 {"/b?q=2", links({"/a?utm_source=z", "/?utm_medium=m"})},
                 {"/c", "c"},
                 {"/a?utm_source=x", "a"},
                 {"/b;jsessionid=1?q=2", "b"}});
  sim.options.duplicates.strip_parameters = {"tracking", "sessions"};
  const CrawlReport report = sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a", "/b?q=2", "/c"));
  EXPECT_EQ(report.stats.excluded[static_cast<std::size_t>(Exclusion::parameter)], 5u);
  EXPECT_EQ(report.left_out.at("parameter"), 3u);
  const auto stored = records(sim);
  EXPECT_EQ(stored.at("/a?utm_source=x").state, UrlState::excluded);
  EXPECT_EQ(stored.at("/a?utm_source=x").reason, UrlReason::parameter);
  EXPECT_FALSE(stored.contains("/a?utm_source=y"));

  EXPECT_EQ(sim.run().taken_up, 0u) << "the same options find nothing to do";
  sim.options.duplicates.strip_parameters = {"sessions"};
  sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a", "/b?q=2", "/c", "/a?utm_source=x", "/?utm_medium=m"));
  sim.options.duplicates.strip_parameters = {};
  sim.run();
  EXPECT_THAT(fetched(sim), IsSupersetOf({"/b;jsessionid=1?q=2"}));
}

TEST(StrippedParameters, OfSeedsRedirectsAndOtherHostsStay) {
  SmallSite sim({{"/?sid=1", links({"/go?x=1", "http://elsewhere.test/?sid=2"})},
                 {"/in?sid=3", links({"/?sid=1", "/in?sid=4"})},
                 {"/in", "in"}});
  sim.redirects["/go?x=1"] = "/in?sid=3";
  sim.options.seeds = {*Url::parse("http://host0.test/?sid=1")};
  sim.options.duplicates.strip_parameters = {"sid"};
  sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/?sid=1", "/go?x=1", "/in?sid=3", "/in"));
  EXPECT_TRUE(records(sim).contains("http://elsewhere.test/?sid=2"));
}

TEST(StrippedParameters, OfSessionsLetACrawlEndThatHadNoEnd) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::sessions)});
  sim.options.rate = 1e9;
  sim.options.duplicates.strip_parameters = {"sessions", "visit"};
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  const auto pages = fetched(sim);
  auto expected = originals(sim);
  expected.insert("/");
  EXPECT_EQ(std::set(pages.begin(), pages.end()), expected);
  EXPECT_EQ(pages.size(), expected.size()) << "each once";
}

TEST(ExactDuplicates, AreFetchedAndTheirLinksAreNotFollowed) {
  SmallSite sim({{"/", links({"/a/", "/b/", "/c/"})},
                 {"/a/", links({"x"}, "same")},
                 {"/b/", links({"x"}, "same")},
                 {"/c/", links({"x"}, "other")},
                 {"/a/x", "ax"},
                 {"/b/x", "bx"},
                 {"/c/x", "cx"}});
  sim.options.duplicates.skip_exact = true;
  const CrawlReport report = sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a/", "/b/", "/c/", "/a/x", "/c/x"));
  EXPECT_EQ(report.left_out.at("duplicate"), 1u);
  const auto stored = records(sim);
  EXPECT_EQ(stored.at("/b/").reason, UrlReason::duplicate);
  EXPECT_EQ(stored.at("/b/").state, UrlState::done);
  EXPECT_EQ(stored.at("/b/").limit, stored.at("/a/").url_id);

  EXPECT_EQ(sim.run().taken_up, 0u);
  sim.options.duplicates.skip_exact = false;
  sim.run();
  EXPECT_THAT(fetched(sim), IsSupersetOf({"/b/x"}));
  EXPECT_EQ(records(sim).at("/b/").reason, UrlReason::none);
}

TEST(ExactDuplicates, CountFromRunToRunAndForOneHostAlone) {
  Simulation sim({.hosts = 2, .pages = 1, .features = 0});
  sim.transport.before_reply = [](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply;
    reply.body = request.target == "/"           ? links({"/1", "/2"})
                 : request.target.ends_with("x") ? std::string(request.target)
                                                 : links({"sub/x"}, "same");
    return reply;
  };
  sim.options.duplicates.skip_exact = true;
  sim.options.max_pages = 4;
  for (int runs = 0; !sim.run().finished; ++runs) ASSERT_LT(runs, 10);
  std::size_t duplicates = 0;
  for (const auto& [url, record] : records(sim)) duplicates += record.reason == UrlReason::duplicate;
  EXPECT_EQ(duplicates, 2u) << "one of each host";
}

TEST(ExactDuplicates, ThatAreNearerToASeedAreReadWhereDepthCounts) {
  // "/far/" is met first, at depth 3; "/near/" at 2, whose links may be followed.
  SmallSite sim({{"/", links({"/p", "/slow"})},
                 {"/p", links({"/q"})},
                 {"/q", links({"/far/"})},
                 {"/far/", links({"/end"}, "same")},
                 {"/slow", links({"/near/"})},
                 {"/near/", links({"/end"}, "same")},
                 {"/end", "end"}});
  sim.options.duplicates.skip_exact = true;
  sim.options.order = CrawlOrder::dfs;
  sim.options.max_depth = 3;
  sim.run();
  EXPECT_THAT(fetched(sim), IsSupersetOf({"/end"}));
}

TEST(Aliases, LeadToTheirCanonicalUrlAlone) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::copies)});
  sim.options.rate = 1e9;
  sim.options.duplicates.canonical = true;
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.left_out.at("alias"), 12u) << "named in the page by one half, in a header by the other";
  const auto stored = records(sim);
  for (int i = 0; i < 12; ++i) {
    const std::string number = std::to_string(i);
    const UrlRecord& view = stored.at("/copies/view-" + number + "?sort=price");
    EXPECT_EQ(view.reason, UrlReason::alias);
    EXPECT_EQ(view.limit, stored.at("/copies/doc-" + number).url_id);
    EXPECT_FALSE(stored.contains("/copies/view-" + number + "?sort=name"));
  }
  EXPECT_EQ(sim.run().taken_up, 0u);
  sim.options.duplicates.canonical = false;
  sim.run();
  EXPECT_TRUE(records(sim).contains("/copies/view-0?sort=name"));
}

TEST(Aliases, OfACircleOrOfWhatIsNotFetchedArePages) {
  SmallSite sim({{"/", links({"/a", "/d", "/e"})},
                 {"/a", "<link rel=canonical href=/b>" + links({"/from-a"})},
                 {"/b", "<link rel=canonical href=/c>" + links({"/from-b"})},
                 {"/c", "<link rel=canonical href=/a>" + links({"/from-c"})},
                 {"/d", "<link rel=canonical href=http://elsewhere.test/>" + links({"/from-d"})},
                 {"/e", "<link rel=canonical href=/e#top>" + links({"/from-e"})}});
  sim.options.duplicates.canonical = true;
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.left_out.at("alias"), 2u);
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a", "/b", "/c", "/d", "/e", "/from-c", "/from-d", "/from-e"));
}

TEST(Aliases, AreNotTheContentThatOthersAreDuplicatesOf) {
  const std::string same = "<link rel=canonical href=/b>" + links({"/end"});
  SmallSite sim({{"/", links({"/a"})}, {"/a", same}, {"/b", same}, {"/end", "end"}});
  sim.options.duplicates.canonical = sim.options.duplicates.skip_exact = true;
  sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a", "/b", "/end"));
}

// Options that compare words keep them, as the command line has it.
void compare_words(Simulation& sim) { sim.options.keep_facts = sim.options.duplicates.keep_simhashes = true; }

TEST(NearDuplicates, AreFetchedAndTheirLinksAreNotFollowed) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i * i) + " ";
  SmallSite sim({{"/", links({"/a/", "/b/", "/c/", "/d/"})},
                 {"/a/", links({"x"}, text)},
                 {"/b/", links({"x"}, text + "one")},
                 {"/c/", links({"x"}, "few words")},
                 {"/d/", links({"x"}, "few words, and one")},
                 {"/a/x", "ax"},
                 {"/b/x", "bx"},
                 {"/c/x", "cx"},
                 {"/d/x", "dx"}});
  sim.options.duplicates.skip_exact = sim.options.duplicates.skip_near = true;
  compare_words(sim);
  EXPECT_EQ(sim.run().left_out.at("near_duplicate"), 1u);
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/a/", "/b/", "/c/", "/d/", "/a/x", "/c/x", "/d/x"));
  const auto stored = records(sim);
  EXPECT_EQ(stored.at("/b/").reason, UrlReason::near_duplicate);
  EXPECT_EQ(stored.at("/b/").limit, stored.at("/a/").url_id);
  EXPECT_EQ(sim.run().taken_up, 0u);
  sim.options.duplicates.skip_near = false;
  sim.run();
  EXPECT_THAT(fetched(sim), IsSupersetOf({"/b/x"}));
}

TEST(NearDuplicates, CountFromRunToRun) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::copies)});
  sim.options.rate = 1e9;
  sim.options.max_pages = 9;
  sim.options.duplicates.skip_exact = sim.options.duplicates.skip_near = true;
  compare_words(sim);
  for (int runs = 0; !sim.run().finished; ++runs) ASSERT_LT(runs, 50);
  // Of each document one counts: the mirror, the tracked link and, where they are near enough, the edits are its
  // copies.
  int exact = 0, near = 0;
  for (const auto& [url, record] : records(sim)) {
    exact += record.reason == UrlReason::duplicate;
    near += record.reason == UrlReason::near_duplicate;
  }
  EXPECT_EQ(exact, 24);
  EXPECT_GE(near, 18);
  EXPECT_LE(near, 36);
}

TEST(LearnedParameters, AreNotFollowedOnceTheyHaveChangedNoPage) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::sessions)});
  sim.options.rate = 1e9;
  sim.options.duplicates.strip_parameters = {"sessions"};
  sim.options.duplicates.learn_parameters = true;
  sim.options.max_pages = 3000;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished) << report.stats.fetched;
  ASSERT_EQ(report.learned_parameters.size(), 1u);
  EXPECT_EQ(report.learned_parameters[0].name, "visit");
  EXPECT_EQ(report.learned_parameters[0].site, kCopiedSite);
  EXPECT_GT(report.learned_parameters[0].stripped, 0u);
  std::set<std::string> pages;
  for (const std::string& target : fetched(sim)) pages.insert(target.substr(0, target.find('?')));
  for (const std::string& original : originals(sim)) EXPECT_TRUE(pages.contains(original)) << original;

  // The lesson is kept, and taken up again.
  std::vector<std::string> notes;
  EXPECT_TRUE(sim.store->scan_notes("parameter/", [&](const UrlNote& note) {
    notes.push_back(note.name + " " + note.text);
    return true;
  }));
  EXPECT_THAT(notes, UnorderedElementsAre("parameter/http://host0.test/visit learned"));
  const CrawlReport again = sim.run();
  EXPECT_EQ(again.learned_parameters.size(), 1u);
  EXPECT_EQ(again.taken_up, 0u);
  // It is undone by hand.
  sim.options.duplicates.keep_parameters = {"visit"};
  sim.options.max_pages = 5;
  EXPECT_GT(sim.run().taken_up, 0u);
}

TEST(LearnedParameters, AreNoneWhereOneChangesPages) {
  std::map<std::string, std::string> pages;
  std::string front;
  for (int i = 0; i < 40; ++i) {
    for (const char* value : {"a", "b"}) {
      std::string target = "/p" + std::to_string(i) + "?v=" + value, text = "page";
      for (int word = 0; word < 30; ++word) text += " w" + std::to_string(i + word * 100);
      pages[target] = text + (i == 30 ? value : "");
      front += links({target});
    }
  }
  pages["/"] = front;
  SmallSite sim(pages);
  sim.options.duplicates.learn_parameters = true;
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.stats.fetched, 81u);
  EXPECT_TRUE(report.learned_parameters.empty()) << "learned, and taken back";
}

TEST(Traps, EndACrawlThatHadNoEnd) {
  Simulation sim({.hosts = 1, .pages = 20, .features = bit(WebFeature::traps) | bit(WebFeature::copies)});
  sim.options.rate = 1e9;
  sim.options.duplicates.trap_pages = 20;
  sim.options.max_segment_repeats = 1000;
  sim.options.max_pages = 2000;
  compare_words(sim);
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished) << report.stats.fetched;
  EXPECT_FALSE(report.complete()) << "something was left out";
  std::set<std::string> shapes;
  for (const FoundTrap& trap : report.traps) shapes.insert(trap.shape.substr(kCopiedSite.size()));
  EXPECT_THAT(shapes, UnorderedElementsAre("/traps/calendar/#-#", "/traps/folder/sub/", "/traps/filter?colour"));
  EXPECT_EQ(report.left_out.at("trap"), 3u);
  const auto pages = fetched(sim);
  EXPECT_THAT(std::set(pages.begin(), pages.end()), IsSupersetOf(originals(sim)));
  EXPECT_EQ(pages.count("/copies/view-3?sort=name"), 1u) << "what is no trap is followed";

  EXPECT_EQ(sim.run().taken_up, 0u) << "known from run to run";
  sim.options.duplicates.trap_pages = 0;
  sim.options.max_pages = 30;
  EXPECT_GT(sim.run().taken_up, 0u);
}

TEST(Copies, AreAllFetchedUnlessTheyAreLeftOut) {
  Simulation sim({.hosts = 1, .pages = 1, .features = bit(WebFeature::copies)});
  sim.options.rate = 1e9;
  EXPECT_EQ(sim.run().left_out.size(), 0u);
  // The index, twelve documents with a mirror, a tracked link, three edits and three views each, and the front page.
  EXPECT_EQ(fetched(sim).size(), 2u + 12 * (1 + 1 + 1 + 3 + 3));
}

TEST(Aliases, OfWhatRobotsTxtForbidsArePages) {
  SmallSite sim({{"/", links({"/b"})},
                 {"/b", links({"/c"}, "<link rel=canonical href=/no/b>")},
                 {"/c", "c"},
                 {"/robots.txt", "User-agent: *\nDisallow: /no/\n"}});
  sim.options.duplicates.canonical = true;
  sim.run();
  EXPECT_THAT(fetched(sim), UnorderedElementsAre("/", "/b", "/c"));
}

TEST(Copies, OfWhatAPageSaysNoMoreArePages) {
  SmallSite sim({{"/", links({"/a"})}, {"/a", links({"/one"})}, {"/one", "1"}});
  sim.options.age = Duration{};
  sim.options.duplicates.skip_exact = true;
  sim.run();
  SmallSite later({{"/", links({"/a", "/b"})}, {"/a", "other"}, {"/b", links({"/one"})}, {"/one", "1"}});
  later.options = sim.options;
  later.store = std::move(sim.store);
  later.run();
  EXPECT_EQ(records(later).at("/b").reason, UrlReason::none);
}

}  // namespace
}  // namespace argiope

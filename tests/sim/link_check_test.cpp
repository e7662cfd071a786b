// What a link check finds on sites made for it, after a crawl by the real crawler; and its outputs, read as others read
// them.
#include "crawl/check/internal/link_check.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <tuple>

#include "base/internal/json_reader.hpp"
#include "crawl/check/internal/check_output.hpp"
#include "crawl/report/internal/crawl_overview.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "sim/checked_site.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kSite = "http://host0.test/";

// "kind url: message [page:line text] …".
std::vector<std::string> findings_of(UrlStore& store, const CheckRules& rules = {}) {
  std::vector<std::string> out;
  const auto result = check_links(store, rules);
  EXPECT_TRUE(result);
  for (const LinkFinding& finding : result->findings) {
    std::string line = std::string(to_string(finding.kind)) + " " + finding.url + ": " + finding.message;
    EXPECT_TRUE(for_each_place(store, finding, [&](const std::string& page, const KeptLink& link) {
      line += " [" + page + ":" + std::to_string(link.line) + " " + link.text + "]";
    }));
    out.push_back(line);
  }
  return out;
}

std::vector<std::string> checked(CheckedSite& site, const CheckRules& rules = {}) {
  EXPECT_TRUE(site.run().finished);
  return findings_of(*site.sim.store, rules);
}

TEST(LinkCheck, FindsNothingWhereAllIsWell) {
  CheckedSite site;
  site.page(
      "/",
      "<a href=/b#x>b</a><a href='#'>top</a><a href='#top'>top</a><img src=a.png><a href='mailto:a@b.example'>m</a>"
      "<a href='javascript:void(0)'>j</a><a href='tel:+1'>t</a><a href=/b#/route>r</a><a href='/b#%C3%A9'>e</a>");
  site.page("/b", "<p id=x><p id=é>");
  site.file("/a.png", "image/png");
  EXPECT_THAT(checked(site), IsEmpty());
}

TEST(LinkCheck, NamesEveryPlaceOfABrokenLink) {
  CheckedSite site;
  site.page("/", "<a href=/gone>one</a>\n<img src=/gone.png alt=two><a href=/b>b</a>");
  site.page("/b", "\n\n<a href='/gone#x'>three <i>and</i> more</a>");
  EXPECT_THAT(checked(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + ":1 one] [" + kSite +
                                             "b:3 three and more]",
                                         "broken " + kSite + "gone.png: 404 Not Found [" + kSite + ":2 two]"));
}

// Whatever the answer is that has the field.
TEST(LinkCheck, FollowsARefreshFieldAsThePagesOwnLink) {
  CheckedSite site;
  const auto refreshes = [&site](const std::string& target, const std::string& field) {
    site.replies[{0, target}].headers.emplace_back("Refresh", field);
  };
  site.page("/", "<base href=/b/><a href=/empty>e</a><a href=/stays>s</a>");
  refreshes("/", "5; URL='next#part'");
  site.file("/empty", "", "");
  refreshes("/empty", "0;url=gone");
  site.page("/stays", "<meta name=robots content=nofollow>");
  refreshes("/stays", "0;url=/never");
  site.page("/next", "");
  refreshes("/next", "60");
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(),
              testing::UnorderedElementsAre("GET 0/", "GET 0/empty", "GET 0/stays", "GET 0/next", "GET 0/gone"));
  EXPECT_EQ(site.record(kSite + "next").depth, 1u);
  EXPECT_EQ(site.record(kSite + "gone").depth, 2u);
  EXPECT_EQ(report.stats.excluded[static_cast<std::size_t>(Exclusion::nofollow)], 1u);
  const auto links = site.links(kSite + "empty");
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].kind, "refresh");
  EXPECT_EQ(links[0].target, site.record(kSite + "gone").url_id);
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].url, kSite + "gone");
}

TEST(LinkCheck, TakesALinkToARedirectForOneToItsEnd) {
  CheckedSite site;
  site.page("/", "<a href=/a>a</a><a href=/c>c</a>");
  site.redirect("/a", 302, "/b");
  site.redirect("/b", 302, "/gone");
  site.redirect("/c", 302, "/d#p");
  site.page("/d", "");
  EXPECT_THAT(checked(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + ":1 a]"));
}

// Each of them is broken, whichever a walk along the circle would end at.
TEST(LinkCheck, NamesEveryPlaceOfALinkIntoACircleOfRedirects) {
  CheckedSite site;
  site.page("/",
            "<a href=/into>1</a><a href=/x>2</a>\n<a href=/y>3</a><a href=/self>4</a><a href=/to-self>5</a><a "
            "href=/page>6</a>");
  site.page("/page", "<a href=/into>7</a><a href=/x>8</a><a href=/nowhere>9</a>");
  site.redirect("/into", 302, "/x");
  site.redirect("/x", 301, "/y");
  site.redirect("/y", 302, "/x");
  site.redirect("/self", 308, "/self");
  site.redirect("/to-self", 302, "/self");
  site.redirect("/nowhere", 302, "javascript:go()");
  const std::string front = " [" + kSite, page = " [" + kSite + "page:1 ";
  const std::string circle = ": redirects in a circle";
  EXPECT_THAT(checked(site),
              ElementsAre("broken " + kSite + "into: 302 Found" + circle + front + ":1 1]" + page + "7]",
                          HasSubstr("broken " + kSite + "nowhere: 302 Found: "),
                          "broken " + kSite + "self: 308 Permanent Redirect" + circle + front + ":2 4]",
                          "broken " + kSite + "to-self: 302 Found" + circle + front + ":2 5]",
                          "broken " + kSite + "x: 301 Moved Permanently" + circle + front + ":1 2]" + page + "8]",
                          "broken " + kSite + "y: 302 Found" + circle + front + ":2 3]"));
}

// What is odd of its answer is no fault of the redirect, and hides nothing that lies behind it.
TEST(LinkCheck, GoesOnBehindARedirectWhoseOwnAnswerIsCutShort) {
  CheckedSite site;
  site.sim.options.size_limit = 1'000;
  site.page("/", "<a href=/long>1</a><a href=/well>2</a>");
  site.redirect("/long", 302, "/gone");
  site.redirect("/well", 302, "/page");
  for (const char* const target : {"/long", "/well"}) site.replies[{0, target}].body.assign(5'000, 'x');
  site.page("/page", "");
  EXPECT_THAT(checked(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + ":1 1]"));
}

TEST(LinkCheck, SaysWhereALinkToAPermanentRedirectShouldLead) {
  CheckedSite site;
  site.page("/", "<a href=/a>a</a><a href=/t>t</a>");
  site.redirect("/a", 301, "/b");
  site.redirect("/b", 308, "/c");
  site.redirect("/c", 302, "/d");
  site.redirect("/t", 302, "/d");
  site.page("/d", "");
  const auto found = checked(site);
  EXPECT_THAT(found,
              ElementsAre("redirect " + kSite + "a: 301 Moved Permanently, to " + kSite + "c [" + kSite + ":1 a]"));
}

TEST(LinkCheck, FindsFragmentsThatNameNothing) {
  CheckedSite site;
  site.page("/",
            "<p id=a><a href=#a>1</a><a href=#b>2</a><a href=/p#c>3</a><a href=/p#no>4</a><a href=/r#no>5</a><a "
            "href=/f#page=2>6</a>");
  site.page("/p", "<a name=c>");
  site.redirect("/r", 302, "/p");
  site.file("/f", "application/pdf");
  EXPECT_THAT(checked(site),
              ElementsAre("fragment " + kSite + "#b: the page has nothing of that name [" + kSite + ":1 2]",
                          "fragment " + kSite + "p#no: the page has nothing of that name [" + kSite + ":1 4] [" +
                              kSite + ":1 5]"));
}

TEST(LinkCheck, AccusesNoPageWhoseIdsAreNotAllKnown) {
  CheckedSite site;
  site.sim.options.size_limit = 200;
  site.page("/", "<a href=/p#end>x</a>");
  site.page("/p", "<p>" + std::string(300, 'x') + "<p id=end>");
  site.replies[{0, "/p"}].behaviour = SyntheticReply::Behaviour::flood;  // cut off
  EXPECT_THAT(checked(site), IsEmpty());
}

TEST(LinkCheck, FindsMailAddressesAndUrlsThatCanBeNone) {
  CheckedSite site;
  site.page("/", "<a href='mailto:nobody'>m</a><a href='http://:99999/'>u</a>\n<a href='mailto:nobody'>n</a>");
  EXPECT_THAT(checked(site),
              ElementsAre(testing::StartsWith("invalid http://:99999/: "),
                          "mail mailto:nobody: \"nobody\" has no @ [" + kSite + ":1 m] [" + kSite + ":2 n]"));
}

TEST(LinkCheck, FindsSchemesThatAreMistypedAndFilesOfOneComputer) {
  CheckedSite site;
  site.page("/",
            "<a href='htp://a.test/'>1</a><a href='HTTPPS://a.test/'>2</a><a href='hptts:a'>3</a><a "
            "href='file:///C:/a.doc'>4</a>"
            "<a href='ftp://a.test/'>5</a><a href='tel:+1'>6</a><a href='slack://open'>7</a><a "
            "href='sftp://a.test/'>8</a><a href='h:x'>9</a>");
  EXPECT_THAT(checked(site),
              ElementsAre("invalid HTTPPS://a.test/: \"HTTPPS\" is no scheme, and looks like https [" + kSite + ":1 2]",
                          "invalid file:///C:/a.doc: a file of one computer, which nobody else has [" + kSite + ":1 4]",
                          "invalid hptts:a: \"hptts\" is no scheme, and looks like https [" + kSite + ":1 3]",
                          "invalid htp://a.test/: \"htp\" is no scheme, and looks like http [" + kSite + ":1 1]"));
}

TEST(LinkCheck, TakesTheIdsThatGithubGivesToTextsOfOthers) {
  CheckedSite site;
  site.page("/",
            "<a href=#install>1</a><a href='#%C3%A9'>2</a><a href=#user-content-install>3</a><a href=#no>4</a><p "
            "id=user-content-install><p id=user-content-é>");
  EXPECT_THAT(checked(site),
              ElementsAre("fragment " + kSite + "#no: the page has nothing of that name [" + kSite + ":1 4]"));
}

TEST(LinkCheck, GoesByTheFragmentThatARedirectNamesItself) {
  CheckedSite site;
  site.page("/",
            "<a href=/own#x>1</a><a href=/far#x>2</a><a href=/none#x>3</a><a href=/empty#x>4</a><a href=/p#x>5</a>");
  site.page("/p", "<p id=part>");
  site.redirect("/own", 302, "/p#part");
  site.redirect("/far", 302, "/own");
  site.redirect("/none", 302, "/p");
  site.redirect("/empty", 302, "/p#");
  const std::string missing = "fragment " + kSite + "p#x: the page has nothing of that name";
  EXPECT_THAT(checked(site), ElementsAre(missing + " [" + kSite + ":1 3] [" + kSite + ":1 4] [" + kSite + ":1 5]"));
  site.redirect("/own", 302, "/p");
  site.sim.options.age = Duration::zero();
  std::string all = missing;
  for (const char* const link : {"1", "2", "3", "4", "5"}) all += " [" + kSite + ":1 " + link + "]";
  EXPECT_THAT(checked(site), ElementsAre(all)) << "the redirect has changed";
}

TEST(LinkCheck, SaysThatAHostElsewhereMayRefuseProgramsAlone) {
  CheckedSite site;
  site.page("/",
            "<a href=/own>1</a><a href=http://host1.test/a>2</a><a href=http://host1.test/b>3</a><a "
            "href=http://host1.test/c>4</a>");
  for (const auto& [page, host, status] :
       {std::tuple("/own", 0u, 403), std::tuple("/a", 1u, 403), std::tuple("/b", 1u, 999), std::tuple("/c", 1u, 410)}) {
    site.page(page, "", host);
    site.replies[{host, page}].status = status;
  }
  EXPECT_THAT(
      checked(site),
      ElementsAre("broken " + kSite + "own: 403 Forbidden [" + kSite + ":1 1]",
                  "broken http://host1.test/a: 403 Forbidden; perhaps to programs alone [" + kSite + ":1 2]",
                  HasSubstr("http://host1.test/b: 999"), "broken http://host1.test/c: 410 Gone [" + kSite + ":1 4]"));
  EXPECT_THAT(findings_of(*site.sim.store, {.accept_status = *parse_status_ranges("200..399,403,999")}),
              ElementsAre(HasSubstr("410 Gone")));
}

TEST(LinkCheck, FindsMixedContentAndNoLinksByHttp) {
  Simulation sim({.hosts = 2, .pages = 1}, {"https://host0.test", "http://host1.test"});
  sim.options.seeds.resize(1);
  sim.options.keep_links = sim.options.check_links = sim.options.check_assets = true;
  sim.transport.before_reply = [](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply;
    if (request.host == 0)
      reply.body =
          "<img src=http://host1.test/a.png alt=x><a href=http://host1.test/>y</a><iframe src=http://host1.test/f>";
    return reply;
  };
  EXPECT_TRUE(sim.run().finished);
  EXPECT_THAT(
      findings_of(*sim.store),
      ElementsAre(
          "mixed-content http://host1.test/a.png: fetched by http for a page by https [https://host0.test/:1 x]",
          "mixed-content http://host1.test/f: fetched by http for a page by https [https://host0.test/:1 ]"));
}

TEST(LinkCheck, GoesByTheStatusesThatAreAccepted) {
  CheckedSite site;
  site.page("/", "<a href=/forbidden>x</a><a href=/empty>y</a>");
  site.page("/forbidden", "");
  site.replies[{0, "/forbidden"}].status = 403;
  site.page("/empty", "");
  site.replies[{0, "/empty"}].status = 204;
  EXPECT_THAT(checked(site), ElementsAre(HasSubstr("/forbidden: 403 Forbidden")));
  CheckRules rules;
  rules.accept_status = *parse_status_ranges("200..299,403");
  EXPECT_THAT(findings_of(*site.sim.store, rules), IsEmpty());
  rules.accept_status = *parse_status_ranges("200,403");
  EXPECT_THAT(findings_of(*site.sim.store, rules), ElementsAre(HasSubstr("/empty: 204 No Content")));
  site.sim.options.accept_status = rules.accept_status;
  EXPECT_EQ(site.run().broken_count, 1u) << "and so does the crawl's own report";
}

TEST(LinkCheck, FindsTheKindsThatAreWantedAlone) {
  CheckedSite site;
  site.page("/", "<a href=/gone>1</a><a href='mailto:x'>2</a><a href=#no>3</a>");
  EXPECT_EQ(checked(site).size(), 3u);
  EXPECT_THAT(findings_of(*site.sim.store, {.kinds = *parse_finding_kinds("mail, fragment")}),
              ElementsAre(HasSubstr("fragment"), HasSubstr("mail")));
  EXPECT_FALSE(parse_finding_kinds("mail,links"));
  EXPECT_FALSE(parse_finding_kinds(""));
}

TEST(LinkCheck, KnowsThePageThatWasFoundFirstWhereNoLinksAreKept) {
  CheckedSite site;
  site.sim.options.keep_links = site.sim.options.check_assets = site.sim.options.check_links = false;
  site.page("/", "<a href=/gone>1</a>");
  EXPECT_THAT(checked(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + ":0 ]"));
  CheckedSite gone;
  EXPECT_THAT(checked(gone), ElementsAre("broken " + kSite + ": 404 Not Found [:0 ]")) << "it was given";
}

// The next night: every page is asked whether it has changed.
std::vector<std::string> checked_again(CheckedSite& site) {
  site.sim.options.age = Duration::zero();
  site.sim.backend.manual_clock().advance(std::chrono::seconds{1});
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  const auto is_broken_link = [](const std::string& finding) { return finding.starts_with("broken"); };
  const std::vector<std::string> found = findings_of(*site.sim.store);
  EXPECT_EQ(report.broken_count, static_cast<std::uint64_t>(std::ranges::count_if(found, is_broken_link)));
  return found;
}

TEST(LinkCheck, ForgetsABrokenUrlToWhichNothingLeadsAnyMore) {
  CheckedSite site;
  site.page("/", "<a href=/b>b</a><a href=/gone>1</a><img src=/gone.png>");
  site.page("/b", "b");
  EXPECT_EQ(checked(site).size(), 2u);
  site.page("/", "<a href=/b>b</a>");
  EXPECT_THAT(checked_again(site), IsEmpty());
  site.page("/b", "<a href=/gone>2</a>");
  EXPECT_THAT(checked_again(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + "b:1 2]"))
      << "it has moved";
  site.replies.erase({0, "/b"});
  EXPECT_THAT(checked_again(site), ElementsAre("broken " + kSite + "b: 404 Not Found [" + kSite + ":1 b]"))
      << "gone with its page";
  site.page("/", "nothing");
  EXPECT_THAT(checked_again(site), IsEmpty());
}

TEST(LinkCheck, KeepsABrokenUrlWhoseLinkMayStillBeThere) {
  CheckedSite site;
  site.page("/", "<a href=/a>a</a><a href=/b>b</a>");
  site.page("/a", "<a href=/gone>1</a>");
  site.page("/b", "b");
  EXPECT_EQ(checked(site).size(), 1u);
  const auto stays = [&] {
    return std::ranges::count_if(checked_again(site), [](const auto& f) { return f.contains("/gone: 404"); }) == 1;
  };
  site.page("/a", "a");
  site.replies[{0, "/a"}].status = 503;
  EXPECT_TRUE(stays()) << "its page has not been read since";
  site.page("/a", "a");
  site.sim.options.keep_links = site.sim.options.check_assets = site.sim.options.check_links = false;
  EXPECT_TRUE(stays()) << "nor by a run that keeps no links";
  site.sim.options.keep_links = site.sim.options.check_assets = site.sim.options.check_links = true;
  EXPECT_FALSE(stays());
}

TEST(LinkCheck, KeepsTheLinksOfAPageThatCouldNotBeFetchedThisTime) {
  CheckedSite site;
  site.page("/", "<a href=/a>a</a>");
  site.page("/a", "\n<a href=/gone>1</a><a href='mailto:nobody'>2</a><a href=/#no>3</a>");
  const std::vector<std::string> of_page = checked(site);
  EXPECT_EQ(of_page.size(), 3u);
  site.replies[{0, "/a"}].status = 503;
  std::vector<std::string> with_page = of_page;
  with_page.insert(with_page.begin(), "broken " + kSite + "a: 503 Service Unavailable [" + kSite + ":1 a]");
  EXPECT_EQ(checked_again(site), with_page) << "with lines and texts";
  EXPECT_EQ(checked_again(site), with_page) << "and so in the night after that";
  EXPECT_EQ(site.facts(kSite + "a").title, "");
  site.replies[{0, "/a"}].status = 404;
  EXPECT_THAT(checked_again(site), ElementsAre("broken " + kSite + "a: 404 Not Found [" + kSite + ":1 a]"))
      << "now it is gone";
  site.replies[{0, "/a"}].status = 200;
  EXPECT_EQ(checked_again(site), of_page);
}

TEST(LinkCheck, NamesAPlaceOnceWhereALineHasTheSameLinkTwice) {
  CheckedSite site;
  site.page(
      "/",
      "<link rel=stylesheet href=/s.css><a href=/gone>1</a><img src=/gone><a href=/gone>1</a>\n<a href=/gone>1</a>");
  site.file("/s.css", "text/css", "p{background:url(x.png)}q{background:url(y.png)}a{background:url(x.png)}");
  EXPECT_THAT(checked(site), ElementsAre("broken " + kSite + "gone: 404 Not Found [" + kSite + ":1 1] [" + kSite +
                                             ":1 ] [" + kSite + ":2 1]",
                                         "broken " + kSite + "x.png: 404 Not Found [" + kSite + "s.css:1 ]",
                                         "broken " + kSite + "y.png: 404 Not Found [" + kSite + "s.css:1 ]"));
}

// Own faults, one of another host that answers, and two URLs of one that does not exist.
void add_faults_everywhere(CheckedSite& site) {
  site.page("/",
            "<a href=http://silent.test/a>1</a><a href=http://silent.test/b>2</a><a "
            "href=http://host1.test/gone>3</a><a href=/zzz>4</a>"
            "<a href=/moved>5</a><a href=/b>6</a><a href=http://host1.test/old>7</a><a href='mailto:nobody'>8</a>");
  site.page("/b", "<a href=http://silent.test/a>9</a>");
  site.redirect("/moved", 301, "/b");
  site.redirect("/old", 301, "/new", 1);
  site.page("/new", "", 1);
}

TEST(LinkCheck, TellsOwnFindingsFirstAndSilentHostsTogether) {
  CheckedSite site;
  add_faults_everywhere(site);
  const CrawlReport report = site.run();
  ASSERT_EQ(report.broken.size(), 4u);
  EXPECT_EQ(report.broken.front().url, kSite + "zzz") << "the crawl's own report does so, too";
  const auto result = check_links(*site.sim.store, {});
  ASSERT_TRUE(result);
  std::vector<std::string> urls;
  for (const LinkFinding& finding : result->findings)
    urls.push_back((finding.is_elsewhere ? "elsewhere " : "") + finding.url);
  EXPECT_THAT(urls, ElementsAre(kSite + "zzz", "mailto:nobody", kSite + "moved", "elsewhere http://host1.test/gone",
                                "elsewhere http://silent.test/a", "elsewhere http://silent.test/b",
                                "elsewhere http://host1.test/old"));
  ASSERT_EQ(result->silent_hosts.size(), 1u);
  const SilentHost& silent = result->silent_hosts.front();
  EXPECT_EQ(words_on(silent), "silent.test cannot be reached (DNS)");
  EXPECT_EQ(std::tuple(silent.first, silent.count, silent.links, silent.pages), std::tuple(4u, 2u, 3u, 2u));
  EXPECT_EQ(result->errors(), 5u);
  EXPECT_EQ(result->errors_elsewhere(), 3u);
}

// The hosts are known from the look at all URLs that finds those to which nothing leads, or, where it ends early, from
// one more.
TEST(LinkCheck, OwnBrokenLinksComeFirstWhetherOrNotLinksAreKept) {
  for (const bool keeps_links : {true, false}) {
    CheckedSite site;
    site.sim.options.keep_links = site.sim.options.check_fragments = site.sim.options.check_assets = keeps_links;
    add_faults_everywhere(site);
    const CrawlReport report = site.run();
    ASSERT_EQ(report.broken.size(), 4u) << keeps_links;
    EXPECT_EQ(report.broken.front().url, kSite + "zzz") << keeps_links;
    EXPECT_EQ(report.broken.front().referrer, kSite) << keeps_links;
  }
}

// A run that checks nothing tells of what an earlier one has found elsewhere, and that comes last, too.
TEST(LinkCheck, OwnBrokenLinksComeFirstInALaterRunWithoutChecks) {
  CheckedSite site;
  add_faults_everywhere(site);
  site.page("/", "<a href=http://silent.test/0>0</a><img src=/picture.png><a href=/zzz>z</a>");
  site.run();
  site.sim.options.check_links = site.sim.options.check_assets = site.sim.options.check_fragments = false;
  const CrawlReport report = site.run();
  std::vector<std::string> urls;
  for (const BrokenLink& link : report.broken) urls.push_back(link.url);
  EXPECT_THAT(urls, ElementsAre(kSite + "zzz", kSite + "picture.png", "http://silent.test/0"));
}

TEST(LinkCheck, OwnBrokenLinksAreListedHoweverManyOthersWereFoundBefore) {
  for (const bool checks : {true, false}) {
    CheckedSite site;
    std::string links;
    for (std::size_t i = 0; i <= CrawlReport::kMostBroken; ++i) {
      links += "<a href=http://host1.test/" + std::to_string(i) + ">x</a>";
    }
    site.page("/", links + "<img src=/own.png>");
    site.run();
    site.sim.options.check_links = site.sim.options.check_assets = site.sim.options.check_fragments = checks;
    const CrawlReport report = site.run();
    EXPECT_EQ(report.broken_count, CrawlReport::kMostBroken + 2);
    ASSERT_EQ(report.broken.size(), CrawlReport::kMostBroken);
    EXPECT_EQ(report.broken.front().url, kSite + "own.png");
  }
}

TEST(LinkCheck, TellsOfTheSilentHostWithMostLinksFirst) {
  CheckedSite site;
  site.page("/",
            "<a href=http://a.test/>1</a><a href=http://c.test/x>2</a><a href=http://b.test/>3</a><a "
            "href=https://c.test/y>4</a>");
  site.run();
  const auto result = check_links(*site.sim.store, {});
  ASSERT_TRUE(result);
  std::vector<std::string> hosts;
  for (const SilentHost& host : result->silent_hosts) hosts.push_back(host.host + " " + std::to_string(host.links));
  EXPECT_THAT(hosts, ElementsAre("c.test 2", "a.test 1", "b.test 1")) << "http and https are one host";
}

TEST(LinkCheck, TakesAHostForSilentOnlyIfItHasAnsweredNothing) {
  CheckedSite site;
  site.page("/", "<a href=http://host1.test/fine>1</a><a href=http://host1.test/reset>2</a>");
  site.page("/fine", "", 1);
  site.page("/reset", "", 1);
  site.replies[{1, "/reset"}].behaviour = SyntheticReply::Behaviour::reset;
  site.run();
  const auto result = check_links(*site.sim.store, {});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->findings.size(), 1u);
  EXPECT_TRUE(result->findings.front().is_elsewhere);
  EXPECT_THAT(result->silent_hosts, IsEmpty());
}

TEST(LinkCheck, StatusCountsNoBrokenUrlToWhichNothingLeads) {
  CheckedSite site;
  site.page("/", "<a href=/gone>1</a><a href=/lost>2</a>");
  checked(site);
  const auto broken = [&] { return overview_of(*site.sim.store, site.sim.backend.clock().wall_now(), 0)->broken; };
  EXPECT_EQ(broken(), 2u);
  site.page("/", "<a href=/lost>2</a>");
  checked_again(site);
  EXPECT_EQ(broken(), 1u);
}

TEST(LinkCheck, NamesAllOfACircleAndWhatAnotherSeedLeadsTo) {
  CheckedSite site;
  site.sim.options.seeds.push_back(*Url::parse(kSite + "seed"));
  site.page("/", "<a href=/1>1</a>");
  site.redirect("/1", 302, "/2");
  site.redirect("/2", 302, "/1");
  site.redirect("/seed", 302, "/gone");
  EXPECT_EQ(checked(site).size(), 3u);
  EXPECT_EQ(checked_again(site).size(), 3u);
}

TEST(AcceptedStatus, AreStatusesAndRangesWithBothEnds) {
  const auto parsed = parse_status_ranges("200..299, 403 ,..199,500..,301-302,200..=204");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed,
            (std::vector<StatusRange>{{200, 299}, {403, 403}, {100, 199}, {500, 599}, {301, 302}, {200, 204}}));
  EXPECT_EQ(*parse_status_ranges("999"), (std::vector<StatusRange>{{999, 999}})) << "LinkedIn's";
  for (const char* text : {"", "20", "1000", "x", "300..200", "..", "-", "200..x", "2 00"})
    EXPECT_FALSE(parse_status_ranges(text)) << text;
  EXPECT_THAT(parse_status_ranges("200,abc").error().message, HasSubstr("\"abc\": not a status"));
}

// --- outputs

class CheckOutput : public testing::Test {
 protected:
  CheckOutput() {
    site_.page(
        "/",
        "<a href='/gone?a=1&b=<2>'>a \"quoted\", <b>text</b></a>\n<a href=/moved>m</a><a href='mailto:x'>\xff</a>");
    site_.redirect("/moved", 301, "/ok");
    site_.page("/ok", "");
    EXPECT_TRUE(site_.run().finished);
    result_ = *check_links(*site_.sim.store, {});
  }
  std::string written(CheckFormat format) {
    const std::string file = folder_.file("out");
    const auto done = write_check(*site_.sim.store, result_, format, file, "1.2.3");
    EXPECT_TRUE(done) << done.error().message;
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TemporaryFolder folder_;
  CheckedSite site_;
  CheckResult result_;
};

TEST_F(CheckOutput, AsTextIsForPeople) {
  EXPECT_EQ(written(CheckFormat::text),
            "error broken: 404 Not Found\n    http://host0.test/gone?a=1&b=%3C2%3E\n      in http://host0.test/:1  \"a "
            "\"quoted\", text\"\n"
            "error mail: \"x\" has no @\n    mailto:x\n      in http://host0.test/:2  \"\xef\xbf\xbd\"\n"
            "warning redirect: 301 Moved Permanently, to http://host0.test/ok\n    http://host0.test/moved\n"
            "      in http://host0.test/:2  \"m\"\n\n2 errors and 1 warning in 3 links to 4 URLs\n");
}

TEST_F(CheckOutput, AsJsonIsOneObject) {
  const std::string text = written(CheckFormat::json);
  auto parsed = JsonText::parse(text);
  ASSERT_TRUE(parsed) << parsed.error().message << text;
  EXPECT_THAT(text, HasSubstr("\"errors\":2,\"warnings\":1"));
  EXPECT_THAT(text, HasSubstr("\"suggestion\":\"http://host0.test/ok\""));
  EXPECT_THAT(text, HasSubstr("\"line\":2"));
}

TEST_F(CheckOutput, AsCsvIsALineAPlace) {
  const std::string text = written(CheckFormat::csv);
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
  EXPECT_THAT(
      text,
      HasSubstr("error,broken,http://host0.test/gone?a=1&b=%3C2%3E,404,404 Not Found,,http://host0.test/,1,anchor,"
                "\"a \"\"quoted\"\", text\",\r\n"));
}

TEST_F(CheckOutput, AsJUnitHasACaseForEachUrlAndAFailureForEachError) {
  const std::string text = written(CheckFormat::junit);
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"links\" tests=\"5\" failures=\"2\""));
  EXPECT_THAT(text, HasSubstr("<testcase classname=\"host0.test\" name=\"http://host0.test/ok\"/>"));
  EXPECT_THAT(text, HasSubstr("<failure type=\"broken\" message=\"404 Not Found\">"));
  EXPECT_THAT(text, HasSubstr("a &quot;quoted&quot;, text"));
  EXPECT_THAT(text, HasSubstr("<system-out>301 Moved Permanently"));
}

TEST_F(CheckOutput, AsJUnitHasNoCaseForWhatIsBrokenAndNoFinding) {
  const CheckRules mail{.kinds = *parse_finding_kinds("mail")};
  result_ = *check_links(*site_.sim.store, mail);
  const std::string text = written(CheckFormat::junit);
  EXPECT_THAT(text, HasSubstr("tests=\"4\" failures=\"1\""));
  EXPECT_THAT(text, Not(HasSubstr("gone"))) << "it would be one that has passed";
  site_.page("/", "<a href=/ok>o</a>");
  site_.sim.options.age = Duration::zero();
  site_.sim.backend.manual_clock().advance(std::chrono::seconds{1});
  site_.run();
  result_ = *check_links(*site_.sim.store, {});
  EXPECT_THAT(written(CheckFormat::junit), testing::AllOf(HasSubstr("failures=\"0\""), Not(HasSubstr("gone"))))
      << "nothing leads there";
}

class CheckOutputElsewhere : public CheckOutput {
 protected:
  CheckOutputElsewhere() {
    add_faults_everywhere(elsewhere_);
    elsewhere_.run();
    result_ = *check_links(*elsewhere_.sim.store, {});
  }
  std::string written_elsewhere(CheckFormat format) {
    EXPECT_TRUE(write_check(*elsewhere_.sim.store, result_, format, folder_.file("elsewhere"), "1.2.3"));
    std::ifstream in(folder_.file("elsewhere"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  CheckedSite elsewhere_;
};

TEST_F(CheckOutputElsewhere, AsTextTellsOfASilentHostInOneParagraph) {
  EXPECT_THAT(
      written_elsewhere(CheckFormat::text),
      HasSubstr(
          "\nAt other sites:\n\n"
          "error broken: 404 Not Found\n    http://host1.test/gone\n      in http://host0.test/:1  \"3\"\n"
          "error broken: silent.test cannot be reached (DNS): 3 links on 2 pages\n"
          "    http://silent.test/a\n      in http://host0.test/:1  \"1\"\n      in http://host0.test/b:1  \"9\"\n"
          "    http://silent.test/b\n      in http://host0.test/:1  \"2\"\n"
          "warning redirect: 301 Moved Permanently, to http://host1.test/new\n"));
  EXPECT_THAT(written_elsewhere(CheckFormat::text), testing::EndsWith("URLs; 3 errors at other sites\n"));
}

TEST_F(CheckOutputElsewhere, HasTheSameOrderInAllFormats) {
  const std::vector<std::string> urls = {"host0.test/zzz",  "mailto:nobody", "host0.test/moved",
                                         "host1.test/gone", "silent.test/a", "silent.test/b"};
  for (const CheckFormat format :
       {CheckFormat::text, CheckFormat::json, CheckFormat::csv, CheckFormat::junit, CheckFormat::sarif}) {
    const std::string text = written_elsewhere(format);
    std::vector<std::size_t> places;
    for (const std::string& url : urls) places.push_back(text.find(url));
    EXPECT_TRUE(std::ranges::is_sorted(places)) << text;
    EXPECT_NE(places.back(), std::string::npos);
  }
}

TEST_F(CheckOutputElsewhere, AsJsonNamesSilentHosts) {
  const std::string text = written_elsewhere(CheckFormat::json);
  EXPECT_TRUE(JsonText::parse(text)) << text;
  EXPECT_THAT(text,
              HasSubstr(R"("silent_hosts":[{"host":"silent.test","trouble":"DNS","urls":2,"links":3,"pages":2}])"));
  EXPECT_THAT(
      text,
      HasSubstr(R"("url":"http://silent.test/a","status":0,"message":"dns: http://silent.test","elsewhere":true)"));
}

TEST_F(CheckOutput, AsSarifHasARuleForEachKindAndAResultForEachPlace) {
  const std::string text = written(CheckFormat::sarif);
  auto parsed = JsonText::parse(text);
  ASSERT_TRUE(parsed) << parsed.error().message << text;
  EXPECT_THAT(text, HasSubstr("\"version\":\"2.1.0\""));
  EXPECT_THAT(text, HasSubstr("\"ruleId\":\"argiope/broken-link\",\"ruleIndex\":0,\"level\":\"error\""));
  EXPECT_THAT(text, HasSubstr("\"artifactLocation\":{\"uri\":\"host0.test/\"},\"region\":{\"startLine\":2}"));
  EXPECT_THAT(text, HasSubstr(", on http://host0.test/\"")) << "the whole URL of the page";
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\"uri\":\"http"))) << "GitHub refuses files with a scheme";
  for (std::size_t kind = 0; kind < kFindingKinds; ++kind) {
    EXPECT_THAT(
        text, HasSubstr(is_warning(static_cast<FindingKind>(kind)) ? "\"level\":\"warning\"" : "\"level\":\"error\""));
  }
}

TEST_F(CheckOutput, ThatCannotBeWrittenNamesTheFile) {
  const auto done = write_check(*site_.sim.store, result_, CheckFormat::json, "/nowhere/out.json", "1");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::io);
  EXPECT_THAT(done.error().message, HasSubstr("/nowhere/out.json"));
}

TEST_F(CheckOutput, HasTheFormatThatItsNameSays) {
  EXPECT_EQ(check_format_of("a.xml"), CheckFormat::junit);
  EXPECT_EQ(check_format_of("a.sarif"), CheckFormat::sarif);
  EXPECT_EQ(check_format_of("a.sarif.json"), CheckFormat::sarif);
  EXPECT_EQ(check_format_of("a.json"), CheckFormat::json);
  EXPECT_EQ(check_format_of("a.csv"), CheckFormat::csv);
  EXPECT_EQ(check_format_of("a.txt"), CheckFormat::text);
  EXPECT_EQ(check_format_of("a"), std::nullopt);
  EXPECT_EQ(parse_check_format("junit"), CheckFormat::junit);
  EXPECT_EQ(parse_check_format("html"), std::nullopt);
}

}  // namespace
}  // namespace argiope

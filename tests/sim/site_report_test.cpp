// What the report of a crawl says, of a site made for it.
#include "crawl/report/internal/site_report.hpp"

#include <gmock/gmock.h>

#include <string>

#include "sim/checked_site.hpp"

namespace argiope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string report_on(CheckedSite& site) {
  EXPECT_TRUE(site.run().finished);
  const auto report = gather_site_report(*site.sim.store, {});
  EXPECT_TRUE(report);
  return html_site_report(*report);
}

TEST(SiteReport, TellsOfTheSiteBeforeItTellsOfOthers) {
  CheckedSite site;
  site.page("/",
            "<a href=http://silent.test/a>1</a><a href=http://silent.test/b>2</a><a "
            "href=http://host1.test/gone>3</a><a href=/zzz>4</a>"
            "<a href=/moved>5</a><a href=/b>6</a>");
  site.page("/b", "<a href=http://silent.test/a>7</a>");
  site.redirect("/moved", 301, "/b");
  const std::string html = report_on(site);
  std::size_t last = 0;
  for (const char* heading : {"Broken links: 1</h2>", "Links to update: 1</h2>", "Broken links to other sites: 1</h2>",
                              "Hosts that cannot be reached: 1</h2>", "<h2 id=\"redirects\""}) {
    const std::size_t at = html.find(heading, last);
    ASSERT_NE(at, std::string::npos) << heading;
    last = at;
  }
  EXPECT_THAT(html, HasSubstr("<summary>silent.test cannot be reached (DNS): <b>3 links</b> on 2 pages</summary>"));
  EXPECT_THAT(html, HasSubstr("<b class=\"warn\">3</b><span>broken links to other sites</span>"));
}

TEST(SiteReport, NamesTheCommandThatListsAll) {
  CheckedSite site;
  std::string links;
  for (int i = 0; i < 205; ++i) links += "<a href=/gone" + std::to_string(i) + ">x</a>";
  site.page("/", links);
  EXPECT_THAT(report_on(site),
              AllOf(HasSubstr("And 5 more; <code>--check-output links.csv</code>"), Not(HasSubstr("`"))));
}

TEST(SiteReport, NamesAPlaceOfAStyleSheetOfOneLineOnce) {
  CheckedSite site;
  site.page("/", "<link rel=stylesheet href=/s.css>");
  site.file("/s.css", "text/css", "p{background:url(x.png)}q{background:url(x.png)}");
  const std::string html = report_on(site);
  const std::string place = "s.css</a>, line 1</li>";
  ASSERT_THAT(html, HasSubstr(place));
  EXPECT_EQ(html.find(place, html.find(place) + 1), std::string::npos);
}

}  // namespace
}  // namespace argiope

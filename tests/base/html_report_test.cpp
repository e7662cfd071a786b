// What reports in HTML are made of: nothing that was put into them is markup, and nothing they ask for is elsewhere.
#include "base/internal/html_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/internal/wording.hpp"
#include "base/internal/xml.hpp"

namespace argiope {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HtmlReport, AllowsItsStyleAndNothingElse) {
  const std::string html = html_document("a <b> & \"c\"", "<p>body</p>");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("<p>body</p></body></html>\n"));
  EXPECT_THAT(html, HasSubstr("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
  EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(html, HasSubstr(std::string(html_report_style())));
  EXPECT_THAT(std::string(html_report_style()), Not(HasSubstr("url(")));
}

TEST(HtmlReport, HasTablesWhoseCellsNameTheirColumns) {
  HtmlTable table({{"URL"}, {"Bytes", true}});
  table.add({{"x"}, html_number(1234567)});
  table.add({{"y"}, html_number(0, true)});
  table.add({{"z"}, html_number(5, true)});
  EXPECT_EQ(table.rows(), 3u);
  EXPECT_THAT(table.html(),
              HasSubstr("<tr><td data-label=\"URL\">x</td><td class=\"n\" data-label=\"Bytes\">1,234,567</td></tr>"));
  EXPECT_THAT(table.html(), HasSubstr("data-label=\"Bytes\">0</td>"));
  EXPECT_THAT(table.html(), HasSubstr("<span class=\"warn\">5</span>"));
}

TEST(HtmlReport, DrawsEachPlotForWideAndForNarrowWindows) {
  const std::string html = on_each_canvas([](const PlotCanvas& canvas) {
    return plot_bars(canvas, "<bars>", {{0, 0.5, 3, "three <&>"}, {0.5, 1, 0}},
                     [](int i) { return std::to_string(i); });
  });
  EXPECT_THAT(html, HasSubstr("<svg class=\"wide\""));
  EXPECT_THAT(html, HasSubstr("<svg class=\"narrow\""));
  EXPECT_THAT(html, HasSubstr("aria-label=\"&lt;bars&gt;\""));
  EXPECT_THAT(html, HasSubstr("<title>three &lt;&amp;&gt;</title>"));
  EXPECT_THAT(plot_area(
                  kPlotCanvases[0], "a", {}, [](int) { return ""; }, true),
              HasSubstr("class=\"area bad\""));
}

TEST(XmlText, IsEscapedAndHasOnlyCharactersOfXml) {
  EXPECT_EQ(xml_escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;'");
  EXPECT_EQ(xml_escaped("a\tb\nc\rd"), "a\tb\nc&#13;d");
  EXPECT_EQ(xml_escaped(std::string("\0\x01\x1f\x7f", 4)), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(xml_escaped("é\xff\xef\xbf\xbf\xed\xa0\x80"),
            "é\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Wording, SaysNumbersAsPeopleReadThem) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(count_of(1, "page"), "1 page");
  EXPECT_EQ(count_of(2000, "page"), "2,000 pages");
  EXPECT_EQ(shortened("äöü", 2), "äö…");
}

}  // namespace
}  // namespace argiope

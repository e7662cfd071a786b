#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "argiope/web/link_scanner.hpp"

namespace argiope {
namespace {

std::vector<std::string> texts(std::string_view html) {
  ScanResult scan;
  scan_links(html, {.note_places = true}, scan);
  EXPECT_EQ(scan.behind.size(), scan.links.size());
  std::vector<std::string> found;
  for (const std::size_t behind : scan.behind) found.push_back(behind == 0 ? "-" : link_text(html, behind));
  return found;
}
using Texts = std::vector<std::string>;

TEST(LinkText, IsWhatStandsInTheElement) {
  EXPECT_EQ(texts("<a href=x>One &amp; two</a> three"), Texts{"One & two"});
  EXPECT_EQ(texts("<A HREF='x'>\n  a\t <b>bold</b>\n word </A>"), Texts{"a bold word"});
  EXPECT_EQ(texts("<a href=x></a><a href=y> </a>"), (Texts{"", ""}));
}

TEST(LinkText, EndsWhereTheNextLinkOrThePageDoes) {
  EXPECT_EQ(texts("<a href=x>one <a href=y>two"), (Texts{"one", "two"}));
  EXPECT_EQ(texts("<a href=x>one <abbr>two</abbr></a>"), Texts{"one two"});
  EXPECT_EQ(texts("<a href=x>one <"), Texts{"one"});
  EXPECT_EQ(texts("<a href=x>one <!-- </a> two"), Texts{"one"});
  EXPECT_EQ(texts("<a href=x>one<!-- </a> -->two</a>"), Texts{"onetwo"});
}

TEST(LinkText, OfAnImageIsWhatStandsForIt) {
  EXPECT_EQ(texts("<a href=x><img src=y alt=\"our &quot;shop&quot;\"></a>"), Texts{"our \"shop\""});
  EXPECT_EQ(texts("<a href=x><img src=y></a>"), Texts{""});
}

TEST(LinkText, IsNoneWhereTheElementHasNone) {
  EXPECT_EQ(texts("<link rel=next href=x><iframe src=y></iframe><area href=z>")[0], "-");
  EXPECT_EQ(texts("<meta http-equiv=refresh content='0;url=x'>"), Texts{"-"});
}

TEST(LinkText, IsCutBetweenCharacters) {
  std::string html = "<a href=x>";
  for (int i = 0; i < 2'000; ++i) html += "ä";
  const std::string text = texts(html)[0];
  EXPECT_EQ(text.size(), 1'000u);
  EXPECT_EQ(texts("<a href=x>x" + html.substr(10))[0].size(), 999u) << "a character in halves is left out";
}

TEST(LinkText, WithoutPlacesNothingIsKept) {
  ScanResult scan;
  scan_links("<a href=x>one</a>", {.note_places = true}, scan);
  scan_links("<a href=x>one</a>", {}, scan);
  EXPECT_TRUE(scan.behind.empty());
  EXPECT_EQ(link_text("<a href=x>one</a>", 1'000'000), "");
}

}  // namespace
}  // namespace argiope

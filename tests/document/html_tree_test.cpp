// The rows of HTML pages: the texts that we make in the parser's place are those that it makes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "document/document_tree.hpp"

namespace argiope {
namespace {

std::string rows_of(std::string_view html, TokenTexts texts) {
  const auto tree = build_html_tree_by_parser(html, {}, texts);
  if (!tree) return tree.error().message;
  std::string all;
  for (const TreeNode& row : tree->nodes) {
    all += std::to_string(static_cast<int>(row.kind)) + ' ' + std::to_string(row.parent) + ' ' +
           std::to_string(row.position) + ' ';
    all.append(row.text).append("\n");
    for (std::uint32_t i = 0; i < row.attributes; ++i) {
      const TreeAttribute& attribute = tree->attributes[row.first_attribute + i];
      all.append(attribute.name).append("=").append(attribute.value).append("\n");
    }
  }
  return all;
}
void expect_same_rows(std::string_view html) {
  EXPECT_EQ(rows_of(html, TokenTexts::ours), rows_of(html, TokenTexts::of_parser)) << html.substr(0, 1000);
}

TEST(HtmlTree, HasTheTextsThatTheParserMakes) {
  for (const std::string_view html :
       {std::string_view("<p>plain"), std::string_view("<p>a&amp;b&#x26;c&nosuch;d"), std::string_view("<p>a\r\nb\rc"),
        std::string_view("<p>a\0b<p title='\0'>", 20),
        std::string_view("<a HREF=x TiTle='A&lt;B' checked empty='' x=\r\n'1\r\n2'>"),
        std::string_view("<a \xc3\x84=1 b=\xc3\xa4 \0c=2>", 20),
        std::string_view("<title>a&amp;b</title><textarea>\n\n&lt;</textarea>"),
        std::string_view("<script>a && b\r\n</script><style>a>b&amp;</style><!-- a & b --><!--\r--><!---->"),
        std::string_view("<svg viewbox=1 xlink:href='#a'><![CDATA[a&amp;b]]></svg>"),
        std::string_view("<!DOCTYPE html PUBLIC 'a&amp;' 'b'>x"), std::string_view("<table>foster<tr>b<td>c</table>d"),
        std::string_view("<b a=1><b a=1><b a=1><b a=1><p>x</b>y"), std::string_view("<p>behind</p"),
        std::string_view("<p a='&amp"), std::string_view("&"), std::string_view("")}) {
    expect_same_rows(html);
  }
}

TEST(HtmlTree, HasTheTextsThatTheParserMakesOfAnything) {
  const std::vector<std::string> pieces = {"<p ",
                                           "<a href=",
                                           "'",
                                           "\"",
                                           ">",
                                           "</p>",
                                           "&amp;",
                                           "&",
                                           "text ",
                                           "\r\n",
                                           "\r",
                                           std::string(1, '\0'),
                                           "TITLE=",
                                           "<title>",
                                           "</title>",
                                           "<table>",
                                           "<tr>",
                                           "<td>",
                                           "</table>",
                                           "<svg>",
                                           "</svg>",
                                           "<![CDATA[",
                                           "]]>",
                                           "<!--",
                                           "-->",
                                           "<script>",
                                           "</script>",
                                           "<b id=1>",
                                           "</b>",
                                           "\xc3\xa4",
                                           " ",
                                           "=",
                                           "<textarea>",
                                           "<plaintext>",
                                           "long enough for more than one step of the search "};
  Random random(21);
  for (int round = 0; round < 20'000; ++round) {
    std::string html;
    for (auto count = random.below(25); count > 0; --count) {
      html += pieces[random.chance(0.02) ? random.below(pieces.size()) : random.below(pieces.size() - 2)];
    }
    expect_same_rows(html);
    if (HasFailure()) return;
  }
}

TEST(HtmlTree, HasTheTextsThatTheParserMakesOfRealPages) {
  std::size_t pages = 0;
  std::error_code none;
  for (const auto* tree : {"/usr/share/cppreference/doc/html", "/usr/share/doc/python3.11/html"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree, none)) {
      if (entry.path().extension() != ".html" || ++pages % 20 != 0) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string html{std::istreambuf_iterator<char>(file), {}};
      EXPECT_TRUE(rows_of(html, TokenTexts::ours) == rows_of(html, TokenTexts::of_parser)) << entry.path();
    }
  }
  if (pages == 0) GTEST_SKIP() << "no documentation packages";
}

}  // namespace
}  // namespace argiope

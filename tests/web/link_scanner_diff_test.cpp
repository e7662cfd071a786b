// The link scanner against a full HTML5 parser (gumbo): on real documentation the same links, on damaged pages the same
// but for what only a tree can tell. ARGIOPE_FULL=1 in the environment takes every page and many more damaged ones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gumbo.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/web/link_scanner.hpp"
#include "support/one_pass.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

// "kind url" of each link, once; and "base url".
using LinkSet = std::set<std::string>;

bool full_run() { return std::getenv("ARGIOPE_FULL") != nullptr; }

const char* attribute(const GumboElement& element, const char* name, GumboAttributeNamespaceEnum space) {
  for (unsigned i = 0; i < element.attributes.length; ++i) {
    const auto* a = static_cast<const GumboAttribute*>(element.attributes.data[i]);
    if (a->attr_namespace == space && std::string_view(a->name) == name) return a->value;
  }
  return nullptr;
}

const char* attribute(const GumboElement& element, const char* name) {
  return attribute(element, name, GUMBO_ATTR_NAMESPACE_NONE);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return c < 0x80 ? std::tolower(c) : c; });
  return out;
}

// The kind that the words of a link's rel make it; empty when it is not one to follow.
std::string kind_of(const char* rel) {
  if (rel == nullptr) return "";
  std::istringstream words(lower(rel));
  const std::set<std::string> all{std::istream_iterator<std::string>(words), {}};
  if (all.contains("stylesheet")) return "";
  for (const char* kind : {"canonical", "next", "prev", "alternate"}) {
    if (all.contains(kind)) return kind;
  }
  for (const char* other : {"search", "index", "copyright", "author", "help", "license"}) {
    if (all.contains(other)) return "other";
  }
  return "";
}

// `has_base`: null where a base does not count.
void collect(const GumboElement& element, LinkSet& out, bool* has_base) {
  const bool html = element.tag_namespace == GUMBO_NAMESPACE_HTML;
  const char* href = attribute(element, "href");
  const auto add = [&out](std::string_view kind, const char* url) {
    if (url != nullptr) out.insert(fmt::format("{} {}", kind, url));
  };
  if (element.tag == GUMBO_TAG_A) {
    add("anchor", href != nullptr || html ? href : attribute(element, "href", GUMBO_ATTR_NAMESPACE_XLINK));
  }
  if (!html) return;
  if (element.tag == GUMBO_TAG_AREA) add("area", href);
  if (element.tag == GUMBO_TAG_FRAME || element.tag == GUMBO_TAG_IFRAME) add("frame", attribute(element, "src"));
  const bool is_base = element.tag == GUMBO_TAG_BASE && href != nullptr && has_base != nullptr;
  if (is_base && !std::exchange(*has_base, true)) add("base", href);
  if (element.tag == GUMBO_TAG_LINK) {
    if (const std::string kind = kind_of(attribute(element, "rel")); !kind.empty()) add(kind, href);
  }
}

LinkSet parsed(std::string_view html) {
  GumboOptions options = kGumboDefaultOptions;
  options.max_errors = 0;
  GumboOutput* const output = gumbo_parse_with_options(&options, html.data(), html.size());
  LinkSet out;
  bool has_base = false;
  struct Ahead {
    const GumboNode* node;
    bool in_template;
  };
  std::vector<Ahead> ahead{{output->document, false}};
  while (!ahead.empty()) {
    const auto [node, in_template] = ahead.back();
    ahead.pop_back();
    const GumboVector* children = nullptr;
    if (node->type == GUMBO_NODE_DOCUMENT) {
      children = &node->v.document.children;
    } else if (node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE) {
      collect(node->v.element, out, in_template ? nullptr : &has_base);
      children = &node->v.element.children;
    } else {
      continue;
    }
    const bool is_template = in_template || node->type == GUMBO_NODE_TEMPLATE;
    for (unsigned i = children->length; i-- > 0;)
      ahead.push_back({static_cast<const GumboNode*>(children->data[i]), is_template});
  }
  gumbo_destroy_output(&options, output);
  return out;
}

LinkSet scanned(std::string_view html) {
  static ScanResult result;  // one for all, as the crawler does it
  scan_links(html, {}, result);
  expect_same_in_one_pass(html, {}, result);
  LinkSet out;
  for (const ScannedLink& link : result.links) {
    if (link.kind != LinkKind::refresh) out.insert(fmt::format("{} {}", to_string(link.kind), link.url));
  }
  if (!result.base_href.empty()) out.insert(fmt::format("base {}", result.base_href));
  return out;
}

struct Difference {
  std::size_t links = 0;
  std::size_t missing = 0;  // the parser found them, the scanner did not
  std::size_t extra = 0;
  std::string first;  // page with a difference

  void add(std::string_view html) {
    const LinkSet want = parsed(html);
    const LinkSet got = scanned(html);
    links += want.size();
    std::vector<std::string> lost, more;
    std::ranges::set_difference(want, got, std::back_inserter(lost));
    std::ranges::set_difference(got, want, std::back_inserter(more));
    std::erase(lost, "base ");  // the scanner does not tell an empty base from none
    missing += lost.size();
    extra += more.size();
    if (first.empty() && !lost.empty()) first = fmt::format("missing {} in:\n{}", lost[0], html);
    if (first.empty() && !more.empty()) first = fmt::format("extra {} in:\n{}", more[0], html);
  }
};

std::vector<fs::path> pages_of(const char* tree) {
  std::vector<fs::path> pages;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree, none)) {
    if (entry.path().extension() == ".html") pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  return pages;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RealPages : public testing::TestWithParam<const char*> {};

TEST_P(RealPages, HaveTheLinksThatAFullParserFinds) {
  const std::vector<fs::path> pages = pages_of(GetParam());
  if (pages.empty()) GTEST_SKIP() << "no documentation installed at " << GetParam();
  Difference difference;
  for (std::size_t i = 0; i < pages.size(); i += full_run() ? 1 : 25) difference.add(read(pages[i]));
  EXPECT_GT(difference.links, 1000u);
  EXPECT_EQ(difference.missing, 0u) << difference.first;
  EXPECT_EQ(difference.extra, 0u);
}

INSTANTIATE_TEST_SUITE_P(LinkScanner, RealPages,
                         testing::Values("/usr/share/cppreference/doc/html", "/usr/share/doc/python3.11/html"));

// What pages are damaged with.
constexpr std::string_view kTokens[] = {"<",
                                        ">",
                                        "/",
                                        "=",
                                        "\"",
                                        "'",
                                        "&",
                                        "-",
                                        "!",
                                        " ",
                                        "\n",
                                        "</",
                                        "<!",
                                        "<!--",
                                        "-->",
                                        "--!>",
                                        "<!-->",
                                        "<?",
                                        "/>",
                                        "<a",
                                        "<p>",
                                        "</p>",
                                        "<a href=x",
                                        "</a>",
                                        "<a href='y'>",
                                        " href",
                                        "href=\"",
                                        "<b title=\"",
                                        "<b title='>'>",
                                        "<div>",
                                        "</div>",
                                        "<table>",
                                        "<td>",
                                        "<!doctype \">",
                                        "]]>",
                                        "<![CDATA[",
                                        "<script>",
                                        "</script>",
                                        "<style>",
                                        "</style>",
                                        "<title>",
                                        "</title>",
                                        "<textarea>",
                                        "<xmp>",
                                        "</xmp>",
                                        "</textarea>",
                                        "<noscript>",
                                        "&amp",
                                        "&amp;",
                                        "&copy=",
                                        "&notit;",
                                        "&#65",
                                        "&#x;",
                                        "&#128;",
                                        "<noembed>",
                                        "</noembed>",
                                        "<base href=q>",
                                        "<link rel=next href=n>",
                                        "<area href=r>",
                                        "<a\thref\n=\n\"z\"rel>",
                                        "<template>",
                                        "</template>",
                                        "</iframe>",
                                        "</noscript>",
                                        "<iframe src=i>"};
// And with these where the tree is to matter.
constexpr std::string_view kTreeTokens[] = {"<svg>",  "</svg>",  "<svg><style/>",   "<svg><title>",     "<desc>",
                                            "<math>", "</math>", "<foreignObject>", "</foreignObject>", "<select>"};

// Own pages, so that damage can be done where no documentation is installed.
std::string made_page(Random& random, bool pictures) {
  std::string html = "<!DOCTYPE html><html><head><title>t &amp; t</title><style>a > b { }</style></head><body>\n";
  for (int i = 0; i < 60; ++i) {
    switch (random.below(pictures ? 6 : 5)) {
      case 0:
        html += fmt::format("<p class=\"c{0}\" id=x{0}>x <a href=\"p{0}.html?a=1&amp;b=2\">y</a></p>\n", i);
        break;
      case 1: html += fmt::format("<ul><li><a title='a > b' href='u{}'>x</a><li><b>y</b></ul>", i); break;
      case 2: html += fmt::format("<!-- <a href=hidden{}> -->", i); break;
      case 3: html += fmt::format("<script>if (a < b && c > d) write('<a href=\"w{}\">');</script>", i); break;
      case 4: html += fmt::format("<div data-x='<a href=\"q{0}\">'><img src=i{0} alt=\"\"></div>", i); break;
      default: html += fmt::format("<svg viewBox=\"0 0 1 1\"><g><a href=\"s{}\"><path d='M0'/></a></g></svg>", i);
    }
  }
  return html + "</body></html>\n";
}

std::string damaged(std::string html, Random& random, bool pictures) {
  for (char& c : html) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';  // gumbo's reading of UTF-8 is not at test
  for (std::uint64_t n = 1 + random.below(8); n > 0; --n) {
    const std::size_t at = random.below(html.size());
    switch (random.below(pictures ? 5 : 4)) {
      case 0: html.erase(at, 1 + random.below(40)); break;
      case 1: html.insert(at, html.substr(random.below(html.size()), random.below(60))); break;
      case 4: html.insert(at, kTreeTokens[random.below(std::size(kTreeTokens))]); break;
      default: html.insert(at, kTokens[random.below(std::size(kTokens))]);
    }
  }
  return html;
}

Difference differences_of_damaged_pages(bool pictures) {
  std::vector<fs::path> pages = pages_of("/usr/share/cppreference/doc/html");
  std::ranges::copy(pages_of("/usr/share/doc/python3.11/html"), std::back_inserter(pages));
  Random random(20260101);
  Difference difference;
  for (int i = 0; i < (full_run() ? 20'000 : 400); ++i) {
    const bool made = i % 2 == 0 || pages.empty();
    std::string html = made ? made_page(random, pictures) : read(pages[random.below(pages.size())]);
    constexpr std::size_t kMost = 12'000;  // gumbo may take quadratic time
    if (html.size() > kMost) html = html.substr(random.below(html.size() - kMost), kMost);
    difference.add(damaged(std::move(html), random, pictures));
  }
  fmt::print("{} links, {} missing, {} extra\n", difference.links, difference.missing, difference.extra);
  EXPECT_GT(difference.links, 5000u);
  return difference;
}

TEST(LinkScannerDamage, ChangesNothingThatOnlyTheTokeniserDecides) {
  const Difference difference = differences_of_damaged_pages(false);
  EXPECT_EQ(difference.missing, 0u) << difference.first;
  EXPECT_EQ(difference.extra, 0u) << difference.first;
}

// In half-closed pictures and in `select` a parser drops or moves tags by its tree.
TEST(LinkScannerDamage, MattersLittleWhereTheTreeDecides) {
  const Difference difference = differences_of_damaged_pages(true);
  EXPECT_LE(difference.missing, difference.links / 500) << difference.first;
  EXPECT_LE(difference.extra, difference.links / 50) << difference.first;
}

}  // namespace
}  // namespace argiope

// The tree that we build of plain pages ourselves: where there is one, it is the parser's, row for row. ARGIOPE_FULL=1
// in the environment takes every real page and many more random ones.
#include "document/quick_html_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "document/document_tree.hpp"

namespace argiope {
namespace {

std::string all_rows(const DocumentTree& tree) {
  std::string all;
  for (const TreeNode& row : tree.nodes) {
    all += fmt::format("{} parent {} end {} previous {} name {} at {} attributes {}+{}: {}\n",
                       static_cast<int>(row.kind), row.parent, row.end, row.previous, row.name, row.position,
                       row.first_attribute, row.attributes, row.text);
  }
  for (const TreeAttribute& attribute : tree.attributes) all += fmt::format("{}={}\n", attribute.name, attribute.value);
  for (const std::string_view name : tree.names) all += fmt::format("{}\n", name);
  return all;
}

// Whether the page is read without the parser. Then both must say the same.
bool is_quick(std::string_view html, const DocumentLimits& limits = {}) {
  const auto quick = build_quick_html_tree(html, limits);
  if (!quick) return false;
  const auto tree = build_html_tree_by_parser(html, limits);
  EXPECT_TRUE(tree) << html.substr(0, 1000);
  if (tree) {
    const std::string rows = all_rows(*quick), wanted = all_rows(*tree);
    // Of large pages the difference would be unreadable.
    if (html.size() < 2000) {
      EXPECT_EQ(rows, wanted) << html;
    } else {
      EXPECT_TRUE(rows == wanted);
    }
  }
  return true;
}

TEST(QuickHtmlTree, ReadsPlainPages) {
  for (const std::string_view html :
       {"",
        "x",
        "\xef\xbb\xbf<p>a",
        " \n",
        "<p>x",
        "<!DOCTYPE html><html lang=en><head><title>a &amp; b</title></head><body class=x>y</body></html>\n",
        "<!doctype HTML>\n<!-- a -->\n<html>\n<!-- b -->\n<head>\n</head>\n<!-- c -->\n<body>\n</body>\n<!-- d "
        "-->\n</html>\n<!-- e -->\n",
        "<html><title>t</title><link rel=next href=/b><meta charset=utf-8><base href=x><div>",
        "<head><noscript><link href=a></noscript>",
        "<head></head> <p>a",
        "<body></p>",
        "<p>a<p>b<div>c</div>d",
        "<p>a<ul><li>b<li>c<p>d<li>e</ul>f",
        "<dl><dt>a<dd>b<div>c</div><dt>d</dl>",
        "<h1>a</h1><h2>b</h3>c",
        "<h1>a<h2>b</h2>",
        "<pre>\na\n</pre><pre>\n</pre><pre>\n\n</pre>",
        "<textarea>\n&lt;b></textarea><title>\n</title>",
        "<style>a > b {}</style><script>if (a < b && c) \"</div>\"</script>",
        "<iframe src=x><p></iframe>",
        "<select><option>a<option selected>b<optgroup label=c><option>d</select>e",
        "<table><tr><td>a<td>b<tr><th>c</table>d",
        "<table>\n<caption>a</caption>\n<colgroup>\n<col>\n<thead><tr><th>b</thead>\n<td>c</table>",
        "<table><col><tbody></tbody><tfoot><td><table><td>a</table>b</table>c",
        "<!DOCTYPE html><p>a<table><td>b</table>",
        "<ruby>a<rt>b<rp>c<rb>d<rtc>e<rt>f</ruby>",
        "<a href=x><b>y</b></a>z</a>",
        "<form><input type=text><button>a</button></form></form>",
        "<div><x-y>a</X-Y></div></span>b</div>c",
        "<b><div>a</div></b>",
        "<object><param name=a><p>b</object>c",
        "<p class=\"a\" ID='b' checked x = 1 Title=\"&quot;a &amp; b&quot;\" class=c />d",
        "a < b & c &#8211; &nbsp; &lt;p&gt;<br/>",
        "<div>x</div>\n</body>\n</html>\n",
        "<svg viewBox='0 0 1 1' class=a><path d='M1'/><g>\n<circle r=1></circle></g></svg>a<svg/>"}) {
    EXPECT_TRUE(is_quick(html)) << html;
  }
}

TEST(QuickHtmlTree, LeavesTheRestToTheParser) {
  for (const std::string_view html : {std::string_view("<b>a<p>b</b>c"),
                                      std::string_view("<p><b>a</p>b"),
                                      std::string_view("<a href=x>a<a href=y>b"),
                                      std::string_view("<b><b><b><b>"),
                                      std::string_view("<table>a"),
                                      std::string_view("<table><tr><p>"),
                                      std::string_view("<table><form>"),
                                      std::string_view("<td>"),
                                      std::string_view("<table><td><a><object></a></table>b"),
                                      std::string_view("<svg><title>a</title></svg>"),
                                      std::string_view("<svg><path>"),
                                      std::string_view("<svg xlink:href=a>"),
                                      std::string_view("<svg preserveAspectRatio=a></svg>"),
                                      std::string_view("<svg viewbox viewbox></svg>"),
                                      std::string_view("<svg><path></svg>"),
                                      std::string_view("<svg><p></svg>"),
                                      std::string_view("<math>"),
                                      std::string_view("<!DOCTYPE html =<e>"),
                                      std::string_view("<foreignobject>"),
                                      std::string_view("<template>"),
                                      std::string_view("<frameset>"),
                                      std::string_view("<plaintext>"),
                                      std::string_view("<nobr>"),
                                      std::string_view("<image>"),
                                      std::string_view("<button><button>"),
                                      std::string_view("<form><form>"),
                                      std::string_view("<body><body class=x>"),
                                      std::string_view("<html><html class=x>"),
                                      std::string_view("</body>a"),
                                      std::string_view("<p></body><p>"),
                                      std::string_view("<p><table>"),
                                      std::string_view("</br>"),
                                      std::string_view("<select><p>"),
                                      std::string_view("<script><!--</script>"),
                                      std::string_view("<style></b></style>"),
                                      std::string_view("<title>a"),
                                      std::string_view("<!-->"),
                                      std::string_view("<!-- a --!> -->"),
                                      std::string_view("<!-- a"),
                                      std::string_view("<!x>"),
                                      std::string_view("<?x>"),
                                      std::string_view("</>"),
                                      std::string_view("<p a"),
                                      std::string_view("<p a=>"),
                                      std::string_view("<p a='b'c>"),
                                      std::string_view("<p a=`>"),
                                      std::string_view("a&copy"),
                                      std::string_view("<p a='&copy'>"),
                                      std::string_view("a\rb"),
                                      std::string_view("a\0b", 3),
                                      std::string_view("<p a='\r'>"),
                                      std::string_view("<head></head><title>"),
                                      std::string_view("<pre>&#10;a")}) {
    EXPECT_FALSE(build_quick_html_tree(html, {})) << html;
  }
}

TEST(QuickHtmlTree, IsLeftAloneNearALimit) {
  const std::string page = "<p a=1>" + std::string(200, 'x') + "</p>";
  const DocumentLimits enough{.most_bytes = 1000, .most_nodes = 100, .most_attributes = 300, .most_depth = 40};
  EXPECT_TRUE(is_quick(page, enough));
  for (const DocumentLimits& limits : {DocumentLimits{.most_bytes = 100}, DocumentLimits{.most_nodes = 10},
                                       DocumentLimits{.most_attributes = 10}, DocumentLimits{.most_depth = 10}}) {
    EXPECT_FALSE(build_quick_html_tree(page, limits));
  }
  std::string deep, wide, many = "<p";
  for (int i = 0; i < 300; ++i) {
    deep += "<div>";
    wide += "<p a=1>";
    many += fmt::format(" a{}=1", i);
  }
  EXPECT_FALSE(build_quick_html_tree(deep, {}));
  EXPECT_FALSE(build_quick_html_tree(many + ">", {}));
  EXPECT_TRUE(is_quick(wide));
  EXPECT_FALSE(build_quick_html_tree(wide, {.most_nodes = 300}));
  EXPECT_FALSE(build_quick_html_tree(wide, {.most_attributes = 400}));
}

struct Reference {
  std::string_view name;
  bool legacy;
  char32_t first, second;
};
constexpr Reference kAllReferences[] = {
#include "../../tools/html_entities.inc"
};

// Each tag whose name is not in the table goes through those before it.
TEST(QuickHtmlTree, LeavesPagesOfManyInventedNamesToTheParser) {
  const auto page_of = [](int names) {
    std::string page = "<!DOCTYPE html><title>t</title><body>";
    for (int i = 0; i < names; ++i) page += "<x-" + std::to_string(i) + ">a</x-" + std::to_string(i) + ">";
    return page;
  };
  EXPECT_TRUE(build_quick_html_tree(page_of(50), {}));
  EXPECT_FALSE(build_quick_html_tree(page_of(100), {}));
}

TEST(QuickHtmlTree, ReadsReferencesAsTheParserDoes) {
  std::string names, numbers;
  for (const Reference& reference : kAllReferences)
    names += fmt::format("<p title='a&{0};b'>&{0}; {0}", reference.name);
  for (int number = 1; number < 0x3000; number += 1 + number / 300) {
    if (number != '\r') numbers += fmt::format("<p title='&#{0};'>a&#x{0:x};b", number);
  }
  for (const int number : {0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFE, 0x1F600, 0x10FFFF, 0x110000, 0}) {
    numbers += fmt::format("<p title='&#{0};'>a&#x{0:X};b", number);
  }
  EXPECT_TRUE(is_quick(names));
  EXPECT_TRUE(is_quick(numbers));
  for (const std::string_view text :
       {"&#13;", "&nosuch;", "&copy", "&notit;", "&a", "&#;", "&#x;", "&#65", "&;", "&&amp;"}) {
    EXPECT_FALSE(build_quick_html_tree(fmt::format("<p>{}", text), {})) << text;
  }
}

// Pages that are mostly plain: elements in elements where they may be, closed or not where that is allowed. With a
// chance of one in fifty each, anything else may come in between.
class PageMaker {
 public:
  explicit PageMaker(std::uint64_t seed) : random_(seed) {}

  std::string page() {
    out_ = one_of({"<!DOCTYPE html>", "<!DOCTYPE html>\n", "", "<!-- a --><!doctype html>\n",
                   "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" "
                   "\"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">"});
    if (random_.chance(0.3)) return soup();
    if (random_.chance(0.8)) open("html");
    if (random_.chance(0.8)) head();
    if (random_.chance(0.8)) open("body");
    content(0, false);
    out_ += one_of({"</body></html>", "\n</body>\n</html>\n", "", "</body>", "</html>",
                    "</body><!-- a --></html>\n<!-- b -->\n", "</body> x"});
    if (random_.chance(0.1) && !out_.empty()) out_.erase(random_.below(out_.size()), 1 + random_.below(6));
    return std::move(out_);
  }

 private:
  std::string one_of(std::initializer_list<std::string_view> choices) {
    return std::string(choices.begin()[random_.below(choices.size())]);
  }
  std::string any_name() {
    return one_of({"p",        "div",      "span",     "b",        "i",       "a",        "em",     "code",
                   "ul",       "li",       "dl",       "dt",       "dd",      "table",    "tr",     "td",
                   "th",       "tbody",    "thead",    "caption",  "col",     "colgroup", "h1",     "h2",
                   "pre",      "br",       "img",      "input",    "hr",      "form",     "button", "select",
                   "option",   "optgroup", "textarea", "script",   "style",   "title",    "link",   "meta",
                   "noscript", "iframe",   "object",   "ruby",     "rt",      "rtc",      "rb",     "section",
                   "x-y",      "X-Y",      "html",     "head",     "body",    "svg",      "math",   "template",
                   "nobr",     "image",    "xmp",      "frameset", "marquee", "menuitem", "center"});
  }
  std::string any_text() {
    return one_of({"x", " ", "\n", "a &amp; b", "a < b", "&nbsp;", "&#39;", "&#x2014;", "\n\n",
                   "text that is longer than one step of the search ", "\t", "\xc3\xa4", "\f", "& ",
                   random_.chance(0.1) ? "&copy" : "&lt;", random_.chance(0.1) ? "\r\n" : "y",
                   random_.chance(0.1) ? "</" : ">", random_.chance(0.1) ? "&notit;" : "&ngE;"});
  }
  void open(std::string_view name) {
    out_.append("<").append(name);
    while (random_.chance(0.4)) {
      out_ += one_of({" class=x", " id=\"a b\"", " HREF='u?a=b&amp;c'", " checked", " x = 1", " data-a=\"<p>\"",
                      " a=b/c", "\nq=''", " t=\"&#39;\"", " u=\"a & b\"", random_.chance(0.1) ? " z=\"1\"s=2" : " @c=d",
                      random_.chance(0.1) ? " v=?a&b" : " w=1"});
    }
    out_ += random_.chance(0.95) ? ">" : one_of({"/>", " />", " >"});
  }
  void close(std::string_view name, double chance) {
    if (random_.chance(chance)) out_.append("</").append(name).append(">");
  }
  void raw(std::string_view name) {
    open(name);
    while (random_.chance(0.5))
      out_ += one_of({"a", "\n", "<b>", "if (a && b < c)", "&amp;", "</b>", "<", "</", "'</p>'", "<!-- -->"});
    close(name, 0.98);
  }
  std::string soup() {
    for (auto count = random_.below(14); count > 0; --count) {
      const double kind = random_.below(10);
      if (kind < 4) {
        open(any_name());
      } else if (kind < 7) {
        close(any_name(), 1);
      } else {
        out_ += any_text();
      }
    }
    return std::move(out_);
  }
  void head() {
    open("head");
    for (auto count = random_.below(6); count > 0; --count) {
      const std::string name = one_of(
          {"title", "style", "script", "meta", "link", "base", "\n", "<!-- a -->", "<noscript><link>\n</noscript>"});
      if (name == "title" || name == "style" || name == "script") {
        raw(name);
      } else if (name[0] >= 'a') {
        open(name);
      } else {
        out_ += name;
      }
    }
    close("head", 0.8);
    if (random_.chance(0.5)) out_ += "\n";
  }
  void content(int depth, bool inline_only) {
    for (auto count = random_.below(5); count > 0; --count) {
      if (random_.chance(0.02)) open(any_name());
      if (random_.chance(0.02)) close(any_name(), 1);
      if (random_.chance(0.02))
        out_ += one_of({"<!-- a -->", "<!---->", "<!-- <p> --->", "<!-->", "<!-- a --!>", "<?x>", "</>"});
      if (depth > 6 || random_.chance(0.35)) {
        out_ += any_text();
      } else if (inline_only || random_.chance(0.5)) {
        const std::string name = one_of({"span", "b", "em", "code", "a", "x-y", "i", "label", "br", "img", "input"});
        open(name);
        if (name == "br" || name == "img" || name == "input") continue;
        content(depth + 1, true);
        close(name, 0.98);
      } else {
        block(depth, one_of({"svg", "p",       "div",    "ul",     "dl",       "table",  "h1",        "h2",
                             "pre", "section", "form",   "select", "script",   "style",  "textarea",  "hr",
                             "nav", "button",  "object", "ruby",   "noscript", "iframe", "blockquote"}));
      }
    }
  }
  void block(int depth, const std::string& name) {
    if (name == "script" || name == "style" || name == "textarea" || name == "iframe") return raw(name);
    if (name == "svg") return drawing();
    open(name);
    if (name == "hr") return;
    if (name == "ul") {
      items(depth, {"li"});
    } else if (name == "dl") {
      items(depth, {"dt", "dd"});
    } else if (name == "select") {
      items(7, {"option", "option", "optgroup"});
    } else if (name == "ruby") {
      items(7, {"rt", "rp", "rb", "rtc"});
    } else if (name == "table") {
      table(depth);
    } else {
      content(depth + 1, name == "p" || name[0] == 'h');
    }
    close(name, name == "p" ? 0.5 : 0.97);
  }
  void drawing() {
    out_ += one_of(
        {"<svg>", "<svg viewBox='0 0 1 1' width=2>", "<svg class=x xmlns='http://www.w3.org/2000/svg'>", "<svg/>"});
    while (random_.chance(0.5)) {
      out_ += one_of({"<path d='M1'/>", "<g><rect x=1></rect>\n</g>", "<circle r=a/>x</circle>", " ", "<!-- a -->",
                      random_.chance(0.1) ? "<title>a</title>" : "<g/>", random_.chance(0.1) ? "<p>" : "<line />"});
    }
    close("svg", 0.95);
  }
  void items(int depth, std::initializer_list<std::string_view> names) {
    for (auto count = random_.below(4); count > 0; --count) {
      if (random_.chance(0.5)) out_ += "\n";
      const std::string name = one_of(names);
      open(name);
      content(depth + 1, false);
      close(name, 0.5);
    }
  }
  void table(int depth) {
    if (random_.chance(0.3)) {
      open("caption");
      content(depth + 1, true);
      close("caption", 0.8);
    }
    if (random_.chance(0.2)) out_ += one_of({"<colgroup><col></colgroup>", "<col>", "<colgroup>\n<col>"});
    for (auto groups = random_.below(3); groups > 0; --groups) {
      const std::string group = one_of({"tbody", "thead", "tfoot"});
      if (random_.chance(0.5)) open(group);
      for (auto rows = random_.below(4); rows > 0; --rows) {
        if (random_.chance(0.8)) open("tr");
        items(depth + 1, {"td", "th"});
        close("tr", 0.5);
      }
      close(group, 0.2);
    }
  }

  Random random_;
  std::string out_;
};

TEST(QuickHtmlTree, IsTheParsersOfRandomPages) {
  const bool full = std::getenv("ARGIOPE_FULL") != nullptr;
  const int count = full ? 1'000'000 : 30'000;
  PageMaker maker(20261124);
  int quick = 0;
  for (int i = 0; i < count; ++i) {
    if (is_quick(maker.page())) ++quick;
    if (HasFailure()) return;
  }
  // Else the pages are too wild to show anything.
  EXPECT_GT(quick, count / 5);
}

TEST(QuickHtmlTree, IsTheParsersOfRealPagesWhichNearlyAllAreQuick) {
  const bool full = std::getenv("ARGIOPE_FULL") != nullptr;
  std::size_t pages = 0, taken = 0, quick = 0;
  std::error_code none;
  for (const auto* tree : {"/usr/share/cppreference/doc/html", "/usr/share/doc/python3.11/html"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree, none)) {
      if (entry.path().extension() != ".html" || (++pages % 20 != 0 && !full)) continue;
      ++taken;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string html{std::istreambuf_iterator<char>(file), {}};
      if (is_quick(html)) ++quick;
      EXPECT_FALSE(HasFailure()) << entry.path();
    }
  }
  if (pages == 0) GTEST_SKIP() << "no documentation packages";
  EXPECT_GT(quick * 100, taken * 95) << quick << " of " << taken;
}

}  // namespace
}  // namespace argiope

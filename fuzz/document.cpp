// A page and a selector: the first line is the selector, CSS or, behind "/" or "(", XPath; the second byte of the rest
// says HTML or XML. Beside not crashing: what is found is in order, once each, within the element it is asked of, and
// the first is the first; what is written as HTML and read again says the same; the texts of tokens are the parser's;
// and so are the rows of a page that is read without it.
#include "argiope/document/document.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "document/document_tree.hpp"
#include "document/internal/linked_data.hpp"
#include "document/internal/page_parts.hpp"
#include "document/internal/readable.hpp"
#include "document/quick_html_tree.hpp"
#include "fuzz/require.hpp"

namespace {

using argiope::Document;
using argiope::Match;
using argiope::Selector;

void ask(const Document& document, const Selector& selector) {
  const auto all = document.select(selector);
  const auto first = document.select_first(selector);
  if (!all || !first) return;
  require(first->has_value() == !all->empty());
  if (*first) require((*first)->raw() == all->front().raw());
  std::size_t last = 0;
  int looked_at = 0;
  for (const Match& match : *all) {
    if (++looked_at > 20) break;
    (void)match.text();
    (void)match.lines();
    (void)match.outer_html();
    if (const auto position = match.position()) {
      require(*position <= document.text().size());
      // What the parser moves, as text out of tables, stands elsewhere than it was written.
      if (document.is_xml()) require(*position >= last);
      last = *position;
    }
    if (match.kind() == Match::Kind::element) (void)document.select(selector, &match);
  }
}

bool are_equal(const argiope::TreeNode& a, const argiope::TreeNode& b) {
  return a.kind == b.kind && a.text == b.text && a.parent == b.parent && a.end == b.end && a.previous == b.previous &&
         a.name == b.name && a.attributes == b.attributes && a.position == b.position;
}
void require_equal(const argiope::DocumentTree& a, const argiope::DocumentTree& b) {
  require(a.names == b.names);
  require(std::ranges::equal(a.nodes, b.nodes, are_equal));
  require(std::ranges::equal(a.attributes, b.attributes,
                             [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; }));
}
// The texts we make in the parser's place are those that it makes, and so are the rows.
void compare_trees(std::string_view page, const argiope::DocumentLimits& limits) {
  const auto ours = argiope::build_html_tree_by_parser(page, limits, argiope::TokenTexts::ours);
  const auto of_parser = argiope::build_html_tree_by_parser(page, limits, argiope::TokenTexts::of_parser);
  require(ours.has_value() == of_parser.has_value());
  const auto quick = argiope::build_quick_html_tree(page, limits);
  require(!quick || ours);
  if (!ours) return;
  require_equal(*ours, *of_parser);
  if (quick) require_equal(*quick, *ours);
}

void look_at_parts(const Document& document) {
  const auto url = argiope::Url::parse("http://example.org/a");
  (void)argiope::page_title(document);
  (void)argiope::meta_values(document, "description");
  (void)argiope::canonical_url(document, *url);
  (void)argiope::headings(document);
  (void)argiope::find_article(document);
  (void)argiope::LinkedData(document).find(*argiope::LinkedDataPath::parse("$..name"));
}

}  // namespace

// The parser copies a text that it merges into memory which the text is in: memmove() would be its call, and is what
// glibc's memcpy() does. compare_trees() shows that what comes of it is right.
extern "C" const char* __asan_default_suppressions();
extern "C" const char* __asan_default_suppressions() {
  return "interceptor_via_fun:myhtml_token_merged_two_token_string\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), size);
  const std::string_view text = input.substr(0, end);
  const std::string_view page = input.substr(std::min(end + 1, size));
  const argiope::DocumentLimits limits{.most_nodes = 5'000, .most_attributes = 5'000};
  const bool is_xml = page.starts_with("<?xml");
  const auto document = is_xml ? Document::parse_xml(page, limits) : Document::parse_html(page, limits);
  const auto selector = text.starts_with('/') || text.starts_with('(') ? Selector::xpath(text) : Selector::css(text);
  (void)argiope::LinkedDataPath::parse(text);
  if (!document) return 0;
  if (!is_xml) compare_trees(document->text(), limits);
  look_at_parts(*document);
  if (selector) ask(*document, *selector);
  return 0;
}

// A page and a selector: the first line is the selector, CSS or, behind "/" or "(", XPath; the second byte of the rest says HTML or
// XML. Beside not crashing: what is found is in order, once each, within the element it is asked of, and the first is the first;
// what is written as HTML and read again says the same.
#include "argiope/web/document.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "web/internal/linked_data.hpp"
#include "web/internal/page_parts.hpp"
#include "web/internal/readable.hpp"

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
  look_at_parts(*document);
  if (selector) ask(*document, *selector);
  return 0;
}

#include "document/internal/page_parts.hpp"

#include <algorithm>
#include <utility>

#include "document/document_state.hpp"
#include "document/document_text.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

bool is_in_svg(const DocumentTree& tree, NodeIndex node) {
  for (node = tree.nodes[node].parent; node != kNoNode && node != 0; node = tree.nodes[node].parent) {
    if (tree.nodes[node].text == "svg") return true;
  }
  return false;
}

std::optional<Url> resolved(std::string_view text, const Url& base) {
  Url url;
  if (parse_into(url, trim_space(text), &base) != UrlStatus::ok) return std::nullopt;
  return url;
}

}  // namespace

std::string page_title(const Document& document) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  std::string title;
  for_each_element_named(tree, "title", [&](NodeIndex node) {
    if (is_in_svg(tree, node)) return true;
    title = shown_text(tree, node, TextShape::one_line);
    return false;
  });
  return title;
}

std::vector<std::string> meta_values(const Document& document, std::string_view name) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  std::vector<std::string> values;
  for_each_element_named(tree, "meta", [&](NodeIndex node) {
    const TreeAttribute* const content = tree.find_attribute(node, "content");
    if (content == nullptr) return true;
    for (const std::string_view key : {"name", "property", "itemprop", "http-equiv"}) {
      const TreeAttribute* const found = tree.find_attribute(node, key);
      if (found == nullptr || !equals_ignoring_case(trim_space(found->value), name)) continue;
      if (!trim_space(content->value).empty()) values.emplace_back(trim_space(content->value));
      break;
    }
    return true;
  });
  return values;
}

std::string page_language(const Document& document) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  std::string language;
  for_each_element_named(tree, "html", [&](NodeIndex node) {
    if (const TreeAttribute* const lang = tree.find_attribute(node, "lang")) language = trim_space(lang->value);
    return false;
  });
  return language;
}

Url base_url(const Document& document, const Url& page) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  const auto told = base_address(tree);
  std::optional<Url> base;
  if (told) base = resolved(*told, page);
  return base ? std::move(*base) : page;
}

std::optional<Url> canonical_url(const Document& document, const Url& page) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  std::optional<Url> canonical;
  for_each_element_named(tree, "link", [&](NodeIndex node) {
    const TreeAttribute* const rel = tree.find_attribute(node, "rel");
    const TreeAttribute* const href = tree.find_attribute(node, "href");
    bool is_canonical = false;
    if (rel != nullptr && href != nullptr) {
      for_each_token(rel->value, is_space,
                     [&](std::string_view word) { is_canonical = is_canonical || equals_lower(word, "canonical"); });
    }
    if (is_canonical && !trim_space(href->value).empty()) canonical = resolved(href->value, base_url(document, page));
    return !canonical;
  });
  if (canonical) canonical->strip_fragment();
  return canonical;
}

std::vector<Heading> headings(const Document& document) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  std::vector<Heading> found;
  for (NodeIndex node = 1; node < tree.nodes.size(); ++node) {
    const std::string_view name = tree.nodes[node].text;
    if (!tree.is_element(node) || name.size() != 2 || name[0] != 'h' || name[1] < '1' || name[1] > '6') continue;
    found.push_back({name[1] - '0', shown_text(tree, node, TextShape::one_line)});
  }
  return found;
}

}  // namespace argiope

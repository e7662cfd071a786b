// The addresses in a document, made absolute.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/web/detail/charset.hpp"
#include "document/document_state.hpp"

namespace argiope {
namespace {

// An attribute that is an address, and its element.
struct AddressAttribute {
  std::string_view element, attribute;
};
constexpr AddressAttribute kAddresses[] = {{"a", "href"},     {"area", "href"}, {"audio", "src"}, {"form", "action"},
                                           {"iframe", "src"}, {"img", "src"},   {"link", "href"}, {"script", "src"},
                                           {"source", "src"}, {"video", "src"}};
static_assert(std::ranges::is_sorted(kAddresses, {}, &AddressAttribute::element));

// Empty: none.
std::string_view address_of_element(std::string_view element) noexcept {
  const auto* const found = std::ranges::lower_bound(kAddresses, element, {}, &AddressAttribute::element);
  return found != std::end(kAddresses) && found->element == element ? found->attribute : std::string_view{};
}

}  // namespace

Result<std::size_t> Document::make_links_absolute(const Url* page) {
  State& state = *state_;
  DocumentTree& tree = state.tree;
  Url base;
  const std::string_view told = base_address(tree).value_or(std::string_view{});
  if (!told.empty() && parse_into(base, told, page) == UrlStatus::ok) page = &base;
  // The URL Standard encodes the query of a link in the document's own encoding.
  const QueryEncoder encoder = [&](std::string_view utf8, std::string& out) {
    encode_query(utf8, state.encoding, out);
  };
  const QueryEncoder* const encoding = state.encoding == "UTF-8" ? nullptr : &encoder;
  std::size_t bytes = 0;
  Url url;
  for (const TreeNode& row : tree.nodes) {
    if (row.kind != TreeNode::Kind::element || row.attributes == 0) continue;
    const std::string_view wanted = address_of_element(row.text);
    if (wanted.empty()) continue;
    for (std::uint32_t i = 0; i < row.attributes; ++i) {
      TreeAttribute& attribute = tree.attributes[row.first_attribute + i];
      if (attribute.name != wanted || parse_into(url, attribute.value, page, encoding) != UrlStatus::ok) continue;
      bytes += url.href().size();
      if (bytes > kMostLinkBytes)
        return fail(Errc::too_large, fmt::format("links of more than {} bytes", kMostLinkBytes));
      attribute.value = state.changed.emplace_back(url.href());
    }
  }
  state.bytes_before.clear();
  return bytes;
}

}  // namespace argiope

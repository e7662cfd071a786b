// DocumentTree: an HTML or XML text as rows in document order, made by one of two parsers and read by everything else:
// CSS, XPath, text, serialising. Private to the documents of this module.
//
// No row points to another, so that nothing here is recursive, however deep a page is: what is below a node are the
// rows up to its `end`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/document/document.hpp"

namespace argiope {

using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = std::numeric_limits<NodeIndex>::max();
inline constexpr std::uint32_t kNoPosition = std::numeric_limits<std::uint32_t>::max();

struct TreeNode {
  enum class Kind : std::uint8_t { root, element, text, comment };

  std::string_view text;  // of an element its name, of others their characters
  NodeIndex parent = kNoNode;
  NodeIndex end = 0;             // one behind the last node in it
  NodeIndex previous = kNoNode;  // the sibling before it
  std::uint32_t name = 0;        // of an element: the place of its name in DocumentTree::names
  std::uint32_t first_attribute = 0;
  std::uint32_t attributes = 0;          // how many
  std::uint32_t position = kNoPosition;  // in the text, of its first byte; none where the parser has added it
  Kind kind = Kind::root;
};

struct TreeAttribute {
  std::string_view name, value;
};

// A node, or one of its attributes; they compare as they stand in the text.
struct TreePlace {
  NodeIndex node = 0;
  std::uint32_t attribute = 0;  // 0: the node itself; else one more than the place in DocumentTree::attributes
  friend auto operator<=>(const TreePlace&, const TreePlace&) = default;
};

// Threads: any may read at a time.
struct DocumentTree {
  std::vector<TreeNode> nodes;  // the first is the root, which is no element
  std::vector<TreeAttribute> attributes;
  std::vector<std::string_view> names;  // each once
  bool is_xml = false;
  // The texts that names and texts point into, where that is not the text they were read from.
  std::shared_ptr<const void> storage;

  NodeIndex next_sibling(NodeIndex node) const noexcept {
    const TreeNode& row = nodes[node];
    return row.parent != kNoNode && row.end < nodes[row.parent].end ? row.end : kNoNode;
  }
  bool is_element(NodeIndex node) const noexcept { return nodes[node].kind == TreeNode::Kind::element; }
  bool is_text(NodeIndex node) const noexcept { return nodes[node].kind == TreeNode::Kind::text; }
  // Null where there is none. `name` in lower case for HTML.
  const TreeAttribute* find_attribute(NodeIndex node, std::string_view name) const noexcept;
  // The place of a name in `names`; their number where no element has it.
  std::uint32_t find_name(std::string_view name) const noexcept;
};

// Calls visit(node) for the elements named `name`, until it returns false. Those in a template are no part of the page.
template <class Visit>
void for_each_element_named(const DocumentTree& tree, std::string_view name, Visit visit) {
  const std::uint32_t place = tree.find_name(name);
  if (place == tree.names.size()) return;
  const std::uint32_t inert = tree.find_name("template");
  for (NodeIndex node = 1; node < tree.nodes.size(); ++node) {
    if (!tree.is_element(node)) continue;
    if (tree.nodes[node].name == place && !visit(node)) return;
    if (tree.nodes[node].name == inert) node = tree.nodes[node].end - 1;
  }
}

// The address of the first `base` that has one. Nullopt: there is none.
std::optional<std::string_view> base_address(const DocumentTree& tree) noexcept;

// In their order, each once.
void keep_each_once(std::vector<TreePlace>& places);
// Places that are found from several elements on. Cost: O(1) for each, beside a bit for each place of the tree.
class FoundPlaces {
 public:
  explicit FoundPlaces(const DocumentTree& tree) : tree_(tree) {}

  void add(const std::vector<TreePlace>& places);
  // In their order, each once.
  std::vector<TreePlace> take();

 private:
  const DocumentTree& tree_;
  std::vector<bool> is_found_;
  std::vector<TreePlace> all_;
};

// Puts nodes behind one another. Names and values must stay where they are.
class TreeBuilder {
 public:
  explicit TreeBuilder(DocumentTree& tree);

  // `name`: its place in DocumentTree::names.
  void open(std::uint32_t name, std::uint32_t position);
  // Of the element that was opened last, before anything else comes.
  void attribute(std::string_view name, std::string_view value);
  void add(TreeNode::Kind kind, std::string_view text, std::uint32_t position);
  void close();
  // All that is open.
  void finish();
  std::size_t depth() const noexcept { return open_.size() - 1; }
  // The text that was added last where nothing has come behind it, so that more text belongs to it; else null.
  TreeNode* last_text() noexcept;

 private:
  NodeIndex append(TreeNode::Kind kind, std::string_view text, std::uint32_t position);

  struct Open {
    NodeIndex node;
    NodeIndex last_child;
  };
  DocumentTree& tree_;
  std::vector<Open> open_;
};

// By the HTML standard's rules, in UTF-8 that is valid. `html` must stay where it is: texts point into it.
// Errors: too_large, naming the limit.
Result<DocumentTree> build_html_tree(std::string_view html, const DocumentLimits& limits);

// The maker of the texts of an HTML page's tokens: we, who are faster, or the parser, for tests. The rows are the same.
enum class TokenTexts : std::uint8_t { ours, of_parser };
// The same by the parser alone, also where the page is so plain that build_html_tree() needs none
// (quick_html_tree.hpp).
Result<DocumentTree> build_html_tree_by_parser(std::string_view html, const DocumentLimits& limits,
                                               TokenTexts texts = TokenTexts::ours);

// The first mistake in it ends the tree; what came before is kept. No entity is known but XML's five, no DTD is read.
// Errors: too_large, naming the limit; invalid_input where there is no element.
Result<DocumentTree> build_xml_tree(std::string_view xml, const DocumentLimits& limits);

}  // namespace argiope

#include "document/document_tree.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

const TreeAttribute* DocumentTree::find_attribute(NodeIndex node, std::string_view name) const noexcept {
  const TreeNode& row = nodes[node];
  for (std::uint32_t i = 0; i < row.attributes; ++i) {
    const TreeAttribute& attribute = attributes[row.first_attribute + i];
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

std::uint32_t DocumentTree::find_name(std::string_view name) const noexcept {
  std::uint32_t place = 0;
  while (place < names.size() && names[place] != name) ++place;
  return place;
}

std::optional<std::string_view> base_address(const DocumentTree& tree) noexcept {
  std::optional<std::string_view> address;
  for_each_element_named(tree, "base", [&](NodeIndex node) {
    const TreeAttribute* const href = tree.find_attribute(node, "href");
    if (href != nullptr) address = href->value;
    return href == nullptr;
  });
  return address;
}

void keep_each_once(std::vector<TreePlace>& places) {
  if (!std::ranges::is_sorted(places)) std::ranges::sort(places);
  const auto again = std::ranges::unique(places);
  places.erase(again.begin(), again.end());
}

void FoundPlaces::add(const std::vector<TreePlace>& places) {
  if (is_found_.empty()) is_found_.resize(tree_.nodes.size() + tree_.attributes.size());
  for (const TreePlace& place : places) {
    const auto bit = place.attribute == 0 ? place.node : tree_.nodes.size() + place.attribute - 1;
    if (is_found_[bit]) continue;
    is_found_[bit] = true;
    all_.push_back(place);
  }
}

std::vector<TreePlace> FoundPlaces::take() {
  std::ranges::sort(all_);
  return std::move(all_);
}

TreeBuilder::TreeBuilder(DocumentTree& tree) : tree_(tree) {
  tree_.nodes.clear();
  tree_.nodes.emplace_back();
  open_.push_back({0, kNoNode});
}

NodeIndex TreeBuilder::append(TreeNode::Kind kind, std::string_view text, std::uint32_t position) {
  const auto node = static_cast<NodeIndex>(tree_.nodes.size());
  TreeNode& row = tree_.nodes.emplace_back();
  row.text = text;
  row.parent = open_.back().node;
  row.end = node + 1;
  row.previous = open_.back().last_child;
  row.first_attribute = static_cast<std::uint32_t>(tree_.attributes.size());
  row.position = position;
  row.kind = kind;
  open_.back().last_child = node;
  return node;
}

void TreeBuilder::open(std::uint32_t name, std::uint32_t position) {
  const NodeIndex node = append(TreeNode::Kind::element, tree_.names[name], position);
  tree_.nodes[node].name = name;
  open_.push_back({node, kNoNode});
}

void TreeBuilder::attribute(std::string_view name, std::string_view value) {
  tree_.attributes.push_back({name, value});
  ++tree_.nodes.back().attributes;
}

void TreeBuilder::add(TreeNode::Kind kind, std::string_view text, std::uint32_t position) {
  append(kind, text, position);
}

TreeNode* TreeBuilder::last_text() noexcept {
  TreeNode& last = tree_.nodes.back();
  return last.kind == TreeNode::Kind::text && last.parent == open_.back().node ? &last : nullptr;
}

void TreeBuilder::close() {
  tree_.nodes[open_.back().node].end = static_cast<NodeIndex>(tree_.nodes.size());
  open_.pop_back();
}

void TreeBuilder::finish() {
  while (!open_.empty()) close();
}

}  // namespace argiope

// The inside of a Document, for those of this module who read its tree.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "argiope/document/document.hpp"
#include "document/css_matcher.hpp"
#include "document/document_tree.hpp"

namespace argiope {

struct Document::State {
  std::string text;
  DocumentTree tree;
  SiblingPlaces places;
  std::string encoding = "UTF-8";   // that it came in, as CharsetDecision names it
  std::deque<std::string> changed;  // attributes' values that are not in the tree's storage
  // By node, what is in all nodes before it, in bytes; one more entry for all of them. Empty: not computed yet.
  std::vector<std::uint64_t> bytes_before;
};

struct DocumentAccess {
  static const DocumentTree& tree(const Document& document) noexcept { return document.state_->tree; }
};

}  // namespace argiope

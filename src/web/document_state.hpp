// What is in a Document, for those of this module who read its tree.
#pragma once

#include <string>

#include "argiope/web/document.hpp"
#include "web/css_matcher.hpp"
#include "web/document_tree.hpp"

namespace argiope {

struct Document::State {
  std::string text;
  DocumentTree tree;
  SiblingPlaces places;
};

struct DocumentAccess {
  static const DocumentTree& tree(const Document& document) noexcept { return document.state_->tree; }
};

}  // namespace argiope

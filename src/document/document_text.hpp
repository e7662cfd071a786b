// A part of a tree as text: all its characters, what a reader sees of it, and as HTML again. Private to the documents
// of this module.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "document/document_tree.hpp"
#include "document/internal/one_line.hpp"

namespace argiope {

// The characters of all text in `node`, as they are.
std::string raw_text(const DocumentTree& tree, NodeIndex node);

// The text that is shown of `node`: without script, style and the like, and without elements that are hidden (the
// attribute `hidden`, "display: none", a `dialog` that is not open), unless it is such an element itself. White space
// is collapsed as CSS does it by default, and U+00A0 counts as a space.
enum class TextShape : std::uint8_t {
  one_line,  // whatever would begin a line is a space
  lines,     // blocks begin lines, paragraphs have an empty line between them, `pre` stays as it is
  // as one_line, but digits that are raised, lowered, struck out or inserted do not touch those beside them: 10^2
  figures,
};
// Whether a browser shows an element of this name in lines of its own, or as a cell.
bool is_block(std::string_view name) noexcept;

// `left_out`: by node, what is passed over with all that is in it; null: nothing.
using LeftOut = std::vector<bool>;
std::string shown_text(const DocumentTree& tree, NodeIndex node, TextShape shape, const LeftOut* left_out = nullptr);

// HTML standard, 13.3, "serialising HTML fragments"; XML where the tree is of XML.
void append_markup(const DocumentTree& tree, NodeIndex node, std::string& out, const LeftOut* left_out = nullptr);
// Of what is in it.
void append_inner_markup(const DocumentTree& tree, NodeIndex node, std::string& out);

}  // namespace argiope

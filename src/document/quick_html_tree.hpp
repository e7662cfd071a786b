// The tree of an HTML page without the parser, for pages whose markup is plain, which nearly all are. Private to the
// documents of this module; html_tree.cpp calls it.
#pragma once

#include <optional>
#include <string_view>

#include "document/document_tree.hpp"

namespace argiope {

// The rows that build_html_tree_by_parser() makes of `html`, row for row; or nothing, as soon as the page has something
// that is done only there: elements that overlap, content in tables outside their cells, SVG, NULs and carriage
// returns, unusual references, a tag without an end, more than half of what a limit allows …
//
// `html` must stay where it is: texts point into it.
std::optional<DocumentTree> build_quick_html_tree(std::string_view html, const DocumentLimits& limits);

}  // namespace argiope

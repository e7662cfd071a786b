// XPath 1.0 on the trees of this module. Private to the documents of this module.
//
// Our own because no page may cost more than so many steps. libxml2, which is asked in the tests whether we are
// right, has a limit of operations that does not count how it compares each node it finds with all it has found
// (docs/decisions.md has the figures).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/document_tree.hpp"

namespace argiope {

// Threads: any may evaluate one at a time.
class XPathExpression {
 public:
  // Errors: invalid_input, `xpath "//a[": …, at character 5`. All that can be wrong with an expression is told here,
  // because nothing in it waits for a page: there are no variables, and every function's type is known.
  static Result<std::shared_ptr<const XPathExpression>> compile(std::string_view text);
  ~XPathExpression();

  struct Answer {
    std::vector<TreePlace> nodes;     // each once, in the order of the tree
    std::vector<std::string> values;  // instead of nodes: a string, number or boolean for each context
  };
  // From each of the contexts on. nullopt: it would have taken more steps than `most_steps`.
  std::optional<Answer> evaluate(const DocumentTree& tree, std::span<const NodeIndex> contexts,
                                 std::uint64_t most_steps) const;

 private:
  struct Parsed;
  explicit XPathExpression(std::unique_ptr<const Parsed> parsed);
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace argiope

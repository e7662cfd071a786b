// Ways into pages that are JSON, as rules write them: JSON pointers (RFC 6901), in which "*" stands for each entry of a
// list.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

class JsonPointer {
 public:
  static constexpr std::size_t kMostBytes = 8 * 1024;

  // "/items/0/price", "/items/*/price", or "" for the whole; "~1" stands for "/" in a name, and "~0" for "~".
  // Errors: invalid_input, `json "items": …`; too_large.
  static Result<JsonPointer> parse(std::string_view text);

  // Calls visit(value) for each value it leads to from `from`, in their order, until that gives false. A name that an
  // object has twice is its last.
  //
  // `steps_left` counts the members and entries that are looked at; false: they were too many, and some values may be
  // missing.
  bool find(const JsonValue& from, std::size_t& steps_left, const std::function<bool(const JsonValue&)>& visit) const;

 private:
  struct Step {
    std::string name;
    std::optional<std::size_t> place;  // where the name is one
  };
  class Search;

  std::vector<Step> steps_;
};

}  // namespace argiope

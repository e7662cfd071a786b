// A string, or a list of strings, where a form takes either.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// `parse(std::string_view) -> Result<Text>` makes of each what is kept; what it refuses goes to the errors of the
// value.
template <class Parse>
auto read_texts(const JsonValue& value, Parse parse) {
  using Text = typename decltype(parse(std::string_view{}))::value_type;
  std::vector<Text> out;
  const auto take = [&](const JsonValue& entry) {
    const auto text = entry.if_text();
    if (!text) return entry.complain("a string");
    auto parsed = parse(*text);
    if (!parsed) return entry.refuse(parsed.error().message);
    out.push_back(*std::move(parsed));
  };
  if (value.is_list()) {
    value.for_each(take);
  } else {
    take(value);
  }
  return out;
}
inline std::vector<std::string> read_texts(const JsonValue& value) {
  return read_texts(value, [](std::string_view text) -> Result<std::string> { return std::string(text); });
}

}  // namespace argiope

#include "project/fetch/page_encoding.hpp"

#include <algorithm>

#include "argiope/web/detail/charset.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

// Text by other names than text/….
constexpr std::string_view kTextTypes[] = {
    "application/xml",          "application/json",       "application/javascript",
    "application/x-javascript", "application/ecmascript", "application/x-www-form-urlencoded",
    "application/yaml",         "application/x-yaml",     "application/toml",
    "application/x-ndjson",     "application/graphql",    "application/sql",
    "application/x-sh",         "application/json5",      "application/jsonl"};

bool is_text_type(std::string_view type) {
  if (starts_with_lower(type, "text/")) return true;
  const auto ends_with_lower = [&](std::string_view end) {
    return type.size() > end.size() && equals_lower(type.substr(type.size() - end.size()), end);
  };
  return ends_with_lower("+xml") || ends_with_lower("+json") || ends_with_lower("+yaml") ||
         std::ranges::any_of(kTextTypes, [&](std::string_view one) { return equals_lower(type, one); });
}

}  // namespace

std::string page_encoding(std::string_view content_type, std::string_view body) {
  std::string_view type = parse_content_type(content_type).type;
  if (type.empty()) type = sniff_type(body);
  return is_text_type(type) ? std::string(detect_charset(body, content_type).name) : std::string();
}

}  // namespace argiope

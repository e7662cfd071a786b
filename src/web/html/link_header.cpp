#include "web/html/internal/link_header.hpp"

#include <algorithm>

#include "web/html/link_rules.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {
namespace {

std::string_view behind_space(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

// The value at the front of `text`, which goes on behind it: a quoted string without its quotes, or a word.
std::string_view take_value(std::string_view& text) noexcept {
  if (text.starts_with('"')) return take_quoted(text);
  const std::string_view word = text.substr(0, text.find_first_of(";,"));
  text.remove_prefix(word.size());
  return trim_space(word);
}

// Whether a link with this anchor is the page's own. A part of the page is another context than the page.
bool is_anchor_of_page(std::string_view anchor, const Url& page, Url& context) {
  return parse_into(context, reference_of_bytes(anchor), &page) == UrlStatus::ok &&
         context.href() == page.without_fragment();
}

}  // namespace

std::string_view canonical_in_link_header(std::string_view value, const Url& page) {
  Url context;
  while (!(value = behind_space(value)).empty()) {
    if (value.front() != '<') {
      value.remove_prefix(1);
      continue;
    }
    const std::size_t close = value.find('>');
    if (close == std::string_view::npos) return {};
    const std::string_view target = value.substr(1, close - 1);
    value.remove_prefix(close + 1);
    bool is_canonical = false, has_rel = false, is_elsewhere = false;
    while ((value = behind_space(value)).starts_with(';')) {
      value = behind_space(value.substr(1));
      const std::size_t end = std::min(value.find_first_of("=;,"), value.size());
      const std::string_view name = trim_space(value.substr(0, end));
      value.remove_prefix(end);
      if (!value.starts_with('=')) continue;
      value = behind_space(value.substr(1));
      const std::string_view said = take_value(value);
      if (equals_lower(name, "anchor")) is_elsewhere = is_elsewhere || !is_anchor_of_page(said, page, context);
      value.remove_prefix(std::min(value.find_first_of(";,"), value.size()));
      if (!equals_lower(name, "rel") || has_rel) continue;
      has_rel = true;
      is_canonical = has_word(said, "canonical");
    }
    if (is_canonical && !is_elsewhere) return trim_space(target);
  }
  return {};
}

}  // namespace argiope

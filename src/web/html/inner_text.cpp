// Text between tags: of headings, and of links.
#include "web/html/inner_text.hpp"

#include <algorithm>
#include <vector>

#include "argiope/web/link_scanner.hpp"
#include "base/internal/utf8.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

std::string inner_text(std::string_view html, std::size_t behind, std::initializer_list<std::string_view> ends,
                       std::size_t most) {
  constexpr std::size_t kMostLookedAt = 64 * 1024;
  html = html.substr(std::min(behind, html.size()), kMostLookedAt);
  const auto tag_is = [](std::string_view tag, std::string_view name) {
    return tag.size() > name.size() && equals_lower(tag.substr(0, name.size()), name) &&
           (tag[name.size()] == '>' || tag[name.size()] == '/' || is_tag_char(tag[name.size()], kTagSpace));
  };
  std::vector<char> text;
  for (std::size_t at = 0; at < html.size() && text.size() < most;) {
    if (html[at] != '<') {
      const std::size_t end = std::min(html.find('<', at), html.size());
      append_attribute_value(html.substr(at, end - at), text);
      at = end;
      continue;
    }
    const std::string_view tag = html.substr(at + 1);
    if (std::ranges::any_of(ends, [&](std::string_view end) { return tag_is(tag, end); })) break;
    if (tag.starts_with("!--")) {
      const std::size_t end = html.find("-->", at + 4);
      at = end == std::string_view::npos ? html.size() : end + 3;
      continue;
    }
    const std::size_t end = std::min(html.find('>', at), html.size());
    if (tag_is(tag, "img")) {
      const std::string_view image = html.substr(at, end - at);
      for (const char quote : {'"', '\''}) {
        const std::size_t alt = image.find(std::string(" alt=") + quote);
        if (alt == std::string_view::npos) continue;
        const std::string_view value = image.substr(alt + 6);
        append_attribute_value(value.substr(0, value.find(quote)), text);
        break;
      }
    }
    text.push_back(' ');  // two blocks are two words
    at = std::min(end + 1, html.size());
  }
  std::string collapsed;
  for (const char c : text) {
    if (!is_tag_char(c, kTagSpace)) {
      collapsed += c;
    } else if (!collapsed.empty() && collapsed.back() != ' ') {
      collapsed += ' ';
    }
  }
  collapsed.resize(cut_between_characters(collapsed, most).size());
  if (collapsed.ends_with(' ')) collapsed.pop_back();
  return collapsed;
}

std::string link_text(std::string_view html, std::size_t behind) {
  constexpr std::size_t kMostText = 1000;
  return inner_text(html, behind, {"/a", "a"}, kMostText);
}

}  // namespace argiope

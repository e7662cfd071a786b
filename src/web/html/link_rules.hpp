// Which elements of a page are links to follow: the relations of `link`, and the URL in a refresh. Shared by the link scanner
// and the survey of pages.
#pragma once

#include <string_view>

#include "argiope/web/link_scanner.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

inline bool has_word(std::string_view list, std::string_view lower) {
  bool found = false;
  for_each_token(list, [](char c) { return is_space(c); }, [&](std::string_view word) { found = found || equals_lower(word, lower); });
  return found;
}

// Relations that make a `link` a link to follow. Any word that is not here (icon, preload, manifest …) names a
// resource, and `stylesheet` does so whatever stands beside it.
struct LinkRelation {
  std::string_view name;
  LinkKind kind;
};
inline constexpr LinkRelation kLinkRelations[] = {
    {"canonical", LinkKind::canonical},
    {"next", LinkKind::next},
    {"prev", LinkKind::prev},
    {"previous", LinkKind::prev},
    {"alternate", LinkKind::alternate},
    {"author", LinkKind::other},
    {"help", LinkKind::other},
    {"license", LinkKind::other},
    {"copyright", LinkKind::other},
    {"search", LinkKind::other},
    {"index", LinkKind::other},
    {"contents", LinkKind::other},
    {"toc", LinkKind::other},
    {"first", LinkKind::other},
    {"last", LinkKind::other},
    {"start", LinkKind::other},
    {"up", LinkKind::other},
    {"top", LinkKind::other},
    {"chapter", LinkKind::other},
    {"section", LinkKind::other},
    {"subsection", LinkKind::other},
    {"appendix", LinkKind::other},
    {"glossary", LinkKind::other},
    {"bookmark", LinkKind::other},
    {"amphtml", LinkKind::other},
    {"shortlink", LinkKind::other},
    {"privacy-policy", LinkKind::other},
    {"terms-of-service", LinkKind::other},
};

// The kind of the first relation in the order of kLinkRelations; false when the link is not one to follow.
inline bool kind_of_rel(std::string_view rel, LinkKind& kind) {
  if (has_word(rel, "stylesheet")) return false;
  for (const LinkRelation& relation : kLinkRelations) {
    if (!has_word(rel, relation.name)) continue;
    kind = relation.kind;
    return true;
  }
  return false;
}

// The URL in the content of a `meta http-equiv=refresh` (HTML standard, "shared declarative refresh steps"); empty
// when there is none, which means the page itself.
inline std::string_view refresh_url(std::string_view content) {
  const auto skip = [&content](auto what) {
    while (!content.empty() && what(content.front())) content.remove_prefix(1);
  };
  const auto take = [&content](char lower) {
    const bool hit = !content.empty() && to_lower(content.front()) == lower;
    if (hit) content.remove_prefix(1);
    return hit;
  };
  skip(is_space);
  if (content.empty() || !(is_digit(content.front()) || content.front() == '.')) return {};
  skip([](char c) { return is_digit(c) || c == '.'; });
  if (content.empty() || !(is_space(content.front()) || content.front() == ';' || content.front() == ',')) return {};
  skip(is_space);
  if (!take(';')) take(',');
  skip(is_space);
  const std::string_view whole = content;
  if (take('u')) {
    if (!take('r') || !take('l')) return whole;
    skip(is_space);
    if (!take('=')) return whole;
    skip(is_space);
  }
  if (content.empty()) return {};
  const char quote = content.front();
  if (quote != '"' && quote != '\'') return content;
  content.remove_prefix(1);
  return content.substr(0, content.find(quote));
}

}  // namespace argiope

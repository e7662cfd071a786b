// The places of URLs in HTML, once for all that read pages: what is followed (link_scanner.hpp), checked
// (page_survey.hpp), and saved (page_references.hpp). docs/crawl-links.md has it as a table; docs/decisions.md has the
// reasons.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>

#include "argiope/web/link_scanner.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/link_rules.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

// Of what a check asks nothing.
inline constexpr std::optional<LinkKind> kUnchecked;

// The condition, beside its name, under which an element's attribute holds a URL.
enum class UrlCondition : std::uint8_t { none, image_input, refresh };

struct UrlAttribute {
  std::string_view elements;  // names, with spaces between them; empty: any
  std::string_view attribute;
  ReferenceSyntax syntax{};
  ReferenceRole role{};
  std::optional<LinkKind> kind{};
  UrlCondition condition = UrlCondition::none;
};

// Of HTML. Those of `link`'s href are kLinkRelations'.
inline constexpr UrlAttribute kUrlAttributes[] = {
    // These come first: nearly no tag has one (kRareAttributes).
    {"", "style", ReferenceSyntax::css, ReferenceRole::object, LinkKind::css},
    {"body table thead tbody tfoot tr td th", "background", ReferenceSyntax::url, ReferenceRole::image,
     LinkKind::image},
    {"blockquote q ins del", "cite", ReferenceSyntax::url, ReferenceRole::link, LinkKind::mention},

    {"a", "href", ReferenceSyntax::url, ReferenceRole::link, LinkKind::anchor},
    {"area", "href", ReferenceSyntax::url, ReferenceRole::link, LinkKind::area},
    {"img image", "src", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image},
    {"input", "src", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image, UrlCondition::image_input},
    {"img image source", "srcset", ReferenceSyntax::srcset, ReferenceRole::image, LinkKind::image},
    {"img image", "lowsrc", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image},
    {"img image frame iframe", "longdesc", ReferenceSyntax::url, ReferenceRole::link, LinkKind::mention},
    // The attributes that scripts that show pictures late read: a widespread habit.
    {"img image", "data-src", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image},
    {"img image source", "data-srcset", ReferenceSyntax::srcset, ReferenceRole::image, LinkKind::image},
    {"source", "data-src", ReferenceSyntax::url, ReferenceRole::media, LinkKind::media},
    {"audio video source track bgsound", "src", ReferenceSyntax::url, ReferenceRole::media, LinkKind::media},
    {"video", "poster", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image},
    {"script", "src", ReferenceSyntax::url, ReferenceRole::script, LinkKind::script},
    {"frame iframe", "src", ReferenceSyntax::url, ReferenceRole::link, LinkKind::frame},
    // Its links are mentions; its assets have their own kinds.
    {"iframe", "srcdoc", ReferenceSyntax::html, ReferenceRole::link, LinkKind::mention},
    {"embed", "src", ReferenceSyntax::url, ReferenceRole::object, LinkKind::embedded},
    {"object", "data", ReferenceSyntax::url, ReferenceRole::object, LinkKind::embedded},
    {"link", "imagesrcset", ReferenceSyntax::srcset, ReferenceRole::image, LinkKind::resource},
    {"meta", "content", ReferenceSyntax::refresh, ReferenceRole::link, LinkKind::refresh, UrlCondition::refresh},
    {"form", "action", ReferenceSyntax::url, ReferenceRole::form, kUnchecked},
    {"button input", "formaction", ReferenceSyntax::url, ReferenceRole::form, kUnchecked},
    {"base", "href", ReferenceSyntax::base, ReferenceRole::fixed, kUnchecked},
    {"link script", "integrity", ReferenceSyntax::drop, ReferenceRole::fixed, kUnchecked},
    {"audio image img link script track video", "crossorigin", ReferenceSyntax::drop, ReferenceRole::fixed, kUnchecked},
};
inline constexpr auto kRareAttributes = std::span(kUrlAttributes).first<3>();

// Of SVG and MathML, all of them `href`, or `xlink:href` where there is none. The first that names the element counts.
inline constexpr UrlAttribute kForeignUrls[] = {
    {"a", "href", ReferenceSyntax::url, ReferenceRole::link, LinkKind::anchor},
    {"image feimage", "href", ReferenceSyntax::url, ReferenceRole::image, LinkKind::image},
    {"script", "href", ReferenceSyntax::url, ReferenceRole::script, LinkKind::script},
    {"use mpath textpath", "href", ReferenceSyntax::url, ReferenceRole::object, LinkKind::image},
    {"", "href", ReferenceSyntax::url, ReferenceRole::link, LinkKind::mention},
};

// The relation that the href of a `link` has. Its first relation in the table's order counts, but that `stylesheet` is
// never followed, and another relation is never in the way of one that is.
struct LinkRelation {
  std::string_view name;
  ReferenceRole role{};
  std::optional<LinkKind> kind{};
};
inline constexpr LinkRelation kLinkRelations[] = {
    {"stylesheet", ReferenceRole::stylesheet, LinkKind::stylesheet},
    {"icon", ReferenceRole::image, LinkKind::icon},
    {"apple-touch-icon", ReferenceRole::image, LinkKind::icon},
    {"apple-touch-icon-precomposed", ReferenceRole::image, LinkKind::icon},
    {"apple-touch-startup-image", ReferenceRole::image, LinkKind::icon},
    {"mask-icon", ReferenceRole::image, LinkKind::icon},
    {"fluid-icon", ReferenceRole::image, LinkKind::icon},
    {"image_src", ReferenceRole::image, LinkKind::image},
    {"modulepreload", ReferenceRole::script, LinkKind::resource},
    {"preload", ReferenceRole::object, LinkKind::resource},  // but see role_of_preload()
    {"prefetch", ReferenceRole::hint, LinkKind::resource},
    {"prerender", ReferenceRole::hint, LinkKind::resource},
    {"subresource", ReferenceRole::hint, LinkKind::resource},
    {"manifest", ReferenceRole::fixed, LinkKind::resource},
    // A host to connect to, or where programs send something.
    {"preconnect", ReferenceRole::fixed, kUnchecked},
    {"dns-prefetch", ReferenceRole::fixed, kUnchecked},
    {"pingback", ReferenceRole::fixed, kUnchecked},
    {"webmention", ReferenceRole::fixed, kUnchecked},
    {"edituri", ReferenceRole::fixed, kUnchecked},
    {"wlwmanifest", ReferenceRole::fixed, kUnchecked},
    // Documents: links to follow.
    {"canonical", ReferenceRole::fixed, LinkKind::canonical},
    {"next", ReferenceRole::link, LinkKind::next},
    {"prev", ReferenceRole::link, LinkKind::prev},
    {"previous", ReferenceRole::link, LinkKind::prev},
    {"alternate", ReferenceRole::link, LinkKind::alternate},
    {"author", ReferenceRole::link, LinkKind::other},
    {"help", ReferenceRole::link, LinkKind::other},
    {"license", ReferenceRole::link, LinkKind::other},
    {"copyright", ReferenceRole::link, LinkKind::other},
    {"search", ReferenceRole::link, LinkKind::other},
    {"index", ReferenceRole::link, LinkKind::other},
    {"contents", ReferenceRole::link, LinkKind::other},
    {"toc", ReferenceRole::link, LinkKind::other},
    {"first", ReferenceRole::link, LinkKind::other},
    {"last", ReferenceRole::link, LinkKind::other},
    {"start", ReferenceRole::link, LinkKind::other},
    {"up", ReferenceRole::link, LinkKind::other},
    {"top", ReferenceRole::link, LinkKind::other},
    {"chapter", ReferenceRole::link, LinkKind::other},
    {"section", ReferenceRole::link, LinkKind::other},
    {"subsection", ReferenceRole::link, LinkKind::other},
    {"appendix", ReferenceRole::link, LinkKind::other},
    {"glossary", ReferenceRole::link, LinkKind::other},
    {"bookmark", ReferenceRole::link, LinkKind::other},
    {"amphtml", ReferenceRole::link, LinkKind::other},
    {"shortlink", ReferenceRole::fixed, LinkKind::other},
    {"privacy-policy", ReferenceRole::link, LinkKind::other},
    {"terms-of-service", ReferenceRole::link, LinkKind::other},
};
inline constexpr LinkRelation kUnknownRelation{"", ReferenceRole::link, LinkKind::mention};

constexpr bool is_followed(const LinkRelation& relation) noexcept {
  return relation.kind && is_followed(*relation.kind);
}
inline constexpr auto kFollowedRelations = std::ranges::subrange(
    std::ranges::find_if(kLinkRelations, [](const LinkRelation& one) { return is_followed(one); }),
    std::end(kLinkRelations));
static_assert(std::ranges::all_of(kFollowedRelations, [](const LinkRelation& one) { return is_followed(one); }));

template <std::ranges::range Relations>
constexpr const LinkRelation* relation_among(const Relations& relations, std::string_view rel) {
  const auto found =
      std::ranges::find_if(relations, [rel](const LinkRelation& one) { return has_word(rel, one.name); });
  return found == std::ranges::end(relations) ? nullptr : &*found;
}

// Null: it is none to follow.
constexpr const LinkRelation* followed_relation(std::string_view rel) {
  return has_word(rel, "stylesheet") ? nullptr : relation_among(kFollowedRelations, rel);
}

constexpr ReferenceRole role_of_preload(std::string_view as) noexcept {
  if (equals_lower(as, "style")) return ReferenceRole::stylesheet;
  if (equals_lower(as, "script")) return ReferenceRole::script;
  return equals_lower(as, "image") ? ReferenceRole::image : ReferenceRole::object;
}

// The relation of the href of a `link` with these attributes. Its kind is the one that it is followed as, if it is.
constexpr LinkRelation relation_of_link(std::string_view rel, std::string_view as) {
  const LinkRelation* const first = relation_among(kLinkRelations, rel);
  if (first == nullptr) return kUnknownRelation;
  LinkRelation found = *first;
  if (found.name == "preload") found.role = role_of_preload(as);
  if (const LinkRelation* const followed = followed_relation(rel)) found.kind = followed->kind;
  return found;
}

// A row for each element that it names, those of one element together, in the table's order.
struct ElementUrl {
  std::uint64_t key = 0;  // pack_name() of the element
  std::string_view element;
  const UrlAttribute* row = nullptr;
};
inline constexpr std::size_t kElementUrlCount = [] {
  std::size_t count = 0;
  for (const UrlAttribute& row : kUrlAttributes)
    for_each_token(row.elements, is_space, [&](std::string_view) { ++count; });
  return count;
}();
inline constexpr auto kElementUrls = [] {
  std::array<ElementUrl, kElementUrlCount> urls{};
  std::size_t count = 0;
  for (const UrlAttribute& row : kUrlAttributes) {
    for_each_token(row.elements, is_space, [&](std::string_view one) { urls[count++] = {pack_name(one), one, &row}; });
  }
  std::ranges::sort(
      urls, [](const ElementUrl& a, const ElementUrl& b) { return a.key != b.key ? a.key < b.key : a.row < b.row; });
  return urls;
}();

// The attributes that may hold a URL in an element of HTML, beside what any element has (kUrlAttributes[0]).
constexpr std::span<const ElementUrl> urls_of_element(std::string_view name) noexcept {
  const auto [first, last] = std::ranges::equal_range(kElementUrls, pack_name(name), {}, &ElementUrl::key);
  if (first == last || !equals_lower(name, first->element)) return {};
  return {first, last};
}

constexpr const UrlAttribute& foreign_url_of(std::string_view name) {
  const auto names_it = [name](const UrlAttribute& row) {
    bool found = row.elements.empty();
    for_each_token(row.elements, is_space, [&](std::string_view one) { found = found || equals_lower(name, one); });
    return found;
  };
  return *std::ranges::find_if(kForeignUrls, names_it);
}

}  // namespace argiope

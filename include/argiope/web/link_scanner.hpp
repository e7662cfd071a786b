// The links of an HTML page, found in one pass over its bytes: no tree, no allocation once the result has grown.
//
// The scanner here follows the HTML standard's tokeniser (section 13.2.5) where it matters to links: comments, raw-text
// elements, attribute quoting, character references. These things do not: resolving (url.hpp), encodings
// (detail/charset.hpp), and the tree. Called by the crawler's link harvester for every page, so it is the hot path.
//
// Without a tree the scanner cannot know that a full parser would drop a tag where it stands: a `frame` outside a
// frameset, anything but `option` in a `select` of the older standard, links in a frameset document. There it reports a
// link too many. Of trees it follows only SVG and MathML, because a self-closed `<style/>` there would otherwise
// swallow the rest of the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/detail/robots_meta.hpp"

namespace argiope {

enum class LinkKind : std::uint8_t {
  anchor,     // a href
  area,       // area href
  canonical,  // link rel=canonical, and so on
  next,
  prev,
  alternate,
  other,    // link with another rel that names a document: author, help, license, search, index, up, …
  frame,    // iframe src, frame src
  refresh,  // meta http-equiv=refresh, or the header field Refresh
  // scan_links() reports none of the following.
  mention,  // cite, longdesc, link with an unknown rel, links in srcdoc: checked, but not followed
  // Assets: what a browser fetches to show the page.
  image,
  script,
  stylesheet,
  icon,
  media,     // audio, video, and what belongs to them
  embedded,  // embed, object
  css,       // url() in a style
  resource,  // link rel=preload, manifest …
};
constexpr bool is_followed(LinkKind kind) noexcept { return kind < LinkKind::mention; }
constexpr bool is_asset(LinkKind kind) noexcept { return kind >= LinkKind::image; }
// As written in reports, e.g. "anchor".
std::string_view to_string(LinkKind kind) noexcept;

struct ScannedLink {
  // The attribute's value with character references replaced; neither trimmed nor resolved, and possibly empty.
  // Points into the page or into the ScanResult.
  std::string_view url;
  LinkKind kind;
  // The element's rel has the token `nofollow`.
  bool nofollow;

  friend bool operator==(const ScannedLink&, const ScannedLink&) = default;
};

struct ScanOptions {
  // Links reported; those beyond are counted.
  std::size_t max_links = 50'000;
  // Bytes of an attribute's value, as written. A longer link or base is dropped and counted.
  std::size_t max_value_bytes = 65'536;
  // Whether ScanResult::behind is filled.
  bool note_places = false;
  // `<meta name=AGENT>` counts as `<meta name=robots>`; case-insensitive, none when empty.
  std::string_view agent{};
};

// Filled by scan_links(). Reuse one for many pages and it stops allocating.
// Lifetime: its views hold while the page's bytes do and until the next scan into it; moving it keeps them.
struct ScanResult {
  std::vector<ScannedLink> links;
  // Of each link the byte of the page behind its start tag, for link_text(); 0 for those of elements without text. With
  // note_places alone.
  std::vector<std::size_t> behind;
  // Links left out for max_links or max_value_bytes.
  std::size_t dropped = 0;
  // The first `base` with a href: links are resolved against it (itself resolved against the page's URL), also those
  // before it. Empty when there is none.
  std::string_view base_href;
  RobotsDirectives robots;

  ScanResult() = default;
  ScanResult(ScanResult&&) = default;
  ScanResult& operator=(ScanResult&&) = default;

  // Values that had to be decoded; what `links` and `base_href` may point into.
  std::vector<char> decoded;
};

// Scans `html`: UTF-8, or any bytes whose ASCII is ASCII (CharsetDecision::ascii_compatible). Invalid UTF-8 passes
// through; a page cut short is fine. Replaces what `result` held.
//
// Cost:    linear in the page, whatever it holds; memory beside the links at most thrice the page.
// Order:   links come as in the page.
// Threads: any, with a result each.
void scan_links(std::string_view html, const ScanOptions& options, ScanResult& result);

// The text of an `a` element whose start tag ends before byte `behind` of `html`: up to its end tag, to the next `a`,
// or to the page's end; without tags, character references replaced, space collapsed, at most 1,000 bytes of it.
// Of an image it is the `alt`.
std::string link_text(std::string_view html, std::size_t behind);

}  // namespace argiope

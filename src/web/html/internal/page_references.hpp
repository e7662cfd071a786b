// Everywhere an HTML page or a style sheet names a URL, with its place in the bytes: links, and what the page is shown
// with. So that a page can be saved with other URLs in it and every other byte as it was.
//
// Which attributes hold URLs, and of what kind, is url_table.hpp's to say. The fate of each URL is page_rewriter.hpp's
// caller's to say; the links that a crawl follows are link_scanner.hpp's, which looks at less and is faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/link_scanner.hpp"

namespace argiope {

// The use of a URL.
enum class ReferenceRole : std::uint8_t {
  link,   // a document to go to: a, area, frames, cite, meta refresh
  form,   // where a form is sent to
  image,  // shown in the page, as are the next ones: what has no file extension is known by this
  stylesheet,
  script,
  media,   // audio, video, and their tracks
  object,  // object, embed, fonts, and what a style sheet draws with
  hint,    // a resource that is fetched ahead of need, if at all
  fixed,   // says where something is on the web: canonical, ping, preconnect
};
// Whether the page is shown with it, so that one without it is not whole.
constexpr bool is_asset(ReferenceRole role) noexcept {
  return role >= ReferenceRole::image && role <= ReferenceRole::object;
}

// How what is written there is read.
enum class ReferenceSyntax : std::uint8_t {
  url,
  srcset,   // HTML standard, "parse a srcset attribute"
  css,      // declarations, or a style sheet
  refresh,  // the content of a meta refresh
  html,     // a page in an attribute: iframe srcdoc
  base,     // the href of a base element: all URLs of the page are relative to it
  policy,   // the name of a Content-Security-Policy
  drop,     // a whole attribute that makes no sense beside a URL of another place: integrity, crossorigin
};

struct PageReference {
  // Of what is written: a value without its quotes; of `drop` the attribute with its name.
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  // Where its element's tag begins: what is of one element stands together.
  std::uint32_t tag = 0;
  ReferenceSyntax syntax{};
  ReferenceRole role{};
  // Character references stand for characters in it; else it is a style element's text.
  bool in_attribute = true;
  // Not between quotes.
  bool is_bare = false;

  friend bool operator==(const PageReference&, const PageReference&) = default;
};

// Filled by scan_references(). Reuse one for many pages and it stops allocating.
struct PageReferences {
  std::vector<PageReference> found;
  // The value of the first `base` with a href, as the page means it; empty when there is none.
  std::string base_href;
  // Where a first child of `head` may be put: behind its start tag, or where that would be.
  std::size_t head = 0;
};

// A page with more bytes than this is not looked at: it has no references.
inline constexpr std::size_t kMaxScannedPage = std::size_t{1} << 30;

// Pages in attributes of pages in attributes (srcdoc) are read to this depth.
inline constexpr int kDeepestPage = 3;

// `html`: UTF-8, or any bytes whose ASCII is ASCII. Replaces what `references` held; `found` is in the order of the
// bytes.
//
// Cost:    linear in the page. No allocation once `references` has grown, but for a base.
// Threads: any, with a result each.
void scan_references(std::string_view html, PageReferences& references);

// scan_links() and scan_references() in one pass, by the same rules: what each finds is what it finds alone.
void scan_links_and_references(std::string_view html, const ScanOptions& options, ScanResult& links,
                               PageReferences& references);

// Appends them as bytes that are kept beside their page, a few for each.
void append_references(const PageReferences& references, std::string& out);
// Replaces what `references` held by what append_references() has written of a page with `page_size` bytes. False: it
// was written by other rules than scan_references() has now, or is damaged, and says nothing.
bool read_references(std::string_view kept, std::size_t page_size, PageReferences& references);

// The text that the bytes of a reference stand for, in UTF-8: character references undone. `encoding` is the page's.
std::string reference_text(std::string_view raw, bool in_attribute, std::string_view encoding);

// One URL within what a reference stands for.
struct ReferencePart {
  std::size_t begin = 0;
  std::size_t size = 0;
  ReferenceRole role{};
  char quote = 0;  // of a string in CSS
  bool in_css = false;
};
// The URLs in `text`, which is what a reference of that syntax stands for; none for `html`, `base`, `policy` and
// `drop`. Replaces what `parts` held. Space may stand around a URL of syntax `url`.
void split_reference(std::string_view text, ReferenceSyntax syntax, ReferenceRole role,
                     std::vector<ReferencePart>& parts);
// The URL of a part, as the page means it.
std::string part_url(std::string_view text, const ReferencePart& part);

}  // namespace argiope

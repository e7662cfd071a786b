// An HTML page or a style sheet with other URLs in it, and every other byte as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "web/html/internal/page_references.hpp"

namespace argiope {

// The fate of one URL.
enum class Rewritten : std::uint8_t {
  as_it_was,
  elsewhere,  // another text
  here,  // another text, or the same, that leads to a file beside the page: nothing has to be asked of a server for it
};

// Is given the URL as the page means it: in UTF-8, character references and escapes undone, without space around.
// Appends to `out`, which is empty, what is to stand there, unless it is to stay as it was. The result is a URL:
// without space.
using RewriteUrl = std::function<Rewritten(std::string_view url, ReferenceRole role, std::string& out)>;

struct RewriteOptions {
  // Base elements and content security policies lose their effect: a page that is a file has its own place and origin.
  bool as_file = true;
  // A `meta` that says so is put into the head, unless empty; as the page's bytes are in any case.
  std::string_view declare_charset{};
};

// Appends to `out` the page with what `rewrite` makes of its URLs. Where all of them stay as they were, and nothing
// else is asked for, that is the page byte for byte.
//
// `references` are those of `html`, whose bytes are in `encoding` (see scan_references()). Pages within pages (srcdoc)
// are rewritten too, to a depth of three.
// Cost: linear, and what `rewrite` costs.
void rewrite_page(std::string_view html, const PageReferences& references, std::string_view encoding,
                  const RewriteOptions& options, const RewriteUrl& rewrite, std::string& out);
// The same for a style sheet in UTF-8.
void rewrite_css(std::string_view css, const RewriteUrl& rewrite, std::string& out);

// Calls `visit` with each URL of the page that is an asset, or of the style sheet, as RewriteUrl is given it.
using VisitUrl = std::function<void(std::string_view url, ReferenceRole role)>;
void visit_assets(std::string_view html, const PageReferences& references, std::string_view encoding,
                  const VisitUrl& visit);
void visit_style_assets(std::string_view css, const VisitUrl& visit);

}  // namespace argiope

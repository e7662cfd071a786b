// Pages and style sheets with other URLs in them, and the names of files, on any bytes: what nobody changes stays as it
// was, what was changed is found again, a name stays within its folder, and a link between two files leads from the one
// to the other.
#include "web/html/internal/page_rewriter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "crawl/save/file_names.hpp"
#include "fuzz/require.hpp"

namespace {

using namespace argiope;

constexpr std::string_view kStand = "x/y.html";

RewriteUrl to(std::string_view text) {
  return [text](std::string_view, ReferenceRole, std::string& out) {
    out += text;
    return Rewritten::here;
  };
}

void rewrite_html(std::string_view html, std::string_view encoding) {
  PageReferences references;
  scan_references(html, references);
  std::size_t last = 0;
  for (const PageReference& reference : references.found) {
    require(reference.begin >= last || reference.syntax == ReferenceSyntax::drop);
    require(reference.begin + std::size_t{reference.size} <= html.size());
    last = reference.begin;
  }
  require(references.head <= html.size());
  std::string kept;
  append_references(references, kept);
  PageReferences read;
  require(read_references(kept, html.size(), read));
  require(read.found == references.found && read.base_href == references.base_href && read.head == references.head);
  std::string same;
  rewrite_page(
      html, references, encoding, {.as_file = false},
      [](std::string_view, ReferenceRole, std::string&) { return Rewritten::as_it_was; }, same);
  require(same == html);
  std::string changed;
  rewrite_page(html, references, encoding, {.declare_charset = "UTF-8"}, to(kStand), changed);
  // Done twice is done once, but for the charset, which is there already.
  PageReferences again;
  scan_references(changed, again);
  std::string twice;
  rewrite_page(changed, again, encoding, {}, to(kStand), twice);
  std::size_t assets = 0;
  visit_assets(changed, again, encoding, [&](std::string_view url, ReferenceRole) {
    ++assets;
    require(!url.empty());
  });
  require(assets <= changed.size());
}

void rewrite_style(std::string_view css) {
  std::string same, changed, twice;
  rewrite_css(
      css, [](std::string_view, ReferenceRole, std::string&) { return Rewritten::as_it_was; }, same);
  require(same == css);
  rewrite_css(css, to(kStand), changed);
  visit_style_assets(changed, [](std::string_view url, ReferenceRole) { require(url == kStand); });
  rewrite_css(changed, to(kStand), twice);
  require(twice == changed);
}

void require_sound(std::string_view path) {
  require(!path.empty() && path.size() <= 1000 && path.front() != '/' && path.back() != '/');
  for (std::size_t at = 0; at <= path.size();) {
    const std::string_view part = path.substr(at, path.find('/', at) - at);
    require(!part.empty() && part.size() <= 200 && part != "." && part != "..");
    require(part.back() != '.' && part.back() != ' ' && part.find_first_of("\\:*?\"<>|\n\r") == std::string_view::npos);
    at += part.size() + 1;
  }
}

void name_file(std::string_view text, std::string_view content_type) {
  const auto url = Url::parse(text);
  if (!url || (url->scheme() != "http" && url->scheme() != "https")) return;
  const FileType type = type_of_answer(*url, content_type, text);
  const std::string path = file_path(*url, type);
  require_sound(path);
  require(name_fits(path, type));
  require(file_path(*url, type) == path);
  const std::string marked = marked_path(path, "1f0c2a9b");
  require(marked != path && marked.size() <= path.size() + 9 && folded_path(marked) != folded_path(path));
  const std::string other = "h.example/a/b c/index.html";
  for (const auto& [from, target] : {std::pair(path, other), {other, path}, {path, path}, {path, marked}}) {
    const auto base = Url::parse(saved_url(from));
    require(base.has_value());
    const auto link = Url::parse(relative_reference(from, target), &*base);
    require(link && saved_path(*link) == target);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: rewrite_html(text, "UTF-8"); break;
    case 1: rewrite_html(text, "windows-1252"); break;
    case 2: rewrite_html(text, "Shift_JIS"); break;
    case 3: rewrite_style(text); break;
    default: {
      const std::size_t end = std::min(text.find('\n'), text.size());
      name_file(text.substr(0, end), text.substr(std::min(text.size(), end + 1)));
    }
  }
  return 0;
}

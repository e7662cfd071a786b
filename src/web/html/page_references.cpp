#include "web/html/internal/page_references.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "argiope/web/detail/charset.hpp"
#include "web/html/internal/css_references.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/refresh_url.hpp"
#include "web/html/link_notes.hpp"
#include "web/html/link_rules.hpp"
#include "web/html/tag_reader.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using Syntax = ReferenceSyntax;
using Role = ReferenceRole;

// The names of all elements of which more than a rare attribute matters.
constexpr TagBeginnings kMayBeKnown = [] {
  TagBeginnings known = {"head",      "html",    "iframe",   "link",     "math",     "meta",
                         "base",      "noembed", "noframes", "svg",      "template", "title",
                         "plaintext", "script",  "style",    "textarea", "xmp"};
  for (const ElementUrl& url : kElementUrls) {
    if (url.row >= std::to_address(kRareAttributes.end())) known.add(url.element);
  }
  return known;
}();

// One scan. Of a tag that matters all attributes are read first.
class ReferenceScan : public TagReader<ReferenceScan> {
 public:
  ReferenceScan(std::string_view html, PageReferences& out) noexcept : TagReader(html), out_(out) {}
  // Also notes links.
  ReferenceScan(std::string_view html, PageReferences& out, const ScanOptions& options, ScanResult& links) noexcept
      : TagReader(html), out_(out), links_(std::in_place, begin_, end_, options, links) {}

 private:
  friend HtmlWalker<ReferenceScan>;

  bool wants(const char*) const noexcept { return true; }

  const char* start_tag(const char* name) {
    if (!kMayBeKnown.may_be(name) && !foreign_.entered()) return unknown_tag(name);
    const char* const p = behind_name(name);
    const std::string_view tag(name, p);
    const TagKind kind = tag_kind(tag);
    const bool in_foreign = foreign_.entered() || kind == TagKind::foreign_root;
    if (kind == TagKind::plain && !in_foreign && urls_of_element(tag).empty()) return unknown_tag(name);
    begin_tag(name);
    const char* const behind_tag = read_attributes(p);
    if (behind_tag == nullptr) return nullptr;
    if (in_foreign && foreign_.start_tag(tag, self_closing_)) return foreign_tag(tag, behind_tag);
    const char* const behind_element = html_element(kind, tag, behind_tag);
    end_tag_references();
    return behind_element;
  }

  // Most tags: they matter only where an attribute may be a rare one.
  const char* unknown_tag(const char* name) {
    const char* const behind_tag = skip_tag(name);
    if (behind_tag == nullptr || !may_have_rare(name, behind_tag)) return behind_tag;
    begin_tag(name);
    const char* const p = behind_name(name);
    read_attributes(p);
    add_all({name, p});
    end_tag_references();
    return behind_tag;
  }

  // Whether a '=' of the tag stands behind the name of such an attribute.
  static bool may_have_rare(const char* p, const char* end) noexcept {
    for (const char* equals = p; (equals = find_byte(equals, end, '=')) != end; ++equals) {
      const char* last = equals;
      while (last != p && is_tag_char(last[-1], kTagSpace)) --last;
      const std::string_view before(p, last);
      for (const UrlAttribute& attribute : kRareAttributes) {
        const std::string_view rare = attribute.attribute;
        if (before.size() < rare.size() || to_lower(before.back()) != rare.back()) continue;
        if (equals_lower(before.substr(before.size() - rare.size()), rare)) return true;
      }
    }
    return false;
  }

  void note_links(std::string_view tag, const char* behind_tag) {
    if (!links_) return;
    links_->take(link_tag_named(tag), foreign_.active(), in_template(), [&](std::span<WantedAttribute> wanted) {
      for (WantedAttribute& one : wanted) {
        const Attribute* const found = attribute(one.name);
        one.found = found != nullptr;
        if (one.found) one.raw = found->raw;
      }
      return behind_tag;
    });
  }

  const char* html_element(TagKind kind, std::string_view tag, const char* behind_tag) {
    note_links(tag, behind_tag);
    add_all(tag);
    switch (kind) {
      case TagKind::link: add_link(); break;
      case TagKind::meta: add_policy(); break;
      case TagKind::head: note_head(tag, behind_tag); break;
      case TagKind::raw_text:
      case TagKind::title: return HtmlWalker::raw_text(behind_tag, tag);
      case TagKind::script: return HtmlWalker::script(behind_tag);
      case TagKind::style: return style_element(behind_tag, tag);
      case TagKind::plaintext: return nullptr;
      case TagKind::template_: open_template(); break;
      default: break;
    }
    return behind_tag;
  }

  void note_head(std::string_view tag, const char* behind_tag) {
    if (std::exchange(has_head_, has_head_ || equals_lower(tag, "head"))) return;
    out_.head = offset(behind_tag);
  }

  // One without an end is applied as far as it goes.
  const char* style_element(const char* behind_tag, std::string_view tag) {
    const char* const end = raw_text_end(behind_tag, tag);
    add_style({behind_tag, end == nullptr ? end_ : end}, false);
    return end == nullptr ? nullptr : skip_tag(end + 2);
  }
  // The text of a style element.
  void add_style(std::string_view text, bool is_escaped) {
    if (!may_have_css_url(text)) return;
    add(text, Syntax::css, Role::object);
    out_.found.back().in_attribute = is_escaped;
    out_.found.back().is_bare = false;
  }
  static bool may_have_css_url(std::string_view text) noexcept {
    const char* const end = text.data() + text.size();
    if (text.contains('&')) return true;  // a character reference may stand for any of them, as may an escape
    for (const char* p = text.data(); (p = find_byte(p, end, '(', '@', '\\')) != end; ++p) {
      if (*p == '\\') return true;
      const std::string_view before(text.data(), p);
      const bool is_url = *p == '(' && (ends_with_lower(before, "url") || ends_with_lower(before, "src") ||
                                        ends_with_lower(before, "image-set"));
      if (is_url || (*p == '@' && starts_with_lower({p + 1, end}, "import"))) return true;
    }
    return false;
  }
  static bool ends_with_lower(std::string_view text, std::string_view end) noexcept {
    return text.size() >= end.size() && equals_lower(text.substr(text.size() - end.size()), end);
  }

  // Markup of SVG and MathML; a style element's text is markup too, in which characters may be escaped.
  const char* foreign_tag(std::string_view tag, const char* behind_tag) {
    if (equals_lower(tag, "a")) note_links(tag, behind_tag);
    each_foreign_url(tag, [this](const UrlAttribute& row, const Attribute& found) { add_attribute(found, row); });
    if (equals_lower(tag, "style") && !self_closing_) {
      const ForeignStyle style = foreign_style(behind_tag);
      add_style(style.text, style.is_escaped);
    }
    end_tag_references();
    return behind_tag;
  }

  void add_link() {
    const Attribute* const href = attribute("href");
    if (href == nullptr) return;
    add_attribute(*href, {.syntax = Syntax::url, .role = relation_of_link(words_of("rel"), words_of("as")).role});
  }

  void add_policy() {
    if (!says("http-equiv", "content-security-policy")) return;
    add(attribute("http-equiv")->raw, Syntax::policy, Role::fixed);
  }

  // --- what was read of a tag
  void begin_tag(const char* name) noexcept {
    tag_ = static_cast<std::uint32_t>(offset(name));
    first_ = out_.found.size();
  }
  // The edits of a tag are made in the order of its bytes.
  void end_tag_references() {
    const auto of_tag = std::span(out_.found).subspan(first_);
    if (of_tag.size() > 1) std::ranges::sort(of_tag, {}, &PageReference::begin);
  }

  void add_all(std::string_view tag) {
    each_url(tag, [this](const UrlAttribute& row, const Attribute& found) { add_attribute(found, row); });
  }

  void add_attribute(const Attribute& found, const UrlAttribute& wanted) {
    switch (wanted.syntax) {
      case Syntax::drop: return add(with_name(found), Syntax::drop, Role::fixed);
      case Syntax::css:
        if (may_have_css_url(found.raw)) add(found.raw, wanted.syntax, wanted.role);
        return;
      case Syntax::base: return add_base(found.raw);
      default:
        if (!trim_space(found.raw).empty()) add(found.raw, wanted.syntax, wanted.role);
    }
  }
  static std::string_view with_name(const Attribute& found) noexcept {
    if (found.raw.data() == nullptr) return found.name;
    const char* const end = found.raw.data() + found.raw.size();
    return {found.name.data(), is_quoted(found.raw) ? end + 1 : end};
  }
  static bool is_quoted(std::string_view raw) noexcept { return raw.data()[-1] == '"' || raw.data()[-1] == '\''; }

  // All with a href are emptied, and the first that is no template's counts.
  void add_base(std::string_view raw) {
    if (raw.data() == nullptr) return;
    add(raw, Syntax::base, Role::fixed);
    if (!in_template() && !std::exchange(has_base_, true)) {
      std::vector<char> value;
      append_attribute_value(raw, value);
      out_.base_href.assign(value.begin(), value.end());
    }
  }

  void add(std::string_view raw, Syntax syntax, Role role) {
    out_.found.push_back({.begin = static_cast<std::uint32_t>(offset(raw.data())),
                          .size = static_cast<std::uint32_t>(raw.size()),
                          .tag = tag_,
                          .syntax = syntax,
                          .role = role,
                          .is_bare = syntax != Syntax::drop && !is_quoted(raw)});
  }
  std::size_t offset(const char* p) const noexcept { return static_cast<std::size_t>(p - begin_); }

  PageReferences& out_;
  std::optional<LinkNotes> links_;
  std::uint32_t tag_ = 0;
  std::size_t first_ = 0;  // of this tag's references
  bool has_base_ = false;
  bool has_head_ = false;
};

// Behind the doctype, with space and comments before it; else the start.
std::size_t behind_doctype(std::string_view html) noexcept {
  std::size_t at = 0;
  while (true) {
    while (at < html.size() && is_space(html[at])) ++at;
    if (!html.substr(at).starts_with("<!--")) break;
    const std::size_t end = html.find("-->", at + 4);
    if (end == std::string_view::npos) return 0;
    at = end + 3;
  }
  if (!starts_with_lower(html.substr(at), "<!doctype")) return 0;
  const std::size_t end = html.find('>', at);
  return end == std::string_view::npos ? 0 : end + 1;
}

// HTML standard, "parse a srcset attribute": of each candidate its URL.
void split_srcset(std::string_view text, std::vector<ReferencePart>& parts) {
  std::size_t at = 0;
  while (true) {
    while (at < text.size() && (is_space(text[at]) || text[at] == ',')) ++at;
    if (at == text.size()) return;
    const std::size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    std::size_t end = at;
    const bool ends_candidate = text[end - 1] == ',';
    while (end > begin && text[end - 1] == ',') --end;
    if (end > begin) parts.push_back({begin, end - begin, Role::image});
    if (ends_candidate) continue;
    for (bool in_parens = false; at < text.size() && (in_parens || text[at] != ','); ++at) {
      if (text[at] == '(') in_parens = true;
      if (text[at] == ')') in_parens = false;
    }
  }
}

void forget(PageReferences& references) {
  references.found.clear();
  references.base_href.clear();
  references.head = 0;
}

}  // namespace

// Mirrors keep what it finds: with other rules kReferencesFormat (kept_references.cpp) becomes another number.
void scan_references(std::string_view html, PageReferences& references) {
  forget(references);
  if (html.size() > kMaxScannedPage) return;
  ReferenceScan(html, references).run();
  if (references.head == 0) references.head = behind_doctype(html);
}

void scan_links_and_references(std::string_view html, const ScanOptions& options, ScanResult& links,
                               PageReferences& references) {
  if (html.size() > kMaxScannedPage) {
    forget(references);
    return scan_links(html, options, links);
  }
  forget_links(links);
  forget(references);
  ReferenceScan(html, references, options, links).run();
  if (references.head == 0) references.head = behind_doctype(html);
}

std::string reference_text(std::string_view raw, bool in_attribute, std::string_view encoding) {
  std::string utf8;
  if (encoding != "UTF-8" && !is_ascii(raw)) {
    if (auto converted = to_utf8(raw, encoding)) {
      utf8 = std::move(*converted);
      raw = utf8;
    }
  }
  if (!in_attribute || is_attribute_value(raw)) {
    return utf8.empty() ? std::string(raw) : std::move(utf8);
  }
  std::vector<char> value;
  append_attribute_value(raw, value);
  return {value.begin(), value.end()};
}

void split_reference(std::string_view text, ReferenceSyntax syntax, ReferenceRole role,
                     std::vector<ReferencePart>& parts) {
  parts.clear();
  switch (syntax) {
    case Syntax::url: parts.push_back({0, text.size(), role}); return;
    case Syntax::srcset: return split_srcset(text, parts);
    case Syntax::refresh:
      if (const std::string_view found = refresh_url(text); !found.empty()) {
        parts.push_back({static_cast<std::size_t>(found.data() - text.data()), found.size(), role});
      }
      return;
    case Syntax::css: {
      std::vector<CssReference> urls;
      find_css_references(text, urls);
      for (const CssReference& one : urls) {
        parts.push_back({one.begin, one.size, one.is_import ? Role::stylesheet : role, one.quote, true});
      }
      return;
    }
    case Syntax::html:
    case Syntax::base:
    case Syntax::policy:
    case Syntax::drop: return;
  }
}

std::string part_url(std::string_view text, const ReferencePart& part) {
  const std::string_view raw = text.substr(part.begin, part.size);
  return part.in_css ? unescape_css(raw) : std::string(raw);
}

}  // namespace argiope

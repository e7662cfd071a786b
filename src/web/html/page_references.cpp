#include "web/html/internal/page_references.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "argiope/web/charset.hpp"
#include "web/html/internal/css_references.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/html/link_notes.hpp"
#include "web/html/link_rules.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using Syntax = ReferenceSyntax;
using Role = ReferenceRole;

struct UrlAttribute {
  std::string_view name;
  Syntax syntax = Syntax::url;
  Role role = Role::link;
};

// Of any element.
constexpr UrlAttribute kEverywhere[] = {
    {"style", Syntax::css, Role::object}, {"background", Syntax::url, Role::image}, {"cite"}};

constexpr UrlAttribute kOfAnchor[] = {{"href"}};
// The last ones are what scripts that show pictures late read: a widespread habit.
constexpr UrlAttribute kOfImage[] = {{"src", Syntax::url, Role::image},
                                     {"srcset", Syntax::srcset, Role::image},
                                     {"lowsrc", Syntax::url, Role::image},
                                     {"longdesc"},
                                     {"crossorigin", Syntax::drop},
                                     {"data-src", Syntax::url, Role::image},
                                     {"data-srcset", Syntax::srcset, Role::image}};
constexpr UrlAttribute kOfSource[] = {{"src", Syntax::url, Role::media},
                                      {"srcset", Syntax::srcset, Role::image},
                                      {"data-src", Syntax::url, Role::media},
                                      {"data-srcset", Syntax::srcset, Role::image}};
constexpr UrlAttribute kOfMedia[] = {{"src", Syntax::url, Role::media},
                                     {"poster", Syntax::url, Role::image},
                                     {"crossorigin", Syntax::drop}};
constexpr UrlAttribute kOfScript[] = {
    {"src", Syntax::url, Role::script}, {"integrity", Syntax::drop}, {"crossorigin", Syntax::drop}};
constexpr UrlAttribute kOfFrame[] = {{"src"}, {"longdesc"}};
constexpr UrlAttribute kOfIframe[] = {{"src"}, {"srcdoc", Syntax::html}, {"longdesc"}};
constexpr UrlAttribute kOfEmbed[] = {{"src", Syntax::url, Role::object}};
constexpr UrlAttribute kOfObject[] = {{"data", Syntax::url, Role::object}};
constexpr UrlAttribute kOfForm[] = {{"action", Syntax::url, Role::form}};
constexpr UrlAttribute kOfInput[] = {{"src", Syntax::url, Role::image}, {"formaction", Syntax::url, Role::form}};
constexpr UrlAttribute kOfBase[] = {{"href", Syntax::base}};

// What there is to know of an HTML element.
struct PageElement {
  enum class Kind : std::uint8_t {
    unknown,
    plain,
    raw_text,
    script,
    style,
    plaintext,
    link,
    meta,
    head,
    template_,
    foreign_root
  };
  Kind kind = Kind::unknown;
  std::span<const UrlAttribute> attributes{};
};

PageElement element_named(std::string_view name) noexcept {
  using enum PageElement::Kind;
  if (name.size() > 8) return {equals_lower(name, "plaintext") ? plaintext : unknown};
  switch (pack_name(name)) {
    case pack_name("a"):
    case pack_name("area"): return {plain, kOfAnchor};
    case pack_name("img"):
    case pack_name("image"): return {plain, kOfImage};
    case pack_name("source"): return {plain, kOfSource};
    case pack_name("audio"):
    case pack_name("bgsound"):
    case pack_name("track"):
    case pack_name("video"): return {plain, kOfMedia};
    case pack_name("frame"): return {plain, kOfFrame};
    case pack_name("embed"): return {plain, kOfEmbed};
    case pack_name("object"): return {plain, kOfObject};
    case pack_name("form"): return {plain, kOfForm};
    case pack_name("button"):
    case pack_name("input"): return {plain, kOfInput};
    case pack_name("base"): return {plain, kOfBase};
    case pack_name("iframe"): return {raw_text, kOfIframe};
    case pack_name("title"):
    case pack_name("textarea"):
    case pack_name("noembed"):
    case pack_name("noframes"):
    case pack_name("xmp"): return {raw_text};
    case pack_name("script"): return {script, kOfScript};
    case pack_name("style"): return {style};
    case pack_name("template"): return {template_};
    case pack_name("link"): return {link};
    case pack_name("meta"): return {meta};
    case pack_name("head"):
    case pack_name("html"): return {head};
    case pack_name("svg"):
    case pack_name("math"): return {foreign_root};
    default: return {};
  }
}

// The names that element_named() knows.
constexpr TagBeginnings kMayBeKnown = {
    "a",      "area",   "audio", "base",  "bgsound",  "button", "embed", "form",    "frame",    "head",   "html",
    "iframe", "image",  "img",   "input", "link",     "math",   "meta",  "noembed", "noframes", "object", "plaintext",
    "script", "source", "style", "svg",   "template", "textarea", "title", "track",  "video",    "xmp"};

// What an SVG or MathML element names by `href`. None: it is no element that loads anything, as a rule a part of the page.
Role role_in_svg(std::string_view name) noexcept {
  if (equals_lower(name, "image") || equals_lower(name, "feimage")) return Role::image;
  if (equals_lower(name, "script")) return Role::script;
  return equals_lower(name, "use") || equals_lower(name, "mpath") || equals_lower(name, "textpath") ? Role::object
                                                                                                    : Role::link;
}

// Relations of `link` that are no links. The first in this order counts.
struct RelationRole {
  std::string_view name;
  Role role;
};
constexpr RelationRole kRelationRoles[] = {
    {"stylesheet", Role::stylesheet},
    {"icon", Role::image},
    {"apple-touch-icon", Role::image},
    {"apple-touch-icon-precomposed", Role::image},
    {"apple-touch-startup-image", Role::image},
    {"mask-icon", Role::image},
    {"fluid-icon", Role::image},
    {"image_src", Role::image},
    {"modulepreload", Role::script},
    {"preload", Role::object},
    {"prefetch", Role::hint},
    {"prerender", Role::hint},
    {"subresource", Role::hint},
    {"canonical", Role::fixed},
    {"shortlink", Role::fixed},
    {"preconnect", Role::fixed},
    {"dns-prefetch", Role::fixed},
    {"manifest", Role::fixed},
    {"pingback", Role::fixed},
    {"webmention", Role::fixed},
    {"edituri", Role::fixed},
    {"wlwmanifest", Role::fixed},
};

Role role_of_link(std::string_view rel, std::string_view as) {
  const auto found =
      std::ranges::find_if(kRelationRoles, [rel](const RelationRole& known) { return has_word(rel, known.name); });
  if (found == std::end(kRelationRoles)) return Role::link;
  if (found->name != "preload") return found->role;
  if (equals_lower(as, "style")) return Role::stylesheet;
  if (equals_lower(as, "script")) return Role::script;
  return equals_lower(as, "image") ? Role::image : Role::object;
}

// One scan. Of a tag that matters all attributes are read first.
class ReferenceScan : public HtmlWalker<ReferenceScan> {
 public:
  ReferenceScan(std::string_view html, PageReferences& out) noexcept : HtmlWalker(html), out_(out) {}
  // Also notes links.
  ReferenceScan(std::string_view html, PageReferences& out, const ScanOptions& options, ScanResult& links) noexcept
      : HtmlWalker(html), out_(out), links_(std::in_place, begin_, end_, options, links) {}

 private:
  friend HtmlWalker;
  struct Attribute {
    std::string_view name;
    std::string_view raw;
  };

  bool wants(const char*) const noexcept { return true; }

  const char* start_tag(const char* name) {
    if (!kMayBeKnown.may_be(name) && !foreign_.entered()) return unknown_tag(name);
    const char* const p = behind_name(name);
    const std::string_view tag(name, p);
    const PageElement element = element_named(tag);
    const bool in_foreign = foreign_.entered() || element.kind == PageElement::Kind::foreign_root;
    if (element.kind == PageElement::Kind::unknown && !in_foreign) return unknown_tag(name);
    begin_tag(name);
    const char* const behind_tag = read_attributes(p);
    if (behind_tag == nullptr) return nullptr;
    if (in_foreign && foreign_.start_tag(tag, self_closing_)) return foreign_tag(tag, behind_tag);
    const char* const behind_element = html_element(element, tag, behind_tag);
    end_tag_references();
    return behind_element;
  }

  // Most tags: they matter only where an attribute may be one that any element has.
  const char* unknown_tag(const char* name) {
    const char* const behind_tag = skip_tag(name);
    if (behind_tag == nullptr || !may_have_everywhere(name, behind_tag)) return behind_tag;
    begin_tag(name);
    read_attributes(behind_name(name));
    add_all(kEverywhere);
    end_tag_references();
    return behind_tag;
  }

  // Whether a '=' of the tag stands behind the name of such an attribute.
  static bool may_have_everywhere(const char* p, const char* end) noexcept {
    for (const char* equals = p; (equals = find_byte(equals, end, '=')) != end; ++equals) {
      const char* last = equals;
      while (last != p && is_tag_char(last[-1], kTagSpace)) --last;
      const std::string_view before(p, last);
      for (const UrlAttribute& attribute : kEverywhere) {
        const std::size_t size = attribute.name.size();
        if (before.size() < size || to_lower(before.back()) != attribute.name.back()) continue;
        if (equals_lower(before.substr(before.size() - size), attribute.name)) return true;
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

  const char* html_element(const PageElement& element, std::string_view tag, const char* behind_tag) {
    using enum PageElement::Kind;
    note_links(tag, behind_tag);
    add_all(kEverywhere);
    add_all(element.attributes);
    switch (element.kind) {
      case link: add_link(); break;
      case meta: add_meta(); break;
      case head: note_head(tag, behind_tag); break;
      case raw_text: return HtmlWalker::raw_text(behind_tag, tag);
      case script: return HtmlWalker::script(behind_tag);
      case style: return style_element(behind_tag, tag);
      case plaintext: return nullptr;
      case template_: open_template(); break;
      default: break;
    }
    return behind_tag;
  }

  void note_head(std::string_view tag, const char* behind_tag) {
    if (std::exchange(has_head_, has_head_ || equals_lower(tag, "head"))) return;
    out_.head = offset(behind_tag);
  }

  const char* style_element(const char* behind_tag, std::string_view tag) {
    const char* const end = raw_text_end(behind_tag, tag);
    if (end == nullptr) return nullptr;
    add_style({behind_tag, end}, false);
    return skip_tag(end + 2);
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
    add_all(kEverywhere);
    const Role role = role_in_svg(tag);
    const UrlAttribute links[] = {{"href", Syntax::url, role}, {"xlink:href", Syntax::url, role}};
    add_all(links);
    if (equals_lower(tag, "style") && !self_closing_) {
      const char* const end = find_byte(behind_tag, end_, '<');
      const std::string_view section = rest(end);
      constexpr std::string_view kCdata = "<![CDATA[";
      if (section.starts_with(kCdata)) {
        add_style(section.substr(kCdata.size(), section.find("]]>") - kCdata.size()), false);
      } else {
        add_style({behind_tag, end}, true);
      }
    }
    end_tag_references();
    return behind_tag;
  }

  void add_link() {
    const Role role = role_of_link(plain_value("rel"), plain_value("as"));
    const UrlAttribute wanted[] = {{"href", Syntax::url, role},
                                   {"imagesrcset", Syntax::srcset, Role::image},
                                   {"integrity", Syntax::drop},
                                   {"crossorigin", Syntax::drop}};
    add_all(wanted);
  }

  void add_meta() {
    const Attribute* const equiv = attribute("http-equiv");
    if (equiv == nullptr) return;
    const std::string_view name = trim_space(equiv->raw);
    if (equals_lower(name, "refresh")) {
      const UrlAttribute content[] = {{"content", Syntax::refresh}};
      add_all(content);
    } else if (equals_lower(name, "content-security-policy")) {
      add(equiv->raw, Syntax::policy, Role::fixed);
    }
  }

  // --- what was read of a tag
  void begin_tag(const char* name) noexcept {
    tag_ = static_cast<std::uint32_t>(offset(name));
    first_ = out_.found.size();
  }
  const char* read_attributes(const char* p) {
    attributes_.clear();
    return attributes(p, [this](std::string_view name, std::string_view raw) { attributes_.push_back({name, raw}); });
  }
  // The edits of a tag are made in the order of its bytes.
  void end_tag_references() {
    const auto of_tag = std::span(out_.found).subspan(first_);
    if (of_tag.size() > 1) std::ranges::sort(of_tag, {}, &PageReference::begin);
  }

  const Attribute* attribute(std::string_view lower) const noexcept {
    const auto found = std::ranges::find_if(attributes_, [lower](const Attribute& a) { return equals_lower(a.name, lower); });
    return found == attributes_.end() ? nullptr : &*found;
  }
  // Of keywords, in which nobody writes character references.
  std::string_view plain_value(std::string_view lower) const noexcept {
    const Attribute* const found = attribute(lower);
    return found == nullptr ? std::string_view{} : found->raw;
  }

  void add_all(std::span<const UrlAttribute> wanted) {
    for (const UrlAttribute& one : wanted) {
      const Attribute* const found = attribute(one.name);
      if (found != nullptr) add_attribute(*found, one);
    }
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
  std::vector<Attribute> attributes_;
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

// What it finds is kept in mirrors: with other rules kReferencesFormat (kept_references.cpp) becomes another number.
void scan_references(std::string_view html, PageReferences& references) {
  forget(references);
  if (html.size() > kMaxScannedPage) return;
  ReferenceScan(html, references).run();
  if (references.head == 0) references.head = behind_doctype(html);
}

void scan_links_and_references(std::string_view html, const ScanOptions& options, ScanResult& links, PageReferences& references) {
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

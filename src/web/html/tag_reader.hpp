// A pass over the tags of an HTML page with all their attributes: what the survey of pages and the references of pages
// to be saved have in common. Which attributes hold URLs is url_table.hpp's to say.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/html/url_table.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

enum class TagKind : std::uint8_t {
  plain,
  link,
  meta,
  base,
  head,  // or html
  template_,
  foreign_root,
  raw_text,
  title,
  script,
  style,
  plaintext
};

constexpr TagKind tag_kind(std::string_view name) noexcept {
  if (name.size() > 8) return equals_lower(name, "plaintext") ? TagKind::plaintext : TagKind::plain;
  switch (pack_name(name)) {
    case pack_name("link"): return TagKind::link;
    case pack_name("meta"): return TagKind::meta;
    case pack_name("base"): return TagKind::base;
    case pack_name("head"):
    case pack_name("html"): return TagKind::head;
    case pack_name("template"): return TagKind::template_;
    case pack_name("svg"):
    case pack_name("math"): return TagKind::foreign_root;
    case pack_name("iframe"):
    case pack_name("textarea"):
    case pack_name("noembed"):
    case pack_name("noframes"):
    case pack_name("xmp"): return TagKind::raw_text;
    case pack_name("title"): return TagKind::title;
    case pack_name("script"): return TagKind::script;
    case pack_name("style"): return TagKind::style;
    default: return TagKind::plain;
  }
}

// `Handler` has what HtmlWalker asks for. All here is of the tag that read_attributes() has read last.
template <class Handler>
class TagReader : public HtmlWalker<Handler> {
 public:
  using HtmlWalker<Handler>::HtmlWalker;

 protected:
  struct Attribute {
    std::string_view name, raw;
  };

  // From behind a tag's name to behind its '>'.
  const char* read_attributes(const char* p) {
    attributes_.clear();
    return this->attributes(p, [this](std::string_view name, std::string_view raw) {
      attributes_.push_back({name, raw});
    });
  }

  // The first of a name counts. Null: there is none.
  const Attribute* attribute(std::string_view lower) const noexcept {
    const auto found =
        std::ranges::find_if(attributes_, [lower](const Attribute& a) { return equals_lower(a.name, lower); });
    return found == attributes_.end() ? nullptr : &*found;
  }
  // At most kMostWordBytes of it; empty when there is none.
  std::string words_of(std::string_view lower) const {
    const Attribute* const found = attribute(lower);
    if (found == nullptr) return {};
    const std::string_view raw = found->raw.substr(0, kMostWordBytes);
    if (is_attribute_value(raw)) return std::string(raw);
    std::vector<char> value;
    append_attribute_value(raw, value);
    return {value.begin(), value.end()};
  }
  bool says(std::string_view lower, std::string_view word) const { return equals_lower(words_of(lower), word); }

  // `visit(row, raw)` for what may hold a URL in an element of HTML, but a link's href.
  template <class Visit>
  void each_url(std::string_view tag, Visit visit) const {
    for (const ElementUrl& url : urls_of_element(tag)) {
      const Attribute* const found = attribute(url.row->attribute);
      if (found != nullptr && holds(url.row->condition)) visit(*url.row, *found);
    }
    any_url(visit);
  }
  // The same of SVG and MathML.
  template <class Visit>
  void each_foreign_url(std::string_view tag, Visit visit) const {
    const Attribute* found = attribute("href");
    if (found == nullptr) found = attribute("xlink:href");
    if (found != nullptr) visit(foreign_url_of(tag), *found);
    any_url(visit);
  }

  // The text of a `style` of SVG, whose start tag ends before `p`. Unless it is a section of CDATA, character
  // references stand for characters in it.
  struct ForeignStyle {
    std::string_view text;
    bool is_escaped = false;
  };
  ForeignStyle foreign_style(const char* p) const {
    const char* const end = find_byte(p, this->end_, '<');
    const std::string_view section = this->rest(end);
    constexpr std::string_view kCdata = "<![CDATA[";
    if (!section.starts_with(kCdata)) return {{p, end}, true};
    return {section.substr(kCdata.size(), section.find("]]>") - kCdata.size()), false};
  }

 private:
  static constexpr std::size_t kMostWordBytes = 65'536;

  template <class Visit>
  void any_url(Visit visit) const {
    constexpr const UrlAttribute& row = kUrlAttributes[0];
    static_assert(row.elements.empty());
    if (const Attribute* const found = attribute(row.attribute)) visit(row, *found);
  }
  bool holds(UrlCondition condition) const {
    switch (condition) {
      case UrlCondition::none: return true;
      case UrlCondition::image_input: return says("type", "image");
      case UrlCondition::refresh: return says("http-equiv", "refresh") && !this->in_template();
    }
    return false;
  }

  std::vector<Attribute> attributes_;
};

}  // namespace argiope

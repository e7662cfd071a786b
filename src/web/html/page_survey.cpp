// The survey of a page: its tags and their attributes, one after the other.
#include "web/html/internal/page_survey.hpp"

#include <algorithm>
#include <utility>

#include "base/internal/utf8.hpp"
#include "web/html/inner_text.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/link_rules.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

struct AssetAttribute {
  std::string_view element, attribute;
  LinkKind kind;
};
constexpr AssetAttribute kAssetAttributes[] = {
    {"img", "src", LinkKind::image},         {"script", "src", LinkKind::script},
    {"video", "src", LinkKind::media},       {"video", "poster", LinkKind::image},
    {"audio", "src", LinkKind::media},       {"source", "src", LinkKind::media},
    {"track", "src", LinkKind::media},       {"embed", "src", LinkKind::embedded},
    {"object", "data", LinkKind::embedded},  {"body", "background", LinkKind::image},
    {"table", "background", LinkKind::image}, {"td", "background", LinkKind::image},
    {"th", "background", LinkKind::image},
};
// Of SVG, where `href` may be written `xlink:href`.
constexpr AssetAttribute kSvgAssets[] = {
    {"image", "href", LinkKind::image},
    {"feimage", "href", LinkKind::image},
    {"use", "href", LinkKind::image},
    {"script", "href", LinkKind::script},
};

struct AssetRelation {
  std::string_view word;
  LinkKind kind;
};
constexpr AssetRelation kAssetRelations[] = {
    {"stylesheet", LinkKind::stylesheet},    {"icon", LinkKind::icon},
    {"apple-touch-icon", LinkKind::icon},    {"apple-touch-icon-precomposed", LinkKind::icon},
    {"mask-icon", LinkKind::icon},           {"apple-touch-startup-image", LinkKind::icon},
    {"manifest", LinkKind::resource},        {"preload", LinkKind::resource},
    {"modulepreload", LinkKind::resource},   {"prefetch", LinkKind::resource},
};

// Elements whose content is text up to their end tag.
constexpr std::string_view kTextElements[] = {"title", "textarea", "style",    "script", "iframe",
                                              "xmp",   "noembed",  "noframes", "plaintext"};

// One survey. What it does with a tag is here; how tags are found is the walker's.
class Surveyor : public HtmlWalker<Surveyor> {
 public:
  Surveyor(std::string_view html, const SurveyOptions& options, PageSurvey& survey) noexcept
      : HtmlWalker(html), line_at_(begin_), options_(options), survey_(survey) {}

 private:
  friend HtmlWalker;
  struct Attribute {
    std::string_view name, raw;
  };

  bool wants(const char*) const noexcept { return true; }

  // From behind a tag's name to behind its '>', into attributes_.
  const char* read_attributes(const char* p) {
    attributes_.clear();
    return attributes(p, [this](std::string_view name, std::string_view raw) { attributes_.push_back({name, raw}); });
  }

  // Of the tag that was read last; the first of a name counts.
  const Attribute* find(std::string_view name) const {
    const auto found = std::ranges::find_if(attributes_, [&](const Attribute& a) { return equals_lower(a.name, name); });
    return found == attributes_.end() ? nullptr : &*found;
  }
  std::string_view text_of(std::string_view name) {
    const Attribute* const attribute = find(name);
    return attribute == nullptr ? std::string_view{} : value(attribute->raw.substr(0, options_.max_value_bytes));
  }
  // What attribute text stands for.
  std::string_view value(std::string_view raw) {
    if (find_byte(raw.data(), raw.data() + raw.size(), '&', '\0', '\r') == raw.data() + raw.size()) return raw;
    std::vector<char> decoded;
    append_attribute_value(raw, decoded);
    return survey_.decoded.emplace_back(decoded.data(), decoded.size());
  }

  const char* start_tag(const char* p) {
    tag_ = p - 1;
    const std::string_view name(p, behind_name(p));
    p = read_attributes(name.data() + name.size());
    if (p == nullptr) return nullptr;
    note_id(name);
    const bool root = equals_lower(name, "svg") || equals_lower(name, "math");
    if ((foreign_.entered() || root) && foreign_.start_tag(name, self_closing_)) {
      foreign_element(name, p);
      return p;
    }
    element(name, p);
    const bool is_text = std::ranges::any_of(kTextElements, [&](std::string_view one) { return equals_lower(name, one); });
    return is_text ? text_element(name, p) : p;
  }

  void note_id(std::string_view name) {
    const Attribute* const id = find("id");
    if (id != nullptr) add_id(id->raw);
    if (!equals_lower(name, "a")) return;
    if (const Attribute* const old = find("name")) add_id(old->raw);
  }
  void add_id(std::string_view raw) {
    if (raw.empty()) return;
    if (survey_.ids.size() >= options_.max_ids || raw.size() > options_.max_value_bytes) {
      survey_.has_all_ids = false;
    } else {
      survey_.ids.push_back(value(raw));
    }
  }

  void element(std::string_view name, const char* behind_tag) {
    if (equals_lower(name, "a")) return hyperlink(LinkKind::anchor, behind_tag);
    if (equals_lower(name, "area")) return hyperlink(LinkKind::area, nullptr);
    if (equals_lower(name, "link")) return link();
    if (equals_lower(name, "template")) open_template();
    if (!in_template() && equals_lower(name, "meta")) return meta();
    if (!in_template() && equals_lower(name, "base")) return base();
    if (equals_lower(name, "frame") || equals_lower(name, "iframe")) return add_attribute("src", LinkKind::frame);
    if (!in_template() && equals_lower(name, "h1")) heading(behind_tag);
    if (equals_lower(name, "input") && equals_lower(trim_space(text_of("type")), "image")) {
      add_attribute("src", LinkKind::image);
    }
    for (const AssetAttribute& asset : kAssetAttributes) {
      if (equals_lower(name, asset.element)) add_attribute(asset.attribute, asset.kind);
    }
    if (equals_lower(name, "img") || equals_lower(name, "source")) add_srcset("srcset", LinkKind::image);
    style_attribute();
  }

  void foreign_element(std::string_view name, const char* behind_tag) {
    if (equals_lower(name, "a")) return hyperlink(LinkKind::anchor, behind_tag);
    for (const AssetAttribute& asset : kSvgAssets) {
      if (!equals_lower(name, asset.element)) continue;
      const Attribute* href = find("href");
      if (href == nullptr) href = find("xlink:href");
      // What begins with "#" is in this very picture.
      if (href != nullptr && !href->raw.starts_with('#')) add(href->raw, asset.kind);
    }
    style_attribute();
  }

  void hyperlink(LinkKind kind, const char* behind_tag) {
    const Attribute* href = find("href");
    if (href == nullptr && foreign_.active()) href = find("xlink:href");
    if (href == nullptr) return style_attribute();
    const std::string_view relations = text_of("rel");
    if (SurveyedLink* const link = add(href->raw, kind)) {
      link->rel = relations;
      link->nofollow = has_word(relations, "nofollow");
      if (behind_tag == nullptr) link->label = text_of("alt");
      if (behind_tag != nullptr) link->behind = static_cast<std::size_t>(behind_tag - begin_);
    }
    style_attribute();
  }

  void link() {
    const Attribute* const href = find("href");
    const Attribute* const rel = find("rel");
    if (rel == nullptr) return;
    const std::string_view relations = text_of("rel");
    if (href != nullptr) {
      LinkKind kind{};
      const bool is_link = kind_of_rel(relations, kind);
      const auto asset = std::ranges::find_if(
          kAssetRelations, [&](const AssetRelation& one) { return has_word(relations, one.word); });
      if (is_link || asset != std::end(kAssetRelations)) {
        SurveyedLink* const added = add(href->raw, is_link ? kind : asset->kind);
        if (added != nullptr) added->rel = relations;
        if (added != nullptr && find("type") != nullptr) added->type = text_of("type");
        if (added != nullptr) added->nofollow = has_word(relations, "nofollow");
        const bool is_canonical = has_word(relations, "canonical") && !in_template();
        if (is_canonical && survey_.canonical.empty()) survey_.canonical = value(href->raw);
      }
    }
    add_srcset("imagesrcset", LinkKind::resource);
  }

  void meta() {
    const Attribute* const content = find("content");
    if (content == nullptr) return;
    const std::string_view name = text_of("name");
    if (addresses_us(name)) survey_.robots.add(value(content->raw));
    if (equals_lower(trim_space(name), "description")) {
      if (survey_.descriptions++ == 0) survey_.description = collapsed(text_of("content"));
    }
    if (find("http-equiv") == nullptr || !equals_lower(text_of("http-equiv"), "refresh")) return;
    const std::string_view url = refresh_url(value(content->raw));
    if (!url.empty()) add_value(url, LinkKind::refresh);
  }
  bool addresses_us(std::string_view name) const {
    return equals_lower(name, "robots") || (!options_.agent.empty() && equals_ignoring_case(name, options_.agent));
  }

  void base() {
    const Attribute* const href = find("href");
    if (href == nullptr || std::exchange(has_base_, true)) return;
    if (href->raw.size() > options_.max_value_bytes) {
      ++survey_.dropped;
    } else {
      survey_.base_href = value(href->raw);
    }
  }

  void heading(const char* behind_tag) {
    if (survey_.headings++ > 0) return;
    survey_.heading = inner_text(rest(begin_), static_cast<std::size_t>(behind_tag - begin_), {"/h1", "h1"},
                                 options_.max_text_bytes);
  }

  // From behind the start tag of an element with text to behind its end tag.
  const char* text_element(std::string_view name, const char* p) {
    if (equals_lower(name, "plaintext")) return nullptr;
    if (equals_lower(name, "script")) return script(p);
    const char* const end = raw_text_end(p, name);
    const std::string_view text(p, end == nullptr ? end_ : end);
    if (equals_lower(name, "style")) style(text);
    if (equals_lower(name, "title") && !in_template() && survey_.titles++ == 0) {
      survey_.title = collapsed(value(text.substr(0, options_.max_value_bytes)));
    }
    return end == nullptr ? nullptr : skip_tag(end + 2);
  }

  // What a text refers to in its own way: values are made of `text`, and begin there.
  template <class Add>
  void add_parts(std::string_view text, ReferenceSyntax syntax, Add add) {
    split_reference(text, syntax, ReferenceRole::object, parts_);
    for (const ReferencePart& part : parts_) {
      if (room() == 0) return void(++survey_.dropped);
      add(survey_.decoded.emplace_back(part_url(text, part)), part);
    }
  }
  void style(std::string_view css) {
    add_parts(css, ReferenceSyntax::css, [&](std::string_view url, const ReferencePart& part) {
      tag_ = std::max(tag_, css.data() + part.begin);
      add_value(url, part.role == ReferenceRole::stylesheet ? LinkKind::stylesheet : LinkKind::css);
    });
  }
  void style_attribute() {
    const Attribute* const attribute = find("style");
    if (attribute == nullptr || attribute->raw.size() > options_.max_value_bytes) return;
    add_parts(value(attribute->raw), ReferenceSyntax::css,
              [&](std::string_view url, const ReferencePart&) { add_value(url, LinkKind::css); });
  }

  void add_attribute(std::string_view attribute, LinkKind kind) {
    const Attribute* const found = find(attribute);
    if (found == nullptr) return;
    SurveyedLink* const link = add(found->raw, kind);
    if (link != nullptr && kind == LinkKind::image) link->label = text_of("alt");
  }
  void add_srcset(std::string_view attribute, LinkKind kind) {
    const Attribute* const found = find(attribute);
    if (found == nullptr) return;
    if (found->raw.size() > options_.max_value_bytes) {
      ++survey_.dropped;
      return;
    }
    add_parts(value(found->raw), ReferenceSyntax::srcset,
              [&](std::string_view url, const ReferencePart&) { add_value(url, kind); });
  }

  std::size_t room() const noexcept { return options_.max_links - std::min(options_.max_links, survey_.links.size()); }
  SurveyedLink* add(std::string_view raw, LinkKind kind) {
    if (raw.size() <= options_.max_value_bytes) return add_value(value(raw), kind);
    ++survey_.dropped;
    return nullptr;
  }
  SurveyedLink* add_value(std::string_view url, LinkKind kind) {
    if (room() == 0 || url.size() > options_.max_value_bytes) {
      ++survey_.dropped;
      return nullptr;
    }
    survey_.links.push_back({.url = url, .kind = kind, .line = line_of(tag_)});
    return &survey_.links.back();
  }
  // Lines are counted on from where they were counted to last.
  std::uint32_t line_of(const char* p) {
    if (p > line_at_) lines_ += static_cast<std::uint32_t>(std::count(std::exchange(line_at_, p), p, '\n'));
    return lines_ + 1;
  }

  std::string collapsed(std::string_view text) const {
    std::string out;
    for_each_token(text, [](char c) { return is_space(c); }, [&](std::string_view word) {
      if (out.size() <= options_.max_text_bytes) out.append(out.empty() ? "" : " ").append(word);
    });
    out.resize(cut_between_characters(out, options_.max_text_bytes).size());
    return out;
  }

  const char* tag_ = nullptr;  // where the link that is added next begins
  const char* line_at_;        // lines_ line feeds are before it
  std::uint32_t lines_ = 0;
  const SurveyOptions& options_;
  PageSurvey& survey_;
  std::vector<Attribute> attributes_;  // of the tag that was read last
  std::vector<ReferencePart> parts_;
  bool has_base_ = false;
};

}  // namespace

PageSurvey survey_page(std::string_view html, const SurveyOptions& options) {
  PageSurvey survey;
  Surveyor(html, options, survey).run();
  return survey;
}

}  // namespace argiope

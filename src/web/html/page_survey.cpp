// The survey of a page: its tags and their attributes, one after the other.
#include "web/html/internal/page_survey.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/internal/utf8.hpp"
#include "web/html/inner_text.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/internal/refresh_url.hpp"
#include "web/html/link_rules.hpp"
#include "web/html/tag_reader.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// One survey. Its work on a tag is here; how tags are found is the walker's.
class Surveyor : public TagReader<Surveyor> {
 public:
  // `depth`: in so many pages that attributes hold.
  Surveyor(std::string_view html, const SurveyOptions& options, int depth, PageSurvey& survey) noexcept
      : TagReader(html), line_at_(begin_), options_(options), depth_(depth), survey_(survey) {}

 private:
  friend HtmlWalker<Surveyor>;

  bool wants(const char*) const noexcept { return true; }

  std::string_view text_of(std::string_view name) {
    const Attribute* const found = attribute(name);
    return found == nullptr ? std::string_view{} : value(found->raw.substr(0, options_.max_value_bytes));
  }
  // The value that attribute text stands for.
  std::string_view value(std::string_view raw) {
    if (is_attribute_value(raw)) return raw;
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
    const TagKind kind = tag_kind(name);
    if ((foreign_.entered() || kind == TagKind::foreign_root) && foreign_.start_tag(name, self_closing_)) {
      foreign_element(name, p);
      return p;
    }
    return element(kind, name, p);
  }

  void note_id(std::string_view name) {
    const Attribute* const id = attribute("id");
    if (id != nullptr) add_id(id->raw);
    if (!equals_lower(name, "a")) return;
    if (const Attribute* const old = attribute("name")) add_id(old->raw);
  }
  void add_id(std::string_view raw) {
    if (raw.empty()) return;
    if (survey_.ids.size() >= options_.max_ids || raw.size() > options_.max_value_bytes) {
      survey_.has_all_ids = false;
    } else {
      survey_.ids.push_back(value(raw));
    }
  }

  // Says where to go on.
  const char* element(TagKind kind, std::string_view name, const char* behind_tag) {
    if (kind == TagKind::link) link();
    if (kind == TagKind::meta && !in_template()) meta();
    if (kind == TagKind::base && !in_template()) base();
    if (kind == TagKind::template_) open_template();
    if (!in_template() && equals_lower(name, "h1")) heading(behind_tag);
    each_url(name, [&](const UrlAttribute& row, const Attribute& found) { add_row(row, found.raw, behind_tag); });
    switch (kind) {
      case TagKind::raw_text: return raw_text(behind_tag, name);
      case TagKind::script: return script(behind_tag);
      case TagKind::title:
      case TagKind::style: return text_element(kind, name, behind_tag);
      case TagKind::plaintext: return nullptr;
      default: return behind_tag;
    }
  }

  void foreign_element(std::string_view name, const char* behind_tag) {
    each_foreign_url(name, [&](const UrlAttribute& row, const Attribute& found) {
      // A reference that begins with "#" is in this very picture.
      if (is_followed(*row.kind) || !found.raw.starts_with('#')) add_row(row, found.raw, behind_tag);
    });
    if (!equals_lower(name, "style") || self_closing_) return;
    const ForeignStyle found = foreign_style(behind_tag);
    const std::string_view css = found.is_escaped ? value(found.text) : found.text;
    style(css, css.data() == found.text.data());
  }

  // Adds what an attribute says by a row of the table.
  void add_row(const UrlAttribute& row, std::string_view raw, const char* behind_tag) {
    if (!row.kind) return;
    const LinkKind kind = *row.kind;
    switch (row.syntax) {
      case ReferenceSyntax::url:
        if (SurveyedLink* const added = add(raw, kind)) describe(*added, behind_tag);
        return;
      case ReferenceSyntax::srcset: return add_srcset(raw, kind);
      case ReferenceSyntax::css: return style_attribute(raw);
      case ReferenceSyntax::html: return inner_page(raw, kind);
      case ReferenceSyntax::refresh:
        if (const std::string_view url = refresh_url(value(raw)); !url.empty()) add_value(url, kind);
        return;
      case ReferenceSyntax::base:
      case ReferenceSyntax::policy:
      case ReferenceSyntax::drop: return;
    }
  }

  void describe(SurveyedLink& link, const char* behind_tag) {
    if (link.kind == LinkKind::image || link.kind == LinkKind::area) link.label = text_of("alt");
    if (link.kind == LinkKind::anchor) link.behind = static_cast<std::size_t>(behind_tag - begin_);
    if (link.kind == LinkKind::anchor || link.kind == LinkKind::area) add_relations(link, text_of("rel"));
  }
  static void add_relations(SurveyedLink& link, std::string_view relations) {
    link.rel = relations;
    link.nofollow = has_word(relations, "nofollow");
  }

  void link() {
    const Attribute* const href = attribute("href");
    if (href == nullptr) return;
    const std::string_view relations = text_of("rel");
    const std::optional<LinkKind> kind = relation_of_link(relations, {}).kind;
    const bool is_canonical = has_word(relations, "canonical") && !in_template();
    if (is_canonical && survey_.canonical.empty()) survey_.canonical = value(href->raw);
    SurveyedLink* const added = kind ? add(href->raw, *kind) : nullptr;
    if (added == nullptr) return;
    add_relations(*added, relations);
    added->type = text_of("type");
  }

  void meta() {
    const Attribute* const content = attribute("content");
    if (content == nullptr) return;
    const std::string_view name = text_of("name");
    if (addresses_us(name)) survey_.robots.add(value(content->raw));
    if (equals_lower(trim_space(name), "description")) {
      if (survey_.descriptions++ == 0) survey_.description = collapsed(text_of("content"));
    }
  }
  bool addresses_us(std::string_view name) const {
    return equals_lower(name, "robots") || (!options_.agent.empty() && equals_ignoring_case(name, options_.agent));
  }

  void base() {
    const Attribute* const href = attribute("href");
    if (href == nullptr || std::exchange(has_base_, true)) return;
    if (href->raw.size() > options_.max_value_bytes) {
      ++survey_.dropped;
    } else {
      survey_.base_href = value(href->raw);
    }
  }

  void heading(const char* behind_tag) {
    if (survey_.headings++ > 0) return;
    survey_.heading =
        inner_text(rest(begin_), static_cast<std::size_t>(behind_tag - begin_), {"/h1", "h1"}, options_.max_text_bytes);
  }

  // From behind the start tag of a title or style to behind its end tag.
  const char* text_element(TagKind kind, std::string_view name, const char* p) {
    const char* const end = raw_text_end(p, name);
    const std::string_view text(p, end == nullptr ? end_ : end);
    if (kind == TagKind::style) style(text, true);
    if (kind == TagKind::title && !in_template() && survey_.titles++ == 0) {
      survey_.title = collapsed(value(text.substr(0, options_.max_value_bytes)));
    }
    return end == nullptr ? nullptr : skip_tag(end + 2);
  }

  // Adds the URLs to which a text refers in its own way: values are made of `text`, and begin there.
  template <class Add>
  void add_parts(std::string_view text, ReferenceSyntax syntax, Add add) {
    split_reference(text, syntax, ReferenceRole::object, parts_);
    for (const ReferencePart& part : parts_) {
      if (room() == 0) return void(++survey_.dropped);
      add(survey_.decoded.emplace_back(part_url(text, part)), part);
    }
  }
  // `is_in_page`: else it was decoded, and is told of by the line of its tag.
  void style(std::string_view css, bool is_in_page) {
    add_parts(css, ReferenceSyntax::css, [&](std::string_view url, const ReferencePart& part) {
      if (is_in_page) tag_ = std::max(tag_, css.data() + part.begin);
      add_value(url, part.role == ReferenceRole::stylesheet ? LinkKind::stylesheet : LinkKind::css);
    });
  }
  void style_attribute(std::string_view raw) {
    if (raw.size() > options_.max_value_bytes) return;
    add_parts(value(raw), ReferenceSyntax::css,
              [&](std::string_view url, const ReferencePart&) { add_value(url, LinkKind::css); });
  }
  void add_srcset(std::string_view raw, LinkKind kind) {
    if (raw.size() > options_.max_value_bytes) return void(++survey_.dropped);
    add_parts(value(raw), ReferenceSyntax::srcset,
              [&](std::string_view url, const ReferencePart&) { add_value(url, kind); });
  }
  // Its links are of kind `link`: a crawl does not follow them.
  void inner_page(std::string_view raw, LinkKind link) {
    if (depth_ == kDeepestPage) return;
    if (raw.size() > options_.max_value_bytes) return void(++survey_.dropped);
    SurveyOptions options = options_;
    options.max_links = room();
    PageSurvey inner;
    Surveyor(value(raw), options, depth_ + 1, inner).run();
    survey_.dropped += inner.dropped;
    for (const SurveyedLink& one : inner.links) {
      add_value(survey_.decoded.emplace_back(one.url), is_followed(one.kind) ? link : one.kind);
    }
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
    for_each_token(
        text, [](char c) { return is_space(c); },
        [&](std::string_view word) {
          if (out.size() <= options_.max_text_bytes) out.append(out.empty() ? "" : " ").append(word);
        });
    out.resize(cut_between_characters(out, options_.max_text_bytes).size());
    return out;
  }

  const char* tag_ = nullptr;  // where the link that is added next begins
  const char* line_at_;        // lines_ line feeds are before it
  std::uint32_t lines_ = 0;
  const SurveyOptions& options_;
  const int depth_;
  PageSurvey& survey_;
  std::vector<ReferencePart> parts_;
  bool has_base_ = false;
};

}  // namespace

PageSurvey survey_page(std::string_view html, const SurveyOptions& options) {
  PageSurvey survey;
  Surveyor(html, options, 0, survey).run();
  return survey;
}

}  // namespace argiope

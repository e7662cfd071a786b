// The notes that a crawl wants of a page's start tags, by those that go through them: scan_links(), or
// scan_references() in the same pass. Private to the web module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/web/link_scanner.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/html/internal/refresh_url.hpp"
#include "web/html/link_rules.hpp"
#include "web/html/url_table.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

enum class LinkTag : std::uint8_t {
  none,
  a,
  area,
  base,
  frame,
  iframe,
  link,
  meta,
  raw_text,
  script,
  plaintext,
  template_,
  foreign_root
};

constexpr LinkTag link_tag_named(std::string_view name) noexcept {
  if (name.size() > 8) return equals_lower(name, "plaintext") ? LinkTag::plaintext : LinkTag::none;
  switch (pack_name(name)) {
    case pack_name("a"): return LinkTag::a;
    case pack_name("area"): return LinkTag::area;
    case pack_name("base"): return LinkTag::base;
    case pack_name("frame"): return LinkTag::frame;
    case pack_name("iframe"): return LinkTag::iframe;
    case pack_name("link"): return LinkTag::link;
    case pack_name("meta"): return LinkTag::meta;
    case pack_name("script"): return LinkTag::script;
    case pack_name("template"): return LinkTag::template_;
    case pack_name("style"):
    case pack_name("title"):
    case pack_name("textarea"):
    case pack_name("noembed"):
    case pack_name("noframes"):
    case pack_name("xmp"): return LinkTag::raw_text;
    case pack_name("svg"):
    case pack_name("math"): return LinkTag::foreign_root;
    default: return LinkTag::none;
  }
}

// An attribute to look for, and its value as written once found.
struct WantedAttribute {
  std::string_view name;
  std::string_view raw{};
  bool found = false;
};

// Forgets the page before.
void forget_links(ScanResult& result);

// Of one page, `result` having been emptied.
class LinkNotes {
 public:
  LinkNotes(const char* begin, const char* end, const ScanOptions& options, ScanResult& result) noexcept
      : begin_(begin), end_(end), options_(options), result_(result) {}

  // Of a start tag: `read(std::span<WantedAttribute>)` fills in what the tag has of these, and says where it ends;
  // null: it does not. That is returned.
  template <class Read>
  const char* take(LinkTag tag, bool in_foreign, bool in_template, Read read) {
    const bool is_of_page = tag == LinkTag::base || tag == LinkTag::meta;
    if (in_template && is_of_page) return read(std::span<WantedAttribute>{});
    switch (tag) {
      case LinkTag::a: return hyperlink(LinkKind::anchor, in_foreign, read);
      case LinkTag::area: return hyperlink(LinkKind::area, in_foreign, read);
      case LinkTag::base: return base(read);
      case LinkTag::frame:
      case LinkTag::iframe: return frame(read);
      case LinkTag::link: return link(read);
      case LinkTag::meta: return meta(read);
      default: return read(std::span<WantedAttribute>{});
    }
  }

 private:
  template <class Read>
  const char* hyperlink(LinkKind kind, bool in_foreign, Read read) {
    WantedAttribute wanted[] = {{"href"}, {"rel"}, {"xlink:href"}};
    const char* const p = read(wanted);
    if (p == nullptr) return p;
    const WantedAttribute& href = wanted[0].found || !in_foreign ? wanted[0] : wanted[2];  // SVG 1.1 and its successor
    if (href.found && add_link(href.raw, kind, has_word(rel(wanted[1]), "nofollow")) && options_.note_places) {
      result_.behind.back() = static_cast<std::size_t>(p - begin_);
    }
    return p;
  }

  // Words beyond the limit of a value do not count: a list is gone through more than once.
  std::string_view rel(const WantedAttribute& attribute) {
    return value(attribute.raw.substr(0, options_.max_value_bytes));
  }

  template <class Read>
  const char* link(Read read) {
    WantedAttribute wanted[] = {{"href"}, {"rel"}};
    const char* const p = read(wanted);
    if (p == nullptr || !wanted[0].found || !wanted[1].found) return p;
    const std::string_view relations = rel(wanted[1]);
    const LinkRelation* const followed = followed_relation(relations);
    if (followed != nullptr) add_link(wanted[0].raw, *followed->kind, has_word(relations, "nofollow"));
    return p;
  }

  template <class Read>
  const char* frame(Read read) {
    WantedAttribute wanted[] = {{"src"}};
    const char* const p = read(wanted);
    if (p != nullptr && wanted[0].found) add_link(wanted[0].raw, LinkKind::frame, false);
    return p;
  }

  template <class Read>
  const char* base(Read read) {
    WantedAttribute wanted[] = {{"href"}};
    const char* const p = read(wanted);
    if (p == nullptr || !wanted[0].found || std::exchange(has_base_, true)) return p;
    if (wanted[0].raw.size() > options_.max_value_bytes) {
      ++result_.dropped;
    } else {
      result_.base_href = value(wanted[0].raw);
    }
    return p;
  }

  template <class Read>
  const char* meta(Read read) {
    WantedAttribute wanted[] = {{"name"}, {"http-equiv"}, {"content"}};
    const char* const p = read(wanted);
    if (p == nullptr || !wanted[2].found) return p;
    const bool for_robots = wanted[0].found && addresses_us(value(wanted[0].raw));
    const bool refreshes = wanted[1].found && equals_lower(value(wanted[1].raw), "refresh");
    if (!for_robots && !refreshes) return p;
    const std::string_view content = value(wanted[2].raw);
    if (for_robots) result_.robots.add(content);
    if (!refreshes) return p;
    if (const std::string_view url = refresh_url(content); !url.empty()) add_decoded(url, LinkKind::refresh, false);
    return p;
  }

  bool addresses_us(std::string_view name) const {
    const auto same = [](char a, char b) { return to_lower(a) == to_lower(b); };
    return equals_lower(name, "robots") || (!options_.agent.empty() && std::ranges::equal(name, options_.agent, same));
  }

  // The value that the attribute text `raw` stands for. Valid until the next scan: each byte of the page is decoded at
  // most once and to at most three, so a buffer of thrice the page never moves.
  std::string_view value(std::string_view raw) {
    if (is_attribute_value(raw)) return raw;
    std::vector<char>& out = result_.decoded;
    if (out.empty()) out.reserve(3 * static_cast<std::size_t>(end_ - begin_));
    const std::size_t start = out.size();
    append_attribute_value(raw, out);
    return {out.data() + start, out.size() - start};
  }

  bool add_link(std::string_view raw, LinkKind kind, bool nofollow) {
    return has_room(raw) && (add(value(raw), kind, nofollow), true);
  }
  void add_decoded(std::string_view url, LinkKind kind, bool nofollow) {
    if (has_room(url)) add(url, kind, nofollow);
  }
  void add(std::string_view url, LinkKind kind, bool nofollow) {
    result_.links.push_back({url, kind, nofollow});
    if (options_.note_places) result_.behind.push_back(0);
  }
  bool has_room(std::string_view url) noexcept {
    if (url.size() <= options_.max_value_bytes && result_.links.size() < options_.max_links) return true;
    ++result_.dropped;
    return false;
  }

  const char* begin_;
  const char* end_;
  const ScanOptions& options_;
  ScanResult& result_;
  bool has_base_ = false;
};

}  // namespace argiope

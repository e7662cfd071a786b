#include "argiope/web/link_scanner.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/internal/utf8.hpp"
#include "web/byte_search.hpp"
#include "web/html_entities.hpp"
#include "web/html_walker.hpp"
#include "web/inner_text.hpp"
#include "web/internal/ascii.hpp"
#include "web/link_rules.hpp"

namespace argiope {
namespace {

// What a finished page's decoded values may keep allocated for the next page.
constexpr std::size_t kKeptBytes = 1 << 20;

enum class Tag : std::uint8_t {
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
  foreign_root
};

constexpr Tag tag_named(std::string_view name) noexcept {
  if (name.size() > 8) return equals_lower(name, "plaintext") ? Tag::plaintext : Tag::none;
  switch (pack_name(name)) {
    case pack_name("a"): return Tag::a;
    case pack_name("area"): return Tag::area;
    case pack_name("base"): return Tag::base;
    case pack_name("frame"): return Tag::frame;
    case pack_name("iframe"): return Tag::iframe;
    case pack_name("link"): return Tag::link;
    case pack_name("meta"): return Tag::meta;
    case pack_name("script"): return Tag::script;
    case pack_name("style"):
    case pack_name("title"):
    case pack_name("textarea"):
    case pack_name("noembed"):
    case pack_name("noframes"):
    case pack_name("xmp"): return Tag::raw_text;
    case pack_name("svg"):
    case pack_name("math"): return Tag::foreign_root;
    default: return Tag::none;
  }
}

// A quick no for nine tags in ten: bit c1 % 32 of entry c0 % 32 is set where a name that begins with c0, c1 may
// matter. Letters of both cases share a bit, and so do some letters with what may follow the `a` of `<a>`.
constexpr std::array<std::uint32_t, 32> kMayMatter = [] {
  std::array<std::uint32_t, 32> table{};
  const auto allow = [&table](char first, std::string_view seconds) {
    for (const char second : seconds) table[first % 32] |= 1u << (second % 32);
  };
  allow('a', "r \t\n\f\r/>");  // a, area
  allow('b', "a");             // base
  allow('f', "r");             // frame
  allow('i', "f");             // iframe
  allow('l', "i");             // link
  allow('m', "ea");            // meta, math
  allow('n', "o");             // noembed, noframes
  allow('p', "l");             // plaintext
  allow('s', "ctv");           // script, style, svg
  allow('t', "ei");            // textarea, title
  allow('x', "m");             // xmp
  return table;
}();

constexpr bool may_matter(const char* name) noexcept {
  return (kMayMatter[static_cast<unsigned char>(name[0]) % 32] >> (static_cast<unsigned char>(name[1]) % 32) & 1) != 0;
}

// An attribute to look for, and its value as written once found.
struct Wanted {
  std::string_view name;
  std::string_view raw{};
  bool found = false;
};

// One scan.
class Scanner : public HtmlWalker<Scanner> {
 public:
  Scanner(std::string_view html, const ScanOptions& options, ScanResult& result) noexcept
      : HtmlWalker(html), options_(options), result_(result) {}

 private:
  friend HtmlWalker;

  bool wants(const char* name) const noexcept { return may_matter(name); }

  const char* attributes(const char* p, std::span<Wanted> wanted) {
    return HtmlWalker::attributes(p, [wanted](std::string_view name, std::string_view raw) {
      for (Wanted& w : wanted) {
        if (w.found || !equals_lower(name, w.name)) continue;
        w.raw = raw;
        w.found = true;
      }
    });
  }

  const char* start_tag(const char* name) {
    const char* const p = behind_name(name);
    const Tag tag = tag_named({name, p});
    if (foreign_.entered() || tag == Tag::foreign_root) [[unlikely]] {
      const char* const behind_tag = attributes(p, {});
      if (behind_tag == nullptr) return nullptr;
      if (foreign_.start_tag({name, p}, self_closing_) && tag != Tag::a) return behind_tag;
    }
    switch (tag) {
      case Tag::foreign_root:
      case Tag::none: return attributes(p, {});
      case Tag::a: return hyperlink(p, LinkKind::anchor);
      case Tag::area: return hyperlink(p, LinkKind::area);
      case Tag::base: return base(p);
      case Tag::frame: return frame(p);
      case Tag::iframe: return raw_text(frame(p), "iframe");
      case Tag::link: return link(p);
      case Tag::meta: return meta(p);
      case Tag::raw_text: return raw_text(attributes(p, {}), {name, p});
      case Tag::script: return script(attributes(p, {}));
      case Tag::plaintext: return nullptr;
    }
    __builtin_unreachable();
  }

  const char* hyperlink(const char* p, LinkKind kind) {
    Wanted wanted[] = {{"href"}, {"rel"}, {"xlink:href"}};
    p = attributes(p, wanted);
    if (p == nullptr) return p;
    const Wanted& href = wanted[0].found || !foreign_.active() ? wanted[0] : wanted[2];  // SVG 1.1 and its successor
    if (href.found && add_link(href.raw, kind, has_word(rel(wanted[1]), "nofollow")) && options_.note_places) {
      result_.behind.back() = static_cast<std::size_t>(p - begin_);
    }
    return p;
  }

  // Words beyond the limit of a value do not count: a list is gone through more than once.
  std::string_view rel(const Wanted& attribute) { return value(attribute.raw.substr(0, options_.max_value_bytes)); }

  const char* link(const char* p) {
    Wanted wanted[] = {{"href"}, {"rel"}};
    p = attributes(p, wanted);
    if (p == nullptr || !wanted[0].found || !wanted[1].found) return p;
    const std::string_view relations = rel(wanted[1]);
    LinkKind kind;
    if (kind_of_rel(relations, kind)) add_link(wanted[0].raw, kind, has_word(relations, "nofollow"));
    return p;
  }

  const char* frame(const char* p) {
    Wanted wanted[] = {{"src"}};
    p = attributes(p, wanted);
    if (p != nullptr && wanted[0].found) add_link(wanted[0].raw, LinkKind::frame, false);
    return p;
  }

  const char* base(const char* p) {
    Wanted wanted[] = {{"href"}};
    p = attributes(p, wanted);
    if (p == nullptr || !wanted[0].found || std::exchange(has_base_, true)) return p;
    if (wanted[0].raw.size() > options_.max_value_bytes) {
      ++result_.dropped;
    } else {
      result_.base_href = value(wanted[0].raw);
    }
    return p;
  }

  const char* meta(const char* p) {
    Wanted wanted[] = {{"name"}, {"http-equiv"}, {"content"}};
    p = attributes(p, wanted);
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

  // What the attribute text `raw` stands for. Valid until the next scan: each byte of the page is decoded at most once
  // and to at most three, so a buffer of thrice the page never moves.
  std::string_view value(std::string_view raw) {
    const char* const last = raw.data() + raw.size();
    if (find_byte(raw.data(), last, '&', '\0', '\r') == last) return raw;
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

  const ScanOptions& options_;
  ScanResult& result_;
  bool has_base_ = false;
};

}  // namespace

std::string_view to_string(LinkKind kind) noexcept {
  switch (kind) {
    case LinkKind::anchor: return "anchor";
    case LinkKind::area: return "area";
    case LinkKind::canonical: return "canonical";
    case LinkKind::next: return "next";
    case LinkKind::prev: return "prev";
    case LinkKind::alternate: return "alternate";
    case LinkKind::other: return "other";
    case LinkKind::frame: return "frame";
    case LinkKind::refresh: return "refresh";
    case LinkKind::image: return "image";
    case LinkKind::script: return "script";
    case LinkKind::stylesheet: return "stylesheet";
    case LinkKind::icon: return "icon";
    case LinkKind::media: return "media";
    case LinkKind::embedded: return "embedded";
    case LinkKind::css: return "css";
    case LinkKind::resource: return "resource";
  }
  return "unknown";
}

std::string inner_text(std::string_view html, std::size_t behind, std::initializer_list<std::string_view> ends,
                       std::size_t most) {
  constexpr std::size_t kMostLookedAt = 64 * 1024;
  html = html.substr(std::min(behind, html.size()), kMostLookedAt);
  const auto tag_is = [](std::string_view tag, std::string_view name) {
    return tag.size() > name.size() && equals_lower(tag.substr(0, name.size()), name) &&
           (tag[name.size()] == '>' || tag[name.size()] == '/' || is_tag_char(tag[name.size()], kTagSpace));
  };
  std::vector<char> text;
  for (std::size_t at = 0; at < html.size() && text.size() < most;) {
    if (html[at] != '<') {
      const std::size_t end = std::min(html.find('<', at), html.size());
      append_attribute_value(html.substr(at, end - at), text);
      at = end;
      continue;
    }
    const std::string_view tag = html.substr(at + 1);
    if (std::ranges::any_of(ends, [&](std::string_view end) { return tag_is(tag, end); })) break;
    if (tag.starts_with("!--")) {
      const std::size_t end = html.find("-->", at + 4);
      at = end == std::string_view::npos ? html.size() : end + 3;
      continue;
    }
    const std::size_t end = std::min(html.find('>', at), html.size());
    if (tag_is(tag, "img")) {
      const std::string_view image = html.substr(at, end - at);
      for (const char quote : {'"', '\''}) {
        const std::size_t alt = image.find(std::string(" alt=") + quote);
        if (alt == std::string_view::npos) continue;
        const std::string_view value = image.substr(alt + 6);
        append_attribute_value(value.substr(0, value.find(quote)), text);
        break;
      }
    }
    text.push_back(' ');  // two blocks are two words
    at = std::min(end + 1, html.size());
  }
  std::string collapsed;
  for (const char c : text) {
    if (!is_tag_char(c, kTagSpace)) {
      collapsed += c;
    } else if (!collapsed.empty() && collapsed.back() != ' ') {
      collapsed += ' ';
    }
  }
  collapsed.resize(cut_between_characters(collapsed, most).size());
  if (collapsed.ends_with(' ')) collapsed.pop_back();
  return collapsed;
}

std::string link_text(std::string_view html, std::size_t behind) {
  constexpr std::size_t kMostText = 1000;
  return inner_text(html, behind, {"/a", "a"}, kMostText);
}

void scan_links(std::string_view html, const ScanOptions& options, ScanResult& result) {
  result.links.clear();
  result.behind.clear();
  result.dropped = 0;
  result.base_href = {};
  result.robots = {};
  result.decoded.clear();
  if (result.decoded.capacity() > kKeptBytes) result.decoded.shrink_to_fit();
  Scanner(html, options, result).run();
}

}  // namespace argiope

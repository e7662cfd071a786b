#include "argiope/web/link_scanner.hpp"

#include <span>

#include "web/html/internal/html_walker.hpp"
#include "web/html/link_notes.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/byte_search.hpp"

namespace argiope {
namespace {

// The bytes that a finished page's decoded values may keep allocated for the next page.
constexpr std::size_t kKeptBytes = 1 << 20;

constexpr TagBeginnings kMayMatter = {"a",     "area", "base",     "frame",    "iframe",    "link",
                                      "meta",  "math", "noembed",  "noframes", "plaintext", "script",
                                      "style", "svg",  "template", "textarea", "title",     "xmp"};

// One scan.
class Scanner : public HtmlWalker<Scanner> {
 public:
  Scanner(std::string_view html, const ScanOptions& options, ScanResult& result) noexcept
      : HtmlWalker(html), notes_(begin_, end_, options, result) {}

 private:
  friend HtmlWalker;

  bool wants(const char* name) const noexcept { return kMayMatter.may_be(name); }

  const char* attributes(const char* p, std::span<WantedAttribute> wanted) {
    return HtmlWalker::attributes(p, [wanted](std::string_view name, std::string_view raw) {
      for (WantedAttribute& w : wanted) {
        if (w.found || !equals_lower(name, w.name)) continue;
        w.raw = raw;
        w.found = true;
      }
    });
  }

  const char* start_tag(const char* name) {
    const char* const p = behind_name(name);
    const LinkTag tag = link_tag_named({name, p});
    if (foreign_.entered() || tag == LinkTag::foreign_root) [[unlikely]] {
      const char* const behind_tag = attributes(p, {});
      if (behind_tag == nullptr) return nullptr;
      if (foreign_.start_tag({name, p}, self_closing_) && tag != LinkTag::a) return behind_tag;
    }
    const auto read = [this, p](std::span<WantedAttribute> wanted) { return attributes(p, wanted); };
    switch (tag) {
      case LinkTag::iframe: return raw_text(notes_.take(tag, foreign_.active(), in_template(), read), "iframe");
      case LinkTag::raw_text: return raw_text(attributes(p, {}), {name, p});
      case LinkTag::script: return script(attributes(p, {}));
      case LinkTag::plaintext: return nullptr;
      case LinkTag::template_: open_template(); return attributes(p, {});
      default: return notes_.take(tag, foreign_.active(), in_template(), read);
    }
  }

  LinkNotes notes_;
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
    case LinkKind::mention: return "mention";
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

void forget_links(ScanResult& result) {
  result.links.clear();
  result.behind.clear();
  result.dropped = 0;
  result.base_href = {};
  result.robots = {};
  result.decoded.clear();
  if (result.decoded.capacity() > kKeptBytes) result.decoded.shrink_to_fit();
}

void scan_links(std::string_view html, const ScanOptions& options, ScanResult& result) {
  forget_links(result);
  Scanner(html, options, result).run();
}

}  // namespace argiope

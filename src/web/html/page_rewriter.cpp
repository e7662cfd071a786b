#include "web/html/internal/page_rewriter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "base/internal/utf8.hpp"
#include "web/html/internal/css_references.hpp"
#include "web/html/internal/html_entities.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kNoPolicy = "not-content-security-policy";

// `text` is UTF-8, or in the page's own bytes; with `by_number` the former, and the page's are others.
void append_in_attribute(std::string_view text, bool by_number, std::string& out) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (by_number && static_cast<unsigned char>(c) >= 0x80) {
      const std::size_t length = utf8_length(text.substr(at));
      const char32_t character =
          length == 0 ? U'\uFFFD' : code_point_of(text.substr(at, length));  // a byte that is none
      out += fmt::format("&#{};", static_cast<std::uint32_t>(character));
      at += std::max<std::size_t>(length, 1) - 1;
      continue;
    }
    switch (c) {
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
}

// A URL in a text with its own syntax: what would end it there is escaped.
std::string fitted(std::string url, ReferenceSyntax syntax, const ReferencePart& part) {
  if (part.in_css) {
    std::string escaped;
    append_css_escaped(url, part.quote, escaped);
    return escaped;
  }
  const auto escape = [&url](std::string_view what) {
    for (std::size_t at = 0; (at = url.find_first_of(what, at)) != std::string::npos; at += 3) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(url[at]);
      url.replace(at, 1, {'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  };
  if (syntax == ReferenceSyntax::refresh) escape("'\"");
  if (syntax == ReferenceSyntax::srcset && (url.starts_with(',') || url.ends_with(','))) escape(",");
  return url;
}

// Some bytes of the page, and what comes in their place.
struct Edit {
  std::size_t begin = 0;
  std::size_t size = 0;
  std::string text;
  bool only_if_here = false;
};

class PageRewrite {
 public:
  PageRewrite(std::string_view html, std::string_view encoding, const RewriteOptions& options,
              const RewriteUrl& rewrite, int depth, std::string& out)
      : html_(html), encoding_(encoding), options_(options), rewrite_(rewrite), depth_(depth), out_(out) {}

  // True if anything was changed.
  bool run(const PageReferences& references) {
    head_ = references.head;
    const std::span<const PageReference> found(references.found);
    for (std::size_t first = 0; first < found.size();) {
      std::size_t last = first + 1;
      while (last < found.size() && found[last].tag == found[first].tag) ++last;
      tag(found.subspan(first, last - first));
      first = last;
    }
    declare_before(html_.size());
    out_ += html_.substr(copied_);
    return changed_;
  }

 private:
  // All references of one tag.
  void tag(std::span<const PageReference> references) {
    edits_.clear();
    here_ = false;
    for (const PageReference& reference : references) one(reference);
    for (const Edit& edit : edits_) {
      if (!edit.only_if_here || here_) apply(edit);
    }
  }

  void apply(const Edit& edit) {
    declare_before(edit.begin);
    out_ += html_.substr(copied_, edit.begin - copied_);
    out_ += edit.text;
    copied_ = edit.begin + edit.size;
    changed_ = true;
  }
  // The head stands before what is changed next: its new content comes first.
  void declare_before(std::size_t place) {
    if (declared_ || options_.declare_charset.empty() || place < head_) return;
    declared_ = true;
    out_ += html_.substr(copied_, head_ - copied_);
    out_ += "<meta charset=\"";
    out_ += options_.declare_charset;
    out_ += "\">";
    copied_ = head_;
    changed_ = true;
  }

  void one(const PageReference& reference) {
    const std::string_view raw = html_.substr(reference.begin, reference.size);
    switch (reference.syntax) {
      case ReferenceSyntax::base:
        if (options_.as_file && !raw.empty()) replace_all(reference, "");
        return;
      case ReferenceSyntax::policy:
        if (options_.as_file) replace_all(reference, kNoPolicy);
        return;
      case ReferenceSyntax::drop: edits_.push_back({reference.begin, reference.size, {}, true}); return;
      case ReferenceSyntax::html: return inner_page(reference, raw);
      case ReferenceSyntax::url:
        if (reads_as_written(reference, raw)) return plain_url(reference, raw);
        [[fallthrough]];
      default: return parts(reference, raw);
    }
  }

  // Whether the bytes are what they mean.
  bool reads_as_written(const PageReference& reference, std::string_view raw) const noexcept {
    if (is_other(raw)) return false;
    return !reference.in_attribute || is_attribute_value(raw);
  }

  void plain_url(const PageReference& reference, std::string_view raw) {
    const std::string_view url = trim_space(raw);
    if (auto text = decide(url, reference.role)) replace_all(reference, *text);
  }

  // The text that comes in the place of a URL, if it changes.
  std::optional<std::string> decide(std::string_view url, ReferenceRole role) {
    if (url.empty()) return std::nullopt;
    text_.clear();
    const Rewritten what = rewrite_(url, role, text_);
    here_ = here_ || what == Rewritten::here;
    if (what == Rewritten::as_it_was || text_ == url) return std::nullopt;
    return text_;
  }

  // Whether the bytes are of another encoding than UTF-8, and it matters.
  bool is_other(std::string_view raw) const noexcept { return encoding_ != "UTF-8" && !is_ascii(raw); }

  // Rewrites a reference that holds URLs among other things, or means another text than it is.
  void parts(const PageReference& reference, std::string_view raw) {
    // In the page's own bytes where that can be: what is not a URL need not be understood.
    const bool in_own_bytes = is_other(raw) && (!reference.in_attribute || !raw.contains('&'));
    const std::string text = in_own_bytes ? std::string(raw) : reference_text(raw, reference.in_attribute, encoding_);
    split_reference(text, reference.syntax, reference.role, parts_);
    const bool by_parts = text == raw && !reference.is_bare;
    const bool by_number = !in_own_bytes && is_other(raw);
    std::string whole;
    std::size_t taken = 0;
    for (const ReferencePart& part : parts_) {
      std::string meant = part_url(text, part);
      if (in_own_bytes) meant = reference_text(meant, false, encoding_);
      auto url = decide(trim_space(meant), part.role);
      if (!url) continue;
      const std::string fitting = fitted(std::move(*url), reference.syntax, part);
      if (by_parts) {
        edits_.push_back({reference.begin + part.begin, part.size, in_its_place(reference, fitting, false)});
      } else {
        whole += text.substr(taken, part.begin - taken);
        whole += fitting;
        taken = part.begin + part.size;
      }
    }
    if (taken == 0) return;
    whole += text.substr(taken);
    replace_all(reference, whole, by_number);
  }

  void inner_page(const PageReference& reference, std::string_view raw) {
    if (depth_ == kDeepestPage) return;
    const std::string text = reference_text(raw, true, encoding_);
    PageReferences references;
    scan_references(text, references);
    std::string page;
    const RewriteOptions inner{.as_file = options_.as_file};
    if (PageRewrite(text, "UTF-8", inner, rewrite_, depth_ + 1, page).run(references)) {
      replace_all(reference, page, encoding_ != "UTF-8");
    }
  }

  static std::string in_its_place(const PageReference& reference, std::string_view text, bool by_number) {
    if (!reference.in_attribute) return std::string(text);
    std::string escaped;
    append_in_attribute(text, by_number, escaped);
    return escaped;
  }
  void replace_all(const PageReference& reference, std::string_view text, bool by_number = false) {
    std::string written = in_its_place(reference, text, by_number);
    if (reference.is_bare) written = "\"" + written + "\"";
    edits_.push_back({reference.begin, reference.size, std::move(written)});
  }

  std::string_view html_;
  std::string_view encoding_;
  const RewriteOptions& options_;
  const RewriteUrl& rewrite_;
  const int depth_;
  std::string& out_;
  std::size_t head_ = 0;
  std::size_t copied_ = 0;  // bytes of the page that are in `out_`, or replaced there
  bool declared_ = false;
  bool changed_ = false;
  bool here_ = false;  // a URL of this tag leads to a file
  std::vector<Edit> edits_;
  std::vector<ReferencePart> parts_;
  std::string text_;
};

void visit_page_assets(std::string_view html, const PageReferences& references, std::string_view encoding,
                       const VisitUrl& visit, int depth) {
  std::vector<ReferencePart> parts;
  for (const PageReference& reference : references.found) {
    if (reference.syntax == ReferenceSyntax::html && depth < kDeepestPage) {
      const std::string text =
          reference_text(html.substr(reference.begin, reference.size), reference.in_attribute, encoding);
      PageReferences inner;
      scan_references(text, inner);
      visit_page_assets(text, inner, "UTF-8", visit, depth + 1);
      continue;
    }
    if (!is_asset(reference.role)) continue;
    const std::string text =
        reference_text(html.substr(reference.begin, reference.size), reference.in_attribute, encoding);
    split_reference(text, reference.syntax, reference.role, parts);
    for (const ReferencePart& part : parts) {
      const std::string url = part_url(text, part);
      if (!trim_space(url).empty()) visit(trim_space(url), part.role);
    }
  }
}

}  // namespace

void rewrite_page(std::string_view html, const PageReferences& references, std::string_view encoding,
                  const RewriteOptions& options, const RewriteUrl& rewrite, std::string& out) {
  PageRewrite(html, encoding, options, rewrite, 0, out).run(references);
}

void rewrite_css(std::string_view css, const RewriteUrl& rewrite, std::string& out) {
  std::vector<CssReference> urls;
  find_css_references(css, urls);
  std::size_t copied = 0;
  std::string text;
  for (const CssReference& one : urls) {
    const std::string url = unescape_css(css.substr(one.begin, one.size));
    const std::string_view trimmed = trim_space(url);
    if (trimmed.empty()) continue;
    text.clear();
    const Rewritten what = rewrite(trimmed, one.is_import ? ReferenceRole::stylesheet : ReferenceRole::object, text);
    if (what == Rewritten::as_it_was || text == trimmed) continue;
    out += css.substr(copied, one.begin - copied);
    append_css_escaped(text, one.quote, out);
    copied = one.begin + one.size;
  }
  out += css.substr(copied);
}

void visit_assets(std::string_view html, const PageReferences& references, std::string_view encoding,
                  const VisitUrl& visit) {
  visit_page_assets(html, references, encoding, visit, 0);
}

void visit_style_assets(std::string_view css, const VisitUrl& visit) {
  std::vector<CssReference> urls;
  find_css_references(css, urls);
  for (const CssReference& one : urls) {
    const std::string url = unescape_css(css.substr(one.begin, one.size));
    if (trim_space(url).empty()) continue;
    visit(trim_space(url), one.is_import ? ReferenceRole::stylesheet : ReferenceRole::object);
  }
}

}  // namespace argiope

#include "crawl/save/mirror_pages.hpp"

#include <algorithm>
#include <utility>

#include "argiope/base/random.hpp"
#include "argiope/web/detail/charset.hpp"
#include "base/internal/fingerprint.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostKnownBytes = 8 * 1024 * 1024;  // of links that a thread remembers
constexpr std::size_t kKnownOverhead = 96;
constexpr int kMostLinkHops = 20;  // of redirects, from a link to its file

bool is_mirrored_scheme(const Url& url) noexcept { return url.scheme() == "http" || url.scheme() == "https"; }

// Whether a browser that opens the file reads it as another encoding than the server has said.
bool needs_charset_declaration(std::string_view text, const CharsetDecision& charset) {
  using Source = CharsetDecision::Source;
  if (charset.source == Source::bom || charset.source == Source::meta || charset.source == Source::fallback)
    return false;
  if (is_ascii(text)) return false;
  const CharsetDecision from_disk = detect_charset(text, {});
  const bool is_declared = from_disk.source == Source::bom || from_disk.source == Source::meta;
  return !is_declared || from_disk.name != charset.name;
}

// A style sheet without what it says of its encoding, which is said anew.
std::string_view without_charset_rule(std::string_view css) noexcept {
  if (!css.starts_with("@charset \"")) return css;
  const std::size_t end = css.find("\";");
  return end < 100 ? css.substr(end + 2) : css;
}

}  // namespace

void MirrorPages::render(const MirrorRecord& record, std::string_view path, std::string_view text,
                         std::string_view references, std::string& out) {
  out.clear();
  const UrlStatus parsed = parse_into(page_, record.url, nullptr);
  if (parsed != UrlStatus::ok) {
    out = text;
  } else if (record.type.kind == FileKind::css) {
    render_style(record, path, text, out);
  } else {
    render_page(record, path, text, references, out);
  }
}

void MirrorPages::begin(std::string_view path, std::string_view base_href, std::string_view encoding) {
  path_ = path;
  has_base_ = !base_href.empty();
  resolver_.begin(page_, base_href, encoding);
  std::string_view base = resolver_.base().without_fragment();
  base = base.substr(0, base.find('?'));
  const std::string_view folder = path.substr(0, path.rfind('/') + 1);
  context_ = fingerprint(base.substr(0, base.rfind('/') + 1), fingerprint(folder) ^ fingerprint(encoding));
}

void MirrorPages::render_page(const MirrorRecord& record, std::string_view path, std::string_view text,
                              std::string_view references, std::string& out) {
  const CharsetDecision charset = detect_charset(text, record.content_type);
  const bool is_markup_of_xml = record.type.kind != FileKind::html;
  std::string_view encoding = charset.name;
  std::string_view declared;
  if (!charset.ascii_compatible) {
    // Nothing in it looks like markup to who reads bytes. XML would say what it no longer is.
    auto utf8 = to_utf8(text.substr(charset.bom_length), charset.name);
    if (is_markup_of_xml || !utf8) {
      out = text;
      return;
    }
    transcoded_ = std::move(*utf8);
    text = transcoded_;
    references = {};
    encoding = declared = "UTF-8";
  } else if (!is_markup_of_xml && needs_charset_declaration(text, charset)) {
    declared = charset.name;
  }
  if (!read_references(references, text.size(), references_)) scan_references(text, references_);
  begin(path, references_.base_href, charset.name);
  const RewriteOptions options{.declare_charset = declared};
  rewrite_page(
      text, references_, encoding, options,
      [this](std::string_view url, ReferenceRole role, std::string& to) { return rewrite(url, role, to); }, out);
}

void MirrorPages::render_style(const MirrorRecord& record, std::string_view path, std::string_view text,
                               std::string& out) {
  const CharsetDecision charset = detect_charset(text, record.content_type);
  const bool is_said = charset.source == CharsetDecision::Source::header || charset.bom_length > 0;
  if (is_said && !is_ascii(text) && (charset.name != "UTF-8" || charset.bom_length == 0)) {
    if (auto utf8 = to_utf8(text.substr(charset.bom_length), charset.name)) {
      transcoded_ = std::move(*utf8);
      text = without_charset_rule(transcoded_);
      out = "@charset \"UTF-8\";";
    }
  }
  begin(path, {}, "UTF-8");
  rewrite_css(
      text, [this](std::string_view url, ReferenceRole role, std::string& to) { return rewrite(url, role, to); }, out);
}

// A link and what stands in its place. Most are of the same few texts, page after page.
Rewritten MirrorPages::rewrite(std::string_view url, ReferenceRole role, std::string& out) {
  const std::size_t hash = std::min(url.find('#'), url.size());
  const std::string_view text = url.substr(0, hash);
  if (text.empty() && !has_base_) return Rewritten::as_it_was;
  // A URL that has a fragment, or is resolved against more than the folder, is decided for itself.
  if (hash != url.size() || text.empty() || text.front() == '?') {
    Known decided = decide(url, role);
    out += decided.text;
    return decided.what;
  }
  const bool is_plain = role != ReferenceRole::form && role != ReferenceRole::fixed;
  // Seeds that differ in few bits give short texts that differ in as many the same fingerprint.
  const std::uint64_t key = fingerprint(text, mix64(context_ ^ (is_plain ? 0 : 1)));
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_bytes_ > kMostKnownBytes) {
      known_.clear();
      known_bytes_ = 0;
    }
    known = known_.emplace(key, decide(text, role)).first;
    known_bytes_ += kKnownOverhead + known->second.text.size();
  }
  out += known->second.text;
  return known->second.what;
}

MirrorPages::Known MirrorPages::decide(std::string_view url, ReferenceRole role) {
  if (resolver_.resolve_with_fragment(url, target_) != UrlStatus::ok || !is_mirrored_scheme(target_)) return {};
  const bool stays_on_web = role == ReferenceRole::form || role == ReferenceRole::fixed;
  std::string fragment(target_.hash());
  const std::string_view file = stays_on_web ? std::string_view{} : file_of(target_.without_fragment(), fragment);
  if (file.empty()) return {Rewritten::elsewhere, target_.href()};
  const std::string reference = relative_reference(path_, file);
  const std::string_view written = url.substr(0, url.find('#'));
  // A reference that leads there already stays as it is.
  if (target_.hash() == fragment && is_same_reference(written, reference)) return {Rewritten::here, std::string(url)};
  return {Rewritten::here, reference + fragment};
}

// Empty: there is none. A redirect on the way may add a fragment.
std::string_view MirrorPages::file_of(std::string_view href, std::string& fragment) {
  for (int hops = 0; hops <= kMostLinkHops; ++hops) {
    const std::uint64_t url = index_.fingerprint_of(href);
    if (const MirrorPlan::File* const file = plan_.find(url)) return plan_.path_of(*file);
    const MirrorIndex::Entry* const entry = index_.find(url);
    if (entry == nullptr) return {};
    const MirrorRecord record = index_.at(entry->place);
    if (record.what != MirrorRecord::What::redirect) return {};
    if (parse_into(next_, record.location, nullptr) != UrlStatus::ok) return {};
    if (fragment.empty()) fragment = next_.hash();
    href = next_.without_fragment();
  }
  return {};
}

}  // namespace argiope

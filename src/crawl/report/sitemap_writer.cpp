// Sitemaps by the protocol of sitemaps.org (0.9).
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/xml.hpp"
#include "crawl/page/seen_answers.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostUrls = 50'000;
constexpr std::size_t kMostBytes = 50 * 1024 * 1024;
constexpr std::size_t kMostUrlBytes = 2'047;
constexpr std::string_view kNamespace = "http://www.sitemaps.org/schemas/sitemap/0.9";

// RFC 1952, the same bytes for the same text.
std::string gzipped(std::string_view text) {
  constexpr int kGzip = 15 + 16;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Pages that are in no index: those that say so, and those that are another page by their own word.
class LeftOut {
 public:
  static Result<LeftOut> read(UrlStore& store) {
    LeftOut left_out;
    auto scanned = store.scan_facts([&](const PageFacts& facts) {
      if (facts.noindex) left_out.hidden_.insert(facts.url_id);
      if (!facts.canonical.empty()) left_out.canonical_[facts.url_id] = fingerprint(facts.canonical);
      return true;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    return left_out;
  }
  bool has(const UrlRecord& record) const {
    const auto canonical = canonical_.find(record.url_id);
    return hidden_.contains(record.url_id) ||
           (canonical != canonical_.end() && canonical->second != fingerprint(record.url));
  }

 private:
  std::unordered_set<std::int64_t> hidden_;
  std::unordered_map<std::int64_t, std::uint64_t> canonical_;
};

// "map" and ".xml.gz" of map.xml.gz, whose parts are map-1.xml.gz, map-2.xml.gz …
std::pair<std::string, std::string> split_sitemap_name(const std::string& path) {
  const std::size_t slash = path.rfind('/') + 1;
  std::size_t dot = path.size() - (path.ends_with(".gz") ? 3 : 0);
  const std::size_t ending = path.rfind('.', dot - 1);
  if (ending != std::string::npos && ending > slash) dot = ending;
  return {path.substr(0, dot), path.substr(dot)};
}

class SitemapWriter {
 public:
  SitemapWriter(UrlStore& store, std::string path) : store_(store), path_(std::move(path)) {}

  Result<SitemapCount> write(const std::string& base) {
    if (!base.empty()) {
      const auto url = Url::parse(base);
      if (!url)
        return fail(Errc::invalid_input, fmt::format("sitemap base {}: {}", in_quotes(base), url.error().message));
      site_ = url->site_key();
      folder_ = url->href().substr(0, url->href().rfind('/') + 1);
    }
    const auto left_out = LeftOut::read(store_);
    if (!left_out) return std::unexpected(left_out.error());
    const auto unseen = UnseenPages::read(store_, kFactsDemand);
    if (!unseen) return std::unexpected(unseen.error());
    Result<void> failed;
    auto scanned = store_.scan(1, [&](const UrlRecord& record) {
      if (!is_for_indexes(record)) return true;
      if (unseen->has(record)) {
        ++count_.unknown;
      } else if (!left_out->has(record)) {
        failed = add(record);
      }
      return failed.has_value();
    });
    if (scanned && !failed) scanned = failed;
    if (scanned) scanned = finish();
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    return count_;
  }

 private:
  static bool is_for_indexes(const UrlRecord& record) {
    return record.state == UrlState::done && record.status_code == 200 && record.reason != UrlReason::asset &&
           record.reason != UrlReason::requisite && record.reason != UrlReason::checked &&
           is_html(record.content_type) && record.url.size() <= kMostUrlBytes;
  }

  Result<void> add(const UrlRecord& record) {
    const auto url = Url::parse(record.url);
    if (!url) return {};
    if (site_.empty()) site_ = url->site_key();
    if (url->site_key() != site_) {
      ++count_.other_sites;
      return {};
    }
    std::string entry = fmt::format("<url><loc>{}</loc>", xml_escaped(as_rfc3986(record.url)));
    if (const auto changed = parse_http_date(record.last_modified))
      entry += fmt::format("<lastmod>{}</lastmod>", to_rfc3339(*changed));
    entry += "</url>\n";
    if (in_part_ == kMostUrls || part_.size() + entry.size() + 64 > kMostBytes) {
      if (auto ended = end_part(); !ended) return ended;
    }
    if (in_part_ == 0)
      part_ = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{}\">\n", kNamespace);
    part_ += entry;
    ++in_part_;
    ++count_.urls;
    return {};
  }

  bool is_compressed() const { return path_.ends_with(".gz"); }

  Result<void> put(const std::string& path, std::string_view text) {
    OutputFile file("sitemap to", path);
    file.write(is_compressed() ? gzipped(text) : std::string(text));
    return file.finish();
  }

  std::string name_of(std::uint64_t part) const {
    const auto [stem, ending] = split_sitemap_name(path_);
    return fmt::format("{}-{}{}", stem, part, ending);
  }

  Result<void> end_part() {
    if (!OutputFile::is_plain(path_)) {
      return fail(Errc::refused,
                  fmt::format("sitemap to {}: it takes more than one file, and this is no plain file", path_));
    }
    part_ += "</urlset>\n";
    const std::string name = name_of(++count_.files);
    auto written = put(name, part_);
    part_.clear();
    in_part_ = 0;
    return written;
  }

  Result<void> finish() {
    if (count_.files == 0) {
      if (part_.empty())
        part_ = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{}\">\n", kNamespace);
      return put(path_, part_ + "</urlset>\n");
    }
    if (in_part_ > 0) {
      if (auto ended = end_part(); !ended) return ended;
    }
    std::string index =
        fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"{}\">\n", kNamespace);
    const std::string folder = folder_.empty() ? site_ + "/" : folder_;
    for (std::uint64_t part = 1; part <= count_.files; ++part) {
      const std::string name = name_of(part);
      index += fmt::format("<sitemap><loc>{}</loc></sitemap>\n",
                           xml_escaped(as_rfc3986(folder) + percent_encode(name.substr(name.rfind('/') + 1))));
    }
    return put(path_, index + "</sitemapindex>\n");
  }

  UrlStore& store_;
  const std::string path_;
  std::string site_, folder_;
  std::string part_;
  std::size_t in_part_ = 0;
  SitemapCount count_;
};

}  // namespace

Result<SitemapCount> write_sitemap(UrlStore& store, const std::string& path, const std::string& base) {
  return SitemapWriter(store, path).write(base);
}

bool is_sitemap_part(const std::string& path, std::string_view name) {
  auto [stem, ending] = split_sitemap_name(path);
  stem = stem.substr(stem.rfind('/') + 1) + "-";
  if (!name.starts_with(stem) || !name.ends_with(ending) || name.size() <= stem.size() + ending.size()) return false;
  return std::ranges::all_of(name.substr(stem.size(), name.size() - stem.size() - ending.size()), is_digit);
}

}  // namespace argiope

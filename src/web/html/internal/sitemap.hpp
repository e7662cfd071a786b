// The URLs that sitemaps and feeds list: sitemap XML and its indexes (sitemaps.org, 0.9) with the extensions for
// images, videos, news and languages, lists of URLs as text, RSS 0.9 to 2.0, and Atom.
//
// The bytes come from servers, who say what they like about them, so the bytes alone decide what a file is. Unlike
// libxml2 in its recovery the reader keeps an "&" that begins no reference, which is the commonest fault in sitemaps,
// as it is: URLs stay what they were. It declares no entities, and asks for nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "web/text/internal/feed_date.hpp"

namespace argiope {

enum class SitemapKind : std::uint8_t {
  none,   // neither sitemap nor feed
  urls,   // a sitemap
  index,  // of sitemaps
  text,   // a URL a line
  feed,   // RSS or Atom
};
std::string_view to_string(SitemapKind kind) noexcept;

enum class SitemapLink : std::uint8_t {
  page,       // of a sitemap, or an item of a feed
  sitemap,    // of an index
  alternate,  // the same page in another language or form
  enclosure,  // what a feed's item comes with
  image,      // a picture or video that is on the page
};

// Its views live until the visitor returns.
struct SitemapEntry {
  std::string_view url;   // references replaced, without space around it; not resolved
  std::string_view base;  // what it is relative to, itself relative to the file's URL; empty: that URL
  SitemapLink kind{};
  std::optional<FeedDate> modified{};  // of page and sitemap
  // Hints, which mean what who wrote them likes.
  std::string_view changefreq{};
  std::string_view priority{};
};

struct SitemapLimits {
  // The protocol allows 50 MiB and 50,000 entries.
  std::size_t most_bytes = 64 * 1024 * 1024;  // unpacked
  std::size_t most_entries = 100'000;         // pages, or sitemaps of an index
  std::size_t most_links = 200'000;           // all that is visited
  std::size_t most_url_bytes = 16 * 1024;     // of one; a longer one is dropped
};

struct SitemapReport {
  SitemapKind kind = SitemapKind::none;
  std::size_t entries = 0;  // pages, or sitemaps of an index
  std::size_t links = 0;    // all that was visited
  std::size_t dropped = 0;  // what is no URL, or too long
  bool cut = false;         // a limit ended the reading
  std::string trouble;      // why the rest was not read, in words; empty: all was
};

// Calls `visit` with each entry of `body` in its order, up to the limits or to where it cannot be read. gzip is told by
// its first bytes, and undone once more where a server has packed a packed file; `content_type` is asked for the
// charset alone.
//
// Cost:    linear in the unpacked bytes, whatever they are. Memory beside the body: the unpacked text, where it is
//          packed or not in UTF-8.
// Threads: any.
SitemapReport read_sitemap(std::string_view body, std::string_view content_type, const SitemapLimits& limits,
                           const std::function<void(const SitemapEntry&)>& visit);

}  // namespace argiope

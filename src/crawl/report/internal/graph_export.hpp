// The graph of a crawl as files for other programs: CSV, GraphML, DOT; and a sitemap of its pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

enum class GraphFormat : std::uint8_t {
  links_csv,  // a line a link, as pages have them; where no links are kept, as the crawl goes by them
  pages_csv,  // a line a page, with depth, inbound and outbound links, PageRank and what its head says
  // A line for each page that says the same as another one, exactly or nearly, and for each that names a canonical URL
  // which leads astray.
  duplicates_csv,
  graphml,
  dot,
};

// Writes to `path`, or with "-" to standard output, every URL that is no asset and every link between two of them. The
// file is there whole or not at all.
// Errors: io and disk_full naming the file, those of the store.
Result<void> export_graph(UrlStore& store, GraphFormat format, const std::string& path);

// The data of a store that a file of that format does not have, because no run that keeps it has read pages as they are
// now: a sentence, or nothing. Errors: the store's.
Result<std::string> words_on_missing(UrlStore& store, GraphFormat format);

struct SitemapCount {
  std::uint64_t urls = 0;
  std::uint64_t files = 0;  // beside the index, where there is one
  std::uint64_t unknown =
      0;  // pages left out, because nobody has looked whether they are for indexes (noindex, canonical)
  std::uint64_t other_sites =
      0;  // pages left out, because a sitemap is of one site (sitemaps.org, "Sitemap file location")
};

// Writes a sitemap of the pages of one site to `path`: HTML that was answered with 200, is not to be left out of
// indexes (noindex), and names no other page as its canonical. Where `base` is empty, the site is that of the first
// page.
//
// With more than 50,000 pages or 50 MiB it is an index of files beside it: map-1.xml, map-2.xml … for map.xml, which
// are looked for in the folder `base` ("https://example.org/maps/"; empty: the site's root). With a name that ends in
// ".gz" all are compressed. Files are there whole or not at all, the index last.
// Errors: invalid_input for a `base` that is no URL; io and disk_full naming the file, those of the store.
Result<SitemapCount> write_sitemap(UrlStore& store, const std::string& path, const std::string& base = {});
// Whether `name` is that of such a file: map-2.xml, of maps/map.xml.
bool is_sitemap_part(const std::string& path, std::string_view name);

}  // namespace argiope

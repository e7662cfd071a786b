// The changes of a site since a moment: from the changes that later fetches have noted, and the URLs that are new.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

enum class DiffKind : std::uint8_t {
  fresh,  // "new": fetched for the first time, and there
  gone,
  changed,
  moved,
  broken,
  mended,
};
inline constexpr std::size_t kDiffKinds = 6;
// As written in reports: "new", "gone" …
std::string_view to_string(DiffKind kind) noexcept;

// The change of a URL in all, whatever happened in between.
struct DiffEntry {
  DiffKind kind{};
  std::string url;
  WallTime at{};          // of the last change; of a new URL when it was met
  int status_before = 0;  // 0: no answer, or not known before
  int status_after = 0;
  std::string detail;  // moved: where to; broken: the error
};

struct CrawlDiff {
  WallTime since{};
  std::optional<std::int64_t> run_id;  // the run that began then
  std::array<std::uint64_t, kDiffKinds> counts{};
};

// Since when: the number of a run, a time (RFC 3339, or a date), a span before `now`; empty: the last run's beginning,
// or the beginning of time where none is known. Errors: invalid_input, not_found; the store's.
Result<CrawlDiff> parse_since(UrlStore& store, std::string_view text, WallTime now);

// Calls `visit` with each URL to which something has happened since then, by url_id, and counts. A URL that is only
// checked counts when it breaks or is mended; assets and sitemaps do not.
// Memory: some 100 bytes for each URL that has changed. Errors: the store's.
Result<void> diff_crawl(UrlStore& store, CrawlDiff& diff, const std::function<void(const DiffEntry&)>& visit);

enum class DiffFormat : std::uint8_t { text, json, csv };
// Both, to a file that is there whole or not at all; "-" is standard output. Errors: also io and disk_full naming the
// file.
Result<CrawlDiff> write_diff(UrlStore& store, CrawlDiff diff, DiffFormat format, const std::string& path);

}  // namespace argiope

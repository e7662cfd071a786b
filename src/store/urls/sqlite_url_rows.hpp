// Rows of the table `urls` and its neighbours: the schema, and how records are read and written in it. Nothing of when.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/store/detail/url_record.hpp"
#include "jobs/internal/stored_time.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope::url_rows {

extern const SqliteFormat kFormat;

// The columns of read_record() and read_to_go_on().
inline constexpr const char* kColumns =
    "url_id, url, ctime, mtime, state, due, depth, priority, status_code, content_type, size, attempts, referrer, "
    "redirect_to, etag, last_modified, digest, error, shelf, site, reason, met_limit";

inline constexpr const char* kColumnsToGoOn =
    "url_id, url, state, mtime, due, depth, priority, attempts, referrer, redirect_to, shelf, site, reason, met_limit";

// The columns of read_kept_link(), behind the page's url_id and the place.
inline constexpr const char* kLinkColumns = "from_id, place, to_id, href, kind, text, rel, line, fragment, error";

// The columns of read_facts(); with the anchors behind it.
inline constexpr const char* kFactColumns =
    "url_id, took_us, wire_bytes, title, description, heading, titles, descriptions, headings, canonical, noindex, "
    "words, simhash";

// The columns of read_url_run() and read_url_change().
inline constexpr const char* kRunColumns = "run_id, began, ended, finished, stopped_by, fetched";
inline constexpr const char* kChangeColumns = "url_id, at, kind, status_before, status_after, detail";

void read_url_run(const SqliteStatement& row, UrlRun& run);
void read_url_change(const SqliteStatement& row, UrlChange& change);
void read_record(const SqliteStatement& row, UrlRecord& record);
void read_kept_link(const SqliteStatement& row, KeptLink& link);
void read_facts(const SqliteStatement& row, PageFacts& facts);
// Only what UrlStore::Fields::to_go_on asks for.
void read_to_go_on(const SqliteStatement& row, UrlRecord& record);

// As the column `shelf` has it.
constexpr std::int64_t stored_shelf(Shelf shelf) noexcept { return static_cast<std::int64_t>(shelf) + 1; }

// Ids in ascending order, as the differences in LEB128.
void append_ids(std::string& out, const std::vector<std::int64_t>& ids);
void read_ids(std::string_view bytes, std::vector<std::int64_t>& ids);

// Eight bytes each, the least first.
void append_anchors(std::string& out, const std::vector<std::uint64_t>& anchors);
std::vector<std::uint64_t> read_anchors(std::string_view bytes);

using stored_time::to_ms;

}  // namespace argiope::url_rows

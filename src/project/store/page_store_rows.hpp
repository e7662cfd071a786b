// The tables of pages.db: their schema, and how records are read and written in them. Nothing of when. The meaning of
// the columns to people is in docs/projects.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jobs/internal/stored_time.hpp"
#include "project/store/internal/page_store.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope::page_rows {

using stored_time::from_ms;
using stored_time::to_ms;

extern const SqliteFormat kPageFormat;

constexpr PageId last_page_id(ProjectId project) noexcept {
  return first_page_id(project) + ((PageId{1} << kPageNumberBits) - 2);
}

// Names in the table `marks`.
inline constexpr std::string_view kLastFeedNumber = "last_feed_number";
inline constexpr std::string_view kLastProject = "last_project_id";

// The columns of read_narrow(). They are the first ones of a row, so that what lies behind them need not be read.
inline constexpr const char* kNarrowColumns =
    "page_id, fingerprint, host_id, rule_id, state, wait, again, priority, due, succeeded_at, ended_at, interval, "
    "retried, tag, round, own";
struct NarrowRow {
  PageId id = 0;
  std::uint64_t fingerprint = 0;
  std::uint32_t host_id = 0;
  std::int64_t rule_id = 0;
  KnownPage known;
  std::int64_t round = 0;
};
void read_narrow(const SqliteStatement& row, NarrowRow& page);
// The columns that read_page() reads behind them, and behind those `track`; all but the rule's name.
inline constexpr const char* kWideColumns =
    "status_code, crashes, digest, from_id, name, url, settings, context, save, etag, last_modified, error";
void read_page(const SqliteStatement& row, PageRecord& page, std::int64_t& rule_id);

// As parameters from `first` on, in the order of kNarrowColumns from `state` on. `own` must live until the statement is
// reset.
inline constexpr int kKnownParameters = 12;
void bind_known(SqliteStatement& statement, int first, const KnownPage& known, std::int64_t round,
                const std::string& own);

// The own terms of a page, as text: "priority=5 age=60000 retries=1 recrawl=1", ages in milliseconds, -1: never old.
std::string stored_own_terms(const OwnTerms& own);
OwnTerms read_own_terms(std::string_view stored);  // passes over what it does not know

inline constexpr const char* kProjectColumns =
    "project_id, name, version, status, group_name, rate, burst, pause, counters, description, trouble, made_at, "
    "changed_at, deleted_at, ticks, start_wanted";
void bind_project(SqliteStatement& statement, const ProjectRecord& project);
void read_project_row(const SqliteStatement& row, ProjectRecord& project);

inline constexpr const char* kVersionColumns = "project_id, number, made_at, text, source, script, note";
void bind_version(SqliteStatement& statement, const ProjectVersion& version);
void read_version(const SqliteStatement& row, ProjectVersion& version);

inline constexpr const char* kRoundColumns =
    "project_id, number, began, ended, finished_told, pages, failed, results, cause, coverage, alarms";
// Its coverage and its alarms, as JSON.
struct RoundTexts {
  std::string coverage, alarms;
};
RoundTexts stored_texts(const RoundRecord& round);
// `texts` must live until the statement is reset.
void bind_round(SqliteStatement& statement, const RoundRecord& round, const RoundTexts& texts);
void read_round(const SqliteStatement& row, RoundRecord& round);

inline constexpr const char* kSinkColumns = "project_id, name, cursor, place, trouble";
void bind_sink(SqliteStatement& statement, const SinkRow& sink);
void read_sink(const SqliteStatement& row, SinkRow& sink);

// As the column `news` has it.
constexpr std::int64_t stored_news(ResultNews news) noexcept { return static_cast<std::int64_t>(news); }
ResultNews read_news(std::int64_t stored) noexcept;

}  // namespace argiope::page_rows

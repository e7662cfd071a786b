// The end of a crawl, for people and for scripts.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/crawl/detail/crawl_report.hpp"
#include "argiope/crawl/sinks.hpp"
#include "crawl/check/internal/finding_news.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

// `database` and `export_file` are named in the advice on what to try next.
void print_report(std::FILE* out, const CrawlReport& report, std::string_view database, std::string_view export_file);

// Where many answers were files rather than pages: that they were fetched whole, and what leaves them out.
void print_files_hint(std::FILE* out, const CrawlReport& report);

// One line: the object that docs/crawl.md promises to scripts, with `cpu_seconds` and `peak_rss_mb` of this process.
// `trouble` is its member "error", unless it is empty; `check`, where links were checked, its member "findings", and
// `fresh`, where it is known, "findings_new"; `extraction`, where records were taken from pages, its object
// "extraction".
void print_summary(std::FILE* out, const CrawlReport& report, std::string_view trouble,
                   const CheckResult* check = nullptr, const ExtractionReport* extraction = nullptr,
                   std::optional<std::uint64_t> fresh = std::nullopt);
// The findings of a check of links, in a line or two. `database` is named in the advice on how to see it.
void print_check(std::FILE* out, const CheckResult& check, std::string_view database);
// Why a crawl with --fail-on-broken ends with 1, in one line. `check`: where links were checked.
std::string words_on_findings(const CrawlReport& report, const CheckResult* check, const FindingNews& news);
// The line of a crawl that could not begin or has lost its store.
void print_failed_summary(std::FILE* out, const CrawlStats& stats, std::string_view error);

}  // namespace argiope

// The end of a crawl, for people and for scripts.
#pragma once

#include <cstdio>
#include <string_view>

#include "argiope/crawl/crawl_report.hpp"
#include "argiope/crawl/extraction_sink.hpp"

namespace argiope {

// `database` and `export_file` are named in the advice on what to try next.
void print_report(std::FILE* out, const CrawlReport& report, std::string_view database, std::string_view export_file);

// One line: the object that docs/crawl-requests.md promises to scripts, with `cpu_seconds` and `peak_rss_mb` of this process.
// `trouble` is its member "error", unless it is empty; `extraction`, unless it is null, its object "extraction".
void print_summary(std::FILE* out, const CrawlReport& report, std::string_view trouble,
                   const ExtractionReport* extraction = nullptr);
// The line of a crawl that could not begin or has lost its store.
void print_failed_summary(std::FILE* out, const CrawlStats& stats, std::string_view error);

}  // namespace argiope

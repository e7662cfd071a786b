// Findings of a link check, as other programs read them: text for people, JSON, CSV, JUnit XML and SARIF 2.1.0 for CI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

enum class CheckFormat : std::uint8_t { text, json, csv, junit, sarif };
// "text", "json", "csv", "junit", "sarif".
std::optional<CheckFormat> parse_check_format(std::string_view name) noexcept;
// By the name's ending: .txt, .json, .csv, .xml (JUnit) and .sarif.
std::optional<CheckFormat> check_format_of(std::string_view file) noexcept;

// "1 error and 0 warnings in 2 links to 3 URLs", and how many errors are at other sites, and pages unread, if any.
std::string words_on_check(const CheckResult& result);

// Writes the findings of `result` to `path`, or with "-" to standard output; `version` is the program's. The file is
// there whole or not at all.
//
// text:  a paragraph a finding, or for all of a silent host; of its places the first 20.
// json:  one object: urls, links, unread, errors, warnings, findings[] with places[], silent_hosts[].
// csv:   a line a place, by RFC 4180.
// junit: a test case a URL that was asked, and one for each other finding; warnings are in its output.
// sarif: a result a place; at most 25,000, which is what readers take, and a notice of those that are left out.
//
// All have the order of CheckResult::findings. Each also says how many pages are unread: junit as a case with an error.
//
// Errors: io and disk_full naming the file, those of the store.
Result<void> write_check(UrlStore& store, const CheckResult& result, CheckFormat format, const std::string& path,
                         std::string_view version);

}  // namespace argiope

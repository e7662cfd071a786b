// A crawl's records as a file for other programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Writes all committed records to `path`: one JSON object a line if it ends with .jsonl, RFC 4180 with a header line if
// it ends with .csv. Written beside it first and then renamed, so that the file is there whole or not at all.
// Errors: invalid_input for another ending, io and disk_full naming the file, those of the store.
Result<void> export_urls(UrlStore& store, const std::string& path);
// A record as a line of the former: with the URL of the page that first linked to it.
void append_url_json(std::string& out, const UrlRecord& record, std::string_view referrer);
// Which of them are broken links.
using BrokenRule = std::function<bool(const UrlRecord&)>;
// The same for those that are broken: url, status, error and linked_from, a page that links to it. Where links
// are stored (UrlLinks), each has a line for every such page.
Result<void> export_broken(
    UrlStore& store, const std::string& path,
    const BrokenRule& is_wanted = [](const UrlRecord& r) { return is_broken(r); });

}  // namespace argiope

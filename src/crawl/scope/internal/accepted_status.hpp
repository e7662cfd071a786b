// Which answers are broken links for a run that says which statuses it accepts.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// "200..299,403,5xx": statuses and ranges, both ends of which belong to them, an end that is missing being 100 or 599.
// Statuses go to 999.
// Errors: invalid_input, naming the part that is wrong.
Result<std::vector<StatusRange>> parse_status_ranges(std::string_view text);

// is_broken(), where `accepted` takes the place of "below 400" unless it is empty. A redirect that leads somewhere
// never is: what it leads to is judged.
bool is_broken(const UrlRecord& record, std::span<const StatusRange> accepted) noexcept;

// UrlStore::scan_broken() by that rule.
Result<void> scan_unaccepted(UrlStore& store, std::span<const StatusRange> accepted, const UrlStore::Visitor& visit);

}  // namespace argiope

// The inbox of a crawl's database: where other programs put URLs, and this one the URLs to fetch again while a
// crawl runs.
#pragma once

#include <span>
#include <string>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_record.hpp"

namespace argiope {

// Puts them into the inbox of the database at `path`, all of them or none, while a crawl writes it or not; their
// numbers are given. Waits up to a minute for others that write. Errors: those of open_url_store(); older_version of a
// database that it would bring up to date; busy.
Result<void> put_into_inbox(const std::string& path, std::span<const GivenUrl> urls);

}  // namespace argiope

// `argiope crawl check`, `report`, `export`, `status`, `urls`, `requeue` and `explain`: looks at a crawl's database,
// while the crawl goes on or rests. Nothing is asked of any server, and only `requeue` changes anything.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Adds them below `crawl`. The returned function runs the one that was given and gives its exit status; it is to be
// called when one of them was (`is_crawl_look()`).
std::function<int()> add_crawl_looks(CLI::App& crawl);
bool is_crawl_look(const CLI::App& crawl);

// open_url_store_to_look(), where a file of an earlier version is brought up to date first, as any crawl would.
Result<std::unique_ptr<UrlStore>> open_crawl_to_look(const std::string& path);

}  // namespace argiope

// `argiope crawl status`, `urls`, `requeue` and `explain`: what a crawl knows, asked of its database while it runs or
// rests.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace argiope {

// Each adds its command below `crawl`; what is returned runs it and gives its exit status.
std::function<int()> add_status(CLI::App& crawl);
std::function<int()> add_urls(CLI::App& crawl);
std::function<int()> add_requeue(CLI::App& crawl);
std::function<int()> add_crawl_explain(CLI::App& crawl);

// Prints all that the crawl in `database` knows of the URL `text`, for people or as JSON; the exit status.
int print_url_explanation(const std::string& text, const std::string& database, bool json);

}  // namespace argiope

// `argiope crawl check`, `report` and `export`: looks at a crawl's database, while the crawl goes on or rests. Nothing is asked of
// any server, and nothing is changed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Adds them below `crawl`. What is returned runs the one that was given and gives its exit status; it is to be called when one of
// them was (`is_crawl_look()`).
std::function<int()> add_crawl_looks(CLI::App& crawl);
bool is_crawl_look(const CLI::App& crawl);

}  // namespace argiope

// The words on a sitemap that was written, of a crawl and of a look at its database.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "base/internal/counted.hpp"
#include "crawl/report/internal/graph_export.hpp"

namespace argiope {

// On standard error, whatever is quiet: pages are missing.
inline void print_left_out_of_sitemap(const SitemapCount& count) {
  if (count.unknown == 0) return;
  fmt::print(
      stderr,
      "argiope: {} left out of the sitemap: no run with --sitemap-out or --html has read whether {} noindex or another "
      "canonical URL. Such a run asks again\n",
      counted(count.unknown, "page"), count.unknown == 1 ? "it has" : "they have");
}

}  // namespace argiope

// A shard's knowledge of pages that are rendered: see RenderDesk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "crawl/render/internal/part_rules.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// Of one visit whose page was rendered.
struct RenderedVisit {
  std::shared_ptr<FetchedPage> page;  // as JavaScript has made it
  std::string fetched_type;           // of the answer
  std::string led_to;                 // where its script has gone
  std::vector<std::string> own_urls;
  bool wants_cookies = false;  // its script has set some, and asked for the page once more
};

// Of all of them.
struct Rendering : PartBook {
  // Throws std::invalid_argument when a pattern is none.
  explicit Rendering(const CrawlOptions& options);

  UrlPatterns only;     // empty: all pages
  UrlPatterns exclude;  // what pages do not ask for either
};

}  // namespace argiope

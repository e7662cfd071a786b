// The renderer of pages that say so, and the store of the parts that they ask for.
#pragma once

#include <memory>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/render/page_renderer.hpp"
#include "crawl/render/internal/part_rules.hpp"

namespace argiope {

struct PageRendering {
  std::shared_ptr<PageRenderer> renderer;               // null: pages are not rendered
  std::string why_not = "pages are not rendered here";  // then
  RenderLimits limits;
  Duration part_timeout = std::chrono::seconds{30};
  PartBook book;
};

}  // namespace argiope

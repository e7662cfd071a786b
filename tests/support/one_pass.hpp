// That links and references are found in one pass as each is alone.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "argiope/web/link_scanner.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {

// `alone` is what scan_links() has found.
inline void expect_same_in_one_pass(std::string_view html, const ScanOptions& options, const ScanResult& alone) {
  static ScanResult links;  // one for all, as the crawler does it
  static PageReferences references, alone_references;
  scan_links_and_references(html, options, links, references);
  scan_references(html, alone_references);
  ASSERT_EQ(references.found, alone_references.found) << html;
  ASSERT_EQ(references.base_href, alone_references.base_href) << html;
  ASSERT_EQ(references.head, alone_references.head) << html;
  ASSERT_EQ(links.links, alone.links) << html;
  ASSERT_EQ(links.behind, alone.behind) << html;
  ASSERT_EQ(links.dropped, alone.dropped) << html;
  ASSERT_EQ(links.base_href, alone.base_href) << html;
  ASSERT_EQ(links.robots.noindex, alone.robots.noindex) << html;
  ASSERT_EQ(links.robots.nofollow, alone.robots.nofollow) << html;
  ASSERT_EQ(links.decoded, alone.decoded) << html;
}

}  // namespace argiope

// The sitemaps and feeds of a synthetic web, and the pages that nothing else leads to.
#pragma once

#include <cstdint>
#include <string>

#include "site/internal/synthetic_web.hpp"
#include "site/synthetic_layout.hpp"

namespace argiope {

// The line of robots.txt that names the sitemap; empty where it is at one of the usual places, which it is on odd
// hosts.
std::string sitemap_line(const SyntheticLayout& layout, std::uint32_t host);

// Fills in the answer of a sitemap, a feed, or a page that is listed alone; false when there is no such place.
bool answer_listed(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply);

// The feeds that the head of a page announces.
std::string feed_links(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t page);

}  // namespace argiope

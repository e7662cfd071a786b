// The URL to which a response's Refresh field leads: a link of the page, as that of a `meta` element is.
#pragma once

#include <string_view>

#include "argiope/web/url.hpp"
#include "web/html/internal/refresh_url.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {

// The URL to which HttpHeaders::refresh of the answer of `page` leads, without fragment and credentials. A field knows
// no base element: its URL is relative to the page. False: to no URL but the page itself.
inline bool find_refresh(const Url& page, std::string_view field, Url& target) {
  const std::string_view url = refresh_url(field);
  if (url.empty() || parse_into(target, reference_of_bytes(url), &page) != UrlStatus::ok) return false;
  target.strip_credentials();
  target.strip_fragment();
  return target.href() != page.without_fragment();
}

}  // namespace argiope

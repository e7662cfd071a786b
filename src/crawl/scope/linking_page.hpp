// Which page has the link that led to a URL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Back along the redirects that led to `url`, at most `max_hops`, to the page that links to the first of them; nullopt:
// it was a seed. `referrer` is what its record says.
inline Result<std::optional<UrlRecord>> record_with_link(UrlStore& store, std::string url, std::int64_t referrer,
                                                         std::uint32_t max_hops) {
  for (std::uint32_t hops = 0; referrer != 0 && hops <= max_hops; ++hops) {
    auto record = store.get(referrer);
    if (!record || !*record || (*record)->redirect_to != url) return record;
    url = std::move((*record)->url);
    referrer = (*record)->referrer;
  }
  return std::optional<UrlRecord>{};
}

// Its URL; empty: there is none.
inline Result<std::string> page_with_link(UrlStore& store, std::string url, std::int64_t referrer,
                                          std::uint32_t max_hops) {
  auto record = record_with_link(store, std::move(url), referrer, max_hops);
  if (!record) return std::unexpected(std::move(record.error()));
  return *record ? std::move((*record)->url) : std::string{};
}

}  // namespace argiope

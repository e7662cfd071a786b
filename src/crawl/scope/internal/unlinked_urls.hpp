// Which broken URLs nothing leads to any more: the link was taken from its page, or the page is gone.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "crawl/scope/internal/own_hosts.hpp"

namespace argiope {

// Whether what is stored of its links is of an earlier answer: it answers with an error or a redirect now. Databases of
// earlier versions have 304 in the place of 200.
inline bool has_lost_links(const UrlRecord& record) noexcept {
  return record.state == UrlState::done && record.status_code != 200 && record.status_code != 304;
}

// The url_ids of those that are broken by `accepted` (is_broken()), and no broken links: no page, style sheet or
// sitemap leads there as it was last read, be it by redirects, and the one on which the URL was found was read since. A
// URL that was given is none of them. None are, where it is not known: in a database whose links are not kept, or while
// pages are unread (UnseenPages). `hosts`, if there are some, get those of the crawl from the same look at all URLs.
//
// Memory: a byte a URL of the store, 50 a redirect, 200 a broken URL; nothing where no links are kept; and that of the
// hosts. Errors: the store's.
Result<std::unordered_set<std::int64_t>> find_unlinked(UrlStore& store, std::span<const StatusRange> accepted,
                                                       OwnHosts* hosts = nullptr);

}  // namespace argiope

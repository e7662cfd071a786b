// Chains of redirects, and of files that refer to files, by what the store knows of the URLs that lead from one to the
// next.
#pragma once

#include <cstdint>
#include <string_view>

#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// The id of `target` where redirects, at most `most`, lead from it to the URL `id`; 0: they do not.
std::int64_t redirects_from(UrlStore& store, std::string_view target, std::int64_t id, std::uint32_t most);
// How many redirects in a row have led to the URL `id`; at most `most`.
std::uint32_t redirects_to(UrlStore& store, std::int64_t id, std::uint32_t most);

// How many files that a page is shown with lead, one to the next, from the page's own to the URL `id`; at most `most`.
std::uint32_t requisites_to(UrlStore& store, std::int64_t id, std::uint32_t most);

}  // namespace argiope

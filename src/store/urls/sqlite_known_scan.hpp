// The work of UrlStore::scan_known() on a SQLite file, by scan_stretches().
#pragma once

#include <string>

#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// `last`: the largest id to read.
Result<void> scan_known_rows(const std::string& path, std::int64_t last, const UrlStore::KnownQuestion& question,
                             const UrlStore::KnownVisitor& visit);

}  // namespace argiope

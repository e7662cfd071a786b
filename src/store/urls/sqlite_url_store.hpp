// How open_url_store makes a store on a file; argiope/store/detail/url_store.hpp says what it does.
#pragma once

#include <memory>
#include <string>

#include "argiope/store/detail/url_store.hpp"

namespace argiope {

Result<std::unique_ptr<UrlStore>> open_sqlite_url_store(const std::string& path, const UrlStoreOptions& options);

}  // namespace argiope

// How open_store makes a store on a file; see store.hpp for what it does.
#pragma once

#include <memory>
#include <string>

#include "argiope/store/store.hpp"

namespace argiope {

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, const StoreOptions& options);

}  // namespace argiope

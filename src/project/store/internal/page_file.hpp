// A file of pages, before it is opened.
#pragma once

#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// check_sqlite_head() of a file of pages.
Result<void> check_page_file(const std::string& path);

}  // namespace argiope

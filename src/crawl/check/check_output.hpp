// The writers of check_output.cpp's formats, one each. Private to the crawl module.
#pragma once

#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "base/internal/output_file.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

// Each writes all of it but finish(). Errors: the store's.
Result<void> write_check_junit(UrlStore& store, const CheckResult& result, OutputFile& file);
Result<void> write_check_sarif(UrlStore& store, const CheckResult& result, std::string_view version, OutputFile& file);

}  // namespace argiope

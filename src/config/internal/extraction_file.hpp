// Files of rules for extraction: `argiope crawl --extract FILE.toml` (docs/extraction.md).
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/crawl/sinks.hpp"

namespace argiope {

inline constexpr std::size_t kMostExtractionBytes = 4 * 1024 * 1024;

// Strict: what is unknown or of the wrong type is an error, and so is a rule that Extractor::compile() would refuse.
// Errors: invalid_input, too_large; `name:LINE: field "price": …`, one line. read_extraction_file() also not_found and
// io.
Result<ExtractionRules> parse_extraction(std::string_view text, std::string_view name);
Result<ExtractionRules> read_extraction_file(const std::string& path);

}  // namespace argiope

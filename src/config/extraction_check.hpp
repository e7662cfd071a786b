// Rules for extraction that are a part of a file: whether an Extractor would take them, told of the line that is wrong.
#pragma once

#include <cstddef>

#include "argiope/base/error.hpp"
#include "argiope/crawl/sinks.hpp"
#include "config/toml_file.hpp"

namespace argiope {

// `rule` is the file's [[rule]] number `place`, from 0.
Result<void> check_extraction_rule(const ExtractionRule& rule, std::size_t place, const TomlFile& file);

}  // namespace argiope

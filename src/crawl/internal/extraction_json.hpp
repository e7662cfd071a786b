// Rules for extraction as JSON, which files (TOML) and requests have alike:
//
//   {"rule": [{"name": "shop", "match": ["https://shop.example/item/*"], "each": "css:.item",
//              "fields": {"title": "css:h2", "price": {"css": ".price", "type": "number", "required": true}}}]}
#pragma once

#include "argiope/crawl/extraction_rules.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// What is wrong goes to the errors of `form`. Selectors and patterns are looked at by Extractor::compile() alone.
ExtractionRules read_extraction_rules(const JsonValue& form);
// The members of "fields". In their order.
std::vector<FieldRule> read_fields(const JsonValue& form);

}  // namespace argiope

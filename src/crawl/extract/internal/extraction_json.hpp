// Rules for extraction as JSON, which files (TOML) and requests have alike:
//
//   {"rule": [{"name": "shop", "match": ["https://shop.example/item/*"], "each": "css:.item",
//              "fields": {"title": "css:h2", "price": {"css": ".price", "type": "number", "required": true}}}]}
#pragma once

#include "argiope/crawl/sinks.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// Faults go to the errors of `form`. Selectors and patterns are looked at by Extractor::compile() alone.
ExtractionRules read_extraction_rules(const JsonValue& form);
// "name", "match", "each" and "fields" of a rule, which may have others.
void read_extraction_rule(JsonMembers& in, ExtractionRule& rule);
// The members of "fields". In their order.
std::vector<FieldRule> read_fields(const JsonValue& form);

// The fields of a record, as members of the object that is open in `json`.
void write_record(JsonWriter& json, const Extractor& extractor, std::size_t rule, const ExtractedRecord& record);
// A value, as records in JSONL have it.
void write_field_value(JsonWriter& json, const FieldValue& value);

}  // namespace argiope

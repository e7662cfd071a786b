// TOML as JSON: a form that requests have too is read by the reader of requests, and what is wrong with it is told of
// the line of the file where it is.
#pragma once

#include <toml++/toml.h>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// The order of a table's members: TOML has none, but people who list fields do.
enum class TomlOrder { by_name, as_written };

// The value as JSON has it; dates and times become strings. `trouble` is the first value that JSON does not have.
void write_json(JsonWriter& out, const toml::node& node, const toml::node*& trouble,
                TomlOrder order = TomlOrder::by_name);

// Where the member at `path` is; what is missing is where the table or list is that should have it.
toml::source_region source_of(const toml::node& from, const JsonPath& path);

}  // namespace argiope

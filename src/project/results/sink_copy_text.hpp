// Texts as PostgreSQL takes them by COPY in its text format.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// Appends a column's value. Null characters and bytes that are not UTF-8, which PostgreSQL cannot hold, become U+FFFD.
void append_copy_text(std::string& out, std::string_view text);

// JSON that jsonb takes: escapes for null characters and for halves of a pair without the other become that of U+FFFD.
std::string without_null_characters(std::string_view json);

}  // namespace argiope

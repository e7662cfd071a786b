// JSON as pages have it, made strict: what people and templates write into it by mistake is mended, and what stands
// around it is left out. One bad character must not cost all that is in a text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// The text as strict JSON, if it can be mended. It becomes another text only where JSON says nothing:
//
//   half of a surrogate pair                U+FFFD, as Python's and JavaScript's readers in effect have it
//   line breaks and tabs in strings         a space
//   \' \x and other escapes of no meaning   the character; the backslash and what follows it
//   // and /* comments, <!-- -->, CDATA     nothing, nor a mark of byte order, no-break spaces, or a ";" at the end
//   commas too many, brackets at the end    nothing
//   &quot; where quotes are to be          what the references in all of it mean
//   a member without a value, NaN           null
//   01, +5, .5, a number that fits nowhere  the same as a string
//   several values, one behind the other    a list of them
//
// Cost: linear. The result is to be parsed: what cannot be mended is as it was.
std::string mended_json(std::string_view text);

// Reads it as it is, or else as it is mended. Errors: as JsonText::parse() of the text as it is.
Result<JsonText> parse_lenient_json(std::string_view text);

// --- for those that mend more of it: salvaged_json.hpp

// How long what says nothing is at the front of `text`: a comment, the mark of a CDATA section, a no-break space. 0:
// there is none.
std::size_t json_nothing_at(std::string_view text) noexcept;
// Appends what an escape at the front of `rest`, in a string, becomes; how long it was.
std::size_t append_mended_escape(std::string_view rest, std::string& out);
// The text with quotes where it has references in the place of all of them.
std::string with_quotes_read(std::string_view text);

}  // namespace argiope

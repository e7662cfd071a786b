// Text from outside, as messages and terminals may have it: on one line, with nothing in it that a terminal obeys or
// that hides what is there. Every message that repeats what it was given, and everything that is printed, goes through
// here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace argiope {

inline constexpr std::size_t kMostQuoted = 200;

// At most `most` characters of `text`, and "…" when there are more. Written as escapes: control characters, those of
// the second half too (`\n`, `\x1b`, `\u009b`); what turns the direction of writing, breaks lines or is invisible
// (`\u202e`); and bytes that are not UTF-8 (`\xff`). Quotes and backslashes stay as they are: this is to be read, not
// to be parsed.
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);
// The same, but lines stay lines.
std::string printable_lines(std::string_view text);
// The same as printable(), in double quotes: `queue "mail\n"`.
std::string in_quotes(std::string_view text, std::size_t most = kMostQuoted);

}  // namespace argiope

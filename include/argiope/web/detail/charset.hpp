// In which encoding a page is written, and its text in UTF-8. The encodings are those of the WHATWG Encoding Standard,
// under the names it gives them ("UTF-8", "windows-1252", "Shift_JIS").
//
// Called by the link harvester for every page. A page in UTF-8, or of ASCII only, is scanned as it stands; only others
// are converted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

struct CharsetDecision {
  enum class Source : std::uint8_t {
    bom,       // byte order mark
    header,    // the Content-Type header
    meta,      // a meta element or XML declaration among the first 1,024 bytes
    guess,     // the bytes themselves look like it
    fallback,  // nothing tells: windows-1252
  };

  // The standard's name; never empty, and valid for ever.
  std::string_view name;
  Source source;
  // Of the byte order mark at the front of the page, which is no text; 0 without.
  std::size_t bom_length;
  // In this encoding a page whose bytes are all ASCII is ASCII. Not so in UTF-16 and ISO-2022-JP.
  bool ascii_compatible;
};

// The encoding by the HTML standard's order (13.2.3.2): byte order mark, header, meta; then, where nothing is declared,
// UTF-8 if the bytes are valid UTF-8 (a last character may be cut short), else what they look like.
//
// Cost:    under a microsecond when mark, header or an early meta decides; else a pass over the page, and uchardet over
//          4 KiB of it when it is not UTF-8.
// Threads: any.
CharsetDecision detect_charset(std::string_view bytes, std::string_view content_type);

// The standard's name of the encoding that `label` stands for ("latin1" is windows-1252), or empty. Any case; space
// around it is ignored.
std::string_view encoding_of_label(std::string_view label) noexcept;

// The text of `bytes` (without byte order mark) in UTF-8; what is no text in that encoding becomes U+FFFD.
// `encoding` is a name or label. At most 3 bytes a byte.
// Errors:  unsupported when `encoding` is none of the standard's; never for the sake of the bytes.
// Threads: any; each keeps its converters.
Result<std::string> to_utf8(std::string_view bytes, std::string_view encoding);

// `bytes` of that charset, without their byte order mark, in UTF-8: themselves, where that is what they are, or all is
// ASCII; else `transcoded`. What says that it is UTF-8 stays as it is.
// Threads: as to_utf8().
std::string_view in_utf8(std::string_view bytes, const CharsetDecision& charset, std::string& transcoded);

// Appends to `out` the bytes that `utf8` has in `encoding`, a name or label; a character that it lacks as
// "%26%23NNN%3B" (URL Standard, "percent-encode after encoding": the caller percent-encodes the bytes). In UTF-16, in
// the replacement encoding and in unknown ones the bytes are UTF-8.
// Threads: as to_utf8().
void encode_query(std::string_view utf8, std::string_view encoding, std::string& out);

bool is_ascii(std::string_view bytes) noexcept;
bool is_valid_utf8(std::string_view bytes) noexcept;

}  // namespace argiope

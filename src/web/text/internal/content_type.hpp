// The Content-Type header: what type, which charset, whether the body is HTML; and a look at the body where there is no
// such header. Called by the crawler for every response.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace argiope {

struct ContentType {
  // "type/subtype" as sent, without parameters; compare case-insensitively. Empty when the header is not a type.
  std::string_view type;
  // The first charset parameter as sent, without its quotes; empty when there is none.
  std::string_view charset;
};

// Reads the header by "extract a MIME type" (Fetch, 2.2.1) and "parse a MIME type" (MIME Sniffing Standard, 4.4): of a
// list, which several fields are too, the last that is a type counts, with the charset of one before it that is the
// same type. More than the standards do, parameters may follow behind a space alone. Backslash escapes inside a quoted
// charset stay: no charset has any. The views point into `header`.
ContentType parse_content_type(std::string_view header) noexcept;

// Whether the header says text/html or application/xhtml+xml.
bool is_html(std::string_view content_type) noexcept;

// Whether the header says application/xml or text/xml, which are the same (RFC 7303).
bool is_xml(std::string_view content_type) noexcept;

// Whether a body that came without type begins like HTML (MIME Sniffing Standard, 7.1, the patterns for text/html, also
// behind a UTF-8 byte order mark).
bool sniff_is_html(std::string_view body) noexcept;
// Whether an answer is an HTML page: by its Content-Type, or without one that is a type by its first bytes.
inline bool is_html_page(std::string_view content_type, std::string_view body) noexcept {
  return parse_content_type(content_type).type.empty() ? sniff_is_html(body) : is_html(content_type);
}

// Whether the header's type is one of `types`, in lower case: "text/html", "text/*" or "*/*".
bool has_media_type(std::string_view content_type, std::span<const std::string> types) noexcept;
// The type of a body that came without one, by its first kSniffedBytes (MIME Sniffing Standard, 7.1): HTML, XML, PDF,
// the images, sounds, films, fonts and archives that have a mark, "text/plain", or "application/octet-stream".
std::string_view sniff_type(std::string_view body) noexcept;
inline constexpr std::size_t kSniffedBytes = 1445;  // the standard's "resource header"

}  // namespace argiope

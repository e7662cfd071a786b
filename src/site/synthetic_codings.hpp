// Content codings as a server applies them (RFC 9110, 8.4). Undoing them is the web module's ContentDecoder.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// gzip, brotli and zstd at their fast settings.
// Errors: std::bad_alloc, or std::runtime_error when the library refuses.
std::string compress_gzip(std::string_view bytes);
std::string compress_brotli(std::string_view bytes);
std::string compress_zstd(std::string_view bytes);

// Whether an Accept-Encoding field allows `coding`, by name and not with q=0. "*" is not taken as a yes.
bool accepts_coding(std::string_view accept_encoding, std::string_view coding) noexcept;

}  // namespace argiope

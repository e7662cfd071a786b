// The media type by the end of a file's name: a guess, before anybody has answered.
#pragma once

#include <string_view>

namespace argiope {

// Behind the last dot of a name: 1 to 8 letters and digits, of which one is a letter. Empty where there is none:
// "v1.2", "page", ".profile".
std::string_view extension_of(std::string_view name) noexcept;

// The media type that nearly all files with that extension have: "application/pdf" of "pdf". Empty where pages have it,
// too ("php", "html"), or where nobody knows.
std::string_view media_type_of_extension(std::string_view extension) noexcept;

}  // namespace argiope

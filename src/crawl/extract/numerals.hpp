// Numbers as the world's scripts write them, in the digits and signs of ASCII.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// `text` with the decimal digits of Arabic, Persian, the scripts of India and South-East Asia and full width as 0 to 9,
// and with the signs between them: the Arabic decimal sign as `decimal` (a point, where that is '\0'), the Arabic sign
// between thousands as an apostrophe, commas and points of full width as those of ASCII. Marks of direction and other
// characters without width are left out. All else is as it was.
std::string in_ascii_numerals(std::string_view text, char decimal);

}  // namespace argiope

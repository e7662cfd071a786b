// The signs and words around a number that make another one of it: a minus, brackets, a million, a power of ten. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace argiope {

// The length of the space at the front, which may be one that typesetters put between the digits of a number; 0: there
// is none.
std::size_t number_space_at(std::string_view text) noexcept;

// Whether `text` begins with a hyphen or a dash of any length.
bool begins_with_dash(std::string_view text) noexcept;

// Whether the signs before and behind a number make it less than zero: "-5", "−€5", "-US$ 5", "–5", "5.00-",
// "(1,234.56)". A dash between words and a number, as in "Chair - 5", is no minus. `has_cents`: it has two digits
// behind its decimal point, without which "(12)" is a count and "5-" a range without an end.
bool is_negative(std::string_view before, std::string_view behind, bool has_cents);

// Whether `behind` a number begins with its cents, which are raised and have no decimal sign: "$12^99", "1.299^00 €".
// Without a currency it is a power.
bool begins_with_raised_cents(std::string_view before, std::string_view behind);

// Whether what stands around `digits` makes a number of another size of it: "1.5M", "1,5 Mio", "£5m", "1½", "10²",
// "6.02 × 10^23", "0x1F".
bool is_of_another_size(std::string_view before, std::string_view digits, std::string_view behind);

}  // namespace argiope

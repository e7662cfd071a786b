// What can be read of JSON that is broken: of data in pages, where a part is better than nothing. Who has to know that
// nothing is missing reads by parse_lenient_json() and has an error instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argiope {

// Strict JSON of what `text` says, as far as that can be told: an object, a list, or a list of several; empty: it has
// none. Beyond what mended_json() mends, these cost no more than the member they are in:
//
//   what stands before and behind it        left out: "var x = ", ");", messages of PHP, ends of tags
//   brackets that are missing at its end    put there
//   a comma or colon that is missing        put there
//   names without quotes, 'a', `a`, “a”     the same in quotes
//   quotes within a string: "24" TV"        text, where what follows shows that the string goes on
//   True, None, {{ of a template }}         true, null, null
//   1,299 as the value of a member          the same as a string
//   all of it in a string, \" for quotes    what the string says
//
// Cost: linear; behind a quote, up to some hundred bytes are looked at. `looked_at`: how many bytes that made, those
// counted again that were looked at again; for tests of the cost.
std::string salvaged_json(std::string_view text, std::uint64_t* looked_at = nullptr);

}  // namespace argiope

// How reports for people say numbers and spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

std::string grouped(std::uint64_t number);                         // 1,234,567
std::string count_of(std::uint64_t count, std::string_view what);  // 1 run, 2,000 runs
std::string short_duration(Duration span);                         // 0, 340 ms, 1.5 s, 2 h 10 min, 3 d 4 h
std::string shortened(std::string_view text, std::size_t most);    // characters, and … for those left out

}  // namespace argiope

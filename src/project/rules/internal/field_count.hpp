// How many of a round's records have a field.
#pragma once

#include <cstdint>
#include <string>

namespace argiope {

// Of a field, over a round: of the records of rules that have it.
struct FieldCount {
  std::string field;
  std::uint64_t records = 0;  // results, and those that were dropped
  std::uint64_t dropped = 0;  // of them
  std::uint64_t found = 0;    // of them all, with something found for the field
  friend bool operator==(const FieldCount&, const FieldCount&) = default;
};

}  // namespace argiope

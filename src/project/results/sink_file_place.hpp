// Where a sink's file has come to, as it is stored with its cursor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

struct SinkFilePlace {
  std::string file;           // its path, as the definition has it
  std::string identity;       // what no other file has; empty: none was begun
  std::uint64_t length = 0;   // in bytes: whole lines
  std::uint64_t tail = 0;     // fingerprint of the last bytes before that
  std::uint64_t rotated = 0;  // the number of the last file that was put aside
  std::uint64_t columns = 0;  // fingerprint of the header
  WallTime begun{};           // the file
  friend bool operator==(const SinkFilePlace&, const SinkFilePlace&) = default;

  std::string stored() const;
  // nullopt: that is no such place.
  static std::optional<SinkFilePlace> parse(std::string_view stored);
};

}  // namespace argiope

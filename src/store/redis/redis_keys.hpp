// The members of the sorted sets of a store on Redis: texts whose order of bytes is the order that is wanted. All have
// the score 0.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "argiope/jobs/detail/shelf.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope::redis_keys {

// Ids, times in milliseconds and numbers of entries have at most so many digits; greater ones come behind all.
inline constexpr std::size_t kDigits = 16;
inline std::string digits(std::uint64_t number) {
  return fmt::format("{:016}", std::min<std::uint64_t>(number, 9'999'999'999'999'999));
}
inline std::string pair(std::uint64_t first, std::uint64_t second) { return digits(first) + ':' + digits(second); }
inline std::uint64_t number_in(std::string_view member) {
  std::uint64_t number = 0;
  std::from_chars(member.data(), member.data() + member.size(), number);
  return number;
}
// Of the number at the end of a member, an id.
inline std::uint64_t last_of(std::string_view member) {
  return number_in(member.substr(member.size() - std::min(member.size(), kDigits)));
}
// All members of a pair that begin with this number.
inline std::string before_pairs(std::uint64_t first) { return digits(first) + ':'; }
inline std::string after_pairs(std::uint64_t first) { return digits(first) + ';'; }

// Higher priorities first.
inline std::string of(Rank rank) {
  const std::int64_t place = std::int64_t{std::numeric_limits<std::int32_t>::max()} - rank.priority;
  return fmt::format("{:010}:{}", place, digits(rank.id));
}
inline std::string of(DueRank rank) { return pair(static_cast<std::uint64_t>(job_rules::to_ms(rank.due_at)), rank.id); }

// A key of jobs set aside, before their ranks: ended by two zero bytes, which are in no key that is written so.
inline std::string of_key(std::string_view key) {
  std::string written;
  for (const char byte : key) {
    written += byte;
    if (byte == '\0') written += '\1';
  }
  return written.append(2, '\0');
}
// Behind all ranks of that key.
inline std::string after_key(std::string_view key) { return of_key(key) + ';'; }
inline std::string key_in(std::string_view member) {
  std::string key;
  for (std::size_t i = 0; i < member.size(); ++i) {
    key += member[i];
    if (member[i] == '\0' && member[++i] == '\0') {
      key.pop_back();
      break;
    }
  }
  return key;
}

}  // namespace argiope::redis_keys

// AskedSettlements: the ends of runs that one request tells, and what is wrong with some of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/internal/json_reader.hpp"
#include "base/internal/raw_json.hpp"
#include "serve/api/api_state.hpp"

namespace argiope {

struct AskedSettlements {
  std::string pointer;                               // of the list
  std::vector<std::expected<RunEnd, Problem>> read;  // as they are in the request
  std::vector<RunEnd> runs;                          // those that can be settled
  std::vector<std::size_t> places;                   // of each, in the request
  std::vector<std::uint64_t> tokens;
  std::map<std::size_t, Problem> wrong;  // by the place in the request
  std::size_t waits = 0;                 // of the follow-ups of those that can be settled
  // Follow-ups with an id or name: the settlement's place, what is told where another's job has it, and the follow-up's
  // pointer.
  std::map<std::pair<std::size_t, std::string>, std::string> named;
};

// A list of settlements, of `most` at most. A mistake in one of them refuses that one alone. Looks at nothing but the
// text: on any thread. `now`: what delays count from.
void read_settlements(std::size_t most, WallTime now, const JsonValue& list, RawJson& raw, AskedSettlements& asked);
// Which of those that were read the caller may settle.
void judge_settlements(const ApiState& api, const ApiCall& call, AskedSettlements& asked);
// The problem of the settlement at that place, where it was refused.
Problem problem_of_settlement(const AskedSettlements& asked, std::size_t place, const Error& error);

}  // namespace argiope

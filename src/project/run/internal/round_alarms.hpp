// The alarms of a round, by [alarm] in the project's file. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "project/process/internal/rule_reader.hpp"
#include "project/rules/internal/field_count.hpp"
#include "project/rules/internal/project_definition.hpp"

namespace argiope {

// The counts of a round.
struct RoundCounts {
  std::uint64_t visits = 0;  // that have ended
  std::uint64_t failed = 0;  // of them
  std::uint64_t results = 0;
  std::vector<FieldCount> fields;  // in the order in which they came
  friend bool operator==(const RoundCounts&, const RoundCounts&) = default;

  // One page's records; `columns` are those of its rule.
  void add(const RuleReading& reading, std::span<const std::string> columns);
};

struct RoundAlarm {
  enum class Kind : std::uint8_t { coverage, least_results, most_failures };
  Kind kind{};
  std::string field;    // of a coverage
  double measured = 0;  // share, or count
  double wanted = 0;
  std::string text;  // "price is in 62% of 1,200 results, at least 90% is wanted"
  friend bool operator==(const RoundAlarm&, const RoundAlarm&) = default;
};
std::string_view to_string(RoundAlarm::Kind kind) noexcept;  // "coverage"

// In the order of the file's documentation: coverage by field, least_results, most_failures. A field without records
// and a round without visits have no share, and raise none.
std::vector<RoundAlarm> round_alarms(const RoundCounts& counts, const ProjectAlarm& alarm);

}  // namespace argiope

// How schedules lie in a store: the trigger as one text, and as another one what many schedules share. Where a schedule
// stands, and whether it is paused, is the place's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "argiope/jobs/schedule.hpp"

namespace argiope {

// The template and the policies; name and trigger of `policies` mean nothing.
struct ScheduleDefinition {
  Schedule policies{.name = {}, .trigger = Trigger::at(WallTime{})};
  std::string paused_by;
  WallTime paused_at{};
};

std::string trigger_text(const Trigger& trigger);
std::string definition_text(const Schedule& schedule, std::string_view paused_by = {}, WallTime paused_at = {});
Result<Trigger> parse_trigger_text(std::string_view text);
Result<ScheduleDefinition> parse_definition_text(std::string_view text);

// The texts of many schedules, one after the other: what equals the one before is not written again.
class ScheduleWriter {
 public:
  PutSchedule write(Schedule schedule, WallTime now);

 private:
  std::optional<Trigger> trigger_;
  std::string trigger_text_;
  std::optional<Schedule> schedule_;
  std::string definition_text_;
};

// Keeps what it has parsed, as long as there is room.
class ScheduleReader {
 public:
  struct Parsed {
    std::shared_ptr<const Trigger> trigger;
    std::shared_ptr<const ScheduleDefinition> definition;
  };
  Result<Parsed> read(const StoredSchedule& stored);

 private:
  static constexpr std::size_t kMostKept = 1024;
  static constexpr std::size_t kMostKeptBytes = 4096;  // of a text
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  template <class Value>
  using Kept = std::unordered_map<std::string, std::shared_ptr<const Value>, Hash, std::equal_to<>>;
  template <class Value, class Parse>
  static Result<std::shared_ptr<const Value>> look_up(Kept<Value>& kept, const std::string& text, Parse parse);

  Kept<Trigger> triggers_;
  Kept<ScheduleDefinition> definitions_;
};

}  // namespace argiope

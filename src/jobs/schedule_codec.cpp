#include "jobs/internal/schedule_codec.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>

#include "argiope/time/time_zone.hpp"
#include "base/internal/field_error.hpp"
#include "jobs/internal/schedule_json.hpp"

namespace argiope {

namespace {

static_assert(kMostTriggerBytes == Trigger::kMostJsonBytes);

// Intervals, of which there are millions, take half the room of their JSON form: "every 60000 ms from 1767225600000".
constexpr std::string_view kEvery = "every ";
constexpr std::string_view kFrom = " ms from ";

std::optional<std::string> short_text(const Trigger& trigger) {
  const auto interval = trigger.plain_interval();
  if (!interval) return std::nullopt;
  const auto length = std::chrono::floor<std::chrono::milliseconds>(interval->first);
  const auto anchor = std::chrono::floor<std::chrono::milliseconds>(interval->second);
  if (length != interval->first || anchor != interval->second) return std::nullopt;
  return fmt::format("{}{}{}{}", kEvery, length.count(), kFrom, anchor.time_since_epoch().count());
}

Result<Trigger> parse_short_text(std::string_view text) {
  constexpr std::int64_t kMostMs = Duration::max() / std::chrono::milliseconds{1};
  const auto whole = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_good = error == std::errc{} && end == digits.data() + digits.size();
    return is_good && value >= -kMostMs && value <= kMostMs ? std::optional(value) : std::nullopt;
  };
  const std::size_t middle = text.find(kFrom);
  if (middle != std::string_view::npos) {
    const auto length = whole(text.substr(kEvery.size(), middle - kEvery.size()));
    const auto anchor = whole(text.substr(middle + kFrom.size()));
    if (length && anchor) {
      return Trigger::every(std::chrono::milliseconds{*length}, WallTime{std::chrono::milliseconds{*anchor}});
    }
  }
  return detail::bad_field("trigger", text.substr(0, 60), "every N ms from N");
}

}  // namespace

std::string trigger_text(const Trigger& trigger) {
  auto text = short_text(trigger);
  return text ? std::move(*text) : trigger.to_json();
}

std::string definition_text(const Schedule& schedule, std::string_view paused_by, WallTime paused_at) {
  return json_object(
      [&](JsonWriter& out) {
        detail::write_definition(out, schedule);
        if (!paused_by.empty()) out.member("paused_by", paused_by);
        if (paused_at != WallTime{}) out.member("paused_at", format_timestamp(paused_at));
      },
      JsonEscapes::letters);
}

Result<Trigger> parse_trigger_text(std::string_view text) {
  if (text.starts_with(kEvery)) return parse_short_text(text);
  return Trigger::from_json(text);
}

Result<ScheduleDefinition> parse_definition_text(std::string_view text) {
  const auto parsed = JsonText::parse_object("definition", text, kMostDefinitionBytes);
  if (!parsed) return std::unexpected(parsed.error());
  JsonErrors errors;
  const JsonValue form = parsed->root(errors);
  JsonMembers in(form);
  ScheduleDefinition definition;
  definition.paused_by = in.text("paused_by");
  in.parsed("paused_at", definition.paused_at, [](const std::string& time) { return parse_timestamp(time); });
  detail::read_definition(in, definition.policies);
  in.finish("a definition has none");
  if (errors) return std::unexpected(errors.error());
  return definition;
}

PutSchedule ScheduleWriter::write(Schedule schedule, WallTime now) {
  if (!trigger_ || !schedule.trigger.is_copy_of(*trigger_)) {
    trigger_ = schedule.trigger;
    trigger_text_ = trigger_text(schedule.trigger);
  }
  const auto same_definition = [&](const Schedule& other) {
    return schedule.job == other.job && schedule.misfire_grace == other.misfire_grace &&
           schedule.coalesce == other.coalesce && schedule.most_catch_up == other.most_catch_up &&
           schedule.max_instances == other.max_instances && schedule.overlap == other.overlap &&
           schedule.max_runs == other.max_runs;
  };
  if (!schedule_ || !same_definition(*schedule_)) {
    schedule_ = schedule;
    definition_text_ = definition_text(schedule);
  }
  PutSchedule put{.name = std::move(schedule.name), .trigger = trigger_text_, .definition = definition_text_};
  put.place.next = schedule.trigger.next_fire_time(std::nullopt, now).value_or(WallTime::max());
  put.place.paused = schedule.paused;
  return put;
}

template <class Value, class Parse>
Result<std::shared_ptr<const Value>> ScheduleReader::look_up(Kept<Value>& kept, const std::string& text, Parse parse) {
  if (const auto found = kept.find(text); found != kept.end()) return found->second;
  auto parsed = parse(text);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  auto value = std::make_shared<const Value>(std::move(*parsed));
  if (text.size() <= kMostKeptBytes) {
    if (kept.size() >= kMostKept) kept.clear();
    kept.emplace(text, value);
  }
  return value;
}

Result<ScheduleReader::Parsed> ScheduleReader::read(const StoredSchedule& stored) {
  auto trigger = look_up(triggers_, stored.trigger, parse_trigger_text);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  auto definition = look_up(definitions_, stored.definition, parse_definition_text);
  if (!definition) return std::unexpected(std::move(definition.error()));
  return Parsed{std::move(*trigger), std::move(*definition)};
}

}  // namespace argiope

#include "schedule/schedule_codec.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "argiope/schedule/timestamp.hpp"
#include "schedule/schedule_form.hpp"

namespace argiope {

namespace json = boost::json;

std::string trigger_text(const Trigger& trigger) { return json::serialize(trigger.to_json()); }

std::string definition_text(const Schedule& schedule, std::string_view paused_by, WallTime paused_at) {
  json::object form = detail::form_of_definition(schedule);
  if (!paused_by.empty()) form["paused_by"] = paused_by;
  if (paused_at != WallTime{}) form["paused_at"] = format_timestamp(paused_at);
  return json::serialize(form);
}

Result<Trigger> parse_trigger_text(std::string_view text) {
  const auto form = detail::read_object("trigger", text, kMostTriggerBytes);
  if (!form) return std::unexpected(form.error());
  return Trigger::from_json(*form);
}

Result<ScheduleDefinition> parse_definition_text(std::string_view text) {
  const auto form = detail::read_object("definition", text, kMostDefinitionBytes);
  if (!form) return std::unexpected(form.error());
  detail::Reader in(*form);
  ScheduleDefinition definition;
  definition.paused_by = in.text("paused_by");
  in.parsed("paused_at", definition.paused_at, [](const std::string& time) { return parse_timestamp(time); });
  if (auto read = detail::read_definition(in, definition.policies); !read) {
    return std::unexpected(std::move(read.error()));
  }
  if (auto error = in.finish("a definition has none")) return std::unexpected(std::move(*error));
  return definition;
}

ScheduleStatus status_of(StoredSchedule stored) {
  ScheduleStatus status{.id = stored.id,
                        .version = stored.version,
                        .name = stored.name,
                        .trigger = std::move(stored.trigger),
                        .definition = std::move(stored.definition),
                        .place = stored.place,
                        .active = stored.active};
  auto trigger = parse_trigger_text(status.trigger);
  auto definition = parse_definition_text(status.definition);
  if (!trigger || !definition) {
    status.trouble = trigger ? definition.error().message : trigger.error().message;
    return status;
  }
  Schedule schedule = std::move(definition->policies);
  schedule.name = std::move(stored.name);
  schedule.trigger = std::move(*trigger);
  schedule.paused = stored.place.paused;
  status.schedule = std::move(schedule);
  if (stored.place.paused) {
    status.paused_by = std::move(definition->paused_by);
    status.paused_at = definition->paused_at;
  }
  return status;
}

PutSchedule ScheduleWriter::write(const Schedule& schedule, WallTime now) {
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
  PutSchedule put{.name = schedule.name, .trigger = trigger_text_, .definition = definition_text_};
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

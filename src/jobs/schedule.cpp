#include "argiope/jobs/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <initializer_list>
#include <limits>

#include "argiope/time/timestamp.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "jobs/internal/schedule_form.hpp"
#include "time/internal/trigger_form.hpp"

namespace argiope {
namespace {

namespace json = boost::json;
using detail::bad_field;
using detail::MemberPath;
using detail::Reader;

constexpr std::size_t kMostWordBytes = 512;
constexpr std::size_t kMostJsonBytes = 4 * Schedule::kMostPayloadBytes;
constexpr Duration kLeastGrace = std::chrono::milliseconds{1};
constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;  // what every JSON reader holds exactly
constexpr std::string_view kCoalesce[] = {to_string(Coalesce::latest), to_string(Coalesce::earliest),
                                          to_string(Coalesce::all)};
constexpr std::string_view kOverlap[] = {to_string(Overlap::skip), to_string(Overlap::queue_one),
                                         to_string(Overlap::queue_all), to_string(Overlap::cancel_running)};

Result<void> check_text(std::string_view member, std::string_view text, std::size_t least, std::size_t most) {
  if (text.size() < least || text.size() > most) {
    return bad_field(member, text, fmt::format("{} to {} bytes", least, most));
  }
  if (!is_utf8(text)) return bad_field(member, text, "UTF-8");
  return {};
}

Result<void> check_number(std::string_view member, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return bad_field(member, fmt::to_string(value), fmt::format("a whole number, {} to {}", least, most));
}

json::object form_of(const JobTemplate& job) {
  const JobTemplate usual;
  json::object out;
  if (job.queue != usual.queue) out["queue"] = job.queue;
  if (!job.function.empty()) out["function"] = job.function;
  if (!job.key.empty()) out["key"] = job.key;
  if (!job.payload.empty()) out["payload"] = job.payload;
  if (job.fill_in) out["fill_in"] = true;
  if (job.priority != 0) out["priority"] = job.priority;
  if (job.max_attempts != 0) out["max_attempts"] = job.max_attempts;
  return out;
}

Result<JobTemplate> read_job(const json::object& form, MemberPath& where) {
  Reader in(form);
  JobTemplate job;
  job.queue = in.text("queue", job.queue);
  job.function = in.text("function");
  job.key = in.text("key");
  if (const json::value* payload = in.find("payload"); payload != nullptr) {
    job.payload = payload->is_string() ? std::string(payload->as_string()) : json::serialize(*payload);
  }
  job.fill_in = in.flag("fill_in", false);
  constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
  job.priority = static_cast<std::int32_t>(in.number("priority", kInt32, -kInt32 - 1));
  job.max_attempts = static_cast<std::uint32_t>(in.number("max_attempts", std::numeric_limits<std::uint32_t>::max()));
  if (auto error = in.finish("a job has none")) {
    where = detail::below("job", in.path());
    return std::unexpected(std::move(*error));
  }
  return job;
}

Result<Trigger> read_any_trigger(const json::value& form, MemberPath& where) {
  where = {"trigger"};
  if (form.is_object()) {
    MemberPath inside;
    auto trigger = detail::read_trigger(form.as_object(), inside);
    if (!trigger) where = detail::below("trigger", std::move(inside));
    return trigger;
  }
  if (form.is_string()) return Trigger::parse(form.as_string());
  return bad_field("trigger", json::serialize(form), "an object or a string");
}

}  // namespace

namespace detail {

json::object form_of_definition(const Schedule& schedule) {
  const Schedule usual{.name = {}, .trigger = schedule.trigger};
  json::object out{{"job", form_of(schedule.job)}};
  if (schedule.misfire_grace) out["misfire_grace"] = format_duration(*schedule.misfire_grace);
  if (schedule.coalesce != usual.coalesce) out["coalesce"] = to_string(schedule.coalesce);
  if (schedule.most_catch_up != usual.most_catch_up) out["most_catch_up"] = schedule.most_catch_up;
  if (schedule.max_instances != usual.max_instances) out["max_instances"] = schedule.max_instances;
  if (schedule.overlap != usual.overlap) out["overlap"] = to_string(schedule.overlap);
  if (schedule.max_runs != 0) out["max_runs"] = schedule.max_runs;
  return out;
}

Result<void> read_definition(Reader& in, Schedule& into, MemberPath& where) {
  const json::value* job_form = in.find("job");
  where = {"job"};
  if (job_form != nullptr && !job_form->is_object()) {
    return bad_field("job", json::serialize(*job_form), "an object");
  }
  if (job_form != nullptr) {
    auto job = read_job(job_form->as_object(), where);
    if (!job) return std::unexpected(std::move(job.error()));
    into.job = std::move(*job);
  }
  in.parsed("misfire_grace", into.misfire_grace, parse_duration);
  in.choice("coalesce", into.coalesce, kCoalesce);
  in.choice("overlap", into.overlap, kOverlap);
  const auto whole = [&](std::string_view member, std::int64_t most, std::int64_t least, std::int64_t usual) {
    return in.number(member, most, least, usual);
  };
  into.most_catch_up =
      static_cast<std::uint32_t>(whole("most_catch_up", Schedule::kMostCatchUp, 1, into.most_catch_up));
  into.max_instances =
      static_cast<std::uint32_t>(whole("max_instances", Schedule::kMostInstances, 1, into.max_instances));
  into.max_runs = static_cast<std::uint64_t>(whole("max_runs", kMostWhole, 0, 0));
  return {};
}

}  // namespace detail

namespace {

Result<void> check_members(const Schedule& schedule, MemberPath& where) {
  const JobTemplate& job = schedule.job;
  Result<void> good;
  // The first that is not good counts.
  const auto next = [&](std::initializer_list<std::string_view> path, auto check_one) {
    if (!good) return;
    good = check_one(*(path.end() - 1));
    if (good) return;
    where.clear();
    for (const std::string_view name : path) where.emplace_back(std::string(name));
  };
  const auto text = [](const std::string& value, std::size_t least, std::size_t most) {
    return [&value, least, most](std::string_view name) { return check_text(name, value, least, most); };
  };
  const auto number = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    return [=](std::string_view name) { return check_number(name, value, least, most); };
  };
  next({"name"}, text(schedule.name, 1, Schedule::kMostNameBytes));
  next({"job", "queue"}, text(job.queue, 1, kMostWordBytes));
  next({"job", "function"}, text(job.function, 0, kMostWordBytes));
  next({"job", "key"}, text(job.key, 0, kMostWordBytes));
  next({"job", "payload"}, text(job.payload, 0, Schedule::kMostPayloadBytes));
  next({"misfire_grace"}, [&](std::string_view name) -> Result<void> {
    if (!schedule.misfire_grace || *schedule.misfire_grace >= kLeastGrace) return {};
    return bad_field(name, fmt::format("{} ns", schedule.misfire_grace->count()), "at least 1 ms");
  });
  next({"most_catch_up"}, number(schedule.most_catch_up, 1, Schedule::kMostCatchUp));
  next({"max_instances"}, number(schedule.max_instances, 1, Schedule::kMostInstances));
  next({"max_runs"}, number(schedule.max_runs, 0, kMostWhole));
  next({"trigger", "end"}, [&](std::string_view name) -> Result<void> {
    const auto start = schedule.trigger.start(), end = schedule.trigger.end();
    if (!start || !end || *end >= *start) return {};
    return bad_field(name, format_timestamp(*end), fmt::format("not before the start, {}", format_timestamp(*start)));
  });
  return good;
}

}  // namespace

Result<void> check(const Schedule& schedule) {
  MemberPath where;
  return check_members(schedule, where);
}

Result<void> check(const Schedule& schedule, WallTime now) {
  if (auto good = check(schedule); !good || !schedule.trigger.needs_search()) return good;
  if (const auto undecided = why_undecided(schedule.trigger.search(now))) {
    return fail(Errc::invalid_input, fmt::format("trigger: {}", *undecided));
  }
  return {};
}

json::object to_json(const Schedule& schedule) {
  json::object out{{"name", schedule.name}, {"trigger", schedule.trigger.to_json()}};
  for (auto& member : detail::form_of_definition(schedule)) out[member.key()] = std::move(member.value());
  if (schedule.paused) out["paused"] = true;
  return out;
}

Result<Schedule> parse_schedule(const json::object& form) {
  MemberPath where;
  return detail::read_schedule(form, where);
}

Result<Schedule> detail::read_schedule(const json::object& form, MemberPath& where) {
  Reader in(form);
  std::string name = in.text("name");
  const json::value* trigger_form = in.find("trigger");
  where.clear();
  if (trigger_form == nullptr) return fail(Errc::invalid_input, "a schedule needs a trigger");
  auto trigger = read_any_trigger(*trigger_form, where);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  Schedule schedule{.name = std::move(name), .trigger = std::move(*trigger)};
  schedule.paused = in.flag("paused", false);
  if (auto read = read_definition(in, schedule, where); !read) return std::unexpected(std::move(read.error()));
  if (auto error = in.finish("a schedule has none")) {
    where = in.path();
    return std::unexpected(std::move(*error));
  }
  where.clear();
  if (auto good = check_members(schedule, where); !good) return std::unexpected(std::move(good.error()));
  return schedule;
}

Result<Schedule> parse_schedule(std::string_view text) {
  const auto form = detail::read_object("schedule", text, kMostJsonBytes);
  if (!form) return std::unexpected(form.error());
  return parse_schedule(*form);
}

}  // namespace argiope

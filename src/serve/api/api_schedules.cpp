// Schedules, and the times of triggers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "engine/internal/schedule_status_json.hpp"
#include "jobs/internal/job_json.hpp"
#include "jobs/internal/schedule_json.hpp"
#include "serve/api/api_state.hpp"
#include "time/internal/daylight_notes.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kMostTimes = 100;
constexpr std::uint64_t kUsualTimes = 10;
constexpr std::size_t kSchedulesAtOnce = 64;
constexpr std::size_t kMostSchedulesBytes = std::size_t{8} * 1024 * 1024;  // of payloads
// For a page, past schedules that the caller may not see; the next one goes on there.
constexpr std::uint64_t kMostPassed = 100'000;

Result<void> check_unlocked(const ApiState& api, ApiCall& call, std::string_view name) {
  if (!api.schedule_is_locked(name)) return {};
  return call.refuse(ProblemType::locked,
                     fmt::format("schedule {}: the configuration file decides what it is", in_quotes(name)));
}

void write(const ApiState& api, JsonWriter& json, const ScheduleStatus& status) {
  write_members(json, status);
  api.write_lock_of_schedule(json, status.name);
}

ServerResponse answer_with(const ApiState& api, const ScheduleStatus& status) {
  return json_answer([&](JsonWriter& json) { write(api, json, status); });
}

// Whether the caller may see it, or change it, by its name and its queue. One whose queue cannot be read is for those
// who may all.
bool may_reach(const ApiCall& call, const ScheduleStatus& status) {
  if (call.reaches_all()) return true;
  return status.schedule && call.may_reach(status.name) && call.may_reach(status.schedule->job.queue);
}

Result<void> check_reach(ApiCall& call, const ScheduleStatus& status) {
  if (may_reach(call, status)) return {};
  return call.refuse(ProblemType::forbidden,
                     fmt::format("schedule {}: its jobs go to a queue that the token {} may not use",
                                 in_quotes(status.name), in_quotes(call.caller.name)));
}

// Of the schedule that the path names, if the caller may see it, or change it.
Coro<Result<std::string>> schedule_in_path(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(call.name_in_path("schedule"));
  if (call.reaches_all()) co_return name;
  const auto status = co_await or_return(api.book().schedules().get(name));
  co_await or_return(check_reach(call, status));
  co_return name;
}

// --- looks
// ---------------------------------------------------------------------------------------------------------------

struct SchedulePage {
  std::vector<ScheduleStatus> schedules;
  std::optional<ScheduleId> next;  // behind which more may come
};

// Slices, until the page is full, or has some megabytes of payloads.
Coro<Result<SchedulePage>> read_page(ApiState& api, const ApiCall& call, ScheduleId after, std::size_t limit) {
  SchedulePage page;
  std::size_t bytes = 0;
  for (std::size_t looked = 0; looked < kMostPassed;) {
    const std::size_t wanted = std::min(limit + 1, kSchedulesAtOnce);
    auto slice = co_await or_return(api.book().schedules().list(after, wanted));
    looked += wanted;
    for (ScheduleStatus& status : slice) {
      after = status.id;
      if (!may_reach(call, status)) continue;
      if (page.schedules.size() == limit || bytes > kMostSchedulesBytes) {
        page.next = page.schedules.back().id;
        co_return page;
      }
      if (status.schedule) bytes += status.schedule->job.payload.size();
      page.schedules.push_back(std::move(status));
    }
    if (slice.size() < wanted) co_return page;
  }
  page.next = after;
  co_return page;
}

Coro<Result<ServerResponse>> list_schedules(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const ScheduleId after = query.whole("after", 0, std::numeric_limits<std::int64_t>::max(), 0);
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  co_await or_return(query.finish());
  const SchedulePage page = co_await or_return(read_page(api, call, after, limit));
  co_return json_answer([&](JsonWriter& json) {
    json.array("schedules", [&] {
      for (const ScheduleStatus& status : page.schedules) json.object([&] { write(api, json, status); });
    });
    json.member("next", page.next);
  });
}

Coro<Result<ServerResponse>> show_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  co_return answer_with(api, co_await or_return(api.book().schedules().get(std::move(name))));
}

Coro<Result<ServerResponse>> schedule_history(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  ApiQuery query(call);
  const std::size_t limit = query.whole("limit", 1, kRunsKept, kRunsKept);
  co_await or_return(query.finish());
  const auto runs = co_await or_return(api.book().schedules().history(std::move(name), limit));
  co_return json_answer([&](JsonWriter& json) {
    json.array("runs", [&] {
      for (const ScheduleRun& run : runs) json.object([&] { write_members(json, run); });
    });
  });
}

Coro<Result<ServerResponse>> explain_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  const auto why = co_await or_return(api.book().schedules().explain(std::move(name)));
  co_return json_answer([&](JsonWriter& json) {
    write_members(json, why);
    json.member("sentence", to_sentence(why));
  });
}

Coro<Result<ServerResponse>> schedule_output(ApiState& api, ApiCall& call) {
  const auto name = co_await or_return(schedule_in_path(api, call));
  auto left = co_await or_return(api.book().schedules().output(name));
  if (!left) {
    co_return call.refuse(ProblemType::not_found,
                          fmt::format("schedule {}: no run of it has left anything", in_quotes(name)));
  }
  co_return answer_with_output(std::move(left->output));
}

// --- schedules come and change
// -------------------------------------------------------------------------------------------

// `base` with the members of `changes` in the place of its own, those of "job" one by one. A null stays, for a name
// that no schedule has is wrong with it, too.
void write_merged(JsonWriter& json, const JsonValue& base, const JsonValue& changes) {
  json.object([&] {
    base.for_each_name([&](std::string_view name, const JsonValue& value) {
      bool changed = false;
      changes.for_each_member([&](std::string_view other, const JsonValue&) { changed = changed || other == name; });
      if (changed) return;
      json.key(name);
      json.raw(value.json());
    });
    changes.for_each_name([&](std::string_view name, const JsonValue& value) {
      std::optional<JsonValue> before;
      if (name == "job" && value.is_object()) {
        base.for_each_name([&](std::string_view other, const JsonValue& there) {
          if (other == name) before = there;
        });
      }
      json.key(name);
      before ? write_merged(json, *before, value) : json.raw(value.json());
    });
  });
}

// The schedule that `base`, a JSON text, is with those changes; `nulls`: what one in them stands for. Mistakes go to
// the errors of `changes`.
Result<Schedule> merged(const std::string& base, const JsonValue& changes, JsonMembers::Nulls nulls) {
  const auto before = JsonText::parse(base);
  if (!before) return std::unexpected(before.error());
  std::string text;
  JsonWriter json(text);
  JsonErrors none;
  write_merged(json, before->root(none), changes);
  const auto whole = JsonText::parse(text);
  if (!whole) return std::unexpected(whole.error());
  return detail::read_schedule(whole->root(changes.errors()), nulls);
}

// Whether the caller may add it, or have it in the place of the one that is there.
Coro<Result<void>> check_add(ApiState& api, ApiCall& call, const Schedule& schedule) {
  co_await or_return(call.check_use(schedule.name));
  co_await or_return(call.check_put(schedule.job.queue, schedule.job.function));
  co_await or_return(check_unlocked(api, call, schedule.name));
  if (call.reaches_all()) co_return Result<void>{};
  const auto there = co_await api.book().schedules().get(schedule.name);
  co_return there ? check_reach(call, *there) : Result<void>{};
}

// The schedule that the body asks for.
Coro<Result<Schedule>> read_schedule(ApiCall& call, const JsonValue& root, std::string base) {
  JsonMembers(root).refuse_repeated();
  co_await or_return(call.checked());
  auto schedule = merged(base, root, JsonMembers::Nulls::are_values);
  co_await or_return(call.read_all());
  co_return schedule;
}

std::string_view to_string(AddOutcome outcome) {
  static constexpr std::string_view kNames[] = {"added", "replaced", "kept", "exists"};
  return kNames[static_cast<std::size_t>(outcome)];
}

void write(JsonWriter& json, const AddReply& reply) {
  json.member("id", reply.id);
  json.member("outcome", to_string(reply.outcome));
}

Coro<Result<ServerResponse>> add_schedule(ApiState& api, ApiCall& call, Schedule schedule, ConflictPolicy conflict) {
  co_await or_return(check_add(api, call, schedule));
  const auto added = co_await api.book().schedules().add(std::move(schedule), conflict);
  if (!added && added.error().code == Errc::refused) co_return call.refuse_as(ProblemType::conflict, added.error());
  if (!added) co_return std::unexpected(added.error());
  co_return json_answer([&](JsonWriter& json) { write(json, *added); },
                        added->outcome == AddOutcome::added ? 201 : 200);
}

// --- many, all or none

// Those of "schedules"; what is wrong with the first that is wrong goes to the errors of `root`.
std::vector<Schedule> read_schedules(const ApiState& api, const JsonValue& root) {
  std::vector<Schedule> schedules;
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue& list = *in.find("schedules");
  in.finish("beside \"schedules\" there is none");
  if (!list.is_list() || list.size() > api.options.most_jobs) {
    list.wrong(fmt::format("a list of at most {} schedules", api.options.most_jobs));
    return schedules;
  }
  schedules.reserve(list.size());
  list.for_each([&](const JsonValue& form) {
    if (root.errors()) return;
    if (!form.is_object()) return form.wrong("one JSON object is wanted");
    JsonMembers(form).refuse_repeated();
    if (auto schedule = detail::read_schedule(form)) schedules.push_back(*std::move(schedule));
  });
  return schedules;
}

Coro<Result<ServerResponse>> add_many(ApiState& api, ApiCall& call, const JsonValue& root, ConflictPolicy conflict) {
  std::vector<Schedule> schedules = read_schedules(api, root);
  co_await or_return(call.read_all());
  for (const Schedule& schedule : schedules) co_await or_return(check_add(api, call, schedule));
  std::vector<AddReply> replies;
  if (!schedules.empty()) {
    replies = co_await or_return(api.book().schedules().add_all(std::move(schedules), conflict));
  }
  co_return json_answer([&](JsonWriter& json) {
    json.array("replies", [&] {
      for (const AddReply& reply : replies) json.object([&] { write(json, reply); });
    });
  });
}

Coro<Result<ServerResponse>> add(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const auto conflict = static_cast<ConflictPolicy>(query.one_of("conflict", {"fail", "replace", "keep"}).value_or(0));
  co_await or_return(query.finish());
  const JsonValue root = co_await or_return(call.object());
  bool are_many = false;
  root.for_each_member([&](std::string_view name, const JsonValue&) { are_many = are_many || name == "schedules"; });
  if (are_many) co_return co_await add_many(api, call, root, conflict);
  Schedule schedule = co_await or_return(read_schedule(call, root, "{}"));
  co_return co_await add_schedule(api, call, std::move(schedule), conflict);
}

// The path has the name; the body may have it, too.
Coro<Result<ServerResponse>> replace_schedule(ApiState& api, ApiCall& call) {
  const auto name = co_await or_return(call.name_in_path("schedule"));
  const std::string base = json_object([&](JsonWriter& json) { json.member("name", name); });
  const JsonValue root = co_await or_return(call.object());
  Schedule schedule = co_await or_return(read_schedule(call, root, base));
  if (schedule.name != name) {
    co_return call.refuse(
        {ProblemType::invalid_input, "the schedule has another name than the path", {{"/name", name}}});
  }
  co_return co_await add_schedule(api, call, std::move(schedule), ConflictPolicy::replace);
}

Coro<Result<ServerResponse>> change_schedule(ApiState& api, ApiCall& call) {
  const auto name = co_await or_return(schedule_in_path(api, call));
  co_await or_return(check_unlocked(api, call, name));
  const auto status = co_await or_return(api.book().schedules().get(name));
  if (!status.schedule) co_return call.refuse(ProblemType::wrong_state, status.trouble);
  const JsonValue root = co_await or_return(call.object());
  JsonMembers(root).refuse_repeated();
  const auto first = merged(to_json(*status.schedule), root, JsonMembers::Nulls::are_missing);
  co_await or_return(call.checked());
  if (!first) co_return std::unexpected(first.error());
  co_await or_return(call.check_put(first->job.queue, first->job.function));
  // Called again where another change came first; what is wrong then leaves that one as it is.
  const auto change_it = [&root](Schedule& schedule) {
    if (auto changed = merged(to_json(schedule), root, JsonMembers::Nulls::are_missing)) schedule = std::move(*changed);
  };
  co_return answer_with(api, co_await or_return(api.book().schedules().modify(name, change_it)));
}

Coro<Result<ServerResponse>> remove_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  co_await or_return(check_unlocked(api, call, name));
  co_await or_return(api.book().schedules().remove(std::move(name)));
  co_return no_content();
}

// --- what people do with them
// --------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> pause_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const given = in.find("by");
  std::string by = given == nullptr ? call.caller.name : given->text(0, Schedule::kMostNameBytes);
  in.finish("there is only by");
  co_await or_return(call.read_all());
  co_return answer_with(api, co_await or_return(api.book().schedules().pause(std::move(name), std::move(by))));
}

Coro<Result<ServerResponse>> resume_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const from = in.find("from");
  const bool now = from != nullptr && from->one_of({"where_it_was", "now"}) == 1;
  in.finish("there is only from");
  co_await or_return(call.read_all());
  const ResumeFrom where = now ? ResumeFrom::now : ResumeFrom::where_it_was;
  co_return answer_with(api, co_await or_return(api.book().schedules().resume(std::move(name), where)));
}

Coro<Result<ServerResponse>> run_now(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  co_await or_return(call.no_members());
  const JobId job = co_await or_return(api.book().schedules().run_now(std::move(name)));
  co_return json_answer([&](JsonWriter& json) { json.member("job", job); });
}

// --- the times of triggers
// -----------------------------------------------------------------------------------------------

// {"at","local","note"}; a time that daylight saving has left out before it is told in the note, too.
void write_time(JsonWriter& json, const Trigger& trigger, WallTime time) {
  json.object([&] {
    json.member("at", time);
    json.member("local", format_timestamp(time, trigger.zone()));
    const CronExpression* const cron = trigger.cron_expression();
    json.member("note", cron == nullptr ? std::string() : DaylightNotes(*cron, trigger.zone()).about(time));
  });
}

// One may take many questions to find: others go on in between.
Coro<Result<ServerResponse>> answer_with_times(Trigger trigger, WallTime after, std::uint64_t count) {
  std::vector<WallTime> times;
  for (auto time = trigger.next(after); time && times.size() < count; time = trigger.next(*time)) {
    times.push_back(*time);
    co_await yield_now();
  }
  co_return json_answer([&](JsonWriter& json) {
    json.array("times", [&] {
      for (const WallTime time : times) write_time(json, trigger, time);
    });
    json.member("zone", trigger.zone().name());
  });
}

Coro<Result<ServerResponse>> next_of_schedule(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(schedule_in_path(api, call));
  ApiQuery query(call);
  const std::uint64_t count = query.whole("count", 1, kMostTimes, kUsualTimes);
  co_await or_return(query.finish());
  const auto status = co_await or_return(api.book().schedules().get(std::move(name)));
  if (!status.schedule) co_return call.refuse(ProblemType::wrong_state, status.trouble);
  co_return co_await answer_with_times(status.schedule->trigger, api.engine.calendar_now(), count);
}

Coro<Result<ServerResponse>> next_of_trigger(ApiState& api, ApiCall& call) {
  co_await read_apart(api.long_bodies, call, [&] { call.parse(); });
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const form = in.find("trigger");
  if (form == nullptr) root.refuse("member \"trigger\" is missing");
  const JsonValue* const count = in.find("count");
  const auto most = static_cast<std::int64_t>(kMostTimes);
  const std::uint64_t wanted = count == nullptr ? kUsualTimes : static_cast<std::uint64_t>(count->whole(1, most));
  const JsonValue* const after = in.find("after");
  const WallTime from = after == nullptr ? api.engine.calendar_now() : read_due(*after);
  in.finish("there are trigger, count and after");
  co_await or_return(call.checked());
  const auto trigger = detail::read_any_trigger(*form);
  co_await or_return(call.read_all());
  co_return co_await answer_with_times(*trigger, from, wanted);
}

}  // namespace

std::vector<ApiRoute> schedule_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/schedules", list_schedules, true),
      {.method = post,
       .pattern = "/v1/schedules",
       .scope = TokenScope::admin,
       .handler = add,
       .audited = true,
       .has_query = true},
      {get, "/v1/schedules/{schedule}", TokenScope::read, show_schedule},
      {put, "/v1/schedules/{schedule}", TokenScope::admin, replace_schedule, true},
      {patch, "/v1/schedules/{schedule}", TokenScope::admin, change_schedule, true},
      {delete_, "/v1/schedules/{schedule}", TokenScope::admin, remove_schedule, true},
      {post, "/v1/schedules/{schedule}/pause", TokenScope::admin, pause_schedule, true},
      {post, "/v1/schedules/{schedule}/resume", TokenScope::admin, resume_schedule, true},
      {post, "/v1/schedules/{schedule}/run", TokenScope::work, run_now, true},
      {.method = get, .pattern = "/v1/schedules/{schedule}/history", .handler = schedule_history, .has_query = true},
      {get, "/v1/schedules/{schedule}/explain", TokenScope::read, explain_schedule},
      {get, "/v1/schedules/{schedule}/output", TokenScope::read, schedule_output},
      reading_much(get, "/v1/schedules/{schedule}/next", next_of_schedule, true),
      {.method = post,
       .pattern = "/v1/next",
       .scope = TokenScope::read,
       .handler = next_of_trigger,
       .reads_much = true,
       .reads_apart = true},
  };
}

}  // namespace argiope

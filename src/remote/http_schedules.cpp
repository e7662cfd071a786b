// The schedules of an HttpBook.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "base/internal/json_told.hpp"
#include "engine/internal/book_telling.hpp"
#include "remote/internal/api_path.hpp"
#include "remote/internal/http_book.hpp"

namespace argiope {
namespace {

constexpr std::size_t kSchedulesInPage = 1'000;
constexpr std::size_t kSchedulesInRequest = 10'000;

std::string_view word_of(ConflictPolicy conflict) {
  static constexpr std::string_view kWords[] = {"fail", "replace", "keep"};
  return kWords[static_cast<std::size_t>(conflict)];
}

AddReply read_add_reply(const JsonValue& told) {
  ToldMembers in(told);
  AddReply reply;
  std::string outcome;
  in.read("id", reply.id);
  in.read("outcome", outcome);
  if (outcome == "replaced") reply.outcome = AddOutcome::replaced;
  if (outcome == "kept") reply.outcome = AddOutcome::kept;
  if (outcome == "exists") reply.outcome = AddOutcome::exists;
  return reply;
}

std::vector<AddReply> read_add_replies(const JsonValue& told) {
  ToldMembers in(told);
  std::vector<AddReply> replies;
  if (const JsonValue* list = in.find("replies"); list != nullptr && list->is_list()) {
    list->for_each([&](const JsonValue& reply) { replies.push_back(read_add_reply(reply)); });
  }
  return replies;
}

// {"schedules":[…]}
std::string body_of(const std::vector<Schedule>& schedules) {
  return json_object([&](JsonWriter& json) {
    json.array("schedules", [&] {
      for (const Schedule& schedule : schedules) json.raw(to_json(schedule));
    });
  });
}

ApiRequest request_to_add(std::string body, ConflictPolicy conflict) {
  ApiRequest request{.method = HttpMethod::post,
                     .path = fmt::format("/v1/schedules?conflict={}", word_of(conflict)),
                     .body = std::move(body)};
  // Sent again, it would meet itself.
  if (conflict == ConflictPolicy::fail) request.again = Again::harmful;
  return request;
}

std::vector<ScheduleStatus> read_schedule_page(const JsonValue& told) {
  ToldMembers in(told);
  std::vector<ScheduleStatus> page;
  if (const JsonValue* list = in.find("schedules")) {
    list->for_each([&](const JsonValue& status) { page.push_back(read_schedule_status(status)); });
  }
  return page;
}

// --- the changes, as PATCH takes them

std::string member_of(const JsonValue& object, std::string_view name) {
  std::string found;
  object.for_each_member([&](std::string_view other, const JsonValue& value) {
    if (other == name) found = value.json();
  });
  return found;
}

bool has_member(const JsonValue& object, std::string_view name) {
  bool found = false;
  object.for_each_member([&](std::string_view other, const JsonValue&) { found = found || other == name; });
  return found;
}

// The members of `after` that `before` has not or has otherwise; null for those that go. The job's one by one.
void write_difference(JsonWriter& json, const JsonValue& before, const JsonValue& after) {
  json.object([&] {
    before.for_each_member([&](std::string_view name, const JsonValue&) {
      if (has_member(after, name)) return;
      json.key(name);
      json.null();
    });
    after.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (member_of(before, name) == value.json()) return;
      json.key(name);
      bool written = false;
      if (name == "job" && value.is_object()) {
        before.for_each_member([&](std::string_view other, const JsonValue& old) {
          if (other != name || !old.is_object()) return;
          write_difference(json, old, value);
          written = true;
        });
      }
      if (!written) json.raw(value.json());
    });
  });
}

Result<std::string> difference(const Schedule& before, const Schedule& after) {
  const auto old = JsonText::parse(to_json(before));
  const auto changed = JsonText::parse(to_json(after));
  if (!old) return std::unexpected(old.error());
  if (!changed) return std::unexpected(changed.error());
  std::string body;
  JsonWriter json(body);
  JsonErrors errors;
  write_difference(json, old->root(errors), changed->root(errors));
  return body;
}

}  // namespace

// --- schedules come and go -------------------------------------------------------------------------------------------

// In one request, which the daemon does as a whole.
Coro<Result<std::vector<AddReply>>> HttpBook::add_schedules(std::vector<Schedule> schedules, ConflictPolicy conflict) {
  const std::size_t count = schedules.size();
  if (count == 0) co_return std::vector<AddReply>{};
  if (count == 1) {
    const Schedule& one = schedules.front();
    co_return std::vector<AddReply>{co_await or_return(add_schedule(to_json(one), one.name, conflict))};
  }
  if (count > kSchedulesInRequest) {
    co_return fail(Errc::too_large,
                   fmt::format("{} schedules: a daemon adds all or none, and takes at most {} together: "
                               "give it a part of them at a time",
                               count, kSchedulesInRequest));
  }
  std::string body = body_of(schedules);
  const std::string answer = co_await or_return(client_.tell(request_to_add(std::move(body), conflict)));
  auto replies = co_await or_return(read_answer(answer, read_add_replies));
  if (replies.size() != count) {
    co_return fail(Errc::protocol,
                   fmt::format("the daemon's answer: {} replies to {} schedules", replies.size(), count));
  }
  co_return replies;
}

Coro<Result<AddReply>> HttpBook::add_schedule(std::string schedule, std::string name, ConflictPolicy conflict) {
  const ApiAnswer answer = co_await or_return(client_.ask(request_to_add(std::move(schedule), conflict)));
  if (!answer.problem) co_return read_answer(answer.body, read_add_reply);
  if (answer.problem->type != "conflict") co_return std::unexpected(answer.problem->error);
  const ScheduleStatus there = co_await or_return(get_schedule(std::move(name)));
  co_return AddReply{AddOutcome::exists, there.id};
}

Coro<Result<void>> HttpBook::remove_schedule(std::string name) {
  std::string path = co_await or_return(path_of("schedule", name));
  co_await or_return(client_.tell({.method = HttpMethod::delete_, .path = std::move(path)}));
  co_return Result<void>{};
}

// --- looks -----------------------------------------------------------------------------------------------------------

Coro<Result<ScheduleStatus>> HttpBook::get_schedule(std::string name) {
  const auto body = co_await or_return(get_part("schedule", std::move(name), {}));
  co_return read_answer(body, read_schedule_status);
}

Coro<Result<std::vector<ScheduleStatus>>> HttpBook::list_schedules(ScheduleId after, std::size_t limit) {
  std::vector<ScheduleStatus> all;
  while (all.size() < limit) {
    const std::size_t count = std::min(limit - all.size(), kSchedulesInPage);
    const std::string path = fmt::format("/v1/schedules?after={}&limit={}", after, count);
    auto page = co_await or_return(read_answer(co_await or_return(client_.tell({.path = path})), read_schedule_page));
    if (page.empty()) break;
    after = page.back().id;
    const bool is_last = page.size() < count;
    std::ranges::move(page, std::back_inserter(all));
    if (is_last) break;
  }
  co_return all;
}

Coro<Result<std::vector<ScheduleRun>>> HttpBook::schedule_history(std::string name, std::size_t limit) {
  std::string path = co_await or_return(path_of("schedule", name, "history"));
  path += fmt::format("?limit={}", std::clamp<std::uint64_t>(limit, 1, kRunsKept));
  const std::string body = co_await or_return(client_.tell({.path = std::move(path)}));
  co_return read_answer(body, [](const JsonValue& told) {
    std::vector<ScheduleRun> runs;
    ToldMembers in(told);
    if (const JsonValue* list = in.find("runs")) {
      list->for_each([&](const JsonValue& run) { runs.push_back(read_schedule_run(run)); });
    }
    return runs;
  });
}

// The API gives the bytes alone. Whose they are is told as of the newest run that has ended, which need not be the one
// that has left something.
Coro<Result<std::optional<ScheduleOutput>>> HttpBook::schedule_output(std::string name) {
  std::string path = co_await or_return(path_of("schedule", name, "output"));
  ApiAnswer answer = co_await or_return(client_.ask({.path = std::move(path)}));
  if (answer.problem && answer.problem->type != "not_found") co_return std::unexpected(answer.problem->error);
  // Not found: either there is none, or there is no such schedule.
  const auto runs = co_await or_return(schedule_history(std::move(name), kRunsKept));
  if (answer.problem) co_return std::optional<ScheduleOutput>();
  ScheduleOutput output{.output = std::move(answer.body)};
  const auto has_ended = [](const ScheduleRun& run) { return run.job != 0 && run.outcome != RunOutcome::running; };
  const auto last = std::ranges::find_if(runs, has_ended);
  if (last != runs.end()) {
    output.run = last->number;
    output.job = last->job;
    output.ended_at = last->ended_at;
    output.outcome = last->outcome;
    output.error = last->error;
  }
  co_return std::optional(std::move(output));
}

Coro<Result<ScheduleExplanation>> HttpBook::explain_schedule(std::string name) {
  const auto body = co_await or_return(get_part("schedule", std::move(name), "explain"));
  co_return read_answer(body, read_schedule_explanation);
}

// --- changes ---------------------------------------------------------------------------------------------------------

Coro<Result<ScheduleStatus>> HttpBook::change_schedule(Schedule before, Schedule after) {
  std::string path = co_await or_return(path_of("schedule", before.name));
  std::string body = co_await or_return(difference(before, after));
  const std::string answer =
      co_await or_return(client_.tell({.method = HttpMethod::patch, .path = std::move(path), .body = std::move(body)}));
  co_return read_answer(answer, read_schedule_status);
}

Coro<Result<ScheduleStatus>> HttpBook::post_to_schedule(std::string name, std::string_view what, std::string body) {
  std::string path = co_await or_return(path_of("schedule", name, what));
  const std::string answer =
      co_await or_return(client_.tell({.method = HttpMethod::post, .path = std::move(path), .body = std::move(body)}));
  co_return read_answer(answer, read_schedule_status);
}

Coro<Result<ScheduleStatus>> HttpBook::pause_schedule(std::string name, std::string by) {
  const std::string body = json_object([&](JsonWriter& json) {
    if (!by.empty()) json.member("by", by);
  });
  co_return co_await post_to_schedule(std::move(name), "pause", body);
}

Coro<Result<ScheduleStatus>> HttpBook::resume_schedule(std::string name, ResumeFrom from) {
  const std::string body =
      json_object([&](JsonWriter& json) { json.member("from", from == ResumeFrom::now ? "now" : "where_it_was"); });
  co_return co_await post_to_schedule(std::move(name), "resume", body);
}

Coro<Result<JobId>> HttpBook::run_schedule_now(std::string name) {
  std::string path = co_await or_return(path_of("schedule", name, "run"));
  const std::string body = co_await or_return(
      client_.tell({.method = HttpMethod::post, .path = std::move(path), .body = "{}", .again = Again::harmful}));
  co_return read_answer(body, [](const JsonValue& told) {
    ToldMembers in(told);
    JobId job = 0;
    in.read("job", job);
    return job;
  });
}

}  // namespace argiope

// Queues: their policies, how many jobs they hold, pauses, kicks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "jobs/internal/job_json.hpp"
#include "jobs/internal/queue_config_json.hpp"
#include "serve/api/api_state.hpp"
#include "serve/watch/counters.hpp"

namespace argiope {

std::vector<std::string> names_of(const std::vector<StoredQueue>& queues) {
  std::vector<std::string> names;
  names.reserve(queues.size());
  for (const StoredQueue& queue : queues) names.push_back(queue.name);
  return names;
}

StateCounts counts_in(const std::vector<NamedCounts>& sorted, std::string_view queue) {
  const auto found = std::ranges::lower_bound(sorted, queue, {}, &NamedCounts::first);
  return found != sorted.end() && found->first == queue ? found->second : StateCounts{};
}
namespace {

constexpr std::int64_t kMostKicked = 10'000;
constexpr std::int64_t kUsualKicked = 1'000;

// The same of a queue whose policy is to be changed.
Result<std::string> unlocked_name_of(const ApiState& api, ApiCall& call) {
  auto name = call.name_in_path("queue");
  if (!name || !api.queue_is_locked(*name)) return name;
  return call.refuse(ProblemType::locked,
                     fmt::format("queue {}: the configuration file decides what it is", in_quotes(*name)));
}

void write(const ApiState& api, JsonWriter& json, const StoredQueue& queue, const StateCounts& counts) {
  json.object([&] {
    json.member("name", queue.name);
    json.key("config");
    json.raw(to_json(queue.config));
    json.object("counts", [&] { write_members(json, counts); });
    api.write_lock_of_queue(json, queue.name);
  });
}

Coro<Result<ServerResponse>> answer_with(ApiState& api, std::string name) {
  const auto queue = co_await or_return(api.book().queue(name));
  const auto counts = co_await or_return(api.book().counts(std::move(name)));
  std::string body;
  JsonWriter json(body);
  write(api, json, queue, counts.front().second);
  body += '\n';
  co_return ServerResponse::json(200, std::move(body));
}

// By name.
Coro<Result<ServerResponse>> list_queues(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string after = query.text("after").value_or("");
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kMostInPage);
  co_await or_return(query.finish());
  auto queues = co_await or_return(api.book().queues());
  std::erase_if(queues, [&](const StoredQueue& its) { return its.name <= after || !call.caller.may_use(its.name); });
  std::ranges::sort(queues, {}, &StoredQueue::name);
  const bool more = queues.size() > limit;
  if (more) queues.resize(limit);
  const auto counts = co_await or_return(api.book().counts_of(names_of(queues)));
  co_return json_answer([&](JsonWriter& json) {
    json.array("queues", [&] {
      for (const StoredQueue& queue : queues) {
        write(api, json, queue, counts_in(counts, queue.name));
      }
    });
    json.member("next", more ? std::optional(queues.back().name) : std::nullopt);
  });
}

Coro<Result<ServerResponse>> show_queue(ApiState& api, ApiCall& call) {
  co_return co_await answer_with(api, co_await or_return(call.name_in_path("queue")));
}

// --- policies
// ------------------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> configure(ApiState& api, ApiCall& call, std::string name, QueueConfig base) {
  const JsonValue root = co_await or_return(call.object());
  JsonMembers(root).refuse_repeated();
  auto config = detail::read_queue_config(root, base);
  co_await or_return(call.read_all());
  co_await or_return(api.book().configure(name, std::move(*config), call.caller.reach()));
  co_return co_await answer_with(api, std::move(name));
}

Coro<Result<ServerResponse>> replace_queue(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(unlocked_name_of(api, call));
  co_return co_await configure(api, call, std::move(name), {});
}

Coro<Result<ServerResponse>> change_queue(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(unlocked_name_of(api, call));
  auto queue = co_await or_return(api.book().queue(name));
  co_return co_await configure(api, call, std::move(name), std::move(queue.config));
}

Coro<Result<ServerResponse>> erase_queue(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(unlocked_name_of(api, call));
  const auto erased = co_await api.book().erase_queue(std::move(name));
  if (!erased && erased.error().code == Errc::refused)
    co_return call.refuse_as(ProblemType::wrong_state, erased.error());
  if (!erased) co_return std::unexpected(erased.error());
  co_return no_content();
}

// --- what people do when something is wrong
// --------------------------------------------------------------------------------

Coro<Result<ServerResponse>> pause_queue(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(call.name_in_path("queue"));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const given = in.find("until");
  const WallTime until = given == nullptr ? WallTime{} : read_due(*given);
  in.finish("there is only until");
  co_await or_return(call.read_all());
  co_await or_return(given == nullptr ? api.book().pause(name) : api.book().pause(name, until));
  co_return co_await answer_with(api, std::move(name));
}

Coro<Result<ServerResponse>> resume_queue(ApiState& api, ApiCall& call) {
  auto name = co_await or_return(call.name_in_path("queue"));
  co_await or_return(call.no_members());
  co_await or_return(api.book().resume(name));
  co_return co_await answer_with(api, std::move(name));
}

Coro<Result<std::size_t>> kick_some(ApiState& api, std::string queue, JobState state, std::size_t limit) {
  const auto jobs = co_await or_return(
      api.book().list({.queue = std::move(queue), .state = state, .key = {}, .limit = limit, .payloads = false}));
  std::vector<Change> changes;
  for (const JobRecord& job : jobs) {
    if (job.pending == 0) changes.push_back({.id = job.id, .kind = ChangeKind::kick});
  }
  const auto replies = co_await or_return(api.book().change(std::move(changes)));
  co_return static_cast<std::size_t>(std::ranges::count(replies, ChangeOutcome::changed, &ChangeReply::outcome));
}

// As beanstalkd does: delayed ones only where nothing is buried.
Coro<Result<ServerResponse>> kick_queue(ApiState& api, ApiCall& call) {
  const auto name = co_await or_return(call.name_in_path("queue"));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const given = in.find("limit");
  const auto limit = static_cast<std::size_t>(given == nullptr ? kUsualKicked : given->whole(1, kMostKicked));
  in.finish("there is only limit");
  co_await or_return(call.read_all());
  co_await or_return(api.book().queue(name));
  std::size_t kicked = co_await or_return(kick_some(api, name, JobState::buried, limit));
  if (kicked == 0) kicked = co_await or_return(kick_some(api, name, JobState::delayed, limit));
  co_return json_answer([&](JsonWriter& json) { json.member("kicked", kicked); });
}

}  // namespace

std::vector<ApiRoute> queue_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/queues", list_queues, true),
      {get, "/v1/queues/{queue}", TokenScope::read, show_queue},
      {put, "/v1/queues/{queue}", TokenScope::admin, replace_queue, true},
      {patch, "/v1/queues/{queue}", TokenScope::admin, change_queue, true},
      {delete_, "/v1/queues/{queue}", TokenScope::admin, erase_queue, true},
      {post, "/v1/queues/{queue}/pause", TokenScope::admin, pause_queue, true},
      {post, "/v1/queues/{queue}/resume", TokenScope::admin, resume_queue, true},
      {post, "/v1/queues/{queue}/kick", TokenScope::work, kick_queue, true, false, true},
      queue_stats_route(),
  };
}

}  // namespace argiope

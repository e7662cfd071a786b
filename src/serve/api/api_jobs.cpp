// Jobs that are there: looked at, and changed.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <list>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "engine/internal/explanation_json.hpp"
#include "jobs/internal/job_json.hpp"
#include "serve/api/api_state.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostWhyBytes = 1'024;
// A page ends behind so many bytes of payloads and results.
constexpr std::size_t kMostPayloadBytes = 8 * 1024 * 1024;
// For a page, past jobs that it does not want; the next one goes on there.
constexpr std::size_t kMostLooked = 100'000;
constexpr std::size_t kMostSearchedBytes = 64 * 1024 * 1024;
// Of a payload that is only to be recognised.
constexpr std::size_t kBeginningBytes = 200;
constexpr std::size_t kMostWordBytes = 200;

std::unexpected<Error> no_such_job(ApiCall& call) {
  return call.refuse(ProblemType::not_found,
                     fmt::format("job {}: there is no such job", in_quotes(call.id_or_name("job"))));
}

// The job that the path names, if the caller may see it, or change it.
Coro<Result<JobId>> job_of(ApiState& api, ApiCall& call) {
  auto id = co_await api.book().find(std::string(call.id_or_name("job")));
  if (call.reaches_all() || (!id && id.error().code != Errc::not_found)) co_return id;
  // A caller who may not see it is told the same as where there is none.
  if (!id) co_return no_such_job(call);
  const auto record = co_await api.book().get(*id);
  if (!record || !call.may_reach(record->queue)) co_return no_such_job(call);
  co_return *id;
}

// --- looks
// ---------------------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> show_job(ApiState& api, ApiCall& call) {
  const JobId id = co_await or_return(job_of(api, call));
  const auto record = co_await or_return(api.book().get(id));
  co_return json_answer([&](JsonWriter& json) { write_members(json, record); });
}

Coro<Result<ServerResponse>> explain_job(ApiState& api, ApiCall& call) {
  const JobId id = co_await or_return(job_of(api, call));
  const auto why = co_await or_return(api.book().explain(id));
  co_return json_answer([&](JsonWriter& json) {
    write_members(json, why);
    json.member("sentence", to_sentence(why));
  });
}

Coro<Result<ServerResponse>> job_history(ApiState& api, ApiCall& call) {
  const JobId id = co_await or_return(job_of(api, call));
  const auto attempts = co_await or_return(api.book().history(id));
  if (attempts.empty()) co_await or_return(api.book().get(id));
  co_return json_answer([&](JsonWriter& json) { write_history(json, "attempts", attempts); });
}

// --- output

// Without the beginning of a character whose rest has not come yet; unless that is all.
std::string_view whole_characters(std::string_view text) {
  for (std::size_t back = 1; back < 4 && back < text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

void write_members(JsonWriter& json, const JobOutput& output) {
  const std::string_view bytes = output.may_grow() ? whole_characters(output.bytes) : output.bytes;
  json.member("run", output.run);
  json.member("after", output.after);
  json.bytes("output", bytes);
  json.member("next", output.after + bytes.size());
  json.member("state", to_string(output.state));
  json.member("error", output.error);
  json.member("more", output.may_grow());
}

// nullopt: all of it is wanted, as it is.
Result<std::optional<OutputLook>> read_look(const ApiState& api, ApiCall& call) {
  const auto most_ms = std::chrono::duration_cast<std::chrono::milliseconds>(api.options.longest_wait).count();
  ApiQuery query(call);
  const bool follows = query.text("after").has_value();
  OutputLook look;
  if (follows) {
    look.after = query.whole("after", 0, kMostJobId, 0);
    look.run = static_cast<std::uint32_t>(query.whole("run", 0, std::numeric_limits<std::uint32_t>::max(), 0));
    look.wait = std::chrono::milliseconds{query.whole("wait_ms", 0, static_cast<std::uint64_t>(most_ms), 0)};
  }
  if (auto good = query.finish(); !good) return std::unexpected(std::move(good.error()));
  return follows ? std::optional(look) : std::nullopt;
}

// Ended early by Api::stop().
Coro<Result<JobOutput>> wait_for_output(ApiState& api, const Caller& caller, JobId id, OutputLook look) {
  Timeout limit(saturating_add(EventLoop::current().time(), look.wait));
  const PollPlace place(api, caller, limit);
  try {
    co_return co_await limit.run(api.book().output(id, look));
  } catch (const TimeoutError&) {
  }
  look.wait = Duration{};
  co_return co_await api.book().output(id, look);
}

// One that cannot wait is answered with what there is, and refused where that is nothing new: or else it would come
// again at once.
Coro<Result<JobOutput>> look_at_output(ApiState& api, ApiCall& call, JobId id, OutputLook look) {
  const bool waits = look.wait > Duration{};
  auto why_not = waits ? api.why_not_wait(call.caller) : std::nullopt;
  if (waits && !why_not) co_return co_await wait_for_output(api, call.caller, id, look);
  look.wait = Duration{};
  JobOutput output = co_await or_return(api.book().output(id, look));
  if (why_not && !output.is_news(look)) co_return call.refuse(*std::move(why_not));
  co_return output;
}

Coro<Result<ServerResponse>> job_output(ApiState& api, ApiCall& call) {
  const JobId id = co_await or_return(job_of(api, call));
  if (const auto look = co_await or_return(read_look(api, call))) {
    const JobOutput output = co_await or_return(look_at_output(api, call, id, *look));
    co_return json_answer([&](JsonWriter& json) { write_members(json, output); });
  }
  const auto turn = co_await api.options.read_turns->next(call.caller.name);
  auto record = co_await or_return(api.book().get(id));
  if (record.result.empty()) {
    co_return call.refuse(ProblemType::not_found, fmt::format("job {}: no run of it has left a result", id));
  }
  co_return answer_with_output(std::move(record.result));
}

// The contents that a page of jobs is to have.
struct WantedJobs {
  JobFilter filter;
  std::string word;         // that is somewhere in them; empty: whatever they say
  bool payloads = false;    // whole ones
  bool beginnings = false;  // those of payloads
  bool own = true;          // the daemon's own queues, too
  bool reads_texts() const noexcept { return payloads || beginnings || !word.empty(); }
};

Result<WantedJobs> read_asked(ApiCall& call) {
  ApiQuery query(call);
  WantedJobs asked;
  JobFilter& filter = asked.filter;
  filter.queue = query.text("queue").value_or("");
  const auto state = query.one_of("state", {"delayed", "ready", "running", "done", "cancelled", "buried"});
  if (state) filter.state = static_cast<JobState>(*state);
  filter.key = query.text("key");
  filter.newest_first = query.one_of("order", {"oldest", "newest"}).value_or(0) == 1;
  filter.after = query.whole("after", 0, kMostJobId, 0);
  filter.limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  asked.word = query.text("word").value_or("");
  if (asked.word.size() > kMostWordBytes)
    query.refuse("word", asked.word, fmt::format("{} bytes at most", kMostWordBytes));
  asked.payloads = query.flag("payloads");
  asked.beginnings = query.flag("beginnings");
  asked.own = query.flag("own", true) || is_own_queue(filter.queue);
  filter.payloads = asked.reads_texts();
  if (auto good = query.finish(); !good) return std::unexpected(std::move(good.error()));
  if (!filter.queue.empty()) {
    if (auto good = call.check_use(filter.queue); !good) return std::unexpected(std::move(good.error()));
  }
  return asked;
}

// Whether the word is in the text; capital letters of ASCII are as good as small ones.
bool says_word(std::string_view text, std::string_view word) {
  return !std::ranges::search(text, word, {}, to_lower, to_lower).empty();
}
bool is_asked_for(const JobRecord& record, const WantedJobs& asked) {
  if (!asked.own && is_own_queue(record.queue)) return false;
  if (asked.word.empty()) return true;
  const std::string_view texts[] = {record.payload, record.name,   record.key,   record.function,
                                    record.unique,  record.worker, record.error, record.result};
  return std::ranges::any_of(texts, [&](std::string_view text) { return says_word(text, asked.word); });
}

// Leaves of its texts what the page is to show.
void shorten(JobRecord& record, const WantedJobs& asked) {
  if (asked.payloads) return;
  record.result.clear();
  const std::size_t most = asked.beginnings ? kBeginningBytes : 0;
  if (record.payload.size() > most) record.payload = whole_characters(std::string_view(record.payload).substr(0, most));
}

struct JobPage {
  std::vector<JobRecord> jobs;
  std::optional<JobId> next;  // what the page that follows comes after
};

// Slices, until the page is full: of what is asked for, and the caller may see.
Coro<Result<JobPage>> read_page(ApiState& api, const ApiCall& call, const WantedJobs asked) {
  JobFilter filter = asked.filter;
  const std::size_t limit = filter.limit;
  JobPage page;
  std::size_t bytes = 0, found = 0, searched = 0;
  for (;;) {
    filter.limit = limit + 1 - page.jobs.size();
    filter.most_bytes = std::max<std::size_t>(kMostPayloadBytes - std::min(bytes, kMostPayloadBytes), 1);
    auto slice = co_await or_return(api.book().look(filter));
    found += slice.jobs.size();
    for (JobRecord& record : slice.jobs) {
      searched += record.payload.size() + record.result.size();
      if (!call.caller.may_use(record.queue) || !is_asked_for(record, asked)) continue;
      if (page.jobs.size() == limit || bytes > kMostPayloadBytes) {
        page.next = page.jobs.back().id;
        co_return page;
      }
      shorten(record, asked);
      bytes += record.payload.size() + record.result.size();
      page.jobs.push_back(std::move(record));
    }
    if (slice.is_last) co_return page;
    filter.after = slice.after;
    filter.up_to = std::min(filter.up_to, slice.newest);
    if (found > kMostLooked || searched > kMostSearchedBytes) {
      page.next = slice.after;
      co_return page;
    }
  }
}

Coro<Result<ServerResponse>> list_jobs(ApiState& api, ApiCall& call) {
  WantedJobs asked = co_await or_return(read_asked(call));
  const JobPage page = co_await or_return(read_page(api, call, std::move(asked)));
  co_return json_answer([&](JsonWriter& json) {
    json.array("jobs", [&] {
      for (const JobRecord& record : page.jobs) json.object([&] { write_members(json, record); });
    });
    json.member("next", page.next);
  });
}

// --- changes
// -------------------------------------------------------------------------------------------------------------

std::string_view name_of(ChangeOutcome outcome) { return outcome == ChangeOutcome::asked ? "asked" : "changed"; }

// The problem of a change that did nothing.
Problem problem_of(ChangeOutcome outcome, JobId id) {
  switch (outcome) {
    case ChangeOutcome::not_found: return {ProblemType::not_found, fmt::format("job {}: there is no such job", id), {}};
    case ChangeOutcome::running: return {ProblemType::wrong_state, fmt::format("job {}: it runs", id), {}};
    default: return {ProblemType::wrong_state, fmt::format("job {}: its state does not allow it", id), {}};
  }
}
bool took_effect(ChangeOutcome outcome) { return outcome == ChangeOutcome::changed || outcome == ChangeOutcome::asked; }

// With a key of its request, once.
Coro<Result<std::vector<ChangeReply>>> change(ApiState& api, ApiCall& call, std::vector<Change> changes) {
  auto key = co_await or_return(call.request_key());
  if (!key) co_return co_await api.book().change(std::move(changes));
  const std::size_t count = changes.size();
  auto done = co_await or_return(api.book().once({.key = std::move(*key), .jobs = {}, .changes = std::move(changes)}));
  if (done.changes.size() != count && done.how == Repetition::repeated) done.how = Repetition::mismatch;
  co_await or_return(call.check(done.how));
  co_return std::move(done.changes);
}

// The first that does nothing is the answer.
Coro<Result<ChangeOutcome>> change_one(ApiState& api, ApiCall& call, std::vector<Change> changes) {
  const JobId id = changes.front().id;
  const auto replies = co_await or_return(change(api, call, std::move(changes)));
  for (const ChangeReply& reply : replies) {
    if (!took_effect(reply.outcome)) co_return call.refuse(problem_of(reply.outcome, id));
  }
  co_return replies.front().outcome;
}

ServerResponse answer_to(JobId id, ChangeOutcome outcome) {
  return json_answer([&](JsonWriter& json) {
    json.member("id", id);
    json.member("outcome", name_of(outcome));
  });
}

// The time that `due_at` or `delay_ms` ask for.
std::optional<WallTime> read_when(JsonMembers& in, WallTime now) {
  const JsonValue* const due_at = in.find("due_at");
  const JsonValue* const delay = in.find("delay_ms");
  if (due_at != nullptr && delay != nullptr) delay->refuse("give due_at or delay_ms, not both");
  if (due_at != nullptr) return read_due(*due_at);
  if (delay != nullptr) return read_due_after(*delay, now);
  return std::nullopt;
}

std::optional<std::int32_t> read_priority(JsonMembers& in) {
  using Limits = std::numeric_limits<std::int32_t>;
  const JsonValue* const priority = in.find("priority");
  if (priority == nullptr) return std::nullopt;
  return static_cast<std::int32_t>(priority->whole(Limits::min(), Limits::max()));
}

Coro<Result<ServerResponse>> change_members(ApiState& api, ApiCall& call) {
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const auto priority = read_priority(in);
  const auto due_at = read_when(in, api.engine.calendar_now());
  in.finish("what can be changed is priority, due_at and delay_ms");
  if (!priority && !due_at) root.refuse("nothing is to be changed: give priority, due_at or delay_ms");
  co_await or_return(call.read_all());
  const JobId id = co_await or_return(job_of(api, call));
  std::vector<Change> changes;
  if (priority) changes.push_back({.id = id, .kind = ChangeKind::set_priority, .priority = *priority});
  if (due_at) changes.push_back({.id = id, .kind = ChangeKind::set_due, .due_at = *due_at});
  co_return answer_to(id, co_await or_return(change_one(api, call, std::move(changes))));
}

Coro<Result<ServerResponse>> erase_job(ApiState& api, ApiCall& call) {
  const JobId id = co_await or_return(job_of(api, call));
  co_await or_return(change_one(api, call, {{.id = id, .kind = ChangeKind::erase}}));
  co_return no_content();
}

Coro<Result<ServerResponse>> cancel_job(ApiState& api, ApiCall& call) {
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const JsonValue* const why = in.find("why");
  Change change{.kind = ChangeKind::cancel};
  if (why != nullptr) change.error = why->text(0, kMostWhyBytes);
  in.finish("there is only why");
  co_await or_return(call.read_all());
  const JobId id = change.id = co_await or_return(job_of(api, call));
  co_return answer_to(id, co_await or_return(change_one(api, call, {std::move(change)})));
}

Coro<Result<ServerResponse>> kick_job(ApiState& api, ApiCall& call) {
  co_await or_return(call.no_members());
  const JobId id = co_await or_return(job_of(api, call));
  co_return answer_to(id, co_await or_return(change_one(api, call, {{.id = id, .kind = ChangeKind::kick}})));
}

// --- many changes
// --------------------------------------------------------------------------------------------------------

struct AskedChanges {
  Change change;  // of each, but for its id
  std::vector<JobId> ids;
};

void read_ids(const ApiState& api, const JsonValue& list, std::vector<JobId>& ids) {
  if (!list.is_list() || list.size() > api.options.most_jobs) {
    return list.wrong(fmt::format("a list of at most {} ids", api.options.most_jobs));
  }
  list.for_each([&](const JsonValue& id) {
    ids.push_back(static_cast<JobId>(id.whole(1, static_cast<std::int64_t>(kMostJobId))));
  });
}

Result<AskedChanges> read_changes(const ApiState& api, ApiCall& call, WallTime now) {
  const auto root = call.object();
  if (!root) return std::unexpected(root.error());
  JsonMembers in(*root);
  in.refuse_repeated();
  AskedChanges asked;
  using enum ChangeKind;
  static constexpr ChangeKind kKinds[] = {cancel, kick, erase, set_priority, set_due};
  const JsonValue* const kind = in.find("change");
  if (kind == nullptr) root->refuse("member \"change\" is missing");
  if (kind != nullptr) {
    asked.change.kind = kKinds[kind->one_of({"cancel", "kick", "erase", "set_priority", "set_due"})];
  }
  if (const JsonValue* ids = in.find("ids")) read_ids(api, *ids, asked.ids);
  if (asked.change.kind == cancel) {
    if (const JsonValue* why = in.find("why")) asked.change.error = why->text(0, kMostWhyBytes);
  } else if (asked.change.kind == set_priority) {
    const auto priority = read_priority(in);
    if (!priority) root->refuse("member \"priority\" is missing");
    asked.change.priority = priority.value_or(0);
  } else if (asked.change.kind == set_due) {
    const auto due_at = read_when(in, now);
    if (!due_at) root->refuse("member \"due_at\" or \"delay_ms\" is missing");
    asked.change.due_at = due_at.value_or(WallTime{});
  }
  in.finish("this change has none");
  if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
  return asked;
}

// Of those that the caller may not change, nothing is known.
Coro<Result<std::vector<bool>>> seen_by(ApiState& api, const ApiCall& call, const std::vector<JobId>& ids) {
  std::vector<bool> seen(ids.size(), true);
  if (call.reaches_all()) co_return seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto record = co_await api.book().get(ids[i]);
    seen[i] = record && call.may_reach(record->queue);
  }
  co_return seen;
}

Coro<Result<ServerResponse>> change_each(ApiState& api, ApiCall& call) {
  Result<AskedChanges> read;
  co_await read_apart(api.long_bodies, call,
                      [&, now = api.engine.calendar_now()] { read = read_changes(api, call, now); });
  const AskedChanges asked = co_await or_return(std::move(read));
  const std::vector<bool> seen = co_await or_return(seen_by(api, call, asked.ids));
  std::vector<Change> changes;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) continue;
    changes.push_back(asked.change);
    changes.back().id = asked.ids[i];
  }
  const auto replies = co_await or_return(change(api, call, std::move(changes)));
  co_return json_answer([&](JsonWriter& json) {
    json.array("replies", [&] {
      std::size_t next = 0;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const ChangeOutcome outcome = seen[i] ? replies[next++].outcome : ChangeOutcome::not_found;
        json.object([&] {
          json.member("id", asked.ids[i]);
          if (took_effect(outcome)) return json.member("outcome", name_of(outcome));
          json.key("error");
          write(json, problem_of(outcome, asked.ids[i]));
        });
      }
    });
  });
}

}  // namespace

std::vector<ApiRoute> job_routes() {
  using enum HttpMethod;
  return {
      put_route(),
      reading_much(get, "/v1/jobs", list_jobs, true),
      reading_much(get, "/v1/jobs/{job}", show_job),
      {patch, "/v1/jobs/{job}", TokenScope::work, change_members, true},
      {delete_, "/v1/jobs/{job}", TokenScope::work, erase_job, true},
      {post, "/v1/jobs/{job}/cancel", TokenScope::work, cancel_job, true, true},
      {post, "/v1/jobs/{job}/kick", TokenScope::work, kick_job, true, true},
      {.method = post,
       .pattern = "/v1/jobs/change",
       .scope = TokenScope::work,
       .handler = change_each,
       .audited = true,
       .knows_keys = true,
       .reads_apart = true},
      reading_much(get, "/v1/jobs/{job}/explain", explain_job),
      {get, "/v1/jobs/{job}/history", TokenScope::read, job_history},
      {.method = get, .pattern = "/v1/jobs/{job}/output", .handler = job_output, .has_query = true},
  };
}

}  // namespace argiope

// POST /v1/jobs: one new job, many, or one a line.
#include <fmt/format.h>

#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "engine/internal/job_names.hpp"
#include "serve/api/api_state.hpp"
#include "serve/api/asked_jobs.hpp"

namespace argiope {
namespace {

void write(JsonWriter& json, const PutReply& reply) {
  json.member("id", reply.id);
  json.member("outcome", to_string(reply.outcome));
}

std::string place_of(std::size_t job) { return fmt::format("/jobs/{}", job); }

// --- what goes to the book
// -------------------------------------------------------------------------------------------------

using Replies = std::vector<Result<PutReply>>;
using As = OnceCall::As;

// Those of a request with a key, if it has not come before.
Coro<Result<Replies>> put_with_key(ApiState& api, ApiCall& call, RequestKey key, std::vector<NewJob> jobs, As as) {
  const std::size_t count = jobs.size();
  auto done =
      co_await or_return(api.book().once({.key = std::move(key), .jobs = std::move(jobs), .as = as, .changes = {}}));
  // The rights of its token have changed since it came first.
  if (done.puts.size() != count && done.how == Repetition::repeated) done.how = Repetition::mismatch;
  co_await or_return(call.check(done.how));
  co_return std::move(done.puts);
}

Coro<Result<std::vector<PutReply>>> put_together(ApiState& api, std::vector<NewJob> jobs, As as) {
  if (as == As::all) co_return co_await api.book().put_all(std::move(jobs));
  NewJob completion = std::move(jobs.back());
  jobs.pop_back();
  co_return co_await api.book().put_batch(std::move(jobs), std::move(completion));
}

// As::batch: the last one completes the others.
Coro<Result<Replies>> put_as(ApiState& api, ApiCall& call, std::vector<NewJob> jobs, As as) {
  if (auto key = co_await or_return(call.request_key())) {
    co_return co_await put_with_key(api, call, std::move(*key), std::move(jobs), as);
  }
  if (as == As::each) co_return co_await api.book().put_each(std::move(jobs));
  const auto put = co_await or_return(put_together(api, std::move(jobs), as));
  co_return Replies(put.begin(), put.end());
}

// Refused as a whole, so that a queue that is full is not the answer for a day.
Coro<Result<PutReply>> put_once(ApiState& api, ApiCall& call, NewJob job) {
  auto key = co_await or_return(call.request_key());
  if (!key) co_return co_await api.book().put(std::move(job));
  std::vector<NewJob> one;
  one.push_back(std::move(job));
  auto replies = co_await or_return(put_with_key(api, call, std::move(*key), std::move(one), As::all));
  co_return std::move(replies.front());
}

// --- one
// -----------------------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> put_one(ApiState& api, ApiCall& call, NewJob job, JobNames names) {
  co_await or_return(call.check_put(job.queue, job.function));
  job.within = call.caller.reach();
  if (!names.empty()) {
    const auto found = co_await find_names(api.book(), std::move(names), job);
    if (!found) co_return call.refuse(problem_of_job(found.error(), ""));
  }
  const auto reply = co_await put_once(api, call, std::move(job));
  if (auto wrong = problem_of_put(reply, "")) co_return call.refuse(*std::move(wrong));
  const bool is_new = reply->outcome == PutOutcome::added;
  co_return json_answer([&](JsonWriter& json) { write(json, *reply); }, is_new ? 201 : 200);
}

// --- many
// ----------------------------------------------------------------------------------------------------------------

ServerResponse answer_to(const AskedJobs& asked, const Replies& replies) {
  return json_answer([&](JsonWriter& json) {
    json.array("replies", [&] {
      auto wrong = asked.wrong.begin();
      std::size_t next = 0;
      for (std::size_t place = 0; place < asked.count(); ++place) {
        json.object([&] {
          if (wrong != asked.wrong.end() && wrong->first == place) {
            json.key("error");
            argiope::write(json, (wrong++)->second);
            return;
          }
          const Result<PutReply>& reply = replies[next++];
          const auto problem = problem_of_put(reply, place_of(place));
          if (!problem) return write(json, *reply);
          json.key("error");
          argiope::write(json, *problem);
        });
      }
    });
  });
}

Result<void> check_waits(ApiCall& call, std::size_t waits) {
  if (waits <= kMostWaitsTogether) return {};
  return call.refuse(too_many_waits("put them in several requests", "/jobs"));
}

// A name may be that of a job some places before: what comes before is put first.
Coro<Result<Replies>> put_in_order(ApiState& api, AskedJobs& asked) {
  Replies replies;
  std::vector<NewJob> ready;
  const auto put_ready = [&]() -> Coro<Result<void>> {
    for (auto& reply : co_await or_return(api.book().put_each(std::exchange(ready, {})))) {
      replies.push_back(std::move(reply));
    }
    co_return Result<void>{};
  };
  for (std::size_t i = 0; i < asked.jobs.size(); ++i) {
    if (auto named = asked.names.extract(i); !named.empty()) {
      co_await or_return(put_ready());
      if (auto found = co_await find_names(api.book(), std::move(named.mapped()), asked.jobs[i]); !found) {
        replies.push_back(std::unexpected(std::move(found.error())));
        continue;
      }
    }
    ready.push_back(std::move(asked.jobs[i]));
  }
  co_await or_return(put_ready());
  co_return replies;
}

// Names are those of jobs that are there already.
Coro<Result<void>> find_all_names(ApiState& api, ApiCall& call, AskedJobs& asked) {
  for (auto& [place, names] : asked.names) {
    auto found = co_await find_names(api.book(), std::move(names), asked.jobs[place]);
    if (!found) co_return call.refuse(problem_of_job(found.error(), place_of(asked.places[place])));
  }
  co_return Result<void>{};
}

Coro<Result<ServerResponse>> put_each(ApiState& api, ApiCall& call, AskedJobs asked) {
  co_await or_return(check_waits(call, asked.waits()));
  if (!asked.names.empty() && call.request.header("Idempotency-Key").empty()) {
    const Replies replies = co_await or_return(put_in_order(api, asked));
    co_return answer_to(asked, replies);
  }
  co_await or_return(find_all_names(api, call, asked));
  const Replies replies = co_await or_return(put_as(api, call, std::move(asked.jobs), As::each));
  co_return answer_to(asked, replies);
}

// --- all or none
// ---------------------------------------------------------------------------------------------------------

// The facts that are told of a job when all of them are refused.
struct PlacedJob {
  std::string pointer;
  std::string queue;
  std::size_t payload_bytes = 0;
  std::string if_taken;  // what the error says where another's job has its id; empty: it has none
};

// Which of them an error of the whole is about, as far as that can be told.
Problem problem_of_all(ApiState& api, const Error& error, const std::vector<PlacedJob>& jobs) {
  for (const PlacedJob& job : jobs) {
    const auto config = api.engine.config(job.queue);
    const bool unknown = !config && error.code == Errc::not_found;
    const bool too_large = config && error.code == Errc::too_large && job.payload_bytes > config->max_payload_bytes;
    const bool is_taken = error.code == Errc::conflict && job.if_taken == error.message;
    if (unknown || too_large || is_taken) return problem_of_job(error, job.pointer);
  }
  return problem_of(error);
}

Coro<Result<ServerResponse>> put_all(ApiState& api, ApiCall& call, AskedJobs asked, std::optional<NewJob> completion) {
  if (!asked.wrong.empty()) co_return call.refuse(std::move(asked.wrong.begin()->second));
  co_await or_return(check_waits(call, asked.waits() + (completion ? completion->waits_for.size() : 0)));
  co_await or_return(find_all_names(api, call, asked));
  const std::size_t count = asked.jobs.size();
  if (completion) asked.jobs.push_back(std::move(*completion));
  std::vector<PlacedJob> placed;
  for (std::size_t i = 0; i < asked.jobs.size(); ++i) {
    const NewJob& job = asked.jobs[i];
    placed.push_back({i < count ? place_of(i) : "/completion", job.queue, job.payload.size(), told_if_taken(job)});
  }
  const auto put = co_await put_as(api, call, std::move(asked.jobs), completion ? As::batch : As::all);
  if (!put) co_return call.refuse(problem_of_all(api, put.error(), placed));
  co_return json_answer([&](JsonWriter& json) {
    json.array("replies", [&] {
      for (std::size_t i = 0; i < count; ++i) json.object([&] { write(json, *(*put)[i]); });
    });
    if (put->size() > count) json.object("completion", [&] { write(json, *put->back()); });
  });
}

// --- what is asked
// -------------------------------------------------------------------------------------------------------

// One job, or many.
struct AskedPut {
  AskedPut(const Caller& caller, WallTime the_time) : now(the_time), jobs(caller, the_time) {}

  const WallTime now;
  bool is_one = false;
  NewJob one;
  JobNames names;
  AskedJobs jobs;
  bool atomic = false;
  std::optional<NewJob> completion;
};

void read_jobs(const ApiState& api, const JsonValue& list, RawJson& raw, AskedJobs& jobs) {
  if (!list.is_list() || list.size() > api.options.most_jobs) {
    return list.wrong(fmt::format("a list of at most {} jobs", api.options.most_jobs));
  }
  jobs.reserve(list.size());
  std::size_t place = 0;
  list.for_each([&](const JsonValue& job) {
    RawJson raw_job(raw, place++);
    jobs.read(job, raw_job);
  });
}

void read_batch_member(const ApiState& api, std::string_view name, const JsonValue& value, RawJson& raw,
                       AskedPut& asked) {
  if (name == "jobs") {
    read_jobs(api, value, raw, asked.jobs);
  } else if (name == "atomic") {
    asked.atomic = value.flag();
  } else if (name == "completion") {
    asked.completion = read_new_job(value, asked.now, nullptr, raw);
  } else {
    value.refuse_member(fmt::format("there is no member {} beside \"jobs\"", in_quotes(name)));
  }
}

Coro<Result<ServerResponse>> put_batch(ApiState& api, ApiCall& call, AskedPut asked) {
  if (asked.completion) {
    co_await or_return(call.check_put(asked.completion->queue, asked.completion->function));
    asked.completion->within = call.caller.reach();
  }
  if (!asked.atomic && !asked.completion) co_return co_await put_each(api, call, std::move(asked.jobs));
  co_return co_await put_all(api, call, std::move(asked.jobs), std::move(asked.completion));
}

// Blank lines are none.
void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

Result<void> read_put_lines(const ApiState& api, ApiCall& call, AskedJobs& asked) {
  std::string_view rest = call.request.body;
  std::size_t values = 0;
  for (skip_blanks(rest); !rest.empty(); skip_blanks(rest)) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (asked.count() == api.options.most_jobs) {
      return call.refuse(ProblemType::invalid_input, fmt::format("more than {} lines", api.options.most_jobs));
    }
    values += count_json_values(line, kMostBodyValues);
    if (values > kMostBodyValues) return call.refuse(too_many_values());
    asked.read_line(line);
  }
  return {};
}

Result<void> read_put(const ApiState& api, ApiCall& call, AskedPut& asked) {
  const std::string type = media_type(call.request);
  if (type == "application/x-ndjson" || type == "application/jsonl") return read_put_lines(api, call, asked.jobs);
  const auto root = call.object();
  if (!root) return std::unexpected(root.error());
  RawJson raw(call.request.body);
  asked.is_one = true;
  root->for_each_member(
      [&](std::string_view name, const JsonValue&) { asked.is_one = asked.is_one && name != "jobs"; });
  if (asked.is_one) {
    asked.one = read_new_job(*root, asked.now, &asked.names, raw);
    return call.read_all();
  }
  std::size_t place = 0;
  root->for_each_member([&](std::string_view name, const JsonValue& value) {
    RawJson raw_value(raw, place++);
    read_batch_member(api, name, value, raw_value, asked);
  });
  return call.read_all();
}

Coro<Result<ServerResponse>> put(ApiState& api, ApiCall& call) {
  AskedPut asked(call.caller, api.engine.calendar_now());
  Result<void> good;
  co_await read_apart(api.long_bodies, call, [&] { good = read_put(api, call, asked); });
  co_await or_return(std::move(good));
  if (!asked.is_one) co_return co_await put_batch(api, call, std::move(asked));
  co_return co_await put_one(api, call, std::move(asked.one), std::move(asked.names));
}

}  // namespace

ApiRoute put_route() {
  return {.method = HttpMethod::post,
          .pattern = "/v1/jobs",
          .scope = TokenScope::work,
          .handler = put,
          .knows_keys = true,
          .reads_apart = true};
}

}  // namespace argiope

// Jobs and queues; http_schedules.cpp has the schedules.
#include "remote/internal/http_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "argiope/async/coro.hpp"
#include "base/internal/json_told.hpp"
#include "engine/internal/book_telling.hpp"
#include "jobs/internal/job_json.hpp"
#include "jobs/internal/job_telling.hpp"
#include "jobs/internal/queue_config_json.hpp"
#include "remote/internal/api_path.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostInRequest = 10'000;
constexpr std::size_t kMostBytesInRequest = 8 * 1024 * 1024;  // but for a job that is larger by itself
constexpr std::size_t kJobsInPage = 1'000;
constexpr Duration kLongestPoll = std::chrono::seconds{30};  // within ApiRequest::timeout

using Replies = std::vector<Result<PutReply>>;

// --- puts

std::string text_of(const NewJob& job) {
  return json_object([&](JsonWriter& json) { write_members(json, job); });
}

// {"jobs":[…]} and what `more` adds.
std::string batch_of(std::span<const std::string> jobs, std::string_view more = {}) {
  std::string body = R"({"jobs":[)";
  for (const std::string& job : jobs) {
    if (&job != jobs.data()) body += ',';
    body += job;
  }
  body += ']';
  body += more;
  body += '}';
  return body;
}

// How many of the first of `jobs` fit into one request.
std::size_t first_batch(std::span<const std::string> jobs) {
  std::size_t count = 0, bytes = 0;
  while (count < jobs.size() && count < kMostInRequest) {
    bytes += jobs[count].size() + 1;
    if (count > 0 && bytes > kMostBytesInRequest) break;
    ++count;
  }
  return count;
}

PutReply read_put_reply(const JsonValue& told) {
  ToldMembers in(told);
  PutReply reply;
  in.read("id", reply.id);
  in.read_word("outcome", reply.outcome, PutOutcome::taken);
  return reply;
}

Result<PutReply> read_put_result(const JsonValue& told) {
  ToldMembers in(told);
  if (const JsonValue* problem = in.find("error")) return std::unexpected(read_problem(*problem).error);
  return read_put_reply(told);
}

// The list `name` of an answer, of which there must be `count`.
template <class Each>
void read_list(const JsonValue& told, std::string_view name, std::size_t count, Each each) {
  ToldMembers in(told);
  const JsonValue* const list = in.find(name);
  if (list == nullptr || !list->is_list() || list->size() != count) {
    return told.refuse(fmt::format("{} of them are wanted in \"{}\"", count, name));
  }
  list->for_each(each);
}

// Whether an error is one of the jobs' own, and no trouble of the store or of the way to it.
bool is_of_the_job(Errc code) {
  return code == Errc::invalid_input || code == Errc::too_large || code == Errc::refused || code == Errc::not_found ||
         code == Errc::conflict;
}

// The API has one place for the two.
Result<void> check_names(const NewJob& job) {
  if (job.id == 0 || job.name.empty()) return {};
  return fail(Errc::invalid_input, fmt::format("job {}: a job has a number of its own or a name, not both", job.id));
}

JobOutput read_job_output(const JsonValue& told) {
  ToldMembers in(told);
  JobOutput output;
  in.read("run", output.run);
  in.read("after", output.after);
  in.read_bytes("output", output.bytes);
  in.read_word("state", output.state, JobState::buried);
  in.read("error", output.error);
  return output;
}

// --- lists

struct ToldJobPage {
  std::vector<JobRecord> jobs;
  std::optional<JobId> next;
};

ToldJobPage read_job_page(const JsonValue& told) {
  ToldMembers in(told);
  ToldJobPage page;
  if (const JsonValue* jobs = in.find("jobs")) {
    jobs->for_each([&](const JsonValue& job) { page.jobs.push_back(read_job_record(job)); });
  }
  in.read("next", page.next);
  return page;
}

std::string query_of(const JobFilter& filter, std::size_t limit) {
  std::string query = fmt::format("?limit={}", limit);
  if (filter.newest_first) query += "&order=newest";
  if (filter.after != 0) query += fmt::format("&after={}", filter.after);
  if (!filter.queue.empty()) query += "&queue=" + percent_encode(filter.queue);
  if (filter.state) query += fmt::format("&state={}", to_string(*filter.state));
  if (filter.key) query += "&key=" + percent_encode(*filter.key);
  if (filter.payloads) query += "&payloads=1";
  return query;
}

// --- queues

struct ToldQueue {
  StoredQueue queue;
  StateCounts counts;
};

ToldQueue read_told_queue(const JsonValue& told) {
  ToldMembers in(told);
  ToldQueue queue;
  in.read("name", queue.queue.name);
  if (const JsonValue* config = in.find("config")) {
    JsonErrors errors;
    auto read = detail::read_queue_config(config->json(), {}, errors);
    read ? void(queue.queue.config = std::move(*read)) : config->refuse(read.error());
  }
  if (const JsonValue* counts = in.find("counts")) {
    ToldMembers of(*counts);
    of.read("ready", queue.counts.ready);
    of.read("delayed", queue.counts.delayed);
    of.read("running", queue.counts.running);
    of.read("done", queue.counts.done);
    of.read("buried", queue.counts.buried);
    of.read("cancelled", queue.counts.cancelled);
  }
  return queue;
}

struct ToldQueuePage {
  std::vector<ToldQueue> queues;
  std::optional<std::string> next;  // none of a daemon that knows no pages of queues
};

ToldQueuePage read_queue_page(const JsonValue& told) {
  ToldMembers in(told);
  ToldQueuePage page;
  in.for_each("queues", [&](const JsonValue& queue) { page.queues.push_back(read_told_queue(queue)); });
  in.read("next", page.next);
  return page;
}

// All of them, by name.
Coro<Result<std::vector<ToldQueue>>> read_told_queues(ApiClient& client) {
  std::vector<ToldQueue> all;
  std::string after;
  for (;;) {
    const std::string query = after.empty() ? "" : "?after=" + percent_encode(after);
    const std::string body = co_await or_return(client.tell({.path = "/v1/queues" + query}));
    ToldQueuePage page = co_await or_return(read_answer(body, read_queue_page));
    std::ranges::move(page.queues, std::back_inserter(all));
    if (!page.next || *page.next <= after) co_return all;
    after = *std::move(page.next);
  }
}

// --- changes

std::string_view word_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::cancel: return "cancel";
    case ChangeKind::kick: return "kick";
    case ChangeKind::set_priority: return "set_priority";
    case ChangeKind::set_due: return "set_due";
    case ChangeKind::erase: return "erase";
  }
  return {};
}

bool are_alike(const Change& one, const Change& other) {
  return one.kind == other.kind && one.priority == other.priority && one.due_at == other.due_at &&
         one.error == other.error;
}

std::string text_of(std::span<const Change> changes) {
  const Change& first = changes.front();
  return json_object([&](JsonWriter& json) {
    json.member("change", word_of(first.kind));
    if (first.kind == ChangeKind::cancel && !first.error.empty()) json.member("why", first.error);
    if (first.kind == ChangeKind::set_priority) json.member("priority", first.priority);
    if (first.kind == ChangeKind::set_due) {
      const auto due = std::chrono::ceil<std::chrono::milliseconds>(first.due_at.time_since_epoch()).count();
      json.member("due_at", std::max<std::int64_t>(due, 0));
    }
    json.array("ids", [&] {
      for (const Change& change : changes) json.value(change.id);
    });
  });
}

struct ToldChange {
  ChangeOutcome outcome = ChangeOutcome::changed;
  std::optional<Error> error;
};

ToldChange read_change(const JsonValue& told) {
  ToldMembers in(told);
  ToldChange change;
  std::string outcome;
  in.read("outcome", outcome);
  if (outcome == "asked") change.outcome = ChangeOutcome::asked;
  if (const JsonValue* problem = in.find("error")) {
    change.error = read_problem(*problem).error;
    change.outcome = change.error->code == Errc::not_found ? ChangeOutcome::not_found : ChangeOutcome::wrong_state;
  }
  return change;
}

}  // namespace

// --- jobs come -------------------------------------------------------------------------------------------------------

Coro<Result<Replies>> HttpBook::put_each(std::vector<NewJob> jobs) {
  Replies replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<std::string> texts, queues;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (auto good = check_names(jobs[i]); !good) {
      replies[i] = std::unexpected(std::move(good.error()));
      continue;
    }
    texts.push_back(text_of(jobs[i]));
    queues.push_back(std::move(jobs[i].queue));
    places.push_back(i);
  }
  jobs.clear();
  std::size_t next = 0;
  for (std::span<const std::string> rest(texts); !rest.empty();) {
    const std::size_t count = first_batch(rest);
    for (auto& reply : co_await or_return(put_some(rest.first(count)))) replies[places[next++]] = std::move(reply);
    rest = rest.subspan(count);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<PutReply>& reply = replies[places[i]];
    if (!reply && reply.error().code == Errc::refused && co_await waits_for_room(queues[i])) {
      reply = co_await put_when_there_is_room(texts[i]);
    }
  }
  co_return replies;
}

// Whether puts into the queue are to wait where it is full. Of several together the daemon refuses those for which it
// has no room.
Coro<bool> HttpBook::waits_for_room(std::string name) {
  const auto there = co_await queue(std::move(name));
  co_return there && there->config.at_capacity == CapacityPolicy::wait && there->config.capacity > 0;
}

// The daemon waits as well, but not for ever.
Coro<Result<PutReply>> HttpBook::put_when_there_is_room(std::string job) {
  for (;;) {
    auto put = co_await put_some(std::span<const std::string>(&job, 1));
    if (put) co_return std::move(put->front());
    if (put.error().code != Errc::busy) co_return std::unexpected(std::move(put.error()));
  }
}

// In one request, unless that is too large for the daemon.
Coro<Result<Replies>> HttpBook::put_some(std::span<const std::string> jobs) {
  const ApiAnswer answer =
      co_await or_return(client_.ask({.method = HttpMethod::post, .path = "/v1/jobs", .body = batch_of(jobs)}));
  if (answer.problem) {
    const Error& error = answer.problem->error;
    if (jobs.size() > 1 && error.code == Errc::too_large) co_return co_await put_halves(jobs);
    if (jobs.size() > 1 || !is_of_the_job(error.code)) co_return std::unexpected(error);
    co_return Replies{Result<PutReply>(std::unexpected(error))};
  }
  co_return read_answer(answer.body, [&](const JsonValue& told) {
    Replies replies;
    read_list(told, "replies", jobs.size(), [&](const JsonValue& reply) { replies.push_back(read_put_result(reply)); });
    return replies;
  });
}

Coro<Result<Replies>> HttpBook::put_halves(std::span<const std::string> jobs) {
  const std::size_t half = jobs.size() / 2;
  Replies replies = co_await or_return(put_some(jobs.first(half)));
  for (auto& reply : co_await or_return(put_some(jobs.subspan(half)))) replies.push_back(std::move(reply));
  co_return replies;
}

Coro<Result<std::vector<PutReply>>> HttpBook::put_all(std::vector<NewJob> jobs, bool last_completes) {
  std::vector<std::string> texts;
  for (const NewJob& job : jobs) {
    co_await or_return(check_names(job));
    texts.push_back(text_of(job));
  }
  std::string more = R"(,"atomic":true)";
  std::span<const std::string> together(texts);
  if (last_completes) {
    more += R"(,"completion":)" + texts.back();
    together = together.first(texts.size() - 1);
  }
  const std::string body = co_await or_return(
      client_.tell({.method = HttpMethod::post, .path = "/v1/jobs", .body = batch_of(together, more)}));
  co_return read_answer(body, [&](const JsonValue& told) {
    std::vector<PutReply> replies;
    read_list(told, "replies", together.size(),
              [&](const JsonValue& reply) { replies.push_back(read_put_reply(reply)); });
    if (!last_completes) return replies;
    ToldMembers in(told);
    const JsonValue* const completion = in.find("completion");
    completion == nullptr ? told.refuse("member \"completion\" is missing")
                          : replies.push_back(read_put_reply(*completion));
    return replies;
  });
}

// --- jobs are changed ------------------------------------------------------------------------------------------------

Coro<Result<std::vector<ChangeReply>>> HttpBook::change(std::vector<Change> changes) {
  std::vector<ChangeReply> replies;
  for (std::span<const Change> rest(changes); !rest.empty();) {
    std::size_t count = 1;
    while (count < rest.size() && count < kMostInRequest && are_alike(rest[0], rest[count])) ++count;
    for (auto& reply : co_await or_return(change_alike(rest.first(count)))) replies.push_back(std::move(reply));
    rest = rest.subspan(count);
  }
  co_return replies;
}

Coro<Result<std::vector<ChangeReply>>> HttpBook::change_alike(std::span<const Change> changes) {
  const std::string body = co_await or_return(
      client_.tell({.method = HttpMethod::post, .path = "/v1/jobs/change", .body = text_of(changes)}));
  const auto told = co_await or_return(read_answer(body, [&](const JsonValue& answer) {
    std::vector<ToldChange> all;
    read_list(answer, "replies", changes.size(), [&](const JsonValue& one) { all.push_back(read_change(one)); });
    return all;
  }));
  std::vector<ChangeReply> replies;
  for (std::size_t i = 0; i < told.size(); ++i) {
    ChangeOutcome outcome = told[i].outcome;
    if (outcome == ChangeOutcome::wrong_state) {
      // A right that is missing is no state.
      if (told[i].error->code != Errc::refused) co_return std::unexpected(*told[i].error);
      outcome = co_await or_return(why_not_changed(changes[i].id));
    }
    replies.push_back({.outcome = outcome});
  }
  co_return replies;
}

// The API tells of both in the same way: it runs, or its state does not allow it.
Coro<Result<ChangeOutcome>> HttpBook::why_not_changed(JobId id) {
  const auto record = co_await get(id);
  if (!record && record.error().code == Errc::not_found) co_return ChangeOutcome::not_found;
  if (!record) co_return std::unexpected(record.error());
  co_return record->state == JobState::running ? ChangeOutcome::running : ChangeOutcome::wrong_state;
}

// --- looks -----------------------------------------------------------------------------------------------------------

Coro<Result<std::string>> HttpBook::get_part(std::string_view kind, std::string name, std::string_view what) {
  std::string path = co_await or_return(path_of(kind, name, what));
  co_return co_await client_.tell({.path = std::move(path)});
}

Coro<Result<JobId>> HttpBook::find(std::string id_or_name) {
  const auto body = co_await or_return(get_part("job", std::move(id_or_name), {}));
  const auto record = co_await or_return(read_answer(body, read_job_record));
  co_return record.id;
}

Coro<Result<JobRecord>> HttpBook::get(JobId id) {
  const auto body = co_await or_return(get_part("job", std::to_string(id), {}));
  co_return read_answer(body, read_job_record);
}

Coro<Result<JobOutput>> HttpBook::output(JobId id, OutputLook look) {
  const Duration wait = std::clamp<Duration>(look.wait, Duration{}, kLongestPoll);
  const std::string what = fmt::format("output?after={}&run={}&wait_ms={}", look.after, look.run,
                                       std::chrono::duration_cast<std::chrono::milliseconds>(wait).count());
  const auto body = co_await or_return(get_part("job", std::to_string(id), what));
  co_return read_answer(body, read_job_output);
}

Coro<Result<std::vector<Attempt>>> HttpBook::history(JobId id) {
  const auto body = co_await or_return(get_part("job", std::to_string(id), "history"));
  co_return read_answer(body, [](const JsonValue& told) {
    std::vector<Attempt> attempts;
    ToldMembers(told).for_each("attempts",
                               [&](const JsonValue& attempt) { attempts.push_back(read_attempt(attempt)); });
    return attempts;
  });
}

Coro<Result<std::vector<JobRecord>>> HttpBook::list(JobFilter filter) {
  std::vector<JobRecord> all;
  while (all.size() < filter.limit) {
    const std::string query = query_of(filter, std::min(filter.limit - all.size(), kJobsInPage));
    const std::string body = co_await or_return(client_.tell({.path = "/v1/jobs" + query}));
    ToldJobPage page = co_await or_return(read_answer(body, read_job_page));
    std::ranges::move(page.jobs, std::back_inserter(all));
    const bool gets_on = page.next && (filter.after == 0 || filter.newest_first == (*page.next < filter.after));
    if (!gets_on || *page.next == filter.after) break;
    filter.after = *page.next;
  }
  co_return all;
}

Coro<Result<JobExplanation>> HttpBook::explain(JobId id) {
  const auto body = co_await or_return(get_part("job", std::to_string(id), "explain"));
  co_return read_answer(body, read_job_explanation);
}

// --- queues ----------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<NamedCounts>>> HttpBook::counts(std::string only) {
  std::vector<NamedCounts> named;
  if (!only.empty()) {
    const auto body = co_await or_return(get_part("queue", only, {}));
    const ToldQueue queue = co_await or_return(read_answer(body, read_told_queue));
    named.emplace_back(queue.queue.name, queue.counts);
    co_return named;
  }
  for (const ToldQueue& queue : co_await or_return(read_told_queues(client_))) {
    named.emplace_back(queue.queue.name, queue.counts);
  }
  std::ranges::sort(named, {}, &NamedCounts::first);
  co_return named;
}

Coro<Result<StoredQueue>> HttpBook::queue(std::string name) {
  const auto body = co_await or_return(get_part("queue", std::move(name), {}));
  ToldQueue queue = co_await or_return(read_answer(body, read_told_queue));
  co_return std::move(queue.queue);
}

Coro<Result<std::vector<StoredQueue>>> HttpBook::queues() {
  std::vector<StoredQueue> queues;
  for (ToldQueue& queue : co_await or_return(read_told_queues(client_))) queues.push_back(std::move(queue.queue));
  co_return queues;
}

Coro<Result<void>> HttpBook::configure(std::string queue, QueueConfig config, JobReachRef) {
  std::string path = co_await or_return(path_of("queue", queue));
  co_await or_return(client_.tell({.method = HttpMethod::put, .path = std::move(path), .body = to_json(config)}));
  co_return Result<void>{};
}

Coro<Result<void>> HttpBook::set_paused(std::string queue, bool paused, WallTime until) {
  std::string path = co_await or_return(path_of("queue", queue, paused ? "pause" : "resume"));
  std::string body = json_object([&](JsonWriter& json) {
    if (paused && until != WallTime{}) json.member("until", until);
  });
  co_await or_return(client_.tell({.method = HttpMethod::post, .path = std::move(path), .body = std::move(body)}));
  co_return Result<void>{};
}

Coro<Result<void>> HttpBook::erase_queue(std::string queue) {
  std::string path = co_await or_return(path_of("queue", queue));
  co_await or_return(client_.tell({.method = HttpMethod::delete_, .path = std::move(path)}));
  co_return Result<void>{};
}

}  // namespace argiope

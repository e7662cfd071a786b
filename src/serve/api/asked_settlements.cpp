#include "serve/api/asked_settlements.hpp"

#include <fmt/format.h>

#include <optional>

#include "serve/api/asked_jobs.hpp"
#include "serve/api/settlement_json.hpp"

namespace argiope {
namespace {

std::size_t waits_of(const RunEnd& run) {
  std::size_t waits = 0;
  for (const NewJob& job : run.verdict.follow_ups) waits += job.waits_for.size();
  return waits;
}

void note_named(AskedSettlements& asked, std::size_t place, const RunEnd& run) {
  const auto& follow_ups = run.verdict.follow_ups;
  for (std::size_t i = 0; i < follow_ups.size(); ++i) {
    std::string told = told_if_taken(follow_ups[i]);
    if (told.empty()) continue;
    asked.named.try_emplace({place, std::move(told)}, fmt::format("{}/{}/follow_ups/{}", asked.pointer, place, i));
  }
}

// Whether the run is of a queue that the caller may not see: its lease is lost, as one that is not there.
bool is_hidden(const ApiState& api, const ApiCall& call, std::uint64_t token) {
  const auto running = api.engine.running(token);
  return running && !call.caller.may_use(running->queue);
}

// Why the caller may not settle it so; nullopt when it may.
std::optional<Problem> forbidden(const ApiState& api, const ApiCall& call, RunEnd& run) {
  for (NewJob& job : run.verdict.follow_ups) {
    auto why_not = call.caller.why_not_put(job.queue, job.function);
    if (why_not) return Problem{ProblemType::forbidden, *std::move(why_not), {}};
    job.within = call.caller.reach();
  }
  const auto running = api.engine.running(run.token);
  if (!running || !call.caller.may_use(running->queue)) return std::nullopt;
  if (running->remote && call.caller.may_fill(running->queue)) return std::nullopt;
  return Problem{ProblemType::forbidden, "the lease is not of a worker and queue that the token may speak for", {}};
}

}  // namespace

void read_settlements(std::size_t most, WallTime now, const JsonValue& list, RawJson& raw, AskedSettlements& asked) {
  if (!list.is_list() || list.size() > most) {
    return list.wrong(fmt::format("a list of at most {} settlements", most));
  }
  asked.pointer = pointer_to(list.path());
  asked.read.reserve(list.size());
  asked.tokens.reserve(list.size());
  list.for_each([&](const JsonValue& value) {
    JsonErrors errors;
    RawJson raw_value(raw, asked.read.size());
    RunEnd run = read_settlement(value.telling(errors), now, raw_value);
    asked.tokens.push_back(run.token);
    if (errors) {
      asked.read.emplace_back(std::unexpected(problem_of(errors)));
    } else {
      asked.read.emplace_back(std::move(run));
    }
  });
}

void judge_settlements(const ApiState& api, const ApiCall& call, AskedSettlements& asked) {
  asked.runs.reserve(asked.read.size());
  asked.places.reserve(asked.read.size());
  for (std::size_t place = 0; place < asked.read.size(); ++place) {
    auto& read = asked.read[place];
    if (!read) {
      asked.wrong.emplace(place, std::move(read.error()));
      continue;
    }
    RunEnd& run = *read;
    if (auto why = forbidden(api, call, run)) {
      asked.wrong.emplace(place, std::move(*why));
    } else if (const std::size_t waits = waits_of(run); waits > kMostWaitsTogether - asked.waits) {
      asked.wrong.emplace(place,
                          too_many_waits("settle it in a request of its own, with fewer where that is not enough",
                                         fmt::format("{}/{}/follow_ups", asked.pointer, place)));
    } else {
      asked.waits += waits;
      if (is_hidden(api, call, run.token)) run.token = 0;  // of no run
      note_named(asked, place, run);
      asked.runs.push_back(std::move(run));
      asked.places.push_back(place);
    }
  }
  asked.read.clear();
}

Problem problem_of_settlement(const AskedSettlements& asked, std::size_t place, const Error& error) {
  const auto follow_up = asked.named.find({place, error.message});
  const bool is_taken = error.code == Errc::conflict && follow_up != asked.named.end();
  return is_taken ? problem_of_job(error, follow_up->second) : problem_of(error);
}

}  // namespace argiope

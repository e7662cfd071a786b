// Requests that are done once, however often they come.
#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "jobs/internal/request_memory.hpp"

namespace argiope {

using namespace job_rules;

OnceReply JobTransitions::once(const OnceRequest& request) {
  if (auto good = check(request.key); !good) throw RequestRefused{std::move(good.error())};
  bring_for(std::vector{request.key});
  if (const auto kept = rows_.keys.find(request.key.key)) {
    if (kept->digest != request.key.digest) return {.how = Repetition::mismatch};
    if (auto reply = recalled(kept->reply)) return std::move(*reply);
    throw RequestRefused{{Errc::corrupt, "what was answered to this request cannot be read any more"}};
  }
  OnceReply reply;
  if (request.only_look) return reply;
  if (!request.puts.empty()) reply.puts = put_good(request);
  if (!request.settlements.empty()) reply.settlements = settle(request.settlements);
  for (std::size_t i = 0; i < request.refused.size() && i < reply.settlements.size(); ++i) {
    if (request.refused[i] && reply.settlements[i].settled) reply.settlements[i].refused = request.refused[i];
  }
  if (!request.changes.empty()) reply.changes = change(request.changes);
  rows_.keys.write(request.key, stored(request.now), remembered(reply));
  return reply;
}

// Those that the caller has not refused.
std::vector<Result<PutReply>> JobTransitions::put_good(const OnceRequest& request) {
  std::vector<PutRequest> good;
  for (const Result<PutRequest>& wanted : request.puts) {
    if (wanted) good.push_back(*wanted);
  }
  auto replies = put(good, request.now, request.refusal);
  std::vector<Result<PutReply>> all;
  all.reserve(request.puts.size());
  auto next = replies.begin();
  for (const Result<PutRequest>& wanted : request.puts) {
    if (wanted) {
      all.push_back(std::move(*next++));
    } else {
      all.emplace_back(std::unexpected(wanted.error()));
    }
  }
  return all;
}

}  // namespace argiope

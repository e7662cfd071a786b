#include "store/postgresql/postgres_keys.hpp"

#include <algorithm>

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

void PostgresKeys::ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads) {
  if (needed.requests.empty()) return;
  PostgresColumn keys;
  for (const std::string& key : needed.requests) keys.add(key);
  reads.push_back(
      {"SELECT request_key, digest, reply FROM requests WHERE partition = 0 AND request_key = ANY($1::bytea[])",
       PostgresValues(keys)});
}

void PostgresKeys::take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at) {
  if (needed.requests.empty()) return;
  const PostgresRows& rows = answers.at(at++);
  std::map<std::string, KeptRequest> found;
  for (int i = 0; i < rows.size(); ++i)
    found[std::string(rows.text(i, 0))] = {std::string(rows.text(i, 1)), std::string(rows.text(i, 2))};
  for (const std::string& key : needed.requests) {
    if (requests_.find(key) != nullptr) continue;
    const auto its = found.find(key);
    requests_[key] = its == found.end() ? std::nullopt : std::optional(its->second);
  }
}

std::optional<KeptRequest> PostgresKeys::find(const std::string& key) {
  if (requests_.find(key) == nullptr) {
    const NeededRows needed{.requests = {key}};
    std::vector<PostgresWork::Statement> reads;
    ask_for(needed, reads);
    PostgresWork::Answers answers = work_.read(reads);
    std::size_t at = 0;
    take_brought(needed, answers, at);
  }
  return *requests_.find(key);
}

void PostgresKeys::write(const RequestKey& key, WallTime at, const std::string& reply) {
  requests_[key.key] = KeptRequest{key.digest, reply};
  work_.later("INSERT INTO requests VALUES (0, $1, $2, $3, $4, $5)",
              PostgresValues(++work_.head().last_request, key.key, to_ms(at), key.digest, reply));
}

std::size_t PostgresKeys::prune(WallTime before, std::size_t most, std::size_t limit) {
  const PostgresRows oldest = work_.look("SELECT n, at FROM requests WHERE partition = 0 ORDER BY n LIMIT $1",
                                         PostgresValues(std::min<std::size_t>(limit, kMostJobId)));
  std::int64_t up_to = 0;
  std::size_t count = 0;
  for (int i = 0; i < oldest.size(); ++i) {
    const auto n = static_cast<std::uint64_t>(oldest.number(i, 0));
    const bool too_many = work_.head().last_request - n >= most;
    if (!too_many && oldest.number(i, 1) >= to_ms(before)) break;
    up_to = oldest.number(i, 0);
    ++count;
  }
  if (count == 0) return 0;
  work_.later("DELETE FROM requests WHERE partition = 0 AND n <= $1", PostgresValues(up_to));
  requests_.clear();
  return count;
}

}  // namespace argiope

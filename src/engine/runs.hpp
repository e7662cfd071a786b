// Runs: what is known of the runs under way, by their tokens and by their jobs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/engine/detail/lease.hpp"

namespace argiope {

struct OwnedQueue;

struct Run {
  OwnedQueue* queue = nullptr;
  std::uint64_t queue_token = 0;
  JobId id = 0;
  std::uint32_t attempt = 0;
  std::uint32_t max_attempts = 0;
  Duration lease_time{};  // the job's own; 0: the queue's
  bool cancel_asked = false;
  bool holder_gone = false;  // worker_gone(): its lease is to run out
  std::string cancel_why;
  double progress = 0;
  std::string progress_message;
  bool has_output = false;                 // set_output() was called
  bool writes_output = false;              // a write of it is under way, and
  std::optional<std::string> next_output;  // this comes after that
  std::shared_ptr<const LeaseCall> call;
};

// The job that ends for others has its run, if it is one, at the front.
inline EndedRun run_of(JobId id, const std::vector<EndedRun>& ended_runs) noexcept {
  return !ended_runs.empty() && ended_runs.front().job == id ? ended_runs.front() : EndedRun{};
}

// Tokens grow from run to run. Pointers hold until the run ends.
// Threads: one at a time.
class Runs {
 public:
  explicit Runs(std::uint64_t last_token) noexcept : last_token_(last_token) {}

  std::uint64_t next_token() noexcept { return ++last_token_; }
  // `token`: of next_token(), or from the owner before this one.
  void begin(std::uint64_t token, Run run) {
    tokens_[run.id] = token;
    runs_.emplace(token, std::move(run));
  }
  void end(std::uint64_t token) {
    const auto run = runs_.find(token);
    tokens_.erase(run->second.id);
    runs_.erase(run);
  }

  Run* find(std::uint64_t token) {
    const auto run = runs_.find(token);
    return run == runs_.end() ? nullptr : &run->second;
  }
  const Run* find(std::uint64_t token) const {
    const auto run = runs_.find(token);
    return run == runs_.end() ? nullptr : &run->second;
  }
  // 0: the job does not run.
  std::uint64_t token_of(JobId id) const {
    const auto token = tokens_.find(id);
    return token == tokens_.end() ? 0 : token->second;
  }
  const Run& at(std::uint64_t token) const { return runs_.at(token); }

  // Of all runs, in their order.
  std::vector<std::uint64_t> tokens() const {
    std::vector<std::uint64_t> all;
    for (const auto& [token, run] : runs_) all.push_back(token);
    std::ranges::sort(all);
    return all;
  }
  auto begin() noexcept { return runs_.begin(); }
  auto end() noexcept { return runs_.end(); }
  auto begin() const noexcept { return runs_.begin(); }
  auto end() const noexcept { return runs_.end(); }

 private:
  std::unordered_map<std::uint64_t, Run> runs_;
  std::unordered_map<JobId, std::uint64_t> tokens_;
  std::uint64_t last_token_;
};

}  // namespace argiope

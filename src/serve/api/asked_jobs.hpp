// AskedJobs: the new jobs of one request, and what is wrong with some of them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/internal/json_reader.hpp"
#include "base/internal/raw_json.hpp"
#include "jobs/internal/job_json.hpp"
#include "serve/base/problem.hpp"
#include "serve/gate/gate.hpp"

namespace argiope {

// Reads jobs one after the other. One that is wrong, or goes to a queue that the caller may not use, keeps no other
// back.
//
// Lifetime: the caller's token outlives it.
class AskedJobs {
 public:
  // `now`: what delays count from.
  AskedJobs(const Caller& caller, WallTime now) : caller_(caller), reach_(caller.reach()), now_(now) {}

  // The next one, `value`, whose text is `raw`. A mistake in it is no error of the value.
  void read(const JsonValue& value, RawJson& raw);
  // The next one, which is a whole text by itself: a line.
  void read_line(std::string_view line);
  void reserve(std::size_t count);

  std::size_t count() const noexcept { return count_; }
  // How many jobs those that can be put wait for, all together.
  std::size_t waits() const noexcept { return waits_; }

  std::vector<NewJob> jobs;               // those that can be put
  std::vector<std::size_t> places;        // of each, among all that were read
  std::map<std::size_t, JobNames> names;  // of some, by their places in `jobs`
  std::map<std::size_t, Problem> wrong;   // of the others, by their places among all

 private:
  void take(NewJob job, JobNames names_of_it, const JsonErrors& errors, bool is_line);

  const Caller& caller_;
  const decltype(NewJob::within) reach_;
  const WallTime now_;
  std::size_t count_ = 0;
  std::size_t waits_ = 0;
};

// Of all jobs of one request together: one transaction links them, and the commits of others wait for it.
inline constexpr std::size_t kMostWaitsTogether = 10'000;
// The problem of a request, or a settlement, whose jobs wait for more. `again`: "put them in several requests".
Problem too_many_waits(std::string_view again, std::string_view pointer);

// The problem of the job at that place, by the answer of the book; nullopt: there is none. Its id may be that of a job
// which is none of the caller's.
std::optional<Problem> problem_of_put(const Result<PutReply>& reply, std::string_view pointer);
// The words of an error on a job whose id or name another's job has; empty: it has neither.
std::string told_if_taken(const NewJob& job);
// The same as problem_of_put() by an error.
Problem problem_of_job(const Error& error, std::string_view pointer);

}  // namespace argiope

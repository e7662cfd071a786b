#include "jobs/internal/job_rules.hpp"

#include <fmt/format.h>

#include <string>

#include "base/internal/printable.hpp"

namespace argiope::job_rules {

Result<void> check_name(std::string_view what, std::string_view name) {
  if (name.size() <= kMostNameBytes) return {};
  return fail(Errc::invalid_input, fmt::format("{} {}: at most {} bytes", what, in_quotes(name, 20), kMostNameBytes));
}

Result<QueueConfig> stored(const QueueConfig& config) { return parse_queue_config(to_json(config)); }

Result<void> check(const PutRequest& request) {
  const NewJob& job = request.job;
  if (job.id > kMostJobId) {
    return fail(Errc::invalid_input, fmt::format("job id {}: at most {}", job.id, kMostJobId));
  }
  if (job.queue.empty()) return fail(Errc::invalid_input, "a job needs the name of a queue");
  const std::pair<std::string_view, const std::string&> names[] = {{"queue", job.queue},
                                                                   {"name", job.name},
                                                                   {"key", job.key},
                                                                   {"unique name", job.unique},
                                                                   {"function", job.function}};
  for (const auto& [what, name] : names) {
    if (auto fits = check_name(what, name); !fits) return fits;
  }
  if (job.lease_time < Duration{} || job.lease_time > kLongestLease) {
    return fail(Errc::invalid_input, "a job's lease time: 1 ms to 100 years, or 0 for the queue's");
  }
  for (const JobId waited_for : job.waits_for) {
    if (waited_for == 0 || waited_for > kMostJobId || waited_for == job.id) {
      return fail(Errc::invalid_input, fmt::format("waits_for: a job cannot wait for job {}", waited_for));
    }
  }
  if (job.batch != 0 && (job.batch == job.id || job.batch > kMostJobId)) return std::unexpected(no_batch(job.batch));
  return {};
}

Result<void> check_plain(const PutRequest& request) {
  if (request.run != 0 || request.after_run != 0) {
    return fail(Errc::invalid_input, "only the jobs of a schedule's step are its runs");
  }
  return check(request);
}

Result<void> check_plain(const std::vector<PutRequest>& requests) {
  for (const PutRequest& request : requests) {
    if (auto good = check_plain(request); !good) return good;
  }
  return {};
}

Result<void> check(const std::vector<LeaseRequest>& leases, std::uint64_t last) {
  for (const LeaseRequest& lease : leases) {
    if (lease.token <= last || lease.token > kMostToken) {
      return fail(Errc::invalid_input,
                  fmt::format("token {} of job {}: must be above {}, the last one", lease.token, lease.id, last));
    }
    last = lease.token;
  }
  return {};
}

Result<void> check(const RequestKey& key) {
  constexpr std::size_t kMostDigestBytes = 64;
  if (key.key.empty()) return fail(Errc::invalid_input, "the key of a request is empty");
  if (auto fits = check_name("key of a request", key.key); !fits) return fits;
  if (key.digest.size() <= kMostDigestBytes) return {};
  return fail(Errc::invalid_input, fmt::format("the digest of a request: at most {} bytes", kMostDigestBytes));
}

Error unknown_queue(QueueId queue) { return {Errc::invalid_input, fmt::format("there is no queue {}", queue)}; }
Error not_empty(std::string_view queue) {
  return {Errc::refused, fmt::format("queue {}: there are jobs in it", in_quotes(queue))};
}
Error not_yet_there(JobId waited_for) {
  return {Errc::invalid_input,
          fmt::format("waits_for: job {} cannot be waited for: there has been none of that id yet", waited_for)};
}
Error no_batch(JobId batch) {
  return {Errc::invalid_input, fmt::format("batch: job {} cannot complete a batch: it does not wait", batch)};
}
Error cycle(JobId batch) {
  return {Errc::invalid_input, fmt::format("batch: the job would wait for job {} and that one for it", batch)};
}
Error taken(const NewJob& job) {
  const std::string which = job.name.empty() ? std::to_string(job.id) : in_quotes(job.name);
  return {Errc::conflict, fmt::format("id {}: a job of another has it, and nothing was put", which)};
}
Error out_of_reach(std::string_view member, JobId id) {
  return {Errc::not_found, fmt::format("{}: job {}: there is no such job", member, id)};
}
Error no_ids_left() { return {Errc::invalid_input, "the last possible job id has been given"}; }
Error no_such_put(std::size_t place) {
  return {Errc::invalid_input, fmt::format("there is no put {} whose job could be leased", place)};
}
Error no_such_shelf() { return {Errc::invalid_input, "jobs can be moved to the shelves of ready jobs only"}; }
Error not_ended() { return {Errc::invalid_input, "only records of jobs that have ended can be pruned"}; }
Error closed() { return {Errc::cancelled, "the store has been closed"}; }

std::string cancelled_with(JobId waited_for, std::string_view what_befell_it) {
  return fmt::format("job {}, which it waited for, was {}", waited_for, what_befell_it);
}

}  // namespace argiope::job_rules

// Which rows a store that is far away has to bring before a call begins.
#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_transitions.hpp"

namespace argiope {
namespace {

void add(NeededRows& needed, JobId id) {
  if (id <= kMostJobId) needed.ids.push_back(id);
}

// One that is not well formed looks at nothing.
void add(NeededRows& needed, const PutRequest& put) {
  if (!job_rules::check(put)) return;
  const NewJob& job = put.job;
  if (job.id != 0) needed.ids.push_back(job.id);
  if (job.batch != 0) needed.ids.push_back(job.batch);
  needed.ids.insert(needed.ids.end(), job.waits_for.begin(), job.waits_for.end());
  if (!job.name.empty()) needed.names.push_back(job.name);
  if (!job.unique.empty()) needed.uniques.emplace_back(job.queue, job.unique);
}

}  // namespace

NeededRows needed_by(std::span<const PutRequest> puts) {
  NeededRows needed;
  for (const PutRequest& put : puts) add(needed, put);
  return needed;
}

NeededRows needed_by(std::span<const LeaseRequest> leases) {
  NeededRows needed;
  for (const LeaseRequest& lease : leases) {
    if (lease.by_id) add(needed, lease.id);
  }
  return needed;
}

NeededRows needed_by(std::span<const Settlement> settlements) {
  NeededRows needed;
  for (const Settlement& settlement : settlements) {
    if (settlement.outcome != Outcome::done || settlement.keep) {
      add(needed, settlement.id);
    } else if (settlement.id <= kMostJobId) {
      needed.ends.push_back(settlement.id);
    }
    for (const PutRequest& put : settlement.follow_ups) add(needed, put);
  }
  return needed;
}

NeededRows needed_by(std::span<const Change> changes) {
  NeededRows needed;
  for (const Change& change : changes) add(needed, change.id);
  return needed;
}

NeededRows needed_by(std::span<const RequestKey> keys) {
  NeededRows needed;
  for (const RequestKey& key : keys) needed.requests.push_back(key.key);
  return needed;
}

NeededRows needed_by(std::span<const JobId> ids) {
  NeededRows needed;
  for (const JobId id : ids) add(needed, id);
  return needed;
}

NeededRows needed_by(std::span<const FireRequest> steps) {
  NeededRows needed;
  for (const FireRequest& step : steps) {
    needed.schedules.push_back(step.id);
    for (const PutRequest& put : step.jobs) add(needed, put);
  }
  return needed;
}

}  // namespace argiope

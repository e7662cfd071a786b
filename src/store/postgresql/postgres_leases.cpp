#include "store/postgresql/postgres_leases.hpp"

#include <algorithm>
#include <utility>

#include "jobs/internal/job_rules.hpp"

namespace argiope {

const PostgresLeases::Lease* PostgresLeases::find(JobId id) const {
  if (const auto* change = changes_.find(id)) return *change ? &**change : nullptr;
  if (const auto sent = written_.find(id); sent != written_.end()) return sent->second ? &*sent->second : nullptr;
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

void PostgresLeases::set_flags(JobId id, std::int64_t flags) {
  const Lease* const lease = find(id);
  if (lease == nullptr || lease->flags == flags) return;
  Lease changed = *lease;
  changed.flags = flags;
  set(id, std::move(changed));
}

void PostgresLeases::take_over() {
  for (auto& [id, lease] : leases_) lease.old = true;
}

std::vector<OldLease> PostgresLeases::old() const {
  std::vector<OldLease> old;
  for (const auto& [id, kept] : leases_) {
    const Lease* const lease = find(id);
    if (lease != nullptr && lease->old)
      old.push_back({id, lease->token, job_rules::from_ms(lease->until), lease->worker, lease->remote});
  }
  std::ranges::sort(old, {}, &OldLease::id);
  return old;
}

// Old ones stay old: nobody but the owner renews them.
void PostgresLeases::load() {
  changes_.clear();
  written_.clear();
  if (!work_.owns()) return;
  const auto answers = work_.read(
      {{"SELECT l.job_id, l.token, l.until, l.worker, l.remote, j.queue_id, j.flags FROM leases l JOIN jobs j "
        "USING (partition, job_id) WHERE partition = 0",
        PostgresValues()}});
  const PostgresRows& rows = answers.at(0);
  const auto before = std::exchange(leases_, {});
  for (int i = 0; i < rows.size(); ++i) {
    const auto id = static_cast<JobId>(rows.number(i, 0));
    const auto known = before.find(id);
    const auto token = static_cast<std::uint64_t>(rows.number(i, 1));
    leases_[id] = {.token = token,
                   .until = rows.number(i, 2),
                   .worker = std::string(rows.text(i, 3)),
                   .remote = rows.number(i, 4) != 0,
                   .old = known != before.end() && known->second.token == token && known->second.old,
                   .queue = static_cast<QueueId>(rows.number(i, 5)),
                   .flags = rows.number(i, 6)};
  }
}

void PostgresLeases::write() {
  PostgresColumn gone, ids, tokens, untils, workers, remotes;
  for (const auto& [id, lease] : changes_.all()) {
    written_.insert_or_assign(id, lease);
    if (!lease) {
      gone.add(id);
      continue;
    }
    ids.add(id);
    tokens.add(lease->token);
    untils.add(lease->until);
    workers.add(lease->worker);
    remotes.add(lease->remote);
  }
  if (!gone.empty())
    work_.write("DELETE FROM leases WHERE partition = 0 AND job_id = ANY($1::bigint[])", PostgresValues(gone));
  if (!ids.empty()) {
    work_.write(
        "INSERT INTO leases SELECT 0, i, t, u, w, r FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], "
        "$5::bigint[]) AS n(i, t, u, w, r) ON CONFLICT (partition, job_id) DO UPDATE SET token = excluded.token, until "
        "= "
        "excluded.until, worker = excluded.worker, remote = excluded.remote",
        PostgresValues(ids, tokens, untils, workers, remotes));
  }
  changes_.clear();
}

void PostgresLeases::committed() {
  for (auto& [id, lease] : std::exchange(written_, {}))
    lease ? (void)leases_.insert_or_assign(id, std::move(*lease)) : (void)leases_.erase(id);
}

}  // namespace argiope

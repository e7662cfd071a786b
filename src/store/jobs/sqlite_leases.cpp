// Which jobs run.
#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "store/jobs/sqlite_jobs.hpp"
#include "store/jobs/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

namespace {

constexpr std::size_t kEntryBytes = 24;

void append_number(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(number >> (8 * i));
}
std::uint64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

}  // namespace

// A renewal is a later entry with the same token.
void SqliteJobs::load_leases() {
  if (leases_known_) return;
  leases_.clear();
  batches_.clear();
  next_batch_ = 1;
  Use rows = use(Query::leases);
  while (rows.next()) {
    const std::int64_t batch = rows.number(0);
    next_batch_ = batch + 1;
    LeaseBatch& of = batches_[batch];
    of.worker = rows.text(1);
    of.remote = rows.number(3) != 0;
    const std::string_view entries = rows.text(2);
    for (std::size_t at = 0; at + kEntryBytes <= entries.size(); at += kEntryBytes) {
      const Lease lease{.token = number_at(entries, at + 8),
                        .until = static_cast<std::int64_t>(number_at(entries, at + 16)),
                        .batch = batch};
      Lease& known = leases_[number_at(entries, at)];
      if (known.token > lease.token) continue;
      if (known.batch != 0) --batches_[known.batch].remaining;
      known = lease;
      ++batches_[batch].remaining;
    }
  }
  leases_known_ = true;
}

const SqliteJobs::Lease* SqliteJobs::find_lease(JobId id) {
  if (!leases_known_) load_leases();
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

std::uint64_t SqliteJobs::token_of(JobId id, std::int64_t fence) {
  const Lease* lease = find_lease(id);
  return lease != nullptr && lease->token > static_cast<std::uint64_t>(fence) ? lease->token : 0;
}

void SqliteJobs::set_lease(JobId id, std::optional<Lease> lease) {
  const auto found = leases_.find(id);
  undo_.emplace_back(id, found == leases_.end() ? std::nullopt : std::optional(found->second));
  if (found != leases_.end()) {
    if (--batches_[found->second.batch].remaining == 0) emptied_.push_back(found->second.batch);
    if (!lease) leases_.erase(found);
  }
  if (lease) {
    ++batches_[lease->batch].remaining;
    leases_.insert_or_assign(id, *lease);
  }
}

void SqliteJobs::undo_leases(std::size_t down_to) noexcept {
  while (undo_.size() > down_to) {
    const auto [id, before] = undo_.back();
    undo_.pop_back();
    if (const auto found = leases_.find(id); found != leases_.end()) {
      --batches_[found->second.batch].remaining;
      leases_.erase(found);
    }
    if (before) {
      ++batches_[before->batch].remaining;
      leases_.emplace(id, *before);
    }
  }
}

// Writes down what set_lease() has given to batch `next_batch_`.
void SqliteJobs::write_leases(std::span<const LeaseEntry> entries, Holder holder) {
  if (entries.empty()) return;
  std::string bytes;
  bytes.reserve(entries.size() * kEntryBytes);
  const std::int64_t batch = next_batch_++;
  LeaseBatch& of = batches_[batch];
  of.worker = holder.worker;
  of.remote = holder.remote;
  for (const LeaseEntry& entry : entries) {
    append_number(bytes, entry.id);
    append_number(bytes, entry.token);
    append_number(bytes, static_cast<std::uint64_t>(entry.until));
  }
  use(Query::lease_add).with(batch, holder.worker, bytes).with_or_null(holder.remote ? 1 : 0).run();
}

// How many of the first requests are for jobs whose ids follow one another.
static std::size_t neighbours(std::span<const LeaseRequest> leases) noexcept {
  std::size_t count = 1;
  while (count < leases.size() && leases[count].id == leases[count - 1].id + 1) ++count;
  return count;
}

std::vector<std::optional<JobRecord>> SqliteJobs::lease(std::span<const LeaseRequest> leases) {
  std::vector<std::optional<JobRecord>> records;
  records.reserve(leases.size());
  std::vector<LeaseEntry> entries;
  entries.reserve(leases.size());
  Holder holder;
  LeasedBytes bytes;
  while (records.size() < leases.size()) {
    const auto left = leases.subspan(records.size());
    if (bytes.is_full()) {
      records.push_back(left_as_it_is(left.front().id));
      counters_.last_token = left.front().token;
      note_token();
      continue;
    }
    const auto together = left.first(neighbours(left));
    Use rows = use(Query::job_records);
    bool more = rows.with(together.front().id, together.back().id).next();
    for (const LeaseRequest& request : together) {
      records.emplace_back();
      counters_.last_token = request.token;
      note_token();
      while (more && static_cast<JobId>(rows.number(0)) < request.id) more = rows.next();
      const bool waits = more && static_cast<JobId>(rows.number(0)) == request.id &&
                         is_leasable(static_cast<RowState>(rows.number(2)));
      if (!waits || find_lease(request.id) != nullptr) continue;
      if (!bytes.take(rows.row().bytes(kPayloadColumn).size() + rows.row().bytes(kResultColumn).size())) {
        records.back() = left_as_it_is(request.id);
        break;
      }
      if (const Holder its{request.worker, request.remote}; its != holder) {
        write_leases(entries, holder);
        entries.clear();
        holder = its;
      }
      records.back() = lease_row(rows.row(), request);
      entries.push_back({request.id, request.token, find_lease(request.id)->until});
    }
  }
  write_leases(entries, holder);
  return records;
}

// In memory; at once, so that a second request for the job in the same call finds it taken.
JobRecord SqliteJobs::lease_row(const SqliteStatement& row, const LeaseRequest& request) {
  const std::int64_t until = lease_end(request, row.number(kLeaseTimeColumn));
  const auto queue = static_cast<QueueId>(row.number(1));
  set_lease(request.id, Lease{.token = request.token,
                              .until = until,
                              .batch = next_batch_,
                              .queue = queue,
                              .flags = row.number(kFlagsColumn),
                              .is_first_run = row.number(kAttemptsColumn) == 0 && row.number(kTallyColumn) == 0});
  JobRecord record = read_record(row);
  count(queue, record.state, -1);
  count(queue, JobState::running, 1);
  record.state = JobState::running;
  ++record.tally.runs;
  record.token = request.token;
  record.worker = request.worker;
  record.lease_until = from_ms(until);
  return record;
}

void SqliteJobs::renew(std::span<const LeaseRequest> leases) {
  std::vector<LeaseEntry> entries;
  Holder holder;
  for (const LeaseRequest& request : leases) {
    const Lease* lease = find_lease(request.id);
    if (lease == nullptr || lease->token != request.token) continue;
    if (const Holder its{request.worker, request.remote}; its != holder) {
      write_leases(entries, holder);
      entries.clear();
      holder = its;
    }
    entries.push_back({request.id, lease->token, to_ms(request.until)});
    Lease renewed = *lease;
    renewed.until = entries.back().until;
    renewed.batch = next_batch_;
    renewed.old = false;
    set_lease(request.id, renewed);
  }
  write_leases(entries, holder);
}

std::vector<OldLease> SqliteJobs::old_leases() {
  std::vector<OldLease> old;
  if (access() != StoreAccess::own) return old;
  for (const auto& [id, lease] : leases_) {
    if (!lease.old) continue;
    const LeaseBatch& of = batches_[lease.batch];
    old.push_back({id, lease.token, from_ms(lease.until), of.worker, of.remote});
  }
  std::ranges::sort(old, {}, &OldLease::id);
  return old;
}

}  // namespace argiope

#include "store/jobs/sqlite_leases.hpp"

#include <algorithm>
#include <map>

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

namespace {

constexpr std::size_t kEntryBytes = 24;
// Enough to work for centuries.
constexpr std::int64_t kLastTokenToGoOnFrom = std::int64_t{1} << 52;

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
void SqliteLeases::load() {
  if (known_) return;
  leases_.clear();
  batches_.clear();
  next_batch_ = 1;
  SqliteUse rows = sql_.use(Query::leases);
  while (rows.next()) {
    const std::int64_t batch = rows.number(0);
    next_batch_ = batch + 1;
    Batch& of = batches_[batch];
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
  known_ = true;
}

const SqliteLeases::Lease* SqliteLeases::find(JobId id) {
  if (!known_) load();
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

std::uint64_t SqliteLeases::token_of(JobId id, std::int64_t fence) {
  const Lease* lease = find(id);
  return lease != nullptr && lease->token > static_cast<std::uint64_t>(fence) ? lease->token : 0;
}

void SqliteLeases::set(JobId id, std::optional<Lease> lease) {
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

void SqliteLeases::undo(std::size_t down_to) noexcept {
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

// Writes down what set() has given to batch `next_batch_`.
void SqliteLeases::write(std::span<const Entry> entries, Holder holder) {
  if (entries.empty()) return;
  std::string bytes;
  bytes.reserve(entries.size() * kEntryBytes);
  const std::int64_t batch = next_batch_++;
  Batch& of = batches_[batch];
  of.worker = holder.worker;
  of.remote = holder.remote;
  for (const Entry& entry : entries) {
    append_number(bytes, entry.id);
    append_number(bytes, entry.token);
    append_number(bytes, static_cast<std::uint64_t>(entry.until));
  }
  sql_.use(Query::lease_add).with(batch, holder.worker, bytes).with_or_null(holder.remote ? 1 : 0).run();
}

// How many of the first requests are for jobs whose ids follow one another.
static std::size_t neighbours(std::span<const LeaseRequest> leases) noexcept {
  std::size_t count = 1;
  while (count < leases.size() && leases[count].id == leases[count - 1].id + 1) ++count;
  return count;
}

std::vector<std::optional<JobRecord>> SqliteLeases::lease(std::span<const LeaseRequest> leases) {
  std::vector<std::optional<JobRecord>> records;
  records.reserve(leases.size());
  std::vector<Entry> entries;
  entries.reserve(leases.size());
  Holder holder;
  LeasedBytes bytes;
  while (records.size() < leases.size()) {
    const auto left = leases.subspan(records.size());
    if (bytes.is_full()) {
      records.push_back(left_as_it_is(left.front().id));
      counters_.give_token(left.front().token);
      continue;
    }
    const auto together = left.first(neighbours(left));
    SqliteUse rows = sql_.use(Query::job_records);
    bool more = rows.with(together.front().id, together.back().id).next();
    for (const LeaseRequest& request : together) {
      records.emplace_back();
      counters_.give_token(request.token);
      while (more && static_cast<JobId>(rows.number(0)) < request.id) more = rows.next();
      const bool waits = more && static_cast<JobId>(rows.number(0)) == request.id &&
                         is_leasable(static_cast<RowState>(rows.number(2)));
      if (!waits || find(request.id) != nullptr) continue;
      if (!bytes.take(rows.row().bytes(kPayloadColumn).size() + rows.row().bytes(kResultColumn).size())) {
        records.back() = left_as_it_is(request.id);
        break;
      }
      if (const Holder its{request.worker, request.remote}; its != holder) {
        write(entries, holder);
        entries.clear();
        holder = its;
      }
      records.back() = lease_row(rows.row(), request);
      entries.push_back({request.id, request.token, find(request.id)->until});
    }
  }
  write(entries, holder);
  return records;
}

// In memory; at once, so that a second request for the job in the same call finds it taken.
JobRecord SqliteLeases::lease_row(const SqliteStatement& row, const LeaseRequest& request) {
  const std::int64_t until = lease_end(request, row.number(kLeaseTimeColumn));
  const auto queue = static_cast<QueueId>(row.number(1));
  set(request.id, Lease{.token = request.token,
                        .until = until,
                        .batch = next_batch_,
                        .queue = queue,
                        .flags = row.number(kFlagsColumn),
                        .is_first_run = row.number(kAttemptsColumn) == 0 && row.number(kTallyColumn) == 0});
  JobRecord record = read_record(row, queues_.all());
  queues_.count(queue, record.state, -1);
  queues_.count(queue, JobState::running, 1);
  record.state = JobState::running;
  ++record.tally.runs;
  record.token = request.token;
  record.worker = request.worker;
  record.lease_until = from_ms(until);
  return record;
}

void SqliteLeases::renew(std::span<const LeaseRequest> leases) {
  std::vector<Entry> entries;
  Holder holder;
  for (const LeaseRequest& request : leases) {
    const Lease* lease = find(request.id);
    if (lease == nullptr || lease->token != request.token) continue;
    if (const Holder its{request.worker, request.remote}; its != holder) {
      write(entries, holder);
      entries.clear();
      holder = its;
    }
    entries.push_back({request.id, lease->token, to_ms(request.until)});
    Lease renewed = *lease;
    renewed.until = entries.back().until;
    renewed.batch = next_batch_;
    renewed.old = false;
    set(request.id, renewed);
  }
  write(entries, holder);
}

std::vector<JobId> SqliteLeases::jobs_between(JobId first, JobId last) {
  load();
  std::vector<JobId> ids;
  for (const auto& [id, lease] : leases_) {
    if (id >= first && id <= last) ids.push_back(id);
  }
  std::ranges::sort(ids);
  return ids;
}

void SqliteLeases::set_flags(JobId id, std::int64_t flags) {
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.flags = flags;
}

void SqliteLeases::add_flags(JobId id, std::int64_t flags) {
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.flags |= flags;
}

// SqliteJobs::keep_done() leaves a record's result alone, so this one is no longer for it.
void SqliteLeases::note_result(JobId id) {
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.is_first_run = false;
}

// --- a new owner -----------------------------------------------------------------------------------------------------

void SqliteLeases::take_over(const std::function<bool(JobId)>& runs) {
  load();
  // Leases of jobs that have ended or been given back since are forgotten, and whole rows with them.
  std::vector<JobId> over;
  for (auto& [id, lease] : leases_) {
    lease.old = true;
    if (!runs(id)) over.push_back(id);
  }
  for (const JobId id : over) set(id, std::nullopt);
  if (counters_.now().last_token > kLastTokenToGoOnFrom) renumber();
  counters_.go_on_from_last();
  undo_.clear();
  for (auto& [batch, found] : batches_) {
    if (found.remaining == 0) emptied_.push_back(batch);
  }
}

// Tokens that begin anew, below all that were given while they were counted by openings: those started at 2^40.
void SqliteLeases::renumber() {
  std::vector<std::pair<JobId, Lease>> left(leases_.begin(), leases_.end());
  std::ranges::sort(left, {}, [](const auto& entry) { return entry.second.token; });
  std::map<std::pair<std::string, bool>, std::vector<std::pair<JobId, Lease>>> by_worker;
  counters_.now().last_token = 0;
  for (auto& [id, lease] : left) {
    lease.token = ++counters_.now().last_token;
    const Batch& of = batches_[lease.batch];
    by_worker[{of.worker, of.remote}].emplace_back(id, lease);
  }
  for (const char* statement : {"DELETE FROM leases", "UPDATE jobs SET fence = NULL WHERE fence IS NOT NULL"}) {
    sql_.execute(statement);
  }
  leases_.clear();
  batches_.clear();
  next_batch_ = 1;
  for (auto& [worker_and_remote, leases] : by_worker) {
    std::vector<Entry> entries;
    batches_[next_batch_].remaining = leases.size();
    for (auto& [id, lease] : leases) {
      entries.push_back({id, lease.token, lease.until});
      lease.batch = next_batch_;
      leases_.emplace(id, lease);
    }
    write(entries, {worker_and_remote.first, worker_and_remote.second});
  }
}

std::vector<OldLease> SqliteLeases::old() const {
  std::vector<OldLease> old;
  for (const auto& [id, lease] : leases_) {
    if (!lease.old) continue;
    const Batch& of = batches_.at(lease.batch);
    old.push_back({id, lease.token, from_ms(lease.until), of.worker, of.remote});
  }
  std::ranges::sort(old, {}, &OldLease::id);
  return old;
}

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteLeases::note_others(bool owns) {
  if (!owns) known_ = false;
  for (auto& [id, lease] : leases_) lease.queue = 0;
}

void SqliteLeases::flush() {
  for (const std::int64_t batch : emptied_) {
    const auto found = batches_.find(batch);
    if (found != batches_.end() && found->second.remaining == 0) sql_.use(Query::lease_delete).with(batch).run();
  }
}

void SqliteLeases::committed() {
  for (const std::int64_t batch : emptied_) {
    const auto found = batches_.find(batch);
    if (found != batches_.end() && found->second.remaining == 0) batches_.erase(found);
  }
  emptied_.clear();
  undo_.clear();
}

void SqliteLeases::drop() noexcept {
  undo(0);
  emptied_.clear();
}

}  // namespace argiope

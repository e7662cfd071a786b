// Transactions, rows, counts and leases: what the calls are made of.
#include "store/sqlite_jobs.hpp"

#include <algorithm>

#include "base/internal/printable.hpp"
#include "store/job_rules.hpp"
#include "store/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteJobs::failed(int code) { throw DatabaseFailed{database_.error(code)}; }

void SqliteJobs::begin(bool to_write) {
  use(to_write ? Query::begin_write : Query::begin_read).run();
  writing_ = to_write;
  refresh();
  lock_wait_.over();
}

// Others than this connection may write: what is known of the file is good until the file says otherwise.
void SqliteJobs::refresh() {
  std::int64_t version = 0;
  {
    Use use_version = use(Query::data_version);
    use_version.next();
    version = use_version.number(0);
  }
  if (version == data_version_) return;
  data_version_ = version;
  touched_ = true;
  if (access() != StoreAccess::own) leases_known_ = false;
  for (auto& [id, lease] : leases_) lease.queue = 0;
  last_id_ = last_id_stored_ = static_cast<JobId>(meta("last_id").value_or(0));
  last_chosen_id_ = last_chosen_id_stored_ = static_cast<JobId>(meta("last_chosen_id").value_or(0));
  // Only an owner gives tokens, and may have refused some that were never written.
  last_token_stored_ = meta("last_token").value_or(0);
  last_token_ = access() == StoreAccess::own ? std::max(last_token_, last_token_stored_) : last_token_stored_;
  note_token();
  last_schedule_ = last_schedule_stored_ = static_cast<ScheduleId>(meta("last_schedule").value_or(0));
  queues_.clear();
  queue_ids_.clear();
  Use rows = use(Query::queues);
  while (rows.next()) {
    const auto id = static_cast<QueueId>(rows.number(0));
    auto config = parse_queue_config(rows.text(2));
    if (!config) {
      throw DatabaseFailed{{Errc::corrupt, "database " + path_ + ": the configuration of queue " +
                                               in_quotes(rows.text(1)) + ": " + config.error().message}};
    }
    queues_.push_back({id, std::string(rows.text(1)), std::move(*config)});
    queue_ids_[queues_.back().name] = id;
  }
}

void SqliteJobs::commit() {
  if (writing_) flush();
  use(Query::commit).run();
  lock_wait_.over();
  writing_ = false;
  for (const std::int64_t batch : emptied_) {
    const auto found = batches_.find(batch);
    if (found != batches_.end() && found->second.remaining == 0) batches_.erase(found);
  }
  emptied_.clear();
  undo_.clear();
}

void SqliteJobs::roll_back() noexcept {
  undo_leases(0);
  emptied_.clear();
  changed_counts_.clear();
  data_version_ = -1;
  last_token_ = 0;
  has_touched_ = false;
  writing_ = false;
  for (SqliteStatement& statement : statements_) {
    if (statement) statement.reset();
  }
  (void)database_.execute("ROLLBACK");  // SQLite may have done it already
}

// One that others keep from its end, or a full disk, is tried again when the log has grown by as much again.
Result<void> SqliteJobs::checkpoint() {
  checkpoint_at_ = log_pages_ + kCheckpointPages;
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code != SQLITE_IOERR_FSYNC) return {};
  return std::unexpected(database_.error(code));
}

void SqliteJobs::keep_log() noexcept {
  sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Error SqliteJobs::not_in_place() const {
  return {Errc::io, "database " + path_ +
                        ": it was removed or replaced while it was open; nothing more is written. Start again to use "
                        "the file that lies there now"};
}

// What a transaction keeps in memory until its end, so that it costs a row each and not one each job.
void SqliteJobs::flush() {
  for (std::size_t i = 0; i < changed_counts_.size(); ++i) {
    Counts& counts = changed_counts_[i];
    if (!counts.touched) continue;
    const auto of = [&](JobState state) { return counts.of[static_cast<std::size_t>(state)]; };
    use(Query::counts_change)
        .with(i + 1, of(JobState::delayed), of(JobState::ready), of(JobState::running), of(JobState::done),
              of(JobState::cancelled), of(JobState::buried), counts.ended)
        .run();
    counts = {};
  }
  for (const std::int64_t batch : emptied_) {
    const auto found = batches_.find(batch);
    if (found != batches_.end() && found->second.remaining == 0) use(Query::lease_delete).with(batch).run();
  }
  if (last_id_ != last_id_stored_) set_meta("last_id", static_cast<std::int64_t>(last_id_));
  if (last_chosen_id_ != last_chosen_id_stored_) {
    set_meta("last_chosen_id", static_cast<std::int64_t>(last_chosen_id_));
  }
  if (last_token_ != last_token_stored_) set_meta("last_token", last_token_);
  if (last_schedule_ != last_schedule_stored_) set_meta("last_schedule", static_cast<std::int64_t>(last_schedule_));
  last_id_stored_ = last_id_;
  last_chosen_id_stored_ = last_chosen_id_;
  last_token_stored_ = last_token_;
  last_schedule_stored_ = last_schedule_;
  if (std::exchange(has_touched_, false)) bound_touched();
}

SqliteJobs::Mark SqliteJobs::mark() {
  use(Query::savepoint).run();
  return {undo_.size(), last_id_, last_chosen_id_, changed_counts_, queues_.size()};
}

void SqliteJobs::take_back(const Mark& mark) {
  use(Query::savepoint_undo).run();
  undo_leases(mark.undo);
  last_id_ = mark.last_id;
  last_chosen_id_ = mark.last_chosen_id;
  changed_counts_ = mark.counts;
  while (queues_.size() > mark.queues) {
    queue_ids_.erase(queues_.back().name);
    queues_.pop_back();
  }
}

bool SqliteJobs::others_changed_jobs() {
  Use version = use(Query::data_version);
  version.next();
  return touched_ || version.number(0) != data_version_;
}

std::optional<std::int64_t> SqliteJobs::meta(std::string_view name) {
  Use found = use(Query::meta_get);
  if (!found.with(name).next()) return std::nullopt;
  return found.number(0);
}

void SqliteJobs::set_meta(std::string_view name, std::int64_t value) { use(Query::meta_set).with(name, value).run(); }

// --- rows ------------------------------------------------------------------------------------------------------------

std::optional<SqliteJobs::Row> SqliteJobs::load(JobId id) {
  Use found = use(Query::job_core);
  if (!found.with(id).next()) return std::nullopt;
  Row row;
  row.id = id;
  row.queue = static_cast<QueueId>(found.number(0));
  row.state = static_cast<Stored>(found.number(1));
  row.rank = narrow(found.number(2));
  row.priority = narrow(found.number(3));
  row.due_at = found.number(4);
  row.attempts = static_cast<std::uint32_t>(found.number(5));
  row.expiries = static_cast<std::uint32_t>(found.number(6));
  row.pending = static_cast<std::uint32_t>(found.number(7));
  row.cancelled_with_others = found.number(8) == 0;
  row.flags = found.number(9);
  row.fence = found.number(10);
  row.ended_at = found.number(11);
  row.key = found.text(12);
  row.unique = found.text(13);
  row.schedule = static_cast<ScheduleId>(found.number(14));
  row.run = static_cast<std::uint64_t>(found.number(15));
  return row;
}

// `before` must not run, or what it counted as must have been counted off already.
void SqliteJobs::store(const Row& before, const Row& after) {
  if (before.state != after.state) {
    count(before.queue, state_of(before.state), -1);
    count(after.queue, state_of(after.state), 1);
  }
  use(Query::job_update)
      .with(after.id, after.state, after.rank, after.priority)
      .with_or_null(after.due_at, after.attempts, after.expiries, after.pending, after.flags, after.fence,
                    after.ended_at)
      .with(after.key)
      .with_or_null(after.unique)
      .run();
  const bool keeps_unique = holds_unique(before) && holds_unique(after);
  if (holds_unique(before) && !keeps_unique)
    use(Query::unique_delete).with(before.queue, before.unique, before.id).run();
  if (holds_unique(after) && !keeps_unique) use(Query::unique_add).with(after.queue, after.unique, after.id).run();
  if (!waits(before.state)) use(Query::ended_delete).with(before.queue, before.state, before.ended_at, before.id).run();
  if (!waits(after.state)) use(Query::ended_add).with(after.queue, after.state, after.ended_at, after.id).run();
  touch(after.id);
}

// But for its row in ended_jobs.
void SqliteJobs::erase_row(JobId id, std::int64_t flags) {
  if (flags & kHasHistory) use(Query::history_delete).with(id).run();
  if (flags & kHasNames) {
    Use names = use(Query::job_names);
    if (names.with(id).next()) {
      const auto queue = names.number(1);
      if (!names.text(0).empty()) use(Query::name_delete).with(names.text(0)).run();
      if (!names.text(2).empty()) use(Query::unique_delete).with(queue, names.text(2), id).run();
    }
  }
  use(Query::job_delete).with(id).run();
}

void SqliteJobs::add_flags(JobId id, std::int64_t flags) {
  use(Query::job_set_flags).with(id, flags).run();
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.flags |= flags;
}

void SqliteJobs::count(QueueId queue, JobState state, int by) {
  if (changed_counts_.size() < queue) changed_counts_.resize(queue);
  Counts& counts = changed_counts_[queue - 1];
  counts.touched = true;
  counts.of[static_cast<std::size_t>(state)] += by;
}

JobState SqliteJobs::state_of(Stored state) noexcept {
  switch (state) {
    case Stored::ready:
    case Stored::set_aside: return JobState::ready;
    case Stored::delayed:
    case Stored::waiting: return JobState::delayed;
    case Stored::done: return JobState::done;
    case Stored::cancelled: return JobState::cancelled;
    case Stored::buried: break;
  }
  return JobState::buried;
}

WaitingJob SqliteJobs::waiting(const Row& row) const {
  return {row.id,
          row.queue,
          row.key,
          row.rank,
          from_ms(row.due_at),
          row.attempts,
          row.expiries,
          static_cast<Shelf>(row.state)};
}

// The owner is to hear of what others change.
void SqliteJobs::touch(JobId id) {
  if (access() != StoreAccess::share) return;
  use(Query::touched_add).with(id).run();
  has_touched_ = true;
}

// An owner takes what it hears away. Where there is none, whoever comes to be one reads the store from the start, after
// this transaction.
void SqliteJobs::bound_touched() {
  const auto length = [this](Query query) {
    Use last = use(query);
    return last.next() ? last.number(0) : 0;
  };
  if (length(Query::touched_last) <= kMostTouched && length(Query::touched_schedules_last) <= kMostTouched) return;
  if (is_locked(path_)) return;
  use(Query::touched_delete).run();
  use(Query::touched_schedules_delete).run();
}

// --- leases ----------------------------------------------------------------------------------------------------------

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
    const std::string_view entries = rows.text(2);
    for (std::size_t at = 0; at + kEntryBytes <= entries.size(); at += kEntryBytes) {
      const Lease lease{.token = static_cast<std::int64_t>(number_at(entries, at + 8)),
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

bool SqliteJobs::runs(JobId id, std::int64_t fence) {
  const Lease* lease = find_lease(id);
  return lease != nullptr && lease->token > fence;
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
void SqliteJobs::write_leases(std::span<const LeaseEntry> entries, std::string_view worker) {
  if (entries.empty()) return;
  std::string bytes;
  bytes.reserve(entries.size() * kEntryBytes);
  const std::int64_t batch = next_batch_++;
  batches_[batch].worker = worker;
  for (const LeaseEntry& entry : entries) {
    append_number(bytes, entry.id);
    append_number(bytes, static_cast<std::uint64_t>(entry.token));
    append_number(bytes, static_cast<std::uint64_t>(entry.until));
  }
  use(Query::lease_add).with(batch, worker, bytes).run();
}

std::vector<std::optional<JobRecord>> SqliteJobs::lease(const std::vector<LeaseRequest>& leases) {
  if (auto good = check(leases, static_cast<std::uint64_t>(last_token_)); !good) throw RequestRefused{good.error()};
  std::vector<std::optional<JobRecord>> records(leases.size());
  std::vector<LeaseEntry> entries;
  entries.reserve(leases.size());
  std::string_view worker;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const LeaseRequest& request = leases[i];
    last_token_ = static_cast<std::int64_t>(request.token);
    note_token();
    if (find_lease(request.id) != nullptr) continue;
    Use found = use(Query::job_record);
    if (!found.with(request.id).next() || !leasable(static_cast<Stored>(found.number(2)))) continue;
    if (request.worker != worker) {
      write_leases(entries, worker);
      entries.clear();
      worker = request.worker;
    }
    const std::int64_t until = to_ms(request.until);
    entries.push_back({request.id, last_token_, until});
    // At once, so that a second request for the job in this call finds it taken.
    const auto queue = static_cast<QueueId>(found.number(1));
    set_lease(request.id, Lease{.token = last_token_,
                                .until = until,
                                .batch = next_batch_,
                                .queue = queue,
                                .flags = found.number(kFlagsColumn)});
    JobRecord& record = records[i].emplace(read_record(found.row()));
    count(queue, record.state, -1);
    count(queue, JobState::running, 1);
    record.state = JobState::running;
    record.token = request.token;
    record.worker = request.worker;
    record.lease_until = from_ms(until);
  }
  write_leases(entries, worker);
  return records;
}

void SqliteJobs::renew(const std::vector<LeaseRequest>& leases) {
  std::vector<LeaseEntry> entries;
  std::string_view worker;
  for (const LeaseRequest& request : leases) {
    const Lease* lease = find_lease(request.id);
    if (lease == nullptr || static_cast<std::uint64_t>(lease->token) != request.token) continue;
    if (request.worker != worker) {
      write_leases(entries, worker);
      entries.clear();
      worker = request.worker;
    }
    entries.push_back({request.id, lease->token, to_ms(request.until)});
    Lease renewed = *lease;
    renewed.until = entries.back().until;
    renewed.batch = next_batch_;
    renewed.old = false;
    set_lease(request.id, renewed);
  }
  write_leases(entries, worker);
}

std::vector<OldLease> SqliteJobs::old_leases() {
  std::vector<OldLease> old;
  if (access() != StoreAccess::own) return old;
  for (const auto& [id, lease] : leases_) {
    if (!lease.old) continue;
    old.push_back({id, static_cast<std::uint64_t>(lease.token), from_ms(lease.until), batches_[lease.batch].worker});
  }
  std::ranges::sort(old, {}, &OldLease::id);
  return old;
}

ChangedElsewhere SqliteJobs::changed_elsewhere() {
  ChangedElsewhere changed;
  if (access() != StoreAccess::own || !touched_ || !writing_) return changed;
  {
    Use rows = use(Query::touched);
    while (rows.next()) changed.jobs.push_back(static_cast<JobId>(rows.number(0)));
  }
  if (!changed.jobs.empty()) use(Query::touched_delete).run();
  {
    Use rows = use(Query::touched_schedules);
    while (rows.next()) changed.schedules.push_back(static_cast<ScheduleId>(rows.number(0)));
  }
  if (!changed.schedules.empty()) use(Query::touched_schedules_delete).run();
  touched_ = false;
  return changed;
}

void SqliteJobs::remember(const std::string& name, std::int64_t value) {
  if (auto fits = check_name("name", name); !fits) throw RequestRefused{fits.error()};
  set_meta("owner." + name, value);
}
std::optional<std::int64_t> SqliteJobs::recall(const std::string& name) { return meta("owner." + name); }

}  // namespace argiope

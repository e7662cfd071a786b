// Transactions, counts, queues, and what the owner keeps or hears besides.
#include "store/jobs/sqlite_jobs.hpp"

#include <algorithm>

#include "base/internal/printable.hpp"
#include "jobs/internal/job_rules.hpp"
#include "store/jobs/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteJobs::failed(int code) { throw DatabaseFailed{database_.error(code)}; }

void SqliteJobs::begin(bool to_write) {
  use(to_write ? Query::begin_write : Query::begin_read).run();
  writing_ = to_write;
  refresh();
  queues_.mark();
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
  const std::uint64_t token_before = counters_.last_token;
  counters_stored_ = {.last_id = static_cast<JobId>(meta("last_id").value_or(0)),
                      .last_chosen_id = static_cast<JobId>(meta("last_chosen_id").value_or(0)),
                      .last_token = static_cast<std::uint64_t>(meta("last_token").value_or(0))};
  counters_ = counters_stored_;
  // Only an owner gives tokens, and may have refused some that were never written.
  if (access() == StoreAccess::own) counters_.last_token = std::max(counters_.last_token, token_before);
  note_token();
  last_schedule_ = last_schedule_stored_ = static_cast<ScheduleId>(meta("last_schedule").value_or(0));
  queues_.clear();
  Use rows = use(Query::queues);
  while (rows.next()) {
    const auto id = static_cast<QueueId>(rows.number(0));
    auto config = parse_queue_config(rows.text(2));
    if (!config) {
      throw DatabaseFailed{{Errc::corrupt, "database " + path_ + ": the configuration of queue " +
                                               in_quotes(rows.text(1)) + ": " + config.error().message}};
    }
    queues_.add(std::string(rows.text(1)), *config);
    if (rows.number(3) != 0) queues_.erase(id);
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
  drop_gathered();
  undo_leases(0);
  emptied_.clear();
  changed_counts_.clear();
  data_version_ = -1;
  counters_.last_token = 0;
  has_touched_ = false;
  writing_ = false;
  for (SqliteStatement& statement : statements_) {
    if (statement) statement.reset();
  }
  (void)database_.execute("ROLLBACK");  // SQLite may have done it already
}

Result<void> SqliteJobs::in_place() const {
  if (files_.in_place()) return {};
  return fail(Errc::io,
              "database " + path_ +
                  ": it was removed or replaced while it was open; nothing more is written. Start again to use "
                  "the file that lies there now");
}

// What a transaction keeps in memory until its end, so that it costs a row each and not one each job.
void SqliteJobs::flush() {
  if (has_gathered_) write_gathered();
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
  const auto set = [&](std::string_view name, std::uint64_t now, std::uint64_t before) {
    if (now != before) set_meta(name, static_cast<std::int64_t>(now));
  };
  set("last_id", counters_.last_id, counters_stored_.last_id);
  set("last_chosen_id", counters_.last_chosen_id, counters_stored_.last_chosen_id);
  set("last_token", counters_.last_token, counters_stored_.last_token);
  set("last_schedule", last_schedule_, last_schedule_stored_);
  counters_stored_ = counters_;
  last_schedule_stored_ = last_schedule_;
  if (std::exchange(has_touched_, false)) bound_touched();
}

// --- requests that may be refused ------------------------------------------------------------------------------------

void SqliteJobs::mark() {
  use(Query::savepoint).run();
  mark_ = {undo_.size(), counters_, changed_counts_};
  queues_.mark();
}

void SqliteJobs::keep() { use(Query::savepoint_release).run(); }

void SqliteJobs::take_back() {
  drop_gathered();
  use(Query::savepoint_undo).run();
  undo_leases(mark_.undo);
  counters_ = mark_.counters;
  changed_counts_ = mark_.counts;
  queues_.take_back();
  use(Query::savepoint_release).run();
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

// --- queues and counts -----------------------------------------------------------------------------------------------

QueueId SqliteJobs::find_queue(std::string_view name) { return queues_.find(name); }

QueueId SqliteJobs::add_queue(const std::string& name, const QueueConfig& config) {
  if (access() == StoreAccess::read) {
    throw RequestRefused{{Errc::refused, "database " + path_ + ": opened for reading only"}};
  }
  const std::string json = to_json(config);
  const bool was_there = queues_.find_erased(name) != 0;
  const QueueId id = queues_.add(name, config);
  if (was_there) {
    use(Query::queue_configure).with(id, json).run();
  } else {
    use(Query::queue_add).with(id, name, json).run();
    use(Query::counts_add).with(id).run();
  }
  touch(0);
  return id;
}

void SqliteJobs::configure_queue(QueueId id, const QueueConfig& config) {
  const std::string json = to_json(config);
  use(Query::queue_configure).with(id, json).run();
  queues_.configure(id, config);
  touch(0);
}

bool SqliteJobs::is_empty(QueueId id) {
  const std::vector<QueueCounts> all = counts();
  const auto its = std::ranges::find(all, id, &QueueCounts::queue);
  return its == all.end() || its->counts == StateCounts{};
}

void SqliteJobs::erase_queue(QueueId id) {
  use(Query::queue_erase).with(id).run();
  queues_.erase(id);
  touch(0);
}

SqliteJobs::Counts& SqliteJobs::counts_of(QueueId queue) {
  if (changed_counts_.size() < queue) changed_counts_.resize(queue);
  Counts& counts = changed_counts_[queue - 1];
  counts.touched = true;
  return counts;
}

void SqliteJobs::count(QueueId queue, JobState state, int by) {
  counts_of(queue).of[static_cast<std::size_t>(state)] += by;
}

// --- for other processes and for the owner ---------------------------------------------------------------------------

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

void SqliteJobs::remember(const std::string& name, std::int64_t value) { set_meta("owner." + name, value); }
std::optional<std::int64_t> SqliteJobs::recall(const std::string& name) { return meta("owner." + name); }

}  // namespace argiope

#include "store/jobs/sqlite_driver.hpp"

namespace argiope {

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteDriver::begin(bool to_write) {
  sql_.use(to_write ? Query::begin_write : Query::begin_read).run();
  writing_ = to_write;
  refresh();
  queues_.begin();
  lock_wait_.over();
}

std::int64_t SqliteDriver::data_version() {
  SqliteUse version = sql_.use(Query::data_version);
  version.next();
  return version.number(0);
}

// Others than this connection may write: what is known of the file is good until the file says otherwise.
void SqliteDriver::refresh() {
  const std::int64_t version = data_version();
  if (version == data_version_) return;
  data_version_ = version;
  news_.note_others();
  leases_.note_others(owns());
  counters_.load(owns());
  schedules_.load();
  queues_.load();
}

// Rows that a transaction keeps in memory until its end are written before.
void SqliteDriver::commit() {
  if (writing_) {
    sql_.flush();
    queues_.flush();
    leases_.flush();
    counters_.flush();
    schedules_.flush();
    news_.flush();
  }
  sql_.use(Query::commit).run();
  lock_wait_.over();
  writing_ = false;
  leases_.committed();
}

void SqliteDriver::roll_back() noexcept {
  sql_.drop_gathered();
  leases_.drop();
  queues_.drop();
  counters_.drop();
  news_.drop();
  data_version_ = -1;
  writing_ = false;
  sql_.reset();
  (void)database_.execute("ROLLBACK");  // SQLite may have done it already
}

Result<void> SqliteDriver::in_place() const {
  if (files_.in_place()) return {};
  return fail(Errc::io,
              "database " + path_ +
                  ": it was removed or replaced while it was open; nothing more is written. Start again to use "
                  "the file that lies there now");
}

// --- requests that may be refused ------------------------------------------------------------------------------------

void SqliteDriver::mark() {
  sql_.use(Query::savepoint).run();
  leases_.mark();
  counters_.mark();
  queues_.mark();
}

void SqliteDriver::keep() { sql_.use(Query::savepoint_release).run(); }

void SqliteDriver::take_back() {
  sql_.drop_gathered();
  sql_.use(Query::savepoint_undo).run();
  leases_.take_back();
  counters_.take_back();
  queues_.take_back();
  sql_.use(Query::savepoint_release).run();
}

// --- the owner -------------------------------------------------------------------------------------------------------

std::vector<OldLease> SqliteDriver::old_leases() { return owns() ? leases_.old() : std::vector<OldLease>{}; }

bool SqliteDriver::others_changed_jobs() {
  const std::int64_t version = data_version();
  return news_.is_there() || version != data_version_;
}

ChangedElsewhere SqliteDriver::changed_elsewhere() {
  return owns() && news_.is_there() && writing_ ? news_.take() : ChangedElsewhere{};
}

void SqliteDriver::remember(const std::string& name, std::int64_t value) { sql_.set_meta("owner." + name, value); }
std::optional<std::int64_t> SqliteDriver::recall(const std::string& name) { return sql_.meta("owner." + name); }

}  // namespace argiope

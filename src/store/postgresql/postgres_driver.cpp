#include "store/postgresql/internal/postgres_driver.hpp"

#include <utility>

#include "jobs/internal/job_rules.hpp"
#include "store/postgresql/postgres_jobs.hpp"
#include "store/postgresql/postgres_keys.hpp"
#include "store/postgresql/postgres_leases.hpp"
#include "store/postgresql/postgres_looks.hpp"
#include "store/postgresql/postgres_queues.hpp"
#include "store/postgresql/postgres_schedules.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {
namespace {

// What the owner takes of the jobs that were put by SQL, in one transaction; one more may go beyond the bytes.
constexpr int kMostLeft = 1'000;
constexpr std::int64_t kMostLeftBytes = std::int64_t{8} << 20;

class PostgresDriver final : public DriverInThread, public Transaction, public OwnerRows {
 public:
  PostgresDriver(PostgresPlace place, const StoreOptions& options)
      : work_(std::move(place), options, {[this] { reload(); }, [this] { write(); }}) {}

  Result<void> open() {
    if (auto done = work_.open(); !done) return done;
    if (!work_.owns()) return {};
    try {
      begin(true);
      leases_.take_over();
      *work_.most_token() = work_.head().counters.last_token;
      commit();
    } catch (DatabaseFailed& error) {
      return std::unexpected(std::move(error.error));
    } catch (const TransactionOutdated&) {
      return fail(Errc::network, work_.name() + ": the server went away");
    }
    return {};
  }

  StoreDriver& driver() noexcept override { return driver_; }
  StoreAccess access() const noexcept override { return work_.access(); }
  const std::string& name() const noexcept override { return work_.name(); }
  const std::string& durability() const noexcept override { return work_.durability(); }
  std::shared_ptr<const std::atomic<std::uint64_t>> last_token() const noexcept override { return work_.most_token(); }
  // Also where nothing can be written any more: that is for a transaction that writes to say.
  bool others_changed_jobs() override { return work_.is_lost() || work_.others_wrote(); }

  void begin(bool to_write) override {
    clear();
    work_.begin(to_write);
    queues_.begin();
  }
  void commit() override {
    work_.commit();
    queues_.committed();
    leases_.committed();
    clear();
  }
  void roll_back() noexcept override {
    work_.roll_back();
    clear();
  }
  bool in_transaction() const noexcept override { return work_.is_open(); }
  Result<void> in_place() const override { return {}; }
  void stop_waiting() override { work_.hurry(); }
  void when_overdue(std::function<void(const Error&)> tell) override { work_.when_overdue(std::move(tell)); }
  bool ends_all(const Error&) const noexcept override { return work_.is_lost(); }
  bool passes(const Error& error) const noexcept override {
    return !work_.is_lost() && (error.code == Errc::network || error.code == Errc::disk_full);
  }
  std::optional<Duration> renew_interval() const noexcept override {
    return work_.owns() ? std::optional<Duration>(std::chrono::seconds{3}) : std::nullopt;
  }
  void renew() noexcept override { work_.renew(); }

  JobCounters& counters() override { return work_.head().counters; }
  void mark() override {
    work_.mark();
    queues_.mark();
    leases_.mark();
    jobs_.mark();
    schedules_.mark();
    keys_.mark();
  }
  void keep() override {
    leases_.keep();
    jobs_.keep();
    schedules_.keep();
    keys_.keep();
  }
  void take_back() override {
    work_.take_back();
    queues_.take_back();
    leases_.take_back();
    jobs_.take_back();
    schedules_.take_back();
    keys_.take_back();
  }
  bool is_far() const noexcept override { return true; }
  void bring(const NeededRows& needed) override {
    std::vector<PostgresWork::Statement> reads;
    jobs_.ask_for(needed, reads);
    schedules_.ask_for(needed, reads);
    keys_.ask_for(needed, reads);
    if (reads.empty()) return;
    PostgresWork::Answers answers = work_.read(reads);
    std::size_t at = 0;
    jobs_.take_brought(needed, answers, at);
    schedules_.take_brought(needed, answers, at);
    keys_.take_brought(needed, answers, at);
  }

  std::vector<OldLease> old_leases() override { return work_.owns() ? leases_.old() : std::vector<OldLease>{}; }
  ChangedElsewhere changed_elsewhere() override {
    ChangedElsewhere changed;
    if (!work_.owns() || !work_.writes() || !work_.has_news()) return changed;
    const PostgresRows rows =
        work_.look("SELECT DISTINCT is_schedule, id FROM touched WHERE partition = 0 ORDER BY id");
    for (int i = 0; i < rows.size(); ++i) {
      const auto id = static_cast<std::uint64_t>(rows.number(i, 1));
      rows.number(i, 0) != 0 ? changed.schedules.push_back(id) : changed.jobs.push_back(id);
    }
    // Of this version: who writes behind it makes this transaction outdated.
    if (rows.size() > 0) work_.later("DELETE FROM touched WHERE partition = 0", PostgresValues());
    return changed;
  }
  LeftJobs take_left() override {
    LeftJobs left;
    if (!work_.owns() || !work_.writes() || !work_.has_news()) return left;
    const PostgresRows rows = work_.look(
        "SELECT n, at, queue, payload, name, key, unique_name, function, priority, due_at, max_attempts, found FROM "
        "(SELECT f.*, sum(octet_length(payload)) OVER (ORDER BY n) - octet_length(payload) AS before, count(*) OVER () "
        "AS found FROM (SELECT * FROM inbox WHERE partition = 0 ORDER BY n LIMIT $1) f) w WHERE before < $2 ORDER BY n",
        PostgresValues(kMostLeft, kMostLeftBytes));
    PostgresColumn taken;
    for (int i = 0; i < rows.size(); ++i) {
      const auto text = [&](int column) { return std::string(rows.text(i, column)); };
      taken.add(rows.number(i, 0));
      left.jobs.push_back({.job = {.name = text(4),
                                   .queue = text(2),
                                   .key = text(5),
                                   .unique = text(6),
                                   .priority = static_cast<std::int32_t>(rows.number(i, 8)),
                                   .due_at = job_rules::from_ms(rows.number(i, 9)),
                                   .function = text(7),
                                   .payload = text(3),
                                   .max_attempts = static_cast<std::uint32_t>(rows.number(i, 10))},
                           .at = job_rules::from_ms(rows.number(i, 1))});
    }
    if (!taken.empty())
      work_.later("DELETE FROM inbox WHERE partition = 0 AND n = ANY($1::bigint[])", PostgresValues(taken));
    left.more = rows.size() == kMostLeft || (rows.size() > 0 && rows.number(0, 11) > rows.size());
    if (!left.more) work_.note_news_taken();
    return left;
  }
  void remember(const std::string& name, std::int64_t value) override {
    work_.later(
        "INSERT INTO remembered VALUES (0, $1, $2) ON CONFLICT (partition, name) DO UPDATE SET value = excluded.value",
        PostgresValues(name, value));
  }
  std::optional<std::int64_t> recall(const std::string& name) override {
    const PostgresRows rows =
        work_.look("SELECT value FROM remembered WHERE partition = 0 AND name = $1", PostgresValues(name));
    return rows.size() == 0 ? std::nullopt : std::optional(rows.number(0, 0));
  }

 private:
  void reload() {
    queues_.load();
    leases_.load();
  }
  void write() {
    jobs_.write();
    leases_.write();
    queues_.write();
  }
  void clear() noexcept {
    queues_.drop();
    leases_.drop();
    jobs_.clear();
    schedules_.clear();
    keys_.clear();
  }

  PostgresWork work_;
  PostgresQueues queues_{work_};
  PostgresLeases leases_{work_};
  PostgresJobs jobs_{work_, queues_, leases_};
  PostgresSchedules schedules_{work_};
  PostgresKeys keys_{work_};
  PostgresLooks looks_{work_, queues_};
  StoreDriver driver_{{*this, queues_, jobs_, jobs_, jobs_, schedules_, keys_}, looks_, *this};
};

}  // namespace

Result<std::unique_ptr<DriverInThread>> open_postgres_driver(const std::string& where, const StoreOptions& options) {
  auto place = parse_postgres_place(where);
  if (!place) return std::unexpected(std::move(place.error()));
  auto driver = std::make_unique<PostgresDriver>(std::move(*place), options);
  if (auto done = driver->open(); !done) return std::unexpected(std::move(done.error()));
  return driver;
}

bool has_postgres_owner(const std::string& where) {
  const auto place = parse_postgres_place(where);
  if (!place) return false;
  ServerWait wait("", place->store_timeout);
  PostgresSession session(place->connection, PostgresLink::Server::any, wait);
  if (!session.connect()) return false;
  try {
    session.send("SELECT count(*) FROM " + quoted_identifier(place->schema) +
                 ".partitions WHERE node IS NOT NULL AND until > clock_timestamp()");
    return session.sync().at(0).number(0, 0) > 0;
  } catch (const PostgresLost&) {
  } catch (const PostgresRefused&) {
  }
  return false;
}

}  // namespace argiope

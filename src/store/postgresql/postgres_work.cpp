#include "store/postgresql/postgres_work.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "store/postgresql/postgres_schema.hpp"
#include "store/sqlite/internal/group_commit.hpp"

namespace argiope {

using namespace std::chrono_literals;

namespace {

constexpr Duration kPause = 100ms;
constexpr Duration kLongestWaitForOwner = 15s;
constexpr int kOldestServer = 130000;
constexpr const char* kHead =
    "SELECT version, epoch, last_id, last_chosen_id, last_token, last_schedule, last_request, "
    "(node IS NOT NULL AND until > clock_timestamp() - interval '1 day')::int::bigint, pg_backend_pid()::bigint FROM "
    "partitions WHERE partition = 0";
constexpr const char* kRenewLease =
    "UPDATE partitions SET until = clock_timestamp() + interval '10 s', pid = pg_backend_pid() WHERE partition = 0 AND "
    "epoch = $1 RETURNING version";
constexpr std::int64_t kForgottenAtOnce = 10'000;
constexpr const char* kDurability =
    "SELECT convert_to('fsync ' || f || ', synchronous_commit ' || c || ': ' || CASE WHEN f = 'off' THEN 'what is lost "
    "with the machine is unknown' WHEN c = 'off' THEN 'the end of the server loses the last moments' WHEN c = 'local' "
    "OR s = '' THEN 'each commit is on the server''s disk; a failover to a standby may lose what that has not "
    "received' "
    "ELSE 'each commit is with the server and with a synchronous standby' END, 'UTF8') FROM (SELECT "
    "current_setting('fsync') f, current_setting('synchronous_commit') c, current_setting('synchronous_standby_names') "
    "s) settings";
constexpr const char* kOutdated = "AR001";
constexpr const char* kOtherConnection = "AR002";
constexpr const char* kPooler =
    "a pooler in transaction mode is in front of the server, which gives each transaction another connection; connect "
    "to the server itself, or by a pooler in session mode";
constexpr const char* kReadOnly = "25006";

std::string this_node() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{}:{}", host.data(), ::getpid());
}

// What passes by itself: the server starts, ends or is in recovery, has no room or no connection left, was too slow.
bool may_pass(const std::string& code) {
  return code.starts_with("08") || code.starts_with("53") || code.starts_with("57") || code == kReadOnly ||
         code == "55P03";
}

// What another transaction has come before: it is done again.
bool is_outdated(const std::string& code) { return code == kOutdated || code == "40001" || code == "40P01"; }

Errc code_of(const PostgresRefused& refused) {
  return may_pass(refused.code) || is_outdated(refused.code) ? Errc::network : Errc::refused;
}

}  // namespace

PostgresWork::PostgresWork(PostgresPlace place, const StoreOptions& options, Hooks hooks)
    : place_(std::move(place)),
      options_(options),
      hooks_(std::move(hooks)),
      name_("store " + place_.shown),
      wait_(name_, place_.store_timeout),
      session_(place_.connection,
               options.access == StoreAccess::read ? PostgresLink::Server::any : PostgresLink::Server::writable,
               wait_) {}

PostgresWork::~PostgresWork() {
  const bool has_written = epoch_ != 0 || last_written_ != 0;
  if (!has_written || is_lost_ || !session_.is_connected()) return;
  try {
    if (epoch_ != 0) {
      session_.send("UPDATE partitions SET node = NULL, until = NULL WHERE partition = 0 AND epoch = $1",
                    PostgresValues(epoch_));
    }
    session_.send("DELETE FROM writers WHERE partition = 0 AND writer = $1", PostgresValues(writer_));
    (void)session_.sync();
  } catch (const PostgresLost&) {
  } catch (const PostgresRefused&) {
  }
}

void PostgresWork::failed(Errc code, std::string_view why) const {
  throw DatabaseFailed{{code, fmt::format("{}: {}", name_, why)}};
}

// --- opening ---------------------------------------------------------------------------------------------------------

Result<void> PostgresWork::open() {
  try {
    if (auto done = connect_first(); !done) return done;
    if (auto done = bring_up_to_date(); !done) return done;
    session_.send(
        "SELECT ('x' || left(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint, "
        "(SELECT convert_to('argiope_' || oid::text, 'UTF8') FROM pg_namespace WHERE nspname = current_schema())");
    session_.send(kDurability);
    const Answers answers = session_.sync();
    writer_ = answers.at(0).number(0, 0);
    channel_ = answers.at(0).text(0, 1);
    durability_ = answers.at(1).text(0, 0);
    if (!owns()) return {};
    if (auto done = take_over(); !done) return done;
    session_.run("LISTEN " + channel_);
    spdlog::info("{}: {}", name_, durability_);
    return {};
  } catch (const PostgresLost& lost) {
    return fail(Errc::network, fmt::format("{}: {}", name_, lost.why));
  } catch (const PostgresRefused& refused) {
    return fail(code_of(refused), fmt::format("{}: {}", name_, refused.why));
  }
}

Result<void> PostgresWork::connect_first() {
  if (auto done = session_.connect(); !done) {
    return fail(Errc::network, fmt::format("{}: {}; the password comes from PGPASSWORD, ~/.pgpass or the URL", name_,
                                           done.error().message));
  }
  set_up();
  session_.send("SELECT current_setting('server_version_num')::bigint");
  const auto version = session_.sync().at(0).number(0, 0);
  if (version >= kOldestServer) return {};
  return fail(Errc::unsupported, fmt::format("{}: PostgreSQL {}; 13 or later is needed", name_, version / 10000));
}

// A process that is gone, or stopped, in the middle of a transaction does not keep others waiting for long. Statements
// that look for few rows among many are planned as such, whether or not the tables have been analysed.
void PostgresWork::set_up() {
  const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(place_.store_timeout).count();
  session_.run(fmt::format(
      "SET search_path TO {}; SET statement_timeout = {}; SET lock_timeout = {}; "
      "SET default_transaction_isolation = 'read committed'; "
      "SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; "
      "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000; SET enable_seqscan = off; SET enable_bitmapscan = "
      "off; "
      "SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = "
      "force_generic_plan{}",
      quoted_identifier(place_.schema), timeout_ms, timeout_ms,
      options_.sync == SyncMode::full ? "" : "; SET synchronous_commit = off"));
  session_.send("SELECT pg_backend_pid()::bigint");
  server_process_ = session_.sync().at(0).number(0, 0);
}

Result<void> PostgresWork::bring_up_to_date() {
  for (bool tried = false;; tried = true) {
    std::int64_t version = 0;
    bool has_schema = true;
    try {
      session_.send("SELECT value FROM meta WHERE name = 'version'");
      version = session_.sync().at(0).number(0, 0);
    } catch (const PostgresRefused& refused) {
      if (refused.code != "42P01") throw;  // undefined_table
      session_.send(
          "SELECT count(*), count(*) FILTER (WHERE has_schema_privilege(oid, 'USAGE')) FROM pg_namespace WHERE nspname "
          "= convert_from($1, 'UTF8')",
          PostgresValues(place_.schema));
      const Answers answers = session_.sync();
      has_schema = answers.at(0).number(0, 0) != 0;
      if (has_schema && answers.at(0).number(0, 1) == 0) {
        return fail(Errc::refused, fmt::format("{}: its user has no right to schema {}: grant usage on schema {} to it",
                                               name_, place_.schema, quoted_identifier(place_.schema)));
      }
    }
    if (version == newest_postgres_version()) return {};
    if (version > newest_postgres_version())
      return fail(Errc::newer_version, fmt::format("{}: made by a newer argiope", name_));
    if (access() == StoreAccess::read) {
      return version == 0
                 ? fail(Errc::not_found, fmt::format("{}: there is no store in schema {}", name_, place_.schema))
                 : fail(Errc::older_version, fmt::format("{}: made by an older argiope", name_));
    }
    try {
      session_.run(postgres_migration(place_.schema, has_schema, version));
    } catch (const PostgresRefused& refused) {
      if (session_.is_in_failed_transaction()) session_.run("ROLLBACK");
      // Another has made it meanwhile.
      if (tried) return fail(code_of(refused), fmt::format("{}: its tables cannot be made: {}", name_, refused.why));
    }
  }
}

// One whose connection is gone and whose lease nobody renews is waited for until the lease is over. The owner's
// transactions need the row, so nobody who waits locks it.
Result<void> PostgresWork::take_over() {
  std::string first_until;
  Alarm long_enough, rest;
  long_enough.set(kLongestWaitForOwner);
  for (bool locks = false;;) {
    if (locks) session_.run("BEGIN");
    session_.send(
        std::string(
            "SELECT (node IS NOT NULL AND until > clock_timestamp())::int::bigint, convert_to(coalesce(node, ''), "
            "'UTF8'), "
            "convert_to(to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC', 'UTF8'), "
            "convert_to(coalesce(until::text, ''), 'UTF8'), "
            "EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = p.pid)::int::bigint FROM partitions p WHERE "
            "partition = "
            "0") +
        (locks ? " FOR UPDATE" : ""));
    const Answers answers = session_.sync();
    const PostgresRows& found = answers.at(0);
    const bool is_held = found.number(0, 0) != 0;
    if (!is_held && locks) break;
    locks = !is_held;
    if (locks) continue;
    const std::string until(found.text(0, 3));
    if (first_until.empty()) first_until = until;
    if (session_.is_in_transaction()) session_.run("ROLLBACK");
    if (found.number(0, 4) != 0 || until != first_until || long_enough.has_gone_off()) {
      return fail(Errc::busy, fmt::format("{}: {} owns it, since {}; stop that one first", name_, found.text(0, 1),
                                          found.text(0, 2)));
    }
    rest.set(kPause);
    (void)wait_.await(-1, 0, &rest);
  }
  epoch_ = writer_;
  session_.send(
      "UPDATE partitions SET node = convert_from($1, 'UTF8'), pid = pg_backend_pid(), epoch = $2, since = "
      "clock_timestamp(), "
      "until = clock_timestamp() + interval '10 s', version = version + 1 WHERE partition = 0",
      PostgresValues(this_node(), epoch_));
  session_.send("SELECT coalesce(max(n), 0) FROM touched WHERE partition = 0");
  session_.send("COMMIT");
  forget_until(session_.sync().at(1).number(0, 0));
  return {};
}

// What others have noted for the owner before: it reads all anew. There may be much of it, so it goes bit by bit, and
// the lease is kept meanwhile.
void PostgresWork::forget_until(std::int64_t touched) {
  for (bool more = true; more;) {
    session_.send(kRenewLease, PostgresValues(epoch_));
    session_.send(
        "WITH gone AS (DELETE FROM touched WHERE partition = 0 AND n IN (SELECT n FROM touched WHERE partition = 0 AND "
        "n <= $1 ORDER BY n LIMIT $2) RETURNING 1) SELECT count(*) FROM gone",
        PostgresValues(touched, kForgottenAtOnce));
    session_.send(
        "WITH gone AS (DELETE FROM writers WHERE partition = 0 AND writer IN (SELECT writer FROM writers WHERE "
        "partition = 0 AND at < clock_timestamp() - interval '30 days' LIMIT $1) RETURNING 1) SELECT count(*) FROM "
        "gone",
        PostgresValues(kForgottenAtOnce));
    const Answers answers = session_.sync();
    more = answers.at(1).number(0, 0) == kForgottenAtOnce || answers.at(2).number(0, 0) == kForgottenAtOnce;
  }
}

// --- trouble ---------------------------------------------------------------------------------------------------------

void PostgresWork::hurry() noexcept { wait_.hurry(std::min(options_.busy_limit, place_.store_timeout)); }

void PostgresWork::wait_for_server(std::string_view why, Errc code) {
  if (wait_.pause(why, kPause)) return;
  // An owner cannot go on from what may or may not have been written: it waits until it knows.
  if (!owns() || !doubtful_ || wait_.has_given_up()) failed(code, wait_.cause());
  if (overdue_) overdue_({code, fmt::format("{}: {}", name_, wait_.cause())});
}

void PostgresWork::lose(std::string why) {
  is_lost_ = true;
  is_open_ = false;
  why_lost_ = std::move(why);
  failed(Errc::refused, why_lost_);
}

void PostgresWork::refused(const PostgresRefused& refused) {
  is_open_ = started_ = false;
  if (refused.code == "26000" || refused.code == "42P05" || refused.code == kOtherConnection)
    failed(Errc::unsupported, kPooler);
  const bool outdated = is_outdated(refused.code);
  if (!outdated && !may_pass(refused.code)) failed(Errc::io, fmt::format("{} ({})", refused.why, refused.code));
  // Another of the hosts may be the one that writes.
  if (refused.code == kReadOnly) session_.disconnect();
  if (!outdated) wait_for_server(refused.why, refused.code == "53100" ? Errc::disk_full : Errc::network);
  throw TransactionOutdated{};
}

void PostgresWork::connect() {
  while (!session_.is_connected()) {
    try {
      if (auto done = attach(); !done) wait_for_server(done.error().message);
    } catch (const PostgresLost& lost) {
      wait_for_server(lost.why);
    } catch (const PostgresRefused& refused) {
      session_.disconnect();
      wait_for_server(refused.why);
    }
  }
}

// Once. What is kept in memory is read anew.
Result<void> PostgresWork::attach() {
  version_ = -1;
  news_ = true;
  if (auto done = session_.connect(); !done) return done;
  set_up();
  if (owns()) session_.run("LISTEN " + channel_);
  if (access() != StoreAccess::read) check_history();
  return {};
}

// A standby that was promoted, or a server that was restored, may not have all that was acknowledged before.
void PostgresWork::check_history() {
  if (owns()) {
    session_.send("UPDATE partitions SET pid = pg_backend_pid() WHERE partition = 0 AND epoch = $1",
                  PostgresValues(epoch_));
  }
  session_.send("SELECT coalesce((SELECT version FROM writers WHERE partition = 0 AND writer = $1), 0)",
                PostgresValues(writer_));
  const auto found = session_.sync().back().number(0, 0);
  if (found >= last_written_) return;
  constexpr const char* kWhy = "the server has lost transactions that it had acknowledged, as after a failover";
  if (owns()) lose(fmt::format("{}; start again, to go on with what is there", kWhy));
  spdlog::warn("{}: {}", name_, kWhy);
  last_written_ = found;
}

// --- transactions ----------------------------------------------------------------------------------------------------

void PostgresWork::begin(bool to_write) {
  writing_ = to_write;
  started_ = is_head_due_ = has_begun_writes_ = false;
  later_.clear();
  touched_.clear();
  if (is_lost_) failed(Errc::refused, why_lost_);
  if (owns()) (void)others_wrote();
  connect();
  if (to_write && doubtful_) {
    if (was_committed()) {
      constexpr const char* kWhy = "what was told to have failed has been written after all";
      if (owns()) lose(fmt::format("{}; start again", kWhy));
      spdlog::warn("{}: {}", name_, kWhy);
    }
    doubtful_.reset();
  }
  is_open_ = true;
  is_optimistic_ = to_write && owns() && version_ >= 0;
  if (is_optimistic_) return;
  start(to_write);
  (void)sync();
  stored_head_ = head_;
  if (head_.version == version_) return;
  hooks_.reload();
  news_ = true;
  version_ = head_.version;
}

void PostgresWork::start(bool locks) {
  started_ = is_head_due_ = true;
  const std::string begin = locks      ? "BEGIN ISOLATION LEVEL READ COMMITTED"
                            : writing_ ? "BEGIN ISOLATION LEVEL REPEATABLE READ"
                                       : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  send(begin, PostgresValues());
  send(locks ? std::string(kHead) + " FOR UPDATE" : kHead, PostgresValues());
}

void PostgresWork::check_head(const PostgresRows& row) {
  if (row.size() != 1) failed(Errc::corrupt, "its row of partitions is gone");
  if (row.number(0, 8) != server_process_) failed(Errc::unsupported, kPooler);
  if (owns() && row.number(0, 1) != epoch_) {
    lose("another process has taken it over, while this one was away longer than its lease; nothing more is written");
  }
  note_version(row.number(0, 0));
  if (!is_optimistic_) return read_head(row);
  if (row.number(0, 0) != version_) throw TransactionOutdated{};
}

void PostgresWork::note_version(std::int64_t version) {
  if (owns() && version < most_version_) {
    lose("the server has lost transactions of others, as after a failover; start again, to go on with what is there");
  }
  most_version_ = version;
}

void PostgresWork::read_head(const PostgresRows& row) {
  const auto number = [&](int column) { return static_cast<std::uint64_t>(row.number(0, column)); };
  head_ = {.version = row.number(0, 0),
           .counters = {.last_id = number(2), .last_chosen_id = number(3), .last_token = number(4)},
           .last_schedule = number(5),
           .last_request = number(6),
           .is_owned = number(7) != 0};
  give_token(head_.counters.last_token);
}

void PostgresWork::give_token(std::uint64_t token) noexcept {
  head_.counters.last_token = token;
  if (token > *most_token_) *most_token_ = token;
}

PostgresWork::Answers PostgresWork::sync() {
  try {
    Answers answers = session_.sync();
    if (std::exchange(is_head_due_, false)) {
      check_head(answers.at(1));
      answers.erase(answers.begin(), answers.begin() + 2);
    }
    return answers;
  } catch (const PostgresLost& lost) {
    is_open_ = started_ = false;
    wait_for_server(lost.why);
    throw TransactionOutdated{};
  } catch (const PostgresRefused& refused) {
    this->refused(refused);
  }
}

void PostgresWork::send(const std::string& statement, const PostgresValues& values) {
  try {
    if (!started_) start(false);
    session_.send(statement, values);
  } catch (const PostgresLost& lost) {
    is_open_ = started_ = false;
    wait_for_server(lost.why);
    throw TransactionOutdated{};
  }
}

PostgresWork::Answers PostgresWork::read(const std::vector<Statement>& statements) {
  for (const Statement& one : statements) send(one.text, one.values);
  Answers answers = sync();
  // Those of what was sent before.
  answers.erase(answers.begin(), answers.end() - static_cast<std::ptrdiff_t>(statements.size()));
  return answers;
}

PostgresRows PostgresWork::look(const std::string& statement, const PostgresValues& values) {
  flush();
  Answers answers = read({{statement, values}});
  return std::move(answers.at(0));
}

void PostgresWork::later(std::string statement, PostgresValues values) {
  later_.push_back({std::move(statement), std::move(values)});
}

void PostgresWork::touch(bool is_schedule, std::uint64_t id) {
  if (access() == StoreAccess::share) touched_.emplace_back(is_schedule, id);
}

void PostgresWork::flush() {
  if (!writing_) return;
  for (const Statement& one : std::exchange(later_, {})) write(one.text, one.values);
  hooks_.write();
  if (touched_.empty()) return;
  std::ranges::sort(touched_);
  touched_.erase(std::ranges::unique(touched_).begin(), touched_.end());
  if (!head_.is_owned) return touched_.clear();
  PostgresColumn kinds, ids;
  for (const auto& [is_schedule, id] : std::exchange(touched_, {})) {
    kinds.add(is_schedule);
    ids.add(id);
  }
  write(
      "INSERT INTO touched (partition, is_schedule, id) SELECT 0, k, i FROM unnest($1::bigint[], $2::bigint[]) AS t(k, "
      "i)",
      PostgresValues(kinds, ids));
  write("SELECT pg_notify(convert_from($1, 'UTF8'), '')", PostgresValues(channel_));
}

void PostgresWork::write(const std::string& statement, const PostgresValues& values) {
  if (!has_begun_writes_) begin_writes();
  send(statement, values);
}

// The first write of a transaction, and the last where it has given more numbers since.
void PostgresWork::begin_writes() {
  if (!has_begun_writes_) next_version_ = version_ + 1;
  const auto& counters = head_.counters;
  PostgresColumn ids;
  for (const std::uint64_t id :
       {counters.last_id, counters.last_chosen_id, counters.last_token, head_.last_schedule, head_.last_request})
    ids.add(id);
  send("SELECT argiope_begin($1, $2, $3, $4, $5, $6)",
       PostgresValues(has_begun_writes_ ? next_version_ : version_, next_version_, epoch_, writer_, ids,
                      server_process_));
  has_begun_writes_ = true;
  written_head_ = head_;
}

void PostgresWork::commit() {
  flush();
  if (writing_ && head_ != (has_begun_writes_ ? written_head_ : stored_head_)) begin_writes();
  if (started_) {
    bool is_lost = false;
    try {
      session_.send("COMMIT");
      Answers answers = session_.sync();
      if (std::exchange(is_head_due_, false)) check_head(answers.at(1));
    } catch (const PostgresLost& lost) {
      is_open_ = started_ = false;
      if (has_begun_writes_) doubtful_ = next_version_;
      wait_for_server(lost.why + (has_begun_writes_ ? ", while a transaction was being committed" : ""));
      is_lost = true;
    } catch (const PostgresRefused& refused) {
      this->refused(refused);
    }
    if (is_lost) {
      connect();
      const bool committed = doubtful_ && was_committed();
      doubtful_.reset();
      if (!committed) throw TransactionOutdated{};
    }
  }
  if (has_begun_writes_) {
    // Others may have written behind it where the connection was made anew.
    head_.version = version_ = next_version_;
    most_version_ = std::max(most_version_, version_);
    last_written_ = version_;
  }
  stored_head_ = head_;
  is_open_ = started_ = false;
  wait_.answered();
}

// Whether the transaction whose answer never came was committed. If not, it never will be: the version is counted up.
bool PostgresWork::was_committed() {
  for (;;) {
    try {
      session_.send("BEGIN ISOLATION LEVEL READ COMMITTED");
      session_.send(std::string(kHead) + " FOR UPDATE");
      session_.send("SELECT version FROM writers WHERE partition = 0 AND writer = $1", PostgresValues(writer_));
      const Answers answers = session_.sync();
      note_version(answers.at(1).number(0, 0));
      const PostgresRows& found = answers.at(2);
      const bool committed = found.size() == 1 && found.number(0, 0) == *doubtful_;
      if (!committed) session_.send("UPDATE partitions SET version = version + 1 WHERE partition = 0");
      session_.send("COMMIT");
      (void)session_.sync();
      return committed;
    } catch (const PostgresLost& lost) {
      wait_for_server(lost.why);
      connect();
    } catch (const PostgresRefused& refused) {
      wait_for_server(refused.why);
    }
  }
}

void PostgresWork::roll_back() noexcept {
  try {
    if (session_.is_connected() && (started_ || session_.is_in_transaction())) {
      session_.send("ROLLBACK");
      (void)session_.sync();
    }
  } catch (const PostgresLost&) {
  } catch (const PostgresRefused&) {
    session_.disconnect();
  }
  version_ = -1;
  head_ = stored_head_;  // its calls may be run again, under the same tokens
  is_open_ = started_ = false;
  later_.clear();
  touched_.clear();
}

void PostgresWork::mark() {
  marked_head_ = head_;
  marked_later_ = later_.size();
}

// A token is never given twice.
void PostgresWork::take_back() {
  head_ = marked_head_;
  later_.resize(std::min(later_.size(), marked_later_));
}

// --- the owner -------------------------------------------------------------------------------------------------------

bool PostgresWork::others_wrote() {
  if (session_.was_notified()) news_ = true;
  return news_;
}

void PostgresWork::renew() noexcept {
  if (!owns() || is_lost_) return;
  try {
    if (!session_.is_connected() && !attach()) return;
    session_.send(kRenewLease, PostgresValues(epoch_));
    const Answers answers = session_.sync();
    if (answers.at(0).size() == 1 && answers.at(0).number(0, 0) == version_) return;
    news_ = true;
    version_ = -1;
  } catch (const PostgresLost& lost) {
    spdlog::warn("{}: {}", name_, lost.why);
  } catch (const PostgresRefused& refused) {
    spdlog::warn("{}: {}", name_, refused.why);
  } catch (const DatabaseFailed& failed) {
    spdlog::error("{}", failed.error.message);
  }
}

}  // namespace argiope

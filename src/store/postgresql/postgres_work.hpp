// PostgresWork: the transactions of a store in PostgreSQL, and whose store it is. What they write is gathered and sent
// with the commit, in one round trip; what they read is read before.
//
// One row, of `partitions`, keeps what was made from outdated rows from being written: each transaction that writes
// counts its version up, and does nothing where that is not the version it was made from. An owner, who is nearly
// always alone, begins without a lock and does outdated transactions again; all others lock the row first, and so does
// what is done again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/store/store.hpp"
#include "jobs/internal/job_row.hpp"
#include "store/jobs/internal/server_wait.hpp"
#include "store/postgresql/internal/postgres_place.hpp"
#include "store/postgresql/postgres_session.hpp"

namespace argiope {

// Rows as a transaction leaves them, over those that are stored: nothing of it outlives the transaction.
template <class Key, class Row>
class PostgresOverlay {
 public:
  const Row* find(const Key& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }
  // To be changed; it is made where it is not there.
  Row& operator[](const Key& key) {
    if (is_marked_) {
      const Row* const row = find(key);
      at_mark_.try_emplace(key, row == nullptr ? std::optional<Row>() : std::optional<Row>(std::in_place, *row));
    }
    return rows_[key];
  }
  const std::map<Key, Row>& all() const noexcept { return rows_; }
  // All of them are written: each is told, and may be changed.
  template <class Act>
  void each(Act act) {
    for (auto& [key, row] : rows_) act(key, row);
  }
  void mark() {
    at_mark_.clear();
    is_marked_ = true;
  }
  void keep() noexcept { is_marked_ = false; }
  void take_back() {
    is_marked_ = false;
    for (auto& [key, row] : at_mark_) row ? (void)rows_.insert_or_assign(key, std::move(*row)) : (void)rows_.erase(key);
  }
  void clear() noexcept {
    rows_.clear();
    is_marked_ = false;
  }

 private:
  std::map<Key, Row> rows_;
  std::map<Key, std::optional<Row>> at_mark_;
  bool is_marked_ = false;
};

// What there is once.
struct PostgresHead {
  std::int64_t version = -1;
  JobCounters counters;
  std::uint64_t last_schedule = 0;
  std::uint64_t last_request = 0;
  bool is_owned = false;
  friend bool operator==(const PostgresHead&, const PostgresHead&) = default;
};

// Threads: one at a time, but for give_up().
class PostgresWork {
 public:
  struct Statement {
    std::string text;
    PostgresValues values;
  };
  using Answers = std::vector<PostgresRows>;
  // `reload`: reads anew what is kept in memory, in the present transaction. `write`: hands over what is to be written.
  struct Hooks {
    std::function<void()> reload, write;
  };

  PostgresWork(PostgresPlace place, const StoreOptions& options, Hooks hooks);
  ~PostgresWork();

  // Connects, brings the tables up to date, takes the store over.
  Result<void> open();

  void begin(bool to_write);
  void commit();
  void roll_back() noexcept;
  bool is_open() const noexcept { return is_open_; }
  void mark();
  void take_back();
  void when_overdue(std::function<void(const Error&)> tell) { overdue_ = std::move(tell); }
  // From any thread. What is waited for ends soon.
  void hurry() noexcept;
  bool is_lost() const noexcept { return is_lost_; }
  // The owner's lease.
  void renew() noexcept;

  const std::string& name() const noexcept { return name_; }
  const std::string& durability() const noexcept { return durability_; }
  StoreAccess access() const noexcept { return options_.access; }
  bool owns() const noexcept { return access() == StoreAccess::own; }
  bool writes() const noexcept { return writing_; }
  PostgresHead& head() noexcept { return head_; }
  const std::shared_ptr<std::atomic<std::uint64_t>>& most_token() const noexcept { return most_token_; }
  void give_token(std::uint64_t token) noexcept;
  // What has been notified is heard, but not once the transaction may have begun: what it sees may be older.
  bool others_wrote();
  bool has_news() const noexcept { return news_; }
  void note_news_taken() noexcept { news_ = false; }
  // The owner is to hear of it.
  void touch(bool is_schedule, std::uint64_t id);

  // In a transaction that writes: with what is gathered, in the order of these calls.
  void later(std::string statement, PostgresValues values);
  // At once, for Hooks::write.
  void write(const std::string& statement, const PostgresValues& values);
  // The rows as they are stored, whatever is gathered.
  Answers read(const std::vector<Statement>& statements);
  // As the transaction leaves them. Not between mark() and keep().
  PostgresRows look(const std::string& statement, const PostgresValues& values = PostgresValues());
  // Sends what is gathered.
  void flush();
  [[noreturn]] void failed(Errc code, std::string_view why) const;

 private:
  Result<void> connect_first();
  Result<void> bring_up_to_date();
  Result<void> take_over();
  void forget_until(std::int64_t touched);
  void set_up();
  void connect();
  Result<void> attach();
  void check_history();
  void start(bool locks);
  void read_head(const PostgresRows& row);
  void check_head(const PostgresRows& row);
  void note_version(std::int64_t version);
  void send(const std::string& statement, const PostgresValues& values);
  void begin_writes();
  Answers sync();
  bool was_committed();
  void wait_for_server(std::string_view why, Errc code = Errc::network);
  [[noreturn]] void refused(const PostgresRefused& refused);
  [[noreturn]] void lose(std::string why);

  const PostgresPlace place_;
  const StoreOptions options_;
  const Hooks hooks_;
  std::function<void(const Error&)> overdue_;
  const std::string name_;
  ServerWait wait_;
  PostgresSession session_;
  std::string channel_, durability_;
  std::int64_t server_process_ = 0;  // of the connection; a pooler may give each transaction another one
  std::int64_t writer_ = 0;          // drawn at random: no other has it, whatever a failover has lost
  std::int64_t epoch_ = 0;           // of an owner: the same

  PostgresHead head_, marked_head_;
  PostgresHead stored_head_, written_head_;
  std::int64_t version_ = -1;  // what is kept in memory is of this one
  std::int64_t next_version_ = 0;
  std::int64_t most_version_ = 0;         // that was seen
  std::int64_t last_written_ = 0;         // the last version that was acknowledged to this writer
  std::optional<std::int64_t> doubtful_;  // whether that was committed is not known
  bool is_open_ = false, writing_ = false;
  bool started_ = false;      // the server knows of the transaction
  bool is_head_due_ = false;  // it is the first answer
  bool has_begun_writes_ = false;
  bool is_optimistic_ = false;  // others may write meanwhile
  bool is_lost_ = false;
  std::string why_lost_;
  bool news_ = true;
  std::vector<Statement> later_;
  std::size_t marked_later_ = 0;
  std::vector<std::pair<bool, std::uint64_t>> touched_;
  const std::shared_ptr<std::atomic<std::uint64_t>> most_token_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace argiope

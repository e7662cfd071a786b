// RedisRows: the hashes and sorted sets of a store as the present transaction has them. What has been read or written
// is known until its end; what is written goes to the server with the commit, in one script that does all of it or
// nothing.
//
// A transaction rests on nobody else having written meanwhile: each read, and the script, compares the id of the last
// batch with the one that the transaction began with, and the script the owner's epoch with its own. Who shares a store
// with its owner, an owner whose transaction was outdated, and who was overtaken at reading time and again, hold a lock
// for the time of one transaction, for which others wait: so each gets its turn.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/store/store.hpp"
#include "store/redis/redis_connection.hpp"

namespace argiope {

// The hashes, by what they hold; docs/stores.md has their keys and fields.
enum class RedisTable : std::uint8_t {
  meta,
  queues,
  counts,
  jobs,
  leases,
  payloads,
  results,
  errors,
  attempts,
  names,
  uniques,
  failures,
  schedules,
  places,
  schedule_names,
  runs,
  outputs,
  requests,
  touched,
  count_  // how many there are
};
inline constexpr std::size_t kRedisTables = static_cast<std::size_t>(RedisTable::count_);

// A part of the members of a sorted set, in order of bytes. Both ends are left out; empty: none.
struct RedisRange {
  std::string after, before;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  bool backwards = false;
};

class RedisRows {
 public:
  static constexpr Duration kLease = std::chrono::seconds{10};
  // `access`: own has an epoch. `lease`: of an owner, whole milliseconds.
  RedisRows(RedisConnection& connection, StoreAccess access, Duration lease = kLease);

  // --- whose store it is
  // Makes the store where there is none. Errors: as a Result's: busy with the holder's name; newer_version; not_found.
  Result<void> open(const std::string& holder);
  // By the server's clock.
  bool has_owner();
  void renew();
  void release() noexcept;
  // Whether another has become the owner, or what the server had acknowledged is gone: nothing more can be written.
  bool is_over() const noexcept { return is_over_; }

  // --- transactions
  // Whether others have written since what the caller knows was read: all that it keeps is to be read again.
  // Errors: DatabaseFailed. All that reads throws TransactionOutdated besides, where others have written since.
  bool begin(bool to_write);
  // An owner waits until it knows what has become of it, but for hurry() of the connection. `given`: fields of meta,
  // the numbers that have been given; where the server has lost batches of an owner, they are raised to these.
  // Errors: TransactionOutdated: it is to be done again; DatabaseFailed.
  using Numbers = std::span<const std::pair<std::string_view, std::uint64_t>>;
  void commit(Numbers given);
  void roll_back() noexcept;
  // `tell` hears, in the midst of commit(), that an owner waits for longer than a call may.
  void when_overdue(std::function<void(const Error&)> tell) { overdue_ = std::move(tell); }
  void mark();
  void keep();
  void take_back();

  // The owner is to hear of a change to one of the jobs (0: a queue) or schedules, where another process makes it.
  void tell(RedisTable of, std::uint64_t id) {
    const char* const kind = of == RedisTable::jobs ? "j" : "s";
    if (access_ == StoreAccess::share) set(RedisTable::touched, kind + std::to_string(id), "");
  }
  const std::string& epoch() const noexcept { return epoch_; }

  // --- rows
  // Brings, in one round trip, what is wanted and not known.
  void want(RedisTable table, std::string_view field);
  void fetch();
  // Null: there is none. A pointer holds until the field is written, or the transaction ends.
  const std::string* get(RedisTable table, std::string_view field);
  void set(RedisTable table, std::string_view field, std::string value);
  void erase(RedisTable table, std::string_view field);
  std::vector<std::pair<std::string, std::string>> all(RedisTable table);
  // Some fields of a table that nothing has been written to, about `most`: `more`, where there are others.
  struct Fields {
    std::vector<std::string> names;
    bool more = false;
  };
  Fields some(RedisTable table, std::size_t most);
  bool exists(RedisTable table);  // outside of transactions
  void increment(RedisTable table, std::string_view field, std::int64_t by);
  std::int64_t number(RedisTable table, std::string_view field);  // 0: there is none

  // --- orders
  void add(const std::string& order, std::string member);
  void remove(const std::string& order, std::string member);
  std::vector<std::string> range(const std::string& order, const RedisRange& range);
  std::uint64_t count(const std::string& order, const RedisRange& range);

 private:
  struct Cell {
    std::optional<std::string> value;
    bool is_written = false;
  };
  using Cells = std::unordered_map<std::string, Cell>;
  using Members = std::map<std::string, bool>;  // there, or not any more
  struct CellBefore {
    RedisTable table;
    std::string field;
    std::optional<Cell> cell;
  };
  struct MemberBefore {
    std::string order, member;
    std::optional<bool> is_there;
  };
  struct NumberBefore {
    RedisTable table;
    std::string field;
    std::int64_t by;
  };
  bool owns() const noexcept { return access_ == StoreAccess::own; }
  Cells& cells(RedisTable table) noexcept { return cells_[static_cast<std::size_t>(table)]; }
  std::string key(std::string_view name) const { return keys_ + std::string(name); }
  std::string key(RedisTable table) const;
  std::string batch_key() const { return key("batch:" + client_); }
  Cell& writing(RedisTable table, std::string_view field);
  void place(const std::string& order, std::string member, bool is_there);
  std::string new_client(std::string_view holder, RedisValue time) const;
  RedisReplies look(RedisCommands& commands);
  [[noreturn]] void outdated();
  std::optional<std::string> lock();
  std::optional<std::string> version_there();
  void unlock() noexcept;
  bool has_written() const noexcept;
  bool needs_memory() const noexcept;
  RedisCommands batch(std::string_view id);
  std::string sent_batch(const std::string& id, const RedisCommands& commands);
  void raise(Numbers numbers) noexcept;
  [[noreturn]] void end(std::string_view why);
  void forget() noexcept;

  RedisConnection& connection_;
  const StoreAccess access_;
  const Duration lease_;
  const std::string lease_ms_;
  const std::string keys_;  // all begin so
  std::string client_, epoch_;
  std::string commit_script_, lean_commit_script_, renew_script_;  // by their digests
  std::uint64_t batches_ = 0;
  std::string last_batch_;  // of the owner
  std::string doubtful_;    // one of the owner's that may have been written, though its calls have failed
  std::string version_;     // the id of the batch that was the last one for what is known
  bool is_known_ = false;
  bool is_locked_ = false;
  int outdated_ = 0;  // transactions, one after the other
  bool is_over_ = false;
  bool writes_ = false;
  bool in_doubt_ = false;  // the present batch may have been written, or may be yet
  std::function<void(const Error&)> overdue_;

  Cells cells_[kRedisTables];
  std::vector<std::pair<RedisTable, std::string>> wanted_;
  std::map<std::string, Members> orders_;
  std::map<std::pair<RedisTable, std::string>, std::int64_t> increments_;
  bool is_marked_ = false;
  std::vector<CellBefore> cells_before_;
  std::vector<MemberBefore> members_before_;
  std::vector<NumberBefore> numbers_before_;
};

}  // namespace argiope

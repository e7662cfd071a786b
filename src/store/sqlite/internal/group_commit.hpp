// GroupCommit: who commits for all that write one SQLite file. One thread takes every call that waits, runs them in one
// transaction and commits it; where a commit must reach the disk, a second one syncs it. Only then are the calls
// answered. While one commit syncs the next is made, and those that come meanwhile share the next sync.
//
// It knows nothing of what is stored, nor of who waits for it: coroutines do so by awaited_calls.hpp, the store of URLs
// counts batches. It keeps the same promises of a call for both:
//
// Order:    calls are run in the order they are submitted, each whole in one transaction, and answered in that order,
//           but for those that fail meanwhile (Transactions::when_overdue()) and for patient ones.
// Answers:  after the call's transaction, and all before it, is committed and, where Transactions::log() is synced
//           apart, on the disk. Others who read the file can see a commit as much earlier as a sync takes.
// Failure:  after a failed write, commit, sync or checkpoint, or where the file is no longer in its place, every
//           further call that changes something fails with that error. Reads go on. The log stays behind when the file
//           is closed.
// Foreign locks: Transactions::begin() decides how long to wait. A call that then fails as busy fails alone, or for
//           good, as Rules says.
// Again:    a transaction of a database that others write as well may turn out to be made from what is no longer so
//           (TransactionOutdated): nothing of it is committed, and its calls are run once more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "store/sqlite/internal/alarm.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_log.hpp"

namespace argiope {

// Thrown by what is done in a transaction, or by its commit: nothing of it is committed, and it is to be done again.
// Whoever throws it sees to it that this has an end.
struct TransactionOutdated {};

// The transactions of one database. Used by one thread at a time, but for what says otherwise. Whatever fails throws
// DatabaseFailed.
class Transactions {
 public:
  virtual ~Transactions() = default;
  virtual void begin(bool to_write) = 0;
  virtual void commit() = 0;
  // The transaction's changes are gone, and so is what was thought of them.
  virtual void roll_back() noexcept = 0;
  // False after begin() where the database has rolled back by itself because of a failure.
  virtual bool in_transaction() const noexcept = 0;
  // Whether the files that are open are still those under their names.
  virtual Result<void> in_place() const = 0;
  // From any thread: the rest is waited for. A wait for another process's lock ends soon, the present one included.
  virtual void stop_waiting() = 0;
  // Null: what is committed needs nothing more.
  virtual SqliteLog* log() noexcept { return nullptr; }
  // Whether nothing can be written any more after a transaction that has failed so.
  virtual bool ends_all(const Error& error) const noexcept { return error.code != Errc::busy; }
  // Whether patient calls that failed so are to be run again: it is the server's trouble, for whose end begin() waits.
  virtual bool passes(const Error&) const noexcept { return false; }
  // Set before the first begin(). Called by the thread that works for it, in the midst of begin() or commit(), where
  // the present calls go on waiting for the server, as an owner does that must know what has become of a commit, but
  // those behind them have waited long enough.
  virtual void when_overdue(std::function<void(const Error&)>) {}
  // The interval at which renew() is called, between transactions, whether or not calls come. nullopt: never. Constant.
  virtual std::optional<Duration> renew_interval() const noexcept { return std::nullopt; }
  virtual void renew() noexcept {}
};

// Threads: any but for stop(), which is one at a time. Destroying it stops it.
class GroupCommit {
 public:
  // The work that one caller wants done. Called by the committing thread.
  class Call {
   public:
    enum class Kind : std::uint8_t { read, write };
    // `size`: how many rows it is about, more or less.
    // A patient one is kept and run again, in its place, after what passes (Transactions::passes()), but not once this
    // is being stopped.
    Call(Kind kind, std::size_t size, bool is_patient = false) noexcept
        : kind_(kind), size_(size), is_patient_(is_patient) {}
    virtual ~Call() = default;
    Call(const Call&) = delete;
    // In a transaction, and again in another where that one was outdated. Throws DatabaseFailed and
    // TransactionOutdated, and nothing else.
    virtual void run() = 0;
    // Instead of run(), or after it: nothing of it has been done, or nobody knows.
    virtual void fail(const Error& error) = 0;
    // Whether a call that is no read needs a transaction that writes this time. Asked before it begins.
    virtual bool writes() { return true; }
    Kind kind() const noexcept { return kind_; }
    std::size_t size() const noexcept { return size_; }

   private:
    friend class GroupCommit;
    const Kind kind_;
    const std::size_t size_;
    const bool is_patient_;
    bool is_put_off_ = false;
  };
  using Calls = std::vector<std::unique_ptr<Call>>;
  // Takes back what has been run or failed. From either thread, one at a time; must not wait for this GroupCommit.
  using Answer = std::function<void(Calls)>;

  struct Rules {
    // A transaction ends before it is larger than this, but for a call that is so large by itself.
    std::size_t most_in_transaction = std::numeric_limits<std::size_t>::max();
    // How long a call waits for others to come. nullopt: until wake().
    std::optional<Duration> linger;
    // With `linger`: what is larger than this together waits no longer.
    std::size_t most_lingering = std::numeric_limits<std::size_t>::max();
    // A lock that another process would not give is a failure like others: for callers that are not there to try again.
    bool busy_is_failure = false;
  };
  // From this size on a call is worth a transaction of its own, and a transaction another thread to sync it.
  static constexpr std::size_t kLarge = 32;

  // Errors: std::system_error, where the system refuses a thread.
  GroupCommit(std::unique_ptr<Transactions> transactions, const Rules& rules, Answer answer);
  ~GroupCommit() { (void)stop(); }
  GroupCommit(const GroupCommit&) = delete;

  // Never waits. False, and nothing else, once it has been stopped.
  bool submit(std::unique_ptr<Call> call);
  // The submitted calls are to be run now.
  void wake();
  // Nothing more is to be written, because of `error`. Of several failures the first counts.
  void fail(const Error& error);
  std::optional<Error> failure() const;
  // Runs and answers what was submitted, then destroys the Transactions. Errors: the failure, the first time.
  Result<void> stop();

 private:
  // A transaction that is over.
  struct Finished {
    Calls calls;
    std::size_t size;
    bool wrote;
  };

  void work();
  Calls take_calls(bool& stopped);
  void renew() noexcept;
  // Whether it has committed what must be synced.
  bool run(std::span<const std::unique_ptr<Call>> batch);
  bool run_once(std::span<const std::unique_ptr<Call>> batch);
  bool syncs_apart() const noexcept;
  void run_reads_alone(std::span<const std::unique_ptr<Call>> batch, const Error& failure);
  void run_one(Call& call, bool writes);
  void give_up(std::span<const std::unique_ptr<Call>> batch, const Error& error, bool writes);
  void fail_waiting(const Error& error);
  void fail_or_put_off(Call& call, const Error& error);
  // Where some of `run` were put off: they wait again, and so do the patient ones of `rest`, which were taken with
  // them. What is to be answered.
  Calls take_put_off(Calls run, std::span<std::unique_ptr<Call>> rest);
  void finish(Finished finished);
  void sync();
  void stop_syncing();
  // Of whichever thread has something to sync; never of both.
  void sync_and_answer(std::vector<Finished> transactions);
  void move_log();

  const Rules rules_;
  const Answer answer_;
  std::unique_ptr<Transactions> transactions_;
  std::optional<Error> sync_failed_;
  std::optional<Error> put_off_for_;
  std::optional<Alarm> renew_at_;
  Calls taken_;             // by the thread that commits
  std::size_t behind_ = 0;  // where those of taken_ begin that no transaction has had

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Calls calls_;
  std::size_t waiting_ = 0;  // the size of calls_
  bool awake_ = false;
  bool stopping_ = false;
  std::optional<Error> failure_;

  // Between the two threads.
  std::condition_variable wake_syncer_, all_synced_;
  std::vector<Finished> finished_;
  bool syncing_ = false;
  bool no_more_ = false;

  std::thread thread_;
  std::thread syncer_;  // none if nothing needs it
};

}  // namespace argiope

// BatchCommit: batches that one owner submits and nobody in particular waits for, committed in their order. It counts
// them, so that it can be said when all that was submitted is on the disk.
//
// Errors:  after a failed write all further ones are refused with that error; what was committed stays.
// Threads: any but for close(), which is one at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/sqlite_owner.hpp"

namespace argiope {

class BatchCommit {
 public:
  struct Rules {
    Duration linger{};  // how long a commit may wait for more, while no caller waits for it
    std::size_t most_in_transaction = std::numeric_limits<std::size_t>::max();  // records, but for one larger batch
  };
  // Told on a thread of this, before flushed() is true of them, of calls that were committed or have failed; it must
  // not wait.
  using Told = std::function<void(const GroupCommit::Calls&)>;

  BatchCommit(std::unique_ptr<SqliteOwner> owner, const Rules& rules, Told told = {});
  BatchCommit(const BatchCommit&) = delete;

  // Batches are committed in the order of these calls. One after a failure is dropped.
  void submit(std::unique_ptr<GroupCommit::Call> call);
  // An error that failure() tells is told here too.
  Result<void> flush();
  std::uint64_t begin_flush();
  bool flushed(std::uint64_t flush) const;
  std::size_t backlog() const;  // records submitted and not committed
  std::optional<Error> failure() const { return commit_.failure(); }
  // flush(), then whatever `before_last` does, then the connection that writes is closed: the last one moves the log
  // into the database and removes it, or keeps it after a failure. Errors: the failure, the first time.
  Result<void> close(const std::function<void()>& before_last);

 private:
  void note_answered(const GroupCommit::Calls& calls);

  SqliteOwner& owner_;  // until commit_ is stopped
  const Told told_;
  // Held while a batch is submitted: batches are counted in the order in which they are committed.
  mutable std::mutex mutex_;
  std::condition_variable committed_changed_;
  std::size_t backlog_ = 0;
  std::uint64_t submitted_ = 0;  // batches
  std::uint64_t committed_ = 0;
  GroupCommit commit_;
};

}  // namespace argiope

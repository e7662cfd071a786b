#include "store/sqlite/internal/batch_commit.hpp"

#include <utility>

namespace argiope {
namespace {

// A backlog of so many records is committed without lingering.
constexpr std::size_t kEagerBacklog = 20'000;

}  // namespace

BatchCommit::BatchCommit(std::unique_ptr<SqliteOwner> owner, const Rules& rules, Told told)
    : owner_(*owner),
      told_(std::move(told)),
      commit_(std::move(owner),
              {.most_in_transaction = rules.most_in_transaction,
               .linger = rules.linger,
               .most_lingering = kEagerBacklog,
               .busy_is_failure = true},
              [this](GroupCommit::Calls calls) { note_answered(calls); }) {}

void BatchCommit::submit(std::unique_ptr<GroupCommit::Call> call) {
  if (failure()) return;
  const std::size_t size = call->size();
  std::lock_guard lock(mutex_);
  if (!commit_.submit(std::move(call))) return;
  backlog_ += size;
  ++submitted_;
}

Result<void> BatchCommit::flush() {
  owner_.lock_wait().begin_hurry();
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = submitted_;
    if (committed_ < target) commit_.wake();
    committed_changed_.wait(lock, [&] { return committed_ >= target; });
  }
  owner_.lock_wait().end_hurry();
  if (auto failed = failure()) return std::unexpected(std::move(*failed));
  return {};
}

std::uint64_t BatchCommit::begin_flush() {
  std::lock_guard lock(mutex_);
  if (committed_ < submitted_) commit_.wake();
  return submitted_;
}

bool BatchCommit::flushed(std::uint64_t flush) const {
  std::lock_guard lock(mutex_);
  return committed_ >= flush && !failure();
}

std::size_t BatchCommit::backlog() const {
  std::lock_guard lock(mutex_);
  return backlog_;
}

Result<void> BatchCommit::close(const std::function<void()>& before_last) {
  if (flush()) {
    if (auto there = owner_.in_place(); !there) commit_.fail(there.error());
  }
  before_last();
  return commit_.stop();
}

// A failed call counts too: failure() is asked first, and is there before this is called.
void BatchCommit::note_answered(const GroupCommit::Calls& calls) {
  if (told_) told_(calls);
  std::size_t records = 0;
  for (const auto& call : calls) records += call->size();
  std::lock_guard lock(mutex_);
  committed_ += calls.size();
  backlog_ -= records;
  committed_changed_.notify_all();
}

}  // namespace argiope

#include "store/sqlite/internal/group_commit.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace argiope {
namespace {

bool is_read(const std::unique_ptr<GroupCommit::Call>& call) noexcept {
  return call->kind() == GroupCommit::Call::Kind::read;
}

}  // namespace

GroupCommit::GroupCommit(std::unique_ptr<Transactions> transactions, const Rules& rules, Answer answer)
    : rules_(rules), answer_(std::move(answer)), transactions_(std::move(transactions)) {
  transactions_->when_overdue([this](const Error& error) { fail_waiting(error); });
  if (const auto interval = transactions_->renew_interval()) renew_at_.emplace().set(*interval);
  if (syncs_apart()) syncer_ = std::thread([this] { sync(); });
  try {
    thread_ = std::thread([this] { work(); });
  } catch (...) {
    stop_syncing();
    throw;
  }
}

bool GroupCommit::submit(std::unique_ptr<Call> call) {
  std::lock_guard lock(mutex_);
  if (stopping_) return false;
  waiting_ += call->size();
  calls_.push_back(std::move(call));
  if (!rules_.linger || awake_) return true;
  awake_ = waiting_ >= rules_.most_lingering;
  if (awake_ || calls_.size() == 1) wake_.notify_one();
  return true;
}

void GroupCommit::wake() {
  std::lock_guard lock(mutex_);
  awake_ = true;
  wake_.notify_one();
}

void GroupCommit::fail(const Error& error) {
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

std::optional<Error> GroupCommit::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Result<void> GroupCommit::stop() {
  if (!thread_.joinable()) return {};
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  transactions_->stop_waiting();
  thread_.join();
  stop_syncing();
  const auto failed = failure();
  if (SqliteLog* const log = transactions_->log(); failed && log != nullptr) log->keep();
  transactions_.reset();
  if (failed) return std::unexpected(*failed);
  return {};
}

void GroupCommit::stop_syncing() {
  if (!syncer_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    no_more_ = true;
    wake_syncer_.notify_one();
  }
  syncer_.join();
}

// --- the thread that commits -----------------------------------------------------------------------------------------

void GroupCommit::work() {
  bool stopped = false;
  for (;;) {
    taken_ = take_calls(stopped);
    if (stopped) return;
    while (behind_ < taken_.size()) {
      const std::size_t from = behind_;
      std::size_t size = 0;
      while (behind_ < taken_.size() &&
             (behind_ == from || size + taken_[behind_]->size() <= rules_.most_in_transaction)) {
        size += taken_[behind_++]->size();
      }
      const std::span<std::unique_ptr<Call>> batch = std::span(taken_).subspan(from, behind_ - from);
      const bool wrote = run(batch);
      Calls were_run(std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
      if (std::ranges::any_of(were_run, [](const auto& call) { return call->is_put_off_; })) {
        were_run = take_put_off(std::move(were_run), std::span(taken_).subspan(behind_));
        behind_ = taken_.size();
      }
      finish({std::move(were_run), size, wrote});
      if (wrote && transactions_->log()->is_long()) move_log();
      if (renew_at_ && renew_at_->has_gone_off()) renew();
    }
    taken_ = Calls();
    behind_ = 0;
  }
}

GroupCommit::Calls GroupCommit::take_calls(bool& stopped) {
  const auto called = [this] { return awake_ || stopping_; };
  std::unique_lock lock(mutex_);
  if (rules_.linger) {
    wake_.wait(lock, [&] { return called() || !calls_.empty(); });
    wake_.wait_for(lock, *rules_.linger, called);
  } else if (renew_at_) {
    while (!wake_.wait_for(lock, renew_at_->left(), called)) {
      lock.unlock();
      renew();
      lock.lock();
    }
  } else {
    wake_.wait(lock, called);
  }
  awake_ = false;
  waiting_ = 0;
  stopped = stopping_ && calls_.empty();
  return std::exchange(calls_, {});
}

void GroupCommit::renew() noexcept {
  transactions_->renew();
  renew_at_->set(*transactions_->renew_interval());
}

bool GroupCommit::syncs_apart() const noexcept {
  SqliteLog* const log = transactions_->log();
  return log != nullptr && log->is_apart();
}

bool GroupCommit::run(std::span<const std::unique_ptr<Call>> batch) {
  for (;;) {
    try {
      return run_once(batch);
    } catch (const TransactionOutdated&) {
      transactions_->roll_back();
    }
  }
}

bool GroupCommit::run_once(std::span<const std::unique_ptr<Call>> batch) {
  bool writes = false;
  try {
    if (const auto failed = failure()) {
      run_reads_alone(batch, *failed);
      return false;
    }
    writes = std::ranges::any_of(batch, [](const auto& call) { return !is_read(call) && call->writes(); });
    transactions_->begin(writes);
  } catch (DatabaseFailed& error) {
    give_up(batch, error.error, writes);
    return false;
  }
  try {
    for (const auto& call : batch) run_one(*call, writes);
    transactions_->commit();
    const bool must_sync = writes && syncs_apart();
    if (std::ranges::all_of(batch, is_read)) return must_sync;
    const auto there = transactions_->in_place();
    if (there) return must_sync;
    give_up(batch, there.error(), true);
  } catch (DatabaseFailed& error) {
    give_up(batch, error.error, writes);
  }
  return false;
}

// Data committed before the failure can still be read.
void GroupCommit::run_reads_alone(std::span<const std::unique_ptr<Call>> batch, const Error& failure) {
  for (const auto& call : batch) {
    if (!is_read(call)) call->fail(failure);
  }
  if (std::ranges::none_of(batch, is_read)) return;
  transactions_->begin(false);
  for (const auto& call : batch) {
    if (is_read(call)) run_one(*call, false);
  }
  transactions_->commit();
}

// A read that fails fails alone, unless the database has ended the transaction with it, as SQLite does when the disk
// fails: what was written in the transaction is gone then, and what would be written after it would be committed
// statement by statement.
void GroupCommit::run_one(Call& call, bool writes) {
  call.is_put_off_ = false;
  if (writes && call.kind() != Call::Kind::read) return call.run();
  try {
    call.run();
  } catch (DatabaseFailed& error) {
    if (!transactions_->in_transaction()) {
      if (writes) throw;
      transactions_->roll_back();
      transactions_->begin(false);
    }
    fail_or_put_off(call, error.error);
  }
}

// But for patient ones.
void GroupCommit::fail_waiting(const Error& error) {
  Calls failed;
  const auto take_from = [&failed](Calls& calls, std::size_t first) {
    std::size_t size = 0;
    const auto behind = calls.begin() + static_cast<std::ptrdiff_t>(first);
    for (auto at = behind; at != calls.end(); ++at) {
      if ((*at)->is_patient_) continue;
      size += (*at)->size();
      failed.push_back(std::move(*at));
    }
    calls.erase(std::remove(behind, calls.end(), nullptr), calls.end());
    return size;
  };
  (void)take_from(taken_, behind_);
  {
    const std::lock_guard lock(mutex_);
    waiting_ -= take_from(calls_, 0);
  }
  if (failed.empty()) return;
  for (const auto& call : failed) call->fail(error);
  answer_(std::move(failed));
}

void GroupCommit::fail_or_put_off(Call& call, const Error& error) {
  const std::lock_guard lock(mutex_);
  call.is_put_off_ = call.is_patient_ && !stopping_ && !failure_ && transactions_->passes(error);
  if (!call.is_put_off_) return call.fail(error);
  put_off_for_ = error;
}

GroupCommit::Calls GroupCommit::take_put_off(Calls run, std::span<std::unique_ptr<Call>> rest) {
  for (const auto& call : rest) fail_or_put_off(*call, *put_off_for_);
  Calls answered, again;
  for (auto& call : run) (call->is_put_off_ ? again : answered).push_back(std::move(call));
  for (auto& call : rest) (call->is_put_off_ ? again : answered).push_back(std::move(call));
  const std::lock_guard lock(mutex_);
  for (const auto& call : again) waiting_ += call->size();
  calls_.insert(calls_.begin(), std::make_move_iterator(again.begin()), std::make_move_iterator(again.end()));
  awake_ = true;
  return answered;
}

void GroupCommit::give_up(std::span<const std::unique_ptr<Call>> batch, const Error& error, bool writes) {
  transactions_->roll_back();
  // Another process that keeps the file locked has damaged nothing, and nothing has been written.
  if (writes && (transactions_->ends_all(error) || rules_.busy_is_failure)) fail(error);
  for (const auto& call : batch) fail_or_put_off(*call, error);
}

// --- what is committed, and not yet on the disk ----------------------------------------------------------------------

// No call is answered before what was committed before it is on the disk: a read may have seen it. Little behind which
// nothing waits is synced here: to wake another thread takes as long as a third of a sync. Nor does it help what
// lingers.
void GroupCommit::finish(Finished finished) {
  if (!syncer_.joinable()) return answer_(std::move(finished.calls));
  std::vector<Finished> alone;
  {
    std::lock_guard lock(mutex_);
    const bool nothing_before = !syncing_ && finished_.empty();
    const bool others_wait = rules_.linger ? awake_ : finished.size >= kLarge || !calls_.empty();
    if (!nothing_before || (finished.wrote && others_wait)) {
      finished_.push_back(std::move(finished));
      wake_syncer_.notify_one();
      return;
    }
  }
  alone.push_back(std::move(finished));
  sync_and_answer(std::move(alone));
}

void GroupCommit::sync() {
  std::vector<Finished> taken;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      syncing_ = false;
      if (finished_.empty()) all_synced_.notify_one();
      wake_syncer_.wait(lock, [this] { return !finished_.empty() || no_more_; });
      if (finished_.empty()) return;
      taken.swap(finished_);
      syncing_ = true;
    }
    sync_and_answer(std::exchange(taken, {}));
  }
}

void GroupCommit::sync_and_answer(std::vector<Finished> transactions) {
  if (!sync_failed_ && std::ranges::any_of(transactions, &Finished::wrote)) {
    if (auto synced = transactions_->log()->sync(); !synced) {
      sync_failed_ = std::move(synced.error());
      fail(*sync_failed_);
    }
  }
  Calls calls;
  for (Finished& finished : transactions) {
    for (auto& call : finished.calls) {
      if (sync_failed_ && finished.wrote && !is_read(call)) call->fail(*sync_failed_);
      calls.push_back(std::move(call));
    }
  }
  answer_(std::move(calls));
}

void GroupCommit::move_log() {
  {
    std::unique_lock lock(mutex_);
    all_synced_.wait(lock, [this] { return !syncing_ && finished_.empty(); });
    if (failure_) return;
  }
  if (auto moved = transactions_->log()->checkpoint(); !moved) fail(moved.error());
}

}  // namespace argiope

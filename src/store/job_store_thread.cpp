#include "store/job_store_thread.hpp"

#include <algorithm>

namespace argiope {
namespace {

// A transaction ends after so many jobs, so that those who wait for the first need not wait for a million others.
constexpr std::size_t kMostJobsInTransaction = 256;
// A call of so many jobs is worth a transaction of its own.
constexpr std::size_t kLarge = 32;

bool is_read(const std::unique_ptr<StoreCall>& call) noexcept { return call->kind() == CallKind::read; }

}  // namespace

struct JobStoreThread::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  Calls calls;
  const EventLoop* waking = nullptr;  // the loop that will wake the thread at the end of its turn
  bool awake = false;
  bool stopping = false;
  std::optional<Error> failure;

  // Between the two threads.
  std::condition_variable wake_syncer, all_synced;
  std::vector<Finished> finished;
  bool syncing = false;
  bool no_more = false;
};

// Wakes the thread when called or dropped.
class JobStoreThread::WakeUp {
 public:
  explicit WakeUp(std::shared_ptr<Shared> shared) noexcept : shared_(std::move(shared)) {}
  WakeUp(WakeUp&&) noexcept = default;
  ~WakeUp() {
    if (shared_ != nullptr) (*this)();
  }
  void operator()() noexcept {
    const auto shared = std::exchange(shared_, nullptr);
    std::lock_guard lock(shared->mutex);
    shared->waking = nullptr;
    shared->awake = true;
    shared->wake.notify_one();
  }

 private:
  std::shared_ptr<Shared> shared_;
};

JobStoreThread::JobStoreThread(std::unique_ptr<SqliteJobs> jobs)
    : jobs_(std::move(jobs)), last_token_(jobs_->last_token()), shared_(std::make_shared<Shared>()) {
  if (jobs_->needs_sync()) syncer_ = std::thread([this] { sync(); });
  thread_ = std::thread([this] { work(); });
}

// The thread is woken after all that is ready on the loop has run: what its tasks ask for in one turn is one
// transaction, and not the first of them one and the rest another. For a call that is large by itself it is woken at once,
// and works on it while the loop makes the next.
bool JobStoreThread::push(std::unique_ptr<StoreCall> call) {
  EventLoop& loop = call->loop();
  const bool large = call->jobs() >= kLarge;
  bool wake_later = false;
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->stopping) return false;
    shared_->calls.push_back(std::move(call));
    loop.begin_outside_work();
    if (large) {
      shared_->awake = true;
      shared_->wake.notify_one();
    } else if (shared_->waking == nullptr) {
      shared_->waking = &loop;
      wake_later = true;
    } else if (shared_->waking != &loop) {
      shared_->awake = true;
      shared_->wake.notify_one();
    }
  }
  if (wake_later) loop.call_soon(WakeUp(shared_));
  return true;
}

std::optional<Error> JobStoreThread::failure() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->failure;
}

Result<void> JobStoreThread::stop() {
  if (!thread_.joinable()) return {};
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->wake.notify_one();
  }
  jobs_->give_up_waiting();
  thread_.join();
  if (syncer_.joinable()) {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->no_more = true;
      shared_->wake_syncer.notify_one();
    }
    syncer_.join();
  }
  if (shared_->failure) jobs_->keep_log();
  jobs_.reset();
  if (shared_->failure) return std::unexpected(*shared_->failure);
  return {};
}

void JobStoreThread::work() {
  Calls taken;
  for (;;) {
    {
      std::unique_lock lock(shared_->mutex);
      shared_->wake.wait(lock, [&] { return shared_->awake || shared_->stopping; });
      shared_->awake = false;
      taken.swap(shared_->calls);
      if (taken.empty() && shared_->stopping) return;
    }
    for (std::size_t from = 0; from < taken.size();) {
      std::size_t to = from, jobs = 0;
      while (to < taken.size() && (to == from || jobs + taken[to]->jobs() <= kMostJobsInTransaction)) {
        jobs += taken[to++]->jobs();
      }
      const bool wrote = run(std::span(taken).subspan(from, to - from));
      finish({Calls(std::make_move_iterator(taken.begin() + static_cast<std::ptrdiff_t>(from)),
                    std::make_move_iterator(taken.begin() + static_cast<std::ptrdiff_t>(to))),
              jobs, wrote});
      if (wrote && jobs_->log_is_long()) move_log();
      from = to;
    }
    taken.clear();
  }
}

bool JobStoreThread::run(std::span<const std::unique_ptr<StoreCall>> batch) {
  bool writes = false;
  try {
    if (const auto failed = failure()) {
      // What was committed can still be read.
      for (const auto& call : batch) {
        if (!is_read(call)) call->fail(*failed);
      }
      jobs_->begin(false);
      for (const auto& call : batch) {
        if (is_read(call)) attempt_one(*call, false);
      }
      jobs_->commit();
      return false;
    }
    writes = std::ranges::any_of(batch, [&](const auto& call) {
      return call->kind() == CallKind::write ||
             (call->kind() == CallKind::take_changes && jobs_->others_changed_jobs());
    });
    jobs_->begin(writes);
  } catch (DatabaseFailed& error) {
    give_up(batch, error.error, writes);
    return false;
  }
  try {
    for (const auto& call : batch) attempt_one(*call, writes);
    jobs_->commit();
    last_token_ = jobs_->last_token();
    if (std::ranges::all_of(batch, is_read) || jobs_->in_place()) return writes && jobs_->needs_sync();
    give_up(batch, jobs_->not_in_place(), true);
  } catch (DatabaseFailed& error) {
    give_up(batch, error.error, writes);
  }
  return false;
}

void JobStoreThread::give_up(std::span<const std::unique_ptr<StoreCall>> batch, const Error& error, bool writes) {
  jobs_->roll_back();
  // Another process that keeps the file locked is no failure of ours, and nothing has been written.
  if (writes && error.code != Errc::busy) note_failure(error);
  for (const auto& call : batch) call->fail(error);
}

// A read that fails fails alone, unless SQLite has ended the transaction with it, as it does when the disk fails: what was
// written in the transaction is gone then, and what would be written after it would be committed statement by statement.
void JobStoreThread::attempt_one(StoreCall& call, bool writes) {
  if (writes && call.kind() != CallKind::read) return call.run(*jobs_);
  try {
    call.run(*jobs_);
  } catch (DatabaseFailed& error) {
    if (!jobs_->in_transaction()) {
      if (writes) throw;
      jobs_->roll_back();
      jobs_->begin(false);
    }
    call.fail(error.error);
  }
}

void JobStoreThread::note_failure(const Error& error) {
  std::lock_guard lock(shared_->mutex);
  if (!shared_->failure) shared_->failure = error;
}

// Nobody is told of anything before what was committed before it is on the disk: a read may have seen it. Little for which
// nothing waits is synced here: to wake another thread takes as long as a third of a sync.
void JobStoreThread::finish(Finished finished) {
  if (!syncer_.joinable()) return deliver(std::move(finished.calls));
  std::vector<Finished> alone;
  {
    std::lock_guard lock(shared_->mutex);
    const bool nothing_before = !shared_->syncing && shared_->finished.empty();
    if (!nothing_before || (finished.wrote && (finished.jobs >= kLarge || !shared_->calls.empty()))) {
      shared_->finished.push_back(std::move(finished));
      shared_->wake_syncer.notify_one();
      return;
    }
  }
  alone.push_back(std::move(finished));
  settle(std::move(alone));
}

void JobStoreThread::sync() {
  std::vector<Finished> taken;
  for (;;) {
    {
      std::unique_lock lock(shared_->mutex);
      shared_->syncing = false;
      if (shared_->finished.empty()) shared_->all_synced.notify_one();
      shared_->wake_syncer.wait(lock, [&] { return !shared_->finished.empty() || shared_->no_more; });
      if (shared_->finished.empty()) return;
      taken.swap(shared_->finished);
      shared_->syncing = true;
    }
    settle(std::exchange(taken, {}));
  }
}

void JobStoreThread::settle(std::vector<Finished> transactions) {
  if (!sync_failed_ && std::ranges::any_of(transactions, &Finished::wrote)) {
    if (auto synced = jobs_->sync_log(); !synced) {
      sync_failed_ = std::move(synced.error());
      note_failure(*sync_failed_);
    }
  }
  Calls calls;
  for (Finished& finished : transactions) {
    for (auto& call : finished.calls) {
      if (sync_failed_ && finished.wrote && call->kind() != CallKind::read) call->fail(*sync_failed_);
      calls.push_back(std::move(call));
    }
  }
  deliver(std::move(calls));
}

void JobStoreThread::move_log() {
  {
    std::unique_lock lock(shared_->mutex);
    shared_->all_synced.wait(lock, [&] { return !shared_->syncing && shared_->finished.empty(); });
    if (shared_->failure) return;
  }
  if (auto moved = jobs_->checkpoint(); !moved) note_failure(moved.error());
}

// What a loop asked for that is gone goes with it.
void JobStoreThread::deliver(Calls calls) {
  const auto send = [](Calls to_one_loop) {
    const LoopRef home = to_one_loop.front()->home();
    home.call_soon([delivered = std::move(to_one_loop)] {
      for (const auto& call : delivered) call->deliver();
    });
  };
  while (!calls.empty()) {
    const LoopRef home = calls.front()->home();
    Calls others;  // nearly always none
    for (auto& call : calls) {
      if (call->home() != home) others.push_back(std::move(call));
    }
    if (!others.empty()) std::erase(calls, nullptr);
    send(std::exchange(calls, std::move(others)));
  }
}

}  // namespace argiope

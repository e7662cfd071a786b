#include "store/job_store_thread.hpp"

#include <algorithm>

namespace argiope {
namespace {

// A transaction ends after so many jobs, so that those who wait for the first need not wait for a million others.
constexpr std::size_t kMostJobsInTransaction = 20'000;

}  // namespace

struct JobStoreThread::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  Calls calls;
  const EventLoop* waking = nullptr;  // the loop that will wake the thread at the end of its turn
  bool awake = false;
  bool stopping = false;
  std::optional<Error> failure;
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
    : jobs_(std::move(jobs)), shared_(std::make_shared<Shared>()), thread_([this] { work(); }) {}

// The thread is woken after all that is ready on the loop has run: what its tasks ask for in one turn is one
// transaction, and not the first of them one and the rest another.
void JobStoreThread::push(std::unique_ptr<StoreCall> call) {
  EventLoop& loop = call->loop();
  bool wake_later = false;
  {
    std::lock_guard lock(shared_->mutex);
    shared_->calls.push_back(std::move(call));
    loop.begin_outside_work();
    if (shared_->waking == nullptr) {
      shared_->waking = &loop;
      wake_later = true;
    } else if (shared_->waking != &loop) {
      shared_->awake = true;
      shared_->wake.notify_one();
    }
  }
  if (wake_later) loop.call_soon(WakeUp(shared_));
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
  thread_.join();
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
      std::size_t to = from;
      for (std::size_t jobs = 0; to < taken.size() && (to == from || jobs + taken[to]->jobs() <= kMostJobsInTransaction);) {
        jobs += taken[to++]->jobs();
      }
      run(std::span(taken).subspan(from, to - from));
      deliver(Calls(std::make_move_iterator(taken.begin() + static_cast<std::ptrdiff_t>(from)),
                    std::make_move_iterator(taken.begin() + static_cast<std::ptrdiff_t>(to))));
      from = to;
    }
    taken.clear();
  }
}

void JobStoreThread::run(std::span<const std::unique_ptr<StoreCall>> batch) {
  bool writes = false;
  try {
    if (const auto failed = failure()) {
      // What was committed can still be read.
      for (const auto& call : batch) {
        if (call->kind() != CallKind::read) call->fail(*failed);
      }
      jobs_->begin(false);
      for (const auto& call : batch) {
        if (call->kind() == CallKind::read) attempt_one(*call, false);
      }
      jobs_->commit();
      return;
    }
    writes = std::ranges::any_of(batch, [&](const auto& call) {
      return call->kind() == CallKind::write ||
             (call->kind() == CallKind::take_changes && jobs_->others_changed_jobs());
    });
    jobs_->begin(writes);
  } catch (DatabaseFailed& error) {
    jobs_->roll_back();
    // Another process that writes for long is no failure of ours, and nothing has been written.
    if (writes && error.error.code != Errc::busy) note_failure(error.error);
    for (const auto& call : batch) call->fail(error.error);
    return;
  }
  try {
    for (const auto& call : batch) attempt_one(*call, writes);
    jobs_->commit();
  } catch (DatabaseFailed& error) {
    jobs_->roll_back();
    if (writes) note_failure(error.error);
    for (const auto& call : batch) call->fail(error.error);
  }
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
  shared_->failure = error;
}

void JobStoreThread::deliver(Calls calls) {
  const auto send = [](Calls to_one_loop) {
    EventLoop& loop = to_one_loop.front()->loop();
    loop.call_soon_threadsafe([delivered = std::move(to_one_loop)] {
      for (const auto& call : delivered) call->deliver();
    });
  };
  while (!calls.empty()) {
    const EventLoop* loop = &calls.front()->loop();
    Calls others;  // nearly always none
    for (auto& call : calls) {
      if (&call->loop() != loop) others.push_back(std::move(call));
    }
    if (!others.empty()) std::erase(calls, nullptr);
    send(std::exchange(calls, std::move(others)));
  }
}

}  // namespace argiope

#include "argiope/async/group.hpp"

#include <fmt/format.h>

namespace argiope {
namespace {

std::string describe(const std::vector<std::exception_ptr>& exceptions) {
  std::string text = fmt::format("{} task{} failed", exceptions.size(), exceptions.size() == 1 ? "" : "s");
  for (const std::exception_ptr& exception : exceptions) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      text += fmt::format("; {}", error.what());
    } catch (...) {
      text += "; unknown exception";
    }
  }
  return text;
}

}  // namespace

ExceptionGroup::ExceptionGroup(std::vector<std::exception_ptr> exceptions)
    : std::runtime_error(describe(exceptions)), exceptions_(std::move(exceptions)) {}

namespace detail {

Coro<void> gather_wait(std::vector<FutureCore*> futures, bool throwing) {
  if (futures.empty()) co_return;
  require_same_loop(futures);
  // Outlives this coroutine in the callbacks of futures that run on after the first failure.
  struct Progress {
    std::size_t remaining;
    FutureCore* first_failed = nullptr;
    Event changed{};
  };
  auto progress = std::make_shared<Progress>(futures.size());
  for (FutureCore* future : futures) {
    future->add_done_callback([progress, future, throwing] {
      --progress->remaining;
      const bool failed = throwing && future->state() != FutureState::ready;
      if (failed && progress->first_failed == nullptr) progress->first_failed = future;
      // Of several failures the first is thrown; as in asyncio, the others are not reported either.
      if (future->state() == FutureState::failed) future->mark_exception_seen();
      if (progress->remaining == 0 || failed) progress->changed.set();
    });
  }
  std::exception_ptr cancellation;
  while (progress->remaining > 0 && (cancellation != nullptr || progress->first_failed == nullptr)) {
    progress->changed.clear();
    try {
      co_await progress->changed.wait();
    } catch (const CancelledError&) {
      cancellation = std::current_exception();
      for (FutureCore* future : futures) future->cancel({});
    }
  }
  if (cancellation != nullptr) std::rethrow_exception(cancellation);
  if (progress->first_failed != nullptr) progress->first_failed->rethrow_unless_ready();
}

void Race::ended(std::size_t branch, bool cancelled) {
  if (winner_.has_value() || (cancelled && stopped_)) return;
  winner_ = branch;
  for (std::size_t other = 0; other < branches_.size(); ++other) {
    if (other != branch) branches_[other].cancel();
  }
}

void Race::cancel_branches() {
  for (AnyTask& branch : branches_) branch.cancel();
}

Coro<std::size_t> Race::winner() {
  std::exception_ptr cancellation;
  for (bool waiting = true; waiting;) {
    try {
      co_await wait_until(cores_of(branches_), When::all_completed, kNever);
      waiting = false;
    } catch (const CancelledError&) {
      cancellation = std::current_exception();
      stopped_ = !winner_.has_value();
      cancel_branches();
    }
  }
  const bool has_outcome = winner_.has_value() && !branches_[*winner_].cancelled();
  if (cancellation != nullptr && !has_outcome) std::rethrow_exception(cancellation);
  if (cancellation != nullptr && this_thread.task->cancelling() > 0) this_thread.task->cancel_late();
  if (!winner_.has_value()) throw CancelledError();  // each of them, by another, before its first step
  co_return *winner_;
}

}  // namespace detail

// --- TaskGroup -------------------------------------------------------------------------------------------------

Coro<void> TaskGroup::run(Body body) {
  TaskGroup group;
  co_await group.run_body(body);
}

void TaskGroup::require_open() const {
  if (aborting_) throw std::logic_error("the task group is being cancelled");
  if (parent_ == nullptr || (body_ended_ && members_.empty())) throw std::logic_error("the task group has ended");
}

void TaskGroup::watch(detail::FutureCore& future) {
  auto member = std::make_unique<Member>();
  member->future = &future;
  members_.push_back(*member);
  // The future keeps the callback, and the callback the member; so nothing is left should the loop end before.
  future.add_done_callback([this, member = std::move(member)] { on_done(*member); });
}

void TaskGroup::on_done(Member& member) {
  detail::FutureCore& future = *member.future;
  if (future.state() == detail::FutureState::failed) {
    exceptions_.push_back(future.exception());
    if (!aborting_) {
      abort();
      if (!body_ended_) {
        // The body may be waiting for something that will never come: interrupt it.
        cancelled_parent_ = true;
        parent_->cancel({});
      }
    }
  }
  member.unlink();
  if (members_.empty()) idle_.set();
}

void TaskGroup::abort() noexcept {
  aborting_ = true;
  members_.for_each([](Member& member) { member.future->cancel({}); });
}

Coro<void> TaskGroup::run_body(Body& body) {
  parent_ = detail::this_thread.task;
  std::exception_ptr cancellation;
  try {
    co_await body(*this);
  } catch (const CancelledError&) {
    cancellation = std::current_exception();
  } catch (...) {
    exceptions_.push_back(std::current_exception());
  }
  body_ended_ = true;
  // With our own interruption taken back, what remains is another's cancellation.
  if (cancelled_parent_ && parent_->uncancel() == 0) cancellation = nullptr;
  if ((cancellation != nullptr || !exceptions_.empty()) && !aborting_) abort();
  while (!members_.empty()) {
    idle_.clear();
    try {
      co_await idle_.wait();
    } catch (const CancelledError&) {
      cancellation = std::current_exception();
      if (!aborting_) abort();
    }
  }
  if (!exceptions_.empty()) {
    // A cancellation from outside must not get lost behind them: it is delivered at the parent's next await.
    if (parent_->cancelling() > 0) {
      parent_->uncancel();
      parent_->cancel({});
    }
    throw ExceptionGroup(std::move(exceptions_));
  }
  if (cancellation != nullptr) std::rethrow_exception(cancellation);
}

}  // namespace argiope

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

Coro<void> all_done_or_first_failed(std::vector<FutureCore*> futures) {
  // Outlives this coroutine in the callbacks of futures that run on after the first failure.
  struct Progress {
    std::size_t remaining;
    Event all_done;
    Event decided;
  };
  auto progress = std::make_shared<Progress>();
  progress->remaining = futures.size();
  if (futures.empty()) co_return;
  for (FutureCore* future : futures) {
    future->add_done_callback([progress, future] {
      if (--progress->remaining == 0) progress->all_done.set();
      if (progress->remaining == 0 || future->state() != FutureState::ready) progress->decided.set();
    });
  }
  bool cancelled = false;
  try {
    co_await progress->decided.wait();
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    for (FutureCore* future : futures) future->cancel({});
    co_await progress->all_done.wait();
    throw CancelledError();
  }
  for (FutureCore* future : futures) {
    if (future->done()) future->rethrow_unless_ready();
  }
}

}  // namespace detail

Coro<void> gather(std::vector<Coro<void>> coros) {
  std::vector<Task<void>> tasks;
  std::vector<detail::FutureCore*> cores;
  for (Coro<void>& coro : coros) {
    tasks.push_back(EventLoop::current().create_task(std::move(coro)));
    cores.push_back(detail::core_of(tasks.back()));
  }
  co_await detail::all_done_or_first_failed(std::move(cores));
}

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
  future.retain();
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
        parent_->cancel_task({});
      }
    }
  }
  member.unlink();
  future.release();
  if (members_.empty()) idle_.set();
}

void TaskGroup::abort() noexcept {
  aborting_ = true;
  members_.for_each([](Member& member) { member.future->cancel({}); });
}

Coro<void> TaskGroup::run_body(Body& body) {
  parent_ = detail::this_thread.task;
  bool cancelled = false;
  try {
    co_await body(*this);
  } catch (const CancelledError&) {
    cancelled = true;
  } catch (...) {
    exceptions_.push_back(std::current_exception());
  }
  body_ended_ = true;
  if (cancelled_parent_) {
    // Our own interruption; what remains above zero is somebody else's cancellation.
    cancelled = parent_->uncancel() > 0 && cancelled;
  }
  if ((cancelled || !exceptions_.empty()) && !aborting_) abort();
  while (!members_.empty()) {
    idle_.clear();
    try {
      co_await idle_.wait();
    } catch (const CancelledError&) {
      cancelled = true;
      if (!aborting_) abort();
    }
  }
  if (!exceptions_.empty()) throw ExceptionGroup(std::move(exceptions_));
  if (cancelled) throw CancelledError();
}

}  // namespace argiope

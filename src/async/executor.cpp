#include <algorithm>
#include <stdexcept>

#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"

namespace argiope {

ThreadPoolExecutor::ThreadPoolExecutor(std::size_t threads) {
  if (threads == 0) throw std::invalid_argument("a thread pool needs at least one thread");
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    shutdown();  // the system gave fewer threads
    throw;
  }
}

ThreadPoolExecutor::~ThreadPoolExecutor() { shutdown(); }

void ThreadPoolExecutor::submit(std::move_only_function<void()> function) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) throw std::logic_error("submit to an executor that was shut down");
    functions_.push_back(std::move(function));
  }
  filled_.notify_one();
}

void ThreadPoolExecutor::shutdown() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  filled_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadPoolExecutor::work() {
  for (;;) {
    std::move_only_function<void()> function;
    {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [this] { return closed_ || !functions_.empty(); });
      if (functions_.empty()) return;
      function = functions_.pop_front();
    }
    function();
  }
}

// --- the default executor of a loop ----------------------------------------------------------------------------

ThreadPoolExecutor& EventLoop::default_executor() {
  check_thread();
  if (executor_closed_) throw std::logic_error("the default executor was shut down");
  if (default_executor_ == nullptr) {
    default_executor_ = std::make_unique<ThreadPoolExecutor>(std::min(32u, std::thread::hardware_concurrency() + 4));
  }
  return *default_executor_;
}

void EventLoop::set_default_executor(std::unique_ptr<ThreadPoolExecutor> executor) {
  if (default_executor_ != nullptr || executor_closed_) {
    throw std::logic_error("the default executor is in use already");
  }
  default_executor_ = std::move(executor);
}

Coro<void> EventLoop::shutdown_default_executor() {
  executor_closed_ = true;
  if (default_executor_ == nullptr) co_return;
  if (executor_finished_ != nullptr) {
    co_await executor_finished_->wait();  // another has asked already
    co_return;
  }
  // By a thread, because what runs there may need this loop to go on. Shared, because the last word of a thread whose
  // waiter was cancelled comes after the waiter has gone.
  const auto finished = executor_finished_ = std::make_shared<Event>();
  begin_outside_work();
  std::jthread joiner;
  try {
    joiner = std::jthread([this, finished] {
      default_executor_->shutdown();
      call_soon_threadsafe([this, finished] {
        end_outside_work();
        finished->set();
      });
    });
  } catch (...) {
    end_outside_work();
    executor_finished_.reset();
    throw;
  }
  co_await finished->wait();
}

}  // namespace argiope

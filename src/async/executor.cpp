#include "argiope/async/executor.hpp"

#include <stdexcept>

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

}  // namespace argiope

#include "argiope/async/runner.hpp"

#include <signal.h>

#include <stdexcept>
#include <vector>

#include "argiope/async/waiting.hpp"

namespace argiope {
namespace detail {
namespace {

bool has_default_effect(int signal_number) noexcept {
  struct sigaction current {};
  return ::sigaction(signal_number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

}  // namespace

InterruptGuard::InterruptGuard(EventLoop& loop, AnyTask main)
    : loop_(loop), state_(std::make_shared<State>(std::move(main))) {
  if (!has_default_effect(SIGINT)) return;
  loop_.add_signal_handler(SIGINT, [&loop, state = state_] {
    if (!state->main) return;  // it has ended since
    if (++state->count == 1 && state->main.cancel()) return;
    loop.stop();
    loop.remove_signal_handler(SIGINT);
  });
}

InterruptGuard::~InterruptGuard() {
  state_->main = {};
  // The loop's copy of the handler has gone when somebody replaced or removed it.
  if (state_.use_count() > 1) loop_.remove_signal_handler(SIGINT);
}

}  // namespace detail

namespace {

Coro<void> end_everything(EventLoop& loop) {
  std::vector<AnyTask> left = loop.all_tasks();
  std::erase(left, current_task());
  for (AnyTask& task : left) task.cancel("the runner is closing");
  if (!left.empty()) co_await wait(std::move(left));
  co_await loop.shutdown_default_executor();
}

}  // namespace

Runner::Runner(IoBackend& backend, bool debug) {
  loop_.emplace(backend);
  loop_->set_debug(debug);
}

Runner::~Runner() {
  if (!loop_) return;
  try {
    close();
  } catch (...) {
    loop_->handle_exception("Runner", std::current_exception());
  }
}

EventLoop& Runner::loop() {
  if (!loop_) throw std::logic_error("the runner is closed");
  return *loop_;
}

void Runner::close() {
  if (!loop_) return;
  loop_->run_until_complete(end_everything(*loop_));
  loop_.reset();
}

}  // namespace argiope

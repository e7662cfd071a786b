#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"

namespace argiope {
namespace detail {
namespace {

bool is_main_thread() noexcept { return ::gettid() == ::getpid(); }

bool has_default_effect(int signal_number) noexcept {
  struct sigaction current {};
  return ::sigaction(signal_number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

// As a shell counts a program that SIGINT ended, and as the command does.
constexpr int kInterruptedStatus = 130;

bool keyboard_interrupt_is_uncaught() noexcept {
  const std::exception_ptr uncaught = std::current_exception();
  if (uncaught == nullptr) return false;
  try {
    std::rethrow_exception(uncaught);
  } catch (const KeyboardInterrupt&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::terminate_handler terminate_before = nullptr;

[[noreturn]] void end_interrupted_or_terminate() {
  if (keyboard_interrupt_is_uncaught()) {
    // No destructors of static objects: the variables of main(), which may use them, are alive.
    std::cout.flush();
    std::fflush(nullptr);
    std::_Exit(kInterruptedStatus);
  }
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

}  // namespace

void throw_keyboard_interrupt() {
  // Once, so that a handler which the program sets later stays.
  [[maybe_unused]] static const bool installed = [] {
    terminate_before = std::set_terminate(end_interrupted_or_terminate);
    return true;
  }();
  throw KeyboardInterrupt();
}

InterruptGuard::InterruptGuard(EventLoop& loop, AnyTask main)
    : loop_(loop), state_(std::make_shared<State>(std::move(main))) {
  if (!is_main_thread() || !has_default_effect(SIGINT)) return;
  loop_.add_signal_handler(SIGINT, [&loop, state = state_] {
    if (!state->main) return;  // it has ended since
    if (++state->count == 1 && state->main.cancel()) return;
    loop.stop();
    loop.remove_signal_handler(SIGINT);
  });
}

InterruptGuard::~InterruptGuard() {
  state_->main = {};
  // The loop's copy of the handler has gone when it was replaced or removed.
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

Runner::Runner(std::unique_ptr<IoBackend> backend) : Runner(*backend) { backend_ = std::move(backend); }

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

// The exceptions of the runtime, under asyncio's names.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace argiope {

// Thrown at the await point of a task that was cancelled. Deliberately no std::runtime_error: code that
// catches "any failure" to retry must not swallow it by accident. Catch it only to clean up, and rethrow.
class CancelledError : public std::exception {
 public:
  explicit CancelledError(std::string message = {}) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.empty() ? "cancelled" : message_.c_str(); }

 private:
  std::string message_;
};

// wait_for or timeout ran out.
class TimeoutError : public std::runtime_error {
 public:
  TimeoutError() : std::runtime_error("timed out") {}
};

// SIGINT ended what a Runner ran. Deliberately no std::runtime_error, as CancelledError.
class KeyboardInterrupt : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// A future was asked for a result it does not have, or given a second one.
class InvalidStateError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class QueueEmpty : public std::runtime_error {
 public:
  QueueEmpty() : std::runtime_error("queue is empty") {}
};

class QueueFull : public std::runtime_error {
 public:
  QueueFull() : std::runtime_error("queue is full") {}
};

// put() after shutdown(), or get() from a queue that was shut down and is empty.
class QueueShutDown : public std::runtime_error {
 public:
  QueueShutDown() : std::runtime_error("queue was shut down") {}
};

// The loop has work that waits for something which nothing left in the program can bring about.
class DeadlockError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace argiope

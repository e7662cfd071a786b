// The exceptions of the runtime, under asyncio's names.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
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

// wait() at a barrier that is broken, or that was broken or reset meanwhile.
class BrokenBarrierError : public std::runtime_error {
 public:
  BrokenBarrierError() : std::runtime_error("barrier is broken") {}
};

// The loop has work that waits for something which nothing left in the program can bring about.
class DeadlockError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A stream ended before all that was asked for had come.
class IncompleteReadError : public std::runtime_error {
 public:
  // `expected`: how many bytes were asked for; none when it was up to a separator.
  IncompleteReadError(std::string partial, std::optional<std::size_t> expected)
      : std::runtime_error("the stream ended after " + std::to_string(partial.size()) + " of " +
                           (expected ? std::to_string(*expected) + " bytes" : "the bytes up to a separator")),
        partial_(std::move(partial)),
        expected_(expected) {}
  // The bytes that did come; they are no longer in the stream.
  const std::string& partial() const noexcept { return partial_; }
  std::optional<std::size_t> expected() const noexcept { return expected_; }

 private:
  std::string partial_;
  std::optional<std::size_t> expected_;
};

// More bytes than the limit came before the separator (or the end). They are still in the stream.
class LimitOverrunError : public std::runtime_error {
 public:
  LimitOverrunError(const std::string& message, std::size_t consumed)
      : std::runtime_error(message), consumed_(consumed) {}
  // How many bytes can be read and dropped without missing the separator.
  std::size_t consumed() const noexcept { return consumed_; }

 private:
  std::size_t consumed_;
};

}  // namespace argiope

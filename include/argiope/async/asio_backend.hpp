// Real time and real sockets, by Boost.Asio's io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "argiope/async/io_backend.hpp"

namespace argiope {

// Timers are kept by the loop, to the microsecond (a timerfd, not epoll's millisecond timeout); the io_context
// runs without locks, so only the loop's own thread may touch it or objects bound to it.
//
// Errors:  the constructors throw std::system_error when descriptors run out.
// Threads: the loop's own, but for wake(), which is also safe in a signal handler.
class AsioBackend final : public IoBackend {
 public:
  // With the machine's clock.
  AsioBackend();
  // `clock` must outlive the backend, so it cannot be a temporary.
  explicit AsioBackend(const Clock& clock);
  explicit AsioBackend(const Clock&&) = delete;
  ~AsioBackend() override;

  const Clock& clock() const noexcept override { return clock_; }
  void poll() override;
  void wait(TimePoint until, bool outside_work) override;
  // While it is watched, `fd` is non-blocking; afterwards it is again as it was found.
  std::unique_ptr<Watch> watch(int fd) override;
  void wake() noexcept override;

  boost::asio::io_context& context() noexcept { return context_; }

  // For a foreign loop that drives ours: a descriptor that is readable (poll it, never read it) when wake() was called
  // or I/O is ready. It tells nothing of timers and of what is ready already: ask next_deadline() for those, before
  // every wait. examples/libuv_loop.hpp shows how. It stays the backend's.
  int wake_up_descriptor();

 private:
  // Null: the machine's.
  explicit AsioBackend(const Clock* clock);
  void watch_wake_up();
  void watch_timer();
  void arm_timer(TimePoint until);

  SystemClock system_clock_;
  const Clock& clock_;
  boost::asio::io_context context_;
  boost::asio::posix::stream_descriptor wake_up_;
  boost::asio::posix::stream_descriptor timer_;
  TimePoint armed_for_ = kNever;
};

}  // namespace argiope

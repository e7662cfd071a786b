#include "argiope/async/asio_backend.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

namespace argiope {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;
using boost::asio::detail::epoll_reactor;

// Asio keeps its epoll descriptor to itself. An explicit instantiation may name a private member, and a Boost without
// this one fails to compile rather than to work.
template <int epoll_reactor::*Member>
struct RevealEpoll {
  friend int epoll_descriptor_of(epoll_reactor& reactor) { return reactor.*Member; }
};
int epoll_descriptor_of(epoll_reactor& reactor);
template struct RevealEpoll<&epoll_reactor::epoll_fd_>;

// A wait that was stopped is not taken back from Asio, which could only take back both directions at once: it is left
// to find nobody, and serves the next start() if that comes first.
class AsioWatch final : public Watch {
 public:
  AsioWatch(boost::asio::io_context& context, int fd) : state_(std::make_shared<State>(context)) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) throw std::system_error(errno, std::system_category(), "watch");
    was_blocking_ = (flags & O_NONBLOCK) == 0;
    boost::system::error_code ec;
    state_->descriptor.assign(fd, ec);
    if (ec) throw std::system_error(ec, "watch");
  }
  ~AsioWatch() override {
    for (Side& side : state_->sides) side.ready = nullptr;
    const int fd = state_->descriptor.release();
    if (was_blocking_) {
      if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0) ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
  }

  void start(Interest interest, std::move_only_function<void()> ready) override {
    Side& side = state_->side(interest);
    side.ready = std::move(ready);
    if (side.armed) return;
    state_->descriptor.async_wait(
        interest == Interest::read ? Descriptor::wait_read : Descriptor::wait_write,
        [state = state_, interest](const boost::system::error_code& ec) { state->on_ready(interest, ec); });
    side.armed = true;
  }
  void stop(Interest interest) noexcept override { state_->side(interest).ready = nullptr; }

 private:
  struct Side {
    std::move_only_function<void()> ready;
    bool armed = false;
  };
  // Shared with the handlers, which Asio keeps beyond the end of the Watch.
  struct State {
    explicit State(boost::asio::io_context& context) : descriptor(context) {}
    Side& side(Interest interest) noexcept { return sides[static_cast<std::size_t>(interest)]; }
    void on_ready(Interest interest, const boost::system::error_code& ec) {
      Side& its = side(interest);
      its.armed = false;
      // Any other error is the descriptor's to tell when it is read or written.
      if (ec == boost::asio::error::operation_aborted || !its.ready) return;
      std::exchange(its.ready, nullptr)();
    }
    Descriptor descriptor;
    std::array<Side, 2> sides;
  };

  std::shared_ptr<State> state_;
  bool was_blocking_ = false;
};

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), what);
  return descriptor;
}

}  // namespace

AsioBackend::AsioBackend() : AsioBackend(static_cast<const Clock*>(nullptr)) {}
AsioBackend::AsioBackend(const Clock& clock) : AsioBackend(&clock) {}
AsioBackend::AsioBackend(const Clock* clock)
    : clock_(clock != nullptr ? *clock : system_clock_),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE),
      wake_up_(context_, checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      timer_(context_, checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")) {
  watch_wake_up();
  watch_timer();
}

AsioBackend::~AsioBackend() = default;

void AsioBackend::watch_wake_up() {
  wake_up_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& ec) {
    if (ec) return;
    std::uint64_t count = 0;
    // A failed read means another wake-up emptied it already: nothing is lost either way.
    [[maybe_unused]] const ssize_t n = ::read(wake_up_.native_handle(), &count, sizeof count);
    watch_wake_up();
  });
}

void AsioBackend::watch_timer() {
  timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& ec) {
    if (ec) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t n = ::read(timer_.native_handle(), &expirations, sizeof expirations);
    armed_for_ = kNever;
    watch_timer();
  });
}

void AsioBackend::arm_timer(TimePoint until) {
  // Relative, because the clock passed in need not share CLOCK_MONOTONIC's epoch. Zero would disarm.
  const Duration left = std::max(until - clock_.now(), Duration{1});
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
  ::timerfd_settime(timer_.native_handle(), 0, &spec, nullptr);
  armed_for_ = until;
}

void AsioBackend::poll() { context_.poll(); }

void AsioBackend::wait(TimePoint until, bool) {
  if (until != kNever && until <= clock_.now()) {
    poll();
    return;
  }
  // An earlier deadline than asked for costs one needless turn of the loop; re-arming at every turn costs more.
  if (until < armed_for_) arm_timer(until);
  context_.run_one();
  context_.poll();
}

std::unique_ptr<Watch> AsioBackend::watch(int fd) { return std::make_unique<AsioWatch>(context_, fd); }

int AsioBackend::wake_up_descriptor() { return epoll_descriptor_of(boost::asio::use_service<epoll_reactor>(context_)); }

void AsioBackend::wake() noexcept {
  const std::uint64_t one = 1;
  // The counter cannot overflow in practice, and a full one is still a pending wake-up.
  [[maybe_unused]] const ssize_t n = ::write(wake_up_.native_handle(), &one, sizeof one);
}

std::unique_ptr<IoBackend> detail::make_real_backend() { return std::make_unique<AsioBackend>(); }

}  // namespace argiope

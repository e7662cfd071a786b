#include "argiope/async/stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "async/socket_address.hpp"
#include "async/stream_state.hpp"

namespace argiope {
namespace detail {
namespace {

constexpr std::size_t kChunk = 64 * 1024;

// A pipe has no MSG_NOSIGNAL, and the process's disposition of SIGPIPE is not ours to change: the signal of this one
// write is held back on this thread and taken away.
ssize_t write_without_sigpipe(int fd, std::string_view bytes) {
  sigset_t pipe_signal;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t count = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  if (count < 0 && error == EPIPE && ::sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec kAtOnce{};
    ::sigtimedwait(&pipe_signal, nullptr, &kAtOnce);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return count;
}

bool would_block(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

// --- ByteBuffer ------------------------------------------------------------------------------------------------

void ByteBuffer::drop(std::size_t count) noexcept {
  taken_ += count;
  if (taken_ == bytes_.size()) {
    // A stream that rests keeps no large block.
    if (bytes_.capacity() > 4096) {
      std::string().swap(bytes_);  // assigning an empty one would keep the block
    } else {
      bytes_.clear();
    }
    taken_ = 0;
  } else if (taken_ > bytes_.size() / 2) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
}

std::string ByteBuffer::take(std::size_t count) {
  std::string taken(view().substr(0, count));
  drop(taken.size());
  return taken;
}

// --- StreamState: reading --------------------------------------------------------------------------------------

StreamState::StreamState(UniqueFd fd, IoBackend& backend, const StreamOptions& options)
    : options_(options), fd_(std::move(fd)) {
  if (options.low_water > options.high_water) throw std::invalid_argument("low_water is at most high_water");
  struct stat status {};
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  if (flags < 0 || ::fstat(fd_.get(), &status) != 0 || ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "stream");
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  watch_ = backend.watch(fd_.get());
}

// The right to read, for one task at a time.
class StreamState::Reading {
 public:
  explicit Reading(StreamState& state) : state_(state) {
    if (state.reading_) throw std::logic_error("another task reads this stream: one at a time");
    state.reading_ = true;
    if (state.ended_) {
      state.ended_ = nullptr;
      if (state.watch_ != nullptr) state.watch_->stop(Interest::read);
    }
  }
  ~Reading() { state_.reading_ = false; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  StreamState& state_;
};

// Where a reader waits, for close() to find it.
class StreamState::WaitingReader {
 public:
  explicit WaitingReader(StreamState& state) noexcept
      : awaiter(*state.watch_, Interest::read), place_(state.waiting_reader_) {
    place_ = &awaiter;
  }
  ~WaitingReader() { place_ = nullptr; }
  WaitingReader(const WaitingReader&) = delete;
  WaitingReader& operator=(const WaitingReader&) = delete;

  WatchAwaiter awaiter;

 private:
  WatchAwaiter*& place_;
};

// Through the stack and not straight into the buffer: a stream then holds as much memory as it holds bytes.
StreamState::Received StreamState::receive() {
  char chunk[kChunk];
  for (;;) {
    const ssize_t count = ::read(fd_.get(), chunk, sizeof chunk);
    if (count > 0) {
      const std::string_view came(chunk, static_cast<std::size_t>(count));
      if (layer_ != nullptr) return receive_through_layer(came);
      input_.append(came);
      return Received::some;
    }
    if (const auto received = after_failed_read(count)) return *received;
  }
}

StreamState::Received StreamState::receive_through_layer(std::string_view came) {
  std::string plain;
  std::string to_peer;
  bool ended = false;
  try {
    ended = layer_->receive(came, plain, to_peer);
  } catch (const std::system_error& error) {
    read_failure_ = error.code();
  }
  // A peer that asks for answers and takes none fills no memory.
  if (!to_peer.empty() && output_.size() > options_.high_water) {
    read_failure_ = std::make_error_code(std::errc::no_buffer_space);
  } else if (!eof_written_ && !closing_) {
    put_out(to_peer);
  }
  input_.append(plain);
  input_ended_ = input_ended_ || ended;
  if (!plain.empty()) return Received::some;
  if (read_failure_) throw std::system_error(read_failure_, "stream");
  return ended ? Received::end : Received::nothing_yet;
}

Coro<void> StreamState::start_layer(Shared self, std::unique_ptr<StreamLayer> layer) {
  const Reading reading(*self);
  self->layer_ = std::move(layer);
  try {
    self->receive_through_layer(self->input_.take(self->input_.size()));
    while (!self->layer_->is_ready()) {
      if (self->input_ended_ || self->closing_) {
        throw std::system_error(std::make_error_code(std::errc::connection_aborted), "stream");
      }
      if (self->receive() != Received::nothing_yet || self->layer_->is_ready()) continue;
      WaitingReader waiting(*self);
      co_await waiting.awaiter;
    }
  } catch (const std::system_error&) {
    self->layer_ = nullptr;
    self->read_failure_ = {};
    throw;
  }
}

StreamState::Received StreamState::receive_onto(std::string& buffer, std::size_t n) {
  char chunk[kChunk];
  const std::size_t most = std::min(n, sizeof chunk);
  for (;;) {
    const ssize_t count = ::read(fd_.get(), chunk, most);
    if (count > 0) {
      was_emptied_ = static_cast<std::size_t>(count) < most;
      buffer.append(chunk, static_cast<std::size_t>(count));
      return Received::some;
    }
    if (const auto received = after_failed_read(count)) return *received;
  }
}

std::optional<StreamState::Received> StreamState::after_failed_read(ssize_t count) {
  if (count == 0) {
    input_ended_ = true;
    return Received::end;
  }
  if (would_block(errno)) return Received::nothing_yet;
  if (errno == EINTR) return std::nullopt;
  read_failure_ = std::error_code(errno, std::generic_category());
  throw std::system_error(read_failure_, "stream");
}

Coro<bool> StreamState::fill() {
  for (;;) {
    // Bytes that are there already must not keep a task running for ever.
    if (!may_go_on()) co_await yield_now();
    if (read_failure_) throw std::system_error(read_failure_, "stream");
    if (input_ended_ || closing_) co_return false;
    const Received received = receive();
    if (received != Received::nothing_yet) co_return received == Received::some;
    WaitingReader waiting(*this);
    co_await waiting.awaiter;
  }
}

Coro<bool> StreamState::read_onto(Shared self, std::string& buffer, std::size_t n) {
  const Reading reading(*self);
  if (n == 0) co_return false;
  for (;;) {
    if (!may_go_on()) co_await yield_now();
    if (!self->input_.empty()) {
      const std::string_view there = self->input_.view().substr(0, n);
      buffer.append(there);
      self->input_.drop(there.size());
      co_return true;
    }
    if (self->read_failure_) throw std::system_error(self->read_failure_, "stream");
    if (self->input_ended_ || self->closing_) co_return false;
    if (!std::exchange(self->was_emptied_, false)) {
      const Received received = self->layer_ != nullptr ? self->receive() : self->receive_onto(buffer, n);
      if (!self->input_.empty()) continue;  // the layer's
      if (received != Received::nothing_yet) co_return received == Received::some;
    }
    WaitingReader waiting(*self);
    co_await waiting.awaiter;
  }
}

void StreamState::when_ended(std::move_only_function<void()> ended) {
  if (reading_) throw std::logic_error("when_ended() while a task reads");
  ended_ = std::move(ended);
  if (watch_ == nullptr) return;
  if (ended_) {
    read_ahead();
  } else {
    watch_->stop(Interest::read);
  }
}

void StreamState::read_ahead() {
  watch_->start(Interest::read, [this] {
    was_emptied_ = false;
    Received received = Received::end;
    try {
      received = receive();
    } catch (const std::exception&) {
      // The connection's trouble is there for the next read to throw.
    }
    if (received == Received::end) {
      auto ended = std::exchange(ended_, nullptr);
      ended();
    } else if (input_.size() < kChunk) {
      read_ahead();
    }
  });
}

Coro<std::string> StreamState::read(Shared self, std::size_t n) {
  const Reading reading(*self);
  if (n == 0) co_return std::string();
  if (self->input_.empty()) {
    co_await self->fill();
  } else if (!may_go_on()) {
    co_await yield_now();
  }
  co_return self->input_.take(n);
}

Coro<std::string> StreamState::read_all(Shared self, std::size_t limit) {
  const Reading reading(*self);
  do {
    if (self->input_.size() > limit) {
      throw LimitOverrunError(fmt::format("the stream is longer than {} bytes", limit), limit);
    }
  } while (co_await self->fill());
  co_return self->input_.take(self->input_.size());
}

Coro<std::string> StreamState::read_exactly(Shared self, std::size_t n) {
  const Reading reading(*self);
  if (!may_go_on()) co_await yield_now();
  while (self->input_.size() < n) {
    if (!co_await self->fill()) throw IncompleteReadError(self->input_.take(self->input_.size()), n);
  }
  co_return self->input_.take(n);
}

Coro<std::string> StreamState::read_until(Shared self, std::string separator, std::size_t limit) {
  if (separator.empty()) throw std::invalid_argument("read_until needs a separator of one byte or more");
  const Reading reading(*self);
  if (!may_go_on()) co_await yield_now();
  // No separator starts before this.
  std::size_t searched = 0;
  for (;;) {
    const std::string_view bytes = self->input_.view();
    const std::size_t found = bytes.find(separator, searched);
    if (found != std::string_view::npos) {
      if (found > limit) {
        throw LimitOverrunError(fmt::format("{} bytes before the separator, limit {}", found, limit), found);
      }
      co_return self->input_.take(found + separator.size());
    }
    if (bytes.size() >= separator.size()) searched = bytes.size() - separator.size() + 1;
    if (searched > limit) {
      throw LimitOverrunError(fmt::format("no separator within {} bytes", limit), searched);
    }
    if (!co_await self->fill()) throw IncompleteReadError(self->input_.take(self->input_.size()), std::nullopt);
  }
}

Coro<std::string> StreamState::read_line(Shared self) {
  try {
    co_return co_await read_until(self, "\n", self->options_.limit);
  } catch (const IncompleteReadError& error) {
    co_return error.partial();
  } catch (const LimitOverrunError& error) {
    const bool found = self->input_.view().substr(error.consumed()).starts_with('\n');
    self->input_.drop(error.consumed() + (found ? 1 : 0));
    throw;
  }
}

// --- StreamState: writing --------------------------------------------------------------------------------------

void StreamState::write(std::string_view bytes) {
  if (eof_written_) throw std::logic_error("write() after write_eof()");
  if (closing_) throw std::logic_error("write() on a stream that was closed");
  if (bytes.empty() || write_failure_) return;
  if (bytes.size() > options_.write_limit || output_.size() > options_.write_limit - bytes.size()) {
    throw std::length_error(fmt::format("{} bytes unsent and {} more: over the write_limit of {}; await drain()",
                                        output_.size(), bytes.size(), options_.write_limit));
  }
  layer_ != nullptr ? write_through_layer(bytes) : put_out(bytes);
}

void StreamState::write_through_layer(std::string_view bytes) {
  std::string to_peer;
  try {
    layer_->send(bytes, to_peer);
  } catch (const std::system_error& error) {
    write_failure_ = error.code();
    return;
  }
  put_out(to_peer);
}

void StreamState::put_out(std::string_view bytes) {
  if (write_failure_ || fd_.get() < 0) return;
  const bool idle = output_.empty();
  if (idle) bytes.remove_prefix(send(bytes));
  if (bytes.empty() || write_failure_) return;
  output_.append(bytes);
  if (output_.size() > options_.high_water) may_write_.clear();
  if (idle) send_when_writable();
}

std::size_t StreamState::send(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const std::string_view rest = bytes.substr(sent);
    const ssize_t count =
        is_socket_ ? ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL) : write_without_sigpipe(fd_.get(), rest);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      if (!would_block(errno)) write_failure_ = std::error_code(errno, std::generic_category());
      break;
    }
  }
  return sent;
}

void StreamState::send_when_writable() {
  watch_->start(Interest::write, [this] { flush(); });
}

void StreamState::flush() {
  output_.drop(send(output_.view()));
  if (write_failure_) output_.clear();
  if (output_.size() <= options_.low_water) may_write_.set();
  if (output_.empty()) {
    output_is_empty();
  } else {
    send_when_writable();
  }
}

void StreamState::output_is_empty() {
  if (closing_ || (eof_written_ && !is_socket_)) {
    closing_ = true;
    shut();
  } else if (eof_written_) {
    ::shutdown(fd_.get(), SHUT_WR);  // fails only where the peer has gone, which the next read tells
  }
}

void StreamState::write_eof() {
  if (eof_written_ || closing_) return;
  end_layer();
  eof_written_ = true;
  if (output_.empty()) output_is_empty();
}

Coro<void> StreamState::drain(Shared self) {
  co_await self->may_write_.wait();
  if (self->write_failure_) throw std::system_error(self->write_failure_, "stream");
}

// --- StreamState: the end --------------------------------------------------------------------------------------

void StreamState::end_layer() noexcept {
  if (layer_ == nullptr || eof_written_) return;
  std::string to_peer;
  layer_->end(to_peer);
  put_out(to_peer);
}

void StreamState::close() {
  if (closing_) return;
  end_layer();
  closing_ = true;
  if (waiting_reader_ != nullptr) waiting_reader_->wake();
  if (output_.empty()) shut();
}

void StreamState::abort() {
  if (!output_.empty()) {
    output_.clear();
    write_failure_ = std::make_error_code(std::errc::connection_aborted);
  }
  closing_ = true;
  if (waiting_reader_ != nullptr) waiting_reader_->wake();
  shut();
}

void StreamState::shut() noexcept {
  watch_.reset();
  fd_.reset();
  may_write_.set();
  closed_.set();
}

Coro<void> StreamState::wait_closed(Shared self) {
  co_await self->closed_.wait();
  if (self->write_failure_) throw std::system_error(self->write_failure_, "stream");
}

Coro<void> StreamState::connected(Shared self) {
  for (;;) {
    {
      WatchAwaiter writable(*self->watch_, Interest::write);
      co_await writable;
    }
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(self->fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) throw std::system_error(error, std::generic_category());
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    if (::getpeername(self->fd(), peer.get(), &peer.size) == 0) co_return;
  }
}

}  // namespace detail

// --- Stream ----------------------------------------------------------------------------------------------------

using detail::SocketAddress;
using detail::StreamState;

namespace {

std::string name_of(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  SocketAddress address;
  address.size = sizeof address.storage;
  return ask(fd, address.get(), &address.size) == 0 ? address.name() : "";
}

}  // namespace

Stream::Stream(int fd, const StreamOptions& options) {
  detail::UniqueFd owner(fd);
  state_ = std::make_shared<StreamState>(std::move(owner), EventLoop::current().backend(), options);
}
Stream::Stream(std::shared_ptr<StreamState> state) noexcept : state_(std::move(state)) {}
Stream::Stream(Stream&& other) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (state_) state_->abort();
    state_ = std::move(other.state_);
  }
  return *this;
}
Stream::~Stream() {
  if (state_) state_->abort();
}

const std::shared_ptr<StreamState>& Stream::shared_state() const {
  if (!state_) throw std::logic_error("this Stream is empty: it was moved from, or never opened");
  return state_;
}
StreamState& Stream::state() const { return *shared_state(); }

Coro<std::string> Stream::read(std::size_t n) { return StreamState::read(shared_state(), n); }
Coro<std::string> Stream::read_all(std::size_t limit) { return StreamState::read_all(shared_state(), limit); }
Coro<std::string> Stream::read_exactly(std::size_t n) { return StreamState::read_exactly(shared_state(), n); }
Coro<std::string> Stream::read_until(std::string separator, std::optional<std::size_t> limit) {
  return StreamState::read_until(shared_state(), std::move(separator), limit.value_or(state().options().limit));
}
Coro<std::string> Stream::read_line() { return StreamState::read_line(shared_state()); }
Coro<bool> Stream::read_onto(std::string& buffer, std::size_t n) {
  return StreamState::read_onto(shared_state(), buffer, n);
}
void Stream::when_ended(std::move_only_function<void()> ended) { state().when_ended(std::move(ended)); }
Coro<void> Stream::start_layer(std::unique_ptr<detail::StreamLayer> layer) {
  return StreamState::start_layer(shared_state(), std::move(layer));
}
bool Stream::at_eof() const { return state().at_eof(); }
void Stream::write(std::string_view bytes) { state().write(bytes); }
Coro<void> Stream::drain() { return StreamState::drain(shared_state()); }
void Stream::write_eof() { state().write_eof(); }
std::size_t Stream::write_buffer_size() const { return state().unsent(); }
void Stream::close() { state().close(); }
void Stream::abort() { state().abort(); }
bool Stream::is_closing() const { return state().is_closing(); }
Coro<void> Stream::wait_closed() { return StreamState::wait_closed(shared_state()); }
std::string Stream::peer_name() const { return name_of(native_handle(), &::getpeername); }
std::string Stream::local_name() const { return name_of(native_handle(), &::getsockname); }
int Stream::native_handle() const { return state().fd(); }

}  // namespace argiope

// The inside of a Stream: the descriptor, the bytes not taken yet, and the bytes not sent yet. Shared by
// the Stream and by the coroutines that read and drain, so that a Stream may be destroyed while a task waits at it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "async/internal/stream_layer.hpp"
#include "async/unique_fd.hpp"

namespace argiope::detail {

// Bytes appended at the back and taken from the front.
class ByteBuffer {
 public:
  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept { return bytes_.size() - taken_; }
  std::string_view view() const noexcept { return std::string_view(bytes_).substr(taken_); }
  void append(std::string_view bytes) { bytes_.append(bytes); }
  void drop(std::size_t count) noexcept;
  std::string take(std::size_t count);
  void clear() noexcept { drop(size()); }

 private:
  std::string bytes_;
  std::size_t taken_ = 0;
};

class StreamState {
 public:
  using Shared = std::shared_ptr<StreamState>;

  StreamState(UniqueFd fd, IoBackend& backend, const StreamOptions& options);
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  static Coro<std::string> read(Shared self, std::size_t n);
  static Coro<std::string> read_all(Shared self, std::size_t limit);
  static Coro<std::string> read_exactly(Shared self, std::size_t n);
  static Coro<std::string> read_until(Shared self, std::string separator, std::size_t limit);
  static Coro<std::string> read_line(Shared self);
  static Coro<bool> read_onto(Shared self, std::string& buffer, std::size_t n);
  void when_ended(std::move_only_function<void()> ended);
  static Coro<void> start_layer(Shared self, std::unique_ptr<StreamLayer> layer);
  static Coro<void> drain(Shared self);
  static Coro<void> wait_closed(Shared self);
  // Suspends until connect(), which was begun, has ended; throws std::system_error when it failed.
  static Coro<void> connected(Shared self);

  bool at_eof() const noexcept { return input_.empty() && (input_ended_ || closing_); }
  void write(std::string_view bytes);
  void write_eof();
  void close();
  void abort();
  bool is_closing() const noexcept { return closing_; }
  std::size_t unsent() const noexcept { return output_.size(); }
  int fd() const noexcept { return fd_.get(); }
  const StreamOptions& options() const noexcept { return options_; }

 private:
  class Reading;
  class WaitingReader;
  enum class Received : std::uint8_t { some, nothing_yet, end };

  [[gnu::noinline]] Received receive();  // its large buffer belongs on the stack, not in a coroutine's frame
  // The same onto a buffer of the caller's, `n` bytes at most.
  [[gnu::noinline]] Received receive_onto(std::string& buffer, std::size_t n);
  // The layer's reading of bytes that came; its failure is noted in read_failure_, and thrown when they said nothing.
  Received receive_through_layer(std::string_view came);
  // Ends the layer: what is written from now on it does not see.
  void end_layer() noexcept;
  // The meaning of a read that failed or gave nothing; nullopt: try again.
  std::optional<Received> after_failed_read(ssize_t count);
  // False at the end of the stream.
  Coro<bool> fill();
  // Nobody reads: what comes is kept, and the end is told to ended_.
  void read_ahead();
  void write_through_layer(std::string_view bytes);
  // Sends or keeps them.
  void put_out(std::string_view bytes);
  // How much of `bytes` the kernel took. A failure is noted in write_failure_.
  std::size_t send(std::string_view bytes);
  void send_when_writable();
  void flush();
  void output_is_empty();
  void shut() noexcept;

  const StreamOptions options_;
  UniqueFd fd_;
  // Goes before the descriptor does.
  std::unique_ptr<Watch> watch_;
  bool is_socket_ = false;
  std::unique_ptr<StreamLayer> layer_;  // null: bytes go as they are

  ByteBuffer input_;
  std::error_code read_failure_;
  WatchAwaiter* waiting_reader_ = nullptr;
  bool reading_ = false;
  bool input_ended_ = false;
  // The last read took all there was: wait before reading again.
  bool was_emptied_ = false;
  std::move_only_function<void()> ended_;

  ByteBuffer output_;
  std::error_code write_failure_;
  Event may_write_{true};
  bool eof_written_ = false;
  bool closing_ = false;
  Event closed_;
};

}  // namespace argiope::detail

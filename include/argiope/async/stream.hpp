// Streams of bytes over TCP, Unix sockets and pipes, with asyncio's names and rules: open_connection, start_server, and
// a Stream that is StreamReader and StreamWriter in one.
//
// They stand on IoBackend::watch, so they run on every backend with real I/O. Addresses, names and the kernel's calls
// are in src/async/stream.cpp. Not here: TLS, which is a layer that a stream is given, and HTTP (see web/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/async/errors.hpp"
#include "argiope/async/event_loop.hpp"

namespace argiope {

class ThreadPoolExecutor;

namespace detail {
class StreamLayer;
class StreamState;
class ServerState;
}  // namespace detail

// All in bytes.
struct StreamOptions {
  // How long a line may be, and what comes before a separator when read_until is given no other limit.
  std::size_t limit = 64 * 1024;
  // drain() waits when more than high_water is unsent, until it is low_water or less.
  std::size_t high_water = 64 * 1024;
  std::size_t low_water = 16 * 1024;
  // Unsent bytes that write() takes at most: for who forgets to drain().
  std::size_t write_limit = 16 * 1024 * 1024;
  // Where open_connection looks up host names (getaddrinfo blocks); null: the loop's default executor. Must outlive the
  // call.
  ThreadPoolExecutor* resolver = nullptr;
};

// A connection, or one end of a pipe.
//
// Reading:  one task at a time; nothing is read ahead of being asked for, but for 64 KiB at a time. Bytes that came and
//           were not taken stay, whatever is thrown.
// Writing:  write() never waits: what the kernel does not take is kept and sent in the background. Await drain() after
//           it, or memory grows up to write_limit.
// Errors:   std::system_error as the kernel has it (connection_reset, broken_pipe) from reads, drain() and
//           wait_closed(); a write that failed leaves what the peer said last to be read. std::logic_error: a second
//           task reads at the same time, write() after write_eof() or close(), a Stream that was moved from.
// Cancel:   every wait throws CancelledError and loses no byte: what had come is there for the next read, and what was
//           written is sent.
// Lifetime: destroying it is abort(): unsent bytes are dropped, and a task that still waits here is woken, as by the
//           end of the stream. For an orderly end: close(), then wait_closed(). Destroy it before the backend.
// Threads:  the loop's own.
class Stream {
 public:
  Stream() = default;
  // Takes `fd`, a connected stream socket or an end of a pipe, for the loop that is running on this thread, and makes
  // it non-blocking. Throws std::invalid_argument for water marks out of order; whatever it throws, `fd` is closed.
  explicit Stream(int fd, const StreamOptions& options = {});
  explicit Stream(std::shared_ptr<detail::StreamState> state) noexcept;
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();
  explicit operator bool() const noexcept { return state_ != nullptr; }

  // At least one byte and at most `n`; empty only at the end of the stream, or for n = 0.
  // Suspends: when nothing has come.
  Coro<std::string> read(std::size_t n);
  // All up to the end of the stream. LimitOverrunError when that is more than `limit` bytes; they stay.
  Coro<std::string> read_all(std::size_t limit);
  // Exactly `n` bytes. IncompleteReadError when the stream ends before.
  Coro<std::string> read_exactly(std::size_t n);
  // All up to and with `separator`. `limit` bounds what comes before it.
  // Errors: IncompleteReadError when the stream ends before; LimitOverrunError; std::invalid_argument for an empty
  //         separator.
  Coro<std::string> read_until(std::string separator = "\n", std::optional<std::size_t> limit = {});
  // Up to and with the next "\n", or what is left at the end. A line over the limit is dropped, as far as it has come,
  // and LimitOverrunError thrown, so that one may read on.
  Coro<std::string> read_line();
  // Appends at least one byte and at most `n` to `buffer`; false only at the end of the stream, or for n = 0. For who
  // asks again and again and then mostly has to wait: it saves the system call that would find nothing.
  Coro<bool> read_onto(std::string& buffer, std::size_t n);
  // True when the end has been reached and everything before it was read.
  bool at_eof() const;
  // For who does something else than reading: calls `ended` once, from the loop, when the peer has ended its side or
  // the connection is broken. The next read takes that back, and so does when_ended({}). Data that comes meanwhile is
  // there for that read; behind 64 KiB of it the end is not seen. `ended` must not throw, and may destroy the stream.
  void when_ended(std::move_only_function<void()> ended);

  // Errors: std::length_error when unsent bytes would exceed write_limit; nothing of `bytes` is taken then. On a broken
  //         connection it does nothing: drain() tells.
  void write(std::string_view bytes);
  // Suspends while too much is unsent (StreamOptions::high_water).
  Coro<void> drain();
  // No more will be written: the peer sees the end of the stream after what was written. A pipe is closed.
  void write_eof();
  // How many bytes are unsent.
  std::size_t write_buffer_size() const;

  // Refuses more writes, ends a read that waits as at the end of the stream, and closes the descriptor when everything
  // is sent. May be called twice.
  void close();
  // As close(), but drops what is unsent.
  void abort();
  bool is_closing() const;
  // Suspends until the descriptor is closed. Throws when something was written that could not be sent.
  Coro<void> wait_closed();

  // Puts a layer such as TLS between this stream and its socket (async/internal/stream_layer.hpp): what is read and
  // written from now on is what the layer makes of it, close() ends the layer first, and unsent bytes are counted as
  // they are sent.
  // Suspends: until the layer is ready, which takes what the peer sends. Nothing is written meanwhile.
  // Errors:   std::system_error: what the layer throws; connection_aborted when the stream ends before. The stream then
  //           has no layer, and what is written goes to the peer as it is.
  // Cancel:   throws CancelledError; nothing but abort() makes sense then.
  Coro<void> start_layer(std::unique_ptr<detail::StreamLayer> layer);

  // "127.0.0.1:80", "[::1]:80", "unix:/run/x", or "" where there is no such name.
  std::string peer_name() const;
  std::string local_name() const;
  // The descriptor, for socket options; -1 when closed. It stays the stream's.
  int native_handle() const;

 private:
  detail::StreamState& state() const;
  const std::shared_ptr<detail::StreamState>& shared_state() const;
  std::shared_ptr<detail::StreamState> state_;
};

// Connects to a host, trying its addresses in turn; TCP_NODELAY is set. Names other than addresses and "localhost" are
// looked up on a thread, see StreamOptions::resolver.
// Errors: std::system_error of the first address, when none answers; std::invalid_argument for an empty host;
//         std::runtime_error for a name that cannot be resolved.
// Cancel: the connection is given up; a look-up that is under way ends unheard.
Coro<Stream> open_connection(std::string host, std::uint16_t port, StreamOptions options = {});
// `path` may start with a null byte, for Linux's abstract names.
// Errors: std::system_error; std::invalid_argument for a path too long for a socket (107 bytes), or with a null byte
//         further on.
Coro<Stream> open_unix_connection(std::string path, StreamOptions options = {});

// Talks to one client. The stream is closed after it, when everything it wrote is sent; to keep the stream for longer,
// move it away. An exception of it goes to the loop's exception handler.
using ConnectionHandler = std::function<Coro<void>(Stream& stream)>;

struct ServerOptions {
  StreamOptions stream;
  // Further clients wait, unaccepted, until one of these has gone.
  std::size_t max_connections = 1000;
  // Clients the kernel lets wait.
  int backlog = 100;
};

// The result of start_server: accepts clients until closed or destroyed, each served by a task of its own. Their tasks
// run on after that.
// Threads: the loop's own. Close or destroy it before its loop.
class Server {
 public:
  Server() = default;
  explicit Server(std::shared_ptr<detail::ServerState> state) noexcept;
  Server(Server&& other) noexcept;
  Server& operator=(Server&& other) noexcept;
  ~Server();

  bool is_serving() const noexcept;
  // Where it listens, as Stream::local_name(); the port alone is 0 for a Unix socket. They stay when it is closed.
  const std::string& name() const;
  std::uint16_t port() const;
  // Clients being served.
  std::size_t connections() const;

  // Takes no more clients. Those being served are not disturbed. May be called twice.
  void close();
  // Closes (aborts) the streams of all that are being served.
  void close_clients();
  void abort_clients();
  // Suspends until it is closed and every client has been served.
  Coro<void> wait_closed();
  // Suspends until closed. Cancel: closes, waits until every client has been served, and throws CancelledError.
  Coro<void> serve_forever();

 private:
  detail::ServerState& state() const;
  std::shared_ptr<detail::ServerState> state_;
};

// Listens on an address of this machine ("localhost": 127.0.0.1; "0.0.0.0" or "::": all), at `port` (0: a free one),
// for the loop that is running on this thread. Unlike asyncio's it does not suspend. Running out of descriptors is
// told to the loop's exception handler, and accepting goes on a second later.
// Errors: std::system_error (address in use, no permission); std::invalid_argument for what is no address.
Server start_server(ConnectionHandler handler, const std::string& host, std::uint16_t port,
                    const ServerOptions& options = {});
// Takes `fd`, a socket that listens already: one that a supervisor such as systemd keeps open while programs come and
// go. Where it is a Unix socket, its path stays. `options.backlog` is the socket's own affair.
// Errors: std::invalid_argument for a socket that does not listen; std::system_error. Whatever it throws, `fd` is
// closed.
Server start_server(ConnectionHandler handler, int fd, const ServerOptions& options = {});
// As above, at a path. A socket that nobody answers at is replaced, and ours is removed when the server is closed.
// `PATH.lock` beside it is locked meanwhile. Errors also: std::system_error, address in use, where another server
// answers.
Server start_unix_server(ConnectionHandler handler, const std::string& path, const ServerOptions& options = {});

}  // namespace argiope

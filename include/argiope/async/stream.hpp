// Input and output: descriptors that can be read or written, streams of bytes, and other programs.
#pragma once

#include <sys/types.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// Waiting until a descriptor can be read or written: readable() and writable(), and what streams and processes wait by.
// For a callback instead of a task see EventLoop::add_reader.

namespace detail {

// Waits by a Watch that its owner keeps. One wait at a time for each interest.
struct WatchAwaiter : Waiter {
  WatchAwaiter(Watch& watch, Interest interest) noexcept : watch_(&watch), interest_(interest) {
    on_cancel = [](Waiter& self) {
      static_cast<WatchAwaiter&>(self).stop();
      self.target.task()->wake_cancelled(self);
    };
  }
  ~WatchAwaiter() { stop(); }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    watch_->start(interest_, [this] { wake(); });
    waiting_ = true;
    task.park(self, *this);
  }
  void await_resume() const {
    if (!woken_) throw_cancelled_wait();
    this_thread.task->check_cancelled();
  }
  // Ends the wait as if the descriptor were ready; for an owner who is about to destroy the Watch.
  void wake() noexcept {
    if (!waiting_) return;
    stop();
    woken_ = true;
    wake_task(*this);
  }

 private:
  void stop() noexcept {
    if (std::exchange(waiting_, false)) watch_->stop(interest_);
  }

  Watch* watch_;
  Interest interest_;
  bool waiting_ = false;
  bool woken_ = false;  // told apart from being cancelled
};

// Waits by a Watch of the loop's, which lasts no longer than the wait.
struct DescriptorAwaiter : Waiter {
  DescriptorAwaiter(int fd, Interest interest) noexcept : fd_(fd), interest_(interest) {
    on_cancel = [](Waiter& self) {
      static_cast<DescriptorAwaiter&>(self).give_up();
      self.target.task()->wake_cancelled(self);
    };
  }
  // Before it is awaited.
  DescriptorAwaiter(DescriptorAwaiter&& other) noexcept : DescriptorAwaiter(other.fd_, other.interest_) {}
  ~DescriptorAwaiter() { give_up(); }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    Watch& watch = this_thread.loop->claim(fd_, interest_);
    loop_ = this_thread.loop;
    watch.start(interest_, [this] {
      give_up();
      woken_ = true;
      wake_task(*this);
    });
    task.park(self, *this);
  }
  void await_resume() const {
    if (!woken_) throw_cancelled_wait();
    this_thread.task->check_cancelled();
  }

 private:
  void give_up() noexcept {
    if (EventLoop* loop = std::exchange(loop_, nullptr)) loop->give_up(fd_, interest_);
  }

  int fd_;
  Interest interest_;
  EventLoop* loop_ = nullptr;
  bool woken_ = false;
};

}  // namespace detail

// co_await readable(fd) returns when a read from `fd` would not block: there are bytes, a connection to accept, the end
// of the input, a hang-up or an error, which the read then tells of. Likewise writable(fd) for a write. A file on disk
// always is both.
//
// Suspends: always.
// Errors:   std::system_error when `fd` is not open, or is watched already; std::logic_error when another task
//           or a reader (writer) of this loop waits for the same, and on a backend without I/O (virtual time).
// Cancel:   throws CancelledError; nothing is read or written, so nothing can be lost.
// Lifetime: `fd` stays the caller's, who closes it only when no task waits for it. While waited for it is non-blocking.
// Threads:  the loop's own.
inline detail::DescriptorAwaiter readable(int fd) noexcept { return {fd, Interest::read}; }
inline detail::DescriptorAwaiter writable(int fd) noexcept { return {fd, Interest::write}; }

// Streams of bytes over TCP, Unix sockets and pipes, with asyncio's names and rules: open_connection, start_server, and
// a Stream that is StreamReader and StreamWriter in one.
//
// They stand on IoBackend::watch, so they run on every backend with real I/O. Addresses, names and the kernel's calls
// are in src/async/stream.cpp. Not here: TLS, which is a layer that a stream is given, and HTTP (see web/).

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

// Other programs: create_subprocess_exec, with asyncio's names and rules. Their pipes are Streams.
//
// A child is held by a pidfd, so that no signal can reach a stranger that got its number, and neither SIGCHLD nor a
// thread is needed.

namespace detail {
class ProcessState;
}

// The kind of one of the child's standard descriptors. `to_stdout` is for stderr only.
enum class Stdio : std::uint8_t { inherit, pipe, devnull, to_stdout };

struct SubprocessOptions {
  Stdio in = Stdio::inherit;
  Stdio out = Stdio::inherit;
  Stdio err = Stdio::inherit;
  // "NAME=value" each; none: as ours. The program is looked for in our own PATH.
  std::optional<std::vector<std::string>> environment;
  // Empty: ours. A relative name of the program counts from here.
  std::string working_directory;
  // Makes the child the leader of a new session, out of reach of our terminal's signals.
  bool new_session = false;
  // The child and all that descend from it end together, and with us, however we end (SIGKILL included): a small
  // process between us and the child adopts what the child leaves behind, children that have left its session or have
  // forked twice included, and kills it all when we are gone. The child leads a session of its own; signals go to its
  // process group. When it has ended after SIGTERM, what is left of its tree is killed; SIGKILL kills all of the tree.
  // A child that ends by itself may leave others behind on purpose: wait() waits for those, too; communicate() lets
  // them live. It does not hold for what others start on the child's behalf (systemd-run, at, docker), nor for a
  // descendant that has changed its user; and when the small process itself is killed, only the child dies with it.
  // Takes two descriptors more while the child runs.
  bool supervised = false;
  // For the pipes.
  StreamOptions stream;
};

struct ProcessOutput {
  std::string out;
  std::string err;
};

// A child process. It is reaped as soon as it ends while the loop runs, whether or not a task waits.
//
// Lifetime: destroying it kills (SIGKILL) a child that still runs, and blocks for the moment until that has ended: so
//           neither a zombie nor a process without an owner is left, even when the loop is destroyed first. (Only a
//           child that changed its user, and that we may not kill, is left.) Destroy it before the backend.
// Threads:  the loop's own.
class Process {
 public:
  explicit Process(std::shared_ptr<detail::ProcessState> state) noexcept;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // The child's own, supervised or not.
  pid_t pid() const;
  // The exit status, or minus the signal that ended it; none while it runs. As asyncio, 255 when other code took the
  // status away (a waitpid(-1), SIGCHLD ignored).
  std::optional<int> returncode() const;

  // Our ends of its pipes. std::logic_error for what is no pipe.
  Stream& in();
  Stream& out();
  Stream& err();

  // Suspends until the child has ended; any number of tasks. Gives returncode().
  // A child that writes to a pipe without a reader never ends: use communicate() then.
  // Cancel: leaves the child as it is.
  Coro<int> wait();
  // Writes `input` and closes the child's stdin, reads its stdout and stderr to the end, and waits for it; "" for what
  // is no pipe. A child that does not read all of its input is no error.
  // Errors: LimitOverrunError when one of them is longer than `limit` bytes; std::logic_error for input without a pipe.
  //         The child runs on.
  // Cancel: leaves the child as it is, and what it wrote in the streams; what of the input was sent is unknown.
  Coro<ProcessOutput> communicate(std::string input = {}, std::size_t limit = 64 * 1024 * 1024);

  // The same, into `output` as it comes, for who looks at it meanwhile or wants what came before an error or a
  // cancellation.
  Coro<void> communicate(std::string input, ProcessOutput& output, std::size_t limit);

  // Errors: std::system_error no_such_process when it has ended; invalid_argument for what is no signal.
  void send_signal(int signal_number);
  // SIGTERM, SIGKILL.
  void terminate();
  void kill();

 private:
  detail::ProcessState& state() const;
  std::shared_ptr<detail::ProcessState> state_;
};

// Starts the program `args[0]`, found in PATH unless it has a slash, for the loop that is running on this thread.
// The child has default signal dispositions, no signal blocked, and no descriptor beyond its three.
//
// Suspends: never, unlike asyncio's; blocks until the program has been loaded.
// Errors:   std::system_error when it cannot be started (not found, no permission, no such directory);
//           std::invalid_argument for no arguments, or a null byte in any text.
Process create_subprocess_exec(const std::vector<std::string>& args, const SubprocessOptions& options = {});
// The same for a command line of /bin/sh. Never put into it what came from outside.
Process create_subprocess_shell(const std::string& command, const SubprocessOptions& options = {});

// Raises the soft limit of open files to the hard one, and gives it. Supervised children have the limit that was
// before.
// Threads: before others start.
std::size_t raise_open_files_limit() noexcept;

// The program that create_subprocess_exec would run: `name` itself when it has a slash (a relative one counts from
// `directory`, or ours), or where it lies in PATH.
// Errors: not_found, as a sentence that says whether it is not there, a directory, or not executable.
Result<std::string> find_program(const std::string& name, const std::string& directory = {});

}  // namespace argiope

// One client of an HttpServer: reads its requests, runs the handler, sends the answers; and what all connections share.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "argiope/web/http_server.hpp"
#include "async/internal/server_set.hpp"
#include "web/server/http_request_reader.hpp"

namespace argiope::detail {

class HttpConnection;

// The core that a server and its connections share; the connections may outlive the server.
class HttpServerCore {
 public:
  HttpServerCore(HttpHandler its_handler, HttpServerOptions its_options)
      : handler(std::move(its_handler)),
        options(std::move(its_options)),
        servers("an HTTP server", {.max_connections = options.max_connections, .backlog = options.backlog}) {}

  const HttpHandler handler;
  const HttpServerOptions options;
  ServerSet servers;
  IntrusiveList<HttpConnection> connections;  // those behind that have been of use last
  std::size_t connection_count = 0;
  std::size_t bodies_bytes = 0;  // that are held
  std::uint64_t requests = 0;
  bool stopping = false;
  Event stop_asked;

  // As in the Date field.
  const std::string& date();
  // Where too many connections are open, closes one that waits for its client.
  void make_room() noexcept;

 private:
  std::int64_t date_second_ = -1;
  std::string date_;
};

// Everything it waits for is awaited by guarded(), and ended from outside by interrupt(): by its one timer, by the
// client that leaves, by the server that stops. That cancels its task, and guarded() takes the cancellation back.
class HttpConnection : public ListHook {
 public:
  // Both must outlive it; `stream` is closed at the end of serve(), in order or not.
  HttpConnection(HttpServerCore& core, Stream& stream);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // To be called once, in a task that does nothing else.
  Coro<void> serve();

  // The server stops: closes the connection if it has no request, or has answered its last.
  void stop_when_idle() noexcept;
  // Closes it, if it waits for a request, or for the rest of its head. Whether it does.
  bool give_way() noexcept;
  // Its time is up: what it is doing is cancelled.
  void stop_now() noexcept { interrupt(Interrupt::stopped); }

  // For BodyWriter.
  Coro<void> write_piece(std::string_view piece);
  bool server_stops() const noexcept { return core_.stopping; }

 private:
  enum class Interrupt : std::uint8_t { none, timeout, client_left, stopped };
  // The thing that it waits for, and so what its deadline means.
  enum class Phase : std::uint8_t { starting, handshake, idle, head, body, handling, sending, closing };

  // --- interrupting

  // Awaits `work`; says by which interrupt it was ended, if it was.
  // Errors: what `work` throws, and CancelledError when another cancelled the task.
  Coro<Interrupt> guarded(Coro<void> work);
  void interrupt(Interrupt why) noexcept;
  // From `when` on the timer interrupts. Moving it back and forth costs nothing.
  void set_deadline(TimePoint when);
  void on_timer();

  // Whether the task has been, by whomever.
  bool was_cancelled() const noexcept;

  // Agrees on TLS, where it is wanted. False: the connection is to be closed.
  Coro<bool> secure();

  // --- a request

  // One request and its answer; false when the connection is to be closed.
  Coro<bool> exchange();
  // Until it is complete or refused, or no more comes.
  Coro<void> read_request();
  void enter_reading_phase();
  // With a problem, after which the connection is closed.
  void refuse(int status, std::string_view detail);
  // An answer that is the server's own.
  ServerResponse own_answer(int status, std::string_view detail) const;
  void refuse_with(ServerResponse response);
  // Once the head has come, and some of the body is to come: whether that is wanted.
  bool is_body_wanted();
  void count_body(std::size_t held) noexcept;

  // --- its answer

  // Sets the answer; false when there is nobody to answer.
  Coro<bool> ask_handler();
  Coro<void> run_handler();
  // False when the connection is to be closed.
  Coro<bool> send_answer();
  void forget_answer();
  // Throws std::invalid_argument when the answer cannot be sent.
  void append_head();
  bool has_body_to_send() const noexcept;
  // False when it could not be sent whole.
  Coro<bool> send_body();
  Coro<void> send_whole_body();
  Coro<void> run_stream();
  void report(const std::exception_ptr& failure) noexcept;

  // --- sending

  void give(std::string_view bytes);
  void flush();
  // When all that is ready now has run.
  void flush_soon();
  bool is_choked() const { return stream_.write_buffer_size() > kMostUnsent; }
  // Until the client has taken most of what it was given. Throws std::system_error when it has gone.
  Coro<void> drain();
  void expect_progress();
  // In order; or, where the client does not let it, not.
  Coro<void> close();
  Coro<void> read_and_drop();

  // Unsent bytes beyond which no more is read or written: the stream's own mark.
  static constexpr std::size_t kMostUnsent = StreamOptions{}.high_water;

  HttpServerCore& core_;
  Stream& stream_;
  EventLoop& loop_;
  AnyTask task_;
  std::string peer_;
  ServerRequest request_;
  ServerResponse response_;
  HttpRequestReader reader_;
  // Answers that have not been given to the stream yet.
  std::string output_;
  Handle flush_;

  Interrupt interrupt_ = Interrupt::none;
  Phase phase_ = Phase::starting;
  bool is_guarded_ = false;
  bool client_ended_ = false;  // no more requests come
  bool keep_alive_ = false;
  bool is_chunked_ = false;
  bool is_refused_ = false;    // its answer is in output_, and nothing more is read
  bool is_broken_ = false;     // the answer that is being sent cannot be ended as it should
  bool is_lingering_ = false;  // the client may be sending still
  bool flush_is_due_ = false;

  Handle timer_;
  TimePoint timer_at_ = kNever;
  TimePoint deadline_ = kNever;
  TimePoint phase_began_{};
  std::size_t body_held_ = 0;       // of what core_.bodies_bytes counts
  std::uint64_t given_ = 0;         // bytes, to the stream
  std::uint64_t taken_before_ = 0;  // of those the client had taken when the deadline was set
};

}  // namespace argiope::detail

// An Http2Session on a ClientConnection: reads what comes and sends what is due, for all streams.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/detail/byte_rate.hpp"
#include "web/http/client_connection.hpp"
#include "web/http/http2_session.hpp"

namespace argiope {

// No task is behind it: it acts when its socket is ready and when it is called. Streams in other tasks' frames hold a
// reference.
//
// Cost:     what is started in one turn of the loop leaves together at its end.
// Lifetime: its backend must outlive it; its loop need not.
// Threads:  the loop's own.
class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
 public:
  struct Setup {
    Http2Limits limits;
    std::shared_ptr<ByteRate> byte_rate;       // see HttpClientOptions
    std::shared_ptr<std::string> read_buffer;  // several connections share one
    // Told when a stream has ended, when the server says how many there may be, and when it has closed; not from its
    // destructor.
    std::function<void(Http2Connection&)> on_change;
  };

  // Made on a running loop, for a connection whose server has chosen HTTP/2.
  static std::shared_ptr<Http2Connection> begin(ConnectionPtr connection, Setup setup);
  explicit Http2Connection(ConnectionPtr connection, Setup setup);
  ~Http2Connection();

  // Whether another stream may begin here.
  bool has_room() const noexcept { return room() > 0; }
  std::size_t room() const noexcept { return is_closed() ? 0 : session_.room(); }
  bool is_closed() const noexcept { return connection_ == nullptr; }
  // No stream is under way.
  bool is_idle() const noexcept { return session_.active() == 0; }
  // Carries no further stream, and closes when the last has ended.
  void retire();
  // Ends the streams that are under way, with an error.
  void close();

  // See Http2Session::start(); stop() when nobody waits for `stream.over` any more. `timed_out`: its time was over. A
  // server that has said nothing at all meanwhile is not asked here again.
  void start(Http2Stream& stream, std::string& head);
  void stop(Http2Stream& stream, bool timed_out) noexcept;

  const std::string& key() const noexcept { return key_; }
  const IpAddress& remote() const noexcept { return remote_; }
  bool has_answered() const noexcept { return session_.has_answered(); }
  bool wants_http1() const noexcept { return session_.wants_http1(); }
  TimePoint idle_since() const noexcept { return idle_since_; }

 private:
  static constexpr std::size_t kMostToSend = 64 * 1024;

  void read();
  // False: wait before reading on.
  bool take(std::string_view bytes);
  void wait_for_bytes(WireStep step);
  void flush_soon();
  void flush();
  // Null `why`: the server closed the connection.
  void end(const Error* why) noexcept;
  void tell() noexcept;
  template <class Act>
  void guarded(Act act) noexcept;

  ConnectionPtr connection_;  // null: closed
  Setup setup_;
  EventLoop& loop_;
  Http2Session session_;
  const std::string key_;
  const IpAddress remote_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  TimePoint received_at_;
  TimePoint idle_since_;
  std::size_t received_idle_ = 0;  // bytes that came while no stream was under way
  Handle pause_;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
  bool will_flush_ = false;
  bool was_idle_ = true;
  bool is_paused_ = false;  // for the sake of byte_rate
  TimePoint paused_until_;
};

}  // namespace argiope

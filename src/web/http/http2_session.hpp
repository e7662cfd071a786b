// One HTTP/2 connection from the client's side, without sockets (RFC 9113, by nghttp2): what came goes in, what is to
// be sent comes out, and each stream fills its HttpResponse. Http2Connection puts it on a socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "web/http/internal/http_response_reader.hpp"
#include "web/text/internal/content_decoder.hpp"

struct nghttp2_session;

namespace argiope {

class Timeout;

struct Http2Limits {
  std::size_t header_bytes = 256 * 1024;  // of one response's head
  // Streams at a time; the server's own limit holds beside it.
  std::uint32_t streams = 100;
};

// How a stream ended.
enum class Http2End : std::uint8_t {
  open,    // it has not
  whole,   // the response is there, or as much of it as there will be
  failed,  // `error` says why
  // the server has done nothing about the request: it may be sent again, whatever its method (RFC 9113, 8.7); the
  // message of `error` is what it said when it went, if it did
  unprocessed,
  wants_http1,  // the same, and by HTTP/1.1
};

// A request's side of its stream. It may be destroyed when Http2Session::stop() was called, or after its end.
struct Http2Stream {
  // All must outlive it.
  Http2Stream(HttpResponse& its_response, ContentDecoder& its_decoder, const HttpReaderLimits& its_limits,
              HttpMethod its_method)
      : response(its_response), decoder(its_decoder), limits(its_limits), method(its_method) {
    begin();
  }
  Http2Stream(const Http2Stream&) = delete;
  Http2Stream& operator=(const Http2Stream&) = delete;
  // Makes ready for a head.
  void begin();

  HttpResponse& response;
  ContentDecoder& decoder;
  const HttpReaderLimits limits;
  const HttpMethod method;
  // The request's time, which grows by what is waited for HttpClientOptions::byte_rate; may be null.
  Timeout* deadline = nullptr;
  ByteQuota* quota = nullptr;  // the request's

  Event over;  // set once `end` is not open
  Http2End end = Http2End::open;
  Error error;
  // The connection was lost, rather than the stream broken off.
  bool lost = false;
  // Something of a response has come.
  bool answered = false;

  // --- the session's

  std::optional<HttpResponseReader> reader;
  std::string_view unsent;  // of the request's body
  std::int32_t id = 0;      // 0: it is not the session's
  std::size_t index = 0;    // among the session's streams
  int interim = 0;
  bool has_head = false;
  bool is_reset = false;  // by the server
};

// Hostile bytes end a stream or the session with an error, and take bounded memory: what comes is used at once, so the
// windows of flow control are there to keep senders from sending for nothing.
//
// Threads: one at a time.
class Http2Session {
 public:
  // The bytes that may be under way to us without our leave.
  static constexpr std::int32_t kConnectionWindow = 16 * 1024 * 1024;

  explicit Http2Session(const Http2Limits& limits);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Whether start() may be called: the server lets another stream be, and has not said that it goes.
  bool has_room() const noexcept { return room() > 0; }
  // How many more streams may be.
  std::size_t room() const noexcept;
  // Nothing new is to be started here, whatever the server says.
  void retire() noexcept { is_retired_ = true; }
  bool is_retired() const noexcept { return is_retired_; }

  // Sends a request: `head` is one of HTTP/1.1 with its body (HttpRequestHead::write()), whose names become lower case,
  // and which must last as long as the stream. Where that is not possible the stream ends unprocessed at once.
  void start(Http2Stream& stream, std::string& head);
  // Nothing more of `stream` is wanted: one that has not ended is broken off. Harmless for one that is not the
  // session's.
  void stop(Http2Stream& stream) noexcept;

  // Takes what came from the server, at `now`. Where that is no HTTP/2, all streams end.
  void receive(std::string_view bytes, TimePoint now = {});
  // Appends the bytes to send: about `most` bytes.
  void fill(std::string& out, std::size_t most);
  // Whether the connection has no use any more: both sides are done with it, or it broke. Ask when fill() has nothing.
  bool is_over() const noexcept;
  // Whether the bytes that came were no HTTP/2.
  bool is_broken() const noexcept { return is_broken_; }
  // The connection has ended, or is to end: so do all streams. Null `why`: the server closed it. An earlier trouble is
  // told instead.
  void lose(const Error* why) noexcept;
  // Tells the server that no more comes.
  void say_goodbye() noexcept;

  std::size_t active() const noexcept { return streams_.size(); }
  const std::vector<Http2Stream*>& streams() const noexcept { return streams_; }
  // Whether the server has ever begun a response.
  bool has_answered() const noexcept { return has_answered_; }
  // Whether the server has said, of a stream or of all, that it answers by HTTP/1.1 alone.
  bool wants_http1() const noexcept { return wants_http1_; }

 private:
  struct Callbacks;

  Http2Stream* stream_of(std::int32_t id) const noexcept;
  // Ends it without touching what is sent.
  void end(Http2Stream& stream, Http2End how) noexcept;
  void fail_stream(Http2Stream& stream, Error error);
  void leave_unprocessed(Http2Stream& stream);
  void detach(Http2Stream& stream) noexcept;
  // The server, or nghttp2 where the server broke rules, ended it with an error code of HTTP/2.
  void on_closed(Http2Stream& stream, std::uint32_t code);
  std::string what_is_bad(const Http2Stream& stream, std::uint32_t code);
  void on_head_or_trailer(Http2Stream& stream);
  void on_end_stream(Http2Stream& stream);
  void on_goaway(std::uint32_t code, std::string_view debug_data);
  // The first says it best.
  void note_trouble(std::string what);

  const Http2Limits limits_;
  nghttp2_session* session_ = nullptr;
  std::vector<Http2Stream*> streams_;
  TimePoint now_;
  std::string trouble_;  // what the server did wrong, in words
  std::string goodbye_;  // what it said when it went
  int idle_frames_ = 0;  // that came one after the other and brought nothing
  bool is_retired_ = false;
  bool is_broken_ = false;
  bool has_answered_ = false;
  bool wants_http1_ = false;
};

}  // namespace argiope

// From the bytes of one connection to one HttpResponse: head, framing and decoding, without sockets. Where something
// else frames messages, HTTP/2 does, it takes their parts.
//
// It reads what browsers and curl read, where RFC 9112 leaves room for it: what is odd is noted in the response, and a
// connection that has carried anything odd is not used again. A message that could only be guessed at is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "web/http/internal/http_lines.hpp"
#include "web/text/internal/content_decoder.hpp"

namespace argiope {

struct HttpReaderLimits {
  std::size_t header_bytes = 256 * 1024;  // of the head; and of what stands between a body's chunks and behind them
  std::size_t header_fields = 1000;
  std::size_t body_bytes = 10 * 1024 * 1024;
  bool keep_fields = false;                     // all of them, in HttpResponse::fields
  std::span<const std::string> wanted_types{};  // see HttpRequest
  bool keep_wire = false;                       // head and coded body, in HttpResponse::wire
};

class HttpResponseReader {
 public:
  // Fills `response`, whose memory is reused. All must outlive the reader.
  HttpResponseReader(HttpResponse& response, ContentDecoder& decoder, const HttpReaderLimits& limits,
                     HttpMethod method);

  // Takes bytes in the order received; gives how many were used. Those left over belong in front of the next bytes
  // (while !done()), or were sent beyond the response (when done()).
  Result<std::size_t> feed(std::string_view bytes);
  // No more bytes come: the peer closed the connection, or it broke as `why` says. Of a response whose body has begun
  // what came is kept, and the response says `damage`.
  // Errors: network (or `why`) when there is nothing to keep.
  Result<void> feed_end(const Error* why = nullptr);

  // In the place of feed(), for messages that are framed already: a status, fields, the end of the head, pieces of the
  // body, the end. A reader that is done() early wants no more of it. Errors: those of feed().
  void take_status(int status);
  Result<void> take_framed_field(std::string_view name, std::string_view value);
  // A field that is none, and was passed over.
  void note_bad_field() { note(HttpOddity::header_line); }
  Result<void> end_framed_head();
  Result<void> take_framed_body(std::string_view bytes);
  Result<void> end_framed();

  // Complete, or as complete as it will be.
  bool done() const noexcept { return state_ == State::done; }
  // Bytes of this response have arrived.
  bool started() const noexcept { return started_; }
  // After done(): the connection may carry another exchange.
  bool reusable() const noexcept { return done() && keep_alive_ && !response_.truncated; }
  // An interim (1xx) response: the real one follows.
  bool interim() const noexcept {
    return response_.status >= 100 && response_.status < 200 && response_.status != kSwitchingProtocols;
  }

 private:
  enum class State : std::uint8_t {
    status_line,
    fields,
    body_by_length,
    body_to_end,
    framed_body,
    chunks,
    done,
  };
  static constexpr int kSwitchingProtocols = 101;

  // Each uses bytes off the front, says how many, and 0 when it needs more.
  Result<std::size_t> step(std::string_view bytes);
  Result<std::size_t> read_status_line(std::string_view bytes);
  Result<std::size_t> read_field(std::string_view bytes);
  Result<std::size_t> read_chunks(std::string_view bytes);
  Result<std::size_t> read_body(std::string_view bytes);

  // nullopt when the line has not ended; an error when it, with what came before, is too long.
  Result<std::optional<HttpLine>> take_line(std::string_view bytes);
  std::unexpected<Error> too_long() const;
  void use(const HttpLine& line);
  Result<void> parse_status(std::string_view line);
  Result<void> take_field(std::string_view line);
  void keep_field(std::string_view name, std::string_view value);
  void add_type(std::string_view value);
  Result<void> count_field();
  Result<void> end_head();
  // Of the head that has ended: whether there is never a body behind it.
  bool has_no_body(std::optional<std::uint64_t> length);
  std::optional<std::uint64_t> find_length();
  Result<void> choose_framing();
  Result<void> start_body();
  Result<void> take_body(std::string_view body);
  void keep_coded(std::string_view body);
  void take_plain(std::string_view body);
  void remember_coded(std::string_view body);
  bool take_as_it_is(std::string_view body);
  Result<void> end_body();
  // Whether the type is wanted, as soon as that shows.
  void judge_type();
  void sniff_type_of_body();
  void refuse_body();
  // Bytes of a body that is not wanted: read for the sake of the connection, as long as they are few.
  void drop(std::uint64_t bytes);
  void abandon() noexcept;
  // Ends the response with what has come of it; an error when that is nothing.
  Result<void> cut_short(Error why);
  void note(HttpOddity oddity);
  // A connection whose framing may be read in two ways is not used again.
  void distrust_what_is_odd() noexcept;

  HttpResponse& response_;
  ContentDecoder& decoder_;
  HttpReaderLimits limits_;
  State state_ = State::status_line;
  bool is_head_request_;
  bool started_ = false;
  bool keep_alive_ = false;
  bool encoded_ = false;
  std::string coded_begin_;     // what has come of the coded body, while that is little
  bool has_all_coded_ = false;  // that is all
  int minor_version_ = 1;
  HttpLineFinder lines_;
  HttpChunkReader chunks_;
  std::size_t fields_ = 0;
  std::uint64_t body_left_ = 0;  // of a body with a length
  bool got_body_ = false;
  bool sniffs_ = false;  // there is no Content-Type, and it matters
  std::uint64_t dropped_ = 0;
  std::string connection_, content_length_, transfer_encoding_;  // as lists
  std::string folded_;
};

}  // namespace argiope

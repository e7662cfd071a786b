#include "web/http/http2_session.hpp"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>

#include "base/internal/printable.hpp"
#include "web/http/quota_use.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

// Bytes under way of one stream: a large page of a far server comes quickly, and one that is broken off costs little.
constexpr std::int32_t kStreamWindow = 1024 * 1024;
constexpr std::size_t kLargestFrame = 16 * 1024;
constexpr int kMostInterimHeads = 100;  // 1xx responses before the real one
constexpr std::size_t kMostDebugData = 200;
constexpr std::size_t kShortCookie = 20;
constexpr int kMostIdleFrames = 1000;  // in a row, that bring nothing

struct FreeCallbacks {
  void operator()(nghttp2_session_callbacks* callbacks) const noexcept { ::nghttp2_session_callbacks_del(callbacks); }
};
struct FreeOption {
  void operator()(nghttp2_option* option) const noexcept { ::nghttp2_option_del(option); }
};

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv field_of(std::string_view name, std::string_view value, std::uint8_t flags = NGHTTP2_NV_FLAG_NONE) noexcept {
  // nghttp2 copies them, and changes nothing.
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

// Fields that speak of a connection of HTTP/1.1 (RFC 9113, 8.2.2), and Host, which is a pseudo-field here.
bool is_of_connection(std::string_view name, std::string_view value) noexcept {
  constexpr std::string_view kNames[] = {"host",    "connection",        "keep-alive",    "proxy-connection",
                                         "upgrade", "transfer-encoding", "http2-settings"};
  return std::ranges::find(kNames, name) != std::end(kNames) || (name == "te" && !equals_lower(value, "trailers"));
}

// A peer must not tell a secret from a guess by how well it packs (RFC 7541, 7.1.3).
bool is_secret(std::string_view name, std::string_view value) noexcept {
  return name == "authorization" || (name == "cookie" && value.size() < kShortCookie);
}

std::string_view name_of_code(std::uint32_t code) noexcept { return ::nghttp2_http2_strerror(code); }

// Whether a frame may go on for ever without an answer coming nearer: empty data, windows, pings.
bool brings_nothing(const nghttp2_frame_hd& frame) noexcept {
  switch (frame.type) {
    case NGHTTP2_DATA: return frame.length == 0 && (frame.flags & NGHTTP2_FLAG_END_STREAM) == 0;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_GOAWAY: return false;
    default: return true;
  }
}

// A request's head of HTTP/1.1 as fields of HTTP/2.
class RequestFields {
 public:
  // Names become lower case in place.
  explicit RequestFields(std::string& text) {
    const std::size_t end = text.find("\r\n\r\n");
    body_ = std::string_view(text).substr(end + 4);
    std::size_t at = text.find("\r\n");
    const std::string_view line = std::string_view(text).substr(0, at);
    const std::size_t space = line.find(' ');
    const std::string_view target = line.substr(space + 1, line.rfind(' ') - space - 1);
    fields_.push_back(field_of(":method", line.substr(0, space)));
    fields_.push_back(field_of(":scheme", "https"));
    fields_.push_back(field_of(":authority", {}));
    fields_.push_back(field_of(":path", target));
    while (at < end) {
      at += 2;
      const std::size_t stop = text.find("\r\n", at);
      const std::size_t colon = text.find(':', at);
      std::transform(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(colon),
                     text.begin() + static_cast<std::ptrdiff_t>(at), to_lower);
      add(std::string_view(text).substr(at, colon - at), std::string_view(text).substr(colon + 2, stop - colon - 2));
      at = stop;
    }
  }

  const std::vector<nghttp2_nv>& fields() const noexcept { return fields_; }
  std::string_view body() const noexcept { return body_; }

 private:
  void add(std::string_view name, std::string_view value) {
    constexpr std::size_t kAuthority = 2;
    if (name == "host") fields_[kAuthority] = field_of(":authority", value);
    if (!is_token(name) || is_of_connection(name, value)) return;
    const std::uint8_t flags = is_secret(name, value) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    fields_.push_back(field_of(name, trim_space(value), flags));
  }

  std::vector<nghttp2_nv> fields_;
  std::string_view body_;
};

}  // namespace

void Http2Stream::begin() {
  reader.emplace(response, decoder, limits, method);
  has_head = false;
}

// --- what nghttp2 calls

// None of them lets an exception through nghttp2's frames: no memory is an error of the session.
struct Http2Session::Callbacks {
  static Http2Session& self(void* data) noexcept { return *static_cast<Http2Session*>(data); }

  template <class Act>
  static int guarded(Act act) noexcept {
    try {
      act();
      return 0;
    } catch (...) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* frame, void* data) noexcept {
    constexpr std::size_t kFrameHead = 9;
    if (Http2Stream* const stream = self(data).stream_of(frame->stream_id)) {
      stream->response.wire_bytes += kFrameHead + frame->length;
      take_from_quota(stream->quota, kFrameHead + frame->length, stream->response);
    }
    Http2Session& session = self(data);
    session.idle_frames_ = brings_nothing(*frame) ? session.idle_frames_ + 1 : 0;
    if (session.idle_frames_ <= kMostIdleFrames) return 0;
    guarded([&] { session.note_trouble("a flood of frames that bring nothing"); });
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  // Of what is no push, which has its fields from the request's stream.
  static Http2Stream* answered_stream(const nghttp2_frame& frame, void* data) noexcept {
    return frame.hd.type == NGHTTP2_HEADERS ? self(data).stream_of(frame.hd.stream_id) : nullptr;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* data) noexcept {
    if (Http2Stream* const stream = answered_stream(*frame, data)) {
      if (!std::exchange(stream->answered, true)) stream->response.answered_at = self(data).now_;
      self(data).has_answered_ = true;
    }
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) noexcept {
    Http2Stream* const stream = answered_stream(*frame, data);
    if (stream == nullptr) return 0;
    return guarded([&] {
      const std::string_view its_name = text_of(name, name_size);
      const std::string_view its_value = text_of(value, value_size);
      if (its_name == ":status") {
        int status = 0;  // nghttp2 has seen that it is a number of three digits
        std::from_chars(its_value.data(), its_value.data() + its_value.size(), status);
        stream->reader->take_status(status);
      } else if (auto taken = stream->reader->take_framed_field(its_name, its_value); !taken) {
        self(data).fail_stream(*stream, std::move(taken.error()));
      }
    });
  }

  static int invalid_header(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf*, nghttp2_rcbuf*, std::uint8_t,
                            void* data) noexcept {
    if (Http2Stream* const stream = answered_stream(*frame, data)) stream->reader->note_bad_field();
    return 0;
  }

  static int data_chunk(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                        void* data) noexcept {
    Http2Stream* const stream = self(data).stream_of(id);
    if (stream == nullptr) return 0;
    return guarded([&] {
      auto taken = stream->reader->take_framed_body(text_of(bytes, size));
      if (!taken) return self(data).fail_stream(*stream, std::move(taken.error()));
      if (!stream->reader->done()) return;
      const std::int32_t its_id = stream->id;
      self(data).end(*stream, Http2End::whole);
      ::nghttp2_submit_rst_stream(self(data).session_, NGHTTP2_FLAG_NONE, its_id, NGHTTP2_CANCEL);
    });
  }

  static int frame_came(nghttp2_session*, const nghttp2_frame* frame, void* data) noexcept {
    return guarded([&] {
      Http2Session& session = self(data);
      if (frame->hd.type == NGHTTP2_GOAWAY) {
        return session.on_goaway(frame->goaway.error_code,
                                 text_of(frame->goaway.opaque_data, frame->goaway.opaque_data_len));
      }
      if (frame->hd.type == NGHTTP2_RST_STREAM) {
        if (Http2Stream* const stream = session.stream_of(frame->hd.stream_id)) stream->is_reset = true;
      }
      if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return;
      if (frame->hd.type == NGHTTP2_HEADERS) {
        if (Http2Stream* const stream = session.stream_of(frame->hd.stream_id)) session.on_head_or_trailer(*stream);
      }
      Http2Stream* const stream = session.stream_of(frame->hd.stream_id);
      if (stream == nullptr) return;
      if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        session.on_end_stream(*stream);
      } else if (is_used_up(stream->quota)) {
        session.fail_stream(*stream, over_quota());
      }
    });
  }

  static int invalid_frame(nghttp2_session*, const nghttp2_frame*, int error, void* data) noexcept {
    return guarded([&] { self(data).note_trouble(::nghttp2_strerror(error)); });
  }

  // nghttp2 has found what it cannot go on with, and says so to the server.
  static int sent(nghttp2_session*, const nghttp2_frame* frame, void* data) noexcept {
    if (frame->hd.type != NGHTTP2_GOAWAY || frame->goaway.error_code == NGHTTP2_NO_ERROR) return 0;
    return guarded([&] {
      const std::string_view why = text_of(frame->goaway.opaque_data, frame->goaway.opaque_data_len);
      self(data).note_trouble(std::string(why.empty() ? name_of_code(frame->goaway.error_code) : why));
    });
  }

  static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* data) noexcept {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    Http2Session& session = self(data);
    const auto found = std::ranges::find(session.streams_, frame->hd.stream_id, &Http2Stream::id);
    if (found == session.streams_.end()) return 0;
    return guarded([&] { session.leave_unprocessed(**found); });
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t code, void* data) noexcept {
    return guarded([&] {
      if (Http2Stream* const stream = self(data).stream_of(id)) self(data).on_closed(*stream, code);
    });
  }

  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* out, std::size_t size,
                           std::uint32_t* flags, nghttp2_data_source*, void*) noexcept {
    auto* const stream = static_cast<Http2Stream*>(::nghttp2_session_get_stream_user_data(session, id));
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // nobody waits for an answer any more
    const std::size_t count = std::min(size, stream->unsent.size());
    std::memcpy(out, stream->unsent.data(), count);
    stream->unsent.remove_prefix(count);
    if (stream->unsent.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }
};

Http2Session::Http2Session(const Http2Limits& limits) : limits_(limits) {
  nghttp2_session_callbacks* made = nullptr;
  if (::nghttp2_session_callbacks_new(&made) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_session_callbacks, FreeCallbacks> callbacks(made);
  ::nghttp2_session_callbacks_set_on_begin_frame_callback(made, Callbacks::begin_frame);
  ::nghttp2_session_callbacks_set_on_begin_headers_callback(made, Callbacks::begin_headers);
  ::nghttp2_session_callbacks_set_on_header_callback(made, Callbacks::header);
  ::nghttp2_session_callbacks_set_on_invalid_header_callback2(made, Callbacks::invalid_header);
  ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Callbacks::data_chunk);
  ::nghttp2_session_callbacks_set_on_frame_recv_callback(made, Callbacks::frame_came);
  ::nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, Callbacks::invalid_frame);
  ::nghttp2_session_callbacks_set_on_frame_send_callback(made, Callbacks::sent);
  ::nghttp2_session_callbacks_set_on_frame_not_send_callback(made, Callbacks::not_sent);
  ::nghttp2_session_callbacks_set_on_stream_close_callback(made, Callbacks::stream_closed);

  nghttp2_option* its_option = nullptr;
  if (::nghttp2_option_new(&its_option) != 0) throw std::bad_alloc();
  const std::unique_ptr<nghttp2_option, FreeOption> option(its_option);
  // A head may be as large as one of HTTP/1.1, and not larger.
  ::nghttp2_option_set_max_continuations(its_option, limits_.header_bytes / kLargestFrame + 1);
  ::nghttp2_option_set_max_reserved_remote_streams(its_option, 0);  // nothing is pushed
  if (::nghttp2_session_client_new2(&session_, made, this, its_option) != 0) throw std::bad_alloc();

  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits_.header_bytes)}};
  const bool good = ::nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0 &&
                    ::nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0;
  if (!good) {
    ::nghttp2_session_del(session_);
    throw std::bad_alloc();
  }
}

Http2Session::~Http2Session() { ::nghttp2_session_del(session_); }

// --- requests

std::size_t Http2Session::room() const noexcept {
  if (is_retired_ || is_broken_) return 0;
  const std::uint32_t server_limit =
      ::nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  const std::size_t most = std::min(limits_.streams, server_limit);
  return most - std::min(most, streams_.size());
}

void Http2Session::start(Http2Stream& stream, std::string& head) {
  const RequestFields request(head);
  stream.unsent = request.body();
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::read_body;
  streams_.reserve(streams_.size() + 1);
  const std::int32_t id = ::nghttp2_submit_request(session_, nullptr, request.fields().data(), request.fields().size(),
                                                   request.body().empty() ? nullptr : &body, &stream);
  if (id == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  if (id < 0) {  // it has run out of numbers
    is_retired_ = true;
    return end(stream, Http2End::unprocessed);
  }
  stream.id = id;
  stream.index = streams_.size();
  streams_.push_back(&stream);
}

void Http2Session::stop(Http2Stream& stream) noexcept {
  if (stream.id == 0) return;
  const std::int32_t id = stream.id;
  detach(stream);
  // Without memory the server goes on for nothing, and nobody hears of it.
  ::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

Http2Stream* Http2Session::stream_of(std::int32_t id) const noexcept {
  return id == 0 ? nullptr : static_cast<Http2Stream*>(::nghttp2_session_get_stream_user_data(session_, id));
}

void Http2Session::detach(Http2Stream& stream) noexcept {
  if (stream.id == 0) return;
  ::nghttp2_session_set_stream_user_data(session_, stream.id, nullptr);
  streams_.back()->index = stream.index;
  streams_[stream.index] = streams_.back();
  streams_.pop_back();
  stream.id = 0;
}

void Http2Session::end(Http2Stream& stream, Http2End how) noexcept {
  detach(stream);
  if (stream.end != Http2End::open) return;
  stream.end = how;
  stream.over.set();
}

void Http2Session::fail_stream(Http2Stream& stream, Error error) {
  const std::int32_t id = stream.id;
  stream.error = std::move(error);
  end(stream, Http2End::failed);
  ::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

// --- what the server says

void Http2Session::on_head_or_trailer(Http2Stream& stream) {
  if (stream.has_head) return;  // a trailer
  if (stream.reader->interim()) {
    if (++stream.interim > kMostInterimHeads) {
      return fail_stream(stream, {Errc::protocol, "too many interim responses"});
    }
    return stream.begin();
  }
  stream.has_head = true;
  if (auto ended = stream.reader->end_framed_head(); !ended) fail_stream(stream, std::move(ended.error()));
}

void Http2Session::on_end_stream(Http2Stream& stream) {
  if (auto ended = stream.reader->end_framed(); !ended) return fail_stream(stream, std::move(ended.error()));
  const std::int32_t id = stream.id;
  const bool is_unsent = !stream.unsent.empty();
  end(stream, Http2End::whole);
  // An answer before the request's end: the rest of that is not wanted.
  if (is_unsent) ::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

// The server has not looked at it, and may have said why.
void Http2Session::leave_unprocessed(Http2Stream& stream) {
  stream.error.message = goodbye_;
  end(stream, wants_http1_ ? Http2End::wants_http1 : Http2End::unprocessed);
}

void Http2Session::on_closed(Http2Stream& stream, std::uint32_t code) {
  if (code == NGHTTP2_REFUSED_STREAM && !stream.answered) return leave_unprocessed(stream);
  wants_http1_ = wants_http1_ || code == NGHTTP2_HTTP_1_1_REQUIRED;
  if (code == NGHTTP2_HTTP_1_1_REQUIRED && !stream.answered) return end(stream, Http2End::wants_http1);
  // A server that has had enough gets no more on this connection.
  if (code == NGHTTP2_ENHANCE_YOUR_CALM) is_retired_ = true;
  const Error why =
      stream.is_reset
          ? Error{Errc::network, fmt::format("the server broke the HTTP/2 stream off: {}", name_of_code(code))}
          : Error{Errc::protocol, fmt::format("bad HTTP/2 response: {}", what_is_bad(stream, code))};
  if (auto kept = stream.reader->feed_end(&why); !kept) {
    stream.error = std::move(kept.error());
    return end(stream, Http2End::failed);
  }
  end(stream, Http2End::whole);
}

// The fault for which nghttp2 ended a stream.
std::string Http2Session::what_is_bad(const Http2Stream& stream, std::uint32_t code) {
  // The trouble of one stream is none of the others'.
  std::string what = std::exchange(trouble_, {});
  if (!what.empty()) return what;
  const bool is_size = code == NGHTTP2_NO_ERROR || code == NGHTTP2_PROTOCOL_ERROR;
  return stream.has_head && is_size ? "a body of another size than it says" : std::string(name_of_code(code));
}

// Streams that the server will not look at are ended next, by nghttp2.
void Http2Session::on_goaway(std::uint32_t code, std::string_view debug_data) {
  is_retired_ = true;
  wants_http1_ = wants_http1_ || code == NGHTTP2_HTTP_1_1_REQUIRED;
  if (code == NGHTTP2_NO_ERROR) return;
  std::string words = fmt::format("the server ended the HTTP/2 connection: {}", name_of_code(code));
  if (!debug_data.empty()) words += fmt::format(", {}", in_quotes(debug_data.substr(0, kMostDebugData)));
  goodbye_ = std::move(words);
}

void Http2Session::note_trouble(std::string what) {
  if (trouble_.empty()) trouble_ = std::move(what);
}

// --- bytes

void Http2Session::receive(std::string_view bytes, TimePoint now) {
  now_ = now;
  const ssize_t used =
      ::nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (used == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  if (used >= 0) return;
  note_trouble(::nghttp2_strerror(static_cast<int>(used)));
  is_broken_ = true;
}

void Http2Session::fill(std::string& out, std::size_t most) {
  while (out.size() < most && !is_broken_) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = ::nghttp2_session_mem_send(session_, &bytes);
    if (size == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
    if (size < 0) {
      note_trouble(::nghttp2_strerror(static_cast<int>(size)));
      is_broken_ = true;
    }
    if (size <= 0) return;
    out += text_of(bytes, static_cast<std::size_t>(size));
  }
}

bool Http2Session::is_over() const noexcept {
  return is_broken_ || (::nghttp2_session_want_read(session_) == 0 && ::nghttp2_session_want_write(session_) == 0);
}

void Http2Session::lose(const Error* why) noexcept {
  is_broken_ = true;
  while (!streams_.empty()) {
    Http2Stream& stream = *streams_.back();
    stream.lost = true;
    stream.error.code = Errc::network;
    try {
      std::optional<Error> known;
      if (!trouble_.empty()) {
        known = {Errc::protocol, fmt::format("bad HTTP/2: {}", trouble_)};
      } else if (!goodbye_.empty()) {
        known = {Errc::network, goodbye_};
      }
      auto kept = stream.reader->feed_end(known ? &*known : why);
      if (!kept) stream.error = std::move(kept.error());
      end(stream, kept ? Http2End::whole : Http2End::failed);
    } catch (...) {
      end(stream, Http2End::failed);  // there is no memory for words
    }
  }
}

void Http2Session::say_goodbye() noexcept {
  is_retired_ = true;
  if (!is_broken_) ::nghttp2_session_terminate_session(session_, NGHTTP2_NO_ERROR);
}

}  // namespace argiope

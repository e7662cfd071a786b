#include "site/site_http2.hpp"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cctype>
#include <new>
#include <utility>
#include <vector>

namespace argiope {
namespace {

using Behaviour = SyntheticReply::Behaviour;

constexpr std::uint32_t kMostStreams = 128;
constexpr std::int32_t kWindow = 1024 * 1024;
constexpr std::size_t kMostOfForm = 64 * 1024;

std::string_view view(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

struct SiteHttp2::Callbacks {
  static SiteHttp2& self(void* data) noexcept { return *static_cast<SiteHttp2*>(data); }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) {
    SiteHttp2Request& request = self(data).streams_[frame->hd.stream_id].request;
    const std::string_view its_name = view(name, name_size);
    if (its_name == ":method") {
      request.method = view(value, value_size);
    } else if (its_name == ":path") {
      request.target = view(value, value_size);
    } else {
      std::string& kept = request.fields[std::string(its_name)];
      if (!kept.empty()) kept += its_name == "cookie" ? "; " : ", ";
      kept += view(value, value_size);
    }
    return 0;
  }

  static int data_chunk(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                        void* data) {
    const auto found = self(data).streams_.find(id);
    if (found == self(data).streams_.end()) return 0;
    std::string& body = found->second.request.body;
    body.append(view(bytes, std::min(size, kMostOfForm - std::min(kMostOfForm, body.size()))));
    return 0;
  }

  static int frame_came(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) self(data).take(frame->hd.stream_id);
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t, void* data) {
    const auto found = self(data).streams_.find(id);
    if (found == self(data).streams_.end()) return 0;
    found->second.timer.cancel();
    self(data).streams_.erase(found);
    return 0;
  }

  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* out, std::size_t size, std::uint32_t* flags,
                           nghttp2_data_source*, void* data) {
    const auto found = self(data).streams_.find(id);
    if (found == self(data).streams_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    Stream& stream = found->second;
    const bool drips = stream.reply.behaviour == Behaviour::drip;
    if (drips && !std::exchange(stream.is_due, false)) return NGHTTP2_ERR_DEFERRED;
    if (stream.repeats && stream.sent == stream.until) stream.sent = 0;
    const std::size_t count = std::min({size, stream.until - stream.sent, drips ? std::size_t{1} : size});
    std::copy_n(stream.reply.body.data() + stream.sent, count, out);
    stream.sent += count;
    if (stream.sent == stream.until && !stream.repeats) {
      if (stream.breaks) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (drips) {
      self(data).drip(id);
    }
    return static_cast<ssize_t>(count);
  }
};

SiteHttp2::SiteHttp2(EventLoop& loop, Answer answer) : loop_(loop), answer_(std::move(answer)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (::nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc();
  ::nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data_chunk);
  ::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame_came);
  ::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::stream_closed);
  const int made = ::nghttp2_session_server_new(&session_, callbacks, this);
  ::nghttp2_session_callbacks_del(callbacks);
  if (made != 0) throw std::bad_alloc();
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMostStreams},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}};
  ::nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  wants_to_send.set();
}

SiteHttp2::~SiteHttp2() {
  for (auto& [id, stream] : streams_) stream.timer.cancel();
  ::nghttp2_session_del(session_);
}

bool SiteHttp2::receive(std::string_view bytes) {
  const ssize_t used =
      ::nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (::nghttp2_session_want_write(session_) != 0) wants_to_send.set();
  return used >= 0 && (::nghttp2_session_want_read(session_) != 0 || ::nghttp2_session_want_write(session_) != 0);
}

void SiteHttp2::fill(std::string& out, std::size_t most) {
  while (out.size() < most) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = ::nghttp2_session_mem_send(session_, &bytes);
    if (size <= 0) return;
    out += view(bytes, static_cast<std::size_t>(size));
  }
  wants_to_send.set();
}

void SiteHttp2::take(std::int32_t id) {
  Stream& stream = streams_[id];
  stream.reply = answer_(stream.request);
  if (stream.reply.behaviour == Behaviour::silent) return;
  if (stream.reply.latency <= Duration::zero()) return respond(id);
  stream.timer = loop_.call_later(stream.reply.latency, [this, id] { respond(id); });
}

void SiteHttp2::respond(std::int32_t id) {
  Stream& stream = streams_[id];
  const SyntheticReply& reply = stream.reply;
  wants_to_send.set();
  if (reply.behaviour == Behaviour::closed || reply.behaviour == Behaviour::garbage) {
    ::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id,
                                reply.behaviour == Behaviour::closed ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  const bool is_bodiless = stream.request.method == "HEAD" || reply.status == 304;
  stream.repeats = reply.behaviour == Behaviour::flood;
  stream.breaks = reply.behaviour == Behaviour::reset;
  const bool is_half = stream.breaks || reply.behaviour == Behaviour::cut;
  stream.until = is_bodiless ? 0 : is_half ? reply.body.size() / 2 : reply.body.size();

  std::vector<std::pair<std::string, std::string>> fields = {{":status", std::to_string(reply.status)},
                                                             {"content-type", reply.content_type}};
  for (const auto& [name, value] : reply.headers) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    fields.emplace_back(std::move(lower), value);
  }
  std::size_t length = reply.body.size();
  if (reply.behaviour == Behaviour::surplus) length -= std::min<std::size_t>(length, 10);
  if (!stream.repeats) fields.emplace_back("content-length", std::to_string(length));
  std::vector<nghttp2_nv> pairs;
  for (auto& [name, value] : fields) {
    pairs.push_back({reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                     name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::read_body;
  ::nghttp2_submit_response(session_, id, pairs.data(), pairs.size(), stream.until == 0 ? nullptr : &body);
}

void SiteHttp2::drip(std::int32_t id) {
  Stream& stream = streams_[id];
  stream.timer = loop_.call_later(from_seconds(1 / stream.reply.drip_bytes_per_second), [this, id] {
    streams_[id].is_due = true;
    ::nghttp2_session_resume_data(session_, id);
    wants_to_send.set();
  });
}

}  // namespace argiope

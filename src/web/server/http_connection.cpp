#include "web/server/http_connection.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argiope/web/detail/tls.hpp"
#include "async/internal/stream_layer.hpp"
#include "base/internal/printable.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/server/http_response_head.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kReadBytes = 64 * 1024;
// Small bodies go into one write with their heads, and with the answers before them.
constexpr std::size_t kGathered = 16 * 1024;
constexpr std::size_t kSlice = 64 * 1024;
constexpr std::size_t kKeptOutput = 4 * 1024;
// The bytes that a refused client still sends: dropped for that long, so that it gets to read why.
constexpr Duration kLinger = 2s;
constexpr std::size_t kMostDropped = 32 * 1024 * 1024;
constexpr std::size_t kSpareOf = 64;
// The bytes of answers that the kernel takes beyond those it may send: without a bound it is megabytes, and many
// requests of a client that takes no answers are done for nobody.
constexpr int kMostUnsentInKernel = 128 * 1024;

constexpr std::string_view kStopping = "the server is stopping";

bool asks_to_close(const ServerResponse& response) noexcept {
  return std::ranges::any_of(response.headers, [](const auto& field) {
    return equals_lower(field.first, "connection") && equals_lower(field.second, "close");
  });
}

// A TCP socket has credentials too, of nobody: hence the question what it is.
std::optional<std::uint32_t> peer_user_of(int fd) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) return std::nullopt;
  ::ucred peer{};
  size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

// A Unix socket, which it means nothing to, has a small buffer anyway.
void bound_unsent(int fd) noexcept {
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsentInKernel, sizeof kMostUnsentInKernel);
}

}  // namespace

const std::string& HttpServerCore::date() {
  const WallTime now = EventLoop::current().clock().wall_now();
  const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  if (second != std::exchange(date_second_, second)) date_ = format_http_date(now);
  return date_;
}

void HttpServerCore::make_room() noexcept {
  if (connection_count <= options.max_connections - options.max_connections / kSpareOf) return;
  bool made = false;
  connections.for_each([&](HttpConnection& connection) { made = made || connection.give_way(); });
}

HttpConnection::HttpConnection(HttpServerCore& core, Stream& stream)
    : core_(core),
      stream_(stream),
      loop_(EventLoop::current()),
      task_(current_task()),
      peer_(stream.peer_name()),
      reader_(core.options, request_) {
  request_.peer = peer_;
  request_.peer_user = peer_user_of(stream.native_handle());
  bound_unsent(stream.native_handle());
  ++core.connection_count;
  core.make_room();
  core.connections.push_back(*this);
}

HttpConnection::~HttpConnection() {
  timer_.cancel();
  flush_.cancel();
  count_body(0);
  --core_.connection_count;
  unlink();
  if (stream_) stream_.when_ended({});
}

Coro<void> HttpConnection::serve() {
  bool going_on = co_await secure();
  while (going_on) going_on = co_await exchange();
  co_await close();
}

void HttpConnection::stop_when_idle() noexcept {
  if (phase_ == Phase::idle || phase_ == Phase::handshake) interrupt(Interrupt::stopped);
}

bool HttpConnection::give_way() noexcept {
  const bool waits = phase_ == Phase::idle || phase_ == Phase::handshake || phase_ == Phase::head;
  if (!waits || !is_guarded_ || interrupt_ != Interrupt::none) return false;
  interrupt(Interrupt::stopped);
  return true;
}

Coro<bool> HttpConnection::secure() {
  if (core_.options.tls == nullptr || peer_user_of(stream_.native_handle())) co_return true;
  if (core_.stopping) co_return false;
  phase_ = Phase::handshake;
  set_deadline(saturating_add(loop_.time(), core_.options.handshake_timeout));
  try {
    request_.secure = co_await guarded(stream_.start_layer(core_.options.tls->new_layer())) == Interrupt::none;
    if (!request_.secure) stream_.abort();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::wrong_protocol_type) {
      refuse(400, "this port speaks HTTPS, and the request came in plain HTTP");
    }
  }
  co_return request_.secure;
}

// --- interrupting

Coro<HttpConnection::Interrupt> HttpConnection::guarded(Coro<void> work) {
  const int cancelling_before = task_.cancelling();
  interrupt_ = Interrupt::none;
  is_guarded_ = true;
  bool was_cancelled = false;
  std::exception_ptr failure;
  try {
    co_await std::move(work);
  } catch (const CancelledError&) {
    was_cancelled = true;
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  is_guarded_ = false;
  const Interrupt why = std::exchange(interrupt_, Interrupt::none);
  const bool is_ours = why != Interrupt::none && task_.uncancel() <= cancelling_before;
  if (was_cancelled && is_ours) co_return why;
  if (failure != nullptr) std::rethrow_exception(failure);
  co_return Interrupt::none;
}

void HttpConnection::interrupt(Interrupt why) noexcept {
  if (!is_guarded_ || interrupt_ != Interrupt::none) return;
  interrupt_ = why;
  task_.cancel();
}

void HttpConnection::set_deadline(TimePoint when) {
  deadline_ = when;
  if (when >= timer_at_) return;
  timer_.cancel();
  timer_at_ = when;
  timer_ = loop_.call_at(when, [this] { on_timer(); });
}

void HttpConnection::on_timer() {
  timer_at_ = kNever;
  const TimePoint now = loop_.time();
  if (phase_ == Phase::sending) {
    const std::uint64_t taken = given_ - stream_.write_buffer_size();
    if (taken != std::exchange(taken_before_, taken)) deadline_ = saturating_add(now, core_.options.send_timeout);
  }
  if (deadline_ > now) {
    if (deadline_ != kNever) set_deadline(deadline_);
  } else {
    interrupt(Interrupt::timeout);
  }
}

// --- a request

Coro<bool> HttpConnection::exchange() {
  phase_ = Phase::starting;
  const Interrupt interrupted = co_await guarded(read_request());
  if (interrupted == Interrupt::timeout && (phase_ == Phase::head || phase_ == Phase::body)) {
    refuse(408, phase_ == Phase::head ? "the head of the request did not come in time"
                                      : "the body of the request did not come in time");
    co_return false;
  }
  if (interrupted != Interrupt::none && phase_ != Phase::idle) stream_.abort();
  if (interrupted != Interrupt::none || is_refused_) co_return false;
  if (reader_.state() == HttpRequestReader::State::refused) {
    refuse(reader_.refusal().status, reader_.refusal().detail);
    co_return false;
  }
  if (reader_.state() != HttpRequestReader::State::complete) co_return false;

  const bool may_answer = co_await ask_handler();
  if (!may_answer) co_return false;
  const bool goes_on = co_await send_answer();
  if (!goes_on) co_return false;
  count_body(0);
  reader_.next();
  // Requests that are there already must not keep a task running for ever.
  if (reader_.has_begun() && !may_go_on()) co_await yield_now();
  co_return true;
}

Coro<void> HttpConnection::read_request() {
  using State = HttpRequestReader::State;
  try {
    // Answers to requests that are there already are gathered, but not without end.
    if (output_.size() > kMostUnsent) {
      flush();
      if (is_choked()) co_await drain();
    }
    for (State state = reader_.read(); state == State::head || state == State::body; state = reader_.read()) {
      if (client_ended_) co_return;
      if (state == State::body && !is_body_wanted()) co_return;
      if (reader_.take_wish_to_continue()) output_ += "HTTP/1.1 100 Continue\r\n\r\n";
      flush();
      if (is_choked()) co_await drain();
      enter_reading_phase();
      if (phase_ == Phase::idle && core_.stopping) co_return;
      client_ended_ = !co_await stream_.read_onto(reader_.input(), kReadBytes);
    }
  } catch (const std::system_error&) {
    client_ended_ = true;
  }
}

void HttpConnection::enter_reading_phase() {
  const HttpServerOptions& options = core_.options;
  const Phase phase = !reader_.has_begun()                                ? Phase::idle
                      : reader_.state() == HttpRequestReader::State::head ? Phase::head
                                                                          : Phase::body;
  if (phase != std::exchange(phase_, phase)) {
    phase_began_ = loop_.time();
    unlink();
    core_.connections.push_back(*this);
  }
  Duration limit = phase == Phase::idle ? options.keep_alive_timeout : options.header_timeout;
  if (phase == Phase::body) {
    const auto seconds = static_cast<std::int64_t>(reader_.body_bytes() / options.min_body_rate);
    limit = options.body_timeout + std::chrono::seconds{seconds};
  }
  set_deadline(saturating_add(phase_began_, limit));
}

bool HttpConnection::is_body_wanted() {
  const bool has_just_begun = phase_ != Phase::body;
  if (has_just_begun && core_.options.answer_early) {
    if (auto answer = core_.options.answer_early(request_)) {
      refuse_with(*std::move(answer));
      return false;
    }
  }
  count_body(reader_.body_held());
  // A client that sends little does not pay for those that send much.
  if (body_held_ <= kGathered || core_.bodies_bytes <= core_.options.max_bodies_bytes) return true;
  refuse(503, "too many large requests are under way");
  return false;
}

void HttpConnection::count_body(std::size_t held) noexcept {
  core_.bodies_bytes += held;
  core_.bodies_bytes -= std::exchange(body_held_, held);
}

void HttpConnection::refuse(int status, std::string_view detail) {
  reader_.show_head();
  refuse_with(own_answer(status, detail));
}

ServerResponse HttpConnection::own_answer(int status, std::string_view detail) const {
  if (core_.options.refusal) return core_.options.refusal(request_, status, detail);
  ServerResponse response = ServerResponse::problem(status, detail);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

void HttpConnection::refuse_with(ServerResponse response) {
  keep_alive_ = false;
  is_lingering_ = true;
  is_refused_ = true;
  response_ = std::move(response);
  std::string().swap(request_.body);
  count_body(0);
  append_head();
  output_ += response_.body;
}

// --- its answer

Coro<bool> HttpConnection::ask_handler() {
  keep_alive_ = reader_.keep_alive();
  if (core_.stopping) {
    response_ = own_answer(503, kStopping);
    co_return true;
  }
  ++core_.requests;
  phase_ = Phase::handling;
  set_deadline(saturating_add(loop_.time(), core_.options.request_timeout));
  if (core_.options.cancel_when_client_leaves) {
    stream_.when_ended([this] { interrupt(Interrupt::client_left); });
  }
  if (!output_.empty()) flush_soon();
  switch (co_await guarded(run_handler())) {
    case Interrupt::none: co_return true;
    case Interrupt::timeout:
      response_ = own_answer(503, "the answer took longer than this server allows");
      co_return true;
    case Interrupt::stopped: response_ = own_answer(503, kStopping); co_return true;
    case Interrupt::client_left: break;
  }
  stream_.abort();
  co_return false;
}

Coro<void> HttpConnection::run_handler() {
  std::exception_ptr failure;
  try {
    response_ = co_await core_.handler(request_);
  } catch (const CancelledError&) {
    if (was_cancelled()) throw;
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure == nullptr) co_return;
  report(failure);
  response_ = own_answer(500, "the handler of this request failed");
}

Coro<bool> HttpConnection::send_answer() {
  keep_alive_ = keep_alive_ && !core_.stopping && !client_ended_ && !asks_to_close(response_);
  try {
    append_head();
  } catch (const std::invalid_argument&) {
    report(std::current_exception());
    response_ = own_answer(500, "the handler of this request gave an answer that cannot be sent");
    append_head();
  }
  if (has_body_to_send()) {
    if (!response_.stream && response_.body.size() <= kGathered) {
      output_ += response_.body;
    } else {
      const bool sent = co_await send_body();
      if (!sent) {
        stream_.abort();
        co_return false;
      }
    }
  }
  forget_answer();
  is_lingering_ = !keep_alive_ && reader_.has_more();
  co_return keep_alive_;
}

// Moved away first: assigning an empty body would keep the block of the old one for as long as the connection rests.
void HttpConnection::forget_answer() {
  const ServerResponse sent = std::move(response_);
  response_ = {};
}

void HttpConnection::append_head() {
  if (core_.options.before_sending) core_.options.before_sending(request_, response_);
  is_chunked_ = false;
  HttpFraming framing;
  if (response_.stream && may_have_body(response_.status)) {
    is_chunked_ = framing.chunked = !reader_.is_http_1_0();
    keep_alive_ = keep_alive_ && framing.chunked;
  } else if (may_have_body(response_.status)) {
    framing.length = response_.body.size();
  }
  if (!keep_alive_) {
    framing.connection = "close";
  } else if (reader_.is_http_1_0()) {
    framing.connection = "keep-alive";
  }
  append_response_head(output_, response_, framing, core_.date());
}

bool HttpConnection::has_body_to_send() const noexcept {
  return request_.method != HttpMethod::head && may_have_body(response_.status);
}

Coro<bool> HttpConnection::send_body() {
  is_broken_ = false;
  Interrupt interrupted = Interrupt::none;
  try {
    interrupted = co_await guarded(response_.stream ? run_stream() : send_whole_body());
  } catch (const std::system_error&) {
    is_broken_ = true;
  }
  co_return interrupted == Interrupt::none && !is_broken_;
}

Coro<void> HttpConnection::send_whole_body() {
  flush();
  for (std::string_view rest = response_.body; !rest.empty(); rest.remove_prefix(std::min(kSlice, rest.size()))) {
    give(rest.substr(0, kSlice));
    if (is_choked()) co_await drain();
  }
}

Coro<void> HttpConnection::run_stream() {
  flush();
  phase_ = Phase::handling;
  set_deadline(kNever);
  BodyWriter out(*this);
  std::exception_ptr failure;
  try {
    co_await response_.stream(out);
  } catch (const CancelledError&) {
    if (was_cancelled()) throw;
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure != nullptr) {
    // That the client has gone is no news to report.
    if (!std::exchange(is_broken_, true)) report(failure);
  } else if (is_chunked_) {
    output_ += "0\r\n\r\n";
  }
}

Coro<void> HttpConnection::write_piece(std::string_view piece) {
  for (; !piece.empty(); piece.remove_prefix(std::min(kSlice, piece.size()))) {
    const std::string_view slice = piece.substr(0, kSlice);
    if (is_chunked_) fmt::format_to(std::back_inserter(output_), "{:x}\r\n", slice.size());
    output_ += slice;
    if (is_chunked_) output_ += "\r\n";
    flush();
    try {
      co_await drain();
    } catch (const std::system_error&) {
      is_broken_ = true;
      throw;
    }
  }
}

bool HttpConnection::was_cancelled() const noexcept { return interrupt_ != Interrupt::none || task_.cancelling() > 0; }

void HttpConnection::report(const std::exception_ptr& failure) noexcept {
  try {
    loop_.handle_exception(fmt::format("HTTP {} {}", to_string(request_.method), printable(request_.path, kMostQuoted)),
                           failure);
  } catch (...) {
    loop_.handle_exception("HTTP", failure);
  }
}

// --- sending

void HttpConnection::give(std::string_view bytes) {
  if (stream_.is_closing()) return;
  given_ += bytes.size();
  stream_.write(bytes);
}

void HttpConnection::flush() {
  if (output_.empty()) return;
  give(output_);
  if (output_.capacity() > kKeptOutput) {
    std::string().swap(output_);
  } else {
    output_.clear();
  }
}

void HttpConnection::flush_soon() {
  if (std::exchange(flush_is_due_, true)) return;
  flush_ = loop_.call_soon([this] {
    flush_is_due_ = false;
    flush();
  });
}

Coro<void> HttpConnection::drain() {
  const Phase phase = std::exchange(phase_, Phase::sending);
  const TimePoint deadline = deadline_;
  if (is_choked()) expect_progress();
  co_await stream_.drain();
  phase_ = phase;
  set_deadline(deadline);
}

void HttpConnection::expect_progress() {
  taken_before_ = given_ - stream_.write_buffer_size();
  set_deadline(saturating_add(loop_.time(), core_.options.send_timeout));
}

Coro<void> HttpConnection::close() {
  if (stream_.is_closing()) co_return;
  flush();
  if (is_lingering_) {
    phase_ = Phase::closing;
    stream_.write_eof();
    set_deadline(saturating_add(loop_.time(), kLinger));
    co_await guarded(read_and_drop());
  }
  phase_ = Phase::sending;
  stream_.close();
  expect_progress();
  bool is_sent = false;
  try {
    is_sent = co_await guarded(stream_.wait_closed()) == Interrupt::none;
  } catch (const std::system_error&) {
    // The client has gone before all was sent.
  }
  if (!is_sent) stream_.abort();
}

Coro<void> HttpConnection::read_and_drop() {
  std::string& dropped = reader_.input();
  std::size_t count = 0;
  try {
    for (bool more = true; more && count < kMostDropped; count += dropped.size()) {
      dropped.clear();
      more = co_await stream_.read_onto(dropped, kReadBytes);
    }
  } catch (const std::system_error&) {
    // It has closed its side, in its own way.
  }
}

}  // namespace argiope::detail

#include "web/http/http2_connection.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace {

// Reads before others have their turn.
constexpr int kReadsInTurn = 16;
// The bytes that were under way of streams that were broken off, and little else.
constexpr std::size_t kMostWhileIdle = Http2Session::kConnectionWindow + 64 * 1024;

void give_time(Http2Stream& stream, Duration more) {
  if (stream.deadline == nullptr || stream.deadline->expired()) return;
  stream.deadline->reschedule(saturating_add(stream.deadline->when(), more));
}

}  // namespace

std::shared_ptr<Http2Connection> Http2Connection::begin(ConnectionPtr connection, Setup setup) {
  auto made = std::make_shared<Http2Connection>(std::move(connection), std::move(setup));
  made->flush_soon();
  made->wait_for_bytes({WireStep::Outcome::wants_read, 0});
  return made;
}

Http2Connection::Http2Connection(ConnectionPtr connection, Setup setup)
    : connection_(std::move(connection)),
      setup_(std::move(setup)),
      loop_(EventLoop::current()),
      session_(setup_.limits),
      key_(connection_->key),
      remote_(connection_->remote),
      received_at_(loop_.time()),
      idle_since_(received_at_) {}

Http2Connection::~Http2Connection() { pause_.cancel(); }

// --- streams

void Http2Connection::start(Http2Stream& stream, std::string& head) {
  was_idle_ = false;
  received_idle_ = 0;
  if (is_paused_) give_time(stream, paused_until_ - loop_.time());
  session_.start(stream, head);
  flush_soon();
}

void Http2Connection::stop(Http2Stream& stream, bool timed_out) noexcept {
  const bool is_silent = timed_out && received_at_ < stream.response.sent_at;
  session_.stop(stream);
  if (is_closed()) return;
  if (is_silent) session_.retire();
  guarded([&] { flush(); });
  tell();
}

void Http2Connection::retire() {
  session_.retire();
  if (is_idle()) close();
}

void Http2Connection::close() {
  if (is_closed()) return;
  session_.say_goodbye();
  guarded([&] { flush(); });
  end(nullptr);
}

// Tells of what may have changed for others.
void Http2Connection::tell() noexcept {
  if (is_closed()) return;
  if (is_idle()) {
    if (session_.is_retired()) return close();
    if (!std::exchange(was_idle_, true)) idle_since_ = loop_.time();
  }
  if (setup_.on_change) setup_.on_change(*this);
}

// --- bytes

template <class Act>
void Http2Connection::guarded(Act act) noexcept {
  try {
    act();
  } catch (const std::exception&) {
    const Error why{Errc::internal, {}};
    end(&why);
  }
}

void Http2Connection::wait_for_bytes(WireStep step) {
  if (std::exchange(waits_to_read_, true)) return;
  connection_->when_ready(step, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->is_closed()) return;
    self->waits_to_read_ = false;
    self->guarded([&] { self->read(); });
  });
}

void Http2Connection::read() {
  const std::size_t active = session_.active();
  const bool had_room = session_.has_room();
  for (int i = 0; i < kReadsInTurn; ++i) {
    const WireStep step = connection_->read_now(*setup_.read_buffer);
    if (step.outcome == WireStep::Outcome::ended) return end(nullptr);
    if (step.outcome == WireStep::Outcome::broken) {
      const Error why = connection_->broken("read");
      return end(&why);
    }
    if (step.outcome != WireStep::Outcome::done) {
      wait_for_bytes(step);
      break;
    }
    const bool goes_on = take(std::string_view(*setup_.read_buffer).substr(0, step.bytes));
    if (!goes_on) break;
    if (i + 1 == kReadsInTurn) {
      loop_.call_soon([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self != nullptr && !self->is_closed()) self->guarded([&] { self->read(); });
      });
    }
  }
  flush_soon();
  if (!is_closed() && (session_.active() != active || session_.has_room() != had_room)) tell();
}

bool Http2Connection::take(std::string_view bytes) {
  received_at_ = loop_.time();
  if (is_idle()) {
    received_idle_ += bytes.size();
    if (received_idle_ > kMostWhileIdle) session_.retire();
  }
  session_.receive(bytes, received_at_);
  if (session_.is_broken()) return false;
  if (setup_.byte_rate == nullptr) return true;
  const TimePoint until = setup_.byte_rate->pay(bytes.size(), received_at_);
  if (until <= received_at_) return true;
  for (Http2Stream* const stream : session_.streams()) give_time(*stream, until - received_at_);
  is_paused_ = true;
  paused_until_ = until;
  pause_ = loop_.call_at(until, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->is_closed()) return;
    self->is_paused_ = false;
    self->guarded([&] { self->read(); });
  });
  return false;
}

void Http2Connection::flush_soon() {
  if (is_closed() || std::exchange(will_flush_, true)) return;
  loop_.call_soon([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->will_flush_ = false;
    self->guarded([&] { self->flush(); });
  });
}

void Http2Connection::flush() {
  const std::size_t active = session_.active();
  while (!is_closed() && !waits_to_write_) {
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
      session_.fill(out_, kMostToSend);
      if (out_.empty()) break;
    }
    const WireStep step = connection_->write_now(std::string_view(out_).substr(sent_));
    if (step.outcome == WireStep::Outcome::done) {
      sent_ += step.bytes;
    } else if (step.outcome == WireStep::Outcome::ended) {
      return end(nullptr);
    } else if (step.outcome == WireStep::Outcome::broken) {
      const Error why = connection_->broken("write");
      return end(&why);
    } else {
      waits_to_write_ = true;
      connection_->when_ready(step, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr || self->is_closed()) return;
        self->waits_to_write_ = false;
        self->guarded([&] { self->flush(); });
      });
    }
  }
  if (is_closed()) return;
  if (!waits_to_write_ && session_.is_over()) return end(nullptr);
  if (session_.active() != active) tell();
}

void Http2Connection::end(const Error* why) noexcept {
  if (is_closed()) return;
  connection_.reset();
  pause_.cancel();
  session_.lose(why);
  if (setup_.on_change) setup_.on_change(*this);
}

}  // namespace argiope

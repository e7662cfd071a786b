#include "engine/room.hpp"

#include <algorithm>

#include "engine/book_rules.hpp"

namespace argiope {

bool Room::take_now(std::uint64_t count) noexcept {
  if (closed_ || !waiting_.empty() || !has_room(live_, count, config_.capacity)) return false;
  take_anyway(count);
  return true;
}

void Room::take_anyway(std::uint64_t count) noexcept {
  live_ += count;
  coming_ += count;
}

Coro<Result<void>> Room::take(std::string_view queue, std::uint64_t count) {
  const auto closes = [] { return fail(Errc::cancelled, "the queues are being closed"); };
  if (closed_) co_return closes();
  if (take_now(count)) co_return Result<void>{};
  if (!waits_for_room(config_.at_capacity, count, config_.capacity)) {
    co_return queue_is_full(queue, live_, config_.capacity);
  }
  Future<void> room = loop_.create_future<void>();
  waiting_.emplace_back(count, room);
  bool cancelled = false;
  try {
    co_await room;
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    if (!room.cancelled()) coming_ -= std::min(coming_, count);
    give(room.cancelled() ? 0 : count);  // whoever is next may fit
    throw CancelledError();
  }
  if (closed_) co_return closes();
  co_return Result<void>{};
}

void Room::arrived(bool stays) {
  coming_ -= std::min<std::uint64_t>(coming_, 1);
  if (!stays) give(1);
}

void Room::give(std::uint64_t count) {
  live_ -= std::min(live_, count);
  while (!waiting_.empty()) {
    auto& [wanted, room] = waiting_.front();
    if (!room.done()) {
      if (!has_room(live_, wanted, config_.capacity)) return;
      take_anyway(wanted);
      room.set_result();
    }
    waiting_.pop_front();
  }
}

void Room::recount(std::uint64_t in_store) {
  live_ = in_store + coming_;
  give(0);
}

void Room::close() {
  closed_ = true;
  for (auto& [count, room] : std::exchange(waiting_, {})) {
    if (!room.done()) room.set_result();
  }
}

}  // namespace argiope

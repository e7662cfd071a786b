#include "engine/room.hpp"

#include <algorithm>

#include "engine/book_rules.hpp"

namespace argiope {

bool Room::take_now(std::uint64_t count) noexcept {
  if (closed_ || !waiting_.empty() || !has_room(live_, count, config().capacity)) return false;
  take_anyway(count);
  return true;
}

void Room::take_anyway(std::uint64_t count) noexcept {
  live_ += count;
  coming_ += count;
}

Coro<Result<void>> Room::take(std::uint64_t count) {
  const auto closes = [] { return fail(Errc::cancelled, "the queues are being closed"); };
  if (closed_) co_return closes();
  if (take_now(count)) co_return Result<void>{};
  if (!waits_for_room(config().at_capacity, count, config().capacity)) co_return is_full();
  Future<void> room = loop_.create_future<void>();
  waiting_.emplace_back(count, room);
  bool cancelled = false;
  try {
    co_await room;
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    give_back(room.cancelled() ? 0 : count);  // the next one may fit
    throw CancelledError();
  }
  if (closed_) co_return closes();
  co_return Result<void>{};
}

Coro<Result<void>> Room::take_all(Wanted wanted, TakeSome take_some) {
  for (auto next = wanted.begin(); next != wanted.end(); ++next) {
    auto& [room, count] = *next;
    Result<void> taken;
    bool cancelled = false;
    try {
      taken = co_await room->take(count);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    if (taken && !cancelled) continue;
    if (!cancelled && take_some && taken.error().code == Errc::refused) {
      count = take_some(*room);
      continue;
    }
    give_back(wanted, next);
    if (cancelled) throw CancelledError();
    co_return taken;
  }
  co_return Result<void>{};
}

Result<void> Room::take_all_now(const Wanted& wanted) {
  for (auto next = wanted.begin(); next != wanted.end(); ++next) {
    if (next->first->take_now(next->second)) continue;
    give_back(wanted, next);
    return next->first->is_full();
  }
  return {};
}

std::unexpected<Error> Room::is_full() const { return queue_is_full(queue_.name, live_, config().capacity); }

void Room::arrived(bool stays) {
  if (!stays) return give_back(1);
  coming_ -= std::min<std::uint64_t>(coming_, 1);
}

void Room::give_back(std::uint64_t count) {
  coming_ -= std::min(coming_, count);
  give(count);
}

void Room::give_back(const Wanted& taken, Wanted::const_iterator end) {
  for (auto one = taken.begin(); one != end; ++one) one->first->give_back(one->second);
}

void Room::give(std::uint64_t count) {
  live_ -= std::min(live_, count);
  while (!waiting_.empty()) {
    auto& [wanted, room] = waiting_.front();
    if (!room.done()) {
      if (!has_room(live_, wanted, config().capacity)) return;
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

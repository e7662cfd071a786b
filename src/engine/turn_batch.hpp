// TurnBatch: what one turn of the loop asks of the store goes there together, but in parts of so many: the store can work on
// the first while the loop makes the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace argiope {

// What its owner does next: sends what take() gives, at once, or after the tasks that are ready now what take_after_turn()
// gives; or nothing.
enum class Next : std::uint8_t { wait, send_now, send_after_turn };

template <class T>
class TurnBatch {
 public:
  Next add(T one) {
    waiting_.push_back(std::move(one));
    if (waiting_.size() == kMost) return Next::send_now;
    return std::exchange(scheduled_, true) ? Next::wait : Next::send_after_turn;
  }
  std::vector<T> take() { return std::exchange(waiting_, {}); }
  // What was to be sent after the turn: now.
  std::vector<T> take_after_turn() {
    scheduled_ = false;
    return take();
  }

 private:
  static constexpr std::size_t kMost = 32;
  std::vector<T> waiting_;
  bool scheduled_ = false;
};

}  // namespace argiope

#include "store/sqlite/internal/lock_wait.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

namespace argiope {

using namespace std::chrono_literals;

void LockWait::serve(SqliteDatabase& database) noexcept {
  sqlite3_busy_handler(
      database.handle(), [](void* self, int tries) { return static_cast<LockWait*>(self)->try_again(tries) ? 1 : 0; },
      this);
}

void LockWait::be_patient() {
  std::lock_guard lock(mutex_);
  patient_ = true;
}

void LockWait::begin_hurry() {
  std::lock_guard lock(mutex_);
  if (hurries_++ > 0) return;
  left_ = limit_;
  wake_.notify_one();
}

void LockWait::end_hurry() {
  std::lock_guard lock(mutex_);
  --hurries_;
}

bool LockWait::try_again(int tries) {
  // Soon at first, because most locks are had for a moment only.
  constexpr Duration kPauses[] = {1ms, 2ms, 5ms, 10ms, 15ms, 20ms, 25ms, 25ms, 25ms, 50ms, 50ms, 100ms};
  if (tries == 0) waited_ = {};
  Duration pause = kPauses[std::min<std::size_t>(static_cast<std::size_t>(tries), std::size(kPauses) - 1)];
  std::unique_lock lock(mutex_);
  const bool hurried = hurries_ > 0;
  if (hurried || !patient_) pause = std::min(pause, hurried ? left_ : limit_ - waited_);
  if (pause <= Duration::zero()) return false;
  if (!told_ && waited_ >= warning_) {
    told_ = true;
    spdlog::warn("database {}: another process has kept it locked for {:.0f} s; writes wait for it", path_,
                 to_seconds(waited_));
  }
  wake_.wait_for(lock, pause, [&] { return (hurries_ > 0) != hurried; });
  waited_ += pause;
  if (hurried) left_ -= pause;
  return true;
}

void LockWait::over() {
  if (!told_) return;
  told_ = false;
  spdlog::warn("database {}: it can be written again, after {:.0f} s", path_, to_seconds(waited_));
}

}  // namespace argiope

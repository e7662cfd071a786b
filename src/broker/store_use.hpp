// A store as those use it who may be destroyed while calls are under way: once let go of, no call reaches it any more.
#pragma once

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// store_(&Store::put, jobs, now) is store.put(jobs, now), or, after let_go(), answers Errc::cancelled.
//
// Lifetime: of the calls under way too; what was called before let_go() needs the store no longer than Store says.
class StoreUse {
 public:
  explicit StoreUse(Store& store) noexcept : store_(&store) {}

  void let_go() noexcept { store_ = nullptr; }
  bool is_gone() const noexcept { return store_ == nullptr; }
  std::optional<Error> failure() const { return is_gone() ? gone() : store_->failure(); }

  template <class T, class... Parameters, class... Arguments>
  Coro<Result<T>> operator()(Coro<Result<T>> (Store::*call)(Parameters...), Arguments&&... arguments) const {
    if (is_gone()) return answer_gone<T>();
    return (store_->*call)(std::forward<Arguments>(arguments)...);
  }

  // The same, again and again for as long as the store is busy.
  template <class T, class... Parameters, class... Arguments>
  Coro<Result<T>> patiently(Coro<Result<T>> (Store::*call)(Parameters...), Arguments... arguments) {
    struct Waiting {
      int& count;
      bool counted = false;
      ~Waiting() {
        if (counted && --count == 0) spdlog::warn("the store answers again");
      }
    } waiting{waiting_};
    for (;;) {
      auto reply = co_await (*this)(call, arguments...);
      if (!is_busy(reply)) co_return reply;
      if (!std::exchange(waiting.counted, true) && ++waiting_ == 1) {
        spdlog::warn("the store is waited for: {}", reply.error().message);
      }
      co_await sleep(kPause);
    }
  }
  template <class T>
  static bool is_busy(const Result<T>& reply) noexcept {
    return !reply && reply.error().code == Errc::busy;
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds{100};

  static std::optional<Error> gone() { return Error{Errc::cancelled, "who used the store was destroyed meanwhile"}; }
  template <class T>
  static Coro<Result<T>> answer_gone() {
    co_return std::unexpected(*gone());
  }

  Store* store_;
  int waiting_ = 0;  // calls that wait until it is no longer busy
};

}  // namespace argiope

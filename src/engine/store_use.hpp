// The means of those who may be destroyed while calls are under way: a store that no call reaches any more once it was
// let go of, and an object that a coroutine works on, which lives until it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// `work`, which may use what `owner` owns from its first step to its last. Parameters end last to first.
template <class T>
Coro<T> keep_alive([[maybe_unused]] std::shared_ptr<const void> owner, Coro<T> work) {
  co_return co_await std::move(work);
}

// store_(&Store::put, jobs, now) is store.put(jobs, now), or, after let_go(), answers Errc::cancelled.
//
// Lifetime: of the calls under way too; what was called before let_go() needs the store no longer than Store says.
class StoreUse {
 public:
  StoreUse() noexcept = default;  // of no store: as after let_go()
  explicit StoreUse(Store& store) noexcept : store_(&store) {}

  void let_go() noexcept { store_ = nullptr; }
  bool is_gone() const noexcept { return store_ == nullptr; }
  // How often it was called; no more is known of those who copied it.
  std::uint64_t calls() const noexcept { return calls_; }
  std::optional<Error> failure() const { return is_gone() ? gone() : store_->failure(); }

  template <class T, class... Parameters, class... Arguments>
  Coro<Result<T>> operator()(Coro<Result<T>> (Store::*call)(Parameters...), Arguments&&... arguments) const {
    if (is_gone()) return answer_gone<T>();
    ++calls_;
    return (store_->*call)(std::forward<Arguments>(arguments)...);
  }

 private:
  static std::optional<Error> gone() { return Error{Errc::cancelled, "the user of the store was destroyed meanwhile"}; }
  template <class T>
  static Coro<Result<T>> answer_gone() {
    co_return std::unexpected(*gone());
  }

  Store* store_ = nullptr;
  mutable std::uint64_t calls_ = 0;
};

// Whether a request of that key has come before. One that is repeated is answered at once, even where there is no room
// any more, or a lease has ended by it.
inline Coro<Result<OnceReply>> look_for_request(StoreUse store, RequestKey key) {
  return store(&Store::once, OnceRequest{.key = std::move(key), .only_look = true});
}

}  // namespace argiope

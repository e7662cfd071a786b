// SetWhile: a flag that is set while something goes on, however that ends.
#pragma once

#include <utility>

namespace argiope {

// Set until the end of its scope, also where an exception or a cancellation ends it; then as it was.
// Lifetime: the flag outlives it.
class SetWhile {
 public:
  explicit SetWhile(bool& flag) noexcept : flag_(flag), before_(std::exchange(flag, true)) {}
  SetWhile(const SetWhile&) = delete;
  SetWhile& operator=(const SetWhile&) = delete;
  ~SetWhile() { flag_ = before_; }

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace argiope

// ReadTurns: whose requests that read much are answered now.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/async/sync.hpp"

namespace argiope {

// Some at a time, and fewer of one caller, so that who asks without end leaves turns for the others. First come, first
// served.
//
// Threads: the loop's own.
class ReadTurns {
 public:
  static constexpr std::ptrdiff_t kAtOnce = 4;
  static constexpr std::ptrdiff_t kOfOneCaller = 2;

  // Ends with its last use. Lifetime: within that of its ReadTurns.
  class Turn {
   public:
    Turn(std::shared_ptr<Semaphore> of_caller, Semaphore::Permit its, Semaphore::Permit all) noexcept
        : of_caller_(std::move(of_caller)), its_(std::move(its)), all_(std::move(all)) {}

   private:
    std::shared_ptr<Semaphore> of_caller_;
    Semaphore::Permit its_;
    Semaphore::Permit all_;
  };
  // Suspends: until it is the caller's turn.
  Coro<Turn> next(std::string who);

 private:
  std::shared_ptr<Semaphore> turns_of(const std::string& who);

  Semaphore all_{kAtOnce};
  std::map<std::string, std::shared_ptr<Semaphore>> of_callers_;  // those of others than who has a turn go
};

}  // namespace argiope

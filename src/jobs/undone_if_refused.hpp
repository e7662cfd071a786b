// A part of JobTransitions that its sources share.
#pragma once

#include <limits>

#include "jobs/internal/job_transitions.hpp"

namespace argiope {

inline constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

// `act` as a whole or not at all. `may_be`: whether it may be refused when half of it is done.
template <class Act>
auto JobTransitions::undone_if_refused(bool may_be, Act act) -> decltype(act()) {
  if (!may_be) return act();
  rows_.transaction.mark();
  try {
    if constexpr (std::is_void_v<decltype(act())>) {
      act();
      rows_.transaction.keep();
    } else {
      auto result = act();
      rows_.transaction.keep();
      return result;
    }
  } catch (const RequestRefused&) {
    rows_.transaction.take_back();
    throw;
  }
}

}  // namespace argiope

// Ends a benchmark whose work has failed.
#pragma once

#include <errno.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "argiope/base/error.hpp"

namespace argiope::bench {

[[noreturn]] inline void stop(const Error& error) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, error.message);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) stop(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace argiope::bench

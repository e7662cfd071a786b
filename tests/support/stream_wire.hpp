// A stream and the plain descriptor at its other end, and the errors of streams.
#pragma once

#include <system_error>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/stream.hpp"
#include "support/descriptors.hpp"

namespace argiope {

struct Wire {
  Stream stream;
  detail::UniqueFd peer;
};
inline Wire make_wire(const StreamOptions& options = {}) {
  auto [ours, theirs] = make_socket_pair();
  return {Stream(ours.release(), options), std::move(theirs)};
}

// The code of the system_error that `failing` ends with; none: it ends well.
inline Coro<std::error_code> code_of(Coro<void> failing) {
  try {
    co_await std::move(failing);
  } catch (const std::system_error& error) {
    co_return error.code();
  }
  co_return std::error_code();
}

}  // namespace argiope

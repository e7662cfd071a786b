// JobSource: where a Worker has its jobs from, and whom it tells how they ended: the broker of its process, or a daemon
// elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/detail/lease.hpp"
#include "engine/internal/backlog.hpp"

namespace argiope {

// As Engine's functions of the same names.
//
// Threads: the loop's own.
class JobSource {
 public:
  virtual ~JobSource() = default;

  virtual Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) = 0;
  // Perhaps nothing, when nothing has come within `wait`. Errors: of the store, or of the daemon; cancelled: it would
  // wait, and the source closes.
  virtual Coro<Result<std::vector<LeasedJob>>> lease_within(LeaseCall call, Duration wait) = 0;
  virtual Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) = 0;
  // For how long from now, as far as is known here; nullopt: the lease is lost. A source that learns of a loss later
  // asks to stop the job, by the call's on_cancel.
  virtual std::optional<Duration> renew(std::uint64_t token) = 0;
  virtual bool set_progress(std::uint64_t token, double fraction, std::string message) = 0;
  virtual bool set_output(std::uint64_t token, std::string output) = 0;
  // Errors: of the store, or of the daemon; cancelled: the source closes.
  virtual Coro<Result<Backlog>> backlog(BacklogLook look) = 0;
  // Why nothing works any more; nullopt: it does.
  virtual std::optional<Error> failure() const = 0;
};

}  // namespace argiope

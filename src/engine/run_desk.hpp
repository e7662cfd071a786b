// RunDesk: the runs under way at a broker, from what they say of themselves to their being asked to stop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/desk.hpp"

namespace argiope {

class RunDesk final : public Desk {
 public:
  explicit RunDesk(Owned& owned) : Desk(owned) {}

  static Duration lease_time_of(const Run& run);
  // Whether it may go on at the next owner.
  bool outlives_us(const Run& run) const { return options_.adopt_leases && run.call->remote; }

  // For how long from now; nullopt: the lease is lost.
  std::optional<Duration> renew(std::uint64_t token);
  std::optional<RunningJob> find(std::uint64_t token) const;
  std::vector<RunningJob> all() const;
  bool set_progress(std::uint64_t token, double fraction, std::string message);
  bool set_output(std::uint64_t token, std::string output);
  // The token of the job's run, if it has left any output so far; else 0.
  std::uint64_t with_output(JobId id) const;
  // Says of a job that runs here what there is to say; false for any other.
  bool explain(JobId id, JobExplanation& why) const;

  void ask_to_stop(std::uint64_t token, std::string why);
  static void tell_holder(const LeaseCall& call, std::uint64_t token) noexcept;
  // Its end is on its way into the store.
  void end(std::uint64_t token);

 private:
  static RunningJob seen(std::uint64_t token, const Run& run);
  void tell_progress(const Run& run);
  Coro<void> write_outputs(std::uint64_t token);
};

}  // namespace argiope

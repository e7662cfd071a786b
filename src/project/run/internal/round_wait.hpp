// Whether a run that is to end with a project's round waits on, or has waited for all that is to be waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

enum class RoundWait : std::uint8_t {
  goes_on,
  over,   // it has no round, or is gone
  stuck,  // it stands still, or all that is left is due after `limit`
};
// Of a project with nothing under way: what waits for its rate or its host goes on, what waits to be tried again may
// not.
// Cost: that of PageEngine::round_due().
RoundWait look_at_round(const PageEngine& engine, std::string_view project, WallTime limit);

// Waits for the visits that the end of rounds leads to, such as those that on_finished asks for. Pages that are asked
// for within `kLongest` are visited, however long their host or the project's rate holds them up; what they lead to in
// turn is not waited for, or scripts that send each other messages would never end.
class AfterRounds {
 public:
  static constexpr Duration kLongest = std::chrono::seconds{10};
  // The rounds of these projects are over at `now`.
  AfterRounds(const PageEngine& engine, std::vector<std::string> projects, WallTime now)
      : engine_(engine), projects_(std::move(projects)), limit_(now + kLongest) {}

  // Cost: reads what is known of all pages, unless one is due.
  bool goes_on(WallTime now);

 private:
  bool has_more_to_do(std::string_view project, WallTime now) const;

  const PageEngine& engine_;
  const std::vector<std::string> projects_;
  const WallTime limit_;
  std::optional<std::uint64_t> last_visit_;  // of those that are still waited for, once the limit is over
};

}  // namespace argiope

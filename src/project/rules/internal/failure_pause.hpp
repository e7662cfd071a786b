// When a project whose visits keep failing pauses, and how it finds out that it may go on: a pure machine, whose
// callers say what time it is and what has happened.
//
//              `after` failures in a row,               `until` is over
//              over more than one host
//   ┌─────────┐ ─────────────────────────► ┌────────┐ ─────────────────► ┌─────────┐
//   │ running │                            │ paused │                    │ probing │   lets exactly `probes`
//   └─────────┘ ◄───────────────────────   └────────┘ ◄───────────────── └─────────┘   visits through
//        ▲        resume()                            all have failed, or the     │
//        │                                            time is up: twice as long   │
//        └────────────────────────────────────────────────────────────────────────┘
//                    one has succeeded; or none could be made till the time was up
//
// While failures come in a row, no more visits are under way than it takes to pause: so that what pauses it is `after`
// visits and not those as well that have begun meanwhile.
//
// Source: pyspider's Project.paused (FAIL_PAUSE_NUM, PAUSE_TIME, UNPAUSE_CHECK_NUM), less its fault: its probing lets
//         everything through, and without three visits it never ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

struct PauseRules {
  std::uint32_t after = 10;  // failures in a row; 0: it never pauses
  std::uint32_t probes = 3;  // at least 1
  Duration first = std::chrono::minutes{5};
  Duration longest = std::chrono::hours{1};
  // After so long, what has not ended of a probing has failed.
  Duration probing = std::chrono::minutes{5};
};

// The right to begin one visit; its end is told with it.
struct VisitPass {
  std::uint64_t epoch = 0;
  friend bool operator==(const VisitPass&, const VisitPass&) = default;
};

// Times are the calendar's, since they are stored; a clock that is set back prolongs nothing beyond its full length.
class FailurePause {
 public:
  enum class State : std::uint8_t { running, paused, probing };

  explicit FailurePause(PauseRules rules = {});

  // Whether a visit may begin, and the pass for it. Each pass that is taken is a visit that ends, or is given back.
  bool may_begin(WallTime now) const;
  std::optional<VisitPass> begin(WallTime now);
  // It was not begun after all.
  void give_back(VisitPass pass);
  // A visit has ended. One that began before the last change of state counts for nothing: it knows nothing new.
  // `host`: a fingerprint of what was asked.
  void ended(VisitPass pass, std::uint64_t host, bool succeeded, WallTime now);
  // Another number of failures from now on; 0 ends a pause, too.
  void set_after(std::uint32_t after);
  // A person has resumed it.
  void resume();

  State state(WallTime now) const { return advanced(now).state_; }
  // When something changes by time alone: of a pause its end, of a probing the time at which it is decided; else
  // nullopt.
  std::optional<WallTime> next_change() const;
  std::uint32_t failures() const noexcept { return failures_; }  // in a row
  Duration last_pause() const noexcept { return length_; }       // zero: none since the last success after one

  // All of it but the passes that are out: after a restart what was probed is probed anew.
  std::string stored() const;
  // Errors: invalid_input.
  static Result<FailurePause> read(std::string_view stored, PauseRules rules = {});

 private:
  FailurePause advanced(WallTime now) const;
  void advance(WallTime now);
  void pause(WallTime now);
  void run();
  void left(VisitPass pass) noexcept;
  bool spans_hosts() const noexcept { return failing_hosts_differ_ || !knows_several_hosts_; }

  PauseRules rules_;
  State state_ = State::running;
  std::uint64_t epoch_ = 1;
  std::uint32_t failures_ = 0;
  Duration length_{};
  WallTime changes_at_{};  // the end of the pause, or of the probing
  std::uint32_t begun_ = 0, failed_probes_ = 0;
  std::uint32_t under_way_ = 0;  // of those begun since it is running
  // One bad host of several rests itself; only a project that has never asked another is paused by one.
  std::optional<std::uint64_t> first_host_, failing_host_;
  bool knows_several_hosts_ = false;
  bool failing_hosts_differ_ = false;
};

std::string_view to_string(FailurePause::State state) noexcept;

}  // namespace argiope

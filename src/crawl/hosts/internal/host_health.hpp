// The health of one host, by how it answers: the rule that tells the trouble of a URL from the trouble of its host.
// Pure: no clock, no chance, no I/O.
//
//                            answer to a page                     no connection
//   unknown ──────────────────────────────────────► answering ─────────────────────► troubled
//      │ no connection, no robots.txt                   ▲  │ ten URLs in a row           │  ▲
//      └────────────► troubled                          │  └──────► suspected ── probe ──┘  │ probe fails
//                                                       └─ answer ─────┴── probe answered ──┘
//   troubled, too often ──► lost: nothing more is asked in this run
//
// A failure before a connection (DNS, connecting, TLS, an address that is refused) is the host's. One after it (a
// reset, silence) is the URL's, until others fail too: then the host is suspected, and probed before anything else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// Threads: one at a time. Cost: O(1).
class HostHealth {
 public:
  // URLs in a row that fail after a connection before the host is probed.
  static constexpr std::uint32_t kSuspectedAfter = 10;
  // Failures in a row of a host that has answered in this run. One that never has gets as many attempts as a URL.
  static constexpr std::uint32_t kMostFailures = 10;
  // A host of which nothing but probes has been answered for so long is lost, too.
  static constexpr Duration kPatience = std::chrono::hours{1};
  static constexpr Duration kLongestRest = std::chrono::minutes{2};
  static constexpr Duration kLongestRestAfterProbe = std::chrono::seconds{4};

  // A page has been answered: with whatever status, or with what is no HTTP.
  void page_answered() noexcept {
    answered_ = proven_ = true;
    failures_ = urls_failed_ = probes_ = 0;
    suspected_ = false;
  }
  // A probe, or robots.txt, has been answered: how long the host rests. nullopt: it is lost, since for too long nothing
  // else has been.
  std::optional<Duration> probe_answered(TimePoint now) noexcept {
    answered_ = true;
    failures_ = 0;
    if (!suspected_) return Duration::zero();
    suspected_ = false;
    if (now - failing_since_ >= kPatience) return std::nullopt;
    return std::min<Duration>(kFirstRest * (1 << std::min(++probes_, 10u)), kLongestRestAfterProbe);
  }
  // There was no connection, or no answer to a probe: how long the host rests before the next attempt. nullopt: it is
  // lost. `attempts`: how many a host gets that has never answered.
  std::optional<Duration> failed(Errc code, std::uint32_t attempts) noexcept {
    ++failures_;
    const bool may_pass = code != Errc::tls && code != Errc::refused;
    const std::uint32_t most = answered_ ? kMostFailures : may_pass ? std::max(attempts, 1u) : 1;
    if (failures_ >= most) return std::nullopt;
    return std::min<Duration>(kFirstRest * (1 << std::min(failures_, 10u)), kLongestRest);
  }
  // A URL has failed after a connection; only its first failure of the run counts.
  void url_failed(TimePoint now) noexcept {
    if (urls_failed_++ == 0) failing_since_ = now;
    if (urls_failed_ % kSuspectedAfter == 0) suspected_ = true;
  }
  // Asked for the first time, with little patience, it gave no answer in that time. That counts as nothing.
  void was_slow() noexcept { slow_ = true; }

  bool suspected() const noexcept { return suspected_; }  // to be probed before anything else
  bool answered() const noexcept { return answered_; }    // in this run, if only a probe
  // A page has been answered, and nothing has failed since that is the host's.
  bool known_to_answer() const noexcept { return proven_ && !troubled(); }
  bool troubled() const noexcept { return failures_ > 0 || suspected_ || probes_ > 0; }
  // No page has been answered, but none was waited for with patience either.
  bool is_new() const noexcept { return !proven_ && !slow_ && failures_ == 0; }
  // Asked, and not answered: apart from those that nobody has asked yet.
  bool is_slow() const noexcept { return troubled() || (slow_ && !proven_); }
  // For a host that comes back after it was let go.
  void remember(bool answered, bool proven) noexcept {
    answered_ = answered;
    proven_ = proven;
  }
  bool proven() const noexcept { return proven_; }
  std::uint32_t failures() const noexcept { return failures_; }  // in a row

 private:
  static constexpr Duration kFirstRest = std::chrono::milliseconds{250};

  TimePoint failing_since_{};
  std::uint32_t failures_ = 0;     // in a row, of the host
  std::uint32_t urls_failed_ = 0;  // in a row, after a connection
  std::uint32_t probes_ = 0;       // answered since a page was
  bool suspected_ = false;
  bool answered_ = false;
  bool proven_ = false;
  bool slow_ = false;
};

// Why nothing more is asked of a host in this run.
struct HostLoss {
  Error cause = {};
  // It could not be reached, so that its URLs are not either; else robots.txt is what fails, and says nothing of them.
  bool unreachable = false;
  // The next URL of it is the one that was to be asked, and fails with the cause. All others have not been asked.
  bool owes_failure = false;
};

}  // namespace argiope

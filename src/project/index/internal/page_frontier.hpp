// Which of a project's pages is visited next: the most important ones that are due soon, in a JobQueue whose keys are
// hosts; all others wait in the PageIndex, which is swept, a stretch at a time, when the queue runs low or time has
// passed. So what is in memory beside the index is bounded, whatever waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/jobs/job_queue.hpp"
#include "project/index/internal/page_index.hpp"

namespace argiope {

// Order: higher priority first, then the earlier number, of pages that are due and whose host may be asked. A host that
// must wait holds up no other, however many pages of it wait and however important they are.
//
// While all that waits fits into the queue, the order is exact. Else it is as exact as is_certain() says: what was left
// out is remembered by its most important page (of all hosts, and of each host whose pages had to make room) and by its
// earliest due time, and as soon as that might go before what is here, a sweep of the index is wanted. Meanwhile next()
// gives what is here. So a page that should go first is passed over for no longer than a sweep takes and, after another
// one, a pause of 5 ms and 100 ns a page (4 times that while some page may be visited): 1 s to 4 s at ten million
// pages. A page that changed() tells of waits for a sweep only where more important ones do.
//
// When the queue is full, pages make room: first those of hosts that rest, down to an eighth of `most`; then those of
// the hosts that have most, until all have as many; and where more hosts have pages than fit, the least important.
//
// A page's host and priority, and when it is due, are read from the index whenever it comes into the queue.
// Threads: one at a time. Knows no store and no socket.
// Cost:    of a call O(log most), at times O(most) where the queue is full; of sweep() about a millisecond.
// Memory:  some 200 bytes for each of `most` pages, and for each host that has some of them or rests.
class PageFrontier {
 public:
  struct Limits {
    double rate = kUnlimitedRate;  // visits a second, over all hosts; 0: none
    double burst = 1;              // less than 1 counts as 1; lowering it forgets permits that were saved up
    std::uint32_t concurrency = kUnlimited;
    bool paused = false;
  };
  // At most about `most` pages (16 at least) are in the queue, and no host has more than its share where others wait.
  // `index` outlives it; what is in it already is found by the first sweep.
  PageFrontier(PageIndex& index, PageIndex::TermsOf terms_of, std::size_t most = 10'000);
  PageFrontier(PageFrontier&&) = delete;

  void set_limits(const Limits& limits, TimePoint now);
  // `wall` is the calendar's time at `now`: to be told before anything else, and at least whenever the two run apart.
  // Differences below a millisecond count as none.
  void set_clock(TimePoint now, WallTime wall);

  // The index says now that it waits, anew or in another place (priority, due); or that it waits no more. A page that
  // next() has given is looked at again when it comes back.
  void changed(PageIndex::Number page, TimePoint now);

  struct Ticket {
    PageIndex::Number page = 0;
    std::uint32_t host = 0;
    Lease lease;
  };
  // The most important page that may be visited now. It is the caller's until one of the next two. A ticket counts
  // once.
  std::optional<Ticket> next(TimePoint now);
  // The visit has ended, and the index has what is known now: if it waits again, it is queued again.
  void done(const Ticket& ticket, TimePoint now);
  // It could not begin, for its host's sake: back to its place, if the index says that it waits. The permit of the rate
  // is given back unless another has been taken since.
  void put_back(const Ticket& ticket, TimePoint now);

  // The host is not asked before `until` (kNever: before wake()), by this project. Never shortens a rest.
  void rest(std::uint32_t host, TimePoint until, TimePoint now);
  void wake(std::uint32_t host, TimePoint now);

  // Takes a stretch of a sweep, a millisecond or so, if one is wanted.
  void sweep(TimePoint now);
  // When next() or sweep() may do something that they do not do now; kNever without a call in between.
  TimePoint next_wakeup(TimePoint now);

  // Pages that wait in the queue.
  std::size_t in_queue() const noexcept { return queue_.ready_count() + queue_.delayed_count(); }
  // next() gives what it would give if the queue had all pages that wait.
  bool is_certain(TimePoint now);
  std::uint64_t sweeps() const noexcept { return sweeps_; }  // that have ended
  // Pages with a smaller place that may go before it: for explain. O(queue).
  Explanation explain(PageIndex::Number page, TimePoint now);
  // The pages of a host in the queue; `first_due` of those due later. O(queue).
  struct OfHost {
    std::size_t ready = 0, delayed = 0;
    TimePoint first_due = kNever;
  };
  OfHost of_host(std::uint32_t host, TimePoint now);
  // The rules' terms have changed: due times of what waits for its recrawl are others.
  void terms_changed(TimePoint now);
  std::size_t memory_bytes() const noexcept;

 private:
  // A place in the order: less goes first.
  struct Rank {
    std::int32_t priority = 0;
    PageIndex::Number page = 0;
    friend bool operator<(const Rank& a, const Rank& b) noexcept {
      return a.priority != b.priority ? a.priority > b.priority : a.page < b.page;
    }
  };
  struct Host {
    std::uint32_t number = 0;
    KeyId key{};
    TimePoint rest_until = TimePoint::min();
    // The most important of its ready pages that had to make room, good during the round it was found in.
    Rank left{};
    std::uint64_t left_in_round = 0;
    std::size_t low = 0;  // with so few in the queue it wants the others
    // Where it is among the hungry ones of that round.
    std::uint64_t hungry_in_round = 0;
    TimePoint hungry_at{};
    Rank hungry_for{};
  };
  // The ready pages of one host in the queue, the most important one first.
  struct Group {
    Host* host = nullptr;
    std::size_t begin = 0, count = 0, kept = 0;
    bool rests = false;
  };
  struct Ready {
    std::uint32_t host = 0;
    Rank rank;
  };
  enum class Want : std::uint8_t { none, calm, urgent };

  bool has_left(const Host& host) const noexcept { return host.left_in_round == round_; }
  bool is_stopped() const noexcept { return limits_.paused || !(limits_.rate > 0) || limits_.concurrency == 0; }
  TimePoint to_monotonic(WallTime due) const noexcept;
  WallTime wall_at(TimePoint now) const noexcept;

  Host& host_of(std::uint32_t number);
  void update_hunger(Host& host, TimePoint now);
  void forget_hunger(Host& host);
  void forget_idle_hosts(TimePoint now);

  void tick(TimePoint now);
  bool is_behind(const Rank& rank, std::uint32_t host) const;
  // Into the queue, or left out; true: into the queue.
  bool admit(const PageIndex::Waiting& waiting, TimePoint now);
  void remove(PageIndex::Number page, std::uint32_t host, TimePoint now);
  void look_again(PageIndex::Number page, TimePoint now);
  void look_at_all_again(TimePoint now);

  void trim(TimePoint now);
  void trim_ready(TimePoint now);
  void trim_delayed(TimePoint now);
  static void share(std::vector<Group*>& groups, std::size_t room, const std::vector<Ready>& ready);
  void cut(const Group& group, const std::vector<Ready>& ready, TimePoint now);

  std::optional<Rank> top() const;
  bool is_uncertain(TimePoint now) const;
  Want want(TimePoint now) const;
  void begin_sweep();
  void end_sweep(TimePoint now);

  PageIndex& index_;
  PageIndex::TermsOf terms_of_;
  const std::size_t most_ready_;  // more are trimmed to kept_ready_
  const std::size_t kept_ready_;
  const std::size_t most_delayed_;  // more are trimmed to kept_delayed_
  const std::size_t kept_delayed_;
  Limits limits_;
  WallTime wall_at_zero_{};  // the calendar's time at TimePoint{}
  JobQueue queue_;           // payload: the host
  std::vector<JobId> became_due_;
  std::unordered_map<std::uint32_t, Host> hosts_;  // that have pages in the queue, rest or had some that made room
  std::size_t hosts_to_forget_at_;

  // A round begins with a sweep. The pages that it left out, beside what its hosts say:
  std::uint64_t round_ = 1;
  std::optional<Rank> left_;             // the most important ready page
  WallTime left_due_ = WallTime::max();  // the earliest of those not due
  // Hosts that want what they left out: those that rest by when they may be asked, the others by the most important
  // page.
  std::set<std::pair<TimePoint, std::uint32_t>> hungry_later_;
  std::set<std::pair<Rank, std::uint32_t>> hungry_now_;

  PageIndex::Number sweep_at_ = 0;  // where the sweep goes on; 0: there is none
  bool wants_sweep_ = true;         // whatever else says
  std::uint64_t sweeps_ = 0;
  TimePoint urgent_at_ = TimePoint::min();  // not before, the next sweep
  TimePoint calm_at_ = TimePoint::min();    // the same while there is something to do
};

}  // namespace argiope

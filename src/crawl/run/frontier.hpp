// The crawl's queue of one shard: a window whose keys are hosts and whose job ids are url_ids, with what is needed to
// fetch each URL and to treat its host politely. Called by the shard on its own thread; knows nothing of sockets, and
// calls no store: it says what to read and write there, and is told what came back.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "argiope/web/url.hpp"
#include "crawl/hosts/host_book.hpp"
#include "crawl/hosts/internal/host_pace.hpp"
#include "crawl/options/internal/host_policies.hpp"
#include "crawl/run/visit_step.hpp"
#include "engine/internal/queue_window.hpp"

namespace argiope {

// Of what pages are shown with: before all pages, so that a crawl that is stopped has few pages without.
inline constexpr std::int32_t kRequisitePriority = std::numeric_limits<std::int32_t>::max();

// URLs that no run has asked have no lower priority. All that were asked before come behind, so that runs with a limit
// get on whatever they have to ask again.
inline constexpr std::int32_t kLeastPriority = -(1 << 30);

// One URL that is to be fetched.
struct UrlTask {
  std::uint64_t fingerprint = 0;
  std::int64_t id = 0;  // 0: known already, and found once more; has fingerprint and depth alone
  Url url;              // empty: the store has no URL under that id
  std::uint32_t depth = 0;
  std::uint8_t attempts = 0;
  std::uint8_t redirects = 0;   // hops that led here; of `is_stored` perhaps not all
  std::uint8_t challenges = 0;  // answers that asked who we are
  Purpose purpose = Purpose::page;
  std::optional<UrlAsk> ask;  // what is asked now; nullopt: what is asked first, see first_ask()
  bool revisit = false;       // fetched before: ask whether it has changed
  bool known = false;         // answered by an earlier run, and nothing has changed about it yet
  bool counted = false;       // settled before: max_pages_per_host has let it through
  bool rotates = false;       // fetched, and due again and again
  bool settled = false;       // in this run, before
  bool has_place = false;     // in the budget of pages, though it is not under way
  bool is_stored = false;     // read from the store, which tells what has led here
  // Of a sitemap: indexes that led here. Of what pages are shown with: other such files; of `is_stored` perhaps not
  // all.
  std::uint8_t nesting = 0;
  std::uint8_t given_up = 0;  // runs in a row that have given it up, before this one
  std::int32_t late = 0;      // the priority of what an earlier run has asked; 0: none has
  Host* host = nullptr;       // once it is queued
};

// The priority of a URL in the crawl's order: higher first, and none below kLeastPriority.
std::int32_t crawl_priority(const CrawlOptions& options, std::uint32_t depth, std::string_view url);
// That of a URL which an earlier run has last asked at that time: below kLeastPriority, the longest ago first.
std::int32_t late_priority(WallTime asked) noexcept;

class Frontier {
 public:
  // A URL that may be fetched now.
  struct Ticket {
    Lease lease;
    UrlTask* task = nullptr;  // see task()
    Host* host = nullptr;
  };

  // Of the hosts of one part of `parts`, which is what it will read of the store's shelves.
  explicit Frontier(const CrawlOptions& options, std::uint32_t part = 0, std::uint32_t parts = 1);
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;

  // The moment of the calendar that `now` is. To be called before any time but 0 is given; until then nothing is late.
  // `rests`: of earlier runs, which outlive it; null: there are none.
  void start_clock(TimePoint now, WallTime wall, const HostRests* rests = nullptr);
  // When something due at `due` may be fetched, as the store keeps it.
  WallTime stored_time(TimePoint due) const noexcept { return whole_ms(clock_->to_job_time(due)); }

  // The record of the host of `url`, made at first sight and whenever it has something to do again. Valid while it has
  // URLs in memory or pins, and until the next put() or resume().
  Host& host_of(const Url& url);
  // The one of a site that has something to do; null for others.
  Host* find_host(std::string_view site) const noexcept { return hosts_.find(site); }

  // Queues a URL that is on no shelf, due at `due`. If it does not belong to what is kept in memory, take_moves() tells
  // to which shelf it must go. False: it is queued already. One that has been settled and waits for its next visit is
  // due now then.
  bool put(UrlTask task, Host& host, TimePoint due, TimePoint now);
  // Before the crawl begins: a record of the store that is to be fetched, and its URL if it has been parsed. A record
  // on a shelf stays there.
  void resume(const UrlRecord& record, Host& host, UrlTask task);
  // The same for one that stays there: quicker.
  void resume_on_shelf(const UrlRecord& record, Host& host);
  // Whether it does.
  static bool stays_on_shelf(const UrlRecord& record) noexcept { return record.shelf.has_value(); }

  // Whether it must wait until its `due`: that of what was fetched says when runs of other options would ask again.
  static bool is_delayed(const UrlRecord& record, const UrlTask& task) noexcept {
    return (record.state == UrlState::queued || task.rotates) && record.due != WallTime{};
  }

  // A link at `depth` leads to a URL that is known: if it is in memory, and farther from a seed, this is its depth now.
  // With a depth limit alone; and of what is in the store alone it finds nothing: nobody looks up URLs there.
  void found_nearer(std::uint64_t url_fingerprint, std::uint32_t depth, TimePoint now);

  // The most important URL that is due and whose host may be asked.
  std::optional<Ticket> next(TimePoint now);
  // The task that a ticket is for, until the ticket is given back.
  UrlTask& task(const Ticket& ticket) noexcept { return *ticket.task; }
  // When next() or wants_read() may give something they do not give now; kNever without a call in between.
  TimePoint next_wakeup(TimePoint now);

  // The URL is dealt with.
  void done(const Ticket& ticket, TimePoint now);
  // It is to be fetched again, not before `due`.
  void retry(const Ticket& ticket, TimePoint due, TimePoint now);
  // It could not be fetched just now: back to its place, as if it had not been taken.
  void put_back(const Ticket& ticket, TimePoint now);

  // The host is not asked before `until`. False: nor was it to be asked sooner before.
  bool rest(Host& host, TimePoint until, TimePoint now, RestReason why = RestReason::pace);
  // Until when it rests, for the store.
  HostRest stored_rest(const Host& host) const noexcept {
    return {clock_->to_job_time(host.rest_until), host.rest_why};
  }
  // Each host that rests now, and is to be asked again in this run.
  template <class Visit>
  void each_resting(TimePoint now, Visit&& visit) {
    hosts_.for_each([&](Host& host) {
      if (host.rest_until > now && !host.lost) visit(host);
    });
  }
  // Whether URLs of the host wait to be fetched, as far as the frontier knows.
  bool has_waiting(const Host& host) const {
    const JobCounts counts = queue_.counts(host.key);
    return host.on_shelf || counts.ready + counts.delayed > 0;
  }
  // The host is not asked before let_go(), nor then before its rest is over.
  void hold(Host& host, TimePoint now);
  void let_go(Host& host, TimePoint now);
  // Tickets of the host that were not given back.
  std::size_t running(const Host& host) const { return queue_.counts(host.key).running; }
  // Nothing will be asked of it any more: its URLs come one after the other, without rests.
  void lift_limits(Host& host, TimePoint now);
  // It may be asked again after all.
  void restore_limits(Host& host, TimePoint now);
  // Makes the robots file's Crawl-delay, or 0, part of the host's limits.
  void set_crawl_delay(Host& host, Duration delay, TimePoint now);
  // Of a host that is throttled: what a request to it has taken.
  void note_latency(Host& host, Duration latency, bool is_error, TimePoint now);

  // --- the store
  // Changes of where URLs are; to be submitted after whatever is known of them.
  std::vector<UrlMove> take_moves() { return std::exchange(moves_, {}); }
  std::size_t moves_waiting() const noexcept { return moves_.size(); }
  // A stretch of a shelf that is wanted, and what was found there.
  struct Read {
    QueueWindow::Load load;
    ShelfSites sites;
  };
  struct Row {
    UrlTask task;
    Host* host = nullptr;
    WallTime due{};
  };
  // Whether something should be read now.
  bool wants_read(TimePoint now);
  // These stretches: to be read when take_moves() and all that was submitted before is visible, and answered by
  // end_read(). Nothing, and no answer, where it only had to move what it has.
  std::vector<Read> begin_read(TimePoint now);
  void take_rows(const Read& read, std::vector<Row> rows, TimePoint now);
  void end_read(TimePoint now);

  std::size_t size() const { return queue_.size(); }
  std::size_t host_count() const noexcept { return hosts_.size(); }  // ever met
  std::size_t active_hosts() const noexcept { return hosts_.active(); }
  // Hosts with URLs that are due and may not be asked yet.
  std::size_t hosts_waiting() const noexcept { return queue_.keys_waiting(); }

 private:
  std::int32_t priority_of(const UrlTask& task) const {
    if (task.late != 0) return task.late;
    return task.purpose == Purpose::requisite ? kRequisitePriority
                                              : crawl_priority(options_, task.depth, task.url.href());
  }
  // At the opening of a run.
  std::int32_t priority_of(const UrlRecord& record) const;

  void pass_time(TimePoint now) noexcept { given_clock_.advance_to(now); }
  WaitingJob job_of(const UrlTask& task, const Host& host) const;
  void remember(UrlTask task);
  void forget(std::int64_t id);
  void move_to(std::optional<Shelf> shelf, const UrlTask& task, Host& host);
  bool is_its_turn(Host& host, const Lease& lease) const;
  void write_down_moves();
  void note_depth(const Ticket& ticket, TimePoint now);
  void let_go_of_idle_hosts(TimePoint now);
  void recall_rest(Host& host);

  const CrawlOptions& options_;
  HostPolicies policies_;
  const bool limits_depth_;
  const std::uint32_t part_;
  const std::uint32_t parts_;
  ManualClock given_clock_;  // shows the time of the latest call
  std::optional<JobClock> clock_;
  const HostRests* rests_ = nullptr;  // once the clock goes
  QueueWindow window_;
  JobQueue& queue_;
  std::unordered_map<std::int64_t, UrlTask> tasks_;                 // what is in memory, by url_id
  std::unordered_map<std::uint64_t, std::int64_t> by_fingerprint_;  // the same; with a depth limit alone
  std::vector<UrlMove> moves_;
  WaitingJob resumed_;  // keeps its room
  bool reading_ = false;
  std::unordered_set<std::int64_t> settled_;  // while reading: what is found there may be older than this
  TimePoint next_read_at_ = TimePoint::min();
  HostBook hosts_;
};

}  // namespace argiope

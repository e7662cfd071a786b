// One thread's part of a crawl: takes URLs from its frontier, fetches them, settles them in the store and hands the
// links it found to the shards that own them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "argiope/jobs/retry.hpp"
#include "argiope/store/url_record.hpp"
#include "async/internal/ticker.hpp"
#include "crawl/frontier.hpp"
#include "crawl/host_lanes.hpp"
#include "crawl/link_harvester.hpp"
#include "crawl/page_notes.hpp"
#include "crawl/shared.hpp"

namespace argiope {

class Crawler::Shard {
 public:
  Shard(Shared& shared, std::size_t index, std::size_t shards);

  // Before work() has begun: queues a URL of this shard, or one that the store has recorded.
  void prepare_task(UrlTask task, const Url& url);
  Result<void> resume(const UrlRecord& record);
  // What to submit for it, and how much that is.
  std::vector<UrlMove> take_moves() { return frontier_.take_moves(); }
  std::size_t moves_waiting() const noexcept { return frontier_.moves_waiting(); }
  // The same from any thread while the crawl runs.
  void post(std::vector<UrlTask> tasks);

  Coro<void> work(HttpTransport& transport, Resolver* resolver);
  // Any thread: look at the stop flags.
  void wake();

  ShardCounters counters;

 private:
  // Does what it was given when it goes, however that comes.
  class Leaving {
   public:
    template <class Leave>
    explicit Leaving(Leave leave) : leave_(std::move(leave)) {}
    Leaving(Leaving&& other) noexcept : leave_(std::exchange(other.leave_, nullptr)) {}
    ~Leaving() {
      if (leave_) leave_();
    }

   private:
    std::function<void()> leave_;
  };
  // One fetch under way, and its memory, which the next one uses again.
  struct Visit {
    Frontier::Ticket ticket{};
    HttpRequest request;
    HttpResponse response;
    Task<void> task;
    bool running = false;
  };

  Coro<void> drain();
  void pump();
  void save_session(TimePoint now);
  void check_limits(TimePoint now);
  void take_inbox();
  // Queues what this shard or another has found for it.
  void take_found(std::vector<UrlTask>& tasks, TimePoint now);
  // Reads from the store what the frontier wants, in two steps: what was submitted must be written first, and nobody waits.
  void read_on(TimePoint now);
  Result<void> read(const Frontier::Read& read, TimePoint now);
  void submit_moves();
  void put(UrlTask task, const Url& url, TimePoint due, TimePoint now);

  bool is_one_too_many(const UrlTask& task, const Host& host);

  void start(Frontier::Ticket ticket);
  Coro<void> visit(Visit& visit);
  Coro<void> visit_now(Visit& visit);
  void put_back(Visit& visit, TimePoint now);
  Coro<void> fetch(Visit& visit);
  AddressGate::Waker waker_of(Host& host);

  // --- one host
  bool needs_question(const Host& host, TimePoint now) const;
  Duration patience_with(const Host& host) const;
  Leaving begin_question(Host& host);
  Coro<void> question_host(Host& host);
  Coro<void> fetch_robots(Host& host);
  Coro<void> probe(Host& host);
  Coro<void> find_address(Host& host);
  void robots_refused(Host& host, int status, Duration at_least, TimePoint now);
  static bool says_something(const Error& error, const HttpResponse& response) noexcept;
  void probe_answered(Host& host, TimePoint now);
  void question_failed(Host& host, Error error, Duration patience, TimePoint now);
  bool host_failed(Host& host, Error error, bool owes_failure, TimePoint now);
  void lose(Host& host, Error cause, HostLoss loss, TimePoint now);
  void pass_over(Visit& visit, TimePoint now);

  // False: the crawl ends, because a sink cannot take it.
  bool show(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response, const UrlTask* task = nullptr);
  bool looks_unwanted(const UrlTask& task) const;
  bool is_unwanted(const Visit& visit) const noexcept;
  bool is_worth_get(const Visit& visit) noexcept;
  void build_request(const UrlTask& task, HttpRequest& request);
  void be_polite(Host& host, TimePoint sent_at, TimePoint now);
  void on_error(Visit& visit, const Error& error, TimePoint now);
  // Whether the URL is asked again, and the answer counts for nothing else.
  bool asks_again(Visit& visit, TimePoint now);
  // The page handler's, awaited. What it threw, in words.
  Coro<std::string> hand_over(Visit& visit);
  void on_response(Visit& visit, std::string handler_error, TimePoint now);
  void count_oddities(const HttpResponse& response);
  static std::string note_on(const HttpResponse& response);
  void on_redirect(Visit& visit, UrlBatch& batch);
  bool goes_back(const Visit& visit, const Url& target, UrlBatch& batch);
  void on_page(Visit& visit, UrlBatch& batch);
  void retry_or_give_up(Visit& visit, const Error& error, Duration at_least, TimePoint now);
  void give_up(Visit& visit, const Error& error, TimePoint now);
  void discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect, UrlBatch& batch);
  void note_unwanted(const HttpResponse& response, UrlOutcome& outcome);
  void link_to_asset(const UrlTask& task, const Url& url, Exclusion place, UrlBatch& batch);
  void note_part(UrlOutcome& outcome, UrlReason reason, std::uint64_t limit);
  void store_links(const UrlTask& from, bool redirect, UrlBatch& batch);
  void exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now);
  void settle(Visit& visit, UrlBatch batch, TimePoint now);
  bool settle_check(Visit& visit, UrlBatch& batch);
  // Whether what HEAD has told makes its body worth reading.
  bool is_worth_reading(const Visit& visit);

  // --- what is kept of answers, and the assets found on them
  void note_answer(Visit& visit, UrlBatch& batch, TimePoint now);
  bool note_page(Visit& visit, PageFacts& facts, UrlBatch& batch);
  bool note_sheet(Visit& visit, UrlBatch& batch);
  void note_links(const UrlTask& from, const std::vector<SurveyedLink>& links, std::string_view html,
                  const LinkResolver& resolver, UrlBatch& batch);
  KeptLink note_link(const UrlTask& from, const SurveyedLink& link, std::string_view html, const LinkResolver& resolver,
                     UrlBatch& batch);
  std::int64_t discover_asset(const UrlTask& from, const Url& url, UrlBatch& batch);
  void link_to_fragment(const UrlTask& from, const Url& url);
  UrlOutcome outcome_of(const Visit& visit);
  UrlTask& task_of(const Visit& visit) noexcept { return frontier_.task(visit.ticket); }
  WallTime wall() const noexcept { return loop_->clock().wall_now(); }
  // Of an answer, or of what came of one.
  void count_bytes(std::uint64_t bytes) {
    ShardCounters::add(counters.bytes, bytes);
    shared_.take_bytes(bytes);
  }
  void count(Exclusion why) noexcept { ShardCounters::add(counters.excluded[static_cast<std::size_t>(why)]); }

  Shared& shared_;
  const CrawlOptions& options_;
  const std::size_t index_;
  const std::size_t most_visits_;
  Frontier frontier_;
  HostLanes lanes_;
  LinkHarvester harvester_;
  RetryPolicy retry_policy_;
  Random random_;

  EventLoop* loop_ = nullptr;
  std::unique_ptr<HttpTransport> session_;  // over the transport that is given, where anything is added to requests
  HttpTransport* transport_ = nullptr;
  Resolver* resolver_ = nullptr;
  std::vector<std::unique_ptr<Visit>> visits_;
  std::vector<Visit*> idle_visits_;
  std::size_t active_ = 0;
  // Links found on the page being settled, by the shard that owns them.
  std::vector<std::vector<UrlTask>> found_;
  std::vector<std::int64_t> targets_;  // of all its links; with a depth limit alone
  std::string transcoded_;             // the page being noted
  Url noted_;                          // the link being noted
  Event ended_;
  bool drain_started_ = false;
  std::optional<Ticker> ticker_;  // calls pump(), while work() goes on
  TimePoint last_fetch_{};
  TimePoint next_save_{};  // of what is kept beside the URLs; of shard 0

  std::vector<Frontier::Read> reads_;  // to be done once the store has flushed so far
  std::uint64_t flush_ = 0;

  std::mutex inbox_mutex_;
  std::vector<UrlTask> inbox_;
  std::atomic<bool> working_{false};
  // Gone with the shard: callbacks the loop may still hold ask it first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace argiope

// One thread's part of a crawl: takes URLs from its frontier, fetches them, settles them in the store and hands the
// links it found to the shards that own them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
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
#include "crawl/hosts/internal/host_lanes.hpp"
#include "crawl/page/internal/link_harvester.hpp"
#include "crawl/page/page_notes.hpp"
#include "crawl/run/frontier.hpp"
#include "crawl/run/rendering.hpp"
#include "crawl/run/shared.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/internal/page_words.hpp"

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
  struct Hop;
  bool post(std::shared_ptr<Hop> hop);

  Coro<void> work(HttpTransport& transport, Resolver* resolver);
  // Any thread: look at the stop flags.
  void wake();

  // The host that rests longest while URLs of it wait. Any thread.
  struct Resting {
    std::string site;  // empty: none
    TimePoint until{};
  };
  Resting longest_rest() const;

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
    std::unique_ptr<UrlRecord> before;  // of what was fetched before: what is stored of it
    std::unique_ptr<RenderedVisit> rendered;  // with a renderer alone
    Task<void> task;
    bool running = false;
    bool has_page = false;        // of the budget of pages
    bool has_spare = false;       // another, for GET where HEAD may prove nothing
    UrlAsk ask = UrlAsk::page;    // of the last request
    bool is_conditional = false;  // 304 is an answer
    bool is_asked = false;        // the transport has its request; whether it was sent, the response says
    std::uint64_t scan = 0;  // of its page: what was found is still there while it is the shard's last; 0: none yet
  };

  Coro<void> drain();
  void pump();
  void save_session(TimePoint now);
  void check_limits(TimePoint now);
  void take_inbox();
  // Takes up what other programs have put into the database. Of shard 0.
  void take_given(TimePoint now);
  void take_one_given(const GivenUrl& given, UrlBatch& batch);
  void take_one_again(const GivenUrl& given, UrlBatch& batch);
  bool has_seen_all();
  // Whether the crawl may not end yet, because some of it may be to come. Of shard 0.
  bool awaits_given(TimePoint now);
  // Whether it is worth looking again before the usual time.
  bool may_be_given_more(TimePoint now) const noexcept {
    return index_ == 0 && (next_given_ <= now || (idle_since_ && !looked_in_vain_));
  }
  // found_ goes to the shards that own it.
  void hand_out_found(TimePoint now);
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
  // --- redirects of such questions
  class FileTransport;
  // A place among the requests to a host; without one: how long to wait before asking for one again.
  struct HopTurn {
    Duration put_off{};
    std::optional<Leaving> place = std::nullopt;
  };
  Coro<std::optional<Result<void>>> ask_for_file(Host& host, ExchangeKind kind, HttpRequest& request, HttpResponse& response);
  Coro<Result<void>> ask_in_turn(Host& host, ExchangeKind kind, const HttpRequest& request, HttpResponse& response);
  Coro<HopTurn> await_hop_turn(Host& host);
  Coro<Result<void>> ask_as_hop(ExchangeKind kind, const HttpRequest& request, HttpResponse& response, Duration& put_off);
  Coro<Result<void>> ask_by(Shard& owner, ExchangeKind kind, const HttpRequest& request, HttpResponse& response, Duration& put_off);
  void take_hops();
  Coro<void> serve(std::shared_ptr<Hop> hop);
  void refuse_hops();

  Coro<void> fetch_robots(Host& host);
  Coro<void> probe(Host& host);
  Coro<void> find_address(Host& host);
  void robots_refused(Host& host, Error cause, Duration at_least, TimePoint now);
  void probe_answered(Host& host, TimePoint now);
  void question_failed(Host& host, Error error, Duration patience, TimePoint now);
  bool host_failed(Host& host, Error error, bool owes_failure, TimePoint now);
  void lose(Host& host, Error cause, HostLoss loss, TimePoint now);
  void pass_over(Visit& visit, TimePoint now);

  // False: the crawl ends, because a sink cannot take it.
  bool show(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response);
  bool show(ExchangeKind kind, Visit& visit, bool is_unrendered);
  Exchange exchange_of(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response) const;
  bool looks_unwanted(const UrlTask& task) const;
  UrlAsk ask_of(const UrlTask& task) const;
  bool is_unwanted(const Visit& visit) const noexcept;
  void build_request(Visit& visit);
  bool has_last_answer(const UrlRecord& record) const;
  bool keep_last_answer(const Visit& visit, UrlOutcome& outcome);
  void prepare(HttpRequest& request) const noexcept;
  Coro<Result<void>> send(Host& host, const HttpRequest& request, HttpResponse& response);
  void be_polite(Host& host, TimePoint sent_at, TimePoint now);
  void rest_for_delay(Host& host, TimePoint now);
  // Of an answer that says when to come back: the whole host rests for so long.
  Duration heed_retry_after(Host& host, const HttpResponse& response, TimePoint now);
  void rest(Host& host, TimePoint until, RestReason why, TimePoint now);
  void keep_rests(TimePoint now);
  void note_longest_rest(TimePoint now);
  // What the answer, or none, tells of how fast the host may be asked.
  void note_latency(Visit& visit, bool answered, TimePoint now);
  // As RetryPolicy has it, with as many attempts as the host's policy says.
  std::optional<Duration> wait_after(const Host& host, std::uint32_t attempts);
  void on_error(Visit& visit, const Error& error, TimePoint now);
  // For next_step(): what was asked, and what has come of it.
  VisitRequest asked_of(const Visit& visit);
  VisitAnswer answer_of(const Visit& visit, const std::optional<Error>& unrendered);
  static bool is_last_attempt(const UrlTask& task) noexcept;
  // What an answer says beside the URL's own: that its host is alive, cookies, bytes.
  void learn_from(Visit& visit);
  void count_answer(const Visit& visit);
  // What follows from an answer is done, but for settle and fail: those are on_response()'s.
  VisitStep take_answer(Visit& visit, const std::optional<Error>& unrendered, TimePoint now);
  VisitStep take_step(Visit& visit, const NextStep& next, const Error& why, Duration at_least, TimePoint now);
  // The page handler's, awaited. What it threw, in words.
  Coro<std::string> hand_over(Visit& visit);
  void on_response(Visit& visit, VisitStep step, std::string handler_error, TimePoint now);
  void count_oddities(const HttpResponse& response);
  static std::string note_on(const HttpResponse& response);
  void on_redirect(Visit& visit, UrlBatch& batch);
  bool goes_back(const Visit& visit, const Url& target, UrlBatch& batch);
  void on_page(Visit& visit, UrlBatch& batch);
  bool follow_link(const UrlTask& from, const Url& url, UrlBatch& batch);
  void follow_refresh(const Visit& visit, UrlBatch& batch);
  void retry(Visit& visit, const Error& error, Duration at_least, TimePoint now);
  UrlOutcome waiting_outcome(const Visit& visit);
  void give_up(Visit& visit, const Error& error, TimePoint now);
  // --- sitemaps and feeds
  struct SitemapOrigin {
    std::int64_t id = 0;  // of what named it; 0: robots.txt or the options
    std::uint32_t depth = 0;
    std::uint8_t nesting = 0;
    std::uint8_t redirects = 0;
  };
  void add_given_sitemaps();
  void find_sitemaps(Host& host, const RobotsRules* rules);
  Coro<void> guess_sitemap(Host& host);
  void add_sitemap(const Url& url, const SitemapOrigin& origin, UrlBatch& batch);
  void add_sitemap_by_itself(const Url& url);
  void add_feeds_of(Visit& visit, UrlBatch& batch);
  bool is_sitemap(Visit& visit);
  bool enter_sitemap(Visit& visit, TimePoint now);
  void leave_sitemap(TimePoint now);
  bool on_sitemap(Visit& visit, UrlBatch& batch, TimePoint now);
  bool read_sitemap_of(Visit& visit, UrlBatch& batch);
  bool is_page_after_all(Visit& visit, UrlBatch& batch, TimePoint now);
  void pass_on_sitemap(const Visit& visit, const UrlTask& task, UrlBatch& batch);
  void note_no_sitemap(const UrlTask& task);
  void ask_if_newer(const Url& url, WallTime modified, UrlBatch& batch);

  void discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect, UrlBatch& batch);
  void note_unwanted(const HttpResponse& response, UrlOutcome& outcome);
  void link_to_asset(const UrlTask& task, const Url& url, Exclusion place, UrlBatch& batch);
  void note_part(UrlOutcome& outcome, UrlReason reason, std::uint64_t limit);
  void store_links(const UrlTask& from, bool redirect, UrlBatch& batch);

  // --- what is there in several places; with `shared_.duplicates` alone
  bool is_copy(Visit& visit, UrlBatch& batch);
  bool is_alias(Visit& visit, UrlBatch& batch);
  DuplicateBook::Copy find_copy(const Visit& visit, const UrlBatch& batch);
  void learn_parameters(const Visit& visit, UrlBatch& batch);
  void note_copy(UrlBatch& batch, Exclusion why, std::int64_t other);
  bool is_in_trap(std::string_view href) const;
  bool discover_stripped(const UrlTask& from, const Url& url, UrlBatch& batch);

  void exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now);
  void settle(Visit& visit, UrlBatch batch, TimePoint now);
  // When it is to be fetched again in this run; nullopt: not.
  std::optional<TimePoint> plan_next_visit(Visit& visit, UrlBatch& batch, TimePoint now);
  void recount(const Visit& visit, const UrlBatch& batch);
  void wait_with_host(Visit& visit, TimePoint now);
  void revive(Host& host, TimePoint now);
  Duration rest_of_lost_hosts() const noexcept;
  static void note_change(const Visit& visit, UrlBatch& batch);
  bool settle_check(Visit& visit, UrlBatch& batch);
  // Of what is only checked: whether the run wants to know what is in its body.
  bool is_worth_reading(const Visit& visit);

  // --- pages as JavaScript makes them
  class Parts;
  Coro<void> open_renderer();
  bool is_worth_rendering(const Visit& visit) const;
  Coro<std::optional<Error>> render(Visit& visit);
  static void take_rendered(Visit& visit);
  static void note_rendered(Visit& visit, UrlOutcome& outcome);
  static bool is_led_away(const Visit& visit) noexcept;
  void discover_own_urls(const Visit& visit, UrlBatch& batch);
  std::vector<Cookie> cookies_of(const Url& url) const;
  Coro<Result<void>> await_turn(Host& host, bool is_own, const Url& url);
  Leaving begin_part(Host& host, bool is_own);
  Coro<Leaving> enter_address(const Host& host);
  void take_turn(Host& host, TimePoint now);
  Coro<Result<void>> fetch_part(Host& page_host, PartTurns& turns, HttpRequest& request, bool may_be_known, HttpResponse& response);
  Coro<Result<void>> ask_for_part(Host& host, bool is_own, HttpRequest& request, HttpResponse& response);
  void rest_after_part(Host& host, TimePoint sent_at, TimePoint now);

  // --- what is kept of answers, and the assets found on them
  void note_answer(Visit& visit, UrlBatch& batch, TimePoint now);
  bool note_page(Visit& visit, PageFacts& facts, UrlBatch& batch);
  bool note_sheet(Visit& visit, UrlBatch& batch);
  bool note_refresh(const Visit& visit, UrlBatch& batch);
  bool is_sheet_to_read(const UrlTask& task, const HttpResponse& response) const;
  void note_links(const UrlTask& from, const std::vector<SurveyedLink>& links, std::string_view html,
                  const LinkResolver& resolver, UrlBatch& batch);
  KeptLink note_link(const UrlTask& from, const SurveyedLink& link, std::string_view html, const LinkResolver& resolver,
                     UrlBatch& batch);
  std::int64_t discover_asset(const UrlTask& from, const Url& url, UrlBatch& batch);
  // --- what pages are shown with
  // What it is shown with may be looked for in it.
  bool has_requisites(const Visit& visit) const noexcept;
  // Before it is shown to the sinks: its references, if they are those of the body as it came. Null: not looked for.
  const PageReferences* scan_early(Visit& visit);
  bool is_scanned(const Visit& visit) const noexcept { return visit.scan != 0 && visit.scan == scans_; }
  // Its links, and its references if it may have requisites, unless it was scanned last.
  LinkHarvester::Summary scan_page(Visit& visit);
  void find_requisites(Visit& visit, UrlBatch& batch);
  void discover_requisite(const UrlTask& from, const Url& url, std::uint8_t redirects, UrlBatch& batch);
  bool is_nested_too_deep(const UrlTask& from, std::uint64_t fingerprint, UrlBatch& batch);
  bool link_to_requisite(const UrlTask& link, const Url& url, UrlBatch& batch);
  void queue_anew(std::int64_t id, UrlReason reason, UrlBatch& batch);
  bool settle_requisite(Visit& visit, UrlBatch& batch);
  bool has_other_part(Visit& visit, UrlBatch& batch);
  // What is begun with HEAD can be ended with GET within the budget. False: there is no room.
  bool take_page(Visit& visit);
  // Its URL is asked again, or was not asked. What was asked counts among the pages that max_pages lets in; sitemaps, and answers that
  // wanted to know who asks, do not.
  void put_page_off(Visit& visit);
  // The same is asked once more, at once; something else is.
  void ask_again(Visit& visit, TimePoint now);
  void ask_instead(Visit& visit, TimePoint now);
  // It begins anew, as what it has turned out to be.
  static void begin_as(Purpose purpose, UrlTask& task) noexcept;
  void end_page(Visit& visit);
  void cut_by_quota(Visit& visit, TimePoint now);
  // A run with a limit has asked it, and has no whole answer: the next one asks first what none has asked. Nothing if no request was sent.
  void note_asked(const Visit& visit);
  void recall_way(UrlTask& task);

  void link_to_fragment(const UrlTask& from, const Url& url);
  UrlOutcome outcome_of(const Visit& visit);
  UrlTask& task_of(const Visit& visit) noexcept { return frontier_.task(visit.ticket); }
  WallTime wall() const noexcept { return loop_->clock().wall_now(); }
  // Of an answer, or of what came of one.
  void count_bytes(const HttpResponse& response) {
    ShardCounters::add(counters.bytes, response.wire_bytes);
    shared_.ending.take_bytes(response);
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
  std::optional<Rendering> rendering_;        // with a renderer alone
  Resolver* resolver_ = nullptr;
  std::vector<std::unique_ptr<Visit>> visits_;
  std::vector<Visit*> idle_visits_;
  std::size_t active_ = 0;
  // Links found on the page being settled, by the shard that owns them.
  std::vector<std::vector<UrlTask>> found_;
  std::vector<std::int64_t> targets_;              // of all its links
  // For the book of depths: their fingerprints, and those of them that were not known.
  std::vector<std::uint64_t> linked_here_;
  std::vector<DepthBook::FoundUrl> found_here_;
  std::string transcoded_;             // the page being noted
  Url noted_;                          // the link being noted
  Url other_url_;                      // what it, or the page, is in another place
  PageWordReader words_;
  std::optional<PageWords> said_;      // by the page being settled, once it was read for that
  PageReferences references_;          // where assets are looked for
  LinkHarvester::Summary scanned_;     // of the page that was scanned last
  std::uint64_t scans_ = 0;            // of pages, ever
  std::vector<std::uint64_t> known_requisites_;
  std::size_t sitemaps_under_way_ = 0;
  std::deque<Host*> hosts_with_sitemaps_;  // that wait for their turn to be read; each pinned
  Event ended_;
  bool drain_started_ = false;
  std::optional<Ticker> ticker_;  // calls pump(), while work() goes on
  TimePoint last_fetch_{};
  TimePoint next_given_ = TimePoint::min();  // when to look again for what other programs have put in; of shard 0
  std::uint64_t given_flush_ = 0;            // once so far is flushed, what was taken of it is there no more
  std::optional<std::uint64_t> again_flush_;  // the same, before what is asked for again is looked at
  bool looked_in_vain_ = false;              // with nothing left to do, there was nothing
  std::optional<TimePoint> idle_since_;      // nothing is left to do
  TimePoint next_save_{};  // of what is kept beside the URLs; of shard 0
  TimePoint next_rest_look_{};
  mutable std::mutex resting_mutex_;
  Resting resting_;

  std::vector<Frontier::Read> reads_;  // to be done once the store has flushed so far
  std::uint64_t flush_ = 0;

  std::mutex inbox_mutex_;
  std::vector<UrlTask> inbox_;
  std::vector<std::shared_ptr<Hop>> hops_;  // under inbox_mutex_, as the next
  bool takes_no_hops_ = false;
  std::list<Task<void>> served_hops_;
  std::atomic<bool> working_{false};
  // Gone with the shard: callbacks the loop may still hold ask it first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace argiope

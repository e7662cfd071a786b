// One thread's part of a crawl: a loop that takes URLs from its frontier and starts a visit for each, and a window on
// what the store has for it. All else is done by its parts, each of which has a header of its own:
//
//   Visitor        one visit, from its URL to its answer          GivenDesk    what other programs put in
//   Settler        what the answer comes to, which is stored      SitemapDesk  sitemaps and feeds
//   PageReader     the links of a page                            AnswerNotes  what is kept for checks and reports
//   Discovery      what was found: is it new, is it queued        RenderDesk   pages as JavaScript makes them
//   HostDesk       connections, pace and rests of hosts           HostHops     where robots.txt redirects
//   HostQuestions  robots.txt, probes, failures of hosts
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "async/internal/ticker.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "crawl/run/frontier.hpp"
#include "crawl/run/rendering.hpp"
#include "crawl/run/shared.hpp"
#include "crawl/run/visit_step.hpp"

namespace argiope {

class Crawler::Shard {
 public:
  class Visitor;
  class Settler;
  class PageReader;
  class Discovery;
  class HostDesk;
  class HostHops;
  class HostQuestions;
  class GivenDesk;
  class SitemapDesk;
  class AnswerNotes;
  class RenderDesk;

  Shard(Shared& shared, std::size_t index, std::size_t shards);
  ~Shard();

  // Before work() has begun: queues a URL of this shard, or one that the store has recorded.
  void prepare_task(UrlTask task);
  Result<void> resume(const UrlRecord& record);
  // The moves to submit for it, and how many they are.
  std::vector<UrlMove> take_moves() { return core_.frontier.take_moves(); }
  std::size_t moves_waiting() const noexcept { return core_.frontier.moves_waiting(); }
  // The same from any thread while the crawl runs.
  void post(std::vector<UrlTask> tasks);

  Coro<void> work(HttpTransport& transport, Resolver* resolver);
  // Any thread: look at the stop flags.
  void wake();

  // The host that rests longest while URLs of it wait. Any thread.
  struct Resting {
    std::string site;  // empty: none
    TimePoint until{};
  };
  Resting longest_rest() const;
  // Any thread.
  const ShardCounters& counters() const noexcept { return core_.counters; }
  HostHops& hops() noexcept { return *hops_; }

  // --- for its parts
  void pump();
  // Queues what this shard or another has found for it.
  void take_found(std::vector<UrlTask>& tasks, TimePoint now);

 private:
  // One fetch under way, and its memory, which the next one uses again.
  struct Visit {
    // A page that a sink has kept outlives the reader's buffers.
    ~Visit() { page->view.end(); }

    Frontier::Ticket ticket{};
    HttpRequest request;
    std::shared_ptr<FetchedPage> page = std::make_shared<FetchedPage>();  // the response, and what is read of it
    std::unique_ptr<UrlRecord> before;        // of what was fetched before: what is stored of it
    std::unique_ptr<RenderedVisit> rendered;  // with a renderer alone
    Task<void> task;
    bool running = false;
    bool has_page = false;        // of the budget of pages
    bool has_spare = false;       // another, for GET where HEAD may prove nothing
    UrlAsk ask = UrlAsk::page;    // of the last request
    bool is_conditional = false;  // 304 is an answer; `before` is there
    bool is_asked = false;        // the transport has its request; whether it was sent, the response says

    // Of a good answer: whether its body was, or would be, of a type that is not accepted.
    bool is_unwanted() const noexcept;
    // It has ended: nothing of its page is needed any more, and the next one leaves alone what sinks have kept.
    void forget_page() {
      page->view.end();
      if (page->is_shared()) page = std::make_shared<FetchedPage>();
    }
    // The script of its page has gone to another.
    bool is_led_away() const noexcept { return rendered != nullptr && !rendered->led_to.empty(); }
  };
  // The outcome of an answer: those who take it (take()) add to it, one after the other, and it is stored as one.
  struct VisitOutcome {
    UrlBatch batch;           // the first outcome in it is the visit's own
    bool is_list = false;     // the answer is a sitemap or feed, and no page
    bool keeps_last = false;  // it has failed, and what is known of the last whole answer stays
    TimePoint now{};
  };
  // All parts have it in common.
  struct Core {
    Shard& shard;
    Shared& shared;
    const CrawlOptions& options;
    const std::size_t index;
    Frontier frontier;
    ShardCounters counters{};
    EventLoop* loop = nullptr;  // once it works
    TimePoint last_fetch{};
    std::weak_ptr<bool> alive{};  // gone with the shard: callbacks the loop may still hold ask it first

    WallTime wall() const noexcept { return loop->clock().wall_now(); }
  };
  class Part {
   public:
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   protected:
    explicit Part(Core& core)
        : core_(core),
          shared_(core.shared),
          options_(core.options),
          frontier_(core.frontier),
          counters_(core.counters) {}
    ~Part() = default;

    EventLoop& loop() const noexcept { return *core_.loop; }
    WallTime wall() const noexcept { return core_.wall(); }
    UrlTask& task_of(const Visit& visit) const noexcept { return frontier_.task(visit.ticket); }
    void count(Exclusion why) noexcept { ShardCounters::add(counters_.excluded[static_cast<std::size_t>(why)]); }
    // Of an answer, or of what came of one.
    void count_bytes(const HttpResponse& response) {
      ShardCounters::add(counters_.bytes, response.wire_bytes);
      shared_.ending.take_bytes(response);
    }
    // The URL is done, but only in part; the first reason counts.
    void note_part(UrlOutcome& outcome, UrlReason reason, std::uint64_t limit);

    Core& core_;
    Shared& shared_;
    const CrawlOptions& options_;
    Frontier& frontier_;
    ShardCounters& counters_;
  };

  Coro<void> drain();
  void save_session(TimePoint now);
  void check_limits(TimePoint now);
  void take_inbox();
  // Reads from the store what the frontier wants, in two steps: what was submitted must be written first, and nobody
  // waits.
  void read_on(TimePoint now);
  Result<void> read(const Frontier::Read& read, TimePoint now);
  void submit_moves();
  void put(UrlTask task, TimePoint due, TimePoint now);
  bool is_one_too_many(const UrlTask& task, const Host& host);
  void start(Frontier::Ticket ticket);
  Coro<void> visit(Visit& visit);

  Core core_;
  Shared& shared_;
  const CrawlOptions& options_;
  Frontier& frontier_;
  ShardCounters& counters_;
  const std::size_t most_visits_;
  // Each knows those before it that it needs.
  const std::unique_ptr<Discovery> discovery_;
  const std::unique_ptr<GivenDesk> given_;
  const std::unique_ptr<HostDesk> desk_;
  const std::unique_ptr<HostHops> hops_;
  const std::unique_ptr<SitemapDesk> sitemaps_;
  const std::unique_ptr<HostQuestions> questions_;
  const std::unique_ptr<RenderDesk> render_;
  const std::unique_ptr<PageReader> reader_;
  const std::unique_ptr<AnswerNotes> notes_;
  const std::unique_ptr<Settler> settler_;
  const std::unique_ptr<Visitor> visitor_;

  std::vector<std::unique_ptr<Visit>> visits_;
  std::vector<Visit*> idle_visits_;
  std::size_t active_ = 0;
  Event ended_;
  bool drain_started_ = false;
  std::optional<Ticker> ticker_;  // calls pump(), while work() goes on
  TimePoint next_save_{};         // of what is kept beside the URLs; of shard 0

  std::vector<Frontier::Read> reads_;  // to be done once the store has flushed so far
  std::uint64_t flush_ = 0;

  std::mutex inbox_mutex_;
  std::vector<UrlTask> inbox_;
  std::atomic<bool> working_{false};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // the last member: see Core
};

}  // namespace argiope

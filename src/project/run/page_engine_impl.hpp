// The inside of PageEngine: page_engine.cpp has its life and the choice of what is visited, page_asks.cpp what asks come to,
// page_visits.cpp a visit from its request to the store, page_tries.cpp one of which nothing is stored, page_projects.cpp what is done with
// projects, page_hosts.cpp looks at hosts.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/executor.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/base/random.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "project/fetch/internal/host_desk.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "project/process/internal/rule_reader.hpp"
#include "project/rules/internal/page_reasons.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/run/live_project.hpp"

namespace argiope {

// One visit under way.
struct PageVisit {
  std::shared_ptr<LiveProject> project;
  PageFrontier::Ticket ticket;
  PageRecord record;
  KnownPage before;  // as it was taken
  RuleNumber rule = 0;
  std::uint32_t host = 0;  // 0: nobody is asked
  std::optional<VisitPass> pass;
  PageSettings settings;
  std::int64_t round = 0;  // to which what it asks for belongs
  TimePoint began{}, fetched{}, read{};
  std::uint64_t digest = 0;   // of its body; 0: none
  bool has_begun = false;     // a task that is cancelled before never runs
  bool is_cancelled = false;  // by the engine
  bool is_over = false;
  std::shared_ptr<RuleReaders> readers;  // of the project's rules as they were
  std::size_t place = 0;                 // among those, of its rule
  Task<void> task;
};

// Of pages without a server.
inline constexpr std::string_view kDataSite = "data:";

// Of http and https. Errors: invalid_input, naming the URL.
Result<Url> url_to_visit(std::string_view url);

class PageEngine::Impl {
 public:
  using Live = std::shared_ptr<LiveProject>;

  Impl(PageEngineOptions options, PageStore& store);
  ~Impl();

  Result<void> open(WallTime now);
  Coro<Result<void>> run(HttpTransport& transport, Resolver* resolver);
  void stop(bool at_once);

  // --- projects
  Result<ProjectId> put_project(Draft draft);
  Result<void> change(std::string_view name, const std::function<void(LiveProject&)>& change);
  Result<void> remove(std::string_view name);
  Result<void> restore(std::string_view name);
  Result<void> start(LiveProject& project, std::string cause);
  Live find(std::string_view name) const;
  Result<Live> need(std::string_view name) const;

  void begin_wanted_start(LiveProject& project);
  void write_down(LiveProject& project, PageBatch& batch);
  // Nothing of its rounds is still to be told.
  bool is_told(const LiveProject& project) const;

  // --- asks
  struct Asking {
    std::string_view name, url;
    RuleNumber rule = 0;
    std::string_view settings, context;  // JSON; empty: nothing
    Ask ask;
    std::int64_t round = 0;
    PageId from = 0;
  };
  AskDecision take(LiveProject& project, const Asking& asking, PageBatch& batch, WallTime now);
  void recount(LiveProject& project, const std::optional<KnownPage>& before, const KnownPage& after);
  // The page that an ask is for, as the project has it.
  struct AskMeant {
    std::string name, url;
    std::optional<RuleNumber> rule;  // nullopt: `place` says why there is none
    ProjectMap::Place place = ProjectMap::Place::page;
    Ask ask;
  };
  // Errors: invalid_input for its URL.
  Result<AskMeant> meant_by(LiveProject& project, const AskedPage& page, WallTime now) const;
  // Errors: what is wrong with the page, in words; then nothing has become of it.
  Result<AskDecision> take_page(LiveProject& project, const AskedPage& page, std::int64_t round, PageId from, PageBatch& batch, WallTime now);
  Result<void> take_message(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now);
  // The same of a script of the project `from`.
  Result<void> take_message_of_script(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now);
  void take_event(LiveProject& project, std::string_view name, std::string_view rule, std::string context, std::int64_t round, PageBatch& batch,
                  WallTime now);

  // The number of the round under way; of a new one, if there is none.
  std::int64_t begin_round(LiveProject& project, std::string cause, PageBatch& batch, WallTime now);

  // --- tries
  Coro<Result<TriedPage>> try_page(PageTryOrder order);

  // --- looks
  ProjectStatusNow status_of(const LiveProject& project) const;
  std::optional<PageId> page_id(std::string_view project, std::string_view page);
  Result<PageExplanation> explain(std::string_view project, std::string_view page);
  using MaySee = std::function<bool(std::string_view project)>;
  HostsFound hosts(const HostQuery& query) const;
  HostExplanation explain_host(std::string_view site, const MaySee& may_see) const;

  PageEngineOptions options_;
  PageStore& store_;
  std::map<std::string, Live, std::less<>> projects_;
  std::map<std::string, ProjectRecord, std::less<>> deleted_;
  std::set<std::string, std::less<>> resting_;  // stored, and not wanted
  std::size_t under_way_ = 0;
  std::uint64_t visits_ = 0, visits_failed_ = 0, given_up_ = 0;
  bool stopping_ = false;

  WallTime wall() const;
  // When a wait of the loop's ends; null: in more than a hundred years.
  std::optional<WallTime> wall_at(TimePoint at) const;
  bool has_ended() const noexcept { return ended_.is_set(); }
  void mark_changed(LiveProject& project);
  void activate(LiveProject& project);
  void log(const LiveProject& project, std::string_view level, std::string text);
  void submit(PageBatch batch);

 private:
  Result<void> open_project(ProjectRecord record, WallTime now);
  Result<void> load_pages(LiveProject& project, WallTime now);
  Result<void> load_rounds(LiveProject& project);
  Result<void> take_version(LiveProject& project, const ProjectVersion& version);
  void set_limits(LiveProject& project);
  void make_frontier(LiveProject& project);
  void begin_processor(LiveProject& project);
  // A script is told of DEBUG once, when its process begins: another one takes its place where that is not so any more.
  void tell_debug(LiveProject& project);
  // Makes a version of it, if the script is another than its version's.
  void take_script(LiveProject& project);
  void begin_sinks(LiveProject& project);
  static void keep_named_sinks(const LiveProject& project, PageBatch& batch);
  // The script says what it is, for the first time or after it has changed.
  void take_description(LiveProject& project, ProcessorDescription description);
  Coro<void> describe(Live project);
  // As far as a look at its queue tells.
  bool has_something_to_do(LiveProject& project);
  // Of the page's last visit, by its row; empty: it went well, or is not there yet.
  std::string last_error(const LiveProject& project, PageIndex::Number page);
  // Why a page that is due is not visited: its host or its project's rate. nullopt: neither.
  std::optional<PageReason> why_held_up(LiveProject& project, PageIndex::Number page, const Explanation& queued) const;
  // The page of that name, or of that URL, whose name it then is. 0: there is none.
  static PageIndex::Number find_page(const LiveProject& project, std::string& name);

  // Closed once no visit is with it.
  void let_go_of_processor(LiveProject& project);
  Coro<void> close_when_idle(std::shared_ptr<Processor> old);
  // Those that the project has by then begin when the old ones have ended: never are two at one file.
  void end_sinks(LiveProject& project);
  Coro<void> end_sinks_now(ProjectId project, std::unique_ptr<ResultSinks> sinks);

  // --- the driver
  void pump();
  enum class Taken : std::uint8_t {
    one,
    nothing,  // until time passes, or something is asked for
    blocked,  // until a visit ends
  };
  Taken take_one(const Live& project, TimePoint now);
  void take_turn(LiveProject& project);
  static void give_back_turn(LiveProject& project);
  // Visits under way, about to begin, or whose outcome may not be in the store yet.
  std::size_t places_taken() const noexcept { return under_way_ + to_read_.size() + uncommitted_; }
  bool has_place();
  void note_commits();
  void wake_blocked();
  void look_at_calendar(TimePoint now);
  void read_records(TimePoint now);
  static bool has_lost_its_rule(const LiveProject& project, PageIndex::Number page);
  void take_over(LiveProject& project, PageIndex::Number page, PageRecord& record, std::size_t place);
  bool try_start(const Live& project, PageFrontier::Ticket ticket, PageRecord record, TimePoint now);
  void wake_later(LiveProject& project, TimePoint at);
  void plan(LiveProject& project);
  void do_times(WallTime now);
  void do_times_of(LiveProject& project, WallTime now);
  void checkpoint(TimePoint now);
  void tell_round_ends();
  Coro<void> drain();
  Coro<void> let_sinks_finish();
  std::size_t most_of(const LiveProject& project) const;

  // --- visits
  // Ends it, whether or not it has begun.
  static void cancel(PageVisit& visit);
  Coro<void> visit(PageVisit& visit);
  Coro<void> visit_now(PageVisit& visit);
  // Its host has been entered.
  Coro<FetchedAnswer> fetch(PageVisit& visit);
  // The reading of the answer by rules and script.
  struct ReadPage {
    VisitAnswer answer;
    std::optional<RuleReading> reading;  // nullopt: no rule of the file has read it
  };
  Coro<ReadPage> read_page(PageVisit& visit, FetchedAnswer& fetched);
  Coro<RuleReading> read_by_rule(PageVisit& visit, std::size_t place, FetchedAnswer& fetched);
  Coro<VisitAnswer> call_script(PageVisit& visit, FetchedAnswer& fetched, const RuleReading* reading);
  void settle(PageVisit& visit, const FetchedAnswer& fetched, VisitAnswer answer, const RuleReading* reading, VisitEnd end);
  void finish(PageVisit& visit, const VisitDecision& decision, PageChange change, VisitEnd end, std::size_t results, PageBatch& batch, TimePoint now,
              WallTime wall_now);
  void put_off(PageVisit& visit, const ProcessorFailure& failure, TimePoint now, WallTime wall_now);
  void end_unfetched(const Live& project, const PageFrontier::Ticket& ticket, PageRecord record, Error why, TimePoint until, bool is_final);
  void end_cancelled(PageVisit& visit);
  void leave(PageVisit& visit);

  // --- tries
  struct TryUnderWay;
  class TryPlace;
  Coro<void> try_now(TryUnderWay& under_way);
  Coro<std::optional<FetchedAnswer>> fetch_tried(TryUnderWay& under_way, PageVisit& visit);
  void tell_leads(TryUnderWay& under_way, const PageVisit& visit, const FetchedAnswer& fetched, const ReadPage& read);
  void add_lead(TryUnderWay& under_way, const AskedPage& page, bool is_followed = true) const;
  std::string becomes(const TryUnderWay& under_way, const AskMeant& meant) const;
  void end_tries();

  // --- rounds
  void enter_round(LiveProject& project, PageIndex::Number page, std::int64_t round);
  void leave_round(LiveProject& project, PageIndex::Number page, PageBatch& batch, WallTime now);
  void end_round_if_over(LiveProject& project, PageBatch& batch, WallTime now);
  static bool is_to_be_visited(const LiveProject& project, std::string_view name);
  void tell_script(LiveProject& project, PageBatch& batch, WallTime now);

  std::vector<const LiveProject*> seen_projects(const MaySee& may_see) const;
  HostStatusNow status_of_host(std::uint32_t host, const std::vector<const LiveProject*>& projects) const;
  HostDesk::Doing doing_at(std::uint32_t host) const noexcept { return desk_ && at_desk_[host] ? desk_->doing(host) : HostDesk::Doing::ready; }
  std::uint32_t known_host(std::string_view site) const;
  HostExplanation::OfProject at_host(const LiveProject& project, std::uint32_t host) const;

  std::uint32_t host_of(const Url& url);
  std::uint32_t host_of(std::string_view url);
  std::uint32_t host_of_site(std::string site);

  // A page whose row was made or read lately.
  void remember(PageRecord record);
  std::optional<PageRecord> take_remembered(PageId id);

  PageRendering rendering_;
  Random random_;
  EventLoop* loop_ = nullptr;
  HttpTransport* transport_ = nullptr;
  std::unique_ptr<HostDesk> desk_;
  std::optional<Ticker> ticker_;
  RuleReaders::Shared reading_;
  // One thread each: what it reads with is one at a time.
  struct ReadingThread {
    std::unique_ptr<ThreadPoolExecutor> executor;
    std::size_t pages = 0;  // that wait for what it reads
  };
  std::vector<ReadingThread> readers_;
  Event ended_;
  bool drains_ = false;
  bool at_once_ = false;
  WallTime opened_at_{};

  std::unordered_map<std::string, std::uint32_t> host_ids_;
  std::vector<std::string> sites_{1};  // by id
  std::vector<bool> at_desk_{false};   // by id
  std::vector<HostRow> new_hosts_;     // not submitted yet
  // The projects that wait for a host.
  std::unordered_map<std::uint32_t, std::vector<ProjectId>> waiting_for_;

  // Gone with the engine: what the store's thread has asked the loop for looks at it first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::map<std::uint64_t, Live> active_;  // by turn
  std::uint64_t last_turn_ = 0;
  std::vector<Live> blocked_;
  // Visits that have ended and whose outcome the store may not have written yet; of them those that are written once the flush is.
  std::size_t uncommitted_ = 0, flushing_ = 0;
  std::optional<std::uint64_t> visit_flush_;
  Duration calendar_{};  // how far the calendar is before the loop's clock
  std::set<std::pair<TimePoint, ProjectId>> waking_;
  std::unordered_map<ProjectId, Live> by_id_;
  WallTime next_times_ = WallTime::max();

  struct ToRead {
    Live project;
    PageFrontier::Ticket ticket;
  };
  std::vector<ToRead> to_read_;
  std::optional<std::uint64_t> read_flush_;
  std::size_t read_count_ = 0;                // of to_read_, those that had been taken when the flush began
  std::unordered_set<PageId> changed_since_;  // the flush began: their rows may be read as they were before
  std::unordered_map<PageId, PageRecord> remembered_;

  std::vector<std::unique_ptr<PageVisit>> visit_room_;
  std::vector<PageVisit*> idle_visits_;
  TimePoint next_checkpoint_ = TimePoint::min();
  TimePoint next_prune_ = TimePoint::min();
  struct EndedRound {
    std::uint64_t flush = 0;
    std::string project;
    RoundRecord round;
    std::vector<std::string> alarms;
  };
  std::vector<EndedRound> ended_rounds_;
  std::optional<Background> background_;
  std::shared_ptr<std::size_t> tries_ = std::make_shared<std::size_t>(0);  // with those whose processors are still to end
  std::vector<Timeout*> try_limits_;                                       // of those under way
  Event tries_are_over_{true};
  // Held by who waits, too.
  struct DescribingPlaces {
    explicit DescribingPlaces(std::size_t count) : first(static_cast<std::ptrdiff_t>(count)), again(static_cast<std::ptrdiff_t>((count + 3) / 4)) {}
    Semaphore first, again;
  };
  const std::shared_ptr<DescribingPlaces> describing_;
  std::unordered_map<ProjectId, std::size_t> ending_sinks_;
  std::optional<Error> failure_;
};

}  // namespace argiope

// PageEngine: projects that go on. It visits their pages when they are due, most important first, no faster than
// projects and hosts allow, has them read, and puts what came of it into the store in one transaction a visit.
//
//   put_project · start · ask · message · link found
//                 ▼
//   decide_ask ── PageIndex ── PageFrontier of each project ── projects take turns ── HostDesk of all ── fetch_page
//                 ▲                                                                                        ▼
//                 └──── PageStore: outcome, pages, results, messages, the round's count ◄──── RuleReader · Processor
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http.hpp"
#include "project/fetch/internal/host_desk.hpp"
#include "project/fetch/internal/page_rendering.hpp"
#include "project/process/internal/processor.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "project/rules/internal/decide_ask.hpp"
#include "project/rules/internal/failure_pause.hpp"
#include "project/rules/internal/project_counters.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/run/internal/round_alarms.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

struct PageEngineOptions {
  // Of the stored projects those that it takes up; the others rest as they are. Null: all.
  std::function<bool(std::string_view name)> is_wanted;
  // The options for work at hosts (see HostDesk), with the renderer and its limits; seeds, scope and the like count for
  // nothing. The renderer is used when a page wants it first, and closed with the run.
  CrawlOptions hosts;
  // Visits under way, of all projects; each until what came of it is in the store. So no more are repeated where the
  // process dies.
  std::size_t concurrency = 200;
  std::size_t body_limit = 10 * 1024 * 1024;
  Duration page_timeout = std::chrono::seconds{120};  // of a page, redirects included, whose script says none
  std::size_t queue_size = 10'000;                    // pages of a project in its queue
  std::size_t most_tries = 4;                         // pages that are tried at once
  Duration try_limit = std::chrono::seconds{60};      // of one of them
  std::size_t describing =
      8;  // scripts that are asked at a time what they are; of those that gave no answer, a quarter as many
  bool reads_on_threads = true;  // the fields of rules, on as many as the machine has, at most eight; else on the loop
  PauseRules pause;
  Duration drain_limit = std::chrono::seconds{30};
  std::uint64_t seed = 0;
  // Makes the reader of pages for a project with a `processor`. Null: such projects are refused.
  std::function<Result<std::unique_ptr<Processor>>(const ProjectDefinition& project, ProcessorWatch watch)>
      make_processor;
  // The text of a project's script as it is now; empty: none that could be read. A script that has changed makes a
  // version of its project when pages go to it. Null: put_project() alone makes versions.
  std::function<std::string(const ProjectDefinition& project)> script_of;
  // Whether a script of the project `from` may send messages to the project `to`. One that may not is told that there
  // is no such project.
  // Null: it may.
  std::function<bool(std::string_view from, std::string_view to)> may_send;
  // The means of the sinks of a project. Null: results stay in the store, and sinks are left alone. A transport that is
  // not given is the engine's.
  std::function<SinkMeans(const ProjectDefinition& project)> sink_means;
  // How long sinks may still take what there is when visits have ended; what they have not taken then comes with the
  // next run. Null: not at all.
  std::function<Duration()> sinks_at_end;
  // Told of each round that has ended, after it is in the store.
  std::function<void(const std::string& project, const RoundRecord& round, const std::vector<std::string>& alarms)>
      on_round_end;
  // Told of what scripts and the engine say of a project, as it comes: "info", "warning" …
  std::function<void(const std::string& project, const PageLog& line)> on_log;
  std::string why_not_rendered = PageRendering{}.why_not;  // pages that are to be; where `hosts` has no renderer
};

// The state of a project, as of now.
struct ProjectStatusNow {
  enum class Doing : std::uint8_t {
    stopped,   // its status is none of RUNNING and DEBUG
    standing,  // `trouble` says why
    paused,    // its visits kept failing: until `until`
    probing,   // it is let try some
    waiting,   // nothing is due before `until`, or ever
    visiting,
  };
  ProjectId id = 0;
  std::string name, group;
  ProjectStatus status{};
  Doing doing{};
  std::optional<WallTime> until;
  std::string trouble;
  std::optional<double> rate;  // as in force
  std::uint32_t burst = 1;
  std::uint32_t weight = 1;
  std::size_t pages = 0, under_way = 0;
  std::int64_t version = 0;
  std::optional<RoundRecord> round;  // under way
  std::uint64_t outstanding = 0;     // pages of the round that are to be visited
  std::optional<WallTime> next_start;
  WallTime made_at{}, changed_at{};
  std::optional<WallTime> deleted_at;
};
std::string_view to_string(ProjectStatusNow::Doing doing) noexcept;

// A visit that has ended, for "active pages".
struct VisitNote {
  WallTime at{};
  std::string name, url, rule;
  int status = 0;
  bool succeeded = false;
  bool gave_up = false;
  Duration fetched{}, processed{};
  std::size_t pages = 0, results = 0;
  std::string error;
};

// Why a page is not visited now, or that it is.
struct PageExplanation {
  std::string name;
  bool known = false;
  KnownPage page;
  std::string rule;
  // Stable: "visiting"; of those at rest "fresh", "given_up", "robots" (whose robots.txt forbids it), "cancelled"; of
  // the project "project_stopped", "project_standing", "project_paused", "probing", "project_rate"; "not_due"; of the
  // host "resting_host", "busy_host" (its connections), "waiting_host" (its pace), "reading_robots"; "ahead", "soon".
  // Of those that are not known "unknown", and as ProjectMap::Place has it.
  std::string reason;
  std::string words;              // for people
  std::optional<WallTime> until;  // when the reason ends, if time alone ends it
};

// The state of a host now, for all projects together.
struct HostStatusNow {
  std::uint32_t number = 0;  // from 1, in the order in which they were met
  std::string site;          // as Url::site_key() spells it
  HostDesk::Doing doing{};
  std::string words;              // why nothing is asked of it now, or that something may be
  std::optional<WallTime> until;  // when another request may begin, as far as that is a matter of time
  std::uint32_t under_way = 0, at_most = 0;
  std::optional<Duration> delay;
  std::optional<double> rate;
  bool robots_known = false;
  std::string trouble;                // empty: none
  std::vector<std::string> projects;  // that have pages there, by name: some of them
  std::size_t project_count = 0;      // all of those
};

struct HostQuery {
  std::string_view filter;  // a piece of the site, in whatever case
  std::optional<HostDesk::Doing> doing;
  std::optional<std::string_view> project;  // which has pages there
  std::uint32_t after = 0;                  // a number; 0: from the first on
  std::size_t limit = 100;
  // Of which projects may be told. Null: of all; else a host is left out where none of them has pages.
  std::function<bool(std::string_view project)> may_see;
};
struct HostsFound {
  std::vector<HostStatusNow> hosts;
  std::optional<std::uint32_t> next;  // where to go on
};

// Why nothing is asked of a host now, as its projects see it, too.
struct HostExplanation {
  bool known = false;
  HostStatusNow host;
  std::string reason;             // "resting", "nothing_due" …: stable
  std::string words;              // for people
  std::optional<WallTime> until;  // when the reason ends, if time alone ends it
  struct OfProject {
    std::string name;
    ProjectStatusNow::Doing doing{};
    std::optional<WallTime> until;       // when it does something else
    std::size_t under_way = 0;           // its visits there
    std::size_t ready = 0, delayed = 0;  // pages in its queue, which has the most important of those that wait
    std::optional<WallTime> first_due;   // of the delayed ones
  };
  std::vector<OfProject> projects;  // those of `host.projects`
};

struct FetchedAnswer;

// A page that is tried: visited as by a project, of which nothing is stored.
struct PageTryOrder {
  std::string definition;  // of the project, JSON (read_project()); it need not be among those that are run
  AskedPage page;          // as it would be asked for; also data:,on_start and its like
  std::string save_json;   // empty: null
  // That an earlier try of the page has had: it is read again, and nothing is fetched.
  std::shared_ptr<const FetchedAnswer> answer;
  std::string answered_request;  // TriedPage::request of that try: where this one's is another, it is still fetched
  // Called with its answer, if there is one, before it is read.
  std::function<void(const PageResponse& response)> on_answer;
  // Makes its reader; null: as PageEngineOptions::make_processor. Closed at the try's end, before it counts as ended.
  std::function<Result<std::unique_ptr<Processor>>(const ProjectDefinition& project, ProcessorWatch watch)>
      make_processor;
};

// The outcome of a try.
struct TriedPage {
  // A page that it led to.
  struct Lead {
    std::string url;
    std::string rule;          // empty: none
    std::string becomes;       // of an ask for it now, in words
    bool is_followed = false;  // a visit would ask for it
    std::string context_json;  // empty: null
    std::optional<std::int32_t> priority;
    std::string page_json;  // all that was said of it (write_asked_page()); empty: nothing beside URL, rule and context
  };
  static constexpr std::size_t kMostText = 1024 * 1024;
  static constexpr std::size_t kMostLeads = 1'000;

  std::string url;  // behind redirects
  int status = 0;   // 0: it was not answered
  Duration took{};
  std::vector<std::pair<std::string, std::string>> headers;
  std::string text;  // of the body, in UTF-8; empty for what is no text
  std::size_t body_bytes = 0;
  bool is_cut = false;               // the text goes on
  std::string not_fetched;           // why; empty: it was
  std::string rule;                  // empty: none
  std::string becomes;               // of an ask for it now, in words
  std::vector<std::string> columns;  // the fields of its rule
  std::vector<PageResult> results;
  std::size_t dropped = 0;    // records without a required field, and the like
  std::string not_extracted;  // why its fields could not be read; empty: they could
  std::vector<Lead> leads;    // those that are followed first
  std::size_t leads_left_out = 0;
  std::vector<PageMessage> messages;
  std::optional<std::string> save_json;  // nullopt: what was kept stays
  std::vector<PageLog> logs;
  std::optional<ProcessorFailure> failure;  // why the visit would have failed
  // Whole, for another try of it, which may be the order's own; null: no server has answered.
  std::shared_ptr<const FetchedAnswer> answer;
  std::string request;  // with what it was asked for beside its URL, by page, rule, project and script
};

// Threads: the loop's own, all of it. The store outlives it.
class PageEngine {
 public:
  PageEngine(PageEngineOptions options, PageStore& store);
  ~PageEngine();
  PageEngine(PageEngine&&) = delete;

  // Takes up what the store has. `now`: the calendar's.
  Result<void> open(WallTime now);
  // Visits until stop(); then visits under way are ended, within `drain_limit`, and all is in the store.
  // Cancel: the same at once, and throws CancelledError.
  Coro<Result<void>> run(HttpTransport& transport, Resolver* resolver);
  void stop(bool at_once = false);

  // --- projects. Each is in the store with the next commit, and in force at once.
  struct Draft {
    ProjectDefinition definition;
    std::string text;    // the definition as JSON
    std::string source;  // as it was written
    std::string script;
    std::string note;
  };
  // A new one, or a new version of the one of that name. The same text and script again change nothing. A draft without
  // a script has the one that is there (PageEngineOptions::script_of).
  // Errors: invalid_input; unsupported for a processor where there is nobody to make one.
  Result<ProjectId> put_project(Draft draft);
  // Errors, of all that name a project: not_found.
  Result<void> set_status(std::string_view name, ProjectStatus status);
  // nullopt: as its file says.
  Result<void> set_rate(std::string_view name, std::optional<double> rate, std::optional<std::uint32_t> burst);
  Result<void> set_group(std::string_view name, std::string group);
  // Ends a pause after failures.
  Result<void> resume(std::string_view name);
  // It is gone from now on, and forgotten after 24 h; until then it can be restored.
  Result<void> remove(std::string_view name);
  Result<void> restore(std::string_view name);
  // Asks for its starts, as a round; while one is under way, as part of it.
  Result<void> start(std::string_view name, std::string cause = "start");

  // One page, by the API or a program. Its rule: that of `page`, or the first that matches its URL.
  Result<AskDecision> ask(std::string_view project, AskedPage page);
  // `from`: what the one that gets it sees as its sender. Errors: not_found; invalid_input for a project that takes
  // none.
  Result<void> send_message(std::string_view from, PageMessage message);

  // Tries a page: fetched as by a visit, by the hosts' robots.txt, pace and guard, read by rules and script. A failure
  // is its outcome, no error. Asks end by what the project of that name knows; names of met hosts are kept.
  // Errors: invalid_input for the definition and the URL; unsupported for a processor where there is nobody to make
  //         one, and what making it says; busy while `most_tries` are under way; cancelled while nothing is visited,
  //         and by stop().
  // Cancel: throws CancelledError; what was begun is ended.
  Coro<Result<TriedPage>> try_page(PageTryOrder order);

  // --- looks
  std::vector<ProjectStatusNow> projects() const;
  std::optional<ProjectStatusNow> project(std::string_view name) const;
  // As it is now; null where there is none of that name, or its file cannot be read.
  std::shared_ptr<const ProjectDefinition> definition(std::string_view name) const;
  const ProjectCounters* counters(std::string_view name) const;
  std::vector<VisitNote> recent(std::string_view name) const;  // newest first
  // `page`: its name, or a URL in whatever spelling.
  // Cost: of one that has failed that of reading its row.
  Result<PageExplanation> explain(std::string_view project, std::string_view page);
  // Of a page that is known under that name, as that URL's, or under a name with its fingerprint; the store may get it
  // later. nullopt: none is.
  std::optional<PageId> page_id(std::string_view project, std::string_view page) const;
  // Hosts of its projects, by number. An answer may have fewer than its limit, or none, and still a next: so many were
  // looked at.
  // Cost: milliseconds, however many hosts there are.
  HostsFound hosts(const HostQuery& query) const;
  // `site`: a site, a URL of it, or a host's name. May be told of the projects that `may_see` lets see; null: of all.
  HostExplanation explain_host(std::string_view site,
                               const std::function<bool(std::string_view project)>& may_see = {}) const;
  // When the first of the pages is due that wait and belong to the project's round under way, or a time that has passed
  // where one is due already; nullopt: none waits.
  // Cost: until one is due already, reads what is known of all pages of the project.
  std::optional<WallTime> round_due(std::string_view name) const;
  // How many of its pages wait and are due by then, whether they belong to a round or not, up to `most`; but for those
  // that are only visited again because they are old.
  // Cost: until so many are found, reads what is known of all pages of the project.
  std::size_t due_pages(std::string_view name, WallTime by, std::size_t most) const;
  std::uint64_t visits() const noexcept;
  std::uint64_t visits_failed() const noexcept;
  std::uint64_t given_up() const noexcept;  // visits that failed, with no retry left
  std::size_t under_way() const noexcept;

  // How many records have each field, in its round under way; while there is none, in the last one.
  std::vector<FieldCount> coverage(std::string_view name) const;
  // The alarms of the last round that has ended, a sentence each.
  std::vector<std::string> alarms(std::string_view name) const;
  // Of its sinks, as they are now.
  std::vector<SinkRow> sinks(std::string_view name) const;
  // Whether all its sinks have all there is.
  bool sinks_have_all(std::string_view name) const;

  // Suspends until the project has no round under way, or the engine stops.
  Coro<void> round_over(std::string_view name);

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope

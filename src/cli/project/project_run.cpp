// `argiope project run`: the clock, the sockets, the signals and the terminal around a PageEngine.
#include "cli/project/project_run.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/end_signals.hpp"
#include "cli/error_advice.hpp"
#include "cli/human.hpp"
#include "cli/live_line.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_means.hpp"
#include "cli/project/project_place.hpp"
#include "cli/project/result_file.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/project/run_projects.hpp"
#include "cli/table.hpp"
#include "config/internal/crawl_file.hpp"
#include "crawl/run/internal/local_wire.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/run/internal/round_wait.hpp"

namespace argiope {
namespace {

// Visits under way at a signal may go on for so long: within 10 s in all.
constexpr Duration kRunDrain = std::chrono::milliseconds{7'500};
constexpr Duration kLook = std::chrono::milliseconds{10};
constexpr Duration kLongestLook = std::chrono::milliseconds{200};
constexpr int kRestOfLook = 20;  // times what a look takes: of many pages some time
constexpr Duration kSoon = std::chrono::seconds{1};
// Sinks may take so long at the end; what they have not taken comes with the next run.
constexpr Duration kSinksAtEnd = std::chrono::seconds{30};
constexpr Duration kSinksAfterSignal = std::chrono::seconds{1};
constexpr double kNewestInRate = 0.3;
constexpr std::size_t kFailuresShown = 3;
constexpr std::size_t kFeedAtOnce = 2'000;

struct ResultNewsCounts {
  std::array<std::uint64_t, 3> counts{};  // by ResultNews

  std::uint64_t of(ResultNews news) const { return counts[static_cast<std::size_t>(news)]; }
  void add(const ResultNewsCounts& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
};

// The number of the newest row of a project's feed, whose numbers grow with gaps; 0: it has none.
Result<std::int64_t> end_of_feed(PageStore& store, ProjectId project) {
  const auto first = store.read_feed(project, 0, 1);
  if (!first) return std::unexpected(first.error());
  if (first->empty()) return 0;
  std::int64_t none_above = std::numeric_limits<std::int64_t>::max(), some_above = 0;
  while (none_above - some_above > 1) {
    const std::int64_t middle = some_above + (none_above - some_above) / 2;
    const auto rows = store.read_feed(project, middle, 1);
    if (!rows) return std::unexpected(rows.error());
    if (rows->empty()) {
      none_above = middle;
    } else {
      some_above = std::max(middle, rows->front().number - 1);
    }
  }
  return none_above;
}

Result<ResultNewsCounts> count_feed(PageStore& store, ProjectId project, std::int64_t after) {
  ResultNewsCounts counts;
  while (true) {
    const auto rows = store.read_feed(project, after, kFeedAtOnce);
    if (!rows) return std::unexpected(rows.error());
    if (rows->empty()) return counts;
    for (const FeedRow& row : *rows) ++counts.counts[static_cast<std::size_t>(row.news)];
    after = rows->back().number;
  }
}

class ProjectRun {
 public:
  explicit ProjectRun(const ProjectRunArguments& arguments) : arguments_(arguments) {}

  int run() {
    spdlog::set_level(arguments_.quiet   ? spdlog::level::err
                      : arguments_.debug ? spdlog::level::debug
                                         : spdlog::level::info);
    if (auto good = arguments_.check(); !good) return give_up(good.error(), kExitUsage);
    auto projects = read_run_projects(arguments_.files);
    if (!projects) return give_up(projects.error(), kExitUsage);
    if (auto good = check_files(*projects); !good) return give_up(good.error(), status_for(good.error()));
    is_from_files_ = !projects->empty();
    const bool is_there = arguments_.database == ":memory:" || ::access(arguments_.database.c_str(), F_OK) == 0;
    if (!is_from_files_ && !is_there) {
      return give_up(
          {Errc::not_found, fmt::format("FILE: give a project's file; {} is not there, and has no projects yet",
                                        printable(arguments_.database))},
          kExitUsage);
    }
    CrawlOptions options;
    CrawlSetup setup;
    const auto apply = [&] {
      for (const RunProject& one : *projects)
        options.seeds.insert(options.seeds.end(), one.definition.start.begin(), one.definition.start.end());
      return arguments_.apply(options, setup, environment_variable);
    };
    // Where files say what the projects are, all options are judged before a database is made.
    if (auto applied = is_from_files_ ? apply() : Result<void>{}; !applied) return give_up(applied.error(), kExitUsage);
    const SyncMode sync = arguments_.sync == "off"      ? SyncMode::off
                          : arguments_.sync == "normal" ? SyncMode::normal
                                                        : SyncMode::full;
    auto store = own_pages(arguments_.database, {.sync = sync});
    if (!store) return give_up(store.error(), kExitNothing);
    store_ = std::move(*store);
    if (!is_from_files_) projects = stored_run_projects(*store_);
    if (!projects) return give_up(projects.error(), status_for(projects.error()));
    if (auto applied = is_from_files_ ? Result<void>{} : apply(); !applied) return give_up(applied.error(), kExitUsage);
    for (RunProject& project : *projects) runs_.push_back({.project = std::move(project)});
    const std::vector<Url> starts = options.seeds;
    const HttpClientOptions http = wire_options(options, setup);
    AddressGuard guard(setup.allow_private, setup.private_advice);
    for (const Url& start : starts) permit_named(guard, start);
    if (auto remembered = remember_feeds(); !remembered) return give_up(remembered.error(), kExitNothing);

    const TimePoint began = clock_.now();
    LocalWire wire(clock_, http, guard);
    wire_ = &wire;
    const AddressGuard webhook_guard(is_from_files_ || setup.allow_private, setup.private_advice);
    WireOnLoop webhooks(wire.backend(), webhook_options(http), webhook_guard);
    webhooks_ = &webhooks;
    PageEngine engine(engine_options(std::move(options)), *store_);
    engine_ = &engine;
    if (auto opened = engine.open(clock_.wall_now()); !opened) return give_up(opened.error(), kExitNothing);
    const auto worked = wire.loop().run_until_complete(work());
    wire.client().close_idle();
    webhooks.client().close_idle();
    live_.clear();
    seconds_ = to_seconds(clock_.now() - began);
    if (!worked) {
      complain(worked.error());
      if (status_ == kExitFinished) status_ = kExitNothing;
    }
    return finish();
  }

 private:
  // Before anything is opened.
  Result<void> check_files(const std::vector<RunProject>& projects) const {
    CommandFiles files;
    arguments_.name_files(files);
    name_project_files(projects, files);
    return files.check();
  }
  struct Run {
    RunProject project;
    ProjectId id = 0;
    std::int64_t feed = 0;  // its end, before
    bool is_started = false;
    std::uint64_t rounds = 0;
    std::vector<std::string> alarms;
    ResultNewsCounts news;
  };

  void complain(const Error& error) {
    live_.clear();
    fmt::print(stderr, "argiope: {}\n", printable_lines(error.message));
    if (!error_.empty()) error_ += "; ";
    error_ += error.message;
  }
  int give_up(const Error& error, int status) {
    complain(error);
    if (arguments_.summary == "json") print_json();
    return status;
  }

  Run* find(std::string_view name) {
    const auto found =
        std::ranges::find(runs_, name, [](const Run& one) -> const std::string& { return one.project.name; });
    return found == runs_.end() ? nullptr : &*found;
  }

  Result<void> remember_feeds() {
    const auto records = store_->projects();
    if (!records) return std::unexpected(records.error());
    for (const ProjectRecord& record : *records) {
      Run* const one = record.deleted_at ? nullptr : find(record.name);
      if (one == nullptr) continue;
      const auto end = end_of_feed(*store_, record.id);
      if (!end) return std::unexpected(end.error());
      one->feed = *end;
    }
    return {};
  }

  PageEngineOptions engine_options(CrawlOptions hosts) {
    PageEngineOptions options = page_engine_options(std::move(hosts), arguments_.render);
    options.drain_limit = kRunDrain;
    options.page_timeout = arguments_.requests.timeout;
    options.is_wanted = [this](std::string_view name) { return find(name) != nullptr; };
    options.make_processor = [this](const ProjectDefinition& definition,
                                    ProcessorWatch watch) -> Result<std::unique_ptr<Processor>> {
      Run* const one = find(definition.name);
      if (one == nullptr)
        return fail(Errc::not_found, fmt::format("project {} is not run", in_quotes(definition.name)));
      ScriptMeans means{.workers = arguments_.workers, .sandbox = arguments_.sandbox, .hidden = {}};
      means.is_operators = is_from_files_;
      means.webhooks = &webhooks_->client();
      if (arguments_.database != ":memory:") {
        means.hidden.push_back(arguments_.database);
        means.hidden.push_back(arguments_.database + "-secrets");
        means.secrets_folder = folder_beside(arguments_.database, "secrets", definition.name);
      }
      return make_script_processor(means, definition, one->project.folder, std::move(watch));
    };
    options.script_of = [this](const ProjectDefinition& definition) {
      const Run* const one = find(definition.name);
      return one != nullptr ? script_of(definition, one->project.folder) : std::string{};
    };
    options.sink_means = [this](const ProjectDefinition& definition) {
      const Run* const one = find(definition.name);
      return sink_means_in(one != nullptr ? one->project.folder : std::string{}, definition.name,
                           [this](const std::string& project, const PageLog& line) { say(project, line); });
    };
    options.sinks_at_end = [this] { return interrupted_ ? kSinksAfterSignal : kSinksAtEnd; };
    options.on_log = [this](const std::string& project, const PageLog& line) { say(project, line); };
    options.on_round_end = [this](const std::string& project, const RoundRecord&,
                                  const std::vector<std::string>& alarms) {
      Run* const one = find(project);
      if (one == nullptr) return;
      ++one->rounds;
      one->alarms.insert(one->alarms.end(), alarms.begin(), alarms.end());
    };
    return options;
  }

  // Writes words of scripts and the engine on a project.
  void say(const std::string& project, const PageLog& line) {
    log_of_project(project, line, [this] { live_.clear(); });
  }

  // --- while it runs

  Coro<Result<void>> work() {
    EventLoop& loop = EventLoop::current();
    signals_.listen(loop, [this] {
      const bool again = std::exchange(interrupted_, true);
      if (!arguments_.quiet) {
        live_.clear();
        std::fputs(
            again ? "Stopping at once.\n" : "Stopping: finishing what is under way (at most 10 s; again: at once).\n",
            stderr);
      }
      engine_->stop(again);
    });
    Task<Result<void>> visiting =
        loop.create_task(engine_->run(wire_->client(), &wire_->resolver()), "projects", Start::eagerly);
    std::vector<Task<void>> beside;
    if (auto begun = begin(); !begun) {
      complain(begun.error());
      status_ = status_for(begun.error());
      engine_->stop(true);
    } else {
      if (!arguments_.quiet) beside.push_back(loop.create_task(show_progress(), "progress"));
      if (arguments_.once) beside.push_back(loop.create_task(end_with_rounds(), "rounds"));
    }
    auto ended = co_await visiting;
    for (Task<void>& task : beside) {
      if (task.done()) continue;
      task.cancel();
      try {
        co_await task;
      } catch (const CancelledError&) {
        // asked for
      }
    }
    tell_of_sinks();
    co_return ended;
  }

  // Puts the projects, and starts those that are to be.
  Result<void> begin() {
    for (Run& one : runs_) {
      RunProject& project = one.project;
      if (project.draft) {
        auto put = engine_->put_project(std::move(*project.draft));
        project.draft.reset();
        if (!put) return std::unexpected(std::move(put.error()));
      }
      const auto status = engine_->project(project.name);
      if (!status) return fail(Errc::not_found, fmt::format("there is no project {}", in_quotes(project.name)));
      one.id = status->id;
      if (status->status != ProjectStatus::running && status->status != ProjectStatus::debug) {
        complain({Errc::refused,
                  fmt::format("project {} is {}: its pages are not visited; argiope project start {} changes that",
                              in_quotes(project.name), to_string(status->status), printable(project.name))});
        if (arguments_.once) status_ = kExitBroken;
        continue;
      }
      const auto rounds = store_->rounds(one.id, 1);
      if (!rounds) return std::unexpected(rounds.error());
      if (arguments_.once || (rounds->empty() && !status->round)) {
        if (auto started = engine_->start(project.name); !started) return started;
        one.is_started = true;
      }
    }
    return {};
  }

  // The line of a terminal, and now and then one of a log.
  Coro<void> show_progress() {
    EventLoop& loop = EventLoop::current();
    const TimePoint start = loop.time();
    TimePoint last = start;
    std::uint64_t last_visits = 0;
    double rate = 0;
    for (bool first = true;; first = false) {
      co_await sleep(live_.interval());
      const TimePoint now = loop.time();
      const std::uint64_t visits = engine_->visits();
      const double newest = static_cast<double>(visits - last_visits) / std::max(to_seconds(now - last), 1e-3);
      rate = first ? newest : rate + kNewestInRate * (newest - rate);
      last = now;
      last_visits = visits;
      live_.show(progress_line(rate, to_seconds(now - start)));
    }
  }

  std::string progress_line(double rate, double seconds) const {
    std::size_t pages = 0;
    std::uint64_t outstanding = 0;
    std::string round, trouble;
    std::optional<WallTime> until;
    for (const ProjectStatusNow& status : engine_->projects()) {
      pages += status.pages;
      outstanding += status.outstanding;
      if (status.round && runs_.size() == 1) round = fmt::format("  round {}", status.round->number);
      if (status.doing == ProjectStatusNow::Doing::paused || status.doing == ProjectStatusNow::Doing::standing) {
        trouble += fmt::format("  {} {}", status.name, to_string(status.doing));
      }
      for (const auto& time : {status.until, status.next_start}) {
        if (time && (!until || *time < *until)) until = time;
      }
    }
    std::string next;
    const WallTime now = clock_.wall_now();
    if (engine_->under_way() == 0 && until && *until > now + kSoon)
      next = fmt::format("  next in {}", format_roughly(*until - now));
    return fmt::format("{}  {:.0f}/s  {} known  {} left{}  {} under way  {} failed{}{}  {}",
                       counted(engine_->visits(), "visit"), rate, pages, outstanding, round, engine_->under_way(),
                       engine_->visits_failed(), next, trouble, human_duration(seconds));
  }

  // --- the end of --once

  Coro<void> end_with_rounds() {
    for (const Run& one : runs_) {
      if (!one.is_started) continue;
      Duration pause = kLook;
      Duration took{};
      const auto look = [&] {
        const TimePoint before = clock_.now();
        const RoundWait found = look_at_round(*engine_, one.project.name, clock_.wall_now() + arguments_.retry_wait);
        took = clock_.now() - before;
        return found;
      };
      RoundWait wait = look();
      for (; wait == RoundWait::goes_on; wait = look()) {
        co_await sleep(pause);
        pause = std::min(pause * 2, kLongestLook) + kRestOfLook * took;
      }
      if (wait == RoundWait::over) {
        co_await engine_->round_over(one.project.name);
      } else {
        tell_stuck(one);
      }
    }
    co_await end_after_rounds();
    engine_->stop();
  }

  // Scripts are told of the end of a round, and may lead on then, by pages and by messages to each other.
  Coro<void> end_after_rounds() {
    std::vector<std::string> scripts;
    for (const Run& one : runs_) {
      if (one.is_started && !one.project.definition.processor.empty()) scripts.push_back(one.project.name);
    }
    AfterRounds after(*engine_, std::move(scripts), clock_.wall_now());
    for (bool goes_on = true; goes_on;) {
      const TimePoint before = clock_.now();
      goes_on = after.goes_on(clock_.wall_now());
      if (goes_on) co_await sleep(kLook + kRestOfLook * (clock_.now() - before));
    }
  }

  void tell_stuck(const Run& one) {
    const auto status = engine_->project(one.project.name);
    status_ = kExitBroken;
    const std::string name = in_quotes(one.project.name);
    if (!status->trouble.empty())
      return complain({Errc::internal, fmt::format("project {}: {}", name, status->trouble)});
    if (status->doing == ProjectStatusNow::Doing::stopped)
      return complain({Errc::internal, fmt::format("project {} is {}", name, to_string(status->status))});
    const auto next =
        status->doing == ProjectStatusNow::Doing::paused ? status->until : engine_->round_due(one.project.name);
    const std::string when = next ? fmt::format(", the next at {}", to_rfc3339(*next)) : "";
    const std::string_view why = status->doing == ProjectStatusNow::Doing::paused
                                     ? "its visits kept failing, and it pauses"
                                     : "they are to be tried again";
    complain({Errc::internal, fmt::format("project {}: {} left{}: {}; the same command goes on then", name,
                                          counted(status->outstanding, "page is", "pages are"), when, why)});
  }

  // After all that they have taken.
  void tell_of_sinks() {
    for (const Run& one : runs_) {
      for (const SinkRow& row : engine_->sinks(one.project.name)) {
        if (row.trouble.empty()) continue;
        complain(
            {Errc::io, fmt::format("project {}: sink {}: {}; the next run delivers what is left",
                                   in_quotes(one.project.name), in_quotes(shown_sink_name(row.name)), row.trouble)});
        status_ = kExitBroken;
      }
    }
  }

  // --- the end

  int finish() {
    for (Run& one : runs_) {
      if (one.id == 0) continue;
      if (const auto news = count_feed(*store_, one.id, one.feed)) {
        one.news = *news;
      } else {
        failed_in_store(news.error());
      }
    }
    if (!arguments_.results.empty() && runs_.front().id != 0) {
      const auto record = find_project(*store_, runs_.front().project.name);
      const auto written =
          record ? write_results(*store_, *record,
                                 {.format = export_format_of(arguments_.results), .columns = {}, .rules = {}},
                                 arguments_.results)
                 : std::unexpected(record.error());
      if (!written) failed_in_store(written.error());
    }
    if (auto flushed = store_->flush(); !flushed) failed_in_store(flushed.error());
    if (interrupted_ && status_ != kExitNothing) {
      status_ = signals_.exit_status();
    } else if (status_ == kExitFinished && (engine_->given_up() > 0 || has_alarms())) {
      status_ = kExitBroken;
    }
    if (!arguments_.quiet) print_report(arguments_.results == "-" ? stderr : stdout);
    if (arguments_.summary == "json") print_json();
    return status_;
  }

  void failed_in_store(const Error& error) {
    complain(error);
    status_ = kExitNothing;
  }
  bool has_alarms() const {
    return std::ranges::any_of(runs_, [](const Run& one) { return !one.alarms.empty(); });
  }

  void print_report(std::FILE* out) const {
    std::uint64_t rounds = 0;
    ResultNewsCounts news;
    for (const Run& one : runs_) {
      rounds += one.rounds;
      news.add(one.news);
    }
    fmt::print(out, "{} in {}: {} succeeded, {} failed, {} of them for good; {} ended\n",
               counted(engine_->visits(), "visit"), human_duration(seconds_),
               engine_->visits() - engine_->visits_failed(), engine_->visits_failed(), engine_->given_up(),
               counted(rounds, "round"));
    fmt::print(out, "Results: {} added, {} changed, {} gone\n", news.of(ResultNews::added),
               news.of(ResultNews::changed), news.of(ResultNews::gone));
    for (const Run& one : runs_) print_failures(out, one);
    print_way_to_private_pages(out);
    for (const Run& one : runs_) {
      for (const std::string& alarm : one.alarms)
        fmt::print(out, "Alarm: {}: {}\n", printable(one.project.name), printable(alarm));
    }
    if (!arguments_.results.empty() && arguments_.results != "-")
      fmt::print(out, "Written to {}\n", printable(arguments_.results));
  }

  void print_failures(std::FILE* out, const Run& one) const {
    std::size_t shown = 0;
    for (const VisitNote& visit : engine_->recent(one.project.name)) {
      if (visit.succeeded || shown++ >= kFailuresShown) continue;
      fmt::print(out, "{} {}: {}{}\n", shown == 1 ? "Failed:" : "       ", printable(visit.name, kMostOfName),
                 printable(visit.error, kMostQuoted), visit.gave_up ? "" : " (to be tried again)");
    }
  }

  // A refused page rests like any page that has failed: the option alone would change nothing for a day.
  void print_way_to_private_pages(std::FILE* out) const {
    for (const Run& one : runs_) {
      const std::vector<VisitNote> visits = engine_->recent(one.project.name);
      const auto refused = std::ranges::find_if(
          visits, [](const VisitNote& visit) { return visit.gave_up && visit.error.ends_with(kAllowPrivateAdvice); });
      if (refused == visits.end()) continue;
      fmt::print(out, "Private addresses are not asked without --allow-private.");
      if (arguments_.database != ":memory:")
        fmt::print(out, " To ask for such a page again: argiope project ask {} URL --force, then a run with it",
                   printable(one.project.name));
      fmt::print(out, "\n");
    }
  }

  static void write_news(JsonWriter& out, const ResultNewsCounts& news) {
    out.object("results", [&] {
      for (const ResultNews one : {ResultNews::added, ResultNews::changed, ResultNews::gone})
        out.member(to_string(one), news.of(one));
    });
  }

  void print_json() const {
    const std::uint64_t visits = engine_ != nullptr ? engine_->visits() : 0,
                        failed = engine_ != nullptr ? engine_->visits_failed() : 0;
    std::uint64_t rounds = 0;
    ResultNewsCounts news;
    for (const Run& one : runs_) {
      rounds += one.rounds;
      news.add(one.news);
    }
    fmt::print("{}\n", json_object([&](JsonWriter& out) {
                 out.member("visits", visits);
                 out.member("succeeded", visits - failed);
                 out.member("failed", failed);
                 out.member("given_up", engine_ != nullptr ? engine_->given_up() : 0);
                 out.member("rounds", rounds);
                 write_news(out, news);
                 out.array("projects", [&] {
                   for (const Run& one : runs_) {
                     const auto status = engine_ != nullptr ? engine_->project(one.project.name) : std::nullopt;
                     out.object([&] {
                       out.member("name", one.project.name);
                       if (status) out.member("version", status->version);
                       if (status) out.member("pages", status->pages);
                       if (status) out.member("left", status->outstanding);
                       out.member("rounds", one.rounds);
                       write_news(out, one.news);
                       out.list("alarms", one.alarms);
                     });
                   }
                 });
                 out.member("interrupted", interrupted_);
                 out.member("seconds", seconds_);
                 out.member("error", error_);
               }));
  }

  const ProjectRunArguments& arguments_;
  const SystemClock clock_;
  std::unique_ptr<PageStore> store_;
  std::vector<Run> runs_;
  LocalWire* wire_ = nullptr;
  WireOnLoop* webhooks_ = nullptr;
  bool is_from_files_ = false;  // what the projects are is said by files that were named here, and not by the database
  PageEngine* engine_ = nullptr;
  LiveLine live_{stderr};
  EndSignals signals_;
  bool interrupted_ = false;
  int status_ = kExitFinished;
  double seconds_ = 0;
  std::string error_;  // what was complained of
};

int run_project_run(ProjectRunArguments& arguments, CLI::App& command) {
  if (const auto read = arguments.hosts.read_file(command, read_crawl_file); !read)
    return complain_of_project(read.error(), kExitUsage);
  return ProjectRun(arguments).run();
}

}  // namespace

std::function<int()> add_project_run(CLI::App& project) {
  auto arguments = std::make_shared<ProjectRunArguments>();
  CLI::App* command =
      project.add_subcommand("run", "Visit the pages of projects: once, or again and again as their files say.");
  arguments->add_to(*command);
  refuse_daemon(*command,
                "this command runs projects itself; argiope serve runs those of its configuration and of its API, and "
                "argiope project start has one run there");
  return [arguments, command] { return run_project_run(*arguments, *command); };
}

}  // namespace argiope

// `argiope crawl` and `argiope crawl replay`: the clock, the sockets or archives, the signals and the terminal around a
// Crawler.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/crawl/sinks.hpp"
#include "argiope/jobs/detail/token_level.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/warc/warc.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/crawl/crawl_arguments.hpp"
#include "cli/crawl/crawl_import.hpp"
#include "cli/crawl/crawl_looks.hpp"
#include "cli/crawl/progress.hpp"
#include "cli/crawl/report_printer.hpp"
#include "cli/crawl/sitemap_words.hpp"
#include "cli/end_signals.hpp"
#include "cli/error_advice.hpp"
#include "cli/file_kind.hpp"
#include "cli/human.hpp"
#include "cli/random_number.hpp"
#include "cli/version.hpp"
#include "config/internal/crawl_file.hpp"
#include "config/internal/extraction_file.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "crawl/report/internal/site_report.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "crawl/scope/internal/unlinked_urls.hpp"
#include "store/urls/internal/url_export.hpp"

namespace argiope {
namespace {

// With --forever, when the files of a mirror are made: see keep_browsable().
constexpr Duration kMirrorLook = std::chrono::seconds{1};
constexpr Duration kMirrorQuiet = std::chrono::seconds{10};
constexpr Duration kMirrorPause = std::chrono::minutes{10};
constexpr int kMostLookedAt = 1'000;  // rows, for the URLs that a crawl began with
constexpr std::string_view kNothingWasDue =
    "nothing was due, and nothing was asked: all that is in scope is known already. --age 0 asks whether it has "
    "changed, "
    "--requeue broken or all fetches again";

class CrawlCommand {
 public:
  // `archives`: the WARC files to crawl instead of the net.
  explicit CrawlCommand(const CrawlArguments& arguments, std::vector<std::string> archives = {})
      : arguments_(arguments), archives_(std::move(archives)) {}

  int run() {
    std::vector<std::string> remarks;
    auto options = arguments_.options(&remarks);
    Result<void> known;
    if (options) known = arguments_.session.apply(*options, environment_variable, clock_.wall_now(), remarks);
    for (const std::string& remark : remarks) fmt::print(stderr, "argiope: {}\n", printable_lines(remark));
    if (!options) return give_up(options.error().message, kExitUsage);
    if (!known) return give_up(known.error().message, kExitUsage);
    CrawlSetup setup = basic_setup();
    if (auto applied = arguments_.wire.apply(*options, setup, environment_variable); !applied) {
      return give_up(applied.error().message, kExitUsage);
    }
    if (auto applied = arguments_.render.apply(*options, arguments_.threads); !applied) {
      return give_up(applied.error().message, kExitUsage);
    }
    spdlog::set_level(arguments_.quiet   ? spdlog::level::err
                      : arguments_.debug ? spdlog::level::debug
                                         : spdlog::level::info);
    if (arguments_.color) color_log();
    if (auto good = check_files(); !good) return give_up(good.error().message, kExitNothing);
    if (auto opened = open_archives(*options, setup); !opened) return give_up(opened.error().message, kExitNothing);
    if (options->seeds.empty())
      return give_up("URL: give one, or --input-file with a list of them; argiope crawl --help says more", kExitUsage);
    if (auto opened = open_extraction(*options); !opened) return give_up(opened.error().message, extraction_status_);
    if (auto opened = open_mirror(*options); !opened) return give_up(opened.error().message, kExitNothing);
    // An archive is mended when it is opened: nothing else may refuse the run behind it.
    if (auto opened = open_warc(*options); !opened) return give_up(opened.error().message, kExitNothing);
    for (const Url& given : options->seeds) given_sites_.insert(given.site_key());
    const WallTime opened_at = clock_.wall_now();
    auto crawl = LocalCrawl::open(std::move(*options), std::move(setup));
    if (!crawl)
      return give_up(
          with_import_advice(with_database_option(std::move(crawl.error()), arguments_.database), arguments_.database)
              .message,
          kExitNothing);
    say_whose_database((*crawl)->store(), opened_at);
    if (extraction_) {
      if (auto fits = extraction_->go_on_from((*crawl)->store()); !fits)
        return give_up(fits.error().message, kExitNothing);
    }
    if (auto logged_in = log_in(**crawl); !logged_in) return give_up(logged_in.error().message, kExitNothing);
    Crawler& crawler = (*crawl)->crawler();
    auto report = (*crawl)->run(watch(crawler));
    progress_.clear();
    if (!report) {
      return give_up(fmt::format("{}\nStopped. All that was committed is intact; run the same command again to go on.",
                                 report.error().message),
                     kExitNothing, crawler.stats());
    }
    return finish(**crawl, *report);
  }

 private:
  // Before anything is opened.
  Result<void> check_files() const {
    CommandFiles files = arguments_.files(environment_variable);
    for (const std::string& archive : archives_) files.reads("FILE", archive);
    return files.check();
  }
  // The usual database is in the folder where the command runs. A second site there is told that it has another.
  // `opened_at`: what was met since then is this crawl's own.
  void say_whose_database(UrlStore& store, WallTime opened_at) const {
    if (arguments_.quiet || arguments_.database != CrawlArguments{}.database) return;
    const WallTime before = std::chrono::floor<std::chrono::milliseconds>(opened_at);
    std::string other;
    bool is_known = false;
    int looked = 0;
    (void)store.scan(1, [&](const UrlRecord& record) {
      if (record.ctime >= before) return false;
      const auto url = record.referrer == 0 ? Url::parse(record.url) : Result<Url>(fail(Errc::not_found, ""));
      if (url) {
        const std::string place = fmt::format("//{}", url->host_and_port());
        is_known = std::ranges::any_of(given_sites_, [&](const std::string& site) { return site.ends_with(place); });
        if (other.empty()) other = url->host_and_port();
      }
      return !is_known && ++looked < kMostLookedAt;
    });
    if (is_known || other.empty()) return;
    fmt::print(stderr,
               "argiope: {} has the crawl of {} already, and this one goes into it, too; -d FILE keeps them apart\n",
               arguments_.database, printable(other));
  }
  static void color_log() {
    for (const auto& sink : spdlog::default_logger()->sinks()) {
      auto* const colored = dynamic_cast<spdlog::sinks::stderr_color_sink_mt*>(sink.get());
      if (colored != nullptr) colored->set_color_mode(spdlog::color_mode::always);
    }
  }
  // Errors are told whatever --quiet says, and stand in the summary.
  int complain(std::string_view message, int status) {
    fmt::print(stderr, "argiope: {}\n", printable_lines(message));
    if (!error_.empty()) error_ += "; ";
    error_ += message;
    return status;
  }
  // For a crawl that has no report.
  int give_up(std::string_view message, int status, const CrawlStats& stats = {}) {
    complain(message, status);
    if (arguments_.summary == "json") print_failed_summary(stdout, stats, error_);
    return status;
  }

  // An archive answers instead of the net. It asks for no politeness, and a request that failed once fails again.
  Result<void> open_archives(CrawlOptions& options, CrawlSetup& setup) {
    if (archives_.empty()) return {};
    if (options.login)
      return fail(Errc::invalid_input, "--login: there is nobody to log in to; argiope crawl replay asks no server");
    for (const std::string& archive : archives_) {
      if (auto other = other_kind(archive, FileKind::archive)) return std::unexpected(*std::move(other));
    }
    auto replay = WarcReplay::open(archives_);
    if (!replay) return std::unexpected(std::move(replay.error()));
    replay_ = std::move(*replay);
    if (options.seeds.empty()) options.seeds = replay_->seeds();
    if (options.seeds.empty()) {
      return fail(Errc::not_found, fmt::format("{}: there is no page in it", fmt::join(archives_, ", ")));
    }
    setup.transport = [replay = replay_] { return WarcReplay::transport(replay); };
    options.delay.reset();
    options.rate = kUnlimitedRate;
    options.per_host = static_cast<std::uint32_t>(options.concurrency);
    options.heed_crawl_delay = false;
    options.autothrottle = false;
    options.retries = 0;
    for (HostSettings& host : options.hosts) {
      host.rate.reset();
      host.delay.reset();
      host.per_host.reset();
      host.autothrottle.reset();
      host.retries.reset();
    }
    return {};
  }

  Result<void> log_in(LocalCrawl& crawl) const {
    if (arguments_.session.login.empty()) return {};
    auto logged_in = crawl.log_in();
    return logged_in ? logged_in : fail(logged_in.error().code, fmt::format("--login: {}", logged_in.error().message));
  }

  Result<void> open_warc(CrawlOptions& options) {
    if (arguments_.warc.empty()) return {};
    const WarcOptions warc{.path = arguments_.warc,
                           .most_bytes = arguments_.warc_bytes,
                           .sync = arguments_.sync == "full",
                           .info = {{"software", fmt::format("argiope/{}", kVersion)},
                                    {"http-header-user-agent", options.user_agent},
                                    {"robots", options.robots ? "obey" : "ignore"}},
                           .seeds = options.seeds};
    auto opened = WarcSink::open(warc, clock_, Random{random_number()});
    if (!opened) {
      if (opened.error().code == Errc::wrong_format) opened.error().message += "; --warc names another file";
      return std::unexpected(std::move(opened.error()));
    }
    warc_ = std::move(*opened);
    options.sinks.push_back(warc_);
    return {};
  }

  Result<void> open_mirror(CrawlOptions& options) {
    auto opened = arguments_.save.open(options, arguments_.sync == "full", Random{random_number()});
    if (!opened) return std::unexpected(std::move(opened.error()));
    mirror_ = std::move(*opened);
    if (mirror_) seeds_ = options.seeds;
    return {};
  }

  Result<void> open_extraction(CrawlOptions& options) {
    if (!arguments_.extraction.is_asked()) return {};
    extraction_status_ = kExitUsage;
    auto wanted = arguments_.extraction.options(read_extraction_file);
    if (!wanted) return std::unexpected(std::move(wanted.error()));
    if (wanted->output == "-" && arguments_.summary == "json") {
      return fail(Errc::invalid_input, "--summary json: records go to standard output; --output names a file for them");
    }
    extraction_status_ = kExitNothing;
    wanted->sync = arguments_.sync == "full";
    auto opened = ExtractionSink::open(*wanted);
    if (!opened) return std::unexpected(std::move(opened.error()));
    extraction_ = std::move(*opened);
    options.sinks.push_back(extraction_);
    return {};
  }

  CrawlSetup basic_setup() const {
    CrawlSetup setup{.database = arguments_.database, .threads = arguments_.threads};
    setup.sync = arguments_.sync == "off"      ? SyncMode::off
                 : arguments_.sync == "normal" ? SyncMode::normal
                                               : SyncMode::full;
    arguments_.requests.apply(setup);
    return setup;
  }

  // The process's own work while it crawls: signals and the live line.
  Coro<void> watch(Crawler& crawler) {
    signals_.listen(EventLoop::current(), [this, &crawler] {
      const bool again = std::exchange(interrupted_, true);
      if (!arguments_.quiet) {
        progress_.clear();
        std::fputs(
            again ? "Stopping at once.\n" : "Stopping: finishing what is under way (at most 10 s; again: at once).\n",
            stderr);
      }
      if (extraction_) extraction_->give_up(again ? Duration{} : CrawlOptions{}.drain_limit);
      crawler.stop("signal", again);
    });
    std::vector<Coro<void>> work;
    if (!arguments_.quiet) work.push_back(progress_.run(crawler));
    if (mirror_ && arguments_.revisits.forever) work.push_back(keep_browsable(crawler));
    co_await gather(std::move(work));
  }

  // A crawl without end has no end at which its mirror is made. It is made when nothing has come for a while, or has
  // come for long without a pause; and that takes a tenth of the time at most. Trouble with it is told at the end,
  // which tries again.
  Coro<void> keep_browsable(Crawler& crawler) {
    const EventLoop& loop = EventLoop::current();
    std::uint64_t seen = 0, made_of = 0;
    TimePoint seen_at = loop.time(), made_at = loop.time();
    for (;;) {
      co_await sleep(kMirrorLook);
      const std::uint64_t fetched = crawler.stats().fetched;
      if (std::exchange(seen, fetched) != fetched) seen_at = loop.time();
      const bool is_quiet = loop.time() - seen_at >= kMirrorQuiet;
      if (fetched == made_of || (!is_quiet && loop.time() - made_at < kMirrorPause)) continue;
      made_of = fetched;
      const TimePoint began = loop.time();
      const auto built = co_await to_thread([mirror = mirror_] { return mirror->build(); });
      made_at = loop.time();
      if (!built) {
        spdlog::warn("{}: the mirror's files are not made: {}", arguments_.save.folder, built.error().message);
        co_return;
      }
      co_await sleep(9 * (made_at - began));
    }
  }

  int finish(LocalCrawl& crawl, const CrawlReport& report) {
    UrlStore& store = crawl.store();
    int status = kExitFinished;
    if (auto saved = arguments_.session.save(crawl.crawler().cookies(clock_.wall_now())); !saved) {
      status = complain(saved.error().message, kExitNothing);
    }
    if (!arguments_.export_file.empty()) {
      if (auto written = export_urls(store, arguments_.export_file); !written) {
        status = complain(written.error().message, kExitNothing);
      }
    }
    if (!arguments_.export_broken_file.empty()) {
      if (auto written = write_broken(store); !written) status = complain(written.error().message, kExitNothing);
    }
    if (auto reported = write_reports(store); !reported) status = complain(reported.error().message, kExitNothing);
    const std::string nothing = nothing_worked(store, report);
    // News that is not told is not remembered as known.
    if (status == kExitFinished && !interrupted_ && nothing.empty() && report.stopped_by != "store") {
      if (auto noted = note_news(store, report); !noted) status = complain(noted.error().message, kExitNothing);
    }
    if (auto closed = store.close(); !closed) status = complain(closed.error().message, kExitNothing);
    if (status == kExitFinished) status = status_of(report, nothing);
    const ExtractionReport extracted = extraction_ ? extraction_->report() : ExtractionReport{};
    if (!arguments_.quiet) {
      // Records and people's words do not mix.
      const bool is_taken = (extraction_ && arguments_.extraction.output == "-") || arguments_.export_file == "-" ||
                            arguments_.export_broken_file == "-";
      std::FILE* const out = is_taken ? stderr : stdout;
      print_report(out, report, arguments_.database, arguments_.export_file);
      const bool wants_files = warc_ || mirror_ || !arguments_.scope.accept_types.empty();
      if (!wants_files) print_files_hint(out, report);
      print_warc(out);
      if (mirror_) print_mirror(out, *mirror_, arguments_.save, seeds_);
      if (extraction_) print_extraction(out, extracted, arguments_.extraction.output);
      if (check_) print_check(out, *check_, arguments_.database);
    }
    if (arguments_.summary == "json") {
      print_summary(stdout, report, error_, check_ ? &*check_ : nullptr, extraction_ ? &extracted : nullptr,
                    news_.fresh);
    }
    if (report.finished && report.taken_up == 0) fmt::print(stderr, "argiope: {}\n", kNothingWasDue);
    // Last: who runs this as a job keeps the last line of standard error.
    if (is_found_broken_)
      fmt::print(stderr, "argiope: {}\n", printable(words_on_findings(report, check_ ? &*check_ : nullptr, news_)));
    return status;
  }

  // Those that the report tells.
  Result<void> write_broken(UrlStore& store) {
    const auto rules = arguments_.report.judge.rules();
    const auto unlinked = find_unlinked(store, rules->accept_status);
    if (!unlinked) return std::unexpected(unlinked.error());
    return export_broken(store, arguments_.export_broken_file, [&](const UrlRecord& record) {
      return is_broken(record, rules->accept_status) && !unlinked->contains(record.url_id);
    });
  }

  // Which of what --fail-on-broken goes by is new since the run before.
  Result<void> note_news(UrlStore& store, const CrawlReport& report) {
    if (!check_ && !arguments_.fail_on_broken) return {};
    std::vector<LinkFinding> broken;
    for (const BrokenLink& link : report.broken)
      broken.push_back({.kind = FindingKind::broken, .url = link.url, .page = link.referrer});
    const bool is_whole = check_ || report.broken_count == broken.size();
    const std::uint32_t kinds =
        check_ ? arguments_.report.judge.rules()->kinds : 1u << static_cast<unsigned>(FindingKind::broken);
    auto news = note_findings(store, check_ ? check_->findings : broken, kinds, is_whole);
    if (!news) return std::unexpected(std::move(news.error()));
    news_ = std::move(*news);
    return {};
  }

  // Writes the reports of links and pages at the end; check_ has the findings then. Rules and names were found right
  // before the crawl began.
  Result<void> write_reports(UrlStore& store) {
    const ReportArguments& wanted = arguments_.report;
    const CheckRules rules = *wanted.judge.rules();
    if (wanted.checks()) {
      auto found = check_links(store, rules);
      if (!found) return std::unexpected(std::move(found.error()));
      check_ = std::move(*found);
      for (const auto& [file, format] : *wanted.outputs()) {
        if (auto written = write_check(store, *check_, format, file, kVersion); !written) return written;
      }
    }
    if (!wanted.html.empty()) {
      if (auto written = write_site_report(store, rules, wanted.html); !written) return written;
    }
    if (wanted.sitemap.empty()) return {};
    const auto count = write_sitemap(store, wanted.sitemap);
    if (!count) return std::unexpected(count.error());
    print_left_out_of_sitemap(*count);
    return {};
  }

  void print_warc(std::FILE* out) const {
    if (!warc_) return;
    const WarcSink::Totals totals = warc_->totals();
    fmt::print(out, "Archived in {}: {}, {}, {}\n", printable(warc_->file()), counted(totals.responses, "response"),
               counted(totals.revisits, "revisit"), human_bytes(static_cast<double>(totals.bytes)));
  }

  int status_of(const CrawlReport& report, const std::string& nothing) {
    if (signals_.came()) return signals_.exit_status();
    if (report.stopped_by == "store") return kExitNothing;
    if (!nothing.empty()) return complain(nothing, kExitNothing);
    // Findings that --check-only did not ask for do not count, here as in argiope crawl check.
    const bool counts_broken = arguments_.report.judge.rules()->wants(FindingKind::broken);
    const bool is_broken_somewhere = (counts_broken && report.broken_count > 0) || (check_ && !check_->is_good());
    is_found_broken_ = arguments_.fail_on_broken && is_broken_somewhere;
    return is_found_broken_ ? kExitBroken : kExitFinished;
  }

  // Why a URL has no good answer, as the store has it.
  static std::string words_on(const UrlRecord& record) {
    if (!record.error.empty()) return record.error;
    if (record.status_code == 0) return "stopped before an answer";
    const std::string status = fmt::format("HTTP {}", record.status_code);
    return record.redirect_to.empty() ? status : fmt::format("{} to {}", status, record.redirect_to);
  }
  static bool is_good(const UrlRecord& record) {
    return record.state == UrlState::done && record.status_code >= 200 && record.status_code < 300 &&
           record.error.empty();
  }
  // Whether its host was given, and did not answer in this run.
  bool is_given_and_silent(const UrlRecord& record) const {
    if (record.state != UrlState::failed || record.error.empty() || record.mtime < began_) return false;
    const auto url = Url::parse(record.url);
    return url && given_sites_.contains(url->site_key());
  }

  // Why nothing could be fetched: not one good answer in this run, and a host that was given is silent, or the database
  // has no good answer either. Empty otherwise: that a host elsewhere is silent is a finding.
  std::string nothing_worked(UrlStore& store, const CrawlReport& report) const {
    const bool answered = std::ranges::any_of(report.statuses, [](const auto& entry) {
      return (entry.first >= 200 && entry.first < 300) || entry.first == 304;
    });
    if (answered) return {};
    const bool some_failed = report.stats.errors + report.stats.not_asked > 0;
    bool has_good = false;
    std::optional<UrlRecord> seed, silent;
    const auto scanned = store.scan(1, [&](const UrlRecord& record) {
      has_good = has_good || is_good(record);
      if (record.referrer == 0 && !seed) seed = record;
      if (!silent && is_given_and_silent(record)) silent = record;
      return !silent && (some_failed || !has_good);
    });
    if (!scanned) return {};
    if (silent) return fmt::format("nothing could be fetched: {}: {}", silent->url, silent->error);
    const auto lost =
        std::ranges::find_if(report.lost_hosts, [&](const LostHost& host) { return given_sites_.contains(host.site); });
    if (lost != report.lost_hosts.end())
      return fmt::format("nothing could be fetched: {}: {}", lost->site, lost->error);
    const bool only_waited = !report.stats.resting_site.empty();
    if (has_good && (report.finished || report.stats.fetched > 0 || only_waited)) return {};
    if (has_good || !seed || is_good(*seed)) return "nothing could be fetched in this run";
    return fmt::format("nothing could be fetched: {}: {}", seed->url, words_on(*seed));
  }

  const CrawlArguments& arguments_;
  const std::vector<std::string> archives_;
  const SystemClock clock_;
  // As the store keeps times.
  const WallTime began_ = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
  std::set<std::string, std::less<>> given_sites_;  // those of the URLs that were given
  std::shared_ptr<const WarcReplay> replay_;
  std::shared_ptr<WarcSink> warc_;
  std::shared_ptr<SaveSink> mirror_;
  std::vector<Url> seeds_;  // of the mirror
  std::shared_ptr<ExtractionSink> extraction_;
  int extraction_status_ = kExitNothing;  // of a run whose extraction cannot begin
  std::optional<CheckResult> check_;
  FindingNews news_;
  Progress progress_{stderr, arguments_.color};
  EndSignals signals_;
  bool interrupted_ = false;
  bool is_found_broken_ = false;  // and --fail-on-broken asks
  std::string error_;             // what was complained of
};

// Whether an option stands in front of the command that it is meant for, which would not see it.
bool has_stray_option(const CLI::App& crawl, std::string_view subcommand) {
  for (const CLI::Option* option : crawl.get_options()) {
    if (option->count() == 0) continue;
    fmt::print(stderr, "argiope crawl: write {} behind {}; argiope crawl {} --help has its options\n",
               printable(option->get_name()), subcommand, subcommand);
    return true;
  }
  return false;
}

// --config, whose members stand for options that were not given.
int read_config(CrawlArguments& arguments, CLI::App& command) {
  const auto read = arguments.host_file.read_file(command, read_crawl_file);
  if (read) return kExitFinished;
  fmt::print(stderr, "argiope: {}\n", printable_lines(read.error().message));
  if (arguments.summary == "json") print_failed_summary(stdout, {}, read.error().message);
  return kExitUsage;
}

struct ReplayArguments {
  CrawlArguments crawl;
  std::vector<std::string> files;
};

// The same options, but that it takes files, and keeps nothing unless it is told to.
std::function<int()> add_replay_command(CLI::App& crawl) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = crawl.add_subcommand(
      "replay",
      "Crawl from WARC files instead of from the net: to try rules, exports and reports on what was fetched before.");
  arguments->crawl.database = ":memory:";
  arguments->crawl.add_to(*command);
  command->remove_option(command->get_option("URL"));
  command->add_option("FILE", arguments->files, "WARC files, packed or not, of whatever crawler")
      ->required()
      ->type_name("");
  command
      ->add_option("--url", arguments->crawl.urls, "Where to start (default: where the archived crawl did; repeatable)")
      ->type_name("URL")
      ->allow_extra_args(false);
  command->footer(
      "Of each URL the newest capture answers. No server is asked, and nothing waits: rates, delays and retries do not "
      "count.\n"
      "A URL that is not in the files fails with not_found.\n"
      "Example: argiope crawl replay site.warc.gz --max-depth 2 --export urls.csv");
  return [arguments, command] {
    const int status = read_config(arguments->crawl, *command);
    return status != kExitFinished ? status : CrawlCommand(arguments->crawl, arguments->files).run();
  };
}

}  // namespace

std::function<int()> add_crawl_command(CLI::App& app) {
  auto arguments = std::make_shared<CrawlArguments>();
  CLI::App* command =
      app.add_subcommand("crawl",
                         "Fetch a site completely, politely and fast. Progress is saved to a database; a run that was\n"
                         "stopped or killed goes on where it was.");
  arguments->add_to(*command);
  command->require_subcommand(0, 1);
  const auto replay = add_replay_command(*command);
  const auto look = add_crawl_looks(*command);
  const auto import = add_crawl_import(*command);
  return [arguments, command, replay, look, import] {
    if (is_crawl_look(*command)) return look();
    if (command->got_subcommand("import"))
      return has_stray_option(*command, "import") ? static_cast<int>(kExitUsage) : import();
    if (!command->got_subcommand("replay")) {
      const int status = read_config(*arguments, *command);
      return status != kExitFinished ? status : CrawlCommand(*arguments).run();
    }
    return has_stray_option(*command, "replay") ? static_cast<int>(kExitUsage) : replay();
  };
}

}  // namespace argiope

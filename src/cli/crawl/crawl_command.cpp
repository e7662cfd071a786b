// `argiope crawl`: the clock, the sockets, the signals and the terminal around a Crawler.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/store/url_store.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/crawl/crawl_arguments.hpp"
#include "cli/crawl/progress.hpp"
#include "cli/crawl/report_printer.hpp"
#include "cli/error_advice.hpp"
#include "store/internal/url_export.hpp"

namespace argiope {
namespace {

class CrawlCommand {
 public:
  explicit CrawlCommand(const CrawlArguments& arguments) : arguments_(arguments) {}

  int run() {
    auto options = arguments_.options();
    if (!options) return give_up(options.error().message, kExitUsage);
    CrawlSetup setup = basic_setup();
    if (auto applied = arguments_.wire.apply(setup, environment_variable); !applied) {
      return give_up(applied.error().message, kExitUsage);
    }
    spdlog::set_level(arguments_.quiet   ? spdlog::level::err
                      : arguments_.debug ? spdlog::level::debug
                                         : spdlog::level::info);
    auto crawl = LocalCrawl::open(std::move(*options), std::move(setup));
    if (!crawl) return give_up(with_database_option(std::move(crawl.error())).message, kExitNothing);
    Crawler& crawler = (*crawl)->crawler();
    auto report = (*crawl)->run(watch(crawler));
    progress_.clear();
    if (!report) {
      return give_up(fmt::format("{}\nStopped. What was committed is intact; run the same command again to go on.",
                                 report.error().message),
                     kExitNothing, crawler.stats());
    }
    return finish((*crawl)->store(), *report);
  }

 private:
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

  CrawlSetup basic_setup() const {
    CrawlSetup setup{.database = arguments_.database, .threads = arguments_.threads};
    setup.sync = arguments_.sync == "off"      ? SyncMode::off
                 : arguments_.sync == "normal" ? SyncMode::normal
                                               : SyncMode::full;
    setup.allow_private = arguments_.allow_private;
    setup.private_advice = kAllowPrivateAdvice;
    setup.ca_file = arguments_.ca_file;
    return setup;
  }

  // What belongs to the process while it crawls: signals and the live line.
  Coro<void> watch(Crawler& crawler) {
    EventLoop& loop = EventLoop::current();
    auto on_signal = [this, &crawler] {
      const bool again = std::exchange(interrupted_, true);
      if (!arguments_.quiet) {
        progress_.clear();
        std::fputs(
            again ? "Stopping at once.\n" : "Stopping: finishing what is under way (at most 10 s; again: at once).\n",
            stderr);
      }
      crawler.stop("signal", again);
    };
    loop.add_signal_handler(SIGINT, on_signal);
    loop.add_signal_handler(SIGTERM, on_signal);
    if (!arguments_.quiet) co_await progress_.run(crawler);
  }

  int finish(UrlStore& store, const CrawlReport& report) {
    int status = kExitFinished;
    if (!arguments_.export_file.empty()) {
      if (auto written = export_urls(store, arguments_.export_file); !written) {
        status = complain(written.error().message, kExitNothing);
      }
    }
    if (!arguments_.export_broken_file.empty()) {
      if (auto written = export_broken(store, arguments_.export_broken_file); !written) {
        status = complain(written.error().message, kExitNothing);
      }
    }
    const std::string nothing = nothing_worked(store, report);
    if (auto closed = store.close(); !closed) status = complain(closed.error().message, kExitNothing);
    if (status == kExitFinished) status = status_of(report, nothing);
    if (!arguments_.quiet) print_report(stdout, report, arguments_.database, arguments_.export_file);
    if (arguments_.summary == "json") print_summary(stdout, report, error_);
    return status;
  }

  int status_of(const CrawlReport& report, const std::string& nothing) {
    if (interrupted_) return kExitInterrupted;
    if (report.stopped_by == "store") return kExitNothing;
    if (!nothing.empty()) return complain(nothing, kExitNothing);
    return arguments_.fail_on_broken && report.broken_count > 0 ? kExitBroken : kExitFinished;
  }

  // Why nothing could be fetched: not one good answer in this run, nor in the database. Empty otherwise.
  static std::string nothing_worked(UrlStore& store, const CrawlReport& report) {
    const bool answered = std::ranges::any_of(report.statuses, [](const auto& entry) {
      return (entry.first >= 200 && entry.first < 300) || entry.first == 304;
    });
    if (answered) return {};
    bool has_good = false;
    std::optional<UrlRecord> seed;
    const auto scanned = store.scan(1, [&](const UrlRecord& record) {
      has_good = record.state == UrlState::done && record.status_code >= 200 && record.status_code < 300;
      if (record.referrer == 0 && !seed) seed = record;
      return !has_good;
    });
    // A later run that only tries again what had failed, and fails again, has fetched nothing either.
    const bool only_errors = report.stats.fetched == 0 && (report.stats.errors > 0 || report.stats.not_asked > 0 || !report.finished);
    if (!scanned || (has_good && !only_errors)) return {};
    if (!seed) return "nothing could be fetched";
    const std::string why = !seed->error.empty() ? seed->error
                            : !seed->redirect_to.empty()
                                ? fmt::format("HTTP {} to {}", seed->status_code, seed->redirect_to)
                            : seed->status_code != 0 ? fmt::format("HTTP {}", seed->status_code)
                                                     : "stopped before an answer";
    return fmt::format("nothing could be fetched: {}: {}", seed->url, why);
  }

  const CrawlArguments& arguments_;
  Progress progress_{stderr, arguments_.color};
  bool interrupted_ = false;
  std::string error_;  // what was complained of
};

}  // namespace

std::function<int()> add_crawl_command(CLI::App& app) {
  auto arguments = std::make_shared<CrawlArguments>();
  CLI::App* command =
      app.add_subcommand("crawl",
                         "Fetch a site completely, politely and fast. Progress is saved to a database; a run that was\n"
                         "stopped or killed goes on where it was.");
  arguments->add_to(*command);
  return [arguments] { return CrawlCommand(*arguments).run(); };
}

}  // namespace argiope

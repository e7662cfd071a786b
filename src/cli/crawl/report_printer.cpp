#include "cli/crawl/report_printer.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <ranges>
#include <string>
#include <vector>

#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/extraction_arguments.hpp"
#include "cli/human.hpp"
#include "crawl/options/internal/host_rules.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBrokenShown = 20;
constexpr std::size_t kLostShown = 20;
constexpr std::size_t kLearnedShown = 20;

double cpu_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The most memory this program has had. getrusage() would not do: it counts what the process was before exec, too.
double peak_rss_mb() {
  double kilobytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (std::sscanf(line.c_str(), "VmHWM: %lf kB", &kilobytes) == 1) break;
  }
  return kilobytes / 1024;
}

std::string_view ending(const CrawlReport& report) {
  if (report.finished) return "Finished";
  if (report.stopped_by == "signal") return "Stopped by a signal";
  if (report.stopped_by == "max_pages") return "Stopped at --max-pages";
  if (report.stopped_by == "quota") return "Stopped at --quota";
  if (report.stopped_by == "max_time") return "Stopped at --max-time";
  if (report.stopped_by == "idle") return "Stopped: nothing fetched for --max-idle-sec";
  return "Stopped";
}

// Those of the crawl's own hosts come first.
void print_broken(std::FILE* out, const CrawlReport& report) {
  if (report.broken_count == 0) return;
  fmt::print(out, "\n{}", counted(report.broken_count, "broken link"));
  if (report.broken_before > 0) {
    fmt::print(out, " ({} asked by an earlier run; --requeue broken asks again)",
               report.broken_before == report.broken_count ? "all" : std::to_string(report.broken_before));
  }
  fmt::print(out, ":\n");
  for (const BrokenLink& link : report.broken | std::views::take(kBrokenShown)) {
    fmt::print(out, "  {}  {}\n       linked from {}\n",
               link.status != 0 ? std::to_string(link.status) : std::string("---"), printable(link.url),
               link.referrer.empty() ? "the command line" : printable(link.referrer));
    if (!link.error.empty()) fmt::print(out, "       {}\n", printable(link.error));
  }
  if (report.broken_count > kBrokenShown)
    fmt::print(out, "  … and {} more, in the database\n", report.broken_count - kBrokenShown);
}

// Hosts of which nothing more is to be told than that a link to them is broken are among the broken links alone.
void print_lost(std::FILE* out, const CrawlReport& report) {
  std::vector<const LostHost*> told;
  for (const LostHost& lost : report.lost_hosts) {
    const auto is_of_host = [&](const BrokenLink& link) { return site_in(link.url) == lost.site; };
    const auto shown = report.broken | std::views::take(kBrokenShown);
    if (lost.not_asked > 0 || std::ranges::none_of(shown, is_of_host)) told.push_back(&lost);
  }
  const std::uint64_t count = report.lost_host_count - (report.lost_hosts.size() - told.size());
  if (count == 0) return;
  fmt::print(out, "\n{} given up; {} not asked, which the next run asks:\n", counted(count, "host"),
             counted(report.stats.not_asked, "URL"));
  for (const LostHost* const lost : told | std::views::take(kLostShown)) {
    fmt::print(out, "  {}  ({} not asked)\n       {}\n", printable(lost->site), lost->not_asked,
               printable(lost->error));
  }
  const std::size_t listed = std::min(told.size(), kLostShown);
  if (count > listed) fmt::print(out, "  … and {} more\n", count - listed);
}

// The work that this run did not have to do, and the options that would make it.
void print_known(std::FILE* out, const CrawlReport& report) {
  if (report.waiting > 0) {
    fmt::print(out, "  {} queued URL{} of other runs {} out of this one's scope and still wait{}\n", report.waiting,
               report.waiting == 1 ? "" : "s", report.waiting == 1 ? "is" : "are", report.waiting == 1 ? "s" : "");
  }
  if (report.asked_for_outputs > 0) {
    fmt::print(out, "  Asked again, whole: {}, of which earlier runs had not kept what this one is to write\n",
               counted(report.asked_for_outputs, "known page"));
  }
  for (const auto& [output, count] : report.unseen) {
    fmt::print(out, "  Not in the {}: {} that earlier runs have fetched. --age 0 or --requeue all asks again\n",
               printable(output), counted(count, "page"));
  }
  if (report.resting > 0) {
    fmt::print(out,
               "  Not asked yet: {} given up by several runs. A run without a limit asks again, or --requeue failed\n",
               counted(report.resting, "URL"));
  }
}

void print_sitemaps(std::FILE* out, const SitemapTotals& sitemaps) {
  if (sitemaps.files + sitemaps.unchanged + sitemaps.unreadable == 0) return;
  fmt::print(out, "  sitemaps and feeds  {} read with {}", sitemaps.files, counted(sitemaps.links, "link"));
  if (sitemaps.unchanged > 0) fmt::print(out, ", {} unchanged", sitemaps.unchanged);
  if (sitemaps.cut > 0) fmt::print(out, ", {} read in part", sitemaps.cut);
  if (sitemaps.unreadable > 0) fmt::print(out, ", {} unreadable", sitemaps.unreadable);
  if (sitemaps.dropped > 0) fmt::print(out, "; {} without a URL", counted(sitemaps.dropped, "entry", "entries"));
  if (sitemaps.news > 0) fmt::print(out, "; {} asked again", counted(sitemaps.news, "changed page"));
  fmt::print(out, "\n");
}

// The options that would let in what guards against traps have left out.
void print_guards(std::FILE* out, const CrawlReport& report) {
  struct Guard {
    std::string_view reason, what, option;
  };
  constexpr Guard kGuards[] = {
      {"url_length", "URLs are too long", "--max-url-length"},
      {"repeated_segment", "URLs repeat themselves", "--max-segment-repeats"},
      {"pages_per_host", "URLs are too many for their host", "--max-pages-per-host"},
      {"links_per_page", "pages have more links than were followed", "--max-links-per-page"},
      {"cut_off", "bodies were cut off", "--size-limit-kb"},
  };
  for (const Guard& guard : kGuards) {
    const auto found = report.left_out.find(std::string(guard.reason));
    if (found == report.left_out.end()) continue;
    fmt::print(out, "  left out: {} {}; a larger {} takes them up\n", found->second, guard.what, guard.option);
  }
}

// Pages that were not followed because they are there in another place, and the option that has had it so.
void print_copies(std::FILE* out, const CrawlReport& report) {
  struct Copies {
    std::string_view reason, what, option;
  };
  constexpr Copies kCopies[] = {
      {"duplicate", "pages have the content of others", "--skip-duplicates"},
      {"near_duplicate", "pages have nearly the words of others", "--skip-duplicates near"},
      {"alias", "pages are aliases of others", "--canonical"},
      {"parameter", "URLs are others but for their parameters", "--strip-parameters and --learn-parameters"},
      {"trap", "URLs are of a trap", "--traps"},
  };
  for (const Copies& copies : kCopies) {
    const auto found = report.left_out.find(std::string(copies.reason));
    if (found == report.left_out.end()) continue;
    fmt::print(out, "  left out: {} {}; a run without {} follows them\n", found->second, copies.what, copies.option);
  }
  for (std::size_t i = 0; i < std::min(report.learned_parameters.size(), kLearnedShown); ++i) {
    const LearnedParameter& learned = report.learned_parameters[i];
    fmt::print(out, "  learned: {} of {} changes no page ({} were the same); {} followed without it\n",
               printable(learned.name), printable(learned.site), learned.pages, counted(learned.stripped, "link"));
  }
  for (std::size_t i = 0; i < std::min(report.traps.size(), kLearnedShown); ++i) {
    const FoundTrap& trap = report.traps[i];
    fmt::print(out, "  trap: {}, found at {}; {} left out in this run\n", printable(trap.shape),
               printable(trap.example), counted(trap.left_out, "link"));
  }
}

}  // namespace

void print_files_hint(std::FILE* out, const CrawlReport& report) {
  constexpr std::uint64_t kManyFiles = 10;
  constexpr std::uint64_t kPagesForEach = 10;
  const auto good = report.statuses.find(200);
  const std::uint64_t known = report.stats.pages + report.stats.requisites;
  const std::uint64_t files = good == report.statuses.end() ? 0 : good->second - std::min(good->second, known);
  if (files < kManyFiles || files * kPagesForEach < report.stats.pages) return;
  fmt::print(out,
             "  files    {} of the responses are no pages, and were fetched whole; --accept-type text/html fetches "
             "pages alone\n",
             files);
}

void print_report(std::FILE* out, const CrawlReport& report, std::string_view database, std::string_view export_file) {
  const CrawlStats& stats = report.stats;
  const double seconds = std::max(to_seconds(report.elapsed), 1e-9);
  fmt::print(out, "\n{} after {}: {} pages ({:.0f}/s), {} responses, {} URLs known, {} received\n", ending(report),
             human_duration(seconds), stats.pages, static_cast<double>(stats.pages) / seconds, stats.fetched,
             stats.urls, human_bytes(static_cast<double>(stats.bytes)));
  if (!report.statuses.empty()) {
    fmt::print(out, "  status ");
    for (const auto& [status, count] : report.statuses) fmt::print(out, " {}: {} ", status, count);
    fmt::print(out, "\n");
  }
  if (stats.requisites > 0) fmt::print(out, "  assets   {} of the responses\n", stats.requisites);
  if (stats.retries > 0) fmt::print(out, "  retries  {}\n", stats.retries);
  if (const InboxStats& inbox = stats.inbox; inbox.all() > 0) {
    fmt::print(out, "  from other programs  {} taken, {} known already, {} left out, {} skipped\n", inbox.taken,
               inbox.known, inbox.left_out, inbox.skipped);
  }
  if (stats.rendered + stats.render_errors > 0) {
    fmt::print(out, "  rendered  {}, with {} of their own; {} failed\n", counted(stats.rendered, "page"),
               counted(stats.parts, "request"), stats.render_errors);
  }
  if (!report.failures.empty()) {
    fmt::print(out, "  given up ");
    for (const auto& [error, count] : report.failures) fmt::print(out, " {}: {} ", error, count);
    fmt::print(out, "\n");
  }
  bool first = true;
  for (std::size_t i = 0; i < stats.excluded.size(); ++i) {
    if (stats.excluded[i] == 0) continue;
    fmt::print(out, "{} {}: {} ", std::exchange(first, false) ? "  links not followed " : "",
               to_string(static_cast<Exclusion>(i)), stats.excluded[i]);
  }
  if (!first) fmt::print(out, "\n");
  first = true;
  for (std::size_t i = 0; i < stats.odd.size(); ++i) {
    if (stats.odd[i] == 0) continue;
    fmt::print(out, "{} {}: {} ", std::exchange(first, false) ? "  odd, but read " : "",
               describe_oddities(static_cast<std::uint16_t>(1u << i)), stats.odd[i]);
  }
  if (!first) fmt::print(out, "\n");
  print_sitemaps(out, report.sitemaps);
  print_guards(out, report);
  print_copies(out, report);
  print_known(out, report);
  print_broken(out, report);
  print_lost(out, report);
  if (database != ":memory:") {
    fmt::print(out, "\nEverything is in {}: sqlite3 {} 'SELECT url, status_code, size FROM urls LIMIT 10'\n", database,
               database);
    if (!report.finished) fmt::print(out, "Run the same command again to go on where it stopped.\n");
  }
  if (!export_file.empty()) fmt::print(out, "Exported to {}\n", export_file);
}

// Where there is something: what was learned of duplicates.
static void write_learned(JsonWriter& json, const CrawlReport& report) {
  if (!report.learned_parameters.empty()) {
    json.array("learned_parameters", [&] {
      for (const LearnedParameter& learned : report.learned_parameters) {
        json.object([&] {
          json.member("site", learned.site);
          json.member("name", learned.name);
          json.member("pages", learned.pages);
          json.member("stripped", learned.stripped);
        });
      }
    });
  }
  if (report.traps.empty()) return;
  json.array("traps", [&] {
    for (const FoundTrap& trap : report.traps) {
      json.object([&] {
        json.member("shape", trap.shape);
        json.member("example", trap.example);
        json.member("pages", trap.pages);
        json.member("left_out", trap.left_out);
      });
    }
  });
}

void print_failed_summary(std::FILE* out, const CrawlStats& stats, std::string_view error) {
  fmt::print(out, "{}\n", json_object([&](JsonWriter& json) {
               json.member("pages", stats.pages);
               json.member("fetched", stats.fetched);
               json.member("assets", stats.requisites);
               json.member("finished", false);
               json.member("error", error);
             }));
  std::fflush(out);
}

void print_check(std::FILE* out, const CheckResult& check, std::string_view database) {
  fmt::print(out, "\nLinks: {} and {} in {}", counted(check.errors(), "error"), counted(check.warnings(), "warning"),
             counted(check.links, "link"));
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (check.counts[i] == 0) continue;
    fmt::print(out, "; {}: {}", to_string(static_cast<FindingKind>(i)), check.counts[i]);
    if (check.elsewhere[i] > 0) fmt::print(out, " ({} at other sites)", check.elsewhere[i]);
  }
  fmt::print(out, "\n");
  if (check.unread > 0) fmt::print(out, "{}\n", words_on_unread(check));
  if (check.errors() + check.warnings() > 0 && database != ":memory:") {
    fmt::print(out, "argiope crawl check {} names each with its pages and lines\n", printable(database));
  }
}

std::string words_on_findings(const CrawlReport& report, const CheckResult* check, const FindingNews& news) {
  std::string text = check ? counted(check->errors(), "error") : counted(report.broken_count, "broken link");
  if (news.fresh && !news.first.empty()) text += *news.fresh > 0 ? fmt::format(", {} new", *news.fresh) : ", none new";
  for (const FindingKind kind : {FindingKind::broken, FindingKind::fragment, FindingKind::invalid, FindingKind::mail}) {
    const std::uint64_t count = check ? check->counts[static_cast<std::size_t>(kind)] : 0;
    if (count > 0) text += fmt::format(", {}: {}", to_string(kind), count);
  }
  if (check && check->unread > 0) text += fmt::format(", unread: {}", counted(check->unread, "page"));
  const bool was_due = !report.finished || report.taken_up > 0;
  text += was_due ? fmt::format(" ({} read in this run)", counted(report.stats.pages, "page"))
                  : " (nothing was due in this run)";
  if (news.first.empty()) return text;
  return text + fmt::format("; {}: {}", news.fresh.value_or(0) > 0 ? "the first new one" : "the first", news.first);
}

void print_summary(std::FILE* out, const CrawlReport& report, std::string_view trouble, const CheckResult* check,
                   const ExtractionReport* extraction, std::optional<std::uint64_t> fresh) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const CrawlStats& stats = report.stats;
  const double seconds = to_seconds(report.elapsed);
  const std::string line = json_object([&](JsonWriter& json) {
    const auto fixed = [&](std::string_view name, double number, int digits) {
      json.key(name);
      json.fixed(number, digits);
    };
    json.member("pages", stats.pages);
    json.member("fetched", stats.fetched);
    json.member("assets", stats.requisites);
    json.member("urls", stats.urls);
    json.member("bytes", stats.bytes);
    json.member("errors", stats.errors);
    json.member("retries", stats.retries);
    json.object("status", [&] {
      for (const auto& [status, count] : report.statuses) json.member(std::to_string(status), count);
    });
    json.object("failures", [&] {
      for (const auto& [error, count] : report.failures) json.member(error, count);
    });
    if (const SitemapTotals& read = report.sitemaps; read.files + read.unchanged + read.unreadable > 0) {
      json.object("sitemaps", [&] {
        json.member("files", read.files);
        json.member("unchanged", read.unchanged);
        json.member("links", read.links);
        json.member("dropped", read.dropped);
        json.member("cut", read.cut);
        json.member("unreadable", read.unreadable);
        json.member("asked_again", read.news);
      });
    }
    json.object("excluded", [&] {
      for (std::size_t i = 0; i < stats.excluded.size(); ++i) {
        if (stats.excluded[i] != 0) json.member(to_string(static_cast<Exclusion>(i)), stats.excluded[i]);
      }
    });
    json.object("odd", [&] {
      for (std::size_t i = 0; i < stats.odd.size(); ++i) {
        if (stats.odd[i] != 0) json.member(to_string(static_cast<HttpOddity>(i)), stats.odd[i]);
      }
    });
    if (stats.rendered + stats.render_errors > 0) {
      json.object("rendered", [&] {
        json.member("pages", stats.rendered);
        json.member("requests", stats.parts);
        json.member("failed", stats.render_errors);
      });
    }
    json.object("left_out", [&] {
      for (const auto& [reason, count] : report.left_out) json.member(reason, count);
    });
    if (const InboxStats& inbox = stats.inbox; inbox.all() > 0) {
      json.object("inbox", [&] {
        json.member("taken", inbox.taken);
        json.member("known", inbox.known);
        json.member("left_out", inbox.left_out);
        json.member("skipped", inbox.skipped);
      });
    }
    write_learned(json, report);
    json.member("waiting", report.waiting);
    json.member("resting", report.resting);
    json.member("asked_for_outputs", report.asked_for_outputs);
    json.object("unseen", [&] {
      for (const auto& [output, count] : report.unseen) json.member(output, count);
    });
    json.member("broken_before", report.broken_before);
    json.member("complete", report.complete());
    json.member("broken", report.broken_count);
    if (check != nullptr) {
      json.object("findings", [&] {
        for (std::size_t i = 0; i < kFindingKinds; ++i)
          json.member(to_string(static_cast<FindingKind>(i)), check->counts[i]);
      });
      json.member("findings_errors", check->errors());
      json.member("findings_elsewhere",
                  std::accumulate(check->elsewhere.begin(), check->elsewhere.end(), std::uint64_t{0}));
      json.member("links", check->links);
      json.member("links_unread", check->unread);
    }
    if (fresh) json.member("findings_new", *fresh);
    json.member("hosts", stats.hosts);
    json.member("hosts_given_up", report.lost_host_count);
    json.member("not_asked", stats.not_asked);
    fixed("seconds", seconds, 6);
    fixed("pages_per_second", seconds > 0 ? static_cast<double>(stats.pages) / seconds : 0.0, 1);
    fixed("cpu_seconds", cpu_seconds(usage), 4);
    fixed("peak_rss_mb", peak_rss_mb(), 1);
    if (extraction != nullptr) json.object("extraction", [&] { write_extraction(json, *extraction); });
    json.member("finished", report.finished);
    if (!report.finished) json.member("stopped_by", report.stopped_by);
    if (!trouble.empty()) json.member("error", trouble);
  });
  fmt::print(out, "{}\n", line);
  std::fflush(out);
}

}  // namespace argiope

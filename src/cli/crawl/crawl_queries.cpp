#include "cli/crawl/crawl_queries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/store/store.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/crawl/crawl_looks.hpp"
#include "cli/crawl/url_query_arguments.hpp"
#include "cli/error_advice.hpp"
#include "cli/human.hpp"
#include "cli/number_option.hpp"
#include "cli/standard_output.hpp"
#include "cli/table.hpp"
#include "crawl/report/internal/crawl_overview.hpp"
#include "crawl/urls/internal/requeue.hpp"
#include "crawl/urls/internal/url_explanation.hpp"
#include "crawl/urls/internal/url_query.hpp"
#include "store/urls/internal/url_export.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kMostSorted = 100'000;

struct CrawlQueryArguments {
  std::string database = "argiope.db";
  bool json = false;

  void add_to(CLI::App& command) {
    CLI::Option* const place =
        command.add_option("DB", database, "Database of a crawl")->type_name("")->capture_default_str();
    add_database(command)->excludes(place);
    add_json(command);
  }
  CLI::Option* add_database(CLI::App& command) {
    return command.add_option("-d,--db,--database", database, "Database of a crawl")
        ->type_name("FILE")
        ->capture_default_str();
  }
  void add_json(CLI::App& command) { command.add_flag("--json", json, "JSON instead of text"); }
};

int complain_query(std::string_view message, int status = kExitNothing) {
  fmt::print(stderr, "argiope: {}\n", printable_lines(message));
  return status;
}

bool crawl_runs_on(const std::string& database) { return has_owner("sqlite:" + database); }

std::string size_of_file(const std::string& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  return failed ? std::string("?") : human_bytes(static_cast<double>(bytes));
}

std::string moment(WallTime time) {
  return time == WallTime{} ? std::string("-") : to_rfc3339(std::chrono::floor<std::chrono::seconds>(time));
}

std::string ago(WallTime time, WallTime now) {
  return time == WallTime{} ? std::string("never") : format_roughly(std::max(now - time, Duration::zero())) + " ago";
}

// --- status

struct StatusArguments : CrawlQueryArguments {
  std::size_t top = 10;
};

void write_status_json(const CrawlOverview& overview, const std::string& database, bool running) {
  std::string out;
  JsonWriter json(out);
  json.object([&] {
    json.member("database", database);
    json.member("running", running);
    json.member("urls", overview.urls);
    for (const UrlState state : {UrlState::queued, UrlState::done, UrlState::failed, UrlState::excluded}) {
      json.member(to_string(state), overview.of(state));
    }
    json.object("reasons", [&] {
      for (std::size_t i = 1; i < kUrlReasons; ++i) {
        std::uint64_t count = 0;
        for (const auto& of_state : overview.counts) count += of_state[i];
        if (count > 0) json.member(to_string(static_cast<UrlReason>(i)), count);
      }
    });
    json.member("to_be_tried_again", overview.tried);
    json.member("not_due", overview.not_due);
    json.object("status", [&] {
      for (const auto& [status, count] : overview.statuses) json.member(std::to_string(status), count);
    });
    json.member("broken", overview.broken);
    json.member("bytes", overview.bytes);
    json.member("oldest_waiting", overview.oldest_waiting);
    json.member("last_fetched", overview.last_fetched);
    json.member("fetched_last_minute", overview.last_minute);
    json.member("fetched_last_hour", overview.last_hour);
    json.member("host_count", overview.host_count);
    json.array("hosts", [&] {
      for (const HostOverview& host : overview.hosts) {
        json.object([&] {
          json.member("site", host.site);
          json.member("queued", host.queued);
          json.member("done", host.done);
          json.member("failed", host.failed);
          json.member("excluded", host.excluded);
          json.member("last_fetched", host.last_fetched);
          json.member("fetched_last_minute", host.last_minute);
        });
      }
    });
  });
  fmt::print("{}\n", out);
}

void print_status(const CrawlOverview& overview, const std::string& database, bool running, WallTime now) {
  fmt::print("{}: {}, {}; {}\n", printable(database), counted(overview.urls, "URL"), size_of_file(database),
             running ? "a crawl runs on it" : "no crawl runs on it");
  Table states({"state", "reason", "URLs"});
  for (const UrlState state : {UrlState::queued, UrlState::done, UrlState::failed, UrlState::excluded}) {
    const auto& row = overview.counts[static_cast<std::size_t>(state)];
    const std::uint64_t all = overview.of(state);
    states.add({std::string(to_string(state)), "", std::to_string(all)});
    for (std::size_t i = 1; i < kUrlReasons; ++i) {
      if (row[i] > 0) states.add({"", std::string(to_string(static_cast<UrlReason>(i))), std::to_string(row[i])});
    }
  }
  fmt::print("\n{}\n", states.text());
  if (overview.tried > 0) fmt::print("  {} queued to be tried again\n", counted(overview.tried, "URL"));
  if (overview.not_due > 0) fmt::print("  {} queued and not due yet\n", counted(overview.not_due, "URL"));
  if (!overview.oldest_waiting_url.empty()) {
    fmt::print("  waits longest: {}, found {}\n", printable(overview.oldest_waiting_url),
               ago(overview.oldest_waiting, now));
  }
  if (!overview.last_fetched_url.empty()) {
    fmt::print("  last asked: {}, {}\n", printable(overview.last_fetched_url), ago(overview.last_fetched, now));
  }
  if (overview.last_hour > 0) {
    fmt::print("  asked in the last minute: {} ({:.1f}/s), in the last hour: {}\n", overview.last_minute,
               static_cast<double>(overview.last_minute) / 60, overview.last_hour);
  }
  fmt::print("  broken: {}; bodies of {}\n", overview.broken, human_bytes(static_cast<double>(overview.bytes)));
  if (!overview.statuses.empty()) {
    fmt::print("  status:");
    for (const auto& [status, count] : overview.statuses) fmt::print(" {}: {} ", status, count);
    fmt::print("\n");
  }
  if (overview.hosts.empty()) return;
  Table hosts({"host", "queued", "done", "failed", "excluded", "a second", "last asked"});
  for (const HostOverview& host : overview.hosts) {
    hosts.add({one_line(host.site, kMostOfName), std::to_string(host.queued), std::to_string(host.done),
               std::to_string(host.failed), std::to_string(host.excluded),
               host.last_minute > 0 ? fmt::format("{:.1f}", static_cast<double>(host.last_minute) / 60) : "",
               moment(host.last_fetched)});
  }
  fmt::print("\n{}", hosts.text());
  if (overview.host_count > overview.hosts.size()) {
    fmt::print("… and {} more; --top N shows more\n", counted(overview.host_count - overview.hosts.size(), "host"));
  }
}

int run_status(const StatusArguments& arguments) {
  auto store = open_crawl_to_look(arguments.database);
  if (!store) return complain_query(with_database_option(store.error(), arguments.database).message);
  const WallTime now = SystemClock().wall_now();
  const bool running = crawl_runs_on(arguments.database);
  const auto overview = overview_of(**store, now, arguments.top);
  if (!overview) return complain_query(overview.error().message);
  if (arguments.json) {
    write_status_json(*overview, arguments.database, running);
  } else {
    print_status(*overview, arguments.database, running, now);
  }
  return kExitFinished;
}

// --- urls

struct UrlsArguments : CrawlQueryArguments {
  UrlQueryArguments query;
  std::string sort = "found";
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  std::int64_t after = 0;
  bool only_urls = false;
};

constexpr std::pair<const char*, UrlSort> kUrlSorts[] = {{"found", UrlSort::found}, {"url", UrlSort::url},
                                                         {"size", UrlSort::size},   {"fetched", UrlSort::fetched},
                                                         {"depth", UrlSort::depth}, {"status", UrlSort::status}};

// Lines of one kind, as they come.
class UrlLines {
 public:
  UrlLines(UrlStore& store, bool json, bool only_urls) : store_(store), json_(json), only_urls_(only_urls) {
    if (!json && !only_urls)
      out_ = fmt::format("{:>8}  {:<8}  {:<16}  {:>6}  {:>10}  {:>5}  {:<20}  {}\n", "url_id", "state", "reason",
                         "status", "size", "depth", "fetched", "url");
  }
  // Errors: those of print_now(): nobody reads on, for one.
  Result<void> write(std::span<const UrlRecord> records) {
    for (const UrlRecord& record : records) {
      if (only_urls_) {
        out_.append(record.url).append("\n");
      } else if (json_) {
        const auto referrer = referrer_of(record);
        if (!referrer) return std::unexpected(referrer.error());
        append_url_json(out_, record, *referrer);
      } else {
        const std::string status = record.status_code == 0 ? "" : std::to_string(record.status_code);
        out_ += fmt::format("{:>8}  {:<8}  {:<16}  {:>6}  {:>10}  {:>5}  {:<20}  {}\n", record.url_id,
                            to_string(record.state), to_string(record.reason), status,
                            record.status_code == 0 ? "" : std::to_string(record.size), record.depth,
                            moment(record.mtime), printable(record.url));
      }
    }
    return flush();
  }
  Result<void> flush() {
    auto printed = print_now(out_);
    out_.clear();
    return printed;
  }

 private:
  // URLs of one page stand together.
  Result<std::string_view> referrer_of(const UrlRecord& record) {
    if (record.referrer == 0) return std::string_view{};
    if (record.referrer != referrer_id_) {
      auto page = store_.get(record.referrer);
      if (!page) return std::unexpected(std::move(page.error()));
      referrer_id_ = record.referrer;
      referrer_ = *page ? (*page)->url : std::string{};
    }
    return std::string_view{referrer_};
  }

  UrlStore& store_;
  const bool json_, only_urls_;
  std::string out_;
  std::int64_t referrer_id_ = 0;
  std::string referrer_;
};

Result<UrlMatcher> matcher_of(const UrlQueryArguments& arguments) {
  auto query = arguments.query(SystemClock().wall_now());
  if (!query) return std::unexpected(std::move(query.error()));
  auto matcher = UrlMatcher::compile(std::move(*query));
  if (!matcher) return fail(matcher.error().code, fmt::format("--match: {}", matcher.error().message));
  return matcher;
}

int run_urls(const UrlsArguments& arguments) {
  const auto matches = matcher_of(arguments.query);
  if (!matches) return complain_query(matches.error().message, kExitUsage);
  const UrlSort sort =
      std::ranges::find(kUrlSorts, arguments.sort, [](const auto& one) { return std::string(one.first); })->second;
  if (sort != UrlSort::found && arguments.limit > kMostSorted) {
    return complain_query(
        fmt::format(
            "--sort {}: give --limit too, {} at most; only in the order of finding there are as many lines as URLs",
            arguments.sort, kMostSorted),
        kExitUsage);
  }
  auto store = open_crawl_to_look(arguments.database);
  if (!store) return complain_query(with_database_option(store.error(), arguments.database).message);
  UrlLines lines(**store, arguments.json, arguments.only_urls);
  Result<void> done = lines.flush();
  if (!done) return complain_query(done.error().message);
  if (sort != UrlSort::found) {
    const auto best =
        first_matching(**store, *matches, arguments.after, sort, static_cast<std::size_t>(arguments.limit));
    if (!best) return complain_query(best.error().message);
    done = lines.write(*best);
  } else {
    std::uint64_t left = arguments.limit;
    done = visit_matching(**store, *matches, arguments.after, [&](std::span<const UrlRecord> found) -> Result<bool> {
      found = found.first(static_cast<std::size_t>(std::min<std::uint64_t>(found.size(), left)));
      left -= found.size();
      if (auto written = lines.write(found); !written) return std::unexpected(std::move(written.error()));
      return left > 0;
    });
  }
  return done ? kExitFinished : complain_query(done.error().message);
}

// --- requeue

struct RequeueArguments : CrawlQueryArguments {
  UrlQueryArguments query;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  bool all = false;
  bool dry_run = false;
};

struct Requeued {
  RequeueCounts counts;
  bool by_inbox = false;  // a crawl runs
};

Result<Requeued> requeue_in(const RequeueArguments& arguments, const UrlMatcher& matches) {
  // Also what tells that the file is no crawl's, before anything is made.
  auto look = open_crawl_to_look(arguments.database);
  if (!look) return std::unexpected(with_database_option(std::move(look.error()), arguments.database));
  Requeued done;
  Result<RequeueCounts> counts;
  if (arguments.dry_run) {
    counts = requeue_matching(**look, matches, arguments.limit, true);
  } else if (auto store = open_url_store(arguments.database)) {
    counts = requeue_matching(**store, matches, arguments.limit, false);
    auto closed = (*look)->close();  // first, so that the other is the last one and puts the file in order
    if (closed) closed = (*store)->close();
    if (counts && !closed) return std::unexpected(std::move(closed.error()));
  } else if (store.error().code == Errc::busy) {
    done.by_inbox = true;
    counts = requeue_by_inbox(**look, arguments.database, matches, arguments.limit);
  } else {
    return std::unexpected(with_database_option(std::move(store.error()), arguments.database));
  }
  if (!counts) return std::unexpected(std::move(counts.error()));
  done.counts = *counts;
  return done;
}

int run_requeue(const RequeueArguments& arguments) {
  if (!arguments.query.is_given() && !arguments.all) {
    return complain_query("requeue: say which URLs, as with --status 404 or --match PATTERN; --all for all of them",
                          kExitUsage);
  }
  const auto matches = matcher_of(arguments.query);
  if (!matches) return complain_query(matches.error().message, kExitUsage);
  const auto done = requeue_in(arguments, *matches);
  if (!done) return complain_query(done.error().message);
  const RequeueCounts* const counts = &done->counts;
  if (arguments.json) {
    fmt::print("{}\n", json_object([&](JsonWriter& json) {
                 json.member("requeued", counts->queued);
                 json.member("waiting", counts->waiting);
                 json.member("left", counts->left);
                 json.member("dry_run", arguments.dry_run);
                 json.member("by_running_crawl", done->by_inbox);
               }));
    return kExitFinished;
  }
  fmt::print("{} {} be fetched again by {} that has {} in its scope\n", counted(counts->queued, "URL"),
             arguments.dry_run ? "would" : "will",
             done->by_inbox ? "the crawl that runs, or the next one" : "the next run",
             counts->queued == 1 ? "it" : "them");
  if (counts->waiting > 0) fmt::print("  {} waited already\n", counted(counts->waiting, "URL"));
  if (counts->left > 0) {
    fmt::print(
        "  {} left: options keep {} out, and others take {} up by themselves; argiope crawl explain says which\n",
        counted(counts->left, "URL"), counts->left == 1 ? "it" : "them", counts->left == 1 ? "it" : "them");
  }
  return kExitFinished;
}

// --- explain

struct CrawlExplainArguments : CrawlQueryArguments {
  std::string url;
};

std::string explanation_json(const UrlExplanation& why, bool running) {
  const UrlRecord& url = why.record;
  return json_object([&](JsonWriter& json) {
    json.member("url_id", url.url_id);
    json.member("url", url.url);
    json.member("state", to_string(url.state));
    json.member("reason", to_string(url.reason));
    json.member("why", why.what);
    json.member("advice", why.advice);
    json.key("status");
    url.status_code == 0 ? json.null() : json.value(url.status_code);
    json.member("attempts", url.attempts);
    json.member("depth", url.depth);
    json.member("found", url.ctime);
    json.member("fetched", url.mtime);
    json.member("due", url.due);
    json.member("content_type", url.content_type);
    json.member("size", url.size);
    json.member("error", url.error);
    json.member("redirect_to", url.redirect_to);
    json.list("leads_to", why.leads_to);
    json.member("end", why.end);
    json.key("referrer");
    why.way.size() < 2 ? json.null() : json.value(why.way[why.way.size() - 2].url);
    json.array("way", [&] {
      for (const UrlExplanation::Step& step : why.way) {
        json.object([&] {
          json.member("url", step.url);
          json.member("redirected", step.redirected);
        });
      }
    });
    json.member("whole_way", why.whole_way);
    json.array("linked_from", [&] {
      for (const UrlExplanation::LinkingPage& page : why.linked_from) {
        json.object([&] {
          json.member("url", page.url);
          json.member("redirects", page.redirects);
          json.member("text", page.text);
          json.member("line", page.line);
        });
      }
    });
    json.member("more_links", why.more_links || !why.knows_links);
    json.object("host", [&] {
      json.member("site", why.site);
      json.member("queued", why.queued);
      json.member("done", why.done);
      json.member("failed", why.failed);
      json.member("excluded", why.excluded);
      json.member("ahead", why.ahead);
      json.member("last_fetched", why.host_last_fetched);
      json.member("error", why.host_error);
      json.member("rests_until", why.host_rests_until);
      json.member("rests_for", why.host_rests_for);
    });
    json.member("running", running);
  });
}

void print_way(const UrlExplanation& why) {
  if (why.way.size() < 2) return fmt::print("  found {}, as a seed\n", moment(why.record.ctime));
  fmt::print("  found {} on {}\n", moment(why.record.ctime), printable(why.way[why.way.size() - 2].url));
  fmt::print("  the way there, {} from a seed:\n", counted(why.record.depth, "link"));
  if (!why.whole_way) fmt::print("    …\n");
  for (const UrlExplanation::Step& step : why.way) {
    const bool is_first = &step == &why.way.front() && why.whole_way;
    fmt::print("    {} {}\n",
               is_first          ? "seed     "
               : step.redirected ? "redirects"
                                 : "links to ",
               printable(step.url));
  }
}

void print_links(const UrlExplanation& why) {
  // One page that is on the way already.
  if (!why.knows_links || why.linked_from.empty()) return;
  fmt::print("  linked from{}:\n", why.more_links ? ", among others" : "");
  for (const UrlExplanation::LinkingPage& page : why.linked_from) {
    fmt::print("    {}", printable(page.url));
    if (page.redirects) fmt::print(" (redirects)");
    if (page.line > 0) fmt::print(", line {}", page.line);
    if (!page.text.empty()) fmt::print(": {}", in_quotes(page.text, kMostOfName));
    fmt::print("\n");
  }
}

void print_explanation(const UrlExplanation& why, bool running, WallTime now) {
  fmt::print("{} {}\n", printable(why.record.url), printable(why.what));
  if (!why.advice.empty()) fmt::print("  {}\n", why.advice);
  print_way(why);
  print_links(why);
  for (const std::string& url : why.leads_to) fmt::print("  leads to {}\n", printable(url));
  if (!why.end.empty()) fmt::print("  which {}\n", printable(why.end));
  fmt::print("  its host, {}: {} queued, {} done, {} failed, {} excluded; last asked {}\n", printable(why.site),
             why.queued, why.done, why.failed, why.excluded, ago(why.host_last_fetched, now));
  if (!why.host_error.empty()) fmt::print("  URLs of it were not asked: {}\n", printable(why.host_error));
  if (why.record.state == UrlState::queued) {
    fmt::print("  {} of its host {} before it; {}\n", counted(why.ahead, "URL"), why.ahead == 1 ? "goes" : "go",
               running ? "a crawl runs on the file" : "no crawl runs on the file");
  }
}

}  // namespace

int print_url_explanation(const std::string& text, const std::string& database, bool json) {
  auto url = Url::parse(text);
  if (!url) return complain_query(fmt::format("URL {}: {}", in_quotes(text), url.error().message), kExitUsage);
  url->strip_fragment();
  auto store = open_crawl_to_look(database);
  if (!store) return complain_query(with_database_option(store.error(), database).message);
  const WallTime now = SystemClock().wall_now();
  const auto why = explain_url(**store, *url, now);
  if (!why) return complain_query(why.error().message);
  if (!*why) {
    return complain_query(
        fmt::format(
            "{}: not in database {}: no page that was fetched links to it, or it is outside of what was crawled",
            url->href(), database),
        kExitUsage);
  }
  const bool running = crawl_runs_on(database);
  if (json) {
    fmt::print("{}\n", explanation_json(**why, running));
  } else {
    print_explanation(**why, running, now);
  }
  return kExitFinished;
}

std::function<int()> add_status(CLI::App& crawl) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command =
      crawl.add_subcommand("status", "Say where a crawl is: URLs by state and reason, hosts, what was asked last.");
  arguments->add_to(*command);
  command->add_option("--top", arguments->top, "Hosts that are listed, those with most queued URLs first")
      ->check(whole_number(0, 100'000))
      ->type_name("N")
      ->capture_default_str();
  command->footer("It may be asked while the crawl runs.\nExample: argiope crawl status site.db");
  return [arguments] { return run_status(*arguments); };
}

std::function<int()> add_urls(CLI::App& crawl) {
  auto arguments = std::make_shared<UrlsArguments>();
  CLI::App* command = crawl.add_subcommand("urls", "List URLs that a crawl knows, as they were found.");
  arguments->add_to(*command);
  command->add_flag("--only-urls", arguments->only_urls, "Nothing but the URLs, one a line");
  command->add_option("--limit", arguments->limit, "So many at most")
      ->check(whole_number(0))
      ->type_name("N")
      ->default_str("");
  command->add_option("--after", arguments->after, "Those found after this one (url_id), to go on with a list")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->type_name("ID");
  std::vector<std::string> sorts;
  for (const auto& [name, sort] : kUrlSorts) sorts.emplace_back(name);
  command
      ->add_option("--sort", arguments->sort,
                   "Order: found, url, size, fetched, depth or status; all but the first with --limit")
      ->check(CLI::IsMember(sorts))
      ->type_name("ORDER")
      ->capture_default_str();
  arguments->query.add_to(*command, "Which URLs");
  command->footer(
      "With --json each line is an object, as of argiope crawl --export.\n"
      "Examples:\n"
      "  argiope crawl urls site.db --status 404\n"
      "  argiope crawl urls site.db --state excluded --reason robots --only-urls\n"
      "  argiope crawl urls site.db --type text/html --sort size --limit 20 --json");
  return [arguments] { return run_urls(*arguments); };
}

std::function<int()> add_requeue(CLI::App& crawl) {
  auto arguments = std::make_shared<RequeueArguments>();
  CLI::App* command =
      crawl.add_subcommand("requeue", "Have URLs fetched again by the next run, whole and whatever their age.");
  arguments->add_to(*command);
  command->add_flag("--dry-run", arguments->dry_run, "Only say how many");
  command->add_flag("--all", arguments->all, "All URLs, where none are picked");
  command->add_option("--limit", arguments->limit, "So many at most, as they were found")
      ->check(whole_number(0))
      ->type_name("N")
      ->default_str("");
  arguments->query.add_to(*command, "Which URLs");
  command->footer(
      "URLs that the crawl's options keep out (off_scope, depth, exclude …) are left: a run with other options takes "
      "them up.\n"
      "A crawl that runs on the file takes them up; one with --forever asks each again when it is due, and leaves "
      "these to that.\n"
      "Example: argiope crawl requeue site.db --status 5xx --fetched-before 1d");
  return [arguments] { return run_requeue(*arguments); };
}

std::function<int()> add_crawl_explain(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlExplainArguments>();
  CLI::App* command = crawl.add_subcommand(
      "explain", "Say what came of a URL, or why it is not fetched, how it was found and who links to it.");
  command->add_option("URL", arguments->url, "The URL, as the crawl has it")->required()->type_name("");
  CLI::Option* const place =
      command->add_option("DB", arguments->database, "Database of a crawl")->type_name("")->capture_default_str();
  arguments->add_database(*command)->excludes(place);
  arguments->add_json(*command);
  command->footer(
      "All pages that link to it are known of crawls with --max-depth, --check-links, --links or --html.\n"
      "Example: argiope crawl explain https://example.org/page site.db");
  return [arguments] { return print_url_explanation(arguments->url, arguments->database, arguments->json); };
}

}  // namespace argiope

#include "cli/crawl/crawl_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/seed_list.hpp"
#include "cli/number_option.hpp"
#include "cli/span_option.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

// A host and its subdomains, as a URL's host is spelled: lower case, IDNA.
Result<std::string> parse_domain(const std::string& text) {
  const std::string_view marked = std::string_view(text).substr(text.starts_with('*') ? 1 : 0);
  if (marked.starts_with('.') && marked.size() > 1) {
    return fail(Errc::invalid_input, fmt::format("--whitelist {}: subdomains are included; did you mean {}?",
                                                 in_quotes(text), in_quotes(marked.substr(1))));
  }
  if (text == "*") return fail(Errc::invalid_input, "--whitelist *: name each domain; nothing stands for all of them");
  const auto url = Url::parse("http://" + text + "/");
  if (url && IpAddress::parse(url->host()) && !text.starts_with(url->host()) && !text.contains(':')) {
    return fail(Errc::invalid_input, fmt::format("--whitelist {}: a domain, or an address as in {}", in_quotes(text),
                                                 in_quotes(url->host())));
  }
  if (url && url->path_and_query() == "/" && url->username().empty() && can_be_host(url->host())) {
    // A port is written even where http has it anyway.
    const bool has_port = text.find(':', text.rfind(']') + 1) != std::string::npos;
    // "example.org." is how zones write the domain that links write without the dot.
    std::string_view host = url->host();
    if (host.ends_with('.')) host.remove_suffix(1);
    return has_port ? fmt::format("{}:{}", host, url->effective_port()) : std::string(host);
  }
  const auto whole = Url::parse(text);
  if (!whole || !can_be_host(whole->host())) {
    return fail(Errc::invalid_input, fmt::format("--whitelist {}: not a domain name", in_quotes(text)));
  }
  return fail(Errc::invalid_input, fmt::format("--whitelist {}: not a domain name; did you mean {}?",
                                               in_quotes(without_credentials(text)), in_quotes(whole->host())));
}

// The head of each file, and some records, fit into it: no crawl wants a file for each page.
constexpr std::uint64_t kLeastWarcKb = 64;

std::string archive_name(std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool is_none = name.empty() || name == "." || name == ".." || name == ".warc" || name == ".warc.gz";
  return is_none ? fmt::format("{}: it names no file", in_quotes(path)) : std::string{};
}

}  // namespace

// One option, two lines: no formatter sees that.
// clang-format off
void CrawlArguments::add_to(CLI::App& command) {
  using std::chrono::milliseconds;
  command.add_option("URL", urls, "Where to start; links are followed on these hosts. \"-\": URLs from standard input")->type_name("");
  // "-i 5" was --max-idle-sec once, and still is.
  command.add_option_function<std::vector<std::string>>("-i,--input-file", [this](const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      if (const auto span = parse_span(value)) max_idle = *span;
      else input_files.push_back(value);
    }
  }, "Also start at the URLs in this file, one a line; \"-\": standard input (repeatable)")->type_name("FILE")->allow_extra_args(false);

  const char* const store_group = "The database";
  command.add_option("-d,--db", database, "SQLite database of the crawl; \":memory:\" keeps nothing")
      ->group(store_group)->type_name("FILE")->capture_default_str();
  command.add_option("--sync", sync, "How carefully it is written: full survives a power cut, normal survives a crash")
      ->check(CLI::IsMember({"full", "normal", "off"}))->group(store_group)->capture_default_str();
  command.add_option("--export", export_file, "At the end, write all known URLs to FILE.jsonl or FILE.csv")
      ->group(store_group)->type_name("FILE");
  command.add_option("--export-broken", export_broken_file, "The same for broken links, each with a page that links to it; with --check-links, a line for every such page")
      ->group(store_group)->type_name("FILE");

  const char* const keep_group = "Keeping pages";
  command.add_option("--warc", warc, "Write pages as they come, with their requests and robots.txt, to FILE.warc.gz, and an index to FILE.cdxj; added to when they are there")
      ->check(CLI::Validator(archive_name, "", "name"))->group(keep_group)->type_name("FILE");
  command.add_option("--warc-size", warc_bytes, "Go on in FILE-00001.warc.gz, FILE-00002.warc.gz …, each of about this size (1G, 500M; default: one file)")
      ->transform(whole_bytes(kLeastWarcKb))->needs("--warc")->group(keep_group)->type_name("BYTES");

  save.add_to(command, keep_group);

  extraction.add_to(command, "Taking from pages");
  render.add_to(command, "Pages as JavaScript makes them");

  const char* const scope_group = "What is crawled";
  command.add_option("-w,--whitelist", whitelist, "Also follow links to this domain and its subdomains, on any port, or DOMAIN:PORT (repeatable)")
      ->group(scope_group)->type_name("DOMAIN")->allow_extra_args(false);
  scope.add_to(command, scope_group);
  sitemaps.add_to(command, scope_group);
  command.add_option("--max-depth", max_depth, "Links from a seed; 0 fetches the seeds alone (default: no limit)")
      ->check(whole_number(0, 1'000'000))->group(scope_group)->type_name("N");
  command.add_option("--max-pages", max_pages, "Stop after N responses; 0: no limit")
      ->check(whole_number(0))->group(scope_group)->type_name("N");
  command.add_option("--order", order, "bfs: nearest to a seed first; dfs: deepest first; priority: short URLs first; random: as --seed says")
      ->check(CLI::IsMember({"bfs", "dfs", "priority", "random"}))->group(scope_group)->capture_default_str();
  command.add_option("--seed", order_seed, "Of --order random: the same number gives the same order (default: 0)")
      ->check(whole_number(0))->group(scope_group)->type_name("N");
  requests.add_robots_to(command, scope_group);
  add_span(command, "--age", age, "Ask whether pages that were fetched longer ago have changed; 0: all (default: never)")
      ->group(scope_group);
  revisits.add_to(command, scope_group);
  command.add_option("--requeue", requeue, "Fetch again completely what failed, was excluded, is broken, or everything in scope")
      ->check(CLI::IsMember({"failed", "excluded", "broken", "all"}))->group(scope_group)->type_name("WHAT");

  report.add_to(command, "Checks and reports");

  const char* const trap_group = "Guards against endless sites (the report counts what they leave out; a larger limit takes it in)";
  command.add_option("--max-pages-per-host", max_pages_per_host, "URLs of one host that are queued in one run")
      ->check(whole_number(1))->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-links-per-page", max_links_per_page, "Links of one page that are followed")
      ->check(whole_number(1))->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-url-length", max_url_length, "Bytes of a URL")
      ->check(whole_number(1))->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-segment-repeats", max_segment_repeats, "How often one segment may appear in a path (/a/b/a/b/…)")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()))->group(trap_group)->type_name("N")->capture_default_str();

  duplicates.add_to(command, "Duplicates and traps (a crawl without these finds every page)");

  const char* const pace_group = "How fast";
  command.add_option("-c,--concurrency", concurrency, "Requests under way in all")
      ->check(whole_number(1, 100'000))->group(pace_group)->type_name("N")->capture_default_str();
  requests.add_pace_to(command, pace_group);
  command.add_option("--threads", threads, "Threads; hosts are spread over them")
      ->check(whole_number(1, 256))->group(pace_group)->type_name("N")->capture_default_str();
  command.add_option("-q,--queue-size", queue_size, "Queued URLs held in memory; more wait in the database, the most important ones first")
      ->check(whole_number(1, 1'000'000'000))->group(pace_group)->type_name("N")->capture_default_str();
  add_span_with_default(command, "-t,--schedule-interval-sec", schedule_interval, "How often to look at the queue, at least",
                        {milliseconds{1}})->group(pace_group);

  const char* const request_group = "Each request";
  requests.add_to(command, request_group);
  command.add_option("--retries", retries, "Further attempts after a failure that may pass")
      ->check(whole_number(0, 100))->group(request_group)->type_name("N")->capture_default_str();
  wire.add_to(command, request_group, pace_group);
  session.add_to(command, "Cookies and logins");

  const char* const run_group = "The run";
  host_file.add_to(command, run_group, pace_group);
  add_span(command, "--max-time", max_time, "Stop after this time; the next run goes on")->group(run_group);
  add_span(command, "--max-idle-sec", max_idle, "Stop when nothing was fetched for this time (default: wait)")->group(run_group);
  add_span(command, "--linger", linger, "When nothing is left, wait so long for URLs that other programs put in (default: end)")->group(run_group);
  command.add_flag("--quiet", quiet, "No progress and no report; errors only")->group(run_group);
  command.add_option("--summary", summary, "Last line on standard output: the results as one JSON object")
      ->check(CLI::IsMember({"json"}))->group(run_group)->type_name("json");
  command.add_flag("--fail-on-broken", fail_on_broken, "Exit with 1 when there are broken links")->group(run_group);
  command.add_flag("-C,--color", color, "Colours even when standard error is not a terminal")->group(run_group);
  command.add_flag("-D,--debug", debug, "Log each retry and failure")->group(run_group);
  for (CLI::Option* const option : command.get_options()) {
    const std::string kind = option->get_type_name();
    const bool is_named = kind.starts_with("FILE") || kind.starts_with("DIR") || kind.starts_with("URL");
    const bool is_chosen = kind == "TEXT" || kind == "MIN..MAX" || kind == "KIND,…" || option->get_name() == "--accept-status";
    if (is_named || is_chosen) option->check(not_empty());
  }
  command.footer(
      "PATTERN is a glob: /docs/** is compared with the path, example.org/docs/* (with a slash elsewhere) with the URL; * is\n"
      "anything but a slash, ** anything, ? one character, {a,b} either, [a-z] one of these, \\ takes the next as it is. Without\n"
      "a slash, as in *.pdf, * crosses slashes. A query may follow. re:EXPR is a regular expression, found anywhere in the URL.\n"
      "SPAN is as 90s, 1h30m or 500ms; a bare number is seconds.\n"
      "A second run on the same database goes on where the first stopped, and takes in what wider options allow; what\n"
      "is out of its scope waits. Ctrl-C stops within 10 s, twice stops at once;\n"
      "nothing is lost either way. Exit status: 0 finished, 1 broken links with --fail-on-broken, 2 bad usage,\n"
      "3 nothing could be fetched or stored, 130 interrupted.");
}
// clang-format on

// An option that would change nothing is a mistake: of a name, or of what was left out.
Result<void> CrawlArguments::check_effects() const {
  const bool judges = report.checks() || !report.html.empty();
  const bool compares = duplicates.note_near || duplicates.skip == "near" || duplicates.traps > 0;
  const std::tuple<std::string_view, bool, bool, std::string_view> options[] = {
      {"--seed", order_seed.has_value(), order == "random", "--order random"},
      {"--check-only", !report.judge.only.empty(), judges, "--check-links, --check-output or --html"},
      {"--check-age", report.check_age.has_value(), report.checks(), "--check-links or --check-output"},
      {"--check-foreign-fragments", report.foreign_fragments, report.checks(), "--check-links or --check-output"},
      {"--near-distance", duplicates.near_distance.has_value(), compares,
       "--near-duplicates, --skip-duplicates near or --traps"},
      {"--page-requisites", !save.assets.empty(), !save.folder.empty() || !warc.empty(), "--save or --warc"},
      {"--output", extraction.output != ExtractionArguments{}.output, extraction.is_asked(), "--field or --extract"},
      {"--output-format", !extraction.format.empty(), extraction.is_asked(), "--field or --extract"},
      {"--extract-threads", extraction.threads > 0, extraction.is_asked(), "--field or --extract"},
  };
  for (const auto& [option, is_given, works, needed] : options) {
    if (is_given && !works)
      return fail(Errc::invalid_input, fmt::format("{}: does nothing without {}", option, needed));
  }
  return {};
}

CommandFiles CrawlArguments::files(const ProxySettings::Variable& environment) const {
  CommandFiles files;
  for (const std::string& list : input_files) files.reads("--input-file", list);
  if (std::ranges::find(urls, "-") != urls.end()) files.reads("URL", "-");
  files.reads("--config", host_file.file);
  files.reads("--extract", extraction.file);
  requests.name_files(files);
  wire.name_files(files);
  session.name_files(files, environment);
  files.keeps_database("--db", database);
  files.keeps_archive("--warc", warc);
  files.keeps_mirror("--save", save.folder);
  if (extraction.is_asked()) files.keeps("--output", extraction.output);
  files.writes("--export", export_file);
  files.writes("--export-broken", export_broken_file);
  report.name_files(files);
  return files;
}

// Of the command line and of lists; a list's bad lines are `remarks`.
Result<std::vector<Url>> CrawlArguments::seeds(std::vector<std::string>* remarks) const {
  SeedList list;
  std::vector<std::string> files = input_files;
  for (const std::string& text : urls) {
    if (text == "-") {
      files.push_back(text);
      continue;
    }
    auto seed = parse_seed(text);
    if (!seed) return std::unexpected(std::move(seed.error()));
    list.seeds.push_back(std::move(*seed));
  }
  if (std::ranges::count(files, "-") > 1) return fail(Errc::invalid_input, "-: standard input can be read once");
  for (const std::string& file : files) {
    if (auto read = read_seed_list(file, list); !read) return std::unexpected(std::move(read.error()));
  }
  if (remarks != nullptr) {
    for (const std::string& bad : list.bad) remarks->push_back(bad + "; skipped");
    if (list.bad_count > list.bad.size()) {
      remarks->push_back(
          fmt::format("… and {} more lines that are no URLs; skipped", list.bad_count - list.bad.size()));
    }
  }
  if (!list.seeds.empty() || files.empty()) return std::move(list.seeds);
  return fail(Errc::invalid_input, list.bad_count > 0 ? fmt::format("{}; and no line is a URL", list.bad.front())
                                                      : fmt::format("{}: has no URLs", name_of_list(files.front())));
}

Result<CrawlOptions> CrawlArguments::options(std::vector<std::string>* remarks) const {
  CrawlOptions options;
  if (auto good = check_effects(); !good) return std::unexpected(std::move(good.error()));
  auto starts = seeds(remarks);
  if (!starts) return std::unexpected(std::move(starts.error()));
  options.seeds = std::move(*starts);
  if (auto applied = requests.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  if (auto applied = sitemaps.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  for (const std::string& domain : whitelist) {
    auto host = parse_domain(domain);
    if (!host) return std::unexpected(std::move(host.error()));
    options.whitelist.push_back(std::move(*host));
  }
  if (auto applied = scope.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  for (const auto& [option, file] : {std::pair{"--export", &export_file}, {"--export-broken", &export_broken_file}}) {
    if (*file == "-" && summary == "json") {
      return fail(Errc::invalid_input,
                  fmt::format("{} -: --summary json goes to standard output; name a file", option));
    }
    if (file->empty() || *file == "-" || file->ends_with(".jsonl") || file->ends_with(".csv")) continue;
    return fail(Errc::invalid_input,
                fmt::format("{} {}: the name must end with .jsonl or .csv, or be -", option, in_quotes(*file)));
  }
  if (max_depth >= 0) options.max_depth = static_cast<std::uint32_t>(max_depth);
  options.max_pages = max_pages;
  options.max_pages_per_host = max_pages_per_host;
  options.max_links_per_page = max_links_per_page;
  options.max_url_length = max_url_length;
  options.max_segment_repeats = max_segment_repeats;
  if (auto applied = report.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  if (auto applied = duplicates.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  options.requeue = requeue == "failed"     ? Requeue::failed
                    : requeue == "excluded" ? Requeue::excluded
                    : requeue == "broken"   ? Requeue::broken
                    : requeue == "all"      ? Requeue::all
                                            : Requeue::none;
  options.order = order == "dfs"        ? CrawlOrder::dfs
                  : order == "priority" ? CrawlOrder::priority
                  : order == "random"   ? CrawlOrder::random
                                        : CrawlOrder::bfs;
  options.order_seed = order_seed.value_or(0);
  options.concurrency = concurrency;
  save.apply(options);
  host_file.apply(options);
  options.retries = retries;
  options.age = age;
  if (auto applied = revisits.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  if (max_time > Duration{}) options.max_time = max_time;
  if (max_idle > Duration{}) options.max_idle = max_idle;
  if (linger > Duration{}) options.linger = linger;
  options.queue_size = queue_size;
  options.schedule_interval = schedule_interval;
  return options;
}

}  // namespace argiope

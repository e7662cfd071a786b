#include "cli/crawl/crawl_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_set>

#include "argiope/base/duration.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/seed_list.hpp"
#include "cli/span_option.hpp"
#include "cli/version.hpp"

namespace argiope {
namespace {

Result<std::pair<std::string, std::string>> parse_header(std::string_view option, const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) {
    return fail(Errc::invalid_input, fmt::format("{} {}: write it as \"Name: value\"", option, in_quotes(text)));
  }
  std::string name = text.substr(0, colon);
  std::string value = text.substr(std::min(text.find_first_not_of(" \t", colon + 1), text.size()));
  if (!is_header_safe(name) || !is_header_safe(value) || name.find_first_of(" \t") != std::string::npos) {
    return fail(Errc::invalid_input, fmt::format("{} {}: control characters and spaces in the name are not allowed",
                                                 option, in_quotes(name)));
  }
  return std::pair{std::move(name), std::move(value)};
}

// Where a host's header fields go: "*", a host, a host with its port, or an origin.
Result<std::string> parse_place(const std::string& text) {
  if (text == "*") return text;
  const bool is_origin = text.contains("://");
  const auto url = Url::parse(is_origin ? text : "http://" + text + "/");
  if (!url || url->path_and_query() != "/" || !url->username().empty()) {
    return fail(Errc::invalid_input,
                fmt::format("--header-for {}: give a host, HOST:PORT, http://HOST, or * for all", in_quotes(text)));
  }
  return is_origin ? url->site_key() : std::string(url->host_and_port());
}

// A host and its subdomains, as a URL's host is spelled: lower case, IDNA.
Result<std::string> parse_domain(const std::string& text) {
  if (text.starts_with("*.")) {
    return fail(Errc::invalid_input, fmt::format("--whitelist {}: subdomains are included; did you mean {}?",
                                                 in_quotes(text), in_quotes(text.substr(2))));
  }
  const auto url = Url::parse("http://" + text + "/");
  if (url && url->path_and_query() == "/" && url->username().empty()) {
    // A port is written even where http has it anyway.
    const bool has_port = text.find(':', text.rfind(']') + 1) != std::string::npos;
    return has_port ? fmt::format("{}:{}", url->host(), url->effective_port()) : std::string(url->host());
  }
  const auto whole = Url::parse(text);
  if (!whole || whole->host().empty()) {
    return fail(Errc::invalid_input, fmt::format("--whitelist {}: not a domain name", in_quotes(text)));
  }
  return fail(Errc::invalid_input, fmt::format("--whitelist {}: not a domain name; did you mean {}?",
                                               in_quotes(without_credentials(text)), in_quotes(whole->host())));
}

// Header fields, the first of a name for each place.
class HeaderPlaces {
 public:
  void add(HeaderFor field) {
    if (known_.insert(field.where + '\n' + CLI::detail::to_lower(field.name)).second) fields_.push_back(std::move(field));
  }
  // Where a seed is, and where it may be with TLS.
  void add_for_seed(const Url& seed, const std::string& name, const std::string& value) {
    add({seed.site_key(), name, value});
    if (seed.scheme() == "http" && seed.port().empty()) add({fmt::format("https://{}", seed.host()), name, value});
  }
  std::vector<HeaderFor> take() { return std::move(fields_); }

 private:
  std::vector<HeaderFor> fields_;
  std::unordered_set<std::string> known_;
};

std::string more_than_zero(std::string& text) {
  double number = 0;
  if (CLI::detail::lexical_cast(text, number) && number > 0 && std::isfinite(number)) return {};
  return fmt::format(
      "{}: more than 0; nothing would ever be fetched otherwise. --delay 2 waits 2 s between two requests",
      printable(text));
}

// "500M" becomes its bytes.
std::string whole_bytes(std::string& text) {
  const std::string given = text;
  const std::string wrong = CLI::AsSizeValue(false)(text);
  return wrong.empty() && text != "0" && !given.starts_with('-') ? std::string{}
                                      : fmt::format("{}: more than 0 bytes, as in 1000000, 500M or 1G", in_quotes(given));
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
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
      ->group(store_group)->capture_default_str();
  command.add_option("--sync", sync, "How carefully it is written: full survives a power cut, normal survives a crash")
      ->check(CLI::IsMember({"full", "normal", "off"}))->group(store_group)->capture_default_str();
  command.add_option("--export", export_file, "At the end, write all known URLs to FILE.jsonl or FILE.csv")
      ->group(store_group)->type_name("FILE");
  command.add_option("--export-broken", export_broken_file, "The same for broken links, each with a page that links to it; with --check-links, a line for every such page")
      ->group(store_group)->type_name("FILE");

  const char* const keep_group = "Keeping pages";
  command.add_option("--warc", warc, "Write pages as they come, with their requests and robots.txt, to FILE.warc.gz, and an index to FILE.cdxj; added to when they are there")
      ->group(keep_group)->type_name("FILE");
  command.add_option("--warc-size", warc_bytes, "Go on in FILE-00001.warc.gz, FILE-00002.warc.gz …, each of about this size (1G, 500M; default: one file)")
      ->transform(CLI::Validator(whole_bytes, "", "size"))->needs("--warc")->group(keep_group)->type_name("BYTES");

  extraction.add_to(command, "Taking from pages");

  const char* const scope_group = "What is crawled";
  command.add_option("-w,--whitelist", whitelist, "Also follow links to this domain and its subdomains, on any port, or DOMAIN:PORT (repeatable)")
      ->group(scope_group)->type_name("DOMAIN")->allow_extra_args(false);
  scope.add_to(command, scope_group);
  command.add_option("--max-depth", max_depth, "Links from a seed; 0 fetches the seeds alone (default: no limit)")
      ->check(CLI::Range(0, 1'000'000))->group(scope_group)->type_name("N");
  command.add_option("--max-pages", max_pages, "Stop after N responses; 0: no limit")->group(scope_group)->type_name("N");
  command.add_option("--order", order, "bfs: nearest to a seed first; dfs: deepest first; priority: short URLs first")
      ->check(CLI::IsMember({"bfs", "dfs", "priority"}))->group(scope_group)->capture_default_str();
  command.add_flag("--no-robots", no_robots, "Do not read robots.txt. Only for sites that are yours")->group(scope_group);
  add_span(command, "--age", age, "Ask whether pages that were fetched longer ago have changed; 0: all (default: never)")
      ->group(scope_group);
  command.add_option("--requeue", requeue, "Fetch again completely what failed, was excluded, is broken, or everything in scope")
      ->check(CLI::IsMember({"failed", "excluded", "broken", "all"}))->group(scope_group)->type_name("WHAT");

  report.add_to(command, "Checks and reports");

  const char* const trap_group = "Guards against endless sites (the report counts what they leave out; a larger limit takes it in)";
  command.add_option("--max-pages-per-host", max_pages_per_host, "URLs of one host that are queued in one run")
      ->check(CLI::PositiveNumber)->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-links-per-page", max_links_per_page, "Links of one page that are followed")
      ->check(CLI::PositiveNumber)->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-url-length", max_url_length, "Bytes of a URL")
      ->check(CLI::PositiveNumber)->group(trap_group)->type_name("N")->capture_default_str();
  command.add_option("--max-segment-repeats", max_segment_repeats, "How often one segment may appear in a path (/a/b/a/b/…)")
      ->check(CLI::PositiveNumber)->group(trap_group)->type_name("N")->capture_default_str();

  const char* const pace_group = "How fast";
  command.add_option("-c,--concurrency", concurrency, "Requests under way in all")
      ->check(CLI::Range(1, 100'000))->group(pace_group)->type_name("N")->capture_default_str();
  command.add_option("--per-host", per_host, "Requests under way at one host (default: 1; 8 on loopback)")
      ->check(CLI::Range(1, 100'000))->group(pace_group)->type_name("N");
  add_span(command, "--delay", delay, "Pause between two requests to a host, which then go one by one")->group(pace_group);
  command.add_option("--rate", rate, "Requests a second to one host (default: 5; no limit on loopback)")
      ->check(CLI::Validator(more_than_zero, "", "rate"))->group(pace_group)->type_name("R");
  command.add_option("--threads", threads, "Threads; hosts are spread over them")
      ->check(CLI::Range(1, 256))->group(pace_group)->type_name("N")->capture_default_str();
  command.add_option("-q,--queue-size", queue_size, "Queued URLs held in memory; more wait in the database, the most important ones first")
      ->check(CLI::Range(1, 1'000'000'000))->group(pace_group)->type_name("N")->capture_default_str();
  add_span_with_default(command, "-t,--schedule-interval-sec", schedule_interval, "How often to look at the queue, at least",
                        {milliseconds{1}})->group(pace_group);

  const char* const request_group = "Each request";
  command.add_option("-u,--user-agent", user_agent, "User-Agent; robots.txt is read for its first word")
      ->group(request_group)->type_name("TEXT");
  command.add_option("--header", headers, "Send this header field to the URLs' hosts, and to no other (repeatable)")
      ->group(request_group)->type_name("'NAME: VALUE'")->allow_extra_args(false);
  command.add_option("--header-for", headers_for, "Send a header field to this host; * for every host (repeatable)")
      ->group(request_group)->type_name("HOST 'NAME: VALUE'")->allow_extra_args(false);
  add_span_with_default(command, "--timeout", timeout, "From connecting to the last byte", {milliseconds{1}})->group(request_group);
  add_span_with_default(command, "--connect-timeout", connect_timeout,
                        "Until one address of a host accepts a connection, TLS included", {milliseconds{1}})->group(request_group);
  command.add_option("--retries", retries, "Further attempts after a failure that may pass")
      ->check(CLI::Range(0, 100))->group(request_group)->type_name("N")->capture_default_str();
  command.add_option("-s,--size-limit-kb", size_limit_kb, "Cut a page off after this many KiB (decoded)")
      ->check(CLI::Range(1, 4'000'000))->group(request_group)->type_name("KB")->capture_default_str();
  command.add_flag("--allow-private", allow_private, "Also connect to private, loopback and link-local addresses")
      ->group(request_group);
  command.add_option("--ca-file", ca_file, "Trust the certificate authorities in this PEM file too")
      ->check(CLI::ExistingFile)->group(request_group)->type_name("FILE");
  wire.add_to(command, request_group, pace_group);

  const char* const run_group = "The run";
  add_span(command, "--max-time", max_time, "Stop after this time; the next run goes on")->group(run_group);
  add_span(command, "--max-idle-sec", max_idle, "Stop when nothing was fetched for this time (default: wait)")->group(run_group);
  command.add_flag("--quiet", quiet, "No progress and no report; errors only")->group(run_group);
  command.add_option("--summary", summary, "Last line on standard output: the results as one JSON object")
      ->check(CLI::IsMember({"json"}))->group(run_group)->type_name("json");
  command.add_flag("--fail-on-broken", fail_on_broken, "Exit with 1 when there are broken links")->group(run_group);
  command.add_flag("-C,--color", color, "Colours even when output is not a terminal")->group(run_group);
  command.add_flag("-D,--debug", debug, "Log each retry and failure")->group(run_group);
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
      remarks->push_back(fmt::format("… and {} more lines that are no URLs; skipped", list.bad_count - list.bad.size()));
    }
  }
  if (!list.seeds.empty() || files.empty()) return std::move(list.seeds);
  return fail(Errc::invalid_input, list.bad_count > 0 ? fmt::format("{}; and no line is a URL", list.bad.front())
                                                      : fmt::format("{}: has no URLs", name_of_list(files.front())));
}

Result<CrawlOptions> CrawlArguments::options(std::vector<std::string>* remarks) const {
  CrawlOptions options;
  HeaderPlaces fields;
  auto starts = seeds(remarks);
  if (!starts) return std::unexpected(std::move(starts.error()));
  options.seeds = std::move(*starts);
  for (Url& seed : options.seeds) {
    if (std::string value = take_credentials(seed); !value.empty()) fields.add_for_seed(seed, "Authorization", value);
  }
  for (const std::string& text : headers) {
    const auto header = parse_header("--header", text);
    if (!header) return std::unexpected(header.error());
    for (const Url& seed : options.seeds) fields.add_for_seed(seed, header->first, header->second);
  }
  for (const auto& [host, text] : headers_for) {
    auto place = parse_place(host);
    if (!place) return std::unexpected(std::move(place.error()));
    auto header = parse_header("--header-for", text);
    if (!header) return std::unexpected(std::move(header.error()));
    fields.add({std::move(*place), std::move(header->first), std::move(header->second)});
  }
  options.headers_for = fields.take();
  if (!is_header_safe(user_agent)) return fail(Errc::invalid_input, "--user-agent: control characters are not allowed");
  for (const std::string& domain : whitelist) {
    auto host = parse_domain(domain);
    if (!host) return std::unexpected(std::move(host.error()));
    options.whitelist.push_back(std::move(*host));
  }
  if (auto applied = scope.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  for (const auto& [option, file] : {std::pair{"--export", &export_file}, {"--export-broken", &export_broken_file}}) {
    if (file->empty() || file->ends_with(".jsonl") || file->ends_with(".csv")) continue;
    return fail(Errc::invalid_input, fmt::format("{} {}: the name must end with .jsonl or .csv", option, in_quotes(*file)));
  }
  if (max_depth >= 0) options.max_depth = static_cast<std::uint32_t>(max_depth);
  options.max_pages = max_pages;
  options.max_pages_per_host = max_pages_per_host;
  options.max_links_per_page = max_links_per_page;
  options.max_url_length = max_url_length;
  options.max_segment_repeats = max_segment_repeats;
  if (auto applied = report.apply(options); !applied) return std::unexpected(std::move(applied.error()));
  options.requeue = requeue == "failed"     ? Requeue::failed
                    : requeue == "excluded" ? Requeue::excluded
                    : requeue == "broken"   ? Requeue::broken
                    : requeue == "all"      ? Requeue::all
                                            : Requeue::none;
  options.order = order == "dfs" ? CrawlOrder::dfs : order == "priority" ? CrawlOrder::priority : CrawlOrder::bfs;
  options.concurrency = concurrency;
  if (per_host > 0) options.per_host = per_host;
  options.delay = delay;
  if (rate > 0) options.rate = rate;
  options.robots = !no_robots;
  options.user_agent = user_agent.empty() ? fmt::format("argiope/{}", kVersion) : user_agent;
  options.product_token = lower(options.user_agent.substr(0, options.user_agent.find_first_of("/ (")));
  options.size_limit = size_limit_kb * 1024;
  options.timeout = timeout;
  options.connect_timeout = connect_timeout;
  options.retries = retries;
  options.age = age;
  if (max_time > Duration{}) options.max_time = max_time;
  if (max_idle > Duration{}) options.max_idle = max_idle;
  options.queue_size = queue_size;
  options.schedule_interval = schedule_interval;
  return options;
}

}  // namespace argiope

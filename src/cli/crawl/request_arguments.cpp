#include "cli/crawl/request_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "cli/authorities_option.hpp"
#include "cli/crawl/session_arguments.hpp"
#include "cli/error_advice.hpp"
#include "cli/number_option.hpp"
#include "cli/span_option.hpp"
#include "cli/version.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "web/url/internal/host_address.hpp"

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
  if (is_clients_own(name))
    return fail(Errc::invalid_input,
                fmt::format("{} {}: {} is set by the client itself", option, in_quotes(text), name));
  return std::pair{std::move(name), std::move(value)};
}

// Where a host's header fields go: "*", a host, its subdomains, a host with its port, or an origin.
Result<std::string> parse_place(const std::string& text) {
  if (text == "*") return text;
  const bool is_origin = text.contains("://");
  const auto url = Url::parse(is_origin ? text : "http://" + text + "/");
  const bool is_whole = url && url->path_and_query() == "/" && url->username().empty();
  const bool has_subdomains = is_whole && !is_origin && url->host().starts_with("*.");
  const bool has_wrong_port = has_subdomains && url->host_and_port() != url->host();
  if (!is_whole || has_wrong_port || !can_be_host(url->host().substr(has_subdomains ? 2 : 0))) {
    return fail(
        Errc::invalid_input,
        fmt::format("--header-for {}: give a host, HOST:PORT, http://HOST, *.DOMAIN for its subdomains, or * for all",
                    in_quotes(text)));
  }
  return is_origin ? url->site_key() : std::string(url->host_and_port());
}

// Header fields, the first of a name for each place.
class HeaderPlaces {
 public:
  void add(HeaderFor field) {
    if (known_.insert(field.where + '\n' + CLI::detail::to_lower(field.name)).second)
      fields_.push_back(std::move(field));
  }
  // Where a seed is, and where it may be with TLS.
  void add_for_seed(const Url& seed, const std::string& name, const std::string& value) {
    for (std::string& site : sites_of_seed(seed)) add({std::move(site), name, value});
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

}  // namespace

// One option, two lines: no formatter sees that.
// clang-format off
void RequestArguments::add_pace_to(CLI::App& command, const char* group) {
  command.add_option("--per-host", per_host, "Requests under way at one host (default: 1; 8 on loopback)")
      ->check(whole_number(1, 100'000))->group(group)->type_name("N");
  add_span(command, "--delay", delay, "Pause between two requests to a host, which then go one by one")->group(group);
  command.add_option("--rate", rate, "Requests a second to one host (default: 5; no limit on loopback)")
      ->check(CLI::Validator(more_than_zero, "", "rate"))->group(group)->type_name("R");
  add_span_with_default(command, "--max-crawl-delay", max_crawl_delay,
                        "The most of a Crawl-delay in robots.txt that is heeded")->group(group);
}

void RequestArguments::add_robots_to(CLI::App& command, const char* group) {
  command.add_flag("--no-robots", no_robots, "Do not read robots.txt. Only for sites that are yours")->group(group);
}

void RequestArguments::add_to(CLI::App& command, const char* group) {
  using std::chrono::milliseconds;
  command.add_option("-u,--user-agent", user_agent, "User-Agent; robots.txt is read for its first word")
      ->group(group)->type_name("TEXT");
  command.add_option("--header", headers, "Send this header field to the URLs' hosts, and to no other (repeatable)")
      ->group(group)->type_name("'NAME: VALUE'")->allow_extra_args(false);
  command.add_option("--header-for", headers_for, "Send a header field to this host; * for every host (repeatable)")
      ->group(group)->type_name("HOST 'NAME: VALUE'")->allow_extra_args(false);
  add_span_with_default(command, "--timeout", timeout, "From connecting to the last byte", {milliseconds{1}})->group(group);
  add_span_with_default(command, "--connect-timeout", connect_timeout,
                        "Until one address of a host accepts a connection, TLS included", {milliseconds{1}})->group(group);
  command.add_option("-s,--size-limit-kb", size_limit_kb, "Cut a page off after this many KiB (decoded)")
      ->check(whole_number(1, 4'000'000))->group(group)->type_name("KB")->capture_default_str();
  add_guard_to(command)->group(group);
  command.add_option("--ca-file", ca_file, "Trust the certificate authorities in this PEM file too")
      ->check(authorities_file())->group(group)->type_name("FILE");
}
// clang-format on

CLI::Option* RequestArguments::add_guard_to(CLI::App& command) {
  return command.add_flag("--allow-private", allow_private,
                          "Also connect to private, loopback and link-local addresses");
}

Result<void> RequestArguments::apply(CrawlOptions& options) const {
  HeaderPlaces fields;
  for (Url& seed : options.seeds) {
    std::string value;
    if (take_user_of_seed(seed, options, value)) fields.add_for_seed(seed, "Authorization", value);
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
  if (per_host > 0) options.per_host = per_host;
  options.delay = delay;
  if (rate > 0) options.rate = rate;
  options.max_crawl_delay = max_crawl_delay;
  options.robots = !no_robots;
  options.user_agent = user_agent.empty() ? fmt::format("argiope/{}", kVersion) : user_agent;
  options.product_token = product_token_of(options.user_agent);
  options.size_limit = size_limit_kb * 1024;
  options.timeout = timeout;
  options.connect_timeout = connect_timeout;
  return {};
}

void RequestArguments::name_files(CommandFiles& files) const { files.reads("--ca-file", ca_file); }

void RequestArguments::apply(CrawlSetup& setup) const {
  setup.allow_private = allow_private;
  setup.private_advice = kAllowPrivateAdvice;
  setup.ca_file = ca_file;
}

}  // namespace argiope

#include "cli/crawl/url_query_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/list_option.hpp"
#include "cli/number_option.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

std::vector<std::string> state_names() {
  std::vector<std::string> names;
  for (const UrlState state : {UrlState::queued, UrlState::done, UrlState::failed, UrlState::excluded}) {
    names.emplace_back(to_string(state));
  }
  return names;
}

std::vector<std::string> reason_names() {
  std::vector<std::string> names = {"none"};
  for (std::size_t i = 1; i < kUrlReasons; ++i) names.emplace_back(to_string(static_cast<UrlReason>(i)));
  return names;
}

// So long ago, or then.
Result<WallTime> parse_moment(std::string_view option, const std::string& text, WallTime now) {
  if (const auto span = parse_span(text)) return *span < now.time_since_epoch() ? now - *span : WallTime{};
  auto time = parse_rfc3339(text);
  if (!time) time = parse_rfc3339(text + "T00:00:00Z");
  if (time) return *time;
  return fail(Errc::invalid_input,
              fmt::format("{} {}: so long ago, as in 90s, 2h or 7d, or a time, as in 2026-01-31 or "
                          "2026-01-31T12:00:00Z",
                          option, in_quotes(text)));
}

Result<std::int64_t> parse_bytes(std::string_view option, const std::string& text) {
  const auto bytes = bytes_of(text);
  if (bytes && *bytes <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return static_cast<std::int64_t>(*bytes);
  return fail(Errc::invalid_input, fmt::format("{} {}: bytes, as in 20000, 500K or 10M", option, in_quotes(text)));
}

std::optional<std::uint32_t> parse_depth_end(std::string_view text, std::uint32_t missing) {
  if (text.empty()) return missing;
  std::uint32_t depth = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), depth);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(depth) : std::nullopt;
}

Result<void> parse_depths(std::string_view text, UrlQuery& query) {
  const std::size_t dots = text.find("..");
  const std::size_t dash = dots == std::string_view::npos ? text.find('-') : dots;
  const std::size_t behind = dash + (dots == std::string_view::npos ? 1 : 2);
  const bool is_range = dash != std::string_view::npos;
  const auto first = parse_depth_end(text.substr(0, is_range ? dash : text.size()), 0);
  const auto last = is_range ? parse_depth_end(text.substr(behind), std::numeric_limits<std::uint32_t>::max()) : first;
  if (!first || !last || *first > *last || text.find_first_of("0123456789") == std::string_view::npos) {
    return fail(Errc::invalid_input,
                fmt::format("--depth {}: a number of links from a seed, or a range, as in 2..4", in_quotes(text)));
  }
  query.min_depth = first;
  query.max_depth = last;
  return {};
}

}  // namespace

// clang-format off
void UrlQueryArguments::add_to(CLI::App& command, const char* group) {
  add_list(command, "--state", states, "queued, done, failed or excluded (repeatable, as all of these)", CLI::IsMember(state_names()))
      ->group(group)->type_name("STATE");
  add_list(command, "--reason", reasons, "Why it is excluded or done in part: robots, off_scope, depth, cut_off …; none for those without", CLI::IsMember(reason_names()))
      ->group(group)->type_name("REASON");
  command.add_option("--status", statuses, "Status of the last answer: 404, 5xx, 300..399")
      ->group(group)->type_name("LIST")->allow_extra_args(false);
  command.add_flag("--broken", broken, "Broken links alone: given up, or answered with an error")->group(group);
  command.add_option("--host", hosts, "On this host; HOST:PORT, http://HOST, or *.DOMAIN for its subdomains")
      ->group(group)->type_name("HOST")->allow_extra_args(false);
  command.add_option("--match", patterns, "That fit this pattern, as for --include of argiope crawl")
      ->group(group)->type_name("PATTERN")->allow_extra_args(false);
  add_list(command, "--type", types, "Media type of the answer: text/html, image/*")->group(group)->type_name("TYPE");
  command.add_option("--min-size", min_size, "Answered with so many bytes at least (500K, 10M)")->group(group)->type_name("BYTES");
  command.add_option("--max-size", max_size, "Answered with so many bytes at most")->group(group)->type_name("BYTES");
  command.add_option("--fetched-since", fetched_since, "Asked within this time (2h, 7d), or since then (2026-01-31)")
      ->group(group)->type_name("WHEN");
  command.add_option("--fetched-before", fetched_before, "Last asked longer ago, or before then")->group(group)->type_name("WHEN");
  command.add_option("--depth", depth, "So many links from a seed: 3, 2..4, 5..")->group(group)->type_name("N");
}
// clang-format on

bool UrlQueryArguments::is_given() const noexcept {
  return !states.empty() || !reasons.empty() || !statuses.empty() || !hosts.empty() || !patterns.empty() ||
         !types.empty() || broken || !min_size.empty() || !max_size.empty() || !fetched_since.empty() ||
         !fetched_before.empty() || !depth.empty();
}

Result<UrlQuery> UrlQueryArguments::query(WallTime now) const {
  UrlQuery query;
  for (const std::string& name : states) query.states.push_back(*url_state_named(name));
  for (const std::string& name : reasons) query.reasons.push_back(*url_reason_named(name));
  for (const std::string& text : statuses) {
    const auto ranges = parse_status_ranges(text);
    if (!ranges) return fail(Errc::invalid_input, fmt::format("--status {}", ranges.error().message));
    query.statuses.insert(query.statuses.end(), ranges->begin(), ranges->end());
  }
  for (const std::string& text : hosts) {
    auto place = parse_host_place(text);
    if (!place) return fail(Errc::invalid_input, fmt::format("--host {}", place.error().message));
    query.hosts.push_back(std::move(*place));
  }
  query.patterns = patterns;
  for (const std::string& given : types) {
    std::string type = in_lower_case(given);
    if (!type.contains('/')) {
      return fail(Errc::invalid_input,
                  fmt::format("--type {}: a media type, as in text/html or image/*", in_quotes(type)));
    }
    query.types.push_back(std::move(type));
  }
  query.broken = broken;
  for (const auto& [option, text, out] :
       {std::tuple{"--min-size", &min_size, &query.min_size}, {"--max-size", &max_size, &query.max_size}}) {
    if (text->empty()) continue;
    const auto bytes = parse_bytes(option, *text);
    if (!bytes) return std::unexpected(bytes.error());
    *out = *bytes;
  }
  for (const auto& [option, text, out] : {std::tuple{"--fetched-since", &fetched_since, &query.fetched_since},
                                          {"--fetched-before", &fetched_before, &query.fetched_before}}) {
    if (text->empty()) continue;
    const auto moment = parse_moment(option, *text, now);
    if (!moment) return std::unexpected(moment.error());
    *out = *moment;
  }
  if (!depth.empty()) {
    if (auto parsed = parse_depths(depth, query); !parsed) return std::unexpected(std::move(parsed.error()));
  }
  return query;
}

}  // namespace argiope

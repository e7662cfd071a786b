#include "config/internal/crawl_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_texts.hpp"
#include "base/internal/nearest.hpp"
#include "base/internal/printable.hpp"
#include "config/toml_file.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/scope/internal/path_prefix.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostHosts = 100'000;
const std::vector<std::string> kHostMembers = {
    "match",   "rate",    "delay",   "per_host",    "autothrottle", "autothrottle_target", "robots",  "user_agent",
    "headers", "timeout", "retries", "path_prefix", "max_depth",    "max_pages",           "include", "exclude"};

bool is_header(std::string_view name, std::string_view value) {
  return !name.empty() && is_header_safe(name) && is_header_safe(value) &&
         name.find_first_of(": \t") == std::string_view::npos;
}

std::vector<std::pair<std::string, std::string>> read_headers(const JsonValue& value) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!value.is_object()) {
    value.complain("a table: headers = { \"Accept-Language\" = \"de\" }");
    return headers;
  }
  value.for_each_member([&](std::string_view name, const JsonValue& entry) {
    const auto text = entry.if_text();
    if (!text) return entry.complain("a string");
    if (!is_header(name, *text))
      return entry.refuse("control characters, and spaces or colons in the name, are not allowed");
    if (is_clients_own(name)) return entry.refuse("the client sets it itself");
    headers.emplace_back(name, *text);
  });
  return headers;
}

void read_positive(JsonMembers& in, std::string_view name, std::optional<double>& out) {
  const JsonValue* const value = in.find(name);
  if (value == nullptr) return;
  const auto number = value->if_number();
  if (!number || !(*number > 0) || !std::isfinite(*number)) return value->complain("a number above 0");
  out = *number;
}

template <class Number>
void read_whole(JsonMembers& in, std::string_view name, std::int64_t least, std::int64_t most,
                std::optional<Number>& out) {
  if (const JsonValue* const value = in.find(name)) out = static_cast<Number>(value->whole(least, most));
}

void read_flag(JsonMembers& in, std::string_view name, std::optional<bool>& out) {
  if (const JsonValue* const value = in.find(name)) out = value->flag();
}

void read_scope(JsonMembers& in, HostSettings& host) {
  const auto read_patterns = [&](std::string_view name, std::optional<std::vector<std::string>>& out) {
    const JsonValue* const value = in.find(name);
    if (value == nullptr) return;
    out = read_texts(*value, parse_url_pattern);
    // Each is one; together they may be too many.
    if (const auto all = UrlPatterns::compile(*out); !all) value->refuse(all.error().message);
  };
  read_patterns("include", host.include);
  read_patterns("exclude", host.exclude);
  if (const JsonValue* const value = in.find("path_prefix")) host.path_prefixes = read_texts(*value, parse_path_prefix);
  read_whole(in, "max_depth", 0, 1'000'000, host.max_depth);
  read_whole(in, "max_pages", 1, std::int64_t{1} << 31, host.max_pages);
}

HostSettings read_host(const JsonValue& form) {
  HostSettings host;
  if (!form.is_object()) {
    form.complain("a table, under [[host]]");
    return host;
  }
  form.for_each_member([](std::string_view name, const JsonValue& value) {
    if (std::ranges::find(kHostMembers, name) != kHostMembers.end()) return;
    value.refuse_member(fmt::format("member {}: a host has none{}", in_quotes(name), did_you_mean(name, kHostMembers)));
  });
  JsonMembers in(form);
  if (const JsonValue* const match = in.find("match")) host.match = read_texts(*match, parse_host_place);
  if (host.match.empty()) form.refuse("a host needs match: whose settings these are, as in match = \"example.org\"");
  read_positive(in, "rate", host.rate);
  in.parsed("delay", host.delay, [](const std::string& text) { return parse_span(text); });
  read_whole(in, "per_host", 1, 100'000, host.per_host);
  read_flag(in, "autothrottle", host.autothrottle);
  read_positive(in, "autothrottle_target", host.autothrottle_target);
  read_flag(in, "robots", host.robots);
  if (const JsonValue* const agent = in.find("user_agent")) {
    host.user_agent = agent->text(1, 1000);
    if (!is_header_safe(*host.user_agent)) agent->refuse("control characters are not allowed");
  }
  if (const JsonValue* const headers = in.find("headers")) host.headers = read_headers(*headers);
  in.parsed("timeout", host.timeout, [](const std::string& text) { return parse_duration(text); });
  read_whole(in, "retries", 0, 100, host.retries);
  read_scope(in, host);
  return host;
}

// One of [crawl], as it would be typed.
bool write_value(const JsonValue& value, std::vector<std::string>& out) {
  if (value.is_object() || value.is_list()) return false;
  out.push_back(value.shown());
  return true;
}

CrawlFileOption read_option(std::string_view name, const JsonValue& value) {
  using Kind = CrawlFileOption::Kind;
  CrawlFileOption option{.name = std::string(name)};
  if (value.is_list()) {
    option.kind = Kind::list;
    value.for_each([&](const JsonValue& entry) {
      if (write_value(entry, option.values)) return;
      // header_for = [["example.org", "X-Key: 1"]]: what is typed one after the other.
      if (!entry.is_list()) return entry.complain("a string or a number");
      entry.for_each([&](const JsonValue& part) {
        if (!write_value(part, option.values)) part.complain("a string or a number");
      });
    });
    return option;
  }
  if (!write_value(value, option.values)) value.complain("a string, a number, true, false, or a list");
  option.kind = value.if_flag() ? Kind::flag : value.if_text() ? Kind::text : Kind::number;
  return option;
}

void read_hosts(const JsonValue& list, std::vector<HostSettings>& hosts) {
  if (!list.is_list()) return list.complain("a list: each host is under [[host]]");
  if (list.size() > kMostHosts) return list.refuse(fmt::format("more than {}", kMostHosts));
  list.for_each([&](const JsonValue& host) { hosts.push_back(read_host(host)); });
}

void read_crawl_members(const JsonValue& form, CrawlFile& file) {
  const std::vector<std::string> kMembers = {"crawl", "host"};
  form.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "crawl") {
      if (!value.is_object()) return value.complain("a table: [crawl]");
      return value.for_each_member(
          [&](std::string_view option, const JsonValue& given) { file.options.push_back(read_option(option, given)); });
    }
    if (name != "host") {
      return value.refuse_member(
          fmt::format("member {}: there are [crawl] and [[host]]{}", in_quotes(name), did_you_mean(name, kMembers)));
    }
    read_hosts(value, file.hosts);
  });
}

Result<CrawlFile> crawl_file_in(Result<TomlFile> file) {
  if (!file) return std::unexpected(std::move(file.error()));
  CrawlFile crawl{.name = file->name()};
  if (auto read = file->as_json([&](const JsonValue& form) { read_crawl_members(form, crawl); }); !read) {
    return std::unexpected(std::move(read.error()));
  }
  for (CrawlFileOption& option : crawl.options) option.line = file->line_of({std::string("crawl"), option.name});
  return crawl;
}

}  // namespace

void read_options_and_hosts(const JsonValue& table, std::vector<CrawlFileOption>& options,
                            std::vector<HostSettings>& hosts) {
  table.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "host") return read_hosts(value, hosts);
    options.push_back(read_option(name, value));
  });
}

Result<CrawlFile> parse_crawl_file(std::string_view text, std::string_view name) {
  return crawl_file_in(TomlFile::parse(text, name, kMostCrawlFileBytes));
}

Result<CrawlFile> read_crawl_file(const std::string& path) {
  return crawl_file_in(TomlFile::read(path, kMostCrawlFileBytes));
}

}  // namespace argiope

#include "crawl/scope/url_filter.hpp"

#include <algorithm>
#include <stdexcept>

#include "web/text/internal/lower_case.hpp"
#include "web/text/internal/media_type_names.hpp"

namespace argiope {
namespace {

UrlPatterns compile_or_throw(const std::vector<std::string>& patterns) {
  auto compiled = UrlPatterns::compile(patterns);
  if (!compiled) throw std::invalid_argument(compiled.error().message);
  return *std::move(compiled);
}

bool has_filter(const HostSettings& host) { return host.include || host.exclude || host.path_prefixes; }

std::vector<HostSettings> hosts_with_filters(const CrawlOptions& options) {
  return std::ranges::any_of(options.hosts, has_filter) ? options.hosts : std::vector<HostSettings>{};
}

// Whether the name, or a part of it behind a dot, is one of `extensions`: "x.tar.gz" ends with "gz" and with "tar.gz".
bool ends_with_one_of(std::string_view name, const std::unordered_set<std::string>& extensions) {
  std::string rest = in_lower_case(name);
  for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    rest.erase(0, dot + 1);
    if (extensions.contains(rest)) return true;
  }
  return false;
}

}  // namespace

std::string_view path_in(std::string_view href) noexcept {
  const std::size_t scheme = href.find("://");
  const std::size_t path = href.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  if (path == std::string_view::npos) return {};
  return href.substr(path, href.find_first_of("?#", path) - path);
}

bool UrlFilter::is_needed(const CrawlOptions& options) noexcept {
  return !options.include.empty() || !options.exclude.empty() || !options.path_prefixes.empty() ||
         !options.accept_extensions.empty() || !options.reject_extensions.empty() ||
         std::ranges::any_of(options.hosts, has_filter);
}

UrlFilter::UrlFilter(const CrawlOptions& options)
    : include_(compile_or_throw(options.include)),
      exclude_(compile_or_throw(options.exclude)),
      path_prefixes_(options.path_prefixes),
      accepted_(options.accept_extensions.begin(), options.accept_extensions.end()),
      rejected_(options.reject_extensions.begin(), options.reject_extensions.end()),
      hosts_(hosts_with_filters(options)) {
  for (const HostSettings& host : hosts_.settings()) {
    if (!host.include && !host.exclude) continue;
    const std::vector<std::string> none;
    patterns_[&host] = {compile_or_throw(host.include.value_or(none)), compile_or_throw(host.exclude.value_or(none))};
  }
}

bool UrlFilter::excludes(std::string_view href) const {
  if (hosts_.empty()) return exclude_.match(href);
  for (const HostSettings* host : hosts_.of(href)) {
    if (host->exclude) return patterns_.at(host).exclude.match(href);
  }
  return exclude_.match(href);
}

Exclusion UrlFilter::judge(std::string_view href) const {
  const std::vector<std::string>* prefixes = &path_prefixes_;
  const UrlPatterns* include = &include_;
  if (!hosts_.empty()) {
    const auto settings = hosts_.of(href);
    if (const auto* own = setting_of(settings, &HostSettings::path_prefixes)) prefixes = own;
    const auto has_include = [](const HostSettings* host) { return host->include.has_value(); };
    const auto found = std::ranges::find_if(settings, has_include);
    if (found != settings.end()) include = &patterns_.at(*found).include;
  }
  const std::string_view path = path_in(href);
  const auto begins = [&](const std::string& prefix) { return path.starts_with(prefix); };
  if (!prefixes->empty() && std::ranges::none_of(*prefixes, begins)) return Exclusion::path_prefix;
  if (!has_wanted_extension(path)) return Exclusion::extension;
  if (excludes(href)) return Exclusion::exclude;
  if (!include->empty() && !include->match(href)) return Exclusion::include;
  return Exclusion::none;
}

bool UrlFilter::has_wanted_extension(std::string_view path) const {
  if (accepted_.empty() && rejected_.empty()) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!rejected_.empty() && ends_with_one_of(name, rejected_)) return false;
  return accepted_.empty() || extension_of(name).empty() || ends_with_one_of(name, accepted_);
}

}  // namespace argiope

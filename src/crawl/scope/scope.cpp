#include "argiope/crawl/detail/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "crawl/options/internal/host_rules.hpp"
#include "crawl/scope/logout_links.hpp"
#include "crawl/scope/url_filter.hpp"
#include "web/url/internal/public_suffix.hpp"

namespace argiope {

std::string_view to_string(Exclusion exclusion) noexcept {
  switch (exclusion) {
    case Exclusion::none: return "none";
    case Exclusion::scheme: return "scheme";
    case Exclusion::off_scope: return "off_scope";
    case Exclusion::robots: return "robots";
    case Exclusion::nofollow: return "nofollow";
    case Exclusion::depth: return "depth";
    case Exclusion::url_length: return "url_length";
    case Exclusion::repeated_segment: return "repeated_segment";
    case Exclusion::pages_per_host: return "pages_per_host";
    case Exclusion::exclude: return "exclude";
    case Exclusion::include: return "include";
    case Exclusion::path_prefix: return "path_prefix";
    case Exclusion::parent: return "parent";
    case Exclusion::extension: return "extension";
    case Exclusion::content_type: return "content_type";
    case Exclusion::links_per_page: return "links_per_page";
    case Exclusion::logout: return "logout";
    case Exclusion::duplicate: return "duplicate";
    case Exclusion::alias: return "alias";
    case Exclusion::parameter: return "parameter";
    case Exclusion::near_duplicate: return "near_duplicate";
    case Exclusion::trap: return "trap";
    case Exclusion::nesting: return "nesting";
  }
  return "unknown";
}

namespace {

// Of a URL as Url spells it: behind user information, in front of the port.
std::string_view host_of(std::string_view href) noexcept {
  const std::size_t scheme = href.find("://");
  if (scheme == std::string_view::npos) return {};
  std::string_view host = href.substr(scheme + 3);
  host = host.substr(0, host.find_first_of("/?#"));
  if (const std::size_t user = host.rfind('@'); user != std::string_view::npos) host.remove_prefix(user + 1);
  const std::size_t port = host.find(':', host.starts_with('[') ? std::min(host.find(']'), host.size()) : 0);
  return host.substr(0, port);
}

// `host`: host_of(href).
std::uint16_t port_of(std::string_view href, std::string_view host) noexcept {
  const std::string_view rest = href.substr(static_cast<std::size_t>(host.data() - href.data()) + host.size());
  std::uint16_t port = href.starts_with("https") ? 443 : 80;
  if (rest.starts_with(':')) std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
  return port;
}

std::string_view without_www(std::string_view host) noexcept {
  return host.starts_with("www.") ? host.substr(4) : host;
}

}  // namespace

bool is_same_site(std::string_view host, std::string_view other) noexcept {
  return without_www(host) == without_www(other);
}

Scope::Scope(const CrawlOptions& options)
    : ports_(options.ports),
      no_parent_(options.no_parent),
      max_depth_(options.max_depth.value_or(std::numeric_limits<std::uint32_t>::max())),
      max_url_length_(options.max_url_length),
      max_segment_repeats_(options.max_segment_repeats) {
  const auto has_depth = [](const HostSettings& one) { return one.max_depth.has_value(); };
  if (std::ranges::any_of(options.hosts, has_depth)) hosts_of_depth_ = std::make_unique<HostRules>(options.hosts);
  if (UrlFilter::is_needed(options)) filter_ = std::make_unique<UrlFilter>(options);
  for (const Url& seed : options.seeds) {
    seeds_.emplace(seed.href());
    hosts_.emplace(seed.host());
    hosts_of_seeds_.emplace(seed.host());
    sites_of_seeds_.emplace(without_www(seed.host()));
    if (options.registrable_domains) domains_.emplace(registrable_domain(seed.host()));
    add_folder(seed);
  }
  for (const std::string& domain : options.whitelist) {
    domains_have_ports_ = domains_have_ports_ || domain.find(':', domain.rfind(']') + 1) != std::string::npos;
    domains_.emplace(domain);
  }
}

Scope::~Scope() = default;

void Scope::guard_login(const std::vector<std::string>& include) { logout_ = std::make_unique<LogoutGuard>(include); }

// Whether it was not known. The target of a seed's redirect counts as a seed does, so that folders only become more.
bool Scope::add_folder(const Url& seed) {
  if (!no_parent_) return false;
  const std::string_view path = seed.pathname();
  const std::string_view folder = path.substr(0, path.rfind('/') + 1);
  const bool of_host = folders_.emplace(std::string(seed.host()).append(folder)).second;
  const bool of_site = folders_.emplace(std::string("/").append(without_www(seed.host())).append(folder)).second;
  return of_host || of_site;
}

bool Scope::follow_seed(std::string_view seed, const Url& target) {
  const bool new_url = seeds_.emplace(target.href()).second;
  const bool same_site = is_same_site(host_of(seed), target.host());
  const bool new_host = same_site && hosts_.emplace(target.host()).second;
  const bool new_folder = same_site && add_folder(target);
  return new_url || new_host || new_folder;
}

bool Scope::contains(std::string_view href, std::string_view host) const {
  const bool by_port = !ports_.empty() || domains_have_ports_;
  const std::uint16_t port = by_port ? port_of(href, host) : 0;
  const bool at_home = hosts_.contains(host) || is_whitelisted(host, port);
  if (at_home && (ports_.empty() || std::ranges::find(ports_, port) != ports_.end())) return true;
  return is_seed(href);
}

// The host itself, then each parent domain.
bool Scope::is_whitelisted(std::string_view host, std::uint16_t port) const {
  for (std::string_view rest = host; !domains_.empty();) {
    if (domains_.contains(rest)) return true;
    if (domains_have_ports_ && domains_.contains(fmt::format("{}:{}", rest, port))) return true;
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return false;
}

// Hosts that are in scope by other words than a seed have no folders, and no bounds. A seed's site by another name has
// those of the seeds of that site: it may be where they lead.
bool Scope::is_in_a_folder(std::string_view href, std::string_view host) const {
  std::string folder;
  if (hosts_of_seeds_.contains(host)) {
    folder = host;
  } else if (sites_of_seeds_.contains(without_www(host))) {
    folder.append("/").append(without_www(host));
  } else {
    return true;
  }
  const std::size_t begin = folder.size();
  folder.append(path_in(href));
  for (std::size_t slash = folder.rfind('/'); slash != std::string::npos && slash >= begin;
       slash = folder.rfind('/', slash - 1)) {
    folder.resize(slash + 1);
    if (folders_.contains(folder)) return true;
  }
  return false;
}

Exclusion Scope::trap(std::string_view href, std::uint32_t depth) const {
  if (is_too_deep(href, depth)) return Exclusion::depth;
  if (href.size() > max_url_length_) return Exclusion::url_length;
  if (most_repeated_segment(path_in(href)) > max_segment_repeats_) return Exclusion::repeated_segment;
  return Exclusion::none;
}

bool Scope::is_too_deep(std::string_view href, std::uint32_t depth) const {
  if (!hosts_of_depth_) return depth > max_depth_;
  const std::uint32_t* own = setting_of(hosts_of_depth_->of(href), &HostSettings::max_depth);
  return depth > (own != nullptr ? *own : max_depth_);
}

Exclusion Scope::bars_check(std::string_view href, std::uint32_t depth) const {
  if (filter_ && filter_->excludes(href)) return Exclusion::exclude;
  return logout_ && logout_->bars(href) ? Exclusion::logout : trap(href, depth);
}

Exclusion Scope::place_of(std::string_view href, std::uint32_t depth) const {
  const std::string_view host = host_of(href);
  if (!contains(href, host)) return Exclusion::off_scope;
  Exclusion why = filter_ ? filter_->judge(href) : Exclusion::none;
  if (why == Exclusion::none && no_parent_ && !is_in_a_folder(href, host)) why = Exclusion::parent;
  if (why == Exclusion::none && logout_ && logout_->bars(href)) why = Exclusion::logout;
  if (why == Exclusion::none) why = trap(href, depth);
  return why != Exclusion::none && is_seed(href) ? Exclusion::none : why;
}

std::uint32_t most_repeated_segment(std::string_view path) {
  // Paths are short: compare each segment with the later ones, up to a number that keeps this linear in practice.
  constexpr std::size_t kMostSegments = 64;
  std::array<std::string_view, kMostSegments> segments;
  std::size_t count = 0;
  while (!path.empty() && count < kMostSegments) {
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (!segment.empty()) segments[count++] = segment;
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  // Few segments cannot repeat much.
  std::uint32_t most = count > 0 ? 1 : 0;
  for (std::size_t i = 0; i + most < count; ++i) {
    const auto same =
        static_cast<std::uint32_t>(std::count(segments.begin() + static_cast<std::ptrdiff_t>(i),
                                              segments.begin() + static_cast<std::ptrdiff_t>(count), segments[i]));
    most = std::max(most, same);
  }
  return most;
}

}  // namespace argiope

#include "argiope/crawl/scope.hpp"

#include <algorithm>
#include <array>
#include <limits>

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
    case Exclusion::links_per_page: return "links_per_page";
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

std::string_view path_of(std::string_view href) noexcept {
  const std::size_t scheme = href.find("://");
  const std::size_t path = href.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  if (path == std::string_view::npos) return {};
  return href.substr(path, href.find_first_of("?#", path) - path);
}

std::string_view without_www(std::string_view host) noexcept {
  return host.starts_with("www.") ? host.substr(4) : host;
}

}  // namespace

bool is_same_site(std::string_view host, std::string_view other) noexcept {
  return without_www(host) == without_www(other);
}

Scope::Scope(const CrawlOptions& options)
    : max_depth_(options.max_depth.value_or(std::numeric_limits<std::uint32_t>::max())),
      max_url_length_(options.max_url_length),
      max_segment_repeats_(options.max_segment_repeats) {
  for (const Url& seed : options.seeds) {
    seeds_.emplace(seed.href());
    hosts_.emplace(seed.host());
  }
  for (const std::string& domain : options.whitelist) domains_.emplace(domain);
}

bool Scope::follow_seed(std::string_view seed, const Url& target) {
  const bool new_url = seeds_.emplace(target.href()).second;
  const bool same_site = is_same_site(host_of(seed), target.host());
  const bool new_host = same_site && hosts_.emplace(target.host()).second;
  return new_url || new_host;
}

bool Scope::contains(std::string_view href, std::string_view host) const {
  if (hosts_.contains(host)) return true;
  // The host itself, then each parent domain.
  for (std::string_view rest = host; !domains_.empty();) {
    if (domains_.contains(rest)) return true;
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return is_seed(href);
}

Exclusion Scope::trap(std::string_view href, std::uint32_t depth) const {
  if (depth > max_depth_) return Exclusion::depth;
  if (href.size() > max_url_length_) return Exclusion::url_length;
  if (most_repeated_segment(path_of(href)) > max_segment_repeats_) return Exclusion::repeated_segment;
  return Exclusion::none;
}

Exclusion Scope::place_of(std::string_view href, std::uint32_t depth) const {
  if (!contains(href, host_of(href))) return Exclusion::off_scope;
  const Exclusion why = trap(href, depth);
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

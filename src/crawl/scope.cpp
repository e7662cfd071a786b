#include "argiope/crawl/scope.hpp"

#include <algorithm>
#include <array>

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
  }
  return "unknown";
}

Scope::Scope(const CrawlOptions& options)
    : max_depth_(options.max_depth.value_or(options.trap_depth)),
      max_url_length_(options.max_url_length),
      max_segment_repeats_(options.max_segment_repeats) {
  for (const Url& seed : options.seeds) hosts_.emplace(seed.host());
  for (const std::string& domain : options.whitelist) domains_.emplace(domain);
}

bool Scope::contains(const Url& url) const {
  const std::string_view host = url.host();
  if (hosts_.contains(host)) return true;
  if (domains_.empty()) return false;
  // The host itself, then each parent domain.
  for (std::string_view rest = host;;) {
    if (domains_.contains(rest)) return true;
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return false;
    rest.remove_prefix(dot + 1);
  }
}

Exclusion Scope::trap(const Url& url, std::uint32_t depth) const {
  if (depth > max_depth_) return Exclusion::depth;
  if (url.href().size() > max_url_length_) return Exclusion::url_length;
  if (most_repeated_segment(url.pathname()) > max_segment_repeats_) return Exclusion::repeated_segment;
  return Exclusion::none;
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

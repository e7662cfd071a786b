#include "project/rules/internal/project_map.hpp"

#include <algorithm>
#include <utility>

#include "argiope/crawl/detail/host_settings.hpp"

namespace argiope {
namespace {

// A start's host, also by its other name: with and without "www.".
void add_host_of(const Url& start, std::vector<std::string>& hosts) {
  const std::string host(start.host());
  hosts.push_back(host);
  hosts.push_back(host.starts_with("www.") ? host.substr(4) : "www." + host);
}

}  // namespace

Result<ProjectMap> ProjectMap::make(const ProjectDefinition& project) {
  ProjectMap map;
  HostSettings in_scope{.match = project.scope};
  if (in_scope.match.empty()) {
    for (const Url& start : project.start) add_host_of(start, in_scope.match);
    std::ranges::sort(in_scope.match);  // as many as hosts, not as starts: each is looked up
    const auto again = std::ranges::unique(in_scope.match);
    in_scope.match.erase(again.begin(), again.end());
  }
  // A project whose processor finds its starts.
  if (in_scope.match.empty()) in_scope.match = {"*"};
  map.hosts_ = std::make_shared<const HostRules>(std::vector{std::move(in_scope)});
  for (const ProjectRule& rule : project.rules) {
    auto match = UrlPatterns::compile(rule.extraction.match);
    if (!match) return std::unexpected(std::move(match.error()));
    auto follows = UrlPatterns::compile(rule.follow_only);
    if (!follows) return std::unexpected(std::move(follows.error()));
    map.rules_.push_back({.all = rule.extraction.match.empty(), .some = std::move(*match)});
    map.follows_.push_back({.all = rule.follow && rule.follow_only.empty(), .some = std::move(*follows)});
  }
  return map;
}

ProjectMap::Answer ProjectMap::find(std::string_view href) const {
  Host none;
  return find(href, none);
}

ProjectMap::Answer ProjectMap::find(std::string_view href, Host& last) const {
  if (!href.starts_with("http://") && !href.starts_with("https://")) return {Place::no_page, {}};
  if (const std::string_view site = site_in(href); site != last.site) {
    last.in_scope = !hosts_->of(site).empty();
    last.site = site;
  }
  if (!last.in_scope) return {Place::off_scope, {}};
  if (rules_.empty()) return {Place::page, {}};
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].match(href)) return {Place::page, i};
  }
  return {Place::no_rule, {}};
}

bool ProjectMap::follows(std::size_t rule, std::string_view href) const { return follows_[rule].match(href); }

std::string_view to_string(ProjectMap::Place place) noexcept {
  constexpr std::string_view kNames[] = {"page", "no_rule", "off_scope", "no_page"};
  return kNames[static_cast<std::size_t>(place)];
}

}  // namespace argiope

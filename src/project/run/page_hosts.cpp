// Looks at hosts: what is done at each, and why nothing is.
#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "project/run/page_engine_impl.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostHostsLooked = 50'000;  // for one page of a list
constexpr std::size_t kMostProjectsNamed = 20;      // of one host

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool is_visited(ProjectStatusNow::Doing doing) noexcept {
  using enum ProjectStatusNow::Doing;
  return doing == waiting || doing == visiting || doing == probing;
}

// Of what is ready and of what is done there, over the projects.
void say_what_projects_want(HostExplanation& told) {
  std::size_t ready = 0;
  std::optional<WallTime> first_due;
  const HostExplanation::OfProject* still = nullptr;  // one that has pages ready, and visits none
  for (const HostExplanation::OfProject& project : told.projects) {
    if (!is_visited(project.doing)) {
      if (still == nullptr) still = &project;
      continue;
    }
    ready += project.ready;
    if (project.first_due && (!first_due || *project.first_due < *first_due)) first_due = project.first_due;
  }
  if (ready > 0) {
    told.reason = "soon";
    told.words = fmt::format("nothing holds it up: {} due", counted(ready, "page of it is", "pages of it are"));
  } else if (first_due) {
    told.reason = "not_due";
    told.words = "none of its pages is due yet";
    told.until = first_due;
  } else if (still != nullptr) {
    told.reason = "project_stopped";
    told.words = fmt::format("project {} visits nothing now: it is {}", in_quotes(still->name), to_string(still->doing));
    told.until = still->until;
  } else {
    told.reason = "nothing_due";
    told.words = "no page of it waits in the queue of a project";
  }
}

}  // namespace

std::vector<const LiveProject*> PageEngine::Impl::seen_projects(const MaySee& may_see) const {
  std::vector<const LiveProject*> seen;
  for (const auto& [name, project] : projects_) {
    if (!may_see || may_see(name)) seen.push_back(project.get());
  }
  return seen;
}

namespace {

std::size_t visits_at(const LiveProject& project, std::uint32_t host) {
  return static_cast<std::size_t>(std::ranges::count_if(project.visits, [&](const auto& visit) { return visit.second->host == host; }));
}

}  // namespace

HostStatusNow PageEngine::Impl::status_of_host(std::uint32_t host, const std::vector<const LiveProject*>& projects) const {
  HostStatusNow status{.number = host, .site = sites_[host], .words = {}, .trouble = {}, .projects = {}};
  std::size_t visits = 0;  // of those projects, whose others are none of who asks
  for (const LiveProject* const project : projects) {
    if (!project->index.hosts().has(host)) continue;
    visits += visits_at(*project, host);
    if (++status.project_count <= kMostProjectsNamed) status.projects.push_back(project->record.name);
  }
  if (!desk_) {
    status.words = "no host is asked yet";
    return status;
  }
  HostDesk::State state = desk_->look(host, sites_[host]);
  status.doing = state.doing;
  // How many requests others have under way is not told.
  const bool are_all = projects.size() == projects_.size();
  status.words = are_all || !state.counts_requests ? std::move(state.words) : "requests are under way";
  if (state.waits_until) status.until = wall_at(*state.waits_until);
  status.under_way = are_all ? state.under_way : static_cast<std::uint32_t>(visits);
  status.at_most = state.at_most;
  status.delay = state.delay;
  status.rate = state.rate;
  status.robots_known = state.robots_known;
  status.trouble = std::move(state.trouble);
  return status;
}

HostsFound PageEngine::Impl::hosts(const HostQuery& query) const {
  const std::vector<const LiveProject*> seen = seen_projects(query.may_see);
  // Whose pages decide whether a host is among them; null: nobody's.
  std::vector<const LiveProject*> deciding = seen;
  if (query.project) std::erase_if(deciding, [&](const LiveProject* project) { return project->record.name != *query.project; });
  const bool decides = query.project || query.may_see;
  const std::string filter = in_lower_case(query.filter);
  const auto end = static_cast<std::uint32_t>(sites_.size());
  HostsFound found;
  HostNumbers::Block block;
  std::uint32_t block_number = 0;
  bool has_block = false;
  std::uint32_t looked = 0;
  for (std::uint32_t host = query.after + 1; host != 0 && host < end; ++host) {
    if (found.hosts.size() == query.limit || ++looked > kMostHostsLooked) {
      found.next = host - 1;
      break;
    }
    if (const std::uint32_t number = host / HostNumbers::kBlock; decides && (!has_block || number != block_number)) {
      block.reset();
      for (const LiveProject* const project : deciding) {
        if (const HostNumbers::Block* const its = project->index.hosts().block(number)) block |= *its;
      }
      block_number = number;
      has_block = true;
    }
    const std::string& site = sites_[host];
    if ((decides && !block.test(host % HostNumbers::kBlock)) || site.empty() || site == kDataSite) continue;
    if (!filter.empty() && site.find(filter) == std::string::npos) continue;
    if (query.doing && doing_at(host) != *query.doing) continue;
    found.hosts.push_back(status_of_host(host, seen));
  }
  return found;
}

// 0: none has been met.
std::uint32_t PageEngine::Impl::known_host(std::string_view site) const {
  const auto number_of_url = [&](const std::string& text) -> std::uint32_t {
    const auto url = Url::parse(text);
    const auto found = url ? host_ids_.find(url->site_key()) : host_ids_.end();
    return found == host_ids_.end() || found->first == kDataSite ? 0 : found->second;
  };
  if (site.find("://") != std::string_view::npos) return number_of_url(std::string(site));
  const std::uint32_t secure = number_of_url(fmt::format("https://{}", site));
  return secure != 0 ? secure : number_of_url(fmt::format("http://{}", site));
}

HostExplanation::OfProject PageEngine::Impl::at_host(const LiveProject& project, std::uint32_t host) const {
  const ProjectStatusNow status = status_of(project);
  HostExplanation::OfProject its{.name = status.name, .doing = status.doing, .until = status.until};
  its.under_way = visits_at(project, host);
  if (project.frontier && loop_ != nullptr) {
    const TimePoint now = loop_->time();
    const PageFrontier::OfHost queued = project.frontier->of_host(host, now);
    its.ready = queued.ready;
    its.delayed = queued.delayed;
    its.first_due = wall_at(queued.first_due);
  }
  return its;
}

HostExplanation PageEngine::Impl::explain_host(std::string_view site, const MaySee& may_see) const {
  HostExplanation told;
  told.host.site = site;
  told.reason = "unknown";
  told.words = "no project has pages there";
  const std::uint32_t host = known_host(site);
  if (host == 0) return told;
  HostStatusNow status = status_of_host(host, seen_projects(may_see));
  if (status.project_count == 0 && may_see) return told;
  told.known = true;
  told.host = std::move(status);
  for (const std::string& name : told.host.projects) told.projects.push_back(at_host(*find(name), host));
  told.words = told.host.words;
  told.until = told.host.until;
  using enum HostDesk::Doing;
  switch (told.host.doing) {
    case resting: told.reason = "resting"; break;
    case busy: told.reason = "busy"; break;
    case waiting: told.reason = "waiting"; break;
    case ready: say_what_projects_want(told); break;
  }
  return told;
}

HostsFound PageEngine::hosts(const HostQuery& query) const { return impl_->hosts(query); }

HostExplanation PageEngine::explain_host(std::string_view site, const std::function<bool(std::string_view project)>& may_see) const {
  return impl_->explain_host(site, may_see);
}

}  // namespace argiope

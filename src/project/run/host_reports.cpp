#include "project/run/host_reports.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "project/run/page_visit.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostHostsLooked = 50'000;  // for one page of a list
constexpr std::size_t kMostProjectsNamed = 20;      // of one host

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
    told.words =
        fmt::format("project {} visits nothing now: it is {}", in_quotes(still->name), to_string(still->doing));
    told.until = still->until;
  } else {
    told.reason = "nothing_due";
    told.words = "no page of it waits in the queue of a project";
  }
}

std::size_t visits_at(const LiveProject& project, std::uint32_t host) {
  return static_cast<std::size_t>(
      std::ranges::count_if(project.visits, [&](const auto& visit) { return visit.second->host == host; }));
}

}  // namespace

std::vector<const LiveProject*> HostReports::seen_projects(const MaySee& may_see) const {
  std::vector<const LiveProject*> seen;
  for (const auto& [name, project] : core_.projects) {
    if (!may_see || may_see(name)) seen.push_back(project.get());
  }
  return seen;
}

HostStatusNow HostReports::status_of_host(std::uint32_t host, const std::vector<const LiveProject*>& projects) const {
  HostStatusNow status{.number = host, .site = hosts_.site(host), .words = {}, .trouble = {}, .projects = {}};
  std::size_t visits = 0;  // of those projects, whose others are none of who asks
  for (const LiveProject* const project : projects) {
    if (!project->index.hosts().has(host)) continue;
    visits += visits_at(*project, host);
    if (++status.project_count <= kMostProjectsNamed) status.projects.push_back(project->record.name);
  }
  if (!hosts_.has_desk()) {
    status.words = "no host is asked yet";
    return status;
  }
  HostDesk::State state = hosts_.desk().look(host, hosts_.site(host));
  status.doing = state.doing;
  // How many requests others have under way is not told.
  const bool are_all = projects.size() == core_.projects.size();
  status.words = are_all || !state.counts_requests ? std::move(state.words) : "requests are under way";
  if (state.waits_until) status.until = core_.wall_at(*state.waits_until);
  status.under_way = are_all ? state.under_way : static_cast<std::uint32_t>(visits);
  status.at_most = state.at_most;
  status.delay = state.delay;
  status.rate = state.rate;
  status.robots_known = state.robots_known;
  status.trouble = std::move(state.trouble);
  return status;
}

HostsFound HostReports::hosts(const HostQuery& query) const {
  const std::vector<const LiveProject*> seen = seen_projects(query.may_see);
  // Whose pages decide whether a host is among them; null: nobody's.
  std::vector<const LiveProject*> deciding = seen;
  if (query.project)
    std::erase_if(deciding, [&](const LiveProject* project) { return project->record.name != *query.project; });
  const bool decides = query.project || query.may_see;
  const std::string filter = in_lower_case(query.filter);
  const std::uint32_t end = hosts_.end();
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
    const std::string& site = hosts_.site(host);
    if ((decides && !block.test(host % HostNumbers::kBlock)) || site.empty() || site == kDataSite) continue;
    if (!filter.empty() && site.find(filter) == std::string::npos) continue;
    if (query.doing && hosts_.doing_at(host) != *query.doing) continue;
    found.hosts.push_back(status_of_host(host, seen));
  }
  return found;
}

HostExplanation::OfProject HostReports::at_host(const LiveProject& project, std::uint32_t host) const {
  const ProjectStatusNow status = reports_.status_of(project);
  HostExplanation::OfProject its{.name = status.name, .doing = status.doing, .until = status.until};
  its.under_way = visits_at(project, host);
  if (project.frontier && core_.loop != nullptr) {
    const TimePoint now = core_.loop->time();
    const PageFrontier::OfHost queued = project.frontier->of_host(host, now);
    its.ready = queued.ready;
    its.delayed = queued.delayed;
    its.first_due = core_.wall_at(queued.first_due);
  }
  return its;
}

HostExplanation HostReports::explain_host(std::string_view site, const MaySee& may_see) const {
  HostExplanation told;
  told.host.site = site;
  told.reason = "unknown";
  told.words = "no project has pages there";
  const std::uint32_t host = hosts_.find(site);
  if (host == 0) return told;
  HostStatusNow status = status_of_host(host, seen_projects(may_see));
  if (status.project_count == 0 && may_see) return told;
  told.known = true;
  told.host = std::move(status);
  for (const std::string& name : told.host.projects) told.projects.push_back(at_host(*core_.find(name), host));
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

}  // namespace argiope

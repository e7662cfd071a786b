#include "project/run/page_reports.hpp"

#include <fmt/format.h>

#include <span>

#include "base/internal/counted.hpp"
#include "project/process/internal/asked_pages.hpp"

namespace argiope {

ProjectStatusNow PageReports::status_of(const LiveProject& project) const {
  const ProjectRecord& record = project.record;
  ProjectStatusNow status{.id = record.id,
                          .name = record.name,
                          .group = record.group,
                          .status = project.definition.status,
                          .trouble = record.trouble,
                          .rate = record.rate ? record.rate : project.definition.rate,
                          .burst = record.burst.value_or(project.definition.burst),
                          .weight = project.definition.weight,
                          .pages = project.index.size(),
                          .under_way = project.visits.size(),
                          .version = record.version,
                          .round = project.round,
                          .outstanding = project.outstanding,
                          .next_start = project.next_time,
                          .made_at = record.made_at,
                          .changed_at = record.changed_at,
                          .deleted_at = record.deleted_at};
  using enum ProjectStatusNow::Doing;
  const FailurePause::State pause = project.pause.state(wall());
  if (!project.is_running()) {
    status.doing = stopped;
  } else if (!record.trouble.empty() || !project.may_visit()) {
    status.doing = standing;
  } else if (pause == FailurePause::State::paused) {
    status.doing = paused;
    status.until = project.pause.next_change();
  } else if (pause == FailurePause::State::probing) {
    status.doing = probing;
    status.until = project.pause.next_change();
  } else if (!project.visits.empty() || project.taken > 0) {
    status.doing = visiting;
  } else {
    status.doing = waiting;
    if (project.frontier && core_.loop != nullptr) {
      const TimePoint now = core_.loop->time();
      status.until = core_.wall_at(project.frontier->next_wakeup(now));
    }
  }
  return status;
}

std::optional<PageId> PageReports::page_id(std::string_view project_name, std::string_view page_name) const {
  const SharedProject project = core_.find(project_name);
  if (!project) return std::nullopt;
  std::string name(page_name);
  const PageIndex::Number page = project->find_page(name);
  return page == 0 ? std::nullopt : std::optional(project->id_of(page));
}

std::string PageReports::last_error(const LiveProject& project, PageIndex::Number page) const {
  const PageId id = project.id_of(page);
  auto rows = store_.pages(std::span(&id, 1));
  return rows && !rows->empty() ? std::move(rows->front().error) : std::string{};
}

std::optional<PageReason> PageReports::why_held_up(LiveProject& project, PageIndex::Number page,
                                                   const Explanation& queued) const {
  const TimePoint now = core_.loop->time();
  if (queued.reason == WaitReason::queue_rate) {
    return PageReason{"project_rate", "its project's rate",
                      queued.until > now ? core_.wall_at(queued.until) : std::nullopt};
  }
  const std::uint32_t host = project.index.host(page);
  if (!hosts_.is_at_desk(host)) return std::nullopt;
  HostDesk::State state = hosts_.desk().look(host, hosts_.site(host));
  if (state.may_begin) return std::nullopt;
  PageReason why{"waiting_host", fmt::format("{}: {}", state.site, state.words)};
  if (state.reads_robots) {
    why.reason = "reading_robots";
  } else if (state.doing == HostDesk::Doing::resting) {
    why.reason = "resting_host";
  } else if (state.doing == HostDesk::Doing::busy && !state.waits_until) {
    why.reason = "busy_host";
  }
  if (state.waits_until && *state.waits_until > now) why.until = core_.wall_at(*state.waits_until);
  return why;
}

Result<PageExplanation> PageReports::explain(std::string_view project_name, std::string_view page_name) const {
  auto found = core_.need(project_name);
  if (!found) return std::unexpected(std::move(found.error()));
  LiveProject& project = **found;
  PageExplanation told{.name = std::string(page_name)};
  const auto because = [&](PageReason why) {
    told.reason = why.reason;
    told.words = std::move(why.words);
    told.until = why.until;
    return told;
  };
  const PageIndex::Number page = project.find_page(told.name);
  if (page == 0) {
    if (!project.map) return because(why_standing(project.record.trouble));
    const auto url = usual_page_name(told.name);
    if (const auto place = url ? project.map->find(*url).rule : std::nullopt)
      told.rule = project.definition.rules[*place].name();
    return because(why_unknown(project.definition, *project.map, url));
  }
  told.known = true;
  told.page = project.index.known(page);
  told.rule = project.rules[project.index.rule(page)].name;
  const WallTime now = wall();
  const bool has_failed = told.page.state == PageState::failed ||
                          (told.page.state == PageState::waiting && told.page.wait == PageWait::retry);
  const std::string error = has_failed ? last_error(project, page) : std::string{};
  if (told.page.state != PageState::waiting)
    return because(why_at_rest(told.page, project.terms_of(project.index.rule(page)), now, error));
  const ProjectStatusNow status = status_of(project);
  using enum ProjectStatusNow::Doing;
  if (status.doing == stopped) return because(why_stopped(status.status));
  if (status.doing == standing) return because(why_standing(status.trouble));
  if (auto later = why_not_due(told.page, now, error)) return because(std::move(*later));
  if (status.doing == paused) return because(why_paused(status.until));
  if (status.doing == probing) return because(why_probing(status.until));
  if (project.frontier && core_.loop != nullptr) {
    const Explanation queued = project.frontier->explain(page, core_.loop->time());
    if (auto held = why_held_up(project, page, queued)) return because(std::move(*held));
    if (queued.ahead > 0)
      return because({"ahead", fmt::format("{} ahead", counted(queued.ahead, "more important page is",
                                                               "more important pages are"))});
  }
  return because({"soon", "nothing holds it up"});
}

}  // namespace argiope

#include "serve/notify/project_news.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/internal/json_writer.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/run/internal/round_json.hpp"

namespace argiope {
namespace {

constexpr Duration kLookInterval = std::chrono::seconds{1};

std::string why_halted(const ProjectStatusNow& status) {
  if (status.doing == ProjectStatusNow::Doing::standing) return status.trouble;
  if (status.doing == ProjectStatusNow::Doing::probing) return "its visits keep failing; it tries some";
  return status.until ? fmt::format("its visits keep failing; paused until {}", to_rfc3339(*status.until))
                      : "its visits keep failing";
}

template <class Body>
std::string project_event(std::string_view event, std::string_view project, Body&& body) {
  return json_object([&](JsonWriter& json) {
    json.member("event", event);
    json.member("project", project);
    body(json);
  });
}

}  // namespace

std::vector<NotifierOptions::Unwell> halted_projects(const DaemonProjects& projects) {
  std::vector<NotifierOptions::Unwell> found;
  for (const ProjectStatusNow& status : projects.engine.projects()) {
    if (is_halted(status)) found.push_back({status.name, why_halted(status)});
  }
  return found;
}

std::optional<std::vector<std::string>> alarms_of_project(const DaemonProjects& projects, const std::string& name) {
  if (!projects.engine.project(name)) return std::nullopt;
  return projects.engine.alarms(name);
}

ProjectNews::ProjectNews(DaemonProjects& projects, EventFeed& events, Notifier& notifier)
    : projects_(projects), events_(events), notifier_(notifier), ticker_(EventLoop::current(), [this] { look(); }) {
  projects_.on_round_end = [this](const std::string& project, const RoundRecord& round,
                                  const std::vector<std::string>& alarms) { tell_of_round(project, round, alarms); };
  ticker_.soon();
}

ProjectNews::~ProjectNews() { projects_.on_round_end = nullptr; }

ProjectNews::Shown ProjectNews::shown(const ProjectStatusNow& status) {
  return {status.status,
          status.doing == ProjectStatusNow::Doing::visiting ? ProjectStatusNow::Doing::waiting : status.doing,
          status.trouble};
}

void ProjectNews::look() {
  ticker_.at(saturating_add(EventLoop::current().time(), kLookInterval));
  if (!events_.is_recording()) {
    looked_ = false;
    seen_.clear();
    return;
  }
  std::map<std::string, Shown> now;
  for (const ProjectStatusNow& status : projects_.engine.projects()) {
    const Shown& its = now.emplace(status.name, shown(status)).first->second;
    const auto before = seen_.find(status.name);
    if (!looked_ || (before != seen_.end() && before->second == its)) continue;
    const auto json = project_event(before == seen_.end() ? "added" : "changed", status.name, [&](JsonWriter& out) {
      out.member("status", to_string(status.status));
      out.member("doing", to_string(status.doing));
      out.member("until", status.until);
      out.member("trouble", status.trouble);
    });
    events_.tell("project", json, status.name);
  }
  for (const auto& [name, before] : seen_) {
    if (!now.contains(name)) events_.tell("project", project_event("removed", name, [](JsonWriter&) {}), name);
  }
  looked_ = true;
  seen_ = std::move(now);
}

void ProjectNews::tell_of_round(const std::string& project, const RoundRecord& round,
                                const std::vector<std::string>& alarms) {
  const auto json = project_event("round_ended", project, [&](JsonWriter& out) {
    write_round(out, round);
    out.member("alarms", alarms.size());
  });
  events_.tell("project", json, project);
  for (const std::string& alarm : alarms) {
    events_.tell("project", project_event("alarm", project, [&](JsonWriter& out) { out.member("text", alarm); }),
                 project);
  }
  notifier_.tell_alarms(project, alarms);
}

}  // namespace argiope

// ProjectNews: what becomes of a daemon's projects, for those who follow its events and those whom [[notify]] names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "async/internal/ticker.hpp"
#include "serve/base/internal/daemon_projects.hpp"
#include "serve/notify/notifier.hpp"
#include "serve/watch/event_feed.hpp"

namespace argiope {

// Those that is_halted() means, with why.
std::vector<NotifierOptions::Unwell> halted_projects(const DaemonProjects& projects);
// The faults of its last round that has ended. nullopt: there is no such project.
std::optional<std::vector<std::string>> alarms_of_project(const DaemonProjects& projects, const std::string& name);

// Tells EventFeed, as events "project": that one is there, has changed what it is doing, or is gone, by a look each
// second while events are kept for anybody; that a round has ended, and each of its alarms, at once. The notifier hears
// of each round, too.
//
// Lifetime: what it is given outlives it. It takes DaemonProjects::on_round_end until it ends.
// Threads:  the loop's own; made on a running loop.
class ProjectNews {
 public:
  ProjectNews(DaemonProjects& projects, EventFeed& events, Notifier& notifier);
  ~ProjectNews();
  ProjectNews(const ProjectNews&) = delete;

 private:
  // Whether it goes on is told; that it visits just now is not.
  using Shown = std::tuple<ProjectStatus, ProjectStatusNow::Doing, std::string>;
  static Shown shown(const ProjectStatusNow& status);
  void look();
  void tell_of_round(const std::string& project, const RoundRecord& round, const std::vector<std::string>& alarms);

  DaemonProjects& projects_;
  EventFeed& events_;
  Notifier& notifier_;
  bool looked_ = false;                // since events are kept
  std::map<std::string, Shown> seen_;  // when it was last looked
  Ticker ticker_;
};

}  // namespace argiope

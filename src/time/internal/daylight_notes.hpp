// The effects of daylight saving on the times of a cron expression, in words for people.
#pragma once

#include <string>
#include <vector>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {

// "Sun".
std::string weekday_text(LocalTime local);

// Lifetime: expression and zone outlive it.
class DaylightNotes {
 public:
  DaylightNotes(const CronExpression& expression, const TimeZone& zone) : expression_(expression), zone_(zone) {}

  // Why the time is there at all, or there twice; empty for an ordinary one.
  std::string about(WallTime time) const;
  // The times skipped after `from` and before `to`, each as a line.
  std::vector<std::string> skipped(WallTime from, WallTime to) const;

 private:
  std::string moved(WallTime time) const;

  const CronExpression& expression_;
  const TimeZone& zone_;
};

}  // namespace argiope

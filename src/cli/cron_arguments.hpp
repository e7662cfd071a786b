// Questions of `argiope next` and `argiope schedule add` about a cron expression, and how far a time is away in words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {

// --dialect, --zone, --dst-gap, --dst-overlap and --dom-dow.
struct CronArguments {
  std::string dialect = "argiope";
  std::string zone_name = "UTC";
  std::string dst_gap, dst_overlap, dom_dow;
  void add_to(CLI::App& command, const std::string& group = "OPTIONS");
  // Errors: invalid_input or not_found, naming the value.
  Result<CronOptions> options() const;
  Result<TimeZone> zone() const;
};

// "in 3d4h", "in 12m", "5s ago", "now".
std::string distance(Duration from_now);

}  // namespace argiope

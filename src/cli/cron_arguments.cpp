#include "cli/cron_arguments.hpp"

#include <fmt/format.h>

#include "argiope/base/clock.hpp"

namespace argiope {

void CronArguments::add_to(CLI::App& command, const std::string& group) {
  command.add_option("--dialect", dialect, "argiope, vixie, quartz, apscheduler or systemd")
      ->capture_default_str()
      ->group(group);
  command.add_option("--zone", zone_name, "Time zone, such as Europe/Berlin")->capture_default_str()->group(group);
  command
      .add_option("--dst-gap", dst_gap,
                  "A time that the clock leaves out in spring: next (runs at the first instant after it),\n"
                  "shift (runs as much later as the clock jumps) or skip")
      ->type_name("POLICY")
      ->group(group);
  command
      .add_option("--dst-overlap", dst_overlap,
                  "A time that the clock shows twice in autumn: vixie (fixed times run the first time,\n"
                  "those with *, - or / both times), first, second or both")
      ->type_name("POLICY")
      ->group(group);
  command
      .add_option("--dom-dow", dom_dow,
                  "When day-of-month and day-of-week are both restricted: and, or (one is enough)")
      ->type_name("RULE")
      ->group(group);
}

Result<CronOptions> CronArguments::options() const {
  const auto known = parse_cron_dialect(dialect);
  if (!known) return std::unexpected(known.error());
  CronOptions options = CronOptions::of(*known);
  const auto set = [](const std::string& text, auto& out, auto parse) -> Result<void> {
    if (text.empty()) return {};
    const auto value = parse(text);
    if (!value) return std::unexpected(value.error());
    out = *value;
    return {};
  };
  auto done = set(dst_gap, options.dst_gap, parse_dst_gap);
  if (done) done = set(dst_overlap, options.dst_overlap, parse_dst_overlap);
  if (done) done = set(dom_dow, options.dom_dow, parse_dom_dow);
  if (!done) return std::unexpected(std::move(done.error()));
  return options;
}

Result<TimeZone> CronArguments::zone() const { return TimeZone::find(zone_name); }

std::string distance(Duration from_now) {
  const bool past = from_now < Duration::zero();
  const auto seconds = std::chrono::round<std::chrono::seconds>(past ? -from_now : from_now);
  if (seconds == Duration::zero()) return "now";
  return past ? format_roughly(seconds) + " ago" : "in " + format_roughly(seconds);
}

}  // namespace argiope

#include "cli/simulate/text_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/internal/printable.hpp"
#include "cli/table.hpp"
#include "simulate/internal/wording.hpp"

namespace argiope {
namespace {

constexpr std::size_t kColumns = 72;
constexpr int kRows = 6;
constexpr std::size_t kNameShown = 28;
constexpr std::size_t kRowsShown = 40;
constexpr std::size_t kLinesShown = 12;
constexpr std::array<const char*, 9> kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// A value above nothing can be seen.
int eighths(double value, double most, int of) {
  if (value <= 0 || most <= 0) return 0;
  return std::clamp(static_cast<int>(std::lround(value / most * of)), 1, of);
}

std::string sparkline(const Columns& columns) {
  std::string out;
  for (const double value : columns.values) out += kEighths[static_cast<std::size_t>(eighths(value, columns.most, 8))];
  return out;
}

std::string base_line(const Columns& columns) {
  std::string out;
  for (std::size_t i = 0; i < columns.values.size(); ++i) out += "─";
  return out;
}

std::string chart(const Columns& columns) {
  std::string out;
  const std::string top = grouped(static_cast<std::uint64_t>(columns.most));
  for (int row = kRows - 1; row >= 0; --row) {
    const bool is_top = row == kRows - 1;
    std::string line = fmt::format("  {:>9} {}", is_top ? top : "", is_top ? "┤" : "│");
    for (const double value : columns.values) {
      const int part = std::clamp(eighths(value, columns.most, kRows * 8) - row * 8, 0, 8);
      line += kEighths[static_cast<std::size_t>(part)];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out + fmt::format("  {:>9} └{}\n", 0, base_line(columns));
}

// Where the time line begins, is half over and ends.
std::string axis(const SimulationReport& report, std::size_t width) {
  const auto text = [&](WallTime time) { return axis_label(time, report.until - report.from, report.zone); };
  std::string line = text(report.from);
  const std::string middle = text(report.from + (report.until - report.from) / 2);
  const std::string end = text(report.until);
  if (width > line.size() + middle.size() + end.size() + 4) {
    line.resize(std::max(line.size() + 1, width / 2 - middle.size() / 2), ' ');
    line += middle;
    line.resize(std::max(line.size() + 1, width - end.size()), ' ');
    line += end;
  }
  return fmt::format("{:13}{}\n", "", line);
}

std::string optional_time(const std::optional<WallTime>& time, const TimeZone& zone) {
  return time ? short_time(*time, zone) : "-";
}

std::string more(std::size_t all, std::size_t shown, std::string_view what) {
  return all <= shown ? "" : fmt::format("  … and {}; --json and --html list them all\n", count_of(all - shown, what));
}

std::string peak_line(std::string_view what, const Peak& peak, const TimeZone& zone) {
  return fmt::format("  {:<22} {:>9}{}\n", what, grouped(peak.most),
                     peak.at ? "  at " + short_time(*peak.at, zone) : "");
}

std::string heading(const SimulationReport& report) {
  std::string out = fmt::format("{} to {}, {}, seed {}: {} of {}", short_time(report.from, report.zone),
                                short_time(report.until, report.zone), report.zone.name(), report.seed,
                                count_of(report.runs, "run"), count_of(report.schedules.size(), "schedule"));
  if (!report.stopped.empty()) out += fmt::format("\nStopped early: {}", report.stopped);
  out += fmt::format("\n{} done, {} failed, {} cancelled, {}; {} missed, {} skipped\n", grouped(report.done),
                     grouped(report.failed), grouped(report.cancelled),
                     report.retries == 1 ? "1 retry" : grouped(report.retries) + " retries", grouped(report.missed),
                     grouped(report.skipped));
  return out;
}

std::string timeline(const SimulationReport& report) {
  const Columns fires = sums(report.fires, kColumns);
  std::string out = fmt::format("\nRuns begun, in columns of {}, by the clocks of {}\n",
                                short_duration(report.step * static_cast<int>(fires.steps)), report.zone.name());
  out += chart(fires) + axis(report, fires.values.size());
  out += "\nWaiting in queues, at most\n";
  std::size_t shown = 0;
  for (const QueueFindings& queue : report.queues) {
    if (queue.put == 0 || shown++ >= kLinesShown) continue;
    const Columns depth = highest(queue.depth, kColumns);
    out += fmt::format("  {}: {}, {} waiting at the end\n", one_line(queue.name, kNameShown), verdict(queue, report),
                       grouped(static_cast<std::uint64_t>(queue.waiting)));
    out += fmt::format("  {:>9} ┤{}\n  {:>9} └{}\n", grouped(static_cast<std::uint64_t>(queue.most_waiting)),
                       sparkline(depth), 0, base_line(depth));
  }
  return out + more(shown, kLinesShown, "queue");
}

std::string tables(const SimulationReport& report) {
  Table schedules(
      {"SCHEDULE", "RUNS", "MISSED", "SKIPPED", "FAILED", "FIRST", "LAST", "NEXT", "ZONE", "LATE P50", "P99", "MOST"});
  for (std::size_t i = 0; i < std::min(report.schedules.size(), kRowsShown); ++i) {
    const ScheduleFindings& found = report.schedules[i];
    schedules.add({one_line(found.name, kNameShown), fmt::to_string(found.runs), fmt::to_string(found.missed),
                   fmt::to_string(found.skipped), fmt::to_string(found.failed), optional_time(found.first, found.zone),
                   optional_time(found.last, found.zone), optional_time(found.next, found.zone), found.zone.name(),
                   short_duration(found.lateness.percentile(0.5)), short_duration(found.lateness.percentile(0.99)),
                   short_duration(found.lateness.max())});
  }
  std::string out = "\n" + schedules.text() + more(report.schedules.size(), kRowsShown, "schedule");
  Table queues({"QUEUE", "WORKERS", "JOBS", "RUNNING", "BUSY", "WAITING", "REFUSED", "LATE P50", "P99", "MOST", ""});
  for (const QueueFindings& found : report.queues) {
    const double busy = found.workers == 0 ? 0 : found.mean_running / static_cast<double>(found.workers);
    queues.add({one_line(found.name, kNameShown), fmt::to_string(found.workers), fmt::to_string(found.put),
                fmt::to_string(found.most_running), fmt::format("{:.0f}%", busy * 100),
                fmt::to_string(found.most_waiting), fmt::to_string(found.refused),
                short_duration(found.lateness.percentile(0.5)), short_duration(found.lateness.percentile(0.99)),
                short_duration(found.lateness.max()), verdict(found, report)});
  }
  out += "\n" + queues.text();
  out += fmt::format("\nPeaks, by the clocks of {}\n", report.zone.name());
  out += peak_line("runs at once", report.at_once, report.zone);
  out += peak_line("begun in one second", report.in_a_second, report.zone);
  out += peak_line("begun in one minute", report.in_a_minute, report.zone);
  return out + peak_line("begun in one hour", report.in_an_hour, report.zone);
}

std::string findings(const SimulationReport& report) {
  std::string out, lines;
  std::size_t count = 0;
  for (const ScheduleFindings& schedule : report.schedules) {
    if (schedule.runs > 0 || count++ >= kLinesShown) continue;
    lines += fmt::format("  {}: {}\n", one_line(schedule.name, kNameShown), printable(schedule.why));
  }
  if (count > 0) out += "\nNever run\n" + lines + more(count, kLinesShown, "schedule");
  if (!report.collisions.empty()) {
    out += fmt::format("\nTogether in one second, {} in all\n", count_of(report.seconds_shared, "time"));
    for (std::size_t i = 0; i < std::min(report.collisions.size(), kLinesShown); ++i) {
      const Collision& collision = report.collisions[i];
      out += fmt::format("  {:>9}  {}, first at {}\n", grouped(collision.seconds),
                         printable(names_of(collision, report, 4)), short_time(collision.first, report.zone));
    }
  }
  if (!report.daylight.empty()) out += "\nDaylight saving\n";
  for (std::size_t i = 0; i < std::min(report.daylight.size(), kRowsShown); ++i) {
    const DaylightSurprise& surprise = report.daylight[i];
    out += fmt::format("  {}, {}: {}, {}\n", surprise.zone.name(),
                       short_time(surprise.change, surprise.zone).substr(0, 10),
                       one_line(surprise.schedule, kNameShown), sentence(surprise));
  }
  out += more(report.daylight.size(), kRowsShown, "time");
  if (!report.assumed.empty()) {
    out += fmt::format("\nThe file does not say how long the jobs of {} take; they took a second here.\n",
                       report.assumed.size() == 1 ? one_line(report.assumed.front(), kNameShown)
                                                  : count_of(report.assumed.size(), "schedule"));
  }
  return out;
}

}  // namespace

std::string text_report(const SimulationReport& report) {
  return heading(report) + timeline(report) + tables(report) + findings(report);
}

}  // namespace argiope

// The report as one HTML file, made of what all such reports have in common (base/internal/html_report.hpp).
#include "base/internal/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "argiope/time/time_zone.hpp"
#include "base/internal/xml.hpp"
#include "simulate/internal/wording.hpp"

namespace argiope {
namespace {

constexpr std::size_t kQueuesPlotted = 12;
constexpr std::size_t kStripsShown = 60;
constexpr std::size_t kRowsShown = 1000;
constexpr std::size_t kListShown = 200;

// The labels under a time line.
PlotLabels times_under(const SimulationReport& report, const PlotCanvas& canvas) {
  const Duration span = report.until - report.from;
  return [&report, &canvas, span](int tick) {
    return axis_label(report.from + span / canvas.ticks * tick, span, report.zone);
  };
}

// Shares of the time line at which a column begins and ends.
std::pair<double, double> share_of(std::size_t column, std::size_t steps_each, std::size_t steps) {
  const auto at = [&](std::size_t step) {
    return static_cast<double>(std::min(step, steps)) / static_cast<double>(std::max<std::size_t>(steps, 1));
  };
  return {at(column * steps_each), at((column + 1) * steps_each)};
}

std::vector<PlotColumn> columns_of(const SimulationReport& report, const Columns& columns, bool with_titles) {
  std::vector<PlotColumn> out;
  for (std::size_t i = 0; i < columns.values.size(); ++i) {
    const auto [begin, end] = share_of(i, columns.steps, report.fires.size());
    PlotColumn& column = out.emplace_back(begin, end, columns.values[i]);
    if (!with_titles || column.value == 0) continue;
    column.title =
        fmt::format("{}: {}", short_time(report.from + report.step * static_cast<int>(i * columns.steps), report.zone),
                    grouped(static_cast<std::uint64_t>(column.value)));
  }
  return out;
}

std::string bars(const SimulationReport& report, const PlotCanvas& canvas, std::string_view label) {
  return plot_bars(canvas, label, columns_of(report, sums(report.fires, canvas.columns), true),
                   times_under(report, canvas));
}

std::string area(const SimulationReport& report, const PlotCanvas& canvas, const std::vector<Level>& levels,
                 bool is_bad, std::string_view label) {
  return plot_area(canvas, label, columns_of(report, highest(levels, canvas.columns), false),
                   times_under(report, canvas), is_bad);
}

// One row a schedule, the darker the more runs.
std::string strips(const SimulationReport& report, const PlotCanvas& canvas) {
  constexpr double kRow = 16;
  const double names = canvas.names;
  const std::size_t rows = std::min(report.schedules.size(), kStripsShown);
  const double height = kPlotTop + kRow * static_cast<double>(rows) + kPlotBottom;
  const auto x = [&](double share) { return names + (canvas.width - names - kPlotRight) * share; };
  std::string inside;
  for (std::size_t row = 0; row < rows; ++row) {
    const ScheduleFindings& schedule = report.schedules[row];
    const double y = kPlotTop + kRow * static_cast<double>(row);
    const std::string name = xml_escaped(shortened(schedule.name, canvas.name_letters));
    inside +=
        fmt::format(R"(<text class="name" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", names - 8, y + 12, name);
    const std::uint32_t most = schedule.fires.empty() ? 0 : std::ranges::max(schedule.fires);
    for (std::size_t i = 0; i < schedule.fires.size(); ++i) {
      if (schedule.fires[i] == 0) continue;
      const auto [begin, end] = share_of(i, report.strip_steps, report.fires.size());
      inside += fmt::format(
          R"(<rect class="cell" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}" )"
          R"(fill-opacity="{:.2f}"><title>{}: {}</title></rect>)",
          x(begin), y + 2, std::max(x(end) - x(begin) - 0.3, 1.0), kRow - 4, 0.25 + 0.75 * schedule.fires[i] / most,
          xml_escaped(short_time(report.from + report.step * static_cast<int>(i * report.strip_steps), report.zone)),
          grouped(schedule.fires[i]));
    }
  }
  inside += plot_axis(canvas, names, height, times_under(report, canvas));
  return plot_svg(canvas, height, "Runs of each schedule over time", inside);
}

std::string peak_tile(const Peak& peak, std::string_view what, const TimeZone& zone) {
  return html_tile(grouped(peak.most), fmt::format("{}{}", what, peak.at ? ", " + short_time(*peak.at, zone) : ""));
}

std::string time_cell(const std::optional<WallTime>& time, const TimeZone& zone) {
  return time ? xml_escaped(short_time(*time, zone)) : "–";
}

HtmlCell late(Duration span) { return {xml_escaped(short_duration(span)), true}; }

std::string trigger_text(const ScheduleFindings& schedule) {
  return schedule.zone == TimeZone() ? schedule.trigger
                                     : fmt::format("{} ({})", schedule.trigger, schedule.zone.name());
}

std::string schedules_table(const SimulationReport& report) {
  HtmlTable table({{"Schedule"},
                   {"Trigger"},
                   {"Queue"},
                   {"Runs", true},
                   {"Missed", true},
                   {"Skipped", true},
                   {"Failed", true},
                   {"Retries", true},
                   {"At once", true},
                   {"First"},
                   {"Last"},
                   {"Next"},
                   {"Late p50", true},
                   {"Late p99", true},
                   {"Late at most", true}});
  for (std::size_t i = 0; i < std::min(report.schedules.size(), kRowsShown); ++i) {
    const ScheduleFindings& found = report.schedules[i];
    table.add({{xml_escaped(found.name)},
               {xml_escaped(trigger_text(found))},
               {xml_escaped(found.queue)},
               html_number(found.runs),
               html_number(found.missed, true),
               html_number(found.skipped, true),
               html_number(found.failed, true),
               html_number(found.retries),
               html_number(static_cast<std::uint64_t>(found.most_running)),
               {time_cell(found.first, found.zone)},
               {time_cell(found.last, found.zone)},
               {time_cell(found.next, found.zone)},
               late(found.lateness.percentile(0.5)),
               late(found.lateness.percentile(0.99)),
               late(found.lateness.max())});
  }
  std::string out = "<h2>Schedules</h2>" + table.html();
  if (report.schedules.size() > kRowsShown) {
    out += fmt::format(R"(<p class="dim">And {} more; --json has all of them.</p>)",
                       grouped(report.schedules.size() - kRowsShown));
  }
  return out;
}

std::string queues_section(const SimulationReport& report) {
  HtmlTable table({{"Queue"},
                   {"Workers", true},
                   {"Jobs", true},
                   {"Done", true},
                   {"Failed", true},
                   {"Retries", true},
                   {"Running at most", true},
                   {"Busy", true},
                   {"Waiting at most", true},
                   {"At the end", true},
                   {"Refused", true},
                   {"Late p50", true},
                   {"Late p99", true},
                   {"Late at most", true},
                   {"In short"}});
  for (const QueueFindings& found : report.queues) {
    const bool is_bad = found.trend == Trend::piles_up || found.trend == Trend::not_worked;
    const double busy = found.workers == 0 ? 0 : found.mean_running / static_cast<double>(found.workers);
    table.add({{xml_escaped(found.name)},
               html_number(found.workers),
               html_number(found.put),
               html_number(found.done),
               html_number(found.failed, true),
               html_number(found.retries),
               html_number(static_cast<std::uint64_t>(found.most_running)),
               {fmt::format("{:.0f}%", busy * 100), true},
               html_number(static_cast<std::uint64_t>(found.most_waiting)),
               html_number(static_cast<std::uint64_t>(found.waiting)),
               html_number(found.refused, true),
               late(found.lateness.percentile(0.5)),
               late(found.lateness.percentile(0.99)),
               late(found.lateness.max()),
               {fmt::format(R"(<span class="{}">{}</span>)", is_bad ? "warn" : "good",
                            xml_escaped(verdict(found, report)))}});
  }
  std::string out = "<h2>Queues</h2>" + table.html();
  std::vector<const QueueFindings*> plotted;
  for (const QueueFindings& found : report.queues) {
    if (found.most_waiting > 0) plotted.push_back(&found);
  }
  std::ranges::sort(plotted, [](const QueueFindings* a, const QueueFindings* b) {
    return a->most_waiting != b->most_waiting ? a->most_waiting > b->most_waiting : a->name < b->name;
  });
  if (plotted.size() > kQueuesPlotted) plotted.resize(kQueuesPlotted);
  for (const QueueFindings* found : plotted) {
    const bool is_bad = found->trend == Trend::piles_up || found->trend == Trend::not_worked;
    out += fmt::format(R"(<h3>Waiting in {}<span class="dim">, {}</span></h3>)", xml_escaped(found->name),
                       xml_escaped(verdict(*found, report)));
    out += on_each_canvas([&](const PlotCanvas& canvas) {
      return area(report, canvas, found->depth, is_bad, "Jobs that wait in " + found->name);
    });
  }
  return out;
}

std::string list_end(std::size_t all) {
  return all <= kListShown ? "" : fmt::format(R"(<p class="dim">And {} more.</p>)", grouped(all - kListShown));
}

std::string never_section(const SimulationReport& report) {
  HtmlTable table({{"Schedule"}, {"Trigger"}, {"Why"}});
  std::size_t count = 0;
  for (const ScheduleFindings& found : report.schedules) {
    if (found.runs > 0 || count++ >= kListShown) continue;
    table.add({{xml_escaped(found.name)}, {xml_escaped(trigger_text(found))}, {xml_escaped(found.why)}});
  }
  if (count == 0) return "";
  return "<h2>Never run</h2>" + table.html() + list_end(count);
}

std::string collisions_section(const SimulationReport& report) {
  if (report.collisions.empty()) return "";
  HtmlTable table({{"How often", true}, {"Schedules"}, {fmt::format("First ({})", xml_escaped(report.zone.name()))}});
  for (const Collision& collision : report.collisions) {
    table.add({html_number(collision.seconds),
               {xml_escaped(names_of(collision, report, 8))},
               {xml_escaped(short_time(collision.first, report.zone))}});
  }
  return fmt::format(R"(<h2>Together in one second</h2><p class="dim">In {} several schedules began a run.</p>)",
                     count_of(report.seconds_shared, "second")) +
         table.html();
}

std::string daylight_section(const SimulationReport& report) {
  if (report.daylight.empty()) return "";
  HtmlTable table({{"Zone"}, {"Change"}, {"Schedule"}, {"What"}});
  for (std::size_t i = 0; i < std::min(report.daylight.size(), kListShown); ++i) {
    const DaylightSurprise& found = report.daylight[i];
    table.add({{xml_escaped(found.zone.name())},
               {xml_escaped(format_timestamp(found.change, found.zone))},
               {xml_escaped(found.schedule)},
               {xml_escaped(sentence(found))}});
  }
  return "<h2>Daylight saving</h2>" + table.html() + list_end(report.daylight.size());
}

}  // namespace

std::string html_report(const SimulationReport& report, const std::string& title) {
  const TimeZone& zone = report.zone;
  std::string out = fmt::format(R"(<h1>{}</h1><p class="dim">Simulated from {} to {} ({}), seed {}.</p>)",
                                xml_escaped(title), xml_escaped(short_time(report.from, zone)),
                                xml_escaped(short_time(report.until, zone)), xml_escaped(zone.name()), report.seed);
  if (!report.stopped.empty())
    out += fmt::format(R"(<p class="warn">Stopped early: {}.</p>)", xml_escaped(report.stopped));
  std::size_t never = 0, piles = 0;
  for (const ScheduleFindings& found : report.schedules) never += found.runs == 0;
  for (const QueueFindings& found : report.queues) {
    piles += found.trend == Trend::piles_up || found.trend == Trend::not_worked;
  }
  out += R"(<div class="tiles">)";
  out += html_tile(grouped(report.runs), fmt::format("runs of {}", count_of(report.schedules.size(), "schedule")));
  out += html_tile(grouped(report.failed), "failed for good", report.failed > 0);
  out += html_tile(grouped(report.retries), "retries");
  out += html_tile(grouped(report.missed), "times missed", report.missed > 0);
  out += html_tile(grouped(report.skipped), "times skipped", report.skipped > 0);
  out += html_tile(grouped(never), "schedules never run", never > 0);
  out += html_tile(grouped(piles), "queues pile up", piles > 0);
  out += R"(</div><div class="tiles">)";
  out += peak_tile(report.at_once, "runs at once", zone) + peak_tile(report.in_a_second, "begun in a second", zone) +
         peak_tile(report.in_a_minute, "begun in a minute", zone) +
         peak_tile(report.in_an_hour, "begun in an hour", zone);
  out += "</div>";
  out += fmt::format(R"(<p class="dim">Times on the plots are those of {}.</p>)", xml_escaped(zone.name()));
  out += "<h2>Runs begun</h2>" + on_each_canvas([&](const PlotCanvas& canvas) {
           const Columns fires = sums(report.fires, canvas.columns);
           return fmt::format(R"(<p class="dim {}">Each column is {}.</p>)", canvas.name,
                              short_duration(report.step * static_cast<int>(fires.steps))) +
                  bars(report, canvas, "Runs begun over time");
         });
  out += "<h2>Running at once</h2>" + on_each_canvas([&](const PlotCanvas& canvas) {
           return area(report, canvas, report.running, false, "Runs under way over time");
         });
  out += "<h2>What runs when</h2>" + on_each_canvas([&](const PlotCanvas& canvas) { return strips(report, canvas); });
  if (report.schedules.size() > kStripsShown) {
    out += fmt::format(R"(<p class="dim">The first {} schedules.</p>)", kStripsShown);
  }
  out += queues_section(report) + schedules_table(report) + never_section(report) + collisions_section(report) +
         daylight_section(report);
  if (!report.assumed.empty()) {
    out += fmt::format(
        R"(<p class="dim">The file does not say how long the jobs of {} take; they took a second here.</p>)",
        count_of(report.assumed.size(), "schedule"));
  }
  return html_document(title + ": simulated", out);
}

}  // namespace argiope

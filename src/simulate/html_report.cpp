// The report as one HTML file: no scripts, nothing from anywhere else; plots are SVG drawn here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "argiope/time/timestamp.hpp"
#include "base/internal/utf8.hpp"
#include "simulate/internal/wording.hpp"

namespace argiope {
namespace {

constexpr double kRight = 16, kTop = 10, kBottom = 26;
// Each plot is drawn twice, and the window's width says which one is shown: letters do not shrink with a plot.
struct Canvas {
  const char* name;
  double width;
  double left;  // where the time line begins
  int ticks;    // of the time line
  std::size_t columns;
  double names;  // room for names of schedules
  std::size_t name_letters;
};
constexpr Canvas kCanvases[] = {{"wide", 960, 64, 6, 360, 190, 26}, {"narrow", 340, 52, 2, 120, 104, 14}};
constexpr std::size_t kQueuesPlotted = 12;
constexpr std::size_t kStripsShown = 60;
constexpr std::size_t kRowsShown = 1000;
constexpr std::size_t kListShown = 200;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--bg:#fbfbf9;--fg:#1f2328;--dim:#5d6670;--line:#d9dce0;--card:#fff;--a:#2f6fb2;--b:#b8860b;
--warn:#b23b2e;--good:#2d7d46}
@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e4e7ea;--dim:#98a2ad;--line:#333a42;--card:#1c2026;--a:#6aa9e8;
--b:#e0b04a;--warn:#f08a7b;--good:#74c48c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:24px 20px 60px;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;margin:36px 0 10px}h3{font-size:15px;margin:18px 0 4px}
h2,h3,p{overflow-wrap:anywhere}p{margin:6px 0}.dim{color:var(--dim)}.warn{color:var(--warn)}.good{color:var(--good)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:10px;margin:18px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.tile b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.tile span{color:var(--dim);font-size:13px}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:4px 6px;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
th,td.n{overflow-wrap:normal}td.n{white-space:nowrap}
tr:last-child td{border-bottom:0}th{color:var(--dim);font-weight:600;vertical-align:bottom}td.n,th.n{text-align:right}
.narrow{display:none}
@media(max-width:760px){body{padding:16px 10px 40px}h1{font-size:21px}.wide{display:none}.narrow{display:block}
.scroll{background:none;border:0}table,tbody,tr,td{display:block}tr:has(th){display:none}
tr{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:6px 10px;margin:0 0 8px}
td,td.n{display:grid;grid-template-columns:9em 1fr;gap:8px;text-align:left;border:0;padding:1px 0;white-space:normal}
td::before{content:attr(data-label);color:var(--dim)}td:first-child{font-weight:600}}
svg{display:block;width:100%;height:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
svg text{fill:var(--dim);font:11px system-ui,"Segoe UI",Roboto,sans-serif}.grid{stroke:var(--line);stroke-width:1}
.bar{fill:var(--a)}.bar:hover,.cell:hover{fill:var(--b)}.area{fill:var(--a);fill-opacity:.25;stroke:var(--a);
stroke-width:1.5;stroke-linejoin:round}.area.bad{fill:var(--warn);stroke:var(--warn)}.cell{fill:var(--a)}svg .name{fill:var(--fg)}
@media print{body{max-width:none}})";

std::string escaped(std::string_view text) {
  std::string out;
  for (const std::string valid = to_valid_utf8(text); const char c : valid) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

// The next round number from which a scale may go down in four parts.
double round_up(double most) {
  double unit = 1;
  while (unit * 10 < most) unit *= 10;
  for (const double factor : {1.0, 2.0, 4.0, 6.0, 8.0, 10.0}) {
    if (unit * factor >= most) return std::max(unit * factor, 1.0);
  }
  return most;
}

struct Plot {
  double height;
  double most;
  double y(double value) const { return height - kBottom - (height - kBottom - kTop) * value / most; }
};

double x_of(const Canvas& canvas, double share) { return canvas.left + (canvas.width - canvas.left - kRight) * share; }

std::string time_axis(const SimulationReport& report, const Canvas& canvas, double left, double height) {
  const Duration span = report.until - report.from;
  std::string out;
  for (int i = 0; i <= canvas.ticks; ++i) {
    const WallTime at = report.from + span / canvas.ticks * i;
    const double x = left + (canvas.width - left - kRight) * i / canvas.ticks;
    const char* anchor = i == 0 ? "start" : i == canvas.ticks ? "end" : "middle";
    out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, height - 8, anchor,
                       escaped(axis_label(at, span, report.zone)));
  }
  return out;
}

std::string grid(const Canvas& canvas, const Plot& plot) {
  std::string out;
  const int parts = plot.most >= 4 ? 4 : static_cast<int>(plot.most);
  for (int i = 0; i <= parts; ++i) {
    const double value = plot.most * i / parts;
    out += fmt::format(
        R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)"
        R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
        canvas.left, canvas.width - kRight, plot.y(value), canvas.left - 8, plot.y(value) + 4,
        value == std::floor(value) ? grouped(static_cast<std::uint64_t>(value)) : fmt::format("{:.1f}", value));
  }
  return out;
}

std::string svg(const Canvas& canvas, double height, std::string_view label, std::string_view inside) {
  return fmt::format(R"(<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>)", canvas.name,
                     canvas.width, height, escaped(label), inside);
}

// Shares of the time line at which a column begins and ends.
std::pair<double, double> share_of(std::size_t column, std::size_t steps_each, std::size_t steps) {
  const auto at = [&](std::size_t step) {
    return static_cast<double>(std::min(step, steps)) / static_cast<double>(std::max<std::size_t>(steps, 1));
  };
  return {at(column * steps_each), at((column + 1) * steps_each)};
}

std::string bars(const SimulationReport& report, const Canvas& canvas, std::string_view label) {
  const Columns columns = sums(report.fires, canvas.columns);
  const Plot plot{220, round_up(columns.most)};
  std::string inside = grid(canvas, plot) + time_axis(report, canvas, canvas.left, plot.height);
  for (std::size_t i = 0; i < columns.values.size(); ++i) {
    if (columns.values[i] == 0) continue;
    const auto [begin, end] = share_of(i, columns.steps, report.fires.size());
    const double x = x_of(canvas, begin), y = plot.y(columns.values[i]);
    const double height = std::max(plot.height - kBottom - y, 1.0);
    inside += fmt::format(
        R"(<rect class="bar" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"><title>{}: {}</title></rect>)", x,
        plot.height - kBottom - height, std::max(x_of(canvas, end) - x - 0.4, 0.6), height,
        escaped(short_time(report.from + report.step * static_cast<int>(i * columns.steps), report.zone)),
        grouped(static_cast<std::uint64_t>(columns.values[i])));
  }
  return svg(canvas, plot.height, label, inside);
}

std::string area(const SimulationReport& report, const Canvas& canvas, const std::vector<Level>& levels, bool is_bad,
                 std::string_view label) {
  constexpr double height = 150;
  const Columns columns = highest(levels, canvas.columns);
  const Plot plot{height, round_up(columns.most)};
  std::string path = fmt::format("M{:.1f} {:.1f}", x_of(canvas, 0), plot.y(0));
  double last = x_of(canvas, 0);
  for (std::size_t i = 0; i < columns.values.size(); ++i) {
    const auto [begin, end] = share_of(i, columns.steps, report.fires.size());
    path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", x_of(canvas, begin), plot.y(columns.values[i]),
                        x_of(canvas, end), plot.y(columns.values[i]));
    last = x_of(canvas, end);
  }
  path += fmt::format("L{:.1f} {:.1f}Z", last, plot.y(0));
  return svg(canvas, height, label,
             grid(canvas, plot) + time_axis(report, canvas, canvas.left, height) +
                 fmt::format(R"(<path class="area{}" d="{}"/>)", is_bad ? " bad" : "", path));
}

// One row a schedule, the darker the more runs.
std::string strips(const SimulationReport& report, const Canvas& canvas) {
  constexpr double kRow = 16;
  const double names = canvas.names;
  const std::size_t rows = std::min(report.schedules.size(), kStripsShown);
  const double height = kTop + kRow * static_cast<double>(rows) + kBottom;
  const auto x = [&](double share) { return names + (canvas.width - names - kRight) * share; };
  std::string inside;
  for (std::size_t row = 0; row < rows; ++row) {
    const ScheduleFindings& schedule = report.schedules[row];
    const double y = kTop + kRow * static_cast<double>(row);
    const std::string name = escaped(shortened(schedule.name, canvas.name_letters));
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
          escaped(short_time(report.from + report.step * static_cast<int>(i * report.strip_steps), report.zone)),
          grouped(schedule.fires[i]));
    }
  }
  inside += time_axis(report, canvas, names, height);
  return svg(canvas, height, "Runs of each schedule over time", inside);
}

template <class Draw>
std::string on_each_canvas(Draw draw) {
  std::string out;
  for (const Canvas& canvas : kCanvases) out += draw(canvas);
  return out;
}

std::string tile(std::string_view value, std::string_view what, bool is_bad = false) {
  return fmt::format(R"(<div class="tile"><b{}>{}</b><span>{}</span></div>)", is_bad ? R"( class="warn")" : "",
                     escaped(value), escaped(what));
}

std::string peak_tile(const Peak& peak, std::string_view what, const TimeZone& zone) {
  return tile(grouped(peak.most), fmt::format("{}{}", what, peak.at ? ", " + short_time(*peak.at, zone) : ""));
}

std::string time_cell(const std::optional<WallTime>& time, const TimeZone& zone) {
  return time ? escaped(short_time(*time, zone)) : "–";
}

struct Cell {
  std::string html;
  bool number = false;
};
// Each cell names its column, for windows too narrow for columns.
class HtmlTable {
 public:
  explicit HtmlTable(std::initializer_list<Cell> columns) {
    out_ = R"(<div class="scroll"><table><tr>)";
    for (const Cell& column : columns) {
      out_ += fmt::format("<th{}>{}</th>", column.number ? R"( class="n")" : "", column.html);
      labels_.push_back(column.html);
    }
    out_ += "</tr>\n";
  }
  void add(std::initializer_list<Cell> cells) {
    out_ += "<tr>";
    std::size_t at = 0;
    for (const Cell& cell : cells) {
      out_ += fmt::format(R"(<td{} data-label="{}">{}</td>)", cell.number ? R"( class="n")" : "", labels_.at(at++),
                          cell.html);
    }
    out_ += "</tr>\n";
  }
  std::string html() const { return out_ + "</table></div>"; }

 private:
  std::string out_;
  std::vector<std::string> labels_;
};
Cell number(std::uint64_t value, bool warn_if_any = false) {
  return {warn_if_any && value > 0 ? fmt::format(R"(<span class="warn">{}</span>)", grouped(value)) : grouped(value),
          true};
}
Cell late(Duration span) { return {escaped(short_duration(span)), true}; }

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
    table.add({{escaped(found.name)},
               {escaped(trigger_text(found))},
               {escaped(found.queue)},
               number(found.runs),
               number(found.missed, true),
               number(found.skipped, true),
               number(found.failed, true),
               number(found.retries),
               number(static_cast<std::uint64_t>(found.most_running)),
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
    table.add(
        {{escaped(found.name)},
         number(found.workers),
         number(found.put),
         number(found.done),
         number(found.failed, true),
         number(found.retries),
         number(static_cast<std::uint64_t>(found.most_running)),
         {fmt::format("{:.0f}%", busy * 100), true},
         number(static_cast<std::uint64_t>(found.most_waiting)),
         number(static_cast<std::uint64_t>(found.waiting)),
         number(found.refused, true),
         late(found.lateness.percentile(0.5)),
         late(found.lateness.percentile(0.99)),
         late(found.lateness.max()),
         {fmt::format(R"(<span class="{}">{}</span>)", is_bad ? "warn" : "good", escaped(verdict(found, report)))}});
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
    out += fmt::format(R"(<h3>Waiting in {}<span class="dim">, {}</span></h3>)", escaped(found->name),
                       escaped(verdict(*found, report)));
    out += on_each_canvas([&](const Canvas& canvas) {
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
    table.add({{escaped(found.name)}, {escaped(trigger_text(found))}, {escaped(found.why)}});
  }
  if (count == 0) return "";
  return "<h2>Never run</h2>" + table.html() + list_end(count);
}

std::string collisions_section(const SimulationReport& report) {
  if (report.collisions.empty()) return "";
  HtmlTable table({{"How often", true}, {"Schedules"}, {fmt::format("First ({})", escaped(report.zone.name()))}});
  for (const Collision& collision : report.collisions) {
    table.add({number(collision.seconds),
               {escaped(names_of(collision, report, 8))},
               {escaped(short_time(collision.first, report.zone))}});
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
    table.add({{escaped(found.zone.name())},
               {escaped(format_timestamp(found.change, found.zone))},
               {escaped(found.schedule)},
               {escaped(sentence(found))}});
  }
  return "<h2>Daylight saving</h2>" + table.html() + list_end(report.daylight.size());
}

}  // namespace

std::string html_report(const SimulationReport& report, const std::string& title) {
  const TimeZone& zone = report.zone;
  std::string out = fmt::format(
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{0}: simulated</title>)"
      R"(<meta name="viewport" content="width=device-width, initial-scale=1"><style>{1}</style></head><body>)"
      R"(<h1>{0}</h1><p class="dim">Simulated from {2} to {3} ({4}), seed {5}.</p>)",
      escaped(title), kStyle, escaped(short_time(report.from, zone)), escaped(short_time(report.until, zone)),
      escaped(zone.name()), report.seed);
  if (!report.stopped.empty()) out += fmt::format(R"(<p class="warn">Stopped early: {}.</p>)", escaped(report.stopped));
  std::size_t never = 0, piles = 0;
  for (const ScheduleFindings& found : report.schedules) never += found.runs == 0;
  for (const QueueFindings& found : report.queues) {
    piles += found.trend == Trend::piles_up || found.trend == Trend::not_worked;
  }
  out += R"(<div class="tiles">)";
  out += tile(grouped(report.runs), fmt::format("runs of {}", count_of(report.schedules.size(), "schedule")));
  out += tile(grouped(report.failed), "failed for good", report.failed > 0);
  out += tile(grouped(report.retries), "retries");
  out += tile(grouped(report.missed), "times missed", report.missed > 0);
  out += tile(grouped(report.skipped), "times skipped", report.skipped > 0);
  out += tile(grouped(never), "schedules never run", never > 0);
  out += tile(grouped(piles), "queues pile up", piles > 0);
  out += R"(</div><div class="tiles">)";
  out += peak_tile(report.at_once, "runs at once", zone) + peak_tile(report.in_a_second, "begun in a second", zone) +
         peak_tile(report.in_a_minute, "begun in a minute", zone) +
         peak_tile(report.in_an_hour, "begun in an hour", zone);
  out += "</div>";
  out += fmt::format(R"(<p class="dim">Times on the plots are those of {}.</p>)", escaped(zone.name()));
  out += "<h2>Runs begun</h2>" + on_each_canvas([&](const Canvas& canvas) {
           const Columns fires = sums(report.fires, canvas.columns);
           return fmt::format(R"(<p class="dim {}">Each column is {}.</p>)", canvas.name,
                              short_duration(report.step * static_cast<int>(fires.steps))) +
                  bars(report, canvas, "Runs begun over time");
         });
  out += "<h2>Running at once</h2>" + on_each_canvas([&](const Canvas& canvas) {
           return area(report, canvas, report.running, false, "Runs under way over time");
         });
  out += "<h2>What runs when</h2>" + on_each_canvas([&](const Canvas& canvas) { return strips(report, canvas); });
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
  return out + "</body></html>\n";
}

}  // namespace argiope

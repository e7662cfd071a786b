#include "base/internal/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/internal/wording.hpp"
#include "base/internal/xml.hpp"

namespace argiope {
namespace {

constexpr double kBarsHeight = 220, kAreaHeight = 150;

constexpr std::string_view kStyle = R"(
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
svg.share{height:10px;min-width:80px;border:0;border-radius:2px;background:var(--line);margin-top:5px}
svg text{fill:var(--dim);font:11px system-ui,"Segoe UI",Roboto,sans-serif}.grid{stroke:var(--line);stroke-width:1}
.bar{fill:var(--a)}.bar:hover,.cell:hover{fill:var(--b)}.area{fill:var(--a);fill-opacity:.25;stroke:var(--a);
stroke-width:1.5;stroke-linejoin:round}.area.bad{fill:var(--warn);stroke:var(--warn)}.cell{fill:var(--a)}svg .name{fill:var(--fg)}
a{color:var(--a)}a:visited{color:inherit}.url{overflow-wrap:anywhere}
details{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:6px 10px;margin:6px 0}
details .scroll{border:0}summary{cursor:pointer;overflow-wrap:anywhere}summary b{font-variant-numeric:tabular-nums}
.places{margin:4px 0 2px;padding-left:18px;font-size:13px}.places li{overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:4px 14px;margin:10px 0}
@media print{body{max-width:none}})";
// SHA-256 of kStyle in base64; a test says what it should be when the style has changed.
constexpr std::string_view kStyleDigest = "1hCf8GpytIV7bLoizs8MSmCuOiGYzFqmF7VERXhrwTA=";

// The next round number from which a scale may go down in four parts.
double round_up(double most) {
  double unit = 1;
  while (unit * 10 < most) unit *= 10;
  for (const double factor : {1.0, 2.0, 4.0, 6.0, 8.0, 10.0}) {
    if (unit * factor >= most) return std::max(unit * factor, 1.0);
  }
  return most;
}

struct PlotScale {
  double height;
  double most;
  double y(double value) const { return height - kPlotBottom - (height - kPlotBottom - kPlotTop) * value / most; }
};

PlotScale scale_of(double height, const std::vector<PlotColumn>& columns) {
  double most = 0;
  for (const PlotColumn& column : columns) most = std::max(most, column.value);
  return {height, round_up(most)};
}

std::string plot_grid(const PlotCanvas& canvas, const PlotScale& scale) {
  std::string out;
  const int parts = scale.most >= 4 ? 4 : static_cast<int>(scale.most);
  for (int i = 0; i <= parts; ++i) {
    const double value = scale.most * i / parts;
    out += fmt::format(
        R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)"
        R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
        canvas.left, canvas.width - kPlotRight, scale.y(value), canvas.left - 8, scale.y(value) + 4,
        value == std::floor(value) ? grouped(static_cast<std::uint64_t>(value)) : fmt::format("{:.1f}", value));
  }
  return out;
}

}  // namespace

std::string_view html_report_style() noexcept { return kStyle; }

std::string html_document(std::string_view title, std::string_view body) {
  return fmt::format(
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{0}</title>)"
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{1}'; base-uri 'none'; )"
      R"(form-action 'none'"><meta name="referrer" content="no-referrer">)"
      R"(<meta name="viewport" content="width=device-width, initial-scale=1"><style>{2}</style></head><body>{3}</body></html>)"
      "\n",
      xml_escaped(title), kStyleDigest, kStyle, body);
}

std::string html_tile(std::string_view value, std::string_view what, bool is_bad) {
  return fmt::format(R"(<div class="tile"><b{}>{}</b><span>{}</span></div>)", is_bad ? R"( class="warn")" : "",
                     xml_escaped(value), xml_escaped(what));
}

HtmlCell html_number(std::uint64_t value, bool warn_if_any) {
  return {warn_if_any && value > 0 ? fmt::format(R"(<span class="warn">{}</span>)", grouped(value)) : grouped(value),
          true};
}

HtmlCell html_share(double share) {
  return {fmt::format(R"(<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">)"
                      R"(<rect class="bar" width="{:.1f}" height="8"/></svg>)",
                      100 * std::clamp(share, 0.0, 1.0))};
}

HtmlTable::HtmlTable(std::initializer_list<HtmlCell> columns, std::size_t open) : open_(open) {
  head_ = R"(<div class="scroll"><table><tr>)";
  for (const HtmlCell& column : columns) {
    head_ += fmt::format("<th{}>{}</th>", column.number ? R"( class="n")" : "", column.html);
    labels_.push_back(column.html);
  }
  head_ += "</tr>\n";
}

void HtmlTable::add(std::initializer_list<HtmlCell> cells) {
  std::string& out = rows_ < open_ ? shown_ : folded_;
  ++rows_;
  out += "<tr>";
  std::size_t at = 0;
  for (const HtmlCell& cell : cells) {
    out += fmt::format(R"(<td{} data-label="{}">{}</td>)", cell.number ? R"( class="n")" : "", labels_.at(at++),
                       cell.html);
  }
  out += "</tr>\n";
}

std::string HtmlTable::html() const {
  constexpr std::string_view kEnd = "</table></div>";
  std::string out = fmt::format("{}{}{}", head_, shown_, kEnd);
  if (!folded_.empty()) {
    out += fmt::format("<details><summary>{} more</summary>{}{}{}</details>", grouped(rows_ - open_), head_, folded_,
                       kEnd);
  }
  return out;
}

double plot_x(const PlotCanvas& canvas, double share) {
  return canvas.left + (canvas.width - canvas.left - kPlotRight) * share;
}

std::string plot_axis(const PlotCanvas& canvas, double left, double height, const PlotLabels& labels) {
  std::string out;
  for (int i = 0; i <= canvas.ticks; ++i) {
    const double x = left + (canvas.width - left - kPlotRight) * i / canvas.ticks;
    const char* anchor = i == 0 ? "start" : i == canvas.ticks ? "end" : "middle";
    out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, height - 8, anchor,
                       xml_escaped(labels(i)));
  }
  return out;
}

std::string plot_svg(const PlotCanvas& canvas, double height, std::string_view label, std::string_view inside) {
  return fmt::format(R"(<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>)", canvas.name,
                     canvas.width, height, xml_escaped(label), inside);
}

std::string plot_bars(const PlotCanvas& canvas, std::string_view label, const std::vector<PlotColumn>& columns,
                      const PlotLabels& labels) {
  const PlotScale scale = scale_of(kBarsHeight, columns);
  std::string inside = plot_grid(canvas, scale) + plot_axis(canvas, canvas.left, scale.height, labels);
  for (const PlotColumn& column : columns) {
    if (column.value == 0) continue;
    const double x = plot_x(canvas, column.begin), y = scale.y(column.value);
    const double height = std::max(scale.height - kPlotBottom - y, 1.0);
    inside += fmt::format(
        R"(<rect class="bar" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"><title>{}</title></rect>)", x,
        scale.height - kPlotBottom - height, std::max(plot_x(canvas, column.end) - x - 0.4, 0.6), height,
        xml_escaped(column.title));
  }
  return plot_svg(canvas, scale.height, label, inside);
}

std::string plot_area(const PlotCanvas& canvas, std::string_view label, const std::vector<PlotColumn>& columns,
                      const PlotLabels& labels, bool is_bad) {
  const PlotScale scale = scale_of(kAreaHeight, columns);
  std::string path = fmt::format("M{:.1f} {:.1f}", plot_x(canvas, 0), scale.y(0));
  double last = plot_x(canvas, 0);
  for (const PlotColumn& column : columns) {
    last = plot_x(canvas, column.end);
    path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", plot_x(canvas, column.begin), scale.y(column.value), last,
                        scale.y(column.value));
  }
  path += fmt::format("L{:.1f} {:.1f}Z", last, scale.y(0));
  return plot_svg(canvas, scale.height, label,
                  plot_grid(canvas, scale) + plot_axis(canvas, canvas.left, scale.height, labels) +
                      fmt::format(R"(<path class="area{}" d="{}"/>)", is_bad ? " bad" : "", path));
}

}  // namespace argiope

// The common part of the reports in HTML: one file that needs no other, without scripts, good on a phone, on paper and
// in the dark; its tables, tiles and plots. Each report decides for itself what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace argiope {

// The whole file, with `title` in its head and `body` behind that. Nothing in it may ask for anything: its
// Content-Security-Policy allows its style, by digest, and nothing else.
std::string html_document(std::string_view title, std::string_view body);
// The style of all of them: what html_document() has the digest of.
std::string_view html_report_style() noexcept;

// A number and what it is, in a box; `is_bad`: in the colour of warnings. Text is escaped.
std::string html_tile(std::string_view value, std::string_view what, bool is_bad = false);

struct HtmlCell {
  std::string html;
  bool number = false;
};
// `value` with separators; in the colour of warnings if it is more than 0 and `warn_if_any`.
HtmlCell html_number(std::uint64_t value, bool warn_if_any = false);

// A bar for a cell: so much of its width, from 0 to 1.
HtmlCell html_share(double share);

// Each cell names its column, for windows too narrow for columns. Rows beyond the first `open` are folded.
class HtmlTable {
 public:
  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  explicit HtmlTable(std::initializer_list<HtmlCell> columns, std::size_t open = kAll);
  // As many as there are columns.
  void add(std::initializer_list<HtmlCell> cells);
  std::size_t rows() const noexcept { return rows_; }
  std::string html() const;

 private:
  std::string head_;
  std::string shown_, folded_;  // rows
  std::vector<std::string> labels_;
  std::size_t open_;
  std::size_t rows_ = 0;
};

// Each plot is drawn twice, and the window's width says which one is shown: letters do not shrink with a plot.
struct PlotCanvas {
  const char* name;
  double width;
  double left;  // where the axis begins
  int ticks;    // of a time line
  std::size_t columns;
  double names;  // room for names of rows
  std::size_t name_letters;
};
inline constexpr PlotCanvas kPlotCanvases[] = {{"wide", 960, 64, 6, 360, 190, 26},
                                               {"narrow", 340, 52, 2, 120, 104, 14}};
inline constexpr double kPlotRight = 16, kPlotTop = 10, kPlotBottom = 26;

template <class Draw>
std::string on_each_canvas(Draw draw) {
  std::string out;
  for (const PlotCanvas& canvas : kPlotCanvases) out += draw(canvas);
  return out;
}

// One column of a plot: from where to where, as shares of the axis, and how high.
struct PlotColumn {
  double begin = 0;
  double end = 0;
  double value = 0;
  std::string title = {};  // shown under the pointer; not of areas
};
// The text under the axis at tick `i` of `canvas.ticks`.
using PlotLabels = std::function<std::string(int tick)>;

double plot_x(const PlotCanvas& canvas, double share);
// The labels of an axis that begins at `left`.
std::string plot_axis(const PlotCanvas& canvas, double left, double height, const PlotLabels& labels);
std::string plot_svg(const PlotCanvas& canvas, double height, std::string_view label, std::string_view inside);
// `label` is for who does not see it.
std::string plot_bars(const PlotCanvas& canvas, std::string_view label, const std::vector<PlotColumn>& columns,
                      const PlotLabels& labels);
std::string plot_area(const PlotCanvas& canvas, std::string_view label, const std::vector<PlotColumn>& columns,
                      const PlotLabels& labels, bool is_bad = false);

}  // namespace argiope

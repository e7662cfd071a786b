#include "cli/crawl/progress.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"
#include "cli/human.hpp"
#include "cli/live_line.hpp"

namespace argiope {
namespace {

// How much the newest interval counts in the rate shown.
constexpr double kSmoothing = 0.3;
// Rests of hosts up to this long are usual and not told.
constexpr Duration kShortRest = std::chrono::seconds{3};

std::size_t terminal_width(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::FILE* out, bool color)
    : out_(out), terminal_(::isatty(::fileno(out)) == 1), color_(color || terminal_) {}

void Progress::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fputs("\r\x1b[2K", out_);
  std::fflush(out_);
}

std::string Progress::line(const CrawlStats& stats, double pages_per_second, double seconds, TimePoint now) const {
  const char* bold = color_ ? "\x1b[1m" : "";
  const char* red = color_ && stats.errors > 0 ? "\x1b[31m" : "";
  const char* plain = color_ ? "\x1b[0m" : "";
  std::string waits;
  // A host that holds up the run.
  if (stats.hosts_waiting > 0 && stats.resting_until - now > kShortRest) {
    waits += fmt::format(", {} for {}", printable(stats.resting_site), format_roughly(stats.resting_until - now));
  }
  // The URL that a crawl that goes on waits for.
  const Duration until_due = stats.next_due == kNever ? Duration{} : stats.next_due - now;
  if (stats.kept_fresh > 0) waits += fmt::format("  {} kept fresh", stats.kept_fresh);
  if (stats.kept_fresh > 0 && stats.in_flight == 0 && until_due > Duration{})
    waits += fmt::format(", next in {}", format_roughly(until_due));
  return fmt::format("{}{}{} pages  {:.0f}/s  {} queued  {} in flight  {}{} errors{}  {} of {} hosts waiting{}  {}  {}",
                     bold, stats.pages, plain, pages_per_second, stats.queued, stats.in_flight, red, stats.errors,
                     plain, stats.hosts_waiting, stats.hosts, waits, human_bytes(static_cast<double>(stats.bytes)),
                     human_duration(seconds));
}

Coro<void> Progress::run(const Crawler& crawler) {
  EventLoop& loop = EventLoop::current();
  const TimePoint start = loop.time();
  TimePoint last = start;
  std::uint64_t last_pages = 0;
  double rate = 0;
  for (bool first = true;; first = false) {
    co_await sleep(terminal_ ? kLiveInterval : kPlainInterval);
    const CrawlStats stats = crawler.stats();
    const TimePoint now = loop.time();
    const double newest = static_cast<double>(stats.pages - last_pages) / std::max(to_seconds(now - last), 1e-3);
    rate = first ? newest : rate + kSmoothing * (newest - rate);
    last = now;
    last_pages = stats.pages;
    const std::string text = line(stats, rate, to_seconds(now - start), now);
    if (terminal_) {
      // A line longer than the terminal would not be rewritten but scroll.
      std::string cut = text;
      const std::size_t invisible = color_ ? 12 : 0;
      if (const std::size_t width = terminal_width(out_) + invisible; cut.size() > width) cut.resize(width);
      fmt::print(out_, "\r\x1b[2K{}{}", cut, color_ ? "\x1b[0m" : "");
      std::fflush(out_);
      shown_ = true;
    } else if (color_) {
      fmt::print(out_, "{}\n", text);  // a log line would show its colours as text
    } else {
      spdlog::info("{}", text);
    }
  }
}

}  // namespace argiope

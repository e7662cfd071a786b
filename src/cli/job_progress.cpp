#include "cli/job_progress.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "argiope/async/sleep.hpp"
#include "cli/progress.hpp"

namespace argiope {
namespace {

constexpr Duration kLiveInterval = std::chrono::milliseconds{200};
constexpr Duration kPlainInterval = std::chrono::seconds{10};

}  // namespace

JobProgress::JobProgress(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) == 1) {}

void JobProgress::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fputs("\r\x1b[2K", out_);
  std::fflush(out_);
}

Coro<void> JobProgress::run(Broker& broker, const Worker& worker, const WorkCounts& counts) {
  EventLoop& loop = EventLoop::current();
  const TimePoint start = loop.time();
  TimePoint last = start;
  std::uint64_t last_done = 0;
  for (;;) {
    co_await sleep(terminal_ ? kLiveInterval : kPlainInterval);
    const TimePoint now = loop.time();
    const double rate =
        static_cast<double>(counts.done - last_done) / std::max(to_seconds(now - last), 1e-3);
    last = now;
    last_done = counts.done;
    std::string line = fmt::format("{} done  {:.0f}/s  {} running  {} failed  {} buried  {} in memory  {}", counts.done,
                                   rate, worker.counts().running, counts.retried, counts.buried, broker.in_memory(),
                                   human_duration(to_seconds(now - start)));
    if (!terminal_) {
      spdlog::info("{}", line);
      continue;
    }
    // A line longer than the terminal would not be rewritten but scroll.
    winsize size{};
    const bool known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    if (const std::size_t width = known ? size.ws_col : 80; line.size() > width) line.resize(width);
    fmt::print(out_, "\r\x1b[2K{}", line);
    std::fflush(out_);
    shown_ = true;
  }
}

}  // namespace argiope

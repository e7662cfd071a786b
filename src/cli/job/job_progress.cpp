#include "cli/job/job_progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "cli/human.hpp"

namespace argiope {
Coro<void> JobProgress::run(const Worker& worker, const WorkCounts& counts, std::function<std::string()> more) {
  EventLoop& loop = EventLoop::current();
  const TimePoint start = loop.time();
  TimePoint last = start;
  std::uint64_t last_done = 0;
  for (;;) {
    co_await sleep(line_.interval());
    const TimePoint now = loop.time();
    const double rate = static_cast<double>(counts.done - last_done) / std::max(to_seconds(now - last), 1e-3);
    last = now;
    last_done = counts.done;
    line_.show(fmt::format("{} done  {:.0f}/s  {} running  {} failed  {} buried  {}{}", counts.done, rate,
                           worker.counts().running, counts.retried, counts.buried, more(),
                           human_duration(to_seconds(now - start))));
  }
}

}  // namespace argiope

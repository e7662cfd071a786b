#include "serve/history.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"

namespace argiope {

namespace {

constexpr std::size_t kFinePerCoarse = History::kCoarse.step / History::kFine.step;

std::uint32_t as_small(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
}

void add(QueueTally& to, const QueueTally& more) {
  for (std::size_t i = 0; i < to.totals.size(); ++i) to.totals[i] += more.totals[i];
  to.waits.add(more.waits);
}

// The bound below which 95 % of what came between the two lies.
float p95_between(const SpanHistogram& before, const SpanHistogram& after) {
  const std::uint64_t count = after.count() - before.count();
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < SpanHistogram::kBounds.size(); ++i) {
    below += after.counts[i] - before.counts[i];
    if (20 * below >= 19 * count) return static_cast<float>(count == 0 ? 0 : SpanHistogram::kBounds[i]);
  }
  return static_cast<float>(SpanHistogram::kBounds.back());
}

// The last steps of one length.
class Steps {
 public:
  void end_step(std::size_t most, WallTime at, const QueueTally& now, const StateCounts& counts) {
    HistoryPoint point{.at = at, .ready = as_small(counts.ready), .running = as_small(counts.running)};
    for (std::size_t i = 0; i < now.totals.size(); ++i) point.counts[i] = as_small(now.totals[i] - before_.totals[i]);
    const std::uint64_t waits = now.waits.count() - before_.waits.count();
    if (waits > 0)
      point.wait_mean_s = static_cast<float>((now.waits.sum - before_.waits.sum) / static_cast<double>(waits));
    point.wait_p95_s = p95_between(before_.waits, now.waits);
    before_ = now;
    points_.push_back(point);
    if (points_.size() > most) points_.pop_front();
  }
  const std::deque<HistoryPoint>& points() const noexcept { return points_; }

 private:
  std::deque<HistoryPoint> points_;
  QueueTally before_;  // when the last one ended
};

struct Line {
  Steps fine, coarse;
};

}  // namespace

struct History::State : std::enable_shared_from_this<History::State> {
  State(Engine& its_engine, EventFeed& its_events)
      : engine(its_engine),
        events(its_events),
        loop(EventLoop::current()),
        background(loop, "history"),
        ticker(loop, [this] { tick(); }) {
    ticker.at(saturating_add(loop.time(), kFine.step));
  }

  void tick() {
    ticker.at(saturating_add(loop.time(), kFine.step));
    background.run(shared_from_this(), count());
  }
  Coro<void> count() {
    // Where the store cannot be asked, how many are ready is what it was.
    (void)co_await events.count(kFine.step / 2);
    if (is_stopped) co_return;
    const bool ends_coarse = ++steps % kFinePerCoarse == 0;
    const WallTime now = engine.calendar_now();
    std::map<std::string_view, StateCounts> counts;
    StateCounts all_counts;
    events.snapshot().for_each_queue([&](std::string_view name, const StateCounts& its) {
      counts.emplace(name, its);
      all_counts.ready += its.ready;
      all_counts.running += its.running;
    });
    QueueTally all;
    events.tally().for_each_queue([&](std::string_view name, const QueueTally& its) {
      argiope::add(all, its);
      const auto found = counts.find(name);
      if (Line* line = line_of(name))
        end_step(*line, ends_coarse, now, its, found == counts.end() ? StateCounts{} : found->second);
    });
    end_step(whole, ends_coarse, now, all, all_counts);
  }
  static void end_step(Line& line, bool ends_coarse, WallTime at, const QueueTally& tally, const StateCounts& counts) {
    line.fine.end_step(kFine.points, at, tally, counts);
    if (ends_coarse) line.coarse.end_step(kCoarse.points, at, tally, counts);
  }
  Line* line_of(std::string_view name) {
    const auto found = lines.find(name);
    if (found != lines.end()) return &found->second;
    return lines.size() >= kMostQueues ? nullptr : &lines[std::string(name)];
  }

  Engine& engine;
  EventFeed& events;
  EventLoop& loop;
  std::map<std::string, Line, std::less<>> lines;
  Line whole;
  std::uint64_t steps = 0;
  bool is_stopped = false;
  Background background;
  Ticker ticker;
};

History::History(Engine& engine, EventFeed& events) : state_(std::make_shared<State>(engine, events)) {}
History::~History() { stop(); }

void History::stop() {
  state_->is_stopped = true;
  state_->ticker.stop();
}

const std::deque<HistoryPoint>* History::points(std::string_view queue, bool is_fine) const {
  const Line* line = &state_->whole;
  if (!queue.empty()) {
    const auto found = state_->lines.find(queue);
    if (found == state_->lines.end()) return nullptr;
    line = &found->second;
  }
  return is_fine ? &line->fine.points() : &line->coarse.points();
}

}  // namespace argiope

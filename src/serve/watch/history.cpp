#include "serve/watch/history.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "argiope/async/threads.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/set_while.hpp"
#include "serve/base/line_file.hpp"
#include "serve/watch/history_lines.hpp"

namespace argiope {

namespace {

constexpr std::size_t kStepsPerWrite = 6;
constexpr std::size_t kMostStalePoints = 10'000;
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
  // No tally: nothing has happened since the last step.
  void end_step(const History::Resolution& of, WallTime at, const QueueTally* tally, const StateCounts& counts) {
    const QueueTally& now = tally == nullptr ? before_ : *tally;
    HistoryPoint point{.at = at, .ready = as_small(counts.ready), .running = as_small(counts.running)};
    for (std::size_t i = 0; i < now.totals.size(); ++i)
      point.counts[i] = as_small(now.totals[i] - before_.totals[i] + carried_[i]);
    const std::uint64_t waits = now.waits.count() - before_.waits.count();
    if (waits > 0)
      point.wait_mean_s = static_cast<float>((now.waits.sum - before_.waits.sum) / static_cast<double>(waits));
    point.wait_p95_s = p95_between(before_.waits, now.waits);
    before_ = now;
    carried_ = {};
    points_.push_back(point);
    forget(of, at);
  }
  // Takes over the counts of the process before: points in their order, and what has come since the last of them.
  void restore(const HistoryPoint& point) { points_.push_back(point); }
  void carry(const HistoryPoint& point) {
    for (std::size_t i = 0; i < carried_.size(); ++i) carried_[i] += point.counts[i];
  }
  void forget(const History::Resolution& of, WallTime now) {
    const WallTime first = now - static_cast<Duration::rep>(of.points) * of.step;
    while (points_.size() > of.points || (!points_.empty() && points_.front().at <= first)) points_.pop_front();
  }
  const std::deque<HistoryPoint>& points() const noexcept { return points_; }

 private:
  std::deque<HistoryPoint> points_;
  PerTallied<std::uint64_t> carried_{};
  QueueTally before_;  // when the last one ended
};

struct Line {
  Steps fine, coarse;
  std::uint64_t counted_at = 0;  // the last step that had a tally of it
};

}  // namespace

struct History::State : std::enable_shared_from_this<History::State> {
  State(Engine& its_engine, EventFeed& its_events, std::string its_file)
      : engine(its_engine),
        events(its_events),
        path(std::move(its_file)),
        file(path),
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
    const auto counts_of = [&](std::string_view name) {
      const auto found = counts.find(name);
      return found == counts.end() ? StateCounts{} : found->second;
    };
    QueueTally all;
    events.tally().for_each_queue([&](std::string_view name, const QueueTally& its) {
      argiope::add(all, its);
      Line* const line = line_of(name);
      if (line == nullptr) return;
      line->counted_at = steps;
      end_step(name, *line, ends_coarse, now, &its, counts_of(name));
    });
    // Of queues that the process before knew, and of which this one has heard nothing yet.
    for (auto at = lines.begin(); at != lines.end();) {
      auto& [name, line] = *at;
      const bool is_counted = line.counted_at == steps;
      if (!is_counted) end_step(name, line, ends_coarse, now, nullptr, counts_of(name));
      at = !is_counted && ends_coarse && is_idle(line) ? lines.erase(at) : std::next(at);
    }
    end_step({}, whole, ends_coarse, now, &all, all_counts);
    if (steps % kStepsPerWrite == 0) co_await write();
  }
  void end_step(std::string_view name, Line& line, bool ends_coarse, WallTime at, const QueueTally* tally,
                const StateCounts& counts) {
    line.fine.end_step(kFine, at, tally, counts);
    note(name, true, line.fine.points().back());
    if (!ends_coarse) return;
    line.coarse.end_step(kCoarse, at, tally, counts);
    note(name, false, line.coarse.points().back());
  }

  // --- the file
  // Where nothing happened there is no line, but of the whole: its lines say when there would have been others.
  void note(std::string_view name, bool is_fine, const HistoryPoint& point) {
    if (path.empty() || (!name.empty() && is_idle(point))) return;
    pending += to_line(name, is_fine, point);
    ++pending_lines;
  }
  static bool is_idle(const HistoryPoint& point) {
    return point.ready == 0 && point.running == 0 && point.counts == PerTallied<std::uint32_t>{};
  }
  static bool is_idle(const Line& line) {
    const auto idle = [](const HistoryPoint& point) { return is_idle(point); };
    return std::ranges::all_of(line.fine.points(), idle) && std::ranges::all_of(line.coarse.points(), idle);
  }
  std::string all_lines(std::size_t& count) const {
    std::string text;
    const auto add = [&](std::string_view name, bool is_fine, const Steps& from) {
      for (const HistoryPoint& point : from.points()) {
        if (!name.empty() && is_idle(point)) continue;
        text += to_line(name, is_fine, point);
        ++count;
      }
    };
    const auto add_both = [&](std::string_view name, const Line& line) {
      add(name, true, line.fine);
      add(name, false, line.coarse);
    };
    for (const auto& [name, line] : lines) add_both(name, line);
    add_both({}, whole);
    return text;
  }
  // The text to be written next, and whether it replaces what is there.
  struct Writing {
    bool anew = false;
    std::string text;
    std::size_t count = 0;
  };
  Writing take_pending() {
    Writing next{.anew = has_failed || lines_in_file > most_lines, .text = {}, .count = 0};
    next.text = next.anew ? all_lines(next.count) : std::exchange(pending, {});
    if (!next.anew) next.count = pending_lines;
    pending.clear();
    pending_lines = 0;
    return next;
  }
  Result<void> put(const Writing& next) { return next.anew ? file.replace(next.text) : file.append(next.text); }
  void note_written(const Writing& next, const Result<void>& done) {
    if (!done && !has_failed) spdlog::error("the history cannot be written: {}", done.error().message);
    has_failed = !done;
    if (!done) return;
    lines_in_file = next.anew ? next.count : lines_in_file + next.count;
    if (next.anew) most_lines = 2 * next.count + kMostStalePoints;
  }
  Coro<void> write() {
    if (path.empty() || is_writing) co_return;
    const SetWhile writing(is_writing);
    if (!thread) thread.emplace(1);
    const auto next = std::make_shared<const Writing>(take_pending());
    const Result<void> done = co_await run_in_executor(*thread, [this, next] { return put(*next); });
    note_written(*next, done);
  }
  void write_the_rest() {
    if (thread) thread->shutdown();
    if (path.empty() || (pending.empty() && !has_failed)) return;
    const Writing next = take_pending();
    note_written(next, put(next));
  }

  void open() {
    if (path.empty()) return;
    std::map<std::string, std::map<WallTime, HistoryPoint>, std::less<>> fine, coarse;
    std::size_t unreadable = 0;
    const auto opened = file.open([&](std::string_view line) {
      ++lines_in_file;
      auto found = read_history_line(line);
      if (!found) return void(++unreadable);
      (found->is_fine ? fine : coarse)[found->queue].insert_or_assign(found->point.at, found->point);
    });
    if (!opened) {
      spdlog::error("the history begins anew: {}", opened.error().message);
      has_failed = true;
      return;
    }
    if (unreadable > 0)
      spdlog::warn("{}: left out {} that no history has", printable(path), counted(unreadable, "line"));
    most_lines = kMostStalePoints;
    const WallTime now = engine.calendar_now();
    restore(fine, kFine, now, &Line::fine);
    restore(coarse, kCoarse, now, &Line::coarse);
    carry_over();
  }
  using Stored = std::map<std::string, std::map<WallTime, HistoryPoint>, std::less<>>;
  void restore(const Stored& stored, const Resolution& of, WallTime now, Steps Line::*steps_of) {
    const auto all = stored.find("");
    if (all == stored.end()) return;
    for (const auto& [name, points] : stored) {
      Line* const line = name.empty() ? &whole : line_of(name);
      if (line == nullptr) continue;
      Steps& into = line->*steps_of;
      for (auto at = all->second.lower_bound(points.begin()->first); at != all->second.end() && at->first <= now;
           ++at) {
        const auto its = points.find(at->first);
        into.restore(its == points.end() ? HistoryPoint{.at = at->first} : its->second);
      }
      into.forget(of, now);
    }
  }
  // The step of five minutes that was under way goes on.
  void carry_over() {
    const WallTime last = whole.coarse.points().empty() ? WallTime{} : whole.coarse.points().back().at;
    const auto carry = [&](Line& line) {
      for (const HistoryPoint& point : line.fine.points()) {
        if (point.at > last) line.coarse.carry(point);
      }
    };
    carry(whole);
    for (auto& [name, line] : lines) carry(line);
    const auto is_open = [&](const HistoryPoint& point) { return point.at > last; };
    steps = static_cast<std::uint64_t>(std::ranges::count_if(whole.fine.points(), is_open)) % kFinePerCoarse;
  }

  Line* line_of(std::string_view name) {
    const auto found = lines.find(name);
    if (found != lines.end()) return &found->second;
    return lines.size() >= kMostQueues ? nullptr : &lines[std::string(name)];
  }

  Engine& engine;
  EventFeed& events;
  const std::string path;
  LineFile file;  // of the thread, while that writes
  std::string pending;
  std::size_t pending_lines = 0, lines_in_file = 0, most_lines = kMostStalePoints;
  bool is_writing = false, has_failed = false;
  std::optional<ThreadPoolExecutor> thread;
  EventLoop& loop;
  std::map<std::string, Line, std::less<>> lines;
  Line whole;
  std::uint64_t steps = 0;
  bool is_stopped = false;
  Background background;
  Ticker ticker;
};

History::History(Engine& engine, EventFeed& events, std::string file)
    : state_(std::make_shared<State>(engine, events, std::move(file))) {}
History::~History() { stop(); }

void History::open() { state_->open(); }

void History::stop() {
  if (std::exchange(state_->is_stopped, true)) return;
  state_->ticker.stop();
  state_->write_the_rest();
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

// The work that all sinks have in common: reading the feed, trying again, and storing how far they have come.
#include "project/results/internal/result_sinks.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/engine/book.hpp"
#include "base/internal/printable.hpp"
#include "project/results/result_sink.hpp"

namespace argiope {
namespace {

// Values have up to 1 MiB, and what is read at a time is in memory before it is counted.
constexpr std::size_t kRowsAtATime = 32;
constexpr std::size_t kMostTroubleCharacters = 500;
// How often it is asked whether a flush has ended.
constexpr Duration kFlushInterval = std::chrono::milliseconds{2};

std::size_t feed_row_bytes(const FeedRow& row) noexcept {
  return row.page_name.size() + row.url.size() + row.rule.size() + row.part.size() + row.value.size() + sizeof(FeedRow);
}

// The fields of the rules that a sink is for, each once, in their order.
std::vector<std::string> columns_for(const ProjectDefinition& definition, const ProjectSink& sink) {
  std::vector<std::string> columns;
  for (const ProjectRule& rule : definition.rules) {
    if (!sink.rules.empty() && std::ranges::find(sink.rules, rule.extraction.name) == sink.rules.end()) continue;
    for (const FieldRule& field : rule.extraction.fields) {
      if (std::ranges::find(columns, field.name) == columns.end()) columns.push_back(field.name);
    }
  }
  return columns;
}

std::shared_ptr<ResultSink> make_sink(std::shared_ptr<SinkContext> context) {
  switch (context->sink.kind) {
    case ProjectSink::Kind::file: return make_file_sink(std::move(context));
    case ProjectSink::Kind::webhook: return make_webhook_sink(std::move(context));
    case ProjectSink::Kind::command: return make_command_sink(std::move(context));
    case ProjectSink::Kind::queue: return make_queue_sink(std::move(context));
    case ProjectSink::Kind::postgresql: break;
  }
  return make_postgresql_sink(std::move(context));
}

// A sink, and how far it has come.
struct SinkLane {
  SinkRow row;
  std::int64_t stored_cursor = 0;
  std::set<std::string> rules;
  std::shared_ptr<SinkContext> context;
  std::shared_ptr<ResultSink> sink;  // made when the place is known
  Event news{true};
  bool has_all = false;
  // Fewer after each trouble, so that one event that nobody takes keeps back only what is behind it.
  std::size_t most_rows = ResultSinks::kMostRows;
  Duration wait = ResultSinks::kFirstWait;
  Task<void> task;

  bool wants(const FeedRow& event) const { return rules.empty() || rules.contains(event.rule); }
};

struct FeedReading {
  SinkBatch batch;
  std::int64_t upto = 0;  // what is not in the batch up to here is not for this sink
};

}  // namespace

class ResultSinks::Impl : public std::enable_shared_from_this<ResultSinks::Impl> {
 public:
  Impl(EventLoop& loop, PageStore& store, std::function<void(SinkRow)> submit, ProjectId project,
       const ProjectDefinition& definition, const SinkMeans& means)
      : loop_(loop), store_(store), submit_(std::move(submit)), project_(project) {
    for (const ProjectSink& sink : definition.sinks) {
      SinkLane& lane = *lanes_.emplace_back(std::make_unique<SinkLane>());
      lane.row.project = project;
      lane.row.name = sink.name;
      lane.rules.insert(sink.rules.begin(), sink.rules.end());
      lane.context = std::make_shared<SinkContext>(SinkContext{
          .project = definition.name, .sink = sink, .columns = columns_for(definition, sink), .means = means});
      lane.context->keep = [this, &lane](std::string place) { return keep(lane, std::move(place)); };
    }
  }

  Result<void> start() {
    auto stored = store_.sinks(project_);
    if (!stored) return std::unexpected(std::move(stored.error()));
    if (stopping_) return {};
    for (const auto& lane : lanes_) {
      const auto found = std::ranges::find(*stored, lane->row.name, &SinkRow::name);
      if (found != stored->end()) lane->row = *found;
      lane->stored_cursor = lane->row.cursor;
      lane->context->place = lane->row.place;
      lane->sink = make_sink(lane->context);
    }
    running_ = lanes_.size();
    for (const auto& lane : lanes_) {
      lane->task = loop_.create_task(watched(shared_from_this(), *lane), "gives results to a sink");
    }
    return {};
  }

  void wake() {
    for (const auto& lane : lanes_) lane->news.set();
  }

  Coro<void> stop(Duration grace) {
    const auto self = shared_from_this();
    ask_to_stop();
    try {
      co_await wait_for(all_ended(), grace);
    } catch (const TimeoutError&) {
      cancel();
    }
    co_await all_ended();
  }

  void ask_to_stop() {
    stopping_ = true;
    stop_asked_.set();
    wake();
  }
  void cancel() {
    for (const auto& lane : lanes_) {
      if (lane->task && !lane->task.done()) lane->task.cancel();
    }
  }

  std::vector<SinkRow> rows() const {
    std::vector<SinkRow> rows;
    for (const auto& lane : lanes_) rows.push_back(lane->row);
    return rows;
  }
  bool has_all() const {
    return std::ranges::all_of(lanes_, [](const auto& lane) { return lane->has_all && lane->row.trouble.empty(); });
  }

 private:
  static Coro<void> watched(std::shared_ptr<Impl> self, SinkLane& lane) {
    struct Count {
      Impl& impl;
      ~Count() {
        if (--impl.running_ == 0) impl.ended_.set();
      }
    } const count{*self};
    try {
      co_await self->run_on(lane);
    } catch (const CancelledError&) {
    }
  }

  // A sink's exception is trouble like any other: it is told, and tried again.
  Coro<void> run_on(SinkLane& lane) {
    for (std::string trouble; !stopping_;) {
      try {
        if (!trouble.empty()) co_await back_off(lane, {std::exchange(trouble, {})});
        co_await run(lane);
      } catch (const CancelledError&) {
        throw;
      } catch (const std::exception& error) {
        trouble = error.what();
      }
    }
  }

  Coro<void> run(SinkLane& lane) {
    while (!stopping_) {
      lane.news.clear();
      auto reading = read(lane);
      if (!reading) {
        co_await back_off(lane, {reading.error().message});
      } else if (!reading->batch.rows.empty()) {
        co_await deliver(lane, *std::move(reading));
      } else if (reading->upto > lane.row.cursor) {
        lane.row.cursor = reading->upto;
        if (lane.row.cursor - lane.stored_cursor >= static_cast<std::int64_t>(kMostRows)) store(lane);
        co_await yield_now();
      } else {
        lane.has_all = true;
        if (!lane.row.trouble.empty()) {
          lane.row.trouble.clear();
          store(lane);
        }
        co_await lane.news.wait();
      }
    }
    if (lane.row.cursor != lane.stored_cursor) store(lane);
  }

  Result<FeedReading> read(const SinkLane& lane) {
    if (auto failed = store_.failure()) return std::unexpected(*std::move(failed));
    FeedReading reading{.upto = lane.row.cursor};
    std::size_t bytes = 0;
    for (std::size_t seen = 0; seen < kMostRows;) {
      auto rows = store_.read_feed(project_, reading.upto, std::min(kRowsAtATime, kMostRows - seen));
      if (!rows) return std::unexpected(std::move(rows.error()));
      if (rows->empty()) break;
      for (FeedRow& row : *rows) {
        const bool is_wanted = lane.wants(row);
        if (is_wanted && !reading.batch.rows.empty() && bytes + feed_row_bytes(row) > kMostBytes) return reading;
        reading.upto = row.number;
        ++seen;
        if (!is_wanted) continue;
        bytes += feed_row_bytes(row);
        reading.batch.rows.push_back(std::move(row));
        if (reading.batch.rows.size() >= lane.most_rows) return reading;
      }
    }
    return reading;
  }

  Coro<void> deliver(SinkLane& lane, FeedReading reading) {
    lane.has_all = false;
    SinkResult<std::string> taken;
    try {
      taken = co_await lane.sink->deliver(reading.batch);
    } catch (const CancelledError&) {
      throw;
    } catch (const std::exception& exception) {
      taken = sink_trouble(exception.what());
    }
    if (!taken) {
      if (!taken.error().wait) lane.most_rows = std::max<std::size_t>(1, reading.batch.rows.size() / 2);
      reading = {};
      co_await back_off(lane, std::move(taken.error()));
      co_return;
    }
    lane.row.cursor = reading.upto;
    lane.row.place = std::move(*taken);
    lane.row.trouble.clear();
    lane.wait = kFirstWait;
    lane.most_rows = std::min(kMostRows, 2 * lane.most_rows);
    store(lane);
  }

  // The trouble is stored when it changes.
  Coro<void> back_off(SinkLane& lane, SinkTrouble trouble) {
    std::string text = printable(trouble.text, kMostTroubleCharacters);
    if (text.empty()) text = "it failed without a word";
    if (text != lane.row.trouble) {
      lane.row.trouble = std::move(text);
      store(lane);
    }
    Duration wait = lane.wait;
    if (trouble.wait) {
      wait = std::max(*trouble.wait, kFirstWait);
    } else {
      lane.wait = std::min(kLongestWait, 2 * lane.wait);
    }
    try {
      co_await wait_for(until_stop_is_asked(), wait);
    } catch (const TimeoutError&) {
    }
  }

  void store(SinkLane& lane) {
    lane.stored_cursor = lane.row.cursor;
    submit_(lane.row);
  }
  Coro<Result<void>> keep(SinkLane& lane, std::string place) {
    lane.row.place = std::move(place);
    store(lane);
    const std::uint64_t flush = store_.begin_flush();
    while (!store_.flushed(flush)) {
      if (auto failed = store_.failure()) co_return std::unexpected(*std::move(failed));
      co_await sleep(kFlushInterval);
    }
    if (auto failed = store_.failure()) co_return std::unexpected(*std::move(failed));
    co_return Result<void>{};
  }

  Coro<void> until_stop_is_asked() { co_await stop_asked_.wait(); }
  Coro<void> all_ended() {
    while (running_ > 0) {
      ended_.clear();
      co_await ended_.wait();
    }
  }

  EventLoop& loop_;
  PageStore& store_;
  const std::function<void(SinkRow)> submit_;
  const ProjectId project_;
  std::vector<std::unique_ptr<SinkLane>> lanes_;
  std::size_t running_ = 0;
  bool stopping_ = false;
  Event stop_asked_;
  Event ended_;
};

ResultSinks::ResultSinks(EventLoop& loop, PageStore& store, std::function<void(SinkRow)> submit, ProjectId project,
                         const ProjectDefinition& definition, SinkMeans means)
    : impl_(std::make_shared<Impl>(loop, store, std::move(submit), project, definition, means)) {}

ResultSinks::~ResultSinks() {
  impl_->ask_to_stop();
  impl_->cancel();
}

Result<void> ResultSinks::start() { return impl_->start(); }
void ResultSinks::wake() { impl_->wake(); }
Coro<void> ResultSinks::stop(Duration grace) { return impl_->stop(grace); }
std::vector<SinkRow> ResultSinks::rows() const { return impl_->rows(); }
bool ResultSinks::has_all() const { return impl_->has_all(); }

// --- jobs of queues --------------------------------------------------------------------------------------------------

namespace {

// As the store gets them. A name that a job of another queue has is refused, and does not count as known.
std::vector<NewJob> new_jobs(const std::vector<SinkJob>& jobs) {
  std::vector<NewJob> puts;
  puts.reserve(jobs.size());
  for (const SinkJob& job : jobs) {
    NewJob put{.name = job.name, .queue = job.queue, .payload = job.payload};
    const bool is_as_before = !puts.empty() && puts.back().queue == job.queue;
    put.within = is_as_before ? puts.back().within
                              : std::make_shared<const JobReach>(
                                    std::string(), [own = job.queue](std::string_view queue) { return queue == own; });
    puts.push_back(std::move(put));
  }
  return puts;
}

}  // namespace

Coro<Result<void>> BookJobPutter::put(std::vector<SinkJob> jobs) {
  auto done = co_await book_.put_all(new_jobs(jobs));
  if (!done && done.error().code == Errc::conflict && co_await or_return(rename_those_of_others(jobs))) {
    done = co_await book_.put_all(new_jobs(jobs));
  }
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Result<void>{};
}

Coro<Result<bool>> BookJobPutter::rename_those_of_others(std::vector<SinkJob>& jobs) {
  bool has_renamed = false;
  for (SinkJob& job : jobs) {
    const auto id = co_await book_.find(job.name);
    if (!id && id.error().code == Errc::not_found) continue;
    const auto there = co_await book_.get(co_await or_return(id));
    if (!there && there.error().code == Errc::not_found) continue;  // it has gone since
    if ((co_await or_return(there)).queue == job.queue) continue;
    std::string name =
        fmt::format("{}~{:016x}", job.name, chance_());  // nobody can have guessed it, and put a job under it
    spdlog::warn("queue {}: a job of another queue has the name {}: this event is put as {}", in_quotes(job.queue),
                 in_quotes(job.name), in_quotes(name));
    job.name = std::move(name);
    has_renamed = true;
  }
  co_return has_renamed;
}

}  // namespace argiope

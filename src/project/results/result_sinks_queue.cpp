// Sinks that put a job for each event.
#include <fmt/format.h>

#include <utility>

#include "base/internal/fingerprint.hpp"
#include "project/results/result_sink.hpp"

namespace argiope {
namespace {

// Names of jobs are bounded.
constexpr std::size_t kMostSinkBytes = 300;

class QueueSink final : public ResultSink {
 public:
  explicit QueueSink(std::shared_ptr<SinkContext> context) : context_(std::move(context)) {}

  Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) override {
    if (context_->means.jobs == nullptr) co_return sink_trouble("there is no store of jobs here");
    std::vector<SinkJob> jobs;
    for (const FeedRow& row : batch.rows) {
      SinkJob& job = jobs.emplace_back(SinkJob{.queue = context_->sink.target, .name = name_of(row)});
      append_event_json(job.payload, context_->project, row);
    }
    const auto put = co_await context_->means.jobs->put(std::move(jobs));
    if (!put) co_return sink_trouble(put.error());
    co_return SinkResult<std::string>{""};
  }

 private:
  // The time besides the number: a store of pages that was begun anew counts from 1 again.
  std::string name_of(const FeedRow& row) const {
    const auto at = std::chrono::floor<std::chrono::milliseconds>(row.at.time_since_epoch()).count();
    const std::string& sink = context_->sink.name;
    return fmt::format("{}/{}/{}@{}", context_->project, sink.size() > kMostSinkBytes ? content_digest(sink) : sink,
                       row.number, at);
  }

  const std::shared_ptr<SinkContext> context_;
};

}  // namespace

std::shared_ptr<ResultSink> make_queue_sink(std::shared_ptr<SinkContext> context) {
  return std::make_shared<QueueSink>(std::move(context));
}

}  // namespace argiope

#include "serve/internal/queue_targets.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "argiope/async/sleep.hpp"
#include "async/internal/as_error.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

namespace {

constexpr Duration kTryAgain = std::chrono::seconds{10};

}  // namespace

struct QueueTargets::Running {
  Running(Engine& engine, QueueTarget given, WorkerOptions options)
      : target(std::move(given)), worker(engine, std::move(options)) {
    worker.add_default(target.run);
  }

  QueueTarget target;
  Worker worker;
  Task<void> task;
  bool is_ending = false;
  std::string trouble;
};

QueueTargets::QueueTargets(Engine& engine, std::string worker_name, Duration drain_limit)
    : engine_(engine), worker_name_(std::move(worker_name)), drain_limit_(drain_limit) {}

QueueTargets::~QueueTargets() = default;

Coro<void> QueueTargets::work(std::shared_ptr<Running> running) {
  while (!running->is_ending) {
    const Result<void> ended = co_await as_error(running->worker.run());
    if (ended || running->is_ending) co_return;
    running->trouble = ended.error().message;
    spdlog::error("queue {}: its jobs wait, and are tried again in 10 s: {}", in_quotes(running->target.queue),
                  running->trouble);
    co_await sleep(kTryAgain);
    running->trouble.clear();
  }
}

void QueueTargets::set(std::vector<QueueTarget> targets) {
  std::erase_if(ending_, [](const auto& running) { return running->task.done(); });
  std::map<std::string, std::shared_ptr<Running>> now;
  for (QueueTarget& target : targets) {
    const auto found = running_.find(target.queue);
    if (found != running_.end() && found->second->target.made_from == target.made_from &&
        found->second->target.workers == target.workers) {
      now.insert(running_.extract(found));
      continue;
    }
    WorkerOptions options{
        .name = worker_name_, .queues = {target.queue}, .concurrency = target.workers, .drain_limit = drain_limit_};
    auto running = std::make_shared<Running>(engine_, std::move(target), std::move(options));
    running->task = EventLoop::current().create_task(work(running), "target of " + running->target.queue);
    now.emplace(running->target.queue, std::move(running));
  }
  for (auto& [queue, running] : running_) {
    running->is_ending = true;
    running->worker.stop(hurried_);
    ending_.push_back(std::move(running));
  }
  running_ = std::move(now);
}

Coro<void> QueueTargets::stop() {
  set({});
  for (const auto& running : std::vector(ending_)) {
    if (!running->trouble.empty()) running->task.cancel();  // it only waits to try again
    try {
      co_await running->task;
    } catch (const CancelledError&) {
      if (!running->task.cancelled()) throw;
    }
  }
}

void QueueTargets::hurry() {
  hurried_ = true;
  for (const auto& [queue, running] : running_) running->worker.stop(true);
  for (const auto& running : ending_) running->worker.stop(true);
}

std::vector<QueueTargets::Trouble> QueueTargets::troubles() const {
  std::vector<Trouble> found;
  for (const auto& [queue, running] : running_) {
    if (!running->trouble.empty()) found.push_back({queue, running->trouble});
  }
  return found;
}

}  // namespace argiope

#include "serve/internal/queue_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/printable.hpp"
#include "engine/internal/steady_worker.hpp"

namespace argiope {

struct QueueTargets::Running {
  Running(Engine& engine, QueueTarget given, WorkerOptions options)
      : target(std::move(given)),
        worker(std::make_shared<SteadyWorker>(std::make_unique<Worker>(engine, std::move(options)),
                                              fmt::format("queue {}", in_quotes(target.queue)))) {
    worker->add_default(target.run);
  }

  QueueTarget target;
  const std::shared_ptr<SteadyWorker> worker;
  Task<Result<void>> task;
};

QueueTargets::QueueTargets(Engine& engine, std::string worker_name, Duration drain_limit)
    : engine_(engine), worker_name_(std::move(worker_name)), drain_limit_(drain_limit) {}

QueueTargets::~QueueTargets() = default;

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
    running->task =
        EventLoop::current().create_task(SteadyWorker::run(running->worker), "target of " + running->target.queue);
    now.emplace(running->target.queue, std::move(running));
  }
  for (auto& [queue, running] : running_) {
    running->worker->stop(hurried_);
    ending_.push_back(std::move(running));
  }
  running_ = std::move(now);
}

Coro<void> QueueTargets::stop() {
  set({});
  for (const auto& running : std::vector(ending_)) {
    (void)co_await running->task;  // what ended it was told
  }
}

void QueueTargets::hurry() {
  hurried_ = true;
  for (const auto& [queue, running] : running_) running->worker->stop(true);
  for (const auto& running : ending_) running->worker->stop(true);
}

std::vector<QueueTargets::Trouble> QueueTargets::troubles() const {
  std::vector<Trouble> found;
  for (const auto& [queue, running] : running_) {
    if (const std::string& trouble = running->worker->trouble(); !trouble.empty()) found.push_back({queue, trouble});
  }
  return found;
}

}  // namespace argiope

// SteadyWorker: a worker that nobody watches. A failure that ends it (its program is gone, there are no descriptors) is
// told in the log at once, and after a while it tries again.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "argiope/async/sync.hpp"
#include "argiope/engine/worker.hpp"

namespace argiope {

// Threads: the loop's own.
class SteadyWorker {
 public:
  static constexpr Duration kTryAgain = std::chrono::seconds{10};

  // `name`: of it in the log, as the beginning of a sentence.
  SteadyWorker(std::unique_ptr<Worker> worker, std::string name) : worker_(std::move(worker)), name_(std::move(name)) {}

  // Until stop(), or the engine closes; to be called once.
  // Errors: what ended the worker last, where it was to be tried again when stop() came.
  static Coro<Result<void>> run(std::shared_ptr<SteadyWorker> self);
  // As Worker::stop().
  void stop(bool at_once);
  // Before run().
  void add_default(JobFunction function) { worker_->add_default(std::move(function)); }
  // Why it does not work now; empty where it does.
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  // False: stop() has come.
  Coro<bool> rest();

  const std::unique_ptr<Worker> worker_;
  const std::string name_;
  std::string trouble_;
  Event stopped_;
};

}  // namespace argiope

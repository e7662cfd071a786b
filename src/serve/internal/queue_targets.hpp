// QueueTargets: the queues whose jobs the daemon runs itself, as commands or as requests to a web server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/engine/worker.hpp"

namespace argiope {

struct QueueTarget {
  std::string queue;
  std::size_t workers = 16;  // jobs at once
  JobFunction run;
  // The text `run` was made from: a target that is set again with the same text and workers goes on as it is.
  std::string made_from;
};

// A target that cannot work (its program is gone, there are no descriptors) leaves its jobs alone, is told of in the
// log, and tries again after a while; the others go on.
//
// Lifetime: its engine outlives it; stop() it first.
// Threads:  the loop's own.
class QueueTargets {
 public:
  QueueTargets(Engine& engine, std::string worker_name, Duration drain_limit);
  ~QueueTargets();

  // From now on. Runs of targets that are not among them, or are others now, go on to their end within the drain limit.
  void set(std::vector<QueueTarget> targets);
  // Takes no more jobs. Suspends until what runs has ended, or was given back after the drain limit.
  Coro<void> stop();
  // For who stops: cancels what runs, so that a stop() that waits, or is to come, ends soon.
  void hurry();

  struct Trouble {
    std::string queue;
    std::string text;
  };
  // Of those that cannot work now.
  std::vector<Trouble> troubles() const;

 private:
  struct Running;

  Engine& engine_;
  const std::string worker_name_;
  const Duration drain_limit_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by queue
  std::vector<std::shared_ptr<Running>> ending_;
  bool hurried_ = false;
};

}  // namespace argiope

// Metrics: what /metrics answers, in Prometheus' text format. docs/monitoring.md names them all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/engine/engine.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/base/internal/daemon_projects.hpp"
#include "serve/gate/gate.hpp"
#include "serve/watch/event_feed.hpp"
#include "serve/watch/request_counts.hpp"
#include "serve/watch/watchdog.hpp"

namespace argiope {

struct MetricsSources {
  Engine& engine;
  EventFeed& events;
  const RequestCounts* requests = nullptr;
  const Gate* gate = nullptr;
  Watchdog* watchdog = nullptr;
  DaemonProjects* projects = nullptr;
  std::string version;
  WallTime started_at{};
};

// Series are bounded: the first kMostQueues queues that were seen have their own, the others are summed as
// queue="_other". The same of kMostProjects projects.
// Jobs are counted anew at most once a second.
//
// Lifetime: its sources outlive it.
// Threads:  the loop's own.
class Metrics {
 public:
  static constexpr std::size_t kMostQueues = 200;
  static constexpr std::size_t kMostProjects = 100;

  explicit Metrics(MetricsSources sources);
  ~Metrics();

  enum class Kind : std::uint8_t { counter, gauge };
  // A number of the daemon's that `read` gives when it is asked for; `label` is {name, value} or empty. Several of one
  // name differ in their labels; kind and help are the first one's.
  void add(Kind kind, std::string name, std::string help, std::pair<std::string, std::string> label,
           std::function<double()> read);

  // `may_see`: empty, or of whose queues and projects alone there is something: what is of none is left out then.
  // Suspends: to count, and while a thread of the loop's default executor writes the text.
  // Never fails: where the store cannot be counted, the states of jobs are left out and argiope_up is 0.
  Coro<ServerResponse> answer(MaySee may_see = {});

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace argiope

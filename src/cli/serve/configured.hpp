// Configured: brings an engine and its daemon to what a configuration says, and from one configuration to the next.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "argiope/engine/engine.hpp"
#include "argiope/web/http.hpp"
#include "config/internal/configuration.hpp"
#include "serve/internal/daemon.hpp"

namespace argiope {

// The queues whose jobs name commands or requests, and how many run at once: "default", and those whose workers the
// file counts. Where beanstalkd's protocol is spoken, "default" is the tube of its clients, and they run what is in it.
std::map<std::string, std::size_t> executors_of(const Configuration& configuration, bool speaks_beanstalkd);

// Lifetime: what it is given outlives it.
class Configured {
 public:
  // `private_too`: a transport for pushes that may go to private addresses. `speaks_beanstalkd`: the queue "default" is
  // the tube of beanstalkd's clients.
  Configured(Engine& engine, HttpTransport& transport, HttpTransport& private_too, bool speaks_beanstalkd)
      : engine_(engine), transport_(transport), private_too_(private_too), speaks_beanstalkd_(speaks_beanstalkd) {}

  // Queues get their policy, schedules are added or replaced (where one stands stays, unless its trigger is another),
  // and those that the configuration before named, and this one does not, are removed. Others stay as they are.
  // Errors: of the store, naming the queue or schedule. The changes until then stay, and all that either configuration
  //         names is locked, until put_back().
  Coro<Result<void>> apply(const Configuration& configuration);
  // After an apply() that has failed: to `before`, which was applied before that; what neither of them names is again
  // as it was, too. A queue that was made stays where jobs are in it. Errors: as above.
  Coro<Result<void>> put_back(const Configuration& before);
  // Those that this process runs, as commands or as requests; messages to who is told of trouble are among them.
  // Needs no apply(). Errors: of a command whose program cannot be run, naming its queue.
  Result<std::vector<QueueTarget>> targets(const Configuration& configuration) const;

  // On how many of its jobs this process works at once; nullopt: on none.
  std::optional<std::size_t> workers_of(std::string_view queue) const;
  bool names_queue(std::string_view name) const { return queues_.contains(name); }
  bool names_schedule(std::string_view name) const { return schedules_.contains(name); }
  // Where the configuration names it: `argiope.toml:4`; empty: it does not.
  std::string line_of_queue(std::string_view name) const { return line_of(queue_lines_, name); }
  std::string line_of_schedule(std::string_view name) const { return line_of(schedule_lines_, name); }

 private:
  Coro<Result<void>> set_queue(const ConfiguredQueue& queue);
  Coro<Result<void>> set_schedules(const std::vector<Schedule>& schedules);
  Coro<Result<void>> remove_schedule(const std::string& name);
  Coro<Result<void>> set_executors(std::map<std::string, std::size_t> wanted);
  Coro<Result<void>> add_executor(std::string name, std::size_t concurrency);

  // The queues and schedules that the last apply() has replaced or removed, as they were; nullopt: it has made it.
  struct Replaced {
    std::map<std::string, std::optional<QueueConfig>> queues;
    std::map<std::string, std::optional<Schedule>> schedules;
  };

  using Lines = std::map<std::string, std::string, std::less<>>;
  static std::string line_of(const Lines& lines, std::string_view name) {
    const auto found = lines.find(name);
    return found == lines.end() ? std::string() : found->second;
  }
  JobFunction target_of(const std::optional<CommandOptions>& command, const std::optional<HttpPush>& push) const;

  Engine& engine_;
  HttpTransport& transport_;
  HttpTransport& private_too_;
  const bool speaks_beanstalkd_;
  std::set<std::string, std::less<>> queues_, schedules_;
  Lines queue_lines_, schedule_lines_;
  Replaced replaced_;
  std::map<std::string, std::size_t, std::less<>> executors_;  // and how many jobs each runs at once
  std::map<std::string, std::size_t, std::less<>> targets_;    // the same
};

}  // namespace argiope

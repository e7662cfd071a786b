#include "cli/serve/configured.hpp"

#include <fmt/format.h>

#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "cli/owner.hpp"

namespace argiope {

namespace {

constexpr std::size_t kUsualConcurrency = 16;

std::unexpected<Error> naming(std::string_view what, std::string_view name, Error error) {
  error.message = fmt::format("{} {}: {}", what, in_quotes(name), error.message);
  return std::unexpected(std::move(error));
}

bool has_target(const ConfiguredQueue& queue) { return queue.command || queue.push; }

}  // namespace

std::map<std::string, std::size_t> executors_of(const Configuration& configuration, bool speaks_beanstalkd) {
  std::map<std::string, std::size_t> executors;
  if (!speaks_beanstalkd) executors.emplace(kScheduleExecutor, kUsualConcurrency);
  for (const ConfiguredQueue& queue : configuration.queues) {
    if (has_target(queue) || queue.workers == 0) {
      executors.erase(queue.name);
    } else if (queue.says_workers) {
      executors[queue.name] = queue.workers;
    }
  }
  return executors;
}

Coro<Result<void>> Configured::apply(const Configuration& configuration) {
  queues_.clear();
  queue_lines_.clear();
  schedule_lines_.clear();
  targets_.clear();
  replaced_ = {};
  for (const ConfiguredQueue& queue : configuration.queues) {
    queues_.insert(queue.name);
    queue_lines_.emplace(queue.name, queue.line);
    if (has_target(queue)) targets_.emplace(queue.name, queue.workers);
  }
  for (std::size_t i = 0; i < configuration.schedule_lines.size(); ++i) {
    schedule_lines_.emplace(configuration.schedules[i].name, configuration.schedule_lines[i]);
  }
  for (const ConfiguredQueue& queue : configuration.queues) co_await or_return(set_queue(queue));
  co_await or_return(set_executors(executors_of(configuration, speaks_beanstalkd_)));
  co_return co_await set_schedules(configuration.schedules);
}

Coro<Result<void>> Configured::set_queue(const ConfiguredQueue& queue) {
  const auto now = engine_.config(queue.name);
  if (now && to_json(*now) == to_json(queue.config)) co_return Result<void>{};
  replaced_.queues.emplace(queue.name, now ? std::optional(*now) : std::nullopt);
  auto set = co_await engine_.book().configure(queue.name, queue.config);
  if (!set) co_return naming("queue", queue.name, std::move(set.error()));
  co_return Result<void>{};
}

Coro<Result<void>> Configured::set_schedules(const std::vector<Schedule>& schedules) {
  ScheduleBook& book = engine_.book().schedules();
  std::set<std::string, std::less<>> wanted;
  for (const Schedule& schedule : schedules) wanted.insert(schedule.name);
  schedules_.insert(wanted.begin(), wanted.end());
  for (const Schedule& schedule : schedules) {
    auto status = co_await book.get(schedule.name);
    if (status && status->schedule == schedule) continue;
    if (status || status.error().code == Errc::not_found) {
      replaced_.schedules.emplace(schedule.name, status ? std::optional(status->schedule) : std::nullopt);
    }
    if (auto added = co_await book.add(schedule, ConflictPolicy::replace); !added) {
      co_return naming("schedule", schedule.name, std::move(added.error()));
    }
  }
  const std::set<std::string, std::less<>> named = schedules_;
  for (const std::string& name : named) {
    if (wanted.contains(name)) continue;
    if (auto status = co_await book.get(name)) replaced_.schedules.emplace(name, std::move(status->schedule));
    co_await or_return(remove_schedule(name));
  }
  schedules_ = std::move(wanted);
  co_return Result<void>{};
}

Coro<Result<void>> Configured::remove_schedule(const std::string& name) {
  auto removed = co_await engine_.book().schedules().remove(name);
  if (!removed && removed.error().code != Errc::not_found)
    co_return naming("schedule", name, std::move(removed.error()));
  co_return Result<void>{};
}

Coro<Result<void>> Configured::put_back(const Configuration& before) {
  const Replaced replaced = std::exchange(replaced_, {});
  for (const auto& [name, config] : replaced.queues) {
    if (config) {
      if (auto set = co_await engine_.book().configure(name, *config); !set)
        co_return naming("queue", name, set.error());
    } else {
      (void)co_await engine_.book().erase_queue(name);
    }
  }
  for (const auto& [name, schedule] : replaced.schedules) {
    if (!schedule) {
      co_await or_return(remove_schedule(name));
    } else if (auto added = co_await engine_.book().schedules().add(*schedule, ConflictPolicy::replace); !added) {
      co_return naming("schedule", name, std::move(added.error()));
    } else if (!schedule->paused) {
      (void)co_await engine_.book().schedules().resume(
          name);  // whatever stands in its place may be paused, which it would keep
    }
  }
  schedules_.clear();
  co_return co_await apply(before);
}

Coro<Result<void>> Configured::set_executors(std::map<std::string, std::size_t> wanted) {
  std::map<std::string, std::size_t, std::less<>> going;
  for (const auto& [name, concurrency] : std::exchange(executors_, {})) {
    const auto found = wanted.find(name);
    if (found != wanted.end() && found->second == concurrency) {
      going.emplace(name, concurrency);
    } else {
      co_await or_return(engine_.scheduler().remove_executor(name, false));
    }
  }
  executors_ = std::move(going);
  for (const auto& [name, concurrency] : wanted) {
    if (executors_.contains(name)) continue;
    co_await or_return(add_executor(name, concurrency));
    executors_.emplace(name, concurrency);
  }
  co_return Result<void>{};
}

Coro<Result<void>> Configured::add_executor(std::string name, std::size_t concurrency) {
  Scheduler& scheduler = engine_.scheduler();
  co_await or_return(scheduler.add_executor(name, {.concurrency = concurrency, .drain_limit = kDrain}));
  auto added = scheduler.add_function(name, std::string(kCommandFunction), as_command_call(scheduler, kGrace));
  if (added) added = scheduler.add_function(name, std::string(kHttpFunction), as_http_call(transport_));
  co_return added;
}

std::optional<std::size_t> Configured::workers_of(std::string_view queue) const {
  for (const auto* workers : {&executors_, &targets_}) {
    if (const auto found = workers->find(queue); found != workers->end()) return found->second;
  }
  return std::nullopt;
}

JobFunction Configured::target_of(const std::optional<CommandOptions>& command,
                                  const std::optional<HttpPush>& push) const {
  if (command) return as_command(*command);
  return as_http_push(push->allow_private ? private_too_ : transport_, *push);
}

Result<std::vector<QueueTarget>> Configured::targets(const Configuration& configuration) const {
  std::vector<QueueTarget> targets;
  std::string about;
  try {
    for (const ConfiguredQueue& queue : configuration.queues) {
      if (!has_target(queue) || queue.workers == 0) continue;
      about = fmt::format("queue {}", in_quotes(queue.name));
      targets.push_back({.queue = queue.name,
                         .workers = queue.workers,
                         .run = target_of(queue.command, queue.push),
                         .made_from = queue.target_text});
    }
    for (const NotifyRule& rule : configuration.notify) {
      about = fmt::format("notify {}", in_quotes(rule.name));
      targets.push_back({.queue = rule.queue(),
                         .workers = 1,
                         .run = target_of(rule.command, rule.push),
                         .made_from = rule.target_text});
    }
  } catch (const std::exception& error) {
    return fail(Errc::invalid_input, fmt::format("{}: {}", about, error.what()));
  }
  return targets;
}

}  // namespace argiope

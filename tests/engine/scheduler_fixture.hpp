// An engine and its scheduler on a store in memory, over simulated time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "argiope/engine/engine.hpp"
#include "argiope/time/time_zone.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {

using namespace std::chrono_literals;

inline WallTime at(std::string_view text) { return parse_timestamp(text).value(); }

// The clock begins at 2026-01-01T00:00:00Z.
class SchedulerTest : public OnVirtualLoop {
 protected:
  // Opens an engine on the store, runs `body`, and shuts it down.
  template <class Body>
  void with_scheduler(Body body, SchedulerOptions options = {}, EngineOptions engine_options = {}) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      co_await open(options, engine_options);
      co_await body();
      co_await close();
    }));
  }
  Coro<void> open(SchedulerOptions options = {}, EngineOptions engine_options = {}) {
    engine_options.schedules = options;
    engine_ = co_await open_engine(store_, engine_options);
    scheduler_ = &engine_->scheduler();
    scheduler_->add_listener(kAllScheduleEvents, [this](const ScheduleEvent& event) { note(event); });
  }
  Coro<void> close() {
    value_or_throw(co_await scheduler_->shutdown());
    value_or_throw(co_await engine_->close());
    engine_.reset();
  }
  // As a process that is killed: nothing is written any more. Runs in a loop of its own.
  template <class Body>
  void life(Body body, SchedulerOptions options = {}) {
    VirtualBackend backend(backend_.clock().wall_now());
    {
      EventLoop loop(backend);
      loop.run_until_complete(keeping([&]() -> Coro<void> {
        co_await open(options);
        co_await body();
      }));
    }
    engine_.reset();
    store_.reopen();
    backend_.manual_clock().set_wall(backend.clock().wall_now());
  }

  Schedule every(Duration interval, std::string name = "s") {
    return {.name = std::move(name), .trigger = Trigger::every(interval, at("2026-01-01")).value()};
  }
  Schedule cron(std::string_view expression, std::string name = "s") {
    return {.name = std::move(name), .trigger = Trigger::parse(expression).value()};
  }
  Coro<void> add(Schedule schedule, ConflictPolicy conflict = ConflictPolicy::fail) {
    value_or_throw(co_await engine_->book().schedules().add(std::move(schedule), conflict));
  }
  // Adds the schedule, starts the scheduler, and lets so long go by.
  Coro<void> start_with(Schedule schedule, Duration time) {
    co_await add(std::move(schedule));
    scheduler_->start();
    co_await sleep(time);
  }
  // An executor "default" whose function "" takes so long and notes when it began.
  Coro<void> work(Duration takes = {}, std::string function = {}) {
    if (scheduler_->executors().empty()) value_or_throw(co_await scheduler_->add_executor("default"));
    value_or_throw(
        scheduler_->add_function("default", std::move(function), [this, takes](JobContext& context) -> Coro<void> {
          ran_.push_back(clock());
          payloads_.push_back(context.payload());
          ++now_running_;
          most_running_ = std::max(most_running_, now_running_);
          struct Ends {
            int& running;
            ~Ends() { --running; }
          } const ends{now_running_};
          if (takes > Duration::zero()) co_await sleep(takes);
        }));
  }
  // "00:10:00": what the calendar shows.
  std::string clock() const { return format_timestamp(EventLoop::current().clock().wall_now()).substr(11, 8); }

  // "run 00:10", "missed 00:10-00:20 x2" …, oldest first.
  Coro<std::vector<std::string>> history(std::string name = "s") {
    auto runs = value_or_throw(co_await engine_->book().schedules().history(std::move(name)));
    std::vector<std::string> lines;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      const auto time = [](WallTime when) { return format_timestamp(when).substr(11, 5); };
      std::string line(to_string(run->outcome));
      line += ' ' + time(run->planned);
      if (run->last_planned != run->planned) line += '-' + time(run->last_planned);
      if (run->count > 1) line += " x" + std::to_string(run->count);
      lines.push_back(std::move(line));
    }
    co_return lines;
  }
  Coro<std::string> sentence(std::string name = "s") {
    co_return to_sentence(value_or_throw(co_await engine_->book().schedules().explain(std::move(name))));
  }
  Coro<ScheduleReason> reason(std::string name = "s") {
    co_return value_or_throw(co_await engine_->book().schedules().explain(std::move(name))).reason;
  }

  void note(const ScheduleEvent& event) {
    std::string line(to_string(event.kind));
    if (!event.name.empty()) line += ' ' + std::string(event.name);
    if (event.planned != WallTime{}) line += ' ' + format_timestamp(event.planned).substr(11, 5);
    if (event.count > 1) line += " x" + std::to_string(event.count);
    if (!event.text.empty()) line += ": " + std::string(event.text);
    events_.push_back(std::move(line));
  }
  using Lines = std::vector<std::string>;

  MemoryStore store_;
  std::unique_ptr<Engine> engine_;
  Scheduler* scheduler_ = nullptr;  // of the engine
  Lines ran_;                       // when the function began
  Lines payloads_;                  // and with what
  int now_running_ = 0, most_running_ = 0;
  Lines events_;
};

}  // namespace argiope

// Whatever is done at whatever turn of a run's life, the run is settled and the worker ends in bounds.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/engine/worker.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/slow_store.hpp"

namespace argiope {
namespace {

enum class Action { cancel_job, cancel_task, cancel_run, stop, stop_at_once, close, destroy_worker, destroy_broker };
constexpr Action kActions[] = {Action::cancel_job,     Action::cancel_task,   Action::cancel_run,
                               Action::stop,           Action::stop_at_once,  Action::close,
                               Action::destroy_worker, Action::destroy_broker};
constexpr const char* kFunctions[] = {"at once", "sleeps", "fails", "follows up"};
constexpr Duration kDrainLimit = 10s;
// What the runs of three jobs, a drain and the store's delays take at most.
constexpr Duration kBound = 60s;

// One life of a worker with three jobs; at step `at` of the loop, `action` is done.
class Life {
 public:
  Life(Action action, std::string function, Duration store_delay, std::size_t at)
      : action_(action), function_(std::move(function)), at_(at) {
    store_.delay = store_delay;
  }

  // Whether there was such a step.
  bool run() {
    loop_.run_until_complete(keeping([&]() -> Coro<void> { co_await live(); }));
    loop_.set_step_hook({});
    return acted_;
  }

 private:
  Coro<void> live() {
    engine_ = co_await open_engine(store_);
    value_or_throw(co_await engine_->book().configure(
        "q", {.retry = {.max_attempts = 1}, .lease_time = 6s, .keep_done = 1h, .keep_cancelled = 1h}));
    for (int i = 0; i < 3; ++i) {
      NewJob job;
      job.queue = "q";
      value_or_throw(co_await engine_->book().put(std::move(job)));
    }
    worker_ = std::make_unique<Worker>(
        *engine_, WorkerOptions{.queues = {"q"}, .concurrency = 2, .drain_limit = kDrainLimit, .until_empty = true});
    worker_->add("q", [this](JobContext& context) { return work(context); });
    working_ = loop_.create_task(worker_->run(), "the worker's");
    const TimePoint begun = loop_.time();
    loop_.set_step_hook([this] { step(); });
    co_await argiope::wait(std::vector{working_});
    loop_.set_step_hook({});
    EXPECT_LE(loop_.time() - begun, kBound) << what();
    if (acting_) co_await argiope::wait(std::vector{acting_});
    co_await sleep(kBound);  // what nobody waits for any more comes to its end
    if (engine_ == nullptr) {
      inner_.reopen();
      store_.delay = {};
      engine_ = co_await open_engine(store_);
    } else if (worker_ != nullptr) {
      EXPECT_EQ(worker_->counts().running, 0u) << what();
    }
    const auto counts = co_await inner_.counts();
    EXPECT_EQ(counts->at(0).counts.running, 0u) << what();
    EXPECT_TRUE(co_await engine_->close()) << what();
    engine_.reset();
  }
  Coro<void> work(JobContext& context) {
    if (function_ == "sleeps") co_await sleep(4s);
    if (function_ == "fails") throw std::runtime_error("broken");
    if (function_ == "follows up") {
      co_await yield_now();
      NewJob next;
      next.queue = "next";
      context.follow_up(std::move(next));
    }
  }

  void step() {
    if (steps_++ != at_ || acted_) return;
    acted_ = true;
    switch (action_) {
      case Action::cancel_job: acting_ = loop_.create_task(cancelled()); break;
      case Action::cancel_task:
        for (AnyTask& task : loop_.all_tasks()) {
          if (task.name() == "job") task.cancel();
        }
        break;
      case Action::cancel_run: working_.cancel(); break;
      case Action::stop: worker_->stop(); break;
      case Action::stop_at_once: worker_->stop(true); break;
      case Action::close: acting_ = loop_.create_task(closed()); break;
      case Action::destroy_worker: worker_.reset(); break;
      case Action::destroy_broker: engine_.reset(); break;
    }
  }
  Coro<void> cancelled() { (void)co_await engine_->book().cancel(1); }
  Coro<void> closed() { (void)co_await engine_->close(); }
  std::string what() const {
    return "action " + std::to_string(static_cast<int>(action_)) + ", a function that " + function_ + ", at step " +
           std::to_string(at_);
  }

  const Action action_;
  const std::string function_;
  const std::size_t at_;
  std::size_t steps_ = 0;
  bool acted_ = false;
  VirtualBackend backend_;
  EventLoop loop_{backend_};
  MemoryStore inner_;
  SlowStore store_{inner_};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Worker> worker_;
  Task<Result<void>> working_;
  Task<void> acting_;
};

class TurnsTest : public testing::TestWithParam<Action> {};
INSTANTIATE_TEST_SUITE_P(Actions, TurnsTest, testing::ValuesIn(kActions));

TEST_P(TurnsTest, EachRunIsSettledAndTheWorkerEndsInBounds) {
  std::size_t lives = 0;
  for (const char* function : kFunctions) {
    for (const Duration delay : {Duration{}, Duration{1s}}) {
      for (std::size_t at = 0; Life(GetParam(), function, delay, at).run(); ++at) ++lives;
    }
  }
  EXPECT_GE(lives, 150u);  // 1,200 with all actions
  RecordProperty("lives", static_cast<int>(lives));
  if (HasFailure()) return;
}

}  // namespace
}  // namespace argiope

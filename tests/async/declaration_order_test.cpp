// The order of declarations that docs/coroutine-pitfalls.md gives: with it, whatever tasks wait for or hold may be left
// unfinished. A mistake here is a use after free, which the address sanitizer finds.
#include <memory>
#include <stdexcept>

#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// What the page says: what tasks use, the loop, the pools.
struct Program {
  VirtualBackend backend;
  Queue<int> queue{1};
  Channel<int> channel{1};
  Semaphore semaphore{1};
  Lock lock;
  Condition condition;
  Barrier barrier{3};
  Event event;
  std::shared_ptr<int> used = std::make_shared<int>(0);
  EventLoop loop{backend};
  ThreadPoolExecutor pool{1};

  // Uses everything until it is unwound, and once more then.
  Coro<void> use_all(bool first) {
    struct AtEnd {
      Program& program;
      ~AtEnd() { ++*program.used; }
    } const at_end{*this};
    static_cast<void>(run_in_executor(pool, [] {}));
    if (first) {
      const auto permit = co_await semaphore.scoped();
      const auto held = co_await lock.scoped();
      co_await barrier.wait();
    }
    co_await semaphore.acquire();
  }
  Coro<void> wait_at_condition() {
    const auto held = co_await condition.scoped();
    co_await condition.wait();
  }
  Coro<void> get() { co_await queue.get(); }
  Coro<void> get_from_channel() { co_await channel.get(); }
  Coro<void> wait_for_event() { co_await event.wait(); }

  void start() {
    loop.create_task(use_all(true));
    loop.create_task(use_all(false));
    loop.create_task(wait_at_condition());
    for (int i = 0; i < 3; ++i) {
      loop.create_task(get());
      loop.create_task(get_from_channel());
    }
    loop.create_task(wait_for_event());
    for (int i = 0; i < 8; ++i) loop.run_once(TimePoint::min());
    // Some are served and never run on.
    queue.put_nowait(1);
    channel.put_nowait(1);
    event.set();
  }
};

TEST(DeclarationOrder, OfThePitfallsPageLetsAProgramEndWithItsTasksUnfinished) {
  std::shared_ptr<int> used;
  {
    Program program;
    program.start();
    used = program.used;
    EXPECT_GT(program.loop.task_count(), 5u);
  }
  EXPECT_EQ(*used, 2);
}

TEST(DeclarationOrder, OfThePitfallsPageLetsAnExceptionUnwindIt) {
  const auto run_program = [] {
    Program program;
    program.start();
    throw std::runtime_error("in the midst of it");
  };
  EXPECT_THROW(run_program(), std::runtime_error);
}

}  // namespace
}  // namespace argiope

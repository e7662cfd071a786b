// Tests in virtual time, with GoogleTest: pauses, a time limit, schedules, their first instant, a deadlock.
// docs/virtual-time.md prints this program.
#include <gtest/gtest.h>

#include <argiope/argiope.hpp>
#include <functional>
#include <string>
#include <vector>

using namespace argiope;
using namespace std::chrono_literals;

namespace {

// The code under test: tries something until it succeeds, after 1 s, 2 s, 4 s and so on; how often it tried.
Coro<int> try_until_it_succeeds(std::function<bool()> something) {
  Duration pause = 1s;
  for (int tries = 1;; ++tries) {
    if (something()) co_return tries;
    co_await sleep(pause);
    pause *= 2;
  }
}

WallTime at(std::string_view time) { return value_or_throw(parse_timestamp(time)); }

// Runs one schedule for so long; when its function ran, by the calendar of the backend.
Coro<std::vector<std::string>> runs_of(std::string expression, Duration how_long) {
  std::vector<std::string> ran;
  Engine engine = value_or_throw(co_await Engine::open("memory:"));
  value_or_throw(engine.scheduler().add_function("default", "note", [&ran](JobContext&) -> Coro<void> {
    ran.push_back(format_timestamp(EventLoop::current().clock().wall_now()));
    co_return;
  }));
  Schedule schedule{.name = "s", .trigger = value_or_throw(Trigger::parse(expression)), .job = {.function = "note"}};
  value_or_throw(co_await engine.book().schedules().add(schedule));
  engine.scheduler().start();
  co_await sleep(how_long);
  value_or_throw(co_await engine.close());
  co_return ran;
}

TEST(VirtualTime, PausesTakeTheTimeTheySayAndNoneOfYours) {
  VirtualBackend backend;
  int calls = 0;
  EXPECT_EQ(run(backend, try_until_it_succeeds([&calls] { return ++calls == 12; })), 12);
  EXPECT_EQ(backend.clock().now().time_since_epoch(), 2047s);  // 1 + 2 + 4 + … + 1024
}

TEST(VirtualTime, ATimeLimitStrikesToTheNanosecond) {
  VirtualBackend backend;
  EXPECT_THROW(run(backend, wait_for(try_until_it_succeeds([] { return false; }), 10s)), TimeoutError);
  EXPECT_EQ(backend.clock().now().time_since_epoch(), 10s);
}

TEST(VirtualTime, SchedulesRunOnTheDayYouChoose) {
  VirtualBackend backend(at("2026-03-27T12:00:00Z"));  // a Friday; on Sunday the clocks of Berlin skip 02:30
  EXPECT_EQ(run(backend, runs_of("CRON_TZ=Europe/Berlin 30 2 * * *", std::chrono::days(3))),
            (std::vector<std::string>{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}));
}

TEST(VirtualTime, TheFirstInstantCounts) {
  VirtualBackend midnight;  // 2026-01-01T00:00:00Z, at which "every midnight" is due
  EXPECT_EQ(run(midnight, runs_of("0 0 * * *", std::chrono::days(1) - 1s)),
            (std::vector<std::string>{"2026-01-01T00:00:00Z"}));
  VirtualBackend new_year;  // "@every" counts from 1970 on, where nothing else is said
  EXPECT_EQ(run(new_year, runs_of("@every 12h", std::chrono::days(1) - 1s)),
            (std::vector<std::string>{"2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z"}));
  VirtualBackend a_second_later(at("2026-01-01T00:00:01Z"));
  EXPECT_EQ(run(a_second_later, runs_of("0 0 * * *", std::chrono::days(1))),
            (std::vector<std::string>{"2026-01-02T00:00:00Z"}));
}

Coro<int> take(Queue<int>& queue) { co_return co_await queue.get(); }

TEST(VirtualTime, WaitingForWhatNeverComesIsAnError) {
  VirtualBackend backend;
  Queue<int> empty;
  EXPECT_THROW(run(backend, take(empty)), DeadlockError);
}

}  // namespace

// Schedules go on whatever a listener does.
#include <gmock/gmock.h>

#include "engine/scheduler_fixture.hpp"

namespace argiope {
namespace {

class SchedulerListenersTest : public SchedulerTest {};

TEST_F(SchedulerListenersTest, AListenerThatThrowsAtEachEventStopsNoSchedule) {
  int told = 0;
  with_scheduler([&]() -> Coro<void> {
    scheduler_->add_listener(kAllScheduleEvents, [&](const ScheduleEvent&) {
      ++told;
      throw std::runtime_error("broken");
    });
    co_await work();
    co_await start_with(every(10min), 95min);
    const auto status = value_or_throw(co_await engine_->book().schedules().get("s"));
    EXPECT_EQ(status.place.fired, 10u);
    EXPECT_EQ(scheduler_->state(), SchedulerState::running);
    EXPECT_GE(told, 22);  // added, started, ten submitted, ten executed
    EXPECT_EQ(scheduler_->listener_errors(), static_cast<std::uint64_t>(told));
  });
}

TEST_F(SchedulerListenersTest, AListenerMayRemoveItselfWhileItIsTold) {
  int told = 0;
  with_scheduler([&]() -> Coro<void> {
    Scheduler::ListenerId id = 0;
    id = scheduler_->add_listener(kAllScheduleEvents, [&](const ScheduleEvent&) {
      scheduler_->remove_listener(id);
      ++told;
    });
    co_await work();
    co_await start_with(every(10min), 35min);
    EXPECT_EQ(told, 1);
  });
}

}  // namespace
}  // namespace argiope

// Commands that schedules call: the form of a call, and what a command knows of the run it was started for.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "argiope/async/asio_backend.hpp"
#include "argiope/calls/calls.hpp"
#include "engine/scheduler_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CommandCall, KnowsTheScheduleItRunsFor) {
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  MemoryStore store;
  std::string result;
  loop.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(store);
    QueueConfig config;
    config.keep_done = 1h;
    EXPECT_TRUE(co_await engine->book().configure("default", config));
    Scheduler* const scheduler = &engine->scheduler();
    EXPECT_TRUE(co_await scheduler->add_executor("default"));
    EXPECT_TRUE(scheduler->add_function("default", "command", as_command_call(*scheduler)));
    Schedule schedule{.name = "nightly", .trigger = Trigger::at(at("2026-01-01"))};
    schedule.job.function = "command";
    schedule.job.payload =
        R"({"args":["sh","-c","cat; echo $ARGIOPE_SCHEDULE_NAME $ARGIOPE_SCHEDULE_PLANNED_AT $ARGIOPE_SCHEDULE_RUN"],)"
        R"("input":"for "})";
    Event over;
    scheduler->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_executed) |
                                static_cast<std::uint32_t>(ScheduleEventKind::job_error),
                            [&](const ScheduleEvent&) { over.set(); });
    EXPECT_TRUE(co_await engine->book().schedules().add(std::move(schedule)));
    scheduler->start();
    co_await over.wait();
    const auto runs = (co_await engine->book().schedules().history("nightly")).value();
    result = (co_await engine->book().get(runs.at(0).job)).value().result;
    EXPECT_TRUE(co_await scheduler->shutdown());
    EXPECT_TRUE(co_await engine->close());
  }));
  EXPECT_EQ(result, "for nightly 2026-01-01T00:00:00Z 1\n");
}

TEST(CommandCall, IsReadStrictly) {
  const auto call = parse_command_call(R"({"args":["/bin/echo","hello"],"timeout":"90s","input":"x"})").value();
  EXPECT_THAT(call.args, ElementsAre("/bin/echo", "hello"));
  EXPECT_EQ(call.timeout, 90s);
  EXPECT_EQ(call.input, "x");
  const auto own = parse_command_call(R"({"args":["a"],"environment":{"A":"1","B":""}})").value();
  EXPECT_EQ(own.environment, (std::vector<std::string>{"A=1", "B="}));
  EXPECT_THAT(parse_command_call(R"({"args":["a"],"environment":{"A=":"1"}})").error().message,
              StartsWith("environment \"A=\""));
  EXPECT_THAT(parse_command_call(R"({"args":["a"],"environment":{"A":1}})").error().message,
              StartsWith("environment.A \"1\": a string"));
  EXPECT_THAT(parse_command_call(R"({"args":["a"],"environment":[]})").error().message,
              StartsWith("environment \"[]\""));
  EXPECT_THAT(parse_command_call(R"({"args":["a"],"ok_status":[0,1]})").value().ok_status, ElementsAre(0, 1));
  for (const char* const wrong : {"[]", "0", "[256]", "[-1]", R"(["0"])", "[0.5]"}) {
    const auto refused = parse_command_call(fmt::format(R"({{"args":["a"],"ok_status":{}}})", wrong));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, StartsWith("ok_status"));
  }
  EXPECT_EQ(parse_command_call("{}").error().message, "args: a list of a program and its arguments");
  EXPECT_THAT(parse_command_call(R"({"args":[7]})").error().message, StartsWith("args[0] \"7\": a string"));
  EXPECT_THAT(parse_command_call(R"({"args":["a"],"shell":true})").error().message, HasSubstr("shell"));
  EXPECT_EQ(parse_command_call(R"({"args":["a"],"directory":"here"})").error().message,
            "directory \"here\": an absolute path");
  const auto twice = parse_command_call(R"({"args":["a"],"environment":{"A":"1","B":"2","A":"3"}})").value();
  EXPECT_EQ(twice.environment, (std::vector<std::string>{"A=3", "B=2"}));
  EXPECT_THAT(parse_command_call("echo").error().message, HasSubstr("no JSON object"));
}

}  // namespace
}  // namespace argiope

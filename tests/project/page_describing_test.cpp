// Many projects with scripts at once: how many are asked what they are at a time, and what becomes of their processes.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "argiope/async/event_loop.hpp"
#include "project/process/internal/child_processor.hpp"
#include "support/processes.hpp"
#include "support/simulated_projects.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

// The processes of all scripts.
struct SlowScripts {
  std::size_t described = 0, awake = 0, most_awake = 0;
  std::size_t rested = 0;
};

// A script that takes its time to say what it is, or says nothing until it is given up. It is awake from then until it
// rests.
class SlowProcessor final : public Processor {
 public:
  SlowProcessor(SlowScripts& all, Duration takes, bool hangs) : all_(all), takes_(takes), hangs_(hangs) {}
  ~SlowProcessor() override { sleep_again(); }
  Coro<Result<ProcessorDescription>> describe() override {
    if (!std::exchange(is_awake_, true)) all_.most_awake = std::max(all_.most_awake, ++all_.awake);
    co_await sleep(takes_);
    if (hangs_) {
      sleep_again();
      co_return fail(Errc::protocol, "it says nothing");
    }
    ++all_.described;
    ProcessorDescription said;
    said.on_start = "on_start";
    co_return said;
  }
  Coro<void> rest() override {
    co_await sleep(10ms);
    ++all_.rested;
    sleep_again();
  }
  Coro<VisitAnswer> process(const PageCall&) override { co_return VisitAnswer{}; }
  std::size_t capacity() const override { return 1; }
  Coro<void> close() override {
    sleep_again();
    co_return;
  }

 private:
  void sleep_again() {
    if (std::exchange(is_awake_, false)) --all_.awake;
  }
  SlowScripts& all_;
  const Duration takes_;
  const bool hangs_;
  bool is_awake_ = false;
};

class PageDescribingTest : public testing::Test {
 protected:
  PageDescribingTest() {
    sim.options.make_processor = [this](const ProjectDefinition& project,
                                        ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
      const bool hangs = project.name.starts_with("hung");
      return std::make_unique<SlowProcessor>(scripts, hangs ? 30s : 1s, hangs);
    };
  }
  void put(const std::string& name) {
    ASSERT_TRUE(sim.engine->put_project(draft_of(R"({"project":{"name":")" + name + R"(","processor":["true"]}})")))
        << name;
  }
  // Whether its script has said what it is.
  bool is_described(const std::string& name) {
    return sim.engine->project(name)->doing != ProjectStatusNow::Doing::standing;
  }

  SlowScripts scripts;
  SimulatedProjects sim;
};

TEST_F(PageDescribingTest, FewScriptsAreAskedAtATimeAndLeaveNoProcess) {
  sim.begin();
  for (int i = 0; i < 500; ++i) put("p" + std::to_string(i));
  sim.pass(500ms);
  EXPECT_EQ(scripts.awake, 8u);
  sim.pass(500 / 8 * 1010ms + 2s);
  EXPECT_EQ(scripts.described, 500u);
  EXPECT_EQ(scripts.rested, 500u) << "none of them has anything to do";
  EXPECT_EQ(scripts.most_awake, 8u);
  EXPECT_EQ(scripts.awake, 0u);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(is_described("p" + std::to_string(i))) << i;
  // The same at the next start.
  sim.stop();
  sim.begin();
  sim.pass(500 / 8 * 1010ms + 2s);
  EXPECT_EQ(scripts.described, 1000u);
  EXPECT_EQ(scripts.most_awake, 8u);
  EXPECT_EQ(scripts.awake, 0u);
}

TEST_F(PageDescribingTest, WhatHasSomethingToDoIsLeftAwake) {
  sim.begin();
  put("busy");
  ASSERT_TRUE(sim.engine->start("busy"));
  put("idle");
  sim.pass(5s);
  EXPECT_EQ(scripts.rested, 1u);
  EXPECT_EQ(scripts.awake, 1u);
  EXPECT_EQ(sim.engine->visits(), 1u) << "its start";
}

TEST_F(PageDescribingTest, HungScriptsHoldUpOthersOnceAtMost) {
  sim.begin();
  for (int i = 0; i < 20; ++i) put("hung" + std::to_string(i));
  put("first");
  sim.pass(29s);
  EXPECT_FALSE(is_described("first"));
  sim.pass(3 * 30s);
  EXPECT_TRUE(is_described("first"));
  // From then on those that hung wait for each other alone.
  for (int i = 0; i < 20; ++i) {
    sim.pass(17s);
    const std::string name = "late" + std::to_string(i);
    put(name);
    sim.pass(1100ms);
    EXPECT_TRUE(is_described(name)) << i;
  }
  EXPECT_LE(scripts.most_awake, 10u);
  EXPECT_THAT(sim.engine->project("hung3")->trouble, HasSubstr("says nothing"));
}

TEST_F(PageDescribingTest, ARemovedProjectGivesItsPlaceBack) {
  sim.begin();
  for (int i = 0; i < 16; ++i) put("hung" + std::to_string(i));
  put("last");
  sim.pass(1s);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(sim.engine->remove("hung" + std::to_string(i)));
  sim.pass(1100ms);
  EXPECT_TRUE(is_described("last"));
}

// The same with processes.
TEST_F(PageDescribingTest, ProcessesOfManyScriptsAreFewAtATime) {
  constexpr int kProjects = 24;
  const TemporaryFolder folder;
  std::ofstream(folder.file("script.sh"))
      << "read line; echo '{\"type\":\"described\",\"protocol\":1}'; while read line; do :; done\n";
  struct Many {
    std::vector<ChildProcessor*> processors;
    std::size_t most = 0;
    std::size_t children() const {
      std::size_t count = 0;
      for (const ChildProcessor* one : processors) count += one->counts().children;
      return count;
    }
    std::uint64_t started() const {
      std::uint64_t count = 0;
      for (const ChildProcessor* one : processors) count += one->counts().started;
      return count;
    }
  } many;
  std::vector<std::string> troubles;
  PageEngineOptions options;
  options.hosts.user_agent = options.hosts.product_token = "argiope";
  options.describing = 4;
  options.make_processor = [&](const ProjectDefinition& project,
                               ProcessorWatch watch) -> Result<std::unique_ptr<Processor>> {
    ChildProcessorOptions child;
    child.command = project.processor.command;
    child.directory = folder.file("");
    child.project = project.name;
    child.sandbox.kind = SandboxKind::none;
    child.describe_time = child.end_time = kPatience;
    child.on_trouble = std::move(watch.trouble);
    auto made = std::make_unique<ChildProcessor>(EventLoop::current(), std::move(child));
    many.processors.push_back(made.get());
    return made;
  };
  options.on_log = [&](const std::string&, const PageLog& line) { troubles.push_back(line.text); };
  auto store = open_page_store(":memory:");
  ASSERT_TRUE(store);
  PageEngine engine(options, **store);
  ASSERT_TRUE(engine.open(WallTime{24h * 20'000}));
  PageWeb web;
  run([](PageEngine& its, PageWeb& its_web, Many& all) -> Coro<void> {
    Task<Result<void>> running = EventLoop::current().create_task(its.run(its_web, nullptr), "engine", Start::eagerly);
    for (int i = 0; i < kProjects; ++i) {
      EXPECT_TRUE(its.put_project(
          draft_of(R"({"project":{"name":"p)" + std::to_string(i) + R"(","processor":["bash","script.sh"]}})")));
    }
    const auto settled = [](PageEngine& engine_, Many& those) -> Coro<void> {
      const auto is_described = [](const ProjectStatusNow& status) {
        return status.doing == ProjectStatusNow::Doing::waiting;
      };
      for (;;) {
        those.most = std::max(those.most, those.children());
        if (std::ranges::all_of(engine_.projects(), is_described) && those.children() == 0) co_return;
        co_await sleep(1ms);
      }
    };
    co_await wait_for(settled(its, all), kPatience);
    EXPECT_EQ(all.started(), static_cast<std::uint64_t>(kProjects));
    its.stop();
    EXPECT_TRUE(co_await running);
  }(engine, web, many));
  EXPECT_LE(many.most, 4u);
  EXPECT_THAT(troubles, IsEmpty());
}

}  // namespace
}  // namespace argiope

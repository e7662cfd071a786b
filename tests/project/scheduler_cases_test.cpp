// The 34 cases of the test suite of pyspider's scheduler (tests/test_scheduler.py, TestScheduler and TestProject), each
// as what must hold here: in virtual time, on the whole engine. Names in brackets are theirs.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kUrl = "http://site.test/url";

class SchedulerCases : public testing::Test {
 protected:
  SchedulerCases() {
    // Hosts are no matter here.
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 10'000;
    sim.options.hosts.per_host = 1'000;
    sim.web.answer = [this](const HttpRequest&) {
      return std::optional(PageAnswer{.body = "<p>page</p>", .latency = latency});
    };
    sim.options.make_processor = [this](const ProjectDefinition& project,
                                        ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
      described.push_back(project.name);
      ProcessorDescription said;
      said.on_finished = "on_finished";
      said.retry_delay = {.jitter = 0, .table = {5s}};
      return std::make_unique<TestProcessor>(said, [this](const PageCall& call) -> Coro<VisitAnswer> {
        calls.push_back(call);
        VisitAnswer answer;
        if (fails && call.rule != "on_finished") answer.failure = ProcessorFailure{.text = "as it was told"};
        co_return answer;
      });
    };
    sim.begin();
  }
  void put(const std::string& name, const std::string& more = {}) {
    const auto id =
        sim.engine->put_project(draft_of(R"({"project":{"name":")" + name + R"(","processor":["true"])" + more + "}}"));
    ASSERT_TRUE(id) << id.error().message;
    ids[name] = *id;
    sim.pass(10ms);
  }
  static AskedPage task(std::string name = "taskid") {
    return {.url = kUrl, .name = std::move(name), .rule = "callback"};
  }
  static AskedPage aged(AskedPage page, Duration age) {
    page.settings.age = {.is_said = true, .value = age};
    return page;
  }
  static AskedPage retried(AskedPage page, std::uint32_t retries) {
    page.settings.retries = {.is_said = true, .value = retries};
    return page;
  }
  static AskedPage recrawled(AskedPage page, bool recrawl) {
    page.settings.recrawl = {.is_said = true, .value = recrawl};
    return page;
  }
  AskVerdict ask(const AskedPage& page, const std::string& project = "test_project") {
    const auto decision = sim.engine->ask(project, page);
    EXPECT_TRUE(decision) << (decision ? "" : decision.error().message);
    return decision ? decision->verdict : AskVerdict::drop;
  }
  std::size_t visits() const { return sim.web.log.size(); }
  std::size_t finished() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(calls, [](const PageCall& call) { return call.event == PageEvent::finished; }));
  }
  PageRecord stored(std::string_view name = "taskid") {
    const auto page = sim.page(ids.at("test_project"), name);
    EXPECT_TRUE(page) << name;
    return page.value_or(PageRecord{});
  }
  // Visits it once.
  void visit(AskedPage page = task()) {
    ASSERT_EQ(ask(page), AskVerdict::add);
    sim.pass(1s);
    ASSERT_EQ(stored(page.name).known.state, PageState::done);
  }

  Duration latency = 10ms;
  bool fails = false;
  std::vector<std::string> described;
  std::vector<PageCall> calls;
  std::map<std::string, ProjectId> ids;
  SimulatedProjects sim;
};

TEST_F(SchedulerCases, AnAskForAnUnknownProjectIsRefused) {  // [test_10_new_task_ignore]
  const auto refused = sim.engine->ask("test_project", task());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::not_found);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("test_project"));
  sim.pass(1min);
  EXPECT_EQ(visits(), 0u);
}

TEST_F(SchedulerCases, ANewProjectThatIsToDoVisitsNothing) {  // [test_20_new_project]
  put("test_project", R"(,"status":"TODO","rate":1,"burst":10)");
  EXPECT_EQ(ask(task()), AskVerdict::add);
  sim.pass(1min);
  EXPECT_EQ(visits(), 0u);
  EXPECT_EQ(sim.engine->project("test_project")->pages, 1u);
}

TEST_F(SchedulerCases, AStatusIsInForceAtOnce) {  // [test_30_update_project]
  put("test_project", R"(,"status":"TODO")");
  ask(task());
  sim.pass(1min);
  ASSERT_EQ(visits(), 0u);
  ASSERT_TRUE(sim.engine->set_status("test_project", ProjectStatus::debug));
  sim.pass(100ms);
  EXPECT_EQ(visits(), 1u);
}

TEST_F(SchedulerCases, AScriptIsAskedWhatItIsBeforeItGetsPages) {  // [test_32_get_info]
  put("test_project");
  EXPECT_THAT(described, ElementsAre("test_project"));
  EXPECT_NE(sim.engine->project("test_project")->doing, ProjectStatusNow::Doing::standing);
}

TEST_F(SchedulerCases, SoIsThatOfAProjectThatNobodyHasStarted) {  // [test_34_new_not_used_project]
  put("test_project");
  put("test_project_not_started");
  EXPECT_THAT(described, Contains("test_project_not_started"));
  sim.pass(1min);
  EXPECT_EQ(visits(), 0u);
}

TEST_F(SchedulerCases, AnAskComesWithAllThatWasSaidOfIt) {  // [test_35_new_task]
  put("test_project");
  AskedPage page = aged(task(), 0s);
  page.settings.request.body = {.is_said = true, .value = "abc"};
  page.context_json = R"({"data":"abc"})";
  EXPECT_EQ(ask(page), AskVerdict::add);
  sim.pass(5ms);
  EXPECT_EQ(sim.engine->project("test_project")->under_way, 1u);
  sim.pass(1s);
  ASSERT_GE(calls.size(), 1u);
  EXPECT_EQ(calls[0].name, "taskid");
  EXPECT_EQ(calls[0].project, "test_project");
  EXPECT_EQ(calls[0].context_json, R"({"data":"abc"})");
  EXPECT_EQ(calls[0].response.status, 200);
  ASSERT_EQ(visits(), 1u);
  EXPECT_EQ(sim.web.log[0].method, "POST");
  EXPECT_EQ(sim.web.log[0].body, "abc");
}

TEST_F(SchedulerCases, ForceWhileItIsVisitedVisitsItOnceMore) {  // [test_37_force_update_processing_task]
  put("test_project");
  latency = 1s;
  ask(task());
  sim.pass(500ms);
  ASSERT_EQ(sim.engine->project("test_project")->under_way, 1u);
  AskedPage again = aged(task(), 10s);
  again.url = "http://site.test/url_force_update";
  again.force = true;
  EXPECT_EQ(ask(again), AskVerdict::after);
  EXPECT_EQ(ask(task("other")), AskVerdict::add);
  sim.pass(1min);
  EXPECT_THAT(sim.web.asked(), testing::UnorderedElementsAre(kUrl, kUrl, "http://site.test/url_force_update"));
  EXPECT_EQ(stored().known.state, PageState::done);
}

TEST_F(SchedulerCases, WhatEndsAfterItsProjectIsGoneHarmsNothing) {  // [test_40_taskdone_error_no_project]
  put("test_project");
  put("neighbour");
  latency = 10s;
  ask(task());
  ask(task(), "neighbour");
  sim.pass(1s);
  ASSERT_TRUE(sim.engine->remove("test_project"));
  sim.pass(1min);
  EXPECT_FALSE(sim.engine->project("test_project"));
  EXPECT_EQ(sim.engine->under_way(), 0u);
  EXPECT_EQ(sim.engine->counters("neighbour")->all(ProjectCounters::Count::success), 2)
      << "its page, and the end of its round";
}

TEST_F(SchedulerCases, AnAnswerThatIsNoneIsAFailedAttempt) {  // [test_50_taskdone_error_no_track]
  put("test_project");
  fails = true;
  ask(task());
  sim.pass(1s);
  EXPECT_EQ(stored().known.state, PageState::waiting);
  EXPECT_EQ(stored().known.wait, PageWait::retry);
  EXPECT_EQ(stored().error, "as it was told");
}

TEST_F(SchedulerCases, WhatHasFailedIsTriedAgainAfterItsDelay) {  // [test_60_taskdone_failed_retry]
  put("test_project");
  fails = true;
  ask(task());
  sim.pass(4s);
  EXPECT_EQ(visits(), 1u);
  sim.pass(2s);
  EXPECT_EQ(visits(), 2u);
}

TEST_F(SchedulerCases, WhatSucceedsIsDone) {  // [test_70_taskdone_ok]
  put("test_project");
  visit();
  sim.pass(24h);
  EXPECT_EQ(visits(), 1u);
  const ProjectCounters& counters = *sim.engine->counters("test_project");
  EXPECT_EQ(counters.all(ProjectCounters::Count::pending), 0);
}

TEST_F(SchedulerCases, OnFinishedComesOnceWhenNothingIsLeft) {  // [test_75_on_finished_msg]
  put("test_project");
  ask(task("a"));
  ask(task("b"));
  sim.pass(1min);
  EXPECT_EQ(finished(), 1u);
  ASSERT_EQ(calls.back().rule, "on_finished");
  ask(task("c"));
  sim.pass(1min);
  EXPECT_EQ(finished(), 2u);
}

TEST_F(SchedulerCases, WhatIsFreshIsLeftAlone) {  // [test_80_newtask_age_ignore]
  put("test_project");
  visit();
  EXPECT_EQ(ask(aged(task(), 30s)), AskVerdict::drop);
  sim.pass(1min);
  EXPECT_EQ(visits(), 1u);
  EXPECT_EQ(finished(), 1u) << "an ask that led to nothing is no round";
}

TEST_F(SchedulerCases, WhoeverAsks) {  // [test_82_newtask_via_rpc]
  put("test_project");
  visit();
  const auto decision = sim.engine->ask("test_project", aged(task(), 30s));
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->reason, AskReason::is_fresh);
  EXPECT_GT(decision->until, sim.backend.clock().wall_now());
}

TEST_F(SchedulerCases, AnotherTagVisitsItAgain) {  // [test_90_newtask_with_itag]
  put("test_project");
  visit();
  AskedPage tagged = retried(task(), 1);
  tagged.settings.tag = {.is_said = true, .value = "abc"};
  EXPECT_EQ(ask(tagged), AskVerdict::again);
  sim.pass(1min);
  EXPECT_EQ(visits(), 2u);
  EXPECT_EQ(ask(tagged), AskVerdict::drop) << "it has that tag now";
  EXPECT_EQ(finished(), 2u);
}

TEST_F(SchedulerCases, WhatIsOlderThanItsAgeIsVisitedAgain) {  // [test_a10_newtask_restart_by_age]
  put("test_project");
  visit();
  sim.pass(1s);
  EXPECT_EQ(ask(retried(aged(task(), 0s), 1)), AskVerdict::again);
  sim.pass(1s);
  EXPECT_EQ(visits(), 2u);
}

TEST_F(SchedulerCases, WhatFailsOnceTooOftenIsGivenUp) {  // [test_a20_failed_retry]
  put("test_project");
  fails = true;
  ask(retried(task(), 1));
  sim.pass(1min);
  EXPECT_EQ(visits(), 2u);
  EXPECT_EQ(stored().known.state, PageState::failed);
  EXPECT_EQ(finished(), 1u);
  sim.pass(1h);
  EXPECT_EQ(visits(), 2u);
}

TEST_F(SchedulerCases, AnAskThatIsWrongIsRefusedAndSaysWhy) {  // [test_a30_task_verify]
  put("test_project");
  AskedPage nameless = task("");
  EXPECT_EQ(ask(nameless), AskVerdict::add) << "a name need not be given: it is the URL";
  AskedPage nowhere = task();
  nowhere.url.clear();
  EXPECT_FALSE(sim.engine->ask("test_project", nowhere));
  nowhere.url = "htp://x";
  const auto wrong = sim.engine->ask("test_project", nowhere);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("htp://x"));
  EXPECT_FALSE(sim.engine->ask("not_exist_project", task()));
  EXPECT_EQ(ask(task("taskid#")), AskVerdict::add);
}

TEST_F(SchedulerCases, WhatRecrawlsIsDueAgainAfterEachSuccess) {  // [test_a40_success_recrawl]
  put("test_project");
  ask(task("taskid#"));
  ask(recrawled(retried(aged(task(), 10s), 1), true));
  sim.pass(35s);
  EXPECT_EQ(std::ranges::count_if(calls, [](const PageCall& call) { return call.name == "taskid"; }), 4);
  EXPECT_EQ(std::ranges::count_if(calls, [](const PageCall& call) { return call.name == "taskid#"; }), 1);
}

TEST_F(SchedulerCases, WhatRecrawlsGoesOnThoughItFails) {  // [test_a50_failed_recrawl]
  put("test_project");
  fails = true;
  ask(recrawled(retried(aged(task(), 10s), 1), true));
  sim.pass(38s);
  EXPECT_EQ(visits(), 7u) << "after 5 s each, of the index a second more, which is sooner than its age";
  fails = false;
  sim.pass(10s);
  EXPECT_EQ(stored().known.wait, PageWait::recrawl);
  EXPECT_EQ(stored().known.retried, 0u);
}

TEST_F(SchedulerCases, RecrawlingCanBeTakenBack) {  // [test_a60_disable_recrawl]
  put("test_project");
  ask(recrawled(aged(task(), 10s), true));
  sim.pass(15s);
  const std::size_t before = visits();
  ask(recrawled(aged(task(), 10s), false));
  sim.pass(1h);
  EXPECT_LE(visits(), before + 1);
  EXPECT_EQ(stored().known.state, PageState::done);
}

TEST_F(SchedulerCases, WhatWaitsCanBeCancelled) {  // [test_38_cancel_task]
  put("test_project");
  AskedPage page = aged(task("taskid_to_cancel"), 0s);
  page.delay = 30s;
  EXPECT_EQ(ask(page), AskVerdict::add);
  sim.pass(200ms);
  EXPECT_EQ(sim.engine->counters("test_project")->all(ProjectCounters::Count::pending), 1);
  AskedPage cancel = task("taskid_to_cancel");
  cancel.cancel = true;
  cancel.force = true;
  EXPECT_EQ(ask(cancel), AskVerdict::cancel);
  sim.pass(200ms);
  EXPECT_EQ(finished(), 1u) << "nothing is left";
  EXPECT_EQ(sim.engine->counters("test_project")->all(ProjectCounters::Count::pending), 0);
  sim.pass(1h);
  EXPECT_EQ(visits(), 0u);
}

TEST_F(SchedulerCases, MoreThanItsQueueHoldsWaitsInTheStore) {  // [test_x10_inqueue_limit]
  sim.stop();
  sim.options.queue_size = 10;
  sim.begin();
  put("test_project");
  ASSERT_TRUE(sim.engine->set_rate("test_project", 0, 1));
  for (int i = 0; i < 200; ++i) {
    AskedPage page = aged(task("taskid" + std::to_string(i)), 3000s);
    page.force = true;
    EXPECT_EQ(ask(page), AskVerdict::add);
  }
  sim.pass(1min);
  EXPECT_EQ(visits(), 0u);
  EXPECT_EQ(sim.engine->project("test_project")->pages, 200u);
  ASSERT_TRUE(sim.engine->set_rate("test_project", 100, 1));
  sim.pass(10min);
  EXPECT_EQ(visits(), 200u) << "none is dropped";
}

TEST_F(SchedulerCases, AProjectThatIsDeletedIsGoneWithAllItHas) {  // [test_x20_delete_project]
  put("test_project");
  visit();
  ASSERT_TRUE(sim.engine->remove("test_project"));
  EXPECT_FALSE(sim.engine->project("test_project"));
  EXPECT_EQ(sim.engine->counters("test_project"), nullptr);
  sim.pass(25h);
  ASSERT_TRUE(sim.store->flush());
  const auto page = sim.store->find_page(ids["test_project"], "taskid");
  ASSERT_TRUE(page);
  EXPECT_FALSE(*page);
  const auto projects = sim.store->projects();
  EXPECT_THAT(*projects, IsEmpty());
}

TEST_F(SchedulerCases, ItRunsAsLongAsItIsWanted) {  // [test_z10_startup]
  sim.pass(24h);
  EXPECT_FALSE(sim.running.done());
}

TEST_F(SchedulerCases, WhatIsDoneIsStoredWhenItEnds) {  // [test_z20_quit]
  put("test_project");
  visit();
  sim.stop();
  const auto page = sim.store->find_page(ids["test_project"], "taskid");
  ASSERT_TRUE(page && *page);
  EXPECT_EQ((*page)->known.state, PageState::done);
}

// --- TestProject: pauses after failures

class PauseCases : public SchedulerCases {
 protected:
  PauseCases() {
    sim.stop();
    sim.options.pause = {.after = 10, .probes = 3, .first = 2s, .longest = 1h, .probing = 1min};
    sim.begin();
    put("test_project");
  }
  void ask_for(std::size_t pages, bool failing) {
    fails = failing;
    for (std::size_t i = 0; i < pages; ++i) {
      AskedPage page = retried(task("page " + std::to_string(next_++)), 0);
      ask(page);
    }
    sim.pass(1s);
  }
  bool is_paused() const { return sim.engine->project("test_project")->doing == ProjectStatusNow::Doing::paused; }
  bool is_probing() const { return sim.engine->project("test_project")->doing == ProjectStatusNow::Doing::probing; }
  int next_ = 0;
};

TEST_F(PauseCases, AtFirstItDoesNot) { EXPECT_FALSE(is_paused()); }  // [test_pause_10_unpaused]

TEST_F(PauseCases, NotAfterFewFailures) {  // [test_pause_20_no_enough_fail_tasks]
  ask_for(1, false);
  ask_for(5, true);
  EXPECT_FALSE(is_paused());
  ask_for(1, false);
  ask_for(5, true);
  EXPECT_FALSE(is_paused()) << "one has succeeded in between";
}

TEST_F(PauseCases, AfterTen) {  // [test_pause_30_paused]
  ask_for(10, true);
  EXPECT_TRUE(is_paused());
  const std::size_t before = visits();
  ask_for(5, false);
  EXPECT_EQ(visits(), before);
}

// pyspider's --fail-pause-num, of each project.
TEST_F(PauseCases, AfterAsManyAsItsFileSays) {
  put("test_project", R"(,"pause_after":2)");
  ask_for(2, true);
  EXPECT_TRUE(is_paused());
  put("test_project", R"(,"pause_after":0)");
  EXPECT_FALSE(is_paused());
  ask_for(30, true);
  EXPECT_FALSE(is_paused());
}

TEST_F(PauseCases, ThenItTriesThree) {  // [test_pause_40_unpause_checking]
  ask_for(10, true);
  const std::size_t before = visits();
  latency = 30s;
  ask_for(20, true);
  sim.pass(2s);
  EXPECT_TRUE(is_probing());
  EXPECT_EQ(visits(), before + 3);
}

TEST_F(PauseCases, AndPausesAgainForLonger) {  // [test_pause_50_paused_again]
  ask_for(10, true);
  ask_for(20, true);
  sim.pass(2s);
  EXPECT_TRUE(is_paused());
  const auto until = sim.engine->project("test_project")->until;
  ASSERT_TRUE(until);
  EXPECT_GT(*until - sim.backend.clock().wall_now(), 2s) << "4 s now";
}

TEST_F(PauseCases, AndTriesThreeAgain) {  // [test_pause_60_unpause_checking]
  ask_for(10, true);
  ask_for(20, true);
  sim.pass(2s);
  ASSERT_TRUE(is_paused());
  const std::size_t before = visits();
  latency = 30s;
  sim.pass(5s);
  EXPECT_TRUE(is_probing());
  EXPECT_EQ(visits(), before + 3);
}

TEST_F(PauseCases, AndGoesOnWhenOneSucceeds) {  // [test_pause_70_unpaused]
  ask_for(10, true);
  ask_for(20, false);
  sim.pass(30s);
  EXPECT_FALSE(is_paused());
  EXPECT_FALSE(is_probing());
  EXPECT_EQ(sim.engine->counters("test_project")->all(ProjectCounters::Count::pending), 0);
}

TEST_F(PauseCases, AndNeverWhereItIsToldNotTo) {  // [test_pause_x_disable_auto_pause]
  sim.stop();
  sim.options.pause.after = 0;
  sim.begin();
  ask_for(100, true);
  sim.pass(30s);
  EXPECT_FALSE(is_paused());
  EXPECT_EQ(visits(), 100u);
}

}  // namespace
}  // namespace argiope

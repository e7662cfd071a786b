// The engine of projects among hostile sites, scripts, owners, clocks and stores, in virtual time.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "argiope/base/random.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Commits what was submitted before a flush began once that was asked for often enough; counts the engine's turns;
// dies.
class HostilePageStore final : public PromptPageStore {
 public:
  using PromptPageStore::PromptPageStore;
  std::size_t turns = 0;  // each asks for the backlog
  std::size_t polls = 0;  // so many before a flush is over
  bool is_dead = false;   // what is submitted now is lost
  bool has_bad_versions = false;

  void submit(PageBatch batch) override {
    if (!is_dead) batches_.push_back(std::move(batch));
    if (polls == 0) commit(batches_.size());
  }
  Result<void> flush() override {
    if (is_dead) return {};
    commit(batches_.size());
    return PromptPageStore::flush();
  }
  std::uint64_t begin_flush() override {
    flushes_.push_back({batches_.size() + committed_, polls});
    return flushes_.size();
  }
  bool flushed(std::uint64_t flush) const override {
    auto& [upto, left] = flushes_.at(flush - 1);
    if (is_dead) return true;
    if (left > 0 && --left > 0) return false;
    auto* const self = const_cast<HostilePageStore*>(this);
    if (upto > committed_) self->commit(upto - committed_);
    return self->PromptPageStore::flush().has_value();
  }
  std::size_t backlog() const override {
    ++const_cast<HostilePageStore*>(this)->turns;
    return 0;
  }
  Result<std::optional<ProjectVersion>> version(ProjectId project, std::int64_t number) override {
    auto found = PromptPageStore::version(project, number);
    if (has_bad_versions && found && *found) (*found)->text = R"({"project":7})";
    return found;
  }
  ProjectId next_project_id() override {
    (void)flush();
    return PromptPageStore::next_project_id();
  }
  void live_again() {
    batches_.clear();
    is_dead = false;
    (void)PromptPageStore::flush();  // what it had been given before
  }

 private:
  void commit(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) PromptPageStore::submit(std::move(batches_[i]));
    batches_.erase(batches_.begin(), batches_.begin() + static_cast<std::ptrdiff_t>(count));
    committed_ += count;
  }
  std::vector<PageBatch> batches_;
  std::size_t committed_ = 0;
  mutable std::vector<std::pair<std::size_t, std::size_t>> flushes_;
};

class PageEngineHostile : public testing::Test {
 protected:
  using Read = std::function<Coro<VisitAnswer>(const PageCall&)>;

  PageEngineHostile() {
    auto made = std::make_unique<HostilePageStore>(std::move(*open_page_store(":memory:")));
    store = made.get();
    sim.store = std::move(made);
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 10'000;
    sim.options.hosts.per_host = 1'000;
    said.on_start = "on_start";
    said.retry_delay = {.jitter = 0, .table = {5s}};
    read = [](const PageCall&) -> Coro<VisitAnswer> { co_return VisitAnswer{}; };
    sim.options.make_processor = [this](const ProjectDefinition&,
                                        ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
      return std::make_unique<TestProcessor>(said, [this](const PageCall& call) {
        calls.push_back(call);
        return read(call);
      });
    };
  }
  ~PageEngineHostile() override {
    if (sim.engine) sim.stop();  // pages under way still come to what this part has
  }
  ProjectId put(const std::string& json) {
    const auto id = sim.engine->put_project(draft_of(json));
    EXPECT_TRUE(id) << (id ? "" : id.error().message);
    return id.value_or(0);
  }
  // A project with a script.
  ProjectId put_script(const std::string& name = "p", const std::string& more = {}) {
    const ProjectId id = put(R"({"project":{"name":")" + name + R"(","processor":["true"])" + more + "}}");
    sim.pass(10ms);
    return id;
  }
  AskVerdict ask(AskedPage page, const std::string& project = "p") {
    const auto decision = sim.engine->ask(project, std::move(page));
    EXPECT_TRUE(decision) << (decision ? "" : decision.error().message);
    return decision ? decision->verdict : AskVerdict::drop;
  }
  std::size_t called(std::string_view rule) const {
    return static_cast<std::size_t>(std::ranges::count(calls, rule, &PageCall::rule));
  }
  // What is counted is what the store has.
  void expect_true_counts(const std::string& name) {
    const auto status = sim.engine->project(name);
    if (!status) return;
    ASSERT_TRUE(sim.store->flush());
    std::map<ProjectCounters::Count, std::int64_t> counted;
    using enum ProjectCounters::Count;
    ASSERT_TRUE(sim.store->scan_known(status->id, [&](const PageStore::KnownRow& row) {
      if (row.known.state == PageState::waiting) ++counted[row.known.wait == PageWait::recrawl ? success : pending];
      if (row.known.state == PageState::done) ++counted[success];
      if (row.known.state == PageState::failed) ++counted[failed];
      return true;
    }));
    for (const auto count : {pending, success, failed}) {
      EXPECT_EQ(sim.engine->counters(name)->all(count), counted[count]) << name << " " << static_cast<int>(count);
    }
  }

  SimulatedProjects sim;
  HostilePageStore* store = nullptr;
  ProcessorDescription said;
  Read read;
  std::vector<PageCall> calls;
};

TEST_F(PageEngineHostile, AProcessorThatIsExchangedWhileAPageIsFetchedReadsItWhenItHasSaidWhatItIs) {
  sim.web.pages["http://a.test/"] = {.body = "x", .latency = 10s};
  sim.begin();
  put_script();
  ask({.url = "http://a.test/", .rule = "page"});
  sim.pass(5s);
  put(R"({"project":{"name":"p","processor":["other"]}})");
  sim.pass(1min);
  EXPECT_EQ(called("page"), 1u);
  ask({.url = "http://a.test/", .rule = "page", .force = true});
  sim.pass(5s);
  put(R"({"project":{"name":"p","start":["http://a.test/"]},"rule":[{"name":"all"}]})");
  sim.pass(1min);
  EXPECT_EQ(called("page"), 1u);
  EXPECT_EQ(sim.engine->under_way(), 0u);
  expect_true_counts("p");
}

TEST_F(PageEngineHostile, RulesThatChangeWhileAScriptReadsCountByTheRulesThatWereRead) {
  sim.web.pages["http://a.test/"] = {.body = "<h1>one</h1>"};
  read = [](const PageCall&) -> Coro<VisitAnswer> {
    co_await sleep(10s);
    co_return VisitAnswer{};
  };
  sim.begin();
  const std::string head = R"({"project":{"name":"p","processor":["true"],"start":["http://a.test/"]},"rule":[)";
  const ProjectId id = put(head + R"({"name":"item","match":"/*","fields":{"title":"css:h1"}}]})");
  sim.pass(10ms);
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(5s);
  put(head + R"({"name":"a","match":"/a"},{"name":"b","match":"/b"},{"name":"item","match":"/*"}]})");
  sim.finish_round("p");
  ASSERT_EQ(sim.results(id).size(), 1u);
  EXPECT_EQ(sim.results(id).front().value, R"({"title":"one"})");
}

TEST_F(PageEngineHostile, AStartThatWaitsForAScriptIsDoneWithoutItOnceThereIsNone) {
  struct Mute final : Processor {
    Coro<Result<ProcessorDescription>> describe() override {
      co_await sleep(1000h);
      co_return ProcessorDescription{};
    }
    Coro<VisitAnswer> process(const PageCall&) override { co_return VisitAnswer{}; }
    std::size_t capacity() const override { return 1; }
    Coro<void> close() override { co_return; }
  };
  sim.options.make_processor = [](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    return std::make_unique<Mute>();
  };
  sim.web.pages["http://a.test/"] = page_with({});
  sim.begin();
  put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1min);
  put(R"({"project":{"name":"p","start":["http://a.test/"]},"rule":[{"name":"all"}]})");
  sim.pass(1min);
  EXPECT_EQ(sim.web.log.size(), 1u);
  EXPECT_FALSE(sim.engine->project("p")->round);
}

TEST_F(PageEngineHostile, ARoundEndsThoughAPageThatIsVisitedAgainByItselfKeepsFailing) {
  sim.web.pages["http://a.test/"] = {.status = 500};
  sim.begin();
  put(R"({"project":{"name":"p","start":["http://a.test/"]},"rule":[{"name":"all","age":"1h","auto_recrawl":true,"retries":1}]})");
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(5h);
  EXPECT_GT(sim.web.log.size(), 3u);
  EXPECT_FALSE(sim.engine->project("p")->round);
  expect_true_counts("p");
}

TEST_F(PageEngineHostile, WhatAScriptHasVisitedAgainByItselfIsSoAfterARestart) {
  sim.web.pages["http://a.test/"] = page_with({});
  auto& rule = said.rules["page"];
  rule.settings.age = {.is_said = true, .value = 1h};
  rule.settings.recrawl = {.is_said = true, .value = true};
  sim.begin();
  put_script();
  ask({.url = "http://a.test/", .rule = "page"});
  sim.pass(10min);
  sim.stop();
  sim.begin();
  sim.pass(2h + 1min);
  EXPECT_EQ(sim.web.log.size(), 3u);
}

TEST_F(PageEngineHostile, APageWhoseNameGetsAnotherUrlWaitsForThatUrlsHost) {
  sim.options.hosts.per_host = 1;
  sim.web.pages["http://slow.test/"] = {.body = "x", .latency = 100s};
  sim.web.pages["http://slow.test/2"] = {.body = "x"};
  sim.web.pages["http://fast.test/"] = {.body = "x"};
  sim.web.pages["http://fast.test/2"] = {.body = "x"};
  sim.begin();
  put_script();
  ask({.url = "http://fast.test/", .name = "name", .rule = "page"});
  sim.pass(1s);
  ask({.url = "http://slow.test/", .rule = "page"});
  sim.pass(1s);
  ask({.url = "http://slow.test/2", .name = "name", .rule = "page", .force = true});
  sim.pass(1s);
  ask({.url = "http://fast.test/2", .rule = "page"});
  sim.pass(10s);
  EXPECT_EQ(sim.web.times_asked("http://fast.test/2"), 1u) << "nothing holds its host up";
  EXPECT_EQ(sim.web.times_asked("http://slow.test/2"), 0u);
  sim.pass(200s);
  EXPECT_EQ(sim.web.times_asked("http://slow.test/2"), 1u);
}

TEST_F(PageEngineHostile, AnAnswerThatIsForARemovedProjectIsForNobody) {
  read = [](const PageCall& call) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    if (call.rule == "on_start") {
      try {
        co_await sleep(10s);
      } catch (const CancelledError&) {  // it answers all the same
      }
      for (int i = 0; i < 20; ++i)
        answer.pages.push_back({.url = "http://a.test/" + std::to_string(i), .rule = "page"});
      answer.messages.push_back({.project = "p", .message_json = "1"});
    }
    co_return answer;
  };
  sim.begin();
  const ProjectId id = put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1s);
  ASSERT_TRUE(sim.engine->remove("p"));
  ASSERT_TRUE(sim.engine->restore("p"));
  ask({.url = "http://a.test/own", .rule = "page"});
  sim.finish_round("p");
  EXPECT_EQ(sim.engine->project("p")->pages, 22u);
  EXPECT_TRUE(sim.page(id, "http://a.test/19"));
  EXPECT_FALSE(sim.store->failure());
  expect_true_counts("p");
}

TEST_F(PageEngineHostile, WhateverAProcessorThrowsIsAFailedVisit) {
  int kind = 0;
  read = [&](const PageCall&) -> Coro<VisitAnswer> {
    if (kind == 0) throw CancelledError();
    if (kind == 1) throw 7;
    throw std::runtime_error("");
    co_return VisitAnswer{};
  };
  sim.begin();
  const ProjectId id = put_script();
  for (; kind < 3; ++kind) {
    const std::string name = "data:,kind" + std::to_string(kind);
    const std::size_t before = calls.size();
    ask({.url = name, .rule = "page"});
    sim.pass(1min);
    EXPECT_EQ(calls.size(), before + 4) << kind;
    EXPECT_EQ(sim.page(id, name)->known.state, PageState::failed) << kind;
    EXPECT_FALSE(sim.page(id, name)->error.empty()) << kind;
  }
  EXPECT_EQ(sim.engine->under_way(), 0u);
  EXPECT_FALSE(sim.engine->project("p")->round);
}

TEST_F(PageEngineHostile, WhatIsPutOffForNoTimeAndForEverKeepsNothingBusy) {
  Duration delay{};
  read = [&](const PageCall& call) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    if (call.rule == "page") answer.failure = ProcessorFailure{.text = "not now", .delay = delay, .not_now = true};
    if (call.rule == "late") answer.failure = ProcessorFailure{.text = "no", .delay = Duration::max()};
    co_return answer;
  };
  sim.begin();
  put_script();
  ask({.url = "data:,x", .rule = "page"});
  sim.pass(10s);
  EXPECT_GE(called("page"), 9u);
  EXPECT_LE(called("page"), 101u);
  delay = Duration::max();
  sim.pass(1s);
  const std::size_t before = called("page");
  ask({.url = "data:,late", .rule = "late"});
  sim.pass(1000h);
  EXPECT_EQ(called("page"), before);
  EXPECT_EQ(called("late"), 1u);
  EXPECT_LT(store->turns, 4'000'000u);
}

TEST_F(PageEngineHostile, AScriptMayNameAnyNumberOfRules) {
  read = [](const PageCall& call) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    if (call.rule == "on_start") {
      for (int i = 0; i < 70'000; ++i)
        answer.pages.push_back({.url = "data:," + std::to_string(i), .rule = "r" + std::to_string(i), .delay = 100h});
    }
    co_return answer;
  };
  sim.begin();
  put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1min);
  EXPECT_EQ(sim.engine->project("p")->pages, 70'001u);
}

TEST_F(PageEngineHostile, RowsAreReadOnceTheyAreThereAndAsTheyAreNow) {
  store->polls = 5;
  // Long contexts are not kept in memory.
  const std::string long_text(5'000, 'x');
  read = [&](const PageCall& call) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    if (call.rule == "on_start") {
      for (int i = 0; i < 300; ++i) {
        answer.pages.push_back({.url = "data:," + std::to_string(i),
                                .rule = "page",
                                .context_json = "\"" + long_text + "\"",
                                .delay = 1ms * i});
      }
    }
    co_return answer;
  };
  sim.begin();
  put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  for (int i = 0; i < 300; ++i) {
    sim.pass(2ms);
    ask({.url = "data:,again",
         .rule = "again",
         .context_json = "[" + std::to_string(i) + ",\"" + long_text + "\"]",
         .force = true});
  }
  sim.finish_round("p");
  EXPECT_EQ(called("page"), 300u);
  EXPECT_EQ(sim.engine->counters("p")->all(ProjectCounters::Count::success), 302);
  ASSERT_GE(called("again"), 1u);
  int last = -1;
  for (const PageCall& call : calls) {
    if (call.rule != "again") continue;
    const int number = std::stoi(call.context_json.substr(1));
    EXPECT_GT(number, last) << "each with what it was asked with last";
    last = number;
  }
  EXPECT_EQ(last, 299);
  expect_true_counts("p");
}

TEST_F(PageEngineHostile, AProjectWhoseFileCannotBeReadStandsAndKeepsItsPages) {
  sim.web.pages["http://a.test/"] = {.body = "<h1>x</h1>", .latency = 100s};
  sim.begin();
  const ProjectId id =
      put(R"({"project":{"name":"p","start":["http://a.test/"]},"rule":[{"name":"all","fields":{"title":"css:h1"}}]})");
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1s);
  sim.stop(true);
  store->has_bad_versions = true;
  sim.begin();
  sim.pass(1h);
  EXPECT_EQ(sim.web.log.size(), 1u);
  EXPECT_EQ(sim.engine->project("p")->doing, ProjectStatusNow::Doing::standing);
  sim.stop();
  store->has_bad_versions = false;
  sim.begin();
  sim.finish_round("p");
  EXPECT_EQ(sim.results(id).size(), 1u);
}

TEST_F(PageEngineHostile, ACancelledRunWaitsForVisitsThatEnd) {
  sim.web.pages["http://a.test/"] = {.body = "x", .latency = 20s};
  auto engine = &sim.begin();
  put(R"({"project":{"name":"p","start":["http://a.test/"]},"rule":[{"name":"all"}]})");
  ASSERT_TRUE(engine->start("p"));
  sim.pass(1s);
  ASSERT_EQ(engine->under_way(), 1u);
  engine->stop();
  sim.pass(1s);
  sim.running.cancel();
  sim.pass(1s);
  EXPECT_TRUE(sim.running.done());
  EXPECT_EQ(sim.web.under_way, 0u);
  sim.engine.reset();
  sim.pass(1min);
}

TEST_F(PageEngineHostile, WhatWasRemovedEndsWithTheEngine) {
  struct Slow final : Processor {
    explicit Slow(int& its_closed) : closed(its_closed) {}
    Coro<Result<ProcessorDescription>> describe() override { co_return ProcessorDescription{.on_start = "on_start"}; }
    Coro<VisitAnswer> process(const PageCall&) override {
      co_await sleep(1000h);
      co_return VisitAnswer{};
    }
    std::size_t capacity() const override { return 1; }
    Coro<void> close() override {
      co_await sleep(5s);
      ++closed;
    }
    int& closed;
  };
  int closed = 0;
  sim.options.make_processor = [&](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    return std::make_unique<Slow>(closed);
  };
  sim.begin();
  put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  sim.pass(1s);
  put(R"({"project":{"name":"p","processor":["other"]}})");
  sim.pass(1s);
  EXPECT_EQ(closed, 0) << "a visit is with it";
  ASSERT_TRUE(sim.engine->remove("p"));
  sim.stop();
  EXPECT_EQ(closed, 2);
  sim.pass(1min);
}

TEST_F(PageEngineHostile, TheNamesOfEventsAreOrdinaryNamesUnderOtherRules) {
  said.on_finished = "on_finished";
  said.on_message = "on_message";
  said.ticks = {{.rule = "tick", .every = 1h}};
  read = [](const PageCall& call) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    if (call.event == PageEvent::start) {
      for (const char* name :
           {"data:,on_start", "data:,on_finished", "data:,on_message", "data:,tick/tick", "data:,tick/none"}) {
        answer.pages.push_back({.url = name, .rule = "page", .force = true});
      }
    }
    co_return answer;
  };
  sim.begin();
  put_script();
  ASSERT_TRUE(sim.engine->start("p"));
  sim.finish_round("p");
  sim.pass(1min);
  for (const PageCall& call : calls) {
    if (call.rule == "page") EXPECT_EQ(call.event, PageEvent::fetch) << call.name;
  }
  EXPECT_EQ(called("page"), 5u);
  EXPECT_EQ(called("on_finished"), 1u);
  EXPECT_EQ(called("on_start"), 1u);
}

// --- all at once ----------------------------------------------------------------------------------------------------

// Random owners, scripts, sites, clocks and deaths. A failure names its seed.
class PageEngineModel : public PageEngineHostile, public testing::WithParamInterface<std::uint64_t> {
 protected:
  std::uint64_t below(std::uint64_t limit) { return random.next() % limit; }
  bool one_in(std::uint64_t many) { return below(many) == 0; }
  std::string some_project() { return one_in(2) ? "p" : one_in(2) ? "q" : "r"; }
  std::string some_url() {
    if (one_in(6)) return "data:," + std::to_string(below(6));
    return "http://h" + std::to_string(below(4)) + ".test/" + std::to_string(below(25));
  }
  AskedPage some_page() {
    AskedPage page{
        .url = some_url(), .rule = one_in(3) ? "aged" : "page", .context_json = std::to_string(below(1'000))};
    if (one_in(8)) page.name = "name" + std::to_string(below(4));
    if (one_in(12)) page.name = some_url();
    if (one_in(60)) page.url = "no url";
    page.force = one_in(4);
    page.cancel = one_in(9);
    if (one_in(6)) page.delay = 1s * below(600);
    if (one_in(8)) page.settings.priority = {.is_said = true, .value = static_cast<std::int32_t>(below(5))};
    return page;
  }
  Coro<VisitAnswer> answer_to(const PageCall& call) {
    if (call.event == PageEvent::finished) {
      const auto at = call.context_json.find("\"round\":");
      if (at != std::string::npos)
        finished.push_back(call.project + call.context_json.substr(at + 8, call.context_json.find(',', at) - at - 8));
      co_return VisitAnswer{};
    }
    if (one_in(4)) co_await sleep(1ms * below(40'000));
    if (one_in(60)) throw std::runtime_error("as it happens");
    VisitAnswer answer;
    // Few enough that each round comes to its end.
    const std::size_t pages = call.event == PageEvent::start ? 5 : calms ? 0 : below(3);
    for (std::size_t i = 0; i < pages; ++i) answer.pages.push_back(some_page());
    if (calms) {
      for (AskedPage& page : answer.pages) page.force = false;
    }
    if (one_in(12) && !calms) answer.messages.push_back({.project = some_project(), .message_json = "1"});
    if (one_in(3)) answer.results = std::vector<PageResult>{{.part = "", .value_json = std::to_string(below(100))}};
    if (one_in(10))
      answer.failure =
          ProcessorFailure{.text = "no", .is_final = one_in(3), .is_crash = one_in(3), .not_now = one_in(4)};
    co_return answer;
  }
  std::string definition_of(const std::string& name) {
    const std::string version = R"("version":")" + std::to_string(below(3)) + "\"";
    if (name != "r") {
      return R"({"project":{"name":")" + name + R"(","processor":[")" + (one_in(5) ? "other" : "true") + R"("],)" +
             version + "}}";
    }
    std::string rules = one_in(2) ? R"({"name":"first","match":"/1*","age":"20m","auto_recrawl":true},)" : "";
    if (one_in(3)) rules += R"({"name":"second","match":"/2*","fields":{"t":"css:title"},"retries":1},)";
    return R"({"project":{"name":"r",)" + version +
           R"(,"start":["http://h0.test/1","http://h1.test/2"],"scope":["h0.test","h1.test","h2.test"])" +
           (one_in(4) ? R"(,"every":"1h")" : "") + R"(},"rule":[)" + rules + R"({"name":"all"}]})";
  }
  void do_something() {
    PageEngine& engine = *sim.engine;
    const std::string name = some_project();
    switch (last_done = below(16)) {
      case 0:
      case 1: (void)engine.start(name); break;
      case 2:
      case 3:
      case 4: {
        AskedPage page = some_page();
        if (name == "r") page.rule = one_in(2) ? "" : "all";
        (void)engine.ask(name, std::move(page));
        break;
      }
      case 5: (void)engine.set_status(name, one_in(3) ? ProjectStatus::stop : ProjectStatus::running); break;
      case 6:
        (void)engine.set_rate(name, one_in(4) ? std::nullopt : std::optional(static_cast<double>(below(4))),
                              std::nullopt);
        break;
      case 7: (void)engine.put_project(draft_of(definition_of(name))); break;
      case 8: {
        if (one_in(3)) (void)engine.remove(name);
        if (one_in(4)) sim.pass(1ms * below(2'000));
        (void)engine.restore(name);
        break;
      }
      case 9: (void)engine.send_message("p", {.project = name, .message_json = "2"}); break;
      case 10: (void)engine.resume(name); break;
      case 11:
        if (!one_in(3)) break;
        if (one_in(2)) {
          store->is_dead = true;
          sim.stop(true);
          store->live_again();
        } else {
          sim.stop(one_in(2));
        }
        sim.begin();
        break;
      case 12:
        if (one_in(4)) {
          const Duration span = std::chrono::hours{one_in(3) ? 24 * 365 : 1 + static_cast<int>(below(3))};
          const WallTime now = sim.backend.clock().wall_now();
          sim.backend.manual_clock().set_wall(one_in(2) ? now + span : now - span);
        }
        break;
      case 13:
        (void)engine.explain(name, some_url());
        (void)engine.projects();
        break;
      default: break;
    }
    sim.pass(one_in(3) ? 1ms * below(20) : one_in(10) ? 1s * below(2'000) : 1ms * below(5'000));
  }

  Random random{mix64(GetParam())};
  bool calms = false;
  std::uint64_t last_done = 0;
  std::vector<std::string> finished;
};

TEST_P(PageEngineModel, ComesToItsEndsWhateverHappens) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  said.on_finished = "on_finished";
  said.on_message = "on_message";
  said.ticks = {{.rule = "tick", .every = 1h}};
  said.rules["aged"].settings.age = {.is_said = true, .value = 30min};
  said.rules["aged"].settings.recrawl = {.is_said = true, .value = true};
  read = [this](const PageCall& call) { return answer_to(call); };
  sim.options.seed = GetParam();
  sim.options.concurrency = 1 + below(12);
  sim.options.hosts.per_host = 1 + static_cast<std::uint32_t>(below(3));
  sim.options.hosts.rate = 2;
  sim.options.drain_limit = 5s;
  sim.web.answer = [this](const HttpRequest&) -> std::optional<PageAnswer> {
    PageAnswer answer = page_with({});
    if (one_in(3)) answer.latency = 1ms * below(90'000);
    for (std::uint64_t i = below(3); i > 0 && !calms; --i) answer.body += "<a href='" + some_url() + "'>x</a>";
    if (one_in(12)) answer.status = one_in(2) ? 404 : 500;
    if (one_in(20)) answer.error = Errc::network, answer.connects = one_in(2);
    return answer;
  };
  store->polls = below(3) * 4;
  sim.begin();
  for (const char* name : {"p", "q", "r"}) put(definition_of(name));
  for (int step = 0; step < 250; ++step) {
    const std::size_t turns = store->turns;
    const TimePoint before = sim.loop.time();
    do_something();
    const double seconds = std::chrono::duration<double>(sim.loop.time() - before).count();
    ASSERT_LT(static_cast<double>(store->turns - turns), 20'000 + 1'500 * seconds) << "busy at step " << step;
    ASSERT_LE(sim.engine->under_way(), sim.options.concurrency);
    ASSERT_FALSE(sim.store->failure()) << sim.store->failure()->message;
    if (step % 10 == 0) {
      for (const char* name : {"p", "q", "r"}) expect_true_counts(name);
      if (HasFailure()) FAIL() << "step " << step << ", last done " << last_done;
    }
  }
  // All is let go, and comes to an end.
  calms = true;
  for (const char* name : {"p", "q", "r"}) {
    (void)sim.engine->restore(name);
    if (!sim.engine->project(name)) continue;
    EXPECT_TRUE(sim.engine->set_status(name, ProjectStatus::running));
    EXPECT_TRUE(sim.engine->set_rate(name, std::nullopt, std::nullopt));
    EXPECT_TRUE(sim.engine->resume(name));
  }
  sim.pass(12h);
  said.ticks.clear();
  sim.stop();
  sim.begin();
  sim.pass(12h + 30min);
  for (const char* name : {"p", "q", "r"}) {
    const auto status = sim.engine->project(name);
    if (!status) continue;
    expect_true_counts(name);
    const auto rounds = sim.store->rounds(status->id, 10'000);
    ASSERT_TRUE(rounds);
    for (std::size_t i = 0; i < rounds->size(); ++i) {
      EXPECT_EQ((*rounds)[i].number, static_cast<std::int64_t>(rounds->size() - i)) << name;
      if (i > 0 || status->outstanding > 20)
        EXPECT_TRUE((*rounds)[i].ended) << name << " " << (*rounds)[i].number << " " << status->outstanding;
    }
    if (status->round)
      EXPECT_GT(status->round->began, sim.backend.clock().wall_now() - 24h * 2) << name << " " << status->outstanding;
  }
  sim.stop();
  EXPECT_EQ(sim.web.under_way, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PageEngineModel, testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace argiope

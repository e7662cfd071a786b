// Projects by the API, over an engine on a store in memory and a simulated web.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"
#include "serve/base/internal/daemon_projects.hpp"
#include "serve/notify/notifier.hpp"
#include "serve/notify/project_news.hpp"
#include "serve/watch/health.hpp"
#include "serve/watch/metrics.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

constexpr const char* kShop = R"({"project":{"name":"shop","start":["https://shop.example/"]},
  "rule":[{"name":"list","match":["https://shop.example/"]},
          {"name":"item","match":["https://shop.example/item/*"],"fields":{"title":"css:title"}}]})";

// What scripts that are tried have open, and have ended.
struct TriedScripts {
  int open = 0;
  int closed = 0;
};

class CountedProcessor final : public Processor {
 public:
  CountedProcessor(ProcessorDescription description, TestProcessor::Answer answer, TriedScripts& counts)
      : processor_(std::move(description), std::move(answer)), counts_(counts) {
    ++counts_.open;
  }
  ~CountedProcessor() override { --counts_.open; }
  Coro<Result<ProcessorDescription>> describe() override { return processor_.describe(); }
  Coro<VisitAnswer> process(const PageCall& call) override { return processor_.process(call); }
  std::size_t capacity() const override { return 1; }
  Coro<void> close() override {
    ++counts_.closed;
    co_return;
  }

 private:
  TestProcessor processor_;
  TriedScripts& counts_;
};

class ApiProjects : public ApiTest {
 protected:
  ApiProjects() {
    web_.pages["https://shop.example/"] = page_with({"/item/1", "/item/2", "/item/3"});
    for (int i = 1; i <= 3; ++i) web_.pages[fmt::format("https://shop.example/item/{}", i)] = page_with({});
    page_options_.hosts.user_agent = page_options_.hosts.product_token = "argiope";
    page_options_.reads_on_threads = false;
    page_options_.seed = 1;
  }
  ~ApiProjects() override {
    if (!pages_) return;
    pages_->stop(true);
    run([this]() -> Coro<void> { EXPECT_TRUE(co_await running_); });
    pages_.reset();
  }

  void open_projects(GateOptions gate = {}) {
    page_options_.on_round_end = [this](const std::string& project, const RoundRecord& round,
                                        const std::vector<std::string>& alarms) {
      if (projects_->on_round_end) projects_->on_round_end(project, round, alarms);
    };
    page_store_ = std::make_unique<PromptPageStore>(std::move(*open_page_store(":memory:")));
    pages_ = std::make_unique<PageEngine>(page_options_, *page_store_);
    ASSERT_TRUE(pages_->open(loop_.clock().wall_now()));
    running_ = loop_.create_task(pages_->run(web_, nullptr), "projects");
    projects_ = std::make_unique<DaemonProjects>(DaemonProjects{
        .engine = *pages_,
        .store = *page_store_,
        .is_locked = [](std::string_view name) { return name == "locked"; },
        .read_source = [](const std::string& source) -> Result<PageEngine::Draft> {
          if (source == "broken") return fail(Errc::invalid_input, "source:3: broken");
          PageEngine::Draft draft = draft_of(source.starts_with('{') ? source : kShop);
          draft.source = source;
          return draft;
        },
        .keep_script = [this](const ProjectDefinition& project, const std::string& script) -> Result<void> {
          if (script == "unkept") return fail(Errc::invalid_input, "no file of its own");
          kept_[project.name] = script;
          return {};
        },
        .try_script = [this](const ProjectDefinition&, const std::string& script,
                             ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
          if (script == "unkept") return fail(Errc::invalid_input, "no file of its own");
          return std::make_unique<CountedProcessor>(
              description_, [this, script](const PageCall& call) { return read_by_script(script, call); }, scripts_);
        },
        .failure = {}});
    open({.projects = projects_.get()}, {}, std::move(gate));
    pass(Duration{});
  }
  // With its first round behind it.
  void open_shop() {
    open_projects();
    ASSERT_EQ(put("/v1/projects/shop", kShop).status, 201);
    ASSERT_EQ(post("/v1/projects/shop/start").status, 200);
    pass(1min);
    ASSERT_EQ(get("/v1/projects/shop").text("/round"), "null");
  }

  Coro<VisitAnswer> read_by_script(std::string script, const PageCall& call) {
    calls_.push_back({call.event, call.rule, call.context_json, call.save_json, {}});
    const std::size_t number = calls_.size() - 1;
    if (script == "hang") co_await sleep(24h);
    if (script == "slow") co_await sleep(20s);
    calls_[number].body = call.response.body;  // as late as a script may look at it
    VisitAnswer answer;
    if (script == "fail") {
      answer.failure = ProcessorFailure{
          .text = "ValueError: no", .kind = "ValueError", .where = "shop.py:3", .trace = "Traceback\n  no"};
      co_return answer;
    }
    AskedPage next{.url = "https://shop.example/item/1", .rule = "item", .context_json = R"({"from":"start"})"};
    next.settings.priority = {.is_said = true, .value = 7};
    next.settings.request.method = {.is_said = true, .value = "POST"};
    next.settings.request.headers.emplace_back("X-Shop", Said<std::string>{.is_said = true, .value = "one"});
    next.settings.request.body = {.is_said = true, .value = "a=1"};
    answer.pages = {next, {.url = "nothing", .rule = "item"}};
    answer.results.emplace({PageResult{.part = "", .value_json = R"({"word":"one"})"}});
    answer.messages = {{.project = "other", .message_json = R"([1])"}};
    answer.logs = {{"print", "hello"}};
    answer.save_json = "{\"n\":1}";
    co_return answer;
  }
  std::string trial(std::string_view url, std::string_view more = "") {
    return fmt::format(R"({{"source":"shop","url":"{}"{}}})", url, more);
  }
  // Of a project with a script.
  std::string script_trial(std::string_view script, std::string_view url, std::string_view more = "") {
    return fmt::format(
        R"({{"source":"{{\"project\":{{\"name\":\"script\",\"processor\":[\"python3\",\"shop.py\"]}}}}","script":"{}","url":"{}"{}}})",
        script, url, more);
  }

  struct ScriptCall {
    PageEvent event;
    std::string rule, context, save, body;
  };
  std::vector<ScriptCall> calls_;
  ProcessorDescription description_{.on_start = "on_start"};
  TriedScripts scripts_;

  PageWeb web_;
  PageEngineOptions page_options_;
  std::unique_ptr<PageStore> page_store_;
  std::unique_ptr<PageEngine> pages_;
  std::unique_ptr<DaemonProjects> projects_;
  std::map<std::string, std::string> kept_;  // scripts, by project
  Task<Result<void>> running_;
};

TEST_F(ApiProjects, ADaemonWithoutProjectsSaysSo) {
  EXPECT_EQ(get("/v1/projects").problem(), "not_found");
  EXPECT_EQ(get("/v1/projects/shop").problem(), "not_found");
  EXPECT_EQ(put("/v1/projects/shop", kShop).problem(), "not_found");
  EXPECT_EQ(get("/v1/hosts").problem(), "not_found");
  EXPECT_EQ(get("/v1/hosts/explain?site=a.example").problem(), "not_found");
}

TEST_F(ApiProjects, AProjectIsMadeStartedAndShown) {
  open_projects();
  EXPECT_EQ(get("/v1/projects").text("/projects"), "[]");
  const Answered made = put("/v1/projects/shop", kShop);
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.text("/name"), "shop");
  EXPECT_EQ(made.text("/version"), "1");
  EXPECT_EQ(made.text("/status"), "RUNNING");
  EXPECT_EQ(made.text("/doing"), "waiting");
  EXPECT_EQ(made.text("/rules"), R"(["list","item"])");
  EXPECT_EQ(made.text("/definition/project/name"), "shop");
  EXPECT_EQ(made.text("/source"), "null");
  EXPECT_EQ(made.text("/locked"), "false");
  EXPECT_EQ(post("/v1/projects/shop/start").text("/round/cause"), "start");
  pass(1min);
  const Answered shown = get("/v1/projects/shop");
  EXPECT_EQ(shown.text("/round"), "null");
  EXPECT_EQ(shown.text("/rounds/0/pages"), "4");
  EXPECT_EQ(shown.text("/results"), "3");
  EXPECT_EQ(shown.text("/counts/5m/success"), "4");
  EXPECT_EQ(shown.text("/counts/all/success"), "4");
  EXPECT_EQ(shown.text("/counts/all/failed"), "0");
  EXPECT_GE(shown.at("/mean_ms/fetch").to_number<double>(), 10);
  for (const auto& [span, steps, seconds] :
       {std::tuple("5m", 30, "10"), std::tuple("1h", 60, "60"), std::tuple("1d", 144, "600")}) {
    const std::string history = fmt::format("/history/{}", span);
    EXPECT_EQ(shown.text(history + "/step_s"), seconds);
    std::uint64_t all = 0;
    for (int i = 0; i < steps; ++i)
      all += shown.at(fmt::format("{}/success/{}", history, i)).to_number<std::uint64_t>();
    EXPECT_EQ(all, 4) << history;
    EXPECT_LT(shown.text(history + "/began"), shown.text(history + "/ended"));
    EXPECT_EQ(shown.text(fmt::format("{}/failed/{}", history, steps - 1)), "0");
  }
  EXPECT_EQ(shown.text("/coverage"), R"([{"field":"title","records":3,"dropped":0,"found":3}])");
  EXPECT_EQ(shown.text("/alarms"), "[]");
  EXPECT_EQ(get("/v1/projects").text("/projects/0/name"), "shop");
}

TEST_F(ApiProjects, TheLastRoundsCoverageAndAlarmsAreShown) {
  open_projects();
  ASSERT_EQ(put("/v1/projects/shop", R"({"project":{"name":"shop","start":["https://shop.example/"]},
    "rule":[{"name":"page","fields":{"title":"css:title","price":"css:.price"}}],"alarm":{"coverage":{"price":0.5},"least_results":100}})")
                .status,
            201);
  EXPECT_EQ(get("/v1/projects/shop").text("/coverage"), "[]");
  EXPECT_EQ(get("/v1/projects/shop").text("/alarms"), "[]");
  ASSERT_EQ(post("/v1/projects/shop/start").status, 200);
  pass(1min);
  const Answered shown = get("/v1/projects/shop");
  EXPECT_EQ(shown.text("/coverage/0/field"), "title");
  EXPECT_EQ(shown.text("/coverage/0/found"), "4");
  EXPECT_EQ(shown.text("/coverage/1/field"), "price");
  EXPECT_EQ(shown.text("/coverage/1/records"), "4");
  EXPECT_EQ(shown.text("/coverage/1/found"), "0");
  EXPECT_EQ(shown.text("/alarms/0"), "price is in 0% of 4 results, at least 50% is wanted");
  EXPECT_EQ(shown.text("/alarms/1"), "the round has 4 results, at least 100 are wanted");
}

TEST_F(ApiProjects, WhatIsWrongInADefinitionIsToldAndNothingIsMade) {
  open_projects();
  for (const char* body : {"[]", "{", "{}", R"({"project":{"name":"shop"}})", R"({"source":"broken"})",
                           R"({"source":"x","more":1})", R"({"source":7})"}) {
    EXPECT_EQ(put("/v1/projects/shop", body).problem(), "invalid_input") << body;
  }
  const Answered other_name = put("/v1/projects/other", kShop);
  EXPECT_EQ(other_name.problem(), "invalid_input");
  EXPECT_EQ(other_name.text("/errors/0/pointer"), "/project/name");
  EXPECT_EQ(get("/v1/projects").text("/projects"), "[]");
}

TEST_F(ApiProjects, ItsSinksDoNothingWithTheDaemonsRights) {
  open_projects();
  const auto with = [&](std::string_view sink) {
    return put(
        "/v1/projects/shop",
        fmt::format(
            R"({{"project":{{"name":"shop","start":["http://a.test/"]}},"rule":[{{"name":"page"}}],"sink":[{{"queue":"q"}},{}]}})",
            sink));
  };
  for (const char* const sink :
       {R"({"command":["sh","-c","id"]})", R"({"postgresql":"host=a.test","table":"results"})",
        R"({"webhook":"https://a.test/","secret_file":"key"})", R"({"webhook":"https://a.test/","secret_env":"KEY"})",
        R"({"file":"/etc/cron.d/results.jsonl"})", R"({"file":"../results.jsonl"})",
        R"({"file":"a/../../results.jsonl"})", R"({"file":".."})"}) {
    const Answered refused = with(sink);
    EXPECT_EQ(refused.problem(), "invalid_input") << sink;
    EXPECT_EQ(refused.text("/errors/0/pointer"), "/sink/1") << sink;
  }
  EXPECT_EQ(get("/v1/projects").text("/projects"), "[]");
  EXPECT_EQ(with(R"({"file":"results..jsonl"})").status, 201);
  EXPECT_EQ(with(R"({"webhook":"https://a.test/"})").status, 200);
}

TEST_F(ApiProjects, StatusRateAndGroupAreChangedBesideTheFile) {
  open_shop();
  const Answered changed = patch("/v1/projects/shop", R"({"status":"STOP","rate":0.5,"group":"shops"})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.text("/status"), "STOP");
  EXPECT_EQ(changed.text("/doing"), "stopped");
  EXPECT_EQ(changed.at("/rate").to_number<double>(), 0.5);
  EXPECT_EQ(changed.text("/group"), "shops");
  EXPECT_EQ(changed.text("/version"), "1");
  EXPECT_EQ(post("/v1/projects/shop/start").problem(), "wrong_state");
  const Answered burst = patch("/v1/projects/shop", R"({"burst":7})");
  EXPECT_EQ(burst.at("/rate").to_number<double>(), 0.5) << "the rate stays";
  EXPECT_EQ(burst.text("/burst"), "7");
  const Answered back = patch("/v1/projects/shop", R"({"rate":null,"status":"RUNNING"})");
  EXPECT_EQ(back.text("/rate"), "null");
  EXPECT_EQ(back.text("/burst"), "7");
  EXPECT_EQ(back.text("/doing"), "waiting");
  for (const char* body : {R"({"status":"GO"})", R"({"rate":-1})", R"({"rate":"fast"})", R"({"burst":0})",
                           R"({"colour":"red"})", R"({"status":"STOP","burst":"x"})"}) {
    EXPECT_EQ(patch("/v1/projects/shop", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(get("/v1/projects/shop").text("/status"), "RUNNING");
  EXPECT_EQ(patch("/v1/projects/none", "{}").problem(), "not_found");
  // So seldom that it is never.
  patch("/v1/projects/shop", R"({"rate":1e-300,"burst":1})");
  post(
      "/v1/projects/shop/pages",
      R"({"pages":[{"url":"https://shop.example/item/1","force":true},{"url":"https://shop.example/item/2","force":true},
    {"url":"https://shop.example/item/3","force":true}]})");
  pass(1min);
  EXPECT_EQ(get("/v1/projects/shop").text("/doing"), "waiting");
  EXPECT_EQ(get("/v1/projects/shop").text("/until"), "null");
  EXPECT_GT(get("/v1/projects/shop").at("/outstanding").to_number<int>(), 0);
}

TEST_F(ApiProjects, ResultsArePagesAndGoOnWhereTheyEnded) {
  open_shop();
  const Answered first = get("/v1/projects/shop/results?limit=2");
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.at("/results").as_array().size(), 2u);
  EXPECT_EQ(first.text("/results/0/page"), "https://shop.example/item/1");
  EXPECT_EQ(first.text("/results/0/rule"), "item");
  EXPECT_EQ(first.text("/results/0/value/title"), "page");
  const Answered rest = get("/v1/projects/shop/results?limit=2&after=" + first.text("/next"));
  EXPECT_EQ(rest.at("/results").as_array().size(), 1u);
  EXPECT_EQ(rest.text("/results/0/page"), "https://shop.example/item/3");
  EXPECT_EQ(rest.text("/next"), "null");
  for (const char* query :
       {"after=x", "after=5", "after=99999999999999999999/", "limit=0", "format=xml", "format=csv&limit=3"}) {
    EXPECT_EQ(get(fmt::format("/v1/projects/shop/results?{}", query)).problem(), "invalid_input") << query;
  }
  EXPECT_EQ(get("/v1/projects/shop/results?format=csv").header("Content-Type"),
            "text/csv; charset=utf-8; header=present");
  EXPECT_EQ(get("/v1/projects/shop/results?format=jsonl").header("Content-Type"), "application/jsonl");
}

TEST_F(ApiProjects, ResultsAreThoseOfARuleOrOfAPage) {
  open_shop();
  const Answered all = get("/v1/projects/shop/results");
  EXPECT_EQ(all.text("/columns"), R"(["title"])");
  EXPECT_EQ(get("/v1/projects/shop/results?rule=item").at("/results").as_array().size(), 3u);
  EXPECT_EQ(get("/v1/projects/shop/results?rule=list").text("/results"), "[]");
  EXPECT_EQ(get("/v1/projects/shop/results?rule=list").text("/next"), "null");
  const Answered one = get("/v1/projects/shop/results?page=https://shop.example/item/2");
  ASSERT_EQ(one.at("/results").as_array().size(), 1u) << one.body;
  EXPECT_EQ(one.text("/results/0/page"), "https://shop.example/item/2");
  EXPECT_EQ(one.text("/next"), "null");
  EXPECT_EQ(get("/v1/projects/shop/results?page=https://shop.example/").text("/results"), "[]");
  EXPECT_EQ(get("/v1/projects/shop/results?page=nothing").problem(), "not_found");
  EXPECT_EQ(get("/v1/projects/shop/results?format=csv&page=https://shop.example/").problem(), "invalid_input");
}

TEST_F(ApiProjects, ResultsAreDownloads) {
  open_shop();
  const Answered csv = get("/v1/projects/shop/results?format=csv");
  EXPECT_EQ(csv.header("Content-Disposition"), "attachment; filename=\"shop-results.csv\"");
  EXPECT_EQ(get("/v1/projects/shop/results?format=jsonl").header("Content-Disposition"),
            "attachment; filename=\"shop-results.jsonl\"");
  const Answered array = get("/v1/projects/shop/results?format=array");
  EXPECT_EQ(array.header("Content-Disposition"), "attachment; filename=\"shop-results.json\"");
  EXPECT_EQ(array.header("Content-Type"), "application/json");
  std::string json = kShop;
  json.replace(json.find("\"shop\""), 6, "\"a.b-c_d\"");
  ASSERT_EQ(put("/v1/projects/a.b-c_d", json).status, 201);
  EXPECT_EQ(get("/v1/projects/a.b-c_d/results?format=csv").header("Content-Disposition"),
            "attachment; filename=\"a_b-c_d-results.csv\"");
}

TEST_F(ApiProjects, TheFeedIsToldBackwardsToo) {
  open_shop();
  const Answered two = get("/v1/projects/shop/feed?order=newest&limit=2");
  ASSERT_EQ(two.at("/feed").as_array().size(), 2u) << two.body;
  EXPECT_EQ(two.text("/feed/0/page"), "https://shop.example/item/3");
  EXPECT_EQ(two.text("/next"), two.text("/feed/1/number"));
  const Answered rest = get("/v1/projects/shop/feed?order=newest&limit=2&before=" + two.text("/next"));
  ASSERT_EQ(rest.at("/feed").as_array().size(), 1u) << rest.body;
  EXPECT_EQ(rest.text("/feed/0/page"), "https://shop.example/item/1");
  EXPECT_EQ(rest.text("/next"), "null");
  for (const char* query : {"before=5", "order=newest&before=0", "order=random"}) {
    EXPECT_EQ(get(fmt::format("/v1/projects/shop/feed?{}", query)).problem(), "invalid_input") << query;
  }
}

TEST_F(ApiProjects, TheFeedTellsWhatBecameOfResults) {
  open_shop();
  const Answered feed = get("/v1/projects/shop/feed");
  ASSERT_EQ(feed.at("/feed").as_array().size(), 3u);
  EXPECT_EQ(feed.text("/feed/0/news"), "added");
  EXPECT_EQ(feed.text("/next"), feed.text("/feed/2/number"));
  web_.pages["https://shop.example/item/2"].body = "<title>new</title>";
  EXPECT_EQ(post("/v1/projects/shop/pages", R"({"url":"https://shop.example/item/2","force":true})").text("/verdict"),
            "again");
  pass(1min);
  const Answered more = get("/v1/projects/shop/feed?after=" + feed.text("/next"));
  ASSERT_EQ(more.at("/feed").as_array().size(), 1u) << more.body;
  EXPECT_EQ(more.text("/feed/0/news"), "changed");
  EXPECT_EQ(more.text("/feed/0/value/title"), "new");
  EXPECT_EQ(get("/v1/projects/shop/feed?after=" + more.text("/next")).text("/next"), more.text("/next"));
}

TEST_F(ApiProjects, VersionsAreKeptAndAnOldOneComesBack) {
  open_shop();
  const std::string other =
      R"({"project":{"name":"shop","start":["https://shop.example/item/1"]},"rule":[{"name":"all","match":["https://shop.example/**"]}]})";
  EXPECT_EQ(put("/v1/projects/shop", other).text("/version"), "2");
  EXPECT_EQ(put("/v1/projects/shop", other).text("/version"), "2") << "the same again is no new version";
  EXPECT_EQ(get("/v1/projects/shop/versions").at("/versions").as_array().size(), 2u);
  EXPECT_EQ(get("/v1/projects/shop/versions").text("/versions/0/note"), "by local");
  EXPECT_EQ(get("/v1/projects/shop/versions/1").text("/definition/rule/0/name"), "list");
  EXPECT_EQ(get("/v1/projects/shop/versions/3").problem(), "not_found");
  EXPECT_EQ(get("/v1/projects/shop/versions/x").problem(), "not_found");
  const Answered back = post("/v1/projects/shop/roll-back", R"({"version":1})");
  EXPECT_EQ(back.text("/version"), "3") << back.body;
  EXPECT_EQ(back.text("/rules"), R"(["list","item"])");
  EXPECT_EQ(get("/v1/projects/shop/versions/3").text("/note"), "back to 1");
  EXPECT_EQ(post("/v1/projects/shop/roll-back", R"({"version":9})").problem(), "not_found");
  EXPECT_EQ(post("/v1/projects/shop/roll-back").problem(), "invalid_input");
  EXPECT_EQ(put("/v1/projects/shop", R"({"source":"[project]\n# mine","note":"why"})").text("/source"),
            "[project]\n# mine");
  EXPECT_EQ(get("/v1/projects/shop/versions/4").text("/note"), "why");
  const Answered reworded = put("/v1/projects/shop", R"({"source":"[project]\n# ours","note":"why"})");
  EXPECT_EQ(reworded.text("/version"), "5") << "a comment is kept, too";
  EXPECT_EQ(reworded.text("/source"), "[project]\n# ours");
}

TEST_F(ApiProjects, AScriptIsKeptWithItsVersion) {
  open_projects();
  const auto with_script = [](const char* script) {
    return fmt::format(R"({{"source":"[project]","script":"{}"}})", script);
  };
  EXPECT_EQ(put("/v1/projects/shop", with_script("unkept")).problem(), "invalid_input");
  EXPECT_EQ(get("/v1/projects").text("/projects"), "[]");
  EXPECT_EQ(put("/v1/projects/shop", with_script("one")).text("/script"), "one");
  EXPECT_EQ(put("/v1/projects/shop", with_script("two")).text("/version"), "2");
  EXPECT_EQ(kept_["shop"], "two");
  EXPECT_EQ(post("/v1/projects/shop/roll-back", R"({"version":1})").text("/script"), "one");
  EXPECT_EQ(kept_["shop"], "one");
}

TEST_F(ApiProjects, PagesAreListedAskedForAndExplained) {
  open_shop();
  EXPECT_EQ(get("/v1/projects/shop/pages").at("/pages").as_array().size(), 4u);
  EXPECT_EQ(get("/v1/projects/shop/pages?state=failed").text("/pages"), "[]");
  const Answered two = get("/v1/projects/shop/pages?state=done&limit=2");
  EXPECT_EQ(two.text("/pages/0/page"), "https://shop.example/");
  EXPECT_EQ(two.text("/pages/0/rule"), "list");
  EXPECT_EQ(two.text("/pages/0/status_code"), "200");
  EXPECT_EQ(get("/v1/projects/shop/pages?state=done&after=" + two.text("/next")).at("/pages").as_array().size(), 2u);
  EXPECT_EQ(get("/v1/projects/shop/pages?state=lost").problem(), "invalid_input");

  EXPECT_EQ(get("/v1/projects/shop/pages/explain?page=https://shop.example/").text("/reason"), "fresh");
  EXPECT_EQ(get("/v1/projects/shop/pages/explain?page=https://shop.example/item/9").text("/known"), "false");
  EXPECT_EQ(get("/v1/projects/shop/pages/explain").problem(), "invalid_input");

  const Answered several =
      post("/v1/projects/shop/pages",
           R"({"pages":[{"url":"https://shop.example/item/9"},{"url":"https://shop.example/item/1"},
    {"url":"https://other.example/"},{"url":"nothing"},7]})");
  ASSERT_EQ(several.status, 200) << several.body;
  EXPECT_EQ(several.text("/replies/0/verdict"), "add");
  EXPECT_EQ(several.text("/replies/1/verdict"), "drop");
  for (int i = 2; i < 5; ++i) EXPECT_EQ(several.text(fmt::format("/replies/{}/error/status", i)), "400");
  EXPECT_EQ(post("/v1/projects/shop/pages", "{}").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/projects/shop/pages", R"({"pages":[],"url":"x"})").problem(), "invalid_input");
  pass(10s);
  EXPECT_EQ(web_.times_asked("https://shop.example/item/9"), 1u);
  const Answered recent = get("/v1/projects/shop/recent");
  EXPECT_EQ(recent.text("/visits/0/page"), "https://shop.example/item/9");
  EXPECT_EQ(recent.text("/visits/0/status_code"), "404");
  EXPECT_EQ(recent.text("/visits/0/succeeded"), "false");
}

TEST_F(ApiProjects, AMemberThatIsThereTwiceIsRefused) {
  open_shop();
  for (
      const char* body :
      {R"({"project":{"name":"two","name":"two"},"rule":[{"name":"x"}]})",
       R"({"project":{"name":"two","start":["https://a.example/"],"start":["https://b.example/"]},"rule":[{"name":"x"}]})",
       R"({"project":{"name":"two"},"rule":[{"name":"x","age":"1h","age":"2h"}]})",
       R"({"project":{"name":"two"},"rule":[{"name":"x","fields":{"t":"css:h1","t":"css:h2"}}]})"}) {
    const Answered answered = put("/v1/projects/two", body);
    EXPECT_EQ(answered.problem(), "invalid_input") << body;
    EXPECT_THAT(answered.text("/detail"), ::testing::HasSubstr("is there twice")) << body;
  }
  EXPECT_EQ(get("/v1/projects/two").problem(), "not_found");
  const std::string twice = R"({"url":"https://shop.example/item/8","request":{"headers":{"X-A":"b","X-A":"c"}}})";
  EXPECT_EQ(post("/v1/projects/shop/pages", twice).text("/errors/0/pointer"), "/request/headers/X-A");
  const Answered several =
      post("/v1/projects/shop/pages", R"({"pages":[)" + twice + R"(,{"url":"https://shop.example/item/9"}]})");
  EXPECT_THAT(several.text("/replies/0/error/detail"), ::testing::HasSubstr("is there twice"));
  EXPECT_EQ(several.text("/replies/1/verdict"), "add");
  // What a script keeps for itself is its own.
  EXPECT_EQ(post("/v1/projects/shop/pages", R"({"url":"https://shop.example/item/10","context":{"a":1,"a":2}})").status,
            200);
}

// What looks at many rows lets others go on between.
TEST_F(ApiProjects, PagesAndResultsAreLookedThroughInSlices) {
  open_shop();
  std::string asked = R"({"pages":[)";
  for (int i = 0; i < 3'000; ++i)
    asked +=
        fmt::format(R"({}{{"url":"https://shop.example/item/{}","delay_ms":86400000}})", i == 0 ? "" : ",", 10'000 + i);
  ASSERT_EQ(post("/v1/projects/shop/pages", asked + "]}").status, 200);
  run([&]() -> Coro<void> {
    Task<Answered> listing = loop_.create_task(asking(HttpMethod::get, "/v1/projects/shop/pages?state=failed"));
    std::size_t turns = 0;
    for (; !listing.done(); ++turns) co_await yield_now();
    EXPECT_EQ((co_await listing).text("/pages"), "[]");
    EXPECT_GE(turns, 10u);
  });
  std::size_t told = 0;
  std::string after = "0";
  for (int page = 0; page < 20 && after != "null"; ++page) {
    const Answered some = get("/v1/projects/shop/pages?limit=1000&after=" + after);
    told += some.at("/pages").as_array().size();
    after = some.text("/next");
  }
  EXPECT_EQ(told, 3'004u) << "each once";
}

TEST_F(ApiProjects, AProjectMayGoWhileItsPagesAreLookedThrough) {
  open_shop();
  std::string asked = R"({"pages":[)";
  for (int i = 0; i < 1'000; ++i)
    asked +=
        fmt::format(R"({}{{"url":"https://shop.example/item/{}","delay_ms":86400000}})", i == 0 ? "" : ",", 10'000 + i);
  ASSERT_EQ(post("/v1/projects/shop/pages", asked + "]}").status, 200);
  run([&]() -> Coro<void> {
    Task<Answered> listing = loop_.create_task(asking(HttpMethod::get, "/v1/projects/shop/pages?state=failed"));
    co_await yield_now();
    const Answered gone = co_await asking(HttpMethod::delete_, "/v1/projects/shop");
    EXPECT_LT(gone.status, 300) << gone.body;
    EXPECT_FALSE(listing.done());
    EXPECT_EQ((co_await listing).text("/pages"), "[]");
  });
  EXPECT_EQ(get("/v1/projects/shop/pages").problem(), "not_found");
}

TEST_F(ApiProjects, PagesAreThoseOfARuleOrWithAText) {
  open_shop();
  EXPECT_EQ(get("/v1/projects/shop/pages?rule=item").at("/pages").as_array().size(), 3u);
  EXPECT_EQ(get("/v1/projects/shop/pages?rule=none").text("/pages"), "[]");
  const Answered one = get("/v1/projects/shop/pages?filter=ITEM/2");
  ASSERT_EQ(one.at("/pages").as_array().size(), 1u) << one.body;
  EXPECT_EQ(one.text("/pages/0/page"), "https://shop.example/item/2");
  EXPECT_EQ(one.text("/pages/0/tag"), "null");
  EXPECT_EQ(get("/v1/projects/shop/pages?rule=list&filter=item").text("/pages"), "[]");
  // What nearly fits everywhere takes no longer.
  const std::string many(60'000, 'a'), filter(7'000, 'A');
  for (int i = 0; i < 50; ++i) {
    const std::string body = fmt::format(R"({{"url":"https://shop.example/item/{}{}","delay_ms":86400000}})", i, many);
    ASSERT_EQ(post("/v1/projects/shop/pages", body).text("/verdict"), "add");
  }
  EXPECT_EQ(get(fmt::format("/v1/projects/shop/pages?limit=1000&filter={}", filter)).at("/pages").as_array().size(),
            50u);
  EXPECT_EQ(get(fmt::format("/v1/projects/shop/pages?filter={}b{}", filter, filter)).text("/pages"), "[]");
}

TEST_F(ApiProjects, APageIsShownWithAllThatIsKnownOfIt) {
  open_shop();
  const Answered two = get("/v1/projects/shop/pages/one?page=https://shop.example/item/2");
  ASSERT_EQ(two.status, 200) << two.body;
  EXPECT_EQ(two.text("/state"), "done");
  EXPECT_EQ(two.text("/rule"), "item");
  EXPECT_EQ(two.text("/status_code"), "200");
  EXPECT_EQ(two.text("/from"), "https://shop.example/");
  EXPECT_EQ(two.text("/settings"), "{}");
  EXPECT_EQ(two.text("/context"), "null");
  EXPECT_EQ(two.text("/crashes"), "0");
  EXPECT_EQ(post("/v1/projects/shop/pages",
                 R"({"url":"https://shop.example/item/7","name":"seven","rule":"item","tag":"v2","delay_ms":3600000,
    "context":{"n":1},"request":{"headers":{"Authorization":"secret"}}})")
                .text("/verdict"),
            "add");
  const Answered seven = get("/v1/projects/shop/pages/one?page=seven");
  EXPECT_EQ(seven.text("/url"), "https://shop.example/item/7");
  EXPECT_EQ(seven.text("/state"), "waiting");
  EXPECT_EQ(seven.text("/tag"), "v2");
  EXPECT_EQ(seven.text("/context"), R"({"n":1})");
  EXPECT_EQ(seven.text("/settings/request/headers/Authorization"), "secret");
  EXPECT_EQ(seven.text("/from"), "null");
  EXPECT_EQ(get("/v1/projects/shop/pages/one?page=eight").problem(), "not_found");
  EXPECT_EQ(get("/v1/projects/shop/pages/one").problem(), "invalid_input");
}

TEST_F(ApiProjects, WhoMayOnlyLookSeesNoSecretsOfAPage) {
  open_projects({.tokens = {token_named("reader", TokenScope::read), token_named("owner", TokenScope::admin)}});
  run([&]() -> Coro<void> {
    EXPECT_TRUE(pages_->put_project(draft_of(kShop)));
    co_return;
  });
  const std::string page =
      R"({"url":"https://shop.example/item/7","delay_ms":3600000,"retries":9,"request":{"method":"POST","body":"secret=1",
    "headers":{"Authorization":"secret","X-Empty":""},"cookies":{"session":"secret"},"proxy":"http://ann:secret@proxy.example:8080"}})";
  ASSERT_EQ(ask_as("owner", HttpMethod::post, "/v1/projects/shop/pages", page).text("/verdict"), "add");
  const Answered whole =
      ask_as("owner", HttpMethod::get, "/v1/projects/shop/pages/one?page=https://shop.example/item/7");
  EXPECT_EQ(whole.text("/settings/request/cookies/session"), "secret") << whole.body;
  const Answered hidden =
      ask_as("reader", HttpMethod::get, "/v1/projects/shop/pages/one?page=https://shop.example/item/7");
  ASSERT_EQ(hidden.status, 200) << hidden.body;
  EXPECT_THAT(hidden.body, testing::Not(testing::HasSubstr("secret")));
  EXPECT_EQ(hidden.text("/settings/request/headers/Authorization"), "…");
  EXPECT_EQ(hidden.text("/settings/request/cookies/session"), "…");
  EXPECT_EQ(hidden.text("/settings/retries"), "9");
}

TEST_F(ApiProjects, WhoMayOnlyLookSeesNoSecretsOfADefinition) {
  open_projects({.tokens = {token_named("reader", TokenScope::read), token_named("owner", TokenScope::admin)}});
  const std::string shop =
      R"({"project":{"name":"shop","start":["https://shop.example/"],"request":{"cookies":{"a":"geheim"},"proxy":"http://geheim/"}},
    "rule":[{"name":"r","match":"/r/*","fields":{"body":"css:body","headers":"css:h1"},"request":{"headers":{"X-Key":"geheim"},"method":"POST","body":"geheim"}},
            {"name":"rendered","request":{"render":{"script":"geheim","width":500}}}],
    "sink":[{"name":"chat","webhook":"https://a:geheim@chat.example/?token=geheim"},{"name":"path","webhook":"https://chat.example:8443/geheim"},{"webhook":"https://chat.example/geheim/2"},
            {"name":"plain","webhook":"https://chat.example/"}]})";
  PageEngine::Draft draft = draft_of(shop);
  draft.source = "# geheim";
  run([&]() -> Coro<void> {
    EXPECT_TRUE(pages_->put_project(std::move(draft)));
    EXPECT_TRUE(pages_->put_project([&] {
      PageEngine::Draft plain =
          draft_of(R"({"project":{"name":"plain","start":["https://shop.example/"]},"rule":[{"name":"r"}]})");
      plain.source = "# plain";
      return plain;
    }()));
    co_return;
  });
  for (const std::string path : {"/v1/projects/shop", "/v1/projects/shop/versions/1"}) {
    const Answered shown = ask_as("reader", HttpMethod::get, path);
    ASSERT_EQ(shown.status, 200) << shown.body;
    EXPECT_THAT(shown.body, testing::Not(testing::HasSubstr("geheim")));
    EXPECT_EQ(shown.text("/definition/rule/0/request/headers/X-Key"), "…");
    EXPECT_EQ(shown.text("/definition/rule/0/request/method"), "POST");
    EXPECT_EQ(shown.text("/definition/rule/0/fields/body"), "css:body") << "a field may have any name";
    EXPECT_EQ(shown.text("/definition/rule/0/fields/headers"), "css:h1");
    EXPECT_EQ(shown.text("/definition/rule/1/request/render/script"), "…");
    EXPECT_EQ(shown.text("/definition/rule/1/request/render/width"), "500");
    EXPECT_EQ(shown.text("/definition/sink/0/webhook"), "https://chat.example/…");
    EXPECT_EQ(shown.text("/definition/sink/1/webhook"), "https://chat.example:8443/…");
    EXPECT_EQ(shown.text("/definition/sink/3/webhook"), "https://chat.example/");
    EXPECT_EQ(shown.text("/source"), "null");
    EXPECT_EQ(ask_as("owner", HttpMethod::get, path).text("/source"), "# geheim");
    EXPECT_EQ(ask_as("owner", HttpMethod::get, path).text("/definition/project/request/cookies/a"), "geheim");
  }
  EXPECT_EQ(ask_as("reader", HttpMethod::get, "/v1/projects/plain").text("/source"), "# plain");
}

TEST_F(ApiProjects, AMessageFromOutsideReachesTheScript) {
  ProcessorDescription said{.on_start = "on_start"};
  said.on_message = "heard";
  std::vector<std::string> got;
  page_options_.make_processor = [&](const ProjectDefinition& project,
                                     ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    ProcessorDescription its = said;
    if (project.name == "deaf") its.on_message.clear();
    return std::make_unique<TestProcessor>(its, [&](const PageCall& call) -> Coro<VisitAnswer> {
      if (call.event == PageEvent::message) got.push_back(call.rule + " " + call.context_json);
      co_return VisitAnswer{};
    });
  };
  open_projects();
  ASSERT_EQ(put("/v1/projects/shop", kShop).status, 201);
  for (const std::string name : {"script", "deaf"}) {
    ASSERT_EQ(put("/v1/projects/" + name, R"({"project":{"name":")" + name + R"(","processor":["true"]}})").status,
              201);
  }
  pass(1min);
  const Answered sent =
      post("/v1/projects/script/messages", R"({"message":{"n":[1,null]},"url":"https://shop.example/"})");
  EXPECT_EQ(sent.status, 200) << sent.body;
  pass(1min);
  EXPECT_EQ(post("/v1/projects/script/messages", R"({"message":"hello"})").text("/page"), "data:,on_message");
  pass(1min);
  EXPECT_THAT(got, testing::ElementsAre(R"(heard {"project":"__command__","message":{"n":[1,null]}})",
                                        R"(heard {"project":"__command__","message":"hello"})"));
  EXPECT_THAT(web_.asked(), testing::IsEmpty());
  EXPECT_THAT(post("/v1/projects/deaf/messages", R"({"message":1})").body, testing::HasSubstr("takes no messages"));
  EXPECT_THAT(post("/v1/projects/shop/messages", R"({"message":1})").body, testing::HasSubstr("takes no messages"))
      << "it has no script";
  EXPECT_EQ(post("/v1/projects/none/messages", R"({"message":1})").problem(), "not_found");
  for (const std::string body : {R"({})", R"({"message":1,"to":"x"})", R"({"message":1,"url":""})"}) {
    EXPECT_EQ(post("/v1/projects/script/messages", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(post("/v1/projects/script/messages", R"({"message":")" + std::string(70'000, 'x') + R"("})").problem(),
            "invalid_input");
}

TEST_F(ApiProjects, WhatAScriptSeesBesidesItsFolderIsNotForTheApi) {
  open_projects();
  const Answered refused =
      put("/v1/projects/venv", R"({"project":{"name":"venv","processor":["python3","shop.py"],"readable":["/etc"]}})");
  EXPECT_EQ(refused.problem(), "invalid_input");
  EXPECT_THAT(refused.body, testing::HasSubstr("/project/readable"));
}

TEST_F(ApiProjects, ADeletedProjectCanBeRestored) {
  open_shop();
  EXPECT_EQ(post("/v1/projects/shop/restore").problem(), "wrong_state");
  EXPECT_EQ(erase("/v1/projects/shop").status, 204);
  EXPECT_EQ(get("/v1/projects/shop").problem(), "not_found");
  EXPECT_EQ(get("/v1/projects").text("/deleted/0/name"), "shop");
  EXPECT_EQ(put("/v1/projects/shop", kShop).problem(), "conflict") << "its name is taken as long as it can be restored";
  EXPECT_EQ(post("/v1/projects/shop/restore").text("/results"), "3");
  EXPECT_EQ(get("/v1/projects").text("/deleted"), "[]");
  EXPECT_EQ(post("/v1/projects/none/restore").problem(), "not_found");
}

TEST_F(ApiProjects, WhatTheConfigurationNamesIsChangedInItsFile) {
  open_projects();
  std::string json = kShop;
  json.replace(json.find("\"shop\""), 6, "\"locked\"");
  run([&]() -> Coro<void> {
    EXPECT_TRUE(pages_->put_project(draft_of(json)));
    co_return;
  });
  EXPECT_EQ(get("/v1/projects/locked").text("/locked"), "true");
  EXPECT_EQ(put("/v1/projects/locked", json).problem(), "locked");
  EXPECT_EQ(erase("/v1/projects/locked").problem(), "locked");
  EXPECT_EQ(post("/v1/projects/locked/roll-back", R"({"version":1})").problem(), "locked");
  EXPECT_EQ(patch("/v1/projects/locked", R"({"status":"STOP"})").text("/status"), "STOP");
  EXPECT_EQ(patch("/v1/projects/locked", R"({"status":"RUNNING"})").status, 200);
  EXPECT_EQ(post("/v1/projects/locked/start").status, 200);
}

TEST_F(ApiProjects, ATokenSeesAndChangesWhatItMay) {
  open_projects(
      {.tokens = {token_named("reader", TokenScope::read), token_named("other", TokenScope::admin, {"other"})}});
  run([&]() -> Coro<void> {
    EXPECT_TRUE(pages_->put_project(draft_of(kShop)));
    co_return;
  });
  EXPECT_EQ(get("/v1/projects").problem(), "unauthorized");
  EXPECT_EQ(ask_as("reader", HttpMethod::get, "/v1/projects").text("/projects/0/name"), "shop");
  EXPECT_EQ(ask_as("reader", HttpMethod::post, "/v1/projects/shop/start").problem(), "forbidden");
  EXPECT_EQ(ask_as("reader", HttpMethod::patch, "/v1/projects/shop", "{}").problem(), "forbidden");
  EXPECT_EQ(ask_as("other", HttpMethod::get, "/v1/projects").text("/projects"), "[]");
  EXPECT_EQ(ask_as("other", HttpMethod::get, "/v1/projects/shop").problem(), "forbidden");
  EXPECT_EQ(ask_as("other", HttpMethod::get, "/v1/projects/shop/results").problem(), "forbidden");
  EXPECT_EQ(ask_as("other", HttpMethod::put, "/v1/projects/shop", kShop).problem(), "forbidden");
  for (const std::string& body :
       {std::string(R"({"project":"shop","url":"https://shop.example/"})"), trial("https://shop.example/")}) {
    EXPECT_EQ(ask_as("reader", HttpMethod::post, "/v1/projects/try", body).problem(), "forbidden");
    EXPECT_EQ(ask_as("other", HttpMethod::post, "/v1/projects/try", body).problem(), "forbidden");
  }
}

TEST_F(ApiProjects, ItsSinksPutJobsIntoQueuesOfItsTokenAlone) {
  open_projects({.tokens = {token_named("all", TokenScope::admin), token_named("mine", TokenScope::admin, {"mine"})}});
  const auto with = [](std::string_view queue) {
    return fmt::format(
        R"({{"project":{{"name":"mine","start":["http://a.test/"]}},"rule":[{{"name":"page"}}],"sink":[{{"queue":"{}"}}]}})",
        queue);
  };
  EXPECT_EQ(ask_as("mine", HttpMethod::put, "/v1/projects/mine", with("mail")).problem(), "forbidden");
  EXPECT_EQ(ask_as("all", HttpMethod::put, "/v1/projects/mine", with("mail")).status, 201);
  EXPECT_EQ(ask_as("mine", HttpMethod::put, "/v1/projects/mine", with("mine-too")).status, 200);
  EXPECT_EQ(ask_as("mine", HttpMethod::post, "/v1/projects/mine/roll-back", R"({"version":1})").problem(), "forbidden");
  EXPECT_EQ(ask_as("all", HttpMethod::post, "/v1/projects/mine/roll-back", R"({"version":1})").status, 200);
}

// Of one page, and of none on the hosts behind it.
std::string project_at(std::string_view name, std::string_view site) {
  return fmt::format(R"({{"project":{{"name":"{}","start":["{}/"]}},"rule":[{{"name":"all","match":["{}/*"]}}]}})",
                     name, site, site);
}

// --- news and numbers ------------------------------------------------------------------------------------------------

constexpr const char* kWantsMore =
    R"({"project":{"name":"shop","start":["https://shop.example/"],"pause_after":1,"rate":50},
  "rule":[{"name":"page","retries":0}],"alarm":{"least_results":100}})";

class NewsOfProjects : public ApiProjects {
 protected:
  ~NewsOfProjects() override {
    leaves_ = true;
    news_.reset();
    if (notifier_) run([this]() -> Coro<void> { co_await notifier_->stop(); });
    notifier_.reset();
    feed_->stop();
    pass(1min);
  }
  void open_news() {
    open_projects();
    run([this]() -> Coro<void> {
      notifier_.emplace(*engine_, *feed_,
                        NotifierOptions{.from = "host:1", .halted = [this] { return halted_projects(*projects_); }});
      const auto text = JsonText::parse(R"({"name":"ops","push":"https://x.example/","wait":0,"interval":0})");
      JsonErrors errors;
      std::vector<NotifyRule> rules{read_notify_rule(text->root(errors))};
      EXPECT_FALSE(errors);
      EXPECT_TRUE(co_await notifier_->set(std::move(rules)));
      news_.emplace(*projects_, *feed_, *notifier_);
    });
  }
  void follow(EventFeed::Wanted wanted = {
                  .jobs = false, .schedules = false, .queues = false, .workers = false, .counters = false}) {
    following_.push_back(
        loop_.create_task(feed_->follow(std::move(wanted), [this](std::string_view piece) -> Coro<bool> {
          heard_ += piece;
          co_return !leaves_;
        })));
    pass(2s);
  }
  // The sentences of all messages that wait.
  std::string told() {
    std::string all;
    for (const auto& job : get("/v1/jobs?queue=argiope.notify.ops&payloads=1").at("/jobs").as_array()) {
      const auto message = boost::json::parse(job.at("payload").as_string());
      for (const auto& notice : message.at("notices").as_array())
        all += std::string(notice.at("sentence").as_string()) + "\n";
    }
    return all;
  }

  std::optional<Notifier> notifier_;
  std::optional<ProjectNews> news_;
  std::vector<Task<void>> following_;
  std::string heard_;
  bool leaves_ = false;
};

TEST_F(NewsOfProjects, AreEventsForWhoFollowsAndMessagesForWhoIsNamed) {
  open_news();
  follow();
  ASSERT_EQ(put("/v1/projects/shop", kWantsMore).status, 201);
  pass(2s);
  EXPECT_THAT(heard_,
              testing::HasSubstr(R"(data: {"event":"added","project":"shop","status":"RUNNING","doing":"waiting")"));
  ASSERT_EQ(post("/v1/projects/shop/start").status, 200);
  pass(1min);
  EXPECT_THAT(heard_,
              testing::HasSubstr(R"(data: {"event":"round_ended","project":"shop","number":1,"cause":"start")"));
  EXPECT_THAT(
      heard_,
      testing::HasSubstr(
          R"(data: {"event":"alarm","project":"shop","text":"the round has 0 results, at least 100 are wanted"})"));
  EXPECT_THAT(told(), testing::HasSubstr(
                          "project \"shop\" has raised an alarm: the round has 0 results, at least 100 are wanted"));
  web_.pages.clear();
  web_.refused["https://shop.example"] = Errc::timeout;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(
        post("/v1/projects/shop/pages", fmt::format(R"({{"url":"https://shop.example/{}","force":true}})", i)).status,
        200);
  }
  pass(1min);
  EXPECT_THAT(heard_, testing::HasSubstr(R"("status":"RUNNING","doing":"paused","until":"2)"));
  EXPECT_THAT(told(), testing::HasSubstr("project \"shop\" does not go on: its visits keep failing"));
  ASSERT_EQ(post("/v1/projects/shop/resume").status, 200);
  ASSERT_EQ(patch("/v1/projects/shop", R"({"status":"STOP"})").status, 200);
  pass(1min);
  EXPECT_THAT(heard_, testing::HasSubstr(R"("status":"STOP","doing":"stopped")"));
  EXPECT_THAT(told(), testing::HasSubstr("project \"shop\" goes on"));
  ASSERT_EQ(erase("/v1/projects/shop").status, 204);
  pass(2s);
  EXPECT_THAT(heard_, testing::HasSubstr(R"(data: {"event":"removed","project":"shop"})"));
}

// Until its script has said what it is, a project stands, without any trouble.
TEST_F(NewsOfProjects, TellNothingOfAProjectThatIsStarting) {
  class Slow final : public Processor {
   public:
    Coro<Result<ProcessorDescription>> describe() override {
      co_await sleep(30s);
      co_return ProcessorDescription{};
    }
    Coro<VisitAnswer> process(const PageCall&) override { co_return VisitAnswer{}; }
    std::size_t capacity() const override { return 1; }
    Coro<void> close() override { co_return; }
  };
  page_options_.make_processor = [](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    return std::make_unique<Slow>();
  };
  open_news();
  ASSERT_EQ(put("/v1/projects/slow", R"({"project":{"name":"slow","processor":["true"]}})").status, 201);
  pass(20s);
  EXPECT_EQ(get("/v1/projects/slow").text("/doing"), "standing");
  EXPECT_THAT(halted_projects(*projects_), testing::IsEmpty());
  EXPECT_EQ(told(), "");
  pass(20s);
  EXPECT_EQ(get("/v1/projects/slow").text("/doing"), "waiting");
}

TEST_F(NewsOfProjects, ComeAgainByTheLastIdAndOnlyToThoseWhoMaySee) {
  open_news();
  follow({.jobs = false,
          .schedules = false,
          .queues = false,
          .workers = false,
          .counters = false,
          .may_see = [](std::string_view name) { return name == "other"; }});
  ASSERT_EQ(put("/v1/projects/shop", kWantsMore).status, 201);
  pass(2s);
  EXPECT_THAT(heard_, testing::Not(testing::HasSubstr("shop")));
  heard_.clear();
  follow({.jobs = false,
          .schedules = false,
          .queues = false,
          .workers = false,
          .counters = false,
          .last_event_id = "1-0"});
  EXPECT_THAT(heard_, testing::HasSubstr(R"("event":"added","project":"shop")"));
}

TEST_F(NewsOfProjects, NumbersAreToldWithABoundedNumberOfSeries) {
  open_projects();
  ASSERT_EQ(put("/v1/projects/shop", kShop).status, 201);
  ASSERT_EQ(patch("/v1/projects/shop", R"({"rate":50})").status, 200);
  ASSERT_EQ(post("/v1/projects/shop/start").status, 200);
  pass(1min);
  Metrics metrics({.engine = *engine_, .events = *feed_, .projects = projects_.get()});
  std::string page;
  const auto ask = [&]() -> Coro<void> { page = (co_await metrics.answer()).body; };
  run(ask);
  for (const char* line :
       {"argiope_projects{doing=\"waiting\"} 1\n", "argiope_project_pages{project=\"shop\",state=\"success\"} 4\n",
        "argiope_project_visits_total{project=\"shop\",outcome=\"success\"} 4\n",
        "argiope_project_results_total{project=\"shop\"} 3\n", "argiope_project_paused{project=\"shop\"} 0\n",
        "argiope_project_rate{project=\"shop\"} 50\n"}) {
    EXPECT_THAT(page, testing::HasSubstr(line));
  }
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("sink_lag_seconds{"))) << "it has no sinks";
  for (int i = 0; i < 150; ++i) {
    const std::string name = fmt::format("p{}", i);
    ASSERT_EQ(put("/v1/projects/" + name, project_at(name, "https://shop.example")).status, 201);
  }
  run(ask);
  EXPECT_THAT(page, testing::HasSubstr("argiope_projects{doing=\"waiting\"} 151\n"));
  EXPECT_THAT(page, testing::HasSubstr("argiope_project_under_way{project=\"_other\"} 0\n"));
  std::size_t series = 0;
  for (std::size_t at = page.find("argiope_project_under_way{"); at != std::string::npos;
       at = page.find("argiope_project_under_way{", at + 1))
    ++series;
  EXPECT_EQ(series, Metrics::kMostProjects + 1);

  // What projects without a series, the last by their names, have counted stays in their sum when they are gone.
  ASSERT_EQ(post("/v1/projects/p99/start").status, 200);
  pass(1min);
  run(ask);
  const std::string visits = "argiope_project_visits_total{project=\"_other\",outcome=\"success\"} 1\n";
  EXPECT_THAT(page, testing::HasSubstr(visits));
  ASSERT_EQ(erase("/v1/projects/p99").status, 204);
  pass(1min);
  run(ask);
  EXPECT_THAT(page, testing::HasSubstr(visits));
  EXPECT_THAT(page, testing::HasSubstr("argiope_project_under_way{project=\"_other\"} 0\n"));
}

// --- hosts -----------------------------------------------------------------------------------------------------------

TEST_F(ApiProjects, HostsAreToldWithWhatIsDoneThere) {
  web_.pages["https://slow.example/"] = {.latency = 10s};
  open_projects();
  EXPECT_EQ(get("/v1/hosts").body, "{\"hosts\":[],\"next\":null}\n");
  for (const std::string name : {"slow", "shop"}) {
    ASSERT_EQ(put("/v1/projects/" + name, project_at(name, "https://" + name + ".example")).status, 201);
    ASSERT_EQ(post("/v1/projects/" + name + "/start").status, 200);
    pass(5s);
  }
  const Answered all = get("/v1/hosts");
  EXPECT_EQ(all.text("/next"), "null");
  EXPECT_EQ(all.at("/hosts").as_array().size(), 2u);
  EXPECT_EQ(all.text("/hosts/0/site"), "https://slow.example");
  EXPECT_EQ(all.text("/hosts/0/doing"), "busy");
  EXPECT_EQ(all.text("/hosts/0/sentence"), "one request at a time until it has answered");
  EXPECT_EQ(all.text("/hosts/0/under_way"), "1");
  EXPECT_EQ(all.text("/hosts/0/until"), "null");
  EXPECT_EQ(all.text("/hosts/0/robots_known"), "true");
  EXPECT_EQ(all.text("/hosts/0/projects"), R"(["slow"])");
  EXPECT_EQ(all.text("/hosts/1/site"), "https://shop.example");
  EXPECT_EQ(all.text("/hosts/1/doing"), "ready");
  EXPECT_EQ(all.text("/hosts/1/sentence"), "nothing holds it up");
  EXPECT_EQ(all.text("/hosts/1/under_way"), "0");
  EXPECT_EQ(all.text("/hosts/1/rate"), "5");
  EXPECT_EQ(all.text("/hosts/1/trouble"), "");
  EXPECT_EQ(get("/v1/hosts?doing=busy").at("/hosts").as_array().size(), 1u);
  EXPECT_EQ(get("/v1/hosts?doing=ready").text("/hosts/0/site"), "https://shop.example");
  EXPECT_EQ(get("/v1/hosts?filter=SHOP.ex").text("/hosts/0/site"), "https://shop.example");
  EXPECT_EQ(get("/v1/hosts?filter=nowhere").text("/hosts"), "[]");
  EXPECT_EQ(get("/v1/hosts?project=slow").at("/hosts").as_array().size(), 1u);
  const Answered busy = get("/v1/hosts/explain?site=slow.example");
  EXPECT_EQ(busy.text("/reason"), "busy");
  EXPECT_EQ(busy.text("/projects/0/project"), "slow");
  EXPECT_EQ(busy.text("/projects/0/under_way"), "1");
}

TEST_F(ApiProjects, HostsComeInPages) {
  for (int i = 0; i < 7; ++i) web_.pages[fmt::format("https://h{}.example/", i)] = page_with({});
  open_projects();
  std::string starts;
  for (int i = 0; i < 7; ++i) starts += fmt::format("{}\"https://h{}.example/\"", i == 0 ? "" : ",", i);
  ASSERT_EQ(put("/v1/projects/many",
                fmt::format(R"({{"project":{{"name":"many","start":[{}]}},"rule":[{{"name":"all","match":["*"]}}]}})",
                            starts))
                .status,
            201);
  ASSERT_EQ(post("/v1/projects/many/start").status, 200);
  pass(1min);
  std::vector<std::string> sites;
  std::string next = "0";
  for (int pages = 0; next != "null" && pages < 10; ++pages) {
    const Answered page = get("/v1/hosts?limit=3&after=" + next);
    EXPECT_LE(page.at("/hosts").as_array().size(), 3u);
    for (const auto& host : page.at("/hosts").as_array()) sites.emplace_back(host.at("site").as_string());
    next = page.text("/next");
  }
  EXPECT_EQ(sites.size(), 7u);
  EXPECT_EQ(sites.front(), "https://h0.example");
  EXPECT_EQ(sites.back(), "https://h6.example");
  EXPECT_EQ(get("/v1/hosts?after=4294967295").text("/hosts"), "[]");
}

TEST_F(ApiProjects, AHostSaysWhyItIsNotAsked) {
  web_.answer = [](const HttpRequest& request) -> std::optional<PageAnswer> {
    if (request.url.host() != "down.example") return std::nullopt;
    return PageAnswer{.error = Errc::network, .connects = false};
  };
  web_.pages["https://later.example/"] = {.status = 503, .headers = {{"Retry-After", "600"}}};
  open_projects();
  for (const std::string name : {"down", "later", "shop"}) {
    ASSERT_EQ(put("/v1/projects/" + name, project_at(name, "https://" + name + ".example")).status, 201);
    ASSERT_EQ(post("/v1/projects/" + name + "/start").status, 200);
  }
  pass(30s);
  const Answered down = get("/v1/hosts/explain?site=https://down.example/any/page");
  EXPECT_EQ(down.text("/site"), "https://down.example");
  EXPECT_EQ(down.text("/known"), "true");
  EXPECT_EQ(down.text("/reason"), "not_due");
  EXPECT_NE(down.text("/until"), "null");
  EXPECT_EQ(down.text("/until"), down.text("/projects/0/first_due"));
  EXPECT_EQ(down.text("/host/trouble"), "it could not be reached just now");
  EXPECT_EQ(down.text("/projects/0/delayed"), "1");
  const Answered later = get("/v1/hosts/explain?site=later.example");
  EXPECT_EQ(later.text("/reason"), "resting");
  EXPECT_THAT(later.text("/words"), testing::HasSubstr("rests for"));
  EXPECT_EQ(later.text("/host/trouble"), "");
  EXPECT_EQ(get("/v1/hosts?doing=resting").at("/hosts").as_array().size(), 1u);
  const Answered fresh = get("/v1/hosts/explain?site=shop.example");
  EXPECT_EQ(fresh.text("/reason"), "nothing_due");
  EXPECT_EQ(patch("/v1/projects/shop", R"({"status":"STOP"})").status, 200);
  EXPECT_EQ(get("/v1/hosts/explain?site=shop.example").text("/reason"), "project_stopped");
  const Answered unknown = get("/v1/hosts/explain?site=elsewhere.example");
  EXPECT_EQ(unknown.status, 200);
  EXPECT_EQ(unknown.text("/known"), "false");
  EXPECT_EQ(unknown.text("/reason"), "unknown");
}

TEST_F(ApiProjects, WrongQuestionsAboutHostsAreRefused) {
  open_projects();
  for (const char* query : {"?doing=sleeping", "?limit=0", "?limit=1001", "?after=x", "?after=4294967296", "?more=1"}) {
    EXPECT_EQ(get(fmt::format("/v1/hosts{}", query)).problem(), "invalid_input") << query;
  }
  EXPECT_EQ(get("/v1/hosts?filter=" + std::string(2'001, 'a')).problem(), "invalid_input");
  EXPECT_EQ(get("/v1/hosts?project=nobody").problem(), "not_found");
  EXPECT_EQ(get("/v1/hosts/explain").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/hosts/explain?site=" + std::string(2'001, 'a')).problem(), "invalid_input");
  for (const char* site : {"://", "data:", "https://", "%00", "a%20b", "https://%5B"}) {
    EXPECT_EQ(get(fmt::format("/v1/hosts/explain?site={}", site)).text("/known"), "false") << site;
  }
}

TEST_F(ApiProjects, ATokenHearsNothingOfTheVisitsOfOthersAtAHost) {
  open_projects({.tokens = {token_named("reader", TokenScope::read), token_named("mine", TokenScope::read, {"mine"})}});
  const auto start = [&](const char* name) {
    run([&]() -> Coro<void> {
      EXPECT_TRUE(pages_->put_project(draft_of(project_at(name, "https://both.example"))));
      EXPECT_TRUE(pages_->start(name));
      co_return;
    });
  };
  start("mine");
  pass(1min);
  web_.pages["https://both.example/"] = {.latency = 10s};
  start("other");
  pass(5s);
  const auto as = [&](std::string_view name, std::string target) {
    return ask_as(name, HttpMethod::get, std::move(target));
  };
  EXPECT_EQ(as("reader", "/v1/hosts").text("/hosts/0/under_way"), "1");
  EXPECT_EQ(as("mine", "/v1/hosts").text("/hosts/0/under_way"), "0");
  EXPECT_THAT(as("mine", "/v1/hosts").text("/hosts/0/sentence"), testing::Not(testing::ContainsRegex("[0-9]")));
  EXPECT_EQ(as("mine", "/v1/hosts/explain?site=both.example").text("/host/under_way"), "0");
}

TEST_F(ApiProjects, ATokenSeesHostsOfItsProjectsAlone) {
  open_projects({.tokens = {token_named("reader", TokenScope::read), token_named("mine", TokenScope::read, {"mine"})}});
  run([&]() -> Coro<void> {
    for (const auto& [name, site] :
         {std::pair("mine", "https://both.example"), std::pair("other", "https://both.example"),
          std::pair("secret", "https://secret.example")}) {
      EXPECT_TRUE(pages_->put_project(draft_of(project_at(name, site))));
      EXPECT_TRUE(pages_->start(name));
    }
    co_return;
  });
  pass(1min);
  const auto as = [&](std::string_view name, std::string target) {
    return ask_as(name, HttpMethod::get, std::move(target));
  };
  EXPECT_EQ(get("/v1/hosts").problem(), "unauthorized");
  EXPECT_EQ(as("reader", "/v1/hosts").at("/hosts").as_array().size(), 2u);
  EXPECT_EQ(as("reader", "/v1/hosts?filter=both").text("/hosts/0/projects"), R"(["mine","other"])");
  const Answered seen = as("mine", "/v1/hosts");
  EXPECT_EQ(seen.at("/hosts").as_array().size(), 1u);
  EXPECT_EQ(seen.text("/hosts/0/site"), "https://both.example");
  EXPECT_EQ(seen.text("/hosts/0/projects"), R"(["mine"])");
  EXPECT_EQ(seen.text("/hosts/0/project_count"), "1");
  EXPECT_EQ(as("mine", "/v1/hosts?project=secret").problem(), "forbidden");
  EXPECT_EQ(as("mine", "/v1/hosts/explain?site=secret.example").text("/known"), "false");
  const Answered why = as("mine", "/v1/hosts/explain?site=both.example");
  EXPECT_EQ(why.text("/known"), "true");
  EXPECT_EQ(why.at("/projects").as_array().size(), 1u);
}

TEST_F(ApiProjects, ChangesAreTold) {
  open_shop();
  patch("/v1/projects/shop", R"({"status":"STOP"})");
  const Answered audit = get("/v1/audit");
  EXPECT_EQ(audit.text("/entries/0/method"), "PUT");
  EXPECT_EQ(audit.text("/entries/1/path"), "/v1/projects/shop/start");
  EXPECT_EQ(audit.text("/entries/2/request"), R"({"status":"STOP"})");
}

// --- pages that are tried

TEST_F(ApiProjects, APageIsTriedByTheRulesOfADraftAndNothingIsStored) {
  open_projects();
  web_.pages["https://shop.example/"].body +=
      R"(<a href="https://other.example/x">x</a><a rel="nofollow" href="/item/4">4</a>)";
  const Answered list = post("/v1/projects/try", trial("https://shop.example/"));
  ASSERT_EQ(list.status, 200) << list.body;
  EXPECT_EQ(list.text("/asked"), "https://shop.example/");
  EXPECT_EQ(list.text("/url"), "https://shop.example/");
  EXPECT_EQ(list.text("/status"), "200");
  EXPECT_GE(list.at("/took_ms").to_number<double>(), 10);
  EXPECT_EQ(list.text("/content_type"), "text/html; charset=utf-8");
  EXPECT_EQ(list.text("/headers/0/0"), "Content-Type");
  EXPECT_THAT(list.text("/body"), testing::StartsWith("<!doctype html>"));
  EXPECT_EQ(list.at("/body_bytes").to_number<std::size_t>(), list.text("/body").size());
  EXPECT_EQ(list.text("/is_cut"), "false");
  EXPECT_EQ(list.text("/error"), "null");
  EXPECT_EQ(list.text("/failure"), "null");
  EXPECT_EQ(list.text("/rule"), "list");
  EXPECT_EQ(list.text("/becomes"), "new");
  EXPECT_EQ(list.text("/results"), "[]");
  ASSERT_EQ(list.at("/follows").as_array().size(), 5u) << list.body;
  EXPECT_EQ(list.text("/follows/0"),
            R"({"url":"https://shop.example/item/1","rule":"item","becomes":"new","is_followed":true})");
  EXPECT_EQ(list.text("/follows/3"),
            R"({"url":"https://other.example/x","rule":null,"becomes":"out of scope","is_followed":false})");
  EXPECT_EQ(list.text("/follows/4"),
            R"({"url":"https://shop.example/item/4","rule":"item","becomes":"not followed","is_followed":false})");

  const Answered item = post("/v1/projects/try", trial("https://shop.example/item/1"));
  EXPECT_EQ(item.text("/columns"), R"(["title"])");
  EXPECT_EQ(item.text("/results"), R"([{"part":"","value":{"title":"page"}}])");
  EXPECT_EQ(
      post("/v1/projects/try", trial("https://shop.example/", R"(,"rule":"item")")).text("/results/0/value/title"),
      "page");

  EXPECT_EQ(get("/v1/projects").text("/projects"), "[]");
  EXPECT_EQ(get("/v1/audit").text("/entries/0/path"), "/v1/projects/try");
}

TEST_F(ApiProjects, AProjectThatRunsIsTriedByWhatItKnows) {
  open_shop();
  const Answered known = post("/v1/projects/try", R"({"project":"shop","url":"https://shop.example/"})");
  EXPECT_EQ(known.text("/becomes"), "fresh for ever") << known.body;
  EXPECT_EQ(known.text("/follows/0/becomes"), "fresh for ever");
  EXPECT_EQ(post("/v1/projects/try", R"({"project":"shop","url":"data:,on_start"})").text("/follows/0/becomes"),
            "visited again: forced");
  const Answered shown = get("/v1/projects/shop");
  EXPECT_EQ(shown.text("/counts/all/success"), "4");
  EXPECT_EQ(shown.text("/round"), "null");
  EXPECT_EQ(get("/v1/projects/shop/recent").at("/visits").as_array().size(), 4u);
}

TEST_F(ApiProjects, AProjectWithoutAScriptBeginsAtItsStarts) {
  open_projects();
  const Answered start = post("/v1/projects/try", trial("data:,on_start"));
  EXPECT_EQ(start.text("/status"), "200") << start.body;
  EXPECT_EQ(start.text("/rule"), "null");
  EXPECT_EQ(
      start.text("/follows"),
      R"([{"url":"https://shop.example/","rule":"list","becomes":"new","is_followed":true,"page":{"url":"https://shop.example/","force":true}}])");
  EXPECT_TRUE(web_.log.empty());
}

TEST_F(ApiProjects, WhatKeepsAPageFromBeingFetchedIsTold) {
  open_projects();
  web_.robots["https://shop.example"] = "User-agent: *\nDisallow: /item/2";
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/item/2")).text("/error"), "robots.txt forbids it");
  EXPECT_EQ(web_.times_asked("https://shop.example/item/2"), 0u);
  const Answered missing = post("/v1/projects/try", trial("https://shop.example/item/9"));
  EXPECT_EQ(missing.text("/error"), "null") << missing.body;
  EXPECT_EQ(missing.text("/status"), "404");
  EXPECT_EQ(missing.text("/body"), "not here");
  EXPECT_EQ(missing.text("/failure/text"), "HTTP 404 Not Found");
  web_.pages["https://shop.example/item/3"] = {.latency = 1h};
  const Answered slow = post("/v1/projects/try", trial("https://shop.example/item/3"));
  EXPECT_EQ(slow.text("/error"), "the 1m that a try may take were over before it was answered") << slow.body;
  EXPECT_EQ(web_.under_way, 0u);
  web_.pages["https://shop.example/item/1"] = {.status = 302, .headers = {{"Location", "https://gone.example/x"}}};
  web_.pages["https://gone.example/x"] = {.error = Errc::dns, .connects = false};
  const Answered gone = post("/v1/projects/try", trial("https://shop.example/item/1"));
  EXPECT_EQ(gone.text("/url"), "https://gone.example/x") << gone.body;
  EXPECT_NE(gone.text("/error"), "null") << gone.body;
  EXPECT_EQ(gone.text("/failure"), "null") << gone.body;
}

TEST_F(ApiProjects, ABodyIsTextInUtf8AndCut) {
  open_projects();
  web_.pages["https://shop.example/item/1"] = {.body = "<title>caf\xe9</title>",
                                               .type = "text/html; charset=iso-8859-1"};
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/item/1")).text("/body"), "<title>café</title>");
  web_.pages["https://shop.example/item/1"] = {.body = std::string("\x89PNG\r\n\x1a\n\0\0", 10), .type = "image/png"};
  const Answered image = post("/v1/projects/try", trial("https://shop.example/item/1"));
  EXPECT_EQ(image.text("/body"), "");
  EXPECT_EQ(image.text("/body_bytes"), "10");
  EXPECT_EQ(image.text("/is_cut"), "false");
  EXPECT_NE(image.text("/not_extracted"), "null");
  std::string large = "x";
  for (int i = 0; i < 600'000; ++i) large += "é";
  web_.pages["https://shop.example/item/1"] = {.body = large, .type = "text/plain; charset=utf-8"};
  const Answered cut = post("/v1/projects/try", trial("https://shop.example/item/1"));
  EXPECT_EQ(cut.text("/is_cut"), "true");
  EXPECT_EQ(cut.text("/body_bytes"), "1200001");
  EXPECT_EQ(cut.text("/body").size(), 1024u * 1024 - 1) << "between two characters";
}

TEST_F(ApiProjects, AScriptThatIsTriedSaysWhatItGivesAndEnds) {
  open_projects();
  const Answered start =
      post("/v1/projects/try", script_trial("good", "data:,on_start", R"(,"data":{"a":1},"save":[2])"));
  ASSERT_EQ(start.status, 200) << start.body;
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_EQ(calls_[0].event, PageEvent::start);
  EXPECT_EQ(calls_[0].context, R"({"a":1})");
  EXPECT_EQ(calls_[0].save, "[2]");
  EXPECT_EQ(start.text("/rule"), "on_start");
  EXPECT_EQ(start.text("/results"), R"([{"part":"","value":{"word":"one"}}])");
  EXPECT_EQ(
      start.text("/follows/0"),
      R"({"url":"https://shop.example/item/1","rule":"item","becomes":"new","is_followed":true,"data":{"from":"start"},"priority":7,)"
      R"("page":{"url":"https://shop.example/item/1","rule":"item","context":{"from":"start"},"priority":7,)"
      R"("request":{"method":"POST","headers":{"X-Shop":"one"},"body":"a=1"}}})");
  EXPECT_EQ(start.text("/follows/1/is_followed"), "false");
  EXPECT_EQ(start.text("/messages/0/project"), "other");
  EXPECT_EQ(start.text("/messages/0/message"), "[1]");
  EXPECT_EQ(start.text("/save/n"), "1");
  EXPECT_EQ(start.text("/logs"), R"([{"level":"print","text":"hello"}])");
  EXPECT_EQ(start.text("/failure"), "null");
  pass(Duration{});
  EXPECT_EQ(scripts_.closed, 1);
  EXPECT_EQ(scripts_.open, 0);

  const Answered page = post("/v1/projects/try", script_trial("good", "https://shop.example/", R"(,"rule":"index")"));
  EXPECT_EQ(page.text("/rule"), "index");
  EXPECT_EQ(calls_.back().event, PageEvent::fetch);
  EXPECT_EQ(calls_.back().body, web_.pages["https://shop.example/"].body);
  EXPECT_EQ(page.at("/follows").as_array().size(), 2u) << "links are the script's to follow";
  EXPECT_EQ(post("/v1/projects/try", script_trial("good", "data:,tick/often")).text("/rule"), "often");

  const Answered failed = post("/v1/projects/try", script_trial("fail", "https://shop.example/"));
  EXPECT_EQ(failed.status, 200);
  EXPECT_EQ(failed.text("/failure"),
            R"({"text":"ValueError: no","kind":"ValueError","where":"shop.py:3","trace":"Traceback\n  no"})");
  EXPECT_EQ(failed.text("/status"), "200");
  pass(Duration{});
  EXPECT_EQ(scripts_.open, 0);
}

TEST_F(ApiProjects, AFollowIsTriedAsItsVisitWouldAskForIt) {
  open_projects();
  const Answered start = post("/v1/projects/try", script_trial("good", "data:,on_start"));
  std::string asked = script_trial("good", "");
  asked.replace(asked.find(R"("url":"")"), 8, R"("page":)" + start.text("/follows/0/page"));
  const Answered item = post("/v1/projects/try", asked);
  ASSERT_EQ(item.status, 200) << item.body;
  EXPECT_EQ(item.text("/asked"), "https://shop.example/item/1");
  EXPECT_EQ(item.text("/rule"), "item");
  ASSERT_EQ(web_.log.size(), 1u);
  EXPECT_EQ(web_.log[0].method, "POST");
  EXPECT_EQ(web_.log[0].body, "a=1");
  EXPECT_THAT(web_.log[0].headers, testing::Contains(testing::Pair("X-Shop", "one")));
  EXPECT_EQ(calls_.back().context, R"({"from":"start"})");
  const auto with_page = [&](std::string_view page) { return fmt::format(R"({{"source":"shop","page":{}}})", page); };
  for (const std::string& body : {with_page("{}"), with_page("[]"), with_page(R"({"url":"nothing"})"),
                                  with_page(R"({"url":"https://shop.example/","cancel":true})"),
                                  with_page(R"({"url":"https://shop.example/","request":{"method":"SHOUT"}})"),
                                  with_page(R"({"url":"https://shop.example/"},"rule":"list")"),
                                  with_page(R"({"url":"https://shop.example/"},"url":"https://shop.example/")")}) {
    EXPECT_EQ(post("/v1/projects/try", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(web_.log.size(), 1u);
}

TEST_F(ApiProjects, APageThatWasKeptIsReadAgainWithoutARequest) {
  open_projects();
  const Answered first = post("/v1/projects/try", trial("https://shop.example/item/1"));
  const std::string id = first.text("/response/id");
  EXPECT_EQ(id.size(), 32u) << first.body;
  EXPECT_EQ(first.text("/response/is_reused"), "false");
  const auto again = [&](std::string_view url, std::string_view more = "") {
    return trial(url, fmt::format(R"(,"response":"{}"{})", id, more));
  };
  web_.pages["https://shop.example/item/1"] = {.body = "<title>another</title>"};
  const Answered reused = post("/v1/projects/try", again("https://shop.example/item/1", R"(,"rule":"list")"));
  ASSERT_EQ(reused.status, 200) << reused.body;
  EXPECT_EQ(reused.text("/rule"), "list") << "read by what is said now";
  EXPECT_EQ(reused.text("/body"), first.text("/body"));
  EXPECT_EQ(reused.text("/response/id"), id);
  EXPECT_EQ(reused.text("/response/is_reused"), "true");
  EXPECT_EQ(reused.text("/response/fetched_at"), first.text("/response/fetched_at"));
  EXPECT_EQ(web_.log.size(), 1u);
  // A script gets it whole, as often as it is asked for.
  const std::string scripted =
      script_trial("good", "https://shop.example/item/1", fmt::format(R"(,"rule":"item","response":"{}")", id));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(post("/v1/projects/try", scripted).text("/results/0/value/word"), "one");
    EXPECT_EQ(calls_.back().body, first.text("/body"));
  }
  EXPECT_EQ(post("/v1/projects/try", again("https://shop.example/item/2")).problem(), "invalid_input")
      << "it is another page";
  // A draft that asks for it in another way gets what is answered to that.
  const auto with_header = [&](std::string_view value, std::string_view response) {
    const std::string source = fmt::format(
        R"({{"project":{{"name":"shop","start":["https://shop.example/"]}},"rule":[{{"name":"all","request":{{"headers":{{"X-Key":"{}"}}}}}}]}})",
        value);
    return post("/v1/projects/try",
                fmt::format(R"({{"source":{},"url":"https://shop.example/item/1","response":"{}"}})",
                            boost::json::serialize(boost::json::string(source)), response));
  };
  const Answered keyed = with_header("1", id);
  EXPECT_EQ(keyed.text("/response/is_reused"), "false") << keyed.body;
  EXPECT_EQ(keyed.text("/body"), "<title>another</title>");
  EXPECT_EQ(with_header("1", keyed.text("/response/id")).text("/response/is_reused"), "true");
  EXPECT_EQ(with_header("2", keyed.text("/response/id")).text("/response/is_reused"), "false");
  web_.log.resize(1);
  EXPECT_EQ(post("/v1/projects/try", trial("data:,on_start")).text("/response"), "null");
  EXPECT_EQ(web_.log.size(), 1u);
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/item/1", R"(,"response":null)"))
                .text("/results/0/value/title"),
            "another");
  pass(10min);
  const Answered late = post("/v1/projects/try", again("https://shop.example/item/1"));
  EXPECT_EQ(late.problem(), "not_found");
  EXPECT_EQ(late.text("/errors/0/pointer"), "/response");
  EXPECT_THAT(late.text("/detail"), testing::HasSubstr("fetched anew"));
}

TEST_F(ApiProjects, AnAnswerThatIsDroppedWhileItIsReadIsReadToItsEnd) {
  open_projects();
  const Answered first = post("/v1/projects/try", trial("https://shop.example/item/1"));
  const std::string id = first.text("/response/id");
  pass(9min + 50s);
  const Answered slow = post("/v1/projects/try", script_trial("slow", "https://shop.example/item/1",
                                                              fmt::format(R"(,"rule":"item","response":"{}")", id)));
  ASSERT_EQ(slow.status, 200) << slow.body;
  EXPECT_EQ(calls_.back().body, first.text("/body")) << "the script has it whole";
  EXPECT_EQ(slow.text("/body"), first.text("/body"));
  EXPECT_EQ(slow.text("/results/0/value/word"), "one");
  EXPECT_EQ(slow.text("/response"), "null") << "it is kept no more";
  EXPECT_EQ(web_.log.size(), 1u);
  EXPECT_EQ(
      post("/v1/projects/try", trial("https://shop.example/item/1", fmt::format(R"(,"response":"{}")", id))).problem(),
      "not_found");
}

TEST_F(ApiProjects, FewAnswersAreKeptAndForTheirTokenAlone) {
  open_projects({.tokens = {token_named("one", TokenScope::admin), token_named("two", TokenScope::admin)}});
  const auto as = [&](std::string_view name, std::string body) {
    return ask_as(name, HttpMethod::post, "/v1/projects/try", std::move(body));
  };
  const std::string id = as("one", trial("https://shop.example/item/1")).text("/response/id");
  const std::string again = trial("https://shop.example/item/1", fmt::format(R"(,"response":"{}")", id));
  EXPECT_EQ(as("one", again).status, 200);
  EXPECT_EQ(as("two", again).problem(), "not_found");
  for (int i = 0; i < 31; ++i) ASSERT_EQ(as("two", trial("https://shop.example/item/2")).status, 200);
  EXPECT_EQ(as("one", again).status, 200);
  ASSERT_EQ(as("two", trial("https://shop.example/item/2")).status, 200);
  EXPECT_EQ(as("one", again).problem(), "not_found") << "the oldest has gone";
}

TEST_F(ApiProjects, WhatTheLastVisitOfAPageDidIsTold) {
  open_shop();
  const Answered page = get("/v1/projects/shop/pages/one?page=https%3A%2F%2Fshop.example%2F");
  EXPECT_EQ(page.text("/last_visit/pages"), "3") << page.body;
  EXPECT_EQ(page.text("/last_visit/results"), "0");
  EXPECT_GE(page.at("/last_visit/fetch_ms").to_number<double>(), 10);
  ASSERT_EQ(post("/v1/projects/shop/pages", R"({"url":"https://shop.example/item/9","delay_ms":60000})").status, 200);
  EXPECT_EQ(get("/v1/projects/shop/pages/one?page=https%3A%2F%2Fshop.example%2Fitem%2F9").text("/last_visit"), "null");
}

TEST_F(ApiProjects, OnlySoManyAreTriedAtOnceAndNoneForLong) {
  page_options_.most_tries = 2;
  open_projects();
  Task<Answered> first = start(HttpMethod::post, "/v1/projects/try", script_trial("hang", "https://shop.example/"));
  Task<Answered> second = start(HttpMethod::post, "/v1/projects/try", script_trial("hang", "data:,on_start"));
  pass(5s);
  EXPECT_EQ(scripts_.open, 2);
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/")).problem(), "too_many");
  second.cancel();
  pass(Duration{});
  EXPECT_EQ(scripts_.open, 1) << "who has asked has gone";
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/")).status, 200);
  pass(1min);
  ASSERT_TRUE(first.done());
  const Answered late = first.result();
  EXPECT_EQ(late.text("/failure/text"), "the 1m that a try may take were over before it was read") << late.body;
  EXPECT_EQ(late.text("/status"), "200");
  EXPECT_EQ(scripts_.open, 0);
  EXPECT_EQ(scripts_.closed, 2);
}

TEST_F(ApiProjects, TriesEndWithTheEngine) {
  open_projects();
  Task<Answered> hanging = start(HttpMethod::post, "/v1/projects/try", script_trial("hang", "https://shop.example/"));
  pass(5s);
  pages_->stop();
  pass(1s);
  ASSERT_TRUE(hanging.done());
  EXPECT_EQ(hanging.result().problem(), "draining");
  EXPECT_EQ(scripts_.open, 0);
  EXPECT_EQ(post("/v1/projects/try", trial("https://shop.example/")).problem(), "draining");
}

TEST_F(ApiProjects, AProjectMayBeNamedAsTryingIs) {
  open_projects();
  std::string json = kShop;
  json.replace(json.find("\"shop\""), 6, "\"try\"");
  EXPECT_EQ(put("/v1/projects/=try", json).status, 201);
  EXPECT_EQ(get("/v1/projects/=try").text("/name"), "try");
  EXPECT_EQ(erase("/v1/projects/=try").status, 204);
}

TEST_F(ApiProjects, WhatIsWrongInATryIsRefused) {
  open_projects();
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"source":"shop"})"), std::string(R"({"url":"https://shop.example/"})"),
        std::string(R"({"source":"shop","project":"shop","url":"https://shop.example/"})"),
        std::string(R"({"project":"shop","script":"x","url":"https://shop.example/"})"), trial("nothing"),
        trial("ftp://shop.example/"), trial("https://shop.example/", R"(,"more":1)"),
        trial("https://shop.example/", R"(,"script":"no processor")"),
        std::string(R"({"source":"broken","url":"https://shop.example/"})"),
        script_trial("unkept", "https://shop.example/")}) {
    EXPECT_EQ(post("/v1/projects/try", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(post("/v1/projects/try", R"({"project":"none","url":"https://shop.example/"})").problem(), "not_found");
  EXPECT_TRUE(web_.log.empty());
  pass(Duration{});
  EXPECT_EQ(scripts_.open, 0);
}

TEST_F(ApiProjects, ATryIsOnItsHostAsVisitsAre) {
  page_options_.hosts.delay = 10s;
  open_projects();
  ASSERT_EQ(post("/v1/projects/try", trial("https://shop.example/")).status, 200);
  ASSERT_EQ(post("/v1/projects/try", trial("https://shop.example/item/1")).status, 200);
  ASSERT_EQ(web_.log.size(), 2u);
  EXPECT_GE(web_.log[1].at - web_.log[0].at, 10s);
}

TEST_F(ApiProjects, TheDaemonIsAliveAndNotReadyWhileItsProjectsHaveFailed) {
  open();
  std::optional<Error> failure;
  const Health health(*engine_, nullptr, {.fires_schedules = false, .projects_failure = [&] { return failure; }});
  EXPECT_EQ(health.readyz().status, 200);
  failure = Error{Errc::disk_full, "pages.db: the disk is full"};
  EXPECT_EQ(health.readyz().status, 503);
  EXPECT_THAT(health.readyz().body, testing::HasSubstr("the projects have failed: pages.db: the disk is full"));
  EXPECT_EQ(health.healthz().status, 200);
}

}  // namespace
}  // namespace argiope

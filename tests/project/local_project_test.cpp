// A project that is read by a function of the program: what it is given, what it may answer, and what becomes of
// answers that are wrong.
#include "argiope/project/local_project.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <stdexcept>

#include "argiope/async/event_loop.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kShopOfAProgram =
    R"({"project": {"name": "shop", "start": ["http://shop.test/"], "processor": ["a test"]}, "rule": [{"name": "list", "match": "/"}, {"name": "item", "match": "/item/*", "retries": 0}]})";

// What each path answers; 404 for the others.
class MapTransport final : public HttpTransport {
 public:
  explicit MapTransport(std::map<std::string, std::string> pages) : pages_(std::move(pages)) {}
  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    response = {};
    response.sent_at = EventLoop::current().time();
    response.connected = true;
    const auto found = pages_.find(std::string(request.url.path_and_query()));
    response.status = found == pages_.end() ? 404 : 200;
    if (found != pages_.end()) response.body = found->second;
    response.headers.content_type = "text/html";
    co_return Result<void>{};
  }

 private:
  const std::map<std::string, std::string> pages_;
};

class LocalProjectTest : public ::testing::Test {
 protected:
  LocalProjectOptions options(std::function<Coro<ProjectAnswer>(const ProjectPage&)> read) {
    LocalProjectOptions options;
    options.definition = kShopOfAProgram;
    options.read = std::move(read);
    options.setup.database = folder_.file("pages.db");
    options.setup.transport = [pages = pages_] { return std::make_unique<MapTransport>(pages); };
    options.hosts.delay = Duration{};
    options.hosts.rate = 100'000;
    options.retry_wait = Duration{};
    return options;
  }
  static std::unique_ptr<LocalProject> opened(LocalProjectOptions options) {
    auto project = LocalProject::open(std::move(options));
    if (!project) throw std::runtime_error(project.error().message);
    return std::move(*project);
  }
  static std::vector<std::string> rows(LocalProject& project) {
    std::vector<std::string> rows;
    const auto read = project.results([&](const LocalProject::Row& row) {
      rows.push_back(fmt::format("{} {} {}", row.page, row.part, row.value));
      return true;
    });
    EXPECT_TRUE(read) << read.error().message;
    return rows;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> pages_ = {{"/", "list"}, {"/item/1", "one"}, {"/item/2", "two"}};
};

TEST_F(LocalProjectTest, APageLeadsToOthersAndTheirResultsAreKept) {
  std::multiset<std::string> seen;
  const auto project = opened(options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    seen.insert(fmt::format("{} {} {} {}", page.event, page.rule, page.url, page.status));
    ProjectAnswer answer;
    if (page.rule == "list") {
      answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "item", .context = R"({"n":1})"});
      answer.pages.push_back({.url = "http://shop.test/item/2", .rule = "item", .priority = 5});
    } else {
      answer.results = {{.value = fmt::format("{{\"text\":\"{}\",\"context\":{}}}", page.body,
                                              page.context.empty() ? "null" : page.context)}};
    }
    co_return answer;
  }));
  const auto report = project->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->visits, 3u);
  EXPECT_EQ(report->failed, 0u);
  EXPECT_EQ(report->left, 0u);
  EXPECT_EQ(report->results, 2u);
  EXPECT_EQ(report->trouble, "");
  EXPECT_THAT(seen, UnorderedElementsAre("fetch list http://shop.test/ 200", "fetch item http://shop.test/item/1 200",
                                         "fetch item http://shop.test/item/2 200"));
  EXPECT_THAT(rows(*project), UnorderedElementsAre(R"(http://shop.test/item/1  {"text":"one","context":{"n":1}})",
                                                   R"(http://shop.test/item/2  {"text":"two","context":null})"));
}

TEST_F(LocalProjectTest, FieldsOfARuleComeWithItsPagesAndAreResultsWhereTheAnswerHasNone) {
  pages_["/item/1"] = "<h1>One</h1>";
  pages_["/"] = "<a href=/item/1>1</a><a href=/item/2>2</a>";
  std::vector<std::string> fields;
  LocalProjectOptions said = options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    ProjectAnswer answer;
    if (page.rule == "item") fields.push_back(page.fields);
    if (page.url == "http://shop.test/item/2") answer.results = {{.value = "2"}};
    co_return answer;
  });
  said.definition = R"({"project": {"name": "shop", "start": ["http://shop.test/"], "processor": ["a test"]},
    "rule": [{"name": "list", "match": "/"}, {"name": "item", "match": "/item/*", "fields": {"title": "css:h1"}}]})";
  const auto project = opened(std::move(said));
  const auto report = project->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(fields, UnorderedElementsAre(R"({"title":"One"})", ""));
  EXPECT_THAT(rows(*project),
              UnorderedElementsAre(R"(http://shop.test/item/1  {"title":"One"})", "http://shop.test/item/2  2"));
}

TEST_F(LocalProjectTest, WhatItSavesComesWithTheNextReadingInTheNextProgram) {
  const auto count = [](const ProjectPage& page) -> Coro<ProjectAnswer> {
    ProjectAnswer answer;
    const int before = page.save.empty() ? 0 : std::stoi(page.save);
    answer.save = std::to_string(before + 1);
    answer.results = {{.value = std::to_string(before), .part = "before"}};
    co_return answer;
  };
  for (const char* const expected : {"http://shop.test/ before 0", "http://shop.test/ before 1"}) {
    const auto project = opened(options(count));
    const auto report = project->run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->visits, 1u);
    EXPECT_THAT(rows(*project), ElementsAre(expected));
  }
}

TEST_F(LocalProjectTest, ARunAgainIsAnotherRound) {
  int visits = 0;
  const auto project = opened(options([&](const ProjectPage&) -> Coro<ProjectAnswer> {
    ++visits;
    co_return ProjectAnswer{};
  }));
  ASSERT_TRUE(project->run());
  ASSERT_TRUE(project->run());
  EXPECT_EQ(visits, 2);
}

TEST_F(LocalProjectTest, TheRulesOfItsDefinitionFollowLinksBesideIt) {
  pages_["/"] = "<a href=item/1>";
  std::vector<std::string> seen;
  const auto project = opened(options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    seen.push_back(page.rule);
    co_return ProjectAnswer{};
  }));
  ASSERT_TRUE(project->run());
  EXPECT_THAT(seen, ElementsAre("list", "item"));
}

TEST_F(LocalProjectTest, WhatThrowsFailsAndIsTriedLater) {
  const auto project = opened(options([&](const ProjectPage&) -> Coro<ProjectAnswer> {
    throw std::runtime_error("no price");
    co_return ProjectAnswer{};
  }));
  const auto report = project->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->visits, 1u);
  EXPECT_EQ(report->failed, 1u);
  EXPECT_EQ(report->left, 1u);
}

TEST_F(LocalProjectTest, WaitsForEverForWhatIsTriedAgain) {
  auto its = options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    ProjectAnswer answer;
    if (page.attempt == 1) answer.failure = "not yet";
    co_return answer;
  });
  its.definition =
      R"({"project": {"name": "shop", "start": ["http://shop.test/"], "processor": ["a test"]}, "rule": [{"name": "list", "retry_delay": "1ms"}]})";
  its.retry_wait = Duration::max();
  const auto report = opened(std::move(its))->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->visits, 2u);
  EXPECT_EQ(report->left, 0u);
}

TEST_F(LocalProjectTest, WhatIsNoJsonFailsItsPageAlone) {
  const auto project = opened(options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    ProjectAnswer answer;
    if (page.rule == "list") {
      for (const char* const item : {"1", "2"})
        answer.pages.push_back({.url = fmt::format("http://shop.test/item/{}", item), .rule = "item"});
    } else {
      answer.results = {{.value = page.body == "one" ? "{\"a\":1}, {}" : "{\"a\":1}"}};
    }
    co_return answer;
  }));
  const auto report = project->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->failed, 1u);
  EXPECT_THAT(rows(*project), ElementsAre(R"(http://shop.test/item/2  {"a":1})"));
}

TEST_F(LocalProjectTest, ItsStartAndItsEndAreReadWhereTheyHaveARule) {
  std::vector<std::string> seen;
  LocalProjectOptions with = options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    seen.push_back(fmt::format("{} {}", page.event, page.rule));
    ProjectAnswer answer;
    if (page.event == "start") answer.pages.push_back({.url = "http://shop.test/item/1", .rule = "item"});
    co_return answer;
  });
  with.on_start = "begin";
  with.on_finished = "end";
  const auto project = opened(std::move(with));
  ASSERT_TRUE(project->run());
  EXPECT_THAT(seen, UnorderedElementsAre("start begin", "fetch list", "fetch item", "finished end"));
  EXPECT_EQ(seen.back(), "finished end");
}

TEST_F(LocalProjectTest, PagesWithoutSuccessAreReadWhereTheirRuleSaysSo) {
  std::vector<int> seen;
  LocalProjectOptions with = options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    seen.push_back(page.status);
    ProjectAnswer answer;
    if (page.rule == "list") answer.pages.push_back({.url = "http://shop.test/item/9", .rule = "item"});
    co_return answer;
  });
  with.error_rules = {"item"};
  const auto project = opened(std::move(with));
  ASSERT_TRUE(project->run());
  EXPECT_THAT(seen, ElementsAre(200, 404));
}

TEST_F(LocalProjectTest, ItIsStoppedFromWithin) {
  LocalProject* stopped = nullptr;
  const auto project = opened(options([&](const ProjectPage& page) -> Coro<ProjectAnswer> {
    stopped->stop();
    ProjectAnswer answer;
    // For ever.
    answer.pages.push_back({.url = "http://shop.test/item/1",
                            .name = fmt::format("{}+", page.name),
                            .delay = std::chrono::milliseconds{1}});
    co_return answer;
  }));
  stopped = project.get();
  const auto report = project->run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GE(report->visits, 1u);
}

TEST_F(LocalProjectTest, WrongOptionsAreToldAtOnce) {
  const auto wrong = [&](auto change) {
    LocalProjectOptions with = options([](const ProjectPage&) -> Coro<ProjectAnswer> { co_return ProjectAnswer{}; });
    change(with);
    const auto project = LocalProject::open(std::move(with));
    return project ? std::string("none") : project.error().message;
  };
  EXPECT_EQ(wrong([](LocalProjectOptions&) {}), "none");
  EXPECT_THAT(wrong([](LocalProjectOptions& with) { with.definition = "{"; }), HasSubstr("JSON"));
  EXPECT_THAT(wrong([](LocalProjectOptions& with) { with.read = nullptr; }), HasSubstr("no function"));
  EXPECT_THAT(wrong([](LocalProjectOptions& with) {
                with.definition =
                    R"({"project": {"name": "shop", "start": ["http://shop.test/"]}, "rule": [{"name": "a"}]})";
              }),
              HasSubstr("project.processor"));
  EXPECT_THAT(wrong([](LocalProjectOptions& with) {
                with.definition =
                    R"({"project": {"name": "shop", "processor": ["x"]}, "sink": [{"name": "a", "file": "a.jsonl"}]})";
              }),
              HasSubstr("results()"));
  EXPECT_THAT(wrong([](LocalProjectOptions& with) { with.setup.database = "/nowhere/pages.db"; }),
              HasSubstr("/nowhere/pages.db"));
}

}  // namespace
}  // namespace argiope

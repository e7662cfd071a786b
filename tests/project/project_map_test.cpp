// Which rule a URL gets.
#include "project/rules/internal/project_map.hpp"

#include <gmock/gmock.h>

namespace argiope {
namespace {

using Place = ProjectMap::Place;

ProjectRule rule_for(std::string name, std::vector<std::string> match) {
  ProjectRule rule;
  rule.extraction.name = std::move(name);
  rule.extraction.match = std::move(match);
  return rule;
}

TEST(ProjectMapTest, GivesAUrlTheFirstRuleThatMatches) {
  ProjectDefinition project{.start = {*Url::parse("http://a.test/")}};
  project.rules = {rule_for("item", {"/item/*"}), rule_for("list", {"/list/*", "/item/index"})};
  const auto map = ProjectMap::make(project);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->find("http://a.test/item/7").rule, 0u);
  EXPECT_EQ(map->find("http://a.test/item/index").rule, 0u);
  EXPECT_EQ(map->find("https://www.a.test:8443/list/7?x=1").rule, 1u);
  EXPECT_EQ(map->find("http://a.test/about").place, Place::no_rule);
  EXPECT_EQ(map->find("http://b.test/item/7").place, Place::off_scope);
  EXPECT_EQ(map->find("http://sub.a.test/item/7").place, Place::off_scope);
  EXPECT_EQ(map->find("mailto:a@a.test").place, Place::no_page);
}

// Each URL is looked up beside as many hosts as there are: not quickly noticed, unless there are many.
TEST(ProjectMapTest, HasAHostOnceHoweverManyStartsAreThere) {
  std::string starts;
  for (std::size_t i = 0; i < ProjectDefinition::kMostStarts; ++i)
    starts += (i > 0 ? ",\"http://a.test/" : "\"http://a.test/") + std::to_string(i) + "\"";
  const auto project =
      parse_project_json(R"({"project":{"name":"many","start":[)" + starts + R"(]},"rule":[{"name":"all"}]})");
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_EQ(project->start.size(), ProjectDefinition::kMostStarts);
  EXPECT_EQ(ProjectMap::make(*project)->find("http://www.a.test/x").rule, 0u);
}

TEST(ProjectMapTest, ScopeTakesThePlaceOfTheStartsHosts) {
  ProjectDefinition project{.start = {*Url::parse("http://a.test/")}, .scope = {"*.b.test"}};
  project.rules = {rule_for("all", {})};
  const auto map = ProjectMap::make(project);
  EXPECT_EQ(map->find("http://x.b.test/").rule, 0u);
  EXPECT_EQ(map->find("http://a.test/").place, Place::off_scope);
}

TEST(ProjectMapTest, WithoutRulesOrStartsAllIsLeftToTheProcessor) {
  const auto map = ProjectMap::make({.processor = {.command = {"./a"}}});
  EXPECT_EQ(map->find("http://anywhere.test/").place, Place::page);
  EXPECT_EQ(map->find("http://anywhere.test/").rule, std::nullopt);
}

TEST(ProjectMapTest, FollowsWhatTheRuleSays) {
  ProjectDefinition project{.start = {*Url::parse("http://a.test/")}};
  project.rules = {rule_for("all", {}), rule_for("none", {}), rule_for("some", {})};
  project.rules[1].follow = false;
  project.rules[2].follow_only = {"/item/*"};
  const auto map = ProjectMap::make(project);
  EXPECT_TRUE(map->follows(0, "http://a.test/x"));
  EXPECT_FALSE(map->follows(1, "http://a.test/x"));
  EXPECT_FALSE(map->follows(2, "http://a.test/x"));
  EXPECT_TRUE(map->follows(2, "http://a.test/item/x"));
}

TEST(ProjectMapTest, RefusesPatternsThatAreNone) {
  ProjectDefinition project;
  project.rules = {rule_for("all", {"re:("})};
  EXPECT_FALSE(ProjectMap::make(project));
}

}  // namespace
}  // namespace argiope

// Parameters of URLs: where they are, which are taken out, and what is left.
#include "web/url/internal/url_parameters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/web/url.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> parameters(std::string_view href) {
  std::vector<std::string> found;
  for_each_parameter(href, [&](std::size_t begin, std::size_t end, std::string_view name) {
    found.push_back(std::string(href.substr(begin, end - begin)) + " " + std::string(name));
  });
  return found;
}

TEST(UrlParameters, AreInTheQueryAndAtTheEndsOfSegments) {
  EXPECT_THAT(parameters("http://h/a?x=1&y&=z&&w=%20"), ElementsAre("?x=1 x", "&y y", "&w=%20 w"));
  EXPECT_THAT(parameters("http://h/a;s=1;t/b;u=2?v=3;w"), ElementsAre(";s=1 s", ";t t", ";u=2 u", "?v=3;w v"));
  EXPECT_THAT(parameters("http://h/a/b"), IsEmpty());
  EXPECT_THAT(parameters("http://h/?"), IsEmpty());
  EXPECT_THAT(parameters("http://h/;"), IsEmpty());
  EXPECT_THAT(parameters("http://h;x/a"), IsEmpty()) << "a host has none";
}

TEST(UrlParameters, AreTakenOutAndTheOthersStayAsTheyAre) {
  const auto without = [](std::string_view href) {
    return without_parameters(href, [](std::string_view name) { return name == "s" || name == "u"; });
  };
  EXPECT_EQ(without("http://h/a?s=1"), "http://h/a");
  EXPECT_EQ(without("http://h/a?s=1&x=2"), "http://h/a?x=2");
  EXPECT_EQ(without("http://h/a?x=2&s=1"), "http://h/a?x=2");
  EXPECT_EQ(without("http://h/a?x=2&s=1&u&y=3"), "http://h/a?x=2&y=3");
  EXPECT_EQ(without("http://h/a?s=1&u=2&y=3&s"), "http://h/a?y=3");
  EXPECT_EQ(without("http://h/a;s=1/b;t=2;u?x=1"), "http://h/a/b;t=2?x=1");
  EXPECT_EQ(without("http://h/a;s=1?s=1"), "http://h/a");
  EXPECT_EQ(without("http://h/a?x=s&xs=1"), "") << "nothing is to be taken out";
}

TEST(UrlParameters, LeaveAUrlThatMayHaveToBeParsedAgain) {
  const std::string rest = without_parameters("http://h/a/b/..;s=1/c", [](std::string_view) { return true; });
  EXPECT_EQ(rest, "http://h/a/b/../c");
  EXPECT_EQ(Url::parse(rest)->href(), "http://h/a/c");
}

TEST(ParameterNames, AreNamesBeginningsAndLists) {
  const std::vector<std::string> words = {"Ref", "x_*", "tracking"};
  const auto names = ParameterNames::parse(words);
  ASSERT_TRUE(names);
  for (const char* name : {"ref", "REF", "x_", "X_anything", "utm_source", "UTM_X", "gclid", "hsCtaTracking"}) {
    EXPECT_TRUE(names->contains(name)) << name;
  }
  for (const char* name : {"refs", "x", "PHPSESSID", "utm", "q", ""}) EXPECT_FALSE(names->contains(name)) << name;
  EXPECT_FALSE(names->contains(std::string(100'000, 'x')));
  EXPECT_FALSE(ParameterNames{}.contains("utm_source"));
}

TEST(ParameterNames, OfSessionsAreAListOfTheirOwn) {
  const std::vector<std::string> words = {"sessions"};
  const auto names = ParameterNames::parse(words);
  ASSERT_TRUE(names);
  for (const char* name : {"PHPSESSID", "jsessionid", "ASPSESSIONIDQQCR", "sid", "osCsid"})
    EXPECT_TRUE(names->contains(name)) << name;
  EXPECT_FALSE(names->contains("utm_source"));
}

TEST(ParameterNames, ThatCanBeNoneAreToldOf) {
  for (const std::string word : {"", "*", "a=b", "a&b", "a b", "a*b*", "#x", "a;b"}) {
    const auto names = ParameterNames::parse(std::vector{word});
    ASSERT_FALSE(names) << word;
    EXPECT_THAT(names.error().message, HasSubstr("\"" + word + "\""));
  }
}

}  // namespace
}  // namespace argiope

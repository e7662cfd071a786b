// --config: what it says under [crawl] stands for options that were not given.
#include "cli/crawl/host_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/crawl/crawl_arguments.hpp"

namespace argiope {
namespace {

using Kind = CrawlFileOption::Kind;
using testing::ElementsAre;

struct Read {
  CrawlArguments arguments;
  Result<void> result;
};

std::unique_ptr<Read> read(std::vector<std::string> words, std::vector<CrawlFileOption> members) {
  auto made = std::make_unique<Read>();
  CLI::App app{"", "argiope"};
  made->arguments.add_to(app);
  words.insert(words.end(), {"--config", "c.toml"});
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  made->result = made->arguments.host_file.read_file(app, [&](const std::string& path) {
    return Result<CrawlFile>(CrawlFile{path, std::move(members), {}});
  });
  return made;
}

std::string complaint(CrawlFileOption member) {
  const auto made = read({"http://a.test/"}, {std::move(member)});
  return made->result ? "no mistake" : made->result.error().message;
}

TEST(HostArgumentsTest, AFileGivesOptionsThatWereNotGiven) {
  const auto made = read({"--max-depth", "2"}, {{"urls", Kind::list, {"http://a.test/", "http://b.test/"}},
                                                {"max_depth", Kind::number, {"7"}},
                                                {"rate", Kind::number, {"2.5"}},
                                                {"max_time", Kind::text, {"1h"}},
                                                {"check_links", Kind::flag, {"true"}},
                                                {"no_robots", Kind::flag, {"false"}},
                                                {"whitelist", Kind::list, {"c.test", "d.test"}},
                                                {"header_for", Kind::list, {"a.test", "X: 1", "b.test", "Y: 2"}}});
  ASSERT_TRUE(made->result) << made->result.error().message;
  const auto options = made->arguments.options();
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->seeds.size(), 2u);
  EXPECT_EQ(options->max_depth, 2u);
  EXPECT_EQ(options->rate, 2.5);
  EXPECT_EQ(options->max_time, std::chrono::hours{1});
  EXPECT_TRUE(options->check_links);
  EXPECT_TRUE(options->robots);
  EXPECT_THAT(options->whitelist, ElementsAre("c.test", "d.test"));
  EXPECT_EQ(options->headers_for.size(), 2u);
}

TEST(HostArgumentsTest, WhatIsWrongIsToldWithItsLine) {
  EXPECT_EQ(complaint({"max_detph", Kind::number, {"7"}, 3}),
            "--config c.toml:3: member \"max_detph\": [crawl] has none; did you mean \"max_depth\"?; argiope crawl "
            "--help has all options");
  EXPECT_THAT(complaint({"max_depth", Kind::text, {"seven"}, 3}),
              testing::StartsWith("--config c.toml:3: crawl.max_depth: "));
  EXPECT_EQ(complaint({"max_depth", Kind::flag, {"true"}, 4}),
            "--config c.toml:4: crawl.max_depth: a string, a number or a list of them");
  EXPECT_EQ(complaint({"max_pages", Kind::number, {"-1"}, 4}),
            "--config c.toml:4: crawl.max_pages: --max-pages: \"-1\": a whole number, 0 or more");
  EXPECT_EQ(complaint({"check_links", Kind::text, {"yes"}, 5}), "--config c.toml:5: crawl.check_links: true or false");
  EXPECT_EQ(complaint({"max_depth", Kind::list, {"1", "2"}, 6}), "--config c.toml:6: crawl.max_depth: one value");
  EXPECT_THAT(complaint({"config", Kind::text, {"x"}, 7}),
              testing::StartsWith("--config c.toml:7: member \"config\": "));
}

TEST(HostArgumentsTest, TheThrottleIsAskedForOrNot) {
  const auto options_of = [](std::vector<std::string> words) {
    words.emplace_back("http://a.test/");
    return *read(std::move(words), {})->arguments.options();
  };
  EXPECT_FALSE(options_of({}).autothrottle);
  EXPECT_EQ(options_of({"--no-autothrottle"}).autothrottle, false);
  EXPECT_EQ(options_of({"--autothrottle-target", "2"}).autothrottle, true);
  EXPECT_EQ(options_of({"--autothrottle-target", "2"}).autothrottle_target, 2);
  for (const char* wrong : {"nan", "0", "1001", "x"})
    EXPECT_THROW(options_of({"--autothrottle-target", wrong}), CLI::ParseError) << wrong;
}

}  // namespace
}  // namespace argiope

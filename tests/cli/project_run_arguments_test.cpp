// From words to what `argiope project run` works with.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/project/run_arguments.hpp"
#include "support/typed_words.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

std::optional<std::string> no_variable(const char*) { return std::nullopt; }

struct Taken {
  ProjectRunArguments arguments;
  CrawlOptions options;
  CrawlSetup setup;
};

Result<Taken> taken(std::vector<std::string> words, std::vector<std::string> starts = {"https://example.org/"}) {
  Taken all;
  type_into(all.arguments, words);
  if (auto good = all.arguments.check(); !good) return std::unexpected(good.error());
  for (const std::string& start : starts) all.options.seeds.push_back(*Url::parse(start));
  if (auto applied = all.arguments.apply(all.options, all.setup, no_variable); !applied)
    return std::unexpected(applied.error());
  return all;
}

std::string refusal(std::vector<std::string> words) {
  const auto result = taken(std::move(words));
  return result ? "" : result.error().message;
}

TEST(ProjectRunArguments, DefaultsArePoliteAndConfined) {
  const auto all = taken({"shop.toml"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->arguments.files, std::vector<std::string>{"shop.toml"});
  EXPECT_EQ(all->arguments.database, "pages.db");
  EXPECT_EQ(all->arguments.sandbox, "strict");
  EXPECT_FALSE(all->arguments.once);
  EXPECT_EQ(all->arguments.retry_wait, 1min);
  EXPECT_TRUE(all->options.robots);
  EXPECT_EQ(all->options.rate, CrawlOptions{}.rate);
  EXPECT_TRUE(all->options.user_agent.starts_with("argiope/"));
  EXPECT_EQ(all->options.concurrency, 200u);
  EXPECT_FALSE(all->setup.allow_private);
  EXPECT_FALSE(all->setup.private_advice.empty());
}

TEST(ProjectRunArguments, ANumberThatIsNoneIsToldWithWhatIsAllowed) {
  const auto why = [](const std::vector<std::string>& words) { return why_not_parsed<ProjectRunArguments>(words); };
  for (const char* number : {"0", "-1", "257", "two", "1.5", "4294967297"}) {
    EXPECT_EQ(why({"shop.toml", "--workers", number}),
              "--workers: \"" + std::string(number) + "\": a whole number from 1 to 256");
  }
  EXPECT_EQ(why({"shop.toml", "--concurrency", "0"}), "--concurrency: \"0\": a whole number from 1 to 100000");
  EXPECT_EQ(why({"shop.toml", "--workers", "256", "--concurrency", "100000"}), "");
}

TEST(ProjectRunArguments, PagesMayTakeLongerThanRobots) {
  const auto usual = taken({"shop.toml"});
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->arguments.requests.timeout, 2min);
  EXPECT_EQ(usual->options.timeout, 30s);
  const auto quick = taken({"shop.toml", "--timeout", "3s"});
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->arguments.requests.timeout, 3s);
  EXPECT_EQ(quick->options.timeout, 3s);
}

TEST(ProjectRunArguments, WhatIsDoneAtHostsIsAsOfACrawl) {
  const auto all = taken({"a.toml",
                          "b.toml",
                          "-d",
                          "x.db",
                          "--rate",
                          "2",
                          "--per-host",
                          "3",
                          "--delay",
                          "1s",
                          "-u",
                          "shop/1",
                          "--header",
                          "A: b",
                          "--timeout",
                          "5s",
                          "--proxy",
                          "http://127.0.0.1:9",
                          "--allow-private",
                          "-c",
                          "7",
                          "--workers",
                          "4",
                          "--sandbox",
                          "none",
                          "--no-autothrottle",
                          "-s",
                          "1",
                          "--retry-wait",
                          "2h",
                          "--once"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->arguments.files.size(), 2u);
  EXPECT_EQ(all->arguments.database, "x.db");
  EXPECT_EQ(all->options.rate, 2);
  EXPECT_EQ(all->options.per_host, 3u);
  EXPECT_EQ(all->options.delay, 1s);
  EXPECT_EQ(all->options.user_agent, "shop/1");
  ASSERT_FALSE(all->options.headers_for.empty());
  EXPECT_EQ(all->options.headers_for.front().where, "https://example.org");
  EXPECT_EQ(all->options.timeout, 5s);
  EXPECT_EQ(all->setup.proxies.for_https.size(), 1u);
  EXPECT_TRUE(all->setup.allow_private);
  EXPECT_EQ(all->options.concurrency, 7u);
  EXPECT_EQ(all->arguments.workers, 4u);
  EXPECT_EQ(all->arguments.sandbox, "none");
  EXPECT_EQ(all->options.autothrottle, false);
  EXPECT_EQ(all->options.size_limit, 1024u);
  EXPECT_EQ(all->arguments.retry_wait, 2h);
  EXPECT_TRUE(all->arguments.once);
}

TEST(ProjectRunArguments, AResultsFileIsOfOneProjectAndNamesItsFormat) {
  EXPECT_EQ(refusal({"a.toml", "--results", "out.csv"}), "");
  EXPECT_EQ(refusal({"a.toml", "--results", "-"}), "");
  EXPECT_TRUE(refusal({"a.toml", "--results", "out.xml"})
                  .starts_with("--results \"out.xml\": the name must end with .csv, .json or .jsonl"));
  EXPECT_TRUE(refusal({"a.toml", "b.toml", "--results", "out.csv"}).starts_with("--results: give one project's FILE"));
  EXPECT_TRUE(refusal({"--results", "out.csv"}).starts_with("--results: give one project's FILE"));
  EXPECT_TRUE(refusal({"a.toml", "--results", "-", "--summary", "json"})
                  .starts_with("--summary json: results go to standard output"));
}

TEST(ProjectRunArguments, WhatIsOutOfRangeIsNoOption) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--sandbox", "loose"},
                                                                                     {"--workers", "0"},
                                                                                     {"-c", "0"},
                                                                                     {"--rate", "0"},
                                                                                     {"--summary", "xml"},
                                                                                     {"--sync", "often"},
                                                                                     {"--retry-wait", "soon"},
                                                                                     {"--quota", "1M"}}) {
    ProjectRunArguments arguments;
    EXPECT_THROW(type_into(arguments, words), CLI::ParseError) << words.front();
  }
}

}  // namespace
}  // namespace argiope

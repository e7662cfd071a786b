// From words to the options of a crawl.
#include "cli/crawl/crawl_arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace argiope {
namespace {

using namespace std::chrono_literals;

Result<CrawlOptions> options_of(std::vector<std::string> words) {
  CLI::App app{"", "argiope"};
  CrawlArguments arguments;
  arguments.add_to(app);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  return arguments.options();
}
CrawlOptions taken(std::vector<std::string> words) {
  auto options = options_of(std::move(words));
  EXPECT_TRUE(options) << (options ? "" : options.error().message);
  return options ? std::move(*options) : CrawlOptions{};
}
std::string refusal(std::vector<std::string> words) {
  const auto options = options_of(std::move(words));
  EXPECT_FALSE(options);
  return options ? "" : options.error().message;
}
std::string seed(const std::string& url) {
  const auto options = taken({url});
  return options.seeds.empty() ? "" : std::string(options.seeds.front().href());
}
std::vector<std::string> fields(std::vector<std::string> words) {
  std::vector<std::string> said;
  for (const HeaderFor& field : taken(std::move(words)).headers_for) {
    said.push_back(field.where + " " + field.name + ": " + field.value);
  }
  return said;
}
using Fields = std::vector<std::string>;

TEST(CrawlArguments, AUrlWithoutSchemeHasThatOfABrowserAndLoopbackHasHttp) {
  EXPECT_EQ(seed("example.org"), "https://example.org/");
  EXPECT_EQ(seed("example.org:8080/a"), "https://example.org:8080/a");
  EXPECT_EQ(seed("example.org/a?b#c"), "https://example.org/a?b");
  EXPECT_EQ(seed("localhost:8000"), "http://localhost:8000/");
  EXPECT_EQ(seed("127.0.0.1"), "http://127.0.0.1/");
  EXPECT_EQ(seed("[::1]:8000/x"), "http://[::1]:8000/x");
  EXPECT_EQ(seed("http://example.org"), "http://example.org/");
}

TEST(CrawlArguments, WhatCannotBeCrawledIsRefusedByName) {
  EXPECT_EQ(refusal({"ftp://example.org/"}),
            "URL \"ftp://example.org/\": scheme \"ftp\" cannot be crawled; use http or https");
  EXPECT_TRUE(refusal({"mailto:ann@example.org"}).starts_with("URL \"mailto:"));
  EXPECT_TRUE(refusal({"-"}).contains("standard input"));
  EXPECT_FALSE(refusal({"ftp://ann:secret@example.org/"}).contains("secret")) << "errors are shown and logged";
}

TEST(CrawlArguments, CredentialsOfASeedGoToItsSiteAndLeaveTheUrl) {
  EXPECT_EQ(seed("https://ann:secret@example.org/"), "https://example.org/");
  EXPECT_EQ(fields({"https://ann:secret@example.org/"}),
            (Fields{"https://example.org Authorization: Basic YW5uOnNlY3JldA=="}));
}

TEST(CrawlArguments, HeaderFieldsGoToTheSeedsAndWhereTheyMayBeWithTls) {
  EXPECT_EQ(fields({"http://example.org", "--header", "X-Key:  1"}),
            (Fields{"http://example.org X-Key: 1", "https://example.org X-Key: 1"}));
  EXPECT_EQ(fields({"http://example.org:81", "--header", "X-Key: 1"}), (Fields{"http://example.org:81 X-Key: 1"}));
  EXPECT_EQ(fields({"https://a.org", "https://b.org", "--header", "A: 1", "--header", "a: 2"}),
            (Fields{"https://a.org A: 1", "https://b.org A: 1"}))
      << "the first of a name counts";
}

TEST(CrawlArguments, HeaderFieldsOfOthersGoToAHostAPortAnOriginOrEverywhere) {
  EXPECT_EQ(fields({"a.org", "--header-for", "B.org", "X: 1", "--header-for", "c.org:81", "X: 2", "--header-for",
                    "http://d.org/", "X: 3", "--header-for", "*", "X: 4"}),
            (Fields{"b.org X: 1", "c.org:81 X: 2", "http://d.org X: 3", "* X: 4"}));
  EXPECT_TRUE(
      refusal({"a.org", "--header-for", "b.org/path", "X: 1"}).starts_with("--header-for \"b.org/path\": give a host"));
}

TEST(CrawlArguments, AHeaderFieldThatIsNoneIsRefused) {
  EXPECT_EQ(refusal({"a.org", "--header", "no colon"}), "--header \"no colon\": write it as \"Name: value\"");
  EXPECT_TRUE(refusal({"a.org", "--header", ": value"}).contains("Name: value"));
  EXPECT_TRUE(refusal({"a.org", "--header", "A B: value"}).contains("not allowed"));
  EXPECT_TRUE(refusal({"a.org", "--header", "A: b\r\nEvil: c"}).contains("not allowed"));
  EXPECT_TRUE(refusal({"a.org", "--user-agent", "a\r\nb"}).starts_with("--user-agent: control characters"));
}

TEST(CrawlArguments, ADomainOfTheWhitelistIsSpelledAsUrlsSpellIt) {
  EXPECT_EQ(taken({"a.org", "-w",
                   "B\xc3\xbc"
                   "cher.Example",
                   "-w", "c.org"})
                .whitelist,
            (std::vector<std::string>{"xn--bcher-kva.example", "c.org"}));
  EXPECT_EQ(refusal({"a.org", "-w", "*.b.org"}),
            "--whitelist \"*.b.org\": subdomains are included; did you mean \"b.org\"?");
  EXPECT_EQ(refusal({"a.org", "-w", "https://b.org/x"}),
            "--whitelist \"https://b.org/x\": not a domain name; did you mean \"b.org\"?");
}

TEST(CrawlArguments, ExportsAreOfTwoKinds) {
  EXPECT_TRUE(options_of({"a.org", "--export", "x.csv", "--export-broken", "y.jsonl"}));
  EXPECT_EQ(refusal({"a.org", "--export", "x.txt"}), "--export \"x.txt\": the name must end with .jsonl or .csv");
  EXPECT_TRUE(refusal({"a.org", "--export-broken", "y"}).starts_with("--export-broken"));
}

TEST(CrawlArguments, TheFirstWordOfTheUserAgentIsTheNameInRobotsTxt) {
  EXPECT_EQ(taken({"a.org", "-u", "MyBot/2.0 (+https://b.org)"}).product_token, "mybot");
  EXPECT_EQ(taken({"a.org", "-u", "My Bot"}).product_token, "my");
  EXPECT_EQ(taken({"a.org"}).product_token, "argiope");
  EXPECT_TRUE(taken({"a.org"}).user_agent.starts_with("argiope/"));
}

TEST(CrawlArguments, WhatIsNotSaidIsLeftToTheCrawl) {
  const CrawlOptions options = taken({"a.org"});
  EXPECT_EQ(options.max_depth, std::nullopt);
  EXPECT_EQ(options.max_time, std::nullopt);
  EXPECT_EQ(options.max_idle, std::nullopt);
  EXPECT_EQ(options.delay, std::nullopt);
  EXPECT_EQ(options.age, std::nullopt);
  EXPECT_EQ(options.rate, CrawlOptions{}.rate);
  EXPECT_EQ(options.per_host, CrawlOptions{}.per_host);
  EXPECT_EQ(options.requeue, Requeue::none);
  EXPECT_EQ(options.order, CrawlOrder::bfs);
  EXPECT_TRUE(options.robots);
}

TEST(CrawlArguments, WhatIsSaidIsTaken) {
  const CrawlOptions options =
      taken({"a.org",  "--max-depth", "0",   "--max-time",  "1h30m", "-i",         "5",           "--delay",
             "250ms",  "--age",       "0",   "--rate",      "2",     "--per-host", "3",           "--requeue",
             "broken", "--order",     "dfs", "--no-robots", "-s",    "7",          "--max-pages", "9"});
  EXPECT_EQ(options.max_depth, 0u) << "the seeds alone";
  EXPECT_EQ(options.max_time, 90min);
  EXPECT_EQ(options.max_idle, 5s);
  EXPECT_EQ(options.delay, 250ms);
  EXPECT_EQ(options.age, 0s) << "all, and not never";
  EXPECT_EQ(options.rate, 2);
  EXPECT_EQ(options.per_host, 3u);
  EXPECT_EQ(options.requeue, Requeue::broken);
  EXPECT_EQ(options.order, CrawlOrder::dfs);
  EXPECT_FALSE(options.robots);
  EXPECT_EQ(options.size_limit, 7u * 1024);
  EXPECT_EQ(options.max_pages, 9u);
}

TEST(CrawlArguments, ARateOfNothingIsRefusedWithWhatWasPerhapsMeant) {
  for (const char* rate : {"0", "-1", "nan", "inf", "x"}) {
    EXPECT_THROW((void)options_of({"a.org", "--rate", rate}), CLI::ValidationError) << rate;
  }
}

TEST(CrawlArguments, AnArchivesFilesHaveASizeInBytesOrWithAUnit) {
  const auto size_of = [](const std::string& text) {
    CLI::App app{"", "argiope"};
    CrawlArguments arguments;
    arguments.add_to(app);
    std::vector<std::string> words{"http://a.org", "--warc", "site", "--warc-size", text};
    std::ranges::reverse(words);
    app.parse(words);
    return arguments.warc_bytes;
  };
  EXPECT_EQ(size_of("1000"), 1000u);
  EXPECT_EQ(size_of("500K"), 500u * 1024);
  EXPECT_EQ(size_of("2GB"), 2048u * 1024 * 1024);
  for (const std::string bad : {"0", "-1", "many", "1 parsec"}) EXPECT_THROW(size_of(bad), CLI::ValidationError) << bad;
  EXPECT_THROW(options_of({"http://a.org", "--warc-size", "1G"}), CLI::RequiresError);
}

}  // namespace
}  // namespace argiope

// Files of `argiope crawl --config`.
#include "config/internal/crawl_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

std::string wrong_crawl_file(std::string_view text) {
  const auto file = parse_crawl_file(text, "c.toml");
  return file ? "no mistake" : file.error().message;
}

TEST(CrawlFileTest, HasTheCrawlsOptionsAndSettingsOfHosts) {
  const auto file = parse_crawl_file(R"(
[crawl]
urls = ["https://example.org/"]
max_depth = 5
check_links = true
rate = 2.5

[[host]]
match = ["Example.org", "*.example.net:", "*.example.net"]
rate = 1
)",
                                     "c.toml");
  EXPECT_FALSE(file);
  const auto good = parse_crawl_file(R"(
[crawl]
urls = ["https://example.org/"]
max_depth = 5
check_links = true
rate = 2.5
header_for = [["example.org", "X-Key: 1"]]

[[host]]
match = ["Example.org", "*.example.net"]
rate = 1
delay = 2
per_host = 4
autothrottle = true
autothrottle_target = 1
robots = false
user_agent = "Me/1"
headers = { "Accept-Language" = "de", "X-Key" = "a b" }
timeout = "5s"
retries = 0
include = "/docs/**"
exclude = ["*.pdf", "re:[?&]s="]
path_prefix = "/a b/"
max_depth = 3
max_pages = 100

[[host]]
match = "*"
delay = "1m30s"
)",
                                     "c.toml");
  ASSERT_TRUE(good) << good.error().message;
  ASSERT_EQ(good->options.size(), 5u);
  EXPECT_EQ(good->options[0].name, "urls");
  EXPECT_EQ(good->options[0].kind, CrawlFileOption::Kind::list);
  EXPECT_EQ(good->options[1].line, 4u);
  EXPECT_EQ(good->options[2].kind, CrawlFileOption::Kind::flag);
  EXPECT_THAT(good->options[3].values, ElementsAre("2.5"));
  EXPECT_THAT(good->options[4].values, ElementsAre("example.org", "X-Key: 1"));
  ASSERT_EQ(good->hosts.size(), 2u);
  const HostSettings& host = good->hosts[0];
  EXPECT_THAT(host.match, ElementsAre("example.org", "*.example.net"));
  EXPECT_EQ(host.rate, 1);
  EXPECT_EQ(host.delay, 2s);
  EXPECT_EQ(host.per_host, 4u);
  EXPECT_EQ(host.autothrottle, true);
  EXPECT_EQ(host.robots, false);
  EXPECT_EQ(host.user_agent, "Me/1");
  EXPECT_THAT(*host.headers, ElementsAre(Pair("Accept-Language", "de"), Pair("X-Key", "a b")));
  EXPECT_EQ(host.timeout, 5s);
  EXPECT_EQ(host.retries, 0u);
  EXPECT_THAT(*host.path_prefixes, ElementsAre("/a%20b/"));
  EXPECT_EQ(host.max_depth, 3u);
  EXPECT_EQ(host.max_pages, 100u);
  EXPECT_EQ(good->hosts[1].delay, 90s);
}

TEST(CrawlFileTest, TellsWhatIsWrongAndWhere) {
  EXPECT_EQ(wrong_crawl_file("[[host]]\nmatch = \"a.test\"\nraet = 1"),
            "c.toml:3: host[0]: member \"raet\": a host has none; did you mean \"rate\"?");
  EXPECT_EQ(wrong_crawl_file("[[host]]\nmatch = \"a.test\"\nrate = 0"),
            "c.toml:3: host[0].rate \"0\": a number above 0");
  EXPECT_EQ(wrong_crawl_file("[[host]]\nmatch = \"a.test\"\nexclude = [\"a\", \"re:(\"]").substr(0, 26),
            "c.toml:3: host[0].exclude[");
  EXPECT_EQ(wrong_crawl_file("[[host]]\nrate = 1"),
            "c.toml:1: host[0]: a host needs match: whose settings these are, as in match = \"example.org\"");
  EXPECT_EQ(
      wrong_crawl_file("[[host]]\nmatch = \"a/b\""),
      "c.toml:2: host[0].match: \"a/b\": a host, HOST:PORT, http://HOST, *.DOMAIN for its subdomains, or * for all");
  EXPECT_EQ(wrong_crawl_file("[hosts]\n"),
            "c.toml:1: member \"hosts\": there are [crawl] and [[host]]; did you mean \"host\"?");
  EXPECT_EQ(wrong_crawl_file("[[host]]\nmatch = \"a.test\"\nheaders = { \"X Y\" = \"1\" }"),
            "c.toml:3: host[0].headers.X Y: control characters, and spaces or colons in the name, are not allowed");
  EXPECT_EQ(wrong_crawl_file("[[host]]\nmatch = \"a.test\"\nheaders = { \"Content-Length\" = \"1\" }"),
            "c.toml:3: host[0].headers.Content-Length: the client sets it itself");
  EXPECT_EQ(wrong_crawl_file("[crawl]\nwhitelist = { a = 1 }"),
            "c.toml:2: crawl.whitelist \"{\"a\":1}\": a string, a number, true, false, or a list");
  EXPECT_EQ(wrong_crawl_file("x = ").substr(0, 9), "c.toml:1:");
  EXPECT_EQ(wrong_crawl_file("[crawl]\nrate = inf"), "c.toml:2: a number must be finite");
}

TEST(CrawlFileTest, IsBoundedAndNamed) {
  EXPECT_EQ(parse_crawl_file(std::string(kMostCrawlFileBytes + 1, ' '), "big").error().code, Errc::too_large);
  EXPECT_EQ(read_crawl_file("/does/not/exist.toml").error().message, "/does/not/exist.toml: No such file or directory");
}

}  // namespace
}  // namespace argiope

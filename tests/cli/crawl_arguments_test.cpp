// From words to the options of a crawl.
#include "cli/crawl/crawl_arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/crawl/seed_list.hpp"
#include "support/temporary_folder.hpp"
#include "support/typed_words.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

Result<CrawlOptions> options_of(std::vector<std::string> words) {
  CrawlArguments arguments;
  type_into(arguments, words);
  return arguments.options();
}
CrawlOptions taken(std::vector<std::string> words) { return accepted(options_of(std::move(words))); }
std::string refusal(std::vector<std::string> words) { return refused(options_of(std::move(words))); }
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
  EXPECT_EQ(refusal({"-", "-i", "-"}), "-: standard input can be read once");
  EXPECT_TRUE(taken({}).seeds.empty()) << "whether there must be one is the command's to say";
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
  EXPECT_EQ(refusal({"a.org", "--header", "host: b.org"}),
            "--header \"host: b.org\": host is set by the client itself");
  EXPECT_TRUE(refusal({"a.org", "--header-for", "*", "Transfer-Encoding: chunked"})
                  .contains("Transfer-Encoding is set by the client itself"));
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

TEST(CrawlArguments, APortOfTheWhitelistIsPartOfIt) {
  EXPECT_EQ(taken({"a.org", "-w", "B.org:8080", "-w", "[::1]:81", "-w", "c.org:80", "-w", "d.org."}).whitelist,
            (std::vector<std::string>{"b.org:8080", "[::1]:81", "c.org:80", "d.org"}));
}

TEST(CrawlArguments, WhatIsLeftOutIsSpelledAsUrlsAndServersSpellIt) {
  const CrawlOptions options =
      taken({"a.org",         "--domain",  "--port",         "80,8080",       "--port",
             "443",           "--include", "/docs/{a,b}/**", "--exclude",     "re:x,y",
             "--path-prefix", "/a b/",     "--no-parent",    "--accept-type", "Image/*,application/PDF",
             "--accept-ext",  "html,.PHP", "--reject-ext",   "*.zip",         "--reject-ext",
             "tar.gz"});
  EXPECT_TRUE(options.registrable_domains);
  EXPECT_EQ(options.ports, (std::vector<std::uint16_t>{80, 8080, 443}));
  EXPECT_EQ(options.include, std::vector<std::string>{"/docs/{a,b}/**"}) << "a comma belongs to the pattern";
  EXPECT_EQ(options.exclude, std::vector<std::string>{"re:x,y"});
  EXPECT_EQ(options.path_prefixes, std::vector<std::string>{"/a%20b/"});
  EXPECT_TRUE(options.no_parent);
  EXPECT_EQ(options.accept_types, (std::vector<std::string>{"image/*", "application/pdf"}));
  EXPECT_EQ(options.accept_extensions, (std::vector<std::string>{"html", "php"}));
  EXPECT_EQ(options.reject_extensions, (std::vector<std::string>{"zip", "tar.gz"}));
}

TEST(CrawlArguments, WhatIsNoPatternPathTypeOrExtensionIsRefusedWithTheWayOut) {
  EXPECT_EQ(refusal({"a.org", "--exclude", "/[a"}),
            "--exclude: pattern \"/[a\": [ without ]; write \\[ for the character");
  EXPECT_TRUE(refusal({"a.org", "--include", "re:("}).starts_with("--include: pattern \"re:(\": missing )"));
  EXPECT_EQ(refusal({"a.org", "--path-prefix", "docs"}),
            "--path-prefix \"docs\": a path begins with / and has no query");
  EXPECT_EQ(
      refusal({"a.org", "--path-prefix", "https://a.org/docs/"}),
      "--path-prefix \"https://a.org/docs/\": a path begins with /; --include https://a.org/docs/** names a host, too");
  EXPECT_EQ(refusal({"a.org", "--accept-type", "pdf"}),
            "--accept-type \"pdf\": a media type as in application/pdf or image/*");
  EXPECT_EQ(refusal({"a.org", "--accept-type", ".mp4"}),
            "--accept-type \".mp4\": a media type as in video/mp4 or image/*");
  EXPECT_TRUE(
      refusal({"a.org", "--reject-ext", "/x/*.zip"}).starts_with("--reject-ext \"/x/*.zip\": an extension as in pdf"));
  for (const char* port : {"0", "65536", "http"})
    EXPECT_THROW((void)options_of({"a.org", "--port", port}), CLI::ParseError) << port;
}

SeedList list_of(const std::string& text) {
  std::istringstream in(text);
  SeedList list;
  EXPECT_TRUE(read_seed_list(in, "list", list));
  return list;
}

TEST(SeedList, IsAUrlALineAndPassesOverWhatIsEmptyOrAComment) {
  const SeedList list =
      list_of("\xef\xbb\xbf# where to start\r\nexample.org/a\r\n\n  http://b.org/#x \n\thttps://c.org");
  std::vector<std::string> seeds;
  for (const Url& seed : list.seeds) seeds.push_back(seed.href());
  EXPECT_EQ(seeds, (std::vector<std::string>{"https://example.org/a", "http://b.org/", "https://c.org/"}));
  EXPECT_EQ(list.bad_count, 0u);
}

TEST(SeedList, MayBeInUtf16) {
  const auto utf16 = [](std::string_view text, bool is_big, bool has_mark) {
    std::string bytes = !has_mark ? "" : is_big ? "\xfe\xff" : "\xff\xfe";
    for (const char c : text) bytes.append(is_big ? std::string{'\0', c} : std::string{c, '\0'});
    return bytes;
  };
  const std::string sitemap =
      "<?xml version=\"1.0\" encoding=\"UTF-16\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
      "<url><loc>http://a.org/1</loc></url><url><loc>http://a.org/2</loc></url></urlset>";
  for (const bool is_big : {false, true}) {
    for (const bool has_mark : {false, true}) {
      for (const std::string& text : {std::string("http://a.org/1\r\nhttp://a.org/2\r\n"), sitemap}) {
        const SeedList list = list_of(utf16(text, is_big, has_mark));
        ASSERT_EQ(list.seeds.size(), 2u) << is_big << has_mark << text;
        EXPECT_EQ(list.seeds[1].href(), "http://a.org/2");
        EXPECT_EQ(list.bad_count, 0u);
      }
    }
  }
}

TEST(SeedList, ABadLineIsToldByItsNumberAndSkipped) {
  const SeedList list =
      list_of("http://a.org/\nftp://ann:secret@x/\n" + std::string(100'000, 'x') + "\nhttp://b.org/\n");
  EXPECT_EQ(list.seeds.size(), 2u);
  EXPECT_EQ(list.bad_count, 2u);
  EXPECT_TRUE(list.bad.at(0).starts_with("list:2: URL \"ftp://"));
  EXPECT_FALSE(list.bad.at(0).contains("secret"));
  EXPECT_TRUE(list.bad.at(1).starts_with("list:3: URL ")) << "and a line without end takes no memory without end";
  std::string many;
  for (int i = 0; i < 50; ++i) many += "a b\n";
  EXPECT_EQ(list_of(many).bad.size(), SeedList::kMostTold);
  EXPECT_EQ(list_of(many).bad_count, 50u);
}

TEST(SeedList, ThatIsNotThereIsAnErrorWithItsName) {
  SeedList list;
  const auto read = read_seed_list("/no/such/file", list);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::not_found);
  EXPECT_TRUE(read.error().message.starts_with("/no/such/file: "));
}

TEST(CrawlArguments, ListsOfUrlsAreReadAndASpanBehindTheShortOptionIsStillTheLongestIdling) {
  const TemporaryFolder folder;
  const std::string file = folder.file("seeds.txt");
  std::ofstream(file) << "http://b.org/\nnonsense:\n";
  std::vector<std::string> remarks;
  CLI::App app{"", "argiope"};
  CrawlArguments arguments;
  arguments.add_to(app);
  app.parse(std::vector<std::string>{"http://a.org/", "7s", "-i", file, "--input-file"});
  const auto options = arguments.options(&remarks);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->max_idle, 7s);
  EXPECT_EQ(options->seeds.size(), 2u);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_TRUE(remarks[0].starts_with(file + ":2: URL \"nonsense:\""));
  EXPECT_TRUE(remarks[0].ends_with("; skipped"));
  std::ofstream(file) << "nonsense:\n";
  EXPECT_TRUE(refusal({"-i", file}).ends_with("; and no line is a URL"));
  std::ofstream(file) << "# nothing yet\n";
  EXPECT_EQ(refusal({"-i", file}), file + ": has no URLs");
}

TEST(CrawlArguments, ExportsAreOfTwoKinds) {
  EXPECT_TRUE(options_of({"a.org", "--export", "x.csv", "--export-broken", "y.jsonl"}));
  EXPECT_EQ(refusal({"a.org", "--export", "x.txt"}),
            "--export \"x.txt\": the name must end with .jsonl or .csv, or be -");
  EXPECT_TRUE(options_of({"a.org", "--export", "-"}));
  EXPECT_TRUE(refusal({"a.org", "--export", "-", "--summary", "json"}).starts_with("--export -: --summary json"));
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

TEST(CrawlArguments, ANumberThatIsNoneOrOutOfRangeIsToldWithWhatIsAllowed) {
  const auto why = [](const std::string& option, const std::string& value) {
    return why_not_parsed<CrawlArguments>({"a.org", option, value});
  };
  for (const std::string option : {"--max-links-per-page", "--max-pages-per-host", "--max-url-length"}) {
    EXPECT_EQ(why(option, "0"), option + ": \"0\": a whole number, 1 or more");
    EXPECT_EQ(why(option, "x"), option + ": \"x\": a whole number, 1 or more");
  }
  EXPECT_EQ(why("--max-segment-repeats", "0"), "--max-segment-repeats: \"0\": a whole number from 1 to 4294967295");
  for (const std::string option : {"--max-pages", "--seed"}) {
    EXPECT_EQ(why(option, "-1"), option + ": \"-1\": a whole number, 0 or more");
    EXPECT_EQ(why(option, " -1"), option + ": \" -1\": a whole number, 0 or more");
    EXPECT_EQ(why(option, "1.5"), option + ": \"1.5\": a whole number, 0 or more");
  }
  EXPECT_EQ(why("--retries", "-1"), "--retries: \"-1\": a whole number from 0 to 100");
  EXPECT_EQ(why("--per-host", "4294967297"), "--per-host: \"4294967297\": a whole number from 1 to 100000");
  EXPECT_EQ(why("--autothrottle-target", "nan"), "--autothrottle-target: \"nan\": a number from 0.01 to 1000");
}

TEST(CrawlArguments, AnEmptyNameIsNotTakenForNone) {
  for (const std::string option :
       {"--save", "--html", "--load-cookies", "--save-cookies", "--netrc-file", "--sitemap-out", "--export",
        "--export-broken", "--check-output", "--extract", "--config", "--db", "--login", "--input-file"}) {
    EXPECT_EQ(why_not_parsed<CrawlArguments>({"a.org", option, ""}), option + ": \"\": it names nothing");
  }
}

TEST(CrawlArguments, WhatWouldDoNothingIsRefusedWithWhatItNeeds) {
  const std::string checks = "--check-links or --check-output";
  EXPECT_EQ(refusal({"a.org", "--check-age", "1d"}), "--check-age: does nothing without " + checks);
  EXPECT_EQ(refusal({"a.org", "--check-foreign-fragments"}),
            "--check-foreign-fragments: does nothing without " + checks);
  EXPECT_EQ(refusal({"a.org", "--check-only", "mail"}),
            "--check-only: does nothing without --check-links, --check-output or --html");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--output", "x.csv"}, {"--output-format", "csv"}, {"--extract-threads", "2"}}) {
    EXPECT_EQ(refusal({"a.org", words[0], words[1]}), words[0] + ": does nothing without --field or --extract");
    EXPECT_TRUE(options_of({"a.org", words[0], words[1], "--field", "title=css:h1"}));
  }
  EXPECT_EQ(refusal({"a.org", "--near-distance", "3"}),
            "--near-distance: does nothing without --near-duplicates, --skip-duplicates near or --traps");
  EXPECT_EQ(refusal({"a.org", "--seed", "0"}), "--seed: does nothing without --order random");
  EXPECT_EQ(taken({"a.org", "--order", "random", "--seed", "18446744073709551615"}).order_seed, 18446744073709551615u);
  EXPECT_EQ(taken({"a.org", "--traps", "50", "--near-distance", "5"}).duplicates.near_distance, 5u);
  EXPECT_TRUE(options_of({"a.org", "--check-only", "mail", "--html", "x.html"}));
  EXPECT_TRUE(options_of({"a.org", "--check-age", "1d", "--check-foreign-fragments", "--check-output", "x.csv"}));
}

TEST(CrawlArguments, WhatIsWrittenAtTheEndIsTriedAtTheStart) {
  const TemporaryFolder folder;
  const auto why = [&](std::vector<std::string> words) {
    CrawlArguments arguments;
    words.insert(words.begin(), "a.org");
    type_into(arguments, words);
    const auto good = arguments.files([](const char*) { return std::optional<std::string>(); }).check();
    return good ? std::string() : good.error().message;
  };
  const std::string missing = folder.file("none/x.csv");
  for (const std::string option :
       {"--export", "--export-broken", "--html", "--sitemap-out", "--save-cookies", "--check-output"}) {
    EXPECT_EQ(why({option, missing}), option + " " + missing + ": No such file or directory");
    EXPECT_EQ(why({option, folder.file(".")}), option + " " + folder.file(".") + ": Is a directory");
    EXPECT_EQ(why({option, folder.file("x.csv")}), "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("."))) << "and nothing is left of the trial";
  EXPECT_EQ(why({"--html", "-"}), "");
}

TEST(CrawlArguments, NoValueIsTakenForAnother) {
  const auto why = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"a.org"};
    words.insert(words.end(), more.begin(), more.end());
    return why_not_parsed<CrawlArguments>(words);
  };
  EXPECT_EQ(why({"--port", "80,,81"}), "--port: \"80,,81\": a part between its commas is empty; write it as a,b");
  EXPECT_NE(why({"--port", ",", "--max-depth", "1"}).find("--port: \",\""), std::string::npos);
  for (const char* option :
       {"--accept-type", "--accept-ext", "--reject-ext", "--strip-parameters", "--keep-parameters"}) {
    EXPECT_NE(why({option, "a/b,,c/d"}).find("is empty"), std::string::npos) << option;
    EXPECT_NE(why({option, ""}).find("it names nothing"), std::string::npos) << option;
  }
  EXPECT_EQ(taken({"a.org", "--reject-ext", " zip, tar.gz "}).reject_extensions,
            (std::vector<std::string>{"zip", "tar.gz"}));
  EXPECT_NE(why({"--max-pages", "010"}).find("write it without a 0 in front"), std::string::npos);
  EXPECT_NE(why({"--max-pages", " 5"}), "");
  for (const char* bytes : {"010M", "M", " 5", ""}) EXPECT_NE(why({"--quota", bytes}), "") << bytes;
  for (const char* bytes : {"1", "100", "63K"}) {
    EXPECT_NE(why({"--warc", "w", "--warc-size", bytes}).find("at least 64K bytes"), std::string::npos) << bytes;
  }
  EXPECT_EQ(why({"a.org", "--warc", "w", "--warc-size", "64K"}), "");
  for (const char* option : {"--user-agent", "--accept-status", "--check-only", "--adaptive"}) {
    EXPECT_NE(why({option, ""}).find("it names nothing"), std::string::npos) << option;
  }
  EXPECT_NE(refusal({"a.org", "--check-links", "--accept-status", "200,,300"}).find("--accept-status: \"200,,300\""),
            std::string::npos);
  for (const char* sitemap : {"foo", "sitemap.xml", "/sitemap.xml", "maps/site.xml", "a.org/"}) {
    EXPECT_NE(refusal({"a.org", "--sitemap", sitemap}).find("write the whole URL"), std::string::npos) << sitemap;
  }
  EXPECT_TRUE(options_of({"a.org", "--sitemap", "a.org/map.xml"}));
  EXPECT_EQ(refusal({"a.org", "-w", "1"}), "--whitelist \"1\": a domain, or an address as in \"0.0.0.1\"");
  EXPECT_NE(refusal({"a.org", "--include", " /docs/**"}).find("a blank"), std::string::npos);
}

TEST(CrawlArguments, AssetsGoIntoAnArchiveThatAsksForThem) {
  EXPECT_EQ(taken({"a.org", "--warc", "w"}).requisites, Requisites::none);
  EXPECT_EQ(taken({"a.org", "--warc", "w", "--page-requisites", "all"}).requisites, Requisites::all);
  EXPECT_EQ(taken({"a.org", "--save", "s"}).requisites, Requisites::all);
  EXPECT_EQ(taken({"a.org", "--save", "s", "--save-assets", "same-host"}).requisites, Requisites::same_host);
  EXPECT_EQ(refusal({"a.org", "--page-requisites", "all"}), "--page-requisites: does nothing without --save or --warc");
}

TEST(CrawlArguments, ASitemapIsXml) {
  EXPECT_EQ(refusal({"a.org", "--sitemap-out", "x.txt"}),
            "--sitemap-out \"x.txt\": the name must end with .xml or .xml.gz");
  for (const char* name : {"x.xml", "x.xml.gz", "-"}) EXPECT_TRUE(options_of({"a.org", "--sitemap-out", name})) << name;
}

TEST(CrawlArguments, AFileWithoutAuthoritiesIsRefusedAtTheStart) {
  const TemporaryFolder folder;
  const std::string junk = folder.file("junk.pem");
  std::ofstream(junk) << "not a certificate\n";
  EXPECT_TRUE(why_not_parsed<CrawlArguments>({"a.org", "--ca-file", junk})
                  .starts_with("--ca-file: \"" + junk + "\": has no certificates in PEM ("));
  EXPECT_EQ(why_not_parsed<CrawlArguments>({"a.org", "--ca-file", "/nowhere.pem"}),
            "--ca-file: \"/nowhere.pem\": has no certificates in PEM (No such file or directory)");
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
  EXPECT_EQ(size_of("100000"), 100'000u);
  EXPECT_EQ(size_of("500K"), 500u * 1024);
  EXPECT_EQ(size_of("2GB"), 2048u * 1024 * 1024);
  for (const std::string bad : {"0", "-1", "many", "1 parsec"}) {
    EXPECT_EQ(why_not_parsed<CrawlArguments>({"http://a.org", "--warc", "site", "--warc-size", bad}),
              "--warc-size: \"" + bad + "\": at least 64K bytes, as in 1000000, 500M or 1G");
  }
  EXPECT_THROW(options_of({"http://a.org", "--warc-size", "1G"}), CLI::RequiresError);
}

}  // namespace
}  // namespace argiope

// The file that records go to: whole records, in spite of crashes, and each page once.
#include "argiope/crawl/extraction_sink.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr WallTime kNoon{std::chrono::seconds{1773316800}};  // 2026-03-12T12:00:00Z

ExtractionOptions options_to(const std::string& file, std::vector<std::string> fields = {"t=css:h1"}) {
  ExtractionOptions options{.output = file, .threads = 2, .sync = false};
  ExtractionRule& rule = options.rules.rules.emplace_back();
  for (const std::string& field : fields) rule.fields.push_back(parse_field(field).value());
  return options;
}
std::shared_ptr<ExtractionSink> sink_to(const ExtractionOptions& options) {
  auto sink = ExtractionSink::open(options);
  EXPECT_TRUE(sink) << sink.error().message;
  return sink ? std::move(*sink) : nullptr;
}
std::string refusal_of(const ExtractionOptions& options) {
  const auto sink = ExtractionSink::open(options);
  return sink ? "no refusal" : sink.error().message;
}
std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& file, std::string_view text) { std::ofstream(file, std::ios::binary) << text; }

struct ShownPage {
  std::string url = "http://h/a";
  std::string body = "<h1>A</h1>";
  int status = 200;
  std::string type = "text/html";
  WallTime began = kNoon;
  ExchangeKind kind = ExchangeKind::page;
  bool asked_again = false;
};
Result<void> show_page(ExtractionSink& sink, const ShownPage& page) {
  HttpRequest request;
  request.url = Url::parse(page.url).value();
  HttpResponse response;
  response.status = page.status;
  response.headers.content_type = page.type;
  response.body = page.body;
  Exchange exchange{page.kind, request, response, page.began};
  exchange.asked_again = page.asked_again;
  return sink.take(exchange);
}

TEST(ExtractionFile, HasARecordOfEachPageWhenItIsKept) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const auto sink = sink_to(options_to(file, {"t=css:h1", "n:number=css:b", "l[]=css:i", "o=jsonld:$.a"}));
  ASSERT_TRUE(show_page(*sink, {.body = "<h1>\"A\"</h1><b>1,5</b><i>x</i><i>y</i><script type=application/ld+json>{\"a\":{\"b\":1}}</script>"}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(contents(file),
            "{\"url\":\"http://h/a\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"t\":\"\\\"A\\\"\",\"n\":1.5,\"l\":[\"x\",\"y\"],\"o\":{\"b\":1}}\n");
  EXPECT_EQ(sink->backlog(), 0u);
}

TEST(ExtractionFile, AsCsvHasAHeaderAndQuotes) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.csv");
  {
    const auto sink = sink_to(options_to(file, {"t=css:h1", "a,b=css:b", "l[]=css:i"}));
    ASSERT_TRUE(show_page(*sink, {.url = "http://h/?a,b", .body = "<h1>a \"b\", c</h1><i>x</i>"}));
    ASSERT_TRUE(sink->keep());
  }
  EXPECT_EQ(contents(file), "url,fetched_at,t,\"a,b\",l\r\n\"http://h/?a,b\",2026-03-12T12:00:00.000Z,\"a \"\"b\"\", c\",,\"[\"\"x\"\"]\"\r\n");
}

TEST(ExtractionFile, NamesTheRuleWhereThereAreSeveral) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  auto options = options_to(file);
  options.rules.rules[0].name = "first";
  options.rules.rules[0].match = {"/a"};
  options.rules.rules.push_back({.fields = {parse_field("u=css:h1").value()}});
  const auto sink = sink_to(options);
  ASSERT_TRUE(show_page(*sink, {.url = "http://h/b"}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(contents(file), "{\"url\":\"http://h/b\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"2\",\"u\":\"A\"}\n");
}

TEST(ExtractionFile, HasRecordsOfPagesThatAreJsonWhereARuleReadsThem) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  auto options = options_to(file, {"n=json:/name"});
  options.rules.rules[0].match = {"/api"};
  options.rules.rules[0].each = "json:/items";
  options.rules.rules.push_back({.fields = {parse_field("n=css:h1").value()}});
  const auto sink = sink_to(options);
  const std::string json = R"({"items":[{"name":"A"},{"name":2}]})";
  ASSERT_TRUE(show_page(*sink, {.url = "http://h/api", .body = json, .type = "application/json"}));
  ASSERT_TRUE(sink->keep());
  ASSERT_TRUE(show_page(*sink, {.url = "http://h/other", .body = json, .type = "application/json"}));
  ASSERT_TRUE(show_page(*sink, {.url = "http://h/api", .body = "[", .type = "application/json"}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(contents(file), "{\"url\":\"http://h/api\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"1\",\"n\":\"A\"}\n"
                            "{\"url\":\"http://h/api\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"1\",\"n\":2}\n");
  EXPECT_EQ(sink->report().pages, 2u);
  EXPECT_EQ(sink->report().refused, 1u);
}

TEST(ExtractionFile, HasNothingOfOtherExchanges) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const auto sink = sink_to(options_to(file));
  for (const ShownPage& page : {ShownPage{.status = 404}, ShownPage{.type = "image/png"}, ShownPage{.kind = ExchangeKind::check},
                                ShownPage{.asked_again = true}, ShownPage{.body = "<h2>none</h2>"}}) {
    ASSERT_TRUE(show_page(*sink, page));
  }
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(contents(file), "");
  EXPECT_EQ(sink->report().pages, 1u);
  EXPECT_EQ(sink->report().empty, 1u);
}

TEST(ExtractionFile, OfManyPagesIsWholeWhateverTheOrder) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const auto sink = sink_to(options_to(file));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(show_page(*sink, {.url = "http://h/" + std::to_string(i)}));
    if (i % 50 == 0) {
      ASSERT_TRUE(sink->keep());
      std::ifstream in(file);
      EXPECT_EQ(std::count(std::istreambuf_iterator<char>(in), {}, '\n'), i + 1) << "what was taken is there";
    }
  }
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->report().records, 500u);
}

TEST(ExtractionFile, TellsWhatWasWrong) {
  const TemporaryFolder folder;
  const auto sink = sink_to(options_to(folder.file("a.jsonl"), {"t=css:h1", "n:number=css:b"}));
  std::string deep;
  for (int i = 0; i < 600; ++i) deep += "<div>";
  ASSERT_TRUE(show_page(*sink, {.body = "<h1>A</h1><b>free</b>"}));
  ASSERT_TRUE(show_page(*sink, {.url = "http://h/deep", .body = deep}));
  ASSERT_TRUE(sink->keep());
  const ExtractionReport report = sink->report();
  EXPECT_EQ(report.refused, 1u);
  EXPECT_EQ(report.refused_example, "elements are nested deeper than 512 (http://h/deep)");
  ASSERT_EQ(report.fields.size(), 2u);
  EXPECT_EQ(report.fields[0].values, 1u);
  EXPECT_EQ(report.fields[1].troubles, 1u);
  EXPECT_EQ(report.fields[1].example, "\"free\": there is no number in it (http://h/a)");
}

// --- after a crash -----------------------------------------------------------------------------------------------------

std::string line_of(std::string_view url, std::string_view time = "12:00:00.000") {
  return "{\"url\":\"" + std::string(url) + "\",\"fetched_at\":\"2026-03-12T" + std::string(time) + "Z\",\"t\":\"A\"}\n";
}

// A store that knows some pages: the time of a visit, or nullopt of those that wait.
std::unique_ptr<UrlStore> store_with(const std::vector<std::pair<std::string, std::optional<WallTime>>>& pages, WallTime made = kNoon - std::chrono::hours{2}) {
  auto store = open_url_store(":memory:").value();
  UrlBatch batch;
  std::int64_t id = 0;
  for (const auto& [url, visited] : pages) {
    batch.discovered.push_back({.url_id = ++id, .url = url, .ctime = made});
    if (!visited) continue;
    UrlOutcome outcome;
    outcome.url_id = id;
    outcome.mtime = *visited;
    outcome.status_code = 200;
    batch.outcomes.push_back(outcome);
  }
  store->submit(std::move(batch));
  return store;
}

// A run that goes on with a file, and whose store knows http://h/a.
void go_on_with(const std::string& file) {
  const auto sink = sink_to(options_to(file));
  const auto store = store_with({{"http://h/a", kNoon}});
  const auto fits = sink->go_on_from(*store);
  EXPECT_TRUE(fits) << fits.error().message;
}

TEST(ExtractionResumed, CutsOffATornRecord) {
  const TemporaryFolder folder;
  for (const std::string& torn : {std::string("{\"ur"), line_of("http://h/b").substr(0, 60), std::string("{\"url\":\"http://h/b")}) {
    const auto file = folder.file("torn.jsonl");
    write_file(file, line_of("http://h/a") + torn);
    go_on_with(file);
    EXPECT_EQ(contents(file), line_of("http://h/a"));
    write_file(file, torn);
    go_on_with(file);
    EXPECT_EQ(contents(file), "");
  }
}

TEST(ExtractionResumed, CutsOffATornRecordOfCsv) {
  const TemporaryFolder folder;
  const auto file = folder.file("torn.csv");
  const std::string header = "url,fetched_at,t\r\n";
  const std::string whole = header + "http://h/a,2026-03-12T12:00:00.000Z,\"one\ntwo \"\"x\"\"\"\r\n";
  for (const std::string torn : {"http://h/b,2026", "http://h/b,2026-03-12T12:00:00.000Z,\"one\r\n", "h"}) {
    write_file(file, whole + torn);
    go_on_with(file);
    EXPECT_EQ(contents(file), whole);
  }
  write_file(file, "url,fet");
  go_on_with(file);
  EXPECT_EQ(contents(file), header);
}

TEST(ExtractionResumed, LeavesOutPagesThatAreWrittenAndNotSettled) {
  const TemporaryFolder folder;
  for (const bool csv : {false, true}) {
    const auto file = folder.file(csv ? "go.csv" : "go.jsonl");
    std::string text = csv ? "url,fetched_at,t\r\n" : "";
    for (const char* const url : {"http://h/settled", "http://h/waiting", "http://h/older"}) {
      text += csv ? std::string(url) + ",2026-03-12T12:00:00.000Z,A\r\n" : line_of(url);
    }
    write_file(file, text);
    const auto sink = sink_to(options_to(file));
    const auto store = store_with({{"http://h/settled", kNoon + std::chrono::milliseconds{20}},
                                   {"http://h/waiting", std::nullopt},
                                   {"http://h/older", kNoon - std::chrono::hours{1}},
                                   {"http://h/new", std::nullopt}});
    ASSERT_TRUE(sink->go_on_from(*store));
    const WallTime later = kNoon + std::chrono::hours{1};
    for (const char* const url : {"http://h/settled", "http://h/waiting", "http://h/older", "http://h/new"}) {
      ASSERT_TRUE(show_page(*sink, {.url = url, .began = later}));
    }
    ASSERT_TRUE(sink->keep());
    EXPECT_EQ(sink->report().known, 2u);
    EXPECT_EQ(sink->report().records, 2u);
    const std::string now = contents(file).substr(text.size());
    EXPECT_THAT(now, HasSubstr("http://h/settled"));
    EXPECT_THAT(now, HasSubstr("http://h/new"));
    // A second visit in the same run is one that counts.
    ASSERT_TRUE(show_page(*sink, {.url = "http://h/waiting", .began = later}));
    ASSERT_TRUE(sink->keep());
    EXPECT_EQ(sink->report().records, 3u);
  }
}

TEST(ExtractionResumed, OfSeveralVisitsToAPageTheLastCounts) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  write_file(file, line_of("http://h/a", "11:30:00.000") + line_of("http://h/a", "12:00:00.000"));
  const auto sink = sink_to(options_to(file));
  const auto store = store_with({{"http://h/a", kNoon - std::chrono::minutes{29}}});
  ASSERT_TRUE(sink->go_on_from(*store));
  ASSERT_TRUE(show_page(*sink, {}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->report().known, 1u) << "the second visit was not settled";
}

TEST(ExtractionResumed, ReadsAnyLengthOfLinesFromTheEnd) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  std::string text;
  for (int i = 0; i < 300; ++i) {
    std::string line = line_of("http://h/" + std::to_string(i));
    line.insert(line.size() - 3, std::string(static_cast<std::size_t>(i % 7) * 9'000, 'x'));
    text += line;
  }
  text += line_of("http://h/long");
  text.insert(text.size() - 3, std::string(3 << 20, 'y'));
  write_file(file, text + "{\"url\":\"torn" + std::string(2 << 20, 'z'));
  const auto sink = sink_to(options_to(file));
  std::vector<std::pair<std::string, std::optional<WallTime>>> pages = {{"http://h/long", std::nullopt}};
  for (int i = 0; i < 300; ++i) pages.emplace_back("http://h/" + std::to_string(i), std::nullopt);
  const auto store = store_with(pages);
  ASSERT_TRUE(sink->go_on_from(*store));
  EXPECT_EQ(contents(file).size(), text.size());
  for (const auto& [url, visited] : pages) ASSERT_TRUE(show_page(*sink, {.url = url}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->report().known, 301u);
}

TEST(ExtractionResumed, RefusesFilesThatAreNotItsOwn) {
  const TemporaryFolder folder;
  const auto file = folder.file("notes.txt");
  write_file(file, "my notes\nno line break at the end");
  EXPECT_THAT(refusal_of(options_to(file)), HasSubstr("notes.txt is there, and no crawl has written it"));
  EXPECT_EQ(contents(file), "my notes\nno line break at the end") << "nothing is cut off";
  write_file(file, "{\"url\":\"http://h/\"}\n");
  EXPECT_THAT(refusal_of(options_to(file)), HasSubstr("is no record of a crawl"));
  const auto csv = folder.file("a.csv");
  write_file(csv, "url,fetched_at,other\r\n");
  EXPECT_THAT(refusal_of(options_to(csv)), HasSubstr("a.csv is there, and has other columns"));
}

TEST(ExtractionResumed, LeavesARefusedFileAsItIs) {
  const TemporaryFolder folder;
  const auto file = folder.file("mine.jsonl"), csv = folder.file("mine.csv");
  const std::string of_crawl = line_of("http://h/a");
  for (const std::string& mine :
       {std::string(R"({"url":"https://api.example/","token":"my only copy"})"), std::string(R"({"url":"https://api.example/","tok)"),
        std::string(R"({"url":"x","fetched_at":"yesterday","h":1})"), of_crawl + "# a note of mine",
        of_crawl + R"({"url":"https://api.example/","token":"my only copy"})"}) {
    write_file(file, mine);
    EXPECT_THAT(refusal_of(options_to(file)), HasSubstr("is no record of a crawl")) << mine;
    EXPECT_EQ(contents(file), mine);
  }
  const std::string noted = "url,fetched_at,t\r\nhttp://h/a,2026-03-12T12:00:00.000Z,A\r\nmy note";
  write_file(csv, noted);
  EXPECT_THAT(refusal_of(options_to(csv)), HasSubstr("is no record of a crawl"));
  EXPECT_EQ(contents(csv), noted);
}

TEST(ExtractionResumed, KeepsALastRecordThatHasLostItsLineBreakAlone) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const std::string whole = line_of("http://h/a");
  write_file(file, whole.substr(0, whole.size() - 1));  // as some editors save it
  go_on_with(file);
  EXPECT_EQ(contents(file), whole);
}

TEST(ExtractionResumed, RefusesAFileThatIsOlderThanTheDatabase) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const std::string torn = line_of("http://h/a") + R"({"url":"http://h/b)";
  write_file(file, torn);
  const auto sink = sink_to(options_to(file));
  const auto store = store_with({{"http://h/a", std::nullopt}}, kNoon + std::chrono::hours{1});
  const auto fits = sink->go_on_from(*store);
  ASSERT_FALSE(fits);
  EXPECT_THAT(fits.error().message, HasSubstr("of an earlier crawl than the database"));
  EXPECT_EQ(contents(file), torn) << "nothing is cut off";
}

TEST(ExtractionFile, ThatIsDeletedOrReplacedEndsTheCrawlBeforeItsPagesAreDone) {
  const TemporaryFolder folder;
  for (const bool is_replaced : {false, true}) {
    const auto file = folder.file(is_replaced ? "replaced.jsonl" : "deleted.jsonl");
    const auto sink = sink_to(options_to(file));
    ASSERT_TRUE(show_page(*sink, {}));
    ASSERT_TRUE(sink->keep());
    std::filesystem::rename(file, file + ".1");
    if (is_replaced) write_file(file, "");
    ASSERT_TRUE(show_page(*sink, {.url = "http://h/b"}));
    const auto kept = sink->keep();
    ASSERT_FALSE(kept);
    EXPECT_THAT(kept.error().message, HasSubstr(is_replaced ? "it was replaced by another file" : "it was deleted while it was in use"));
    EXPECT_FALSE(sink->finish());
  }
}

TEST(ExtractionFile, OfADescriptorIsWrittenThroughIt) {
  const TemporaryFolder folder;
  const auto file = folder.file("out");
  const int given = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_GE(given, 0);
  (void)!::write(given, "before\n", 7);
  const auto sink = sink_to(options_to("/dev/fd/" + std::to_string(given)));
  ::close(given);
  ASSERT_TRUE(show_page(*sink, {}));
  ASSERT_TRUE(sink->keep());
  EXPECT_THAT(contents(file), testing::StartsWith("before\n{\"url\":\"http://h/a\""));
}

TEST(ExtractionFile, ThatAnotherCrawlWritesIsBusy) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const auto sink = sink_to(options_to(file));
  EXPECT_THAT(refusal_of(options_to(file)), HasSubstr("another crawl is writing it"));
}

TEST(ExtractionFile, ThatCannotBeWrittenEndsTheCrawl) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const auto sink = sink_to(options_to("/dev/full"));
  ASSERT_TRUE(show_page(*sink, {}));
  const auto kept = sink->keep();
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, Errc::disk_full);
  EXPECT_FALSE(show_page(*sink, {})) << "and nothing more is taken";
  EXPECT_THAT(refusal_of(options_to("/nowhere/at/all")), HasSubstr("No such file"));
}

}  // namespace
}  // namespace argiope

// The file that records go to: whole records, in spite of crashes, and each page once.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "argiope/crawl/sinks.hpp"
#include "argiope/document/document.hpp"
#include "crawl/page/internal/page_view.hpp"
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
  ASSERT_TRUE(show_page(
      *sink,
      {.body = "<h1>\"A\"</h1><b>1,5</b><i>x</i><i>y</i><script type=application/ld+json>{\"a\":{\"b\":1}}</script>"}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(contents(file),
            "{\"url\":\"http://h/"
            "a\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"t\":\"\\\"A\\\"\",\"n\":1.5,\"l\":[\"x\",\"y\"],\"o\":{"
            "\"b\":1}}\n");
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
  EXPECT_EQ(contents(file),
            "url,fetched_at,t,\"a,b\",l\r\n\"http://h/?a,b\",2026-03-12T12:00:00.000Z,\"a \"\"b\"\", "
            "c\",,\"[\"\"x\"\"]\"\r\n");
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
  EXPECT_EQ(contents(file),
            "{\"url\":\"http://h/b\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"2\",\"u\":\"A\"}\n");
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
  EXPECT_EQ(contents(file),
            "{\"url\":\"http://h/api\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"1\",\"n\":\"A\"}\n"
            "{\"url\":\"http://h/api\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"rule\":\"1\",\"n\":2}\n");
  EXPECT_EQ(sink->report().pages, 2u);
  EXPECT_EQ(sink->report().refused, 1u);
}

// A page of a visit, which sinks keep.
std::shared_ptr<FetchedPage> fetched_page(std::string body, std::string type = "text/html") {
  auto page = std::make_shared<FetchedPage>();
  page->response.status = 200;
  page->response.headers.content_type = std::move(type);
  page->response.body = std::move(body);
  page->begin(*Url::parse("http://h/a"));
  return page;
}
Result<void> show_fetched(ExtractionSink& sink, FetchedPage& page) {
  HttpRequest request;
  request.url = page.url;
  return sink.take(
      {.kind = ExchangeKind::page, .request = request, .response = page.response, .began = kNoon, .fetched = &page});
}

TEST(ExtractionFile, TranscodesNoPageOfWhichItReadsNoText) {
  const TemporaryFolder folder;
  auto options = options_to(folder.file("a.jsonl"), {"n=json:/name"});
  options.rules.rules[0].fields.push_back(parse_field("t=css:h1").value());
  const auto sink = sink_to(options);
  const auto json = fetched_page("{\"name\":\"caf\xC3\xA9\"}", "application/json; charset=iso-8859-1");
  const auto large =
      fetched_page(std::string(DocumentLimits{}.most_bytes + 1, '\xE9'), "text/html; charset=iso-8859-1");
  const auto page = fetched_page("<h1>caf\xE9</h1>", "text/html; charset=iso-8859-1");
  for (const auto& each : {json, large, page}) ASSERT_TRUE(show_fetched(*sink, *each));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->report().refused, 1u);
  EXPECT_EQ(json->view.made().texts, 0u);
  EXPECT_EQ(large->view.made().texts, 0u);
  EXPECT_EQ(page->view.made().texts, 1u);
  EXPECT_THAT(contents(folder.file("a.jsonl")), HasSubstr("\"n\":\"caf\xC3\xA9\""));
  EXPECT_THAT(contents(folder.file("a.jsonl")), HasSubstr("\"t\":\"caf\xC3\xA9\""));
}

TEST(ExtractionFile, LetsAPageThatItHasReadGo) {
  const TemporaryFolder folder;
  const auto sink = sink_to(options_to(folder.file("a.jsonl")));
  const auto page = fetched_page("<h1>caf\xE9</h1>", "text/html; charset=iso-8859-1");
  ASSERT_TRUE(show_fetched(*sink, *page));
  EXPECT_TRUE(page->is_shared());
  page->view.end();
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(page.use_count(), 1);
  EXPECT_EQ(page->view.text(), "<h1>caf\xC3\xA9</h1>");
  EXPECT_EQ(page->view.made().texts, 2u) << "nothing was left of the text that was read";
}

TEST(ExtractionFile, HasItsRecordsWhereOthersReadTheSamePagesOnTheirThreads) {
  const TemporaryFolder folder;
  std::vector<std::shared_ptr<ExtractionSink>> sinks;
  for (const char* const name : {"a.jsonl", "b.jsonl", "c.jsonl"}) {
    sinks.push_back(sink_to(options_to(folder.file(name), {"all[]=css:p:nth-child(2n)", "last=xpath://p[last()]"})));
  }
  std::string body;
  for (int i = 0; i < 20; ++i) body += fmt::format("<p>caf\xE9 {}</p>", i);
  for (int i = 0; i < 20; ++i) {
    const auto page = fetched_page(body, "text/html; charset=iso-8859-1");
    for (const auto& sink : sinks) ASSERT_TRUE(show_fetched(*sink, *page));
    EXPECT_TRUE(page->view.scan().links.empty());
    page->view.end();
  }
  for (const auto& sink : sinks) ASSERT_TRUE(sink->keep());
  const std::string first = contents(folder.file("a.jsonl"));
  EXPECT_EQ(std::ranges::count(first, '\n'), 20);
  EXPECT_THAT(first, HasSubstr("\"last\":\"caf\xC3\xA9 19\""));
  EXPECT_EQ(contents(folder.file("b.jsonl")), first);
  EXPECT_EQ(contents(folder.file("c.jsonl")), first);
}

TEST(ExtractionFile, HasNothingOfOtherExchanges) {
  const TemporaryFolder folder;
  const auto file = folder.file("a.jsonl");
  const auto sink = sink_to(options_to(file));
  for (const ShownPage& page :
       {ShownPage{.status = 404}, ShownPage{.type = "image/png"}, ShownPage{.kind = ExchangeKind::check},
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

// --- after a crash --------------------------------------------------------------------------------------------------

std::string line_of(std::string_view url, std::string_view time = "12:00:00.000") {
  return "{\"url\":\"" + std::string(url) + "\",\"fetched_at\":\"2026-03-12T" + std::string(time) +
         "Z\",\"t\":\"A\"}\n";
}

// A store that knows some pages: the time of a visit, or nullopt of those that wait.
std::unique_ptr<UrlStore> store_with(const std::vector<std::pair<std::string, std::optional<WallTime>>>& pages,
                                     WallTime made = kNoon - std::chrono::hours{2}) {
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
  for (const std::string& torn :
       {std::string("{\"ur"), line_of("http://h/b").substr(0, 60), std::string("{\"url\":\"http://h/b")}) {
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
    for (const char* const url : {"http://h/waiting", "http://h/older", "http://h/settled"}) {
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
  write_file(file,
             line_of("http://h/a", "11:30:00.000") + line_of("http://h/a", "12:00:00.000") + line_of("http://h/b"));
  const auto sink = sink_to(options_to(file));
  const auto store = store_with({{"http://h/a", kNoon - std::chrono::minutes{29}}, {"http://h/b", kNoon}});
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
  const std::string before = text;
  text += line_of("http://h/last");
  write_file(file, text + "{\"url\":\"torn" + std::string(2 << 20, 'z'));
  const auto sink = sink_to(options_to(file));
  std::vector<std::pair<std::string, std::optional<WallTime>>> pages = {{"http://h/long", std::nullopt},
                                                                        {"http://h/last", std::nullopt}};
  for (int i = 0; i < 300; ++i) pages.emplace_back("http://h/" + std::to_string(i), std::nullopt);
  const auto store = store_with(pages);
  ASSERT_TRUE(sink->go_on_from(*store));
  EXPECT_EQ(contents(file).size(), before.size()) << "more may have been of the last page";
  for (const auto& [url, visited] : pages) ASSERT_TRUE(show_page(*sink, {.url = url}));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->report().known, 301u);
}

// --- with what the database knows of the file -----------------------------------------------------------------------

// A run of a crawl on a file, which may die at any time.
class ExtractionRun {
 public:
  ExtractionRun(UrlStore& store, const std::string& file) : store_(store), sink_(sink_to(options(file))) {
    const auto fits = sink_->go_on_from(store);
    EXPECT_TRUE(fits) << fits.error().message;
  }
  static ExtractionOptions options(const std::string& file) {
    ExtractionOptions options = options_to(file, {"t=css:b"});
    options.rules.rules[0].each = "css:i";
    return options;
  }

  // Three records.
  void show(const std::string& url, WallTime at = kNoon) {
    ASSERT_TRUE(
        show_page(*sink_, {.url = url, .body = "<i><b>1</b></i><i><b>2, 2</b></i><i><b>3\n3</b></i>", .began = at}));
    ASSERT_TRUE(sink_->keep());
  }
  // As a commit does it.
  void commit(std::vector<UrlOutcome> outcomes) {
    UrlBatch batch;
    batch.outcomes = std::move(outcomes);
    if (auto note = sink_->note()) batch.notes.push_back(std::move(*note));
    store_.submit(std::move(batch));
  }
  void finish() {
    ASSERT_TRUE(sink_->finish());
    commit({});
  }
  std::uint64_t known() const { return sink_->report().known; }

 private:
  UrlStore& store_;
  const std::shared_ptr<ExtractionSink> sink_;
};
UrlOutcome outcome_of(std::int64_t id, UrlState state, WallTime at) {
  UrlOutcome outcome;
  outcome.url_id = id;
  outcome.state = state;
  outcome.mtime = at;
  return outcome;
}

class ExtractionAfterACrash : public testing::TestWithParam<std::string> {
 protected:
  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("records" + GetParam());
  const std::unique_ptr<UrlStore> store_ = store_with({{"http://h/1", std::nullopt}, {"http://h/2", std::nullopt}});
};
INSTANTIATE_TEST_SUITE_P(Formats, ExtractionAfterACrash, testing::Values(".jsonl", ".csv"),
                         [](const auto& format) { return format.param.substr(1); });

TEST_P(ExtractionAfterACrash, HasAPageWholeOfWhichAnyPartWasWritten) {
  { ExtractionRun(*store_, file_).show("http://h/1"); }
  const std::string first = contents(file_);
  {
    ExtractionRun run(*store_, file_);
    EXPECT_EQ(contents(file_).size(), GetParam() == ".csv" ? std::string_view("url,fetched_at,t\r\n").size() : 0u);
    run.show("http://h/1");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
    run.show("http://h/2");
  }
  const std::string both = contents(file_);
  ASSERT_TRUE(both.starts_with(first));
  for (std::size_t size = first.size(); size <= both.size(); ++size) {
    write_file(file_, both.substr(0, size));
    ExtractionRun run(*store_, file_);
    ASSERT_EQ(contents(file_), first) << size;
    run.show("http://h/2");
    ASSERT_EQ(contents(file_), both) << size;
    ASSERT_EQ(run.known(), 0u);
  }
}

TEST_P(ExtractionAfterACrash, WritesNoPageTwiceThatWaitsAgain) {
  const WallTime later = kNoon + std::chrono::minutes{1};
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.show("http://h/2");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
  }
  const std::string both = contents(file_);
  for (const UrlState state : {UrlState::queued, UrlState::failed}) {
    // A 503 of the next run, which dies as well.
    ExtractionRun(*store_, file_).commit({outcome_of(2, state, later)});
    ExtractionRun run(*store_, file_);
    run.show("http://h/2", later + std::chrono::minutes{1});
    EXPECT_EQ(run.known(), 1u);
    EXPECT_EQ(contents(file_), both);
  }
}

TEST_P(ExtractionAfterACrash, HasALaterVisitToAPageThatWasDone) {
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
    run.finish();
  }
  const WallTime later = kNoon + std::chrono::minutes{1};
  ExtractionRun(*store_, file_).commit({outcome_of(1, UrlState::queued, later)});
  ExtractionRun run(*store_, file_);
  run.show("http://h/1", later + std::chrono::minutes{1});
  EXPECT_EQ(run.known(), 0u);
  EXPECT_THAT(contents(file_), HasSubstr("2026-03-12T12:02:00.000Z"));
}

TEST_P(ExtractionAfterACrash, CutsOffWhatAPowerCutHasLeftBehindTheLastCommit) {
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
    run.show("http://h/2");
  }
  const std::string both = contents(file_);
  const std::string first = both.substr(0, both.size() / 2 + (GetParam() == ".csv" ? 9 : 0));
  ASSERT_THAT(first, testing::EndsWith("\n"));
  // Anywhere, also within the first bytes of a line, and to the end.
  for (std::size_t from = first.size(); from < both.size(); ++from) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{30}, std::size_t{90}, both.size() - from}) {
      std::string holed = both;
      for (std::size_t i = from; i < std::min(holed.size(), from + size); ++i) holed[i] = '\0';
      write_file(file_, holed);
      ExtractionRun run(*store_, file_);
      ASSERT_EQ(contents(file_), first) << from << ", " << size;
    }
  }
  ExtractionRun run(*store_, file_);
  run.show("http://h/2");
  EXPECT_EQ(contents(file_), both);
}

TEST_P(ExtractionAfterACrash, BeginsAnewWhereAPowerCutHasLeftNothingButHoles) {
  { ExtractionRun(*store_, file_).show("http://h/1"); }
  const std::string written = contents(file_);
  const std::string header = GetParam() == ".csv" ? "url,fetched_at,t\r\n" : "";
  for (std::size_t from = header.size(); from < written.size(); ++from) {
    const std::string holed = written.substr(0, from) + std::string(written.size() - from, '\0');
    write_file(file_, holed);
    ExtractionRun run(*store_, file_);
    ASSERT_EQ(contents(file_), header) << from;
  }
  // Another's file of zeros has no mark.
  const std::string zeros(100, '\0');
  const auto other = folder_.file("zeros" + GetParam());
  write_file(other, zeros);
  const auto sink = sink_to(options_to(other));
  (void)show_page(*sink, {});
  const auto kept = sink->keep();
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr("is there, and"));
  EXPECT_EQ(contents(other), zeros);
}

TEST_P(ExtractionAfterACrash, LeavesWhatOthersHaveWrittenBehindARunThatEnded) {
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
    run.finish();
  }
  const std::string first = contents(file_);
  {
    const auto other = store_with({{"http://other/", std::nullopt}});
    ExtractionRun run(*other, file_);
    EXPECT_EQ(contents(file_), first);
    run.show("http://other/");
    run.finish();
  }
  const std::string both = contents(file_);
  ExtractionRun run(*store_, file_);
  EXPECT_EQ(contents(file_), both);
}

TEST_P(ExtractionAfterACrash, LeavesPagesThatAreDoneBehindAnOldMark) {
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.commit({});
    run.show("http://h/2");
    // By a version that sets no mark.
    UrlBatch batch;
    batch.outcomes = {outcome_of(1, UrlState::done, kNoon), outcome_of(2, UrlState::done, kNoon)};
    store_->submit(std::move(batch));
  }
  const std::string both = contents(file_);
  ExtractionRun run(*store_, file_);
  EXPECT_EQ(contents(file_), both);
}

TEST_P(ExtractionAfterACrash, KnowsItsMarkInACopyAndNotInAnotherFile) {
  {
    ExtractionRun run(*store_, file_);
    run.show("http://h/1");
    run.commit({outcome_of(1, UrlState::done, kNoon)});
    run.show("http://h/2");
  }
  const std::string both = contents(file_), copy = folder_.file("copy" + GetParam());
  write_file(copy, both);
  { ExtractionRun run(*store_, copy); }
  EXPECT_LT(contents(copy).size(), both.size());
  // Of the same length, and not the same: the last page of it alone is in doubt.
  std::string other = both;
  for (std::size_t at = other.find("http://h/1"); at != std::string::npos; at = other.find("http://h/1"))
    other[at + 9] = '3';
  write_file(copy, other);
  std::filesystem::remove(file_);
  { ExtractionRun run(*store_, copy); }
  EXPECT_EQ(contents(copy), other.substr(0, other.find(GetParam() == ".csv" ? "http://h/2" : "{\"url\":\"http://h/2")));
}

TEST_P(ExtractionAfterACrash, WithoutAMarkDoubtsTheLastPageAlone) {
  const std::string csv = "url,fetched_at,t\r\n";
  const auto record = [&](const std::string& url, int number) {
    const std::string text = std::to_string(number);
    return GetParam() == ".csv"
               ? url + ",2026-03-12T12:00:00.000Z," + text + "\r\n"
               : "{\"url\":\"" + url + "\",\"fetched_at\":\"2026-03-12T12:00:00.000Z\",\"t\":\"" + text + "\"}\n";
  };
  const std::string first = (GetParam() == ".csv" ? csv : "") + record("http://h/1", 1) + record("http://h/1", 2);
  for (const std::string& torn : {std::string(), record("http://h/2", 3).substr(0, 40), record("http://h/2", 3)}) {
    write_file(file_, first + record("http://h/2", 1) + record("http://h/2", 2) + torn);
    const auto store = store_with({{"http://h/1", std::nullopt}, {"http://h/2", std::nullopt}});
    ExtractionRun run(*store, file_);
    EXPECT_EQ(contents(file_), first);
    run.show("http://h/1");
    EXPECT_EQ(run.known(), 1u);
  }
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
       {std::string(R"({"url":"https://api.example/","token":"my only copy"})"),
        std::string(R"({"url":"https://api.example/","tok)"),
        std::string(R"({"url":"x","fetched_at":"yesterday","h":1})"), of_crawl + "# a note of mine",
        of_crawl + R"({"url":"https://api.example/","token":"my only copy"})"}) {
    write_file(file, mine);
    EXPECT_THAT(refusal_of(options_to(file)), HasSubstr("is no record of a crawl")) << mine;
    EXPECT_EQ(contents(file), mine);
  }
  for (const std::string behind :
       {"my note", "http://h/b,2026-03-12,my note", "mine,but,not\r\n", "http://h/b,soon,A\r\n"}) {
    const std::string noted = "url,fetched_at,t\r\nhttp://h/a,2026-03-12T12:00:00.000Z,A\r\n" + behind;
    write_file(csv, noted);
    EXPECT_THAT(refusal_of(options_to(csv)), HasSubstr("is no record of a crawl"));
    EXPECT_EQ(contents(csv), noted);
  }
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
    EXPECT_THAT(kept.error().message,
                HasSubstr(is_replaced ? "it was replaced by another file" : "it was deleted while it was in use"));
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

// What sinks get of the feed: each event at least once and in order, whatever goes wrong between.
#include "project/results/internal/result_sinks.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "argiope/calls/calls.hpp"
#include "argiope/engine/book.hpp"
#include "base/internal/json_members.hpp"
#include "project/feed_store.hpp"
#include "project/results/result_sink.hpp"
#include "project/results/sink_file_place.hpp"
#include "support/loop_fixture.hpp"
#include "support/scripted_transport.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Kind = ProjectSink::Kind;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_text(const std::string& path, const std::string& text, std::ios::openmode mode = std::ios::trunc) {
  std::ofstream(path, std::ios::binary | mode) << text;
}

// The numbers of events in lines of JSON.
std::vector<std::int64_t> numbers_in(const std::string& lines) {
  std::vector<std::int64_t> numbers;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto text = JsonText::parse(line);
    JsonErrors errors;
    numbers.push_back(text ? JsonMembers(text->root(errors)).whole("number", 1'000'000'000) : -1);
  }
  return numbers;
}
std::vector<std::int64_t> from_to(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> numbers;
  for (; first <= last; ++first) numbers.push_back(first);
  return numbers;
}

class FakeJobs final : public JobPutter {
 public:
  std::vector<std::vector<SinkJob>> puts;
  std::vector<Error> refusals;  // of the next puts, last first
  int puts_that_throw = 0;
  Coro<Result<void>> put(std::vector<SinkJob> jobs) override {
    if (puts_that_throw > 0) {
      --puts_that_throw;
      throw std::runtime_error("there is no memory");
    }
    puts.push_back(std::move(jobs));
    if (refusals.empty()) co_return Result<void>{};
    const Error error = refusals.back();
    refusals.pop_back();
    co_return std::unexpected(error);
  }
};

class ResultSinksTest : public OnVirtualLoop {
 protected:
  ResultSinksTest() {
    definition.name = "shop";
    ProjectRule item;
    item.extraction = {.name = "item",
                       .fields = {{.name = "title", .sources = {"css:h1"}}, {.name = "price", .sources = {"css:p"}}}};
    definition.rules = {item};
    means.transport = &transport;
    means.jobs = &jobs;
    means.folder = std::filesystem::path(folder.file("x")).parent_path().string();
    means.log = [this](const std::string& sink, const std::string& text) { log.push_back(sink + ": " + text); };
    means.variable = [this](const std::string& name) -> std::optional<std::string> {
      if (!variables.contains(name)) return std::nullopt;
      return variables[name];
    };
  }

  ProjectSink& add_sink(Kind kind, std::string target, std::string name = "it") {
    return definition.sinks.emplace_back(
        ProjectSink{.kind = kind, .name = std::move(name), .target = std::move(target)});
  }
  // Has sinks begin, does `body`, and stops them.
  template <class Body>
  void with_sinks(Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      sinks.emplace(
          loop_, store, [this](SinkRow row) { store.submit({.sinks = {std::move(row)}}); }, 1, definition, means);
      EXPECT_TRUE(sinks->start());
      co_await body();
      co_await sinks->stop();
      sinks.reset();
    }));
  }
  Coro<void> until_all() {
    sinks->wake();
    do {
      co_await sleep(1ms);
    } while (!sinks->has_all());
  }
  // Until every sink has all of the feed.
  void deliver_all() {
    with_sinks([&] { return until_all(); });
  }
  const SinkRow& row() { return store.rows.at("it"); }
  std::string trouble() { return sinks->rows().at(0).trouble; }

  TemporaryFolder folder;
  FeedStore store;
  ScriptedTransport transport;
  FakeJobs jobs;
  ProjectDefinition definition;
  SinkMeans means;
  std::vector<std::string> log;
  std::map<std::string, std::string> variables;
  std::optional<ResultSinks> sinks;
};

// --- how events are written

TEST(SinkEventsTest, AreObjectsOfJson) {
  FeedRow row = FeedStore::event(7, "{\"a\":\n1}");
  std::string line;
  append_event_json(line, "shop", row);
  EXPECT_EQ(line,
            "{\"number\":7,\"project\":\"shop\",\"page\":\"http://shop.test/"
            "7\",\"part\":\"\",\"rule\":\"item\",\"news\":\"added\","
            "\"at\":\"2026-11-23T00:00:00.007Z\",\"value\":{\"a\": 1}}");
  row.page_name = "seven";
  row.url = "http://shop.test/7";
  row.part = "a\nb";
  row.news = ResultNews::gone;
  row.value.clear();
  line.clear();
  append_event_json(line, "shop", row);
  EXPECT_EQ(line,
            "{\"number\":7,\"project\":\"shop\",\"page\":\"http://shop.test/"
            "7\",\"name\":\"seven\",\"part\":\"a\\u000ab\",\"rule\":\"item\","
            "\"news\":\"gone\",\"at\":\"2026-11-23T00:00:00.007Z\",\"value\":null}");
}

TEST(SinkEventsTest, AreRecordsOfCsv) {
  EXPECT_EQ(event_csv_header({"title", "a,b"}), "number,project,page,part,rule,news,at,title,\"a,b\"\r\n");
  EXPECT_EQ(event_csv_header({}), "number,project,page,part,rule,news,at,value\r\n");
  std::string line;
  append_event_csv(line, "shop", {"title", "none", "list"},
                   FeedStore::event(7, R"({"list":[1,"b"],"title":"say \"hi\"","none":null,"x":1})"));
  EXPECT_EQ(line,
            "7,shop,http://shop.test/7,,item,added,2026-11-23T00:00:00.007Z,\"say \"\"hi\"\"\",,\"[1,\"\"b\"\"]\"\r\n");
  line.clear();
  append_event_csv(line, "shop", {}, FeedStore::event(7, "[1,2]"));
  EXPECT_THAT(line, HasSubstr(",\"[1,2]\"\r\n"));
  line.clear();
  append_event_csv(line, "shop", {"title"}, FeedStore::event(7, "no JSON"));
  EXPECT_THAT(line, testing::EndsWith("Z,\r\n"));
  line.clear();
  append_event_csv(line, "shop", {"title", "price"},
                   FeedStore::event(7, R"json({"title":"=HYPERLINK(\"http://a.test\")","price":-5})json"));
  EXPECT_THAT(line, testing::EndsWith(",\"'=HYPERLINK(\"\"http://a.test\"\")\",-5\r\n"))
      << "no page writes formulas into a spreadsheet";
}

TEST(SinkFilePlaceTest, IsReadAsItWasWritten) {
  const SinkFilePlace place{.file = "/a \"b\"",
                            .identity = "12-3.4",
                            .length = 1ULL << 40,
                            .tail = (1ULL << 63) - 1,
                            .rotated = 3,
                            .columns = 9,
                            .begun = WallTime{std::chrono::milliseconds{1'764'000'000'123}}};
  EXPECT_EQ(SinkFilePlace::parse(place.stored()), place);
  for (const char* wrong : {"", "x", "[]", "{\"length\":-1}", "{\"file\":1}", "{\"begun_ms\":9999999999999999}"}) {
    EXPECT_FALSE(SinkFilePlace::parse(wrong)) << wrong;
  }
}

// --- what all have in common

TEST_F(ResultSinksTest, GiveAllInOrderAndGoOnBehindTheCursor) {
  add_sink(Kind::webhook, "http://hook.test/a");
  store.add(1, 5);
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_EQ(numbers_in(transport.asked[0].body), from_to(1, 5));
  EXPECT_EQ(row().cursor, 5);
  store.add(9, 10);
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 2u);
  EXPECT_THAT(numbers_in(transport.asked[1].body), ElementsAre(9, 10));
  EXPECT_EQ(row().cursor, 10);
  deliver_all();
  EXPECT_EQ(transport.asked.size(), 2u);
}

TEST_F(ResultSinksTest, GetNewsWhenTheyAreTold) {
  add_sink(Kind::webhook, "http://hook.test/a");
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1h);
    EXPECT_THAT(transport.asked, IsEmpty());
    store.add(1, 1);
    sinks->wake();
    co_await sleep(1ms);
    EXPECT_EQ(transport.asked.size(), 1u);
  });
}

TEST_F(ResultSinksTest, AreBoundedInRowsAndBytes) {
  add_sink(Kind::webhook, "http://hook.test/a");
  store.add(1, 2'500);
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 3u);
  EXPECT_EQ(numbers_in(transport.asked[1].body), from_to(1'001, 2'000));
  EXPECT_LE(store.most_read, 100u);
  transport.asked.clear();
  const std::string large = "\"" + std::string(1'500'000, 'x') + "\"";
  store.add(2'501, 2'505, large);
  store.add(2'506, 2'506, "\"" + std::string(6'000'000, 'x') + "\"");
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 4u);
  EXPECT_EQ(numbers_in(transport.asked[0].body), from_to(2'501, 2'502));
  EXPECT_THAT(numbers_in(transport.asked[3].body), ElementsAre(2'506));
}

TEST_F(ResultSinksTest, GiveOnlyWhatTheRulesSay) {
  add_sink(Kind::webhook, "http://hook.test/a").rules = {"list"};
  for (int i = 1; i <= 3'000; ++i) store.feed.push_back(FeedStore::event(i, "1", i % 1'400 == 0 ? "list" : "item"));
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 2u);
  EXPECT_THAT(numbers_in(transport.asked[0].body), ElementsAre(1'400));
  EXPECT_THAT(numbers_in(transport.asked[1].body), ElementsAre(2'800));
  EXPECT_EQ(row().cursor, 3'000);
}

TEST_F(ResultSinksTest, TryAgainAtGrowingIntervalsAndSayWhy) {
  add_sink(Kind::webhook, "http://hook.test/a");
  store.add(1, 4);
  int left = 11;
  transport.answer = [&](const HttpRequest&, HttpResponse& response) {
    if (left-- <= 0) return;
    response.status = 500;
    response.body = "no\nroom";
  };
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_EQ(trouble(), "POST http://hook.test: status 500: no\\nroom");
    EXPECT_EQ(row().trouble, trouble());
    EXPECT_EQ(row().cursor, 0);
    while (!sinks->has_all()) co_await sleep(1s);
  });
  std::vector<std::int64_t> waits;
  for (std::size_t i = 1; i < 12; ++i) {
    waits.push_back(
        std::chrono::duration_cast<std::chrono::seconds>(transport.asked_at[i] - transport.asked_at[i - 1]).count());
  }
  EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
  // Fewer each time, and more again.
  EXPECT_EQ(numbers_in(transport.asked[1].body), from_to(1, 2));
  EXPECT_THAT(numbers_in(transport.asked[11].body), ElementsAre(1));
  EXPECT_THAT(numbers_in(transport.asked[12].body), ElementsAre(2, 3));
  EXPECT_EQ(row().trouble, "");
  EXPECT_EQ(row().cursor, 4);
  // The trouble was stored once, the cursor thrice.
  EXPECT_LE(store.submitted.size(), 5u);
}

TEST_F(ResultSinksTest, DoNotWaitForEachOther) {
  add_sink(Kind::webhook, "http://down.test/", "down");
  add_sink(Kind::webhook, "http://up.test/", "up");
  transport.answer = [](const HttpRequest& request, HttpResponse& response) {
    response.status = request.url.href() == "http://down.test/" ? 500 : 200;
  };
  store.add(1, 3);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_EQ(store.rows.at("up").cursor, 3);
    store.add(4, 4);
    sinks->wake();
    co_await sleep(1ms);
    EXPECT_EQ(store.rows.at("up").cursor, 4);
    EXPECT_EQ(store.rows.at("down").cursor, 0);
    EXPECT_FALSE(sinks->has_all());
  });
}

TEST_F(ResultSinksTest, DeliverNothingWhenTheStoreHasFailed) {
  add_sink(Kind::webhook, "http://hook.test/");
  store.add(1, 3);
  store.failed = Error{Errc::disk_full, "pages.db: no room"};
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1min);
    EXPECT_THAT(transport.asked, IsEmpty());
    EXPECT_EQ(trouble(), "pages.db: no room");
    store.failed.reset();
    store.read_failure = Error{Errc::io, "cannot be read"};
    co_await sleep(10min);
    EXPECT_EQ(trouble(), "cannot be read");
    store.read_failure.reset();
    co_await sleep(10min);
    EXPECT_EQ(row().cursor, 3);
    EXPECT_EQ(row().trouble, "");
  });
}

// Answers never.
class SilentTransport final : public HttpTransport {
 public:
  Coro<Result<void>> send(const HttpRequest&, HttpResponse&) override {
    co_await sleep(24h);
    co_return Result<void>{};
  }
};

TEST_F(ResultSinksTest, StopInTimeWhateverIsUnderWay) {
  SilentTransport silent;
  means.transport = &silent;
  add_sink(Kind::webhook, "http://silent.test/", "silent");
  add_sink(Kind::queue, "mail", "refused");
  add_sink(Kind::file, "a.jsonl", "file");
  for (int i = 0; i < 100; ++i) jobs.refusals.push_back({Errc::refused, "full"});
  store.add(1, 3);
  TimePoint before;
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1min);
    before = loop_.time();
    co_await sinks->stop(3s);
    EXPECT_EQ(loop_.time() - before, 3s);
    co_await sinks->stop(3s);
    EXPECT_EQ(loop_.time() - before, 3s);
    sinks->wake();
  });
  EXPECT_FALSE(store.rows.contains("silent"));
  EXPECT_EQ(store.rows.at("file").cursor, 3);
}

TEST_F(ResultSinksTest, MayBeStoppedBeforeTheyBegin) {
  add_sink(Kind::queue, "mail");
  store.add(1, 1);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    ResultSinks unused(
        loop_, store, [](SinkRow) {}, 1, definition, means);
    co_await unused.stop();
    EXPECT_TRUE(unused.start());
    co_await sleep(1s);
    EXPECT_THAT(jobs.puts, IsEmpty());
    ResultSinks broken(
        loop_, store, [](SinkRow) {}, 1, definition, means);
    store.read_failure = Error{Errc::io, "cannot be read"};
    EXPECT_FALSE(broken.start());
  }));
}

TEST_F(ResultSinksTest, MayBeDestroyedWhileTheyDeliver) {
  SilentTransport silent;
  means.transport = &silent;
  add_sink(Kind::webhook, "http://silent.test/");
  store.add(1, 1);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    {
      ResultSinks dropped(
          loop_, store, [](SinkRow) {}, 1, definition, means);
      EXPECT_TRUE(dropped.start());
      co_await sleep(1s);
    }
    co_await sleep(1s);
  }));
  EXPECT_EQ(loop_.task_count(), 0u);
}

// --- webhooks

TEST_F(ResultSinksTest, PostSignedLinesWithTheirNumbers) {
  ProjectSink& sink = add_sink(Kind::webhook, "http://me:pass@hook.test/a");
  sink.secret_variable = "HOOK";
  sink.time_limit = 7s;
  variables["HOOK"] = "geheim\n";
  store.add(3, 5);
  deliver_all();
  const HttpRequest& request = transport.asked.at(0);
  EXPECT_EQ(request.method, HttpMethod::post);
  EXPECT_EQ(request.url.href(), "http://hook.test/a");
  EXPECT_EQ(request.timeout, 7s);
  EXPECT_EQ(transport.field("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(transport.field("Argiope-Project"), "shop");
  EXPECT_EQ(transport.field("Argiope-Sink"), "it");
  EXPECT_EQ(transport.field("Argiope-First-Number"), "3");
  EXPECT_EQ(transport.field("Argiope-Last-Number"), "5");
  EXPECT_THAT(transport.field("Authorization"), StartsWith("Basic "));
  EXPECT_EQ(transport.field("Argiope-Signature"),
            sign_push("geheim", WallTime{std::chrono::seconds{1767225600}}, 5, request.body));
}

TEST_F(ResultSinksTest, WaitAsLongAsAServerAsks) {
  add_sink(Kind::webhook, "http://hook.test/a");
  store.add(1, 9);
  int count = 0;
  transport.answer = [&](const HttpRequest&, HttpResponse& response) {
    if (count++ > 1) return;
    response.status = count == 1 ? 503 : 429;
    response.headers.retry_after = "90";
  };
  deliver_all();
  ASSERT_EQ(transport.asked.size(), 3u);
  EXPECT_EQ(transport.asked_at[2] - transport.asked_at[1], 90s);
  EXPECT_EQ(numbers_in(transport.asked[2].body), from_to(1, 9));
}

TEST_F(ResultSinksTest, SendNothingUnsignedForWantOfASecret) {
  add_sink(Kind::webhook, "http://hook.test/a").secret_file = "secret";
  store.add(1, 1);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_THAT(trouble(), HasSubstr("secret: cannot be read: No such file"));
    write_text(folder.file("secret"), "\n");
    co_await sleep(1min);
    EXPECT_EQ(trouble(), "secret: the secret is empty");
    EXPECT_THAT(transport.asked, IsEmpty());
    write_text(folder.file("secret"), "k\n");
    co_await sleep(10min);
    EXPECT_EQ(transport.asked.size(), 1u);
    EXPECT_NE(transport.field("Argiope-Signature"), "");
  });
  definition.sinks[0].secret_file.clear();
  definition.sinks[0].secret_variable = "HOOK";
  store.add(2, 2);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_EQ(trouble(), "variable HOOK of the environment, which has the secret, is not set");
  });
  means.transport = nullptr;
  definition.sinks[0].secret_variable.clear();
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_EQ(trouble(), "nothing is sent over the network here");
  });
}

// --- queues

TEST_F(ResultSinksTest, PutAJobForEachEventUnderTheSameNameAgain) {
  add_sink(Kind::queue, "mail");
  store.add(1, 2, "{\"a\":1}");
  jobs.refusals = {{Errc::refused, "queue \"mail\" is full"}};
  deliver_all();
  ASSERT_EQ(jobs.puts.size(), 3u);  // both, the first, the second
  ASSERT_EQ(jobs.puts[0].size(), 2u);
  EXPECT_EQ(jobs.puts[0][0].queue, "mail");
  EXPECT_THAT(jobs.puts[0][0].name, StartsWith("shop/it/1@"));
  EXPECT_EQ(jobs.puts[1][0].name, jobs.puts[0][0].name);
  EXPECT_NE(jobs.puts[0][1].name, jobs.puts[0][0].name);
  EXPECT_THAT(jobs.puts[0][0].payload, testing::EndsWith("\"value\":{\"a\":1}}"));
}

TEST_F(ResultSinksTest, TellWhatIsThrownAndTryAgain) {
  add_sink(Kind::queue, "mail");
  store.add(1, 2);
  jobs.puts_that_throw = 2;
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1ms);
    EXPECT_EQ(trouble(), "there is no memory");
    while (!sinks->has_all()) co_await sleep(1s);
  });
  EXPECT_EQ(row().cursor, 2);
  EXPECT_EQ(row().trouble, "");
}

TEST(ShownSinkName, HasSchemeAndHostOfAWebhookAlone) {
  EXPECT_EQ(shown_sink_name("webhook https://hooks.test:8443/services/secret?key=secret"),
            "webhook https://hooks.test:8443");
  EXPECT_EQ(shown_sink_name("webhook of mine"), "webhook of mine");
  EXPECT_EQ(shown_sink_name("file a.jsonl"), "file a.jsonl");
}

TEST_F(ResultSinksTest, PutJobsIntoABook) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    const auto jobs_store = open_store("memory:");
    auto book = value_or_throw(co_await Book::open(*jobs_store.value()));
    BookJobPutter putter(book, [] { return std::uint64_t{0xabc}; });
    EXPECT_TRUE(co_await putter.put({{"mail", "a", "1"}, {"mail", "b", "2"}}));
    EXPECT_TRUE(co_await putter.put({{"mail", "b", "2"}, {"mail", "c", "3"}}));
    std::vector<std::string> payloads;
    for (const JobRecord& job : value_or_throw(co_await book.list({.queue = "mail"}))) payloads.push_back(job.payload);
    EXPECT_THAT(payloads, testing::UnorderedElementsAre("1", "2", "3"));
    EXPECT_FALSE(co_await putter.put({{"mail", std::string(600, 'x'), "1"}}));
  }));
}

TEST_F(ResultSinksTest, PutAJobUnderAnotherNameWhereAJobOfAnotherQueueHasIts) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    const auto jobs_store = open_store("memory:");
    auto book = value_or_throw(co_await Book::open(*jobs_store.value()));
    EXPECT_TRUE(co_await book.put({.name = "b", .queue = "others", .payload = "theirs"}));
    BookJobPutter putter(book, [] { return std::uint64_t{0xabc}; });
    EXPECT_TRUE(co_await putter.put({{"mail", "a", "1"}, {"mail", "b", "2"}, {"mail", "c", "3"}}));
    std::vector<std::string> names, payloads;
    for (const JobRecord& job : value_or_throw(co_await book.list({.queue = "mail"}))) {
      names.push_back(job.name);
      payloads.push_back(job.payload);
    }
    EXPECT_THAT(payloads, ElementsAre("1", "2", "3"));
    EXPECT_THAT(names, ElementsAre("a", "b~0000000000000abc", "c"));
    const auto theirs = value_or_throw(co_await book.list({.queue = "others"}));
    EXPECT_EQ(theirs.size(), 1u);

    // Those of its own queue are there when they come again.
    EXPECT_TRUE(co_await putter.put({{"mail", "a", "1"}, {"mail", "c", "3"}}));
    EXPECT_EQ(value_or_throw(co_await book.list({.queue = "mail"})).size(), 3u);
  }));
}

// --- files

TEST_F(ResultSinksTest, AppendLinesToAFile) {
  add_sink(Kind::file, "a.jsonl");
  store.add(1, 3);
  deliver_all();
  store.add(4, 5);
  deliver_all();
  EXPECT_EQ(numbers_in(text_of(folder.file("a.jsonl"))), from_to(1, 5));
  EXPECT_EQ(row().cursor, 5);
  const auto place = SinkFilePlace::parse(row().place);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->length, std::filesystem::file_size(folder.file("a.jsonl")));
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(ResultSinksTest, CommitAFilesPlaceBeforeItsFirstByte) {
  add_sink(Kind::file, "a.jsonl");
  write_text(folder.file("a.jsonl"), "mine");
  store.add(1, 1);
  deliver_all();
  EXPECT_THAT(text_of(folder.file("a.jsonl")), StartsWith("mine\n{\"number\":1,"));
  ASSERT_EQ(store.submitted.size(), 2u);
  EXPECT_EQ(store.submitted[0].cursor, 0);
  EXPECT_EQ(SinkFilePlace::parse(store.submitted[0].place)->length, 4u);
}

TEST_F(ResultSinksTest, CutOffWhatACrashHasLeftBehindTheCursor) {
  add_sink(Kind::file, "a.jsonl");
  store.add(1, 3);
  deliver_all();
  const SinkRow stored = row();
  store.add(4, 6);
  deliver_all();
  write_text(folder.file("a.jsonl"), "{\"numb", std::ios::app);  // a line that was cut short
  store.rows["it"] = stored;                                     // the cursor was not committed
  deliver_all();
  EXPECT_EQ(numbers_in(text_of(folder.file("a.jsonl"))), from_to(1, 6));
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(ResultSinksTest, GoOnBehindAFileThatIsAnotherNowAndSaySo) {
  add_sink(Kind::file, "a.jsonl");
  const std::string path = folder.file("a.jsonl");
  store.add(1, 3);
  deliver_all();
  const std::string before = text_of(path);
  // Replaced, as an editor does.
  write_text(folder.file("b"), "other\n");
  std::filesystem::rename(folder.file("b"), path);
  store.add(4, 4);
  deliver_all();
  EXPECT_THAT(text_of(path), StartsWith("other\n{\"number\":4,"));
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("was replaced by another"));
  // Made shorter.
  std::filesystem::resize_file(path, 3);
  store.add(5, 5);
  deliver_all();
  EXPECT_THAT(text_of(path), StartsWith("oth\n{\"number\":5,"));
  ASSERT_EQ(log.size(), 2u);
  // Written over.
  write_text(path, std::string(500, 'x') + "\n");
  store.add(6, 6);
  deliver_all();
  EXPECT_THAT(text_of(path), HasSubstr("xxx\n{\"number\":6,"));
  ASSERT_EQ(log.size(), 3u);
  EXPECT_THAT(log[2], HasSubstr("was changed by another"));
  // Removed.
  std::filesystem::remove(path);
  store.add(7, 7);
  deliver_all();
  EXPECT_THAT(numbers_in(text_of(path)), ElementsAre(7));
  EXPECT_THAT(log[3], HasSubstr("is gone"));
  EXPECT_EQ(row().trouble, "");
}

TEST_F(ResultSinksTest, NoticeThatTheirFileIsTakenAwayWhileTheyWrite) {
  add_sink(Kind::file, "a.jsonl");
  const std::string path = folder.file("a.jsonl");
  with_sinks([&]() -> Coro<void> {
    store.add(1, 1);
    co_await until_all();
    std::filesystem::rename(path, folder.file("old"));  // as logrotate does
    store.add(2, 2);
    co_await until_all();
    EXPECT_THAT(numbers_in(text_of(path)), ElementsAre(2));
    write_text(path, "a line of another\n", std::ios::app);
    store.add(3, 3);
    co_await until_all();
    EXPECT_THAT(text_of(path), HasSubstr("a line of another\n{\"number\":3,"));
    std::filesystem::remove(path);
    store.add(4, 4);
    co_await until_all();
    EXPECT_THAT(numbers_in(text_of(path)), ElementsAre(4));
  });
  EXPECT_EQ(log.size(), 3u);
  EXPECT_THAT(numbers_in(text_of(folder.file("old"))), ElementsAre(1));
}

TEST_F(ResultSinksTest, WaitForAFileThatAnotherWrites) {
  add_sink(Kind::file, "a.jsonl");
  const int other = ::open(folder.file("a.jsonl").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  store.add(1, 1);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(1min);
    EXPECT_THAT(trouble(), HasSubstr("another process or sink is writing it"));
    ::close(other);
    co_await sleep(10min);
    EXPECT_EQ(trouble(), "");
  });
  EXPECT_THAT(numbers_in(text_of(folder.file("a.jsonl"))), ElementsAre(1));
}

TEST_F(ResultSinksTest, SayWhyAFileCannotBeWritten) {
  add_sink(Kind::file, "none/a.jsonl", "a");
  add_sink(Kind::file, ".", "b");
  add_sink(Kind::file, "pipe", "c");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0666), 0);
  store.add(1, 1);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(10s);
    const auto rows = sinks->rows();
    EXPECT_THAT(rows[0].trouble, HasSubstr("none/a.jsonl: cannot be opened: No such file or directory"));
    EXPECT_THAT(rows[1].trouble, HasSubstr("cannot be opened: Is a directory"));
    EXPECT_THAT(rows[2].trouble, HasSubstr("pipe: it is no regular file"));
  });
}

TEST_F(ResultSinksTest, BeginAFileAnewWhenItIsLargeOrOld) {
  ProjectSink& sink = add_sink(Kind::file, "a.jsonl");
  sink.rotate_bytes = 1'000;
  write_text(folder.file("a.2.jsonl"), "mine\n");
  for (int i = 0; i < 20; ++i) {
    store.add(i * 5 + 1, i * 5 + 5);
    deliver_all();
  }
  std::string all;
  std::size_t files = 0;
  for (int number = 1; std::filesystem::exists(folder.file("a." + std::to_string(number) + ".jsonl")); ++number) {
    const std::string text = text_of(folder.file("a." + std::to_string(number) + ".jsonl"));
    if (number == 2) {
      EXPECT_EQ(text, "mine\n");
      continue;
    }
    EXPECT_LE(text.size(), 1'000u);
    EXPECT_GE(text.size(), 500u);
    all += text;
    ++files;
  }
  EXPECT_GE(files, 10u);
  EXPECT_EQ(numbers_in(all + text_of(folder.file("a.jsonl"))), from_to(1, 100));
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(ResultSinksTest, BeginAFileAnewWhereALinkLeads) {
  std::filesystem::create_directory(folder.file("far"));
  std::filesystem::create_symlink("far/b.jsonl", folder.file("a.jsonl"));
  add_sink(Kind::file, "a.jsonl").rotate_bytes = 1'000;
  for (int i = 0; i < 4; ++i) {
    store.add(i * 5 + 1, i * 5 + 5);
    deliver_all();
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("a.jsonl")));
  EXPECT_THAT(numbers_in(text_of(folder.file("far/b.1.jsonl"))), testing::Not(IsEmpty()));
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.1.jsonl")));
}

TEST_F(ResultSinksTest, BeginAFileAnewEachDay) {
  add_sink(Kind::file, "a").rotate_span = 24h;
  with_sinks([&]() -> Coro<void> {
    store.add(1, 1);
    co_await until_all();
    co_await sleep(23h);
    store.add(2, 2);
    co_await until_all();
    co_await sleep(1h);
    store.add(3, 3);
    co_await until_all();
    co_await sleep(72h);
    store.add(4, 4);
    co_await until_all();
  });
  EXPECT_THAT(numbers_in(text_of(folder.file("a.1"))), ElementsAre(1, 2));
  EXPECT_THAT(numbers_in(text_of(folder.file("a.2"))), ElementsAre(3));
  EXPECT_THAT(numbers_in(text_of(folder.file("a"))), ElementsAre(4));
}

TEST_F(ResultSinksTest, FinishARotationThatACrashHasCutShort) {
  ProjectSink& sink = add_sink(Kind::file, "a.jsonl");
  store.add(1, 4);
  deliver_all();
  // Renamed, and not further.
  std::filesystem::rename(folder.file("a.jsonl"), folder.file("a.1.jsonl"));
  store.add(5, 5);
  sink.rotate_bytes = 1'000;
  deliver_all();
  EXPECT_EQ(numbers_in(text_of(folder.file("a.1.jsonl"))), from_to(1, 4));
  EXPECT_THAT(numbers_in(text_of(folder.file("a.jsonl"))), ElementsAre(5));
  EXPECT_EQ(SinkFilePlace::parse(row().place)->rotated, 1u);
  EXPECT_THAT(log, IsEmpty());
}

TEST_F(ResultSinksTest, CommitWhatAFileHasBeforeItIsRotated) {
  add_sink(Kind::file, "a.jsonl").rotate_bytes = 1'000;
  store.add(1, 6);
  deliver_all();
  store.submitted.clear();
  store.add(7, 9);
  deliver_all();
  ASSERT_EQ(store.submitted.size(), 3u);
  EXPECT_EQ(store.submitted[0].cursor, 6);
  EXPECT_EQ(SinkFilePlace::parse(store.submitted[0].place)->rotated, 0u);
  EXPECT_EQ(store.submitted[1].cursor, 6);
  EXPECT_EQ(SinkFilePlace::parse(store.submitted[1].place)->rotated, 1u);
  EXPECT_EQ(SinkFilePlace::parse(store.submitted[1].place)->length, 0u);
  EXPECT_EQ(store.submitted[2].cursor, 9);
}

TEST_F(ResultSinksTest, WriteCsvWithOneHeaderAndAnotherFileForOtherColumns) {
  add_sink(Kind::file, "a.csv").format = ProjectSink::Format::csv;
  store.add(1, 2, R"({"title":"Lamp","price":"3"})");
  deliver_all();
  store.add(3, 3);
  deliver_all();
  const std::string text = text_of(folder.file("a.csv"));
  EXPECT_THAT(
      text, StartsWith("number,project,page,part,rule,news,at,title,price\r\n1,shop,http://shop.test/1,,item,added,"));
  EXPECT_THAT(text, HasSubstr(",Lamp,3\r\n2,"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
  definition.rules[0].extraction.fields.pop_back();
  store.add(4, 4);
  deliver_all();
  EXPECT_EQ(text_of(folder.file("a.1.csv")), text);
  EXPECT_THAT(text_of(folder.file("a.csv")), StartsWith("number,project,page,part,rule,news,at,title\r\n4,"));
}

// --- commands: with processes there is real time

class CommandSinksTest : public testing::Test {
 protected:
  // Until the sink has all, or is in trouble.
  SinkRow run(std::vector<std::string> command, std::optional<Duration> limit = {}) {
    ProjectDefinition definition{.name = "shop"};
    definition.sinks = {{.kind = Kind::command, .name = "it", .command = std::move(command), .time_limit = limit}};
    SinkRow row;
    store.rows.clear();
    world.run(loop, keeping([&]() -> Coro<void> {
                ResultSinks sinks(
                    loop, store, [this](SinkRow changed) { store.submit({.sinks = {std::move(changed)}}); }, 1,
                    definition, {.folder = std::filesystem::path(folder.file("x")).parent_path().string()});
                EXPECT_TRUE(sinks.start());
                do {
                  co_await sleep(1ms);
                  row = sinks.rows()[0];
                } while (!sinks.has_all() && row.trouble.empty());
                co_await sinks.stop();
              }));
    return row;
  }

  TemporaryFolder folder;
  FeedStore store;
  RealTime world;
  EventLoop loop{world.backend};
};

TEST_F(CommandSinksTest, GetTheLinesOnStandardInput) {
  store.add(1, 2'500);
  const SinkRow row = run({"sh", "-c",
                           "cat >> out; echo $ARGIOPE_PROJECT $ARGIOPE_SINK $ARGIOPE_FIRST_NUMBER $ARGIOPE_LAST_NUMBER "
                           ">> calls; echo noise"});
  EXPECT_EQ(row.trouble, "");
  EXPECT_EQ(row.cursor, 2'500);
  EXPECT_EQ(numbers_in(text_of(folder.file("out"))), from_to(1, 2'500));
  EXPECT_EQ(text_of(folder.file("calls")), "shop it 1 1000\nshop it 1001 2000\nshop it 2001 2500\n");
}

TEST_F(CommandSinksTest, FailByTheirStatusTimeAndErrors) {
  store.add(1, 3);
  EXPECT_EQ(run({"sh", "-c", "echo first >&2; echo no table >&2; exit 3"}).trouble,
            "sh: exit status 3: first\\nno table");
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).trouble, "sh: ended by signal 9");
  // On a busy machine the time may be over before anything was said: then with more of it.
  std::string trouble;
  for (const auto& [limit, word] :
       std::map<Duration, std::string>{{100ms, "100ms"}, {1s, "1s"}, {10s, "10s"}, {1min, "1m"}}) {
    trouble = run({"sh", "-c", "echo slow >&2; exec sleep 600"}, limit).trouble;
    EXPECT_THAT(trouble, StartsWith("sh: out of time after " + word));
    if (trouble.ends_with(": slow")) break;
  }
  EXPECT_THAT(trouble, testing::EndsWith(": slow"));
  EXPECT_THAT(run({"./none"}).trouble, HasSubstr("none"));
  EXPECT_THAT(run({"sh", "-c", "head -c 3000000 /dev/zero >&2"}).trouble, HasSubstr("writes more than 1048576 bytes"));
  EXPECT_EQ(store.rows.at("it").cursor, 0);
  EXPECT_NE(store.rows.at("it").trouble, "");
  EXPECT_EQ(run({"true"}).cursor, 3);
}

TEST_F(CommandSinksTest, AreStoppedWithTheSinks) {
  store.add(1, 1);
  ProjectDefinition definition{.name = "shop"};
  definition.sinks = {{.kind = Kind::command, .name = "it", .command = {"sleep", "600"}}};
  const auto before = std::chrono::steady_clock::now();
  world.run(loop, keeping([&]() -> Coro<void> {
              ResultSinks sinks(loop, store, [](SinkRow) {}, 1, definition, {});
              EXPECT_TRUE(sinks.start());
              co_await sleep(50ms);
              co_await sinks.stop(10ms);
            }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5min);
}

}  // namespace
}  // namespace argiope

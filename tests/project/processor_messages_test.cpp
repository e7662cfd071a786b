// The words of the processor protocol, as docs/processors.md has them.
#include "project/process/internal/processor_messages.hpp"

#include <gmock/gmock.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

Result<ScriptMessage> script_says(std::string_view line,
                                  const OpenVisit& visit = OpenVisit("https://shop.example/en/")) {
  return read_script_message(line, [&](std::uint64_t id) { return id == 7 ? &visit : nullptr; });
}
template <class Message>
Message message_of(std::string_view line) {
  auto message = script_says(line);
  EXPECT_TRUE(message) << line << ": " << message.error().message;
  if (!message || !std::holds_alternative<Message>(*message)) {
    ADD_FAILURE() << "another message: " << line;
    return {};
  }
  return std::get<Message>(*std::move(message));
}
std::string script_error(std::string_view line) {
  const auto message = script_says(line);
  return message ? "" : message.error().message;
}
// The answer of these lines.
VisitAnswer answer_of(std::initializer_list<std::string> lines,
                      OpenVisit visit = OpenVisit("https://shop.example/en/")) {
  for (const std::string& line : lines) {
    auto message = script_says(line, visit);
    if (!message) {
      ADD_FAILURE() << message.error().message;
      return {};
    }
    EXPECT_TRUE(visit.add(std::get<AnswerPart>(*std::move(message))));
  }
  return visit.take_answer();
}
VisitAnswer done_with(std::string_view members) {
  return answer_of({R"({"type":"done","id":7,)" + std::string(members) + "}"});
}
std::vector<std::string> texts_of(const std::vector<PageLog>& logs) {
  std::vector<std::string> texts;
  for (const PageLog& log : logs) texts.push_back(log.text);
  return texts;
}
// What is said of the only page, which is left out.
std::string page_trouble(std::string_view page) {
  const VisitAnswer answer = done_with(R"("pages":[)" + std::string(page) + "]");
  EXPECT_THAT(answer.pages, IsEmpty()) << page;
  EXPECT_FALSE(answer.failure) << page;
  EXPECT_THAT(answer.logs, SizeIs(1)) << page;
  return answer.logs.empty() ? "" : answer.logs.front().text;
}
AskedPage page_of(std::string_view page) {
  VisitAnswer answer = done_with(R"("pages":[)" + std::string(page) + "]");
  EXPECT_THAT(texts_of(answer.logs), IsEmpty());
  return answer.pages.empty() ? AskedPage{} : answer.pages.front();
}
ProcessorDescription description_of(std::string_view members) {
  return message_of<DescribedMessage>(R"({"type":"described","protocol":1,)" + std::string(members) + "}").description;
}
std::string description_error(std::string_view members) {
  return script_error(R"({"type":"described","protocol":1,)" + std::string(members) + "}");
}

PageCall example_call() {
  PageCall call;
  call.rule = "index_page";
  call.project = "shop";
  call.name = call.url = "https://shop.example/";
  call.context_json = R"({"n":1})";
  call.response.url = "https://shop.example/en/";
  call.response.status = 200;
  call.response.headers = {{"Content-Type", "text/html"}};
  call.response.cookies = {{"lang", "en"}};
  call.response.encoding = "utf-8";
  call.response.took = 12ms;
  call.response.body = std::string(40960, 'x');
  call.fields_json = R"({"title":"Shop"})";
  return call;
}

// --- what Argiope writes

TEST(ProcessorMessages, DescribeAsTheProtocolSays) {
  EXPECT_EQ(write_describe("shop", "0.1.0", {}),
            R"({"type":"describe","protocol":1,"project":"shop","argiope":"0.1.0","debug":false,"try":false,)"
            R"("limits":{"line_bytes":16777216,"answer_bytes":67108864,"log_bytes":65536,"time_ms":30000}})"
            "\n");
  EXPECT_THAT(write_describe("shop", "0.1.0", {.is_debug = true}), testing::HasSubstr(R"("debug":true,"try":false)"));
  EXPECT_THAT(write_describe("shop", "0.1.0", {.is_try = true}), testing::HasSubstr(R"("debug":true,"try":true)"));
}

TEST(ProcessorMessages, SendAPageAsTheProtocolSays) {
  EXPECT_EQ(
      write_page(example_call(), 7),
      R"({"type":"page","id":7,"body":40960,"event":"fetch","rule":"index_page","project":"shop","time_limit_ms":30000,)"
      R"("page":{"name":"https://shop.example/","url":"https://shop.example/","rule":"index_page","context":{"n":1},"attempt":1},)"
      R"("response":{"url":"https://shop.example/en/","status":200,"headers":[["Content-Type","text/html"]],"cookies":{"lang":"en"},)"
      R"("encoding":"utf-8","time_ms":12},"save":null,"fields":{"title":"Shop"}})"
      "\n");
}

TEST(ProcessorMessages, SendWhatThePageIsBeside) {
  PageCall call = example_call();
  call.event = PageEvent::tick;
  call.name = "";
  call.save_json = "[1]";
  call.fields_json = "";
  call.last_at = WallTime{std::chrono::sys_days{std::chrono::year{2026} / 1 / 31} + 12h};
  call.settings.priority = {.is_said = true, .value = 2};
  call.settings.age = {.is_said = true, .value = {}};
  call.settings.request.headers = {{"A", {.is_said = true, .value = "b"}}, {"C", {.is_said = true, .value = {}}}};
  call.response.encoding = "";
  call.response.script_result_json = "5";
  call.response.headers = {{"X", "a\xff"}, {"X", "b\"\n"}};
  call.response.cookies = {{"a", "1"}, {"a", "2"}};
  const std::string line = write_page(call, 1);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_THAT(line, HasSubstr(R"("event":"tick")"));
  EXPECT_THAT(line, HasSubstr(R"("page":{"name":"https://shop.example/",)"));
  EXPECT_THAT(line, HasSubstr(R"("last_at":"2026-01-31T12:00:00Z","priority":2,"request":{"headers":{"A":"b"}}})"));
  EXPECT_THAT(line, HasSubstr(R"("headers":[["X","a)"
                              "\xef\xbf\xbd"
                              R"("],["X","b\"\u000a"]],"cookies":{"a":"2"},"encoding":null)"));
  EXPECT_THAT(line, HasSubstr(R"("script_result":5},"save":[1]})"));
}

TEST(ProcessorMessages, SayWhyAnAnswerIsNoSuccess) {
  PageCall call = example_call();
  call.response.status = 404;
  EXPECT_THAT(write_page(call, 1), HasSubstr(R"("error":{"kind":"status","text":"HTTP 404: Not Found"})"));
  call.response.status = 304;
  EXPECT_THAT(write_page(call, 1), HasSubstr(R"("kind":"status")"));
  call.response.status = 0;
  call.response.error_kind = "dns";
  call.response.error_text = "no such host";
  EXPECT_THAT(write_page(call, 1), HasSubstr(R"("error":{"kind":"dns","text":"no such host"})"));
  call = example_call();
  call.response.status = 301;
  EXPECT_EQ(write_page(call, 1).find("\"error\""), std::string::npos);
}

TEST(ProcessorMessages, AnswerQueries) {
  EXPECT_EQ(write_selected(7, 1, std::string(R"([{"node":4}])")),
            R"({"type":"selected","id":7,"query":1,"matches":[{"node":4}]})"
            "\n");
  EXPECT_EQ(write_selected(7, 1, fail(Errc::too_large, "a \"b\"")),
            R"({"type":"selected","id":7,"query":1,"error":{"kind":"too_large","text":"a \"b\""}})"
            "\n");
  EXPECT_THAT(write_selected(7, 1, fail(Errc::unsupported, "x")), HasSubstr(R"("kind":"invalid_input")"));
}

TEST(ProcessorMessages, NameEvents) {
  EXPECT_EQ(to_string(PageEvent::fetch), "fetch");
  EXPECT_EQ(to_string(PageEvent::finished), "finished");
}

// --- lines that are no messages

TEST(ScriptMessages, AreObjectsOfAKnownTypeInOneLineOfUtf8) {
  for (const std::string line :
       {"", "x", "[]", "1", "{}", R"({"type":"x","id":7})", R"({"type":1,"id":7})", R"({"type":"done"})",
        R"({"type":"done","id":"7"})", R"({"type":"done","id":8})", R"({"type":"done","id":-1})",
        R"({"type":"more","id":null})", R"({"type":"select","id":7})", R"({"type":"done","id":7} {})",
        R"({"type":"log","id":[]})", "{\"type\":\"log\",\"text\":\"\xff\"}", R"({"type":"log","text":"\ud800"})"}) {
    const auto message = script_says(line);
    ASSERT_FALSE(message) << line;
    EXPECT_EQ(message.error().code, Errc::protocol) << line;
    EXPECT_THAT(message.error().message, StartsWith("a line that is no message: ")) << line;
  }
  EXPECT_EQ(script_error(R"({"type":"done","id":8})"),
            R"(a line that is no message: no page with id 8 is under way: "{"type":"done","id":8}")");
}

TEST(ScriptMessages, AreNotNestedDeeperThanSixtyFour) {
  const auto nested = [](int levels) {
    return R"({"type":"done","id":7,"results":[{"value":)" + std::string(levels, '[') + std::string(levels, ']') +
           "}]}";
  };
  EXPECT_EQ(script_error(nested(61)), "");
  EXPECT_THAT(script_error(nested(62)), HasSubstr("nested deeper than 64 levels"));
}

TEST(ScriptMessages, HaveSoManyBytes) {
  const ProcessorLimits limits{.line_bytes = 100};
  const std::string line = R"({"type":"log","text":")" + std::string(100, 'x') + "\"}";
  const auto message = read_script_message(
      line, [](std::uint64_t) { return nullptr; }, limits);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, Errc::too_large);
  EXPECT_LT(message.error().message.size(), 400u);
  const auto described =
      script_says(R"({"type":"described","protocol":1,"x":")" + std::string(1024 * 1024, 'x') + "\"}");
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().code, Errc::too_large);
}

TEST(ScriptMessages, TellOfALineInFewWords) { EXPECT_LT(script_error("x" + std::string(100'000, 'y')).size(), 800u); }

TEST(ScriptMessages, AreNoneInEmptyLines) {
  EXPECT_TRUE(is_empty_line(" \t\r"));
  EXPECT_TRUE(is_empty_line(""));
  EXPECT_FALSE(is_empty_line("{}"));
}

// --- described

TEST(ScriptMessages, DescribeAScript) {
  const ProcessorDescription script = description_of(
      R"("concurrency":4,"on":{"start":"on_start","message":"on_message","finished":"on_finished","else":5},
         "ticks":[{"rule":"on_start","every_ms":86400000}],
         "rules":{"index_page":{"age_ms":864000000},"detail_page":{"priority":2,"errors":true,"fields":{"title":"css:h1"}}},
         "defaults":{"request":{"headers":{"User-Agent":"shop"}}},"unknown":{})");
  EXPECT_EQ(script.protocol, 1u);
  EXPECT_EQ(script.concurrency, 4u);
  EXPECT_EQ(script.on_start, "on_start");
  EXPECT_EQ(script.on_message, "on_message");
  EXPECT_EQ(script.on_finished, "on_finished");
  const ProcessorDescription::Tick tick{.rule = "on_start", .every = 24h};
  EXPECT_THAT(script.ticks, ElementsAre(tick));
  ASSERT_THAT(script.rules, SizeIs(2));
  EXPECT_EQ(script.rules.at("index_page").settings.age.value, Duration{240h});
  EXPECT_FALSE(script.rules.at("index_page").errors);
  EXPECT_TRUE(script.rules.at("detail_page").errors);
  EXPECT_EQ(script.rules.at("detail_page").fields_json, R"({"title":"css:h1"})");
  EXPECT_EQ(stored(script.defaults), R"({"request":{"headers":{"User-Agent":"shop"}}})");
}

TEST(ScriptMessages, DescribeTheLeastScript) {
  const ProcessorDescription script = description_of(R"("on":{"start":"start"})");
  EXPECT_EQ(script.concurrency, 1u);
  EXPECT_EQ(script.on_start, "start");
  EXPECT_EQ(script.on_finished, "");
  EXPECT_THAT(script.ticks, IsEmpty());
  for (const auto& [failed, wait] :
       std::map<std::uint32_t, Duration>{{0, 30s}, {1, 1h}, {2, 6h}, {3, 12h}, {4, 24h}, {99, 24h}}) {
    EXPECT_EQ(retry_delay_of(script, failed), wait) << failed;
  }
}

// As python3 -m argiope.processor and the JavaScript helper write it.
TEST(ScriptMessages, DescribeTheScriptsOfTheHelpers) {
  const ProcessorDescription python =
      message_of<DescribedMessage>(
          R"({"type":"described","protocol":1,"rules":{"__call__":{},"detail_page":{"priority":2},"index_page":{"age_ms":864000000},)"
          R"("on_start":{}},"ticks":[{"rule":"on_start","every_ms":86400000}],"on":{"start":"on_start"},)"
          R"("defaults":{"request":{"headers":{"User-Agent":"x"},"connect_timeout_ms":20000}},"retry_delay_ms":{"0":30000,"":null}})")
          .description;
  EXPECT_EQ(python.on_start, "on_start");
  EXPECT_THAT(python.rules, SizeIs(4));
  EXPECT_EQ(retry_delay_of(python, 0), Duration{30s});
  EXPECT_EQ(retry_delay_of(python, 1), std::nullopt);
  const ProcessorDescription javascript =
      message_of<DescribedMessage>(
          R"({"type":"described","protocol":1,"concurrency":16,"on":{"start":"on_start"},"ticks":[],"rules":{"on_start":{},"item":{"priority":1}},)"
          R"("defaults":{}})")
          .description;
  EXPECT_EQ(javascript.concurrency, 16u);
  EXPECT_TRUE(javascript.defaults.is_empty());
}

TEST(ScriptMessages, DescribeWhyAScriptCannotRun) {
  const auto message = message_of<DescribedMessage>(
      R"({"type":"described","protocol":1,"error":{"kind":"SyntaxError","text":"invalid syntax","where":"shop.py:3","trace":"…"}})");
  ASSERT_TRUE(message.failure);
  EXPECT_EQ(message.failure->kind, "SyntaxError");
  EXPECT_EQ(message.failure->text, "invalid syntax");
  EXPECT_EQ(message.failure->where, "shop.py:3");
  EXPECT_TRUE(message_of<DescribedMessage>(R"({"type":"described","error":{"text":"x"}})").failure);
}

TEST(ScriptMessages, DescribeDelaysWithGapsAndNulls) {
  const ProcessorDescription script =
      description_of(R"("retry_delay_ms":{"0":1000,"2":null,"4":4000,"":9000,"99999999999999":1})");
  EXPECT_EQ(retry_delay_of(script, 0), Duration{1s});
  EXPECT_EQ(retry_delay_of(script, 1), Duration{9s});
  EXPECT_EQ(retry_delay_of(script, 2), std::nullopt);
  EXPECT_EQ(retry_delay_of(script, 3), Duration{9s});
  EXPECT_EQ(retry_delay_of(script, 4), Duration{4s});
  EXPECT_EQ(retry_delay_of(script, 5), Duration{9s});
  const ProcessorDescription once = description_of(R"("retry_delay_ms":{"0":1000})");
  EXPECT_EQ(retry_delay_of(once, 0), Duration{1s});
  EXPECT_EQ(retry_delay_of(once, 1), Duration{24h});
  EXPECT_EQ(retry_delay_of(description_of(R"("retry_delay_ms":{"":null})"), 3), std::nullopt);
  EXPECT_EQ(retry_delay_of(description_of(R"("retry_delay_ms":{"":5})"), 0), Duration{5ms});
}

TEST(ScriptMessages, RefuseADescriptionThatIsWrong) {
  EXPECT_EQ(script_error(R"({"type":"described"})"), "described: its protocol is missing: this Argiope speaks 1");
  EXPECT_EQ(script_error(R"({"type":"described","protocol":2})"), "described: protocol 2: this Argiope speaks 1");
  EXPECT_EQ(description_error(R"("concurrency":0)"), "described: concurrency 0: a whole number from 1 to 1000");
  EXPECT_THAT(description_error(R"("concurrency":1001)"), HasSubstr("concurrency 1001"));
  EXPECT_THAT(description_error(R"("on":[])"), HasSubstr("on []: an object"));
  EXPECT_THAT(description_error(R"("on":{"start":"a\"b"})"), HasSubstr("on/start"));
  EXPECT_THAT(description_error(R"("ticks":{})"), HasSubstr("ticks"));
  EXPECT_THAT(description_error(R"("ticks":[{"rule":"a","every_ms":999}])"), HasSubstr("ticks/0/every_ms 999"));
  EXPECT_THAT(description_error(R"("ticks":[{"rule":"a","every_ms":31622400001}])"), HasSubstr("ticks/0/every_ms"));
  EXPECT_THAT(description_error(R"("ticks":[{"every_ms":1000}])"), HasSubstr("ticks/0: its rule is missing"));
  EXPECT_THAT(description_error(R"("ticks":[{"rule":"a"}])"), HasSubstr("ticks/0: its every_ms is missing"));
  EXPECT_THAT(description_error(R"("rules":{"a":[]})"), HasSubstr("rules/a"));
  EXPECT_THAT(description_error(R"("rules":{"":{}})"), HasSubstr("no name of a rule"));
  EXPECT_THAT(description_error(R"("rules":{"a":{"retries":-1}})"), HasSubstr("rules/a/retries -1"));
  EXPECT_THAT(description_error(R"("defaults":{"request":{"redirects":99}})"),
              HasSubstr("defaults/request/redirects 99"));
  EXPECT_THAT(description_error(R"("retry_delay_ms":{"x":1})"), HasSubstr("retry_delay_ms/x"));
  EXPECT_THAT(description_error(R"("retry_delay_ms":{"0":-1})"), HasSubstr("retry_delay_ms/0 -1"));
  const auto wrong = script_says(R"({"type":"described","protocol":1,"rules":1})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::invalid_input);
}

TEST(ScriptMessages, DescribeSoManyRulesAndTicks) {
  std::string rules, ticks;
  for (int i = 0; i < 1'000; ++i) rules += (i > 0 ? ",\"r" : "\"r") + std::to_string(i) + "\":{}";
  for (int i = 0; i < 100; ++i) ticks += std::string(i > 0 ? "," : "") + R"({"rule":"a","every_ms":1000})";
  EXPECT_THAT(description_of("\"rules\":{" + rules + "}").rules, SizeIs(1'000));
  EXPECT_THAT(description_error("\"rules\":{" + rules + ",\"x\":{}}"), HasSubstr("1001 rules"));
  EXPECT_THAT(description_of("\"ticks\":[" + ticks + "]").ticks, SizeIs(100));
  EXPECT_THAT(description_error("\"ticks\":[" + ticks + R"(,{"rule":"a","every_ms":1000}])"), HasSubstr("101 ticks"));
}

TEST(ScriptMessages, LeaveOutOfRulesTheHeadersThatOnlyArgiopeCanSay) {
  const auto message = message_of<DescribedMessage>(
      R"({"type":"described","protocol":1,"rules":{"a":{"request":{"headers":{"Host":"x","B":"c"}}}},"defaults":{"request":{"headers":{"Connection":"y"}}}})");
  EXPECT_THAT(message.description.rules.at("a").settings.request.headers, SizeIs(1));
  EXPECT_THAT(texts_of(message.logs),
              ElementsAre("rules/a/request/headers/Host: only Argiope can say it: left out",
                          "defaults/request/headers/Connection: only Argiope can say it: left out"));
}

// --- answers

TEST(ScriptMessages, AnswerWithNothing) {
  const VisitAnswer answer = answer_of({R"({"type":"done","id":7})"});
  EXPECT_THAT(answer.pages, IsEmpty());
  EXPECT_FALSE(answer.results);
  EXPECT_FALSE(answer.save_json);
  EXPECT_FALSE(answer.failure);
  EXPECT_THAT(answer.logs, IsEmpty());
}

TEST(ScriptMessages, AnswerWithAllThereIs) {
  const VisitAnswer answer = done_with(
      R"("pages":[{"url":"item/1","rule":"detail_page"}],"results":[{"value":{"price":3.50}},{"part":"2","value":null}],
         "messages":[{"project":"other","message":[1, 2]},{"project":"other","message":null,"url":"data:,x"}],
         "save":{"n": 1},"logs":[{"level":"warning","text":"a"},{"text":"b"},{"level":"??","text":5}],"unknown":1)");
  ASSERT_THAT(answer.pages, SizeIs(1));
  EXPECT_EQ(answer.pages[0].url, "https://shop.example/en/item/1");
  EXPECT_EQ(answer.pages[0].rule, "detail_page");
  EXPECT_EQ(answer.pages[0].name, "");
  ASSERT_TRUE(answer.results);
  ASSERT_THAT(*answer.results, SizeIs(2));
  EXPECT_EQ(answer.results->at(0).value_json, R"({"price":3.5})");
  EXPECT_EQ(answer.results->at(0).part, "");
  EXPECT_EQ(answer.results->at(1).part, "2");
  EXPECT_EQ(answer.results->at(1).value_json, "null");
  ASSERT_THAT(answer.messages, SizeIs(2));
  EXPECT_EQ(answer.messages[0].message_json, "[1,2]");
  EXPECT_EQ(answer.messages[0].url, "data:,on_message");
  EXPECT_EQ(answer.messages[1].message_json, "null");
  EXPECT_EQ(answer.messages[1].url, "data:,x");
  EXPECT_EQ(answer.save_json, R"({"n":1})");
  EXPECT_THAT(texts_of(answer.logs), ElementsAre("a", "b", "5"));
  EXPECT_EQ(answer.logs[0].level, "warning");
  EXPECT_EQ(answer.logs[1].level, "info");
  EXPECT_EQ(answer.logs[2].level, "info");
}

TEST(ScriptMessages, TellNothingFromAnEmptyListButOfResults) {
  const VisitAnswer answer = done_with(R"("pages":[],"results":[],"messages":null,"save":null)");
  ASSERT_TRUE(answer.results);
  EXPECT_THAT(*answer.results, IsEmpty());
  EXPECT_EQ(answer.save_json, "null");
  EXPECT_FALSE(done_with(R"("results":null)").results);
}

TEST(ScriptMessages, JoinTheLinesOfAnAnswer) {
  const VisitAnswer answer =
      answer_of({R"({"type":"more","id":7,"pages":[{"url":"a"},{"url":"b"}],"results":[{"value":1}]})",
                 R"({"type":"more","id":7,"pages":[{"url":"htp://x"}],"messages":[{"project":"p"}]})",
                 R"({"type":"done","id":7,"pages":[{"url":"c"}],"results":[{"part":"2","value":2}],"save":1})"});
  ASSERT_THAT(answer.pages, SizeIs(3));
  EXPECT_EQ(answer.pages[2].url, "https://shop.example/en/c");
  EXPECT_THAT(*answer.results, SizeIs(2));
  EXPECT_THAT(answer.messages, SizeIs(1));
  EXPECT_EQ(answer.save_json, "1");
  EXPECT_THAT(texts_of(answer.logs), ElementsAre(R"(pages/2/url: "htp://x" has an unknown scheme)"));
}

TEST(ScriptMessages, LetTheLastResultOfAPartCount) {
  const VisitAnswer answer = done_with(R"("results":[{"value":1},{"part":"a","value":2},{"value":3}])");
  ASSERT_THAT(*answer.results, SizeIs(2));
  EXPECT_EQ(answer.results->at(0).value_json, "2");
  EXPECT_EQ(answer.results->at(1).value_json, "3");
}

TEST(ScriptMessages, HaveEachNameOfAValueOnce) {
  EXPECT_EQ(done_with(R"("results":[{"value":{"a":1,"a":2.0}}])").results->at(0).value_json, R"({"a":2.0})");
}

TEST(ScriptMessages, AskForPages) {
  const AskedPage page = page_of(
      R"({"url":"HTTP://Other.example/a b#c","name":"n","rule":"r","context":{"x":[1]},"due_at":"2026-01-31T13:00:00+01:00",
          "force":true,"cancel":true,"priority":4,"request":{"method":"post","body":"x"},"unknown":null})");
  EXPECT_EQ(page.url, "http://other.example/a%20b#c");
  EXPECT_EQ(page.name, "n");
  EXPECT_EQ(page.rule, "r");
  EXPECT_EQ(page.context_json, R"({"x":[1]})");
  EXPECT_EQ(page.due_at, WallTime{std::chrono::sys_days{std::chrono::year{2026} / 1 / 31} + 12h});
  EXPECT_TRUE(page.force);
  EXPECT_TRUE(page.cancel);
  EXPECT_EQ(stored(page.settings), R"({"priority":4,"request":{"method":"POST","body":"x"}})");
  const AskedPage other = page_of(
      R"({"url":"data:,on_start","delay_ms":1500,"name":null,"rule":null,"context":null,"due_at":null,"force":null})");
  EXPECT_EQ(other.url, "data:,on_start");
  EXPECT_EQ(other.rule, "__call__");
  EXPECT_EQ(other.context_json, "");
  EXPECT_EQ(other.delay, Duration{1500ms});
}

TEST(ScriptMessages, LeaveOutAPageThatIsWrongAndSayWhy) {
  EXPECT_EQ(page_trouble(R"({"url":"htp://x"})"), R"(pages/0/url: "htp://x" has an unknown scheme)");
  EXPECT_EQ(page_trouble(R"({"url":"ftp://x/"})"), R"(pages/0/url: "ftp://x/" has an unknown scheme)");
  EXPECT_EQ(page_trouble(R"({"url":"mailto:a@b"})"), R"(pages/0/url: "mailto:a@b" has an unknown scheme)");
  EXPECT_EQ(page_trouble(R"({"url":"http://"})"), R"(pages/0/url: "http://" has no host)");
  EXPECT_EQ(page_trouble(R"({"url":"http://a:99999/"})"), R"(pages/0/url: "http://a:99999/" has a port that is none)");
  EXPECT_EQ(page_trouble(R"({"url":"data:nothing"})"),
            R"(pages/0/url: "data:nothing" has no comma, behind which its content would be)");
  EXPECT_EQ(page_trouble(R"({"url":5})"), "pages/0/url 5: a URL");
  EXPECT_EQ(page_trouble(R"({"rule":"a"})"), "pages/0: its url is missing");
  EXPECT_EQ(page_trouble(R"("http://a/")"), R"(pages/0 "http://a/": an object)");
  EXPECT_EQ(page_trouble(R"({"url":"a","name":""})"), R"(pages/0/name "": a string of 1 to 1000 bytes)");
  EXPECT_THAT(page_trouble(R"({"url":"a","name":")" + std::string(1001, 'x') + "\"}"),
              HasSubstr("a string of 1 to 1000 bytes"));
  EXPECT_THAT(page_trouble(R"({"url":"a","rule":"a\\b"})"), HasSubstr("a rule's name"));
  EXPECT_THAT(page_trouble(R"({"url":"a","rule":"a\nb"})"), HasSubstr("a rule's name"));
  EXPECT_THAT(page_trouble(R"({"url":"a","rule":")" + std::string(201, 'x') + "\"}"), HasSubstr("a rule's name"));
  EXPECT_THAT(page_trouble(R"({"url":"a","due_at":"tomorrow"})"), HasSubstr("pages/0/due_at \"tomorrow\": a time"));
  EXPECT_THAT(page_trouble(R"({"url":"a","due_at":"2026-01-31T13:00:00"})"), HasSubstr("pages/0/due_at"));
  EXPECT_THAT(page_trouble(R"({"url":"a","delay_ms":-1})"), HasSubstr("pages/0/delay_ms -1"));
  EXPECT_THAT(page_trouble(R"({"url":"a","delay_ms":1,"due_at":"2026-01-31T13:00:00Z"})"), HasSubstr("one of both"));
  EXPECT_EQ(page_trouble(R"({"url":"a","retries":5000})"), "pages/0/retries 5000: a whole number from 0 to 1000");
  EXPECT_EQ(page_trouble(R"({"url":"a","force":1})"), "pages/0/force 1: true or false");
  EXPECT_THAT(page_trouble(R"({"url":"a","context":")" + std::string(65'535, 'x') + "\"}"),
              HasSubstr("pages/0/context: 65537 bytes as JSON: at most 65536"));
  EXPECT_THAT(page_trouble(R"({"url":"a","x":")" + std::string(2 * 1024 * 1024, 'x') + "\"}"),
              HasSubstr("at most 2097152"));
  const std::string secret = page_trouble(R"({"url":"htp://name:secret@x"})");
  EXPECT_EQ(secret.find("secret"), std::string::npos);
}

TEST(ScriptMessages, KeepTheOtherPages) {
  const VisitAnswer answer =
      done_with(R"("pages":[{"url":"a"},{"url":"htp://x"},{"url":"b"},5],"results":[{"value":1}])");
  EXPECT_THAT(answer.pages, SizeIs(2));
  EXPECT_THAT(*answer.results, SizeIs(1));
  EXPECT_THAT(texts_of(answer.logs),
              ElementsAre(R"(pages/1/url: "htp://x" has an unknown scheme)", "pages/3 5: an object"));
  EXPECT_EQ(answer.logs[0].level, "warning");
}

TEST(ScriptMessages, TakeOnlyAbsoluteUrlsOfPagesWithoutAnAddress) {
  const VisitAnswer answer = answer_of({R"({"type":"done","id":7,"pages":[{"url":"a"},{"url":"https://b.example"}]})"},
                                       OpenVisit("data:,on_start"));
  ASSERT_THAT(answer.pages, SizeIs(1));
  EXPECT_EQ(answer.pages[0].url, "https://b.example/");
  EXPECT_THAT(texts_of(answer.logs), ElementsAre(HasSubstr("\"a\" is relative")));
}

TEST(ScriptMessages, LeaveOutOfPagesTheHeadersThatOnlyArgiopeCanSay) {
  const VisitAnswer answer = done_with(R"("pages":[{"url":"a","request":{"headers":{"Host":"x","A":"b"}}}])");
  ASSERT_THAT(answer.pages, SizeIs(1));
  EXPECT_THAT(answer.pages[0].settings.request.headers, SizeIs(1));
  EXPECT_THAT(texts_of(answer.logs), ElementsAre("pages/0/request/headers/Host: only Argiope can say it: left out"));
}

TEST(ScriptMessages, LeaveOutResultsAndMessagesThatAreWrong) {
  const std::string large = "\"" + std::string(1024 * 1024 - 1, 'x') + "\"";
  const VisitAnswer answer =
      done_with(R"("results":[{"part":5,"value":1},7,{"value":)" + large +
                R"(},{"value":"kept"}],)"
                R"("messages":[{"message":1},{"project":"","message":1},{"project":"p","url":5},[],{"project":"p"}],)"
                R"("save":)" +
                large);
  EXPECT_THAT(*answer.results, SizeIs(1));
  EXPECT_THAT(answer.messages, SizeIs(1));
  EXPECT_FALSE(answer.save_json);
  EXPECT_FALSE(answer.failure);
  EXPECT_THAT(
      texts_of(answer.logs),
      ElementsAre("results/0/part 5: a string of at most 1000 bytes", "results/1 7: an object",
                  "results/2/value: 1048577 bytes as JSON: at most 1048576", "messages/0: its project is missing",
                  HasSubstr("messages/1/project"), HasSubstr("messages/2/url 5"), HasSubstr("messages/3 []: an object"),
                  "save: 1048577 bytes as JSON: at most 1048576; the one before stays"));
}

TEST(ScriptMessages, KeepValuesOfExactlyTheMost) {
  const std::string most = "\"" + std::string(1024 * 1024 - 2, 'x') + "\"";
  const VisitAnswer answer = done_with(R"("results":[{"value":)" + most + R"(}],"save":)" + most);
  EXPECT_THAT(*answer.results, SizeIs(1));
  EXPECT_TRUE(answer.save_json);
  EXPECT_THAT(texts_of(answer.logs), IsEmpty());
}

TEST(ScriptMessages, FailAVisit) {
  const VisitAnswer answer = done_with(
      R"("error":{"text":"boom","kind":"ValueError","where":"shop.py:12","trace":"a\nb","delay_ms":5000,"final":true,"else":1},"pages":[{"url":"a"}],"save":2)");
  ASSERT_TRUE(answer.failure);
  EXPECT_EQ(answer.failure->text, "boom");
  EXPECT_EQ(answer.failure->kind, "ValueError");
  EXPECT_EQ(answer.failure->where, "shop.py:12");
  EXPECT_EQ(answer.failure->trace, "a\nb");
  EXPECT_EQ(answer.failure->delay, Duration{5s});
  EXPECT_TRUE(answer.failure->is_final);
  EXPECT_FALSE(answer.failure->is_crash);
  EXPECT_THAT(answer.pages, SizeIs(1));  // kept as those of a success
  EXPECT_EQ(answer.save_json, "2");
  const VisitAnswer plain = done_with(R"("error":{"text":"x","kind":null,"delay_ms":null})");
  EXPECT_FALSE(plain.failure->delay);
  EXPECT_FALSE(plain.failure->is_final);
  EXPECT_FALSE(done_with(R"("error":null)").failure);
}

TEST(ScriptMessages, FailAVisitWhoseMembersHaveAWrongType) {
  for (const std::string members :
       {R"("pages":{})", R"("results":"x")", R"("messages":1)", R"("logs":{})", R"("error":"x")", R"("error":{})",
        R"("error":{"text":5})", R"("error":{"text":"a","final":1})"}) {
    const VisitAnswer answer = done_with(R"("logs":[{"text":"kept"}],"results":[{"value":1}],"save":1,)" + members);
    ASSERT_TRUE(answer.failure) << members;
    EXPECT_THAT(answer.failure->text, StartsWith("its answer is wrong: ")) << members;
    EXPECT_FALSE(answer.results) << members;
    EXPECT_FALSE(answer.save_json) << members;
  }
  EXPECT_EQ(done_with(R"("pages":{"a":1})").failure->text, R"(its answer is wrong: pages {"a":1}: a list)");
  EXPECT_EQ(done_with(R"("error":{"kind":"x"})").failure->text, "its answer is wrong: error: its text is missing");
}

TEST(ScriptMessages, FailAVisitWhoseEarlierLineWasWrong) {
  const VisitAnswer answer =
      answer_of({R"({"type":"more","id":7,"results":[{"value":1}]})", R"({"type":"more","id":7,"pages":5})",
                 R"({"type":"more","id":7,"pages":[{"url":"a"}]})", R"({"type":"done","id":7,"save":1})"});
  ASSERT_TRUE(answer.failure);
  EXPECT_EQ(answer.failure->text, "its answer is wrong: pages 5: a list");
  EXPECT_FALSE(answer.results);
  EXPECT_THAT(answer.pages, IsEmpty());
  EXPECT_FALSE(answer.save_json);
}

TEST(ScriptMessages, KeepTheTypesOfMore) {
  const VisitAnswer answer =
      answer_of({R"({"type":"more","id":7,"save":1,"error":{"text":"x"},"logs":5})", R"({"type":"done","id":7})"});
  EXPECT_FALSE(answer.save_json);
  EXPECT_FALSE(answer.failure);
}

// --- bounds of an answer

std::string many_entries(std::string_view entry, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all.append(i > 0 ? "," : "").append(entry);
  return all;
}

TEST(ScriptMessages, HaveSoManyPagesResultsAndMessages) {
  const std::string pages = "\"pages\":[" + many_entries(R"({"url":"a"})", 60'000) + "]";
  std::string results;
  for (int i = 0; i < 10'003; ++i)
    results += std::string(i > 0 ? "," : "") + "{\"part\":\"" + std::to_string(i) + "\"}";
  const VisitAnswer answer =
      answer_of({R"({"type":"more","id":7,)" + pages + "}", R"({"type":"more","id":7,"results":[)" + results + "]}",
                 R"({"type":"more","id":7,"messages":[)" + many_entries(R"({"project":"p"})", 10'001) + "]}",
                 R"({"type":"done","id":7,)" + pages + "}"});
  EXPECT_THAT(answer.pages, SizeIs(100'000));
  EXPECT_THAT(*answer.results, SizeIs(10'000));
  EXPECT_THAT(answer.messages, SizeIs(10'000));
  EXPECT_FALSE(answer.failure);
  EXPECT_THAT(texts_of(answer.logs),
              ElementsAre("pages: 20000 more than 100000, and left out", "results: 3 more than 10000, and left out",
                          "messages: 1 more than 10000, and left out"));
}

TEST(ScriptMessages, TellOfTheFirstPagesThatAreWrong) {
  const VisitAnswer answer = done_with("\"pages\":[" + many_entries("5", 50'000) + "]");
  EXPECT_THAT(answer.logs, SizeIs(101));
  EXPECT_EQ(answer.logs.back().text, "49900 more of its entries are wrong, and left out");
}

TEST(ScriptMessages, HaveSoManyBytesOfAnAnswer) {
  OpenVisit visit("http://a/", {.answer_bytes = 100});
  EXPECT_TRUE(visit.add({.id = 7, .bytes = 60}));
  EXPECT_TRUE(visit.add({.id = 7, .bytes = 40}));
  const auto over = visit.add({.id = 7, .bytes = 1});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::too_large);
}

TEST(ScriptMessages, HaveSoMuchLog) {
  OpenVisit visit("http://a/", {.log_bytes = 10});
  visit.log({.level = "info", .text = "12345678"});
  visit.log({.level = "info", .text = "9ü2345"});
  visit.log({.level = "info", .text = "x"});
  EXPECT_TRUE(visit.add({.id = 7, .is_last = true, .log_bytes_over = 100}));
  const VisitAnswer answer = visit.take_answer();
  EXPECT_THAT(texts_of(answer.logs), ElementsAre("12345678", "9", "107 more bytes of this log were not kept"));
}

TEST(ScriptMessages, KeepTheLogOfAVisitWithoutAnAnswer) {
  OpenVisit visit("http://a/");
  visit.log({.level = "stderr", .text = "Traceback"});
  EXPECT_TRUE(visit.add(message_of<AnswerPart>(R"({"type":"more","id":7,"pages":[{"url":"a"}]})")));
  const VisitAnswer answer = visit.take_failure({.text = "killed", .is_crash = true});
  EXPECT_THAT(texts_of(answer.logs), ElementsAre("Traceback"));
  EXPECT_THAT(answer.pages, IsEmpty());
  ASSERT_TRUE(answer.failure);
  EXPECT_TRUE(answer.failure->is_crash);
}

TEST(ScriptMessages, LogManyEmptyLinesInBoundedMemory) {
  const VisitAnswer answer = done_with("\"logs\":[" + many_entries("{}", 100'000) + "]");
  EXPECT_THAT(answer.logs, SizeIs(64 * 1024 + 1));
  EXPECT_EQ(answer.logs.back().text, "34464 more bytes of this log were not kept");
}

TEST(ScriptMessages, CountQueries) {
  OpenVisit visit("http://a/");
  for (std::size_t i = 0; i < ProcessorLimits::kMostQueries; ++i) ASSERT_TRUE(visit.count_query());
  const auto over = visit.count_query();
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::too_large);
}

// --- log and select

TEST(ScriptMessages, Log) {
  const auto log = message_of<LogMessage>(R"({"type":"log","id":9,"level":"error","text":"found 3"})");
  EXPECT_EQ(log.id, 9u);
  EXPECT_EQ(log.log.level, "error");
  EXPECT_EQ(log.log.text, "found 3");
  const auto plain = message_of<LogMessage>(R"({"type":"log","text":"a\nb"})");
  EXPECT_FALSE(plain.id);
  EXPECT_EQ(plain.log.level, "info");
  EXPECT_EQ(message_of<LogMessage>(R"({"type":"log","id":null,"level":"stderr"})").log.level, "info");
}

TEST(ScriptMessages, Select) {
  const auto query = message_of<SelectQuery>(
      R"({"type":"select","id":7,"query":1,"css":"a[href^=http]","give":["text","attributes"]})");
  EXPECT_EQ(query.id, 7u);
  EXPECT_EQ(query.query, 1u);
  EXPECT_FALSE(query.is_xpath);
  EXPECT_EQ(query.selector, "a[href^=http]");
  EXPECT_TRUE(query.text && query.attributes);
  EXPECT_FALSE(query.raw || query.lines || query.outer_html || query.inner_html || query.name);
  EXPECT_EQ(query.most, 10'000u);
  EXPECT_FALSE(query.within || query.html || query.wrong);
  const auto other = message_of<SelectQuery>(
      R"({"type":"select","id":7,"query":2,"xpath":"//a","within":[1,2],"give":["raw","lines","html","inner_html","name"],"most":3})");
  EXPECT_TRUE(other.is_xpath && other.raw && other.lines && other.outer_html && other.inner_html && other.name);
  EXPECT_FALSE(other.text || other.attributes);
  EXPECT_THAT(*other.within, ElementsAre(1u, 2u));
  EXPECT_EQ(other.most, 3u);
  const auto html =
      message_of<SelectQuery>(R"({"type":"select","id":7,"query":3,"css":"a","within":null,"html":"<a>"})");
  EXPECT_EQ(html.html, "<a>");
  EXPECT_TRUE(html.text);
}

TEST(ScriptMessages, SelectWithWhatIsWrongIsAnsweredAndNoEndOfTheScript) {
  const auto trouble = [](std::string_view members) {
    const auto query = message_of<SelectQuery>(R"({"type":"select","id":7,"query":1,)" + std::string(members) + "}");
    EXPECT_TRUE(query.wrong) << members;
    return query.wrong.value_or(Error{});
  };
  EXPECT_EQ(trouble(R"("give":["text"])").message, "css or xpath: one of both is wanted");
  EXPECT_EQ(trouble(R"("css":"a","xpath":"//a")").message, "css or xpath: one of both is wanted");
  EXPECT_EQ(trouble(R"("css":"a","html":"","within":[1])").message, "html and within: one of both is wanted");
  EXPECT_EQ(trouble(R"("css":5)").message, "css 5: a string");
  EXPECT_EQ(trouble(R"("css":"a","within":[-1])").message, "within/0 -1: the number of a node");
  EXPECT_THAT(trouble(R"("css":"a","within":5)").message, HasSubstr("within 5"));
  EXPECT_THAT(trouble(R"("css":"a","give":["colour"])").message, HasSubstr("give/0 \"colour\""));
  EXPECT_THAT(trouble(R"("css":"a","most":0)").message, HasSubstr("most 0"));
  EXPECT_THAT(trouble(R"("css":"a","most":10001)").message, HasSubstr("most 10001"));
  EXPECT_EQ(trouble(R"("css":"a","most":0)").code, Errc::invalid_input);
  EXPECT_EQ(trouble("\"css\":\"a\",\"within\":[" + many_entries("1", 10'001) + "]").code, Errc::too_large);
  EXPECT_EQ(trouble(R"("css":"a","html":")" + std::string(10 * 1024 * 1024 + 1, 'x') + "\"").code, Errc::too_large);
}

// --- what the helpers write

TEST(ScriptMessages, OfTheHelpersAreUnderstood) {
  // python3 -m argiope.processor
  const VisitAnswer python = answer_of(
      {R"({"type":"done","id":7,"save":{"n":1},"pages":[{"url":"https://shop.example/item/1?q=%C3%BC","rule":"detail_page","age_ms":null,"priority":2,)"
       R"("due_at":"2026-11-23T16:00:00.250Z","force":true,"tag":"v1","request":{"headers":{"User-Agent":"x"},"method":"POST",)"
       R"("body":"a=b","timeout_ms":120000,"redirects":0,"verify_certificate":false,"proxy":"http://127.0.0.1:1080","etag":false}}],)"
       R"("results":[{"part":"","value":{"title":"Ü","price":3.5}}],"messages":[{"project":"other","message":{"a":1},"url":"data:,on_message"}]})"});
  EXPECT_THAT(texts_of(python.logs), IsEmpty());
  ASSERT_THAT(python.pages, SizeIs(1));
  EXPECT_EQ(
      stored(python.pages[0].settings),
      R"({"priority":2,"age_ms":null,"tag":"v1","request":{"method":"POST","headers":{"User-Agent":"x"},"body":"a=b","timeout_ms":120000,)"
      R"("redirects":0,"verify_certificate":false,"proxy":"http://127.0.0.1:1080","etag":false}})");
  EXPECT_EQ(python.results->at(0).value_json, R"({"title":"Ü","price":3.5})");
  const VisitAnswer failed = answer_of(
      {R"({"type":"done","id":7,"error":{"kind":"KeyError","text":"'key'","where":"shop.py:8","trace":"Traceback (most recent call last):\n"}})"});
  EXPECT_EQ(failed.failure->where, "shop.py:8");
  // clients/js
  const VisitAnswer javascript = answer_of(
      {R"({"type":"done","id":7,"results":[],"pages":[{"url":"/a","rule":"item","age_ms":5,"request":{"headers":{"content-type":"application/json"},"body":"{}"}}]})"});
  ASSERT_THAT(javascript.pages, SizeIs(1));
  EXPECT_EQ(javascript.pages[0].url, "https://shop.example/a");
  EXPECT_THAT(*javascript.results, IsEmpty());
}

}  // namespace
}  // namespace argiope

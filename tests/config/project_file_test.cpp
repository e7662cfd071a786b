// Files of projects: what they say, and what is told of those that are wrong.
#include "config/internal/project_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "config/internal/configuration.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kShop = R"(
[project]
name = "shop"
group = "prices"
status = "DEBUG"
start = ["https://shop.test/list/1#top", "http://shop.test/list/2"]
scope = ["Shop.test", "*.shop.test"]
every = "1d"
rate = 2.5
burst = 10
weight = 3
version = 7
pause_after = 0
processor = ["python3", "shop.py"]
readable = ["/opt/venv", "words"]

[[rule]]
name = "list"
match = "/list/*"
follow = ["/item/*", "re:[?]page="]
age = 3600
auto_recrawl = true
priority = 5
call = false

[[rule]]
name = "item"
match = ["/item/*"]
follow = false
revisit = "10m..7d"
retries = 1
retry_delay = ["10s", 60]
tag = "v2"
each = "css:.offer"
part = "title"
[rule.fields]
title = "css:h1"
price = { css = ".price", type = "number", required = true }

[[rule]]
name = "rest"
age = "never"
revisit = "adaptive"

[alarm]
coverage = { price = 0.9 }
least_results = 100
most_failures = 0.25

[[sink]]
file = "prices.jsonl"
rules = ["item"]

[[sink]]
command = ["./import.sh", "-q"]

[[sink]]
file = "all.csv"
name = "table"
rotate_size = "1.5 MB"
rotate_every = "1d"

[[sink]]
webhook = "https://me:geheim@hook.test/a"
secret_env = "HOOK"
time_limit = "10s"

[[sink]]
postgresql = "host=db dbname=shop"
table = "shop.results"
secret_file = "password"
)";

TEST(ProjectFileTest, HasWhoReadsItsPagesAndWhatIsSecret) {
  const auto hook = parse_project_file(
      "[project]\nname = \"a\"\nprocessor = { webhook = \"http://127.0.0.1:9000/a#b\", secret_env = \"A_HOOK\" }\n",
      "a.toml");
  ASSERT_TRUE(hook) << hook.error().message;
  EXPECT_FALSE(hook->processor.empty());
  EXPECT_EQ(hook->processor.webhook, "http://127.0.0.1:9000/a");
  EXPECT_EQ(hook->processor.secret_variable, "A_HOOK");
  const auto named =
      parse_project_file("[project]\nname = \"a\"\nprocessor = [\"./a\"]\nsecrets = [\"A\", \"_B2\"]\n", "a.toml");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_THAT(named->processor.secrets, ElementsAre(ProjectSecret{"A", ""}, ProjectSecret{"_B2", ""}));
  const auto filed = parse_project_file(
      "[project]\nname = \"a\"\nprocessor = [\"./a\"]\n[project.secrets]\nA = \"secrets/a\"\n", "a.toml");
  ASSERT_TRUE(filed) << filed.error().message;
  EXPECT_THAT(filed->processor.secrets, ElementsAre(ProjectSecret{"A", "secrets/a"}));
  EXPECT_NE(named->processor, filed->processor);
}

TEST(ProjectFileTest, HasWhatItSays) {
  const auto read = parse_project_file(kShop, "shop.toml");
  ASSERT_TRUE(read) << read.error().message;
  const ProjectDefinition& shop = *read;
  EXPECT_EQ(shop.name, "shop");
  EXPECT_EQ(shop.group, "prices");
  EXPECT_EQ(shop.status, ProjectStatus::debug);
  ASSERT_EQ(shop.start.size(), 2u);
  EXPECT_EQ(shop.start[0].href(), "https://shop.test/list/1");
  EXPECT_THAT(shop.scope, ElementsAre("shop.test", "*.shop.test"));
  EXPECT_EQ(shop.every, 24h);
  EXPECT_EQ(shop.rate, 2.5);
  EXPECT_EQ(shop.burst, 10u);
  EXPECT_EQ(shop.weight, 3u);
  EXPECT_EQ(shop.version, "7");
  EXPECT_EQ(shop.pause_after, 0u);
  EXPECT_THAT(shop.processor.readable, ElementsAre("/opt/venv", "words"));
  EXPECT_THAT(shop.processor.command, ElementsAre("python3", "shop.py"));
  ASSERT_EQ(shop.rules.size(), 3u);
  const ProjectRule &list = shop.rules[0], &item = shop.rules[1], &rest = shop.rules[2];
  EXPECT_EQ(list.name(), "list");
  EXPECT_THAT(list.extraction.match, ElementsAre("/list/*"));
  EXPECT_THAT(list.follow_only, ElementsAre("/item/*", "re:[?]page="));
  EXPECT_EQ(list.terms.age, 1h);
  EXPECT_TRUE(list.terms.auto_recrawl);
  EXPECT_EQ(list.terms.priority, 5);
  EXPECT_EQ(list.terms.retries, 3u);
  EXPECT_EQ(list.terms.tag, page_tag("7"));
  EXPECT_FALSE(list.call);
  EXPECT_TRUE(shop.rules[1].call);
  EXPECT_FALSE(item.follow);
  EXPECT_EQ(item.terms.adaptive, (RevisitBounds{10min, 7 * 24h}));
  EXPECT_TRUE(item.terms.auto_recrawl);
  EXPECT_EQ(item.terms.retries, 1u);
  EXPECT_THAT(item.terms.retry_delay.table, ElementsAre(10s, 60s));
  EXPECT_EQ(item.terms.tag, page_tag("v2"));
  EXPECT_EQ(item.extraction.each, "css:.offer");
  EXPECT_EQ(item.part, "title");
  ASSERT_EQ(item.extraction.fields.size(), 2u);
  EXPECT_TRUE(item.extraction.fields[1].required);
  EXPECT_TRUE(rest.follow);
  EXPECT_EQ(rest.terms.age, kNeverOld);
  EXPECT_TRUE(rest.terms.adaptive);
  ASSERT_EQ(shop.alarm.coverage.size(), 1u);
  EXPECT_EQ(shop.alarm.coverage[0].least, 0.9);
  EXPECT_EQ(shop.alarm.least_results, 100u);
  EXPECT_EQ(shop.alarm.most_failures, 0.25);
  ASSERT_EQ(shop.sinks.size(), 5u);
  EXPECT_EQ(shop.sinks[0].target, "prices.jsonl");
  EXPECT_THAT(shop.sinks[0].rules, ElementsAre("item"));
  EXPECT_EQ(shop.sinks[0].name, "file prices.jsonl");
  EXPECT_EQ(shop.sinks[0].format, ProjectSink::Format::jsonl);
  EXPECT_THAT(shop.sinks[1].command, ElementsAre("./import.sh", "-q"));
  EXPECT_EQ(shop.sinks[1].name, "command ./import.sh -q");
  EXPECT_EQ(shop.sinks[2].name, "table");
  EXPECT_EQ(shop.sinks[2].format, ProjectSink::Format::csv);  // by its name
  EXPECT_EQ(shop.sinks[2].rotate_bytes, 1'500'000u);
  EXPECT_EQ(shop.sinks[2].rotate_span, 24h);
  EXPECT_EQ(shop.sinks[3].kind, ProjectSink::Kind::webhook);
  EXPECT_EQ(shop.sinks[3].target, "https://me:geheim@hook.test/a");
  EXPECT_EQ(shop.sinks[3].name, "webhook https://hook.test/a");
  EXPECT_EQ(shop.sinks[3].secret_variable, "HOOK");
  EXPECT_EQ(shop.sinks[3].time_limit, 10s);
  EXPECT_EQ(shop.sinks[4].kind, ProjectSink::Kind::postgresql);
  EXPECT_EQ(shop.sinks[4].target, "host=db dbname=shop");
  EXPECT_EQ(shop.sinks[4].table, "shop.results");
  EXPECT_EQ(shop.sinks[4].secret_file, "password");
  EXPECT_EQ(shop.sinks[4].name, "postgresql shop.results");
}

TEST(ProjectFileTest, TakesSizesAsPeopleWriteThem) {
  const auto read_size = [](std::string_view size) {
    const auto read = parse_project_file(
        "[project]\nname = \"a\"\nstart = \"http://a.test/\"\n[[rule]]\nname = \"r\"\n[[sink]]\nfile = \"a\"\n"
        "rotate_size = " +
            std::string(size) + "\n",
        "a.toml");
    return read ? read->sinks.at(0).rotate_bytes : std::nullopt;
  };
  EXPECT_EQ(read_size("5000"), 5'000u);
  EXPECT_EQ(read_size("\"64KB\""), 64'000u);
  EXPECT_EQ(read_size("\"100mb\""), 100'000'000u);
  EXPECT_EQ(read_size("\"2GiB\""), 2ULL << 30);
  for (const char* wrong :
       {"\"\"", "\"MB\"", "\"-1MB\"", "\"5 PB\"", "\"1e9\"", "999", "true", "\"99999999999TB\"", "\"nan\""}) {
    EXPECT_FALSE(read_size(wrong)) << wrong;
  }
}

TEST(ProjectFileTest, TakesRulesThatAScriptNames) {
  EXPECT_TRUE(parse_project_file(
      "[project]\nname = \"a\"\nprocessor = [\"./a\"]\n[[sink]]\nqueue = \"q\"\nrules = [\"detail_page\"]\n",
      "a.toml"));
}

TEST(ProjectFileTest, NeedsLittle) {
  const auto read =
      parse_project_file("[project]\nname = \"a\"\nstart = \"http://a.test/\"\n[[rule]]\nname = \"all\"\n", "a.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->status, ProjectStatus::running);
  EXPECT_TRUE(read->rules[0].follow);
  EXPECT_EQ(read->rules[0].terms.age, kNeverOld);
  EXPECT_EQ(read->rules[0].terms.tag, 0u);
  EXPECT_TRUE(parse_project_file("[project]\nname = \"a\"\nprocessor = [\"./a\"]\n", "a.toml"));
  EXPECT_TRUE(
      parse_project_file("[project]\nname = \"a\"\nprocessor = [\"./a\"]\nschedule = \"0 6 * * *\"\n", "a.toml"));
}

TEST(ProjectFileTest, HasWhatItsRequestsSay) {
  const auto source = parse_project_source(R"(
[project]
name = "a"
start = "http://a.test/"
request = { headers = { User-Agent = "shop" }, connect_timeout_ms = 500 }

[[rule]]
name = "item"
match = "/item/*"
[rule.request]
method = "post"
body_base64 = "YT1i"
cookies = { lang = "en" }
timeout_ms = 5_000
redirects = 0
verify_certificate = false
proxy = "http://me:geheim@127.0.0.1:8080"
etag = false
last_modified = "Mon, 23 Nov 2026 00:00:00 GMT"
robots = false
render = { script = "() => 1", run_at = "start", width = 800, height = 600, images = true }
[rule.request.headers]
Authorization = "Bearer geheim"
accept = "text/html"

[[rule]]
name = "rest"
)",
                                           "a.toml");
  ASSERT_TRUE(source) << source.error().message;
  const ProjectDefinition& read = source->definition;
  EXPECT_EQ(stored({.request = read.request}),
            R"({"request":{"headers":{"User-Agent":"shop"},"connect_timeout_ms":500}})");
  const RequestSettings& item = read.rules[0].request;
  EXPECT_EQ(item.method.value, "POST");
  EXPECT_EQ(item.body.value, "a=b");
  ASSERT_EQ(item.headers.size(), 2u);
  EXPECT_EQ(item.headers[0].first, "Authorization");
  EXPECT_EQ(item.headers[0].second.value, "Bearer geheim");
  EXPECT_EQ(item.cookies.size(), 1u);
  EXPECT_EQ(item.timeout.value, 5s);
  EXPECT_EQ(item.redirects.value, 0u);
  EXPECT_EQ(item.verify_certificate.value, false);
  EXPECT_EQ(item.proxy.value, "http://me:geheim@127.0.0.1:8080");
  EXPECT_EQ(item.etag.value, (RequestSettings::Validator{.sent = false, .text = {}}));
  EXPECT_EQ(item.robots.value, false);
  ASSERT_TRUE(item.render.value);
  EXPECT_EQ(item.render.value->width, 800u);
  EXPECT_EQ(read.rules[1].request, RequestSettings{});
  // The same as a request has it, and as a database keeps it.
  const auto kept = parse_project_json(source->json);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->request, read.request);
  EXPECT_EQ(kept->rules[0].request, item);
}

TEST(ProjectFileTest, TakesBackAsJsonWhatTomlCannot) {
  const auto read =
      parse_project_json(R"({"project":{"name":"a","start":"http://a.test/","request":{"headers":{"A":"b"}}},
    "rule":[{"name":"none","match":"/x","request":null},{"name":"r","request":{"headers":{"A":null},"render":null}}]})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(settled(file_settings(read->rules[0].request, read->request)).is_empty());
  EXPECT_TRUE(settled(file_settings(read->rules[1].request, read->request)).is_empty());
}

TEST(ProjectFileTest, TellsWhatIsWrongWithARequestAndKeepsItsValues) {
  constexpr std::string_view kBefore =
      "[project]\nname = \"a\"\nstart = \"http://a.test/\"\n[[rule]]\nname = \"r\"\n[rule.request]\n";  // six lines
  const std::pair<std::string_view, std::string_view> wrong[] = {
      {"metod = \"GET\"", "a.toml:7: rule[0].request: member \"metod\": a request has none; did you mean \"method\"?"},
      {"method = \"TRACE\"", "a.toml:7: rule[0].request.method \"TRACE\": GET, HEAD"},
      {"method = 1", "a.toml:7: rule[0].request.method 1: "},
      {"headers = [\"a\"]", "a.toml:7: rule[0].request.headers"},
      {"[rule.request.headers]\nA = \"b\"\n\"C D\" = \"e\"",
       "a.toml:9: rule[0].request.headers \"C D\": no name of a header"},
      {"[rule.request.headers]\nA = \"b\"\nAuthorization = \"geheim\\n\"",
       "a.toml:9: rule[0].request.headers.Authorization: a string without"},
      {"[rule.request.headers]\nAuthorization = [\"geheim\"]",
       "a.toml:8: rule[0].request.headers.Authorization: a string"},
      {"[rule.request.headers]\nA = \"b\"\nhost = \"c\"",
       "a.toml:9: rule[0].request.headers \"host\": only Argiope can say it"},
      {"cookies = { \"a=b\" = \"c\" }", "a.toml:7: rule[0].request.cookies \"a=b\": no name of a cookie"},
      {"cookies = { a = \"geheim; d\" }", "a.toml:7: rule[0].request.cookies.a: a string without"},
      {"body = 1", "a.toml:7: rule[0].request.body"},
      {"body = \"a\"\nbody_base64 = \"YQ==\"", "two bodies"},
      {"body_base64 = \"?\"", "a.toml:7: rule[0].request.body_base64"},
      {"timeout_ms = 0", "a.toml:7: rule[0].request.timeout_ms 0: "},
      {"timeout_ms = \"5s\"", "a.toml:7: rule[0].request.timeout_ms \"5s\": "},
      {"connect_timeout_ms = true", "a.toml:7: rule[0].request.connect_timeout_ms true: "},
      {"redirects = 21", "a.toml:7: rule[0].request.redirects 21: a whole number from 0 to 20"},
      {"verify_certificate = \"no\"", "a.toml:7: rule[0].request.verify_certificate \"no\": true or false"},
      {"proxy = \"ftp://me:geheim@a\"", "a.toml:7: rule[0].request.proxy: "},
      {"etag = 1", "a.toml:7: rule[0].request.etag 1: "},
      {"robots = 0", "a.toml:7: rule[0].request.robots 0: true or false"},
      {"render = true", "a.toml:7: rule[0].request.render true: an object"},
      {"render = { widht = 5 }",
       "a.toml:7: rule[0].request.render: member \"widht\": render has none; did you mean \"width\"?"},
      {"[rule.request.render]\nrun_at = \"now\"", "a.toml:8: rule[0].request.render.run_at \"now\": "},
  };
  for (const auto& [text, said] : wrong) {
    const auto read = parse_project_file(std::string(kBefore) + std::string(text) + "\n", "a.toml");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(said)) << text;
    EXPECT_THAT(read.error().message, Not(HasSubstr("geheim"))) << text;
  }
  const auto of_all =
      parse_project_file("[project]\nname = \"a\"\nprocessor = [\"./a\"]\n[project.request]\nredirect = 1\n", "a.toml");
  ASSERT_FALSE(of_all);
  EXPECT_THAT(
      of_all.error().message,
      HasSubstr("a.toml:5: project.request: member \"redirect\": a request has none; did you mean \"redirects\"?"));
  const auto no_table = parse_project_file(
      "[project]\nname = \"a\"\nstart = \"http://a.test/\"\n[[rule]]\nname = \"r\"\nrequest = 5\n", "a.toml");
  ASSERT_FALSE(no_table);
  EXPECT_THAT(no_table.error().message, HasSubstr("a.toml:6: rule[0].request 5: an object"));
}

struct WrongFile {
  std::string_view text, said;
};

TEST(ProjectFileTest, TellsWhatIsWrongAndWhere) {
  constexpr std::string_view kProject = "[project]\nname = \"a\"\nstart = \"http://a.test/\"\n";  // three lines
  constexpr std::string_view kRule = "[[rule]]\nname = \"r\"\n";                                  // lines 4 and 5
  const WrongFile of_rules[] = {
      {"aeg = \"1d\"", "a.toml:6: rule[0]: member \"aeg\": a rule has none; did you mean \"age\"?"},
      {"age = \"soon\"", "a.toml:6: rule[0].age \"soon\": a time such as"},
      {"age = true", "a.toml:6: rule[0].age \"true\": "},
      {"age = -5", "a.toml:6: rule[0].age \"-5\": "},
      {"match = \"re:(\"", "a.toml:6: rule[0].match: "},
      {"match = [\"/a\", \"re:[\"]", "a.toml:6: rule[0].match[1]: "},
      {"follow = 1", "a.toml:6: rule[0].follow \"1\": true, false, or patterns"},
      {"follow = []", "a.toml:6: rule[0].follow: no pattern is there"},
      {"revisit = \"often\"",
       "a.toml:6: rule[0].revisit: \"often\": it has no \"..\"; write it as MIN..MAX, as in 10m..7d; or \"adaptive\""},
      {"auto_recrawl = true", "a.toml:4: rule[0]: auto_recrawl needs an age above 0"},
      {"auto_recrawl = true\nage = 0", "a.toml:4: rule[0]: auto_recrawl needs an age above 0"},
      {"retries = 1001", "a.toml:6: rule[0].retries \"1001\": a whole number, 0 to 1000"},
      {"retry_delay = []", "a.toml:6: rule[0].retry_delay: no time is there"},
      {"retry_delay = [\"1m\", \"x\"]", "a.toml:6: rule[0].retry_delay[1]: duration \"x\": "},
      {"priority = 1.5", "a.toml:6: rule[0].priority \"1.5\": a whole number"},
      {"each = \"css:p\"", "a.toml:4: rule[0]: each is for records, and there are no fields"},
      {"part = \"a\"\nfields = { a = \"css:p\" }",
       "a.toml:6: rule[0].part: it tells records of one page apart, and there is no each"},
      {"each = \"css:p\"\npart = \"b\"\nfields = { a = \"css:p\" }",
       "a.toml:7: rule[0].part: \"b\": no field of the rule has that name"},
      {"each = \"css:p\"\npart = \"a\"\nfields = { a = { css = \"p\", all = true } }",
       "a.toml:7: rule[0].part \"a\": the field is a list"},
      {"call = true", "a.toml:4: rule[0]: it has call, and the project has no processor"},
      {"fields = { a = \"css:h1 >\" }", "a.toml:6: rule \"r\": field \"a\": css \"h1 >\": a selector is missing"},
      {"fields = { a = { css = \"p\", typ = \"text\" } }",
       "a.toml:6: rule[0].fields.a: member \"typ\": a field has none"},
      {"[[rule]]\nname = \"r\"", "a.toml:6: rule[1]: there is a rule \"r\" already"},
      {"[[rule]]\nname = \"s\"",
       "a.toml:6: rule[1]: no page gets it: rule \"r\" before it has no match, and takes all"},
      {"[[rule]]\nname = \"a\\\"b\"",
       "a.toml:7: rule[1].name \"a\"b\": quotes, backslashes and control characters are not allowed"},
      {"[[rule]]\nmatch = \"/\"", "a.toml:6: rule[1]: a rule needs a name"},
      {"match = \"/list/*\"", "a.toml:3: project.start \"http://a.test/\": no rule matches it"},
      {"fields = { a = \"css:p\" }\n[alarm]\ncoverage = { b = 0.5 }",
       "a.toml:8: alarm.coverage.b: \"b\": no field has that name"},
      {"[alarm]\nmost_failures = 5", "a.toml:7: alarm.most_failures \"5\": a share from 0 to 1"},
      {"[[alarm]]", "a.toml:6: alarm \"[{}]\": a table: [alarm]"},
      {"[[sink]]", "a.toml:6: sink[0]: a sink has one of file, webhook, command, queue and postgresql"},
      {"[[sink]]\nfile = \"a\"\nqueue = \"b\"",
       "a.toml:6: sink[0]: a sink has one of file, webhook, command, queue and postgresql"},
      {"[[sink]]\nwebhook = \"ftp://a.test/\"", "a.toml:7: sink[0].webhook: \"ftp://a.test/\": neither http nor https"},
      {"[[sink]]\nfile = \"a\"\nrules = [\"x\"]", "a.toml:8: sink[0].rules: \"x\": no rule has that name"},
      {"[[sink]]\nfile = \"a\"\nformt = \"csv\"",
       "a.toml:8: sink[0]: member \"formt\": a sink has none; did you mean \"format\"?"},
      {"[[sink]]\nfile = \"a\"\nformat = \"xml\"", "a.toml:8: sink[0].format \"xml\": jsonl, csv"},
      {"[[sink]]\nfile = \"a\"\nrotate_size = \"much\"", "a.toml:8: sink[0].rotate_size \"much\": bytes, as in"},
      {"[[sink]]\nfile = \"a\"\nrotate_size = \"1B\"", "a.toml:8: sink[0].rotate_size \"1B\": at least 1000 bytes"},
      {"[[sink]]\nfile = \"a\"\nrotate_every = \"1s\"", "a.toml:8: sink[0].rotate_every \"1s\": at least a minute"},
      {"[[sink]]\nfile = \"a\"\nsecret_env = \"A\"",
       "a.toml:8: sink[0].secret_env: only a sink with webhook or postgresql has it"},
      {"[[sink]]\nqueue = \"a\"\ntime_limit = \"1m\"",
       "a.toml:8: sink[0].time_limit: only a sink with webhook or command or postgresql has it"},
      {"[[sink]]\nwebhook = \"http://a.test\"\nsecret_env = \"A=B\"",
       "a.toml:8: sink[0].secret_env \"A=B\": no name of a variable"},
      {"[[sink]]\nwebhook = \"http://a.test\"\nsecret_file = \"a\"\nsecret_env = \"A\"",
       "a.toml:9: sink[0].secret_env: it has secret_file already"},
      {"[[sink]]\nwebhook = \"http://a.test\"\ntime_limit = \"2d\"",
       "a.toml:8: sink[0].time_limit \"2d\": at most a day"},
      {"[[sink]]\npostgresql = \"dbname=a\"", "a.toml:6: sink[0]: a sink with postgresql needs a table"},
      {"[[sink]]\npostgresql = \"\"\ntable = \"A; drop\"", "a.toml:7: sink[0].postgresql"},
      {"[[sink]]\npostgresql = \"dbname=a\"\ntable = \"A; drop\"",
       "a.toml:8: sink[0].table \"A; drop\": small letters"},
      {"[[sink]]\nqueue = \"a\"\n[[sink]]\nqueue = \"a\"",
       "a.toml:8: sink[1]: there is a sink \"queue a\" already: give it a name of its own"},
      {"[[sink]]\nfile = \"a\"\nname = \"x\"\n[[sink]]\nfile = \"a\"",
       "a.toml:9: sink[1]: there is a sink with file \"a\" already"},
      {"[rules]", "a.toml:6: member \"rules\": a project's file has none; did you mean \"rule\"?"},
  };
  for (const WrongFile& one : of_rules) {
    const auto read =
        parse_project_file(std::string(kProject) + std::string(kRule) + std::string(one.text) + "\n", "a.toml");
    ASSERT_FALSE(read) << one.text;
    EXPECT_THAT(read.error().message, HasSubstr(one.said)) << one.text;
    EXPECT_TRUE(read.error().message.starts_with(one.said.substr(0, 9))) << read.error().message;
  }
  const WrongFile of_projects[] = {
      {"", "a.toml:1: a project needs a table [project]"},
      {"[project]", "a.toml:1: project: a project needs a name"},
      {"[project]\nname = \"a b\"", "a.toml:2: project.name \"a b\": letters, digits, _, - and . alone"},
      {"[project]\nname = \"a\"", "a project needs a [[rule]], or a processor"},
      {"[project]\nnam = \"a\"", "a.toml:2: project: member \"nam\": [project] has none; did you mean \"name\"?"},
      {"[project]\nname = \"a\"\nstatus = \"RUNING\"", "a.toml:3: project.status \"RUNING\": "},
      {"[project]\nname = \"a\"\nstart = \"a.test\"", "a.toml:3: project.start: \"a.test\": "},
      {"[project]\nname = \"a\"\nstart = [\"http://a.test/\", \"data:,x\"]",
       "a.toml:3: project.start[1]: \"data:,x\": scheme \"data\""},
      {"[project]\nname = \"a\"\nevery = \"0s\"", "a.toml:3: project.every: duration \"0s\": "},
      {"[project]\nname = \"a\"\nevery = \"1d\"\nschedule = \"0 6 * * *\"",
       "a.toml:4: project.schedule: it has `every` already"},
      {"[project]\nname = \"a\"\nschedule = \"0 6 31 2 *\"", "a.toml:3: project.schedule"},
      {"[project]\nname = \"a\"\nrate = 0", "a.toml:3: project.rate \"0\": a number above 0"},
      {"[project]\nname = \"a\"\nburst = 0", "a.toml:3: project.burst \"0\": a whole number"},
      {"[project]\nname = \"a\"\npause_after = -1", "a.toml:3: project.pause_after \"-1\": a whole number"},
      {"[project]\nname = \"a\"\nprocessor = [\"./a\"]\nreadable = \"/opt\"",
       "a.toml:4: project.readable \"/opt\": folders and files"},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"http://a.test/\" }\nreadable = [\"/opt\"]",
       "a.toml:4: project.readable: they are for a script"},
      {"[project]\nname = \"a\"\nweight = 0", "a.toml:3: project.weight \"0\": a whole number"},
      {"[project]\nname = \"a\"\nweight = 101", "a.toml:3: project.weight \"101\": a whole number"},
      {"[project]\nname = \"a\"\nprocessor = \"./a\"",
       "a.toml:3: project.processor \"./a\": a program and its arguments"},
      {"[project]\nname = \"a\"\nprocessor = {}", "a.toml:3: project.processor: as a table it needs webhook"},
      {"[project]\nname = \"a\"\nprocessor = { webhok = \"http://a.test/\" }", "a.toml:3: project.processor"},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"ftp://a.test/\" }", "a.toml:3: project.processor.webhook: "},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"http://u:p@a.test/\" }",
       "a.toml:3: project.processor.webhook: it has a name or password"},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"http://a.test/\", secret_env = \"../A\" }",
       "a.toml:3: project.processor.secret_env"},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"http://a.test/\", secret_file = \"a\", secret_env = \"A\" }",
       "a.toml:3: project.processor.secret_env: it has secret_file"},
      {"[project]\nname = \"a\"\nprocessor = [\"./a\"]\nsecrets = \"A\"",
       "a.toml:4: project.secrets \"A\": names of variables"},
      {"[project]\nname = \"a\"\nprocessor = [\"./a\"]\nsecrets = [\"A-B\"]", "a.toml:4: project.secrets"},
      {"[project]\nname = \"a\"\nprocessor = [\"./a\"]\nsecrets = [\"A\", \"A\"]",
       "a.toml:4: project.secrets[1]: \"A\" is there already"},
      {"[project]\nname = \"a\"\nprocessor = { webhook = \"http://a.test/\" }\nsecrets = [\"A\"]",
       "a.toml:4: project.secrets: they are for a script"},
      {"[project]\nname = \"a\"\n[[rule]]\nname = \"r\"", "a.toml:1: project: a project needs start"},
      {"[project]\nname = \"a\"\nstart = \"http://a.test/\"\nscope = \"b.test\"\n[[rule]]\nname = \"r\"",
       "a.toml:3: project.start \"http://a.test/\": it is out of the project's scope"},
      {"[project]\nname = \"a\"\nstart = \"http://u:secret@a.test/\"\n[[rule]]\nname = \"r\"",
       "a.toml:3: project.start: it has a name or password, which would be part of its name"},
      {"[project\n", "a.toml:1: "},
      {"[project]\nrate = inf", "a.toml:2: a number must be finite"},
  };
  for (const WrongFile& one : of_projects) {
    const auto read = parse_project_file(one.text, "a.toml");
    ASSERT_FALSE(read) << one.text;
    EXPECT_THAT(read.error().message, HasSubstr(one.said)) << one.text;
  }
}

TEST(ProjectFileTest, IsBoundedAndNamed) {
  EXPECT_EQ(parse_project_file(std::string(kMostProjectFileBytes + 1, ' '), "big").error().code, Errc::too_large);
  // Tables in tables, which whoever frees them goes down into.
  const auto times = [](std::size_t count, std::string_view text) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
  };
  const std::string deep = times(500'000, "a.") + "a";
  for (const std::string& text :
       {deep + " = 1", "[" + deep + "]", "[[" + deep + "]]", "x = { y = \"\"\"#\\\"\"\"\"\"\", " + deep + " = 1 }",
        "x = '#'\n" + deep + " = 1", times(200, "a.a.a.a.a = { ") + "b = 1" + times(200, " }")}) {
    const auto read = parse_project_file(text, "deep");
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("nested deeper than 256 levels")) << text.substr(0, 100);
    EXPECT_THAT(parse_configuration(text.substr(0, 100'000), "deep").error().message,
                HasSubstr("nested deeper than 256 levels"));
  }
  EXPECT_THAT(parse_project_file("x = [" + times(1'000, "1.5, ") + "]\n# " + deep, "flat").error().message,
              HasSubstr("\"x\""));
  EXPECT_EQ(read_project_file("/nowhere/a.toml").error().message, "/nowhere/a.toml: No such file or directory");
  EXPECT_EQ(read_project_source("/dev/null", FileReading::again).error().message,
            "/dev/null: is not a plain file: it cannot be read again");
  const TemporaryFolder folder;
  std::ofstream(folder.file("a.toml")) << kShop;
  EXPECT_TRUE(read_project_file(folder.file("a.toml")));
  std::ofstream(folder.file("b.toml")) << "[[sink]]\nqueue = \"argiope.notify.ops\"\n" << kShop;
  const auto forged = read_project_source(folder.file("b.toml"));
  ASSERT_FALSE(forged);
  EXPECT_THAT(
      forged.error().message,
      HasSubstr("b.toml:2: sink[0].queue \"argiope.notify.ops\": the daemon alone puts jobs into its own queues"));
}

}  // namespace
}  // namespace argiope

// What pages, rules and defaults say: each member, its bounds, what is taken back, and who goes before whom.
#include "project/rules/internal/page_settings.hpp"

#include <gmock/gmock.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Validator = RequestSettings::Validator;

PageSettings settings_of(std::string_view json) {
  auto settings = read_settings(json);
  EXPECT_TRUE(settings) << json << ": " << settings.error().message;
  return settings.value_or(PageSettings{});
}
std::string settings_error(std::string_view json) {
  const auto settings = read_settings(json);
  return settings ? "" : settings.error().message;
}
RequestSettings request_of(std::string_view json) {
  return settings_of(R"({"request":)" + std::string(json) + "}").request;
}
std::string request_error(std::string_view json) { return settings_error(R"({"request":)" + std::string(json) + "}"); }
template <class Value>
Said<Value> said(Value value) {
  return {.is_said = true, .value = std::move(value)};
}
template <class Value>
Said<Value> taken_back() {
  return {.is_said = true, .value = {}};
}

TEST(PageSettings, SayNothingAtFirst) {
  EXPECT_TRUE(settings_of("{}").is_empty());
  EXPECT_EQ(stored({}), "{}");
}

TEST(PageSettings, HaveEachMemberOfThePage) {
  const PageSettings settings = settings_of(
      R"({"priority":-3,"age_ms":864000000,"tag":"v2","retries":5,"recrawl":true,"time_limit_ms":1500,"other":1})");
  EXPECT_EQ(settings.priority, said(-3));
  EXPECT_EQ(settings.age, said<Duration>(240h));
  EXPECT_EQ(settings.tag, said<std::string>("v2"));
  EXPECT_EQ(settings.retries, said(5u));
  EXPECT_EQ(settings.recrawl, said(true));
  EXPECT_EQ(settings.time_limit, said<Duration>(1500ms));
  EXPECT_FALSE(settings.is_empty());
}

TEST(PageSettings, HaveEachMemberOfTheRequest) {
  const RequestSettings request = request_of(
      R"({"method":"post","headers":{"Accept":"a","X-B":"ü"},"cookies":{"lang":"en"},"body":"a=b","timeout_ms":1,
          "connect_timeout_ms":2000,"redirects":0,"verify_certificate":false,"proxy":"http://u:p@h:80","etag":"\"x\"",
          "last_modified":false,"robots":false,
          "render":{"script":"go","run_at":"start","width":800,"height":600,"images":true,"else":1}})");
  EXPECT_EQ(request.method, said<std::string>("POST"));
  EXPECT_THAT(request.headers,
              ElementsAre(Pair("Accept", said<std::string>("a")), Pair("X-B", said<std::string>("ü"))));
  EXPECT_THAT(request.cookies, ElementsAre(Pair("lang", said<std::string>("en"))));
  EXPECT_EQ(request.body, said<std::string>("a=b"));
  EXPECT_EQ(request.timeout, said<Duration>(1ms));
  EXPECT_EQ(request.connect_timeout, said<Duration>(2s));
  EXPECT_EQ(request.redirects, said(0u));
  EXPECT_EQ(request.verify_certificate, said(false));
  EXPECT_EQ(request.proxy, said<std::string>("http://u:p@h:80"));
  EXPECT_EQ(request.etag, said(Validator{.sent = true, .text = "\"x\""}));
  EXPECT_EQ(request.last_modified, said(Validator{.sent = false, .text = ""}));
  EXPECT_EQ(request.robots, said(false));
  const RequestSettings::Render render{.script = "go", .at_start = true, .width = 800, .height = 600, .images = true};
  EXPECT_EQ(request.render, said(render));
}

TEST(PageSettings, AreTakenBackByNull) {
  const PageSettings settings = settings_of(
      R"({"priority":null,"age_ms":null,"tag":null,"retries":null,"recrawl":null,"time_limit_ms":null,
          "request":{"method":null,"headers":{"A":null},"cookies":null,"body":null,"proxy":null,"etag":null,"render":null}})");
  EXPECT_EQ(settings.priority, taken_back<std::int32_t>());
  EXPECT_EQ(settings.age, taken_back<Duration>());
  EXPECT_EQ(settings.tag, taken_back<std::string>());
  EXPECT_EQ(settings.retries, taken_back<std::uint32_t>());
  EXPECT_EQ(settings.recrawl, taken_back<bool>());
  EXPECT_EQ(settings.time_limit, taken_back<Duration>());
  const RequestSettings& request = settings.request;
  EXPECT_EQ(request.method, taken_back<std::string>());
  EXPECT_THAT(request.headers, ElementsAre(Pair("A", taken_back<std::string>())));
  EXPECT_FALSE(request.no_headers_behind);
  EXPECT_TRUE(request.no_cookies_behind);
  EXPECT_EQ(request.body, taken_back<std::string>());
  EXPECT_EQ(request.proxy, taken_back<std::string>());
  EXPECT_EQ(request.etag, taken_back<Validator>());
  EXPECT_EQ(request.render, taken_back<RequestSettings::Render>());
  EXPECT_FALSE(request.robots.is_said);
}

TEST(PageSettings, RefuseWhatIsOutOfRangeOrOfAnotherType) {
  EXPECT_EQ(settings_error(R"({"priority":2147483648})"),
            "priority 2147483648: a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(settings_error(R"({"retries":1001})"), "retries 1001: a whole number from 0 to 1000");
  EXPECT_EQ(settings_error(R"({"recrawl":"yes"})"), "recrawl \"yes\": true or false");
  EXPECT_THAT(settings_error(R"({"age_ms":-1})"), HasSubstr("age_ms -1"));
  EXPECT_THAT(settings_error(R"({"age_ms":1.5})"), HasSubstr("age_ms 1.5"));
  EXPECT_THAT(settings_error(R"({"time_limit_ms":0})"), HasSubstr("time_limit_ms 0"));
  EXPECT_THAT(settings_error(R"({"tag":")" + std::string(1001, 'x') + "\"}"), HasSubstr("at most 1000 bytes"));
  EXPECT_EQ(settings_error(R"({"tag":")" + std::string(1000, 'x') + "\"}"), "");
  EXPECT_EQ(settings_error(R"({"request":[]})"), "request []: an object");
  EXPECT_EQ(request_error(R"({"redirects":21})"), "request.redirects 21: a whole number from 0 to 20");
  EXPECT_THAT(request_error(R"({"method":"TRACE"})"), HasSubstr("GET, HEAD, POST"));
  EXPECT_THAT(request_error(R"({"timeout_ms":0})"), HasSubstr("request.timeout_ms 0"));
  EXPECT_THAT(request_error(R"({"render":true})"), HasSubstr("request.render true: an object"));
  EXPECT_THAT(request_error(R"({"render":{"run_at":"now"}})"), HasSubstr("request.render.run_at"));
  EXPECT_THAT(request_error(R"({"etag":5})"), HasSubstr("request.etag 5"));
  EXPECT_THAT(request_error(R"({"headers":["a"]})"), HasSubstr("request.headers"));
}

TEST(PageSettings, HaveTheMembersThatTheyName) {
  // Each of them is read: what none can be is refused.
  for (const std::string& name : request_member_names())
    EXPECT_THAT(request_error("{\"" + name + "\":[1]}"), HasSubstr("request." + name)) << name;
  for (const std::string& name : render_member_names()) {
    EXPECT_THAT(request_error("{\"render\":{\"" + name + "\":[1]}}"), HasSubstr("request.render." + name)) << name;
  }
  // And none beside them is written.
  const PageSettings all = settings_of(
      R"({"request":{"method":"PUT","headers":{"A":"b"},"cookies":{"d":"e"},"body":"x","timeout_ms":1,"connect_timeout_ms":2,"redirects":3,)"
      R"("verify_certificate":false,"proxy":false,"etag":false,"last_modified":false,"robots":false,)"
      R"("render":{"script":"x","run_at":"start","width":1,"height":2,"images":true}}})");
  const auto written = JsonText::parse(stored(all));
  ASSERT_TRUE(written);
  JsonErrors errors;
  std::size_t members = 0;
  written->root(errors).for_each_member([&](std::string_view, const JsonValue& request) {
    request.for_each_member([&](std::string_view name, const JsonValue& value) {
      ++members;
      EXPECT_THAT(request_member_names(), Contains(std::string(name)));
      if (name == "render") EXPECT_EQ(value.size(), render_member_names().size());
    });
  });
  EXPECT_EQ(members + 1, request_member_names().size()) << "but for body_base64";
}

TEST(PageSettings, PutAFilesRuleBeforeTheFile) {
  const PageSettings file =
      file_settings(request_of(R"({"method":"POST","headers":{"a":"rule"},"cookies":null})"),
                    request_of(R"({"headers":{"A":"project","B":"project"},"cookies":{"c":"d"},"redirects":1})"));
  EXPECT_EQ(stored(file),
            R"({"request":{"method":"POST","headers":{"a":"rule","B":"project"},"cookies":null,"redirects":1}})");
  EXPECT_TRUE(file_settings({}, {}).is_empty());
}

TEST(PageSettings, TakeSpansOfAnyLengthWithoutOverflow) {
  const PageSettings settings = settings_of(R"({"age_ms":9223372036854775807})");
  ASSERT_TRUE(settings.age.value);
  EXPECT_GT(*settings.age.value, 24h * 36'000);
  EXPECT_LT(*settings.age.value, 24h * 37'000);
}

TEST(PageSettings, LetNothingIntoARequestThatWouldBeAnotherHeader) {
  EXPECT_THAT(request_error(R"({"headers":{"A":"b\r\nC: d"}})"), HasSubstr("without control characters"));
  EXPECT_THAT(request_error(R"({"headers":{"A b":"c"}})"), HasSubstr("no name of a header"));
  EXPECT_THAT(request_error(R"({"headers":{"":"c"}})"), HasSubstr("no name of a header"));
  EXPECT_THAT(request_error(R"({"headers":{"A":1}})"), HasSubstr("request.headers.A: a string"));
  EXPECT_THAT(request_error(R"({"headers":{"Authorization":"geheim\n"}})"), Not(HasSubstr("geheim")));
  EXPECT_THAT(request_error(R"({"cookies":{"a":"geheim;"}})"), Not(HasSubstr("geheim")));
  EXPECT_THAT(request_error(R"({"cookies":{"a":"b; c=d"}})"), HasSubstr("semicolons"));
  EXPECT_THAT(request_error(R"({"cookies":{"a=b":"c"}})"), HasSubstr("no name of a cookie"));
  EXPECT_THAT(request_error(R"({"etag":"a\nb"})"), HasSubstr("request.etag"));
}

TEST(PageSettings, HaveSoManyHeadersAndNoMore) {
  std::string many;
  for (std::size_t i = 0; i < RequestSettings::kMostNamed; ++i) many += "\"H" + std::to_string(i) + "\":\"x\",";
  EXPECT_EQ(request_of(R"({"headers":{)" + many.substr(0, many.size() - 1) + "}}").headers.size(),
            RequestSettings::kMostNamed);
  EXPECT_THAT(request_error(R"({"headers":{)" + many + R"("more":"x"}})"), HasSubstr("at most 200"));
}

TEST(PageSettings, HaveEachHeaderOnceWhateverItsCase) {
  EXPECT_THAT(request_of(R"({"headers":{"Accept":"a","X":"y","ACCEPT":"b"}})").headers,
              ElementsAre(Pair("X", said<std::string>("y")), Pair("ACCEPT", said<std::string>("b"))));
  EXPECT_EQ(request_of(R"({"cookies":{"a":"1","A":"2"}})").cookies.size(), 2u);
}

TEST(PageSettings, HaveOneBodyAsTextOrAsBytes) {
  EXPECT_EQ(request_of(R"({"body_base64":"AP8="})").body, said(std::string("\0\xff", 2)));
  EXPECT_EQ(request_of(R"({"body":null,"body_base64":"YQ=="})").body, said<std::string>("a"));
  EXPECT_EQ(request_of(R"({"body":"a","body_base64":null})").body, said<std::string>("a"));
  EXPECT_THAT(request_error(R"({"body":"a","body_base64":"YQ=="})"), HasSubstr("one is wanted"));
  EXPECT_THAT(request_error(R"({"body_base64":"YQ"})"), HasSubstr("base64"));
}

TEST(PageSettings, TakeAProxyOrNone) {
  EXPECT_EQ(request_of(R"({"proxy":false})").proxy, said<std::string>(""));
  EXPECT_EQ(request_of(R"({"proxy":""})").proxy, said<std::string>(""));
  EXPECT_THAT(request_error(R"({"proxy":true})"), HasSubstr("request.proxy true"));
  const std::string error = request_error(R"({"proxy":"http://name:secret@host:99999"})");
  EXPECT_THAT(error, HasSubstr("request.proxy"));
  EXPECT_EQ(error.find("secret"), std::string::npos);
}

TEST(PageSettings, AreStoredAndReadAgain) {
  for (
      const std::string json :
      {R"({"priority":-3,"age_ms":5,"tag":"v2","retries":5,"recrawl":true,"time_limit_ms":1500})",
       R"({"priority":null,"age_ms":null,"tag":null,"retries":null,"recrawl":null,"time_limit_ms":null})",
       R"({"request":{"method":"PUT","headers":{"A":"b","C":null},"cookies":{"d":"e"},"body":"x","timeout_ms":1,)"
       R"("connect_timeout_ms":2,"redirects":3,"verify_certificate":true,"proxy":"h:1","etag":true,"last_modified":"x","robots":true,)"
       R"("render":{"script":"go","run_at":"start","width":1,"height":2,"images":true}}})",
       R"({"request":{"headers":null,"cookies":null,"body_base64":"/w==","proxy":false,"etag":false,"render":{}}})",
       R"({"request":{"body":null,"render":null}})"}) {
    const PageSettings settings = settings_of(json);
    EXPECT_EQ(stored(settings), json);
    EXPECT_EQ(settings_of(stored(settings)), settings);
  }
}

TEST(PageSettings, AreNoneWhereThereIsNoObject) {
  EXPECT_NE(settings_error("[]"), "");
  EXPECT_NE(settings_error(""), "");
  EXPECT_NE(settings_error("{"), "");
}

TEST(PageSettings, OfThePageGoBeforeTheRulesAndThoseBeforeTheDefaults) {
  const PageSettings all = merged(settings_of(R"({"priority":1})"), settings_of(R"({"priority":2,"retries":2})"),
                                  settings_of(R"({"priority":3,"retries":3,"tag":"d"})"));
  EXPECT_EQ(stored(all), R"({"priority":1,"tag":"d","retries":2})");
}

TEST(PageSettings, AreMergedHeaderByHeader) {
  const PageSettings all =
      merged(settings_of(R"({"request":{"headers":{"user-agent":"page"},"cookies":{"a":"page"}}})"),
             settings_of(R"({"request":{"headers":{"User-Agent":"rule","X":"rule"},"cookies":{"A":"rule"}}})"),
             settings_of(R"({"request":{"headers":{"x":"defaults","Y":"defaults"},"method":"POST"}})"));
  EXPECT_EQ(stored(all), R"({"request":{"method":"POST","headers":{"user-agent":"page","X":"rule","Y":"defaults"},)"
                         R"("cookies":{"a":"page","A":"rule"}}})");
}

TEST(PageSettings, TakenBackLetNothingBehindThemCount) {
  const PageSettings all =
      merged(settings_of(R"({"priority":null,"request":{"headers":{"X":null},"cookies":null}})"),
             settings_of(R"({"priority":2,"request":{"headers":{"x":"rule","Y":"rule"},"cookies":{"a":"b"}}})"),
             settings_of(R"({"request":{"cookies":{"c":"d"}}})"));
  EXPECT_EQ(all.priority, taken_back<std::int32_t>());
  EXPECT_EQ(stored(settled(all)), R"({"request":{"headers":{"Y":"rule"}}})");
  EXPECT_EQ(stored(settled(merged({}, settings_of(R"({"request":{"cookies":null}})"),
                                  settings_of(R"({"request":{"cookies":{"c":"d"}}})")))),
            "{}");
}

TEST(PageSettings, TakeBackAWholeRequest) {
  const PageSettings all =
      merged(settings_of(R"({"priority":1,"request":null})"),
             settings_of(R"({"request":{"method":"POST","headers":{"A":"b"},"robots":false}})"), {});
  EXPECT_EQ(stored(settled(all)), R"({"priority":1})");
}

TEST(PageSettings, LoseTheHeadersThatOnlyTheClientMaySet) {
  RequestSettings request =
      request_of(R"({"headers":{"HOST":"a","Accept":"b","Content-length":"1","Connection":"x"}})");
  EXPECT_THAT(take_out_clients_headers(request), ElementsAre("HOST", "Content-length", "Connection"));
  EXPECT_THAT(request.headers, ElementsAre(Pair("Accept", said<std::string>("b"))));
}

TEST(PageSettings, GiveTheTermsOfAPage) {
  PageTerms usual;
  usual.priority = 7;
  usual.retries = 9;
  usual.tag = 11;
  const PageTerms same = terms_of({}, usual);
  EXPECT_EQ(same.priority, 7);
  EXPECT_EQ(same.retries, 9u);
  EXPECT_EQ(same.age, kNeverOld);
  EXPECT_EQ(same.tag, 11u);
  const PageTerms terms =
      terms_of(settings_of(R"({"priority":1,"age_ms":1000,"tag":"x","retries":0,"recrawl":true})"), usual);
  EXPECT_EQ(terms.priority, 1);
  EXPECT_EQ(terms.age, Duration{1s});
  EXPECT_EQ(terms.tag, page_tag("x"));
  EXPECT_EQ(terms.retries, 0u);
  EXPECT_TRUE(terms.auto_recrawl);
  const PageTerms back = terms_of(settings_of(R"({"priority":null,"age_ms":null,"tag":null,"retries":null})"), terms);
  EXPECT_EQ(back.priority, 0);
  EXPECT_EQ(back.age, kNeverOld);
  EXPECT_EQ(back.tag, 0u);
  EXPECT_EQ(back.retries, 3u);
  EXPECT_TRUE(back.auto_recrawl);
}

TEST(PageSettings, GiveAPagesOwnTerms) {
  EXPECT_EQ(own_terms_of({}), OwnTerms{});
  const OwnTerms own = own_terms_of(settings_of(R"({"priority":1,"age_ms":null,"retries":2,"recrawl":false})"));
  EXPECT_EQ(own.priority, 1);
  EXPECT_EQ(own.age, kNeverOld);
  EXPECT_EQ(own.retries, 2u);
  EXPECT_EQ(own.auto_recrawl, false);
}

}  // namespace
}  // namespace argiope

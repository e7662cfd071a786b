// What scripts find in pages: `select` of docs/processors.md.
#include "project/process/internal/page_selector.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PageResponse html_page(std::string body, std::string url = "https://shop.example/en/",
                       std::string type = "text/html; charset=utf-8") {
  PageResponse response;
  response.url = std::move(url);
  response.status = 200;
  response.headers = {{"content-TYPE", std::move(type)}};
  response.body = std::move(body);
  return response;
}

SelectQuery query_of(std::string_view members) {
  const OpenVisit visit("https://shop.example/");
  auto message = read_script_message(R"({"type":"select","id":7,"query":1,)" + std::string(members) + "}",
                                     [&](std::uint64_t) { return &visit; });
  EXPECT_TRUE(message) << members;
  return message ? std::get<SelectQuery>(*std::move(message)) : SelectQuery{};
}
std::string found(PageSelector& selector, std::string_view members) {
  const auto json = selector.select(query_of(members));
  EXPECT_TRUE(json) << members.substr(0, 200) << ": " << json.error().message;
  return json.value_or("");
}
std::string found_in(std::string html, std::string_view members) {
  PageSelector selector(html_page(std::move(html)));
  return found(selector, members);
}
Error refusal(PageSelector& selector, std::string_view members) {
  const auto json = selector.select(query_of(members));
  EXPECT_FALSE(json) << members << ": " << *json;
  return json ? Error{} : json.error();
}

TEST(PageSelectorTest, FindsElementsAsTheProtocolShows) {
  EXPECT_EQ(found_in("<a href=2>Next</a>", R"("css":"a[href^=http]","give":["text","attributes"])"),
            R"([{"node":4,"text":"Next","attributes":{"href":"https://shop.example/en/2"}}])");
}

TEST(PageSelectorTest, GivesTheTextWhereNothingElseIsWanted) {
  EXPECT_EQ(found_in("<p> a <b>b</b>\n c", R"("css":"p")"), R"([{"node":4,"text":"a b c"}])");
  EXPECT_EQ(found_in("<p>a", R"("css":"p","give":[])"), R"([{"node":4}])");
  EXPECT_EQ(found_in("<p>a", R"("css":"h1")"), "[]");
}

TEST(PageSelectorTest, GivesEachForm) {
  EXPECT_EQ(
      found_in("<div id=x> a <p>b</p>\n</div>",
               R"("xpath":"//div","give":["attributes","name","inner_html","html","lines","raw","text"])"),
      R"([{"node":4,"name":"div","text":"a b","raw":" a b\u000a","lines":"a\u000a\u000ab",)"
      R"("html":"<div id=\"x\"> a <p>b</p>\u000a</div>","inner_html":" a <p>b</p>\u000a","attributes":{"id":"x"}}])");
}

TEST(PageSelectorTest, GivesTextsAttributesAndValuesWithoutANode) {
  EXPECT_EQ(found_in("<a href=' /x '> b  c </a>", R"x("css":"a::attr(href)")x"),
            R"([{"text":"https://shop.example/x"}])");
  EXPECT_EQ(found_in("<a> b  c </a>", R"("css":"a::text","give":["raw","attributes"])"),
            R"([{"text":"b c","raw":" b  c "}])");
  EXPECT_EQ(found_in("<a></a><a></a>", R"x("xpath":"count(//a)")x"), R"([{"text":"2"}])");
  EXPECT_EQ(found_in("<a title=' b  c '>", R"("xpath":"//a/@title","give":["raw"])"),
            R"([{"text":"b c","raw":" b  c "}])");
}

TEST(PageSelectorTest, GivesTheSameElementTheSameNumber) {
  PageSelector selector(html_page("<p id=a>a<p>b"));
  EXPECT_EQ(found(selector, R"("css":"p","give":[])"), R"([{"node":4},{"node":6}])");
  EXPECT_EQ(found(selector, R"("xpath":"//*[@id='a']","give":[])"), R"([{"node":4}])");
}

TEST(PageSelectorTest, LooksWithinNodes) {
  PageSelector selector(html_page("<ul><li>a<b>1</b></li><li>b<b>2</b></li></ul><b>3</b>"));
  EXPECT_EQ(found(selector, R"("css":"li","give":[])"), R"([{"node":5},{"node":9}])");
  EXPECT_EQ(found(selector, R"("css":"b","within":[9],"give":["text"])"), R"([{"node":11,"text":"2"}])");
  // In the order of the text, each once, whatever the order of the nodes.
  EXPECT_EQ(found(selector, R"("css":"b","within":[9,5,5,4],"give":["text"])"),
            R"([{"node":7,"text":"1"},{"node":11,"text":"2"}])");
  EXPECT_EQ(found(selector, R"("css":"b","within":[9,5,4],"give":["text"],"most":1)"), R"([{"node":7,"text":"1"}])");
  EXPECT_EQ(found(selector, R"("css":"li","within":[5],"give":["text"])"), R"([{"node":5,"text":"a1"}])");
  EXPECT_EQ(found(selector, R"("xpath":"./following-sibling::li","within":[5],"give":[])"), R"([{"node":9}])");
  EXPECT_EQ(found(selector, R"x("xpath":"string(b)","within":[5,9])x"), R"([{"text":"1"},{"text":"2"}])");
  EXPECT_EQ(found(selector, R"x("xpath":"string(b)","within":[5,9],"most":1)x"), R"([{"text":"1"}])");
  EXPECT_EQ(found(selector, R"("css":"b","within":[])"), "[]");
  EXPECT_EQ(found(selector, R"("xpath":"1","within":[])"), "[]");
  EXPECT_EQ(found(selector, R"("xpath":"/","give":["name"])"), R"([{"node":0,"name":""}])");
  EXPECT_EQ(found(selector, R"("css":"b","within":[0],"give":[],"most":1)"), R"([{"node":7}])");
}

TEST(PageSelectorTest, GivesSoManyMatches) {
  EXPECT_EQ(found_in("<p>a<p>b<p>c", R"("css":"p","most":2,"give":["text"])"),
            R"([{"node":4,"text":"a"},{"node":6,"text":"b"}])");
  EXPECT_EQ(found_in("<p>a<p>b<p>c", R"("xpath":"//p","most":1,"give":["text"])"), R"([{"node":4,"text":"a"}])");
  std::string many;
  for (int i = 0; i < 10'001; ++i) many += "<p>";
  const std::string all = found_in(many, R"("css":"p","give":[])");
  EXPECT_EQ(std::ranges::count(all, '{'), 10'000);
}

TEST(PageSelectorTest, ReadsAnotherDocumentAndLooksWithinItsNodes) {
  PageSelector selector(html_page("<p>page"));
  EXPECT_EQ(found(selector, R"("css":"p","give":["text"])"), R"([{"node":4,"text":"page"}])");
  EXPECT_EQ(found(selector, R"("css":"p","html":"<p>other <a href=x>b</a>","give":["text"])"),
            R"([{"node":10,"text":"other b"}])");
  EXPECT_EQ(found(selector, R"("css":"a","within":[10],"give":["attributes"])"),
            R"([{"node":12,"attributes":{"href":"https://shop.example/en/x"}}])");
  EXPECT_EQ(found(selector, R"("css":"p","give":["text"])"), R"([{"node":4,"text":"page"}])");
  EXPECT_EQ(found(selector, R"("css":"p","within":[0],"give":[])"), R"([{"node":4}])");
  EXPECT_THAT(refusal(selector, R"("css":"p","within":[4,10])").message, HasSubstr("another document"));
}

TEST(PageSelectorTest, ReadsAnotherDocumentFirst) {
  PageSelector selector(html_page("<p>page"));
  EXPECT_EQ(found(selector, R"("css":"p","html":"<p>other","give":[])"), R"([{"node":4}])");
  EXPECT_EQ(found(selector, R"("css":"p","give":["text"])"), R"([{"node":10,"text":"page"}])");
}

TEST(PageSelectorTest, ForgetsTheOldestDocumentsWhereThereIsTooMuch) {
  PageSelector selector(html_page("<p>page"));
  const std::string large = R"("html":")" + std::string(6'000'000, 'x') + R"(<p>y","css":"p","give":[])";
  EXPECT_EQ(found(selector, large), R"([{"node":5}])");
  EXPECT_EQ(found(selector, large), R"([{"node":12}])");
  EXPECT_EQ(found(selector, R"("css":"p","within":[5],"give":[])"), R"([{"node":5}])");
  EXPECT_EQ(found(selector, large), R"([{"node":19}])");
  const Error gone = refusal(selector, R"("css":"p","within":[5])");
  EXPECT_EQ(gone.code, Errc::invalid_input);
  EXPECT_EQ(gone.message, "within 5: there is no such node");
  EXPECT_EQ(found(selector, R"("css":"p","within":[12],"give":[])"), R"([{"node":12}])");
}

TEST(PageSelectorTest, RefusesWhatIsWrong) {
  PageSelector selector(html_page("<p>a"));
  EXPECT_EQ(refusal(selector, R"("css":"p[")").code, Errc::invalid_input);
  EXPECT_EQ(refusal(selector, R"("xpath":"//p[")").code, Errc::invalid_input);
  EXPECT_EQ(refusal(selector, R"("css":")" + std::string(9'000, 'p') + "\"").code, Errc::too_large);
  EXPECT_EQ(refusal(selector, R"("css":"p","most":0)").code, Errc::invalid_input);
  EXPECT_EQ(refusal(selector, R"("css":"p","within":[99])").message, "within 99: there is no such node");
  EXPECT_EQ(refusal(selector, R"("css":"p","within":[18446744073709551615])").code, Errc::invalid_input);
  EXPECT_EQ(refusal(selector, R"("css":"p","within":[5])").code, Errc::invalid_input);  // a text
}

TEST(PageSelectorTest, ReadsXml) {
  PageSelector selector(html_page("<?xml version='1.0'?><feed><Entry><link href='a'/></Entry></feed>",
                                  "https://shop.example/feed/", "application/atom+xml"));
  EXPECT_EQ(found(selector, R"("css":"Entry link","give":["html"])"),
            R"([{"node":3,"html":"<link href=\"https://shop.example/feed/a\"/>"}])");
  EXPECT_EQ(found(selector, R"("xpath":"//b","html":" <?xml version='1.0'?><a><b/></a>","give":["html"])"),
            R"([{"node":6,"html":"<b/>"}])");
  EXPECT_THAT(found(selector, R"("xpath":"//p","html":"<?xml version='1.0'?><html><p>a<p>b","give":["text"])"),
              HasSubstr(R"("text":"b")"));
}

TEST(PageSelectorTest, ReadsPagesInTheirEncoding) {
  PageSelector selector(
      html_page("<a href='?q=\xfc'>\xfc</a>", "https://shop.example/", "text/html; charset=iso-8859-1"));
  EXPECT_EQ(found(selector, R"("css":"a","give":["text","attributes"])"),
            R"([{"node":4,"text":"ü","attributes":{"href":"https://shop.example/?q=%FC"}}])");
}

TEST(PageSelectorTest, ReadsPagesThatAreNone) {
  for (const std::string& body : {std::string(), std::string("\0\xff\xfe\x01", 4), std::string("%PDF-1.4")}) {
    PageSelector selector(html_page(body, "data:,x", ""));
    EXPECT_THAT(found(selector, R"("css":"html","give":["name"])"), StartsWith(R"([{"node":)")) << body;
  }
}

TEST(PageSelectorTest, RefusesAPageThatIsTooLargeEachTime) {
  PageSelector selector(html_page(std::string(10 * 1024 * 1024 + 1, 'x')));
  EXPECT_EQ(refusal(selector, R"("css":"p")").code, Errc::too_large);
  EXPECT_EQ(refusal(selector, R"("css":"p")").code, Errc::too_large);
  EXPECT_EQ(found(selector, R"("css":"p","html":"<p>a","give":["text"])"), R"([{"node":4,"text":"a"}])");
}

std::string nested_page(int levels, std::string_view inside) {
  std::string html;
  for (int i = 0; i < levels; ++i) html += "<div>";
  return html.append(inside);
}

TEST(PageSelectorTest, BoundsWhatItAnswers) {
  PageSelector selector(html_page(nested_page(200, std::string(500'000, 'x'))));
  const Error large = refusal(selector, R"("css":"div")");
  EXPECT_EQ(large.code, Errc::too_large);
  EXPECT_THAT(large.message, HasSubstr("more than 16777216 bytes"));
  EXPECT_THAT(found(selector, R"("css":"div","give":["name","attributes"])"), HasSubstr("\"div\""));
}

TEST(PageSelectorTest, BoundsTheTimeOfTextsThatAreNotThere) {
  PageSelector selector(html_page(nested_page(400, std::string(5'000'000, ' ') + "x")));
  const Error slow = refusal(selector, R"("css":"div")");
  EXPECT_EQ(slow.code, Errc::too_large);
  EXPECT_THAT(slow.message, HasSubstr("take too long"));
}

TEST(PageSelectorTest, BoundsTheTimeOfAllNodesTogether) {
  std::string html, nodes;
  for (int i = 0; i < 10'000; ++i) html += "<p>";
  for (int i = 0; i < 10'000; ++i) nodes += (i > 0 ? "," : "") + std::to_string(4 + i);
  PageSelector selector(html_page(html));
  EXPECT_EQ(found(selector, R"("css":"p","give":[],"most":1)"), R"([{"node":4}])");
  EXPECT_EQ(refusal(selector, "\"xpath\":\"//p\",\"give\":[],\"within\":[" + nodes + "]").code, Errc::too_large);
  EXPECT_EQ(refusal(selector, "\"xpath\":\"../p\",\"give\":[],\"within\":[" + nodes + "]").code, Errc::too_large);
  EXPECT_THAT(found(selector, "\"css\":\"p\",\"give\":[],\"within\":[" + nodes + "]"), HasSubstr("{\"node\":10003}"));
}

TEST(PageSelectorTest, BoundsLinksWithALongBase) {
  std::string html = "<base href='https://shop.example/" + std::string(60'000, 'x') + "/'>";
  for (int i = 0; i < 2'000; ++i) html += "<a href=a>";
  PageSelector selector(html_page(html));
  const Error large = refusal(selector, R"("css":"a")");
  EXPECT_EQ(large.code, Errc::too_large);
  EXPECT_THAT(large.message, HasSubstr("links of more than"));
}

TEST(PageSelectorTest, WorksOnAnotherThread) {
  PageSelector selector(html_page("<p>a"));
  EXPECT_EQ(found(selector, R"("css":"p","give":[])"), R"([{"node":4}])");
  std::string there;
  std::thread([&] { there = found(selector, R"("css":"p","give":["text"])"); }).join();
  EXPECT_EQ(there, R"([{"node":4,"text":"a"}])");
}

// What clients/python asks for response.doc: the root, what is in it, its children.
TEST(PageSelectorTest, AnswersTheQueriesOfThePythonHelper) {
  PageSelector selector(html_page("<title>T</title><ul class=x><li><a href=/1>one</a></li></ul>"));
  EXPECT_EQ(found(selector, R"("xpath":"/*","give":["text","attributes","name"])"),
            R"([{"node":1,"name":"html","text":"one","attributes":{}}])");
  EXPECT_EQ(found(selector, R"("within":[1],"css":"ul > li a","give":["text","attributes","name"])"),
            R"([{"node":8,"name":"a","text":"one","attributes":{"href":"https://shop.example/1"}}])");
  EXPECT_EQ(
      found(selector, R"("within":[8],"xpath":"./ancestor-or-self::*","give":["name"])"),
      R"([{"node":1,"name":"html"},{"node":5,"name":"body"},{"node":6,"name":"ul"},{"node":7,"name":"li"},{"node":8,"name":"a"}])");
  EXPECT_EQ(found(selector, R"("within":[8],"css":"a","give":["name"],"most":1)"), R"([{"node":8,"name":"a"}])");
  EXPECT_EQ(found(selector, R"("within":[8],"xpath":".","give":["inner_html"],"most":1)"),
            R"([{"node":8,"inner_html":"one"}])");
  EXPECT_EQ(found(selector, R"x("within":[8],"xpath":"./node()","give":["text","attributes","name"])x"),
            R"([{"text":"one"}])");
}

}  // namespace
}  // namespace argiope

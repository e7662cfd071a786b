// The forms of a page, and the login step over a server of a test's own: what it sends, when it has worked, and what it
// says when it has not.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "argiope/async/io_backend.hpp"
#include "argiope/web/http_session.hpp"
#include "support/scripted_transport.hpp"
#include "web/html/html_forms.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// "name=value" of what is sent, in its order.
std::string sent_by(std::string_view html, std::size_t form = 0) {
  const HtmlForms found = scan_forms(html);
  if (form >= found.forms.size()) return "no form";
  std::string text;
  for (const FormControl& control : found.forms[form].controls) {
    if (control.is_sent) text += (text.empty() ? "" : " ") + control.name + "=" + control.value;
  }
  return text;
}

TEST(HtmlForms, AreSentAsTheyStand) {
  EXPECT_EQ(sent_by("<FORM action='/in' method=POST><input name=user value=ann><INPUT type=hidden name=csrf "
                    "value='a&amp;b&quot;'><input type=password name=pass></form><input name=outside>"),
            "user=ann csrf=a&b\" pass=");
  const HtmlForms found =
      scan_forms("<base href=/x/><form action='/in?a=b&amp;c' method=PoSt enctype=multipart/form-data>");
  EXPECT_EQ(found.base_href, "/x/");
  EXPECT_EQ(found.forms[0].action, "/in?a=b&c");
  EXPECT_TRUE(found.forms[0].by_post);
  EXPECT_EQ(found.forms[0].encoding, HtmlForm::Encoding::multipart);
}

TEST(HtmlForms, BoxesAreSentWhenTheyAreChecked) {
  EXPECT_EQ(sent_by("<form><input type=checkbox name=a><input type=checkbox name=b checked><input type=radio name=c "
                    "value=1><input type=radio name=c value=2 checked>"),
            "b=on c=2");
}

TEST(HtmlForms, OfAListWhatIsSelectedIsSent) {
  EXPECT_EQ(sent_by("<form><select name=a><option>one &amp; two</option><option value=2>x</select>"), "a=one & two");
  EXPECT_EQ(sent_by("<form><select name=a><option value=1>x<option value=2 selected>y</select>"), "a=2");
  EXPECT_EQ(sent_by("<form><select name=a multiple><option value=1 selected>x<option value=2 selected>y<option>z"),
            "a=1 a=2");
  EXPECT_EQ(sent_by("<form><select name=a><option value=1 disabled>x<option value=2>y</select>"), "a=2");
  EXPECT_EQ(sent_by("<form><select name=a disabled><option>x</select><input name=b value=c>"), "b=c");
}

TEST(HtmlForms, TheFirstButtonIsPressedAndOthersAreNot) {
  EXPECT_EQ(sent_by("<form><button type=button name=x value=1></button><input type=image name=i><input type=file "
                    "name=f><button name=go value=1>Go</button><input type=submit name=other value=2><input "
                    "type=reset name=r>"),
            "go=1");
}

TEST(HtmlForms, WhatIsNoMarkupIsNoForm) {
  EXPECT_EQ(sent_by("<!-- <form><input name=a> --><script>'<form>'</script><title><form></title>"), "no form");
  EXPECT_EQ(sent_by("<form><textarea name=t>\n<input name=no>&lt;</textarea><input name=a value=1 disabled><input "
                    "value=2>"),
            "t=<input name=no><");
  EXPECT_EQ(sent_by("<form><form><input name=a value=1></form>", 1), "no form") << "one in another is none";
  EXPECT_EQ(sent_by("<form><input name=a value=1"), "") << "the page ends inside a tag";
}

TEST(HtmlForms, AreReadAsBrowsersReadTags) {
  EXPECT_EQ(sent_by("<script><!--<script></script><form>--></script>"), "no form") << "a script in a script's comment";
  EXPECT_EQ(sent_by("<svg><form><input name=no></svg><form><input name=a value=1>"), "a=1") << "a picture has none";
  EXPECT_EQ(sent_by("<template><base href=/no/></template><base href=/b/><form action=x><input name=a>"), "a=");
  EXPECT_EQ(sent_by("<form><input name=a value=1></formula><input name=b value=2>"), "a=1 b=2") << "another end tag";
  EXPECT_EQ(sent_by("<form><textarea name=a>1<b>2"), "a=1<b>2") << "nothing ends it";
  EXPECT_EQ(sent_by("<form><select name=a><option>1<option selected>2"), "a=2") << "nor the page its last option";
  EXPECT_EQ(sent_by("<form><input name='a'/value=1><input name=b value='1' value='2'>"), "a=1 b=1");
}

TEST(HtmlForms, AControlMayBelongToAFormElsewhere) {
  EXPECT_EQ(sent_by("<form id=f></form><form><input form=f name=a value=1><input name=b value=2></form>"), "a=1");
  EXPECT_EQ(sent_by("<form id=f></form><form><input form=f name=a value=1><input name=b value=2></form>", 1), "b=2");
}

TEST(HtmlForms, AreBounded) {
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "<form><input name=a></form>";
  EXPECT_EQ(scan_forms(many).forms.size(), kMostForms);
  many = "<form>";
  for (int i = 0; i < 5000; ++i) many += "<input name=a>";
  EXPECT_EQ(scan_forms(many).forms[0].controls.size(), kMostFormControls);
}

// --- the step

constexpr std::string_view kLoginForm =
    "<h1>Welcome</h1><form action='/search'><input name=q></form><form action='session' method=post><input name=user>"
    "<input type=password name=pass><input type=hidden name=csrf value=token-1></form>";

// A site with a form at /login, which lets ann in with her password and its token.
struct LoginSite {
  std::string form{kLoginForm};
  std::string good_body = "user=ann&pass=s%26cret+1&csrf=token-1";
  std::string welcome = "<p>Hello ann</p>";
  std::map<std::string, std::string> more_answers;  // by path: a Location

  void operator()(const HttpRequest& request, HttpResponse& response) {
    response.headers.content_type = "text/html; charset=utf-8";
    const std::string path(request.url.pathname());
    const std::string cookies = ScriptedTransport::field_of(request, "Cookie");
    if (const auto found = more_answers.find(path); found != more_answers.end()) {
      response.status = 302;
      response.headers.location = found->second;
    } else if (path == "/login") {
      response.headers.set_cookie = "before=1; Path=/; HttpOnly";
      response.body = form;
    } else if (path == "/session" && request.method == HttpMethod::post) {
      const bool is_right = request.body == good_body && cookies.contains("before=1") &&
                            ScriptedTransport::field_of(request, "Origin") == "https://e.org" &&
                            ScriptedTransport::field_of(request, "Referer") == "https://e.org/login?x";
      if (is_right) response.headers.set_cookie = "sid=abc; Path=/; Secure";
      response.status = is_right ? 303 : 200;
      response.headers.location = is_right ? "/home" : "";
      response.body = is_right ? "" : "<p>Wrong.</p>" + form;
    } else if (path == "/home") {
      response.status = cookies.contains("sid=abc") ? 200 : 403;
      response.body = welcome;
    } else {
      response.status = 404;
    }
  }
};

struct LoginAt {
  LoginSite site;
  LoginStep step{.page = *Url::parse("https://e.org/login?x"), .fields = {{"user", "ann"}, {"pass", "s&cret 1"}}};
  LoginOptions options;
  VirtualBackend backend;
  EventLoop loop{backend};
  ScriptedTransport transport;
  CookieJar jar;
  HttpSession session{transport, &jar, {}, Random(1)};

  Result<LoginOutcome> run() {
    transport.answer = std::ref(site);
    return loop.run_until_complete(log_in(session, jar, step, options, Random(2)));
  }
  // What is wrong, which never has what was filled in.
  std::string refusal() {
    const auto outcome = run();
    EXPECT_FALSE(outcome);
    const std::string message = outcome ? "" : outcome.error().message;
    EXPECT_FALSE(message.contains("s&cret") || message.contains("s%26cret")) << message;
    return message;
  }
};

TEST(Login, FillsInTheFormWithItsHiddenFieldsAndFollowsWhereItLeads) {
  LoginAt at;
  const auto outcome = at.run();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->page.href(), "https://e.org/home");
  EXPECT_EQ(outcome->cookies, 2u);
  ASSERT_EQ(at.transport.asked.size(), 3u);
  EXPECT_EQ(at.transport.asked[1].method, HttpMethod::post);
  EXPECT_EQ(ScriptedTransport::field_of(at.transport.asked[1], "Content-Type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(at.transport.asked[2].method, HttpMethod::get);
  EXPECT_TRUE(at.transport.asked[2].body.empty());
  EXPECT_EQ(ScriptedTransport::field_of(at.transport.asked[2], "Content-Type"), "");
}

TEST(Login, PausesBetweenItsRequests) {
  LoginAt at;
  at.options.pause = 2s;
  ASSERT_TRUE(at.run());
  EXPECT_EQ(at.transport.asked_at[1] - at.transport.asked_at[0], 2s);
  EXPECT_EQ(at.transport.asked_at[2] - at.transport.asked_at[1], 2s);
}

TEST(Login, AWrongPasswordIsToldByTheFormThatComesAgain) {
  LoginAt at;
  at.step.fields[1].second = "guess";
  EXPECT_EQ(
      at.refusal(),
      "login at https://e.org/login: https://e.org/session asks for it again: what was filled in is wrong, or not "
      "all that it wants");
}

TEST(Login, AFieldThatIsNotThereIsToldWithThoseThatAre) {
  LoginAt at;
  at.step.fields[1].first = "password";
  EXPECT_EQ(
      at.refusal(),
      "login at https://e.org/login: no form of https://e.org/login has \"user\", \"password\"; those that are there "
      "have [q] [user, pass, csrf]");
  at.site.form = "<div id=app></div>";
  EXPECT_TRUE(at.refusal().contains("has no form; one made by scripts cannot be filled in"));
}

TEST(Login, MayBeToldHowToKnowThatItHasWorked) {
  LoginAt at;
  at.step.expected_text = "Hello ann";
  at.step.expected_cookie = "sid";
  EXPECT_TRUE(at.run());
  at.step.expected_text = "Hello bob";
  EXPECT_EQ(at.refusal(),
            "login at https://e.org/login: https://e.org/home, which came of it, does not have the text \"Hello bob\"");
  at.step.expected_text.clear();
  at.step.expected_cookie = "other";
  EXPECT_EQ(at.refusal(), "login at https://e.org/login: there is no cookie \"other\"");
}

TEST(Login, WithoutACookieNothingHasCome) {
  LoginAt at;
  at.transport.answer = nullptr;
  at.site.form = "<form action='https://f.org/in' method=post><input name=user><input name=pass></form>";
  at.site.more_answers["/in"] = "https://g.org/home";
  at.site.welcome = "";
  EXPECT_TRUE(at.refusal().contains("g.org/home answered HTTP 403"));
}

TEST(Login, AnErrorOfTheServerIsOne) {
  LoginAt at;
  at.step.page = *Url::parse("https://e.org/nowhere?secret");
  EXPECT_EQ(at.refusal(), "login at https://e.org/nowhere: https://e.org/nowhere answered HTTP 404");
  at.site.more_answers["/nowhere"] = "/nowhere";
  EXPECT_TRUE(at.refusal().contains("more than 10 redirects"));
  at.site.more_answers["/nowhere"] = "mailto:ann@e.org";
  EXPECT_TRUE(at.refusal().contains("a redirect leads to what is no http URL"));
}

TEST(Login, NeverSendsInTheClearWhatCameOverTls) {
  LoginAt at;
  at.site.form = "<form action='http://e.org/session' method=post><input name=user><input name=pass></form>";
  EXPECT_TRUE(at.refusal().contains("the form would be sent in the clear, to http://e.org"));
  EXPECT_EQ(at.transport.asked.size(), 1u);
  at.site.form = "<form action='/early' method=post><input name=user><input name=pass></form>";
  at.transport.asked.clear();
  at.transport.answer = nullptr;
  LoginSite site = at.site;
  const auto answer = [site](const HttpRequest& request, HttpResponse& response) mutable {
    site(request, response);
    if (request.url.pathname() != "/early") return;
    response.status = 307;
    response.headers.location = "http://e.org/session";
  };
  at.transport.answer = answer;
  const auto outcome = at.loop.run_until_complete(log_in(at.session, at.jar, at.step, at.options, Random(2)));
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.error().message.contains("a redirect would send the form in the clear"))
      << outcome.error().message;
  EXPECT_EQ(at.transport.asked.size(), 2u);
}

TEST(Login, WritesInTheEncodingOfThePage) {
  LoginAt at;
  at.step.fields = {{"user", "J\xc3\xb6rg"}, {"pass", "100% \xe2\x82\xac"}};
  at.site.form =
      "<meta charset=iso-8859-1><form action=session method=post><input name=user><input type=password name=pass>";
  const auto answer = [site = at.site](const HttpRequest& request, HttpResponse& response) mutable {
    site(request, response);
    response.headers.content_type = "text/html";
  };
  at.transport.answer = answer;
  (void)at.loop.run_until_complete(log_in(at.session, at.jar, at.step, at.options, Random(2)));
  ASSERT_EQ(at.transport.asked.size(), 2u);
  EXPECT_EQ(at.transport.asked[1].body, "user=J%F6rg&pass=100%25+%80") << "windows-1252, as browsers read that label";
}

TEST(Login, SendsFormsByGetAndInParts) {
  LoginAt at;
  at.site.form = "<form action='/session?old=1#x'><input name=user><input name=pass><input name=a value='b c'>";
  (void)at.run();
  EXPECT_EQ(at.transport.asked[1].url.href(), "https://e.org/session?user=ann&pass=s%26cret+1&a=b+c");
  at.transport.asked.clear();
  at.site.form = "<form action=session method=post enctype=multipart/form-data><input name='us\"er'><input name=pass>";
  at.step.fields[0].first = "us\"er";
  (void)at.run();
  const HttpRequest& posted = at.transport.asked[1];
  const std::string type = ScriptedTransport::field_of(posted, "Content-Type");
  ASSERT_TRUE(type.starts_with("multipart/form-data; boundary="));
  const std::string boundary = type.substr(type.find('=') + 1);
  EXPECT_EQ(posted.body, "--" + boundary + "\r\nContent-Disposition: form-data; name=\"us%22er\"\r\n\r\nann\r\n--" +
                             boundary + "\r\nContent-Disposition: form-data; name=\"pass\"\r\n\r\ns&cret 1\r\n--" +
                             boundary + "--\r\n");
}

TEST(Login, GoesThroughHttpAuthenticationToo) {
  LoginAt at;
  HttpSession guarded(at.transport, &at.jar, {.credentials = {{"https://e.org", "staff", "door"}}}, Random(1));
  at.transport.answer = [site = at.site](const HttpRequest& request, HttpResponse& response) mutable {
    if (ScriptedTransport::field_of(request, "Authorization").empty()) {
      response.status = 401;
      response.headers.authenticate = "Basic realm=x";
    } else {
      site(request, response);
    }
  };
  EXPECT_TRUE(at.loop.run_until_complete(log_in(guarded, at.jar, at.step, at.options, Random(2))));
}

}  // namespace
}  // namespace argiope

// HTTP authentication: challenges taken apart, the answers of RFC 7616 and RFC 7617, .netrc, and whom a session
// answers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "argiope/async/io_backend.hpp"
#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/http_session.hpp"
#include "base/internal/base64.hpp"
#include "support/scripted_transport.hpp"
#include "web/http/internal/digest_auth.hpp"
#include "web/http/internal/http_challenge.hpp"

namespace argiope {
namespace {

// "basic realm=x charset=UTF-8 | negotiate (token)"
std::string told(std::string_view fields) {
  std::string text;
  for (const HttpChallenge& challenge : parse_challenges(fields)) {
    if (!text.empty()) text += " | ";
    text += challenge.scheme;
    if (!challenge.token.empty()) text += " (" + challenge.token + ")";
    for (const auto& [name, value] : challenge.parameters) text += " " + name + "=" + value;
  }
  return text;
}

// RFC 9110, 11.6.1
TEST(Challenges, SeveralMayStandInOneFieldOrInSeveral) {
  EXPECT_EQ(told("Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\""),
            "basic realm=simple | newauth realm=apps type=1 title=Login to \"apps\"");
  EXPECT_EQ(told("Newauth realm=\"apps\"\nBasic realm=\"simple\""), "newauth realm=apps | basic realm=simple");
  EXPECT_EQ(told("Negotiate, NTLM, Basic realm=\"a, b\""), "negotiate | ntlm | basic realm=a, b");
}

TEST(Challenges, ATokenIsToldFromParameters) {
  EXPECT_EQ(told("Negotiate YIIB/+==, Basic realm=x"), "negotiate (YIIB/+==) | basic realm=x");
  EXPECT_EQ(told("Foo a=b, Bar a = b ,, Baz"), "foo a=b | bar a=b | baz");
  EXPECT_EQ(told("Foo abc=, Bar"), "foo (abc=) | bar");
}

TEST(Challenges, WhatIsMalformedHarmsNoOther) {
  EXPECT_EQ(told(""), "");
  EXPECT_EQ(told(", ,"), "");
  EXPECT_EQ(told("realm=\"lost\", Basic realm=\"x\""), "basic realm=x");
  EXPECT_EQ(told("Basic realm=\"no end"), "basic realm=no end");
  EXPECT_EQ(told("Basic realm=\"ends with \\"), "basic realm=ends with \\");
  EXPECT_EQ(told("Basic realm=x y=z"), "basic realm=x y=z") << "commas are forgotten";
  EXPECT_EQ(told("=\"\" @@ Basic realm=x"), "basic realm=x");
  EXPECT_EQ(told("Basic realm=a, REALM=b"), "basic realm=a") << "the first of a name counts";
}

TEST(Challenges, AreBoundedInNumber) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "Basic realm=\"x\", ";
  EXPECT_EQ(parse_challenges(many).size(), kMostChallenges);
  many = "Digest ";
  for (int i = 0; i < 1000; ++i) many += "a" + std::to_string(i) + "=b, ";
  EXPECT_EQ(parse_challenges(many)[0].parameters.size(), kMostChallengeParameters);
}

std::optional<DigestChallenge> digest_of(std::string_view field) {
  const auto challenges = parse_challenges(field);
  return challenges.empty() ? std::nullopt : parse_digest(challenges[0]);
}
std::string digest_answer(std::string_view field, const DigestInput& input) {
  const auto challenge = digest_of(field);
  return challenge ? answer_digest(*challenge, input) : "";
}
// What stands in quotes behind `name`.
std::string quoted_value(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + "=\"");
  if (at == std::string::npos) return "";
  const std::size_t start = at + name.size() + 2;
  return text.substr(start, text.find('"', start) - start);
}

constexpr std::string_view kMufasa =
    "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", "
    "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
const DigestInput kMufasaInput{.name = "Mufasa",
                               .password = "Circle of Life",
                               .method = "GET",
                               .target = "/dir/index.html",
                               .cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"};
std::string mufasa(std::string_view algorithm) {
  const std::string field = "Digest " + std::string(kMufasa) + ", algorithm=" + std::string(algorithm);
  return quoted_value(digest_answer(field, kMufasaInput), "response");
}

TEST(Rfc7616, Section391TheExampleWithMd5AndSha256) {
  EXPECT_EQ(mufasa("MD5"), "8ca523f5e9506fed4657c9700eebdbec");
  EXPECT_EQ(mufasa("SHA-256"), "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1");
  const std::string answer = digest_answer("Digest " + std::string(kMufasa) + ", algorithm=MD5", kMufasaInput);
  EXPECT_EQ(answer,
            "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", "
            "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", "
            "response=\"8ca523f5e9506fed4657c9700eebdbec\", algorithm=MD5, qop=auth, nc=00000001, "
            "cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\", "
            "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"");
}

// The values are those of the RFC's erratum 4897: its own were computed with another hash.
TEST(Rfc7616, Section392TheExampleWithSha512256CharsetAndUserhash) {
  const std::string challenge =
      "Digest realm=\"api@example.org\", qop=\"auth\", algorithm=SHA-512-256, "
      "nonce=\"5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK\", "
      "opaque=\"HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS\", charset=UTF-8";
  const DigestInput input{.name = "J\xc3\xa4s\xc3\xb8n Doe",
                          .password = "Secret, or not?",
                          .method = "GET",
                          .target = "/doe.json",
                          .cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"};
  const std::string answer = digest_answer(challenge + ", userhash=true", input);
  EXPECT_EQ(quoted_value(answer, "username"), "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b");
  EXPECT_EQ(quoted_value(answer, "response"), "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5");
  EXPECT_TRUE(answer.ends_with(", userhash=true"));
  EXPECT_TRUE(digest_answer(challenge, input).contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe,"));
}

// Computed apart, with Python's hashlib.
TEST(Rfc7616, SessionVariantsMixNonceAndCnonceIntoTheSecret) {
  EXPECT_EQ(mufasa("MD5-sess"), "e783283f46242139c486a698fec7211d");
  EXPECT_EQ(mufasa("sha-256-SESS"), "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7");
  EXPECT_EQ(mufasa("SHA-512-256"), "430d05014cecc49cab6fbe03176d41a1da86cbfe24a16580e22aaad928d960d0");
  EXPECT_EQ(mufasa("SHA-512-256-sess"), "3f2a34f923c38b0fb26dce2fdfc2ce326c23cecf86fbb1444f3e51fbbc2cb92e");
}

TEST(Rfc7616, WithAuthIntTheBodyCounts) {
  DigestInput input = kMufasaInput;
  input.method = "POST";
  input.body = "a=b";
  const std::string answer = digest_answer(
      "Digest realm=\"http-auth@example.org\", qop=auth-int, "
      "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\"",
      input);
  EXPECT_EQ(quoted_value(answer, "response"), "e4ac3c00299d523b5391298c4f855c18");
  EXPECT_TRUE(answer.contains("qop=auth-int"));
}

TEST(Rfc7616, WithoutQopTheAnswerIsThatOfRfc2069) {
  const DigestInput input{
      .name = "Mufasa", .password = "Circle Of Life", .method = "GET", .target = "/dir/index.html", .cnonce = "x"};
  const std::string answer =
      digest_answer("Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"", input);
  EXPECT_EQ(quoted_value(answer, "response"), "670fd8c2df070c60b045671b8b24ff02");
  EXPECT_FALSE(answer.contains("nc=") || answer.contains("algorithm="));
}

TEST(Rfc7616, WhatNobodyKnowsIsNotAnswered) {
  EXPECT_FALSE(digest_of("Digest realm=x, nonce=y, algorithm=SHA-1"));
  EXPECT_FALSE(digest_of("Digest realm=x, nonce=y, qop=\"auth-conf\""));
  EXPECT_FALSE(digest_of("Digest realm=x"));
  EXPECT_FALSE(digest_of("Digest nonce=y"));
  EXPECT_TRUE(digest_of("Digest realm=\"\", nonce=\"\", qop=\"\""));
}

TEST(Rfc7616, QuotesInNamesAreEscaped) {
  const DigestInput input{.name = "DOMAIN\\an\"n", .password = "p", .method = "GET", .target = "/", .cnonce = "c"};
  EXPECT_TRUE(digest_answer("Digest realm=\"a \\\"b\\\"\", nonce=y", input)
                  .contains("username=\"DOMAIN\\\\an\\\"n\", realm=\"a \\\"b\\\"\""));
}

// --- a session

// Requests through a session, one after the other.
struct SessionWith {
  explicit SessionWith(std::vector<HttpCredentials> credentials, std::vector<HeaderFor> headers = {})
      : session(transport, &jar, {std::move(credentials), std::move(headers)}, Random(1)) {}

  // The answer's status, as the caller gets it.
  int get(std::string_view url) {
    HttpRequest request;
    request.url = *Url::parse(url);
    auto body = [&]() -> Coro<void> {
      const Result<void> sent = co_await session.send(request, response);
      EXPECT_TRUE(sent);
    };
    loop.run_until_complete(body());
    return response.status;
  }
  // The same, asked again for as long as that makes sense.
  int get_patiently(std::string_view url) {
    for (int attempts = 1;; ++attempts) {
      const int status = get(url);
      if (response.challenged != HttpChallenged::again || attempts == 10) return status;
    }
  }
  std::string sent() const { return transport.field("Authorization"); }

  VirtualBackend backend;
  EventLoop loop{backend};
  ScriptedTransport transport;
  CookieJar jar;
  HttpSession session;
  HttpResponse response;
};

const HttpCredentials kAnn{.where = "https://e.org", .name = "ann", .password = "secret"};
const std::string kAnnBasic = "Basic " + to_base64("ann:secret");

// Lets in who says `value`, and asks others with `challenge`.
auto guard(std::string challenge, std::string value = kAnnBasic) {
  return [=](const HttpRequest& request, HttpResponse& response) {
    if (ScriptedTransport::field_of(request, "Authorization") == value) return;
    response.status = 401;
    response.headers.authenticate = challenge;
  };
}

// RFC 7617, 2
TEST(HttpSession, AnswersABasicChallengeWhenItIsAskedAgain) {
  SessionWith with({kAnn});
  with.transport.answer = guard("Basic realm=\"x\"");
  EXPECT_EQ(with.get("https://e.org/docs/a.html"), 401);
  EXPECT_EQ(with.sent(), "") << "nobody has asked for it yet";
  EXPECT_EQ(with.response.challenged, HttpChallenged::again);
  EXPECT_EQ(with.get("https://e.org/docs/a.html"), 200);
  EXPECT_EQ(with.sent(), kAnnBasic);
}

// RFC 7617, 2.2
TEST(HttpSession, SendsItUnaskedBelowTheFolderThatAskedForIt) {
  SessionWith with({kAnn});
  with.transport.answer = guard("Basic realm=\"x\"");
  with.get_patiently("https://e.org/docs/a.html");
  with.transport.answer = nullptr;
  for (const auto& [url, value] : {std::pair{"https://e.org/docs/", kAnnBasic},
                                   {"https://e.org/docs/b/c.html?q", kAnnBasic},
                                   {"https://e.org/", std::string()},
                                   {"https://e.org/other/", std::string()}}) {
    with.get(url);
    EXPECT_EQ(with.sent(), value) << url;
  }
}

TEST(HttpSession, SendsNothingToAnotherHostPortOrScheme) {
  SessionWith with({kAnn});
  with.transport.answer = guard("Basic realm=\"x\"");
  with.get_patiently("https://e.org/");
  for (const char* url : {"https://f.org/", "https://www.e.org/", "https://e.org:8443/", "http://e.org/"}) {
    EXPECT_EQ(with.get_patiently(url), 401) << url;
    EXPECT_EQ(with.sent(), "") << url;
  }
}

TEST(HttpSession, DoesNotSendTwiceWhatWasRefused) {
  SessionWith with({kAnn});
  with.transport.answer = guard("Basic realm=\"x\"", "Basic other");
  EXPECT_EQ(with.get_patiently("https://e.org/a"), 401);
  EXPECT_EQ(with.response.challenged, HttpChallenged::refused);
  EXPECT_EQ(with.transport.asked.size(), 2u);
  EXPECT_EQ(with.get_patiently("https://e.org/b"), 401);
  EXPECT_EQ(with.sent(), "") << "it might lock the account";
  EXPECT_EQ(with.response.challenged, HttpChallenged::none) << "and is told once";
}

TEST(HttpSession, ThatSomethingIsNotForUsLeavesTheRest) {
  SessionWith with({kAnn});
  with.transport.answer = guard("Basic realm=\"x\"");
  with.get_patiently("https://e.org/a");
  with.transport.answer = guard("Basic realm=\"x\"", "Basic admin");
  EXPECT_EQ(with.get_patiently("https://e.org/admin"), 401);
  EXPECT_EQ(with.response.challenged, HttpChallenged::none);
  with.transport.answer = guard("Basic realm=\"x\"");
  EXPECT_EQ(with.get("https://e.org/b"), 200);
}

TEST(HttpSession, KnowsWhatGoesAsAHeaderAlready) {
  HttpCredentials ann = kAnn;
  ann.goes_as_basic = true;
  SessionWith with({ann});
  with.transport.answer = guard("Basic realm=\"x\"", "Basic other");
  EXPECT_EQ(with.get("https://e.org/a"), 401);
  EXPECT_EQ(with.response.challenged, HttpChallenged::refused);
  with.transport.answer = guard("Digest realm=\"y\", nonce=\"n\", qop=\"auth\"", "never");
  with.get("https://e.org/b");
  EXPECT_EQ(with.response.challenged, HttpChallenged::again) << "which digest is not";
  with.transport.answer = guard("Basic realm=\"x\"");
  EXPECT_EQ(with.get("https://e.org/c/d"), 401) << "for the digest of the whole server has taken its place";
  EXPECT_EQ(with.response.challenged, HttpChallenged::again);
  EXPECT_EQ(with.get("https://e.org/c/d"), 200);
}

TEST(HttpSession, ChoosesTheStrongestOfWhatIsOffered) {
  SessionWith with({kAnn});
  with.transport.answer = guard(
      "Negotiate\nBasic realm=\"x\"\nDigest realm=\"x\", nonce=\"n\", qop=\"auth\", algorithm=MD5\n"
      "Digest realm=\"x\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256\nDigest realm=\"x\", algorithm=XYZ, nonce=n");
  with.get("https://e.org/");
  with.get("https://e.org/");
  EXPECT_TRUE(with.sent().contains("algorithm=SHA-256")) << with.sent();
  with.transport.answer = guard("Negotiate", "never");
  with.get("https://e.org/");
  EXPECT_EQ(with.response.challenged, HttpChallenged::none) << "what cannot be answered is left alone";
}

// A server of digest: its nonce is valid for some requests, and counts must grow.
struct DigestServer {
  std::string realm = "r";
  std::string parameters;  // of challenges, behind realm and nonce
  int uses = 1000;         // of a nonce
  bool says_stale = true;
  int nonce = 1;
  std::uint64_t last_count = 0;
  std::vector<std::string> seen;

  void operator()(const HttpRequest& request, HttpResponse& response) {
    const std::string field = ScriptedTransport::field_of(request, "Authorization");
    seen.push_back(field);
    const bool is_ours = quoted_value(field, "nonce") == "n" + std::to_string(nonce);
    if (!field.empty() && is_right(request, field)) {
      const std::size_t at = field.find("nc=");
      const std::uint64_t count = std::stoull(field.substr(at + 3, 8), nullptr, 16);
      if (is_ours && count > last_count && static_cast<int>(count) <= uses) {
        last_count = count;
        return;
      }
    }
    if (!field.empty() && is_ours) {
      ++nonce;
      last_count = 0;
    }
    response.status = 401;
    response.headers.authenticate = "Digest realm=\"" + realm + "\", nonce=\"n" + std::to_string(nonce) +
                                    "\", qop=\"auth\"" + parameters +
                                    (!field.empty() && says_stale && is_right(request, field) ? ", stale=true" : "");
  }

  bool is_right(const HttpRequest& request, const std::string& field) const {
    const auto hash = [](const std::string& text) { return digest_hex(DigestHash::md5, text); };
    const std::size_t at = field.find("nc=");
    if (at == std::string::npos) return false;
    const std::string expected =
        hash(hash("ann:" + realm + ":secret") + ":" + quoted_value(field, "nonce") + ":" + field.substr(at + 3, 8) +
             ":" + quoted_value(field, "cnonce") + ":auth:" + hash("GET:" + std::string(request.url.path_and_query())));
    return quoted_value(field, "response") == expected && quoted_value(field, "uri") == request.url.path_and_query();
  }
};

TEST(HttpSession, CountsWithEachRequestThatANonceServes) {
  SessionWith with({kAnn});
  DigestServer server;
  with.transport.answer = std::ref(server);
  for (const char* url : {"https://e.org/a", "https://e.org/b?c=d", "https://e.org/x/y"}) {
    EXPECT_EQ(with.get_patiently(url), 200) << url;
  }
  ASSERT_EQ(server.seen.size(), 4u) << "one challenge is enough for all of the server";
  EXPECT_TRUE(server.seen[1].contains("nc=00000001"));
  EXPECT_TRUE(server.seen[3].contains("nc=00000003"));
}

TEST(HttpSession, TakesANewNonceWhereTheOldOneHasGrownStale) {
  for (const bool says_stale : {true, false}) {
    SessionWith with({kAnn});
    DigestServer server{.uses = 2, .says_stale = says_stale};
    with.transport.answer = std::ref(server);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(with.get_patiently("https://e.org/" + std::to_string(i)), 200) << i;
    EXPECT_EQ(server.seen.size(), 1u + 7 + 3) << "one more for the first challenge, and for each nonce";
  }
}

TEST(HttpSession, GivesUpAServerWhoseNoncesAreAlwaysStale) {
  SessionWith with({kAnn});
  DigestServer server{.uses = 0};
  with.transport.answer = std::ref(server);
  EXPECT_EQ(with.get_patiently("https://e.org/"), 401);
  EXPECT_EQ(with.response.challenged, HttpChallenged::refused);
  EXPECT_LE(server.seen.size(), 5u);
}

TEST(HttpSession, AWrongDigestPasswordIsSentOnce) {
  HttpCredentials wrong = kAnn;
  wrong.password = "guess";
  SessionWith with({wrong});
  DigestServer server;
  with.transport.answer = std::ref(server);
  EXPECT_EQ(with.get_patiently("https://e.org/"), 401);
  EXPECT_EQ(with.response.challenged, HttpChallenged::refused);
  EXPECT_EQ(server.seen.size(), 2u);
}

// RFC 7616, 3.3
TEST(HttpSession, KeepsToTheDomainOfADigestChallenge) {
  SessionWith with({kAnn});
  DigestServer server{.parameters = ", domain=\"/members https://f.org/ /more/\""};
  with.transport.answer = std::ref(server);
  with.get_patiently("https://e.org/members/a");
  with.transport.answer = nullptr;
  for (const auto& [url, is_sent] : {std::pair{"https://e.org/members/b", true},
                                     {"https://e.org/more/c", true},
                                     {"https://e.org/", false},
                                     {"https://f.org/", false}}) {
    with.get(url);
    EXPECT_EQ(!with.sent().empty(), is_sent) << url;
  }
}

TEST(HttpSession, SendsTheJarsCookiesAndKeepsWhatAnswersSet) {
  SessionWith with({});
  with.transport.answer = [](const HttpRequest&, HttpResponse& response) {
    response.headers.set_cookie = "a=1; Path=/\nb=2; Path=/";
  };
  with.get("https://e.org/");
  EXPECT_TRUE(with.response.new_cookies);
  EXPECT_EQ(with.transport.field("Cookie"), "");
  with.get("https://e.org/");
  EXPECT_FALSE(with.response.new_cookies) << "they were known";
  EXPECT_EQ(with.transport.field("Cookie"), "a=1; b=2");
  with.get("https://f.org/");
  EXPECT_EQ(with.transport.field("Cookie"), "");
}

TEST(HttpSession, JoinsTheCookiesThatWereGivenWithTheJars) {
  SessionWith with({}, {{"e.org", "Cookie", "a=mine; c=3"}, {"f.org", "Cookie", "d=4"}});
  for (const char* field : {"a=1", "b=2"})
    with.jar.take(*Url::parse("https://e.org/"), field, with.backend.clock().wall_now());
  with.get("https://e.org/");
  EXPECT_EQ(with.transport.field("Cookie"), "a=mine; c=3; b=2") << "in one field, and what was given counts";
  with.get("https://f.org/");
  EXPECT_EQ(with.transport.field("Cookie"), "") << "where the jar has none the transport sends its own";
}

TEST(HttpSession, LeavesFieldsOfTheRequestAsTheyAre) {
  SessionWith with({kAnn});
  with.jar.take(*Url::parse("https://e.org/"), "a=1", with.backend.clock().wall_now());
  with.transport.answer = guard("Basic realm=x", "never");
  HttpRequest request;
  request.url = *Url::parse("https://e.org/");
  request.headers = {{"cookie", "mine=1"}, {"authorization", "Bearer x"}};
  auto body = [&]() -> Coro<void> {
    const Result<void> sent = co_await with.session.send(request, with.response);
    EXPECT_TRUE(sent);
  };
  with.loop.run_until_complete(body());
  EXPECT_EQ(with.transport.asked.back().headers, request.headers);
  EXPECT_EQ(with.response.challenged, HttpChallenged::none);
}

// --- .netrc

TEST(Netrc, HasANameAndAPasswordForEachMachine) {
  const auto entries = parse_netrc(
      "# a comment\n"
      "machine example.org login ann password secret\n"
      "machine B\xc3\xbc"
      "cher.example\n\tlogin \"bob b\"\n\tpassword \"a \\\"b\\\" \\\\ \\t#c\" account x\n"
      "macdef init\ncd /pub\nmachine of.a.macro login x\n\n"
      "machine example.org login second password other\n"
      "machine no.name password x\n"
      "machine hash.org login #ann password #secret # and a comment\n"
      "default login anonymous password me@example.org\n");
  ASSERT_TRUE(entries) << entries.error().message;
  const std::vector<NetrcEntry> expected = {{"example.org", "ann", "secret"},
                                            {"xn--bcher-kva.example", "bob b", "a \"b\" \\ \t#c"},
                                            {"hash.org", "#ann", "#secret"},
                                            {"", "anonymous", "me@example.org"}};
  EXPECT_EQ(*entries, expected);
  EXPECT_TRUE(parse_netrc("")->empty());
}

TEST(Netrc, SaysWhichLineIsWrongAndNeverWhatItHolds) {
  const auto refusal = [](std::string_view text) {
    const auto entries = parse_netrc(text);
    EXPECT_FALSE(entries) << text;
    return entries ? "" : entries.error().message;
  };
  EXPECT_TRUE(refusal("machine e.org\nlogin ann password my secret").starts_with("line 2: a word that is none of"));
  EXPECT_TRUE(refusal("machine e.org login ann password \"secret\n").starts_with("line 1: a double quote has no end"));
  EXPECT_TRUE(refusal("login ann").starts_with("line 1: login before any machine"));
  EXPECT_TRUE(refusal("machine e.org:8080 login ann").starts_with("line 1: what follows machine is no host"));
  EXPECT_TRUE(refusal("machine e.org login").contains("the file ends behind login"));
  EXPECT_TRUE(refusal("machine").contains("the file ends behind machine"));
  for (const char* text : {"machine e.org password my secret", "secret", "machine e.org/secret login a"}) {
    EXPECT_FALSE(refusal(text).contains("secret"));
  }
}

}  // namespace
}  // namespace argiope

// Who is let through the gate, and what the others are answered.
#include "serve/gate/gate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "argiope/async/asio_backend.hpp"
#include "serve/gate/bad_tokens.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "support/http_server_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

Token token(std::string name, std::string_view words, TokenScope scope) {
  return {.name = std::move(name),
          .digest = to_hex(digest_of_token(words)),
          .scope = scope,
          .prefixes = {},
          .expires_at = {}};
}

struct Asked {
  HttpMethod method = HttpMethod::get;
  std::string host = "127.0.0.1:7733";
  std::string token;
  std::string peer = "192.0.2.7:50312";
  std::string origin = "";
  std::string site = "";
  std::string mode = "";
  std::string dest = "";
  std::optional<std::uint32_t> user;
  std::string cookie = "";
  std::string change = "";
  std::string second_token = "";
};

// The request holds views into `asked`.
ServerRequest request_of(const Asked& asked) {
  ServerRequest request;
  request.method = asked.method;
  request.host = asked.host;
  request.peer = asked.peer;
  request.peer_user = asked.user;
  if (!asked.token.empty()) request.headers.emplace_back("authorization", asked.token);
  if (!asked.second_token.empty()) request.headers.emplace_back("authorization", asked.second_token);
  if (!asked.origin.empty()) request.headers.emplace_back("origin", asked.origin);
  if (!asked.cookie.empty()) request.headers.emplace_back("cookie", asked.cookie);
  if (!asked.change.empty()) request.headers.emplace_back("x-argiope", asked.change);
  if (!asked.site.empty()) request.headers.emplace_back("sec-fetch-site", asked.site);
  if (!asked.mode.empty()) request.headers.emplace_back("sec-fetch-mode", asked.mode);
  if (!asked.dest.empty()) request.headers.emplace_back("sec-fetch-dest", asked.dest);
  return request;
}

class GateTest : public ::testing::Test {
 protected:
  std::expected<Caller, Problem> admit(const Asked& asked, TokenScope needed = TokenScope::read) {
    return gate.admit(request_of(asked), needed);
  }
  // "ok", or the type of the problem.
  std::string said(const Asked& asked, TokenScope needed = TokenScope::read) {
    const auto caller = admit(asked, needed);
    return caller ? "ok" : std::string(to_string(caller.error().type));
  }
  void with_tokens() {
    options.tokens = {token("looker", "look", TokenScope::read), token("worker", "work", TokenScope::work),
                      token("boss", "all", TokenScope::admin)};
    gate.set(options);
  }

  ManualClock clock;
  GateOptions options;
  Gate gate{{}, clock};
};

TEST(TokenDigest, IsTheSha256OfTheWords) {
  EXPECT_EQ(to_hex(digest_of_token("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(parse_token_digest("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            digest_of_token("abc"));
  EXPECT_FALSE(parse_token_digest("ba78"));
  EXPECT_FALSE(parse_token_digest(std::string(64, 'g')));
}

TEST_F(GateTest, WithoutTokensEveryoneIsLocalAndMayDoEverything) {
  const auto caller = admit({}, TokenScope::admin);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "local");
  EXPECT_TRUE(caller->may_use("anything"));
}

TEST_F(GateTest, WhenTheLastTokenIsTakenOutNobodyIsLetInButUsersOfTheMachine) {
  options.needs_token = true;
  options.users = {1000};
  with_tokens();
  EXPECT_EQ(said({.token = "Bearer all"}, TokenScope::admin), "ok");
  options.tokens.clear();
  gate.set(options);
  EXPECT_EQ(said({.token = "Bearer all"}), "unauthorized");
  EXPECT_EQ(said({}), "unauthorized");
  EXPECT_EQ(said({}, TokenScope::none), "ok");
  EXPECT_EQ(said({.user = 1000}, TokenScope::admin), "ok");
  EXPECT_FALSE(gate.open_session(request_of({.method = HttpMethod::post}), "all"));
}

TEST_F(GateTest, ATokenMayDoWhatItsScopeAllowsAndWhatTheLesserOnesDo) {
  with_tokens();
  EXPECT_EQ(said({.token = "Bearer look"}, TokenScope::read), "ok");
  EXPECT_EQ(said({.token = "Bearer look"}, TokenScope::work), "forbidden");
  EXPECT_EQ(said({.token = "bearer  work "}, TokenScope::work), "ok");
  EXPECT_EQ(said({.token = "Bearer work"}, TokenScope::admin), "forbidden");
  EXPECT_EQ(said({.token = "Bearer all"}, TokenScope::admin), "ok");
  EXPECT_EQ(admit({.token = "Bearer all"})->name, "boss");
  EXPECT_EQ(gate.refusals().scope, 2u);
}

TEST_F(GateTest, WhoHasNoTokenOrAnUnknownOneIsUnauthorized) {
  with_tokens();
  EXPECT_EQ(said({}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer "}), "unauthorized");
  EXPECT_EQ(said({.token = "Basic look"}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer Look"}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer " + to_hex(digest_of_token("look"))}), "unauthorized") << "the digest is no token";
  EXPECT_EQ(said({.token = "Bearer " + std::string(kMostTokenBytes + 1, 'x')}), "unauthorized");
  EXPECT_EQ(gate.refusals().token, 6u);
}

TEST_F(GateTest, ToldWhoseARequestIsItNamesWhomItWouldLetInAndCountsNothing) {
  EXPECT_EQ(gate.name_of(request_of({})), admit({})->name);
  options.users = {1000};
  with_tokens();
  const auto opened = gate.open_session(request_of({.method = HttpMethod::post}), "work");
  const Asked known[] = {{.token = "Bearer look"},
                         {.token = "Bearer all", .user = 1000},
                         {.user = 1000},
                         {.cookie = "argiope_session=" + opened->cookie}};
  for (const Asked& asked : known) EXPECT_EQ(gate.name_of(request_of(asked)), admit(asked)->name);
  const Asked strangers[] = {{}, {.token = "Bearer no"}, {.user = 1001}, {.cookie = "argiope_session=no"}};
  for (const Asked& asked : strangers) EXPECT_EQ(gate.name_of(request_of(asked)), "");
  EXPECT_EQ(gate.refusals().token, 0u);
}

TEST_F(GateTest, WhoSendsTwoTokensIsRefusedWhateverTheyAre) {
  EXPECT_EQ(said({.token = "Bearer look", .second_token = "Bearer all"}), "invalid_input");
  with_tokens();
  EXPECT_EQ(said({.token = "Bearer look", .second_token = "Bearer all"}), "invalid_input");
  EXPECT_EQ(said({.token = "Bearer look", .second_token = "Bearer look"}), "invalid_input");
  EXPECT_EQ(said({.token = "Basic x", .second_token = "Bearer look"}), "invalid_input");
  EXPECT_EQ(said({.token = "Bearer look"}), "ok");
}

TEST_F(GateTest, NoAnswerRepeatsAToken) {
  with_tokens();
  const auto refused = admit({.token = "Bearer secret-of-another-service"});
  EXPECT_EQ(answer(refused.error()).body.find("secret"), std::string::npos);
}

TEST_F(GateTest, HealthIsToldToAnyoneWhateverHostHeAsksFor) {
  with_tokens();
  EXPECT_EQ(said({.host = "evil.example"}, TokenScope::none), "ok");
  EXPECT_EQ(said({.token = "Bearer nonsense"}, TokenScope::none), "ok");
}

TEST_F(GateTest, ATokenEndsWhenItExpires) {
  options.tokens = {token("ci", "words", TokenScope::read)};
  options.tokens[0].expires_at = clock.wall_now() + 1h;
  gate.set(options);
  EXPECT_EQ(said({.token = "Bearer words"}), "ok");
  clock.advance(1h);
  const auto refused = admit({.token = "Bearer words"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "the token \"ci\" expired at 2026-01-01T01:00:00Z");
}

TEST_F(GateTest, ATokenThatIsTakenOutIsUnknownAtOnce) {
  with_tokens();
  EXPECT_EQ(said({.token = "Bearer look"}), "ok");
  options.tokens.erase(options.tokens.begin());
  gate.set(options);
  EXPECT_EQ(said({.token = "Bearer look"}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer work"}), "ok");
}

TEST_F(GateTest, ATokenWhoseDigestIsNoneMatchesNothingAndOpensNothing) {
  options.tokens = {{.name = "typo", .digest = "abc", .scope = TokenScope::admin, .prefixes = {}, .expires_at = {}}};
  gate.set(options);
  EXPECT_EQ(said({}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer abc"}), "unauthorized");
}

TEST_F(GateTest, PrefixesBoundWhatACallerMaySee) {
  options.tokens = {token("team", "words", TokenScope::work)};
  options.tokens[0].prefixes = {"mail", "sms/"};
  gate.set(options);
  const auto caller = admit({.token = "Bearer words"});
  ASSERT_TRUE(caller);
  EXPECT_TRUE(caller->may_use("mail"));
  EXPECT_TRUE(caller->may_use("mail-bulk"));
  EXPECT_TRUE(caller->may_use("sms/de"));
  EXPECT_FALSE(caller->may_use("sms"));
  EXPECT_FALSE(caller->may_use("billing"));
}

TEST_F(GateTest, OnlyOurNamesAndAddressesAreAskedFor) {
  options.hosts = {"jobs.example", "other.example:8080", "10.0.0.1"};
  gate.set(options);
  for (const char* host : {"localhost", "LOCALHOST:1", "localhost.", "app.localhost:7733", "127.0.0.1", "127.9.9.9:80",
                           "[::1]", "[::1]:7733", "192.168.1.5:7733", "[fd00::1]:7733", "", "jobs.example",
                           "Jobs.Example.:99", "other.example:8080"}) {
    EXPECT_EQ(said({.host = host}), "ok") << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "notlocalhost", ".localhost", "other.example", "other.example:80",
        "x.jobs.example", "jobs.example:80x", "::1", "[::1", "[::1]x", "[127.0.0.1]", "127.0.0.1.evil.example", "127.1",
        "[]", ":80", "jobs.example:80:80", "user@localhost", "localhost/"}) {
    EXPECT_EQ(said({.host = host}), "forbidden") << host;
  }
}

TEST_F(GateTest, APageOfAnotherOriginMayAskForNothing) {
  const auto post = [](std::string origin, std::string site) {
    return Asked{
        .method = HttpMethod::post, .host = "localhost:7733", .origin = std::move(origin), .site = std::move(site)};
  };
  EXPECT_EQ(said(post("", "")), "ok") << "a program";
  EXPECT_EQ(said(post("http://localhost:7733", "")), "ok");
  EXPECT_EQ(said(post("http://localhost:7733", "same-origin")), "ok");
  EXPECT_EQ(said(post("", "none")), "ok") << "typed by the user";
  for (const char* origin : {"http://evil.example", "http://localhost:80", "https://localhost", "null",
                             "localhost:7733", "http://localhost:7733.evil.example", "ftp://localhost:7733"}) {
    EXPECT_EQ(said(post(origin, "")), "forbidden") << origin;
  }
  for (const char* site : {"cross-site", "same-site", "nonsense"}) EXPECT_EQ(said(post("", site)), "forbidden") << site;
  EXPECT_EQ(said(post("http://localhost:7733", "cross-site")), "forbidden");
}

TEST_F(GateTest, APageOfAnotherOriginMayNotEvenWithAToken) {
  with_tokens();
  for (const HttpMethod method : {HttpMethod::post, HttpMethod::put, HttpMethod::patch, HttpMethod::delete_}) {
    EXPECT_EQ(said({.method = method, .token = "Bearer all", .origin = "http://evil.example"}), "forbidden");
  }
  EXPECT_EQ(said({.token = "Bearer all", .origin = "http://evil.example"}), "forbidden");
}

// It could not read the answer, but it would keep a stream of events from others.
TEST_F(GateTest, APageOfAnotherOriginOpensNoStreamAndALinkOnItMayBeFollowed) {
  EXPECT_EQ(said({.origin = "http://evil.example"}), "forbidden");
  EXPECT_EQ(said({.site = "cross-site"}), "forbidden") << "as of <img> and no-cors";
  EXPECT_EQ(said({.site = "same-origin"}), "ok");
  EXPECT_EQ(said({.site = "none"}), "ok");
  EXPECT_EQ(said({.site = "cross-site", .mode = "navigate", .dest = "document"}), "ok");
  EXPECT_EQ(said({.site = "cross-site", .mode = "navigate", .dest = "iframe"}), "forbidden");
  EXPECT_EQ(said({.method = HttpMethod::post, .site = "cross-site", .mode = "navigate", .dest = "document"}),
            "forbidden");
}

TEST_F(GateTest, AnOriginThatIsConfiguredMaySendChanges) {
  options.origins = {"https://jobs.example"};
  gate.set(options);
  EXPECT_EQ(said({.method = HttpMethod::post, .origin = "https://jobs.example", .site = "cross-site"}), "ok");
  EXPECT_EQ(said({.method = HttpMethod::post, .origin = "http://jobs.example", .site = "cross-site"}), "forbidden");
}

TEST_F(GateTest, TheUsualPortOfAnOriginNeedNotBeSaid) {
  options.hosts = {"jobs.example"};
  gate.set(options);
  EXPECT_EQ(said({.method = HttpMethod::post, .host = "jobs.example", .origin = "https://jobs.example"}), "ok");
  EXPECT_EQ(said({.method = HttpMethod::post, .host = "jobs.example:443", .origin = "https://jobs.example"}), "ok");
  EXPECT_EQ(said({.method = HttpMethod::post, .host = "jobs.example:80", .origin = "https://jobs.example"}),
            "forbidden");
}

TEST_F(GateTest, AUserOfTheMachineNeedsNoTokenAtAUnixSocket) {
  with_tokens();
  EXPECT_EQ(said({.peer = "", .user = 1000}), "unauthorized");
  options.users = {0, 1000};
  gate.set(options);
  const auto caller = admit({.peer = "", .user = 1000}, TokenScope::admin);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "uid 1000");
  EXPECT_EQ(said({.peer = "", .user = 1001}), "unauthorized");
  EXPECT_EQ(said({.peer = ""}), "unauthorized") << "a client without a name is not one of a Unix socket";
  EXPECT_EQ(said({.token = "Bearer look", .peer = "", .user = 1000}, TokenScope::admin), "forbidden")
      << "a token counts if it is sent";
}

TEST_F(GateTest, WhoTriesManyBadTokensHasToWait) {
  with_tokens();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(said({.token = fmt::format("Bearer guess{}", i)}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer guess"}), "too_many");
  EXPECT_EQ(said({.token = "Bearer guess", .peer = "192.0.2.7:1"}), "too_many") << "from another port";
  EXPECT_EQ(said({.token = "Bearer guess", .peer = "192.0.2.8:1"}), "unauthorized") << "from elsewhere";
  clock.advance(1s);
  EXPECT_EQ(said({.token = "Bearer guess"}), "unauthorized");
  EXPECT_EQ(gate.refusals().flood, 2u);
}

TEST_F(GateTest, AGoodTokenIsLetThroughAFloodOfBadOnesFromItsAddress) {
  with_tokens();
  for (int i = 0; i < 100; ++i) said({.token = fmt::format("Bearer guess{}", i)});
  EXPECT_EQ(said({.token = "Bearer look"}), "ok") << "though this address has not used it before";
  EXPECT_TRUE(gate.open_session(request_of({.method = HttpMethod::post}), "work"));
}

// --- how long a right holds

TEST_F(GateTest, ARightEndsWithItsTokenAndThatOfOthersGoesOn) {
  with_tokens();
  const auto of_looker = admit({.token = "Bearer look"})->right, of_worker = admit({.token = "Bearer work"})->right;
  gate.set(options);
  EXPECT_TRUE(of_looker->holds()) << "the same tokens were read again";
  options.tokens.erase(options.tokens.begin());
  gate.set(options);
  EXPECT_FALSE(of_looker->holds());
  EXPECT_TRUE(of_worker->holds());
  options.tokens[0].prefixes = {"mail"};
  gate.set(options);
  EXPECT_FALSE(of_worker->holds()) << "it may less now";
}

TEST_F(GateTest, ARightEndsWhenItsTokenExpiresAlsoWhereTheWallClockJumps) {
  options.tokens = {token("ci", "words", TokenScope::read)};
  options.tokens[0].expires_at = clock.wall_now() + 1h;
  gate.set(options);
  const auto right = admit({.token = "Bearer words"})->right;
  clock.advance(59min);
  EXPECT_TRUE(right->holds());
  clock.set_wall(clock.wall_now() + 2min);
  EXPECT_FALSE(right->holds());
}

TEST_F(GateTest, TheRightOfEveryoneEndsWhenThereAreTokens) {
  const auto right = admit({})->right;
  gate.set(options);
  EXPECT_TRUE(right->holds());
  with_tokens();
  EXPECT_FALSE(right->holds());
}

TEST_F(GateTest, ARightEndsWithItsSession) {
  with_tokens();
  const auto open = [&] {
    return "argiope_session=" + gate.open_session(request_of({.method = HttpMethod::post}), "work")->cookie;
  };
  const std::string first = open(), second = open();
  const auto right_of = [&](const std::string& cookie) { return admit({.cookie = cookie})->right; };
  const auto of_first = right_of(first), of_second = right_of(second);
  EXPECT_TRUE(gate.close_session(request_of({.method = HttpMethod::delete_, .cookie = first})));
  EXPECT_FALSE(of_first->holds());
  EXPECT_TRUE(of_second->holds());
  clock.advance(kSessionLength);
  EXPECT_FALSE(of_second->holds());
  const auto of_third = right_of(open());
  EXPECT_TRUE(of_third->holds());
  options.tokens.erase(options.tokens.begin() + 1);
  gate.set(options);
  EXPECT_FALSE(of_third->holds());
}

TEST(BadTokens, AddressesAreCountedByWhoCanHaveThem) {
  EXPECT_EQ(source_of("192.0.2.7:50312").to_string(), "192.0.2.7");
  EXPECT_EQ(source_of("[::ffff:192.0.2.7]:50312").to_string(), "192.0.2.7");
  EXPECT_EQ(source_of("[2001:db8:1:2:3:4:5:6]:80"), source_of("[2001:db8:1:2::9]:81"));
  EXPECT_NE(source_of("[2001:db8:1:2::9]:80"), source_of("[2001:db8:1:3::9]:80"));
  EXPECT_EQ(source_of("[fe80::1%eth0]:80").to_string(), "fe80::");
  EXPECT_EQ(source_of(""), IpAddress{});
}

TEST(BadTokens, MemoryIsBoundedAndCalmAddressesAreForgotten) {
  BadTokens bad;
  ManualClock clock;
  const auto source = [](std::uint32_t i) {
    return IpAddress::v4(
        {10, static_cast<std::uint8_t>(i >> 16), static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)});
  };
  for (std::uint32_t i = 0; i < 100'000; ++i) bad.note(source(i), clock.now());
  EXPECT_LE(bad.size(), 4096u);
  EXPECT_FALSE(bad.is_barred(source(99'999), clock.now()));
  clock.advance(1min);
  bad.note(source(99'999), clock.now());
  EXPECT_EQ(bad.size(), 1u);
}

// The kernel says who is at the other end of a Unix socket, and says nothing of the kind of others.
class PeerUserTest : public HttpServerTest {};

TEST_F(PeerUserTest, IsKnownOfAUnixSocketAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s");
  std::vector<std::optional<std::uint32_t>> users;
  const HttpHandler note = [&](ServerRequest& request) -> Coro<ServerResponse> {
    users.push_back(request.peer_user);
    co_return ServerResponse::text(200, "");
  };
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        server.listen_unix(path);
        co_await talk(last("/"));
        Stream stream = co_await open_unix_connection(path);
        stream.write(get("/") + last("/"));
        co_await read_rest(stream);
      },
      note);
  EXPECT_EQ(users, (std::vector<std::optional<std::uint32_t>>{std::nullopt, ::getuid(), ::getuid()}));
}

// --- sessions

class SessionTest : public GateTest {
 protected:
  SessionTest() { with_tokens(); }
  // The cookie of a session, as a browser sends it.
  std::string open(std::string_view words, const Asked& asked = {.method = HttpMethod::post}) {
    const auto opened = gate.open_session(request_of(asked), words);
    return opened ? "a=b; argiope_session=" + opened->cookie + "; c=d" : std::string(to_string(opened.error().type));
  }
};

TEST_F(SessionTest, ACookieMayWhatItsTokenMay) {
  const std::string cookie = open("work");
  const auto caller = admit({.cookie = cookie}, TokenScope::work);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "worker");
  EXPECT_EQ(caller->by, KnownBy::session);
  EXPECT_EQ(said({.cookie = cookie}, TokenScope::admin), "forbidden");
  EXPECT_EQ(said({.cookie = "argiope_session=" + std::string(64, 'a')}), "unauthorized");
  EXPECT_EQ(said({.token = "Bearer nonsense", .cookie = cookie}), "unauthorized") << "a token goes before";
}

TEST_F(SessionTest, AChangeByCookieNeedsAHeaderThatNoOtherPageCanSend) {
  const std::string cookie = open("work");
  EXPECT_EQ(said({.method = HttpMethod::post, .cookie = cookie}), "forbidden");
  EXPECT_EQ(said({.method = HttpMethod::delete_, .cookie = cookie}), "forbidden");
  EXPECT_EQ(said({.method = HttpMethod::post, .cookie = cookie, .change = "1"}), "ok");
  EXPECT_EQ(said({.method = HttpMethod::post, .origin = "https://evil.example", .cookie = cookie, .change = "1"}),
            "forbidden");
  EXPECT_EQ(said({.method = HttpMethod::post, .site = "same-site", .cookie = cookie, .change = "1"}), "forbidden");
}

TEST_F(SessionTest, NobodyButWhoHasATokenOpensOneAndNoOtherPageDoes) {
  EXPECT_EQ(open("nonsense"), "unauthorized");
  EXPECT_EQ(open(""), "unauthorized");
  EXPECT_EQ(open("work", {.method = HttpMethod::post, .origin = "https://evil.example"}), "forbidden");
  EXPECT_EQ(open("work", {.method = HttpMethod::post, .host = "evil.example"}), "forbidden");
  for (int i = 0; i < 30; ++i) (void)open("nonsense");
  EXPECT_EQ(open("nonsense"), "too_many");
}

TEST_F(SessionTest, OneEndsWhenItIsClosedAndWhenItsTimeOrItsTokenIs) {
  const std::string closed = open("work");
  EXPECT_FALSE(gate.close_session(
      request_of({.method = HttpMethod::delete_, .origin = "https://evil.example", .cookie = closed})));
  EXPECT_EQ(said({.cookie = closed}), "ok");
  EXPECT_TRUE(gate.close_session(request_of({.method = HttpMethod::delete_, .cookie = closed})));
  EXPECT_EQ(said({.cookie = closed}), "unauthorized");

  const std::string old = open("work");
  clock.advance(kSessionLength);
  EXPECT_EQ(said({.cookie = old}), "unauthorized");

  const std::string of_worker = open("work");
  const std::string of_looker = open("look");
  options.tokens.erase(options.tokens.begin() + 1);
  gate.set(options);
  EXPECT_EQ(said({.cookie = of_worker}), "unauthorized");
  EXPECT_EQ(said({.cookie = of_looker}), "ok");
}

TEST_F(SessionTest, ANewOneTakesTheOldOnesPlace) {
  const std::string first = open("look");
  const std::string second = open("work", {.method = HttpMethod::post, .cookie = first});
  EXPECT_EQ(said({.cookie = first}), "unauthorized");
  EXPECT_EQ(said({.cookie = second}), "ok");
}

TEST(Sessions, EachTokenHasAShareAndTheNewestOfItsOwnStay) {
  ManualClock clock;
  Sessions sessions(SessionSecret{}, clock);
  const TokenDigest greedy{1}, other{2};
  const std::string of_other = sessions.open(other, {});
  const std::string first = sessions.open(greedy, {});
  clock.advance(1s);
  std::string last;
  for (std::size_t i = 0; i < Sessions::kMostOfAToken; ++i) last = sessions.open(greedy, {});
  EXPECT_EQ(sessions.size(), Sessions::kMostOfAToken + 1);
  EXPECT_EQ(sessions.find(first), nullptr);
  EXPECT_NE(sessions.find(last), nullptr);
  EXPECT_NE(sessions.find(of_other), nullptr);
}

TEST(Sessions, ABoundedNumberIsOpenAndWhoHasTheMostLosesOne) {
  ManualClock clock;
  Sessions sessions(SessionSecret{}, clock);
  const std::string of_one = sessions.open({}, {});
  for (std::uint8_t token = 1; token <= 11; ++token) {
    for (std::size_t i = 0; i < Sessions::kMostOfAToken - 1; ++i) sessions.open({token}, {});
  }
  EXPECT_EQ(sessions.size(), Sessions::kMostSessions);
  EXPECT_NE(sessions.find(of_one), nullptr);
}

TEST_F(GateTest, LetsScriptsThatABoundAdminMayWriteSendOnlyWhereThatOneMayChangeProjects) {
  Token mine = token("mine", "m", TokenScope::admin), worker = token("worker", "w", TokenScope::work);
  mine.prefixes = {"mine.", "ours."};
  worker.prefixes = {"theirs."};
  options.tokens = {mine, worker, token("boss", "b", TokenScope::admin)};
  gate.set(options);
  const auto may_send = gate.messages();
  EXPECT_TRUE(may_send("mine.p", "mine.q"));
  EXPECT_TRUE(may_send("mine.p", "ours.q"));
  EXPECT_FALSE(may_send("mine.p", "theirs.q"));
  EXPECT_FALSE(may_send("mine.p", "q"));
  EXPECT_TRUE(may_send("theirs.p", "mine.q")) << "a token that looks and works writes no scripts";
  EXPECT_TRUE(may_send("p", "mine.q")) << "only a token of all projects may have written that";
  mine.expires_at = WallTime{std::chrono::seconds{1}};
  options.tokens = {mine, worker};
  gate.set(options);
  EXPECT_FALSE(gate.messages()("mine.p", "theirs.q")) << "it has expired, and what it has written is there";
  options.tokens = {worker};
  gate.set(options);
  EXPECT_FALSE(gate.messages()) << "nobody is bound who may write scripts";
  EXPECT_FALSE(may_send("mine.p", "theirs.q")) << "what was asked for before stays";
}

TEST(Caller, FillsNoQueueOfTheDaemonsOwnAndChangesItAsAnAdminOfAllAlone) {
  const Caller reader{.name = "r", .scope = TokenScope::read}, worker{.name = "w", .scope = TokenScope::work};
  const Caller admin{.name = "a", .scope = TokenScope::admin};
  const Caller bound{.name = "b", .scope = TokenScope::admin, .prefixes = {"argiope", "argiope.notify.", "mail"}};
  const std::string own = "argiope.notify.ops";
  for (const Caller* caller : {&reader, &worker, &admin, &bound}) {
    EXPECT_FALSE(caller->may_fill(own)) << caller->name;
    EXPECT_TRUE(caller->why_not_put(own, "")) << caller->name;
    EXPECT_EQ(caller->may_use(own), caller != &bound) << caller->name;
    EXPECT_EQ(caller->may_change(own), caller == &admin) << caller->name;
    EXPECT_TRUE(caller->may_fill("mail")) << caller->name;
  }
  EXPECT_TRUE(bound.may_fill("argiope")) << "a name like others";
  EXPECT_FALSE(bound.may_use("mail.nightly", "sms")) << "a schedule whose jobs go elsewhere";
  EXPECT_FALSE(admin.why_not_put("mail", "command"));
  EXPECT_TRUE(bound.why_not_put("mail", "command")) << "what takes every right";
  EXPECT_EQ(admin.reach(), nullptr);
  EXPECT_FALSE((*worker.reach())(own));
  EXPECT_TRUE((*worker.reach())("sms"));
  EXPECT_FALSE((*bound.reach())("sms"));
}

}  // namespace
}  // namespace argiope

// The session of a page in a browser.
#include "serve/api_fixture.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "serve/gate/sessions.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ApiSession : public ApiTest {
 protected:
  void open_with_a_token() {
    open({}, {},
         {.tokens = {{.name = "ops",
                      .digest = to_hex(digest_of_token("words")),
                      .scope = TokenScope::work,
                      .prefixes = {"mail"}}}});
  }
  // "argiope_session=…" of an answer.
  static std::string cookie_of(const Answered& answered) {
    const std::string field = answered.header("Set-Cookie");
    return field.substr(0, field.find(';'));
  }
};

TEST_F(ApiSession, ATokenIsGivenForACookieThatNoScriptReads) {
  open_with_a_token();
  const Answered opened = post("/v1/session", R"({"token":"words"})");
  EXPECT_EQ(opened.status, 200);
  EXPECT_EQ(opened.body, "{\"name\":\"ops\",\"scope\":\"work\",\"prefixes\":[\"mail\"],\"by\":\"session\"}\n");
  EXPECT_EQ(opened.header("Cache-Control"), "no-store");
  EXPECT_THAT(opened.header("Set-Cookie"), HasSubstr("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(opened.header("Set-Cookie"), Not(HasSubstr("Secure")));
  EXPECT_THAT(opened.header("Set-Cookie"), Not(HasSubstr("words")));
  const std::string cookie = cookie_of(opened);
  EXPECT_EQ(ask(HttpMethod::get, "/v1/session", "", {{"Cookie", cookie}}).body, opened.body);
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Cookie", cookie}}).problem(), "forbidden");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Cookie", cookie}, {kChangeHeader, "1"}}).status,
            201);
}

TEST_F(ApiSession, ItEndsWithACookieThatIsEmpty) {
  open_with_a_token();
  const std::string cookie = cookie_of(post("/v1/session", R"({"token":"words"})"));
  const Answered closed = ask(HttpMethod::delete_, "/v1/session", "", {{"Cookie", cookie}});
  EXPECT_EQ(closed.status, 204);
  EXPECT_THAT(closed.header("Set-Cookie"), HasSubstr("argiope_session=; Path=/; Max-Age=0;"));
  EXPECT_EQ(ask(HttpMethod::get, "/v1/session", "", {{"Cookie", cookie}}).problem(), "unauthorized");
  EXPECT_EQ(erase("/v1/session").status, 204);
}

TEST_F(ApiSession, WhatIsWrongGetsNoCookie) {
  open_with_a_token();
  for (const char* body : {R"({"token":"other"})", R"({"token":1})", R"({"tokn":"words"})", "{}", "x"}) {
    const Answered refused = post("/v1/session", body);
    EXPECT_NE(refused.problem(), "") << body;
    EXPECT_EQ(refused.header("Set-Cookie"), "") << body;
  }
}

TEST_F(ApiSession, AnIdempotencyKeyKeepsNoCookieForOthers) {
  open_with_a_token();
  const Fields key{{"Idempotency-Key", "k"}};
  const Answered first = ask(HttpMethod::post, "/v1/session", R"({"token":"words"})", key);
  const Answered second = ask(HttpMethod::post, "/v1/session", R"({"token":"words"})", key);
  EXPECT_NE(cookie_of(first), cookie_of(second));
}

TEST_F(ApiSession, BehindTlsTheCookieGoesNoOtherWay) {
  open_with_a_token();
  const Answered opened = ask(HttpMethod::post, "/v1/session", R"({"token":"words"})",
                              {{"Origin", "https://localhost"}, {"Sec-Fetch-Site", "same-origin"}});
  EXPECT_THAT(opened.header("Set-Cookie"), HasSubstr("; Secure"));
}

TEST_F(ApiSession, WithoutTokensThereIsNoneAndThePageIsTold) {
  const Answered opened = post("/v1/session");
  EXPECT_EQ(opened.body, "{\"name\":\"local\",\"scope\":\"admin\",\"prefixes\":[],\"by\":\"nothing\"}\n");
  EXPECT_EQ(opened.header("Set-Cookie"), "");
  EXPECT_EQ(get("/v1/session").body, opened.body);
}

}  // namespace
}  // namespace argiope

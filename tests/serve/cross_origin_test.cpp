// Pages of other origins: which may read answers, and what a browser is told that asks before it sends.
#include "serve/gate/cross_origin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/header_of.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

Coro<ServerResponse> say_hello(ServerRequest&) { co_return ServerResponse::text(201, "hello"); }

class CrossOriginTest : public LoopTest<VirtualTime> {
 protected:
  ServerResponse ask(HttpMethod method, std::string_view origin, bool is_preflight = false) {
    ServerRequest request;
    request.method = method;
    if (!origin.empty()) request.headers.emplace_back("origin", origin);
    if (is_preflight) request.headers.emplace_back("access-control-request-method", "POST");
    return loop.run_until_complete(handler(request));
  }

  HttpHandler handler = with_origins(say_hello, {"https://shop.example"});
};

TEST_F(CrossOriginTest, APageOfAConfiguredOriginMayReadTheAnswer) {
  for (const std::string_view origin : {"https://shop.example", "HTTPS://Shop.example"}) {
    const ServerResponse response = ask(HttpMethod::post, origin);
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(header_of(response, "Access-Control-Allow-Origin"), origin);
    EXPECT_EQ(header_of(response, "Vary"), "Origin");
    EXPECT_EQ(header_of(response, "Access-Control-Allow-Credentials"), "");
  }
}

TEST_F(CrossOriginTest, ABrowserThatAsksFirstIsToldWhatItMaySend) {
  const ServerResponse response = ask(HttpMethod::options, "https://shop.example", true);
  EXPECT_EQ(response.status, 204);
  EXPECT_NE(header_of(response, "Access-Control-Allow-Methods").find("PATCH"), std::string_view::npos);
  for (const std::string_view name : {"Authorization", "Content-Type", "Idempotency-Key"}) {
    EXPECT_NE(header_of(response, "Access-Control-Allow-Headers").find(name), std::string_view::npos) << name;
  }
}

TEST_F(CrossOriginTest, OthersAreAnsweredAsIfNothingWereConfigured) {
  for (const std::string_view origin :
       {"", "null", "http://shop.example", "https://shop.example:8443", "https://shop.example.evil"}) {
    for (const bool is_preflight : {false, true}) {
      const ServerResponse response = ask(HttpMethod::options, origin, is_preflight);
      EXPECT_EQ(response.status, 201) << origin;
      EXPECT_EQ(header_of(response, "Access-Control-Allow-Origin"), "") << origin;
    }
  }
}

TEST_F(CrossOriginTest, WhoOnlyAsksWhatIsAllowedReachesTheHandler) {
  EXPECT_EQ(ask(HttpMethod::options, "https://shop.example").status, 201);
}

}  // namespace
}  // namespace argiope

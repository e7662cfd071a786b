#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "argiope/web/http_server.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

class HttpRouterTest : public OnVirtualLoop {
 protected:
  HttpRouter router;

  // Answers with `name` and what the pattern's parts matched.
  static HttpHandler named(std::string name) {
    return [name](ServerRequest& request) -> Coro<ServerResponse> {
      std::string text = name;
      for (const auto& [part, value] : request.path_values) text += ' ' + part + '=' + value;
      co_return ServerResponse::text(200, text);
    };
  }
  ServerResponse ask(HttpMethod method, std::string_view target) {
    ServerRequest request;
    request.method = method;
    request.set_target(target);
    return loop_.run_until_complete(router(request));
  }
  std::string get(std::string_view target) {
    const ServerResponse response = ask(HttpMethod::get, target);
    return response.status == 200 ? response.body : std::to_string(response.status);
  }
};

TEST_F(HttpRouterTest, ChoosesByPath) {
  router.get("/", named("root"));
  router.get("/orders", named("orders"));
  router.get("/orders/", named("orders slash"));
  router.get("/orders/{id}", named("order"));
  router.get("/orders/{id}/items/{item}", named("item"));
  EXPECT_EQ(get("/"), "root");
  EXPECT_EQ(get("/orders"), "orders");
  EXPECT_EQ(get("/orders?page=2"), "orders");
  EXPECT_EQ(get("/orders/"), "orders slash");
  EXPECT_EQ(get("/orders/7"), "order id=7");
  EXPECT_EQ(get("/orders/7/items/b"), "item id=7 item=b");
  for (const char* nowhere :
       {"/order", "/orders/7/", "/orders/7/items", "/orders//items/b", "//", "/orders/7/items/b/c", "*", "/ORDERS"}) {
    EXPECT_EQ(get(nowhere), "404") << nowhere;
  }
}

TEST_F(HttpRouterTest, PutsWrittenPartsBeforeThoseInBracesAndGoesBackWhereTheyLeadNowhere) {
  router.get("/{a}/x", named("any x"));
  router.get("/one/{b}", named("one any"));
  router.get("/one/two", named("one two"));
  router.get("/one/two/three", named("three"));
  router.get("/{a}/two/four", named("four"));
  router.get("/{rest...}", named("rest"));
  EXPECT_EQ(get("/one/two"), "one two");
  EXPECT_EQ(get("/one/x"), "one any b=x");
  EXPECT_EQ(get("/two/x"), "any x a=two");
  EXPECT_EQ(get("/one/two/four"), "four a=one");
  EXPECT_EQ(get("/one/two/five"), "rest rest=one/two/five");
}

TEST_F(HttpRouterTest, DecodesEachPartByItself) {
  router.get("/files/{name}", named("file"));
  router.get("/a b/c", named("spaced"));
  router.get("/tree/{path...}", named("tree"));
  EXPECT_EQ(get("/files/a%2Fb%20c+d%zz"), "file name=a/b c+d%zz");
  EXPECT_EQ(get("/a%20b/c"), "spaced");
  EXPECT_EQ(get("/%66iles/x"), "file name=x");
  EXPECT_EQ(get("/tree/a/b%20c"), "tree path=a/b c");
  EXPECT_EQ(get("/tree/"), "tree path=");
  EXPECT_EQ(get("/tree"), "404");
}

TEST_F(HttpRouterTest, SaysWhichMethodsThereAre) {
  router.get("/orders/{id}", named("get"));
  router.delete_("/orders/{order}", named("delete"));
  const ServerResponse refused = ask(HttpMethod::put, "/orders/7");
  EXPECT_EQ(refused.status, 405);
  EXPECT_THAT(refused.headers, ::testing::Contains(::testing::Pair("Allow", "GET, HEAD, DELETE, OPTIONS")));
  EXPECT_THAT(refused.body, HasSubstr("PUT is not allowed here"));
  const ServerResponse options = ask(HttpMethod::options, "/orders/7");
  EXPECT_EQ(options.status, 204);
  EXPECT_THAT(options.headers, ::testing::Contains(::testing::Pair("Allow", "GET, HEAD, DELETE, OPTIONS")));
  EXPECT_EQ(ask(HttpMethod::head, "/orders/7").body, "get id=7");
  EXPECT_EQ(ask(HttpMethod::delete_, "/orders/7").body, "delete order=7");
}

TEST_F(HttpRouterTest, RefusesRoutesThatCannotBe) {
  router.get("/a/{x}", named("one"));
  EXPECT_THROW(router.get("/a/{y}", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("a", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("/{}", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("/{...}", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("/{x}/{x}", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("/{x...}/b", named("two")), std::invalid_argument);
  EXPECT_THROW(router.get("/b", HttpHandler{}), std::invalid_argument);
  EXPECT_EQ(get("/a/1"), "one x=1");
}

TEST_F(HttpRouterTest, RefusesAsItIsTold) {
  router.get("/a", named("one"));
  router.refuse_by([](const ServerRequest& request, int status, std::string_view) {
    return ServerResponse::text(status, std::string(request.path) + " is none of ours");
  });
  EXPECT_EQ(ask(HttpMethod::get, "/b").body, "/b is none of ours");
  const ServerResponse other = ask(HttpMethod::put, "/a");
  EXPECT_EQ(other.status, 405);
  EXPECT_EQ(other.body, "/a is none of ours");
  EXPECT_THAT(other.headers, ::testing::Contains(::testing::Pair("Allow", "GET, HEAD, OPTIONS")));
  EXPECT_EQ(ask(HttpMethod::options, "*").status, 204);
}

TEST_F(HttpRouterTest, GivesPartsAsNumbers) {
  std::optional<std::uint64_t> number;
  router.get("/orders/{id}", [&](ServerRequest& request) -> Coro<ServerResponse> {
    number = request.path_number("id");
    EXPECT_EQ(request.path_number("other"), std::nullopt);
    co_return ServerResponse{};
  });
  const auto number_of = [&](const std::string& text) {
    get("/orders/" + text);
    return number;
  };
  EXPECT_EQ(number_of("7"), 7u);
  EXPECT_EQ(number_of("007"), 7u);
  EXPECT_EQ(number_of("18446744073709551615"), 18446744073709551615u);
  for (const char* none : {"18446744073709551616", "-1", "+1", "7a", "a", "%20", "0x7"}) {
    EXPECT_EQ(number_of(none), std::nullopt) << none;
  }
}

TEST(ServerResponse, TellsAProblemWithMoreHeaders) {
  const ServerResponse full = ServerResponse::problem(503, "say \"when\"", {{"Retry-After", "1"}});
  EXPECT_THAT(full.headers, ::testing::ElementsAre(::testing::Pair("Content-Type", "application/problem+json"),
                                                   ::testing::Pair("Retry-After", "1")));
  EXPECT_EQ(full.body, R"({"type":"about:blank","title":"Service Unavailable","status":503,"detail":"say \"when\""})"
                       "\n");
}

TEST_F(HttpRouterTest, PassesOnWhatItsHandlersThrow) {
  router.get("/", [](ServerRequest&) -> Coro<ServerResponse> {
    throw std::runtime_error("no");
    co_return ServerResponse{};
  });
  EXPECT_THROW(get("/"), std::runtime_error);
}

}  // namespace
}  // namespace argiope

// What an ApiClient does when its daemon refuses, is away, or is none.
#include "remote/internal/api_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "serve/base/problem.hpp"
#include "support/loop_fixture.hpp"
#include "support/router_transport.hpp"

namespace argiope {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Loss = RouterTransport::Loss;

class ApiClientTest : public OnVirtualLoop {
 protected:
  ApiClientTest() {
    const auto count = [this](ServerRequest& request) -> Coro<ServerResponse> {
      ++effects_;
      keys_.emplace_back(request.header("Idempotency-Key"));
      tokens_.emplace_back(request.header("Authorization"));
      co_return ServerResponse::json(200, "{}");
    };
    router_.get("/v1/here", count);
    router_.post("/v1/here", count);
    router_.get("/v1/refused", [](ServerRequest&) -> Coro<ServerResponse> {
      co_return answer(Problem{ProblemType::locked, "queue \"mail\": the configuration file decides", {}});
    });
    router_.get("/v1/drains", [this](ServerRequest&) -> Coro<ServerResponse> {
      if (++drains_ > 2) co_return ServerResponse::json(200, "{}");
      co_return answer(Problem{ProblemType::draining, "the daemon is stopping", {}});
    });
    router_.get("/v1/other", [](ServerRequest&) -> Coro<ServerResponse> { co_return ServerResponse::text(404, "?"); });
  }

  void open(ApiClientOptions options = {}) {
    client_ =
        std::make_unique<ApiClient>(transport_, *ApiClient::parse_base("http://127.0.0.1:7733"), std::move(options));
  }
  Result<std::string> tell(ApiRequest request) {
    if (!client_) open();
    return loop_.run_until_complete(client_->tell(std::move(request)));
  }
  Result<std::string> get(std::string path) { return tell({.path = std::move(path)}); }
  Result<std::string> post(Again again) {
    return tell({.method = HttpMethod::post, .path = "/v1/here", .body = "{}", .again = again});
  }
  // The first contact, and from then on what `loss` says of the requests behind it.
  void after_first_contact(std::function<Loss(std::size_t)> loss) {
    ASSERT_TRUE(get("/v1/here"));
    effects_ = 0;
    keys_.clear();
    transport_.loss = [loss = std::move(loss)](std::size_t number, const HttpRequest&) { return loss(number - 1); };
  }

  HttpRouter router_;
  RouterTransport transport_{router_};
  std::unique_ptr<ApiClient> client_;
  std::size_t effects_ = 0;
  int drains_ = 0;
  std::vector<std::string> keys_, tokens_;
};

TEST_F(ApiClientTest, SaysWhichAddressDoesNotAnswerAndWhatStartsADaemonThere) {
  transport_.loss = [](std::size_t, const HttpRequest&) { return Loss::refused; };
  const auto told = get("/v1/here");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::network);
  EXPECT_EQ(told.error().message,
            "store http://127.0.0.1:7733: connect 127.0.0.1: Connection refused; is the daemon there? argiope serve "
            "starts one");
  EXPECT_EQ(transport_.sent, 1u) << "one that has never answered is not waited for";
}

TEST_F(ApiClientTest, WaitsForADaemonThatHasAnsweredBefore) {
  after_first_contact([](std::size_t number) { return number < 5 ? Loss::refused : Loss::none; });
  const TimePoint start = loop_.time();
  EXPECT_TRUE(get("/v1/here"));
  EXPECT_EQ(effects_, 1u);
  EXPECT_GE(loop_.time() - start, 750ms) << "it backs off";
}

TEST_F(ApiClientTest, GivesUpWhenItsPatienceIsOver) {
  open({.patience = 3s});
  after_first_contact([](std::size_t) { return Loss::refused; });
  const TimePoint start = loop_.time();
  EXPECT_FALSE(get("/v1/here"));
  EXPECT_GE(loop_.time() - start, 3s);
  EXPECT_LE(loop_.time() - start, 9s);
}

TEST_F(ApiClientTest, SendsARequestAgainUnderTheSameKey) {
  after_first_contact([](std::size_t number) { return number == 1 ? Loss::after_effect : Loss::none; });
  EXPECT_TRUE(post(Again::harmless));
  ASSERT_EQ(keys_.size(), 2u);
  EXPECT_EQ(keys_[0], keys_[1]);
  EXPECT_TRUE(post(Again::harmless));
  EXPECT_NE(keys_[1], keys_[2]);
}

TEST_F(ApiClientTest, SendsNothingAgainThatWouldDoHarm) {
  after_first_contact([](std::size_t number) { return number == 1 ? Loss::after_effect : Loss::none; });
  const auto told = post(Again::harmful);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message, HasSubstr("whether it was done is not known"));
  EXPECT_EQ(effects_, 1u);
}

TEST_F(ApiClientTest, SendsAgainWhatCannotHaveArrived) {
  after_first_contact([](std::size_t number) { return number == 1 ? Loss::refused : Loss::none; });
  EXPECT_TRUE(post(Again::harmful));
  EXPECT_EQ(effects_, 1u);
}

TEST_F(ApiClientTest, WaitsForADaemonThatStops) {
  ASSERT_TRUE(get("/v1/here"));
  EXPECT_TRUE(get("/v1/drains"));
  EXPECT_EQ(drains_, 3);
}

TEST_F(ApiClientTest, GivesBackTheErrorThatADaemonTells) {
  const auto told = get("/v1/refused");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::refused);
  EXPECT_EQ(told.error().message, "queue \"mail\": the configuration file decides");
}

TEST_F(ApiClientTest, TellsAnotherServerFromADaemon) {
  const auto told = get("/v1/other");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::protocol);
  EXPECT_THAT(told.error().message, HasSubstr("no daemon of argiope answers there, but something with status 404"));
}

TEST_F(ApiClientTest, SendsItsToken) {
  open({.token = "secret"});
  ASSERT_TRUE(get("/v1/here"));
  EXPECT_EQ(tokens_.back(), "Bearer secret");
}

TEST(ApiClientAddress, IsAPlainUrl) {
  EXPECT_TRUE(is_daemon("http://localhost:7733"));
  EXPECT_TRUE(is_daemon("https://jobs.example"));
  EXPECT_TRUE(is_daemon("HTTP://jobs.example"));
  EXPECT_TRUE(is_daemon("Https://jobs.example"));
  EXPECT_FALSE(is_daemon("sqlite:http.db"));
  EXPECT_TRUE(ApiClient::parse_base("https://jobs.example/argiope/"));
  for (const char* where :
       {"http://ann:secret@localhost", "http://localhost/?x=1", "http://", "http://localhost:99999"}) {
    const auto base = ApiClient::parse_base(where);
    ASSERT_FALSE(base) << where;
    EXPECT_EQ(base.error().code, Errc::invalid_input);
    EXPECT_THAT(base.error().message, StartsWith("store "));
    EXPECT_THAT(base.error().message, testing::Not(HasSubstr("secret")));
  }
}

TEST(ToldProblem, HasTheCodeThatTheBookHad) {
  for (const Errc code : {Errc::invalid_input, Errc::too_large, Errc::not_found, Errc::refused, Errc::busy,
                          Errc::disk_full, Errc::io, Errc::internal}) {
    const ServerResponse response = answer(problem_of(Error{code, "why"}), "id");
    const auto told = read_answer(response.body, read_problem);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->error.code, code) << to_string(code);
    EXPECT_EQ(told->error.message, "why");
  }
}

}  // namespace
}  // namespace argiope

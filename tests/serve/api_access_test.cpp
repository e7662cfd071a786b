// What a token's end does to requests that wait on its behalf, and what one token may have of what all share.
#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class ApiAccess : public ApiTest {
 protected:
  Task<Answered> start_as(std::string_view token, HttpMethod method, std::string target, std::string body = {}) {
    authorization_ = "Bearer " + std::string(token);
    return loop_.create_task(asking(method, std::move(target), std::move(body), {{"authorization", authorization_}}));
  }
  Answered as(std::string_view token, HttpMethod method, std::string target, std::string body = {}) {
    return loop_.run_until_complete(start_as(token, method, std::move(target), std::move(body)));
  }
  void set(std::vector<Token> tokens) {
    run([&]() -> Coro<void> {
      gate_->set({.tokens = std::move(tokens), .needs_token = true});
      co_await sleep(1ms);
    });
  }

  const Token boss_ = token_named("boss", TokenScope::admin), gone_ = token_named("gone", TokenScope::work);
  std::string authorization_;
};

TEST_F(ApiAccess, AWaitingRequestOfATokenThatIsRemovedEndsAndGetsNoJob) {
  open({}, {}, {.tokens = {boss_, gone_}});
  Task<Answered> leases =
      start_as("gone", HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000,"worker":"w"})");
  pass(1s);
  set({boss_});
  ASSERT_TRUE(leases.done());
  EXPECT_EQ(leases.result().problem(), "unauthorized");
  const std::string id = as("boss", HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})").text("/id");
  pass(1s);
  EXPECT_EQ(as("boss", HttpMethod::get, "/v1/jobs/" + id).text("/state"), "ready");
}

TEST_F(ApiAccess, AJobOnItsWayToATokenThatIsRemovedIsGivenBack) {
  // Removed at every turn between the put and the answer.
  open({}, {}, {.tokens = {boss_, gone_}});
  for (int turns = 0; turns < 12; ++turns) {
    set({boss_, gone_});
    Task<Answered> leases =
        start_as("gone", HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000,"worker":"w"})");
    pass(1s);
    Task<Answered> put = start_as("boss", HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})");
    for (int i = 0; i < turns; ++i) loop_.run_once(TimePoint::min());
    const bool had_it = leases.done();
    set({boss_});
    pass(1s);
    ASSERT_TRUE(leases.done() && put.done());
    const std::string id = put.result().text("/id");
    if (had_it) {
      EXPECT_EQ(leases.result().text("/leases/0/job/id"), id) << turns;
    } else {
      EXPECT_EQ(leases.result().problem(), "unauthorized") << turns;
      EXPECT_EQ(as("boss", HttpMethod::get, "/v1/jobs/" + id).text("/state"), "ready") << turns;
    }
    as("boss", HttpMethod::delete_, "/v1/jobs/" + id);
  }
}

TEST_F(ApiAccess, ARequestThatWaitsForOutputEndsWhenItsTokenExpires) {
  Token looker = token_named("looker", TokenScope::read);
  looker.expires_at = loop_.clock().wall_now() + 1h;
  open({}, {}, {.tokens = {boss_, looker}});
  as("boss", HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})");
  pass(1h - 10s);
  Task<Answered> output = start_as("looker", HttpMethod::get, "/v1/jobs/1/output?after=0&wait_ms=30000");
  pass(9s);
  EXPECT_FALSE(output.done());
  pass(2s);
  ASSERT_TRUE(output.done());
  EXPECT_EQ(output.result().problem(), "unauthorized");
}

TEST_F(ApiAccess, OneTokenDoesNotWaitInAllPlaces) {
  open({.most_pollers = 4, .most_pollers_of_one = 2}, {}, {.tokens = {boss_, gone_}});
  const char* const kPoll = R"({"queues":["mail"],"wait_ms":30000})";
  Task<Answered> one = start_as("gone", HttpMethod::post, "/v1/leases", kPoll);
  pass(1s);
  Task<Answered> two = start_as("gone", HttpMethod::post, "/v1/leases", kPoll);
  pass(1s);
  EXPECT_EQ(as("gone", HttpMethod::post, "/v1/leases", kPoll).problem(), "too_many");
  Task<Answered> other = start_as("boss", HttpMethod::post, "/v1/leases", kPoll);
  pass(1s);
  EXPECT_FALSE(other.done());
  pass(31s);
  EXPECT_TRUE(one.done() && two.done() && other.done());
}

}  // namespace
}  // namespace argiope

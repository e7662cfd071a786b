// Queues whose jobs are sent to a web server: what is sent, and what each answer makes of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/calls/calls.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(HttpPushForm, IsPostedUnlessItSaysOtherwise) {
  const auto push = parse_http_push(R"({"url":"http://a.org/hook","headers":{"X-A":"1"},"timeout":"5s","secret":"s"})");
  ASSERT_TRUE(push) << push.error().message;
  EXPECT_EQ(push->call.request.method, HttpMethod::post);
  EXPECT_EQ(push->call.request.timeout, 5s);
  EXPECT_EQ(push->secret, "s");
  EXPECT_EQ(parse_http_push(R"({"url":"http://a.org","method":"PUT"})")->call.request.method, HttpMethod::put);
}

TEST(HttpPushForm, SaysWhetherItMayGoToPrivateAddresses) {
  EXPECT_FALSE(parse_http_push(R"({"url":"http://10.0.0.1"})")->allow_private);
  EXPECT_TRUE(parse_http_push(R"({"url":"http://10.0.0.1","allow_private":true})")->allow_private);
}

TEST(HttpPushForm, HasNoBodyOfItsOwn) {
  for (const char* json : {R"({"url":"http://a.org","body":"x"})", R"({"url":"http://a.org","expect":200})",
                           R"({"url":"http://a.org","secret":""})", R"({"method":"POST"})"}) {
    EXPECT_FALSE(parse_http_push(json)) << json;
  }
}

TEST(HttpPushForm, IsSignedByTimeJobAndBody) {
  // printf '1764000000.7.hello' | openssl dgst -sha256 -hmac secret
  EXPECT_EQ(sign_push("secret", WallTime{1'764'000'000'500ms}, 7, "hello"),
            "t=1764000000,v1=af8db226cec027446e7216417af6368fd57678e61aca254fe081fdb548958e89");
}

// Answers each request with the next of `answers`.
class ScriptedTransport final : public HttpTransport {
 public:
  struct Answer {
    int status = 200;
    std::string body;
    std::string retry_after;
    std::optional<Error> error;
    std::string damage;
    bool truncated = false;
  };
  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    sent.push_back(request);
    Answer answer = answers.at(sent.size() - 1);
    if (answer.error) co_return std::unexpected(*answer.error);
    response.status = answer.status;
    response.body = answer.body;
    response.damage = answer.damage;
    response.truncated = answer.truncated;
    response.headers.retry_after = answer.retry_after;
    co_return Result<void>{};
  }

  std::vector<Answer> answers;
  std::vector<HttpRequest> sent;
};

class HttpPushTest : public OnVirtualLoop {
 protected:
  // Pushes one job until it has ended.
  JobRecord push(std::vector<ScriptedTransport::Answer> answers, HttpPush how) {
    transport.answers = std::move(answers);
    JobRecord record;
    loop_.run_until_complete([](HttpPushTest& test, HttpPush with, JobRecord& out) -> Coro<void> {
      auto store = open_store("memory:");
      QueueConfig policy;
      policy.retry.max_attempts = 2;
      policy.keep_done = 1h;
      auto engine = co_await open_engine(*store.value(), {.new_queue = policy});
      NewJob job{.name = "order/7", .queue = "mail", .key = "ä", .payload = "hello"};
      const auto put = value_or_throw(co_await engine->book().put(std::move(job)));
      Worker worker(*engine, {.queues = {"mail"}});
      worker.add_default(as_http_push(test.transport, std::move(with)));
      engine->add_listener(kAllJobEvents, [&](const JobEvent& event) {
        if (event.kind == JobEventKind::done || event.kind == JobEventKind::buried) worker.stop();
      });
      EXPECT_TRUE(co_await worker.run());
      out = value_or_throw(co_await engine->book().get(put.id));
      EXPECT_TRUE(co_await engine->close());
    }(*this, std::move(how), record));
    return record;
  }
  JobRecord push(std::vector<ScriptedTransport::Answer> answers) {
    return push(std::move(answers), parse_http_push(R"({"url":"http://a.org/hook"})").value());
  }

  ScriptedTransport transport;
};

TEST_F(HttpPushTest, SendsTheJobAndKeepsTheAnswer) {
  const JobRecord job = push({{.status = 204, .body = "thanks"}});
  EXPECT_EQ(job.state, JobState::done);
  EXPECT_EQ(job.result, "thanks");
  const HttpRequest& request = transport.sent.at(0);
  EXPECT_EQ(request.body, "hello");
  EXPECT_THAT(request.headers, Contains(Pair("Argiope-Job-Id", "1")));
  EXPECT_THAT(request.headers, Contains(Pair("Argiope-Job-Queue", "mail")));
  EXPECT_THAT(request.headers, Contains(Pair("Argiope-Job-Name", "order%2F7")));
  EXPECT_THAT(request.headers, Contains(Pair("Argiope-Job-Key", "%C3%A4")));
  EXPECT_THAT(request.headers, Contains(Pair("Argiope-Job-Attempt", "1")));
  EXPECT_THAT(request.headers, Contains(Pair("Content-Type", "application/octet-stream")));
  EXPECT_THAT(request.headers, testing::Not(Contains(Pair("Argiope-Signature", testing::_))));
}

TEST_F(HttpPushTest, SignsWhatItSendsAndLeavesTheTypeThatIsGiven) {
  push({{}}, parse_http_push(R"({"url":"http://a.org","secret":"s","headers":{"content-type":"text/x"}})").value());
  const HttpRequest& request = transport.sent.at(0);
  EXPECT_THAT(request.headers,
              Contains(Pair("Argiope-Signature", sign_push("s", loop_.clock().wall_now(), 1, "hello"))));
  EXPECT_THAT(request.headers, testing::Not(Contains(Pair("Content-Type", testing::_))));
}

TEST_F(HttpPushTest, GivesBackWhatTheServerHasNoTimeFor) {
  const JobRecord job = push({{.status = 503, .retry_after = "60"},
                              {.status = 429, .retry_after = "60"},
                              {.status = 503, .retry_after = "60"},
                              {.status = 200}});
  EXPECT_EQ(job.state, JobState::done) << "more often than there are attempts";
  EXPECT_EQ(job.attempts, 0u) << "none has failed";
}

TEST_F(HttpPushTest, AServerThatGivesNoTimeHasFailedTheAttempt) {
  for (const char* nothing : {"0", "Sun, 06 Nov 1994 08:49:37 GMT", "-1", "soon"}) {
    transport.sent.clear();
    const JobRecord job = push({{.status = 429, .retry_after = nothing}, {.status = 503, .retry_after = nothing}});
    EXPECT_EQ(job.state, JobState::buried) << nothing;
    EXPECT_EQ(transport.sent.size(), 2u) << nothing;
  }
}

TEST_F(HttpPushTest, AServerPutsAJobOffSoOftenAndThenAttemptsCount) {
  const std::vector<ScriptedTransport::Answer> for_ever(100, {.status = 429, .retry_after = "1"});
  const JobRecord job = push(for_ever);
  EXPECT_EQ(job.state, JobState::buried);
  EXPECT_EQ(transport.sent.size(), 22u) << "20 that do not count, and 2 attempts";
}

TEST_F(HttpPushTest, AnAnswerThatHasNotComeWholeIsAFailedAttempt) {
  const JobRecord job = push({{.body = "short", .damage = "cut off after 5 of 100 bytes"}, {.body = "whole"}});
  EXPECT_EQ(job.state, JobState::done);
  EXPECT_EQ(job.attempts, 1u);
  EXPECT_EQ(job.result, "whole");
}

TEST_F(HttpPushTest, AResultThatIsCutSaysSo) {
  EXPECT_THAT(push({{.body = "long", .truncated = true}}).result, testing::StartsWith("long\n[cut: only the first "));
}

TEST_F(HttpPushTest, TriesAgainWhatMaySucceedLater) {
  for (const int status : {408, 425, 429, 500, 503}) {
    transport.sent.clear();
    const JobRecord job = push({{.status = status}, {.status = 200}});
    EXPECT_EQ(job.state, JobState::done) << status;
    EXPECT_EQ(job.attempts, 1u) << status;
  }
  transport.sent.clear();
  EXPECT_EQ(push({{.error = Error{Errc::network, "cut"}}, {}}).state, JobState::done);
}

TEST_F(HttpPushTest, BuriesWhatNoRepetitionMends) {
  for (const int status : {301, 400, 404, 410}) {
    transport.sent.clear();
    const JobRecord job = push({{.status = status, .body = "no\x01pe"}});
    EXPECT_EQ(job.state, JobState::buried) << status;
    EXPECT_THAT(job.error, HasSubstr("http://a.org: status"));
    EXPECT_THAT(job.error, testing::Not(HasSubstr("hook"))) << "the path of a webhook is its secret";
    EXPECT_THAT(job.error, HasSubstr("no\\x01pe"));
  }
}

TEST_F(HttpPushTest, AnAddressThatIsRefusedIsTheWorkersTroubleAndNotTheJobs) {
  transport.answers = {{.error = Error{Errc::refused, "10.0.0.1 is private"}}};
  loop_.run_until_complete([](HttpTransport& through) -> Coro<void> {
    auto store = open_store("memory:");
    auto engine = co_await open_engine(*store.value(), {});
    const auto put = value_or_throw(co_await engine->book().put({.queue = "mail"}));
    Worker worker(*engine, {.queues = {"mail"}});
    worker.add_default(as_http_push(through, parse_http_push(R"({"url":"http://a.org/hook"})").value()));
    const auto ran = co_await worker.run();
    EXPECT_FALSE(ran);
    if (!ran) EXPECT_THAT(ran.error().message, HasSubstr("10.0.0.1 is private"));
    const JobRecord job = value_or_throw(co_await engine->book().get(put.id));
    EXPECT_EQ(job.state, JobState::ready);
    EXPECT_EQ(job.attempts, 0u);
    EXPECT_TRUE(co_await engine->close());
  }(transport));
}

}  // namespace
}  // namespace argiope

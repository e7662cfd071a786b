// What schedules call: the form of a call, and a worker that sends calls to a server which says what it was told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/calls/calls.hpp"
#include "argiope/web/http_client.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/raw_server.hpp"

namespace argiope {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::string_view json) {
  const auto call = parse_http_call(json);
  return call ? "none" : std::string(to_string(call.error().code)) + ": " + call.error().message;
}

TEST(HttpCallForm, HasDefaultsForAllButTheUrl) {
  const auto call = parse_http_call(R"({"url":"https://example.org/a#b"})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->request.method, HttpMethod::get);
  EXPECT_EQ(call->request.url.href(), "https://example.org/a");
  EXPECT_TRUE(call->request.headers.empty());
  EXPECT_EQ(call->request.body, "");
  EXPECT_EQ(call->request.timeout, 30s);
  EXPECT_EQ(call->expect, (std::vector<std::pair<int, int>>{{200, 299}}));
}

TEST(HttpCallForm, SaysEverythingOfARequest) {
  const auto call = parse_http_call(
      R"({"method":"PATCH","url":"http://example.org","headers":{"X-A":"1"},"body":{"n":[1,2]},"expect":[200,"304","5xx"],)"
      R"("timeout":"1m30s"})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->request.method, HttpMethod::patch);
  EXPECT_EQ(call->request.headers,
            (std::vector<std::pair<std::string, std::string>>{{"X-A", "1"}, {"Content-Type", "application/json"}}));
  EXPECT_EQ(call->request.body, R"({"n":[1,2]})");
  EXPECT_EQ(call->expect, (std::vector<std::pair<int, int>>{{200, 200}, {304, 304}, {500, 599}}));
  EXPECT_EQ(call->request.timeout, 90s);
}

TEST(HttpCallForm, LeavesATextAndTheTypeThatIsGivenAlone) {
  const auto text = parse_http_call(R"({"url":"http://a.org","body":"x=1"})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->request.body, "x=1");
  EXPECT_TRUE(text->request.headers.empty());
  const auto typed = parse_http_call(R"({"url":"http://a.org","body":1,"headers":{"content-type":"text/x"}})");
  ASSERT_TRUE(typed);
  EXPECT_EQ(typed->request.headers.size(), 1u);
}

TEST(HttpCallForm, MakesAHeaderOfAUrlsCredentialsUnlessOneIsGiven) {
  const auto call = parse_http_call(R"({"url":"http://ann:x@a.org/"})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->request.url.href(), "http://a.org/");
  EXPECT_EQ(call->request.headers,
            (std::vector<std::pair<std::string, std::string>>{{"Authorization", "Basic YW5uOng="}}));
  const auto given = parse_http_call(R"({"url":"http://ann:x@a.org/","headers":{"authorization":"Bearer y"}})");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->request.headers.size(), 1u);
  EXPECT_THAT(error_of(R"({"url":"http://ann:x@a b/"})"), HasSubstr(R"(url "http://…@a b/")"));
}

TEST(HttpCallForm, NamesTheMemberThatIsWrong) {
  EXPECT_THAT(error_of("nonsense"), StartsWith("invalid_input: HTTP call \"nonsense\": no JSON object"));
  EXPECT_THAT(error_of("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("needs a url"));
  EXPECT_THAT(error_of(R"({"url":"ftp://a.org"})"), HasSubstr(R"(url "ftp://a.org": http:// or https://)"));
  // The path of a webhook is its secret.
  EXPECT_THAT(error_of(R"({"url":"ftp://ann:secret@a.org/secret?secret"})"),
              HasSubstr(R"(url "ftp://a.org/…": http:// or https://)"));
  EXPECT_THAT(error_of(R"({"url":"htps:a.org/secret"})"), HasSubstr(R"(url "htps:a.org/…": )"));
  EXPECT_THAT(error_of(R"({"url":"no url"})"), HasSubstr(R"(url "no url")"));
  EXPECT_THAT(error_of(R"({"url":7})"), HasSubstr(R"(url "7")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","method":"get"})"), HasSubstr(R"(method "get": GET, HEAD)"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","headers":{"a b":"1"}})"), HasSubstr(R"(headers "a b")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","headers":{"Host":"b"}})"), HasSubstr(R"(headers "Host": is set)"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","headers":{"x":"1\r\ny: 2"}})"),
              HasSubstr(R"(headers.x "1\r\ny: 2": a string without control characters)"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","headers":[]})"), HasSubstr(R"(headers "[]": an object)"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","expect":99})"), HasSubstr(R"(expect "99")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","expect":["6xx"]})"), HasSubstr(R"(expect[0] "6xx")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","expect":[]})"), HasSubstr("at least one"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","timeout":"soon"})"), HasSubstr(R"(timeout "soon")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","timeout":true})"), HasSubstr(R"(timeout "true")"));
  EXPECT_EQ(parse_http_call(R"({"url":"http://a.org","timeout":1.5})")->request.timeout, 1500ms);
  EXPECT_THAT(error_of("{\"url\":\"http://a.org\",\"timeout\":\"0xA\\t\\nt\"}"), HasSubstr(R"(timeout "0xA\t\nt")"));
  EXPECT_THAT(error_of(R"({"url":"http://a.org","verb":"GET"})"), HasSubstr(R"(member "verb")"));
  EXPECT_THAT(error_of(R"({"url":")" + std::string(1024 * 1024, 'x') + "\"}"), HasSubstr("at most 1048576"));
}

class LiteralResolver final : public Resolver {
 public:
  Coro<Result<AddressList>> resolve(std::string_view host) override {
    const auto literal = IpAddress::parse(host);
    if (!literal) co_return fail(Errc::dns, "nobody knows it");
    co_return AddressList{*literal};
  }
};

class HttpCallTest : public LoopTest<RealTime> {
 protected:
  // Runs one call to its end, each attempt after the other; what became of the job.
  JobRecord call(std::string payload, bool allow_private = true) {
    LiteralResolver resolver;
    const AddressGuard guard(allow_private);
    HttpClient client({.accept = "*/*"}, world.backend, resolver, guard);
    JobRecord record;
    run([&]() -> Coro<void> {
      auto serving = EventLoop::current().create_task(server.serve());
      auto store = open_store("memory:");
      QueueConfig policy;
      policy.retry.max_attempts = attempts;
      policy.retry.first = 0ms;
      policy.keep_done = 1h;
      auto engine = co_await open_engine(*store.value(), {.new_queue = policy});
      NewJob job;
      job.queue = "http";
      job.payload = std::move(payload);
      auto put = co_await engine->book().put(std::move(job));
      Worker worker(*engine, {.queues = {"http"}});
      worker.add("http", as_http_call(client, {.most_kept = 20}));
      // To its end, or to a retry that is far away.
      engine->add_listener(kAllJobEvents, [&](const JobEvent& event) {
        const bool is_over = event.kind == JobEventKind::done || event.kind == JobEventKind::buried;
        const bool waits = (event.kind == JobEventKind::retrying || event.kind == JobEventKind::released) &&
                           event.due_at - event.at > 1min;
        if (is_over || waits) worker.stop();
      });
      auto worked = co_await worker.run();
      EXPECT_TRUE(worked);
      auto found = co_await store.value()->get(put.value().id);
      record = found.value().value();
      auto closed = co_await engine->close();
      EXPECT_TRUE(closed);
      serving.cancel();
    });
    client.close_idle();
    run([&]() -> Coro<void> { co_await server.all_closed(); });
    return record;
  }
  std::string to_server(std::string_view members) const {
    return "{\"url\":\"" + server.origin() + "/hook\"" + std::string(members) + "}";
  }

  RawServer server{world.backend};
  int attempts = 1;
};

TEST_F(HttpCallTest, SendsTheRequestAndKeepsTheResponse) {
  server.add("HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
  const JobRecord record = call(to_server(R"(,"method":"POST","headers":{"X-Key":"k"},"body":{"run":7})"));
  EXPECT_EQ(record.state, JobState::done) << record.error;
  EXPECT_EQ(record.result, R"({"status":201,"content_type":"text/plain","body":"hello"})");
  const std::string& sent = server.requests().at(0);
  EXPECT_THAT(sent, StartsWith("POST /hook HTTP/1.1\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nAccept: */*\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nX-Key: k\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(sent, EndsWith("\r\n\r\n{\"run\":7}"));
}

TEST_F(HttpCallTest, KeepsNoMoreOfAResponseThanItIsTold) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + std::string(30, 'x'), RawServer::Then::close);
  EXPECT_EQ(call(to_server("")).result,
            R"({"status":200,"content_type":"","body":")" + std::string(20, 'x') + R"(","truncated":true})");
}

TEST_F(HttpCallTest, FailsWithAnotherStatusThanTheExpectedAndIsTriedAgain) {
  attempts = 2;
  for (int i = 0; i < 2; ++i)
    server.add("HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\nat\nlunch!", RawServer::Then::close);
  const JobRecord record = call(to_server(""));
  EXPECT_EQ(record.state, JobState::buried);
  EXPECT_EQ(record.attempts, 2u);
  EXPECT_EQ(record.error, "GET " + server.origin() + "/hook: status 503 instead of 2xx: at\\nlunch!");
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(HttpCallTest, ExpectsWhatItIsToldTo) {
  server.add("HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(call(to_server(R"(,"expect":[404,"3xx"])")).state, JobState::done);
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(call(to_server(R"(,"expect":[404,"3xx"])")).error, EndsWith("status 200 instead of 404 or 3xx"));
}

TEST_F(HttpCallTest, FollowsNoRedirect) {
  server.add("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(call(to_server("")).error, EndsWith("status 302 instead of 2xx, to http://elsewhere.example/"));
}

TEST_F(HttpCallTest, WaitsAsLongAsTheServerAsks) {
  attempts = 2;
  server.add("HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n");
  const JobRecord record = call(to_server(""));
  EXPECT_EQ(record.state, JobState::delayed);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(HttpCallTest, WhatTheGuardRefusesWaitsAndIsNoFaultOfTheJob) {
  const JobRecord refused = call(to_server(""), false);
  EXPECT_EQ(refused.state, JobState::delayed);
  EXPECT_EQ(refused.attempts, 0u);
  EXPECT_EQ(server.connections(), 0u);
}

TEST_F(HttpCallTest, BuriesWhatIsNoCall) {
  attempts = 5;
  const JobRecord nonsense = call(R"({"url":"x"})");
  EXPECT_EQ(nonsense.state, JobState::buried);
  EXPECT_EQ(nonsense.attempts, 1u);
  EXPECT_THAT(nonsense.error, HasSubstr("url \"x\""));
}

TEST_F(HttpCallTest, FailsWhenTheResponseIsCutShort) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", RawServer::Then::close);
  EXPECT_THAT(call(to_server("")).error, EndsWith("connection closed with 4 bytes of the body missing"));
}

TEST_F(HttpCallTest, FailsWhenTheTimeIsOver) {
  server.add({{{"HTTP/1.1 200 OK\r\n"}, RawServer::Then::silent}});
  EXPECT_THAT(call(to_server(R"(,"timeout":"20ms")")).error, HasSubstr("no complete response within 0.02 s"));
}

}  // namespace
}  // namespace argiope

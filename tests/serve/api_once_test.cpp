// Requests with an Idempotency-Key.
#include <fmt/format.h>

#include "serve/api/request_memory.hpp"
#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

class ApiOnce : public ApiTest {
 protected:
  Answered once(std::string target, std::string body, std::string_view key = "k") {
    return ask(HttpMethod::post, std::move(target), std::move(body), {{"Idempotency-Key", key}});
  }
  std::size_t jobs() { return get("/v1/jobs").at("/jobs").as_array().size(); }
};

TEST_F(ApiOnce, APutThatIsRepeatedIsAnsweredAsBeforeAndAddsNothing) {
  const Answered first = once("/v1/jobs", R"({"queue":"mail"})");
  const Answered again = once("/v1/jobs", R"({"queue":"mail"})");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", "other").text("/id"), "2");
  EXPECT_EQ(jobs(), 2u);
}

TEST_F(ApiOnce, AnotherRequestUnderTheSameKeyIsRefused) {
  once("/v1/jobs", R"({"queue":"mail"})");
  const Answered other = once("/v1/jobs", R"({"queue":"mail","priority":1})");
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(other.problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/jobs?", R"({"queue":"mail"})").problem(), "idempotency_mismatch");
  EXPECT_EQ(jobs(), 1u);
}

TEST_F(ApiOnce, EachOfManyIsAnsweredAsBefore) {
  const char* const kBatch = R"({"jobs":[{"queue":"mail"},{"queue":7},{"queue":"mail","id":"a"}]})";
  const Answered first = once("/v1/jobs", kBatch);
  EXPECT_EQ(first.text("/replies/1/error/status"), "400");
  EXPECT_EQ(once("/v1/jobs", kBatch).body, first.body);
  EXPECT_EQ(jobs(), 2u);
  const char* const kAtomic = R"({"jobs":[{"queue":"mail"},{"queue":"mail"}],"completion":{"queue":"done"}})";
  const Answered together = once("/v1/jobs", kAtomic, "k2");
  EXPECT_NE(together.text("/completion/id"), "null");
  EXPECT_EQ(once("/v1/jobs", kAtomic, "k2").body, together.body);
  EXPECT_EQ(jobs(), 5u);
}

TEST_F(ApiOnce, WhatWasRefusedAsAWholeMayBeTriedAgain) {
  put("/v1/queues/small", R"({"capacity":1})");
  once("/v1/jobs", R"({"queue":"small"})", "a");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"small"})", "b").problem(), "queue_full");
  put("/v1/queues/small", R"({"capacity":2})");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"small"})", "b").status, 201);
}

TEST_F(ApiOnce, ChangesAndSettlementsAreDoneOnce) {
  put_job(R"({"queue":"mail","delay_ms":60000})");
  EXPECT_EQ(once("/v1/jobs/1/kick", "", "kick").text("/outcome"), "changed");
  EXPECT_EQ(once("/v1/jobs/1/kick", "", "kick").text("/outcome"), "changed");
  EXPECT_EQ(post("/v1/jobs/1/kick").problem(), "wrong_state");
  const std::string settlement =
      fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done","follow_ups":[{{"queue":"next"}}]}}]}})",
                  lease().text("/leases/0/token"));
  const Answered settled = once("/v1/leases/settle", settlement, "settle");
  EXPECT_EQ(settled.text("/replies/0/outcome"), "ok");
  EXPECT_EQ(settled.text("/replies/0/follow_ups/0/id"), "2");
  EXPECT_EQ(once("/v1/leases/settle", settlement, "settle").body, settled.body);
  EXPECT_EQ(post("/v1/leases/settle", settlement).text("/replies/0/outcome"), "lease_lost");
}

TEST_F(ApiOnce, OtherRequestsAreRememberedToo) {
  const char* const kSchedule = R"({"name":"s","trigger":"@every 1h"})";
  const Answered added = once("/v1/schedules", kSchedule);
  EXPECT_EQ(added.status, 201);
  EXPECT_EQ(once("/v1/schedules", kSchedule).body, added.body);
  EXPECT_EQ(post("/v1/schedules", kSchedule).problem(), "conflict");
  EXPECT_EQ(once("/v1/schedules/s/run", "").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/schedules/s/run", "", "run").text("/job"), "1");
  EXPECT_EQ(once("/v1/schedules/s/run", "", "run").text("/job"), "1");
  pass(25h);
  EXPECT_EQ(once("/v1/schedules/s/run", "", "run").text("/job"), "2");
}

// --- the memory of one token and of others

using Memory = RequestMemory<int>;
constexpr auto kFirst = Memory::State::first;

RequestKey numbered(int i) { return {.key = std::to_string(i), .digest = "d"}; }

TEST(RequestMemoryShare, WhoseIsFullIsToldAndNothingIsForgotten) {
  Memory memory(1'000'000);
  TimePoint now{};
  ASSERT_EQ(memory.begin("other", numbered(1), now).state, kFirst);
  memory.keep("other", numbered(1), 7, 1);
  for (int i = 0; i < static_cast<int>(Memory::kMostRequests); ++i) {
    ASSERT_EQ(memory.begin("greedy", numbered(i), now).state, kFirst);
    memory.keep("greedy", numbered(i), i, 1);
  }
  EXPECT_EQ(memory.begin("greedy", numbered(-1), now).state, Memory::State::full);
  EXPECT_EQ(*memory.begin("greedy", numbered(0), now).answer, 0);
  EXPECT_EQ(*memory.begin("other", numbered(1), now).answer, 7);
  EXPECT_EQ(memory.begin("other", numbered(2), now).state, kFirst);
  now += kRequestsKept;
  EXPECT_EQ(memory.begin("greedy", numbered(-1), now).state, kFirst) << "a day later there is room";
}

TEST(RequestMemoryShare, IsBoundedInWeightToo) {
  Memory memory(100);
  ASSERT_EQ(memory.begin("a", numbered(1), {}).state, kFirst);
  memory.keep("a", numbered(1), 1, 100);
  EXPECT_EQ(memory.begin("a", numbered(2), {}).state, Memory::State::full);
  EXPECT_EQ(memory.begin("b", numbered(2), {}).state, kFirst);
}

TEST(RequestMemoryShare, WhatIsForgottenOrOverTakesNoRoom) {
  Memory memory(1'000'000, [](const int& answer) { return answer == 0; });
  TimePoint now{};
  for (int i = 0; i < 3 * static_cast<int>(Memory::kMostRequests); ++i) {
    ASSERT_EQ(memory.begin("a", numbered(i), now).state, kFirst) << i;
    memory.forget("a", numbered(i));
  }
  for (int i = 0; i < static_cast<int>(Memory::kMostRequests); ++i) {
    ASSERT_EQ(memory.begin("a", numbered(i), now).state, kFirst);
    memory.keep("a", numbered(i), i % 2, 1);
  }
  EXPECT_EQ(memory.begin("a", numbered(-1), now).state, kFirst);
  EXPECT_EQ(*memory.begin("a", numbered(1), now).answer, 1);
}

TEST_F(ApiOnce, AKeyIsOfOneRequestWhateverItAsksFor) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", "put").status, 201);
  EXPECT_EQ(once("/v1/leases", R"({"queues":["mail"]})", "put").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/queues/mail/pause", "", "put").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/queues/mail/resume", "", "resume").status, 200);
  EXPECT_EQ(once("/v1/leases", R"({"queues":["mail"]})", "resume").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", "resume").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/leases", R"({"queues":["mail"]})", "lease").status, 200);
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", "lease").problem(), "idempotency_mismatch");
  EXPECT_EQ(once("/v1/leases", R"({"queues":["other"]})", "lease").problem(), "idempotency_mismatch");
  EXPECT_EQ(jobs(), 2u);
  // What was refused has had no effect: its key is free.
  EXPECT_EQ(once("/v1/jobs", R"({"queue":7})", "new").problem(), "invalid_input");
  EXPECT_EQ(once("/v1/queues/mail/resume", "", "new").status, 200);
}

TEST_F(ApiOnce, AKeyIsShortAndPrintable) {
  const Answered empty = once("/v1/jobs", R"({"queue":"mail"})", "");
  EXPECT_EQ(empty.problem(), "invalid_input");
  EXPECT_EQ(empty.text("/errors/0/header"), "Idempotency-Key");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/leases", R"({"queues":["mail"]})", {{"idempotency-key", ""}}).status, 400);
  EXPECT_EQ(
      ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Idempotency-Key", "a"}, {"Idempotency-Key", "b"}})
          .problem(),
      "invalid_input");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", "a\x01").problem(), "invalid_input");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", std::string(256, 'x')).problem(), "invalid_input");
  EXPECT_EQ(once("/v1/jobs", R"({"queue":"mail"})", std::string(255, 'x')).status, 201);
}

}  // namespace
}  // namespace argiope

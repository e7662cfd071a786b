// What the API answers when something is wrong.
#include "serve/base/problem.hpp"

#include <gtest/gtest.h>

#include "support/header_of.hpp"

namespace argiope {
namespace {

TEST(Problem, AnErrorOfTheEngineBecomesTheAnswerOfItsKind) {
  const ServerResponse response = answer(problem_of(Error{Errc::refused, "queue \"mail\" is full"}));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.body,
            "{\"type\":\"urn:argiope:problem:queue_full\",\"title\":\"Queue full\",\"status\":429,"
            "\"detail\":\"queue \\\"mail\\\" is full\"}\n");
  EXPECT_EQ(header_of(response, "Content-Type"), "application/problem+json");
  EXPECT_EQ(header_of(response, "Retry-After"), "1");
  EXPECT_EQ(header_of(answer({.type = ProblemType::unauthorized}), "WWW-Authenticate"), "Bearer");
}

TEST(Problem, WhatIsWrongInARequestIsToldWithItsPointer) {
  const auto text = JsonText::parse(R"({"jobs":[{"a/b~c":"high"}]})");
  ASSERT_TRUE(text);
  JsonErrors errors;
  text->root(errors).for_each_member([](std::string_view, const JsonValue& jobs) {
    jobs.for_each([](const JsonValue& job) {
      job.for_each_member([](std::string_view, const JsonValue& value) { value.whole(0, 9); });
    });
  });
  ASSERT_TRUE(errors);
  const Problem problem = problem_of(errors);
  EXPECT_EQ(problem.type, ProblemType::invalid_input);
  ASSERT_EQ(problem.places.size(), 1u);
  EXPECT_EQ(problem.places[0].pointer, "/jobs/0/a~1b~0c");
  EXPECT_EQ(problem.places[0].detail, "a whole number from 0 to 9");
}

TEST(Problem, WhatAServerRefusesByItselfHasATypeForEachStatus) {
  const auto type_of = [](int status) { return to_string(problem_of_status(status, "why").type); };
  EXPECT_EQ(type_of(400), "invalid_input");
  EXPECT_EQ(type_of(404), "not_found");
  EXPECT_EQ(type_of(405), "method_not_allowed");
  EXPECT_EQ(type_of(408), "too_slow");
  for (const int status : {413, 414, 431}) EXPECT_EQ(type_of(status), "too_large") << status;
  EXPECT_EQ(type_of(417), "invalid_input");
  EXPECT_EQ(type_of(500), "internal");
  for (const int status : {501, 505}) EXPECT_EQ(type_of(status), "not_implemented") << status;
  EXPECT_EQ(type_of(503), "busy");
  const ServerResponse response = answer(problem_of_status(431, "why"));
  EXPECT_EQ(response.status, 431);
  EXPECT_EQ(response.body,
            "{\"type\":\"urn:argiope:problem:too_large\",\"title\":\"Too large\",\"status\":431,\"detail\":\"why\"}\n");
}

}  // namespace
}  // namespace argiope

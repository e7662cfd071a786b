#include <gtest/gtest.h>

#include <chrono>

#include "argiope/engine/engine.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(ExplanationJson, IsOneLineWithEveryMember) {
  JobExplanation why;
  EXPECT_EQ(
      to_json(why),
      R"({"id":0,"queue":"","state":"ready","reason":"none","until":null,"ahead":0,"attempts":0,"max_attempts":0,)"
      R"("error":"","waits_for":[],"lease_until":null,"worker":"","progress":0,"progress_message":"","owner_knows":[]})");
  why.id = 7;
  why.queue = "a \"b\"";
  why.until = WallTime{1'767'225'600s + 250ms};
  why.waits_for = {1, 2};
  why.error = "\xff\n";
  why.progress = 0.25;
  why.owner_knows = {WaitReason::none, WaitReason::none};
  EXPECT_EQ(to_json(why),
            "{\"id\":7,\"queue\":\"a "
            "\\\"b\\\"\",\"state\":\"ready\",\"reason\":\"none\",\"until\":\"2026-01-01T00:00:00.250Z\","
            "\"ahead\":0,\"attempts\":0,\"max_attempts\":0,\"error\":\"\xef\xbf\xbd\\u000a\",\"waits_for\":[1,2],"
            "\"lease_until\":null,\"worker\":\"\",\"progress\":0.25,\"progress_message\":\"\","
            "\"owner_knows\":[\"none\",\"none\"]}");
}

}  // namespace
}  // namespace argiope

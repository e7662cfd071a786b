// Jobs told by one process and read by another are the same jobs.
#include "jobs/internal/job_telling.hpp"

#include <gtest/gtest.h>

#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

NewJob told(const NewJob& job) {
  const std::string text = json_object([&](JsonWriter& json) { write_members(json, job); });
  auto read = parse_new_job(text, WallTime{});
  EXPECT_TRUE(read) << text << ": " << read.error().message;
  return read ? std::move(*read) : NewJob{};
}

NewJob whole_job() {
  NewJob job{.name = "order 7/\"ä\"", .queue = "mail", .key = "example.org", .unique = "once", .priority = -3};
  job.unique_policy = UniquePolicy::merge;
  job.run_again = true;
  job.due_at = WallTime{1'800'000'000'123ms};
  job.function = "send";
  job.payload = std::string("text\n\0\x1b", 7);
  job.max_attempts = 9;
  job.lease_time = 1500ms;
  job.waits_for = {1, kMostJobId};
  job.if_failed = DependencyPolicy::run;
  job.batch = 4;
  return job;
}

TEST(JobTelling, KeepsAllOfANewJob) {
  const NewJob job = whole_job();
  const NewJob read = told(job);
  EXPECT_EQ(read.name, job.name);
  EXPECT_EQ(read.id, 0u);
  EXPECT_EQ(read.queue, job.queue);
  EXPECT_EQ(read.key, job.key);
  EXPECT_EQ(read.unique, job.unique);
  EXPECT_EQ(read.unique_policy, job.unique_policy);
  EXPECT_EQ(read.run_again, job.run_again);
  EXPECT_EQ(read.priority, job.priority);
  EXPECT_EQ(read.due_at, job.due_at);
  EXPECT_EQ(read.function, job.function);
  EXPECT_EQ(read.payload, job.payload);
  EXPECT_EQ(read.max_attempts, job.max_attempts);
  EXPECT_EQ(read.lease_time, job.lease_time);
  EXPECT_EQ(read.waits_for, job.waits_for);
  EXPECT_EQ(read.if_failed, job.if_failed);
  EXPECT_EQ(read.batch, job.batch);
}

TEST(JobTelling, KeepsPayloadsThatAreNoText) {
  const std::string bytes("\xff\x00\xc3", 3);
  EXPECT_EQ(told({.queue = "q", .payload = bytes}).payload, bytes);
  EXPECT_EQ(told({.queue = "q", .payload = R"({"json":[1]})"}).payload, R"({"json":[1]})");
}

TEST(JobTelling, RoundsTimesUpSoThatNoJobRunsTooEarly) {
  EXPECT_EQ(told({.queue = "q", .due_at = WallTime{1'800'000'000s + 1ns}}).due_at, WallTime{1'800'000'000s + 1ms});
  EXPECT_EQ(told({.queue = "q", .due_at = WallTime::max()}).due_at, WallTime{9'223'372'036'853ms});
}

JobRecord read(const std::string& text, bool good = true) {
  const auto parsed = JsonText::parse(text);
  JsonErrors errors;
  JobRecord record = read_job_record(parsed->root(errors));
  EXPECT_EQ(!errors, good) << text;
  return record;
}

TEST(JobTelling, KeepsAllThatIsToldOfAJob) {
  JobRecord record{.id = 7, .name = "n", .queue = "mail", .key = "k", .unique = "u", .state = JobState::running};
  record.priority = -5;
  record.due_at = WallTime{1'800'000'000'123ms};
  record.function = "f";
  record.payload = std::string("\xff\x01", 2);
  record.attempts = 2;
  record.max_attempts = 5;
  record.expiries = 1;
  record.lease_time = 90s;
  record.pending = 3;
  record.if_failed = DependencyPolicy::run;
  record.created_at = WallTime{1'700'000'000s};
  record.ended_at = WallTime{1'700'000'001s};
  record.result = "out";
  record.error = "why";
  record.worker = "w";
  record.lease_until = WallTime{1'700'000'060s};
  EXPECT_EQ(read(to_json(record)), record);
  EXPECT_EQ(read(to_json(JobRecord{.id = 1, .queue = "q"})), (JobRecord{.id = 1, .queue = "q"}));
}

TEST(JobTelling, PassesOverWhatANewerDaemonTellsAndRefusesWhatIsWrong) {
  EXPECT_EQ(read(R"({"id":7,"queue":"q","news":[1,2]})").id, 7u);
  read(R"({"id":"seven"})", false);
  read(R"({"id":7,"state":"asleep"})", false);
  read(R"({"id":7,"due_at":"soon"})", false);
  read(R"([7])", false);
}

}  // namespace
}  // namespace argiope

// Jobs as JSON: any bytes. What is accepted keeps to its bounds, and written out as a record it is valid JSON that says
// the same.
#include "jobs/internal/job_json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const WallTime now{std::chrono::seconds{1'767'225'600}};
  (void)parse_due("due", input);
  (void)parse_job_id(input);
  const auto job = parse_new_job(input, now);
  if (!job) {
    require(!job.error().message.empty() && job.error().message.find('\n') == std::string::npos);
    return 0;
  }
  require(!job->queue.empty() && job->queue.size() <= 512 && job->id <= kMostJobId && job->batch <= kMostJobId);
  require(job->name.empty() || job->id == 0);
  require(job->due_at >= WallTime{} && job->payload.size() <= size);

  JobRecord record;
  record.queue = job->queue;
  record.payload = job->payload;
  const std::string written = to_json(record);
  std::string again = R"({"queue":)";
  again += written.substr(written.find("\"queue\":") + 8);
  again.resize(again.find(",\"state\":"));
  const std::size_t payload = written.rfind("\"payload\":");
  again += "," + written.substr(payload, written.rfind(",\"attempts\":") - payload) + "}";
  const auto read = parse_new_job(again, now);
  // Text that holds those names itself is cut elsewhere.
  if (job->queue.find('"') == std::string::npos && job->payload.find('"') == std::string::npos) {
    require(read && read->queue == job->queue && read->payload == job->payload);
  }
  return 0;
}

// Configuration files: any bytes. What is refused is refused in one line that begins with the file's name; what is
// accepted keeps to its bounds, and its schedules say the same when they are written as JSON and read back.
#include "config/internal/configuration.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = parse_configuration({reinterpret_cast<const char*>(data), size}, "file");
  if (!read) {
    require(read.error().message.starts_with("file:") && read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  std::set<std::string> names;
  for (const ConfiguredQueue& queue : read->queues) {
    require(!queue.name.empty() && queue.name.size() <= 512 && queue.workers <= ConfiguredQueue::kMostWorkers);
    require(names.insert(queue.name).second);
  }
  names.clear();
  for (const Schedule& schedule : read->schedules) {
    require(check(schedule).has_value() && names.insert(schedule.name).second);
    const auto again = parse_schedule(to_json(schedule));
    require(again && *again == schedule);
  }
  names.clear();
  for (const NotifyRule& rule : read->notify) {
    require(!rule.name.empty() && rule.name.size() <= 64 && names.insert(rule.name).second);
    require(rule.command.has_value() != rule.push.has_value() && rule.on != 0);
  }
  Random random(1);
  for (const SimulatedJobs& jobs : read->simulation.jobs) {
    require(jobs.failures >= 0 && jobs.failures <= 1);
    for (std::uint64_t number = 0; number < 3; ++number)
      require(jobs.duration.draw(number, random) >= Duration::zero());
  }
  return 0;
}

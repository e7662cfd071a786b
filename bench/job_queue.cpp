// JobQueue in memory: put, lease and done, raising a priority, bytes a job. Usage: bench_job_queue [jobs]
//
// pyspider's figures were measured on the machine DESIGN names; it is in no Debian package, so it cannot run beside.
#include "argiope/jobs/job_queue.hpp"

#include <chrono>
#include <cstdlib>

#include "argiope/base/random.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
using Stopwatch = std::chrono::steady_clock;

double seconds_since(Stopwatch::time_point start) {
  return std::chrono::duration<double>(Stopwatch::now() - start).count();
}

void fill(JobQueue& queue, std::size_t jobs, std::size_t keys, TimePoint now) {
  for (std::size_t i = 0; i < jobs; ++i) {
    queue.put({i + 1, KeyId{static_cast<std::uint32_t>(i % keys)}, static_cast<std::int32_t>(i * 7919 % 10), now, i}, now);
  }
}

JobQueue make_queue(std::size_t keys) {
  JobQueue queue;
  for (std::size_t i = 0; i < keys; ++i) queue.key(std::to_string(i));
  return queue;
}

void put_and_work(std::size_t jobs, std::size_t keys) {
  std::vector<double> puts, works;
  double bytes = 0;
  const TimePoint now{};
  for (int round = 0; round < 5; ++round) {
    JobQueue queue = make_queue(keys);
    const std::size_t empty = queue.memory_bytes();
    auto start = Stopwatch::now();
    fill(queue, jobs, keys, now);
    puts.push_back(static_cast<double>(jobs) / seconds_since(start) / 1e6);
    bytes = static_cast<double>(queue.memory_bytes() - empty) / static_cast<double>(jobs) - sizeof(std::uint64_t);
    start = Stopwatch::now();
    while (auto lease = queue.lease(now, std::chrono::seconds{60})) queue.done(lease->token, now);
    works.push_back(static_cast<double>(jobs) / seconds_since(start) / 1e6);
  }
  const std::string with = fmt::format(", {} jobs, {} keys", jobs, keys);
  bench::report("job_queue put" + with, bench::median(puts), "M/s", {{"pyspider (recorded)", 0.46}});
  bench::report("job_queue lease+done" + with, bench::median(works), "M/s", {{"pyspider (recorded)", 0.15}});
  bench::report("job_queue memory" + with, bytes, "B/job", {{"pyspider (recorded)", 135}});
}

void raise_priority(std::size_t jobs) {
  std::vector<double> rates;
  const TimePoint now{};
  for (int round = 0; round < 5; ++round) {
    JobQueue queue = make_queue(1);
    fill(queue, jobs, 1, now);
    Random random(1);
    constexpr int kRaises = 1'000'000;
    const auto start = Stopwatch::now();
    for (int i = 0; i < kRaises; ++i) {
      queue.set_priority(random.below(jobs) + 1, 10 + i / 100, now);
    }
    rates.push_back(kRaises / seconds_since(start));
  }
  bench::report(fmt::format("job_queue raise priority, {} queued", jobs), bench::median(rates), "per s",
                {{"pyspider (recorded)", 41}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  for (const std::size_t keys : {1, 1'000, 100'000}) put_and_work(jobs, keys);
  raise_priority(100'000);
}

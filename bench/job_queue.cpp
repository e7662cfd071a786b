// JobQueue in memory: put, lease and done, raising a priority, bytes a job. Usage: bench_job_queue [jobs]
//
// pyspider's figures were measured on the machine that docs/benchmarks.md names; it is in no Debian package, so it
// cannot run beside.
#include "argiope/jobs/job_queue.hpp"

#include <chrono>
#include <cstdlib>

#include "argiope/base/random.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
using Stopwatch = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr TimePoint kNow{};
constexpr Duration kLease = std::chrono::seconds{60};
constexpr char kPeer[] = "pyspider (recorded)";

double seconds_since(Stopwatch::time_point start) {
  return std::chrono::duration<double>(Stopwatch::now() - start).count();
}

// The keys exist, as they do in a queue that has worked for a while; the jobs are new.
JobQueue queue_with_keys(std::size_t keys) {
  JobQueue queue;
  for (std::size_t i = 0; i < keys; ++i) queue.key(std::to_string(i));
  return queue;
}

void fill(JobQueue& queue, std::size_t jobs, std::size_t keys) {
  for (std::size_t i = 0; i < jobs; ++i) {
    queue.put({i + 1, KeyId{static_cast<std::uint32_t>(i % keys)}, static_cast<std::int32_t>(i * 7919 % 10), kNow, i},
              kNow);
  }
}

// Leases `window` jobs, settles them in that order, and so on until none is left.
void work_off(JobQueue& queue, std::size_t window) {
  std::vector<std::uint64_t> tokens;
  tokens.reserve(window);
  do {
    tokens.clear();
    while (tokens.size() < window) {
      const auto lease = queue.lease(kNow, kLease);
      if (!lease) break;
      tokens.push_back(lease->token);
    }
    for (const std::uint64_t token : tokens) queue.done(token, kNow);
  } while (!tokens.empty());
}

void put_and_work(std::size_t jobs, std::size_t keys) {
  constexpr std::size_t kWindows[] = {1, 1000};
  std::vector<double> puts, works[std::size(kWindows)];
  double bytes_of_jobs = 0, bytes_of_keys = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t w = 0; w < std::size(kWindows); ++w) {
      JobQueue queue = queue_with_keys(keys);
      const auto empty = static_cast<double>(queue.memory_bytes());
      auto start = Stopwatch::now();
      fill(queue, jobs, keys);
      puts.push_back(static_cast<double>(jobs) / seconds_since(start) / 1e6);
      bytes_of_keys = (empty - static_cast<double>(JobQueue().memory_bytes())) / static_cast<double>(keys);
      bytes_of_jobs = (static_cast<double>(queue.memory_bytes()) - empty) / static_cast<double>(jobs);
      start = Stopwatch::now();
      work_off(queue, kWindows[w]);
      works[w].push_back(static_cast<double>(jobs) / seconds_since(start) / 1e6);
    }
  }
  const std::string with = fmt::format(", {} jobs, {} keys", jobs, keys);
  bench::report("job_queue put" + with, bench::median(puts), "M/s", {{kPeer, 0.46}});
  for (std::size_t w = 0; w < std::size(kWindows); ++w) {
    const std::string running = kWindows[w] == 1 ? "" : fmt::format(", {} running", kWindows[w]);
    bench::report("job_queue lease+done" + with + running, bench::median(works[w]), "M/s", {{kPeer, 0.15}});
  }
  // The payload's number is the caller's own.
  bench::report("job_queue memory" + with, bytes_of_jobs - sizeof(JobSpec::payload), "B/job", {{kPeer, 135}});
  if (keys > 1) bench::report(fmt::format("job_queue memory, {} keys", keys), bytes_of_keys, "B/key");
}

// Each raise makes a job the most important one but for those of the same hundred.
void raise_priority(std::size_t jobs, std::size_t keys) {
  constexpr int kRaises = 1'000'000;
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    JobQueue queue = queue_with_keys(keys);
    fill(queue, jobs, keys);
    Random random(1);
    const auto start = Stopwatch::now();
    for (int i = 0; i < kRaises; ++i) queue.set_priority(random.below(jobs) + 1, 10 + i / 100, kNow);
    rates.push_back(kRaises / seconds_since(start));
  }
  bench::report(fmt::format("job_queue raise priority, {} queued, {} keys", jobs, keys), bench::median(rates), "per s",
                {{kPeer, 41}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  for (const std::size_t keys : {1, 1'000, 100'000}) put_and_work(jobs, keys);
  for (const std::size_t keys : {1, 1'000, 100'000}) raise_priority(100'000, keys);
}

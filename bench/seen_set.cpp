// The set of URLs seen: checks a second and bytes a URL, beside the standard library's and Boost's sets.
// Usage: bench_seen_set [entries]
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

#include "argiope/base/random.hpp"
#include "base/internal/fingerprint.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
// A page's links, as a crawl would check them together.
constexpr std::size_t kLinks = 50;
// Small sets are measured so often that each figure stands for this many operations.
constexpr std::size_t kLeastOperations = 2'000'000;

// Processor time: nothing here waits, and what else the machine does shall not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Millions a second.
double rate(std::size_t operations, double start) {
  return static_cast<double>(operations) / (cpu_seconds() - start) / 1e6;
}

std::size_t resident_bytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::size_t>(pages * ::sysconf(_SC_PAGESIZE));
}

struct Figures {
  double insert, lookup;
};

// Growth included; every second look-up finds something. The median of enough rounds.
template <class Set>
Figures measure(std::size_t entries) {
  std::vector<double> insert, lookup;
  for (std::size_t done = 0; done < std::max(kLeastOperations, entries); done += entries) {
    Set set;
    auto start = cpu_seconds();
    for (std::size_t i = 0; i < entries; ++i) set.insert(mix64(i));
    insert.push_back(rate(entries, start));
    start = cpu_seconds();
    std::size_t found = 0;
    for (std::size_t i = 0; i < entries; ++i) found += set.contains(mix64(i * 2));
    lookup.push_back(rate(entries, start));
    if (found != (entries + 1) / 2) std::abort();
  }
  return {bench::median(insert), bench::median(lookup)};
}

double measure_batches(std::size_t entries) {
  std::vector<double> insert;
  for (std::size_t done = 0; done < std::max(kLeastOperations, entries); done += entries) {
    FingerprintSet set;
    std::array<std::uint64_t, kLinks> values;
    std::array<bool, kLinks> inserted;
    const auto start = cpu_seconds();
    for (std::size_t i = 0; i + kLinks <= entries; i += kLinks) {
      for (std::size_t j = 0; j < kLinks; ++j) values[j] = mix64(i + j);
      set.insert_batch(values, inserted);
    }
    insert.push_back(rate(entries, start));
  }
  return bench::median(insert);
}

// The worst of every moment from a tenth of the entries on.
void report_memory(std::size_t entries, const std::string& with) {
  ::malloc_trim(0);
  const std::size_t before = resident_bytes();
  FingerprintSet set;
  double tables = 0, resident = 0;
  for (std::size_t i = 1; i <= entries; ++i) {
    set.insert(mix64(i));
    if (i < entries / 10) continue;
    if (i % 64 == 0) tables = std::max(tables, static_cast<double>(set.memory_bytes()) / static_cast<double>(i));
    if (i % (entries / 500) == 0) {
      const std::size_t now = resident_bytes();
      resident = std::max(resident, static_cast<double>(now - std::min(before, now)) / static_cast<double>(i));
    }
  }
  bench::report("seen_set memory, worst while growing" + with, tables, "B/URL");
  // Below a megabyte or so the figure is the allocator's, and not the set's.
  if (entries >= 1'000'000) bench::report("seen_set resident, worst while growing" + with, resident, "B/URL");
}

void compare(std::size_t entries) {
  const std::string with = fmt::format(", {} entries", entries);
  report_memory(entries, with);
  const Figures ours = measure<FingerprintSet>(entries);
  const Figures standard = measure<std::unordered_set<std::uint64_t>>(entries);
  const Figures flat = measure<boost::unordered_flat_set<std::uint64_t>>(entries);
  bench::report("seen_set insert" + with, ours.insert, "M/s", {{"std", standard.insert}, {"boost flat", flat.insert}});
  bench::report(fmt::format("seen_set insert by {}{}", kLinks, with), measure_batches(entries), "M/s");
  bench::report("seen_set lookup" + with, ours.lookup, "M/s", {{"std", standard.lookup}, {"boost flat", flat.lookup}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    compare(std::max<std::size_t>(std::strtoull(argv[1], nullptr, 10), 1000));
    return 0;
  }
  for (const std::size_t entries : {50'000, 5'000'000, 10'000'000}) compare(entries);
}

// The set of URLs seen: checks a second and bytes a URL, beside the standard library's and Boost's sets.
// Usage: bench_seen_set [entries]
#include <boost/unordered/unordered_flat_set.hpp>
#include <chrono>
#include <cstdlib>
#include <unordered_set>

#include "argiope/base/fingerprint.hpp"
#include "argiope/base/random.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
using Stopwatch = std::chrono::steady_clock;

// Millions a second of `count` calls of `work`.
template <class Work>
double rate(std::size_t count, Work&& work) {
  const auto start = Stopwatch::now();
  for (std::size_t i = 0; i < count; ++i) work(i);
  return static_cast<double>(count) / std::chrono::duration<double>(Stopwatch::now() - start).count() / 1e6;
}

struct Figures {
  double insert, lookup;
};

// Every second look-up finds something.
template <class Set, class Contains>
Figures measure(std::size_t entries, Set& set, Contains&& contains) {
  const double insert = rate(entries, [&](std::size_t i) { set.insert(mix64(i)); });
  std::size_t found = 0;
  const double lookup = rate(entries, [&](std::size_t i) { found += contains(set, mix64(i * 2)); });
  if (found == 0) std::abort();
  return {insert, lookup};
}

void compare(std::size_t entries) {
  FingerprintSet ours;
  double worst = 0;
  const auto contains = [](const auto& set, std::uint64_t value) { return set.contains(value); };
  const Figures a = measure(entries, ours, contains);
  FingerprintSet grown;
  for (std::size_t i = 0; i < entries; ++i) {
    grown.insert(mix64(i));
    if (i >= entries / 10 && i % 1024 == 0) {
      worst = std::max(worst, static_cast<double>(grown.memory_bytes()) / static_cast<double>(i + 1));
    }
  }
  std::unordered_set<std::uint64_t> standard;
  const Figures b = measure(entries, standard, contains);
  boost::unordered_flat_set<std::uint64_t> flat;
  const Figures c = measure(entries, flat, contains);
  const std::string with = fmt::format(", {} entries", entries);
  bench::report("seen_set insert" + with, a.insert, "M/s", {{"std", b.insert}, {"boost flat", c.insert}});
  bench::report("seen_set lookup" + with, a.lookup, "M/s", {{"std", b.lookup}, {"boost flat", c.lookup}});
  bench::report("seen_set memory, worst while growing" + with, worst, "B/URL");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    compare(std::strtoull(argv[1], nullptr, 10));
    return 0;
  }
  for (const std::size_t entries : {50'000, 5'000'000, 10'000'000}) compare(entries);
}

// What it costs to ask a robots.txt about a path, and to read one: files of a few rules, as most are, of a thousand,
// and one made to be slow.
#include "argiope/web/robots.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;

constexpr int kRounds = 7;

// Median nanoseconds that one of `count` calls takes.
template <class Call>
double time_calls(std::size_t count, Call call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) call(i);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    rounds.push_back(taken.count() / static_cast<double>(count));
  }
  return bench::median(rounds);
}

std::string word(Random& random) {
  std::string made;
  for (std::size_t size = 3 + random.below(8); size > 0; --size) made += static_cast<char>('a' + random.below(26));
  return made;
}

std::string file_of(std::size_t rules, std::size_t wildcards, Random& random) {
  std::string file = "User-agent: *\n";
  for (std::size_t i = 0; i < rules; ++i) {
    file += i < wildcards ? "Disallow: /*" + word(random) + "=*" + word(random) + "\n"
                          : "Disallow: /" + word(random) + "/" + word(random) + "\n";
  }
  return file;
}

}  // namespace

int main() {
  Random random(1);
  std::vector<std::string> paths;
  for (int i = 0; i < 1024; ++i) {
    paths.push_back("/" + word(random) + "/" + word(random) + "/" + word(random) + "-" + word(random) + ".html");
    if (i % 4 == 0) paths.back() += "?" + word(random) + "=" + word(random);
  }
  std::size_t refused = 0;
  const auto ask = [&](std::string_view workload, const RobotsRules& rules, std::size_t count) {
    bench::report(workload,
                  time_calls(count, [&](std::size_t i) { refused += !rules.allowed(paths[i % paths.size()]); }), "ns");
  };
  ask("robots: ask, no rule", RobotsRules::allow_all(), 1'000'000);
  ask("robots: ask, 10 rules", RobotsRules::parse(file_of(10, 2, random), "argiope"), 1'000'000);
  ask("robots: ask, 100 rules", RobotsRules::parse(file_of(100, 20, random), "argiope"), 300'000);
  ask("robots: ask, 1,000 rules", RobotsRules::parse(file_of(1000, 200, random), "argiope"), 30'000);

  const std::string file = file_of(1000, 200, random);
  bench::report(
      "robots: read a file of 1,000 rules",
      time_calls(200, [&](std::size_t) { refused += RobotsRules::parse(file, "argiope").rule_count(); }) / 1e3, "us");

  std::string hostile = "User-agent: *\n";
  while (hostile.size() < RobotsRules::kMostBytes) hostile += "Disallow: /*" + std::string(300, 'a') + "b\n";
  const RobotsRules slow = RobotsRules::parse(hostile, "argiope");
  const std::string path = "/" + std::string(2000, 'a');
  bench::report("robots: ask, a file made to be slow",
                time_calls(20, [&](std::size_t) { refused += slow.allowed(path); }) / 1e3, "us");
  return refused == 0;  // keeps the calls from being optimised away; some are always refused
}

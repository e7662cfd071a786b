// How every benchmark prints: one readable table row and one JSON line a workload,
// {"workload":…,"argiope":…,"unit":…,"peers":{…}}, so that people and scripts read the same run.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace argiope::bench {

struct Peer {
  std::string name;
  double value;
};

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// `unit` says what the numbers are and, by its name, which way is better ("ns", "pages/s").
inline void report(std::string_view workload, double argiope, std::string_view unit,
                   const std::vector<Peer>& peers = {}) {
  fmt::print("{:<44} {:>14.2f} {:<10}", workload, argiope, unit);
  for (const Peer& peer : peers) fmt::print("  {} {:.2f}", peer.name, peer.value);
  fmt::print("\n{{\"workload\":\"{}\",\"argiope\":{:.4f},\"unit\":\"{}\",\"peers\":{{", workload, argiope, unit);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    fmt::print("{}\"{}\":{:.4f}", i == 0 ? "" : ",", peers[i].name, peers[i].value);
  }
  fmt::print("}}}}\n");
}

}  // namespace argiope::bench

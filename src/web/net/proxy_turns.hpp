// Which of several proxies a host is asked by. Pure: no clock, no chance, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/web/detail/proxy.hpp"

namespace argiope {

// Hosts get the proxies in turn, and each keeps its own. One that fails rests, longer each time, and its hosts move to
// others, which they keep. When all of them rest, the one whose rest ends first is asked nevertheless.
//
// Memory:  some 40 bytes for each of the first kRemembered hosts. Those behind them have the proxy that their name
//          gives.
// Threads: one at a time.
class ProxyTurns {
 public:
  static constexpr std::size_t kRemembered = 100'000;
  static constexpr Duration kFirstRest = std::chrono::seconds{30};
  static constexpr Duration kLongestRest = std::chrono::minutes{10};

  explicit ProxyTurns(std::vector<Proxy> proxies);

  std::size_t size() const noexcept { return members_.size(); }
  // There must be one. The reference is valid as long as this is.
  const Proxy& choose(std::string_view host, TimePoint now);
  // The chosen proxy does not do its work, or does it.
  void failed(const Proxy& proxy, TimePoint now);
  void worked(const Proxy& proxy) { member(proxy).failures = 0; }

 private:
  struct Member {
    Proxy proxy;
    TimePoint rests_until = TimePoint::min();
    unsigned failures = 0;  // in a row
  };
  Member& member(const Proxy& proxy);
  std::size_t take_turn() noexcept;
  // The next in turn after `index` that does not rest; else the one whose rest ends first.
  std::size_t instead_of(std::size_t index, TimePoint now);

  std::vector<Member> members_;
  std::size_t next_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> chosen_;  // by the host's hash: hosts that share one share a proxy
};

}  // namespace argiope

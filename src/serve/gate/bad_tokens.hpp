// BadTokens: how often an address has sent tokens that are not known, and whether it may try again.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/detail/token_level.hpp"
#include "argiope/web/detail/ip_address.hpp"

namespace argiope {

// The address of ServerRequest::peer; of IPv6 the first 64 bits, which one client can have whole. 0.0.0.0: not known.
IpAddress source_of(std::string_view peer);

// Twenty tries at once, then one a second. It remembers a bounded number of addresses; while so many try at a time, it
// bars no others, each of whose tries costs no more than a SHA-256.
class BadTokens {
 public:
  // Whether it has used up its tries for now.
  bool is_barred(const IpAddress& source, TimePoint now) const noexcept;
  // It has sent a bad one.
  void note(const IpAddress& source, TimePoint now);
  // How many addresses are remembered.
  std::size_t size() const noexcept { return levels_.size(); }

 private:
  void forget_calm_ones(TimePoint now);

  std::unordered_map<IpAddress, TokenLevel> levels_;
  TimePoint next_clean_ = TimePoint::min();
};

}  // namespace argiope

#include "serve/gate/bad_tokens.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace argiope {

namespace {

constexpr double kTries = 20;
constexpr double kTriesPerSecond = 1;
constexpr std::size_t kMostSources = 4096;
constexpr Duration kCleanInterval = std::chrono::seconds{1};
constexpr std::array<std::uint8_t, 12> kMappedV4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

IpAddress network_of(const IpAddress& address) {
  if (address.is_v4()) return address;
  const auto bytes = address.bytes();
  if (std::ranges::equal(bytes.first(12), kMappedV4))
    return IpAddress::v4({bytes[12], bytes[13], bytes[14], bytes[15]});
  std::array<std::uint8_t, 16> network{};
  std::copy_n(bytes.begin(), 8, network.begin());
  return IpAddress::v6(network);
}

}  // namespace

IpAddress source_of(std::string_view peer) {
  peer = peer.substr(0, std::min(peer.rfind(':'), peer.size()));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  peer = peer.substr(0, std::min(peer.find('%'), peer.size()));  // the zone
  return network_of(IpAddress::parse(peer).value_or(IpAddress{}));
}

bool BadTokens::is_barred(const IpAddress& source, TimePoint now) const noexcept {
  const auto found = levels_.find(source);
  return found != levels_.end() && !found->second.ready(now);
}

void BadTokens::note(const IpAddress& source, TimePoint now) {
  if (levels_.size() >= kMostSources) forget_calm_ones(now);
  if (levels_.size() >= kMostSources && !levels_.contains(source)) return;
  levels_.try_emplace(source, kTriesPerSecond, kTries).first->second.try_take(now);
}

void BadTokens::forget_calm_ones(TimePoint now) {
  if (now < next_clean_) return;
  next_clean_ = saturating_add(now, kCleanInterval);
  std::erase_if(levels_, [now](const auto& entry) { return entry.second.full(now); });
}

}  // namespace argiope

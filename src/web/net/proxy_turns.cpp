#include "web/net/proxy_turns.hpp"

#include <algorithm>
#include <functional>

namespace argiope {

ProxyTurns::ProxyTurns(std::vector<Proxy> proxies) {
  members_.reserve(proxies.size());
  for (Proxy& proxy : proxies) members_.push_back({std::move(proxy)});
}

ProxyTurns::Member& ProxyTurns::member(const Proxy& proxy) {
  return *std::ranges::find_if(members_, [&](const Member& one) { return &one.proxy == &proxy; });
}

std::size_t ProxyTurns::take_turn() noexcept { return next_++ % members_.size(); }

const Proxy& ProxyTurns::choose(std::string_view host, TimePoint now) {
  if (members_.size() == 1) return members_.front().proxy;
  const std::uint64_t hash = std::hash<std::string_view>{}(host);
  const auto found = chosen_.find(hash);
  const bool is_kept = found != chosen_.end() || chosen_.size() < kRemembered;
  std::size_t index = found != chosen_.end() ? found->second : is_kept ? take_turn() : hash % members_.size();
  if (members_[index].rests_until > now) index = instead_of(index, now);
  // While all of them rest, nobody moves.
  if (is_kept && members_[index].rests_until <= now) chosen_[hash] = static_cast<std::uint32_t>(index);
  return members_[index].proxy;
}

std::size_t ProxyTurns::instead_of(std::size_t index, TimePoint now) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::size_t other = take_turn();
    if (other != index && members_[other].rests_until <= now) return other;
  }
  const auto first = std::ranges::min_element(members_, {}, &Member::rests_until);
  return static_cast<std::size_t>(first - members_.begin());
}

void ProxyTurns::failed(const Proxy& proxy, TimePoint now) {
  Member& its = member(proxy);
  // Several connections may fail of one trouble.
  if (its.failures > 0 && its.rests_until > now) return;
  const Duration rest = kFirstRest * (1 << std::min(its.failures++, 10u));
  its.rests_until = saturating_add(now, std::min(rest, kLongestRest));
}

}  // namespace argiope

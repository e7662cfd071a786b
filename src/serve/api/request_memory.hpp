// RequestMemory: what became of requests with an Idempotency-Key, where the store does not remember it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/detail/requests.hpp"

namespace argiope {

// As long as the daemon runs, for kRequestsKept. Each caller has a share of its own, of so many requests and so much
// weight; one whose share is full is told so, and nothing of his or of others is forgotten for it.
//
// Threads: the loop's own.
template <class Answer>
class RequestMemory {
 public:
  static constexpr std::size_t kMostRequests = 10'000;  // of one caller

  // `most_weight`: of all that is kept for one caller, in whatever keep() weighs it. `is_over`: of what was kept and
  // needs no keeping any more; such requests make room for others. Empty: nothing does.
  explicit RequestMemory(std::size_t most_weight, std::function<bool(const Answer&)> is_over = {})
      : most_weight_(most_weight), is_over_(std::move(is_over)) {}

  enum class State : std::uint8_t { first, under_way, repeated, mismatch, full };
  struct Found {
    State state = State::first;
    const Answer* answer = nullptr;  // repeated: what was kept, until the next call
  };
  // Whether the request of `who` has come before. A first one is under way from now on, until keep() or forget().
  Found begin(const std::string& who, const RequestKey& key, TimePoint now) {
    const auto place = shares_.find(who);
    if (place == shares_.end()) drop_old_of_all(now);
    Share& share = place == shares_.end() ? shares_[who] : place->second;
    drop_old(share, now);
    if (const auto known = share.by_key.find(key.key); known != share.by_key.end())
      return found_of(*known->second, key);
    if (is_full(share)) drop_over(share, now);
    if (is_full(share)) return {State::full};
    share.entries.push_back({.key = key.key, .digest = key.digest, .until = saturating_add(now, kRequestsKept)});
    share.by_key.emplace(share.entries.back().key, std::prev(share.entries.end()));
    return {State::first};
  }

  void keep(const std::string& who, const RequestKey& key, Answer answer, std::size_t weight) {
    const auto share = shares_.find(who);
    if (share == shares_.end()) return;
    const auto known = share->second.by_key.find(key.key);
    if (known == share->second.by_key.end()) return;
    known->second->answer = std::move(answer);
    known->second->weight = weight;
    share->second.weight += weight;
  }

  void forget(const std::string& who, const RequestKey& key) {
    const auto share = shares_.find(who);
    if (share == shares_.end()) return;
    const auto known = share->second.by_key.find(key.key);
    if (known != share->second.by_key.end()) erase(share->second, known->second);
  }

 private:
  // How often at most one who comes with a full share has it searched for what is over.
  static constexpr Duration kBetweenSearches = std::chrono::seconds{1};

  struct Entry {
    std::string key, digest;
    TimePoint until{};
    std::optional<Answer> answer{};  // nullopt: it is under way
    std::size_t weight = 0;
  };
  using Entries = std::list<Entry>;
  struct Share {
    Entries entries;  // oldest first
    std::unordered_map<std::string_view, typename Entries::iterator> by_key;
    std::size_t weight = 0;
    TimePoint search_at = TimePoint::min();
  };

  static Found found_of(const Entry& known, const RequestKey& key) {
    if (known.digest != key.digest) return {State::mismatch};
    if (!known.answer) return {State::under_way};
    return {State::repeated, &*known.answer};
  }
  bool is_full(const Share& share) const {
    return share.entries.size() >= kMostRequests || share.weight >= most_weight_;
  }
  void erase(Share& share, typename Entries::iterator entry) {
    share.weight -= entry->weight;
    share.by_key.erase(entry->key);
    share.entries.erase(entry);
  }
  void drop_old(Share& share, TimePoint now) {
    while (!share.entries.empty() && share.entries.front().until <= now) erase(share, share.entries.begin());
  }
  void drop_old_of_all(TimePoint now) {
    for (auto& [who, share] : shares_) drop_old(share, now);
    std::erase_if(shares_, [](const auto& one) { return one.second.entries.empty(); });
  }
  void drop_over(Share& share, TimePoint now) {
    if (!is_over_ || now < share.search_at) return;
    share.search_at = saturating_add(now, kBetweenSearches);
    for (auto entry = share.entries.begin(); entry != share.entries.end();) {
      const auto looked_at = entry++;
      if (looked_at->answer && is_over_(*looked_at->answer)) erase(share, looked_at);
    }
  }

  const std::size_t most_weight_;
  const std::function<bool(const Answer&)> is_over_;
  std::map<std::string, Share> shares_;  // by who
};

// A request under way. Whatever ends it without keep(), a client that leaves included, lets it be tried again.
template <class Answer>
class RequestUnderWay {
 public:
  RequestUnderWay(RequestMemory<Answer>& memory, std::string who, RequestKey key)
      : memory_(memory), who_(std::move(who)), key_(std::move(key)) {}
  RequestUnderWay(const RequestUnderWay&) = delete;
  ~RequestUnderWay() {
    if (!kept_) memory_.forget(who_, key_);
  }
  void keep(Answer answer, std::size_t weight) {
    kept_ = true;
    memory_.keep(who_, key_, std::move(answer), weight);
  }

 private:
  RequestMemory<Answer>& memory_;
  const std::string who_;
  const RequestKey key_;
  bool kept_ = false;
};

}  // namespace argiope

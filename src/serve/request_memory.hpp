// RequestMemory: what became of requests with an Idempotency-Key, where the store does not remember it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/requests.hpp"

namespace argiope {

// As long as the daemon runs, and for kRequestsKept at most; of so many requests, and of so much weight together, the oldest
// going first.
//
// Threads: the loop's own.
template <class Answer>
class RequestMemory {
 public:
  static constexpr std::size_t kMostRequests = 10'000;

  // `most_weight`: of all that is kept, in whatever keep() weighs it.
  explicit RequestMemory(std::size_t most_weight) : most_weight_(most_weight) {}

  enum class State : std::uint8_t { first, under_way, repeated, mismatch };
  struct Found {
    State state = State::first;
    const Answer* answer = nullptr;  // repeated: what was kept, until the next call
  };
  // Whether the request has come before. A first one is under way from now on, until keep() or forget().
  Found begin(const RequestKey& key, TimePoint now) {
    drop_old(now);
    const auto [entry, is_new] = entries_.try_emplace(key.key, Entry{.digest = key.digest, .answer = std::nullopt});
    if (is_new) {
      ages_.push_back({key.key, saturating_add(now, kRequestsKept)});
      return {State::first};
    }
    const Entry& known = entry->second;
    if (known.digest != key.digest) return {State::mismatch};
    if (!known.answer) return {State::under_way};
    return {State::repeated, &*known.answer};
  }

  void keep(const RequestKey& key, Answer answer, std::size_t weight) {
    const auto entry = entries_.find(key.key);
    if (entry == entries_.end()) return;
    entry->second.answer = std::move(answer);
    entry->second.weight = weight;
    weight_ += weight;
  }

  void forget(const RequestKey& key) { erase(key.key); }

 private:
  struct Entry {
    std::string digest;
    std::optional<Answer> answer;
    std::size_t weight = 0;
  };
  struct Age {
    std::string key;
    TimePoint until{};
  };

  void erase(const std::string& key) {
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return;
    weight_ -= entry->second.weight;
    entries_.erase(entry);
  }
  void drop_old(TimePoint now) {
    const auto is_too_much = [this] { return ages_.size() > kMostRequests || weight_ > most_weight_; };
    while (!ages_.empty() && (ages_.front().until <= now || is_too_much())) {
      erase(ages_.front().key);
      ages_.pop_front();
    }
  }

  const std::size_t most_weight_;
  std::size_t weight_ = 0;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<Age> ages_;  // oldest first; of what was forgotten, too
};

// A request under way. Whatever ends it without keep(), a client that leaves included, lets it be tried again.
template <class Answer>
class RequestUnderWay {
 public:
  RequestUnderWay(RequestMemory<Answer>& memory, RequestKey key) : memory_(memory), key_(std::move(key)) {}
  RequestUnderWay(const RequestUnderWay&) = delete;
  ~RequestUnderWay() {
    if (!kept_) memory_.forget(key_);
  }
  void keep(Answer answer, std::size_t weight) {
    kept_ = true;
    memory_.keep(key_, std::move(answer), weight);
  }

 private:
  RequestMemory<Answer>& memory_;
  const RequestKey key_;
  bool kept_ = false;
};

}  // namespace argiope

// The keys of a JobQueue: their names, limits and rests, and which of them may start a job.
#include <algorithm>
#include <stdexcept>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {

KeyId JobQueue::key(std::string_view name) {
  if (const auto found = key_names_.find(name); found != key_names_.end()) return found->second;
  if (forgotten_key_ != kNoKey) {
    const std::uint32_t index = forgotten_key_;
    const auto named = key_names_.emplace(name, KeyId{index}).first;
    forgotten_key_ = key_places_[index];
    keys_[index].forgotten = false;
    keys_[index].name = &named->first;
    apply_limits(KeyId{index}, default_key_limits_, TimePoint::min());
    return KeyId{index};
  }
  // Room for every key in either heap, so that a change of standing cannot fail.
  if (keys_.size() == keys_.capacity()) keys_.reserve(keys_.size() * 2 + 16);
  key_places_.reserve(keys_.capacity());
  eligible_.reserve(keys_.capacity());
  resting_.reserve(keys_.capacity());
  const KeyId key{static_cast<std::uint32_t>(keys_.size())};
  const auto named = key_names_.emplace(name, key).first;
  keys_.emplace_back().name = &named->first;
  key_places_.push_back(0);
  apply_limits(key, default_key_limits_, TimePoint::min());
  return key;
}

std::uint32_t JobQueue::index_of(KeyId key) const {
  const auto index = static_cast<std::uint32_t>(key);
  if (index >= keys_.size() || keys_[index].forgotten) throw std::invalid_argument("no such key in this queue");
  return index;
}

void JobQueue::apply_limits(KeyId id, const KeyLimits& limits, TimePoint now) noexcept {
  Key& key = keys_[static_cast<std::uint32_t>(id)];
  key.concurrency = limits.concurrency;
  key.delay = limits.delay;
  key.bucket.set(limits.rate, limits.burst, now);
  update_key(id, now);
}

void JobQueue::set_key_limits(KeyId key, const KeyLimits& limits, TimePoint now) {
  keys_[index_of(key)].own_limits = true;
  apply_limits(key, limits, now);
}

void JobQueue::reset_key_limits(KeyId key, TimePoint now) {
  keys_[index_of(key)].own_limits = false;
  apply_limits(key, default_key_limits_, now);
}

void JobQueue::set_default_key_limits(const KeyLimits& limits, TimePoint now) {
  default_key_limits_ = limits;
  for (std::uint32_t index = 0; index < keys_.size(); ++index) {
    if (!keys_[index].own_limits && !keys_[index].forgotten) apply_limits(KeyId{index}, limits, now);
  }
}

void JobQueue::rest_key(KeyId key, TimePoint until, TimePoint now) {
  TimePoint& rest_until = keys_[index_of(key)].rest_until;
  if (until <= rest_until) return;
  rest_until = until;
  update_key(key, now);
}

void JobQueue::wake_key(KeyId key, TimePoint now) {
  keys_[index_of(key)].rest_until = TimePoint::min();
  update_key(key, now);
}

bool JobQueue::is_idle(const Key& key, TimePoint now) const noexcept {
  return key.ready.empty() && key.delayed == 0 && key.running == 0 && key.rest_until <= now && key.bucket.full(now);
}

void JobQueue::forget(std::uint32_t index) noexcept {
  keys_[index] = Key{};
  keys_[index].forgotten = true;
  key_places_[index] = forgotten_key_;
  forgotten_key_ = index;
}

bool JobQueue::forget_key(KeyId key, TimePoint now) {
  const std::uint32_t index = index_of(key);
  if (!is_idle(keys_[index], now)) return false;
  key_names_.erase(key_names_.find(*keys_[index].name));
  forget(index);
  return true;
}

std::size_t JobQueue::prune_keys(TimePoint now) noexcept {
  return std::erase_if(key_names_, [&](const auto& named) {
    const auto index = static_cast<std::uint32_t>(named.second);
    if (keys_[index].own_limits || !is_idle(keys_[index], now)) return false;
    forget(index);
    return true;
  });
}

JobCounts JobQueue::counts(KeyId id) const {
  const Key& key = keys_[index_of(id)];
  return {key.ready.size(), key.delayed, key.running};
}

// Puts a key where its jobs and limits say it belongs: among those that may start a job, among those that time will let
// go on, or nowhere, until a job of its own ends or comes.
void JobQueue::update_key(KeyId id, TimePoint now) noexcept {
  Key& key = keys_[static_cast<std::uint32_t>(id)];
  const std::uint32_t place = key_places_[static_cast<std::uint32_t>(id)];
  Standing standing = Standing::out;
  TimePoint allowed = now;
  if (!key.ready.empty() && key.running < key.concurrency) {
    allowed = std::max(key.rest_until, key.bucket.next_available(now));
    standing = allowed <= now ? Standing::eligible : allowed == kNever ? Standing::out : Standing::resting;
  }
  if (standing != key.standing) {
    if (key.standing == Standing::eligible) eligible_.erase(place, key_place());
    if (key.standing == Standing::resting) resting_.erase(place, key_place());
    key.standing = standing;
    if (standing == Standing::eligible) eligible_.push(key.ready.top().rank, id, key_place());
    if (standing == Standing::resting) resting_.push(allowed, id, key_place());
  } else if (standing == Standing::eligible) {
    const ReadyRank rank = key.ready.top().rank;
    if (eligible_[place].rank.value != rank.value) eligible_.update(place, rank, key_place());
  } else if (standing == Standing::resting) {
    resting_.update(place, allowed, key_place());
  }
}

}  // namespace argiope

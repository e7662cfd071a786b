// The URLs that a crawl has met, in this run or an earlier one, by fingerprint; and ids for new ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "argiope/store/detail/url_store.hpp"
#include "base/internal/fingerprint.hpp"

namespace argiope {

// Threads: begin_at() and know() before any work; after that any thread.
class SeenUrls {
 public:
  // `keeps_ids`: ids of URLs are found again.
  SeenUrls(std::uint64_t seed, bool keeps_ids) : keeps_ids_(keeps_ids), seen_(mix64(seed)) {}

  // Ids below it are of earlier runs.
  void begin_at(std::int64_t first_new_id) noexcept { next_id_ = first_new_id_ = first_new_id; }
  std::int64_t first_new_id() const noexcept { return first_new_id_; }
  void know(const UrlStore::KnownUrls& known) {
    if (seen_.size() == 0) seen_.reserve(known.most);
    bool news[kAtOnce];
    for (std::size_t from = 0; from < known.fingerprints.size(); from += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, known.fingerprints.size() - from);
      seen_.insert_batch(known.fingerprints.subspan(from, count), news);
    }
    if (!keeps_ids_) return;
    for (std::size_t i = 0; i < known.ids.size(); ++i) ids_.emplace(known.fingerprints[i], known.ids[i]);
  }

  // New for the first that asks, which stores the URL under that id. A known URL has its id where ids are kept; else 0.
  struct Claim {
    bool is_new = false;
    std::int64_t id = 0;
  };
  Claim claim(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    if (!seen_.insert(fingerprint)) return {false, find_id(fingerprint)};
    const std::int64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    if (keeps_ids_) ids_.emplace(fingerprint, id);
    return {true, id};
  }
  // Of what is known, where ids are kept; else 0.
  std::int64_t id_of(std::uint64_t fingerprint) const {
    std::lock_guard lock(mutex_);
    return find_id(fingerprint);
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  static constexpr std::size_t kAtOnce = 1'000;  // URLs whose places in the set are fetched into the cache together

  std::int64_t find_id(std::uint64_t fingerprint) const {
    const auto known = ids_.find(fingerprint);
    return known == ids_.end() ? 0 : known->second;
  }

  const bool keeps_ids_;
  mutable std::mutex mutex_;
  FingerprintSet seen_;
  std::unordered_map<std::uint64_t, std::int64_t> ids_;  // by fingerprint
  std::atomic<std::int64_t> next_id_{1};
  std::int64_t first_new_id_ = 1;
};

}  // namespace argiope

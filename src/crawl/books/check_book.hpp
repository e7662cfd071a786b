// The shards' common knowledge of URLs that are only checked, as long as more may be asked of one than was at
// first: an asset to which a link leads is a page after all, and a page elsewhere to which a fragment leads must be
// read.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace argiope {

// Empty, and nothing but one load, in a crawl that checks neither assets nor foreign fragments and knows no assets.
//
// Memory: some 50 bytes a URL. Threads: any.
class CheckBook {
 public:
  struct Entry {
    std::int64_t id = 0;
    bool is_asset = false;   // no link leads there, as far as is known
    bool wants_ids = false;  // a link leads to a fragment of it
    bool settled = false;    // dealt with in this run, or left alone
  };
  // The work that is due on a URL of which more is asked.
  enum class Upgrade : std::uint8_t {
    none,     // nothing: it is not here, or was asked for as much before
    waiting,  // it is not settled: whoever settles it will see
    settled,  // it must be queued anew
  };
  struct Linked {
    Upgrade upgrade = Upgrade::none;
    std::int64_t id = 0;
  };

  bool is_used() const noexcept { return used_.load(std::memory_order_relaxed); }

  void add(std::uint64_t fingerprint, Entry entry) {
    std::lock_guard lock(mutex_);
    entries_.try_emplace(fingerprint, entry);
    used_.store(true, std::memory_order_relaxed);
  }

  // A link leads to the URL.
  Linked link(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end() || !found->second.is_asset) return {};
    found->second.is_asset = false;
    return upgrade(found->second);
  }

  // A link leads to a fragment of the URL.
  Linked link_to_fragment(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end() || found->second.wants_ids) return {};
    found->second.wants_ids = true;
    return upgrade(found->second);
  }

  bool wants_ids(std::uint64_t fingerprint) const {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    return found != entries_.end() && found->second.wants_ids;
  }

  // The URL is dealt with; as what it is known now. Of one that is not here: a link that was checked.
  Entry settle(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end()) return {};
    found->second.settled = true;
    return found->second;
  }

 private:
  static Linked upgrade(Entry& entry) {
    const Linked linked{entry.settled ? Upgrade::settled : Upgrade::waiting, entry.id};
    entry.settled = false;
    return linked;
  }

  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace argiope

// The shards' common knowledge of URLs whose part may still change, in a crawl that saves assets: a link that is not
// followed is an asset after all, and an asset is a page of the crawl because a link leads there.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace argiope {

// So many files may lead, one to the next, from what a page is shown with to another: style sheets that import one
// another.
inline constexpr std::uint8_t kMostNestedRequisites = 20;

// Empty, and nothing but one load, in a crawl that saves no assets.
//
// Memory: some 50 bytes a URL. Threads: any.
class RequisiteBook {
 public:
  enum class Part : std::uint8_t {
    link,       // met as a link that is not followed, or only checked
    requisite,  // pages are shown with it
    page,       // it was a requisite, and a link leads there; or it may turn out to be of a type that is not accepted
  };
  // A URL that is to be queued with another part than it had.
  struct Change {
    std::int64_t id = 0;
    bool is_settled = false;  // else whoever settles it does that
  };

  bool is_used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // `is_settled`: it is not queued in this run, or not any more.
  void add(std::uint64_t fingerprint, std::int64_t id, Part part, bool is_settled) {
    std::lock_guard lock(mutex_);
    entries_.try_emplace(fingerprint, Entry{id, part, is_settled, part == Part::requisite});
    used_.store(true, std::memory_order_relaxed);
  }

  // A page is shown with the URL. nullopt: nothing changes by that.
  std::optional<Change> need(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end()) return std::nullopt;
    found->second.is_needed = true;
    return turn(found->second, Part::link, Part::requisite);
  }
  // It is fetched as a page, since a link leads to what was only checked.
  void follow(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end()) return;
    found->second.part = Part::page;
    found->second.is_settled = false;
  }
  // It is no page: its type is not accepted.
  void refuse(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end() || found->second.part != Part::page) return;
    found->second.part = found->second.is_needed ? Part::requisite : Part::link;
    found->second.is_refused = true;
  }
  // A link of the crawl leads to the URL.
  std::optional<Change> link(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end() || found->second.is_refused) return std::nullopt;
    return turn(found->second, Part::requisite, Part::page);
  }

  // The URL is dealt with; as what it is known now. nullopt: nothing is known of it.
  std::optional<Part> settle(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(fingerprint);
    if (found == entries_.end()) return std::nullopt;
    found->second.is_settled = true;
    return found->second.part;
  }

 private:
  struct Entry {
    std::int64_t id = 0;
    Part part{};
    bool is_settled = false;
    bool is_needed = false;   // pages are shown with it
    bool is_refused = false;  // no link makes it a page any more
  };
  static std::optional<Change> turn(Entry& entry, Part from, Part to) {
    if (entry.part != from) return std::nullopt;
    entry.part = to;
    return Change{entry.id, std::exchange(entry.is_settled, false)};
  }

  std::atomic<bool> used_{false};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace argiope

// The hosts of one shard. Those with something to do are records of their own; of the others, which in a wide crawl are
// nearly all, 32 bytes are kept: enough that they come back as what they were, but for their robots.txt.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "crawl/hosts/host.hpp"

namespace argiope {

// The notes that are kept of hosts that have nothing to do, by the fingerprint of their site.
//
// Two sites of one fingerprint, which an attacker might make on purpose, share what is kept: a count and a verdict on
// both, and nothing that politeness depends on.
// Memory: 32 bytes a note, and a quarter to a half as much again for room. Threads: one at a time.
class HostNotes {
 public:
  // Packed: there may be millions.
  struct [[gnu::packed]] Note {
    std::uint64_t site = 0;  // 0: no note
    std::uint32_t urls = 0;
    std::uint8_t flags = 0;
    std::uint8_t lost = 0;  // 1 + the Errc of what it was lost to; 0: it was not
    std::int32_t first_priority = 0;
    std::int32_t last_priority = 0;
    std::uint8_t first_id[5]{};
    std::uint8_t last_id[5]{};
  };
  static_assert(sizeof(Note) == 32);

  void put(const Host& host);
  // Takes what is kept of its site, if anything is, into the host.
  bool take(Host& host);
  std::size_t size() const noexcept { return size_; }

 private:
  // Grown one by one, so that no growth needs room for all of them twice.
  static constexpr std::size_t kSegments = 64;
  struct Segment {
    std::vector<Note> notes;  // open addressing
    std::size_t used = 0;
  };
  Segment& segment_of(std::uint64_t site) noexcept { return segments_[site >> 58]; }
  static Note& place_of(Segment& segment, std::uint64_t site) noexcept;
  static void grow(Segment& segment);

  std::array<Segment, kSegments> segments_;
  std::size_t size_ = 0;
};

class HostBook {
 public:
  // The record of a site that has something to do; null for others.
  Host* find(std::string_view site) const noexcept {
    const auto found = by_site_.find(site);
    return found == by_site_.end() ? nullptr : found->second.get();
  }
  // A new record, with what was kept of it. Its key and limits are the caller's to set.
  Host& add(std::string site, std::uint64_t site_fingerprint);

  // Whether so many records have come that it is worth asking which of them can go.
  bool is_full() const noexcept { return by_site_.size() >= sweep_at_; }
  // Lets go of those for which `can_go(host)` holds.
  template <class CanGo>
  void sweep(CanGo&& can_go) {
    std::erase_if(by_site_, [&](const auto& entry) {
      if (entry.second->pins > 0 || entry.second->is_held() || !can_go(*entry.second)) return false;
      notes_.put(*entry.second);
      return true;
    });
    sweep_at_ = by_site_.size() + std::max(kRoom, by_site_.size() / 16);
  }

  // Those that have a record of their own.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [site, host] : by_site_) visit(*host);
  }

  // All that were ever met.
  std::size_t size() const noexcept { return by_site_.size() + notes_.size(); }
  std::size_t active() const noexcept { return by_site_.size(); }

 private:
  static constexpr std::size_t kRoom = 5'000;  // records that cost less than the search for those that can go

  std::unordered_map<std::string_view, std::unique_ptr<Host>> by_site_;  // the name is the record's own
  HostNotes notes_;
  std::size_t sweep_at_ = kRoom;
};

}  // namespace argiope

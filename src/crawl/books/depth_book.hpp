// DepthBook: how far from the seeds URLs are, for a run that stores no links. A page that was fetched by a longer way
// than the shortest has given that depth to what it links to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace argiope {

// Of the first URLs of a run, and the first links between them.
//
// Memory:  up to 64 bytes a URL, and 8 a link.
// Threads: any.
class DepthBook {
 public:
  static constexpr std::size_t kMostUrls = 100'000;
  static constexpr std::size_t kMostLinks = 1'000'000;

  struct FoundUrl {
    std::uint64_t fingerprint = 0;
    std::int64_t id = 0;
    std::uint32_t depth = 0;
  };
  // URLs that were met for the first time, or pages of an earlier run that are read. Those already there stay.
  void found(std::span<const FoundUrl> urls);
  // From one that was found to others, by their fingerprints; those that were not found are passed over. A redirect is
  // no link, and leads to the same depth.
  void linked(std::uint64_t from, std::span<const std::uint64_t> targets, bool is_redirect);
  // The depths by the shortest ways, by id, if one of them is shorter than it was found; those that are not in the book
  // are the largest number. Empty: none is.
  // Cost: each link is looked at once, as a rule, whatever a site does.
  std::vector<std::uint32_t> recount() const;

 private:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to : 31 = 0;
    std::uint32_t is_redirect : 1 = 0;
  };

  mutable std::mutex mutex_;
  std::atomic<bool> is_full_{false};                         // nothing more is noted
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  // by fingerprint
  std::vector<FoundUrl> urls_;
  std::vector<Edge> edges_;
};

}  // namespace argiope

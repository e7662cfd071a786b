// The URLs that a shard finds, on pages and elsewhere: where they stand, whether they are new, what is stored of
// them, and to which shard they go.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::Discovery : private Part {
 public:
  explicit Discovery(Core& core);
  // When all shards are there.
  void start();

  // `from` links, or redirects, to the URL.
  void discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect, UrlBatch& batch);
  // With `shared_.duplicates` alone. Follows the link without parameters that say nothing of its page. The first such
  // link to a URL is stored, for runs that follow it as it is. False: it has none, or is to be followed as it is.
  bool discover_stripped(const UrlTask& from, const Url& url, UrlBatch& batch);
  bool is_in_trap(std::string_view href) const;
  // A page is shown with the URL.
  void discover_requisite(const UrlTask& from, const Url& url, std::uint8_t redirects, UrlBatch& batch);
  // The id of an asset's URL, which is checked if nothing was known of it.
  std::int64_t discover_asset(const UrlTask& from, const Url& url, UrlBatch& batch);
  // Of a URL that is only checked: the names that fragments may have there are asked for.
  void link_to_fragment(const UrlTask& from, const Url& url);
  void queue_anew(std::int64_t id, UrlReason reason, UrlBatch& batch);
  // The URL is known by `id`, and no farther away than `depth`. The store knows that then, and its task, if one waits.
  void come_nearer(std::int64_t id, const Url& url, std::uint32_t depth, UrlBatch& batch);

  // --- where one page leads
  // Of the link that was discovered last, where no links are stored; else 0.
  std::uint64_t last_linked() const noexcept { return linked_here_.empty() ? 0 : linked_here_.back(); }
  // One like it is met once more.
  void link_again(std::uint64_t linked) { linked_here_.push_back(linked); }
  void set_targets(std::vector<std::int64_t> ids) noexcept { targets_ = std::move(ids); }
  // The links that were found since the last call are all of `from`.
  void store_links(const UrlTask& from, bool redirect, UrlBatch& batch);

  // --- what is queued
  // The task is to go to the shard that owns its URL.
  void queue(UrlTask task);
  // All of these go there.
  void hand_out(TimePoint now);

 private:
  bool is_nested_too_deep(const UrlTask& from, std::uint64_t fingerprint, UrlBatch& batch);
  void link_to_asset(const UrlTask& task, const Url& url, Exclusion place, UrlBatch& batch);
  bool link_to_requisite(const UrlTask& link, const Url& url, UrlBatch& batch);

  std::vector<std::vector<UrlTask>> found_;  // by the shard that owns it
  std::vector<std::int64_t> targets_;        // of all links of a page
  // For the book of depths: their fingerprints, and those of them that were not known.
  std::vector<std::uint64_t> linked_here_;
  std::vector<DepthBook::FoundUrl> found_here_;
  Url stripped_;  // the link being followed, without parameters
};

}  // namespace argiope

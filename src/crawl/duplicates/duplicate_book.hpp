// The shards' common knowledge of pages that are there in several places: which contents were met, which pages are
// aliases of others, which parameters say nothing, and which URLs are of a trap. Made where DuplicateOptions asks for
// something.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/detail/crawl_report.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/duplicates/parameter_lessons.hpp"
#include "crawl/duplicates/simhash_index.hpp"
#include "crawl/duplicates/trap_watch.hpp"
#include "web/url/internal/url_parameters.hpp"

namespace argiope {

// Memory:  some 30 bytes for each page whose content is compared, each alias, and each URL that links lost parameters
//          to come to; for nearly equal pages SimhashIndex, for what is learned ParameterLessons and TrapWatch.
// Threads: any.
class DuplicateBook {
 public:
  // Throws std::invalid_argument when a parameter's name is none. `seed`: as FingerprintSet has it.
  DuplicateBook(const CrawlOptions& options, std::uint64_t seed);

  // --- what is learned, and kept in notes of the database
  static constexpr std::string_view kNotePrefixes[] = {"parameter/", "trap/"};
  void restore(const UrlNote& note);
  void tell(CrawlReport& report) const;

  // --- parameters of links
  // Makes `rest` of `url`: what is left without the parameters that are taken out. False: there are none in it.
  bool strip(const Url& url, Url& rest);
  bool strips(std::string_view href) const;
  // Whether nothing has been stripped to the URL of this fingerprint yet.
  bool is_first_variant(std::uint64_t fingerprint);
  // A page of `site` says this (PageWords::digest). The notes of what it taught, to be stored.
  std::vector<UrlNote> learn(std::string_view href, std::string_view site, std::uint64_t words);

  // --- contents
  struct Page {
    std::int64_t id = 0;
    std::uint32_t depth = 0;
  };
  struct Content {
    Page page;
    std::uint64_t bytes = 0;         // content_key()
    std::uint64_t bytes_before = 0;  // of the answer before, which it says no more; 0: there was none
    std::optional<std::uint64_t> simhash{};
  };
  struct Copy {
    UrlReason reason = UrlReason::none;  // duplicate or near_duplicate; none: it is no copy
    std::int64_t of = 0;
  };
  // The page of `site` with this content that was met first; else this one is the first from now on. With a depth limit
  // a page that is farther from a seed does not count: links on this one lead farther.
  Copy find_copy(const Content& content, std::string_view site);

  // --- aliases
  // The URL `id` names `canonical` as its canonical one. False: that one, or one that it leads to, names `id`; then it
  // is no alias.
  bool add_alias(std::int64_t id, std::int64_t canonical);

  // --- traps
  // A page was fetched, and is a copy of another or not. If its URL shows a trap, the note to be stored.
  std::optional<UrlNote> watch(std::string_view href, bool is_copy);
  bool is_trap(std::string_view href) const;
  // Whether it is in a trap; counts it as left out of that.
  bool leave_out(std::string_view href);

 private:
  template <class Names>
  bool takes_out(std::string_view name, Names&& is_learned) const;

  const DuplicateOptions& options_;
  const bool heeds_depth_;
  ParameterNames stripped_, kept_;
  mutable std::mutex mutex_;
  std::atomic<bool> has_lessons_{false};
  std::atomic<bool> has_traps_{false};
  FingerprintSet variants_;
  // By content: id and depth in one word, as the index has it.
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> contents_;
  std::unique_ptr<SimhashIndex> words_;
  boost::unordered_flat_map<std::int64_t, std::int64_t> aliases_;
  std::unique_ptr<ParameterLessons> lessons_;
  TrapWatch traps_;
};

// Of a page's bytes, by `digest` as the store has it, and of its site.
std::uint64_t content_key(std::string_view digest, std::string_view site) noexcept;

}  // namespace argiope

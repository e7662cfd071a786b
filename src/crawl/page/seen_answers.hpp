// The store's memory of runs that made more of answers than URLs: in which of them each such demand was made. So a
// later run, a report or a check knows of which pages nobody with that demand has seen the last answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Demands on pages that are kept in the store, by their names there.
inline constexpr std::string_view kLinksDemand = "links";                // CrawlOptions::keep_links
inline constexpr std::string_view kAssetsDemand = "assets";              // check_assets
inline constexpr std::string_view kFragmentsDemand = "fragments";        // check_fragments
inline constexpr std::string_view kForeignDemand = "foreign-fragments";  // check_foreign_fragments
inline constexpr std::string_view kFactsDemand = "facts";                // keep_facts
inline constexpr std::string_view kWordsDemand = "words";                // DuplicateOptions::keep_simhashes

// The kind of an archive's demand: it keeps what pages are not, too.
inline constexpr std::string_view kArchiveDemand = "archive";

// That of a sink that writes to `path`: CrawlSink::demand(). `how` is what else must be the same.
std::string demand_of_sink(std::string_view kind, const std::string& path, std::string_view how = {});

// The names of the store's notes begin so.
inline constexpr std::string_view kSeenNotes = "seen/";

// The times of the runs that have made a demand. Milliseconds count.
class SeenTimes {
 public:
  SeenTimes() = default;
  // As text() writes it; what cannot be read is left out.
  explicit SeenTimes(std::string_view text);
  // "1700000000000-1700000100000,1700000200000-": the last one goes on.
  std::string text() const;

  bool contains(WallTime time) const noexcept;
  // Whether the last run has made it.
  bool is_open() const noexcept { return !stretches_.empty() && stretches_.back().until == kNoEnd; }
  // Since then without a run that did not make it.
  bool is_open_since(WallTime time) const noexcept { return is_open() && stretches_.back().from <= in_ms(time); }
  void begin(WallTime now);
  void end(WallTime now);
  // When the last run that has made it was over; the epoch: there is none.
  std::int64_t last() const noexcept { return stretches_.empty() ? 0 : stretches_.back().until; }

 private:
  static constexpr std::int64_t kNoEnd = INT64_MAX;
  static constexpr std::size_t kMostStretches = 64;  // the oldest is forgotten: its pages are asked once more
  struct Stretch {
    std::int64_t from = 0;
    std::int64_t until = kNoEnd;  // not included
  };
  static std::int64_t in_ms(WallTime time) noexcept;

  std::vector<Stretch> stretches_;
};

// Whether it is a page of the crawl that was answered with 200, also where it waits to be asked again.
bool is_page_answer(const UrlRecord& record) noexcept;
// Whether what a demand that is kept in the store asks for is found in such answers: for assets also in style sheets.
bool is_answer_for(std::string_view demand, const UrlRecord& record) noexcept;

// Of which pages of a store is not known what a demand is about.
class UnseenPages {
 public:
  // In a store that no crawl has written, as programs make them, all is known. Errors: the store's.
  static Result<UnseenPages> read(UrlStore& store, std::string_view demand);
  static Result<std::uint64_t> count(UrlStore& store, std::string_view demand);
  bool has(const UrlRecord& record) const noexcept {
    return is_of_crawls_ && record.state == UrlState::done && is_answer_for(demand_, record) &&
           !times_.contains(record.mtime);
  }
  // Whether any run has made the demand, and one of them was given the record's last answer.
  bool is_made() const noexcept { return times_.last() != 0; }
  bool saw(const UrlRecord& record) const noexcept { return times_.contains(record.mtime); }

 private:
  std::string demand_;
  bool is_of_crawls_ = false;
  SeenTimes times_;
};

}  // namespace argiope

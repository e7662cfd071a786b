// KeptAnswers: what servers have answered to tries, for some minutes, so that a page is read again by another draft
// without a request.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "serve/gate/sessions.hpp"

namespace argiope {

// Each under an id that cannot be guessed, for who has fetched it alone. Of so many, and of so many bytes together, the
// oldest go first.
//
// Threads: the loop's own.
class KeptAnswers {
 public:
  static constexpr Duration kKept = std::chrono::minutes{10};
  static constexpr std::size_t kMostAnswers = 32;
  static constexpr std::size_t kMostBytes = 64 * 1024 * 1024;

  struct Kept {
    std::string id;       // 32 digits in hex
    std::string owner;    // who has fetched it
    std::string url;      // that was asked for
    std::string request;  // TriedPage::request
    WallTime fetched_at{};
    TimePoint until{};
    std::size_t bytes = 0;
    std::shared_ptr<const FetchedAnswer> answer;
  };

  // `secret`: who knows it knows the ids.
  explicit KeptAnswers(const SessionSecret& secret) noexcept : secret_(secret) {}

  // The new one, until the next call; null where it is too large.
  const Kept* keep(std::string owner, std::string url, std::string request, std::shared_ptr<const FetchedAnswer> answer,
                   WallTime fetched_at, TimePoint now);
  // Until the next call; null: none of that id is kept for `owner`.
  const Kept* find(std::string_view id, std::string_view owner, TimePoint now);

 private:
  void drop_old(TimePoint now);
  void drop_oldest();

  const SessionSecret secret_;
  std::uint64_t count_ = 0;
  std::deque<Kept> kept_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace argiope

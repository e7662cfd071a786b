// The URLs that a crawl knows, picked by what people ask for: `argiope crawl urls` and `requeue`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// All that is given holds; of a list one. Empty lists: all.
struct UrlQuery {
  std::vector<UrlState> states;
  std::vector<UrlReason> reasons;  // `none`: those without one
  std::vector<StatusRange> statuses;
  std::vector<std::string> hosts;                         // as HostSettings::match
  std::vector<std::string> patterns;                      // as CrawlOptions::include
  std::vector<std::string> types;                         // media types of answers: "text/html", "image/*"
  bool broken = false;                                    // is_broken()
  std::optional<std::int64_t> min_size, max_size;         // of answers' bodies; what has not been answered has none
  std::optional<WallTime> fetched_since, fetched_before;  // what was never fetched fits neither
  std::optional<std::uint32_t> min_depth, max_depth;
};

// Threads: any.
class UrlMatcher {
 public:
  // Errors: invalid_input for a pattern that is none.
  static Result<UrlMatcher> compile(UrlQuery query);
  bool operator()(const UrlRecord& record) const;

 private:
  explicit UrlMatcher(UrlQuery query);

  UrlQuery query_;
  UrlPatterns patterns_;
  std::unique_ptr<const HostRules> hosts_;
};

// The state or reason of that name. "" is no reason's; "none" is UrlReason::none.
std::optional<UrlState> url_state_named(std::string_view name) noexcept;
std::optional<UrlReason> url_reason_named(std::string_view name) noexcept;

// Visits those that match, with url_id > `after`, in order of their ids, some at a time, until `visit` returns false.
// While it runs nothing is read, so that it may read or write, and may take as long as it likes: no crawl that writes
// the file is held up.
// Memory: some thousand records.
using UrlVisitor = std::function<Result<bool>(std::span<const UrlRecord>)>;
Result<void> visit_matching(UrlStore& store, const UrlMatcher& matches, std::int64_t after, const UrlVisitor& visit);

enum class UrlSort : std::uint8_t { found, url, size, fetched, depth, status };
// The first `most` of them in another order: by URL and depth ascending, by size, time and status descending; equals as
// they were found.
Result<std::vector<UrlRecord>> first_matching(UrlStore& store, const UrlMatcher& matches, std::int64_t after,
                                              UrlSort sort, std::size_t most);

}  // namespace argiope

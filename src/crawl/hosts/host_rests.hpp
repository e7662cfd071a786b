// Until when hosts rest, as the database of a crawl keeps it: the next run asks none of them sooner, whatever has ended
// this one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

enum class RestReason : std::uint8_t {
  pace,         // the crawl's own: its delay, its rate
  crawl_delay,  // of robots.txt
  retry_after,  // the server has asked for it
  trouble,      // it did not answer, or its robots.txt could not be read
  elsewhere,    // its robots.txt is on a host that may not be asked yet
};
// "retry_after". Stable: it stands in databases and in JSON.
std::string_view to_string(RestReason why) noexcept;
// As in "its host rests until noon: …".
std::string_view words_of(RestReason why) noexcept;

struct HostRest {
  WallTime until{};  // milliseconds are kept
  RestReason why = RestReason::pace;
  friend bool operator==(const HostRest&, const HostRest&) = default;
};

// Those that a run finds. Memory: a name for each host that rests.
// Threads: any, once it is loaded.
class HostRests {
 public:
  // A shorter rest is written down when a run ends in order, and not before: a host may be asked again that much too
  // soon after the process was killed.
  static constexpr Duration kShortest = std::chrono::seconds{1};
  // No server can ask for more; what is kept beyond was kept by a clock that was wrong. The crawl's own pace has no
  // such bound.
  static constexpr Duration kLongest = std::chrono::hours{48};

  static UrlNote note_of(std::string_view site, const HostRest& rest);
  // The store's knowledge of one site. Errors: those of the store.
  static Result<std::optional<HostRest>> find(UrlStore& store, std::string_view site);

  // Reads those that are not over at `now`, and has the store forget the others. Errors: those of the store.
  Result<void> load(UrlStore& store, WallTime now);
  // "http://example.org:8080". Null: it does not rest.
  const HostRest* of(std::string_view site) const;

 private:
  std::unordered_map<std::string, HostRest> by_site_;
};

}  // namespace argiope

// What is known of one URL, and what changes about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"

namespace argiope {

enum class UrlState : std::uint8_t {
  queued,    // to be fetched
  done,      // answered, whatever the status
  failed,    // given up without a usable answer; the next run tries again
  excluded,  // not to be fetched: robots.txt and the like, see `error`
};
constexpr std::string_view to_string(UrlState state) noexcept {
  constexpr std::string_view kNames[] = {"queued", "done", "failed", "excluded"};
  return kNames[static_cast<std::size_t>(state)];
}

// One row of the table `urls`.
struct UrlRecord {
  std::int64_t url_id = 0;  // from 1
  std::string url;
  WallTime ctime{};  // first met; milliseconds are kept
  WallTime mtime{};  // last fetched or given up; the epoch: never
  UrlState state = UrlState::queued;
  WallTime due{};  // not to be fetched before; the epoch: at any time
  std::uint32_t depth = 0;
  std::int32_t priority = 0;  // higher first
  int status_code = 0;        // 0: none yet
  std::string content_type;
  std::int64_t size = 0;  // of the decoded body
  std::uint32_t attempts = 0;
  std::int64_t referrer = 0;  // url_id of the page that first linked here; 0: a seed
  std::string redirect_to;
  std::string etag;
  std::string last_modified;
  std::string digest;
  std::string error;

  friend bool operator==(const UrlRecord&, const UrlRecord&) = default;
};

// Given up, or answered with an error: what a report lists as a broken link.
inline bool is_broken(const UrlRecord& record) noexcept {
  return record.state == UrlState::failed || (record.state == UrlState::done && record.status_code >= 400);
}

// A URL met for the first time.
struct NewUrl {
  std::int64_t url_id = 0;
  std::string url;
  std::uint32_t depth = 0;
  std::int32_t priority = 0;
  std::int64_t referrer = 0;
  WallTime ctime{};
};

// What a fetch came to. With state `queued`: it is to be tried again when `due`.
struct UrlOutcome {
  std::int64_t url_id = 0;
  UrlState state = UrlState::done;
  WallTime mtime{};
  WallTime due{};
  int status_code = 0;
  std::uint32_t attempts = 0;
  // 304: what was known of the content stays.
  bool not_modified = false;
  std::string content_type;
  std::int64_t size = 0;
  std::string redirect_to;
  std::string etag;
  std::string last_modified;
  std::string digest;
  std::string error;
};

// What is stored together or not at all: a page settled, and the links found on it.
struct UrlBatch {
  std::vector<UrlOutcome> outcomes;
  std::vector<NewUrl> discovered;
};

}  // namespace argiope

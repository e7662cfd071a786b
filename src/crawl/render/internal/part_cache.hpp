// Scripts and styles that pages have asked for, so that a site's hundred pages fetch them once. Bounded, and
// short-lived.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/render/page_renderer.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// Threads: one at a time.
class PartCache {
 public:
  explicit PartCache(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Whether such a request may be answered from here. Data that a site's scripts ask for are always asked for anew.
  static bool is_for(const HttpRequest& request, PartKind kind) noexcept {
    return request.method == HttpMethod::get && kind != PartKind::data;
  }
  // True, and `response` is what was answered: as it may still be.
  bool find(const HttpRequest& request, TimePoint now, HttpResponse& response);
  // Keeps a good answer, unless it says that it is for one reader, or not to be kept.
  void put(const HttpRequest& request, const HttpResponse& response, TimePoint now);

  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  struct Entry {
    std::string key;
    TimePoint until{};
    std::size_t size = 0;
    HttpHeaders headers;
    std::vector<std::pair<std::string, std::string>> fields;
    std::string body;
  };
  using Entries = std::list<Entry>;  // the one that was used last first

  static std::string key_of(const HttpRequest& request);
  void drop(Entries::iterator entry);

  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // the key is the entry's own
};

// How long an answer may be given to others, by its Cache-Control; zero: it may not. Without a word about it: some
// minutes.
Duration lifetime_of(const HttpResponse& response);

}  // namespace argiope

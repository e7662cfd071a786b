// URLs by their ids, for who writes many: those of one page stand together, so that most are asked for again soon.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Not to be asked within a visitor of the store's. Threads: one at a time.
class UrlNames {
 public:
  explicit UrlNames(UrlStore& store) : store_(store) {}

  // Empty for what the store does not know, and where it has failed: then `failure()` says why.
  const std::string& of(std::int64_t url_id) {
    if (url_id == 0) return none_;
    if (const auto known = urls_.find(url_id); known != urls_.end()) return known->second;
    if (urls_.size() >= kMostKept) urls_.clear();
    auto record = store_.get(url_id);
    if (!record && failure_) failure_ = std::unexpected(record.error());
    return urls_.emplace(url_id, record && *record ? std::move((*record)->url) : std::string{}).first->second;
  }
  const Result<void>& failure() const noexcept { return failure_; }

 private:
  static constexpr std::size_t kMostKept = 50'000;

  UrlStore& store_;
  std::unordered_map<std::int64_t, std::string> urls_;
  Result<void> failure_;
  const std::string none_;
};

// Calls `visit(record)` for every record, from one of its own stretches to the next, so that it may read the store.
template <class Visit>
Result<void> for_each_record(UrlStore& store, Visit&& visit) {
  constexpr std::size_t kRecordsAtOnce = 1000;
  std::vector<UrlRecord> records;
  for (std::int64_t from = 1;;) {
    records.clear();
    auto scanned = store.scan(from, [&](const UrlRecord& record) {
      records.push_back(record);
      return records.size() < kRecordsAtOnce;
    });
    if (!scanned) return scanned;
    for (const UrlRecord& record : records) {
      if (auto visited = visit(record); !visited) return visited;
    }
    if (records.size() < kRecordsAtOnce) return {};
    from = records.back().url_id + 1;
  }
}

}  // namespace argiope

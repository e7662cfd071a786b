// A run's demands on answers, beside its URLs, and the URLs whose last answer a demand has not seen: these are asked
// without validators, since a 304 would tell nothing. Filled when a run opens; after that any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "crawl/page/seen_answers.hpp"

namespace argiope {

class DemandBook {
 public:
  explicit DemandBook(const CrawlOptions& options);

  // `first_run`: when the first run on the store began; nullopt: there was none. Notes to be remembered go to `batch`,
  // before anything that this run stores. Errors: the store's.
  Result<void> open(UrlStore& store, std::optional<WallTime> first_run, WallTime now, UrlBatch& batch);

  // Whether anything may be missing: else nothing below finds anything.
  bool may_miss() const noexcept { return may_miss_; }
  // Of a record with all its fields: whether a demand has not seen its last answer, so that it must come whole.
  bool misses(const UrlRecord& record) const noexcept;
  // Whether it is to be asked for that alone, whatever its age: a page, for what the store keeps of all pages.
  bool asks(const UrlRecord& record) const noexcept;
  // Counts a page that is left as it is, and that an output of this run will not have.
  void note_left(const UrlRecord& record);
  // By the output: "archive", "records".
  const std::map<std::string, std::uint64_t>& left() const noexcept { return left_; }

 private:
  struct Demand {
    std::string name;
    bool is_kept = true;        // in the store, of pages alone; else a sink's, of whatever comes
    bool begins_anew = false;   // nothing of earlier runs is there
    bool knows_itself = false;  // what it lacks
    bool may_miss = false;
    SeenTimes seen{};

    bool misses(const UrlRecord& record) const noexcept;
  };
  static constexpr std::size_t kMostForgotten = 200;  // demands that no run makes any more

  std::vector<Demand> demands_;
  bool may_miss_ = false;
  std::map<std::string, std::uint64_t> left_;
};

}  // namespace argiope

// URLs that other programs put into the database while the crawl goes on, or rests. Of shard 0.
#pragma once

#include <cstdint>
#include <optional>

#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::GivenDesk : private Part {
 public:
  GivenDesk(Core& core, Discovery& discovery);

  // Takes up what there is. Of other shards than 0: nothing.
  void take_given(TimePoint now);
  // Whether the crawl may not end yet, because some of it may be to come.
  bool awaits_given(TimePoint now);
  // Whether it is worth looking again before the usual time.
  bool may_be_given_more(TimePoint now) const noexcept {
    return core_.index == 0 && (next_given_ <= now || (idle_since_ && !looked_in_vain_));
  }

 private:
  void take_one_given(const GivenUrl& given, UrlBatch& batch);
  void take_one_again(const GivenUrl& given, UrlBatch& batch);
  bool has_seen_all();

  Discovery& discovery_;
  TimePoint next_given_ = TimePoint::min();   // when to look again
  std::uint64_t given_flush_ = 0;             // once so far is flushed, what was taken of it is there no more
  std::optional<std::uint64_t> again_flush_;  // the same, before what is asked for again is looked at
  bool looked_in_vain_ = false;               // with nothing left to do, there was nothing
  std::optional<TimePoint> idle_since_;       // nothing is left to do
};

}  // namespace argiope

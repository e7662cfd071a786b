// The decision of a run about a URL that the store knows: a pure function of what is stored and of the run's options.
// The table is in tests/crawl/url_decision_test.cpp.
#pragma once

#include <cstdint>
#include <optional>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/detail/scope.hpp"
#include "argiope/store/detail/url_record.hpp"

namespace argiope {

class HostPolicies;

enum class UrlWork : std::uint8_t {
  leave,           // as it is: it waits, is dealt with, or stays excluded
  fetch,           // whole
  ask_if_changed,  // fetched before: a conditional request
  check,           // by HEAD, because it is off scope, or an asset
  sitemap,         // read for what it lists
};

// When the store is read.
enum class Stage : std::uint8_t {
  opening,  // what earlier runs have left
  // Later on in the run, when nothing is left to fetch, and the scope has grown or depths have shrunk. No time is
  // compared, and what the run has dealt with it does not touch again.
  going_on,
};

struct RunView {
  const CrawlOptions& options;
  std::optional<WallTime> refetch_before;  // done URLs last fetched before this are fetched again
  Stage stage = Stage::opening;
  // A URL that was only checked before this, or is broken, is checked again; nullopt: by refetch_before.
  std::optional<WallTime> recheck_before{};
  // Where hosts have settings of their own; null: all are as the options say.
  HostPolicies* hosts = nullptr;
  WallTime now{};  // with adaptive intervals: what is due is fetched again
};

// `place` is where the URL stands for this run: Scope::place_of().
UrlWork decide(const UrlRecord& record, Exclusion place, const RunView& run) noexcept;
// Whether earlier runs have given it up more than once, and this one, which may not come to everything, does not ask it
// yet.
bool rests(const UrlRecord& record, const RunView& run) noexcept;
// Whether decide() gives anything but `leave` for some place: it is quicker to ask than the place.
bool may_be_taken_up(const UrlRecord& record, const RunView& run) noexcept;
// Whether a place is one where what pages are shown with is fetched, too: wherever links are not followed for other
// reasons than those that hold for every request.
bool is_place_of_requisites(Exclusion place, const CrawlOptions& options) noexcept;
// Whether `requeue` names it. It is queued anew then, so that a later run goes on with it.
bool is_requeued(const UrlRecord& record, Requeue requeue) noexcept;

// The reason for which the store keeps a link that is not followed.
UrlReason reason_of(Exclusion exclusion) noexcept;

}  // namespace argiope

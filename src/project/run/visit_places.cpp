#include "project/run/visit_places.hpp"

#include <algorithm>
#include <utility>

namespace argiope {
namespace {

constexpr std::size_t kShareOfFree = 3;  // places of a project of weight 1, for each that is free
constexpr std::size_t kKeptPlaces = 16;  // of so many places one is kept from each project

}  // namespace

bool VisitPlaces::has_one() {
  note_commits();
  const bool has_one = taken() < options_.concurrency;
  if (visit_flush_ || uncommitted_ == 0 || (has_one && taken() + uncommitted_ < options_.concurrency)) return has_one;
  visit_flush_ = store_.begin_flush();
  flushing_ = uncommitted_;
  note_commits();
  return taken() < options_.concurrency;
}

std::size_t VisitPlaces::most_of(const LiveProject& project) const {
  const std::size_t all = options_.concurrency;
  if (core_.projects.size() <= 1) return all;
  const std::size_t free = all - std::min(taken(), all);
  const std::size_t kept = all > 1 ? std::max<std::size_t>(all / kKeptPlaces, 1) : 0;
  return std::clamp<std::size_t>(kShareOfFree * project.definition.weight * free, 1, all - kept);
}

void VisitPlaces::note_commits() {
  if (!visit_flush_ || !store_.flushed(*visit_flush_)) return;
  uncommitted_ -= flushing_;
  visit_flush_.reset();
  turns_.wake_blocked();
}

PageVisit& VisitPlaces::enter(PageVisit visit) {
  if (idle_visits_.empty()) {
    visit_room_.push_back(std::make_unique<PageVisit>());
    idle_visits_.push_back(visit_room_.back().get());
  }
  PageVisit& its = *idle_visits_.back();
  idle_visits_.pop_back();
  its = std::move(visit);
  ++under_way_;
  return its;
}

void VisitPlaces::leave(PageVisit& visit) {
  turns_.activate(*visit.project);
  visit.project.reset();
  --under_way_;
  idle_visits_.push_back(&visit);
  turns_.wake_blocked();
  core_.soon();
}

void VisitPlaces::cancel_all() {
  for (const auto& one : visit_room_) one->cancel();
}

}  // namespace argiope

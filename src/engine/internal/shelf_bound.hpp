// ShelfBound: how far the rows of one shelf are in memory, while rows come and go on it and it is read on.
#pragma once

#include <algorithm>
#include <optional>

#include "argiope/jobs/detail/shelf.hpp"

namespace argiope {

// The bound is the first place, in the shelf's order, whose row may not be in memory: all rows before it are. It may be
// too early, at the cost of reading rows again that are known; it is never too late. Place: Rank or DueRank.
//
// The rows that a read brings may be older than what happened while it was under way. A row that was passed by
// meanwhile may be missing in it, so the answer moves the bound no further than to the first of those.
template <class Place>
class ShelfBound {
 public:
  static constexpr Place kEnd = Place::last();

  // Nothing has been read.
  constexpr ShelfBound() = default;
  // The shelf is empty, or all of it is in memory.
  static constexpr ShelfBound at_end() noexcept {
    ShelfBound bound;
    bound.first_unread_ = kEnd;
    return bound;
  }

  const Place& first_unread() const noexcept { return first_unread_; }
  bool has_read_all() const noexcept { return first_unread_ == kEnd; }
  // Whether a row at `place`, if there is one on the shelf, is in memory; so whether one that comes belongs there.
  bool has_read(const Place& place) const noexcept { return comes_before(place, first_unread_); }

  // A row that is on the shelf, or goes there, is not kept in memory.
  void pass_by(const Place& place) noexcept {
    first_unread_ = first_of(first_unread_, place);
    first_passed_by_ = first_of(first_passed_by_, place);
  }

  // The shelf is read on, from what follows the place returned. One read at a time counts: of an earlier one, that has
  // not been answered, nothing is known any more.
  Place begin_read() noexcept {
    first_passed_by_ = kEnd;
    return first_unread_.before();
  }
  // All rows up to `last` have been read; nullopt: to the end of the shelf.
  void read_up_to(const std::optional<Place>& last) noexcept {
    first_unread_ = first_of(last ? last->after() : kEnd, first_passed_by_);
  }

 private:
  static Place first_of(const Place& a, const Place& b) noexcept { return comes_before(b, a) ? b : a; }

  Place first_unread_{};
  Place first_passed_by_ = kEnd;  // since begin_read()
};

}  // namespace argiope

// Schedules in memory by name. A million of them do not fit into the caches, so what counts is how often memory is
// waited for: each place of the table holds a pointer and 16 bits of its name's hash, so that a look at a name that is
// not there reads one line and no schedule, and a batch asks for the lines of its names before it comes to them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace argiope {

// T has name(). Pointers are those of user space on the 64-bit machines of today: their upper 16 bits are zero.
template <class T>
class SchedulesByName {
 public:
  static std::size_t hash(std::string_view name) noexcept { return std::hash<std::string_view>{}(name); }

  std::size_t size() const noexcept { return size_; }
  // Whether `more` have room. Where they do not, the holder of all schedules makes a table for them, in an order in
  // which the schedules lie: in the order of the old table each would be waited for.
  bool has_room(std::size_t more) const noexcept { return 4 * (size_ + more) <= 3 * places_.size(); }
  static SchedulesByName for_as_many_as(std::size_t count) {
    SchedulesByName made;
    made.places_.resize(std::bit_ceil((4 * count + 2) / 3));
    return made;
  }

  void prefetch(std::size_t hash) const noexcept {
    if (!places_.empty()) __builtin_prefetch(&places_[home(hash)]);
  }
  T* find(std::string_view name, std::size_t hash) const noexcept {
    if (places_.empty()) return nullptr;
    for (std::size_t at = home(hash); places_[at] != 0; at = next(at)) {
      if (tag(places_[at]) == tag(hash) && schedule(places_[at])->name() == name) return schedule(places_[at]);
    }
    return nullptr;
  }
  // There is room, and none of its name.
  void insert(T* added, std::size_t hash) noexcept {
    std::size_t at = home(hash);
    while (places_[at] != 0) at = next(at);
    places_[at] = place_of(added, hash);
    ++size_;
  }
  // `old` is there; `now` has its name.
  void replace(const T* old, T* now) noexcept { places_[at(old)] = place_of(now, hash(now->name())); }
  // It is there. The entries behind it move up, so that no look stops before it.
  void erase(const T* gone) noexcept {
    std::size_t hole = at(gone);
    for (std::size_t from = next(hole); places_[from] != 0; from = next(from)) {
      const std::size_t wanted = home(hash(schedule(places_[from])->name()));
      if (((from - wanted) & mask()) >= ((from - hole) & mask())) places_[std::exchange(hole, from)] = places_[from];
    }
    places_[hole] = 0;
    --size_;
  }

 private:
  static constexpr int kTagShift = 48;
  static std::uint64_t tag(std::uint64_t value) noexcept { return value >> kTagShift; }
  static T* schedule(std::uint64_t place) noexcept {
    return reinterpret_cast<T*>(place & ((std::uint64_t{1} << kTagShift) - 1));
  }
  static std::uint64_t place_of(const T* schedule, std::size_t hash) noexcept {
    return reinterpret_cast<std::uint64_t>(schedule) | tag(hash) << kTagShift;
  }
  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t home(std::size_t hash) const noexcept { return hash & mask(); }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }
  std::size_t at(const T* known) const noexcept {
    std::size_t at = home(hash(known->name()));
    while (schedule(places_[at]) != known) at = next(at);
    return at;
  }

  std::vector<std::uint64_t> places_;  // 0: empty
  std::size_t size_ = 0;
};

}  // namespace argiope

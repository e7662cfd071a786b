// Counters of a project's work in the last 5 minutes, hour and day, and in all: rings of counts, pure and small enough
// to be stored as a row of the project.
//
// Source: pyspider's counters (5m, 1h, 1d, all; pending, success, retry, failed; fetch_time, process_time).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// Counts over the last `slots` × `width`, in steps of `width` of the calendar.
//
// Counts that are later than asked for are left out: a clock that was set back finds again what it had counted till
// then. Set back by more than the whole ring, it begins anew.
// Memory: 8 bytes a slot, from the first count on.
class CountRing {
 public:
  // Both above 0.
  CountRing(std::size_t slots, Duration width) : size_(slots), width_(width) {}

  void add(std::uint64_t count, WallTime now);
  // Of the slot of `now` and those before it: at most the last slots × width, at least one slot less.
  std::uint64_t sum(WallTime now) const;
  // The same, slot by slot, the oldest first.
  std::vector<std::uint64_t> values(WallTime now) const;
  Duration width() const noexcept { return width_; }
  // When the first slot of values() began.
  WallTime first(WallTime now) const;

  // {"at":SLOT,"counts":[…]}: from the first that is not 0 to the slot `at`.
  void write(JsonWriter& out) const;
  // Mistakes go to the errors of `form`; the ring is empty then.
  void read(const JsonValue& form);

 private:
  std::int64_t slot_of(WallTime now) const;
  std::uint64_t at(std::int64_t slot) const;
  std::size_t place_of(std::int64_t slot) const;

  std::size_t size_;
  Duration width_;
  std::vector<std::uint64_t> counts_;  // by slot modulo size_; empty: nothing counted yet
  std::int64_t latest_ = 0;            // slots up to latest_ − size_ are gone
};

class ProjectCounters {
 public:
  enum class Count : std::uint8_t { pending, success, retry, failed };
  static constexpr std::size_t kCounts = 4;
  enum class Span : std::uint8_t { m5, h1, d1 };
  static constexpr std::size_t kSpans = 3;
  enum class Time : std::uint8_t { fetch, process };
  static constexpr std::size_t kTimes = 2;

  ProjectCounters();

  // `pending`: a page was put into the queue; the others: how a visit has ended.
  void count(Count what, WallTime now, std::uint64_t times = 1);
  std::uint64_t sum(Count what, Span span, WallTime now) const { return rings(span)[index(what)].sum(now); }
  const CountRing& ring(Count what, Span span) const { return rings(span)[index(what)]; }

  // How many pages are waiting or visited, have succeeded and have failed, as of now. A page that goes from one to
  // another is moved. `retry` is always 0.
  void add_page(Count where, std::int64_t pages = 1);
  void move_page(Count from, Count to);
  std::int64_t all(Count what) const { return all_[index(what)]; }

  // How often something was counted, and how many results visits have given, since this was made: not stored.
  std::uint64_t counted(Count what) const { return counted_[index(what)]; }
  void gave(std::uint64_t results) { results_ += results; }
  std::uint64_t results() const noexcept { return results_; }

  void took(Time what, Duration time, WallTime now);
  // Of the last 5 minutes; zero where nothing was timed.
  Duration mean(Time what, WallTime now) const;

  // JSON in one line, at most some 20 KB; of an idle project some dozen bytes.
  std::string stored() const;
  // Errors: invalid_input.
  static Result<ProjectCounters> read(std::string_view stored);

 private:
  using Rings = std::vector<CountRing>;
  static constexpr std::size_t index(Count what) noexcept { return static_cast<std::size_t>(what); }
  Rings& rings(Span span) { return rings_[static_cast<std::size_t>(span)]; }
  const Rings& rings(Span span) const { return rings_[static_cast<std::size_t>(span)]; }

  std::array<Rings, kSpans> rings_;  // one for each Count
  std::array<std::int64_t, kCounts> all_{};
  Rings timed_, times_us_;  // one for each Time
  std::array<std::uint64_t, kCounts> counted_{};
  std::uint64_t results_ = 0;
};

std::string_view to_string(ProjectCounters::Count what) noexcept;
// "5m", "1h", "1d"
std::string_view to_string(ProjectCounters::Span span) noexcept;

}  // namespace argiope

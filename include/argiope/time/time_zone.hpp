// Time zones: what the clocks on the wall show at an instant, and the other way round, where a local time may come
// never or twice. The rules are the system's (tzdata). Also instants as text.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// The time that calendar and clock show somewhere; means an instant only together with a zone.
using LocalTime = std::chrono::local_time<Duration>;

namespace detail {
struct ZoneData;
}

// A cheap handle to a zone; copies share what is known of it.
//
// Range:   rules are kept from 1900 to 2250; before and after, the first and the last offset hold.
// Threads: any.
// Cost:    find() reads a file the first time a zone is asked for, and keeps what it read until the process ends;
//          everything else is a binary search in memory.
class TimeZone {
 public:
  // UTC.
  TimeZone() noexcept;
  // "Europe/Berlin", "US/Eastern", "UTC", as the system's tzdata names them. Errc::not_found for any other name;
  // abbreviations such as "PST" are none, and neither are paths.
  static Result<TimeZone> find(std::string_view name);

  const std::string& name() const noexcept;
  Duration offset_at(WallTime time) const noexcept;
  LocalTime to_local(WallTime time) const noexcept;
  // "CEST", or "+03" where the place has no letters of its own.
  std::string abbreviation_at(WallTime time) const;

  // A time in which the offset does not change, and the offsets around it.
  struct Period {
    WallTime begin, end;  // end is the first instant of the next period
    Duration offset;
    Duration offset_before, offset_after;
  };
  Period period_at(WallTime time) const noexcept;

  enum class LocalKind : std::uint8_t { unique, gap, overlap };
  struct LocalInstants {
    LocalKind kind;
    // unique: the instant, in all three. overlap: the earlier and the later one, and the change between them. gap:
    // `first` is the local time by the offset before the change, hence later than it by the clock on the wall (2:30 is
    // 3:30), `second` by the offset after it (1:30), and `transition` the first instant after the gap.
    WallTime first, second, transition;
  };
  LocalInstants resolve(LocalTime local) const noexcept;

  struct Transition {
    WallTime at;  // the first instant of the new offset
    Duration from, to;
  };
  // The next change of the offset after `time`; nullopt when there is none until 2250.
  std::optional<Transition> next_transition(WallTime time) const noexcept;

  friend bool operator==(const TimeZone&, const TimeZone&) noexcept = default;

 private:
  explicit TimeZone(const detail::ZoneData* data) noexcept : data_(data) {}
  const detail::ZoneData* data_;
};

// Instants as text: RFC 3339, with the offset of a zone.

// "2026-03-29T03:00:00+02:00"; with "Z" in UTC and where an offset has seconds, as it had before there were time zones.
// Fractions of a second only where there are some, in three, six or nine digits.
std::string format_timestamp(WallTime time, const TimeZone& zone = {});

// RFC 3339; also without an offset (then `zone` says what it means: the first of two such times, and the first instant
// after a gap), without seconds, without a time (midnight), and with a space for the T. Errc::invalid_input says what
// is wrong: `time "2026-02-30": there is no such date`.
Result<WallTime> parse_timestamp(std::string_view text, const TimeZone& zone = {});

}  // namespace argiope

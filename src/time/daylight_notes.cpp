#include "time/internal/daylight_notes.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace argiope {
namespace {

// Changes of the clocks that are looked at between two times, when skipped ones are searched for.
constexpr int kMostChanges = 1'000;

// "02:30", and the seconds where there are any.
std::string clock_text(LocalTime local) {
  const auto time = std::chrono::hh_mm_ss{local - std::chrono::floor<std::chrono::days>(local)};
  std::string text = fmt::format("{:02}:{:02}", time.hours().count(), time.minutes().count());
  if (time.seconds().count() != 0) text += fmt::format(":{:02}", time.seconds().count());
  return text;
}

std::string date_text(LocalTime local) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(local)};
  return fmt::format("{:04}-{:02}-{:02}", int{date.year()}, unsigned{date.month()}, unsigned{date.day()});
}

}  // namespace

std::string weekday_text(LocalTime local) {
  static constexpr const char* kNames[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const std::chrono::weekday weekday{std::chrono::floor<std::chrono::days>(local)};
  return kNames[weekday.c_encoding()];
}

std::string DaylightNotes::about(WallTime time) const {
  const LocalTime local = zone_.to_local(time);
  if (expression_.first_at_or_after(local) != local) return moved(time);
  const TimeZone::LocalInstants at = zone_.resolve(local);
  if (at.kind != TimeZone::LocalKind::overlap) return "";
  const DstOverlap policy = expression_.options().dst_overlap;
  const bool twice = policy == DstOverlap::both || (policy == DstOverlap::vixie && expression_.follows_elapsed_time());
  return fmt::format("the clock shows {} twice; this is the {}{}", clock_text(local),
                     time == at.first ? "first" : "second", twice ? "" : " and the only one used");
}

std::vector<std::string> DaylightNotes::skipped(WallTime from, WallTime to) const {
  std::vector<std::string> lines;
  if (expression_.options().dst_gap != DstGap::skip) return lines;
  auto change = zone_.next_transition(from);
  for (int i = 0; change && change->at <= to && i < kMostChanges; ++i, change = zone_.next_transition(change->at)) {
    if (change->to <= change->from) continue;
    const LocalTime gap{change->at.time_since_epoch() + change->from}, end{change->at.time_since_epoch() + change->to};
    const auto local = expression_.first_at_or_after(gap);
    if (local && *local < end) {
      lines.push_back(fmt::format("{} {} {}: skipped, the clock goes from {} to {}", weekday_text(*local),
                                  date_text(*local), clock_text(*local), clock_text(gap), clock_text(end)));
    }
  }
  return lines;
}

std::string DaylightNotes::moved(WallTime time) const {
  const TimeZone::Period period = zone_.period_at(time);
  const LocalTime gap{period.begin.time_since_epoch() + period.offset_before};
  const LocalTime end{period.begin.time_since_epoch() + period.offset};
  const auto planned = expression_.options().dst_gap == DstGap::shift
                           ? std::optional(LocalTime{time.time_since_epoch() + period.offset_before})
                           : expression_.first_at_or_after(gap);
  if (!planned || *planned >= end) return "";
  return fmt::format("moved from {}, which the clock leaves out: it goes from {} to {}", clock_text(*planned),
                     clock_text(gap), clock_text(end));
}

}  // namespace argiope

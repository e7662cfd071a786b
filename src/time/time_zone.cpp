#include "argiope/time/time_zone.hpp"

#include <cctz/time_zone.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/internal/printable.hpp"

namespace argiope {
namespace detail {

// Periods of one offset, in order. cctz knows the rules; a table of ours answers in a few nanoseconds and knows a
// period's neighbours, which the search for a schedule's times asks about at every step.
struct ZoneData {
  std::string name;
  cctz::time_zone zone;
  std::vector<WallTime> begins;
  std::vector<Duration> offsets;

  std::size_t index_at(WallTime time) const noexcept {
    const auto after = std::upper_bound(begins.begin() + 1, begins.end(), time);
    return static_cast<std::size_t>(after - begins.begin()) - 1;
  }
};

}  // namespace detail

namespace {

using detail::ZoneData;
using std::chrono::seconds;

constexpr WallTime kFirst = std::chrono::sys_days{std::chrono::year{1900} / 1 / 1};
constexpr WallTime kLast = std::chrono::sys_days{std::chrono::year{2250} / 1 / 1};

cctz::time_point<seconds> to_cctz(WallTime time) { return std::chrono::floor<seconds>(time); }

ZoneData read(std::string name, const cctz::time_zone& zone) {
  ZoneData data{std::move(name), zone, {kFirst}, {seconds{zone.lookup(to_cctz(kFirst)).offset}}};
  cctz::time_zone::civil_transition change;
  auto at = to_cctz(kFirst);
  while (zone.next_transition(at, &change)) {
    at = zone.lookup(change.to).trans;
    if (WallTime{at} >= kLast) break;
    const Duration offset = seconds{zone.lookup(at).offset};
    // A change of the name or of the daylight saving flag alone changes no time.
    if (offset == data.offsets.back()) continue;
    data.begins.push_back(at);
    data.offsets.push_back(offset);
  }
  return data;
}

const ZoneData* utc() {
  static const ZoneData data = read("UTC", cctz::utc_time_zone());
  return &data;
}

bool is_plausible(std::string_view name) {
  if (name.empty() || name.size() > 100 || name.front() == '/' || name.find("..") != name.npos) return false;
  const bool clean = std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '_' ||
           c == '+' || c == '-';
  });
  // cctz's own names, zones that count leap seconds, and what else lies in the folder.
  return clean && !name.starts_with("Fixed/") && !name.starts_with("right/") && name != "localtime" &&
         name != "posixrules";
}

}  // namespace

TimeZone::TimeZone() noexcept : data_(utc()) {}

Result<TimeZone> TimeZone::find(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const ZoneData>, std::less<>> known;
  if (name == "UTC") return TimeZone{};
  const auto unknown = [&] {
    return fail(Errc::not_found,
                fmt::format("time zone {}: the system's tzdata has none of that name", in_quotes(name)));
  };
  if (!is_plausible(name)) return unknown();
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return TimeZone{found->second.get()};
  cctz::time_zone zone;
  if (!cctz::load_time_zone(std::string(name), &zone)) return unknown();
  auto data = std::make_unique<const ZoneData>(read(std::string(name), zone));
  return TimeZone{known.emplace(name, std::move(data)).first->second.get()};
}

const std::string& TimeZone::name() const noexcept { return data_->name; }

Duration TimeZone::offset_at(WallTime time) const noexcept { return data_->offsets[data_->index_at(time)]; }

LocalTime TimeZone::to_local(WallTime time) const noexcept {
  return LocalTime{time.time_since_epoch() + offset_at(time)};
}

std::string TimeZone::abbreviation_at(WallTime time) const { return data_->zone.lookup(to_cctz(time)).abbr; }

TimeZone::Period TimeZone::period_at(WallTime time) const noexcept {
  const auto& [name, zone, begins, offsets] = *data_;
  const std::size_t i = data_->index_at(time);
  const bool is_last = i + 1 == begins.size();
  return {.begin = begins[i],
          .end = is_last ? kLast : begins[i + 1],
          .offset = offsets[i],
          .offset_before = i == 0 ? offsets[i] : offsets[i - 1],
          .offset_after = is_last ? offsets[i] : offsets[i + 1]};
}

TimeZone::LocalInstants TimeZone::resolve(LocalTime local) const noexcept {
  const auto& [name, zone, begins, offsets] = *data_;
  const WallTime as_utc{local.time_since_epoch()};
  // No offset reaches a day, so the change that concerns `local`, if there is one, comes after this period's begin.
  std::size_t i = data_->index_at(as_utc - std::chrono::days{1});
  while (i + 1 < begins.size() && as_utc >= begins[i + 1] + std::max(offsets[i], offsets[i + 1])) ++i;
  const WallTime here = as_utc - offsets[i];
  if (i + 1 == begins.size()) return {LocalKind::unique, here, here, here};
  const WallTime change = begins[i + 1];
  if (as_utc < change + std::min(offsets[i], offsets[i + 1])) return {LocalKind::unique, here, here, here};
  const LocalKind kind = offsets[i] < offsets[i + 1] ? LocalKind::gap : LocalKind::overlap;
  return {kind, here, as_utc - offsets[i + 1], change};
}

std::optional<TimeZone::Transition> TimeZone::next_transition(WallTime time) const noexcept {
  const std::size_t next = time < data_->begins.front() ? 1 : data_->index_at(time) + 1;
  if (next >= data_->begins.size()) return std::nullopt;
  return Transition{data_->begins[next], data_->offsets[next - 1], data_->offsets[next]};
}

}  // namespace argiope

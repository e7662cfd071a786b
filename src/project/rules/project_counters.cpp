#include "project/rules/internal/project_counters.hpp"

#include <algorithm>
#include <limits>

#include "base/internal/json_members.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kMostCounted = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kCountNames[] = {"pending", "success", "retry", "failed"};
constexpr std::string_view kSpanNames[] = {"5m", "1h", "1d"};
constexpr std::string_view kTimeNames[] = {"fetch_time", "process_time"};

std::uint64_t saturating_sum(std::uint64_t one, std::uint64_t other) {
  std::uint64_t sum = 0;
  const std::uint64_t most = static_cast<std::uint64_t>(kMostCounted);
  return __builtin_add_overflow(one, other, &sum) || sum > most ? most : sum;
}

CountRing ring_of(ProjectCounters::Span span) {
  using namespace std::chrono_literals;
  switch (span) {
    case ProjectCounters::Span::m5: return {30, 10s};
    case ProjectCounters::Span::h1: return {60, 1min};
    case ProjectCounters::Span::d1: break;
  }
  return {144, 10min};
}

}  // namespace

// --- CountRing

std::int64_t CountRing::slot_of(WallTime now) const {
  const Duration::rep time = now.time_since_epoch().count();
  const Duration::rep slot = time / width_.count();
  return time % width_.count() < 0 ? slot - 1 : slot;
}

std::size_t CountRing::place_of(std::int64_t slot) const {
  const auto size = static_cast<std::int64_t>(size_);
  return static_cast<std::size_t>((slot % size + size) % size);
}

std::uint64_t CountRing::at(std::int64_t slot) const {
  const bool is_there = !counts_.empty() && slot <= latest_ && latest_ - slot < static_cast<std::int64_t>(size_);
  return is_there ? counts_[place_of(slot)] : 0;
}

void CountRing::add(std::uint64_t count, WallTime now) {
  if (count == 0) return;
  const std::int64_t slot = slot_of(now);
  const auto size = static_cast<std::int64_t>(size_);
  if (counts_.empty() || slot - latest_ >= size || latest_ - slot >= size) {
    counts_.assign(size_, 0);
    latest_ = slot;
  }
  for (; latest_ < slot; ++latest_) counts_[place_of(latest_ + 1)] = 0;
  std::uint64_t& there = counts_[place_of(slot)];
  there = saturating_sum(there, count);
}

std::uint64_t CountRing::sum(WallTime now) const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : values(now)) sum = saturating_sum(sum, count);
  return sum;
}

WallTime CountRing::first(WallTime now) const {
  return WallTime(width_ * (slot_of(now) - static_cast<std::int64_t>(size_ - 1)));
}

std::vector<std::uint64_t> CountRing::values(WallTime now) const {
  const std::int64_t slot = slot_of(now);
  std::vector<std::uint64_t> values(size_);
  for (std::size_t i = 0; i < size_; ++i) values[i] = at(slot - static_cast<std::int64_t>(size_ - 1 - i));
  return values;
}

void CountRing::write(JsonWriter& out) const {
  out.object([&] {
    if (counts_.empty()) return;
    out.member("at", latest_);
    out.array("counts", [&] {
      bool begun = false;
      for (std::int64_t slot = latest_ - static_cast<std::int64_t>(size_) + 1; slot <= latest_; ++slot) {
        begun = begun || at(slot) > 0;
        if (begun) out.value(at(slot));
      }
    });
  });
}

void CountRing::read(const JsonValue& form) {
  counts_.clear();
  if (!form.is_object()) return form.complain("an object");
  JsonMembers in(form);
  // Far from the ends of what a slot may be, so that nothing overflows.
  const std::int64_t at = in.whole("at", kMostCounted / 4, -(kMostCounted / 4));
  const JsonValue* const counts = in.find("counts");
  in.finish("a ring has none");
  if (counts == nullptr || form.errors()) return;
  if (!counts->is_list()) return counts->complain("a list");
  if (counts->size() > size_) return counts->refuse("more counts than the ring has slots");
  counts_.assign(size_, 0);
  latest_ = at;
  std::int64_t slot = latest_ - static_cast<std::int64_t>(counts->size()) + 1;
  counts->for_each([&](const JsonValue& count) {
    counts_[place_of(slot++)] = static_cast<std::uint64_t>(count.whole(0, kMostCounted));
  });
}

// --- ProjectCounters

ProjectCounters::ProjectCounters() {
  for (std::size_t span = 0; span < kSpans; ++span) rings_[span].assign(kCounts, ring_of(static_cast<Span>(span)));
  timed_.assign(kTimes, ring_of(Span::m5));
  times_us_.assign(kTimes, ring_of(Span::m5));
}

void ProjectCounters::count(Count what, WallTime now, std::uint64_t times) {
  for (Rings& rings : rings_) rings[index(what)].add(times, now);
  counted_[index(what)] += times;
}

void ProjectCounters::add_page(Count where, std::int64_t pages) {
  std::int64_t& count = all_[index(where)];
  count = pages < 0 && count < -pages ? 0 : count + pages;
}

void ProjectCounters::move_page(Count from, Count to) {
  add_page(from, -1);
  add_page(to);
}

void ProjectCounters::took(Time what, Duration time, WallTime now) {
  const auto place = static_cast<std::size_t>(what);
  timed_[place].add(1, now);
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  times_us_[place].add(static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0)), now);
}

Duration ProjectCounters::mean(Time what, WallTime now) const {
  const auto place = static_cast<std::size_t>(what);
  const std::uint64_t count = timed_[place].sum(now);
  if (count == 0) return {};
  const std::uint64_t us = times_us_[place].sum(now) / count;
  return std::chrono::microseconds{std::min<std::uint64_t>(us, static_cast<std::uint64_t>(kMostCounted / 1000))};
}

std::string ProjectCounters::stored() const {
  return json_object([&](JsonWriter& out) {
    const auto write = [&](std::string_view name, const Rings& rings, const auto& names) {
      out.object(name, [&] {
        for (std::size_t i = 0; i < rings.size(); ++i) {
          out.key(names[i]);
          rings[i].write(out);
        }
      });
    };
    for (std::size_t span = 0; span < kSpans; ++span) write(kSpanNames[span], rings_[span], kCountNames);
    write("timed", timed_, kTimeNames);
    write("times_us", times_us_, kTimeNames);
    out.object("all", [&] {
      for (std::size_t i = 0; i < kCounts; ++i) out.member(kCountNames[i], all_[i]);
    });
  });
}

Result<ProjectCounters> ProjectCounters::read(std::string_view stored) {
  const auto text = JsonText::parse_object("the counters of a project", stored, std::size_t{1} << 20);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  const JsonValue form = text->root(errors);
  JsonMembers in(form);
  ProjectCounters counters;
  const auto read = [&](std::string_view name, Rings& rings, const auto& names) {
    const JsonValue* const part = in.find(name);
    if (part == nullptr) return;
    if (!part->is_object()) return part->complain("an object");
    JsonMembers members(*part);
    for (std::size_t i = 0; i < rings.size(); ++i) {
      if (const JsonValue* const ring = members.find(names[i])) rings[i].read(*ring);
    }
    members.finish("counters have none");
  };
  for (std::size_t span = 0; span < kSpans; ++span) read(kSpanNames[span], counters.rings_[span], kCountNames);
  read("timed", counters.timed_, kTimeNames);
  read("times_us", counters.times_us_, kTimeNames);
  if (const JsonValue* const all = in.find("all")) {
    JsonMembers members(*all);
    for (std::size_t i = 0; i < kCounts; ++i) counters.all_[i] = members.whole(kCountNames[i], kMostCounted);
    members.finish("counters have none");
  }
  in.finish("counters have none");
  if (errors) return std::unexpected(errors.error());
  return counters;
}

std::string_view to_string(ProjectCounters::Count what) noexcept { return kCountNames[static_cast<std::size_t>(what)]; }
std::string_view to_string(ProjectCounters::Span span) noexcept { return kSpanNames[static_cast<std::size_t>(span)]; }

}  // namespace argiope

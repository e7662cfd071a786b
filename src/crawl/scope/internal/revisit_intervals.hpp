// How long until a page that was fetched is fetched again: its age, or within bounds an interval of its own. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

class RevisitIntervals {
 public:
  // The factor by which a visit that found the page as it was, or changed, changes its interval.
  static constexpr double kLonger = 1.5;
  static constexpr double kShorter = 0.5;

  RevisitIntervals(std::optional<Duration> age, std::optional<RevisitBounds> bounds) : age_(age), bounds_(bounds) {}

  bool is_adaptive() const noexcept { return bounds_.has_value(); }

  // Of a page that was fetched once: the age; without one the geometric middle of the bounds.
  Duration first() const noexcept {
    if (!bounds_) return age_.value_or(Duration::max());
    if (age_) return std::clamp(*age_, bounds_->least, bounds_->most);
    return clamped(std::sqrt(to_seconds(bounds_->least) * to_seconds(bounds_->most)));
  }
  // The interval of a page whose last one was `last`; nullopt: it has had none.
  Duration of(std::optional<Duration> last) const noexcept {
    return bounds_ && last ? std::clamp(*last, bounds_->least, bounds_->most) : first();
  }
  // `failed`: nothing was learned of how often it changes.
  enum class Visit : std::uint8_t { first, same, changed, failed };
  Duration next(std::optional<Duration> last, Visit visit) const noexcept {
    if (!bounds_ || visit == Visit::first || visit == Visit::failed) return of(last);
    return clamped(to_seconds(of(last)) * (visit == Visit::changed ? kShorter : kLonger));
  }

 private:
  Duration clamped(double seconds) const noexcept {
    if (seconds >= to_seconds(bounds_->most)) return bounds_->most;
    return std::max(bounds_->least, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

  std::optional<Duration> age_;
  std::optional<RevisitBounds> bounds_;
};

}  // namespace argiope

#include "simulate/internal/wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace argiope {
namespace {

template <class Step, class Fold>
Columns folded(const std::vector<Step>& steps, std::size_t columns, Fold fold) {
  Columns out;
  out.steps = std::max<std::size_t>(1, (steps.size() + columns - 1) / columns);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % out.steps == 0) out.values.push_back(0);
    fold(out.values.back(), steps[i]);
    out.most = std::max(out.most, out.values.back());
  }
  return out;
}

}  // namespace

std::string verdict(const QueueFindings& queue, const SimulationReport& report) {
  const auto growth = [&] {
    const double jobs = std::abs(queue.growth_per_day);
    return fmt::format("{}{} a day", queue.growth_per_day < 0 ? "-" : "+",
                       jobs < 10 ? fmt::format("{:.2g}", jobs) : grouped(static_cast<std::uint64_t>(jobs)));
  };
  switch (queue.trend) {
    case Trend::keeps_up: break;
    case Trend::never_empty: return "never empty";
    case Trend::piles_up:
      return report.until - report.from < std::chrono::days{2}
                 ? fmt::format("piles up: {:+.3g} an hour", queue.growth_per_day / 24)
                 : "piles up: " + growth();
    case Trend::not_worked: return "no workers here";
  }
  return queue.put == 0 ? "unused" : "keeps up";
}

std::string names_of(const Collision& collision, const SimulationReport& report, std::size_t most) {
  std::string out;
  const std::size_t count = collision.schedules.size();
  const std::size_t shown = count <= most ? count : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == count ? " and " : ", ";
    out += report.schedules[collision.schedules[i]].name;
  }
  if (shown < count) out += fmt::format(" and {} more", count - shown);
  return out;
}

std::string sentence(const DaylightSurprise& surprise) {
  const std::string times = surprise.times == 1
                                ? local_time_text(surprise.first)
                                : fmt::format("{} from {} to {}", count_of(surprise.times, "time"),
                                              local_time_text(surprise.first), local_time_text(surprise.last));
  const bool many = surprise.times > 1;
  return fmt::format("{} {} ({}): {}", times,
                     surprise.gap ? (many ? "do not exist" : "does not exist") : (many ? "come twice" : "comes twice"),
                     surprise.policy, surprise.effect);
}

Columns sums(const std::vector<std::uint64_t>& steps, std::size_t columns) {
  return folded(steps, columns, [](double& sum, std::uint64_t value) { sum += static_cast<double>(value); });
}

Columns highest(const std::vector<Level>& steps, std::size_t columns) {
  return folded(steps, columns,
                [](double& high, const Level& value) { high = std::max(high, static_cast<double>(value.most)); });
}

}  // namespace argiope

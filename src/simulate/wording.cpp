#include "simulate/internal/wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "argiope/time/timestamp.hpp"

namespace argiope {
namespace {

constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

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

std::string grouped(std::uint64_t number) {
  std::string text = fmt::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string short_duration(Duration span) {
  using namespace std::chrono;
  const double seconds = to_seconds(span);
  if (span == Duration::zero()) return "0";
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", std::max(seconds * 1e3, 0.001));
  if (seconds < 59.95) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const auto pair = [&](std::int64_t unit, const char* name, std::int64_t part, const char* part_name) {
    const std::int64_t rest = whole % unit / part;
    return rest == 0 ? fmt::format("{} {}", whole / unit, name)
                     : fmt::format("{} {} {} {}", whole / unit, name, rest, part_name);
  };
  if (whole < 3'600) return pair(60, "min", 1, "s");
  if (whole < 86'400) return pair(3'600, "h", 60, "min");
  return pair(86'400, "d", 3'600, "h");
}

std::string short_time(WallTime time, const TimeZone& zone) {
  std::string text = format_timestamp(std::chrono::floor<std::chrono::seconds>(time), zone);
  text = text.substr(0, text.substr(17, 2) == "00" ? 16 : 19);
  text[10] = ' ';
  return text;
}

std::string axis_label(WallTime time, Duration span, const TimeZone& zone) {
  const LocalTime local = zone.to_local(time);
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(local)};
  const std::string day = fmt::format("{} {}", unsigned{date.day()}, kMonths[unsigned{date.month()} - 1]);
  if (span >= std::chrono::days{12}) return day;
  const std::string clock = local_time_text(std::chrono::floor<std::chrono::seconds>(local));
  return span > std::chrono::days{1} ? day + ' ' + clock : clock;
}

std::string local_time_text(LocalTime local) {
  const std::string text = format_timestamp(WallTime{local.time_since_epoch()});
  return text.substr(11, text.substr(17, 2) == "00" ? 5 : 8);
}

std::string count_of(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

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

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (++characters > most) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
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

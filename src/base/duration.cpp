#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

using namespace std::chrono;

struct Unit {
  std::string_view name;
  Duration length;
};
constexpr std::array<Unit, 8> kUnits{{{"w", weeks{1}},
                                      {"d", days{1}},
                                      {"h", hours{1}},
                                      {"m", minutes{1}},
                                      {"s", seconds{1}},
                                      {"ms", milliseconds{1}},
                                      {"us", microseconds{1}},
                                      {"ns", nanoseconds{1}}}};
constexpr double kMost = 200.0 * 365 * 86400e9;
constexpr std::size_t kMostDigits = 12;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "90", "0.5", ".5", "1e3": seconds.
std::optional<Duration> bare_number(std::string_view text) {
  if (!is_digit(text.front()) && text.front() != '.') return std::nullopt;  // no sign, no "nan"
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value * 1e9 <= kMost)) return std::nullopt;
  return Duration{static_cast<Duration::rep>(value * 1e9 + 0.5)};
}

// The number with its unit that stands at the front is taken away.
std::optional<Duration> take_part(std::string_view& text) {
  const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
  if (size == 0 || size > kMostDigits) return std::nullopt;
  std::int64_t whole = 0;
  std::from_chars(text.data(), text.data() + size, whole);
  text.remove_prefix(size);
  double fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return std::nullopt;
    for (double unit = 0.1; !text.empty() && is_digit(text.front()); text.remove_prefix(1), unit /= 10) {
      fraction += (text.front() - '0') * unit;
    }
  }
  const std::size_t end = std::min(text.find_first_of("0123456789."), text.size());
  std::string_view name = trim(text.substr(0, end));
  if (name == "min") name = "m";  // as reports and the dashboard write it for people
  const auto unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == kUnits.end()) return std::nullopt;
  text.remove_prefix(end);
  const auto length = static_cast<double>(unit->length.count());
  if ((static_cast<double>(whole) + fraction) * length > kMost) return std::nullopt;
  return Duration{whole * unit->length.count() + static_cast<Duration::rep>(fraction * length + 0.5)};
}

std::optional<Duration> read_span(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  if (const auto bare = bare_number(text)) return bare;
  Duration total{};
  while (!text.empty()) {
    const auto part = take_part(text);
    if (!part || static_cast<double>(total.count()) + static_cast<double>(part->count()) > kMost) return std::nullopt;
    total += *part;
  }
  return total;
}

std::unexpected<Error> bad(std::string_view text, std::string_view least) {
  return fail(Errc::invalid_input,
              fmt::format("duration {}: a time such as 90s, 1h30m or 500ms, or a number of seconds{}, up to 200 years",
                          in_quotes(text), least));
}

}  // namespace

Result<Duration> parse_span(std::string_view text) {
  const auto span = read_span(text);
  return span ? Result<Duration>(*span) : bad(text, "");
}

Result<Duration> parse_duration(std::string_view text) {
  const auto span = read_span(text);
  return span && *span > Duration::zero() ? Result<Duration>(*span) : bad(text, ", more than 0");
}

std::string format_duration(Duration duration) {
  if (duration <= Duration::zero()) return "0s";
  std::string out;
  for (const Unit& unit : kUnits) {
    if (const auto count = duration / unit.length; count > 0) {
      out += fmt::format("{}{}", count, unit.name);
      duration -= count * unit.length;
    }
  }
  return out;
}

std::string format_roughly(Duration duration) {
  if (duration < seconds{1}) {
    const auto whole = round<milliseconds>(duration).count();
    return whole > 0 || duration <= Duration::zero() ? fmt::format("{}ms", std::max<std::int64_t>(whole, 0)) : "<1ms";
  }
  if (duration < minutes{1}) return fmt::format("{:.3g}s", to_seconds(duration));
  // The two largest units, from days on.
  std::string out;
  int parts = 0;
  auto left = round<seconds>(duration);
  for (const Unit& unit : kUnits) {
    if (unit.length > days{1} || (parts == 0 && left < unit.length)) continue;
    if (unit.length < seconds{1} || parts == 2) break;
    const auto count = left / duration_cast<seconds>(unit.length);
    if (count > 0) out += fmt::format("{}{}", count, unit.name);
    left -= count * duration_cast<seconds>(unit.length);
    ++parts;
  }
  return out;
}

}  // namespace argiope

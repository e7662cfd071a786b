#include "project/run/internal/round_alarms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/printable.hpp"
#include "base/internal/wording.hpp"

namespace argiope {
namespace {

constexpr int kMostPercentDigits = 6;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double share, int digits) {
  std::string text = fmt::format("{:.{}f}", share * 100, digits);
  if (text.contains('.')) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text + "%";
}

// As short as they can be and still be seen to differ.
std::pair<std::string, std::string> two_percents(double measured, double wanted) {
  const std::string should_be = percent(wanted, kMostPercentDigits);
  int digits = 0;
  while (digits < kMostPercentDigits && percent(measured, digits) == should_be) ++digits;
  return {percent(measured, digits), should_be};
}

RoundAlarm coverage_alarm(const FieldCount& count, double measured, double wanted) {
  const auto [is, should_be] = two_percents(measured, wanted);
  const std::string dropped = count.dropped == 0 ? std::string{} : fmt::format(" ({} dropped)", grouped(count.dropped));
  return {RoundAlarm::Kind::coverage, count.field, measured, wanted,
          fmt::format("{} is in {} of {}{}, at least {} is wanted", printable(count.field), is,
                      count_of(count.records, "result"), dropped, should_be)};
}

}  // namespace

void RoundCounts::add(const RuleReading& reading, std::span<const std::string> columns) {
  if (!reading.results) return;
  results += reading.results->size();
  if (reading.records() == 0) return;
  for (std::size_t i = 0; i < columns.size() && i < reading.found.size(); ++i) {
    auto count = std::ranges::find(fields, columns[i], &FieldCount::field);
    if (count == fields.end()) count = fields.insert(count, {.field = columns[i]});
    count->records += reading.records();
    count->dropped += reading.dropped;
    count->found += reading.found[i];
  }
}

std::vector<RoundAlarm> round_alarms(const RoundCounts& counts, const ProjectAlarm& alarm) {
  std::vector<RoundAlarm> alarms;
  for (const ProjectAlarm::Coverage& coverage : alarm.coverage) {
    for (const FieldCount& count : counts.fields) {
      if (count.records == 0 || (!coverage.field.empty() && coverage.field != count.field)) continue;
      const double measured = share_of(count.found, count.records);
      if (measured < coverage.least) alarms.push_back(coverage_alarm(count, measured, coverage.least));
    }
  }
  if (counts.results < alarm.least_results) {
    alarms.push_back({RoundAlarm::Kind::least_results,
                      {},
                      static_cast<double>(counts.results),
                      static_cast<double>(alarm.least_results),
                      fmt::format("the round has {}, at least {} {} wanted", count_of(counts.results, "result"),
                                  grouped(alarm.least_results), alarm.least_results == 1 ? "is" : "are")});
  }
  if (alarm.most_failures && counts.visits > 0) {
    const double measured = share_of(counts.failed, counts.visits);
    if (measured > *alarm.most_failures) {
      const auto [is, may_be] = two_percents(measured, *alarm.most_failures);
      alarms.push_back({RoundAlarm::Kind::most_failures,
                        {},
                        measured,
                        *alarm.most_failures,
                        fmt::format("{} of {} failed, at most {} may", is, count_of(counts.visits, "visit"), may_be)});
    }
  }
  return alarms;
}

std::string_view to_string(RoundAlarm::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"coverage", "least_results", "most_failures"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace argiope

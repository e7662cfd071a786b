// What it costs to read an expression and to find its next and its previous time, least favourable ones included: dates
// that come every 28 or 40 years or never, days on which clocks change, times that no policy lets run. None may take
// more than 50 µs, whatever the gap in time.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;

constexpr int kRounds = 7;
std::uint64_t kept = 0;  // keeps the calls from being optimised away

// Median nanoseconds that one of `count` calls takes.
template <class Call>
double time_calls(int count, Call call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) call();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    rounds.push_back(taken.count() / count);
  }
  return bench::median(rounds);
}

struct Case {
  std::string_view name, expression, after;
  std::string_view zone = "America/New_York";
  CronDialect dialect = CronDialect::argiope;
  DstGap gap = DstGap::next;
};

constexpr Case kCases[] = {
    {"every minute", "* * * * *", "2026-01-01T00:00:00Z"},
    {"every working day", "30 5 * * mon-fri", "2026-01-01T00:00:00Z"},
    {"every second", "* * * * * *", "2026-01-01T00:00:00Z"},
    {"before the gap", "30 2 * * *", "2026-03-08T01:00:00-05:00"},
    {"before the gap, shifted", "30 2 * * *", "2026-03-08T01:00:00-05:00", "America/New_York", CronDialect::argiope,
     DstGap::shift},
    {"within the overlap", "*/30 * * * *", "2026-11-01T01:45:00-04:00"},
    {"29 February", "0 0 29 2 *", "2096-03-01T00:00:00Z"},
    {"a Monday, 29 February", "0 0 29 2 mon", "2072-03-01T00:00:00Z"},
    {"30 February", "0 0 30 2 *", "1970-01-01T00:00:00Z"},
    {"31 February", "0 0 31 2 *", "1970-01-01T00:00:00Z"},
    {"the last day, a fifth Sunday", "0 0 L-1 2 sun#5", "1970-01-01T00:00:00Z"},
    {"nearest working day on a Sunday", "0 0 15W * sun", "1970-01-01T00:00:00Z"},
    {"every spring gap, skipped", "30 2 * 3 sun#2", "2007-04-01T00:00:00Z", "America/New_York", CronDialect::argiope,
     DstGap::skip},
    {"far year", "0 0 0 1 1 * 2199", "1970-01-01T00:00:00Z"},
    {"ISO week 53 of a June", "week=53 month=2-10", "1970-01-01T00:00:00Z", "UTC", CronDialect::apscheduler},
    {"ISO week 1 of a December", "week=1 month=12 day=31 day_of_week=sun", "1970-01-01T00:00:00Z", "UTC",
     CronDialect::apscheduler},
    {"systemd, hundredths", "*-02-29 00:00:00/0.01", "2096-03-01T00:00:00Z", "UTC", CronDialect::systemd},
};

}  // namespace

int main() {
  double slowest = 0;
  for (const Case& sample : kCases) {
    CronOptions options = CronOptions::of(sample.dialect);
    options.dom_dow = DomDow::both;
    options.dst_gap = sample.gap;
    const TimeZone zone = TimeZone::find(sample.zone).value();
    const WallTime after = parse_timestamp(sample.after).value();
    const Trigger trigger = Trigger::parse(sample.expression, options, zone).value();
    const std::string name(sample.name);
    const double next = time_calls(2'000, [&] { kept += trigger.next(after).has_value(); });
    const double previous = time_calls(2'000, [&] { kept += trigger.previous(after).has_value(); });
    const double from_the_end = time_calls(
        2'000, [&] { kept += trigger.previous(parse_timestamp("2199-12-31T00:00:00Z").value()).has_value(); });
    const double read = time_calls(200, [&] { kept += Trigger::parse(sample.expression, options, zone).has_value(); });
    bench::report("cron: next, " + name, next, "ns");
    bench::report("cron: previous, " + name, previous, "ns");
    bench::report("cron: previous from 2199, " + name, from_the_end, "ns");
    bench::report("cron: read, " + name, read, "ns");
    slowest = std::max({slowest, next, previous, from_the_end, read});
  }
  CalendarInterval both{.months = 1, .days = 1, .start = std::chrono::year{1970} / 1 / 31};
  const Trigger calendar = Trigger::calendar(both).value();
  const double far = time_calls(500, [&] { kept += calendar.next(parse_timestamp("2190-01-01").value()).has_value(); });
  bench::report("calendar: next, a month and a day from 1970", far, "ns");
  const Trigger interval = Trigger::every(std::chrono::milliseconds{1}, WallTime{}).value();
  bench::report("interval: next, a millisecond from 1970",
                time_calls(100'000, [&] { kept += interval.next(parse_timestamp("2190-01-01").value()).has_value(); }),
                "ns");
  bench::report("cron: the slowest of these", std::max(slowest, far), "ns");
  return kept == 0;
}

// Cron expressions of every dialect, triggers as JSON, times and durations. Whatever is accepted must come back from
// its own text and its JSON form, and its next and previous times must be in order and undo each other. The first byte
// chooses the dialect, the second the zone and the policies.
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"
#include "fuzz/require.hpp"

namespace {

using namespace argiope;

const WallTime kStarts[] = {WallTime{}, parse_timestamp("2026-03-28T23:59:59Z").value(),
                            parse_timestamp("2096-02-29T12:00:00Z").value(),
                            parse_timestamp("2199-12-31T23:00:00Z").value()};

void check(const Trigger& trigger, bool is_simple) {
  const std::string form = trigger.to_json();
  const auto again = Trigger::from_json(form);
  require(again && *again == trigger);
  for (const WallTime start : kStarts) {
    const auto next = trigger.next(start);
    require(next == again->next(start));
    if (next) {
      require(*next > start && trigger.due_at(*next) >= *next);
      const auto back = trigger.previous(*next + Duration{1});
      if (is_simple) require(back == next);
    }
    const auto previous = trigger.previous(start);
    if (previous) require(*previous < start);
    if (previous && is_simple) require(trigger.next(*previous - Duration{1}) == previous);
    if (previous && next && is_simple) {
      const auto same = trigger.next(*previous);
      require(same && *same <= *next && *same >= start);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const TimeZone zones[] = {TimeZone{}, TimeZone::find("Europe/Berlin").value(),
                                   TimeZone::find("Australia/Lord_Howe").value(),
                                   TimeZone::find("Pacific/Apia").value()};
  CronOptions options = CronOptions::of(static_cast<CronDialect>(data[0] % 5));
  const TimeZone& zone = zones[data[1] % std::size(zones)];
  options.dst_gap = static_cast<DstGap>(data[1] / 4 % 3);
  options.dst_overlap = static_cast<DstOverlap>(data[1] / 12 % 4);
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);

  if (const auto time = parse_timestamp(text, zone)) {
    require(parse_timestamp(format_timestamp(*time, zone)).value() == *time);
  }
  if (const auto duration = parse_duration(text))
    require(parse_duration(format_duration(*duration)).value() == *duration);
  if (const auto expression = CronExpression::parse(text, options)) {
    const auto again = CronExpression::parse(expression->text(), options);
    require(again && again->text() == expression->text());
    check(Trigger::cron(*expression, zone), true);
  }
  if (const auto trigger = Trigger::parse(text, options, zone)) check(*trigger, false);
  (void)fields_of_crontab(text);
  return 0;
}

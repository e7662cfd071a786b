#include <fmt/format.h>

#include <array>
#include <span>

#include "argiope/time/trigger.hpp"
#include "base/internal/printable.hpp"
#include "time/cron_parser.hpp"

namespace argiope {
namespace {

using detail::CompiledCron;

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<CronDialect> kDialects[] = {{"argiope", CronDialect::argiope},
                                            {"vixie", CronDialect::vixie},
                                            {"quartz", CronDialect::quartz},
                                            {"apscheduler", CronDialect::apscheduler},
                                            {"systemd", CronDialect::systemd}};
// The first name of a value is the one it is written with.
constexpr Named<DomDow> kDomDows[] = {{"or", DomDow::either},     {"and", DomDow::both},      {"vixie", DomDow::vixie},
                                      {"quartz", DomDow::quartz}, {"either", DomDow::either}, {"both", DomDow::both}};
constexpr Named<DstGap> kGaps[] = {{"next", DstGap::next}, {"shift", DstGap::shift}, {"skip", DstGap::skip}};
constexpr Named<DstOverlap> kOverlaps[] = {{"vixie", DstOverlap::vixie},
                                           {"first", DstOverlap::first},
                                           {"second", DstOverlap::second},
                                           {"both", DstOverlap::both}};

template <class Value, std::size_t N>
std::string_view name_of(Value value, const Named<Value> (&names)[N]) noexcept {
  for (const auto& named : names) {
    if (named.value == value) return named.name;
  }
  return "";
}

template <class Value, std::size_t N>
Result<Value> value_of(std::string_view what, std::string_view name, const Named<Value> (&names)[N]) {
  std::string all;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i].name == name) return names[i].value;
    all += fmt::format("{}{}", i == 0 ? "" : i + 1 == N ? " or " : ", ", names[i].name);
  }
  return detail::bad_field(what, name, all);
}

}  // namespace

CronOptions CronOptions::of(CronDialect dialect) noexcept {
  CronOptions options{.dialect = dialect};
  switch (dialect) {
    case CronDialect::argiope: break;
    case CronDialect::vixie:
      options.layout = CronLayout::five;
      options.dom_dow = DomDow::vixie;
      options.question_mark = QuestionMark::never;
      options.step_limit = StepLimit::none;
      options.wrap_ranges = false;
      options.day_rules = false;
      break;
    case CronDialect::quartz:
      options.layout = CronLayout::quartz;
      options.weekday_numbers = WeekdayNumbers::sunday_1;
      options.dom_dow = DomDow::quartz;
      break;
    case CronDialect::apscheduler:
      options.layout = CronLayout::five;
      options.weekday_numbers = WeekdayNumbers::monday_0;
      options.dom_dow = DomDow::both;
      options.question_mark = QuestionMark::never;
      options.step_limit = StepLimit::range;
      options.wrap_ranges = false;
      options.day_rules = false;
      break;
    case CronDialect::systemd:
      options.dom_dow = DomDow::both;
      options.dst_gap = DstGap::skip;
      options.dst_overlap = DstOverlap::first;
      break;
  }
  return options;
}

std::string_view to_string(CronDialect value) noexcept { return name_of(value, kDialects); }
std::string_view to_string(DomDow value) noexcept { return name_of(value, kDomDows); }
std::string_view to_string(DstGap value) noexcept { return name_of(value, kGaps); }
std::string_view to_string(DstOverlap value) noexcept { return name_of(value, kOverlaps); }
Result<CronDialect> parse_cron_dialect(std::string_view name) { return value_of("dialect", name, kDialects); }
Result<DomDow> parse_dom_dow(std::string_view name) { return value_of("dom_dow", name, kDomDows); }
Result<DstGap> parse_dst_gap(std::string_view name) { return value_of("dst_gap", name, kGaps); }
Result<DstOverlap> parse_dst_overlap(std::string_view name) { return value_of("dst_overlap", name, kOverlaps); }

namespace {

// Makes an expression of what `parse` put into the sets.
template <class Parse>
Result<std::shared_ptr<const CompiledCron>> compile(const CronOptions& options, Parse parse) {
  auto compiled = std::make_shared<CompiledCron>();
  compiled->options = options;
  if (Result<void> parsed = parse(*compiled); !parsed) return std::unexpected(parsed.error());
  compiled->prepare();
  if (options.refuse_never && !compiled->first_at_or_after(Duration::zero())) {
    return fail(Errc::invalid_input, fmt::format("expression {}: there is no such date", in_quotes(compiled->text)));
  }
  return compiled;
}

}  // namespace

Result<CronExpression> CronExpression::parse(std::string_view text, const CronOptions& options) {
  if (text.size() > kMostBytes) {
    return fail(Errc::too_large, fmt::format("expression of {} bytes: at most {}", text.size(), kMostBytes));
  }
  auto compiled = compile(options, [&](CompiledCron& out) -> Result<void> {
    if (options.dialect == CronDialect::systemd) return detail::parse_on_calendar(text, out);
    if (options.dialect == CronDialect::apscheduler && text.find('=') != text.npos) {
      const auto fields = detail::split_keywords(text);
      if (!fields) return std::unexpected(fields.error());
      return detail::parse_keywords(*fields, out);
    }
    return detail::parse_crontab(text, out);
  });
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  return CronExpression(std::move(*compiled));
}

Result<CronExpression> CronExpression::from_fields(const CronFields& fields, const CronOptions& options) {
  auto compiled = compile(options, [&](CompiledCron& out) { return detail::parse_keywords(fields, out); });
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  return CronExpression(std::move(*compiled));
}

const std::string& CronExpression::text() const noexcept { return compiled_->text; }
const CronOptions& CronExpression::options() const noexcept { return compiled_->options; }
const std::optional<TimeZone>& CronExpression::zone() const noexcept { return compiled_->zone; }
bool CronExpression::follows_elapsed_time() const noexcept { return compiled_->follows_elapsed_time; }

std::optional<LocalTime> CronExpression::first_at_or_after(LocalTime from) const noexcept {
  const auto found = compiled_->first_at_or_after(from.time_since_epoch());
  return found ? std::optional(LocalTime{*found}) : std::nullopt;
}

std::optional<LocalTime> CronExpression::last_at_or_before(LocalTime until) const noexcept {
  const auto found = compiled_->last_at_or_before(until.time_since_epoch());
  return found ? std::optional(LocalTime{*found}) : std::nullopt;
}

bool CronExpression::never() const noexcept { return !compiled_->first_at_or_after(Duration::zero()); }

}  // namespace argiope

#include "project/run/live_project.hpp"

#include <algorithm>

#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/process/internal/asked_pages.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRecent = 100;

// The first multiple of `every` after `last`, or after `now` where none has been yet.
WallTime next_multiple(Duration every, WallTime after) {
  const auto since = after.time_since_epoch();
  return WallTime{(since / every + 1) * every};
}

// Where a page is counted. A page that is visited because of its age is a success until that has ended.
std::optional<ProjectCounters::Count> place_of(const KnownPage& page) {
  using enum ProjectCounters::Count;
  switch (page.state) {
    case PageState::waiting:
    case PageState::visiting: return page.wait == PageWait::recrawl ? success : pending;
    case PageState::done: return success;
    case PageState::failed: return failed;
    case PageState::cancelled: break;
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<RuleReaders>> RuleReaders::make(const ProjectDefinition& definition, ProjectMap map,
                                                       const Shared& shared) {
  auto reader = RuleReader::make(definition, std::move(map), shared.agent, shared.here);
  if (!reader) return std::unexpected(std::move(reader.error()));
  std::vector<std::string> names;
  for (const ProjectRule& rule : definition.rules) names.push_back(rule.name());
  return std::make_shared<RuleReaders>(std::move(*reader), shared.there, std::move(names));
}

Result<void> LiveProject::take_version(const ProjectVersion& version, const RuleReaders::Shared& shared,
                                       std::uint32_t pause_after) {
  auto parsed = parse_project_json(version.text);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  auto its_map = ProjectMap::make(*parsed);
  if (!its_map) return std::unexpected(std::move(its_map.error()));
  auto its_readers = RuleReaders::make(*parsed, *its_map, shared);
  if (!its_readers) return std::unexpected(std::move(its_readers.error()));
  definition = std::move(*parsed);
  file_status = definition.status;
  file_group = definition.group;
  pause.set_after(definition.pause_after.value_or(pause_after));
  map.emplace(std::move(*its_map));
  readers = std::move(*its_readers);
  for (const ProjectStatus status : {ProjectStatus::todo, ProjectStatus::stop, ProjectStatus::checking,
                                     ProjectStatus::debug, ProjectStatus::running}) {
    if (to_string(status) == record.status) definition.status = status;
  }
  text = version.text;
  source = version.source;
  script = version.script;
  make_rules();
  return {};
}

void LiveProject::write_to(PageBatch& batch) {
  is_changed = false;
  record.pause = pause.stored();
  record.counters = counters.stored();
  record.ticks = stored_times();
  batch.projects.push_back(record);
}

RuleNumber LiveProject::rule_number(std::string_view name) {
  if (const auto known = rule_numbers.find(name); known != rule_numbers.end()) return known->second;
  const auto number = static_cast<RuleNumber>(std::min<std::size_t>(rules.size(), UINT16_MAX));
  if (number < rules.size()) return number;  // more names than numbers: the last one stands for all
  rule_numbers.emplace(name, number);
  rules.push_back({.name = std::string(name)});
  make_rule(rules.back());
  return number;
}

void LiveProject::make_rules() {
  for (std::size_t i = 0; i < definition.rules.size(); ++i) {
    const std::string& name = definition.rules[i].name();
    if (rule_numbers.contains(name) || rules.size() > UINT16_MAX) continue;
    rule_numbers.emplace(name, static_cast<RuleNumber>(rules.size()));
    rules.push_back({.name = name});
  }
  for (LiveRule& rule : rules) make_rule(rule);
}

void LiveProject::make_rule(LiveRule& rule) const {
  const PageSettings nothing;
  const PageSettings& defaults = description ? description->defaults : nothing;
  const auto place = std::ranges::find(definition.rules, rule.name,
                                       [](const ProjectRule& one) -> const std::string& { return one.name(); });
  rule.place.reset();
  PageTerms usual{.tag = page_tag(definition.version)};
  PageSettings file = file_settings({}, definition.request);
  if (place != definition.rules.end()) {
    rule.place = static_cast<std::size_t>(place - definition.rules.begin());
    usual = place->terms;
    file = file_settings(place->request, definition.request);
  } else if (description) {
    usual.retry_delay = description->retry_delay;
  }
  rule.settings = merged({}, defaults, file);
  rule.errors = false;
  rule.fields.reset();
  if (description) {
    if (const auto said = description->rules.find(rule.name); said != description->rules.end()) {
      rule.settings = merged(said->second.settings, defaults, file);
      rule.errors = said->second.errors;
      if (!said->second.fields_json.empty()) {
        auto fields = ScriptFields::compile(said->second.fields_json);
        if (fields) rule.fields = std::make_shared<const ScriptFields>(std::move(*fields));
      }
    }
  }
  rule.settled = argiope::settled(rule.settings);
  rule.terms = argiope::terms_of(rule.settings, usual);
}

bool LiveProject::has_lost_its_rule(PageIndex::Number page) const {
  return definition.processor.empty() && !definition.rules.empty() && !rules[index.rule(page)].place;
}

PageIndex::Number LiveProject::find_page(std::string& name) const {
  if (const PageIndex::Number page = index.find(page_fingerprint(name)); page != 0) return page;
  auto usual = usual_page_name(name);
  const PageIndex::Number page = usual ? index.find(page_fingerprint(*usual)) : 0;
  if (page != 0) name = *std::move(usual);
  return page;
}

void LiveProject::recount(const std::optional<KnownPage>& before, const KnownPage& after) {
  const auto from = before ? place_of(*before) : std::nullopt;
  const auto to = place_of(after);
  if (from == to) return;
  if (from) counters.add_page(*from, -1);
  if (to) counters.add_page(*to);
}

void LiveProject::note(VisitNote visit) {
  recent.push_front(std::move(visit));
  if (recent.size() > kMostRecent) recent.pop_back();
}

void LiveProject::enter_round(PageIndex::Number page, std::int64_t number) {
  if (number == 0 || !round || round->number != number || is_in_round(page)) return;
  if (page >= in_round.size()) in_round.resize(std::max<std::size_t>(page + 1, in_round.size() * 2));
  in_round[page] = true;
  ++outstanding;
}

void LiveProject::plan_times(WallTime now) {
  next_time.reset();
  const auto earliest = [&](std::optional<WallTime> time) {
    if (time && (!next_time || *time < *next_time)) next_time = time;
  };
  // A clock that was set back leaves times in the future.
  for (auto& [name, last] : last_times) last = std::min(last, now);
  // By a schedule it starts at the next of its times; by a span at once.
  if (definition.schedule && !last_times.contains(kStartTime)) {
    last_times.emplace(kStartTime, now);
    is_changed = true;
  }
  const auto started = last_times.find(kStartTime);
  if (started == last_times.end()) {
    if (definition.every) earliest(now);
  } else {
    if (definition.every) earliest(started->second + *definition.every);
    if (definition.schedule) earliest(definition.schedule->next(started->second));
  }
  if (!description) return;
  for (const ProcessorDescription::Tick& tick : description->ticks) {
    const auto [last, is_first] = last_times.try_emplace(std::string(kTickPage) + tick.rule, now);
    if (is_first) is_changed = true;
    earliest(next_multiple(tick.every, last->second));
  }
}

std::string LiveProject::stored_times() const {
  return json_object([&](JsonWriter& out) {
    for (const auto& [name, last] : last_times) {
      out.key(name);
      out.value(last);
    }
  });
}

void LiveProject::read_times(std::string_view stored) {
  last_times.clear();
  if (stored.empty()) return;
  JsonErrors errors;
  const auto times = JsonText::parse(stored);
  if (!times) return;
  times->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    const auto shown = value.if_text();
    if (!shown) return;
    if (const auto time = parse_rfc3339(*shown)) last_times.emplace(name, *time);
  });
}

PageEvent event_of(const ProcessorDescription* description, std::string_view url, std::string_view rule) noexcept {
  if (description == nullptr || !url.starts_with("data:")) return PageEvent::fetch;
  if (url.starts_with(kTickPage) && url.substr(kTickPage.size()) == rule) return PageEvent::tick;
  if (url == kStartPage && rule == description->on_start) return PageEvent::start;
  if (url == kFinishedPage && rule == description->on_finished) return PageEvent::finished;
  return !rule.empty() && rule == description->on_message ? PageEvent::message : PageEvent::fetch;
}

std::string_view to_string(ProjectStatusNow::Doing doing) noexcept {
  constexpr std::string_view kNames[] = {"stopped", "standing", "paused", "probing", "waiting", "visiting"};
  return kNames[static_cast<std::size_t>(doing)];
}

}  // namespace argiope

// The work on projects: new ones, new versions, status and rates, removal; and what is told of them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "argiope/async/sleep.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/rules/internal/page_reasons.hpp"
#include "project/run/page_engine_impl.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostBurst = 1'000'000;
constexpr std::string_view kNoteOfScript = "the script has changed";
constexpr Duration kIdleLookPause = std::chrono::milliseconds{50};
constexpr Duration kFirstDescriptionPause = std::chrono::seconds{10};
constexpr Duration kSoonToDo = std::chrono::seconds{3};
constexpr Duration kLongestDescriptionPause = std::chrono::minutes{5};

Error no_such_project(std::string_view name) { return {Errc::not_found, fmt::format("there is no project {}", in_quotes(name))}; }

}  // namespace

PageEngine::Impl::Live PageEngine::Impl::find(std::string_view name) const {
  const auto found = projects_.find(name);
  return found == projects_.end() ? nullptr : found->second;
}

Result<PageEngine::Impl::Live> PageEngine::Impl::need(std::string_view name) const {
  if (Live project = find(name)) return project;
  return std::unexpected(no_such_project(name));
}

// --- what a version makes of a project ---------------------------------------------------------------------------------

Result<void> PageEngine::Impl::take_version(LiveProject& project, const ProjectVersion& version) {
  auto definition = parse_project_json(version.text);
  if (!definition) return std::unexpected(std::move(definition.error()));
  auto map = ProjectMap::make(*definition);
  if (!map) return std::unexpected(std::move(map.error()));
  auto readers = RuleReaders::make(*definition, *map, reading_);
  if (!readers) return std::unexpected(std::move(readers.error()));
  project.definition = std::move(*definition);
  project.file_status = project.definition.status;
  project.file_group = project.definition.group;
  project.pause.set_after(project.definition.pause_after.value_or(options_.pause.after));
  project.map.emplace(std::move(*map));
  project.readers = std::move(*readers);
  for (const ProjectStatus status : {ProjectStatus::todo, ProjectStatus::stop, ProjectStatus::checking, ProjectStatus::debug, ProjectStatus::running}) {
    if (to_string(status) == project.record.status) project.definition.status = status;
  }
  project.text = version.text;
  project.source = version.source;
  project.script = version.script;
  project.make_rules();
  return {};
}

void PageEngine::Impl::set_limits(LiveProject& project) {
  if (!project.frontier) return;
  PageFrontier::Limits limits;
  limits.rate = project.record.rate ? *project.record.rate : project.definition.rate.value_or(kUnlimitedRate);
  limits.burst = project.record.burst.value_or(project.definition.burst);
  limits.paused = !project.is_running();
  project.frontier->set_limits(limits, loop_->time());
}

void PageEngine::Impl::make_frontier(LiveProject& project) {
  if (project.frontier) return;
  LiveProject* const its = &project;
  project.frontier = std::make_unique<PageFrontier>(
      project.index, [its](RuleNumber rule) -> const PageTerms& { return its->terms_of(rule); }, options_.queue_size);
  project.frontier->set_clock(loop_->time(), wall());
  set_limits(project);
}

void PageEngine::Impl::begin_processor(LiveProject& project) {
  if (project.definition.processor.empty() || project.processor || loop_ == nullptr) return;
  if (!options_.make_processor) {
    project.record.trouble = "nobody here can run its processor";
    return;
  }
  // Calls that come after the project is gone, or has another processor, are for nobody.
  const std::weak_ptr<LiveProject> weak = by_id_.at(project.record.id);
  const auto live = [weak, number = ++project.processor_number]() -> Live {
    Live its = weak.lock();
    return its && !its->is_gone && its->processor_number == number ? its : nullptr;
  };
  project.is_told_debug = project.definition.status == ProjectStatus::debug;
  ProcessorWatch watch;
  watch.log = [this, weak](PageLog line) {
    if (const auto its = weak.lock()) log(*its, line.level, std::move(line.text));
  };
  watch.described = [this, live](const ProcessorDescription& description) {
    if (const Live its = live()) take_description(*its, description);
  };
  watch.trouble = [this, live](const std::string& trouble) {
    const Live its = live();
    if (!its || its->record.trouble == trouble) return;
    its->record.trouble = trouble;
    its->is_changed = true;
    activate(*its);
  };
  watch.changed = [this, live] {
    if (const Live its = live()) take_script(*its);
  };
  auto made = options_.make_processor(project.definition, std::move(watch));
  if (!made) {
    project.record.trouble = made.error().message;
    log(project, "error", project.record.trouble);
    return;
  }
  project.processor = std::move(*made);
  project.describing = loop_->create_task(describe(by_id_.at(project.record.id)), "describe");
}

void PageEngine::Impl::tell_debug(LiveProject& project) {
  const bool is_debug = project.definition.status == ProjectStatus::debug;
  if (!project.processor || !project.is_running() || is_debug == project.is_told_debug) return;
  let_go_of_processor(project);
  begin_processor(project);
}

void PageEngine::Impl::take_script(LiveProject& project) {
  if (!options_.script_of || project.text.empty()) return;
  std::string script = options_.script_of(project.definition);
  if (script.empty() || script == project.script) return;
  project.script = std::move(script);
  const WallTime now = wall();
  PageBatch batch;
  batch.at = now;
  batch.versions.push_back({.project = project.record.id,
                            .number = ++project.record.version,
                            .made_at = now,
                            .text = project.text,
                            .source = project.source,
                            .script = project.script,
                            .note = std::string(kNoteOfScript)});
  project.record.changed_at = now;
  write_down(project, batch);
  submit(std::move(batch));
}

void PageEngine::Impl::take_description(LiveProject& project, ProcessorDescription description) {
  project.is_changed = true;
  project.record.trouble.clear();
  project.description = std::move(description);
  project.make_rules();
  project.frontier->terms_changed(loop_->time());
  plan(project);
  begin_wanted_start(project);
  PageBatch batch;
  batch.at = wall();
  end_round_if_over(project, batch, batch.at);
  tell_script(project, batch, batch.at);
  if (batch.size() > 0) submit(std::move(batch));
  activate(project);
}

void PageEngine::Impl::begin_sinks(LiveProject& project) {
  if (project.definition.sinks.empty() || project.sinks || loop_ == nullptr || !options_.sink_means || ending_sinks_.contains(project.record.id)) return;
  SinkMeans means = options_.sink_means(project.definition);
  if (means.transport == nullptr) means.transport = transport_;
  const auto submit_row = [this](SinkRow row) {
    PageBatch batch;
    batch.at = wall();
    batch.sinks.push_back(std::move(row));
    submit(std::move(batch));
  };
  project.sinks = std::make_unique<ResultSinks>(*loop_, store_, submit_row, project.record.id, project.definition, std::move(means));
  if (auto started = project.sinks->start(); !started) {
    log(project, "error", started.error().message);
    project.sinks.reset();
  }
}

// How far a sink had come that the file does not name any more is forgotten: one of that name is another.
void PageEngine::Impl::keep_named_sinks(const LiveProject& project, PageBatch& batch) {
  SinksKept kept{.project = project.record.id, .names = {}};
  for (const ProjectSink& sink : project.definition.sinks) kept.names.push_back(sink.name);
  batch.kept_sinks.push_back(std::move(kept));
}

void PageEngine::Impl::end_sinks(LiveProject& project) {
  if (!project.sinks) return;
  ++ending_sinks_[project.record.id];
  background_->run(nullptr, end_sinks_now(project.record.id, std::move(project.sinks)));
}

// Those of the new version go on where those of the one before have come to.
Coro<void> PageEngine::Impl::end_sinks_now(ProjectId project, std::unique_ptr<ResultSinks> sinks) {
  co_await sinks->stop();
  sinks.reset();
  if (--ending_sinks_[project] > 0) co_return;
  ending_sinks_.erase(project);
  const auto found = by_id_.find(project);
  if (found == by_id_.end()) co_return;
  PageBatch batch;
  batch.at = wall();
  keep_named_sinks(*found->second, batch);
  submit(std::move(batch));
  if (!stopping_) begin_sinks(*found->second);
}

// As often as its script changes. Each that is asked has a process: so few have a place for that at a time, and leave it when their processes
// have something to do or have ended. Those that hang wait for each other, once that is known of them.
Coro<void> PageEngine::Impl::describe(Live project) {
  const std::shared_ptr<Processor> processor = project->processor;
  const std::shared_ptr<DescribingPlaces> places = describing_;
  const auto is_over = [&] { return project->is_gone || project->processor != processor; };
  for (Duration pause{}; !is_over();) {
    if (pause > Duration{}) co_await sleep(pause);
    bool is_described = false;
    {
      const Semaphore::Permit place = co_await (pause > Duration{} ? places->again : places->first).scoped();
      auto said = co_await processor->describe();
      if (is_over()) co_return;
      is_described = said.has_value();
      if (said) {
        take_description(*project, std::move(*said));
        if (!has_something_to_do(*project)) co_await processor->rest();
      } else {
        project->is_changed = true;
        project->record.trouble = said.error().message;
        log(*project, "error", project->record.trouble);
      }
    }
    if (is_described) co_await processor->when_changed();
    pause = is_described ? Duration{} : std::clamp(pause * 2, kFirstDescriptionPause, kLongestDescriptionPause);
  }
}

bool PageEngine::Impl::has_something_to_do(LiveProject& project) {
  if (!project.visits.empty() || project.taken > 0) return true;
  if (!project.may_visit()) return false;
  const TimePoint now = loop_->time();
  project.frontier->set_clock(now, wall());
  project.frontier->sweep(now);
  const TimePoint next = project.frontier->next_wakeup(now);
  return next != kNever && next <= now + kSoonToDo;
}

// --- what its owner does -----------------------------------------------------------------------------------------------

Result<ProjectId> PageEngine::Impl::put_project(Draft draft) {
  const std::string name = draft.definition.name;
  if (!draft.definition.processor.empty() && !options_.make_processor) {
    return std::unexpected(Error{Errc::unsupported, fmt::format("project {} has a processor, and nobody here can run it", in_quotes(name))});
  }
  if (deleted_.contains(name)) {
    return std::unexpected(Error{Errc::invalid_input, fmt::format("project {} was deleted, and can still be restored: restore it, or take another name", in_quotes(name))});
  }
  if (resting_.contains(name)) {
    return std::unexpected(Error{Errc::invalid_input, fmt::format("project {} is in the database, and rests: it is not among those that are run", in_quotes(name))});
  }
  if (draft.script.empty() && options_.script_of && !draft.definition.processor.empty()) draft.script = options_.script_of(draft.definition);
  const WallTime now = wall();
  Live project = find(name);
  const bool is_new = project == nullptr;
  if (!is_new) {
    // The text as it was written counts, too: comments are kept for its next reader.
    const bool same_source = draft.source.empty() || project->source == draft.source;
    if (same_source && project->text == draft.text && project->script == draft.script && !project->text.empty()) {
      // The things that it lacked may be there now.
      if (!project->processor) begin_processor(*project);
      return project->record.id;
    }
  } else {
    project = std::make_shared<LiveProject>(options_, ProjectRecord{.id = store_.next_project_id(), .name = name, .made_at = now});
    project->record.status = std::string(to_string(draft.definition.status));
    project->record.group = draft.definition.group;
  }
  ProjectVersion version{.project = project->record.id,
                         .number = project->record.version + 1,
                         .made_at = now,
                         .text = std::move(draft.text),
                         .source = std::move(draft.source),
                         .script = std::move(draft.script),
                         .note = std::move(draft.note)};
  const std::string stored_status = project->record.status;
  // A status or group that was set beside the file holds until the file says otherwise.
  const bool had_other_status = !is_new && draft.definition.status != project->file_status;
  if (had_other_status) project->record.status = std::string(to_string(draft.definition.status));
  if (!is_new && draft.definition.group != project->file_group) project->record.group = draft.definition.group;
  const bool same_processor = project->definition.processor == draft.definition.processor;
  if (auto taken = take_version(*project, version); !taken) {
    project->record.status = stored_status;
    return std::unexpected(std::move(taken.error()));
  }
  project->turns = std::min(project->turns, project->definition.weight);
  project->record.version = version.number;
  project->record.changed_at = now;
  project->record.trouble.clear();
  if (!same_processor && project->processor) {
    let_go_of_processor(*project);
    project->description.reset();
    project->make_rules();
  }
  PageBatch batch;
  batch.at = now;
  batch.versions.push_back(std::move(version));
  if (!project->sinks) keep_named_sinks(*project, batch);  // else when those of the version before have ended
  write_down(*project, batch);
  if (is_new) {
    by_id_.emplace(project->record.id, project);
    projects_.emplace(name, project);
  }
  submit(std::move(batch));
  if (loop_ != nullptr) {
    make_frontier(*project);
    set_limits(*project);
    project->frontier->terms_changed(loop_->time());
    begin_processor(*project);
    tell_debug(*project);
    if (project->sinks) {
      end_sinks(*project);
    } else {
      begin_sinks(*project);
    }
    plan(*project);
    activate(*project);
  }
  if (project->definition.processor.empty()) begin_wanted_start(*project);
  return project->record.id;
}

void PageEngine::Impl::let_go_of_processor(LiveProject& project) {
  ++project.processor_number;
  if (project.describing && !project.describing.done()) project.describing.cancel();
  if (project.processor) background_->run(nullptr, close_when_idle(std::exchange(project.processor, nullptr)));
}

// Calls of it hold it, too.
Coro<void> PageEngine::Impl::close_when_idle(std::shared_ptr<Processor> old) {
  while (old.use_count() > 1 && !ended_.is_set()) co_await sleep(kIdleLookPause);
  co_await old->close();
}

Result<void> PageEngine::Impl::change(std::string_view name, const std::function<void(LiveProject&)>& change) {
  auto project = need(name);
  if (!project) return std::unexpected(std::move(project.error()));
  change(**project);
  (*project)->record.changed_at = wall();
  PageBatch batch;
  batch.at = wall();
  write_down(**project, batch);
  submit(std::move(batch));
  if (loop_ != nullptr) {
    tell_debug(**project);
    set_limits(**project);
    plan(**project);
    activate(**project);
  }
  return {};
}

Result<void> PageEngine::Impl::remove(std::string_view name) {
  auto found = need(name);
  if (!found) return std::unexpected(std::move(found.error()));
  const Live project = std::move(*found);
  project->is_gone = true;
  project->record.deleted_at = wall();
  for (const auto& [page, visit] : project->visits) cancel(*visit);
  let_go_of_processor(*project);
  end_sinks(*project);
  std::erase_if(remembered_, [&](const auto& entry) { return project_of(entry.first) == project->record.id; });
  PageBatch batch;
  batch.at = wall();
  write_down(*project, batch);
  submit(std::move(batch));
  if (project->wakes_at != kNever) waking_.erase({project->wakes_at, project->record.id});
  by_id_.erase(project->record.id);
  deleted_.emplace(project->record.name, project->record);
  project->round_is_over.set();
  projects_.erase(project->record.name);
  return {};
}

Result<void> PageEngine::Impl::restore(std::string_view name) {
  const auto found = deleted_.find(name);
  if (found == deleted_.end()) {
    return std::unexpected(Error{Errc::not_found, fmt::format("no project {} was deleted in the last 24 hours", in_quotes(name))});
  }
  ProjectRecord record = found->second;
  record.deleted_at.reset();
  record.changed_at = wall();
  // Its rows that were submitted must be there before they are read.
  PageBatch batch;
  batch.at = wall();
  batch.projects.push_back(record);
  submit(std::move(batch));
  if (auto flushed = store_.flush(); !flushed) return flushed;
  deleted_.erase(found);
  if (auto opened = open_project(std::move(record), wall()); !opened) return opened;
  if (loop_ == nullptr) return {};
  LiveProject& project = *projects_.find(name)->second;
  make_frontier(project);
  begin_processor(project);
  begin_sinks(project);
  plan(project);
  activate(project);
  return {};
}

Result<void> PageEngine::Impl::start(LiveProject& project, std::string cause) {
  const WallTime now = wall();
  PageBatch batch;
  batch.at = now;
  // In the transaction that begins it, it is wanted no more.
  const bool must_wait = !project.definition.processor.empty() && !project.description;
  project.record.start_wanted = must_wait ? std::optional(cause) : std::nullopt;
  if (must_wait) {
    write_down(project, batch);
    submit(std::move(batch));
    return {};
  }
  project.last_times["start"] = now;
  const std::int64_t round = begin_round(project, std::move(cause), batch, now);
  for (const Url& url : project.definition.start) {
    AskedPage page{.url = url.href(), .force = true};
    if (auto taken = take_page(project, page, round, 0, batch, now); !taken) log(project, "warning", taken.error().message);
  }
  if (project.description && !project.description->on_start.empty()) {
    take_event(project, kStartPage, project.description->on_start, {}, round, batch, now);
  }
  end_round_if_over(project, batch, now);
  plan(project);
  write_down(project, batch);
  submit(std::move(batch));
  activate(project);
  return {};
}

void PageEngine::Impl::begin_wanted_start(LiveProject& project) {
  if (project.record.start_wanted) (void)start(project, *project.record.start_wanted);
}

// --- looks -----------------------------------------------------------------------------------------------------------

ProjectStatusNow PageEngine::Impl::status_of(const LiveProject& project) const {
  const ProjectRecord& record = project.record;
  ProjectStatusNow status{.id = record.id,
                          .name = record.name,
                          .group = record.group,
                          .status = project.definition.status,
                          .trouble = record.trouble,
                          .rate = record.rate ? record.rate : project.definition.rate,
                          .burst = record.burst.value_or(project.definition.burst),
                          .weight = project.definition.weight,
                          .pages = project.index.size(),
                          .under_way = project.visits.size(),
                          .version = record.version,
                          .round = project.round,
                          .outstanding = project.outstanding,
                          .next_start = project.next_time,
                          .made_at = record.made_at,
                          .changed_at = record.changed_at,
                          .deleted_at = record.deleted_at};
  using enum ProjectStatusNow::Doing;
  const FailurePause::State pause = project.pause.state(wall());
  if (!project.is_running()) {
    status.doing = stopped;
  } else if (!record.trouble.empty() || !project.may_visit()) {
    status.doing = standing;
  } else if (pause == FailurePause::State::paused) {
    status.doing = paused;
    status.until = project.pause.next_change();
  } else if (pause == FailurePause::State::probing) {
    status.doing = probing;
    status.until = project.pause.next_change();
  } else if (!project.visits.empty() || project.taken > 0) {
    status.doing = visiting;
  } else {
    status.doing = waiting;
    if (project.frontier && loop_ != nullptr) {
      const TimePoint now = loop_->time();
      status.until = wall_at(project.frontier->next_wakeup(now));
    }
  }
  return status;
}

std::optional<PageId> PageEngine::Impl::page_id(std::string_view project_name, std::string_view page_name) {
  const auto found = need(project_name);
  if (!found) return std::nullopt;
  std::string name(page_name);
  const PageIndex::Number page = find_page(**found, name);
  return page == 0 ? std::nullopt : std::optional((*found)->id_of(page));
}

PageIndex::Number PageEngine::Impl::find_page(const LiveProject& project, std::string& name) {
  if (const PageIndex::Number page = project.index.find(page_fingerprint(name)); page != 0) return page;
  auto usual = usual_page_name(name);
  const PageIndex::Number page = usual ? project.index.find(page_fingerprint(*usual)) : 0;
  if (page != 0) name = *std::move(usual);
  return page;
}

std::string PageEngine::Impl::last_error(const LiveProject& project, PageIndex::Number page) {
  const PageId id = project.id_of(page);
  auto rows = store_.pages(std::span(&id, 1));
  return rows && !rows->empty() ? std::move(rows->front().error) : std::string{};
}

std::optional<PageReason> PageEngine::Impl::why_held_up(LiveProject& project, PageIndex::Number page, const Explanation& queued) const {
  const TimePoint now = loop_->time();
  if (queued.reason == WaitReason::queue_rate) {
    return PageReason{"project_rate", "its project's rate", queued.until > now ? wall_at(queued.until) : std::nullopt};
  }
  const std::uint32_t host = project.index.host(page);
  if (!desk_ || host >= at_desk_.size() || !at_desk_[host]) return std::nullopt;
  HostDesk::State state = desk_->look(host, sites_[host]);
  if (state.may_begin) return std::nullopt;
  PageReason why{"waiting_host", fmt::format("{}: {}", state.site, state.words)};
  if (state.reads_robots) {
    why.reason = "reading_robots";
  } else if (state.doing == HostDesk::Doing::resting) {
    why.reason = "resting_host";
  } else if (state.doing == HostDesk::Doing::busy && !state.waits_until) {
    why.reason = "busy_host";
  }
  if (state.waits_until && *state.waits_until > now) why.until = wall_at(*state.waits_until);
  return why;
}

Result<PageExplanation> PageEngine::Impl::explain(std::string_view project_name, std::string_view page_name) {
  auto found = need(project_name);
  if (!found) return std::unexpected(std::move(found.error()));
  LiveProject& project = **found;
  PageExplanation told{.name = std::string(page_name)};
  const auto because = [&](PageReason why) {
    told.reason = why.reason;
    told.words = std::move(why.words);
    told.until = why.until;
    return told;
  };
  const PageIndex::Number page = find_page(project, told.name);
  if (page == 0) {
    if (!project.map) return because(why_standing(project.record.trouble));
    const auto url = usual_page_name(told.name);
    if (const auto place = url ? project.map->find(*url).rule : std::nullopt) told.rule = project.definition.rules[*place].name();
    return because(why_unknown(project.definition, *project.map, url));
  }
  told.known = true;
  told.page = project.index.known(page);
  told.rule = project.rules[project.index.rule(page)].name;
  const WallTime now = wall();
  const bool has_failed = told.page.state == PageState::failed || (told.page.state == PageState::waiting && told.page.wait == PageWait::retry);
  const std::string error = has_failed ? last_error(project, page) : std::string{};
  if (told.page.state != PageState::waiting) return because(why_at_rest(told.page, project.terms_of(project.index.rule(page)), now, error));
  const ProjectStatusNow status = status_of(project);
  using enum ProjectStatusNow::Doing;
  if (status.doing == stopped) return because(why_stopped(status.status));
  if (status.doing == standing) return because(why_standing(status.trouble));
  if (auto later = why_not_due(told.page, now, error)) return because(std::move(*later));
  if (status.doing == paused) return because(why_paused(status.until));
  if (status.doing == probing) return because(why_probing(status.until));
  if (project.frontier && loop_ != nullptr) {
    const Explanation queued = project.frontier->explain(page, loop_->time());
    if (auto held = why_held_up(project, page, queued)) return because(std::move(*held));
    if (queued.ahead > 0) return because({"ahead", fmt::format("{} ahead", counted(queued.ahead, "more important page is", "more important pages are"))});
  }
  return because({"soon", "nothing holds it up"});
}

// --- the public face, of projects --------------------------------------------------------------------------------------

Result<void> PageEngine::set_status(std::string_view name, ProjectStatus status) {
  auto project = impl_->need(name);
  if (!project) return std::unexpected(std::move(project.error()));
  return impl_->change(name, [&](LiveProject& its) {
    its.record.status = std::string(to_string(status));
    its.definition.status = status;
  });
}

Result<void> PageEngine::set_rate(std::string_view name, std::optional<double> rate, std::optional<std::uint32_t> burst) {
  if (rate && !(*rate >= 0 && std::isfinite(*rate))) return std::unexpected(Error{Errc::invalid_input, "rate: a number from 0 on"});
  if (burst && (*burst == 0 || *burst > kMostBurst)) return std::unexpected(Error{Errc::invalid_input, "burst: a whole number from 1 on"});
  return impl_->change(name, [&](LiveProject& its) {
    its.record.rate = rate;
    its.record.burst = burst;
  });
}

Result<void> PageEngine::set_group(std::string_view name, std::string group) {
  return impl_->change(name, [&](LiveProject& its) { its.record.group = std::move(group); });
}

Result<void> PageEngine::resume(std::string_view name) {
  return impl_->change(name, [](LiveProject& its) { its.pause.resume(); });
}

Result<void> PageEngine::start(std::string_view name, std::string cause) {
  auto project = impl_->need(name);
  if (!project) return std::unexpected(std::move(project.error()));
  return impl_->start(**project, std::move(cause));
}

Result<AskDecision> PageEngine::ask(std::string_view name, AskedPage page) {
  auto found = impl_->need(name);
  if (!found) return std::unexpected(std::move(found.error()));
  LiveProject& project = **found;
  PageBatch batch;
  batch.at = impl_->wall();
  const bool begins = !project.round;
  RoundCounts counts_before = begins ? project.counts : RoundCounts{};
  const std::int64_t round = impl_->begin_round(project, "ask", batch, batch.at);
  auto taken = impl_->take_page(project, page, round, 0, batch, batch.at);
  if (begins && project.outstanding == 0) {  // it has led to nothing
    project.round.reset();
    project.counts = std::move(counts_before);
    std::erase_if(batch.rounds, [&](const RoundRecord& one) { return one.number == project.last_round; });
    --project.last_round;
  }
  if (batch.size() > 0) impl_->submit(std::move(batch));
  return taken;
}

Result<void> PageEngine::send_message(std::string_view from, PageMessage message) {
  PageBatch batch;
  batch.at = impl_->wall();
  auto sent = impl_->take_message(from, message, batch, batch.at);
  if (sent) impl_->submit(std::move(batch));
  return sent;
}

std::vector<ProjectStatusNow> PageEngine::projects() const {
  std::vector<ProjectStatusNow> told;
  for (const auto& [name, project] : impl_->projects_) told.push_back(impl_->status_of(*project));
  return told;
}

std::optional<ProjectStatusNow> PageEngine::project(std::string_view name) const {
  const auto project = impl_->find(name);
  return project ? std::optional(impl_->status_of(*project)) : std::nullopt;
}

std::shared_ptr<const ProjectDefinition> PageEngine::definition(std::string_view name) const {
  const auto project = impl_->find(name);
  return project && project->map ? std::shared_ptr<const ProjectDefinition>(project, &project->definition) : nullptr;
}

const ProjectCounters* PageEngine::counters(std::string_view name) const {
  const auto project = impl_->find(name);
  return project ? &project->counters : nullptr;
}

std::vector<VisitNote> PageEngine::recent(std::string_view name) const {
  const auto project = impl_->find(name);
  return project ? std::vector<VisitNote>(project->recent.begin(), project->recent.end()) : std::vector<VisitNote>{};
}

std::vector<FieldCount> PageEngine::coverage(std::string_view name) const {
  const auto project = impl_->find(name);
  return project ? project->counts.fields : std::vector<FieldCount>{};
}

std::vector<std::string> PageEngine::alarms(std::string_view name) const {
  const auto project = impl_->find(name);
  return project ? project->alarms : std::vector<std::string>{};
}

std::vector<SinkRow> PageEngine::sinks(std::string_view name) const {
  const auto project = impl_->find(name);
  return project && project->sinks ? project->sinks->rows() : std::vector<SinkRow>{};
}

bool PageEngine::sinks_have_all(std::string_view name) const {
  const auto project = impl_->find(name);
  return !project || !project->sinks || project->sinks->has_all();
}

std::optional<WallTime> PageEngine::round_due(std::string_view name) const {
  const auto project = impl_->find(name);
  if (!project || !project->round) return std::nullopt;
  const WallTime now = impl_->wall();
  std::optional<WallTime> first;
  for (PageIndex::Number page = 0; page < project->in_round.size(); ++page) {
    if (!project->in_round[page] || project->index.state(page) != PageState::waiting) continue;
    const WallTime due = project->index.known(page).due;
    if (!first || due < *first) first = due;
    if (*first <= now) break;
  }
  return first;
}

std::size_t PageEngine::due_pages(std::string_view name, WallTime by, std::size_t most) const {
  const auto project = impl_->find(name);
  std::size_t found = 0;
  for (PageIndex::Number page = 1; project && page <= project->index.size() && found < most; ++page) {
    if (project->index.state(page) != PageState::waiting) continue;
    const KnownPage known = project->index.known(page);
    if (known.wait != PageWait::recrawl && known.due <= by) ++found;
  }
  return found;
}

Coro<void> PageEngine::round_over(std::string_view name) {
  const auto project = impl_->find(name);
  if (!project || impl_->has_ended() || (!project->round && !project->record.start_wanted && impl_->is_told(*project))) co_return;
  project->round_is_over.clear();
  co_await project->round_is_over.wait();
}

}  // namespace argiope

#include "project/run/project_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/internal/printable.hpp"
#include "project/run/page_visit.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kFewPages = 16'384;
constexpr std::int64_t kRoomAhead = 64;
constexpr std::size_t kRoundsReadAtFirst = 2;

}  // namespace

Result<void> ProjectDesk::take_up(std::vector<ProjectRecord> records, WallTime now) {
  for (ProjectRecord& record : records) {
    if (!record.deleted_at && options_.is_wanted && !options_.is_wanted(record.name)) {
      resting_.insert(std::move(record.name));
      continue;
    }
    if (record.deleted_at) {
      deleted_.emplace(record.name, std::move(record));
    } else if (auto opened = open(std::move(record), now); !opened) {
      return opened;
    }
  }
  return {};
}

Result<void> ProjectDesk::open(ProjectRecord record, WallTime now) {
  auto version = store_.version(record.id, record.version);
  if (!version) return std::unexpected(std::move(version.error()));
  auto project = std::make_shared<LiveProject>(options_, std::move(record));
  const ProjectRecord& stored = project->record;
  project->read_times(stored.ticks);
  if (auto pause = FailurePause::read(stored.pause, options_.pause); pause && !stored.pause.empty())
    project->pause = std::move(*pause);
  if (auto counters = ProjectCounters::read(stored.counters); counters && !stored.counters.empty())
    project->counters = std::move(*counters);
  if (*version) {
    if (auto taken = project->take_version(**version, core_.reading, options_.pause.after); !taken)
      project->record.trouble = taken.error().message;
  } else {
    project->record.trouble = "its file is not in the database";
  }
  if (auto loaded = load_pages(*project, now); !loaded) return loaded;
  core_.by_id.emplace(stored.id, project);
  core_.projects.emplace(stored.name, std::move(project));
  return {};
}

Result<void> ProjectDesk::load_pages(LiveProject& project, WallTime now) {
  if (auto loaded = load_rounds(project); !loaded) return loaded;
  const std::int64_t round = project.round ? project.round->number : 0;
  // The last counts may be older than the pages that were stored last.
  using enum ProjectCounters::Count;
  std::int64_t expected = 0;
  for (const auto count : {pending, success, failed}) {
    expected += std::clamp<std::int64_t>(project.counters.all(count), 0, std::numeric_limits<std::uint32_t>::max());
    project.counters.add_page(count, -project.counters.all(count));
  }
  std::int64_t seen = 0, room_at = kFewPages;
  auto scanned = store_.scan_known(project.record.id, [&](const PageStore::KnownRow& row) {
    // A table that grows with its pages takes as long as reading them. Other programs may have counted anything, so no
    // more room is made than for so many times what is there.
    if (++seen == room_at) {
      room_at *= kRoomAhead;
      project.index.reserve(static_cast<std::size_t>(std::min(expected, room_at)));
    }
    project.index.skip_to(number_of(row.id));
    const RuleNumber rule = project.rule_number(row.rule);
    const KnownPage& known = row.known;  // its script may not have said its terms yet
    const PageIndex::Number page = project.index.add(row.fingerprint, row.host_id, rule, known);
    project.recount(std::nullopt, known);
    const bool waits = known.state == PageState::waiting && known.wait != PageWait::recrawl;
    if (round != 0 && row.round == round && waits) project.enter_round(page, round);
    return true;
  });
  if (!scanned) return scanned;
  PageBatch batch;
  batch.at = now;
  rounds_.end_if_over(project, batch, now);
  if (batch.size() > 0) submit(std::move(batch));
  return {};
}

// The one under way, those of which its script is still to be told, and what is shown of the last one. Of what is read
// of the rest, as little as that takes.
Result<void> ProjectDesk::load_rounds(LiveProject& project) {
  std::vector<RoundRecord> rounds;
  for (std::size_t most = kRoundsReadAtFirst;; most *= 2) {
    auto read = store_.rounds(project.record.id, most);
    if (!read) return std::unexpected(std::move(read.error()));
    rounds = std::move(*read);
    if (rounds.size() < most || rounds.back().finished_told) break;
  }
  if (rounds.empty()) return {};
  project.last_round = rounds.front().number;
  project.counts.fields = rounds.front().fields;
  const auto last_ended =
      std::ranges::find_if(rounds, [](const RoundRecord& round) { return round.ended.has_value(); });
  if (last_ended != rounds.end()) project.alarms = last_ended->alarms;
  for (const RoundRecord& round : std::ranges::subrange(last_ended, rounds.end())) {
    if (round.finished_told) break;
    project.untold.push_front(round);
  }
  if (!rounds.front().ended) project.round = std::move(rounds.front());
  return {};
}

void ProjectDesk::set_limits(LiveProject& project) {
  if (!project.frontier) return;
  PageFrontier::Limits limits;
  limits.rate = project.record.rate ? *project.record.rate : project.definition.rate.value_or(kUnlimitedRate);
  limits.burst = project.record.burst.value_or(project.definition.burst);
  limits.paused = !project.is_running();
  project.frontier->set_limits(limits, core_.loop->time());
}

void ProjectDesk::make_frontier(LiveProject& project) {
  if (project.frontier) return;
  LiveProject* const its = &project;
  project.frontier = std::make_unique<PageFrontier>(
      project.index, [its](RuleNumber rule) -> const PageTerms& { return its->terms_of(rule); }, options_.queue_size);
  project.frontier->set_clock(core_.loop->time(), wall());
  set_limits(project);
}

Result<ProjectId> ProjectDesk::put(PageEngine::Draft draft) {
  const std::string name = draft.definition.name;
  if (!draft.definition.processor.empty() && !options_.make_processor) {
    return fail(Errc::unsupported,
                fmt::format("project {} has a processor, and nobody here can run it", in_quotes(name)));
  }
  if (deleted_.contains(name)) {
    return fail(Errc::invalid_input,
                fmt::format("project {} was deleted, and can still be restored: restore it, or take another name",
                            in_quotes(name)));
  }
  if (resting_.contains(name)) {
    return fail(
        Errc::invalid_input,
        fmt::format("project {} is in the database, and rests: it is not among those that are run", in_quotes(name)));
  }
  if (draft.script.empty() && options_.script_of && !draft.definition.processor.empty())
    draft.script = options_.script_of(draft.definition);
  const WallTime now = wall();
  SharedProject project = core_.find(name);
  const bool is_new = project == nullptr;
  if (!is_new) {
    // The text as it was written counts, too: comments are kept for its next reader.
    const bool same_source = draft.source.empty() || project->source == draft.source;
    if (same_source && project->text == draft.text && project->script == draft.script && !project->text.empty()) {
      // The things that it lacked may be there now.
      if (!project->processor) processors_.begin(*project);
      return project->record.id;
    }
  } else {
    project = std::make_shared<LiveProject>(
        options_, ProjectRecord{.id = store_.next_project_id(), .name = name, .made_at = now});
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
  if (auto taken = project->take_version(version, core_.reading, options_.pause.after); !taken) {
    project->record.status = stored_status;
    return std::unexpected(std::move(taken.error()));
  }
  project->turns = std::min(project->turns, project->definition.weight);
  project->record.version = version.number;
  project->record.changed_at = now;
  project->record.trouble.clear();
  if (!same_processor && project->processor) {
    processors_.let_go(*project);
    project->description.reset();
    project->make_rules();
  }
  PageBatch batch;
  batch.at = now;
  batch.versions.push_back(std::move(version));
  if (!project->sinks) SinkDesk::keep_named(*project, batch);  // else when those of the version before have ended
  project->write_to(batch);
  if (is_new) {
    core_.by_id.emplace(project->record.id, project);
    core_.projects.emplace(name, project);
  }
  submit(std::move(batch));
  if (core_.loop != nullptr) {
    make_frontier(*project);
    set_limits(*project);
    project->frontier->terms_changed(core_.loop->time());
    processors_.begin(*project);
    processors_.tell_debug(*project);
    if (project->sinks) {
      sinks_.end(*project);
    } else {
      sinks_.begin(*project);
    }
    starts_.plan(*project);
    turns_.activate(*project);
  }
  if (project->definition.processor.empty()) starts_.begin_wanted(*project);
  return project->record.id;
}

void ProjectDesk::begin(LiveProject& project) {
  make_frontier(project);
  processors_.begin(project);
  sinks_.begin(project);
  starts_.plan(project);
  turns_.activate(project);
}

Result<void> ProjectDesk::change(std::string_view name, const std::function<void(LiveProject&)>& change) {
  auto project = core_.need(name);
  if (!project) return std::unexpected(std::move(project.error()));
  change(**project);
  (*project)->record.changed_at = wall();
  PageBatch batch;
  batch.at = wall();
  (*project)->write_to(batch);
  submit(std::move(batch));
  if (core_.loop != nullptr) {
    processors_.tell_debug(**project);
    set_limits(**project);
    starts_.plan(**project);
    turns_.activate(**project);
  }
  return {};
}

Result<void> ProjectDesk::remove(std::string_view name) {
  auto found = core_.need(name);
  if (!found) return std::unexpected(std::move(found.error()));
  const SharedProject project = std::move(*found);
  project->is_gone = true;
  project->record.deleted_at = wall();
  for (const auto& [page, visit] : project->visits) visit->cancel();
  processors_.let_go(*project);
  sinks_.end(*project);
  rows_.forget_project(project->record.id);
  PageBatch batch;
  batch.at = wall();
  project->write_to(batch);
  submit(std::move(batch));
  turns_.forget(*project);
  core_.by_id.erase(project->record.id);
  deleted_.emplace(project->record.name, project->record);
  project->round_is_over.set();
  core_.projects.erase(project->record.name);
  return {};
}

Result<void> ProjectDesk::restore(std::string_view name) {
  const auto found = deleted_.find(name);
  if (found == deleted_.end()) {
    return fail(Errc::not_found, fmt::format("no project {} was deleted in the last 24 hours", in_quotes(name)));
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
  if (auto opened = open(std::move(record), wall()); !opened) return opened;
  if (core_.loop == nullptr) return {};
  begin(*core_.find(name));
  return {};
}

void ProjectDesk::forget_deleted(PageBatch& batch) {
  const WallTime limit = wall() - std::chrono::hours{24};
  for (auto entry = deleted_.begin(); entry != deleted_.end();) {
    // A clock that was set back leaves times in the future.
    entry->second.deleted_at = std::min(*entry->second.deleted_at, wall());
    if (*entry->second.deleted_at > limit) {
      ++entry;
      continue;
    }
    batch.forgotten.push_back(entry->second.id);
    entry = deleted_.erase(entry);
  }
}

}  // namespace argiope

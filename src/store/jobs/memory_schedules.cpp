#include "store/jobs/memory_schedules.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/schedule_rules.hpp"

namespace argiope {

using namespace schedule_rules;

// --- blocks ----------------------------------------------------------------------------------------------------------

MemorySchedules::~MemorySchedules() {
  for (const Page& page : pages_) {
    for (std::size_t i = 0; i < kPage; ++i) {
      if (page.schedules[i] != nullptr) destroy(page.schedules[i]);
    }
  }
}

MemorySchedules::Schedule* MemorySchedules::make(std::string_view name, std::string_view trigger) {
  // The text begins within the structure's padding, but whole structures are made and read.
  constexpr std::size_t kFront = offsetof(Schedule, paused) + 1;
  void* block = ::operator new(std::max(sizeof(Schedule), kFront + name.size() + trigger.size()));
  auto* schedule = new (block) Schedule;
  schedule->past = nullptr;
  schedule->name_bytes = static_cast<std::uint16_t>(name.size());
  schedule->trigger_bytes = static_cast<std::uint32_t>(trigger.size());
  char* text = schedule->text();
  std::ranges::copy(name, text);
  std::ranges::copy(trigger, text + name.size());
  return schedule;
}

void MemorySchedules::destroy(Schedule* schedule) noexcept {
  delete schedule->past;
  ::operator delete(schedule);
}

MemorySchedules::Past& MemorySchedules::past_of(Schedule& schedule) {
  if (schedule.past == nullptr) schedule.past = new Past;
  return *schedule.past;
}

SchedulePlace MemorySchedules::place_of(const Schedule& schedule) {
  SchedulePlace place{.next = schedule.next, .paused = schedule.paused};
  if (const Past* past = schedule.past) {
    place.last = past->last;
    place.fired = past->fired;
    place.missed = past->missed;
    place.entries = past->entries;
  }
  return place;
}

void MemorySchedules::set_place(Schedule& schedule, const SchedulePlace& place) {
  const SchedulePlace kept = stored(place);
  schedule.next = kept.next;
  schedule.paused = kept.paused;
  if (schedule.past == nullptr && kept.last == WallTime{} && kept.fired == 0 && kept.missed == 0 && kept.entries == 0) {
    return;
  }
  Past& past = past_of(schedule);
  past.last = kept.last;
  past.fired = kept.fired;
  past.missed = kept.missed;
  past.entries = kept.entries;
}

StoredSchedule MemorySchedules::told(const Schedule& schedule, const Definition* definition) {
  StoredSchedule all;
  all.id = schedule.id;
  all.version = schedule.version;
  all.place = place_of(schedule);
  if (schedule.past != nullptr) all.active = schedule.past->active;
  if (definition != nullptr) {
    all.name = schedule.name();
    all.trigger = schedule.trigger();
    all.definition = definition->text;
  }
  return all;
}

// --- indexes ---------------------------------------------------------------------------------------------------------

std::vector<MemorySchedules::Page>::const_iterator MemorySchedules::page_from(std::uint64_t number) const {
  return std::ranges::lower_bound(pages_, number, {}, &Page::number);
}

MemorySchedules::Schedule** MemorySchedules::slot_of(ScheduleId id) const {
  const auto page = page_from(id / kPage);
  if (page == pages_.end() || page->number != id / kPage) return nullptr;
  Schedule** slot = &page->schedules[id % kPage];
  return *slot == nullptr ? nullptr : slot;
}

MemorySchedules::Schedule* MemorySchedules::at(ScheduleId id) const {
  Schedule** slot = slot_of(id);
  return slot == nullptr ? nullptr : *slot;
}

void MemorySchedules::append(Schedule* schedule) {
  const std::uint64_t number = schedule->id / kPage;
  if (pages_.empty() || pages_.back().number != number) {
    pages_.push_back({number, 0, std::make_unique<Schedule*[]>(kPage)});
  }
  pages_.back().schedules[schedule->id % kPage] = schedule;
  ++pages_.back().live;
}

// The pages' order is that in which the blocks lie, nearly.
void MemorySchedules::make_room_by_name(std::size_t more) {
  if (by_name_.has_room(more)) return;
  auto larger = SchedulesByName<Schedule>::for_as_many_as(std::max(by_name_.size() + more, 2 * by_name_.size()));
  std::array<std::pair<Schedule*, std::size_t>, kPage> some;
  for (const Page& page : pages_) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kPage; ++i) {
      if (page.schedules[i] == nullptr) continue;
      some[count] = {page.schedules[i], larger.hash(page.schedules[i]->name())};
      larger.prefetch(some[count++].second);
    }
    for (std::size_t i = 0; i < count; ++i) larger.insert(some[i].first, some[i].second);
  }
  by_name_ = std::move(larger);
}

std::uint32_t MemorySchedules::use_definition(const std::string& text) {
  // Those of a batch tend to have the same.
  if (last_definition_ < definitions_.size()) {
    Definition& last = definitions_[last_definition_];
    if (last.uses > 0 && last.text == text) {
      ++last.uses;
      return last_definition_;
    }
  }
  if (const auto known = definition_of_.find(text); known != definition_of_.end()) {
    ++definitions_[known->second].uses;
    return last_definition_ = known->second;
  }
  auto index = static_cast<std::uint32_t>(definitions_.size());
  if (free_definitions_.empty()) {
    definitions_.push_back({text, 1});
  } else {
    index = free_definitions_.back();
    free_definitions_.pop_back();
    definitions_[index] = {text, 1};
  }
  definition_of_.emplace(definitions_[index].text, index);
  return last_definition_ = index;
}

void MemorySchedules::drop_definition(std::uint32_t index) {
  Definition& definition = definitions_[index];
  if (--definition.uses > 0) return;
  definition_of_.erase(definition.text);
  definition.text = {};
  free_definitions_.push_back(index);
}

// --- puts ------------------------------------------------------------------------------------------------------------

std::vector<PutScheduleReply> MemorySchedules::put(const std::vector<PutSchedule>& wanted) {
  constexpr std::size_t kAhead = 8;
  make_room_by_name(wanted.size());
  std::vector<std::size_t> hashes;
  hashes.reserve(wanted.size());
  for (const PutSchedule& one : wanted) hashes.push_back(by_name_.hash(one.name));
  std::vector<PutScheduleReply> replies;
  replies.reserve(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i + kAhead < wanted.size()) by_name_.prefetch(hashes[i + kAhead]);
    replies.push_back(put(wanted[i], hashes[i]));
  }
  return replies;
}

PutScheduleReply MemorySchedules::put(const PutSchedule& wanted, std::size_t hash) {
  using enum PutScheduleOutcome;
  Schedule* old = by_name_.find(wanted.name, hash);
  const PutScheduleOutcome outcome = outcome_of(wanted, old == nullptr ? std::nullopt : std::optional(old->version));
  if (outcome == added) {
    Schedule* made = make(wanted.name, wanted.trigger);
    made->id = ++last_id_;
    made->version = 1;
    made->definition = use_definition(wanted.definition);
    SchedulePlace place = wanted.place;
    place.entries = 0;
    set_place(*made, place);
    append(made);
    by_name_.insert(made, hash);
    return {added, made->id, 1};
  }
  if (outcome != replaced)
    return old == nullptr ? PutScheduleReply{outcome} : PutScheduleReply{outcome, old->id, old->version};
  Schedule* changed = make(wanted.name, wanted.trigger);
  changed->id = old->id;
  changed->version = old->version + 1;
  changed->definition = use_definition(wanted.definition);
  changed->past = std::exchange(old->past, nullptr);
  SchedulePlace place = wanted.place;
  place.entries = changed->past == nullptr ? 0 : changed->past->entries;
  set_place(*changed, place);
  drop_definition(old->definition);
  by_name_.replace(old, changed);
  *slot_of(old->id) = changed;
  destroy(old);
  return {replaced, changed->id, changed->version};
}

bool MemorySchedules::erase(ScheduleId id) {
  Schedule** slot = slot_of(id);
  if (slot == nullptr) return false;
  Schedule* gone = std::exchange(*slot, nullptr);
  outputs_.erase(id);
  by_name_.erase(gone);
  drop_definition(gone->definition);
  destroy(gone);
  const auto page = pages_.begin() + (page_from(id / kPage) - pages_.cbegin());
  if (--page->live == 0) pages_.erase(page);
  return true;
}

// --- looks -----------------------------------------------------------------------------------------------------------

std::vector<StoredSchedule> MemorySchedules::list(const ScheduleFilter& filter) {
  std::vector<StoredSchedule> found;
  const std::size_t limit = std::min(filter.limit, job_rules::kMostListed);
  if (filter.after >= last_id_) return found;
  const ScheduleId from = filter.after + 1;
  for (auto page = page_from(from / kPage); page != pages_.end(); ++page) {
    for (std::size_t i = page->number == from / kPage ? from % kPage : 0; i < kPage; ++i) {
      if (found.size() == limit) return found;
      const Schedule* schedule = page->schedules[i];
      if (schedule != nullptr) {
        found.push_back(told(*schedule, filter.texts ? &definitions_[schedule->definition] : nullptr));
      }
    }
  }
  return found;
}

std::optional<StoredSchedule> MemorySchedules::get(ScheduleId id) {
  const Schedule* schedule = at(id);
  if (schedule == nullptr) return std::nullopt;
  return told(*schedule, &definitions_[schedule->definition]);
}

std::optional<StoredSchedule> MemorySchedules::find(std::string_view name) {
  const Schedule* schedule = by_name_.find(name, by_name_.hash(name));
  if (schedule == nullptr) return std::nullopt;
  return told(*schedule, &definitions_[schedule->definition]);
}

std::optional<ScheduleOutput> MemorySchedules::output(ScheduleId id) {
  const auto found = outputs_.find(id);
  return found == outputs_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ScheduleRun> MemorySchedules::runs(ScheduleId id, std::size_t limit) {
  std::vector<ScheduleRun> found;
  const Schedule* schedule = at(id);
  if (schedule == nullptr || schedule->past == nullptr) return found;
  const Past& past = *schedule->past;
  for (std::uint64_t number = past.entries; found.size() < std::min(limit, past.runs.size()); --number) {
    found.push_back(past.runs[(number - 1) % kRunsKept]);
  }
  return found;
}

std::optional<ScheduleRun> MemorySchedules::run(ScheduleId id, std::uint64_t number) {
  const Schedule* schedule = at(id);
  if (schedule == nullptr || schedule->past == nullptr || number == 0) return std::nullopt;
  const Past& past = *schedule->past;
  const std::size_t at = (number - 1) % kRunsKept;
  if (at < past.runs.size() && past.runs[at].number == number) return past.runs[at];
  if (past.older == nullptr) return std::nullopt;
  const auto older = past.older->find(number);
  return older == past.older->end() ? std::nullopt : std::optional(older->second);
}

std::optional<ScheduleView> MemorySchedules::look(const ScheduleLook& look) {
  const Schedule* schedule = at(look.id);
  if (schedule == nullptr) return std::nullopt;
  ScheduleView view{.schedule = told(*schedule, &definitions_[schedule->definition])};
  if (schedule->past == nullptr || schedule->past->runs.empty()) return view;
  const Past& past = *schedule->past;
  view.last_entry = past.runs[(past.entries - 1) % kRunsKept];
  std::size_t left_out = look.newest_left_out;
  // Newest first; false: that is all that was asked for.
  const auto take = [&](const ScheduleRun& run) {
    if (run.outcome == RunOutcome::running) {
      if (view.active_jobs.size() == look.most) return false;
      if (left_out > 0) {
        --left_out;
      } else {
        view.active_jobs.push_back(run.job);
      }
    }
    return true;
  };
  bool more = true;
  for (std::size_t i = 0; more && i < past.runs.size(); ++i) more = take(past.runs[(past.entries - 1 - i) % kRunsKept]);
  if (past.older != nullptr) {
    for (auto older = past.older->rbegin(); more && older != past.older->rend(); ++older) more = take(older->second);
  }
  std::ranges::reverse(view.active_jobs);
  return view;
}

// --- firing ----------------------------------------------------------------------------------------------------------

bool MemorySchedules::advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) {
  Schedule* schedule = at(step.id);
  if (schedule == nullptr || schedule->version != step.version) return false;
  if ((schedule->past == nullptr ? 0 : schedule->past->entries) != entries) return false;
  remember(*schedule);
  ++schedule->version;
  set_place(*schedule, step.place);
  if (started > 0) past_of(*schedule).active += started;
  return true;
}

void MemorySchedules::take_off_started(ScheduleId id, std::uint32_t count) {
  Schedule& schedule = *at(id);
  remember(schedule);
  schedule.past->active -= count;
}

void MemorySchedules::write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) {
  Schedule& schedule = *at(step.id);
  if (step.amended) write(schedule, *step.amended);
  for (const ScheduleRun& run : runs) write(schedule, run);
}

void MemorySchedules::end_run(const EndedRun& run, WallTime when, std::string_view error, std::string_view result) {
  Schedule* schedule = at(run.schedule);
  if (schedule == nullptr) return;
  remember(*schedule);
  if (!result.empty()) {
    const auto before = output(run.schedule);
    remember_before(OutputBefore{run.schedule, before});
    set_output(run.schedule, ScheduleOutput{run.number, run.job, stored(when), run.outcome,
                                            std::string(cut_error(error)), std::string(result)});
  }
  Past& past = *schedule->past;
  --past.active;
  const std::size_t at = (run.number - 1) % kRunsKept;
  // Its entry may have given its place to another, or be still to be written.
  if (at >= past.runs.size() || past.runs[at].number != run.number) {
    return set_older(*schedule, run.number, std::nullopt);
  }
  ScheduleRun& entry = past.runs[at];
  remember_before(RunBefore{schedule->id, at, entry});
  entry.outcome = run.outcome;
  entry.ended_at = stored(when);
  entry.error = cut_error(error);
}

void MemorySchedules::set_output(ScheduleId id, std::optional<ScheduleOutput> output) {
  if (output) {
    outputs_.insert_or_assign(id, std::move(*output));
  } else {
    outputs_.erase(id);
  }
}

void MemorySchedules::write(Schedule& schedule, const ScheduleRun& run) {
  auto& runs = past_of(schedule).runs;
  const std::size_t at = (run.number - 1) % kRunsKept;
  if (at == runs.size()) {
    if (runs.size() == runs.capacity()) runs.reserve(std::clamp<std::size_t>(2 * runs.size(), 1, kRunsKept));
    remember_before(RunBefore{schedule.id, at, std::nullopt});
    runs.push_back(stored(run));
  } else {
    const ScheduleRun& before = runs[at];
    if (before.outcome == RunOutcome::running && before.number != run.number) {
      set_older(schedule, before.number, before);
    }
    remember_before(RunBefore{schedule.id, at, std::exchange(runs[at], stored(run))});
  }
}

// nullopt: it has ended.
void MemorySchedules::set_older(Schedule& schedule, std::uint64_t number, std::optional<ScheduleRun> run) {
  auto& older = past_of(schedule).older;
  if (older == nullptr) older = std::make_unique<std::map<std::uint64_t, ScheduleRun>>();
  const auto found = older->find(number);
  remember_before(
      OlderBefore{schedule.id, number, found == older->end() ? std::nullopt : std::optional(found->second)});
  if (run) {
    older->insert_or_assign(number, std::move(*run));
  } else if (found != older->end()) {
    older->erase(found);
  }
}

void MemorySchedules::remember_before(Before before) {
  if (undoable_) undo_.push_back(std::move(before));
}

void MemorySchedules::remember(const Schedule& schedule) {
  remember_before(PlaceBefore{schedule.id, schedule.version, place_of(schedule),
                              schedule.past == nullptr ? 0 : schedule.past->active});
}

void MemorySchedules::take_back() {
  undoable_ = false;
  for (; !undo_.empty(); undo_.pop_back()) {
    if (const auto* before = std::get_if<PlaceBefore>(&undo_.back())) {
      Schedule& schedule = *at(before->id);
      schedule.version = before->version;
      set_place(schedule, before->place);
      if (schedule.past != nullptr) schedule.past->active = before->active;
    } else if (auto* before_output = std::get_if<OutputBefore>(&undo_.back())) {
      set_output(before_output->id, std::move(before_output->output));
    } else if (auto* before_older = std::get_if<OlderBefore>(&undo_.back())) {
      auto& older = *at(before_older->id)->past->older;
      if (before_older->run) {
        older.insert_or_assign(before_older->number, std::move(*before_older->run));
      } else {
        older.erase(before_older->number);
      }
    } else {
      auto& written = std::get<RunBefore>(undo_.back());
      auto& runs = at(written.id)->past->runs;
      if (written.run) {
        runs[written.at] = std::move(*written.run);
      } else {
        runs.pop_back();
      }
    }
  }
}

}  // namespace argiope

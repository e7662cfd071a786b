#include "store/jobs/sqlite_schedules.hpp"

#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/schedule_rules.hpp"

namespace argiope {

using namespace schedule_rules;

namespace {

constexpr ScheduleId kMostScheduleId = (ScheduleId{1} << 48) - 1;

std::uint64_t entry_of(ScheduleId id, std::uint64_t number) { return (number % kRunsKept) << 48 | id; }

ScheduleRun read_run(const SqliteStatement& row) {
  return {.number = static_cast<std::uint64_t>(row.number(0)),
          .planned = from_ms(row.number(1)),
          .last_planned = from_ms(row.number(2)),
          .count = static_cast<std::uint64_t>(row.number(3)),
          .fired_at = from_ms(row.number(4)),
          .ended_at = from_ms(row.number(5)),
          .outcome = static_cast<RunOutcome>(row.number(6)),
          .job = static_cast<JobId>(row.number(7)),
          .error = std::string(row.text(8))};
}

StoredSchedule read_schedule(const SqliteStatement& row, bool texts) {
  const auto number = [&](int column) { return static_cast<std::uint64_t>(row.number(column)); };
  StoredSchedule schedule;
  schedule.id = number(0);
  schedule.version = number(1);
  schedule.place.next = from_ms(row.number(2));
  schedule.place.last = from_ms(row.number(3));
  schedule.place.fired = number(4);
  schedule.place.missed = number(5);
  schedule.place.entries = number(6);
  schedule.place.paused = number(7) != 0;
  schedule.active = static_cast<std::uint32_t>(number(8));
  if (!texts) return schedule;
  schedule.name = row.text(9);
  schedule.trigger = row.text(10);
  schedule.definition = row.text(11);
  return schedule;
}

}  // namespace

// --- puts ------------------------------------------------------------------------------------------------------------

std::vector<PutScheduleReply> SqliteSchedules::put(const std::vector<PutSchedule>& wanted) {
  std::vector<PutScheduleReply> replies;
  replies.reserve(wanted.size());
  for (const PutSchedule& schedule : wanted) replies.push_back(put_one(schedule));
  return replies;
}

PutScheduleReply SqliteSchedules::put_one(const PutSchedule& wanted) {
  using enum PutScheduleOutcome;
  const SchedulePlace& place = wanted.place;
  if (wanted.made_from == 0) {
    const ScheduleId id = last_ + 1;
    sql_.use(Query::schedule_insert).with(id, wanted.name, wanted.trigger, wanted.definition).run();
    if (sql_.has_changed()) {
      last_ = id;
      sql_.use(Query::place_insert)
          .with(id, 1)
          .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.paused)
          .run();
      news_.touch_schedule(id);
      return {added, id, 1};
    }
  }
  const auto old = find(wanted.name);
  const PutScheduleOutcome outcome = outcome_of(wanted, old ? std::optional(old->version) : std::nullopt);
  if (outcome != replaced) return old ? PutScheduleReply{outcome, old->id, old->version} : PutScheduleReply{outcome};
  sql_.use(Query::schedule_update).with(old->id, wanted.trigger, wanted.definition).run();
  sql_.use(Query::place_update)
      .with(old->id)
      .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.paused)
      .run();
  news_.touch_schedule(old->id);
  return {replaced, old->id, old->version + 1};
}

bool SqliteSchedules::erase(ScheduleId id) {
  if (id > kMostScheduleId) return false;
  std::uint64_t entries = 0;
  {
    SqliteUse gone = sql_.use(Query::place_delete);
    if (!gone.with(id).next()) return false;
    entries = static_cast<std::uint64_t>(gone.number(0));
  }
  sql_.use(Query::schedule_delete).with(id).run();
  sql_.use(Query::older_runs_delete).with(id).run();
  sql_.use(Query::output_delete).with(id).run();
  for (std::uint64_t kept = std::min(entries, kRunsKept); kept > 0; --kept) {
    sql_.use(Query::run_delete).with(entry_of(id, entries - kept + 1)).run();
  }
  news_.touch_schedule(id);
  return true;
}

// --- looks -----------------------------------------------------------------------------------------------------------

std::vector<StoredSchedule> SqliteSchedules::list(const ScheduleFilter& filter) {
  std::vector<StoredSchedule> found;
  SqliteUse rows = sql_.use(filter.texts ? Query::schedules : Query::places);
  rows.with(std::min(filter.after, kMostScheduleId), filter.limit);
  while (rows.next()) found.push_back(read_schedule(rows.row(), filter.texts));
  return found;
}

std::optional<StoredSchedule> SqliteSchedules::get(ScheduleId id) {
  SqliteUse row = sql_.use(Query::schedule);
  if (id > kMostScheduleId || !row.with(id).next()) return std::nullopt;
  return read_schedule(row.row(), true);
}

std::optional<StoredSchedule> SqliteSchedules::find(std::string_view name) {
  ScheduleId id = 0;
  {
    SqliteUse row = sql_.use(Query::schedule_named);
    if (!row.with(name).next()) return std::nullopt;
    id = static_cast<ScheduleId>(row.number(0));
  }
  auto found = get(id);
  if (!found) sql_.failed(SQLITE_CORRUPT);
  return found;
}

// Active runs newest first: those of the history, and then the older ones.
std::optional<ScheduleView> SqliteSchedules::look(const ScheduleLook& look) {
  auto there = get(look.id);
  if (!there) return std::nullopt;
  ScheduleView view{.schedule = std::move(*there)};
  const ScheduleId id = look.id;
  const std::uint64_t entries = view.schedule.place.entries;
  if (entries > 0) view.last_entry = kept_run(id, entries);
  std::size_t left_out = look.newest_left_out;
  std::size_t active = view.schedule.active;
  for (std::uint64_t kept = 0; kept < std::min(entries, kRunsKept); ++kept) {
    if (active == 0 || view.active_jobs.size() == look.most) break;
    const auto run = kept_run(id, entries - kept);
    if (!run || run->outcome != RunOutcome::running) continue;
    --active;
    if (left_out > 0) {
      --left_out;
    } else {
      view.active_jobs.push_back(run->job);
    }
  }
  if (active > left_out && view.active_jobs.size() < look.most) {
    const std::size_t room = std::min(look.most - view.active_jobs.size(), active);
    SqliteUse rows = sql_.use(Query::older_jobs);
    rows.with(id, room, left_out);
    while (rows.next()) view.active_jobs.push_back(static_cast<JobId>(rows.number(0)));
  }
  std::ranges::reverse(view.active_jobs);
  return view;
}

std::optional<ScheduleRun> SqliteSchedules::run(ScheduleId id, std::uint64_t number) {
  if (id > kMostScheduleId || number == 0) return std::nullopt;
  if (auto kept = kept_run(id, number)) return kept;
  SqliteUse row = sql_.use(Query::older_run);
  if (!row.with(id, number).next()) return std::nullopt;
  const WallTime planned = from_ms(row.number(0));
  return ScheduleRun{.number = number,
                     .planned = planned,
                     .last_planned = planned,
                     .fired_at = from_ms(row.number(1)),
                     .job = static_cast<JobId>(row.number(2))};
}

// Of the last kRunsKept.
std::optional<ScheduleRun> SqliteSchedules::kept_run(ScheduleId id, std::uint64_t number) {
  auto run = kept_at(entry_of(id, number));
  return run && run->number == number ? std::move(run) : std::nullopt;
}

std::optional<ScheduleRun> SqliteSchedules::kept_at(std::uint64_t entry) {
  SqliteUse row = sql_.use(Query::run);
  return row.with(entry).next() ? std::optional(read_run(row.row())) : std::nullopt;
}

std::vector<ScheduleRun> SqliteSchedules::runs(ScheduleId id, std::size_t limit) {
  std::vector<ScheduleRun> runs;
  if (id > kMostScheduleId) return runs;
  for (std::uint64_t slot = 0; slot < kRunsKept; ++slot) {
    if (auto run = kept_at(entry_of(id, slot))) runs.push_back(std::move(*run));
  }
  std::ranges::sort(runs, std::greater{}, &ScheduleRun::number);
  if (runs.size() > limit) runs.resize(limit);
  return runs;
}

std::optional<ScheduleOutput> SqliteSchedules::output(ScheduleId id) {
  if (id > kMostScheduleId) return std::nullopt;
  SqliteUse row = sql_.use(Query::output);
  if (!row.with(id).next()) return std::nullopt;
  return ScheduleOutput{.run = static_cast<std::uint64_t>(row.number(0)),
                        .job = static_cast<JobId>(row.number(1)),
                        .ended_at = from_ms(row.number(2)),
                        .outcome = static_cast<RunOutcome>(row.number(3)),
                        .error = std::string(row.text(4)),
                        .output = std::string(row.text(5))};
}

// --- steps -----------------------------------------------------------------------------------------------------------

bool SqliteSchedules::advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) {
  const SchedulePlace& place = step.place;
  if (step.id > kMostScheduleId) return false;
  sql_.use(Query::place_fire)
      .with(step.id, step.version, entries)
      .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.entries, place.paused)
      .with(started)
      .run();
  if (!sql_.has_changed()) return false;
  news_.touch_schedule(step.id);
  return true;
}

void SqliteSchedules::take_off_started(ScheduleId id, std::uint32_t count) {
  sql_.use(Query::place_end_runs).with(id, count).run();
}

void SqliteSchedules::write_run(ScheduleId id, const ScheduleRun& run) {
  sql_.use(Query::run_write)
      .with(entry_of(id, run.number), run.number)
      .with_or_null(to_ms(run.planned), to_ms(run.last_planned), run.count, to_ms(run.fired_at), to_ms(run.ended_at))
      .with(run.outcome)
      .with_or_null(run.job, cut_error(run.error))
      .run();
}

// Each takes the place of an older one, which is kept elsewhere if it is a run that goes on.
void SqliteSchedules::write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) {
  const ScheduleId id = step.id;
  if (step.amended) write_run(id, *step.amended);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ScheduleRun& run = runs[i];
    if (i + kRunsKept < runs.size()) {
      if (run.outcome == RunOutcome::running) keep_older(id, run);
      continue;
    }
    if (run.number > kRunsKept) {
      const auto before = kept_at(entry_of(id, run.number));
      if (before && before->outcome == RunOutcome::running) keep_older(id, *before);
    }
    write_run(id, run);
  }
}

void SqliteSchedules::keep_older(ScheduleId id, const ScheduleRun& run) {
  sql_.use(Query::older_run_add)
      .with(id, run.number)
      .with_or_null(to_ms(run.planned), to_ms(run.fired_at))
      .with(run.job)
      .run();
}

void SqliteSchedules::end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) {
  const std::int64_t at_ms = to_ms(at);
  sql_.use(Query::place_end_runs).with(run.schedule, 1).run();
  const bool is_there = sql_.has_changed();
  sql_.use(Query::run_end)
      .with(entry_of(run.schedule, run.number), run.number, run.outcome)
      .with_or_null(at_ms, cut_error(error))
      .run();
  const bool is_old = !sql_.has_changed();
  if (!result.empty() && is_there) {
    sql_.use(Query::output_write)
        .with(run.schedule, run.number, run.job, run.outcome)
        .with_or_null(at_ms, cut_error(error), result)
        .run();
  }
  if (is_old) sql_.use(Query::older_run_delete).with(run.schedule, run.number).run();
  news_.touch_schedule(run.schedule);
}

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteSchedules::load() { last_ = last_stored_ = static_cast<ScheduleId>(sql_.meta("last_schedule").value_or(0)); }

void SqliteSchedules::flush() {
  if (last_ != last_stored_) sql_.set_meta("last_schedule", static_cast<std::int64_t>(last_));
  last_stored_ = last_;
}

}  // namespace argiope

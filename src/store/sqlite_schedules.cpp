// Schedules, their steps and their histories.
#include <algorithm>

#include "store/job_rules.hpp"
#include "store/schedule_rules.hpp"
#include "store/sqlite_jobs.hpp"
#include "store/sqlite_jobs_use.hpp"

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

}  // namespace

// --- puts ------------------------------------------------------------------------------------------------------------

std::vector<PutScheduleReply> SqliteJobs::put_schedules(const std::vector<PutSchedule>& wanted) {
  if (auto good = check(wanted); !good) throw RequestRefused{good.error()};
  std::vector<PutScheduleReply> replies;
  replies.reserve(wanted.size());
  for (const PutSchedule& schedule : wanted) replies.push_back(put_schedule(schedule));
  return replies;
}

PutScheduleReply SqliteJobs::put_schedule(const PutSchedule& wanted) {
  using enum PutScheduleOutcome;
  const SchedulePlace& place = wanted.place;
  if (wanted.made_from == 0) {
    const ScheduleId id = last_schedule_ + 1;
    use(Query::schedule_insert).with(id, wanted.name, wanted.trigger, wanted.definition).run();
    if (sqlite3_changes(database_.handle()) > 0) {
      last_schedule_ = id;
      use(Query::place_insert)
          .with(id, 1)
          .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.paused)
          .run();
      touch_schedule(id);
      return {added, id, 1};
    }
  }
  const auto old = find_schedule(wanted.name);
  if (wanted.made_from != 0 && (!old || old->version != wanted.made_from)) {
    return old ? PutScheduleReply{stale, old->id, old->version} : PutScheduleReply{stale};
  }
  if (wanted.made_from == 0 && wanted.policy == ConflictPolicy::fail) return {exists, old->id, old->version};
  if (wanted.made_from == 0 && wanted.policy == ConflictPolicy::keep) return {kept, old->id, old->version};
  use(Query::schedule_update).with(old->id, wanted.trigger, wanted.definition).run();
  use(Query::place_update)
      .with(old->id)
      .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.paused)
      .run();
  touch_schedule(old->id);
  return {replaced, old->id, old->version + 1};
}

std::size_t SqliteJobs::erase_schedules(const std::vector<ScheduleId>& ids) {
  std::size_t erased = 0;
  for (const ScheduleId id : ids) {
    if (id > kMostScheduleId) continue;
    std::uint64_t entries = 0;
    {
      Use gone = use(Query::place_delete);
      if (!gone.with(id).next()) continue;
      entries = static_cast<std::uint64_t>(gone.number(0));
    }
    use(Query::schedule_delete).with(id).run();
    use(Query::older_runs_delete).with(id).run();
    use(Query::output_delete).with(id).run();
    for (std::uint64_t kept = std::min(entries, kRunsKept); kept > 0; --kept) {
      use(Query::run_delete).with(entry_of(id, entries - kept + 1)).run();
    }
    touch_schedule(id);
    ++erased;
  }
  return erased;
}

// The owner is to hear of what others change.
void SqliteJobs::touch_schedule(ScheduleId id) {
  if (access() != StoreAccess::share) return;
  use(Query::touched_schedule_add).with(id).run();
  has_touched_ = true;
}

// --- looks -----------------------------------------------------------------------------------------------------------

StoredSchedule SqliteJobs::read_schedule(const SqliteStatement& row, bool texts) {
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

std::vector<StoredSchedule> SqliteJobs::schedules(const ScheduleFilter& filter) {
  std::vector<StoredSchedule> found;
  const std::size_t limit = std::min(filter.limit, job_rules::kMostListed);
  Use rows = use(filter.texts ? Query::schedules : Query::places);
  rows.with(std::min(filter.after, kMostScheduleId), limit);
  while (rows.next()) found.push_back(read_schedule(rows.row(), filter.texts));
  return found;
}

std::vector<std::optional<StoredSchedule>> SqliteJobs::load_schedules(const std::vector<ScheduleId>& ids) {
  std::vector<std::optional<StoredSchedule>> found;
  found.reserve(ids.size());
  for (const ScheduleId id : ids) {
    Use row = use(Query::schedule);
    found.emplace_back();
    if (id <= kMostScheduleId && row.with(id).next()) found.back() = read_schedule(row.row(), true);
  }
  return found;
}

std::optional<StoredSchedule> SqliteJobs::find_schedule(const std::string& name) {
  ScheduleId id = 0;
  {
    Use row = use(Query::schedule_named);
    if (!row.with(name).next()) return std::nullopt;
    id = static_cast<ScheduleId>(row.number(0));
  }
  Use row = use(Query::schedule);
  if (!row.with(id).next()) failed(SQLITE_CORRUPT);
  return read_schedule(row.row(), true);
}

std::vector<std::optional<ScheduleView>> SqliteJobs::look_at_schedules(const std::vector<ScheduleLook>& looks) {
  std::vector<std::optional<ScheduleView>> found;
  found.reserve(looks.size());
  for (const ScheduleLook& look : looks) {
    found.emplace_back();
    StoredSchedule schedule;
    {
      Use row = use(Query::schedule);
      if (look.id > kMostScheduleId || !row.with(look.id).next()) continue;
      schedule = read_schedule(row.row(), true);
    }
    found.back() = look_at_schedule(std::move(schedule), look);
  }
  return found;
}

// Active runs newest first: those of the history, and then the older ones.
ScheduleView SqliteJobs::look_at_schedule(StoredSchedule schedule, const ScheduleLook& look) {
  ScheduleView view{.schedule = std::move(schedule)};
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
    Use rows = use(Query::older_jobs);
    rows.with(id, room, left_out);
    while (rows.next()) view.active_jobs.push_back(static_cast<JobId>(rows.number(0)));
  }
  std::ranges::reverse(view.active_jobs);
  return view;
}

std::optional<ScheduleRun> SqliteJobs::schedule_run(ScheduleId id, std::uint64_t number) {
  if (id > kMostScheduleId || number == 0) return std::nullopt;
  if (auto kept = kept_run(id, number)) return kept;
  Use row = use(Query::older_run);
  if (!row.with(id, number).next()) return std::nullopt;
  const WallTime planned = from_ms(row.number(0));
  return ScheduleRun{.number = number,
                     .planned = planned,
                     .last_planned = planned,
                     .fired_at = from_ms(row.number(1)),
                     .job = static_cast<JobId>(row.number(2))};
}

// Of the last kRunsKept.
std::optional<ScheduleRun> SqliteJobs::kept_run(ScheduleId id, std::uint64_t number) {
  auto run = kept_at(entry_of(id, number));
  return run && run->number == number ? std::move(run) : std::nullopt;
}

std::optional<ScheduleRun> SqliteJobs::kept_at(std::uint64_t entry) {
  Use row = use(Query::run);
  return row.with(entry).next() ? std::optional(read_run(row.row())) : std::nullopt;
}

std::vector<ScheduleRun> SqliteJobs::schedule_runs(ScheduleId id, std::size_t limit) {
  std::vector<ScheduleRun> runs;
  if (id > kMostScheduleId) return runs;
  for (std::uint64_t slot = 0; slot < kRunsKept; ++slot) {
    if (auto run = kept_at(entry_of(id, slot))) runs.push_back(std::move(*run));
  }
  std::ranges::sort(runs, std::greater{}, &ScheduleRun::number);
  if (runs.size() > limit) runs.resize(limit);
  return runs;
}

std::optional<ScheduleOutput> SqliteJobs::schedule_output(ScheduleId id) {
  if (id > kMostScheduleId) return std::nullopt;
  Use row = use(Query::output);
  if (!row.with(id).next()) return std::nullopt;
  return ScheduleOutput{.run = static_cast<std::uint64_t>(row.number(0)),
                        .job = static_cast<JobId>(row.number(1)),
                        .ended_at = from_ms(row.number(2)),
                        .outcome = static_cast<RunOutcome>(row.number(3)),
                        .error = std::string(row.text(4)),
                        .output = std::string(row.text(5))};
}

// --- steps -----------------------------------------------------------------------------------------------------------

FireReply SqliteJobs::fire_one(const FireRequest& request, std::int64_t now) {
  FireReply reply;
  const SchedulePlace& place = request.place;
  const std::uint64_t entries = place.entries - request.runs.size();
  const auto wanted = std::ranges::count_if(request.jobs, [](const PutRequest& job) { return job.run != 0; });
  // The place first, as if all jobs were added: it says whether the step is stale.
  if (request.id > kMostScheduleId) return reply;
  use(Query::place_fire)
      .with(request.id, request.version, entries)
      .with_or_null(to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.entries, place.paused)
      .with(wanted)
      .run();
  if (sqlite3_changes(database_.handle()) == 0) return reply;
  reply.fired = true;
  reply.version = request.version + 1;
  reply.jobs.reserve(request.jobs.size());
  std::vector<ScheduleRun> runs = request.runs;
  std::int64_t not_added = 0;
  for (const PutRequest& put : request.jobs) {
    JobId before = 0;
    if (put.after_run > entries) before = runs[put.after_run - entries - 1].job;
    if (put.after_run != 0 && put.after_run <= entries) {
      const auto run = schedule_run(request.id, put.after_run);
      before = run ? run->job : 0;
    }
    if (before != 0) {
      PutRequest waits = put;
      waits.job.waits_for.push_back(before);
      reply.jobs.push_back(put_one(waits, now, {}, put.run == 0 ? 0 : request.id));
    } else {
      reply.jobs.push_back(put_one(put, now, {}, put.run == 0 ? 0 : request.id));
    }
    if (put.run == 0) continue;
    if (!take_put(runs[put.run - entries - 1], reply.jobs.back())) ++not_added;
  }
  if (not_added > 0) use(Query::place_end_runs).with(request.id, not_added).run();
  if (request.amended) write_run(request.id, *request.amended);
  write_runs(request.id, runs);
  touch_schedule(request.id);
  return reply;
}

void SqliteJobs::write_run(ScheduleId id, const ScheduleRun& run) {
  use(Query::run_write)
      .with(entry_of(id, run.number), run.number)
      .with_or_null(to_ms(run.planned), to_ms(run.last_planned), run.count, to_ms(run.fired_at), to_ms(run.ended_at))
      .with(run.outcome)
      .with_or_null(run.job, cut_error(run.error))
      .run();
}

// Each takes the place of an older one, which is kept elsewhere if it is a run that goes on.
void SqliteJobs::write_runs(ScheduleId id, const std::vector<ScheduleRun>& runs) {
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

void SqliteJobs::keep_older(ScheduleId id, const ScheduleRun& run) {
  use(Query::older_run_add)
      .with(id, run.number)
      .with_or_null(to_ms(run.planned), to_ms(run.fired_at))
      .with(run.job)
      .run();
}

void SqliteJobs::end_run(const EndedRun& run, const Ending& ending, std::string_view error, std::string_view result) {
  ending.runs.push_back(run);
  use(Query::place_end_runs).with(run.schedule, 1).run();
  const bool is_there = sqlite3_changes(database_.handle()) > 0;
  use(Query::run_end)
      .with(entry_of(run.schedule, run.number), run.number, run.outcome)
      .with_or_null(ending.calendar_at, cut_error(error))
      .run();
  const bool is_old = sqlite3_changes(database_.handle()) == 0;
  if (!result.empty() && is_there) {
    use(Query::output_write)
        .with(run.schedule, run.number, run.job, run.outcome)
        .with_or_null(ending.calendar_at, cut_error(error), result)
        .run();
  }
  if (is_old) use(Query::older_run_delete).with(run.schedule, run.number).run();
  touch_schedule(run.schedule);
}

}  // namespace argiope

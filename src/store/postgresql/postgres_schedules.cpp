#include "store/postgresql/postgres_schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/schedule_rules.hpp"

namespace argiope {

using namespace schedule_rules;

namespace {

constexpr ScheduleId kMostStoredScheduleId = (ScheduleId{1} << 48) - 1;
constexpr std::string_view kSchedules =
    "SELECT schedule_id, version, next, last, fired, missed, entries, paused, active, name, trigger, definition FROM "
    "places JOIN "
    "schedules USING (partition, schedule_id) WHERE partition = 0 AND ";
constexpr std::string_view kRuns =
    "SELECT number, planned, last_planned, count, fired_at, ended_at, outcome, job_id, error FROM schedule_runs WHERE "
    "partition "
    "= 0 AND schedule_id = $1 AND ";
constexpr const char* kPlaces =
    "SELECT schedule_id, version, entries FROM places WHERE partition = 0 AND schedule_id = ANY($1::bigint[])";

StoredSchedule read_stored_schedule(const PostgresRows& rows, int row, bool texts) {
  const auto number = [&](int column) { return static_cast<std::uint64_t>(rows.number(row, column)); };
  StoredSchedule schedule;
  schedule.id = number(0);
  schedule.version = number(1);
  schedule.place = {.next = from_ms(rows.number(row, 2)),
                    .last = from_ms(rows.number(row, 3)),
                    .fired = number(4),
                    .missed = number(5),
                    .entries = number(6),
                    .paused = number(7) != 0};
  schedule.active = static_cast<std::uint32_t>(number(8));
  if (!texts) return schedule;
  schedule.name = rows.text(row, 9);
  schedule.trigger = rows.text(row, 10);
  schedule.definition = rows.text(row, 11);
  return schedule;
}

ScheduleRun read_stored_run(const PostgresRows& rows, int row) {
  const auto number = [&](int column) { return rows.number(row, column); };
  return {.number = static_cast<std::uint64_t>(number(0)),
          .planned = from_ms(number(1)),
          .last_planned = from_ms(number(2)),
          .count = static_cast<std::uint64_t>(number(3)),
          .fired_at = from_ms(number(4)),
          .ended_at = from_ms(number(5)),
          .outcome = static_cast<RunOutcome>(number(6)),
          .job = static_cast<JobId>(number(7)),
          .error = std::string(rows.text(row, 8))};
}

}  // namespace

// --- what is brought -------------------------------------------------------------------------------------------------

void PostgresSchedules::ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads) {
  if (needed.schedules.empty()) return;
  PostgresColumn ids;
  for (const ScheduleId id : needed.schedules) ids.add(std::min(id, kMostStoredScheduleId + 1));
  reads.push_back({kPlaces, PostgresValues(ids)});
}

void PostgresSchedules::take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at) {
  if (needed.schedules.empty()) return;
  take_places(answers.at(at++));
  for (const ScheduleId id : needed.schedules) {
    if (places_.find(id) == nullptr) places_[id] = {};
  }
}

void PostgresSchedules::take_places(const PostgresRows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    const auto id = static_cast<ScheduleId>(rows.number(i, 0));
    if (places_.find(id) != nullptr) continue;
    places_[id] = {true, static_cast<std::uint64_t>(rows.number(i, 1)), static_cast<std::uint64_t>(rows.number(i, 2))};
  }
}

const PostgresSchedules::Place& PostgresSchedules::place_of(ScheduleId id) {
  if (places_.find(id) == nullptr) {
    PostgresColumn ids;
    ids.add(std::min(id, kMostStoredScheduleId + 1));
    take_places(work_.read({{kPlaces, PostgresValues(ids)}}).at(0));
  }
  return places_[id];
}

// --- puts ------------------------------------------------------------------------------------------------------------

std::vector<PutScheduleReply> PostgresSchedules::put(const std::vector<PutSchedule>& wanted) {
  PostgresColumn names;
  for (const PutSchedule& schedule : wanted) names.add(schedule.name);
  std::map<std::string, std::pair<ScheduleId, std::uint64_t>> there;
  if (!wanted.empty()) {
    const PostgresRows rows = work_.look(
        "SELECT name, schedule_id, version FROM schedules JOIN places USING (partition, schedule_id) WHERE partition = "
        "0 AND "
        "name = ANY($1::bytea[])",
        PostgresValues(names));
    for (int i = 0; i < rows.size(); ++i) {
      there[std::string(rows.text(i, 0))] = {static_cast<ScheduleId>(rows.number(i, 1)),
                                             static_cast<std::uint64_t>(rows.number(i, 2))};
    }
  }
  std::vector<PutScheduleReply> replies;
  for (const PutSchedule& schedule : wanted) {
    const auto old = there.find(schedule.name);
    replies.push_back(put_one(schedule, old == there.end() ? std::nullopt : std::optional(old->second)));
    if (replies.back().id != 0) there[schedule.name] = {replies.back().id, replies.back().version};
  }
  work_.flush();  // what is brought is read from the tables
  return replies;
}

PutScheduleReply PostgresSchedules::put_one(const PutSchedule& wanted,
                                            std::optional<std::pair<ScheduleId, std::uint64_t>> old) {
  using enum PutScheduleOutcome;
  const PutScheduleOutcome outcome = outcome_of(wanted, old ? std::optional(old->second) : std::nullopt);
  if (outcome != added && outcome != replaced)
    return old ? PutScheduleReply{outcome, old->first, old->second} : PutScheduleReply{outcome};
  const ScheduleId id = old ? old->first : ++work_.head().last_schedule;
  const SchedulePlace& place = wanted.place;
  work_.later(
      "INSERT INTO schedules VALUES (0, $1, $2, $3, $4) ON CONFLICT (partition, schedule_id) DO UPDATE SET trigger = "
      "excluded.trigger, definition = excluded.definition",
      PostgresValues(id, wanted.name, wanted.trigger, wanted.definition));
  work_.later(
      "INSERT INTO places AS p VALUES (0, $1, 1, $2, $3, $4, $5, 0, $6, 0) ON CONFLICT (partition, schedule_id) DO "
      "UPDATE SET "
      "version = p.version + 1, next = excluded.next, last = excluded.last, fired = excluded.fired, missed = "
      "excluded.missed, "
      "paused = excluded.paused",
      PostgresValues(id, to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.paused));
  places_.clear();
  work_.touch(true, id);
  return {outcome, id, old ? old->second + 1 : 1};
}

bool PostgresSchedules::erase(ScheduleId id) {
  if (id > kMostStoredScheduleId) return false;
  const bool was_there =
      work_.look("SELECT schedule_id FROM places WHERE partition = 0 AND schedule_id = $1", PostgresValues(id))
          .size() == 1;
  if (!was_there) return false;
  for (const char* table : {"places", "schedules", "schedule_runs", "schedule_outputs"}) {
    work_.later(fmt::format("DELETE FROM {} WHERE partition = 0 AND schedule_id = $1", table), PostgresValues(id));
  }
  clear();
  work_.touch(true, id);
  work_.flush();
  return true;
}

// --- looks -----------------------------------------------------------------------------------------------------------

std::vector<StoredSchedule> PostgresSchedules::list(const ScheduleFilter& filter) {
  const PostgresRows rows = work_.look(
      (filter.texts
           ? std::string(kSchedules)
           : "SELECT schedule_id, version, next, last, fired, missed, entries, paused, active FROM places WHERE "
             "partition = 0 AND ") +
          "schedule_id > $1 ORDER BY schedule_id LIMIT $2",
      PostgresValues(std::min(filter.after, kMostStoredScheduleId), filter.limit));
  std::vector<StoredSchedule> found;
  for (int i = 0; i < rows.size(); ++i) found.push_back(read_stored_schedule(rows, i, filter.texts));
  return found;
}

std::optional<StoredSchedule> PostgresSchedules::get(ScheduleId id) {
  if (id > kMostStoredScheduleId) return std::nullopt;
  const PostgresRows rows = work_.look(std::string(kSchedules) + "schedule_id = $1", PostgresValues(id));
  return rows.size() == 0 ? std::nullopt : std::optional(read_stored_schedule(rows, 0, true));
}

std::optional<StoredSchedule> PostgresSchedules::find(std::string_view name) {
  const PostgresRows rows = work_.look(std::string(kSchedules) + "name = $1", PostgresValues(name));
  return rows.size() == 0 ? std::nullopt : std::optional(read_stored_schedule(rows, 0, true));
}

std::optional<ScheduleView> PostgresSchedules::look(const ScheduleLook& look) {
  auto there = get(look.id);
  if (!there) return std::nullopt;
  ScheduleView view{.schedule = std::move(*there)};
  const PostgresRows last =
      work_.look(std::string(kRuns) + "true ORDER BY number DESC LIMIT 1", PostgresValues(look.id));
  if (last.size() == 1) view.last_entry = read_stored_run(last, 0);
  const PostgresRows active =
      work_.look(std::string(kRuns) + "outcome = 0 ORDER BY number DESC OFFSET $2 LIMIT $3",
                 PostgresValues(look.id, look.newest_left_out, std::min<std::size_t>(look.most, kMostJobId)));
  for (int i = active.size(); i > 0; --i) view.active_jobs.push_back(read_stored_run(active, i - 1).job);
  return view;
}

// Within a request that may still be taken back.
std::optional<ScheduleRun> PostgresSchedules::run(ScheduleId id, std::uint64_t number) {
  if (id > kMostStoredScheduleId || number == 0 || number > kMostJobId) return std::nullopt;
  if (const auto* written = runs_.find({id, number})) return *written;
  const auto answers = work_.read({{std::string(kRuns) + "number = $2", PostgresValues(id, number)}});
  return answers.at(0).size() == 0 ? std::nullopt : std::optional(read_stored_run(answers.at(0), 0));
}

std::vector<ScheduleRun> PostgresSchedules::runs(ScheduleId id, std::size_t limit) {
  std::vector<ScheduleRun> last;
  if (id > kMostStoredScheduleId) return last;
  const PostgresRows rows = work_.look(std::string(kRuns) + "true ORDER BY number DESC LIMIT $2",
                                       PostgresValues(id, std::min<std::size_t>(limit, kRunsKept)));
  for (int i = 0; i < rows.size(); ++i) {
    last.push_back(read_stored_run(rows, i));
    if (last.back().number + kRunsKept <= last.front().number) last.pop_back();
  }
  return last;
}

std::optional<ScheduleOutput> PostgresSchedules::output(ScheduleId id) {
  if (id > kMostStoredScheduleId) return std::nullopt;
  const PostgresRows rows = work_.look(
      "SELECT number, job_id, ended_at, outcome, error, output FROM schedule_outputs WHERE partition = 0 AND "
      "schedule_id = $1",
      PostgresValues(id));
  if (rows.size() == 0) return std::nullopt;
  return ScheduleOutput{.run = static_cast<std::uint64_t>(rows.number(0, 0)),
                        .job = static_cast<JobId>(rows.number(0, 1)),
                        .ended_at = from_ms(rows.number(0, 2)),
                        .outcome = static_cast<RunOutcome>(rows.number(0, 3)),
                        .error = std::string(rows.text(0, 4)),
                        .output = std::string(rows.text(0, 5))};
}

// --- steps -----------------------------------------------------------------------------------------------------------

bool PostgresSchedules::advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) {
  const Place before = place_of(step.id);
  if (!before.is_there || before.version != step.version || before.entries != entries) return false;
  const SchedulePlace& place = step.place;
  places_[step.id] = {true, before.version + 1, place.entries};
  work_.later(
      "UPDATE places SET version = version + 1, next = $2, last = $3, fired = $4, missed = $5, entries = $6, paused = "
      "$7, active "
      "= active + $8 WHERE partition = 0 AND schedule_id = $1",
      PostgresValues(step.id, to_ms(place.next), to_ms(place.last), place.fired, place.missed, place.entries,
                     place.paused, started));
  work_.touch(true, step.id);
  return true;
}

void PostgresSchedules::take_off_started(ScheduleId id, std::uint32_t count) {
  work_.later("UPDATE places SET active = active - $2 WHERE partition = 0 AND schedule_id = $1",
              PostgresValues(id, count));
}

void PostgresSchedules::write_run(ScheduleId id, const ScheduleRun& wanted) {
  const ScheduleRun run = stored(wanted);
  runs_[{id, run.number}] = run;
  work_.later(
      "INSERT INTO schedule_runs VALUES (0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (partition, "
      "schedule_id, number) "
      "DO UPDATE SET planned = excluded.planned, last_planned = excluded.last_planned, count = excluded.count, "
      "fired_at = "
      "excluded.fired_at, ended_at = excluded.ended_at, outcome = excluded.outcome, job_id = excluded.job_id, error = "
      "excluded.error",
      PostgresValues(id, run.number, to_ms(run.planned), to_ms(run.last_planned), run.count, to_ms(run.fired_at),
                     to_ms(run.ended_at), run.outcome, run.job, run.error));
}

// Each pushes an older one out, unless that is a run that goes on.
void PostgresSchedules::write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) {
  if (step.amended) write_run(step.id, *step.amended);
  for (const ScheduleRun& run : runs) write_run(step.id, run);
  if (runs.empty() || runs.back().number <= kRunsKept) return;
  work_.later("DELETE FROM schedule_runs WHERE partition = 0 AND schedule_id = $1 AND number <= $2 AND outcome <> 0",
              PostgresValues(step.id, runs.back().number - kRunsKept));
}

// An entry that has been pushed out of the history goes with the run's end.
void PostgresSchedules::end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) {
  const std::int64_t at_ms = to_ms(at);
  const std::string cut(cut_error(error));
  work_.later("UPDATE places SET active = active - 1 WHERE partition = 0 AND schedule_id = $1",
              PostgresValues(run.schedule));
  work_.later(
      "UPDATE schedule_runs SET outcome = $3, ended_at = $4, error = $5 WHERE partition = 0 AND schedule_id = $1 AND "
      "number = $2",
      PostgresValues(run.schedule, run.number, run.outcome, at_ms, cut));
  work_.later(
      fmt::format(
          "DELETE FROM schedule_runs r USING places p WHERE p.partition = 0 AND p.schedule_id = $1 AND r.partition = 0 "
          "AND r.schedule_id = $1 AND r.number = $2 AND r.number + {} <= p.entries",
          kRunsKept),
      PostgresValues(run.schedule, run.number));
  if (!result.empty()) {
    work_.later(
        "INSERT INTO schedule_outputs SELECT 0, $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bytea, "
        "$7::bytea WHERE EXISTS (SELECT FROM places WHERE partition = 0 "
        "AND schedule_id = $1) ON CONFLICT (partition, schedule_id) DO UPDATE SET number = excluded.number, job_id = "
        "excluded.job_id, ended_at = excluded.ended_at, outcome = excluded.outcome, error = excluded.error, output = "
        "excluded.output",
        PostgresValues(run.schedule, run.number, run.job, at_ms, run.outcome, cut, result));
  }
  if (const auto* written = runs_.find({run.schedule, run.number}); written != nullptr && *written) {
    ScheduleRun ended = **written;
    ended.outcome = run.outcome;
    runs_[{run.schedule, run.number}] = ended;
  }
  work_.touch(true, run.schedule);
}

}  // namespace argiope

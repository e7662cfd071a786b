#include "store/redis/redis_schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "jobs/internal/schedule_rules.hpp"
#include "store/redis/redis_keys.hpp"
#include "store/redis/row_text.hpp"

namespace argiope {

namespace {

std::string run_field(ScheduleId id, std::uint64_t number) { return fmt::format("{}:{}", id, number); }

}  // namespace

// --- rows ------------------------------------------------------------------------------------------------------------

std::optional<StoredSchedule> RedisSchedules::place_of(ScheduleId id) {
  const std::string* const text = rows_.get(RedisTable::places, std::to_string(id));
  if (text == nullptr) return std::nullopt;
  StoredSchedule schedule{.id = id};
  RowText<false> io(*text);
  fields_of(io, schedule);
  return schedule;
}

void RedisSchedules::write_place(const StoredSchedule& schedule) {
  RowText<true> io;
  StoredSchedule written{
      .id = schedule.id, .version = schedule.version, .place = schedule.place, .active = schedule.active};
  fields_of(io, written);
  rows_.set(RedisTable::places, std::to_string(schedule.id), io.take());
  rows_.tell(RedisTable::schedules, schedule.id);
}

void RedisSchedules::read_texts(StoredSchedule& schedule) {
  const std::string* const text = rows_.get(RedisTable::schedules, std::to_string(schedule.id));
  if (text == nullptr) return;  // erased by others since its place was read
  RowText<false> io(*text);
  io(schedule.name, schedule.trigger, schedule.definition);
}

std::optional<StoredSchedule> RedisSchedules::get(ScheduleId id) {
  rows_.want(RedisTable::places, std::to_string(id));
  rows_.want(RedisTable::schedules, std::to_string(id));
  rows_.fetch();
  auto schedule = place_of(id);
  if (schedule) read_texts(*schedule);
  return schedule;
}

std::optional<StoredSchedule> RedisSchedules::find(std::string_view name) {
  const std::string* const id = rows_.get(RedisTable::schedule_names, name);
  return id == nullptr ? std::nullopt : get(redis_keys::number_in(*id));
}

std::vector<StoredSchedule> RedisSchedules::list(const ScheduleFilter& filter) {
  const auto members = rows_.range("schedule_ids", {.after = redis_keys::digits(filter.after), .limit = filter.limit});
  for (const std::string& member : members) {
    const std::string field = std::to_string(redis_keys::number_in(member));
    rows_.want(RedisTable::places, field);
    if (filter.texts) rows_.want(RedisTable::schedules, field);
  }
  rows_.fetch();
  std::vector<StoredSchedule> found;
  for (const std::string& member : members) {
    auto schedule = place_of(redis_keys::number_in(member));
    if (!schedule) continue;
    if (filter.texts) read_texts(*schedule);
    found.push_back(std::move(*schedule));
  }
  return found;
}

std::vector<PutScheduleReply> RedisSchedules::put(const std::vector<PutSchedule>& wanted) {
  for (const PutSchedule& schedule : wanted) rows_.want(RedisTable::schedule_names, schedule.name);
  rows_.fetch();
  for (const PutSchedule& schedule : wanted) {
    if (const std::string* const id = rows_.get(RedisTable::schedule_names, schedule.name))
      rows_.want(RedisTable::places, *id);
  }
  rows_.fetch();
  std::vector<PutScheduleReply> replies;
  for (const PutSchedule& schedule : wanted) replies.push_back(put(schedule));
  return replies;
}

PutScheduleReply RedisSchedules::put(const PutSchedule& wanted) {
  using enum PutScheduleOutcome;
  const std::string* const known = rows_.get(RedisTable::schedule_names, wanted.name);
  std::optional<StoredSchedule> old;
  if (known != nullptr) old = place_of(redis_keys::number_in(*known));
  const auto outcome = schedule_rules::outcome_of(wanted, old ? std::optional(old->version) : std::nullopt);
  if (outcome != added && outcome != replaced) {
    return old ? PutScheduleReply{outcome, old->id, old->version} : PutScheduleReply{outcome};
  }
  StoredSchedule schedule = old.value_or(StoredSchedule{});
  if (!old) schedule.id = ++last_;
  ++schedule.version;
  const std::uint64_t entries = schedule.place.entries;
  schedule.place = schedule_rules::stored(wanted.place);
  schedule.place.entries = entries;
  const std::string id = std::to_string(schedule.id);
  rows_.set(RedisTable::schedules, id, row_text(wanted.name, wanted.trigger, wanted.definition));
  rows_.set(RedisTable::schedule_names, wanted.name, id);
  rows_.add("schedule_ids", redis_keys::digits(schedule.id));
  write_place(schedule);
  return {outcome, schedule.id, schedule.version};
}

bool RedisSchedules::erase(ScheduleId id) {
  const auto schedule = get(id);
  if (!schedule) return false;
  const std::string field = std::to_string(id);
  for (const std::uint64_t number : active_of(id)) erase_run(id, number);
  const std::uint64_t entries = schedule->place.entries;
  for (std::uint64_t kept = std::min(entries, kRunsKept); kept > 0; --kept) {
    rows_.erase(RedisTable::runs, run_field(id, entries - kept + 1));
  }
  rows_.erase(RedisTable::schedules, field);
  rows_.erase(RedisTable::places, field);
  rows_.erase(RedisTable::outputs, field);
  rows_.erase(RedisTable::schedule_names, schedule->name);
  rows_.remove("schedule_ids", redis_keys::digits(id));
  rows_.tell(RedisTable::schedules, id);
  return true;
}

// --- histories -------------------------------------------------------------------------------------------------------

// The numbers of those that go on, the oldest first.
std::vector<std::uint64_t> RedisSchedules::active_of(ScheduleId id) {
  std::vector<std::uint64_t> numbers;
  const RedisRange range{.after = redis_keys::before_pairs(id), .before = redis_keys::after_pairs(id)};
  for (const std::string& member : rows_.range("active", range)) numbers.push_back(redis_keys::last_of(member));
  return numbers;
}

void RedisSchedules::write_run(ScheduleId id, const ScheduleRun& run) {
  ScheduleRun written = run;
  RowText<true> io;
  fields_of(io, written);
  rows_.set(RedisTable::runs, run_field(id, run.number), io.take());
  if (run.outcome == RunOutcome::running) {
    rows_.add("active", redis_keys::pair(id, run.number));
  } else {
    rows_.remove("active", redis_keys::pair(id, run.number));
  }
}

void RedisSchedules::erase_run(ScheduleId id, std::uint64_t number) {
  rows_.erase(RedisTable::runs, run_field(id, number));
  rows_.remove("active", redis_keys::pair(id, number));
}

std::optional<ScheduleRun> RedisSchedules::run(ScheduleId id, std::uint64_t number) {
  const std::string* const text = rows_.get(RedisTable::runs, run_field(id, number));
  if (text == nullptr) return std::nullopt;
  ScheduleRun run;
  RowText<false> io(*text);
  fields_of(io, run);
  return run;
}

std::optional<ScheduleView> RedisSchedules::look(const ScheduleLook& look) {
  auto schedule = get(look.id);
  if (!schedule) return std::nullopt;
  ScheduleView view{.schedule = std::move(*schedule)};
  const std::uint64_t last = view.schedule.place.entries;
  std::vector<std::uint64_t> active = view.schedule.active == 0 ? std::vector<std::uint64_t>{} : active_of(look.id);
  active.resize(active.size() - std::min<std::size_t>(active.size(), look.newest_left_out));
  const std::size_t first = active.size() - std::min(active.size(), look.most);
  rows_.want(RedisTable::runs, run_field(look.id, last));
  for (std::size_t i = first; i < active.size(); ++i) rows_.want(RedisTable::runs, run_field(look.id, active[i]));
  rows_.fetch();
  if (last > 0) view.last_entry = run(look.id, last);
  for (std::size_t i = first; i < active.size(); ++i) {
    if (const auto entry = run(look.id, active[i])) view.active_jobs.push_back(entry->job);
  }
  return view;
}

std::vector<ScheduleRun> RedisSchedules::runs(ScheduleId id, std::size_t limit) {
  std::vector<ScheduleRun> last;
  const auto schedule = place_of(id);
  if (!schedule) return last;
  const std::uint64_t newest = schedule->place.entries;
  const std::uint64_t kept = std::min({newest, kRunsKept, static_cast<std::uint64_t>(limit)});
  for (std::uint64_t i = 0; i < kept; ++i) rows_.want(RedisTable::runs, run_field(id, newest - i));
  rows_.fetch();
  for (std::uint64_t i = 0; i < kept; ++i) {
    if (auto entry = run(id, newest - i)) last.push_back(std::move(*entry));
  }
  return last;
}

std::optional<ScheduleOutput> RedisSchedules::output(ScheduleId id) {
  const std::string* const text = rows_.get(RedisTable::outputs, std::to_string(id));
  if (text == nullptr) return std::nullopt;
  ScheduleOutput output;
  RowText<false> io(*text);
  fields_of(io, output);
  return output;
}

bool RedisSchedules::advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) {
  auto schedule = place_of(step.id);
  if (!schedule || schedule->version != step.version || schedule->place.entries != entries) return false;
  ++schedule->version;
  schedule->place = schedule_rules::stored(step.place);
  schedule->active += started;
  write_place(*schedule);
  return true;
}

// A schedule none of whose older runs go on has none that must be kept beyond the last ones.
void RedisSchedules::write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) {
  if (step.amended) write_run(step.id, schedule_rules::stored(*step.amended));
  const auto schedule = place_of(step.id);
  const auto begun = std::ranges::count(runs, RunOutcome::running, &ScheduleRun::outcome);
  const bool older_go_on = schedule && schedule->active > begun;
  const auto pushed_out = [](const ScheduleRun& run) { return run.number - kRunsKept; };
  const auto pushes_out = [](const ScheduleRun& run) { return run.number > kRunsKept; };
  if (older_go_on) {
    for (const ScheduleRun& entry : runs | std::views::filter(pushes_out)) {
      rows_.want(RedisTable::runs, run_field(step.id, pushed_out(entry)));
    }
    rows_.fetch();
  }
  for (const ScheduleRun& entry : runs) {
    write_run(step.id, schedule_rules::stored(entry));
    if (!pushes_out(entry)) continue;
    // A step may write more entries than are kept.
    const bool may_go_on = older_go_on || pushed_out(entry) >= runs.front().number;
    const auto old = may_go_on ? run(step.id, pushed_out(entry)) : std::nullopt;
    if (!old || old->outcome != RunOutcome::running) erase_run(step.id, pushed_out(entry));
  }
}

void RedisSchedules::take_off_started(ScheduleId id, std::uint32_t count) {
  auto schedule = place_of(id);
  schedule->active -= count;
  write_place(*schedule);
}

void RedisSchedules::end_run(const EndedRun& ended, WallTime at, std::string_view error, std::string_view result) {
  auto schedule = place_of(ended.schedule);
  if (!schedule) return;
  const std::string cut(schedule_rules::cut_error(error));
  if (!result.empty()) {
    ScheduleOutput output{ended.number, ended.job, at, ended.outcome, cut, std::string(result)};
    RowText<true> io;
    fields_of(io, output);
    rows_.set(RedisTable::outputs, std::to_string(ended.schedule), io.take());
  }
  --schedule->active;
  write_place(*schedule);
  auto entry = run(ended.schedule, ended.number);
  if (!entry) return;  // it is still to be written
  if (ended.number + kRunsKept <= schedule->place.entries) {
    erase_run(ended.schedule, ended.number);
    return;
  }
  entry->outcome = ended.outcome;
  entry->ended_at = at;
  entry->error = cut;
  write_run(ended.schedule, *entry);
}

// --- requests --------------------------------------------------------------------------------------------------------

namespace {

struct StoredRequest {
  std::uint64_t number = 0;
  WallTime at{};
  std::string digest, reply;
  void fields(auto& io) { io(number, at, digest, reply); }
};

std::string order_of(std::uint64_t number, std::string_view key) { return redis_keys::before_pairs(number) += key; }

}  // namespace

std::optional<KeptRequest> RedisKeys::find(const std::string& key) {
  const std::string* const text = rows_.get(RedisTable::requests, key);
  if (text == nullptr) return std::nullopt;
  StoredRequest request;
  RowText<false> io(*text);
  io(request);
  return KeptRequest{std::move(request.digest), std::move(request.reply)};
}

void RedisKeys::write(const RequestKey& key, WallTime at, const std::string& reply) {
  StoredRequest request{++last_, at, key.digest, reply};
  RowText<true> io;
  io(request);
  rows_.set(RedisTable::requests, key.key, io.take());
  rows_.add("request_order", order_of(request.number, key.key));
}

std::size_t RedisKeys::prune(WallTime before, std::size_t most, std::size_t limit) {
  std::uint64_t left = rows_.count("request_order", {});
  const std::vector<std::string> oldest = rows_.range("request_order", {.limit = limit});
  const auto key_of = [](const std::string& member) {
    return std::string_view(member).substr(std::min(member.size(), redis_keys::kDigits + 1));
  };
  for (const std::string& member : oldest) rows_.want(RedisTable::requests, key_of(member));
  rows_.fetch();
  std::size_t count = 0;
  for (; count < oldest.size(); ++count, --left) {
    const std::string_view key = key_of(oldest[count]);
    if (const std::string* const text = rows_.get(RedisTable::requests, key)) {
      StoredRequest request;
      RowText<false> io(*text);
      io(request);
      if (request.at >= schedule_rules::stored(before) && left <= most) break;
    }
    rows_.erase(RedisTable::requests, key);
    rows_.remove("request_order", oldest[count]);
  }
  return count;
}

}  // namespace argiope

#include "jobs/internal/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/time/time_zone.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/rfc3339.hpp"
#include "time/internal/instants.hpp"

namespace argiope {
namespace {

using detail::just_after;
using detail::just_before;

// Stores keep milliseconds: the trigger's own time that was rounded down to `stored`.
WallTime exact(const Trigger& trigger, WallTime stored) {
  const auto found = trigger.next(just_before(stored));
  return found && *found - stored < std::chrono::milliseconds{1} ? *found : stored;
}

// Between two parts of a search that takes long.
constexpr Duration kSearchPause = std::chrono::seconds{1};
// How far a calendar may be set back until a schedule of elapsed time begins anew: so many of its times, and no less
// than this.
constexpr int kTimesOfSilence = 10;
constexpr Duration kShortSilence = std::chrono::seconds{10};

// Planned times that follow one another without a gap, from `first` to `last`.
struct Span {
  WallTime first, last;
};

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : in_(input), policies_(input.policies), trigger_(input.trigger), plan_{.place = input.place} {}

  Plan planned() {
    SchedulePlace& place = plan_.place;
    if (place.paused) return std::move(plan_);
    find_next();
    begin_anew_if_lost();
    if (const auto due = due_times()) {
      plan_.changes = true;
      act_on(*due);
      place.last = due->last;
      // Those that follow within the same millisecond are the same to the store.
      go_on_after(just_before(std::chrono::floor<std::chrono::milliseconds>(due->last) + std::chrono::milliseconds{1}));
    }
    if (plan_.changes) end_if_over();
    plan_.look_at = look_time(trigger_, place);
    // A search that is not finished goes on, and not at once: others are due, too.
    if (is_searching_ && !place.paused && place.next != WallTime::max()) {
      plan_.look_at = std::max(place.next, in_.now + kSearchPause);
    }
    return std::move(plan_);
  }

  Plan planned_now() {
    plan_.changes = true;
    add_run(in_.now);
    end_if_over();
    plan_.look_at = plan_.place.paused ? WallTime::max() : look_time(trigger_, plan_.place);
    return std::move(plan_);
  }

 private:
  // The trigger's own time for what stands in the store. Where a search was cut short that is the time it has come to,
  // and it goes on from there.
  void find_next() {
    SchedulePlace& place = plan_.place;
    if (place.next == WallTime::max()) return;
    if (!trigger_.needs_search()) {
      place.next = exact(trigger_, place.next);
    } else if (place.next <= in_.now) {
      go_on_after(just_before(place.next));
      plan_.changes = place.next < in_.place.next || place.next - in_.place.next >= std::chrono::milliseconds{1};
    }
  }

  void go_on_after(WallTime time) {
    SchedulePlace& place = plan_.place;
    const Trigger::Answer answer = trigger_.search(time);
    is_searching_ = !answer.decided;
    place.next = answer.decided ? answer.time.value_or(WallTime::max()) : answer.clear;
  }

  void begin_anew_if_lost() {
    SchedulePlace& place = plan_.place;
    if (in_.step_back == Duration::max() || !is_lost(trigger_, place, in_.now, in_.step_back)) return;
    if (policies_.max_runs != 0 && place.fired >= policies_.max_runs) return;
    const auto next = trigger_.next(just_before(in_.now));
    if (!next || *next >= place.next || (place.last != WallTime{} && *next > place.last)) return;
    place.next = *next;
    place.last = WallTime{};
    plan_.changes = true;
    plan_.began_anew = true;
  }

  // Those not dealt with that are due: they follow one another, for none is due after the next one is planned.
  std::optional<Span> due_times() const {
    const WallTime first = plan_.place.next;
    if (is_searching_ || first == WallTime::max() || trigger_.due_at(first) > in_.now) return std::nullopt;
    std::optional<WallTime> last = trigger_.previous(just_after(in_.now));
    if (last && trigger_.due_at(*last) > in_.now) last = trigger_.previous(*last);
    // The time in the store need not be a time of the trigger; then it is dealt with as if it were one.
    if (!last || *last < first) return Span{first, first};
    return Span{first, *last};
  }

  // Of those due, the first that is not too late; nullopt when all are.
  std::optional<WallTime> first_in_time(const Span& due) const {
    if (!policies_.misfire_grace) return due.first;
    if (*policies_.misfire_grace > in_.now - due.first) return due.first;
    const WallTime limit = in_.now - *policies_.misfire_grace;
    std::optional<WallTime> found = trigger_.next(just_before(limit));
    // With jitter the one before may have become due after the limit.
    const auto before = trigger_.previous(found.value_or(limit));
    if (before && trigger_.due_at(*before) >= limit) found = before;
    if (due.first >= limit || trigger_.due_at(due.first) >= limit) found = due.first;
    // Where a search has found nothing, the last one itself may be in time.
    if (!found && trigger_.due_at(due.last) >= limit) found = due.last;
    if (!found || *found > due.last) return std::nullopt;
    return std::max(*found, due.first);
  }

  void act_on(const Span& due) {
    const auto in_time = first_in_time(due);
    if (!in_time) return note(RunOutcome::missed, due, too_late());
    if (*in_time > due.first) {
      if (const auto last_late = trigger_.previous(*in_time)) {
        note(RunOutcome::missed, {due.first, std::max(due.first, *last_late)}, too_late());
      }
    }
    coalesce({*in_time, due.last});
  }

  void coalesce(const Span& due) {
    if (policies_.coalesce == Coalesce::latest) {
      if (due.first < due.last) leave_out({due.first, trigger_.previous(due.last).value_or(due.first)}, "the latest");
      return run({due.last});
    }
    if (policies_.coalesce == Coalesce::earliest) {
      run({due.first});
      if (due.first < due.last) leave_out({trigger_.next(due.first).value_or(due.last), due.last}, "the earliest");
      return;
    }
    std::vector<WallTime> times{due.last};
    detail::Search search{10 * Trigger::kMostQuestions};
    while (times.back() > due.first && times.size() < policies_.most_catch_up) {
      const auto before = trigger_.previous(times.back(), search);
      if (search.ran_out || !before || *before < due.first) break;
      times.push_back(*before);
    }
    std::ranges::reverse(times);
    if (times.front() > due.first) {
      const auto last = trigger_.previous(times.front());
      if (last && *last >= due.first) {
        note(RunOutcome::missed, {due.first, *last},
             fmt::format("more than {} have come due together", policies_.most_catch_up));
      }
    }
    run(std::move(times));
  }

  void leave_out(const Span& span, std::string_view which) {
    note(RunOutcome::missed, span, fmt::format("several have come due together, and only {} is run", which));
  }

  std::string too_late() const {
    return fmt::format("later than its misfire_grace of {}", format_duration(*policies_.misfire_grace));
  }

  // Runs those times, as far as overlap and max_runs let it.
  void run(std::vector<WallTime> times) {
    if (policies_.max_runs != 0) {
      const std::uint64_t left = policies_.max_runs > plan_.place.fired ? policies_.max_runs - plan_.place.fired : 0;
      if (times.size() > left) times.resize(left);
    }
    if (times.empty()) return;
    const std::uint32_t most = policies_.max_instances;
    if (in_.active >= most) {
      if (policies_.overlap == Overlap::skip) {
        return skip(times, fmt::format("{} of its runs had not ended", in_.active));
      }
      if (policies_.overlap == Overlap::queue_one && in_.active > most) {
        return skip(times, "a run waits already");
      }
    }
    const std::size_t together = std::min<std::size_t>(times.size(), most);
    if (policies_.overlap == Overlap::cancel_running && in_.active + together > most) {
      // All but the newest for which there is room beside those that come.
      const std::vector<JobId>& ahead = in_.active_jobs;
      const std::size_t spared = std::min(most - together - in_.newest_left_out, ahead.size());
      plan_.cancel.assign(ahead.begin(), ahead.end() - static_cast<std::ptrdiff_t>(spared));
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      PlannedRun& added = add_run(times[i]);
      // So many are ahead of it or among them; it follows the one that is `most` places before.
      const std::size_t place = in_.active + i;
      if (place < most) continue;
      if (i >= most) {
        added.after_run = added.entry - most;
      } else if (!plan_.cancel.empty()) {
        added.waits_for = plan_.cancel;
      } else if (const auto ahead = active_from_newest(most - 1 - i)) {
        added.waits_for = {*ahead};
      }
    }
  }

  // 0: the newest.
  std::optional<JobId> active_from_newest(std::size_t place) const {
    const std::vector<JobId>& ahead = in_.active_jobs;
    if (place < in_.newest_left_out || place - in_.newest_left_out >= ahead.size()) return std::nullopt;
    return ahead[ahead.size() - 1 - (place - in_.newest_left_out)];
  }

  void skip(const std::vector<WallTime>& times, std::string why) {
    const ScheduleRun* last = in_.last_entry;
    const bool goes_on = plan_.entries.empty() && last != nullptr && last->outcome == RunOutcome::skipped &&
                         last->number == plan_.place.entries && last->error == why;
    if (!goes_on) return note(RunOutcome::skipped, {times.front(), times.back()}, std::move(why), times.size());
    ScheduleRun entry = *last;
    entry.last_planned = times.back();
    entry.count += times.size();
    entry.ended_at = in_.now;
    plan_.place.missed += times.size();
    plan_.amended = std::move(entry);
    plan_.amended_from = times.front();
    plan_.amended_count = times.size();
  }

  PlannedRun& add_run(WallTime planned) {
    const std::uint64_t number = ++plan_.place.entries;
    ++plan_.place.fired;
    plan_.entries.push_back({.number = number,
                             .planned = planned,
                             .last_planned = planned,
                             .fired_at = in_.now,
                             .outcome = RunOutcome::running});
    return plan_.runs.emplace_back(PlannedRun{.entry = number, .planned = planned});
  }

  void note(RunOutcome outcome, const Span& span, std::string why, std::uint64_t count = 0) {
    if (count == 0) {
      count = std::max<std::uint64_t>(1, trigger_.count(span.first, span.last, kMostCounted));
    }
    plan_.place.missed += count;
    plan_.entries.push_back({.number = ++plan_.place.entries,
                             .planned = span.first,
                             .last_planned = span.last,
                             .count = count,
                             .fired_at = in_.now,
                             .ended_at = in_.now,
                             .outcome = outcome,
                             .error = std::move(why)});
  }

  void end_if_over() {
    SchedulePlace& place = plan_.place;
    const bool had_more = in_.place.next != WallTime::max();
    if (policies_.max_runs != 0 && place.fired >= policies_.max_runs) place.next = WallTime::max();
    plan_.finished = had_more && place.next == WallTime::max();
  }

  const PlanInput& in_;
  const Schedule& policies_;
  const Trigger& trigger_;
  bool is_searching_ = false;  // place.next is not a planned time; none comes before it
  Plan plan_;
};

// As the text inside a JSON string.
void append_escaped(std::string& out, std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  out.append(quoted, 1, quoted.size() - 2);
}

}  // namespace

std::optional<ScheduleLook> what_is_needed(ScheduleId id, const Schedule& policies, std::uint32_t active) {
  const bool is_full = active >= policies.max_instances;
  const bool may_chain = active > 0 && policies.coalesce == Coalesce::all;
  if (!is_full && !may_chain) return std::nullopt;
  // So many at most come at once; each waits for, or cancels, what is `max_instances` places before it.
  const std::uint32_t together =
      policies.coalesce == Coalesce::all ? std::min(policies.most_catch_up, policies.max_instances) : 1;
  ScheduleLook look{.id = id, .newest_left_out = policies.max_instances - together};
  if (policies.overlap == Overlap::skip && is_full) {
    look.most = 0;
  } else if (policies.overlap != Overlap::cancel_running) {
    look.most = together;
  }
  return look;
}

Plan make_plan(const PlanInput& input) { return Planner(input).planned(); }
Plan make_plan_now(const PlanInput& input) { return Planner(input).planned_now(); }

bool is_lost(const Trigger& trigger, const SchedulePlace& place, WallTime now, Duration step_back) {
  if (place.next == WallTime::max() && place.last == WallTime{}) return false;
  // It has never been due: its first time was found by a clock that was ahead.
  if (place.last == WallTime{}) {
    const auto next = trigger.next(just_before(now));
    return next && *next < place.next;
  }
  if (place.last <= now) return false;
  const Duration ahead = place.last - now;
  if (ahead > step_back) return true;
  // One that follows elapsed time is silent for a few of its own times at most.
  if (!trigger.follows_elapsed_time() || ahead <= kShortSilence) return false;
  const auto next = trigger.next(place.last);
  return next && ahead / kTimesOfSilence > *next - place.last;
}

WallTime look_time(const Trigger& trigger, const SchedulePlace& place) {
  if (place.paused || place.next == WallTime::max()) return WallTime::max();
  return trigger.due_at(exact(trigger, place.next));
}

std::string fill_in(const JobTemplate& job, std::string_view name, const TimeZone& zone, std::uint64_t run,
                    WallTime planned, WallTime fired_at) {
  const std::string& payload = job.payload;
  if (!job.fill_in) return payload;
  std::string out;
  for (std::size_t at = 0; at < payload.size();) {
    const std::string_view rest = std::string_view(payload).substr(at);
    const auto fill = [&](std::string_view word) {
      if (!rest.starts_with(word)) return false;
      at += word.size();
      return true;
    };
    if (rest.front() != '{') {
      const std::size_t until = std::min(rest.find('{'), rest.size());
      out += rest.substr(0, until);
      at += until;
    } else if (fill("{name}")) {
      append_escaped(out, name);
    } else if (fill("{planned_at}")) {
      out += format_timestamp(planned, zone);
    } else if (fill("{fired_at}")) {
      out += format_timestamp(fired_at, zone);
    } else if (fill("{run}")) {
      out += fmt::to_string(run);
    } else {
      out += '{';
      ++at;
    }
  }
  return out;
}

}  // namespace argiope

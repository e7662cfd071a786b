#include "project/run/round_desk.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/internal/json_writer.hpp"
#include "project/run/ask_desk.hpp"
#include "project/run/internal/round_alarms.hpp"

namespace argiope {
namespace {

constexpr Duration kRoundPollPause = std::chrono::milliseconds{2};

bool is_to_be_visited(const LiveProject& project, std::string_view name) {
  const PageIndex::Number page = project.index.find(page_fingerprint(name));
  if (page == 0) return false;
  const KnownPage known = project.index.known(page);
  return known.state == PageState::visiting || (known.state == PageState::waiting && known.wait != PageWait::recrawl);
}

}  // namespace

std::int64_t RoundDesk::begin(LiveProject& project, std::string cause, PageBatch& batch, WallTime now) {
  if (!project.round) {
    project.round = RoundRecord{
        .project = project.record.id, .number = ++project.last_round, .began = now, .cause = std::move(cause)};
    project.round_is_over.clear();
    project.counts = {};
    batch.rounds.push_back(*project.round);
  }
  return project.round->number;
}

void RoundDesk::leave(LiveProject& project, PageIndex::Number page, PageBatch& batch, WallTime now) {
  if (!project.is_in_round(page)) return;
  project.in_round[page] = false;
  --project.outstanding;
  // Of a visit that goes on, the end is the end.
  if (!project.visits.contains(page)) end_if_over(project, batch, now);
}

// Of one round at a time: of the next one when the visit for the one before has come to its end. That it is told, and
// what tells it, are in one transaction, so that each is told once.
void RoundDesk::tell_script(LiveProject& project, PageBatch& batch, WallTime now) {
  if (project.untold.empty() || (!project.definition.processor.empty() && !project.description)) return;
  const bool wants_to_know = project.description && !project.description->on_finished.empty();
  while (!project.untold.empty() && !(wants_to_know && is_to_be_visited(project, kFinishedPage))) {
    RoundRecord round = std::move(project.untold.front());
    project.untold.pop_front();
    if (wants_to_know) {
      const std::string context = json_object([&](JsonWriter& out) {
        out.member("round", round.number);
        out.member("began", round.began);
        out.member("ended", *round.ended);
        out.member("pages", round.pages);
        out.member("failed", round.failed);
        out.member("results", round.results);
      });
      asks_.take_event(project, kFinishedPage, project.description->on_finished, context, 0, batch, now);
    }
    round.finished_told = true;
    batch.rounds.push_back(std::move(round));
  }
}

void RoundDesk::end_if_over(LiveProject& project, PageBatch& batch, WallTime now) {
  if (!project.round || project.outstanding > 0 || project.record.start_wanted) return;
  RoundRecord round = std::move(*project.round);
  project.round.reset();
  round.ended = now;
  project.counts.visits = round.pages;
  project.counts.failed = round.failed;
  project.counts.results = round.results;
  std::vector<std::string> alarms;
  for (RoundAlarm& alarm : round_alarms(project.counts, project.definition.alarm)) {
    log(project, "warning", alarm.text);
    alarms.push_back(std::move(alarm.text));
  }
  project.alarms = alarms;
  round.fields = project.counts.fields;
  round.alarms = alarms;
  batch.rounds.push_back(round);
  project.untold.push_back(round);
  tell_script(project, batch, now);
  ended_rounds_.push_back(
      {.flush = 0, .project = project.record.name, .round = std::move(round), .alarms = std::move(alarms)});
}

void RoundDesk::tell_ends() {
  begin_flush();
  while (!ended_rounds_.empty() && store_.flushed(ended_rounds_.front().flush)) {
    const EndedRound ended = std::move(ended_rounds_.front());
    ended_rounds_.erase(ended_rounds_.begin());
    if (const SharedProject project = core_.find(ended.project); project && !project->round)
      project->round_is_over.set();
    if (!options_.on_round_end) continue;
    try {
      options_.on_round_end(ended.project, ended.round, ended.alarms);
    } catch (const std::exception& error) {
      spdlog::error("project {}: the end of its round could not be told: {}", ended.project, error.what());
    }
  }
  if (!ended_rounds_.empty() && core_.ticker) core_.ticker->at(core_.loop->time() + kRoundPollPause);
}

bool RoundDesk::is_told(const LiveProject& project) const {
  return std::ranges::none_of(ended_rounds_,
                              [&](const EndedRound& ended) { return ended.project == project.record.name; });
}

void RoundDesk::begin_flush() {
  for (EndedRound& ended : ended_rounds_) {
    if (ended.flush == 0) ended.flush = store_.begin_flush();
  }
}

}  // namespace argiope

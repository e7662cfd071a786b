#include "project/run/visit_settler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/wall_time.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/run/visit_track.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostCrashes = 3;
constexpr std::size_t kMostErrorText = 1'000;
constexpr Duration kUsualPutOff = std::chrono::seconds{30};
constexpr Duration kLeastPutOff = std::chrono::milliseconds{100};

std::string first_of(std::string text, std::size_t most) {
  if (text.size() > most) text.resize(most);
  return text;
}

// A line for each page: without it a shop that writes its prices otherwise would lose them silently.
std::string troubles_in_words(std::string_view page, const RuleReading& reading) {
  std::string text = fmt::format("{}: {}", printable(page), reading.troubles.front().text());
  if (reading.troubles.size() > 1) text += fmt::format(", and {} more", reading.troubles.size() - 1);
  if (reading.dropped > 0) text += fmt::format("; {} left out", counted(reading.dropped, "record"));
  return text;
}

}  // namespace

void VisitSettler::settle(PageVisit& visit, const FetchedAnswer& fetched, VisitAnswer answer,
                          const RuleReading* reading, VisitEnd end) {
  const SharedProject project = visit.project;
  const TimePoint now = core_.loop->time();
  const WallTime wall_now = wall();
  const PageIndex::Number page = visit.ticket.page;
  PageBatch batch;
  batch.at = wall_now;
  // It was removed, and may have been restored as another: what its numbers are is no longer this one's to say.
  if (project->is_gone) return end_cancelled(visit);
  visit.is_over = true;
  for (const PageLog& line : answer.logs) log(*project, line.level, line.text);
  if (answer.failure && answer.failure->not_now) return put_off(visit, *answer.failure, now, wall_now);

  const auto masked = [&](std::string text) {
    return project->processor ? project->processor->masked(std::move(text)) : text;
  };
  const auto left_out = [&](std::string_view what, const Error& why) {
    answer.logs.push_back({"warning", masked(fmt::format("a {} was left out: {}", what, why.message))});
    log(*project, "warning", masked(fmt::format("{}: {}", printable(visit.record.name), answer.logs.back().text)));
  };

  const std::int64_t round = project->round && project->round->number == visit.round ? visit.round : 0;
  std::size_t asked = 0;
  if (reading != nullptr) {
    for (const RuleReading::Trouble& trouble : reading->troubles)
      answer.logs.push_back({"warning", masked(trouble.text())});
    if (reading->not_read) answer.logs.push_back({"warning", masked(reading->not_read->message)});
    if (!reading->troubles.empty()) log(*project, "warning", masked(troubles_in_words(visit.record.name, *reading)));
    for (std::size_t i = 0; i < reading->links.size(); ++i) {
      AskDesk::Asking asking{.name = reading->links[i],
                             .url = reading->links[i],
                             .rule = project->rule_number(visit.readers->name_of(reading->rules[i])),
                             .round = round,
                             .from = visit.record.id};
      if (asks_.take(*project, asking, batch, wall_now).verdict == AskVerdict::add) ++asked;
    }
  }
  for (const AskedPage& one : answer.pages) {
    if (auto taken = asks_.take_page(*project, one, round, visit.record.id, batch, wall_now); !taken) {
      left_out("page", taken.error());
    } else if (taken->verdict == AskVerdict::add) {
      ++asked;
    }
  }
  for (const PageMessage& message : answer.messages) {
    if (auto sent = asks_.take_message_of_script(project->record.name, message, batch, wall_now); !sent) {
      left_out("message", sent.error());
    }
  }

  std::optional<std::vector<PageResult>> results;
  if (answer.results) {
    results = std::move(answer.results);
  } else if (reading != nullptr && reading->results && !answer.failure) {
    results = reading->results;
    if (project->round && round != 0) {
      // By the rules that have read it, whatever they are now.
      project->counts.add(*reading, visit.readers->columns(visit.place));
    }
  }
  if (results) {
    ResultsReplaced replaced{.page = visit.record.id, .keep = {}};
    for (PageResult& result : *results) {
      replaced.keep.push_back(result.part);
      batch.results.push_back({visit.record.id, std::move(result.part), std::move(result.value_json)});
    }
    batch.replaced.push_back(std::move(replaced));
  }

  // The page's own end, after what it has asked for: it may have asked for itself.
  KnownPage known = project->index.known(page);
  std::uint32_t crashes = end == VisitEnd::failure ? visit.record.crashes : 0;
  bool is_final = answer.failure && answer.failure->is_final;
  if (answer.failure && answer.failure->is_crash && ++crashes >= kMostCrashes) {
    is_final = true;
    answer.failure->text = "killed its processor";
  }
  // How long it waits, where its script has a word in that.
  std::optional<Duration> delay = answer.failure ? answer.failure->delay : std::nullopt;
  if (end == VisitEnd::failure && !delay && project->description && !project->description->retry_delays.empty() &&
      !project->rules[project->index.rule(page)].place) {
    delay = retry_delay_of(*project->description, known.retried);
    is_final = is_final || !delay;
  }
  if (is_final) use_up_retries(known);
  VisitDecision decision =
      decide_visit_end(known, end, project->terms_of(project->index.rule(page)), wall_now, core_.random);
  if (delay && decision.page.state == PageState::waiting && decision.page.wait == PageWait::retry) {
    decision.page.due = saturating_add(wall_now, *delay);
  }
  PageChange change{.id = visit.record.id, .known = decision.page};
  if (answer.save_json) change.save = *answer.save_json == "null" ? std::string{} : std::move(*answer.save_json);
  PageChange::Outcome outcome{.status_code = fetched.response.status, .crashes = crashes, .error = {}, .track = {}};
  if (end == VisitEnd::failure) {
    outcome.etag = visit.record.etag;
    outcome.last_modified = visit.record.last_modified;
    outcome.digest = visit.record.digest;
    outcome.error = first_of(answer.failure ? answer.failure->text : error_of(fetched).message, kMostErrorText);
  } else {
    outcome.etag = fetched.is_unchanged ? visit.record.etag : fetched.etag;
    outcome.last_modified = fetched.is_unchanged ? visit.record.last_modified : fetched.last_modified;
    outcome.digest = visit.digest == 0 ? visit.record.digest : visit.digest;
  }
  VisitNote note{.at = wall_now,
                 .name = visit.record.name,
                 .url = fetched.response.url,
                 .rule = visit.record.rule,
                 .status = fetched.response.status,
                 .succeeded = end != VisitEnd::failure,
                 .gave_up = decision.gave_up,
                 .fetched = visit.fetched - visit.began,
                 .processed = visit.read - visit.fetched,
                 .pages = asked,
                 .results = batch.results.size(),
                 .error = answer.failure ? answer.failure->text : std::string{}};
  outcome.track = track_of(note, answer.logs, answer.failure ? &*answer.failure : nullptr);
  change.outcome = std::move(outcome);
  finish(visit, decision, std::move(change), end, note.results, batch, now, wall_now);
  project->counters.took(ProjectCounters::Time::fetch, note.fetched, wall_now);
  project->counters.took(ProjectCounters::Time::process, note.processed, wall_now);
  if (visit.pass && end == VisitEnd::failure && (is_not_there(fetched.response.status) || fetched.is_refused)) {
    project->pause.give_back(*visit.pass);
  } else if (visit.pass) {
    project->pause.ended(*visit.pass, visit.host, end != VisitEnd::failure, wall_now);
  }
  submit(std::move(batch));
  places_.note_outcome();
  project->note(std::move(note));
  places_.leave(visit);
}

// The steps that all ends have in common: index, frontier, counters and round.
void VisitSettler::finish(PageVisit& visit, const VisitDecision& decision, PageChange change, VisitEnd end,
                          std::size_t results, PageBatch& batch, TimePoint now, WallTime wall_now) {
  using enum ProjectCounters::Count;
  LiveProject& project = *visit.project;
  const PageIndex::Number page = visit.ticket.page;
  const KnownPage before = project.index.known(page);
  const bool was_cancelled = before.state == PageState::cancelled;
  project.index.set(page, decision.page);
  project.recount(before, decision.page);
  project.visits.erase(page);
  const bool is_waiting = decision.page.state == PageState::waiting;
  const bool recrawls = is_waiting && decision.page.wait == PageWait::recrawl;
  if (!was_cancelled) {
    const bool succeeded = end != VisitEnd::failure;
    project.counters.count(succeeded ? success : is_waiting && !decision.gave_up ? retry : failed, wall_now);
    project.counters.gave(results);
    ++visits_;
    if (!succeeded) ++visits_failed_;
    if (decision.gave_up) ++given_up_;
    if (visit.round != 0 && project.round && project.round->number == visit.round) {
      ++project.round->pages;
      if (!succeeded) ++project.round->failed;
      project.round->results += results;
      project.round->fields = project.counts.fields;
      batch.rounds.push_back(*project.round);
    }
  }
  // A page that was given up comes again for its age's sake alone.
  if (project.is_in_round(page) && (!is_waiting || recrawls || decision.gave_up)) {
    project.in_round[page] = false;
    --project.outstanding;
  }
  change.round = project.round_of(page);
  batch.changes.push_back(std::move(change));
  rounds_.end_if_over(project, batch, wall_now);
  rounds_.tell_script(project, batch, wall_now);
  project.frontier->done(visit.ticket, now);
  project.is_changed = true;
}

// Not now, and no attempt: it waits as it did, until later.
void VisitSettler::put_off(PageVisit& visit, const ProcessorFailure& failure, TimePoint now, WallTime wall_now) {
  LiveProject& project = *visit.project;
  const PageIndex::Number page = visit.ticket.page;
  KnownPage known = project.index.known(page);
  PageBatch batch;
  batch.at = wall_now;
  if (known.state == PageState::visiting) {
    const bool again = known.again;
    if (!again) known = visit.before;
    known.state = PageState::waiting;
    known.again = false;
    known.due = saturating_add(wall_now, std::max(failure.delay.value_or(kUsualPutOff), kLeastPutOff));
    project.recount(project.index.known(page), known);
    project.index.set(page, known);
    batch.changes.push_back({.id = visit.record.id, .known = known, .round = project.round_of(page)});
  }
  project.visits.erase(page);
  project.frontier->done(visit.ticket, now);
  if (visit.pass) project.pause.give_back(*visit.pass);
  rounds_.end_if_over(project, batch, wall_now);
  if (batch.size() > 0) submit(std::move(batch));
  places_.leave(visit);
}

void VisitSettler::end_cancelled(PageVisit& visit) {
  LiveProject& project = *visit.project;
  const TimePoint now = core_.loop->time();
  const WallTime wall_now = wall();
  visit.is_over = true;
  if (visit.pass) project.pause.give_back(*visit.pass);
  project.visits.erase(visit.ticket.page);
  if (!core_.stopping && !project.is_gone) {
    PageBatch batch;
    batch.at = wall_now;
    const KnownPage known = project.index.known(visit.ticket.page);
    if (known.state == PageState::cancelled) {
      const VisitDecision decision =
          decide_visit_end(known, VisitEnd::failure, project.terms_of(visit.rule), wall_now, core_.random);
      project.index.set(visit.ticket.page, decision.page);
      batch.changes.push_back({.id = visit.record.id, .known = decision.page});
    } else {  // asked for once more since it was cancelled
      KnownPage waiting = known;
      waiting.state = PageState::waiting;
      waiting.again = false;
      project.index.set(visit.ticket.page, waiting);
    }
    rounds_.end_if_over(project, batch, wall_now);
    rounds_.tell_script(project, batch, wall_now);
    if (batch.size() > 0) submit(std::move(batch));
  }
  project.frontier->done(visit.ticket, now);
  places_.leave(visit);
}

void VisitSettler::end_unfetched(const SharedProject& project, const PageFrontier::Ticket& ticket, PageRecord record,
                                 Error why, TimePoint until, bool is_final) {
  const TimePoint now = core_.loop->time();
  const WallTime wall_now = wall();
  PageVisit visit{.project = project,
                  .ticket = ticket,
                  .record = std::move(record),
                  .rule = project->index.rule(ticket.page),
                  .round = project->round_of(ticket.page)};
  KnownPage known = project->index.known(ticket.page);
  known.state = PageState::visiting;
  known.again = false;
  if (is_final) use_up_retries(known);
  VisitDecision decision =
      decide_visit_end(known, VisitEnd::failure, project->terms_of(visit.rule), wall_now, core_.random);
  if (!is_final && until != kNever && decision.page.state == PageState::waiting) {
    decision.page.due = std::max(decision.page.due, wall_now + (until - now));
  }
  PageChange change{.id = visit.record.id, .known = decision.page};
  change.outcome = PageChange::Outcome{.status_code = visit.record.status_code,
                                       .crashes = visit.record.crashes,
                                       .etag = visit.record.etag,
                                       .last_modified = visit.record.last_modified,
                                       .digest = visit.record.digest,
                                       .error = first_of(why.message, kMostErrorText),
                                       .track = {}};
  if (!is_final) {
    const std::uint32_t host = project->index.host(ticket.page);
    if (const auto pass = project->pause.begin(wall_now)) project->pause.ended(*pass, host, false, wall_now);
  }
  PageBatch batch;
  batch.at = wall_now;
  finish(visit, decision, std::move(change), VisitEnd::failure, 0, batch, now, wall_now);
  submit(std::move(batch));
  project->note({.at = wall_now,
                 .name = visit.record.name,
                 .url = {},
                 .rule = visit.record.rule,
                 .gave_up = decision.gave_up,
                 .error = std::move(why.message)});
}

}  // namespace argiope

// The outcome of asks for pages: of links, of scripts and programs, of starts and messages; and their rounds.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/rules/internal/ask_words.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "project/run/internal/round_alarms.hpp"
#include "project/run/page_engine_impl.hpp"

namespace argiope {
Result<Url> url_to_visit(std::string_view address) {
  auto url = Url::parse(address);
  if (!url) return std::unexpected(Error{Errc::invalid_input, fmt::format("url {}: {}", in_quotes(address), url.error().message)});
  if (url->scheme() != "http" && url->scheme() != "https") {
    return std::unexpected(Error{Errc::invalid_input, fmt::format("url {}: only http, https and data URLs can be visited", in_quotes(address))});
  }
  return url;
}

namespace {

// Where a page is counted. A page that is visited because of its age is a success until that has ended.
std::optional<ProjectCounters::Count> place_of(const KnownPage& page) {
  using enum ProjectCounters::Count;
  switch (page.state) {
    case PageState::waiting:
    case PageState::visiting: return page.wait == PageWait::recrawl ? success : pending;
    case PageState::done: return success;
    case PageState::failed: return failed;
    case PageState::cancelled: break;
  }
  return std::nullopt;
}

}  // namespace

void PageEngine::Impl::recount(LiveProject& project, const std::optional<KnownPage>& before, const KnownPage& after) {
  const auto from = before ? place_of(*before) : std::nullopt;
  const auto to = place_of(after);
  if (from == to) return;
  if (from) project.counters.add_page(*from, -1);
  if (to) project.counters.add_page(*to);
}

AskDecision PageEngine::Impl::take(LiveProject& project, const Asking& asking, PageBatch& batch, WallTime now) {
  const std::uint64_t fingerprint = page_fingerprint(asking.name);
  const PageIndex::Number known_as = project.index.find(fingerprint);
  std::optional<KnownPage> known;
  if (known_as != 0) known = project.index.known(known_as);
  AskDecision decision = decide_ask(known ? &*known : nullptr, asking.ask, project.terms_of(asking.rule), now);
  switch (decision.verdict) {
    case AskVerdict::drop: return decision;
    case AskVerdict::add: {
      const std::uint32_t host = host_of(asking.url);
      const PageIndex::Number page = project.index.add(fingerprint, host, asking.rule, decision.page);
      enter_round(project, page, asking.round);
      PageRecord record{.id = project.id_of(page),
                        .fingerprint = fingerprint,
                        .host_id = host,
                        .name = std::string(asking.name),
                        .url = asking.url == asking.name ? std::string{} : std::string(asking.url),
                        .rule = project.rules[asking.rule].name,
                        .settings = std::string(asking.settings),
                        .context = std::string(asking.context),
                        .known = decision.page,
                        .round = project.is_in_round(page) ? asking.round : 0,
                        .from = asking.from};
      remember(record);
      batch.added.push_back(std::move(record));
      project.counters.count(ProjectCounters::Count::pending, now);
      recount(project, std::nullopt, decision.page);
      if (project.frontier) project.frontier->changed(page, loop_->time());
      break;
    }
    case AskVerdict::cancel: {
      project.index.set(known_as, decision.page);
      remembered_.erase(project.id_of(known_as));
      leave_round(project, known_as, batch, now);
      batch.changes.push_back({.id = project.id_of(known_as), .known = decision.page});
      recount(project, known, decision.page);
      if (const auto visit = project.visits.find(known_as); visit != project.visits.end()) {
        cancel(*visit->second);
      } else {
        if (project.frontier) project.frontier->changed(known_as, loop_->time());
        tell_script(project, batch, now);
      }
      break;
    }
    case AskVerdict::again:
    case AskVerdict::after:
    case AskVerdict::change: {
      const bool was_at_rest = known->state != PageState::waiting && known->state != PageState::visiting;
      if (was_at_rest) project.counters.count(ProjectCounters::Count::pending, now);
      recount(project, known, decision.page);
      project.index.set(known_as, decision.page);
      if (decision.verdict != AskVerdict::change || decision.page.wait != PageWait::recrawl) enter_round(project, known_as, asking.round);
      PageChange change{.id = project.id_of(known_as), .known = decision.page};
      // As long as it is visited, the store has it as one that waits: a crash has it visited again.
      if (change.known.state == PageState::visiting) change.known.state = PageState::waiting;
      change.round = project.round && project.is_in_round(known_as) ? project.round->number : 0;
      if (decision.takes_request) {
        project.index.set_rule(known_as, asking.rule);
        change.rule = project.rules[asking.rule].name;
        change.settings = std::string(asking.settings);
        change.context = std::string(asking.context);
        change.url = asking.url == asking.name ? std::string{} : std::string(asking.url);
      }
      remembered_.erase(change.id);
      if (read_flush_) changed_since_.insert(change.id);
      batch.changes.push_back(std::move(change));
      if (decision.page.state == PageState::waiting && project.frontier) project.frontier->changed(known_as, loop_->time());
      break;
    }
  }
  project.is_changed = true;
  activate(project);
  return decision;
}

Result<PageEngine::Impl::AskMeant> PageEngine::Impl::meant_by(LiveProject& project, const AskedPage& page, WallTime now) const {
  AskMeant meant{.url = page.url};
  std::string bare = page.url;
  if (!is_data_url(meant.url)) {
    auto url = url_to_visit(meant.url);
    if (!url) return std::unexpected(std::move(url.error()));
    meant.url = url->href();
    bare = usual_page_name(*std::move(url));
  }
  meant.name = page.name.empty() ? bare : page.name;
  if (!page.rule.empty()) {
    meant.rule = project.rule_number(page.rule);
  } else if (project.map && !project.definition.rules.empty() && !page.cancel) {
    const ProjectMap::Answer place = project.map->find(bare);
    meant.place = place.place;
    if (place.rule) meant.rule = project.rule_number(project.definition.rules[*place.rule].name());
  } else {
    const PageIndex::Number known_as = project.index.find(page_fingerprint(meant.name));
    meant.rule = known_as != 0 ? project.index.rule(known_as) : project.rule_number(kUsualRule);
  }
  meant.ask.own = own_terms_of(page.settings);
  if (page.settings.tag.value) meant.ask.tag = page_tag(*page.settings.tag.value);
  meant.ask.force_update = page.force;
  meant.ask.cancel = page.cancel;
  if (page.due_at) meant.ask.exetime = page.due_at;
  if (page.delay) meant.ask.exetime = *page.delay > WallTime::max() - now ? WallTime::max() : now + *page.delay;
  return meant;
}

Result<AskDecision> PageEngine::Impl::take_page(LiveProject& project, const AskedPage& page, std::int64_t round, PageId from, PageBatch& batch,
                                                WallTime now) {
  const auto meant = meant_by(project, page, now);
  if (!meant) return std::unexpected(meant.error());
  if (!meant->rule) return std::unexpected(Error{Errc::invalid_input, fmt::format("url {}: {}", in_quotes(page.url), in_words(meant->place))});
  const std::string settings = page.settings.is_empty() ? std::string{} : stored(page.settings);
  return take(project,
              {.name = meant->name,
               .url = meant->url,
               .rule = *meant->rule,
               .settings = settings,
               .context = page.context_json,
               .ask = meant->ask,
               .round = round,
               .from = from},
              batch, now);
}

void PageEngine::Impl::take_event(LiveProject& project, std::string_view name, std::string_view rule, std::string context, std::int64_t round,
                                  PageBatch& batch, WallTime now) {
  Asking asking{.name = name, .url = name, .rule = project.rule_number(rule), .context = context, .round = round};
  asking.ask.force_update = true;
  (void)take(project, asking, batch, now);
}

namespace {

Error no_project_for(const PageMessage& message) {
  return {Errc::not_found, fmt::format("there is no project {}", in_quotes(message.project))};
}

}  // namespace

Result<void> PageEngine::Impl::take_message_of_script(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now) {
  if (options_.may_send && !options_.may_send(from, message.project)) return std::unexpected(no_project_for(message));
  return take_message(from, message, batch, now);
}

Result<void> PageEngine::Impl::take_message(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now) {
  const auto found = projects_.find(message.project);
  if (found == projects_.end()) return std::unexpected(no_project_for(message));
  LiveProject& project = *found->second;
  const bool is_heard = !project.definition.processor.empty() && (!project.description || !project.description->on_message.empty());
  if (!is_heard) {
    return std::unexpected(Error{Errc::invalid_input, fmt::format("project {} takes no messages", in_quotes(message.project))});
  }
  const std::string rule = project.description ? project.description->on_message : std::string("on_message");
  const std::string context = json_object([&](JsonWriter& out) {
    out.member("project", from);
    out.key("message");
    out.raw(message.message_json.empty() ? std::string_view("null") : std::string_view(message.message_json));
  });
  const std::string name = page_of_message(message.url);
  Asking asking{.name = name, .url = name, .rule = project.rule_number(rule), .context = context};
  asking.ask.force_update = true;
  (void)take(project, asking, batch, now);
  return {};
}

// --- rounds ------------------------------------------------------------------------------------------------------------

std::int64_t PageEngine::Impl::begin_round(LiveProject& project, std::string cause, PageBatch& batch, WallTime now) {
  if (!project.round) {
    project.round = RoundRecord{.project = project.record.id, .number = ++project.last_round, .began = now, .cause = std::move(cause)};
    project.round_is_over.clear();
    project.counts = {};
    batch.rounds.push_back(*project.round);
  }
  return project.round->number;
}

void PageEngine::Impl::enter_round(LiveProject& project, PageIndex::Number page, std::int64_t round) {
  if (round == 0 || !project.round || project.round->number != round || project.is_in_round(page)) return;
  if (page >= project.in_round.size()) project.in_round.resize(std::max<std::size_t>(page + 1, project.in_round.size() * 2));
  project.in_round[page] = true;
  ++project.outstanding;
}

void PageEngine::Impl::leave_round(LiveProject& project, PageIndex::Number page, PageBatch& batch, WallTime now) {
  if (!project.is_in_round(page)) return;
  project.in_round[page] = false;
  --project.outstanding;
  // Of a visit that goes on, the end is the end.
  if (!project.visits.contains(page)) end_round_if_over(project, batch, now);
}

bool PageEngine::Impl::is_to_be_visited(const LiveProject& project, std::string_view name) {
  const PageIndex::Number page = project.index.find(page_fingerprint(name));
  if (page == 0) return false;
  const KnownPage known = project.index.known(page);
  return known.state == PageState::visiting || (known.state == PageState::waiting && known.wait != PageWait::recrawl);
}

// Of one round at a time: of the next one when the visit for the one before has come to its end. That it is told, and what tells it,
// are in one transaction, so that each is told once.
void PageEngine::Impl::tell_script(LiveProject& project, PageBatch& batch, WallTime now) {
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
      take_event(project, kFinishedPage, project.description->on_finished, context, 0, batch, now);
    }
    round.finished_told = true;
    batch.rounds.push_back(std::move(round));
  }
}

void PageEngine::Impl::end_round_if_over(LiveProject& project, PageBatch& batch, WallTime now) {
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
  ended_rounds_.push_back({.flush = 0, .project = project.record.name, .round = std::move(round), .alarms = std::move(alarms)});
}

}  // namespace argiope

#include "project/run/ask_desk.hpp"

#include <fmt/format.h>

#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/wall_time.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/rules/internal/ask_words.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "project/run/page_visit.hpp"
#include "project/run/round_desk.hpp"

namespace argiope {

AskDecision AskDesk::take(LiveProject& project, const Asking& asking, PageBatch& batch, WallTime now) {
  const std::uint64_t fingerprint = page_fingerprint(asking.name);
  const PageIndex::Number known_as = project.index.find(fingerprint);
  std::optional<KnownPage> known;
  if (known_as != 0) known = project.index.known(known_as);
  AskDecision decision = decide_ask(known ? &*known : nullptr, asking.ask, project.terms_of(asking.rule), now);
  switch (decision.verdict) {
    case AskVerdict::drop: return decision;
    case AskVerdict::add: {
      const std::uint32_t host = hosts_.host_of(asking.url);
      const PageIndex::Number page = project.index.add(fingerprint, host, asking.rule, decision.page);
      project.enter_round(page, asking.round);
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
      rows_.remember(record);
      batch.added.push_back(std::move(record));
      project.counters.count(ProjectCounters::Count::pending, now);
      project.recount(std::nullopt, decision.page);
      if (project.frontier) project.frontier->changed(page, core_.loop->time());
      break;
    }
    case AskVerdict::cancel: {
      project.index.set(known_as, decision.page);
      rows_.forget(project.id_of(known_as));
      rounds_.leave(project, known_as, batch, now);
      batch.changes.push_back({.id = project.id_of(known_as), .known = decision.page});
      project.recount(known, decision.page);
      if (const auto visit = project.visits.find(known_as); visit != project.visits.end()) {
        visit->second->cancel();
      } else {
        if (project.frontier) project.frontier->changed(known_as, core_.loop->time());
        rounds_.tell_script(project, batch, now);
      }
      break;
    }
    case AskVerdict::again:
    case AskVerdict::after:
    case AskVerdict::change: {
      const bool was_at_rest = known->state != PageState::waiting && known->state != PageState::visiting;
      if (was_at_rest) project.counters.count(ProjectCounters::Count::pending, now);
      project.recount(known, decision.page);
      project.index.set(known_as, decision.page);
      if (decision.verdict != AskVerdict::change || decision.page.wait != PageWait::recrawl)
        project.enter_round(known_as, asking.round);
      PageChange change{.id = project.id_of(known_as), .known = decision.page};
      // As long as it is visited, the store has it as one that waits: a crash has it visited again.
      if (change.known.state == PageState::visiting) change.known.state = PageState::waiting;
      change.round = project.round_of(known_as);
      if (decision.takes_request) {
        project.index.set_rule(known_as, asking.rule);
        change.rule = project.rules[asking.rule].name;
        change.settings = std::string(asking.settings);
        change.context = std::string(asking.context);
        change.url = asking.url == asking.name ? std::string{} : std::string(asking.url);
      }
      rows_.note_change(change.id);
      batch.changes.push_back(std::move(change));
      if (decision.page.state == PageState::waiting && project.frontier)
        project.frontier->changed(known_as, core_.loop->time());
      break;
    }
  }
  project.is_changed = true;
  turns_.activate(project);
  return decision;
}

Result<AskDesk::AskMeant> AskDesk::meant_by(LiveProject& project, const AskedPage& page, WallTime now) {
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
  if (page.delay) meant.ask.exetime = saturating_add(now, *page.delay);
  return meant;
}

Result<AskDecision> AskDesk::take_page(LiveProject& project, const AskedPage& page, std::int64_t round, PageId from,
                                       PageBatch& batch, WallTime now) {
  const auto meant = meant_by(project, page, now);
  if (!meant) return std::unexpected(meant.error());
  if (!meant->rule)
    return fail(Errc::invalid_input, fmt::format("url {}: {}", in_quotes(page.url), in_words(meant->place)));
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

void AskDesk::take_event(LiveProject& project, std::string_view name, std::string_view rule, std::string context,
                         std::int64_t round, PageBatch& batch, WallTime now) {
  Asking asking{.name = name, .url = name, .rule = project.rule_number(rule), .context = context, .round = round};
  asking.ask.force_update = true;
  (void)take(project, asking, batch, now);
}

Result<void> AskDesk::take_message_of_script(std::string_view from, const PageMessage& message, PageBatch& batch,
                                             WallTime now) {
  if (options_.may_send && !options_.may_send(from, message.project))
    return PageEngineCore::no_project(message.project);
  return take_message(from, message, batch, now);
}

Result<void> AskDesk::take_message(std::string_view from, const PageMessage& message, PageBatch& batch, WallTime now) {
  auto found = core_.need(message.project);
  if (!found) return std::unexpected(std::move(found.error()));
  LiveProject& project = **found;
  const bool is_heard =
      !project.definition.processor.empty() && (!project.description || !project.description->on_message.empty());
  if (!is_heard) {
    return fail(Errc::invalid_input, fmt::format("project {} takes no messages", in_quotes(message.project)));
  }
  const std::string rule = project.description ? project.description->on_message : std::string("on_message");
  std::string context = json_object([&](JsonWriter& out) {
    out.member("project", from);
    out.key("message");
    out.raw(message.message_json.empty() ? std::string_view("null") : std::string_view(message.message_json));
  });
  take_event(project, page_of_message(message.url), rule, std::move(context), 0, batch, now);
  return {};
}

}  // namespace argiope

#include "project/run/visit_starter.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "project/rules/internal/page_reasons.hpp"

namespace argiope {

bool VisitStarter::try_start(const SharedProject& project, PageFrontier::Ticket ticket, PageRecord record,
                             TimePoint now) {
  const KnownPage known = project->index.known(ticket.page);
  if (known.state != PageState::waiting || !project->may_visit()) {  // cancelled, or stopped, since it was taken
    project->frontier->done(ticket, now);
    return false;
  }
  const std::string& address = record.address();
  const bool is_asked = !is_data_url(address);
  const auto url = is_asked ? url_to_visit(address) : Result<Url>();
  if (!url) {
    settler_.end_unfetched(project, ticket, std::move(record), url.error(), now, true);
    return false;
  }
  // An ask may have given a page of this name another URL.
  if (const std::uint32_t its_host = is_asked ? hosts_.host_of(*url) : hosts_.host_of(address);
      its_host != ticket.host) {
    project->index.set_host(ticket.page, its_host);
    project->frontier->put_back(ticket, now);
    rows_.remember(std::move(record));
    return false;
  }
  if (project->has_lost_its_rule(ticket.page)) {
    const ProjectMap::Answer place =
        url ? project->map->find(url->href()) : ProjectMap::Answer{ProjectMap::Place::no_rule, {}};
    if (!is_asked || !place.rule) {
      settler_.end_unfetched(
          project, ticket, std::move(record),
          {Errc::not_found, fmt::format("no rule of the project takes this page: it was asked for by a rule {}",
                                        in_quotes(record.rule))},
          now, true);
      return false;
    }
    take_over(*project, ticket.page, record, *place.rule);
  }
  const RuleNumber rule = project->index.rule(ticket.page);
  PageSettings settings = project->rules[rule].settled;
  if (!record.settings.empty()) {
    if (const auto own = read_settings(record.settings))
      settings = settled(merged(*own, project->rules[rule].settings, {}));
  }
  std::uint32_t host = 0;
  std::optional<VisitPass> pass;
  if (is_asked) {
    host = hosts_.host_of(*url);
    const bool heeds = settings.request.robots.value.value_or(true);
    const HostDesk::Answer answer =
        hosts_.desk().begin(host, *url, heeds, settings.request.verify_certificate.value.value_or(true));
    switch (answer.leave) {
      case HostDesk::Leave::go: break;
      case HostDesk::Leave::wait: {
        project->frontier->put_back(ticket, now);
        project->frontier->rest(ticket.host, std::max(answer.until, now + std::chrono::milliseconds{1}), now);
        turns_.wait_for_host(*project, host);
        rows_.remember(std::move(record));
        return false;
      }
      case HostDesk::Leave::forbidden:
        settler_.end_unfetched(project, ticket, std::move(record), {Errc::refused, std::string(kForbiddenByRobots)},
                               now, true);
        return false;
      case HostDesk::Leave::lost:
        settler_.end_unfetched(project, ticket, std::move(record), answer.why, answer.until, answer.is_refused);
        return false;
    }
    pass = project->pause.begin(wall());
    if (!pass) {
      hosts_.desk().give_back(host);
      project->frontier->put_back(ticket, now);
      rows_.remember(std::move(record));
      return false;
    }
  }
  PageVisit& visit = places_.enter({.project = project,
                                    .ticket = ticket,
                                    .record = std::move(record),
                                    .before = known,
                                    .rule = rule,
                                    .host = host,
                                    .pass = pass,
                                    .settings = std::move(settings),
                                    .round = project->round_of(ticket.page),
                                    .began = now});
  KnownPage visiting = known;
  visiting.state = PageState::visiting;
  visiting.again = false;
  project->index.set(ticket.page, visiting);
  project->visits.emplace(ticket.page, &visit);
  visit.task = core_.loop->create_task(this->visit(visit), "page");
  return true;
}

// The page was asked for under a rule that a new version of the project has not: it goes on under one that it has.
void VisitStarter::take_over(LiveProject& project, PageIndex::Number page, PageRecord& record, std::size_t place) {
  record.rule = project.definition.rules[place].name();
  project.index.set_rule(page, project.rule_number(record.rule));
  PageBatch batch;
  batch.at = wall();
  PageChange change{.id = record.id, .known = project.index.known(page), .round = project.round_of(page)};
  change.rule = record.rule;
  batch.changes.push_back(std::move(change));
  submit(std::move(batch));
}

Coro<void> VisitStarter::visit(PageVisit& visit) {
  visit.has_begun = true;
  if (visit.is_cancelled) {
    if (visit.host != 0) hosts_.desk().give_back(visit.host);
    settler_.end_cancelled(visit);
    co_return;
  }
  bool cancelled = false;
  std::string thrown;
  try {
    co_await visit_now(visit);
  } catch (const CancelledError&) {
    cancelled = visit.is_cancelled;
    if (!cancelled) thrown = "its processor has cancelled it";
  } catch (const std::exception& error) {
    thrown = *error.what() != '\0' ? error.what() : "an error without words";
  } catch (...) {
    thrown = "an error without words";
  }
  if (!thrown.empty() && !visit.is_over) {
    spdlog::error("{}: {}", visit.record.name, thrown);
    VisitAnswer answer;
    answer.failure = ProcessorFailure{.text = thrown};
    settler_.settle(visit, {}, std::move(answer), nullptr, VisitEnd::failure);
  }
  if (cancelled && !visit.is_over) settler_.end_cancelled(visit);
}

Coro<void> VisitStarter::visit_now(PageVisit& visit) {
  FetchedAnswer fetched = co_await reader_.fetch(visit);
  VisitReader::ReadPage read = co_await reader_.read_page(visit, fetched);
  visit.read = core_.loop->time();
  visit.digest = fetched.response.body.empty() ? 0 : std::max<std::uint64_t>(fingerprint(fetched.response.body), 1);
  const bool is_same = fetched.is_unchanged || (visit.digest != 0 && visit.digest == visit.record.digest);
  const VisitEnd end = read.answer.failure ? VisitEnd::failure : is_same ? VisitEnd::unchanged : VisitEnd::success;
  settler_.settle(visit, fetched, std::move(read.answer), read.reading ? &*read.reading : nullptr, end);
}

}  // namespace argiope

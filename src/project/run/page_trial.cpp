#include "project/run/internal/page_trial.hpp"

#include <unordered_map>
#include <utility>

#include "project/process/internal/rule_reader.hpp"

namespace argiope {
namespace {

TrialAsk ask_for(const ProjectDefinition& project, const ProjectMap& map, std::string_view url, const FindUrl& find,
                 WallTime now) {
  TrialAsk ask{.answer = map.find(url), .decision = {}};
  if (!ask.answer.rule) return ask;
  const std::optional<KnownPage> known = find(url);
  ask.decision = decide_ask(known ? &*known : nullptr, Ask{}, project.rules[*ask.answer.rule].terms, now);
  return ask;
}

Result<void> extract_into(PageTrial& trial, const ExtractionRule& rule, const FetchedPage& page) {
  const auto extractor = compile_fields(rule);
  if (!extractor) return std::unexpected(extractor.error());
  trial.columns = extractor->columns();
  auto extracted = extract_fields(*extractor, {.url = page.url,
                                               .body = page.body,
                                               .content_type = page.content_type,
                                               .status = page.status,
                                               .fetched_at = page.fetched_at});
  if (extracted) {
    trial.extracted = std::move(*extracted);
  } else {
    trial.not_extracted = std::move(extracted.error());
  }
  return {};
}

}  // namespace

Result<PageTrial> try_page(const ProjectDefinition& project, const ProjectMap& map, const Url& asked,
                           const FetchedPage* page, const FindUrl& find, WallTime now) {
  PageTrial trial{.ask = ask_for(project, map, asked.href(), find, now)};
  if (page == nullptr) return trial;
  const std::optional<std::size_t> place = trial.ask.answer.rule;
  if (place && page->status == 200 && !project.rules[*place].extraction.fields.empty()) {
    if (auto done = extract_into(trial, project.rules[*place].extraction, *page); !done)
      return std::unexpected(done.error());
  }
  std::unordered_map<std::string_view, std::size_t> places;
  for (const PageLink& link : page->links) {
    const auto [found, is_new] = places.try_emplace(link.url, trial.links.size());
    if (!is_new) {
      ++trial.links[found->second].times;
      continue;
    }
    TrialLink& one = trial.links.emplace_back();
    one.url = link.url;
    one.kind = link.kind;
    one.nofollow = link.nofollow;
    one.is_followed = place && !link.nofollow && map.follows(*place, link.url);
    one.ask = ask_for(project, map, link.url, find, now);
  }
  return trial;
}

std::optional<KnownPage> known_page_of(const UrlRecord& record) {
  KnownPage page{.priority = record.priority, .due = record.due};
  const bool was_asked = record.mtime != WallTime{};
  page.ended_at = record.mtime;
  switch (record.state) {
    case UrlState::queued:
      page.retried = record.attempts;
      if (was_asked && record.attempts > 0) page.wait = PageWait::retry;
      return page;
    case UrlState::done:
      page.state = PageState::done;
      page.succeeded_at = record.mtime;
      page.due = {};
      return page;
    case UrlState::failed:
      page.state = PageState::failed;
      page.due = {};
      return page;
    case UrlState::excluded: break;
  }
  return std::nullopt;
}

}  // namespace argiope

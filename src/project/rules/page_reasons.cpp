#include "project/rules/internal/page_reasons.hpp"

#include <fmt/format.h>

#include "project/rules/internal/ask_words.hpp"

namespace argiope {

PageReason why_at_rest(const KnownPage& page, const PageTerms& terms, WallTime now, std::string_view error) {
  if (page.state == PageState::visiting) return {"visiting", "it is being visited"};
  const AskDecision ask = decide_ask(&page, {}, terms, now);
  PageReason why{"cancelled", "it was cancelled"};
  if (page.state == PageState::failed) {
    why = error == kForbiddenByRobots ? PageReason{"robots", std::string(error)}
                                      : PageReason{"given_up", "its last visits failed"};
    if (why.reason == "given_up" && !error.empty()) why.words += fmt::format(": {}", error);
  }
  if (page.state == PageState::done) why = {"fresh", "it is done, and waits to be asked for"};
  why.words += fmt::format("; asked for now it would be: {}", in_words(ask));
  if (ask.until != WallTime{} && ask.until != WallTime::max()) why.until = ask.until;
  return why;
}

std::optional<PageReason> why_not_due(const KnownPage& page, WallTime now, std::string_view error) {
  if (page.due <= now) return std::nullopt;
  switch (page.wait) {
    case PageWait::retry: {
      const std::string how = error.empty() ? std::string{} : fmt::format(" ({})", error);
      return PageReason{"not_due", fmt::format("it has failed{}, and is tried again then", how), page.due};
    }
    case PageWait::recrawl: return PageReason{"not_due", "it is visited again when it is old enough", page.due};
    case PageWait::visit: break;
  }
  return PageReason{"not_due", "it was asked for then", page.due};
}

PageReason why_unknown(const ProjectDefinition& project, const ProjectMap& map, const std::optional<std::string>& url) {
  if (!url) return {to_string(ProjectMap::Place::no_page), "it is not known, and no URL"};
  const ProjectMap::Answer place = map.find(*url);
  if (!project.rules.empty() && !place.rule) return {to_string(place.place), std::string(in_words(place.place))};
  return {"unknown", "it is not known: nothing has led to it yet"};
}

PageReason why_stopped(ProjectStatus status) {
  return {"project_stopped", fmt::format("its project is {}", to_string(status))};
}

PageReason why_standing(const std::string& trouble) {
  return {"project_standing", trouble.empty() ? "its project's processor has not said yet what it is"
                                              : "its project stands still: " + trouble};
}

PageReason why_paused(std::optional<WallTime> until) {
  return {"project_paused", "visits of its project kept failing: it pauses", until};
}

PageReason why_probing(std::optional<WallTime> until) {
  return {"probing", "its project tries a few visits first, after many that failed", until};
}

}  // namespace argiope

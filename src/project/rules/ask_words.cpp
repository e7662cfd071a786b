#include "project/rules/internal/ask_words.hpp"

#include <fmt/format.h>

#include "base/internal/rfc3339.hpp"

namespace argiope {
namespace {

std::string at_second(WallTime time) { return to_rfc3339(std::chrono::floor<std::chrono::seconds>(time)); }

std::string_view reason_in_words(AskReason reason) {
  switch (reason) {
    case AskReason::is_new: return "new";
    case AskReason::tag_changed: return "its tag has changed";
    case AskReason::too_old: return "older than its age";
    case AskReason::forced: return "forced";
    case AskReason::has_failed: return "it has failed, and rested since";
    case AskReason::raised: return "its priority is raised";
    case AskReason::hastened: return "its time is earlier";
    case AskReason::terms_changed: return "its terms change";
    case AskReason::cancelled: return "cancelled";
    case AskReason::is_fresh: return "fresh";
    case AskReason::has_rested_too_little: return "has failed, and rests";
    case AskReason::waits: return "waits already";
    case AskReason::is_visited: return "is visited now";
    case AskReason::is_unknown: return "nothing to cancel: it is not known";
    case AskReason::is_at_rest: return "nothing to cancel: it does not wait";
    case AskReason::was_cancelled: return "was cancelled";
  }
  return "";
}

}  // namespace

std::string in_words(const AskDecision& decision) {
  const std::string_view reason = reason_in_words(decision.reason);
  switch (decision.verdict) {
    case AskVerdict::add:
      return decision.page.due == WallTime{}
                 ? std::string(reason)
                 : fmt::format("{}, visited from {} on", reason, at_second(decision.page.due));
    case AskVerdict::again: return fmt::format("visited again: {}", reason);
    case AskVerdict::after: return fmt::format("visited once more: {}", reason);
    case AskVerdict::change: return fmt::format("waits already; {}", reason);
    case AskVerdict::cancel:
    case AskVerdict::drop: break;
  }
  if (decision.until == WallTime{}) return std::string(reason);
  if (decision.until == WallTime::max()) return fmt::format("{} for ever", reason);
  return fmt::format("{} until {}", reason, at_second(decision.until));
}

std::string in_words(ProjectMap::Place place) {
  switch (place) {
    case ProjectMap::Place::page: return "a page";
    case ProjectMap::Place::no_rule: return "no rule matches it";
    case ProjectMap::Place::off_scope: return "out of scope";
    case ProjectMap::Place::no_page: return "neither http nor https";
  }
  return "";
}

}  // namespace argiope

#include "crawl/scope/url_change.hpp"

#include "argiope/web/http_client.hpp"

namespace argiope {
namespace {

// A redirect to nowhere is as good as none.
AnswerClass answer_class(UrlState state, int status, std::string_view error) noexcept {
  if (state == UrlState::failed) return AnswerClass::broken;
  if (is_redirect(status) && !error.empty()) return AnswerClass::broken;
  return class_of_status(status);
}

std::optional<UrlChangeKind> kind_of(AnswerClass before, AnswerClass after) noexcept {
  const bool was_there = before == AnswerClass::good || before == AnswerClass::redirect;
  switch (after) {
    case AnswerClass::good: return was_there ? UrlChangeKind::changed : UrlChangeKind::mended;
    case AnswerClass::redirect: return was_there ? UrlChangeKind::moved : UrlChangeKind::mended;
    case AnswerClass::gone: return was_there ? std::optional(UrlChangeKind::gone) : std::nullopt;
    case AnswerClass::broken: return was_there ? std::optional(UrlChangeKind::broken) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

AnswerClass class_of_status(int status) noexcept {
  if (status == 404 || status == 410) return AnswerClass::gone;
  if (status == 0 || status >= 400) return AnswerClass::broken;
  return status != 304 && is_redirect(status) ? AnswerClass::redirect : AnswerClass::good;
}

std::optional<UrlChange> change_between(const UrlRecord& before, const UrlOutcome& after) {
  const bool was_answered =
      before.state == UrlState::failed || (before.status_code != 0 && before.state != UrlState::excluded);
  if (!was_answered || (after.state != UrlState::done && after.state != UrlState::failed)) return std::nullopt;
  const AnswerClass was = answer_class(before.state, before.status_code, before.error);
  const AnswerClass is = after.not_modified && after.state == UrlState::done
                             ? AnswerClass::good
                             : answer_class(after.state, after.status_code, after.error);
  if (was == is) {
    const bool same_target = was == AnswerClass::redirect && before.redirect_to == after.redirect_to;
    // A URL that was only asked by HEAD has no digest, and an empty body none either.
    const bool same_content = was == AnswerClass::good && (after.not_modified || before.digest.empty() ||
                                                           after.digest.empty() || before.digest == after.digest);
    if (same_target || same_content || (was != AnswerClass::good && was != AnswerClass::redirect)) return std::nullopt;
  }
  const auto kind = kind_of(was, is);
  if (!kind) return std::nullopt;
  UrlChange change;
  change.url_id = after.url_id;
  change.at = after.mtime;
  change.kind = *kind;
  change.status_before = before.state == UrlState::failed && before.status_code < 400 ? 0 : before.status_code;
  change.status_after = after.not_modified ? 304 : after.status_code;
  change.detail = is == AnswerClass::redirect ? after.redirect_to
                  : is == AnswerClass::broken ? after.error
                                              : std::string{};
  return change;
}

UrlOutcome as_it_was(const UrlRecord& record) {
  UrlOutcome outcome;
  outcome.url_id = record.url_id;
  outcome.state = record.state;
  outcome.mtime = record.mtime;
  outcome.due = record.due;
  outcome.status_code = record.status_code;
  outcome.attempts = record.attempts;
  outcome.not_modified = true;
  outcome.redirect_to = record.redirect_to;
  outcome.error = record.error;
  return outcome;
}

}  // namespace argiope

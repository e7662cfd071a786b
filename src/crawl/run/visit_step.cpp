#include "crawl/run/visit_step.hpp"

#include "crawl/hosts/internal/host_question.hpp"

namespace argiope {
namespace {

constexpr std::uint8_t kMostUrlChallenges = 5;  // that are answered for one URL

// Whether a failure may pass, so that another attempt makes sense.
struct FailurePolicy {
  Errc code;
  bool retry;
};
constexpr FailurePolicy kFailurePolicies[] = {
    {Errc::timeout, true},  {Errc::network, true},        {Errc::dns, true},        {Errc::tls, false},
    {Errc::protocol, true}, {Errc::too_large, false},     {Errc::refused, false},   {Errc::unsupported, false},
    {Errc::corrupt, false}, {Errc::invalid_input, false}, {Errc::not_found, false},
};

bool can_pass(Errc failure) noexcept {
  for (const FailurePolicy& policy : kFailurePolicies) {
    if (policy.code == failure) return policy.retry;
  }
  return true;
}

// Whether HEAD may have been answered so and GET be answered otherwise: many servers refuse or do not know HEAD. A plea
// for patience is believed.
constexpr bool proves_nothing_of_get(int status) noexcept { return status >= 400 && !is_plea(status); }

constexpr UrlAsk after_head(Purpose purpose) noexcept { return is_only_checked(purpose) ? UrlAsk::get : UrlAsk::page; }

// --- conditions of rows ----------------------------------------------------------------------------------------------

bool is_challenged(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return answer.is_challenge && asked.challenges < kMostUrlChallenges;
}
bool is_refused_to_head(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return asked.ask == UrlAsk::head && proves_nothing_of_get(answer.status);
}
// Asked by HEAD for what its name says.
bool is_wanted_after_all(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return asked.ask == UrlAsk::head && !is_only_checked(asked.purpose) && answer.status >= 200 && answer.status < 300 &&
         !answer.is_unwanted;
}
bool lacks_its_body(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  const bool is_in_part = asked.ask == UrlAsk::head || (asked.ask == UrlAsk::get && answer.is_truncated);
  return answer.is_worth_reading && is_in_part;
}
bool is_pleading(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return is_temporary(answer.status) && !asked.is_last_attempt;
}
bool ended_too_early(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return answer.is_damaged && !asked.is_last_attempt;
}
bool may_succeed_later(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return answer.failure && can_pass(*answer.failure) && !asked.is_last_attempt;
}
bool has_failed(const VisitRequest&, const VisitAnswer& answer) noexcept { return answer.failure.has_value(); }
bool counts_as_failure(const VisitRequest&, const VisitAnswer& answer) noexcept {
  return is_temporary(answer.status) || (answer.status == 304 && !answer.is_unchanged);
}
// Some servers do to HEAD what they would not do to GET.
bool is_lost_by_head(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return asked.ask == UrlAsk::head && answer.failure && is_of_server(*answer.failure);
}
bool is_given_up_by_head(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return is_lost_by_head(asked, answer) && asked.is_last_attempt;
}
bool may_succeed_by_get(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  return is_lost_by_head(asked, answer) && may_succeed_later(asked, answer);
}
bool always(const VisitRequest&, const VisitAnswer&) noexcept { return true; }

// --- the rows --------------------------------------------------------------------------------------------------------

enum class Then : std::uint8_t { same, after_head, body };

struct StepRow {
  bool (*applies)(const VisitRequest&, const VisitAnswer&) noexcept;
  VisitStep step;
  Then then = Then::same;
};

constexpr StepRow kRowsOfAnswers[] = {
    {is_challenged, VisitStep::again},
    {is_refused_to_head, VisitStep::instead, Then::after_head},
    {is_wanted_after_all, VisitStep::instead, Then::after_head},
    {lacks_its_body, VisitStep::instead, Then::body},
    {is_pleading, VisitStep::retry},
    {ended_too_early, VisitStep::retry},
    {may_succeed_later, VisitStep::retry},  // its page could not be rendered
    {has_failed, VisitStep::give_up},       // nor can it be
    {counts_as_failure, VisitStep::fail},
    {always, VisitStep::settle},
};

constexpr StepRow kRowsWithoutAnswer[] = {
    // A URL is not given up before it was asked by GET.
    {is_given_up_by_head, VisitStep::instead, Then::after_head},
    {may_succeed_by_get, VisitStep::retry, Then::after_head},
    {may_succeed_later, VisitStep::retry},
    {always, VisitStep::give_up},
};

UrlAsk ask_then(const StepRow& row, const VisitRequest& asked) noexcept {
  switch (row.then) {
    case Then::after_head: return after_head(asked.purpose);
    case Then::body: return UrlAsk::body;
    case Then::same: break;
  }
  return asked.ask;
}

template <std::size_t N>
NextStep first_that_applies(const StepRow (&rows)[N], const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  for (const StepRow& row : rows) {
    if (row.applies(asked, answer)) return {row.step, ask_then(row, asked)};
  }
  return {VisitStep::settle, asked.ask};
}

}  // namespace

UrlReason reason_of(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::page: break;
    case Purpose::requisite:
    case Purpose::part: return UrlReason::requisite;
    case Purpose::sitemap: return UrlReason::sitemap;
    case Purpose::link: return UrlReason::checked;
    case Purpose::asset: return UrlReason::asset;
  }
  return UrlReason::none;
}

UrlAsk first_ask(Purpose purpose, bool looks_unwanted) noexcept {
  const bool by_head = is_only_checked(purpose) || (purpose == Purpose::page && looks_unwanted);
  return by_head ? UrlAsk::head : UrlAsk::page;
}

NextStep next_step(const VisitRequest& asked, const VisitAnswer& answer) noexcept {
  if (answer.status == 0) return first_that_applies(kRowsWithoutAnswer, asked, answer);
  NextStep next = first_that_applies(kRowsOfAnswers, asked, answer);
  // The first bytes were all that there is.
  if (asked.ask == UrlAsk::get && answer.is_worth_reading && next.step != VisitStep::again) next.ask = UrlAsk::body;
  return next;
}

Purpose purpose_among_requisites(Purpose purpose, RequisiteBook::Part known) noexcept {
  if (known == RequisiteBook::Part::page && purpose == Purpose::requisite) return Purpose::page;
  return known == RequisiteBook::Part::requisite ? Purpose::requisite : purpose;
}

Purpose purpose_among_checks(Purpose purpose, bool is_linked, bool is_in_scope) noexcept {
  if (!is_linked || !is_asset(purpose)) return purpose;
  return is_in_scope ? Purpose::page : Purpose::link;
}

}  // namespace argiope

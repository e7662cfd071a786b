// The outcome of an ask for a page, and of a visit that has ended: pure functions of what is known, what is asked, what
// the rule says and what time it is. docs/projects.md has the table; tests/project/decide_ask_test.cpp holds it.
//
// Source: pyspider's scheduler (on_request, on_old_request, on_task_done, on_task_failed), less its faults
//         (docs/from-pyspider.md, "Pages").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"
#include "project/rules/internal/known_page.hpp"
#include "project/rules/internal/page_terms.hpp"

namespace argiope {

// The schedule of pyspider's self.crawl(); what is not given is as the rule says.
struct Ask {
  OwnTerms own;
  PageTag tag = 0;                  // 0: the rule's
  std::optional<WallTime> exetime;  // not before; nullopt: at once, and what waits already is not hastened
  bool force_update = false;        // whatever its age and tag, and also while it is visited
  bool cancel = false;              // take it back; before all else
};

enum class AskVerdict : std::uint8_t {
  drop,    // nothing happens
  add,     // a new page
  again,   // a known page at rest is visited again
  after,   // a page that is visited now is visited once more afterwards
  change,  // it waits already, and is changed
  cancel,  // it waits no more; a visit under way is stopped
};
std::string_view to_string(AskVerdict verdict) noexcept;

enum class AskReason : std::uint8_t {
  // add
  is_new,
  // again, after, change
  tag_changed,
  too_old,  // it was fetched longer ago than its age
  forced,
  has_failed,  // its last visits failed, and it has rested since
  // change
  raised,    // a higher priority
  hastened,  // an earlier time
  terms_changed,
  // cancel
  cancelled,
  // drop
  is_fresh,               // until AskDecision::until
  has_rested_too_little,  // its last visits failed; it rests until AskDecision::until
  waits,                  // already, and nothing about it changes
  is_visited,             // right now
  is_unknown,             // there is nothing to cancel
  is_at_rest,             // the same: it is known, and does not wait
  was_cancelled,          // its rule has no age, and it was cancelled
};
std::string_view to_string(AskReason reason) noexcept;

struct AskDecision {
  AskVerdict verdict = AskVerdict::drop;
  AskReason reason = AskReason::waits;
  KnownPage page;              // as it is afterwards; of a drop as it was
  bool takes_request = false;  // the request that came with the ask (method, headers, data …) replaces the page's
  WallTime until{};            // of is_fresh and has_rested_too_little; WallTime::max(): for ever

  friend bool operator==(const AskDecision&, const AskDecision&) = default;
};

// `known`: null for a page of which nothing is known.
AskDecision decide_ask(const KnownPage* known, const Ask& ask, const PageTerms& rule, WallTime now);

// An ask among others. A page is known by its project and its name together.
struct PageAsk {
  std::string_view project;
  std::string_view name;
  Ask ask;
  const PageTerms* rule = nullptr;
};
// One decision for each of `asks`, in their order, where later ones find what earlier ones have made of their page. Of
// several for one page the last decision has what the store keeps.
// `find(project, name)`: what is known before the first of them.
using FindPage = std::function<std::optional<KnownPage>(std::string_view project, std::string_view name)>;
std::vector<AskDecision> decide_asks(std::span<const PageAsk> asks, const FindPage& find, WallTime now);

// A visit that has ended.
enum class VisitEnd : std::uint8_t {
  success,    // for the first time, or with another content
  unchanged,  // as it was: 304, or the same content
  failure,
};
struct VisitDecision {
  KnownPage page;
  bool gave_up = false;  // it has failed, and no retry is left
};
// Leaves the page no retry, whatever its rule says: a visit that ends as a failure is its last.
void use_up_retries(KnownPage& page) noexcept;
// `known` is visiting, or was cancelled meanwhile; else the visit is stale, and nothing changes. `random` is for
// retry_delay's jitter.
VisitDecision decide_visit_end(const KnownPage& known, VisitEnd end, const PageTerms& rule, WallTime now,
                               Random& random);

// A page as its rule, which has changed, has it: one that waits for its recrawl is due at its new age, or waits no
// more.
KnownPage under_rule(KnownPage page, const PageTerms& rule);

}  // namespace argiope

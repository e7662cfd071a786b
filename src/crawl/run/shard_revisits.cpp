// When what was fetched is fetched again, and what has changed about it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "crawl/run/shard.hpp"
#include "crawl/scope/url_change.hpp"

namespace argiope {
namespace {

constexpr Duration kLostHostRests = std::chrono::hours{1};

}  // namespace

void Crawler::Shard::note_change(const Visit& visit, UrlBatch& batch) {
  if (auto change = change_between(*visit.before, batch.outcomes.front())) batch.changes.push_back(std::move(*change));
}

// What is left out is counted as it stands in the end: what this visit has found was counted by those who found it.
void Crawler::Shard::recount(const Visit& visit, const UrlBatch& batch) {
  if (!visit.before || visit.before->reason == UrlReason::none || visit.before->state == UrlState::failed) return;
  const bool stays = batch.outcomes.empty() || (batch.outcomes.front().not_modified && batch.outcomes.front().state != UrlState::failed);
  const bool was_counted = task_of(visit).settled;
  if (stays != was_counted) shared_.count_left_out(visit.before->reason, stays ? 1 : -1);
}

// The task of a URL that was settled begins anew, when it is due.
std::optional<TimePoint> Crawler::Shard::plan_next_visit(Visit& visit, UrlBatch& batch, TimePoint now) {
  UrlTask& task = task_of(visit);
  const bool is_one = !batch.outcomes.empty() && batch.outcomes.front().url_id == task.id &&
                      !is_only_checked(task.purpose) &&
                      (batch.outcomes.front().state == UrlState::done || batch.outcomes.front().state == UrlState::failed);
  if (!is_one) {
    if (std::exchange(task.rotates, false)) shared_.rotating.fetch_sub(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  UrlOutcome& outcome = batch.outcomes.front();
  const bool failed = outcome.state == UrlState::failed;
  const bool was_answered = visit.before && visit.before->status_code != 0;
  const auto found = !visit.before            ? RevisitPlan::Visit::first
                     : failed                 ? RevisitPlan::Visit::failed
                     : !batch.changes.empty() ? RevisitPlan::Visit::changed
                     : was_answered           ? RevisitPlan::Visit::same
                                              : RevisitPlan::Visit::failed;
  const TimePoint due = saturating_add(now, shared_.plan.next(visit.before.get(), found));
  outcome.due = frontier_.stored_time(due);
  // By the same clock, whose jumps change no interval.
  outcome.mtime = frontier_.stored_time(now);
  if (!options_.forever) return std::nullopt;  // what has failed is tried again by the next run in any case
  if (!std::exchange(task.rotates, true)) shared_.rotating.fetch_add(1, std::memory_order_relaxed);
  task.attempts = task.challenges = task.redirects = 0;
  task.ask.reset();
  task.counted = task.settled = true;
  task.revisit = !failed;
  return due;
}

// --- hosts that were given up, in a crawl that goes on ---------------------------------------------------------------

Duration Crawler::Shard::rest_of_lost_hosts() const noexcept { return std::min(kLostHostRests, shared_.plan.first()); }

// Nothing changes about its URL, which waits with the host.
void Crawler::Shard::wait_with_host(Visit& visit, TimePoint now) {
  Host& host = *visit.ticket.host;
  put_page_off(visit);
  task_of(visit).attempts = 0;
  frontier_.rest(host, host.lost_until, now);
  frontier_.put_back(visit.ticket, now);
}

void Crawler::Shard::revive(Host& host, TimePoint now) {
  spdlog::debug("{}: it is asked again", host.site);
  host.lost.reset();
  host.lost_until = kNever;
  host.health = {};
  host.robots_until = TimePoint::min();
  host.robots_attempts = 0;
  frontier_.restore_limits(host, now);
}

}  // namespace argiope

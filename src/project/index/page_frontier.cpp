#include "project/index/internal/page_frontier.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace argiope {
namespace {

// A stretch of a sweep: so many looks at pages, where one that goes into the queue counts as several.
constexpr std::size_t kStretch = 20'000;
constexpr std::size_t kLooksAtOnce = 512;
constexpr std::size_t kLooksOfAdmission = 10;

// Between two sweeps, so that they take a small part of the thread.
constexpr Duration kLeastSweepPause = std::chrono::milliseconds{5};
constexpr Duration kSweepPauseOfPage{100};
constexpr int kCalmTimes = 4;

constexpr Duration kSameClock = std::chrono::milliseconds{1};
constexpr std::size_t kFewHosts = 1024;

}  // namespace

PageFrontier::PageFrontier(PageIndex& index, PageIndex::TermsOf terms_of, std::size_t most)
    : index_(index),
      terms_of_(std::move(terms_of)),
      most_ready_(std::max<std::size_t>(most, 16) / 4 * 3),
      kept_ready_(std::max<std::size_t>(most, 16) / 2),
      most_delayed_(std::max<std::size_t>(most, 16) / 4),
      kept_delayed_(std::max<std::size_t>(most, 16) / 8),
      hosts_to_forget_at_(kFewHosts) {
  queue_.set_due_log(&became_due_);
}

void PageFrontier::set_limits(const Limits& limits, TimePoint now) {
  limits_ = limits;
  if (!(limits_.burst >= 1)) limits_.burst = 1;
  queue_.set_limits({limits_.rate, limits_.burst, limits_.concurrency, limits_.paused}, now);
}

// --- time ------------------------------------------------------------------------------------------------------------

TimePoint PageFrontier::to_monotonic(WallTime due) const noexcept {
  Duration::rep span{};
  if (__builtin_sub_overflow(due.time_since_epoch().count(), wall_at_zero_.time_since_epoch().count(), &span)) {
    return due > wall_at_zero_ ? kNever : TimePoint::min();
  }
  return TimePoint{Duration{span}};
}

WallTime PageFrontier::wall_at(TimePoint now) const noexcept {
  const TimePoint wall = saturating_add(now, wall_at_zero_.time_since_epoch());
  return WallTime{wall.time_since_epoch()};
}

void PageFrontier::set_clock(TimePoint now, WallTime wall) {
  const WallTime at_zero = wall - now.time_since_epoch();
  const Duration step = at_zero - wall_at_zero_;
  if (step < kSameClock && step > -kSameClock) return;
  wall_at_zero_ = at_zero;
  std::vector<std::pair<JobId, TimePoint>> later;
  std::vector<JobId> others;
  queue_.for_each([&](JobId page, const JobInfo& info) {
    if (info.state == JobState::delayed) {
      const TimePoint due_at = saturating_add(info.until, -step);
      if (due_at > now) {
        later.emplace_back(page, due_at);
      } else {
        others.push_back(page);
      }
    } else if (info.state == JobState::ready && step < Duration::zero()) {
      const auto waiting = index_.waiting(page, terms_of_);
      if (!waiting || to_monotonic(waiting->due) > now) others.push_back(page);
    }
  });
  for (const auto& [page, due_at] : later) queue_.set_due(page, due_at, now);
  for (const JobId page : others) look_again(page, now);
}

// Pages that have become due while more important ones are left out join those.
void PageFrontier::tick(TimePoint now) {
  queue_.tick(now);
  for (const JobId page : became_due_) {
    const auto info = queue_.find(page);
    if (!info || info->state != JobState::ready) continue;
    const auto host = static_cast<std::uint32_t>(info->payload);
    if (is_behind({info->priority, page}, host)) remove(page, host, now);
  }
  became_due_.clear();
  while (!hungry_later_.empty() && hungry_later_.begin()->first <= now)
    update_hunger(hosts_.at(hungry_later_.begin()->second), now);
  trim(now);
}

// --- hosts -----------------------------------------------------------------------------------------------------------

PageFrontier::Host& PageFrontier::host_of(std::uint32_t number) {
  const auto [found, is_new] = hosts_.try_emplace(number);
  Host& host = found->second;
  if (is_new) {
    host.number = number;
    host.key = queue_.key(std::to_string(number));
  }
  return host;
}

void PageFrontier::forget_hunger(Host& host) {
  if (host.hungry_in_round != round_) return;
  hungry_later_.erase({host.hungry_at, host.number});
  hungry_now_.erase({host.hungry_for, host.number});
  host.hungry_in_round = 0;
}

void PageFrontier::update_hunger(Host& host, TimePoint now) {
  forget_hunger(host);
  if (!has_left(host) || queue_.counts(host.key).ready > host.low) return;
  host.hungry_in_round = round_;
  host.hungry_at = host.rest_until;
  host.hungry_for = host.left;
  if (host.rest_until > now) {
    hungry_later_.emplace(host.hungry_at, host.number);
  } else {
    hungry_now_.emplace(host.hungry_for, host.number);
  }
}

void PageFrontier::rest(std::uint32_t number, TimePoint until, TimePoint now) {
  forget_idle_hosts(now);
  Host& host = host_of(number);
  if (until <= host.rest_until) return;
  host.rest_until = until;
  queue_.rest_key(host.key, until, now);
  update_hunger(host, now);
}

void PageFrontier::wake(std::uint32_t number, TimePoint now) {
  const auto found = hosts_.find(number);
  if (found == hosts_.end()) return;
  Host& host = found->second;
  host.rest_until = TimePoint::min();
  queue_.wake_key(host.key, now);
  update_hunger(host, now);
}

// So that each is looked at a few times in its life.
void PageFrontier::forget_idle_hosts(TimePoint now) {
  if (hosts_.size() < hosts_to_forget_at_) return;
  std::erase_if(hosts_,
                [&](const auto& entry) { return !has_left(entry.second) && queue_.forget_key(entry.second.key, now); });
  hosts_to_forget_at_ = 2 * hosts_.size() + kFewHosts;
}

// --- into the queue and out of it -----------------------------------------------------------------------------------

// Whether what was left out might go before it.
bool PageFrontier::is_behind(const Rank& rank, std::uint32_t number) const {
  if (left_ && *left_ < rank) return true;
  const auto host = hosts_.find(number);
  return host != hosts_.end() && has_left(host->second) && host->second.left < rank;
}

bool PageFrontier::admit(const PageIndex::Waiting& waiting, TimePoint now) {
  const TimePoint due_at = waiting.due == WallTime{} ? TimePoint::min() : to_monotonic(waiting.due);
  if (due_at > now ? waiting.due >= left_due_ : is_behind({waiting.priority, waiting.page}, waiting.host)) return false;
  Host& host = host_of(waiting.host);
  queue_.put({.id = waiting.page,
              .key = host.key,
              .priority = waiting.priority,
              .due_at = due_at,
              .payload = waiting.host,
              .sequence = static_cast<std::uint32_t>(waiting.page)},
             now);
  update_hunger(host, now);
  trim(now);
  return true;
}

void PageFrontier::remove(PageIndex::Number page, std::uint32_t number, TimePoint now) {
  if (!queue_.remove(page, now)) return;
  if (const auto host = hosts_.find(number); host != hosts_.end()) update_hunger(host->second, now);
}

void PageFrontier::look_again(PageIndex::Number page, TimePoint now) {
  const auto queued = queue_.find(page);
  if (queued && queued->state == JobState::running) return;
  const auto waiting = index_.waiting(page, terms_of_);
  if (queued) remove(page, static_cast<std::uint32_t>(queued->payload), now);
  if (waiting) admit(*waiting, now);
}

void PageFrontier::look_at_all_again(TimePoint now) {
  std::vector<JobId> pages;
  pages.reserve(queue_.size());
  queue_.for_each([&](JobId page, const JobInfo&) { pages.push_back(page); });
  for (const JobId page : pages) look_again(page, now);
  tick(now);
}

void PageFrontier::changed(PageIndex::Number page, TimePoint now) {
  forget_idle_hosts(now);
  tick(now);
  look_again(page, now);
}

void PageFrontier::terms_changed(TimePoint now) {
  look_at_all_again(now);
  sweep_at_ = 0;
  wants_sweep_ = true;
}

std::optional<PageFrontier::Ticket> PageFrontier::next(TimePoint now) {
  tick(now);
  // Nobody but its ticket ends it.
  const auto lease = queue_.lease(now, Duration::max());
  if (!lease) return std::nullopt;
  const auto host = static_cast<std::uint32_t>(lease->payload);
  if (const auto found = hosts_.find(host); found != hosts_.end()) update_hunger(found->second, now);
  return Ticket{lease->id, host, *lease};
}

void PageFrontier::done(const Ticket& ticket, TimePoint now) {
  if (!queue_.done(ticket.lease.token, now)) return;
  changed(ticket.page, now);
}

void PageFrontier::put_back(const Ticket& ticket, TimePoint now) {
  forget_idle_hosts(now);
  tick(now);
  if (!queue_.put_back(ticket.lease.token, now)) return;
  // At once: meanwhile more important pages of its host may have been left out, and then it is not to be here.
  look_again(ticket.page, now);
}

// --- making room -----------------------------------------------------------------------------------------------------

void PageFrontier::trim(TimePoint now) {
  if (queue_.ready_count() > most_ready_) trim_ready(now);
  if (queue_.delayed_count() > most_delayed_) trim_delayed(now);
}

void PageFrontier::trim_delayed(TimePoint now) {
  struct Delayed {
    TimePoint until;
    JobId page;
    std::uint32_t host;
  };
  std::vector<Delayed> delayed;
  delayed.reserve(queue_.delayed_count());
  queue_.for_each([&](JobId page, const JobInfo& info) {
    if (info.state == JobState::delayed)
      delayed.push_back({info.until, page, static_cast<std::uint32_t>(info.payload)});
  });
  const auto kept = delayed.begin() + static_cast<std::ptrdiff_t>(kept_delayed_);
  std::ranges::nth_element(delayed, kept, {}, [](const Delayed& one) { return std::pair(one.until, one.page); });
  for (auto one = kept; one != delayed.end(); ++one) {
    left_due_ = std::min(left_due_, wall_at(one->until));
    remove(one->page, one->host, now);
  }
}

// Those that have most give room until all have as many; where not all of them can have one, the least important ones
// have none.
void PageFrontier::share(std::vector<Group*>& groups, std::size_t room, const std::vector<Ready>& ready) {
  if (groups.size() > room) {
    const auto kept = groups.begin() + static_cast<std::ptrdiff_t>(room);
    std::ranges::nth_element(
        groups, kept, [&](const Group* a, const Group* b) { return ready[a->begin].rank < ready[b->begin].rank; });
    std::for_each(groups.begin(), kept, [](Group* group) { group->kept = 1; });
    return;
  }
  std::ranges::sort(groups, {}, &Group::count);
  std::size_t others = groups.size();
  for (Group* group : groups) {
    group->kept = std::min(group->count, room / others--);
    room -= group->kept;
  }
}

// Hosts that rest need nothing before they may be asked again; a part of the room is theirs so that they need no sweep
// then.
void PageFrontier::trim_ready(TimePoint now) {
  std::vector<Ready> ready;
  ready.reserve(queue_.ready_count());
  queue_.for_each([&](JobId page, const JobInfo& info) {
    if (info.state == JobState::ready)
      ready.push_back({static_cast<std::uint32_t>(info.payload), {info.priority, page}});
  });
  std::ranges::sort(
      ready, [](const Ready& a, const Ready& b) { return a.host != b.host ? a.host < b.host : a.rank < b.rank; });
  std::vector<Group> groups;
  std::size_t resting_pages = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (i == 0 || ready[i].host != ready[i - 1].host) {
      Host& host = hosts_.at(ready[i].host);
      groups.push_back({.host = &host, .begin = i, .rests = host.rest_until > now});
    }
    ++groups.back().count;
    resting_pages += groups.back().rests ? 1 : 0;
  }
  const std::size_t awake_pages = ready.size() - resting_pages;
  const std::size_t left_by_awake = kept_ready_ - std::min(kept_ready_, awake_pages);
  const std::size_t room_of_resting = std::min(resting_pages, std::max(kept_ready_ / 4, left_by_awake));
  std::vector<Group*> awake, resting;
  for (Group& group : groups) (group.rests ? resting : awake).push_back(&group);
  share(resting, room_of_resting, ready);
  share(awake, kept_ready_ - room_of_resting, ready);
  for (const Group& group : groups) {
    if (group.kept < group.count) cut(group, ready, now);
  }
}

void PageFrontier::cut(const Group& group, const std::vector<Ready>& ready, TimePoint now) {
  Host& host = *group.host;
  Rank first = ready[group.begin + group.kept].rank;
  if (has_left(host) && host.left < first) first = host.left;
  if (group.kept == 0 && !group.rests) {
    // One of many: all that it leaves out comes after the first of them.
    if (!left_ || first < *left_) left_ = first;
    forget_hunger(host);
    host.left_in_round = 0;
  } else {
    host.left = first;
    host.left_in_round = round_;
    host.low = group.kept / 4;
  }
  for (std::size_t i = group.begin + group.kept; i < group.begin + group.count; ++i)
    queue_.remove(ready[i].rank.page, now);
  update_hunger(host, now);
}

// --- sweeps ----------------------------------------------------------------------------------------------------------

std::optional<PageFrontier::Rank> PageFrontier::top() const {
  const auto page = queue_.most_important();
  if (!page) return std::nullopt;
  return Rank{queue_.find(*page)->priority, *page};
}

// Whether something that was left out might go before all that is here. After tick().
bool PageFrontier::is_uncertain(TimePoint now) const {
  if (left_due_ <= wall_at(now)) return true;
  if (!left_ && hungry_now_.empty()) return false;
  const auto first = top();
  return !first || (left_ && *left_ < *first) || (!hungry_now_.empty() && hungry_now_.begin()->first < *first);
}

PageFrontier::Want PageFrontier::want(TimePoint now) const {
  if (wants_sweep_) return index_.last() > 0 ? Want::urgent : Want::none;
  const bool is_some_left = left_ || !hungry_now_.empty();
  if (is_some_left && queue_.ready_count() < kept_ready_ / 4) return Want::urgent;
  if (!is_uncertain(now)) return Want::none;
  return queue_.most_important() ? Want::calm : Want::urgent;
}

bool PageFrontier::is_certain(TimePoint now) {
  tick(now);
  return sweep_at_ == 0 && (!wants_sweep_ || index_.last() == 0) && !is_uncertain(now);
}

void PageFrontier::begin_sweep() {
  ++round_;
  left_.reset();
  left_due_ = WallTime::max();
  hungry_later_.clear();
  hungry_now_.clear();
  wants_sweep_ = false;
  sweep_at_ = 1;
}

void PageFrontier::end_sweep(TimePoint now) {
  ++sweeps_;
  const Duration pause = kLeastSweepPause + kSweepPauseOfPage * static_cast<Duration::rep>(index_.last());
  urgent_at_ = saturating_add(now, pause);
  calm_at_ = saturating_add(now, kCalmTimes * pause);
}

void PageFrontier::sweep(TimePoint now) {
  forget_idle_hosts(now);
  tick(now);
  if (is_stopped()) return;
  if (sweep_at_ == 0) {
    const Want wanted = want(now);
    if (wanted == Want::none || (!wants_sweep_ && now < (wanted == Want::urgent ? urgent_at_ : calm_at_))) return;
    begin_sweep();
  }
  std::size_t work = 0;
  const auto take = [&](const PageIndex::Waiting& waiting) {
    const TimePoint due_at = to_monotonic(waiting.due);
    const bool is_left =
        due_at > now ? waiting.due >= left_due_ : left_ && *left_ < Rank{waiting.priority, waiting.page};
    if (is_left || queue_.contains(waiting.page)) return;
    if (admit(waiting, now)) work += kLooksOfAdmission;
  };
  const std::function<void(const PageIndex::Waiting&)> visit = std::ref(take);
  for (; sweep_at_ != 0 && work < kStretch; work += kLooksAtOnce)
    sweep_at_ = index_.collect(sweep_at_, kLooksAtOnce, terms_of_, visit);
  if (sweep_at_ == 0) end_sweep(now);
}

TimePoint PageFrontier::next_wakeup(TimePoint now) {
  tick(now);
  if (is_stopped()) return kNever;
  if (sweep_at_ != 0) return now;
  const TimePoint startable = queue_.next_wakeup(now);
  const Want wanted = want(now);
  TimePoint swept = kNever;
  if (wanted != Want::none) {
    swept = wants_sweep_ ? now : wanted == Want::urgent ? urgent_at_ : calm_at_;
  } else {
    if (!hungry_later_.empty()) swept = hungry_later_.begin()->first;
    if (left_due_ != WallTime::max()) swept = std::min(swept, to_monotonic(left_due_));
    if (swept != kNever) swept = std::max(swept, urgent_at_);
  }
  return std::max(now, std::min(startable, swept));
}

// --- to look at ------------------------------------------------------------------------------------------------------

Explanation PageFrontier::explain(PageIndex::Number page, TimePoint now) {
  tick(now);
  if (queue_.contains(page)) return queue_.explain(page, now);
  const auto waiting = index_.waiting(page, terms_of_);
  if (!waiting) return {WaitReason::not_found};
  const TimePoint due_at = to_monotonic(waiting->due);
  if (due_at > now) return {WaitReason::not_due, due_at, 0, JobState::delayed};
  const auto because = [](WaitReason reason, TimePoint until = kNever) {
    return Explanation{reason, until, 0, JobState::ready};
  };
  if (limits_.paused) return because(WaitReason::queue_paused);
  // A limit that holds up all of them holds up one that is in the queue.
  std::optional<JobId> queued;
  queue_.for_each([&](JobId other, const JobInfo& info) {
    if (info.state == JobState::ready) queued = other;
  });
  if (const Explanation of_all = queued ? queue_.explain(*queued, now) : Explanation{};
      of_all.reason == WaitReason::queue_rate)
    return of_all;
  const auto host = hosts_.find(waiting->host);
  if (host != hosts_.end() && host->second.rest_until > now)
    return because(WaitReason::key_resting, host->second.rest_until);
  Explanation explanation = because(WaitReason::more_important_jobs);
  queue_.for_each([&](JobId other, const JobInfo& info) {
    explanation.ahead +=
        info.state == JobState::ready && Rank{info.priority, other} < Rank{waiting->priority, page} ? 1 : 0;
  });
  return explanation;
}

PageFrontier::OfHost PageFrontier::of_host(std::uint32_t host, TimePoint now) {
  tick(now);
  OfHost found;
  queue_.for_each([&](JobId, const JobInfo& info) {
    if (info.payload != host) return;
    if (info.state == JobState::ready) ++found.ready;
    if (info.state != JobState::delayed) return;
    ++found.delayed;
    found.first_due = std::min(found.first_due, info.until);
  });
  return found;
}

std::size_t PageFrontier::memory_bytes() const noexcept {
  constexpr std::size_t kNode = 4 * sizeof(void*);
  return sizeof(*this) + queue_.memory_bytes() + became_due_.capacity() * sizeof(JobId) +
         hosts_.size() * (sizeof(std::pair<const std::uint32_t, Host>) + kNode) +
         hosts_.bucket_count() * sizeof(void*) + queue_.key_count() * (sizeof(std::string) + kNode) +
         (hungry_later_.size() + hungry_now_.size()) * (sizeof(std::pair<Rank, std::uint32_t>) + kNode);
}

}  // namespace argiope

#include "engine/internal/queue_window.hpp"

#include <algorithm>
#include <cassert>

namespace argiope {
namespace {

constexpr std::size_t kMostOfKey = 256;   // jobs of one key, once keys have to share; of large windows a sixteenth
constexpr std::size_t kKeysAtOnce = 256;  // keys read on in one go
constexpr std::size_t kKeyNamesAtOnce = 1000;
constexpr std::uint32_t kSequences = std::numeric_limits<std::uint32_t>::max();

}  // namespace

QueueWindow::QueueWindow(StoredQueue stored, std::size_t most, const JobClock& clock, std::size_t room,
                         OnShelves on_shelves)
    : stored_(std::move(stored)),
      most_(std::max<std::size_t>(most, 8)),
      room_(std::max(room, most_)),
      on_shelves_(on_shelves),
      clock_(clock) {
  configure(stored_.config, clock.monotonic_now());
  if (on_shelves == OnShelves::all) return;
  // The shelves are empty but for what is told.
  keys_known_ = true;
  ready_ = ShelfBound<Rank>::at_end();
  delayed_ = ShelfBound<DueRank>::at_end();
}

void QueueWindow::configure(QueueConfig config, TimePoint now) {
  stored_.config = std::move(config);
  jobs_.set_limits(stored_.config.limits, now);
  jobs_.set_default_key_limits(stored_.config.key_limits, now);
  jobs_.set_max_lease_expiries(stored_.config.max_lease_expiries);
}

std::size_t QueueWindow::share_of(std::size_t keys) const noexcept {
  const std::size_t most_of_key = std::max(kMostOfKey, most_ / 16);
  return std::clamp<std::size_t>(most_ / (2 * std::max<std::size_t>(keys, 1)), 1, most_of_key);
}

std::size_t QueueWindow::key_cap() const noexcept { return share_of(asides_.size()); }

// --- what comes in -------------------------------------------------------------------------------------------------

// The queue's order among equals is that of their ids. A number of 32 bits holds it for all that are near enough to
// each other; what is older than that comes first, in no order.
std::uint32_t QueueWindow::sequence_of(JobId id) {
  if (jobs_.size() == 0) sequence_base_ = id - std::min<JobId>(id, kSequences / 2);
  while (id > sequence_base_ && id - sequence_base_ >= kSequences) {
    const JobId by = std::max<JobId>(kSequences / 4, id - sequence_base_ - kSequences / 2);
    jobs_.shift_sequences(static_cast<std::uint32_t>(std::min<JobId>(by, kSequences)));
    sequence_base_ += by;
  }
  return id > sequence_base_ ? static_cast<std::uint32_t>(id - sequence_base_) : 0;
}

void QueueWindow::put(const WaitingJob& job, TimePoint now) {
  JobSpec spec;
  spec.id = job.id;
  spec.key = jobs_.key(job.key);
  spec.priority = job.priority;
  spec.due_at = job.due_at == WallTime{} ? TimePoint::min() : clock_.to_monotonic(job.due_at);
  spec.payload = static_cast<std::uint64_t>(job.shelf);
  spec.sequence = sequence_of(job.id);
  spec.attempts = static_cast<std::uint16_t>(std::min<std::uint32_t>(job.attempts, 0xffff));
  spec.expiries = static_cast<std::uint8_t>(std::min<std::uint32_t>(job.expiries, 0xff));
  jobs_.put(spec, now);
}

bool QueueWindow::sets_aside(std::string_view key, std::int32_t priority) const {
  if (asides_.empty()) return false;
  const auto aside = asides_.find(std::string(key));
  return aside != asides_.end() && !aside->second.has_read({priority, kMostJobId});
}

// Whether the job belongs in memory. If not, what is remembered of its shelf covers it.
bool QueueWindow::admit(const WaitingJob& job) {
  const Rank rank{job.priority, job.id};
  switch (job.shelf) {
    case Shelf::waiting: return false;
    case Shelf::delayed:
      if (delayed_.has_read({job.due_at, job.id})) return true;
      break;
    case Shelf::set_aside:
      if (aside_of(job.key).has_read(rank)) return true;
      break;
    case Shelf::ready: {
      // More important ones of its key lie aside, and it must not go before them.
      if (sets_aside(job.key, job.priority)) {
        move(job.id, Shelf::ready, Shelf::set_aside);
        aside_of(job.key).pass_by(rank);
        update_hunger(job.key);
        return false;
      }
      if (ready_.has_read(rank)) return true;
      break;
    }
  }
  left_in_store(job);
  if (job.shelf == Shelf::set_aside) update_hunger(job.key);
  return false;
}

void QueueWindow::left_in_store(const WaitingJob& job) {
  const Rank rank{job.priority, job.id};
  switch (job.shelf) {
    case Shelf::waiting: break;
    case Shelf::ready: ready_.pass_by(rank); break;
    case Shelf::delayed: delayed_.pass_by({job.due_at, job.id}); break;
    case Shelf::set_aside: {
      ShelfBound<Rank>& aside = aside_of(job.key);
      const bool first = aside.has_read(rank);
      aside.pass_by(rank);
      if (first) update_hunger(job.key);
      break;
    }
  }
}

void QueueWindow::move(JobId id, Shelf from, Shelf to) {
  if (from != to || on_shelves_ == OnShelves::all_but_here) moves_.push_back({id, to});
}

void QueueWindow::place(const WaitingJob& job, TimePoint now) {
  const auto known = jobs_.find(job.id);
  if (known && known->state == JobState::running) return;
  if (known) jobs_.remove(job.id, now);
  if (admit(job)) put(job, now);
  if (known) took(known->key);
}

void QueueWindow::forget(JobId id, TimePoint now) {
  const auto known = jobs_.find(id);
  if (!known || !jobs_.remove(id, now)) return;
  // It may have been the last one here of a key of which more lie aside.
  took(known->key);
}

void QueueWindow::hold(const WaitingJob& job, TimePoint now) {
  if (!jobs_.contains(job.id)) put(job, now);
}

// --- for an owner that puts on shelves what is not here --------------------------------------------------------------

// Whether the key has as much in memory as it may have when others want some.
bool QueueWindow::has_its_share(const std::string& key) {
  const std::size_t ready = jobs_.counts(jobs_.key(key)).ready;
  return ready > std::min(share_of(1), most_ / 8);
}

std::optional<Shelf> QueueWindow::offer(const WaitingJob& job, TimePoint now) {
  WaitingJob offered = job;
  const Rank rank{job.priority, job.id};
  if (job.due_at != WallTime{} && job.due_at > clock_.now()) {
    offered.shelf = Shelf::delayed;
  } else if (const auto aside = asides_.find(job.key); aside != asides_.end()) {
    // With those of its key that come before the first one set aside, it belongs here.
    if (aside->second.has_read(rank)) {
      put(offered, now);
      return std::nullopt;
    }
    offered.shelf = Shelf::set_aside;
  } else {
    offered.shelf = Shelf::ready;
    const bool fits = ready_.has_read_all() ? jobs_.ready_count() < room_ : ready_.has_read(rank);
    // One key's flood is set aside at once, so that it need not be read to get at what lies behind it.
    if (!fits && has_its_share(job.key)) offered.shelf = Shelf::set_aside;
  }
  if (offered.shelf == Shelf::set_aside) {
    left_in_store(offered);
    return offered.shelf;
  }
  if (!admit(offered)) return offered.shelf;
  put(offered, now);
  return std::nullopt;
}

void QueueWindow::let_go(JobId id, TimePoint now) {
  const auto info = jobs_.find(id);
  if (!info || info->state != JobState::ready) return;
  move(id, shelf_of(*info), Shelf::ready);
  ready_.pass_by(rank_of(id, *info));
  jobs_.remove(id, now);
  took(info->key);
}

bool QueueWindow::has_read(const ShelfBound<Rank>& shelf, std::optional<JobId> job) const {
  return job && shelf.has_read(rank_of(*job, *jobs_.find(*job)));
}

bool QueueWindow::top_is_certain_but_for_keys() const {
  return keys_known_ && (ready_.has_read_all() || saturated_ || has_read(ready_, jobs_.most_important()));
}

// --- reading on ----------------------------------------------------------------------------------------------------

void QueueWindow::update_hunger(const std::string& key) {
  const auto aside = asides_.find(key);
  if (aside == asides_.end() || aside->second.has_read_all()) {
    hungry_.erase(key);
    starving_.erase(key);
    if (aside != asides_.end()) asides_.erase(aside);  // all of them are in memory: a key like any other
    return;
  }
  const KeyId id = jobs_.key(key);
  // Jobs here may have come from another shelf, and lie behind those that were set aside.
  const bool starves = !has_read(aside->second, jobs_.most_important(id));
  if (starves) {
    starving_.insert(key);
  } else {
    starving_.erase(key);
  }
  if (starves || jobs_.counts(id).ready <= key_cap() / 4) hungry_.insert(key);
}

void QueueWindow::took(KeyId key) {
  if (asides_.empty()) return;
  const std::string name{jobs_.name_of(key)};
  if (asides_.contains(name)) update_hunger(name);
}

bool QueueWindow::top_is_certain() const {
  if (!starving_.empty() || (!delayed_.has_read_all() && delayed_.first_unread().due_at <= clock_.now())) return false;
  return top_is_certain_but_for_keys();
}

bool QueueWindow::wants_delayed() const {
  return !delayed_.has_read_all() &&
         (jobs_.delayed_count() < most_ / 2 || delayed_.first_unread().due_at <= clock_.now());
}

bool QueueWindow::wants_load(TimePoint now) {
  return !keys_known_ || !moves_.empty() || !hungry_.empty() || wants_delayed() || wants_ready(now);
}

bool QueueWindow::wants_ready(TimePoint now) {
  const std::size_t count = jobs_.ready_count();
  saturated_ = saturated_ && count + most_ / 4 >= 2 * most_;
  if (ready_.has_read_all() || saturated_) return false;
  if (count < most_ / 2) return true;
  if (!jobs_.may_start(now)) return false;
  if (has_read(ready_, jobs_.most_important())) return false;
  // Nothing of what is here may run, or only what is less important than what is not here.
  if (count >= most_ && !set_blocked_keys_aside(now) && count >= 2 * most_) {
    saturated_ = true;
    return false;
  }
  return true;
}

std::vector<QueueWindow::Load> QueueWindow::loads(TimePoint now) {
  std::vector<Load> wanted;
  if (!keys_known_) {
    Load load{.keys = true, .read = {.limit = kKeyNamesAtOnce}};
    if (!last_key_.empty() || !asides_.empty()) load.after_key = last_key_;
    wanted.push_back(std::move(load));
    return wanted;
  }
  const std::size_t batch = std::max<std::size_t>(most_ / 4, 4);
  if (wants_delayed()) {
    wanted.push_back({.read = {.shelf = Shelf::delayed, .due_after = delayed_.begin_read(), .limit = batch}});
  }
  if (wants_ready(now)) {
    wanted.push_back({.read = {.shelf = Shelf::ready, .after = ready_.begin_read(), .limit = batch}});
  }
  const auto read_on = [&](const std::string& key) {
    if (wanted.size() >= kKeysAtOnce) return;
    const Rank after = asides_.at(key).begin_read();
    wanted.push_back({.read = {.shelf = Shelf::set_aside, .after = after, .limit = key_cap()}, .key = key});
  };
  for (const std::string& key : starving_) read_on(key);
  for (const std::string& key : hungry_) {
    if (!starving_.contains(key)) read_on(key);
  }
  return wanted;
}

void QueueWindow::loaded(const Load& load, const std::vector<WaitingJob>& jobs, TimePoint now) {
  const bool to_the_end = jobs.size() < load.read.limit;
  if (load.read.shelf == Shelf::delayed) {
    delayed_.read_up_to(to_the_end ? std::nullopt : std::optional(DueRank{jobs.back().due_at, jobs.back().id}));
  } else {
    const auto last = to_the_end ? std::nullopt : std::optional(Rank{jobs.back().priority, jobs.back().id});
    if (load.read.shelf == Shelf::ready) {
      ready_.read_up_to(last);
    } else if (const auto aside = asides_.find(load.key); aside != asides_.end()) {
      aside->second.read_up_to(last);
    }
  }
  for (const WaitingJob& job : jobs) {
    if (jobs_.contains(job.id)) continue;
    if (job.shelf == Shelf::ready && sets_aside(job.key, job.priority)) {
      (void)admit(job);
    } else {
      put(job, now);
    }
  }
  if (load.read.shelf == Shelf::set_aside) {
    hungry_.erase(load.key);
    update_hunger(load.key);
  }
}

void QueueWindow::loaded_keys(const Load& load, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    asides_[key] = {};
    update_hunger(key);
  }
  if (!keys.empty()) last_key_ = keys.back();
  keys_known_ = keys.size() < load.read.limit;
}

// --- letting go ----------------------------------------------------------------------------------------------------

// Takes a waiting job out of memory; the bound of the shelf on which it is, or will be, moves to before it.
void QueueWindow::drop(JobId id, const JobInfo& info, TimePoint now) {
  const Rank rank = rank_of(id, info);
  const Shelf shelf = shelf_of(info);
  if (info.state == JobState::delayed) {
    move(id, Shelf::delayed, Shelf::delayed);
    delayed_.pass_by({clock_.earliest_job_time(info.until), id});
  } else if (shelf == Shelf::set_aside) {
    move(id, shelf, Shelf::set_aside);
    aside_of(std::string(jobs_.name_of(info.key))).pass_by(rank);
  } else {
    move(id, shelf, Shelf::ready);
    ready_.pass_by(rank);
  }
  jobs_.remove(id, now);
}

void QueueWindow::trim(TimePoint now) {
  // Keys that nobody needs any more cost as much as jobs.
  if (jobs_.key_count() > keys_to_prune_at_) {
    jobs_.prune_keys(now);
    keys_to_prune_at_ = 2 * jobs_.key_count() + most_;
  }
  const bool many_ready = jobs_.ready_count() > 2 * most_ + most_ / 2;
  const bool many_delayed = jobs_.delayed_count() > 2 * most_;
  if (!many_ready && !many_delayed) return;
  std::vector<std::pair<JobId, JobInfo>> ready;
  std::vector<std::pair<JobId, JobInfo>> delayed;
  jobs_.for_each([&](JobId id, const JobInfo& info) {
    if (many_ready && info.state == JobState::ready) ready.emplace_back(id, info);
    if (many_delayed && info.state == JobState::delayed) delayed.emplace_back(id, info);
  });
  if (many_ready) {
    const auto kept = ready.begin() + static_cast<std::ptrdiff_t>(2 * most_);
    std::ranges::nth_element(ready, kept, more_important_first);
    std::for_each(kept, ready.end(), [&](const auto& job) { drop(job.first, job.second, now); });
    for (const auto& [key, aside] : std::unordered_map(asides_)) update_hunger(key);
  }
  if (many_delayed) {
    const auto kept = delayed.begin() + static_cast<std::ptrdiff_t>(most_);
    std::ranges::nth_element(delayed, kept, [](const auto& a, const auto& b) {
      return std::pair(a.second.until, a.first) < std::pair(b.second.until, b.first);
    });
    std::for_each(kept, delayed.end(), [&](const auto& job) { drop(job.first, job.second, now); });
  }
}

// So that jobs of other keys find room: of each key that has more than its share here, the least important ones are set
// aside. False when no key has.
bool QueueWindow::set_blocked_keys_aside(TimePoint now) {
  std::unordered_map<std::uint32_t, std::vector<std::pair<JobId, JobInfo>>> by_key;
  jobs_.for_each([&](JobId id, const JobInfo& info) {
    if (info.state == JobState::ready) by_key[static_cast<std::uint32_t>(info.key)].emplace_back(id, info);
  });
  const std::size_t cap = share_of(by_key.size());
  bool any = false;
  for (auto& [key_id, jobs] : by_key) {
    if (jobs.size() <= cap) continue;
    any = true;
    const std::string key{jobs_.name_of(KeyId{key_id})};
    const auto kept = jobs.begin() + static_cast<std::ptrdiff_t>(cap);
    std::ranges::nth_element(jobs, kept, more_important_first);
    ShelfBound<Rank>& aside = aside_of(key);
    std::for_each(kept, jobs.end(), [&](const auto& job) {
      move(job.first, shelf_of(job.second), Shelf::set_aside);
      aside.pass_by(rank_of(job.first, job.second));
      jobs_.remove(job.first, now);
    });
    update_hunger(key);
  }
  return any;
}

}  // namespace argiope

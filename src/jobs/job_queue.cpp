#include "argiope/jobs/job_queue.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace argiope {
namespace {

template <class Counter>
void count_up(Counter& counter) noexcept {
  if (counter < std::numeric_limits<Counter>::max()) ++counter;
}

void set_state(JobTable::Job& job, JobState to) noexcept {
  assert(job.state == to || may_move(job.state, to));
  job.state = to;
}

}  // namespace

JobQueue::JobQueue(QueueLimits limits, std::uint32_t max_lease_expiries, std::uint32_t first_sequence)
    : forgotten_key_(kNoKey),
      limits_(limits),
      bucket_(limits.rate, limits.burst),
      max_lease_expiries_(max_lease_expiries),
      sequence_(first_sequence) {}
JobQueue::~JobQueue() = default;
JobQueue::JobQueue(JobQueue&&) noexcept = default;

void JobQueue::set_limits(const QueueLimits& limits, TimePoint now) {
  limits_ = limits;
  bucket_.set(limits.rate, limits.burst, now);
}

// --- order ---------------------------------------------------------------------------------------------------------

JobQueue::ReadyRank JobQueue::rank_of(const Job& job) const noexcept {
  // Higher priorities come out smaller; the sequence settles ties.
  const auto inverted = ~(static_cast<std::uint32_t>(job.priority) ^ 0x80000000u);
  return {static_cast<std::uint64_t>(inverted) << 32 | job.sequence};
}

std::uint32_t JobQueue::next_sequence() {
  if (sequence_ == std::numeric_limits<std::uint32_t>::max()) [[unlikely]]
    renumber();
  return sequence_++;
}

// Once every four thousand million puts: the jobs that are there get small numbers again, in the same order.
void JobQueue::renumber() {
  std::vector<Slot> slots;
  slots.reserve(jobs_.size());
  jobs_.for_each([&](Slot slot) { slots.push_back(slot); });
  std::ranges::sort(slots, {}, [this](Slot slot) { return jobs_[slot].sequence; });
  sequence_ = 0;
  // Numbers only fall and their order stays, so each heap remains one while its ranks change one by one.
  for (const Slot slot : slots) set_sequence(slot, sequence_++);
  refresh_eligible();
}

void JobQueue::shift_sequences(std::uint32_t by) {
  sequence_ -= std::min(sequence_, by);
  jobs_.for_each([&](Slot slot) {
    const std::uint32_t sequence = jobs_[slot].sequence;
    set_sequence(slot, sequence - std::min(sequence, by));
  });
  refresh_eligible();
}

void JobQueue::set_sequence(Slot slot, std::uint32_t sequence) {
  Job& job = jobs_[slot];
  job.sequence = sequence;
  if (job.state == JobState::ready) key_of(job).ready.update(jobs_.place(slot), rank_of(job), job_place());
}

// After the ranks of jobs have changed, though not their order.
void JobQueue::refresh_eligible() {
  for (std::uint32_t index = 0; index < keys_.size(); ++index) {
    const Key& key = keys_[index];
    if (key.standing == Standing::eligible) eligible_.update(key_places_[index], key.ready.top().rank, key_place());
  }
}

// --- moving between states -----------------------------------------------------------------------------------------

// Room for `job` where place_by_due() will put it.
void JobQueue::make_room(const Job& job, TimePoint due_at, TimePoint now) {
  if (due_at > now) {
    delayed_.make_room();
  } else {
    key_of(job).ready.make_room();
  }
}

void JobQueue::place_by_due(Slot slot, TimePoint due_at, TimePoint now) noexcept {
  if (due_at <= now) return make_ready(slot, now);
  set_state(jobs_[slot], JobState::delayed);
  ++key_of(jobs_[slot]).delayed;
  delayed_.push(due_at, slot, job_place());
}

void JobQueue::make_ready(Slot slot, TimePoint now) noexcept {
  Job& job = jobs_[slot];
  Key& key = key_of(job);
  set_state(job, JobState::ready);
  key.ready.push(rank_of(job), slot, job_place());
  ++ready_;
  if (key.ready.size() == 1) ++keys_with_ready_;
  // A job that is not the key's most important one changes nothing for the key.
  if (jobs_.place(slot) == 0) update_key(job.key, now);
}

void JobQueue::leave_delayed(Slot slot) noexcept {
  delayed_.erase(jobs_.place(slot), job_place());
  --key_of(jobs_[slot]).delayed;
}

void JobQueue::leave_ready(Slot slot, TimePoint now) noexcept {
  const Job& job = jobs_[slot];
  Key& key = key_of(job);
  const std::uint32_t place = jobs_.place(slot);
  key.ready.erase(place, job_place());
  --ready_;
  if (key.ready.empty()) {
    --keys_with_ready_;
    key.ready.shrink_if_empty();
  }
  if (place == 0) update_key(job.key, now);
}

void JobQueue::reprioritise(Slot slot, std::int32_t priority, TimePoint now) noexcept {
  Job& job = jobs_[slot];
  job.priority = priority;
  if (job.state != JobState::ready) return;
  const bool was_first = jobs_.place(slot) == 0;
  key_of(job).ready.update(jobs_.place(slot), rank_of(job), job_place());
  if (was_first || jobs_.place(slot) == 0) update_key(job.key, now);
}

// Moves a job that waits; false when it is due at that time already.
bool JobQueue::move_due(Slot slot, TimePoint due_at, TimePoint now) {
  Job& job = jobs_[slot];
  if (job.state == JobState::ready) {
    if (due_at <= now) return false;
    make_room(job, due_at, now);
    leave_ready(slot, now);
    place_by_due(slot, due_at, now);
    return true;
  }
  const std::uint32_t place = jobs_.place(slot);
  if (delayed_[place].rank == due_at) return false;
  if (due_at > now) {
    delayed_.update(place, due_at, job_place());
    return true;
  }
  make_room(job, due_at, now);
  leave_delayed(slot);
  make_ready(slot, now);
  return true;
}

// --- jobs that wait ------------------------------------------------------------------------------------------------

PutResult JobQueue::put(const JobSpec& spec, TimePoint now) {
  Key& key = keys_[index_of(spec.key)];
  if (const Slot slot = jobs_.find(spec.id); slot != kNoSlot) return merge(slot, spec, now);
  jobs_.make_room();
  const bool delayed = spec.due_at > now;
  if (delayed) {
    delayed_.make_room();
  } else {
    key.ready.make_room();
  }
  const Slot slot = jobs_.add({.id = spec.id,
                               .payload = spec.payload,
                               .priority = spec.priority,
                               .sequence = spec.sequence ? *spec.sequence : next_sequence(),
                               .key = spec.key,
                               .attempts = spec.attempts,
                               .expiries = spec.expiries,
                               .state = delayed ? JobState::delayed : JobState::ready,
                               .again = false});
  place_by_due(slot, spec.due_at, now);
  return PutResult::added;
}

PutResult JobQueue::merge(Slot slot, const JobSpec& spec, TimePoint now) {
  Job& job = jobs_[slot];
  if (job.state == JobState::running) {
    const auto [found, added] = again_.try_emplace(spec.id, Again{spec.priority, spec.due_at, spec.payload});
    found->second.priority = std::max(found->second.priority, spec.priority);
    found->second.due_at = std::min(found->second.due_at, spec.due_at);
    job.again = true;
    return PutResult::run_again;
  }
  const bool earlier = job.state == JobState::delayed && spec.due_at < delayed_[jobs_.place(slot)].rank;
  if (earlier) move_due(slot, spec.due_at, now);
  const bool higher = spec.priority > job.priority;
  if (higher) reprioritise(slot, spec.priority, now);
  return earlier || higher ? PutResult::merged : PutResult::unchanged;
}

JobQueue::Slot JobQueue::waiting_slot(JobId id) const noexcept {
  const Slot slot = jobs_.find(id);
  return slot != kNoSlot && jobs_[slot].state == JobState::running ? kNoSlot : slot;
}

std::optional<JobInfo> JobQueue::find(JobId id) const noexcept {
  const Slot slot = jobs_.find(id);
  if (slot == kNoSlot) return std::nullopt;
  return info_of(slot);
}

JobInfo JobQueue::info_of(Slot slot) const noexcept {
  const Job& job = jobs_[slot];
  JobInfo info{job.key, job.state, job.priority, {}, job.payload, job.attempts};
  if (job.state == JobState::delayed) info.until = delayed_[jobs_.place(slot)].rank;
  if (job.state == JobState::running) info.until = leases_[jobs_.place(slot)].rank;
  return info;
}

std::optional<std::uint64_t> JobQueue::payload_of(JobId id) const noexcept {
  const Slot slot = jobs_.find(id);
  return slot == kNoSlot ? std::nullopt : std::optional(jobs_[slot].payload);
}

bool JobQueue::set_priority(JobId id, std::int32_t priority, TimePoint now) {
  const Slot slot = waiting_slot(id);
  if (slot == kNoSlot) return false;
  reprioritise(slot, priority, now);
  return true;
}

bool JobQueue::set_due(JobId id, TimePoint due_at, TimePoint now) {
  const Slot slot = waiting_slot(id);
  if (slot == kNoSlot) return false;
  move_due(slot, due_at, now);
  return true;
}

bool JobQueue::remove(JobId id, TimePoint now) {
  const Slot slot = waiting_slot(id);
  if (slot == kNoSlot) return false;
  if (jobs_[slot].state == JobState::delayed) {
    leave_delayed(slot);
  } else {
    leave_ready(slot, now);
  }
  jobs_.erase(slot);
  return true;
}

// --- jobs that run -------------------------------------------------------------------------------------------------

std::optional<Lease> JobQueue::lease(TimePoint now, Duration lease_time) {
  advance(now);
  if (eligible_.empty() || limits_.paused || leases_.size() >= limits_.concurrency || !bucket_.ready(now)) {
    return std::nullopt;
  }
  leases_.make_room();
  const Key& key = keys_[static_cast<std::uint32_t>(eligible_.top().handle)];
  const Slot slot = key.ready.top().handle;
  jobs_.expect_erase(slot);
  return begin_lease(slot, now, lease_time);
}

std::optional<Lease> JobQueue::lease_job(JobId id, TimePoint now, Duration lease_time) {
  advance(now);
  const Slot slot = waiting_slot(id);
  if (slot == kNoSlot) return std::nullopt;
  leases_.make_room();
  if (jobs_[slot].state == JobState::delayed) move_due(slot, now, now);
  const Lease lease = begin_lease(slot, now, lease_time);
  update_key(lease.key, now);  // it need not have been the key's most important one
  return lease;
}

bool JobQueue::is_at_concurrency(KeyId id) const {
  const Key& key = keys_[index_of(id)];
  return leases_.size() >= limits_.concurrency || key.running >= key.concurrency;
}

bool JobQueue::starts_freely(KeyId id, TimePoint now) const {
  const Key& key = keys_[index_of(id)];
  const bool of_the_queue = !limits_.paused && limits_.concurrency == kUnlimited && bucket_.is_unlimited();
  const bool of_the_key = key.concurrency == kUnlimited && key.bucket.is_unlimited() && key.delay <= Duration{};
  return of_the_queue && of_the_key && key.rest_until <= now;
}

// Of a ready job; room for it has been made.
Lease JobQueue::begin_lease(Slot slot, TimePoint now, Duration lease_time) noexcept {
  if (++generation_ == 0) ++generation_;
  Job& job = jobs_[slot];
  Key& key = key_of(job);
  if (bucket_.try_take(now)) last_permit_ = generation_;
  if (key.bucket.try_take(now)) key.last_permit = generation_;
  ++key.running;
  leave_ready(slot, now);
  set_state(job, JobState::running);
  count_up(job.attempts);
  leases_.push(saturating_add(now, lease_time), {slot, generation_}, lease_place());
  const std::uint64_t token = static_cast<std::uint64_t>(slot) << 32 | generation_;
  return Lease{job.id, token, job.key, job.priority, job.payload, job.attempts};
}

JobQueue::Slot JobQueue::running_slot(std::uint64_t token) const noexcept {
  const auto slot = static_cast<Slot>(token >> 32);
  if (!jobs_.in_range(slot) || jobs_[slot].state != JobState::running) return kNoSlot;
  return leases_[jobs_.place(slot)].handle.generation == static_cast<std::uint32_t>(token) ? slot : kNoSlot;
}

// Takes the job out of the running ones and frees its key's place; where it goes is the caller's to say.
void JobQueue::end_lease(Slot slot, TimePoint now) noexcept {
  leases_.erase(jobs_.place(slot), lease_place());
  const Job& job = jobs_[slot];
  Key& key = key_of(job);
  --key.running;
  if (key.delay > Duration::zero()) key.rest_until = std::max(key.rest_until, saturating_add(now, key.delay));
  update_key(job.key, now);
}

bool JobQueue::renew(std::uint64_t token, TimePoint until) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  leases_.update(jobs_.place(slot), until, lease_place());
  return true;
}

bool JobQueue::done(std::uint64_t token, TimePoint now) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  if (jobs_[slot].again) {
    run_again(slot, now);
  } else {
    end_lease(slot, now);
    jobs_.erase(slot);
  }
  return true;
}

// The run has ended, and a put that came meanwhile makes a new job of the same id.
void JobQueue::run_again(Slot slot, TimePoint now) {
  Job& job = jobs_[slot];
  const Again again = again_.find(job.id)->second;
  make_room(job, again.due_at, now);
  const std::uint32_t sequence = next_sequence();
  end_lease(slot, now);
  again_.erase(job.id);
  job.again = false;
  job.attempts = job.expiries = 0;
  job.priority = again.priority;
  job.payload = again.payload;
  job.sequence = sequence;
  place_by_due(slot, again.due_at, now);
}

// The run has ended without an end of the job, and a put that came meanwhile is merged into it.
void JobQueue::requeue(Slot slot, std::int32_t priority, TimePoint due_at, TimePoint now) {
  Job& job = jobs_[slot];
  const auto again = job.again ? again_.find(job.id) : again_.end();
  if (again != again_.end()) due_at = std::min(due_at, again->second.due_at);
  make_room(job, due_at, now);
  end_lease(slot, now);
  job.priority = priority;
  if (again != again_.end()) {
    job.priority = std::max(priority, again->second.priority);
    job.again = false;
    again_.erase(again);
  }
  place_by_due(slot, due_at, now);
}

bool JobQueue::retry(std::uint64_t token, TimePoint due_at, TimePoint now, std::optional<std::int32_t> priority) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  requeue(slot, priority.value_or(jobs_[slot].priority), due_at, now);
  return true;
}

bool JobQueue::release(std::uint64_t token, TimePoint due_at, TimePoint now, std::optional<std::int32_t> priority) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  Job& job = jobs_[slot];
  requeue(slot, priority.value_or(job.priority), due_at, now);
  if (job.attempts < std::numeric_limits<decltype(job.attempts)>::max()) --job.attempts;
  return true;
}

bool JobQueue::put_back(std::uint64_t token, TimePoint now) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  Job& job = jobs_[slot];
  Key& key = key_of(job);
  key.ready.make_room();
  const TimePoint rest_until = key.rest_until;
  const auto generation = static_cast<std::uint32_t>(token);
  if (key.last_permit == generation) {
    key.bucket.undo_take();
    key.last_permit = 0;
  }
  if (last_permit_ == generation) {
    bucket_.undo_take();
    last_permit_ = 0;
  }
  if (job.attempts < std::numeric_limits<decltype(job.attempts)>::max()) --job.attempts;
  requeue(slot, job.priority, now, now);
  key.rest_until = rest_until;
  update_key(job.key, now);
  return true;
}

void JobQueue::expire(Slot slot, TimePoint now) {
  Job& job = jobs_[slot];
  const bool again = job.expiries + 1u < max_lease_expiries_;
  const std::uint32_t generation = leases_[jobs_.place(slot)].handle.generation;
  const ExpiredLease expired{job.id, static_cast<std::uint64_t>(slot) << 32 | generation, !again && !job.again};
  if (expired_.size() == expired_.capacity()) expired_.reserve(expired_.size() * 2 + 4);
  if (again) {
    requeue(slot, job.priority, now, now);
    count_up(job.expiries);
  } else if (job.again) {
    run_again(slot, now);
  } else {
    end_lease(slot, now);
    jobs_.erase(slot);
  }
  expired_.push_back(expired);
}

// --- time ----------------------------------------------------------------------------------------------------------

void JobQueue::advance(TimePoint now) {
  while (!leases_.empty() && leases_.top().rank <= now) expire(leases_.top().handle.slot, now);
  while (!delayed_.empty() && delayed_.top().rank <= now) {
    const Slot slot = delayed_.top().handle;
    key_of(jobs_[slot]).ready.make_room();
    if (due_log_ != nullptr) due_log_->push_back(jobs_[slot].id);
    leave_delayed(slot);
    make_ready(slot, now);
  }
  // update_key() takes the key out of the resting ones, or lets it rest beyond `now`.
  while (!resting_.empty() && resting_.top().rank <= now) update_key(resting_.top().handle, now);
}

TimePoint JobQueue::tick(TimePoint now) {
  advance(now);
  return next_wakeup(now);
}

TimePoint JobQueue::next_wakeup(TimePoint now) const noexcept {
  TimePoint next = leases_.empty() ? kNever : leases_.top().rank;
  if (limits_.paused || leases_.size() >= limits_.concurrency) return next;
  TimePoint startable = eligible_.empty() ? kNever : now;
  if (!delayed_.empty()) startable = std::min(startable, delayed_.top().rank);
  if (!resting_.empty()) startable = std::min(startable, resting_.top().rank);
  if (startable == kNever) return next;
  return std::min(next, std::max(startable, bucket_.next_available(now)));
}

std::optional<JobId> JobQueue::most_important(KeyId id) const {
  const Key& key = keys_[index_of(id)];
  if (key.ready.empty()) return std::nullopt;
  return jobs_[key.ready.top().handle].id;
}

TimePoint JobQueue::next_change(TimePoint now) const noexcept {
  TimePoint next = leases_.empty() ? kNever : leases_.top().rank;
  if (!delayed_.empty()) next = std::min(next, delayed_.top().rank);
  if (!resting_.empty()) next = std::min(next, resting_.top().rank);
  if (!eligible_.empty() && !limits_.paused && !bucket_.ready(now)) next = std::min(next, bucket_.next_available(now));
  return next;
}

// --- to look at ----------------------------------------------------------------------------------------------------

std::optional<JobId> JobQueue::most_important() const noexcept {
  if (eligible_.empty()) return std::nullopt;
  return jobs_[keys_[static_cast<std::uint32_t>(eligible_.top().handle)].ready.top().handle].id;
}

Explanation JobQueue::explain(JobId id, TimePoint now) {
  advance(now);
  const Slot slot = jobs_.find(id);
  if (slot == kNoSlot) return {WaitReason::not_found};
  const Job& job = jobs_[slot];
  const Key& key = key_of(job);
  const auto because = [&](WaitReason reason, TimePoint until = kNever) {
    return Explanation{reason, until, 0, job.state};
  };
  if (job.state == JobState::running) return because(WaitReason::running, leases_[jobs_.place(slot)].rank);
  if (job.state == JobState::delayed) return because(WaitReason::not_due, delayed_[jobs_.place(slot)].rank);
  if (limits_.paused) return because(WaitReason::queue_paused);
  if (leases_.size() >= limits_.concurrency) return because(WaitReason::queue_concurrency);
  if (!bucket_.ready(now)) return because(WaitReason::queue_rate, bucket_.next_available(now));
  if (key.rest_until > now) return because(WaitReason::key_resting, key.rest_until);
  if (key.running >= key.concurrency) return because(WaitReason::key_concurrency);
  if (!key.bucket.ready(now)) return because(WaitReason::key_rate, key.bucket.next_available(now));
  Explanation explanation = because(WaitReason::none, now);
  const ReadyRank rank = rank_of(job);
  for (std::size_t i = 0; i < eligible_.size(); ++i) {
    const ReadyHeap& ready = keys_[static_cast<std::uint32_t>(eligible_[i].handle)].ready;
    for (std::size_t j = 0; j < ready.size(); ++j) explanation.ahead += ready[j].rank < rank;
  }
  if (explanation.ahead > 0) {
    explanation.reason = WaitReason::more_important_jobs;
    explanation.until = kNever;
  }
  return explanation;
}

std::size_t JobQueue::memory_bytes() const noexcept {
  std::size_t bytes = jobs_.memory_bytes() + keys_.capacity() * sizeof(Key) +
                      key_places_.capacity() * sizeof(std::uint32_t) + delayed_.memory_bytes() +
                      leases_.memory_bytes() + eligible_.memory_bytes() + resting_.memory_bytes();
  for (const Key& key : keys_) bytes += key.ready.memory_bytes();
  return bytes;
}

}  // namespace argiope

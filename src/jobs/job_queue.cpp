#include "argiope/jobs/job_queue.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

constexpr std::size_t kFirstIndex = 64;

}  // namespace

JobQueue::JobQueue(QueueLimits limits, std::uint32_t max_lease_expiries)
    : index_(kFirstIndex, kNoSlot),
      limits_(limits),
      bucket_(limits.rate, limits.burst),
      max_lease_expiries_(max_lease_expiries) {}
JobQueue::~JobQueue() = default;
JobQueue::JobQueue(JobQueue&&) noexcept = default;

// --- nodes and their index by id: linear probing, deletion by shifting back, so no tombstones ---------------------

JobQueue::Slot JobQueue::new_node() {
  if (free_ != kNoSlot) {
    const Slot slot = free_;
    free_ = node(slot).place;
    return slot;
  }
  if (used_nodes_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<Node[]>(kChunk));
  return used_nodes_++;
}

void JobQueue::free_node(Slot slot) noexcept {
  Node& job = node(slot);
  job.state = JobState::done;
  job.place = free_;
  free_ = slot;
}

JobQueue::Slot JobQueue::find(JobId id) const noexcept {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t i = mix64(id) & mask;; i = (i + 1) & mask) {
    if (index_[i] == kNoSlot || node(index_[i]).id == id) return index_[i];
  }
}

void JobQueue::index_insert(JobId id, Slot slot) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t i = mix64(id) & mask;
  while (index_[i] != kNoSlot) i = (i + 1) & mask;
  index_[i] = slot;
}

void JobQueue::index_erase(JobId id) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = mix64(id) & mask;
  while (node(index_[hole]).id != id) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; index_[i] != kNoSlot; i = (i + 1) & mask) {
    const std::size_t home = mix64(node(index_[i]).id) & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      index_[hole] = index_[i];
      hole = i;
    }
  }
  index_[hole] = kNoSlot;
  --indexed_;
}

void JobQueue::index_grow() {
  std::vector<Slot> bigger(index_.size() * 2, kNoSlot);
  index_.swap(bigger);
  for (const Slot slot : bigger) {
    if (slot != kNoSlot) index_insert(node(slot).id, slot);
  }
}

// --- keys --------------------------------------------------------------------------------------------------------

KeyId JobQueue::key(std::string_view name) {
  const auto next = static_cast<KeyId>(keys_.size());
  const auto [found, added] = key_names_.try_emplace(std::string(name), next);
  if (added) {
    try {
      keys_.emplace_back();
    } catch (...) {
      key_names_.erase(found);
      throw;
    }
  }
  return found->second;
}

void JobQueue::set_limits(const QueueLimits& limits, TimePoint now) {
  limits_ = limits;
  bucket_.set(limits.rate, limits.burst, now);
}

void JobQueue::set_key_limits(KeyId key, const KeyLimits& limits, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(key);
  keys_[index].limits = limits;
  keys_[index].bucket.set(limits.rate, limits.burst, now);
  update_key(index, now);
}

void JobQueue::rest_key(KeyId key, TimePoint until, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(key);
  if (until <= keys_[index].rest_until) return;
  keys_[index].rest_until = until;
  update_key(index, now);
}

void JobQueue::wake_key(KeyId key, TimePoint now) {
  const auto index = static_cast<std::uint32_t>(key);
  keys_[index].rest_until = TimePoint{};
  update_key(index, now);
}

void JobQueue::leave_heaps(Key& key) noexcept {
  if (key.eligible_place != ReadyHeap::kNowhere) eligible_.erase(key.eligible_place, eligible_place());
  if (key.resting_place != ReadyHeap::kNowhere) resting_.erase(key.resting_place, resting_place());
}

// Puts a key where its jobs and limits say it belongs: among those that may start a job, among those that time will let
// go on, or nowhere, until a job of its own ends or comes.
void JobQueue::update_key(std::uint32_t index, TimePoint now) {
  Key& key = keys_[index];
  if (key.ready.empty() || key.running >= key.limits.concurrency) return leave_heaps(key);
  const TimePoint allowed = std::max(key.rest_until, key.bucket.next(now));
  if (allowed > now) {
    if (key.resting_place != ReadyHeap::kNowhere && allowed != kNever) {
      return resting_.update(key.resting_place, allowed, resting_place());
    }
    leave_heaps(key);
    if (allowed != kNever) resting_.push(allowed, index, resting_place());
    return;
  }
  const ReadyRank rank = key.ready.top().rank;
  if (key.eligible_place != ReadyHeap::kNowhere) {
    if (eligible_[key.eligible_place].rank.value != rank.value) {
      eligible_.update(key.eligible_place, rank, eligible_place());
    }
    return;
  }
  leave_heaps(key);
  eligible_.push(rank, index, eligible_place());
}

// --- moving between states -----------------------------------------------------------------------------------------

JobQueue::ReadyRank JobQueue::rank_of(const Node& job) const noexcept {
  // Higher priorities come out smaller; the sequence settles ties.
  const auto inverted = ~(static_cast<std::uint32_t>(job.priority) ^ 0x80000000u);
  return {static_cast<std::uint64_t>(inverted) << 32 | job.sequence};
}

std::uint32_t JobQueue::next_sequence() {
  if (sequence_ == std::numeric_limits<std::uint32_t>::max()) [[unlikely]] renumber();
  return sequence_++;
}

// Once every four thousand million puts: the jobs that are there get small numbers again, in the same order.
void JobQueue::renumber() {
  std::vector<Slot> slots;
  for (const Slot slot : index_) {
    if (slot != kNoSlot) slots.push_back(slot);
  }
  std::ranges::sort(slots, {}, [this](Slot slot) { return node(slot).sequence; });
  sequence_ = 0;
  for (const Slot slot : slots) node(slot).sequence = sequence_++;
  // The order is the same, so every heap stays a heap while its ranks change one by one.
  for (const Slot slot : slots) {
    const Node& job = node(slot);
    if (job.state == JobState::ready) keys_[job.key].ready.update(job.place, rank_of(job), job_place());
  }
  for (Key& key : keys_) {
    if (key.eligible_place != ReadyHeap::kNowhere) {
      eligible_.update(key.eligible_place, key.ready.top().rank, eligible_place());
    }
  }
}

void JobQueue::make_ready(Slot slot, TimePoint now) {
  Node& job = node(slot);
  Key& key = keys_[job.key];
  key.ready.push(rank_of(job), slot, job_place());
  job.state = JobState::ready;
  ++ready_;
  if (key.ready.size() == 1) ++keys_with_ready_;
  // A job that is not the key's most important one changes nothing for the key.
  if (job.place == 0) update_key(job.key, now);
}

void JobQueue::make_delayed(Slot slot, TimePoint due_at) {
  delayed_.push(due_at, slot, job_place());
  node(slot).state = JobState::delayed;
  node(slot).time = due_at;
}

void JobQueue::place_by_due(Slot slot, TimePoint due_at, TimePoint now) {
  if (due_at > now) {
    make_delayed(slot, due_at);
  } else {
    make_ready(slot, now);
  }
}

void JobQueue::take_from_heap(Slot slot, TimePoint now) {
  Node& job = node(slot);
  if (job.state == JobState::delayed) return delayed_.erase(job.place, job_place());
  Key& key = keys_[job.key];
  const bool was_first = job.place == 0;
  key.ready.erase(job.place, job_place());
  --ready_;
  if (key.ready.empty()) --keys_with_ready_;
  if (was_first) update_key(job.key, now);
}

void JobQueue::promote(TimePoint now) {
  while (!delayed_.empty() && delayed_.top().rank <= now) {
    const Slot slot = delayed_.pop(job_place()).handle;
    make_ready(slot, now);
  }
  while (!resting_.empty() && resting_.top().rank <= now) {
    const std::uint32_t key = resting_.pop(resting_place()).handle;
    update_key(key, now);
  }
}

void JobQueue::expire_leases(TimePoint now) {
  while (!leases_.empty() && leases_.top().rank <= now) {
    const Slot slot = leases_.top().handle;
    Node& job = node(slot);
    end_lease(slot, now);
    if (++job.expiries > max_lease_expiries_) {
      buried_.push_back(job.id);
      again_.erase(job.id);
      index_erase(job.id);
      free_node(slot);
    } else {
      make_ready(slot, now);
    }
  }
}

// --- the calls -----------------------------------------------------------------------------------------------------

PutResult JobQueue::put(const JobSpec& spec, TimePoint now) {
  if (const Slot slot = find(spec.id); slot != kNoSlot) {
    Node& job = node(slot);
    if (job.state == JobState::running) {
      const auto [found, added] = again_.try_emplace(spec.id, Again{spec.priority, spec.due_at, spec.payload});
      found->second.priority = std::max(found->second.priority, spec.priority);
      found->second.due_at = std::min(found->second.due_at, spec.due_at);
      job.again = true;
      return PutResult::run_again;
    }
    const TimePoint due_at = job.state == JobState::delayed ? std::min(job.time, spec.due_at) : now;
    take_from_heap(slot, now);
    job.priority = std::max(job.priority, spec.priority);
    place_by_due(slot, due_at, now);
    return PutResult::merged;
  }
  if ((indexed_ + 1) * 4 > index_.size() * 3) index_grow();
  const Slot slot = new_node();
  node(slot) = Node{spec.id,       spec.payload, spec.due_at, spec.priority, next_sequence(), 0,
                    static_cast<std::uint32_t>(spec.key), 0, JobState::ready, 0, 0, false};
  try {
    place_by_due(slot, spec.due_at, now);
  } catch (...) {
    free_node(slot);
    throw;
  }
  index_insert(spec.id, slot);
  ++indexed_;
  return PutResult::added;
}

bool JobQueue::contains(JobId id) const noexcept { return find(id) != kNoSlot; }

std::optional<std::uint64_t> JobQueue::payload_of(JobId id) const noexcept {
  const Slot slot = find(id);
  return slot == kNoSlot ? std::nullopt : std::optional(node(slot).payload);
}

bool JobQueue::set_priority(JobId id, std::int32_t priority, TimePoint now) {
  const Slot slot = find(id);
  if (slot == kNoSlot || node(slot).state == JobState::running) return false;
  Node& job = node(slot);
  job.priority = priority;
  if (job.state == JobState::delayed) return true;
  Key& key = keys_[job.key];
  const bool was_first = job.place == 0;
  key.ready.update(job.place, rank_of(job), job_place());
  if (was_first || job.place == 0) update_key(job.key, now);
  return true;
}

bool JobQueue::remove(JobId id, TimePoint now) {
  const Slot slot = find(id);
  if (slot == kNoSlot || node(slot).state == JobState::running) return false;
  take_from_heap(slot, now);
  index_erase(id);
  free_node(slot);
  return true;
}

std::optional<Lease> JobQueue::lease(TimePoint now, Duration lease_time) {
  if (!leases_.empty() && leases_.top().rank <= now) expire_leases(now);
  promote(now);
  if (eligible_.empty() || limits_.paused || leases_.size() >= limits_.concurrency || !bucket_.ready(now)) {
    return std::nullopt;
  }
  leases_.make_room();
  const std::uint32_t index = eligible_.top().handle;
  Key& key = keys_[index];
  const Slot slot = key.ready.pop(job_place()).handle;
  --ready_;
  if (key.ready.empty()) --keys_with_ready_;
  bucket_.take(now);
  key.bucket.take(now);
  ++key.running;
  update_key(index, now);

  Node& job = node(slot);
  job.state = JobState::running;
  job.generation = ++generation_;
  ++job.attempts;
  job.time = saturating_add(now, lease_time);
  leases_.push(job.time, slot, job_place());
  return Lease{job.id,      static_cast<std::uint64_t>(slot) << 32 | job.generation,
               KeyId{index}, job.priority,
               job.payload, job.attempts};
}

JobQueue::Slot JobQueue::running_slot(std::uint64_t token) const noexcept {
  const auto slot = static_cast<Slot>(token >> 32);
  if (slot >= used_nodes_) return kNoSlot;
  const Node& job = node(slot);
  return job.state == JobState::running && job.generation == static_cast<std::uint32_t>(token) ? slot : kNoSlot;
}

// Takes the job out of the running ones and frees its key's place; where it goes is the caller's to say.
void JobQueue::end_lease(Slot slot, TimePoint now) {
  Node& job = node(slot);
  leases_.erase(job.place, job_place());
  Key& key = keys_[job.key];
  --key.running;
  if (key.limits.delay > Duration::zero()) {
    key.rest_until = std::max(key.rest_until, saturating_add(now, key.limits.delay));
  }
  update_key(job.key, now);
}

bool JobQueue::renew(std::uint64_t token, TimePoint until) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  leases_.update(node(slot).place, until, job_place());
  node(slot).time = until;
  return true;
}

bool JobQueue::done(std::uint64_t token, TimePoint now) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  end_lease(slot, now);
  Node& job = node(slot);
  if (job.again) {
    const Again again = again_.extract(job.id).mapped();
    job.again = false;
    job.attempts = job.expiries = 0;
    job.priority = again.priority;
    job.payload = again.payload;
    job.sequence = next_sequence();
    place_by_due(slot, again.due_at, now);
    return true;
  }
  index_erase(job.id);
  free_node(slot);
  return true;
}

bool JobQueue::retry(std::uint64_t token, TimePoint due_at, TimePoint now) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  end_lease(slot, now);
  Node& job = node(slot);
  if (job.again) {
    // The wish to run again is granted by the retry.
    const Again again = again_.extract(job.id).mapped();
    job.again = false;
    job.priority = std::max(job.priority, again.priority);
  }
  place_by_due(slot, due_at, now);
  return true;
}

bool JobQueue::put_back(std::uint64_t token, TimePoint now) {
  const Slot slot = running_slot(token);
  if (slot == kNoSlot) return false;
  Node& job = node(slot);
  Key& key = keys_[job.key];
  leases_.erase(job.place, job_place());
  --key.running;
  --job.attempts;
  key.bucket.give_back();
  bucket_.give_back();
  make_ready(slot, now);
  update_key(job.key, now);
  return true;
}

TimePoint JobQueue::next_wakeup(TimePoint now) {
  TimePoint next = kNever;
  if (!leases_.empty()) next = leases_.top().rank;
  if (limits_.paused || leases_.size() >= limits_.concurrency) return next;
  TimePoint startable = kNever;
  if (!eligible_.empty()) startable = now;
  if (!delayed_.empty()) startable = std::min(startable, delayed_.top().rank);
  if (!resting_.empty()) startable = std::min(startable, resting_.top().rank);
  if (startable == kNever) return next;
  return std::min(next, std::max(startable, bucket_.next(now)));
}

Explanation JobQueue::explain(JobId id, TimePoint now) {
  promote(now);
  const Slot slot = find(id);
  if (slot == kNoSlot) return {WaitReason::not_found};
  const Node& job = node(slot);
  if (job.state == JobState::running) return {WaitReason::running, job.time};
  if (job.state == JobState::delayed) return {WaitReason::not_due, job.time};
  if (limits_.paused) return {WaitReason::queue_paused};
  if (leases_.size() >= limits_.concurrency) return {WaitReason::queue_concurrency};
  if (!bucket_.ready(now)) return {WaitReason::queue_rate, bucket_.next(now)};
  const Key& key = keys_[job.key];
  if (key.rest_until > now) return {WaitReason::key_resting, key.rest_until};
  if (key.running >= key.limits.concurrency) return {WaitReason::key_concurrency};
  if (!key.bucket.ready(now)) return {WaitReason::key_rate, key.bucket.next(now)};
  std::size_t ahead = 0;
  const std::uint64_t rank = rank_of(job).value;
  for (std::size_t i = 0; i < eligible_.size(); ++i) {
    const ReadyHeap& ready = keys_[eligible_[i].handle].ready;
    for (std::size_t j = 0; j < ready.size(); ++j) ahead += ready[j].rank.value < rank;
  }
  return {ahead == 0 ? WaitReason::none : WaitReason::more_important_jobs, ahead == 0 ? now : kNever, ahead};
}

std::size_t JobQueue::memory_bytes() const noexcept {
  std::size_t bytes = chunks_.size() * kChunk * sizeof(Node) + index_.capacity() * sizeof(Slot) +
                      keys_.capacity() * sizeof(Key) + delayed_.memory_bytes() + leases_.memory_bytes() +
                      eligible_.memory_bytes() + resting_.memory_bytes();
  for (const Key& key : keys_) bytes += key.ready.memory_bytes();
  return bytes;
}

}  // namespace argiope

// A book beside the owner: it looks up what the owner knows.
#include <algorithm>
#include <limits>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "engine/book_rules.hpp"
#include "engine/store_book.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostQueuesKnown = 10'000;
constexpr int kMostTimesBusy = 5;
constexpr int kLooksAfterJump = 20;
constexpr std::size_t kMostOfSameKey = 10'000;
constexpr Duration kLookForOutput = std::chrono::milliseconds{250};
constexpr std::uint64_t kNoCapacity = std::numeric_limits<std::uint64_t>::max();

}  // namespace

// --- time ------------------------------------------------------------------------------------------------------------

// The owner notes a jump of the calendar in the store: who stays open for long has to look there now and then, and at
// once where he sees one himself.
Coro<Result<void>> BesideJobBook::set_clock() {
  EventLoop& loop = EventLoop::current();
  const bool jumped = clock_ && clock_->look();
  if (clock_ && !jumped && loop.time() < clock_until_) co_return Result<void>{};
  auto calendar = jumped ? co_await or_return(recall_after_jump()) : co_await or_return(recall_calendar(store_));
  if (!clock_ || jumped || clock_->offset() != calendar.offset) {
    clock_.emplace(loop.clock(), calendar.offset, std::move(calendar.jumps));
  }
  clock_until_ = saturating_add(loop.time(), options_.believe);
  co_return Result<void>{};
}

// Waits a moment for an owner to note the jump. Without one there is nobody for whom time has not jumped as well.
Coro<Result<CalendarMemory>> BesideJobBook::recall_after_jump() {
  const Duration before = clock_->jumps().back().before;
  for (int looks = 0;; ++looks) {
    auto calendar = co_await recall_calendar(store_);
    if (!calendar || calendar->offset != before || looks == kLooksAfterJump) co_return calendar;
    co_await sleep(options_.poll_interval);
  }
}

// --- what decides ----------------------------------------------------------------------------------------------------

const BesideJobBook::Known* BesideJobBook::find_known(const std::string& name) const {
  const auto found = known_.find(name);
  return found != known_.end() && EventLoop::current().time() < found->second.until ? &found->second : nullptr;
}

Coro<Result<BesideJobBook::Known>> BesideJobBook::get_known(std::string name) {
  if (const Known* found = find_known(name)) co_return *found;
  const auto queue_there = co_await or_return(open_queue(name));
  if (known_.size() >= kMostQueuesKnown) known_.clear();
  const QueueConfig& config = queue_there.config;
  const Known now_known{queue_there.id, config.max_payload_bytes, config.capacity, config.at_capacity,
                        saturating_add(EventLoop::current().time(), options_.believe)};
  known_[name] = now_known;
  co_return now_known;
}

Coro<Result<StoredQueue>> BesideJobBook::open_queue(std::string name) {
  co_await or_return(check_queue_name(name));
  if (options_.create_queues) co_return co_await store_(&Store::open_queue, std::move(name), options_.new_queue);
  auto there = co_await queue(name);
  if (!there && there.error().code == Errc::not_found) co_return queue_not_made(name);
  co_return there;
}

// Jobs of the queue that have not ended.
Coro<Result<std::uint64_t>> BesideJobBook::live_in(QueueId queue) {
  const auto counted = co_await or_return(store_(&Store::counts));
  const auto found = std::ranges::find(counted, queue, &QueueCounts::queue);
  if (found == counted.end()) co_return std::uint64_t{0};
  co_return found->counts.ready + found->counts.delayed + found->counts.running;
}

// Why the job may not be put, as far as its queue's policy says; `queue` is filled in. An error of the call is the
// store's.
Coro<Result<std::optional<Error>>> BesideJobBook::why_not(const NewJob& job, Known& queue) {
  using Refusal = std::optional<Error>;
  if (const Known* there = find_known(job.queue)) {
    queue = *there;
  } else {
    auto got = co_await get_known(job.queue);
    const bool is_the_jobs = !got && (got.error().code == Errc::invalid_input || got.error().code == Errc::not_found);
    if (is_the_jobs) co_return Refusal(std::move(got.error()));
    queue = co_await or_return(std::move(got));
  }
  auto good = check_job(job, job.queue, queue.max_payload_bytes);
  co_return good ? Refusal() : Refusal(std::move(good.error()));
}

// --- each by itself ------------------------------------------------------------------------------------

Coro<Result<std::vector<Result<PutReply>>>> BesideJobBook::put_each(std::vector<NewJob> jobs) {
  co_await or_return(set_clock());
  std::vector<Result<PutReply>> replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<PutRequest> requests;
  std::vector<std::size_t> places;
  std::map<QueueId, std::uint64_t> live;  // of queues with a capacity, those of this call included
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    NewJob& job = jobs[i];
    Known queue;
    if (auto refusal = co_await or_return(why_not(job, queue))) {
      replies[i] = std::unexpected(std::move(*refusal));
      continue;
    }
    while (queue.capacity != kNoCapacity) {
      auto found = live.find(queue.id);
      if (found == live.end()) found = live.emplace(queue.id, co_await or_return(live_in(queue.id))).first;
      if (has_room(found->second, 1, queue.capacity)) {
        ++found->second;
        break;
      }
      if (!waits_for_room(queue.at_capacity, 1, queue.capacity)) {
        replies[i] = queue_is_full(job.queue, found->second, queue.capacity);
        break;
      }
      // Those before this one need not wait with it, and may be what fills the queue.
      if (!requests.empty()) {
        auto put = co_await or_return(send(std::exchange(requests, {}), Refusal::alone));
        for (std::size_t k = 0; k < put.size(); ++k) replies[places[k]] = std::move(put[k]);
        places.clear();
      }
      live.clear();
      co_await sleep(options_.poll_interval);
      co_await or_return(set_clock());
      queue = co_await or_return(get_known(job.queue));  // its policy may be another one by now
    }
    if (!replies[i]) continue;
    requests.push_back({std::move(job)});
    places.push_back(i);
  }
  if (requests.empty()) co_return replies;
  auto put = co_await or_return(send(std::move(requests), Refusal::alone));
  for (std::size_t k = 0; k < put.size(); ++k) replies[places[k]] = std::move(put[k]);
  co_return replies;
}

// --- all or none -----------------------------------------------------------------------------------------------------

Coro<Result<std::vector<PutReply>>> BesideJobBook::put_all(std::vector<NewJob> jobs, bool last_completes) {
  co_await or_return(set_clock());
  std::map<std::string, std::uint64_t> wanted;
  std::vector<PutRequest> requests;
  requests.reserve(jobs.size());
  for (NewJob& job : jobs) {
    Known queue;
    if (auto refusal = co_await or_return(why_not(job, queue))) co_return std::unexpected(std::move(*refusal));
    if (queue.capacity != kNoCapacity) ++wanted[job.queue];
    requests.push_back({std::move(job)});
  }
  if (last_completes) requests.back().waits_for_those_before = true;
  co_await or_return(wait_for_room(wanted));
  auto put = co_await or_return(send(std::move(requests), Refusal::whole));
  std::vector<PutReply> replies;
  replies.reserve(put.size());
  for (Result<PutReply>& reply : put) replies.push_back(co_await or_return(std::move(reply)));
  co_return replies;
}

// Until all of these queues have room for so many at the same moment.
Coro<Result<void>> BesideJobBook::wait_for_room(const std::map<std::string, std::uint64_t>& wanted) {
  for (auto name_and_count = wanted.begin(); name_and_count != wanted.end();) {
    const auto& [name, count] = *name_and_count;
    const Known queue = co_await or_return(get_known(name));
    const std::uint64_t live = co_await or_return(live_in(queue.id));
    if (has_room(live, count, queue.capacity)) {
      ++name_and_count;
      continue;
    }
    if (!waits_for_room(queue.at_capacity, count, queue.capacity)) co_return queue_is_full(name, live, queue.capacity);
    co_await sleep(options_.poll_interval);
    co_await or_return(set_clock());
    name_and_count = wanted.begin();
  }
  co_return Result<void>{};
}

// --- with a key ------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> BesideJobBook::once(OnceCall call) {
  co_await or_return(set_clock());
  OnceReply before = co_await or_return(look_for_request(store_, call.key));
  if (before.how != Repetition::first) co_return before;
  if (call.changes.empty()) co_return co_await put_once(std::move(call));
  for (Change& change : call.changes) set_times(change);
  OnceRequest request{.key = std::move(call.key), .now = clock().now(), .changes = std::move(call.changes)};
  co_return co_await store_(&Store::once, std::move(request));
}

Coro<Result<OnceReply>> BesideJobBook::put_once(OnceCall call) {
  const bool each = call.as == OnceCall::As::each;
  OnceRequest request{.key = std::move(call.key), .refusal = each ? Refusal::alone : Refusal::whole};
  std::map<std::string, std::uint64_t> wanted;
  for (NewJob& job : call.jobs) {
    Known queue;
    auto refusal = co_await or_return(why_not(job, queue));
    if (refusal && !each) co_return std::unexpected(std::move(*refusal));
    if (!refusal && queue.capacity != kNoCapacity) ++wanted[job.queue];
    Result<PutRequest>& put = request.puts.emplace_back(PutRequest{});
    if (refusal) put = std::unexpected(std::move(*refusal));
    if (put) put->job = std::move(job);
  }
  if (call.as == OnceCall::As::batch && !request.puts.empty()) request.puts.back()->waits_for_those_before = true;
  // A queue that has not enough for all of its jobs takes none of them.
  while (!wanted.empty()) {
    std::map<std::string, std::uint64_t> of_one{*wanted.begin()};
    auto room = co_await wait_for_room(each ? of_one : wanted);
    if (!room && (!each || room.error().code != Errc::refused)) co_return std::unexpected(std::move(room.error()));
    for (Result<PutRequest>& put : request.puts) {
      if (!room && put && put->job.queue == of_one.begin()->first) put = std::unexpected(room.error());
    }
    if (!each) break;
    wanted.erase(wanted.begin());
  }
  for (Result<PutRequest>& put : request.puts) {
    if (put) put->job.due_at = whole_ms(clock().from_calendar(put->job.due_at));
  }
  request.now = clock().now();
  co_return co_await store_(&Store::once, std::move(request));
}

// --- into the store --------------------------------------------------------------------------------------------------

Coro<Result<std::vector<Result<PutReply>>>> BesideJobBook::send(std::vector<PutRequest> requests, Refusal refusal) {
  for (PutRequest& request : requests) request.job.due_at = whole_ms(clock().from_calendar(request.job.due_at));
  for (int again = 0;; ++again) {
    auto put = co_await store_(&Store::put, requests, clock().now(), refusal);
    // Another process has kept the store locked for long; nothing has been put.
    if (put || put.error().code != Errc::busy || again == kMostTimesBusy) co_return put;
    co_await sleep(options_.poll_interval);
  }
}

// --- changes ---------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<ChangeReply>>> BesideJobBook::change(std::vector<Change> changes) {
  co_await or_return(set_clock());
  for (Change& change : changes) set_times(change);
  co_return co_await store_(&Store::change, std::move(changes));
}

void BesideJobBook::set_times(Change& change) const {
  change.at = clock().now();
  change.calendar_at = clock().to_calendar(change.at);
  change.due_at = whole_ms(clock().from_calendar(change.due_at));
  change.keep = std::nullopt;
}

Coro<Result<void>> BesideJobBook::write_config(std::string name, QueueConfig config, JobReachRef) {
  co_await or_return(check_queue_name(name));
  const auto opened_queue = co_await or_return(store_(&Store::open_queue, name, config));
  const auto written = co_await store_(&Store::configure, opened_queue.id, std::move(config));
  known_.erase(name);
  co_return written;
}

Coro<Result<void>> BesideJobBook::erase_named(std::string name) {
  const StoredQueue found = co_await or_return(queue(name));
  known_.erase(name);
  co_return co_await store_(&Store::erase_queue, found.id);
}

// --- looks -----------------------------------------------------------------------------------------------------------

Coro<Result<JobOutput>> BesideJobBook::output(JobId id, OutputLook look) {
  EventLoop& loop = EventLoop::current();
  const TimePoint limit = saturating_add(loop.time(), look.wait);
  for (;;) {
    JobOutput output = output_of(co_await or_return(get(id)), look);
    if (output.is_news(look) || loop.time() >= limit) co_return output;
    co_await sleep(std::min(kLookForOutput, limit - loop.time()));
  }
}

bool BesideJobBook::explain_run(const JobRecord& record, JobExplanation& why) const {
  if (record.state != JobState::running) return false;
  why.worker = record.worker;
  why.lease_until = clock().to_calendar(record.lease_until);
  why.reason = WaitReason::no_owner;  // whoever ran it has gone, and nobody has taken over
  if (options_.owned) {
    ++why.attempts;
    why.reason = WaitReason::running;
    why.until = why.lease_until;
  }
  return true;
}

// Which limit of its queue keeps the job, as far as the store shows what runs.
Coro<Result<std::optional<WaitReason>>> BesideJobBook::held_by(const JobRecord& record, const StoredQueue& queue,
                                                               JobExplanation& why) {
  using Held = std::optional<WaitReason>;
  const QueueLimits& limits = queue.config.limits;
  const KeyLimits& of_key = queue.config.key_limits;
  const auto counted = co_await or_return(store_(&Store::counts));
  const auto counts = std::ranges::find(counted, queue.id, &QueueCounts::queue);
  const std::uint64_t running = counts == counted.end() ? 0 : counts->counts.running;
  if (running == 0) why.owner_knows.push_back(WaitReason::no_worker);
  if (limits.rate < kUnlimitedRate) why.owner_knows.push_back(WaitReason::queue_rate);
  if (of_key.delay > Duration{}) why.owner_knows.push_back(WaitReason::key_resting);
  if (of_key.rate < kUnlimitedRate) why.owner_knows.push_back(WaitReason::key_rate);
  if (limits.paused) co_return Held(WaitReason::queue_paused);
  if (running >= limits.concurrency) co_return Held(WaitReason::queue_concurrency);
  if (limits.rate == 0) co_return Held(WaitReason::queue_rate);
  if (of_key.concurrency < running || (running > 0 && of_key.concurrency == running)) {
    JobFilter of_same{.queue = record.queue, .state = JobState::running, .key = record.key, .payloads = false};
    of_same.limit = std::min<std::size_t>(of_key.concurrency, kMostOfSameKey);
    const auto same = co_await or_return(store_(&Store::list, std::move(of_same)));
    if (same.size() >= of_key.concurrency) co_return Held(WaitReason::key_concurrency);
  }
  if (of_key.rate == 0) co_return Held(WaitReason::key_rate);
  co_return Held();
}

}  // namespace argiope

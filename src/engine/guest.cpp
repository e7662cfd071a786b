#include "argiope/engine/guest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "argiope/async/or_return.hpp"
#include "argiope/async/sleep.hpp"
#include "base/internal/printable.hpp"
#include "engine/calendar_memory.hpp"
#include "engine/explaining.hpp"
#include "engine/keep_alive.hpp"
#include "engine/refusals.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostQueuesKnown = 10'000;
constexpr int kMostTimesBusy = 5;
constexpr int kLooksAfterJump = 20;
constexpr std::size_t kPage = 10'000;
constexpr std::uint64_t kNoCapacity = std::numeric_limits<std::uint64_t>::max();

std::uint64_t live_of(const StateCounts& counts) { return counts.ready + counts.delayed + counts.running; }

}  // namespace

// All of a guest. Its coroutines keep it, so that it may outlive its Guest until they have ended.
struct Guest::State {
  // What decides about puts into a queue.
  struct Known {
    QueueId id = 0;
    std::size_t max_payload_bytes = 0;
    std::uint64_t capacity = 0;
    CapacityPolicy at_capacity{};
    TimePoint until{};
  };

  State(Store& its_store, GuestOptions its_options) : store_(its_store), options_(std::move(its_options)) {}

  Coro<Result<void>> set_clock();
  Coro<Result<CalendarMemory>> recall_after_jump();
  void as_of_now(JobRecord& record) const;
  WallTime job_now() const { return clock_->now(); }
  const Known* find_known(const std::string& name) const;
  Coro<Result<Known>> get_known(std::string name);
  Coro<Result<std::map<QueueId, std::uint64_t>>> live();
  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<NewJob> jobs);
  Coro<Result<std::vector<Result<PutReply>>>> put_accepted(std::vector<PutRequest> requests);
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes);
  Coro<Result<JobId>> find(std::string id_or_name);
  Coro<Result<JobRecord>> get(JobId id);
  Coro<Result<std::vector<Attempt>>> history(JobId id);
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter);
  Coro<Result<StoredQueue>> queue(std::string name);
  Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> counts(std::string only);
  Coro<Result<JobExplanation>> explain(JobId id, bool owned);
  Coro<Result<std::optional<WaitReason>>> held_by_limits(const JobRecord& record, const StoredQueue& queue,
                                                         JobExplanation& why);

  StoreUse store_;
  const GuestOptions options_;
  std::optional<JobClock> clock_;
  TimePoint clock_until_{};  // when it is to be compared with the store's
  std::map<std::string, Known> queues_;
};

Coro<Result<Guest>> Guest::open(Store& store, GuestOptions options) {
  auto state = std::make_shared<State>(store, std::move(options));
  co_await or_return(state->set_clock());
  co_return Guest(std::move(state));
}

Guest::Guest(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Guest::Guest(Guest&&) noexcept = default;
Guest& Guest::operator=(Guest&& other) noexcept {
  if (this != &other) let_go();
  state_ = std::move(other.state_);
  return *this;
}
Guest::~Guest() { let_go(); }
void Guest::let_go() noexcept {
  if (state_ != nullptr) state_->store_.let_go();
}

Coro<Result<std::vector<Result<PutReply>>>> Guest::put(std::vector<NewJob> jobs) {
  return keep_alive(state_, state_->put(std::move(jobs)));
}
Coro<Result<std::vector<ChangeReply>>> Guest::change(std::vector<Change> changes) {
  return keep_alive(state_, state_->change(std::move(changes)));
}
Coro<Result<JobId>> Guest::find(std::string id_or_name) {
  return keep_alive(state_, state_->find(std::move(id_or_name)));
}
Coro<Result<JobRecord>> Guest::get(JobId id) { return keep_alive(state_, state_->get(id)); }
Coro<Result<std::vector<Attempt>>> Guest::history(JobId id) { return keep_alive(state_, state_->history(id)); }
Coro<Result<std::vector<JobRecord>>> Guest::list(JobFilter filter) {
  return keep_alive(state_, state_->list(std::move(filter)));
}
Coro<Result<StoredQueue>> Guest::queue(std::string name) { return keep_alive(state_, state_->queue(std::move(name))); }
Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> Guest::counts(std::string only) {
  return keep_alive(state_, state_->counts(std::move(only)));
}
Coro<Result<JobExplanation>> Guest::explain(JobId id, bool owned) {
  return keep_alive(state_, state_->explain(id, owned));
}
WallTime Guest::job_now() const { return state_->job_now(); }

// --- time ----------------------------------------------------------------------------------------------------------

// The owner notes a jump of the calendar in the store: who stays open for long has to look there now and then, and at once
// where he sees one himself.
Coro<Result<void>> Guest::State::set_clock() {
  EventLoop& loop = EventLoop::current();
  const bool jumped = clock_ && clock_->look();
  if (clock_ && !jumped && loop.time() < clock_until_) co_return Result<void>{};
  auto calendar = jumped ? co_await recall_after_jump() : co_await recall_calendar(store_);
  if (!calendar) co_return std::unexpected(std::move(calendar.error()));
  if (!clock_ || jumped || clock_->offset() != calendar->offset) {
    clock_.emplace(loop.clock(), calendar->offset, std::move(calendar->jumps));
  }
  clock_until_ = saturating_add(loop.time(), options_.believe);
  co_return Result<void>{};
}

// Waits a moment for an owner to note the jump. Without one there is nobody for whom time has not jumped as well.
Coro<Result<CalendarMemory>> Guest::State::recall_after_jump() {
  const Duration before = clock_->jumps().back().before;
  for (int looks = 0;; ++looks) {
    auto calendar = co_await recall_calendar(store_);
    if (!calendar || calendar->offset != before || looks == kLooksAfterJump) co_return calendar;
    co_await sleep(options_.poll_interval);
  }
}

void Guest::State::as_of_now(JobRecord& record) const {
  if (record.state == JobState::delayed && record.pending == 0 && record.due_at <= clock_->now()) {
    record.state = JobState::ready;
  }
  to_calendar(record, *clock_);
}

// --- puts ----------------------------------------------------------------------------------------------------------

const Guest::State::Known* Guest::State::find_known(const std::string& name) const {
  const auto found = queues_.find(name);
  return found != queues_.end() && EventLoop::current().time() < found->second.until ? &found->second : nullptr;
}

Coro<Result<Guest::State::Known>> Guest::State::get_known(std::string name) {
  if (const Known* found = find_known(name)) co_return *found;
  auto opened = co_await or_return(store_(&Store::open_queue, name, options_.new_queue));
  if (queues_.size() >= kMostQueuesKnown) queues_.clear();
  const QueueConfig& config = opened.config;
  const Known known{opened.id, config.max_payload_bytes, config.capacity, config.at_capacity,
                    saturating_add(EventLoop::current().time(), options_.believe)};
  queues_[name] = known;
  co_return known;
}

Coro<Result<std::map<QueueId, std::uint64_t>>> Guest::State::live() {
  auto counted = co_await or_return(store_(&Store::counts));
  std::map<QueueId, std::uint64_t> live;
  for (const QueueCounts& counts : counted) live[counts.queue] = live_of(counts.counts);
  co_return live;
}

Coro<Result<std::vector<Result<PutReply>>>> Guest::State::put(std::vector<NewJob> jobs) {
  co_await or_return(set_clock());
  std::vector<Result<PutReply>> replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<PutRequest> requests;
  std::vector<std::size_t> places;
  std::map<QueueId, std::uint64_t> wanted;  // of this call, of queues with a capacity
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    NewJob& job = jobs[i];
    Known queue;
    if (const Known* known = find_known(job.queue)) {
      queue = *known;
    } else {
      auto got = co_await get_known(job.queue);
      if (!got && got.error().code != Errc::invalid_input) co_return std::unexpected(std::move(got.error()));
      if (!got) {
        replies[i] = std::unexpected(std::move(got.error()));
        continue;
      }
      queue = *got;
    }
    if (job.payload.size() > queue.max_payload_bytes) {
      replies[i] =
          fail(Errc::too_large, fmt::format("a payload of {} bytes: queue {} takes at most {}", job.payload.size(),
                                            in_quotes(job.queue), queue.max_payload_bytes));
      continue;
    }
    if (queue.capacity != kNoCapacity) {
      for (std::uint64_t& count = wanted[queue.id];;) {
        const auto there = co_await or_return(live());
        const auto found = there.find(queue.id);
        if ((found == there.end() ? 0 : found->second) + count < queue.capacity) {
          ++count;
          break;
        }
        if (queue.at_capacity == CapacityPolicy::refuse) {
          replies[i] = fail(Errc::refused, fmt::format("queue {} is full: it holds {} jobs, its capacity",
                                                       in_quotes(job.queue), queue.capacity));
          break;
        }
        // Those before this one need not wait with it, and may be what fills the queue.
        if (!requests.empty()) {
          auto put = co_await or_return(put_accepted(std::exchange(requests, {})));
          for (std::size_t k = 0; k < put.size(); ++k) replies[places[k]] = std::move(put[k]);
          places.clear();
          for (auto& [id, of_queue] : wanted) of_queue = 0;
        }
        co_await sleep(options_.poll_interval);
        co_await or_return(set_clock());
      }
      if (!replies[i]) continue;
    }
    job.due_at = whole_ms(clock_->from_calendar(job.due_at));
    requests.push_back({std::move(job)});
    places.push_back(i);
  }
  if (requests.empty()) co_return replies;
  auto put = co_await or_return(put_accepted(std::move(requests)));
  for (std::size_t k = 0; k < put.size(); ++k) replies[places[k]] = std::move(put[k]);
  co_return replies;
}

Coro<Result<std::vector<Result<PutReply>>>> Guest::State::put_accepted(std::vector<PutRequest> requests) {
  for (int again = 0;; ++again) {
    auto put = co_await store_(&Store::put, requests, job_now(), Refusal::alone);
    // Another process has kept the store locked for long; nothing has been put.
    if (put || put.error().code != Errc::busy || again == kMostTimesBusy) co_return put;
    co_await sleep(options_.poll_interval);
  }
}

Coro<Result<std::vector<ChangeReply>>> Guest::State::change(std::vector<Change> changes) {
  co_await or_return(set_clock());
  for (Change& change : changes) {
    change.at = job_now();
    change.calendar_at = clock_->to_calendar(change.at);
    change.due_at = whole_ms(clock_->from_calendar(change.due_at));
  }
  co_return co_await store_(&Store::change, std::move(changes));
}

// --- looks ---------------------------------------------------------------------------------------------------------

Coro<Result<JobId>> Guest::State::find(std::string id_or_name) {
  const auto number = parse_job_id(id_or_name);
  if (!number) co_return std::unexpected(number.error());
  if (*number) co_return **number;
  auto named = co_await or_return(store_(&Store::find_name, id_or_name));
  if (!named)
    co_return fail(Errc::not_found, fmt::format("job {}: there is no job of that name", in_quotes(id_or_name)));
  co_return *named;
}

Coro<Result<JobRecord>> Guest::State::get(JobId id) {
  co_await or_return(set_clock());
  auto found = co_await or_return(store_(&Store::get, id));
  if (!found) co_return no_such_job(id);
  JobRecord record = std::move(*found);
  as_of_now(record);
  co_return record;
}

Coro<Result<std::vector<Attempt>>> Guest::State::history(JobId id) {
  co_await or_return(set_clock());
  auto attempts = co_await store_(&Store::history, id);
  if (!attempts) co_return std::unexpected(std::move(attempts.error()));
  for (Attempt& attempt : *attempts) attempt.ended_at = clock_->to_calendar(attempt.ended_at);
  co_return attempts;
}

Coro<Result<std::vector<JobRecord>>> Guest::State::list(JobFilter filter) {
  co_await or_return(set_clock());
  const std::size_t limit = filter.limit;
  const std::optional<JobState> wanted = filter.state;
  // Those that are due may lie among the delayed ones.
  std::vector<std::optional<JobState>> kinds{wanted};
  if (wanted == JobState::ready) kinds.push_back(JobState::delayed);
  std::vector<JobRecord> all;
  for (const std::optional<JobState> kind : kinds) {
    JobFilter page_filter = filter;
    page_filter.state = kind;
    for (std::size_t found = 0; found < limit;) {
      page_filter.limit = std::min(limit, kPage);
      auto page = co_await or_return(store_(&Store::list, page_filter));
      for (JobRecord& record : page) {
        page_filter.after = record.id;
        as_of_now(record);
        if ((wanted && record.state != *wanted) || found == limit) continue;
        all.push_back(std::move(record));
        ++found;
      }
      if (page.size() < page_filter.limit) break;
    }
  }
  std::ranges::sort(all, {}, &JobRecord::id);
  if (all.size() > limit) all.resize(limit);
  co_return all;
}

Coro<Result<StoredQueue>> Guest::State::queue(std::string name) {
  auto all = co_await or_return(store_(&Store::queues));
  const auto found = std::ranges::find(all, name, &StoredQueue::name);
  if (found == all.end()) co_return no_such_queue(name);
  co_return std::move(*found);
}

Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> Guest::State::counts(std::string only) {
  co_await or_return(set_clock());
  const auto queues = co_await or_return(store_(&Store::queues));
  auto counted = co_await or_return(store_(&Store::counts));
  const WallTime now = job_now();
  std::vector<std::pair<std::string, StateCounts>> named;
  for (QueueCounts& counts : counted) {
    const auto queue = std::ranges::find(queues, counts.queue, &StoredQueue::id);
    if (queue == queues.end() || (!only.empty() && queue->name != only)) continue;
    WaitingJob last;
    for (bool more = counts.counts.delayed > 0; more;) {
      auto page = co_await or_return(store_(&Store::load_delayed, queue->id, last.due_at, last.id, kPage));
      const auto due = static_cast<std::uint64_t>(
          std::ranges::count_if(page, [&](const WaitingJob& job) { return job.due_at <= now; }));
      const std::uint64_t moved = std::min(due, counts.counts.delayed);
      counts.counts.ready += moved;
      counts.counts.delayed -= moved;
      more = due == kPage;
      if (more) last = std::move(page.back());
    }
    named.emplace_back(queue->name, counts.counts);
  }
  if (!only.empty() && named.empty()) co_return no_such_queue(only);
  std::ranges::sort(named, {}, &std::pair<std::string, StateCounts>::first);
  co_return named;
}

Coro<Result<JobExplanation>> Guest::State::explain(JobId id, bool owned) {
  co_await or_return(set_clock());
  auto found = co_await or_return(store_(&Store::get, id));
  if (!found) co_return no_such_job(id);
  const JobRecord& record = *found;
  const auto queue = co_await or_return(this->queue(record.queue));
  JobExplanation why = explanation_of(record, &queue.config);
  const JobClock& clock = *clock_;
  const auto because = [&](WaitReason reason, std::optional<WallTime> until = {}) {
    why.reason = reason;
    if (until) why.until = clock.to_calendar(*until);
  };
  if (record.state == JobState::running) {
    why.worker = record.worker;
    why.lease_until = clock.to_calendar(record.lease_until);
    if (owned) {
      ++why.attempts;
      because(WaitReason::running, record.lease_until);
    } else {
      because(WaitReason::no_owner);  // whoever ran it has gone, and nobody has taken over
    }
    co_return why;
  }
  const auto said = co_await or_return(explain_by_record(store_, record, why));
  if (said) co_return why;
  if (record.state == JobState::delayed && record.due_at > clock.now()) {
    because(WaitReason::not_due, record.due_at);
    co_return why;
  }
  why.state = JobState::ready;
  auto ahead = co_await or_return(count_ahead(store_, record, queue.id, queue.config.ageing));
  why.ahead = ahead;
  if (!owned) {
    because(WaitReason::no_owner);
    co_return why;
  }
  auto held = co_await or_return(held_by_limits(record, queue, why));
  because(held ? *held : why.ahead > 0 ? WaitReason::more_important_jobs : WaitReason::none);
  co_return why;
}

// Which limit of its queue keeps the job, as far as the store shows what runs; what it does not show is noted.
Coro<Result<std::optional<WaitReason>>> Guest::State::held_by_limits(const JobRecord& record, const StoredQueue& queue,
                                                                     JobExplanation& why) {
  using Held = std::optional<WaitReason>;
  const QueueLimits& limits = queue.config.limits;
  const KeyLimits& of_key = queue.config.key_limits;
  auto counted = co_await or_return(store_(&Store::counts));
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
    of_same.limit = std::min<std::size_t>(of_key.concurrency, kPage);
    auto same = co_await or_return(store_(&Store::list, std::move(of_same)));
    if (same.size() >= of_key.concurrency) co_return Held(WaitReason::key_concurrency);
  }
  if (of_key.rate == 0) co_return Held(WaitReason::key_rate);
  co_return Held();
}

}  // namespace argiope

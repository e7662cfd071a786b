#include "engine/queue_desk.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "argiope/async/coro.hpp"
#include "engine/book_rules.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds{1};  // for queues that are not there

// A job that no store takes: it joins a batch that is out of its reach, and that none of `jobs` joins. Behind others
// in a call that is done as a whole, it has the store try them: nothing of the call is done, and the error is of the
// first that is refused.
PutRequest refused_for_certain(const std::vector<const NewJob*>& jobs) {
  JobId batch = kMostJobId;
  while (std::ranges::find(jobs, batch, &NewJob::batch) != jobs.end()) --batch;
  const auto nothing = [](std::string_view) { return false; };
  return {
      {.queue = jobs.front()->queue, .batch = batch, .within = std::make_shared<const JobReach>("", nothing, true)}};
}

std::vector<std::string> names_in(const std::vector<const NewJob*>& jobs) {
  std::vector<std::string> names;
  for (const NewJob* job : jobs) names.push_back(job->queue);
  return names;
}

}  // namespace

// --- queues that come and go -----------------------------------------------------------------------------------------

QueueDesk::Queue& QueueDesk::add(StoredQueue stored) {
  if (Queue* known = queues_.find_erased_too(stored.id)) {
    if (std::exchange(known->erased, false)) known->window.configure(std::move(stored.config), loop_.time());
    mark(*known);
    owned_.callers.join(*known);
    return *known;
  }
  Queue& queue = queues_.add(std::make_unique<Queue>(loop_, std::move(stored), options_.window, clock_));
  queue.window.jobs().set_due_log(&owned_.due_log);
  queue.pass = owned_.least_pass;
  queue.is_free = is_free(queue.name());
  wakeups_.push(kNever, static_cast<std::uint32_t>(queues_.size() - 1), wakeup_place());
  mark(queue);
  owned_.callers.join(queue);
  return queue;
}

// The queues that one call is to make, against the most there may be. One asker has half of them at most, so that the
// others can make some. Those that are there are counted once in a call, and nothing is made while it is under way.
class QueueDesk::NewQueues {
 public:
  explicit NewQueues(const QueueDesk& desk) : desk_(desk), most_(desk.options_.most_queues) {}

  // Whether one more may be made, which counts for the next ones then.
  Result<void> add(std::string_view name, const JobReach* asker) {
    if (most_ == EngineOptions{}.most_queues || desk_.is_free(name)) return {};
    if (!all_) all_ = desk_.queues_.counted();
    if (*all_ >= most_) return too_many_queues(name, most_);
    const std::size_t share = std::max<std::size_t>(most_ / 2, 1);
    if (asker != nullptr && !asker->who.empty()) {
      const auto [its, is_first] = by_asker_.try_emplace(asker->who);
      if (is_first) its->second = desk_.queues_.counted_of(*asker);
      if (its->second >= share) return too_many_queues_of(name, asker->who, share);
      ++its->second;
    }
    ++*all_;
    return {};
  }

 private:
  const QueueDesk& desk_;
  const std::size_t most_;
  std::optional<std::size_t> all_;
  std::map<std::string_view, std::size_t> by_asker_;
};

Coro<Result<QueueDesk::Queue*>> QueueDesk::named(std::string name, bool may_create, JobReachRef asker) {
  if (Queue* known = queues_.find(name)) co_return known;
  co_await or_return(check_queue_name(name));
  Result<void> good = may_create ? NewQueues(*this).add(name, asker.get()) : Result<void>(queue_not_made(name));
  if (!good && may_be_news({name})) {
    co_await or_return(load_new());
    if (Queue* made = queues_.find(name)) co_return made;
  }
  co_await or_return(std::move(good));
  auto stored = co_await or_return(store_(&Store::open_queue, name, options_.new_queue));
  Queue& queue = add(std::move(stored));
  queue.maker = asker == nullptr ? std::string() : asker->who;
  co_return &queue;
}

Result<void> QueueDesk::check_policies(const std::vector<const NewJob*>& jobs, bool takes_room) const {
  std::map<std::string_view, std::uint64_t> wanted;
  NewQueues to_make(*this);
  for (const NewJob* job : jobs) {
    const Queue* const known = queues_.find(job->queue);
    const QueueConfig& config = known == nullptr ? options_.new_queue : known->config();
    std::uint64_t& count = wanted[job->queue];
    if (known == nullptr && count == 0) {
      if (auto good = check_queue_name(job->queue); !good) return good;
      if (!options_.create_queues) return queue_not_made(job->queue);
      if (auto good = to_make.add(job->queue, job->within.get()); !good) return good;
    }
    if (auto good = check_job(*job, job->queue, config.max_payload_bytes); !good) return good;
    const std::uint64_t live = known == nullptr ? 0 : known->room.live();
    const bool fits =
        has_room(live, ++count, config.capacity) || waits_for_room(config.at_capacity, count, config.capacity);
    if (takes_room && !fits) return queue_is_full(job->queue, live, config.capacity);
  }
  return {};
}

Coro<Result<void>> QueueDesk::check_first(const std::vector<const NewJob*>& jobs, bool takes_room,
                                          const std::vector<JobId>& of_call) {
  if (std::ranges::all_of(jobs, [&](const NewJob* job) { return queues_.find(job->queue) != nullptr; }))
    co_return Result<void>{};
  auto good = check_policies(jobs, takes_room);
  if (!good && may_be_news(names_in(jobs))) {
    co_await or_return(load_new());
    good = check_policies(jobs, takes_room);
  }
  co_await or_return(std::move(good));
  std::vector<PutRequest> requests;
  bool names_others = false;
  for (const NewJob* job : jobs) {
    requests.push_back({*job});
    std::string().swap(requests.back().job.payload);  // clear() would keep its room
    names_others = names_others || job->id != 0 || !job->name.empty() || !job->waits_for.empty() || job->batch != 0;
  }
  co_await or_return(job_rules::check_plain(requests));
  const auto is_of_call = [&](JobId id) { return std::ranges::find(of_call, id) != of_call.end(); };
  const bool names_those = std::ranges::any_of(jobs, [&](const NewJob* job) {
    return is_of_call(job->batch) || std::ranges::any_of(job->waits_for, is_of_call);
  });
  if (!names_others || names_those) co_return Result<void>{};
  requests.push_back(refused_for_certain(jobs));
  const Error if_good = job_rules::out_of_reach("batch", requests.back().job.batch);
  const auto tried = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::whole);
  // A name that is taken is no refusal of every put.
  if (tried || tried.error().message == if_good.message || tried.error().code == Errc::conflict)
    co_return Result<void>{};
  co_return std::unexpected(tried.error());
}

Coro<Result<QueueDesk::Queue*>> QueueDesk::of(const NewJob& job, std::vector<JobId> of_call) {
  co_return (co_await or_return(of_all({&job}, true, std::move(of_call)))).front();
}

Coro<Result<std::vector<QueueDesk::Queue*>>> QueueDesk::of_all(std::vector<const NewJob*> jobs, bool takes_room,
                                                               std::vector<JobId> of_call) {
  co_await or_return(check_first(jobs, takes_room, of_call));
  std::vector<Queue*> queues;
  for (const NewJob* job : jobs) {
    Queue* const queue = co_await or_return(named(job->queue, options_.create_queues, job->within));
    co_await or_return(check_job(*job, queue->name(), queue->config().max_payload_bytes));
    queues.push_back(queue);
  }
  co_return queues;
}

Coro<Result<void>> QueueDesk::configure_named(std::string name, QueueConfig config, JobReachRef asker) {
  Queue& queue = *co_await or_return(named(std::move(name), true, std::move(asker)));
  queue.is_free = is_free(queue.name());
  co_await or_return(store_(&Store::configure, queue.window.id(), config));
  queue.window.configure(std::move(config), loop_.time());
  tell(JobEventKind::queue_changed, 0, queue);
  queue.room.look_again();
  mark(queue);
  co_return Result<void>{};
}

// Not found from here on, so that a put that comes meanwhile has the store make it again.
Coro<Result<void>> QueueDesk::erase_named(std::string name) {
  Queue* const queue = queues_.find(name);
  if (queue == nullptr) co_return no_such_queue(name);
  if (queue->room.live() > 0) co_return std::unexpected(job_rules::not_empty(name));
  queue->erased = true;
  auto done = co_await store_(&Store::erase_queue, queue->window.id());
  if (!done) {
    queue->erased = false;
    owned_.callers.join(*queue);  // who asked for it meanwhile
    mark(*queue);
  } else {
    tell(JobEventKind::queue_changed, 0, *queue);
  }
  co_return done;
}

// Those that others have made, configured or erased.
Coro<Result<void>> QueueDesk::load_new() {
  std::vector<Queue*> known_before;
  for (const auto& queue : queues_) {
    if (!queue->erased) known_before.push_back(queue.get());
  }
  auto stored = co_await or_return(store_(&Store::queues));
  for (Queue* queue : known_before) {
    const bool is_there = std::ranges::find(stored, queue->window.id(), &StoredQueue::id) != stored.end();
    if (!is_there && queue->room.live() == 0) queue->erased = true;
  }
  for (StoredQueue& queue : stored) {
    end_pause_if_over(queue.config, clock_.now());
    if (Queue* known = queues_.find(queue.id)) {
      known->window.configure(std::move(queue.config), loop_.time());
      mark(*known);
    } else {
      add(std::move(queue));
    }
  }
  co_return Result<void>{};
}

// Those that others may have made since the owner last looked. Not at each call: who asks for what is not there may do
// so often.
bool QueueDesk::may_be_news(const std::vector<std::string>& names) {
  const bool knows_all =
      std::ranges::all_of(names, [&](const std::string& name) { return queues_.find(name) != nullptr; });
  if (knows_all || loop_.time() < look_for_new_at_) return false;
  look_for_new_at_ = saturating_add(loop_.time(), kBetweenLooks);
  return true;
}

Coro<Result<void>> QueueDesk::recount() {
  must_recount_ = false;
  const auto counted = co_await store_(&Store::counts);
  if (!counted) {
    must_recount_ = true;
    co_return std::unexpected(counted.error());
  }
  for (const QueueCounts& counts : *counted) {
    Queue* const queue = queues_.find(counts.queue);
    if (queue != nullptr) queue->room.recount(counts.counts.ready + counts.counts.delayed + counts.counts.running);
  }
  co_return Result<void>{};
}

TimePoint QueueDesk::pause_ends(const Queue& queue) const {
  const QueueConfig& config = queue.config();
  const bool ends = config.limits.paused && config.paused_until != WallTime{};
  return ends ? clock_.to_monotonic(config.paused_until) : kNever;
}

// The time of its pause is over. The store goes on to say until when it was: a reader there knows what that means.
void QueueDesk::end_pause(Queue& queue, TimePoint now) {
  QueueConfig config = queue.config();
  end_pause_if_over(config, config.paused_until);
  queue.window.configure(std::move(config), now);
  tell(JobEventKind::queue_changed, 0, queue);
}

// --- what Engine and Book offer --------------------------------------------------------------------------------------

const StoredQueue* QueueDesk::find(std::string_view name) const {
  const Queue* queue = queues_.find(name);
  return queue == nullptr ? nullptr : &queue->window.stored();
}

Result<QueueConfig> QueueDesk::config(std::string_view name) const {
  const Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  return queue->window.config();
}

Result<void> QueueDesk::rest_key(std::string_view name, std::string_view key, TimePoint until) {
  Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  JobQueue& jobs = queue->window.jobs();
  jobs.rest_key(jobs.key(key), until, loop_.time());
  mark(*queue);
  return {};
}

Result<void> QueueDesk::wake_key(std::string_view name, std::string_view key) {
  Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  JobQueue& jobs = queue->window.jobs();
  jobs.wake_key(jobs.key(key), loop_.time());
  mark(*queue);
  return {};
}

std::size_t QueueDesk::in_memory() const {
  std::size_t count = 0;
  for (const auto& queue : queues_) count += queue->window.jobs().size();
  return count;
}

// --- which are to be looked at ---------------------------------------------------------------------------------------

void QueueDesk::note_dirty(Queue& queue) {
  if (!std::exchange(queue.dirty, true)) dirty_.push_back(&queue);
}

void QueueDesk::mark(Queue& queue) {
  note_dirty(queue);
  ticker_.soon();
}

std::vector<QueueDesk::Queue*> QueueDesk::take_due(TimePoint now) {
  while (!wakeups_.empty() && wakeups_.top().rank <= now) {
    Queue& queue = queues_[wakeups_.top().handle];
    wakeups_.update(0, kNever, wakeup_place());
    note_dirty(queue);
  }
  return std::exchange(dirty_, {});
}

void QueueDesk::wake_at(Queue& queue, TimePoint when) { wakeups_.update(queue.wakeup_place, when, wakeup_place()); }

void QueueDesk::look_when_due() {
  if (!wakeups_.empty()) ticker_.at(wakeups_.top().rank);
}

// --- what comes of jobs ----------------------------------------------------------------------------------------------

PutRequest QueueDesk::request_of(NewJob job, const Queue& queue) const {
  job.due_at = whole_ms(clock_.from_calendar(job.due_at));
  const WallTime now = clock_.now();
  const std::int32_t ranked = ranked_priority(job.priority, std::max(now, job.due_at), queue.window.config().ageing);
  const bool aside = queue.window.sets_aside(job.key, ranked);
  return {std::move(job), aside};
}

void QueueDesk::note_put(Queue& queue, const PutReply& reply) {
  queue.room.arrived(reply.outcome == PutOutcome::added || reply.outcome == PutOutcome::run_again);
  if (reply.outcome == PutOutcome::kept || reply.outcome == PutOutcome::taken) return;
  if (reply.cancelled != nullptr) {
    tell(JobEventKind::cancelled, reply.id, queue, reply.cancelled->why);
    // Until it was put into them, those batches may have been ready.
    for (const CancelledJob& other : reply.cancelled->cancelled) {
      if (Queue* its_queue = queues_.find(other.queue)) its_queue->window.forget(other.id, loop_.time());
    }
    return note_released(reply.cancelled->released, reply.cancelled->cancelled, reply.cancelled->ended_runs);
  }
  queue.window.place(reply.job, loop_.time());
  tell_of_put(queue, reply);
}

void QueueDesk::tell_of_put(Queue& queue, const PutReply& reply) {
  mark(queue);
  tell(reply.outcome == PutOutcome::changed ? JobEventKind::changed : JobEventKind::added, reply.id, queue, {}, 0,
       reply.job.due_at);
}

// Jobs that have waited for another one, which has ended.
void QueueDesk::note_released(const std::vector<WaitingJob>& released, const std::vector<CancelledJob>& cancelled,
                              const std::vector<EndedRun>& ended_runs) {
  for (const WaitingJob& job : released) {
    Queue* const found = queues_.find(job.queue);
    if (found == nullptr) continue;  // of a queue that another process has made: take_changes() will find it
    Queue& its_queue = *found;
    its_queue.window.place(job, loop_.time());
    mark(its_queue);
    tell(JobEventKind::unblocked, job.id, its_queue, {}, 0, job.due_at);
  }
  auto run = ended_runs.begin();
  for (const CancelledJob& job : cancelled) {
    // In the same order, after that of the job that has ended.
    const auto is_its = [&](const EndedRun& ended) { return ended.job == job.id; };
    const auto its_run = std::find_if(run, ended_runs.end(), is_its);
    const bool has_one = its_run != ended_runs.end();
    if (has_one) run = std::next(its_run);
    const Queue* const found = queues_.find(job.queue);
    if (found == nullptr) continue;
    tell(JobEventKind::cancelled, job.id, *found, "a job that it waited for has failed", 0, {}, 0,
         has_one ? *its_run : EndedRun{});
  }
  if (cancelled.empty()) return;
  run_in_background([](QueueDesk& desk) -> Coro<void> {
    auto counted = co_await desk.recount();
    if (!counted && desk.store_.failure()) desk.owned_.stop_all(counted.error());
  }(*this));
}

}  // namespace argiope

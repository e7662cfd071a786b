#include "engine/lease_desk.hpp"

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "engine/book_rules.hpp"

namespace argiope {

namespace {

// Of a job's first run, and in job time; the epoch for others, whose waiting began elsewhere.
WallTime waited_since(const JobRecord& record) noexcept {
  return record.attempts == 0 && record.expiries == 0 ? std::max(record.created_at, record.due_at) : WallTime{};
}

}  // namespace

// --- the loop --------------------------------------------------------------------------------------------------------

void LeaseDesk::pump() {
  if (owned_.closing || !owned_.started) return;
  const TimePoint now = loop_.time();
  for (Queue* queue : queue_desk_.take_due(now)) {
    queue->dirty = false;
    refresh(*queue, now);
  }
  serve(now);
  queue_desk_.look_when_due();
}

void LeaseDesk::tick(Queue& queue, TimePoint now) {
  if (now >= unwritten_until_) renew_unwritten(now);
  queue.window.jobs().tick(now);
  for (const JobId id : std::exchange(owned_.due_log, {})) tell(JobEventKind::due, id, queue);
}

// A store that is slow costs no job its lease: one that nobody has been given yet does not run out.
void LeaseDesk::renew_unwritten(TimePoint now) {
  unwritten_until_ = kNever;
  for (Unwritten& unwritten : unwritten_) {
    unwritten.first_until = kNever;
    for (const Grant& grant : *unwritten.grants) {
      for (const LeaseRequest& request : grant.requests) {
        const Run* const run = runs_.find(request.token);
        if (run == nullptr || run->holder_gone) continue;
        const TimePoint until = saturating_add(now, RunDesk::lease_time_of(*run));
        run->queue->window.jobs().renew(run->queue_token, until);
        unwritten.first_until = std::min(unwritten.first_until, until);
      }
    }
    unwritten_until_ = std::min(unwritten_until_, unwritten.first_until);
  }
}

// Does what is due in a queue, and finds out whether a job of it may be leased.
void LeaseDesk::refresh(Queue& queue, TimePoint now) {
  JobQueue& jobs = queue.window.jobs();
  tick(queue, now);
  if (queue_desk_.pause_ends(queue) <= now) queue_desk_.end_pause(queue, now);
  for (const ExpiredLease& lease : jobs.take_expired()) settle_desk_.expire(queue, lease);
  queue.window.trim(now);
  update_active(queue, now);
  if (!queue.refilling && !owned_.closing && queue.window.wants_load(now)) {
    queue.refilling = true;
    run_in_background(refill(queue));
  }
  TimePoint wakeup = std::min(jobs.next_change(now), queue_desk_.pause_ends(queue));
  if (!queue.refilling) wakeup = std::min(wakeup, queue.window.next_load_time());
  queue_desk_.wake_at(queue, wakeup);
}

// Reads on until the window has what it needs.
Coro<void> LeaseDesk::refill(Queue& queue) {
  struct Ended {
    Queue& queue;
    Event& read_on;
    ~Ended() {
      queue.refilling = false;
      read_on.set();
    }
  } const ended{queue, read_on_};
  while (!owned_.closing) {
    const auto read = co_await read_on(queue.window);
    if (!read) co_return owned_.stop_all(read.error());
    if (!*read) break;
    tick(queue, loop_.time());
    queue_desk_.mark(queue);
    if (!queue.window.wants_load(loop_.time())) break;
  }
  queue_desk_.mark(queue);
}

// Moves in the store what the window wants moved, reads what it asks for, and hands it over. False: it asked for
// nothing.
Coro<Result<bool>> LeaseDesk::read_on(QueueWindow& window) {
  const std::vector<QueueWindow::Load> loads = window.loads(loop_.time());
  std::vector<JobId> to_ready, to_set_aside;
  for (const QueueWindow::Move& move : window.take_moves()) {
    (move.shelf == Shelf::set_aside ? to_set_aside : to_ready).push_back(move.id);
  }
  if (!to_ready.empty()) co_await or_return(store_(&Store::shelve, std::move(to_ready), Shelf::ready));
  if (!to_set_aside.empty()) co_await or_return(store_(&Store::shelve, std::move(to_set_aside), Shelf::set_aside));
  for (const QueueWindow::Load& load : loads) {
    if (load.keys) {
      const auto keys =
          co_await or_return(store_(&Store::keys_set_aside, window.id(), load.after_key, load.read.limit));
      window.loaded_keys(load, keys);
      continue;
    }
    const auto jobs = co_await or_return(store_(&Store::read_shelf, window.id(), load.read, load.key));
    window.loaded(load, jobs, loop_.time());
  }
  co_return !loads.empty();
}

// Serves who waits, first come, first served.
void LeaseDesk::serve(TimePoint now) {
  if (std::ranges::none_of(queues_, [](const auto& queue) { return queue->active && queue->callers > 0; })) return;
  std::vector<Grant> grants = owned_.callers.serve([&](const LeaseCaller& caller) { return take(caller, now); });
  if (queue_desk_.has_dirty()) queue_desk_.look_soon();
  if (!grants.empty()) grant_after_turn(std::move(grants));
}

// --- who gets what ---------------------------------------------------------------------------------------------------

// Of what it would lease next.
Rank LeaseDesk::first_rank(const Queue& queue) {
  const JobQueue& jobs = queue.window.jobs();
  const auto id = jobs.most_important();
  const auto job = id ? jobs.find(*id) : std::nullopt;
  return job ? Rank{job->priority, *id} : Rank::last();
}

void LeaseDesk::update_active(Queue& queue, TimePoint now) {
  const JobQueue& jobs = queue.window.jobs();
  const bool active = jobs.may_start(now) && jobs.most_important() && queue.window.top_is_certain();
  if (active && !queue.active) queue.pass = std::max(queue.pass, owned_.least_pass);
  queue.active = active;
}

// Up to as many jobs as the caller asked for, from its queues in turn, by weight.
Grant LeaseDesk::take(const LeaseCaller& caller, TimePoint now) {
  Grant grant;
  const bool by_importance = caller.call->most_important_first;
  const auto later = [by_importance](const Queue* a, const Queue* b) {
    return by_importance ? more_important(first_rank(*b), first_rank(*a)) : a->pass > b->pass;
  };
  std::vector<Queue*> heap;
  for (Queue* queue : caller.queues) {
    if (queue->active) heap.push_back(queue);
  }
  std::ranges::make_heap(heap, later);
  while (!heap.empty() && grant.requests.size() < caller.call->most) {
    std::ranges::pop_heap(heap, later);
    Queue& queue = *heap.back();
    owned_.least_pass = std::max(owned_.least_pass, queue.pass);
    const auto lease = queue.window.jobs().lease(now, queue.config().lease_time);
    if (lease) begin(queue, *lease, caller, grant, now);
    update_active(queue, now);
    // Its window may have run low, and its next change may have moved.
    queue_desk_.note_dirty(queue);
    if (lease && queue.active) {
      std::ranges::push_heap(heap, later);
    } else {
      heap.pop_back();
    }
  }
  return grant;
}

// Its run begins here; it is handed out once that is written down.
void LeaseDesk::begin(Queue& queue, const Lease& lease, const LeaseCaller& caller, Grant& grant, TimePoint now) {
  ask_for(queue, lease.id, caller, grant, now);
  begin_run(queue, lease, grant.requests.back().token, caller);
}

void LeaseDesk::ask_for(const Queue& queue, JobId id, const LeaseCaller& caller, Grant& grant, TimePoint now) {
  const TimePoint until = saturating_add(now, queue.config().lease_time);
  grant.requests.push_back({.id = id,
                            .token = runs_.next_token(),
                            .until = clock_.to_job_time(until),
                            .worker = caller.call->worker,
                            .at = clock_.to_job_time(now),
                            .by_id = caller.queues.empty(),
                            .remote = caller.call->remote});
  grant.until.push_back(until);
}

void LeaseDesk::begin_run(Queue& queue, const Lease& lease, std::uint64_t token, const LeaseCaller& caller) {
  queue.window.took(lease.key);
  queue.pass += kStride / std::clamp<std::uint32_t>(queue.config().weight, 1, 1000);
  runs_.begin(
      token,
      {.queue = &queue, .queue_token = lease.token, .id = lease.id, .attempt = lease.attempts, .call = caller.call});
}

// Ends of runs that were asked for before, and that may have made room for these, go to the store first.
void LeaseDesk::grant_after_turn(std::vector<Grant> grants) {
  ++unsent_grants_;
  run_in_background(grant(std::move(grants)));
}

void LeaseDesk::grant_after_turn(Grant grant) {
  std::vector<Grant> grants;
  grants.push_back(std::move(grant));
  grant_after_turn(std::move(grants));
}

// Writes the leases down, and only then gives the jobs away.
Coro<void> LeaseDesk::grant(std::vector<Grant> grants) {
  --unsent_grants_;
  std::vector<LeaseRequest> requests;
  TimePoint first_until = kNever;
  for (Grant& grant : grants) {
    std::ranges::copy(grant.requests, std::back_inserter(requests));
    for (const TimePoint until : grant.until) first_until = std::min(first_until, until);
  }
  const TimePoint asked = loop_.time();
  const auto unwritten = unwritten_.insert(unwritten_.end(), {&grants, first_until});
  unwritten_until_ = std::min(unwritten_until_, first_until);
  auto leased = co_await store_(&Store::lease, std::move(requests));
  unwritten_.erase(unwritten);
  if (unwritten_.empty()) unwritten_until_ = kNever;
  if (!leased) {
    for (Grant& grant : grants) {
      LeaseCallers::leave(grant.caller);
      if (!grant.caller.answer.done()) grant.caller.answer.set_result(std::unexpected(leased.error()));
    }
    co_return owned_.stop_all(leased.error());
  }
  hand_out(grants, std::move(*leased), asked);
}

// `leased`: of each request of the grants, in their order. `asked`: when.
void LeaseDesk::hand_out(std::vector<Grant>& grants, std::vector<std::optional<JobRecord>> leased, TimePoint asked) {
  const TimePoint now = loop_.time();
  std::size_t next = 0;
  std::list<LeaseCaller> wait_on;
  for (Grant& grant : grants) {
    std::vector<LeasedJob> jobs;
    jobs.reserve(grant.requests.size());
    for (std::size_t i = 0; i < grant.requests.size(); ++i) {
      std::optional<JobRecord>& record = leased[next++];
      const std::uint64_t token = grant.requests[i].token;
      Run* const run = runs_.find(token);
      if (!record || is_left_as_it_is(*record)) {
        if (run == nullptr) continue;
        JobQueue& waiting = run->queue->window.jobs();
        if (record) {  // large ones were before it: the next who asks gets it
          waiting.put_back(run->queue_token, loop_.time());
        } else {  // another process has taken it away meanwhile, or it did not wait when it was asked for by its id
          waiting.done(run->queue_token, loop_.time());
        }
        queue_desk_.mark(*run->queue);
        runs_.end(token);
        continue;
      }
      if (grant.was_buried) {
        Queue& queue = *queues_.find(record->queue);
        queue.room.came_back();
        tell(JobEventKind::kicked, record->id, queue);
      }
      if (run == nullptr) {
        // Given back by close(), or run out, before it was written down: the store may have heard of that first.
        settle_desk_.give_back_unknown(*record, token);
        continue;
      }
      if (run->cancel_asked) {  // before anybody could tell its worker
        settle_desk_.end_unasked(token, {.outcome = Outcome::cancel, .error = run->cancel_why});
        continue;
      }
      if (record->lease_time > Duration{} || now - asked > RunDesk::lease_time_of(*run) / 8) {
        set_lease_time(*run, *record, asked, grant.until[i]);
      }
      run->max_attempts = record->max_attempts;
      const std::uint32_t attempt = run->attempt;
      const Duration lease_time = RunDesk::lease_time_of(*run);
      tell(JobEventKind::leased, record->id, *run->queue, grant.caller.call->worker, attempt, waited_since(*record));
      to_calendar(*record, clock_);
      jobs.emplace_back(std::move(*record), token, attempt, grant.until[i], lease_time);
    }
    LeaseCaller& caller = grant.caller;
    if (caller.answer.done()) {
      for (const LeasedJob& job : jobs) settle_desk_.give_back(job.token);
      LeaseCallers::leave(caller);
    } else if (jobs.empty() && !owned_.closing && caller.waits) {
      for (const std::string& name : std::vector(caller.unmade)) {
        if (Queue* const made = queues_.find(name)) LeaseCallers::join(caller, *made);
      }
      wait_on.push_back(std::move(caller));
      queue_desk_.look_soon();
    } else {
      if (store_.is_gone()) jobs.clear();  // a listener has destroyed the engine
      LeaseCallers::leave(caller);
      caller.answer.set_result(std::move(jobs));
    }
  }
  owned_.callers.add_first(std::move(wait_on));
}

// The taker of a job has nearly all of its lease left. `asked`: when it was, and when a lease of its own length begins.
void LeaseDesk::set_lease_time(Run& run, const JobRecord& record, TimePoint asked, TimePoint& until) {
  run.lease_time = record.lease_time;
  if (run.holder_gone) return;
  const TimePoint now = loop_.time();
  const Duration lease_time = RunDesk::lease_time_of(run);
  until = saturating_add(now - asked > lease_time / 8 ? now : asked, lease_time);
  run.queue->window.jobs().renew(run.queue_token, until);
  queue_desk_.mark(*run.queue);
}

// Asking makes no queue: who asks for the jobs of one that is not there waits until it is made.
Result<LeaseCaller> LeaseDesk::caller_of(std::shared_ptr<const LeaseCall> call) {
  LeaseCaller caller;
  for (const std::string& name : call->queues) {
    if (Queue* const queue = queues_.find(name)) {
      if (std::ranges::find(caller.queues, queue) == caller.queues.end()) caller.queues.push_back(queue);
      continue;
    }
    if (auto good = check_queue_name(name); !good) return std::unexpected(std::move(good.error()));
    if (!options_.create_queues) return queue_not_made(name);
    caller.unmade.push_back(name);
  }
  if (call->queues.empty()) return fail(Errc::invalid_input, "a lease needs the name of a queue");
  caller.call = std::move(call);
  caller.answer = loop_.create_future<Result<std::vector<LeasedJob>>>();
  return caller;
}

Coro<Result<std::vector<LeasedJob>>> LeaseDesk::lease_some(LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  const auto shared = std::make_shared<const LeaseCall>(std::move(call));
  for (;;) {
    if (queue_desk_.may_be_news(shared->queues)) {
      auto heard = co_await queue_desk_.load_new();
      if (!heard && !owned_.closing) co_return std::unexpected(std::move(heard.error()));
    }
    if (owned_.closing) co_return std::vector<LeasedJob>{};
    LeaseCaller caller = co_await or_return(caller_of(shared));
    caller.waits = true;
    Future<Result<std::vector<LeasedJob>>> answer = caller.answer;
    owned_.callers.add(std::move(caller));
    queue_desk_.look_soon();
    auto leased = co_await receive(std::move(answer));
    if (!leased || !leased->empty()) co_return leased;
  }
}

// Jobs granted to a caller that is cancelled before it has them are given back.
Coro<Result<std::vector<LeasedJob>>> LeaseDesk::receive(Future<Result<std::vector<LeasedJob>>> answer) {
  bool cancelled = false;
  try {
    (void)co_await answer;  // read below
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (!cancelled) {
    auto leased = std::move(const_cast<Result<std::vector<LeasedJob>>&>(answer.result()));
    if (leased) drop_stopped(*leased);
    co_return leased;
  }
  owned_.callers.drop_cancelled();
  if (answer.done() && !answer.cancelled() && answer.result()) {
    for (const LeasedJob& job : *answer.result()) settle_desk_.give_back(job.token);
  }
  throw CancelledError();
}

// Jobs that were cancelled, or whose lease has ended, since they were granted: the worker that is about to get them
// could not be told.
void LeaseDesk::drop_stopped(std::vector<LeasedJob>& jobs) {
  std::erase_if(jobs, [&](const LeasedJob& job) {
    const Run* const run = runs_.find(job.token);
    if (run == nullptr) return true;
    if (!run->cancel_asked) return false;
    settle_desk_.end_unasked(job.token, {.outcome = Outcome::cancel, .error = run->cancel_why});
    return true;
  });
}

Coro<Result<std::vector<LeasedJob>>> LeaseDesk::lease_what_there_is(LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  if (queue_desk_.may_be_news(call.queues)) co_await or_return(queue_desk_.load_new());
  LeaseCaller caller = co_await or_return(caller_of(std::make_shared<const LeaseCall>(std::move(call))));
  while (!owned_.closing) {
    const TimePoint now = loop_.time();
    bool reading = false;
    for (Queue* queue : caller.queues) {
      refresh(*queue, now);
      reading = reading || (queue->refilling && !queue->active);
    }
    Grant taken = take(caller, now);
    if (!taken.requests.empty()) {
      for (Queue* queue : caller.queues) ++queue->callers;
      Future<Result<std::vector<LeasedJob>>> answer = caller.answer;
      taken.caller = caller;
      grant_after_turn(std::move(taken));
      queue_desk_.look_soon();
      auto leased = co_await receive(std::move(answer));
      if (!leased || !leased->empty()) co_return leased;
      caller.answer = loop_.create_future<Result<std::vector<LeasedJob>>>();
      continue;
    }
    if (!reading) break;
    read_on_.clear();
    co_await read_on_.wait();
  }
  co_return std::vector<LeasedJob>{};
}

// The wait bounds how long it waits for jobs that come, and not the store, for what is there: a store slower than the
// wait would be given each job back, again and again. A lease that comes when the wait is over goes back.
Coro<Result<std::vector<LeasedJob>>> LeaseDesk::lease_before(LeaseCall call, Duration wait) {
  auto leased = co_await lease_what_there_is(call);
  if (!leased || !leased->empty()) co_return leased;
  try {
    leased = co_await timeout(wait).run(lease_some(std::move(call)));
  } catch (const TimeoutError&) {
    co_return std::vector<LeasedJob>{};
  }
  if (leased && leased->empty()) co_return std::unexpected(Error{Errc::cancelled, "the engine closes"});
  co_return leased;
}

Coro<Result<Backlog>> LeaseDesk::look_at_backlog(BacklogLook look) {
  const auto counted = co_await store_(&Store::counts);
  if (owned_.closing) co_return std::unexpected(Error{Errc::cancelled, "the engine closes"});
  if (!counted) co_return std::unexpected(counted.error());
  std::vector<QueueFacts> facts;
  for (const std::string& name : look.queues) {
    const StoredQueue* known = queue_desk_.find(name);
    if (known == nullptr) continue;
    const auto found = std::ranges::find(*counted, known->id, &QueueCounts::queue);
    if (found == counted->end()) continue;
    facts.push_back({.queue = *known, .counts = found->counts});
    end_pause_if_over(facts.back().queue.config, clock_.now());
  }
  const auto delayed = [this](const StoredQueue& of) {
    return store_(&Store::read_shelf, of.id, ShelfRead{.shelf = Shelf::delayed, .limit = kMostDelayedLookedAt},
                  std::string{});
  };
  Backlog left = co_await or_return(look_for_backlog(std::move(facts), delayed, clock_.now(), look.linger));
  left.next_due = clock_.to_calendar(left.next_due);
  co_return left;
}

// --- one job by its id ---------------------------------------------------------------------------------------------

Coro<Result<std::optional<LeasedJob>>> LeaseDesk::lease_one(JobId id, LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  const auto record = co_await or_return(store_(&Store::get, id));
  if (!record) co_return no_such_job(id);
  const bool waits = record->state == JobState::ready || record->state == JobState::delayed;
  const bool may = (waits && record->pending == 0) || record->state == JobState::buried;
  if (!may) co_return std::nullopt;
  Queue& queue = *co_await or_return(queue_desk_.named(record->queue, true, nullptr));
  if (owned_.closing || runs_.token_of(id) != 0) co_return std::nullopt;
  std::optional<Grant> taken = grant_of(queue, *record, std::move(call));
  if (!taken) co_return std::nullopt;
  Future<Result<std::vector<LeasedJob>>> answer = taken->caller.answer;
  grant_after_turn(std::move(*taken));
  auto leased = co_await or_return(receive(std::move(answer)));
  if (leased.empty()) co_return std::nullopt;
  co_return std::move(leased.front());
}

// The job into memory, if it is not there, and out of its turn. The store says whether it still waits.
std::optional<Grant> LeaseDesk::grant_of(Queue& queue, const JobRecord& record, LeaseCall call) {
  const TimePoint now = loop_.time();
  tick(queue, now);
  JobQueue& jobs = queue.window.jobs();
  if (jobs.is_at_concurrency(jobs.key(record.key))) return std::nullopt;
  const bool is_buried = record.state == JobState::buried;
  const WaitingJob job{.id = record.id,
                       .queue = queue.window.id(),
                       .key = record.key,
                       .priority = ranked_priority(record.priority, clock_.now(), queue.config().ageing),
                       .attempts = is_buried ? 0 : record.attempts,
                       .expiries = is_buried ? 0 : record.expiries};
  queue.window.hold(job, now);
  const auto lease = jobs.lease_job(record.id, now, queue.config().lease_time);
  queue_desk_.mark(queue);
  if (!lease) return std::nullopt;
  Grant grant;
  grant.caller.call = std::make_shared<const LeaseCall>(std::move(call));
  grant.caller.answer = loop_.create_future<Result<std::vector<LeasedJob>>>();
  grant.was_buried = is_buried;
  begin(queue, *lease, grant.caller, grant, now);
  return grant;
}

// --- leases that go on ---------------------------------------------------------------------------------------------

Coro<Result<void>> LeaseDesk::end_leases_of(std::string worker) {
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, running] : runs_) {
    if (running.call->worker == worker) tokens.push_back(token);
  }
  co_await or_return(end_each(std::move(tokens)));
  co_return Result<void>{};
}

Coro<Result<std::size_t>> LeaseDesk::end_each(std::vector<std::uint64_t> tokens) {
  const TimePoint now = loop_.time();
  std::size_t ended = 0;
  for (const std::uint64_t token : tokens) {
    Run* const run = runs_.find(token);
    if (run == nullptr) continue;
    ++ended;
    run->holder_gone = true;
    run->queue->window.jobs().renew(run->queue_token, now);
    queue_desk_.mark(*run->queue);
  }
  pump();  // finds that they have run out, and has it written down
  // A read is answered after all that was called before it.
  run_in_background(settle_desk_.flush(), Start::eagerly);
  co_await or_return(store_(&Store::find_waiting, std::vector<JobId>{}));
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  co_return ended;
}

// --- to look at ------------------------------------------------------------------------------------------------------

std::optional<Explanation> LeaseDesk::look_in_memory(std::string_view name, JobId id) {
  Queue* const queue = queues_.find(name);
  if (queue == nullptr) return std::nullopt;
  const TimePoint now = loop_.time();
  refresh(*queue, now);
  const Explanation found = queue->window.jobs().explain(id, now);
  return found.reason == WaitReason::not_found ? std::nullopt : std::optional(found);
}

bool LeaseDesk::is_worked_on(std::string_view name) const {
  const Queue* const queue = queues_.find(name);
  if (queue == nullptr) return false;
  return queue->callers > 0 || std::ranges::any_of(runs_, [&](const auto& run) { return run.second.queue == queue; });
}

}  // namespace argiope

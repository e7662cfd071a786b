// How the broker hands jobs out.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/or_return.hpp"
#include "argiope/async/timeout.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"

namespace argiope {

namespace {

// Of a job's first run, and in job time; the epoch for others, whose waiting began elsewhere.
WallTime waited_since(const JobRecord& record) noexcept {
  return record.attempts == 0 && record.expiries == 0 ? std::max(record.created_at, record.due_at) : WallTime{};
}

}  // namespace

Duration Broker::lease_time_of(const Run& run) {
  return run.lease_time > Duration{} ? run.lease_time : run.queue->config().lease_time;
}

// Of what it would lease next.
Rank Broker::first_rank(const Queue& queue) {
  const JobQueue& jobs = queue.window.jobs();
  const auto id = jobs.most_important();
  const auto job = id ? jobs.find(*id) : std::nullopt;
  return job ? Rank{job->priority, *id} : Rank::last();
}

void Broker::update_active(Queue& queue, TimePoint now) {
  const JobQueue& jobs = queue.window.jobs();
  const bool active = jobs.may_start(now) && jobs.most_important() && queue.window.top_is_certain();
  if (active && !queue.active) queue.pass = std::max(queue.pass, least_pass_);
  queue.active = active;
}

// Up to as many jobs as the caller asked for, from its queues in turn, by weight.
Broker::Grant Broker::take(Caller& caller, TimePoint now) {
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
    least_pass_ = std::max(least_pass_, queue.pass);
    const auto lease = queue.window.jobs().lease(now, queue.config().lease_time);
    if (lease) begin(queue, *lease, caller, grant, now);
    update_active(queue, now);
    // Its window may have run low, and its next change may have moved.
    note_dirty(queue);
    if (lease && queue.active) {
      std::ranges::push_heap(heap, later);
    } else {
      heap.pop_back();
    }
  }
  return grant;
}

// Its run begins here; it is handed out once that is written down.
void Broker::begin(Queue& queue, const Lease& lease, const Caller& caller, Grant& grant, TimePoint now) {
  ask_for(queue, lease.id, caller, grant, now);
  begin_run(queue, lease, grant.requests.back().token, caller);
}

void Broker::ask_for(const Queue& queue, JobId id, const Caller& caller, Grant& grant, TimePoint now) {
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

void Broker::begin_run(Queue& queue, const Lease& lease, std::uint64_t token, const Caller& caller) {
  queue.window.took(lease.key);
  queue.pass += kStride / std::clamp<std::uint32_t>(queue.config().weight, 1, 1000);
  runs_.begin(token, {.queue = &queue,
                      .queue_token = lease.token,
                      .id = lease.id,
                      .attempt = lease.attempts,
                      .call = caller.call});
}

// Serves who waits, first come, first served.
void Broker::serve(TimePoint now) {
  if (std::ranges::none_of(queues_, [](const auto& queue) { return queue->active && queue->callers > 0; })) return;
  std::vector<Grant> grants;
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    if (caller->answer.done()) {  // cancelled, and about to be dropped
      ++caller;
      continue;
    }
    Grant taken = take(*caller, now);
    if (taken.requests.empty()) {
      ++caller;
      continue;
    }
    taken.caller = std::move(*caller);
    grants.push_back(std::move(taken));
    caller = callers_.erase(caller);
  }
  if (!dirty_.empty()) ticker_.soon();
  if (!grants.empty()) grant_after_turn(std::move(grants));
}

// A store that is slow costs no job its lease: one that nobody has been given yet does not run out.
void Broker::renew_unwritten(TimePoint now) {
  unwritten_until_ = kNever;
  for (Unwritten& unwritten : unwritten_) {
    unwritten.first_until = kNever;
    for (const Grant& grant : *unwritten.grants) {
      for (const LeaseRequest& request : grant.requests) {
        const Run* const run = runs_.find(request.token);
        if (run == nullptr || run->holder_gone) continue;
        const TimePoint until = saturating_add(now, lease_time_of(*run));
        run->queue->window.jobs().renew(run->queue_token, until);
        unwritten.first_until = std::min(unwritten.first_until, until);
      }
    }
    unwritten_until_ = std::min(unwritten_until_, unwritten.first_until);
  }
}

// Ends of runs that were asked for before, and that may have made room for these, go to the store first.
void Broker::grant_after_turn(std::vector<Grant> grants) {
  ++unsent_grants_;
  run_in_background(grant(std::move(grants)));
}

// Writes the leases down, and only then gives the jobs away.
Coro<void> Broker::grant(std::vector<Grant> grants) {
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
      leave(grant.caller);
      if (!grant.caller.answer.done()) grant.caller.answer.set_result(std::unexpected(leased.error()));
    }
    co_return stop_all(leased.error());
  }
  hand_out(grants, std::move(*leased), asked);
}

// `leased`: of each request of the grants, in their order. `asked`: when.
void Broker::hand_out(std::vector<Grant>& grants, std::vector<std::optional<JobRecord>> leased, TimePoint asked) {
  const TimePoint now = loop_.time();
  std::size_t next = 0;
  std::list<Caller> wait_on;
  for (Grant& grant : grants) {
    std::vector<LeasedJob> jobs;
    jobs.reserve(grant.requests.size());
    for (std::size_t i = 0; i < grant.requests.size(); ++i) {
      std::optional<JobRecord>& record = leased[next++];
      const std::uint64_t token = grant.requests[i].token;
      Run* const run = runs_.find(token);
      if (!record) {
        // Another process has taken it away meanwhile, or it did not wait when it was asked for by its id.
        if (run == nullptr) continue;
        run->queue->window.jobs().done(run->queue_token, loop_.time());
        mark(*run->queue);
        runs_.end(token);
        continue;
      }
      if (is_left_as_it_is(*record)) {  // large ones were before it: whoever asks next gets it
        if (run == nullptr) continue;
        run->queue->window.jobs().put_back(run->queue_token, loop_.time());
        mark(*run->queue);
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
        give_back_unknown(*record, token);
        continue;
      }
      if (run->cancel_asked) {  // before anybody could tell its worker
        end_unasked(token, {.outcome = Outcome::cancel, .error = run->cancel_why});
        continue;
      }
      if (record->lease_time > Duration{} || now - asked > lease_time_of(*run) / 8) {
        set_lease_time(*run, *record, asked, grant.until[i]);
      }
      run->max_attempts = record->max_attempts;
      const std::uint32_t attempt = run->attempt;
      const Duration lease_time = lease_time_of(*run);
      tell(JobEventKind::leased, record->id, *run->queue, grant.caller.call->worker, attempt, waited_since(*record));
      to_calendar(*record, clock_);
      jobs.emplace_back(std::move(*record), token, attempt, grant.until[i], lease_time);
    }
    Caller& caller = grant.caller;
    if (caller.answer.done()) {
      for (const LeasedJob& job : jobs) give_back(job.token);
      leave(caller);
    } else if (jobs.empty() && !closing_ && caller.waits) {
      for (const std::string& name : std::vector(caller.unmade)) {
        if (Queue* const made = queues_.find(name)) join(caller, *made);
      }
      wait_on.push_back(std::move(caller));
      ticker_.soon();
    } else {
      if (store_.is_gone()) jobs.clear();  // a listener has destroyed the engine
      leave(caller);
      caller.answer.set_result(std::move(jobs));
    }
  }
  callers_.splice(callers_.begin(), wait_on);
}

// Whoever gets it has nearly all of its lease before him. `asked`: when it was, and when a lease of its own length begins.
void Broker::set_lease_time(Run& run, const JobRecord& record, TimePoint asked, TimePoint& until) {
  run.lease_time = record.lease_time;
  if (run.holder_gone) return;
  const TimePoint now = loop_.time();
  const Duration lease_time = lease_time_of(run);
  until = saturating_add(now - asked > lease_time / 8 ? now : asked, lease_time);
  run.queue->window.jobs().renew(run.queue_token, until);
  mark(*run.queue);
}

// Asking makes no queue: who asks for the jobs of one that is not there waits until somebody makes it.
Result<Broker::Caller> Broker::caller_of(std::shared_ptr<const LeaseCall> call) {
  Caller caller;
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

// A caller that waits, and a queue that was made meanwhile.
void Broker::join(Caller& caller, Queue& queue) {
  if (std::erase(caller.unmade, queue.name()) == 0) return;
  caller.queues.push_back(&queue);
  ++queue.callers;
}

Coro<Result<std::vector<LeasedJob>>> Broker::lease_some(LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  const auto shared = std::make_shared<const LeaseCall>(std::move(call));
  for (;;) {
    if (may_be_news(shared->queues)) {
      auto heard = co_await hear_of_queues();
      if (!heard && !closing_) co_return std::unexpected(std::move(heard.error()));
    }
    if (closing_) co_return std::vector<LeasedJob>{};
    Caller caller = co_await or_return(caller_of(shared));
    caller.waits = true;
    Future<Result<std::vector<LeasedJob>>> answer = caller.answer;
    for (Queue* queue : caller.queues) ++queue->callers;
    callers_.push_back(std::move(caller));
    ticker_.soon();
    auto leased = co_await receive(std::move(answer));
    if (!leased || !leased->empty()) co_return leased;
  }
}

// What is granted to a caller that is cancelled before it has it, is given back.
Coro<Result<std::vector<LeasedJob>>> Broker::receive(Future<Result<std::vector<LeasedJob>>> answer) {
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
  drop_cancelled_callers();
  if (answer.done() && !answer.cancelled() && answer.result()) {
    for (const LeasedJob& job : *answer.result()) give_back(job.token);
  }
  throw CancelledError();
}

// Jobs that were cancelled, or whose lease has ended, since they were granted: whoever is about to get them could not be
// told.
void Broker::drop_stopped(std::vector<LeasedJob>& jobs) {
  std::erase_if(jobs, [&](const LeasedJob& job) {
    const Run* const run = runs_.find(job.token);
    if (run == nullptr) return true;
    if (!run->cancel_asked) return false;
    end_unasked(job.token, {.outcome = Outcome::cancel, .error = run->cancel_why});
    return true;
  });
}

void Broker::tell_holder(const LeaseCall& call, std::uint64_t token) noexcept {
  if (!call.on_cancel) return;
  try {
    call.on_cancel(token);
  } catch (const std::exception& error) {
    spdlog::error("on_cancel, asked to stop a job, has thrown: {}", error.what());
  } catch (...) {
    spdlog::error("on_cancel, asked to stop a job, has thrown");
  }
}

void Broker::leave(const Caller& caller) {
  for (Queue* queue : caller.queues) --queue->callers;
}

void Broker::drop_cancelled_callers() {
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    if (!caller->answer.done()) {
      ++caller;
      continue;
    }
    leave(*caller);
    caller = callers_.erase(caller);
  }
}

void Broker::give_back_unknown(const JobRecord& record, std::uint64_t token) {
  Queue* queue = queues_.find(record.queue);
  if (queue == nullptr) return;
  submit({.settlement = {.id = record.id,
                         .token = token,
                         .outcome = Outcome::release,
                         .at = clock_.now(),
                         .calendar_at = calendar_now()},
          .queue = queue,
          .attempt = record.attempts + 1});
}

void Broker::give_back(std::uint64_t token) {
  if (runs_.find(token) != nullptr) end_unasked(token, {.outcome = Outcome::release});
}

Coro<Result<std::vector<LeasedJob>>> Broker::lease_what_there_is(LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  if (may_be_news(call.queues)) co_await or_return(hear_of_queues());
  Caller caller = co_await or_return(caller_of(std::make_shared<const LeaseCall>(std::move(call))));
  while (!closing_) {
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
      std::vector<Grant> grants;
      grants.push_back(std::move(taken));
      grant_after_turn(std::move(grants));
      ticker_.soon();
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
Coro<Result<std::vector<LeasedJob>>> Broker::lease_before(LeaseCall call, Duration wait) {
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

Coro<Result<Backlog>> Broker::look_at_backlog(BacklogLook look) {
  const auto counted = co_await store_(&Store::counts);
  if (closing_) co_return std::unexpected(Error{Errc::cancelled, "the engine closes"});
  if (!counted) co_return std::unexpected(counted.error());
  std::vector<QueueFacts> facts;
  for (const std::string& name : look.queues) {
    const StoredQueue* known = queue(name);
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

Coro<Result<std::optional<LeasedJob>>> Broker::lease_one(JobId id, LeaseCall call) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  const auto record = co_await or_return(store_(&Store::get, id));
  if (!record) co_return no_such_job(id);
  const bool waits = record->state == JobState::ready || record->state == JobState::delayed;
  const bool may = (waits && record->pending == 0) || record->state == JobState::buried;
  if (!may) co_return std::nullopt;
  Queue& queue = *co_await or_return(queue_named(record->queue, true, nullptr));
  if (closing_ || runs_.token_of(id) != 0) co_return std::nullopt;
  std::optional<Grant> taken = grant_of(queue, *record, std::move(call));
  if (!taken) co_return std::nullopt;
  Future<Result<std::vector<LeasedJob>>> answer = taken->caller.answer;
  std::vector<Grant> grants;
  grants.push_back(std::move(*taken));
  grant_after_turn(std::move(grants));
  auto leased = co_await or_return(receive(std::move(answer)));
  if (leased.empty()) co_return std::nullopt;
  co_return std::move(leased.front());
}

// The job into memory, if it is not there, and out of its turn. The store says whether it still waits.
std::optional<Broker::Grant> Broker::grant_of(Queue& queue, const JobRecord& record, LeaseCall call) {
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
  mark(queue);
  if (!lease) return std::nullopt;
  Grant grant;
  grant.caller.call = std::make_shared<const LeaseCall>(std::move(call));
  grant.caller.answer = loop_.create_future<Result<std::vector<LeasedJob>>>();
  grant.was_buried = is_buried;
  begin(queue, *lease, grant.caller, grant, now);
  return grant;
}

// --- leases that go on ---------------------------------------------------------------------------------------------

std::optional<Duration> Broker::renew(std::uint64_t token) {
  const Run* const run = runs_.find(token);
  if (run == nullptr || store_.is_gone()) return std::nullopt;
  const Duration lease_time = lease_time_of(*run);
  const bool renewed = run->queue->window.jobs().renew(run->queue_token, saturating_add(loop_.time(), lease_time));
  return renewed ? std::optional(lease_time) : std::nullopt;
}

RunningJob Broker::seen(std::uint64_t token, const Run& run) {
  const auto info = run.queue->window.jobs().find(run.id);
  return {.token = token,
          .id = run.id,
          .queue = run.queue->name(),
          .worker = run.call->worker,
          .attempt = run.attempt,
          .until = info ? info->until : TimePoint{},
          .lease_time = lease_time_of(run),
          .remote = run.call->remote,
          .cancel_asked = run.cancel_asked,
          .progress = run.progress,
          .progress_message = run.progress_message,
          .asked_by = run.call->asked_by};
}

std::optional<RunningJob> Broker::running(std::uint64_t token) const {
  const Run* const run = runs_.find(token);
  return run == nullptr ? std::nullopt : std::optional(seen(token, *run));
}

std::vector<RunningJob> Broker::running() const {
  std::vector<RunningJob> all;
  for (const auto& [token, run] : runs_) all.push_back(seen(token, run));
  std::ranges::sort(all, {}, &RunningJob::token);
  return all;
}

bool Broker::set_progress(std::uint64_t token, double fraction, std::string message) {
  Run* const found = runs_.find(token);
  if (found == nullptr) return false;
  Run& running = *found;
  running.progress = std::clamp(fraction, 0.0, 1.0);
  running.progress_message = std::move(message);
  tell_progress(running);
  return true;
}

void Broker::tell_progress(const Run& run) {
  tell(JobEventKind::progress, run.id, *run.queue, run.progress_message, run.attempt, {}, run.progress);
}

bool Broker::set_output(std::uint64_t token, std::string output) {
  Run* const running = runs_.find(token);
  if (running == nullptr) return false;
  running->has_output = true;
  running->next_output = std::move(output);
  if (!std::exchange(running->writes_output, true)) run_in_background(write_outputs(token), Start::eagerly);
  return true;
}

// One write at a time: of what comes while the store is busy the last is enough.
Coro<void> Broker::write_outputs(std::uint64_t token) {
  for (;;) {
    Run* running = runs_.find(token);
    if (running == nullptr) co_return;
    if (!running->next_output) {
      running->writes_output = false;
      co_return;
    }
    std::string output = *std::exchange(running->next_output, std::nullopt);
    const auto written = co_await store_(&Store::write_output, running->id, token, std::move(output));
    running = runs_.find(token);
    if (written && running != nullptr) tell_progress(*running);
  }
}

// The last output is written before whatever ends the run: the store keeps to the order of its calls.
void Broker::end_run(std::uint64_t token) {
  Run& running = *runs_.find(token);
  if (running.next_output) {
    run_in_background(
        [](Broker& broker, JobId id, std::uint64_t its_token, std::string output) -> Coro<void> {
          (void)co_await broker.store_(&Store::write_output, id, its_token, std::move(output));
        }(*this, running.id, token, *std::exchange(running.next_output, std::nullopt)),
        Start::eagerly);
  }
  runs_.end(token);
}

std::uint64_t Broker::run_with_output(JobId id) const {
  const std::uint64_t token = runs_.token_of(id);
  return token != 0 && runs_.at(token).has_output ? token : 0;
}

Coro<Result<void>> Broker::end_leases_of(std::string worker) {
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, running] : runs_) {
    if (running.call->worker == worker) tokens.push_back(token);
  }
  co_await or_return(end_each_lease(std::move(tokens)));
  co_return Result<void>{};
}

Coro<Result<std::size_t>> Broker::end_each_lease(std::vector<std::uint64_t> tokens) {
  const TimePoint now = loop_.time();
  std::size_t ended = 0;
  for (const std::uint64_t token : tokens) {
    Run* const run = runs_.find(token);
    if (run == nullptr) continue;
    ++ended;
    run->holder_gone = true;
    run->queue->window.jobs().renew(run->queue_token, now);
    mark(*run->queue);
  }
  pump();  // finds that they have run out, and has it written down
  // A read is answered after all that was called before it.
  run_in_background(flush_settlements(), Start::eagerly);
  co_await or_return(store_(&Store::find_waiting, std::vector<JobId>{}));
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  co_return ended;
}

}  // namespace argiope

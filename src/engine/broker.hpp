// Broker: an engine's jobs. Of each queue it keeps a window in memory, and it takes jobs in, hands them out and stores how they
// ended. Its parts: OwnedQueues (windows, Room), Runs, TurnBatch (puts and settlements that go to the store together),
// window_reader.hpp. Split over several files: broker.cpp (opening, closing, its loop), housekeeping.cpp, leasing.cpp,
// putting.cpp, firing.cpp, settling.cpp, changing.cpp, explaining.cpp.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "argiope/engine/engine.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/listeners.hpp"
#include "engine/calendar_memory.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/internal/job_source.hpp"
#include "engine/keep_alive.hpp"
#include "engine/owned_queue.hpp"
#include "engine/runs.hpp"
#include "engine/store_use.hpp"
#include "engine/turn_batch.hpp"

namespace argiope {

// Whether a request of that key has come before.
Coro<Result<OnceReply>> look_for_request(StoreUse store, RequestKey key);

// Freed when the last coroutine that works in it has ended, whoever has let go of it before.
class Broker final : public JobSource, public std::enable_shared_from_this<Broker> {
 public:
  // `store` lives until let_go() at least.
  static Coro<Result<std::shared_ptr<Broker>>> open(Store& store, EngineOptions options);
  Broker(Store& store, EngineOptions options, CalendarMemory calendar);
  Coro<Result<void>> start();
  // Its engine has gone: from here on nothing of the user's is touched, neither the store nor who listens.
  void let_go() noexcept;
  Coro<Result<void>> close() { return kept(close_all()); }

  // --- what Engine offers
  Result<QueueConfig> config(std::string_view queue) const;
  std::vector<std::string> queue_names() const;
  Result<void> rest_key(std::string_view queue, std::string_view key, TimePoint until);
  Result<void> wake_key(std::string_view queue, std::string_view key);
  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) override { return kept(lease_some(std::move(call))); }
  Coro<Result<std::vector<LeasedJob>>> lease_now(LeaseCall call) { return kept(lease_what_there_is(std::move(call))); }
  Coro<Result<std::vector<LeasedJob>>> lease_within(LeaseCall call, Duration wait) override {
    return wait > Duration{} ? kept(lease_before(std::move(call), wait)) : lease_now(std::move(call));
  }
  Coro<Result<std::optional<LeasedJob>>> lease_job(JobId id, LeaseCall call) {
    return kept(lease_one(id, std::move(call)));
  }
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) override {
    return settle_run(shared_from_this(), token, std::move(verdict));
  }
  Coro<Result<std::vector<SettleReply>>> settle_each(std::vector<RunEnd> ends) {
    return kept(to_its_end(settle_several(std::move(ends))));
  }
  Coro<Result<OnceReply>> settle_once(RequestKey key, std::vector<RunEnd> ends) {
    return kept(do_settle_once(std::move(key), std::move(ends)));
  }
  // For how long from now; nullopt: the lease is lost.
  std::optional<Duration> renew(std::uint64_t token) override;
  std::optional<RunningJob> running(std::uint64_t token) const;
  std::vector<RunningJob> running() const;
  bool set_progress(std::uint64_t token, double fraction, std::string message) override;
  bool set_output(std::uint64_t token, std::string output) override;
  // The token of the job's run, if it has left any output so far; else 0.
  std::uint64_t run_with_output(JobId id) const;
  Coro<Result<void>> worker_gone(std::string worker) { return kept(end_leases_of(std::move(worker))); }
  Coro<Result<std::size_t>> end_leases(std::vector<std::uint64_t> tokens) {
    return kept(end_each_lease(std::move(tokens)));
  }
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireCall> calls) {
    return kept(to_its_end(fire_all(std::move(calls))));
  }
  WallTime calendar_now() const { return clock_.to_calendar(clock_.now()); }
  void look_at_calendar();
  std::size_t in_memory() const;
  Coro<Result<Backlog>> backlog(BacklogLook look) override { return kept(look_at_backlog(std::move(look))); }
  std::optional<Error> failure() const override { return store_.failure(); }
  using ListenerId = std::uint64_t;
  ListenerId add_listener(std::uint32_t mask, JobListener listener) {
    return listeners_.add(mask, std::move(listener));
  }
  void remove_listener(ListenerId id) { listeners_.remove(id); }
  std::size_t listeners() const noexcept { return listeners_.size(); }  // how many
  std::uint64_t listener_errors() const { return listeners_.errors(); }

  // --- what its book does
  // Grows with all that is asked of the store for those who put, lease and settle.
  std::uint64_t store_calls() const noexcept { return store_.calls(); }
  const JobClock& clock() const noexcept { return clock_; }
  Coro<Result<PutReply>> put(NewJob&& job) { return put_one(shared_from_this(), std::move(job)); }
  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) {
    return kept(put_several(std::move(jobs)));
  }
  // `last_completes`: the last one waits for those before it.
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) {
    return kept(put_together(std::move(jobs), last_completes));
  }
  Coro<Result<OnceReply>> once(OnceCall call) { return kept(do_once(std::move(call))); }
  Coro<Result<ChangeReply>> change(Change change) { return kept(to_its_end(change_one(std::move(change)))); }
  Coro<Result<void>> configure(std::string queue, QueueConfig config, JobReachRef asker) {
    return kept(to_its_end(configure_queue(std::move(queue), std::move(config), std::move(asker))));
  }
  Coro<Result<void>> erase_queue(std::string queue) { return kept(to_its_end(erase_named_queue(std::move(queue)))); }
  // As it is in memory; null where no queue of that name is known.
  const StoredQueue* queue(std::string_view name) const;
  // Says of a job that runs here what there is to say; false for any other.
  bool tell_of_run(JobId id, JobExplanation& why) const;
  // What memory knows of a job that waits; nullopt: it lies in the store, behind what the window holds.
  std::optional<Explanation> look_in_memory(std::string_view queue, JobId id);
  // Whether a worker asks for jobs of the queue, or runs one.
  bool is_worked_on(std::string_view queue) const;

  // --- what its scheduler hears: what other processes have done to schedules, and how far the calendar has jumped. Called on the
  // loop; an empty function ends it. They must not throw.
  void on_schedules_changed(std::function<void(const std::vector<ScheduleId>&)> hear) {
    schedules_changed_ = std::move(hear);
  }
  void on_calendar_jump(std::function<void(Duration)> hear) { calendar_jumped_ = std::move(hear); }

 private:
  static constexpr std::uint64_t kStride = 1 << 20;

  auto wakeup_place() noexcept {
    return [this](std::uint32_t index) -> std::uint32_t& { return queues_[index].wakeup_place; };
  }

  using Queue = OwnedQueue;
  struct Caller {
    std::shared_ptr<const LeaseCall> call;
    std::vector<Queue*> queues;       // of one that asks for a job by its id: none
    std::vector<std::string> unmade;  // names of queues that are not there yet
    bool waits = false;               // until there is a job
    Future<Result<std::vector<LeasedJob>>> answer;
  };
  // Leases of one pump that are on their way into the store.
  struct Grant {
    Caller caller;
    std::vector<LeaseRequest> requests;
    std::vector<TimePoint> until;
    bool was_buried = false;  // the one that was asked for by its id
  };
  // Those of one call of the store, none of which may run out before it is answered.
  struct Unwritten {
    const std::vector<Grant>* grants;
    TimePoint first_until;
  };
  struct PendingPut {
    NewJob job;
    Queue* queue;
    Future<Result<PutReply>> answer;
  };
  // Of jobs that are being put: those for which callers wait, and whose leases are written down with them.
  struct Awaited {
    std::vector<Grant> grants;
    std::vector<std::size_t> places;  // of the put of each of their requests
  };
  struct PendingSettlement {
    Settlement settlement;
    Queue* queue;
    std::uint32_t attempt;
    std::vector<Queue*> follow_up_queues;
    Future<Result<SettleReply>> answer;  // empty: nobody waits
    std::unique_ptr<Run> run;      // with follow-ups: what to settle it as where they are refused
    std::optional<Error> refused;  // what the answer is then, once that is committed
    bool is_finding = false;       // of a run that went well, whose remark is told
  };
  // --- the loop
  void hand_out_nothing_more();
  template <class T>
  Coro<T> kept(Coro<T> work) {
    return keep_alive(shared_from_this(), std::move(work));
  }
  void run_in_background(Coro<void> work, Start start = Start::next_turn);
  template <class T>
  Coro<T> to_its_end(Coro<T> work) {
    return background_.to_its_end(shared_from_this(), std::move(work));
  }
  void note_dirty(Queue& queue);
  void mark(Queue& queue);  // the same, and has it looked at
  void pump();
  void refresh(Queue& queue, TimePoint now);
  Coro<void> refill(Queue& queue);
  void tick(Queue& queue, TimePoint now);
  Coro<void> keep_house();
  Coro<Result<bool>> look_after_house();
  Coro<Result<void>> close_all();
  Coro<Result<void>> take_changes();
  Coro<Result<void>> hear_of_queues();
  bool may_be_news(const std::vector<std::string>& names);  // then hear_of_queues()
  Coro<Result<void>> prune();
  void stop_all(const Error& error);

  // --- firing
  // A call on its way into the store, with the queues of its jobs.
  struct Step {
    FireRequest request;
    std::vector<Queue*> queues;
    std::size_t call = 0;  // which one it is of those that are answered
  };
  using FireReplies = Result<std::vector<Result<FireReply>>>;
  Coro<FireReplies> fire_all(std::vector<FireCall> calls);
  Coro<Result<Step>> step_of(FireCall call);
  void note_fired(const std::vector<Queue*>& queues, const FireReply* reply);

  // --- queues
  Queue& add_queue(StoredQueue stored);
  // `asker`: for whom it is made where it is not there; null: the program itself.
  Coro<Result<Queue*>> queue_named(std::string name, bool may_create, JobReachRef asker);
  bool is_free_queue(std::string_view name) const { return options_.is_free_queue && options_.is_free_queue(name); }
  Result<void> check_may_make(std::string_view name, const JobReach* asker) const;
  Coro<Result<void>> configure_queue(std::string name, QueueConfig config, JobReachRef asker);
  Coro<Result<void>> recount();
  Coro<Result<void>> erase_named_queue(std::string name);
  // kNever: it is not paused, or until somebody says so.
  TimePoint pause_ends(const Queue& queue) const {
    const QueueConfig& config = queue.config();
    const bool ends = config.limits.paused && config.paused_until != WallTime{};
    return ends ? clock_.to_monotonic(config.paused_until) : kNever;
  }
  void end_pause(Queue& queue, TimePoint now);

  // --- putting
  PutRequest request_of(NewJob job, const Queue& queue) const;
  void note_put(Queue& queue, const PutReply& reply);
  void tell_of_put(Queue& queue, const PutReply& reply);
  Coro<void> flush_puts();
  Coro<void> send_puts(std::vector<PendingPut> pending);
  void note_answered(PendingPut& put, Result<PutReply> reply);
  Awaited jobs_awaited(const std::vector<PendingPut>& pending, const std::vector<PutRequest>& requests);
  struct Sharing;
  Sharing shares_of(const std::vector<PendingPut>& pending, const std::vector<PutRequest>& requests);
  Grant jobs_for(const Caller& caller, Sharing& sharing, std::vector<std::size_t>& places);
  static std::size_t unleased_on_their_way(const Queue& queue, std::size_t own);
  static bool is_settled(const Queue& queue);
  static bool gives_nothing(const Queue& queue);
  bool starts_at_once(Queue& queue, const PutRequest& put, TimePoint now);
  Coro<void> send_puts_with_leases(std::vector<PendingPut> pending, std::vector<PutRequest> requests, Awaited awaited);
  void begin_awaited(Queue& queue, const WaitingJob& job, std::uint64_t token, const Caller& caller);
  // Static, as settle_run(): it keeps the broker itself, because a frame more a job would be felt.
  static Coro<Result<PutReply>> put_one(std::shared_ptr<Broker> self, NewJob job);
  Coro<Result<std::vector<Result<PutReply>>>> put_several(std::vector<NewJob> jobs);
  Future<Result<PutReply>> submit_put(NewJob job, Queue& queue);
  Coro<Result<std::vector<PutReply>>> put_together(std::vector<NewJob> jobs, bool last_completes);
  Coro<Result<std::vector<PutReply>>> send_together(std::vector<PutRequest> requests, std::vector<Queue*> queues);

  // --- requests that have a key
  Coro<Result<OnceReply>> do_once(OnceCall call);
  Coro<Result<OnceReply>> put_once(OnceCall call);
  Coro<Result<void>> take_room(std::vector<Result<Queue*>>& queues, bool each);
  static std::uint64_t take_what_there_is(Room& room, std::vector<Result<Queue*>>& queues);
  Coro<Result<OnceReply>> send_puts_once(OnceRequest request, std::vector<Result<Queue*>> queues);
  Coro<Result<OnceReply>> change_once(OnceCall call);
  Coro<Result<OnceReply>> do_settle_once(RequestKey key, std::vector<RunEnd> ends);
  Coro<Result<OnceReply>> settle_in_one(RequestKey key, std::vector<RunEnd> ends);

  // --- leasing
  static Duration lease_time_of(const Run& run);
  static Rank first_rank(const Queue& queue);
  void update_active(Queue& queue, TimePoint now);
  void begin(Queue& queue, const Lease& lease, const Caller& caller, Grant& grant, TimePoint now);
  void ask_for(const Queue& queue, JobId id, const Caller& caller, Grant& grant, TimePoint now);
  void begin_run(Queue& queue, const Lease& lease, std::uint64_t token, const Caller& caller);
  void set_lease_time(Run& run, const JobRecord& record, TimePoint asked, TimePoint& until);
  static RunningJob seen(std::uint64_t token, const Run& run);
  Grant take(Caller& caller, TimePoint now);
  void serve(TimePoint now);
  void grant_after_turn(std::vector<Grant> grants);
  Coro<void> grant(std::vector<Grant> grants);
  void hand_out(std::vector<Grant>& grants, std::vector<std::optional<JobRecord>> leased, TimePoint asked);
  Result<Caller> caller_of(std::shared_ptr<const LeaseCall> call);
  static void join(Caller& caller, Queue& queue);
  Coro<Result<std::vector<LeasedJob>>> lease_some(LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> lease_what_there_is(LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> lease_before(LeaseCall call, Duration wait);
  Coro<Result<Backlog>> look_at_backlog(BacklogLook look);
  Coro<Result<std::optional<LeasedJob>>> lease_one(JobId id, LeaseCall call);
  std::optional<Grant> grant_of(Queue& queue, const JobRecord& record, LeaseCall call);
  Coro<Result<void>> end_leases_of(std::string worker);
  Coro<Result<std::size_t>> end_each_lease(std::vector<std::uint64_t> tokens);
  Coro<Result<std::vector<LeasedJob>>> receive(Future<Result<std::vector<LeasedJob>>> answer);
  void drop_stopped(std::vector<LeasedJob>& jobs);
  void renew_unwritten(TimePoint now);
  static void tell_holder(const LeaseCall& call, std::uint64_t token) noexcept;
  static void leave(const Caller& caller);  // it waits no more
  void tell_progress(const Run& run);
  Coro<void> write_outputs(std::uint64_t token);
  void end_run(std::uint64_t token);
  void drop_cancelled_callers();
  void give_back(std::uint64_t token);
  void give_back_unknown(const JobRecord& record, std::uint64_t token);

  // --- settling
  void submit(PendingSettlement pending);
  Coro<void> flush_settlements();
  Coro<void> send_settlements(std::vector<PendingSettlement> pending);
  static Coro<Result<bool>> settle_run(std::shared_ptr<Broker> self, std::uint64_t token, Verdict verdict);
  Coro<Result<void>> make_queues_of(std::uint64_t token, const std::vector<NewJob>& follow_ups);
  PendingSettlement ended(std::uint64_t token, Verdict verdict);
  static Settlement taken_along(PendingSettlement& pending);
  void fail_for(PendingSettlement& pending, Error why);
  Coro<Result<std::vector<SettleReply>>> settle_several(std::vector<RunEnd> ends);
  bool needs_new_queue(const Verdict& verdict) const;
  Coro<Result<bool>> settle_in_new_queues(std::uint64_t token, Verdict verdict);
  Result<std::vector<Queue*>> queues_of(const std::vector<NewJob>& follow_ups) const;
  Future<Result<SettleReply>> submit_verdict(std::uint64_t token, Verdict verdict);
  void submit_refused(PendingSettlement pending, Error why);
  void note_settled(const PendingSettlement& pending, SettleReply& reply);
  void note_released(const std::vector<WaitingJob>& released, const std::vector<CancelledJob>& cancelled,
                     const std::vector<EndedRun>& ended_runs);
  // Settles it though nobody has asked for that, or waits for it.
  void end_unasked(std::uint64_t token, Verdict verdict);
  void expire(Queue& queue, const ExpiredLease& lease);
  Settlement settlement_of(const Run& run, std::uint64_t token, Verdict& verdict, TimePoint now);
  void set_times(Change& change) const;
  void heed(const JobRecord& before, const Change& change, const ChangeReply& reply);
  Coro<Result<ChangeReply>> change_one(Change change);
  Coro<Result<ChangeReply>> cancel_running(std::uint64_t token, Change change);
  void note_changed(const JobRecord& before, const Change& change, const ChangeReply& reply);
  void ask_to_stop(std::uint64_t token, std::string why);
  Coro<Result<void>> hear_of_cancellations(std::vector<JobId> jobs);
  Coro<Result<void>> end_old_leases();
  Settlement ending_of(const OldLease& lease, const JobRecord* record, const Queue* queue) const;
  LeaseRequest adopt(const OldLease& lease, const JobRecord& record, Queue& queue);
  bool outlives_us(const Run& run) const { return options_.adopt_leases && run.call->remote; }

  // --- telling
  void tell(JobEventKind kind, JobId id, const Queue& queue, std::string_view text = {}, std::uint32_t attempt = 0,
            WallTime due_at = {}, double fraction = 0, const EndedRun& run = {});

  StoreUse store_;
  const EngineOptions options_;
  EventLoop& loop_;
  JobClock clock_;
  Random random_;
  OwnedQueues queues_;
  IndexedHeap<TimePoint, std::uint32_t> wakeups_;  // queues by when they are to be looked at
  std::vector<Queue*> dirty_;
  std::uint64_t least_pass_ = 0;

  std::list<Caller> callers_;
  Runs runs_;
  std::size_t unsent_grants_ = 0;  // have their tokens, and are not yet on their way
  std::list<Unwritten> unwritten_;
  TimePoint unwritten_until_ = kNever;  // when the first of them would run out

  TurnBatch<PendingPut> puts_;
  TurnBatch<PendingSettlement> settlements_;

  std::vector<JobId> due_log_;
  Listeners<JobEvent> listeners_;
  std::function<void(const std::vector<ScheduleId>&)> schedules_changed_;
  std::function<void(Duration)> calendar_jumped_;

  bool started_ = false;  // the leases of owners before this one are over
  Ticker ticker_;         // calls pump()
  Background background_;
  Task<void> housekeeper_;
  TimePoint prune_at_{};
  TimePoint look_for_queues_at_{};
  bool closing_ = false;
  Lock settling_once_;
  Event read_on_;  // set whenever a window has been read on
};

}  // namespace argiope

// The broker's inside. Split over several files: broker.cpp (opening, closing, its loop), leasing.cpp, putting.cpp,
// firing.cpp, settling.cpp, explaining.cpp.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "argiope/broker/broker.hpp"
#include "argiope/broker/job_clock.hpp"
#include "argiope/broker/queue_window.hpp"

namespace argiope {

class BrokerImpl final : public Broker {
 public:
  BrokerImpl(Store& store, BrokerOptions options, Duration offset);
  ~BrokerImpl() override;
  Coro<Result<void>> start();

  Coro<Result<void>> close() override;
  Coro<Result<void>> configure(std::string queue, QueueConfig config) override;
  Coro<Result<void>> pause(std::string queue) override { return set_paused(std::move(queue), true); }
  Coro<Result<void>> resume(std::string queue) override { return set_paused(std::move(queue), false); }
  Result<QueueConfig> config(std::string_view queue) const override;
  std::vector<std::string> queue_names() const override;
  Result<void> rest_key(std::string_view queue, std::string_view key, TimePoint until) override;
  Result<void> wake_key(std::string_view queue, std::string_view key) override;

  Coro<Result<PutReply>> put(NewJob job) override;
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs) override;
  Coro<Result<std::vector<PutReply>>> put_batch(std::vector<NewJob> jobs, NewJob completion) override;

  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireCall> calls) override;
  void on_schedules_changed(std::function<void(const std::vector<ScheduleId>&)> hear) override {
    schedules_changed_ = std::move(hear);
  }
  WallTime calendar_now() const override { return clock_.to_calendar(clock_.now()); }
  void look_at_calendar() override;
  void on_calendar_jump(std::function<void(Duration)> hear) override { calendar_jumped_ = std::move(hear); }

  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) override;
  Coro<Result<std::vector<LeasedJob>>> lease_now(LeaseCall call) override;
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) override;
  bool renew(std::uint64_t token) override;
  bool set_progress(std::uint64_t token, double fraction, std::string message) override;
  Coro<Result<void>> worker_gone(std::string worker) override;

  Coro<Result<void>> cancel(JobId id, std::string why) override;
  Coro<Result<void>> kick(JobId id) override;
  Coro<Result<void>> set_priority(JobId id, std::int32_t priority) override;
  Coro<Result<void>> set_due(JobId id, WallTime due_at) override;
  Coro<Result<void>> erase(JobId id) override;

  Coro<Result<JobRecord>> get(JobId id) override;
  Coro<Result<JobExplanation>> explain(JobId id) override;
  Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> counts() override;
  std::size_t in_memory() const override;
  std::optional<Error> failure() const override { return store_.failure(); }

  ListenerId add_listener(std::uint32_t mask, JobListener listener) override;
  void remove_listener(ListenerId id) override;

 private:
  static constexpr std::uint64_t kStride = 1 << 20;

  auto wakeup_place() noexcept {
    return [this](std::uint32_t index) -> std::uint32_t& { return queues_[index]->wakeup_place; };
  }

  struct Queue {
    Queue(StoredQueue stored, std::size_t most, const JobClock& clock) : window(std::move(stored), most, clock) {}
    QueueWindow window;
    std::uint64_t live = 0;     // jobs that have not ended, and puts that may add to them
    std::uint64_t coming = 0;   // of those, puts that are on their way into the store
    std::uint64_t pass = 0;     // what it has had, by its weight
    std::uint32_t callers = 0;  // that wait for its jobs
    bool dirty = false;
    bool refilling = false;
    bool active = false;  // a job of it may be leased now
    std::uint32_t wakeup_place = 0;
    std::deque<std::pair<std::uint64_t, Future<void>>> for_room;  // puts that wait for so much room
  };
  struct Running {
    Queue* queue = nullptr;
    std::uint64_t queue_token = 0;
    JobId id = 0;
    std::uint32_t attempt = 0;
    std::uint32_t max_attempts = 0;
    bool cancel_asked = false;
    std::string cancel_why;
    double progress = 0;
    std::string progress_message;
    std::shared_ptr<const LeaseCall> call;
  };
  struct Caller {
    std::shared_ptr<const LeaseCall> call;
    std::vector<Queue*> queues;
    Future<Result<std::vector<LeasedJob>>> answer;
  };
  // Leases of one pump that are on their way into the store.
  struct Grant {
    Caller caller;
    std::vector<LeaseRequest> requests;
    std::vector<TimePoint> until;
  };
  struct PendingPut {
    NewJob job;
    Queue* queue;
    Future<Result<PutReply>> answer;
  };
  struct PendingSettlement {
    Settlement settlement;
    Queue* queue;
    std::uint32_t attempt;
    std::vector<Queue*> follow_up_queues;
    Future<Result<bool>> answer;   // empty: nobody waits
    std::unique_ptr<Running> run;  // with follow-ups: what to settle it as where they are refused
    std::optional<Error> refused;  // what the answer is then, once that is committed
  };
  struct Listener {
    ListenerId id;
    std::uint32_t mask;
    JobListener function;
  };

  // --- the loop
  void run_in_background(Coro<void> work, Start start = Start::next_turn);
  // Runs `work` to its end, even when whoever waits for it is cancelled.
  template <class T>
  Coro<T> to_its_end(Coro<T> work) {
    Future<T> answer = loop_.create_future<T>();
    run_in_background(
        [](Coro<T> inner, Future<T> told) -> Coro<void> {
          T result = co_await std::move(inner);
          if (!told.done()) told.set_result(std::move(result));
        }(std::move(work), answer),
        Start::eagerly);
    co_return co_await std::move(answer);
  }
  Coro<void> watched(Coro<void> work);
  void note_dirty(Queue& queue);
  void mark(Queue& queue);  // the same, and has it looked at
  void schedule_pump();
  void pump();
  void refresh(Queue& queue, TimePoint now);
  void wake_at(TimePoint when);
  Coro<void> refill(Queue& queue);
  Coro<void> keep_house();
  Coro<Result<void>> take_changes();
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
  Result<void> take_room_now(const std::vector<Queue*>& queues);
  void note_fired(const std::vector<Queue*>& queues, const FireReply* reply);

  // --- queues
  Queue& add_queue(StoredQueue stored);
  Queue* find_queue(std::string_view name) const;
  Coro<Result<Queue*>> queue_named(std::string name, bool may_create);
  Coro<Result<void>> set_paused(std::string queue, bool paused);
  void give_room(Queue& queue, std::uint64_t count);
  // A put is in the store, or has failed; `stays` says whether it has added a job.
  void arrived(Queue& queue, bool stays);
  Coro<Result<void>> recount();
  Coro<Result<void>> take_room(Queue& queue, std::uint64_t count);

  // --- putting
  Result<void> check(const NewJob& job, const Queue& queue) const;
  // By the store, though check() has nothing against it.
  static bool may_be_refused(const NewJob& job);
  PutRequest request_of(NewJob job, const Queue& queue) const;
  void note_put(Queue& queue, const PutReply& reply);
  Coro<void> flush_puts();
  Coro<void> send_puts(std::vector<PendingPut> pending);
  Coro<Result<std::vector<PutReply>>> put_together(std::vector<NewJob> jobs, bool last_completes);

  // --- leasing
  void update_active(Queue& queue, TimePoint now);
  Grant take(Caller& caller, TimePoint now);
  void serve(TimePoint now);
  Coro<void> grant(std::vector<Grant> grants);
  Coro<Result<Caller>> caller_of(LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> receive(Future<Result<std::vector<LeasedJob>>> answer);
  static void leave(const Caller& caller);  // it waits no more
  void drop_cancelled_callers();
  void give_back(std::uint64_t token);

  // --- settling
  void submit(PendingSettlement pending);
  Coro<void> flush_settlements();
  Coro<void> send_settlements(std::vector<PendingSettlement> pending);
  Coro<Result<bool>> settle_in_new_queues(std::uint64_t token, Verdict verdict);
  Result<std::vector<Queue*>> queues_of(const std::vector<NewJob>& follow_ups) const;
  Future<Result<bool>> submit_verdict(std::uint64_t token, Verdict verdict);
  void submit_refused(PendingSettlement pending, Error why);
  void note_settled(const PendingSettlement& pending, SettleReply& reply);
  void note_released(Queue& queue, const std::vector<WaitingJob>& released, const std::vector<JobId>& cancelled,
                     const std::vector<EndedRun>& ended_runs);
  void end_run(std::uint64_t token);
  // Settles it though nobody has asked for that, or waits for it.
  void end_unasked(std::uint64_t token, Verdict verdict);
  void expire(Queue& queue, const ExpiredLease& lease);
  Settlement settlement_of(const Running& running, std::uint64_t token, Verdict& verdict, TimePoint now);
  Coro<Result<ChangeReply>> change(Change change);
  Coro<Result<void>> cancel_running(std::uint64_t token, std::string why);
  void ask_to_stop(std::uint64_t token, std::string why);
  Coro<Result<void>> hear_of_cancellations(std::vector<JobId> jobs);
  Coro<Result<void>> end_old_leases();

  // --- telling
  void tell(JobEventKind kind, JobId id, const Queue& queue, std::string_view text = {}, std::uint32_t attempt = 0,
            WallTime due_at = {}, double fraction = 0, const EndedRun& run = {});

  Store& store_;
  const BrokerOptions options_;
  EventLoop& loop_;
  JobClock clock_;
  Random random_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::map<std::string, Queue*, std::less<>> by_name_;
  std::unordered_map<QueueId, Queue*> by_id_;
  IndexedHeap<TimePoint, std::uint32_t> wakeups_;  // queues by when they are to be looked at
  std::vector<Queue*> dirty_;
  std::uint64_t least_pass_ = 0;

  std::list<Caller> callers_;
  std::unordered_map<std::uint64_t, Running> running_;
  std::unordered_map<JobId, std::uint64_t> running_ids_;
  std::uint64_t next_token_ = 0;

  // What one turn puts and settles goes to the store together, but in parts of so many: it can work on the first while the
  // loop makes the next.
  static constexpr std::size_t kMostTogether = 32;
  std::vector<PendingPut> pending_puts_;
  std::vector<PendingSettlement> pending_settlements_;
  bool puts_scheduled_ = false;
  bool settlements_scheduled_ = false;

  std::vector<JobId> due_log_;
  std::vector<Listener> listeners_;
  std::uint32_t listened_ = 0;
  ListenerId last_listener_ = 0;
  std::function<void(const std::vector<ScheduleId>&)> schedules_changed_;
  std::function<void(Duration)> calendar_jumped_;

  bool started_ = false;  // the leases of owners before this one are over
  bool pump_scheduled_ = false;
  Handle timer_;
  TimePoint timer_at_ = kNever;
  Task<void> housekeeper_;
  bool closing_ = false;
  std::size_t background_ = 0;
  Event quiet_{true};
  Event read_on_;  // set whenever a window has been read on
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace argiope

#include "engine/broker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/or_return.hpp"
#include "base/internal/printable.hpp"
#include "engine/book_rules.hpp"
#include "engine/window_reader.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {
Coro<Result<std::shared_ptr<Broker>>> Broker::open(Store& store, EngineOptions options) {
  const StoreUse use(store);
  auto calendar = co_await or_return(recall_calendar(use));
  auto broker = std::make_shared<Broker>(store, std::move(options), std::move(calendar));
  co_await or_return(broker->start());
  co_return broker;
}

Broker::Broker(Store& store, EngineOptions options, CalendarMemory calendar)
    : store_(store),
      options_(std::move(options)),
      loop_(EventLoop::current()),
      clock_(loop_.clock(), calendar.offset, std::move(calendar.jumps)),
      random_(options_.seed),
      runs_(store.last_token()),
      // A listener may destroy the broker in a tick.
      ticker_(loop_,
              [this] {
                const auto self = shared_from_this();
                pump();
              }),
      background_(loop_, "broker") {}

void Broker::let_go() noexcept {
  store_.let_go();
  listeners_.clear();
  schedules_changed_ = {};
  calendar_jumped_ = {};
  if (EventLoop::is_alive(&loop_) && !std::exchange(closing_, true)) hand_out_nothing_more();
}

Coro<Result<void>> Broker::start() {
  auto stored = co_await or_return(store_(&Store::queues));
  for (StoredQueue& queue : stored) add_queue(std::move(queue));
  co_await or_return(end_old_leases());
  co_await or_return(recount());
  housekeeper_ = loop_.create_task(kept(keep_house()), "broker's housekeeping");
  // Only now may windows read: a job under an old lease would have been passed over, and not be looked for again.
  started_ = true;
  ticker_.soon();
  co_return Result<void>{};
}

void Broker::hand_out_nothing_more() {
  for (Caller& caller : std::exchange(callers_, {})) {
    leave(caller);
    if (!caller.answer.done()) caller.answer.set_result(std::vector<LeasedJob>{});
  }
  for (auto& queue : queues_) queue->room.close();
  ticker_.stop();
  if (housekeeper_ && !housekeeper_.done()) housekeeper_.cancel();
  read_on_.set();
}

Coro<Result<void>> Broker::close_all() {
  if (!std::exchange(closing_, true)) {
    hand_out_nothing_more();
    const std::vector<std::uint64_t> tokens = runs_.tokens();
    for (const std::uint64_t token : tokens) {
      if (const Run* run = runs_.find(token); run != nullptr && !outlives_us(*run)) {
        const std::shared_ptr<const LeaseCall> call = run->call;
        tell_holder(*call, token);
      }
    }
    for (const std::uint64_t token : tokens) {
      if (const Run* run = runs_.find(token); run != nullptr && !outlives_us(*run)) give_back(token);
    }
  }
  try {
    co_await housekeeper_;
  } catch (const CancelledError&) {
    if (!housekeeper_.cancelled()) throw;
  }
  co_await background_.quiet();
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  co_return Result<void>{};
}

// --- the loop ------------------------------------------------------------------------------------------------------

void Broker::run_in_background(Coro<void> work, Start start) {
  background_.run(shared_from_this(), std::move(work), start);
}

void Broker::note_dirty(Queue& queue) {
  if (!std::exchange(queue.dirty, true)) dirty_.push_back(&queue);
}

void Broker::mark(Queue& queue) {
  note_dirty(queue);
  ticker_.soon();
}

void Broker::pump() {
  if (closing_ || !started_) return;
  const TimePoint now = loop_.time();
  while (!wakeups_.empty() && wakeups_.top().rank <= now) {
    Queue& queue = queues_[wakeups_.top().handle];
    wakeups_.update(0, kNever, wakeup_place());
    note_dirty(queue);
  }
  for (Queue* queue : std::exchange(dirty_, {})) {
    queue->dirty = false;
    refresh(*queue, now);
  }
  serve(now);
  if (!wakeups_.empty()) ticker_.at(wakeups_.top().rank);
}

void Broker::tick(Queue& queue, TimePoint now) {
  if (now >= unwritten_until_) renew_unwritten(now);
  queue.window.jobs().tick(now);
  for (const JobId id : std::exchange(due_log_, {})) tell(JobEventKind::due, id, queue);
}

// Does what is due in a queue, and finds out whether a job of it may be leased.
void Broker::refresh(Queue& queue, TimePoint now) {
  JobQueue& jobs = queue.window.jobs();
  tick(queue, now);
  if (pause_ends(queue) <= now) end_pause(queue, now);
  for (const ExpiredLease& lease : jobs.take_expired()) expire(queue, lease);
  queue.window.trim(now);
  update_active(queue, now);
  if (!queue.refilling && !closing_ && queue.window.wants_load(now)) {
    queue.refilling = true;
    run_in_background(refill(queue));
  }
  TimePoint wakeup = std::min(jobs.next_change(now), pause_ends(queue));
  if (!queue.refilling) wakeup = std::min(wakeup, queue.window.next_load_time());
  wakeups_.update(queue.wakeup_place, wakeup, wakeup_place());
}

// Reads on until the window has what it needs.
Coro<void> Broker::refill(Queue& queue) {
  struct Ended {
    Queue& queue;
    Event& read_on;
    ~Ended() {
      queue.refilling = false;
      read_on.set();
    }
  } const ended{queue, read_on_};
  while (!closing_) {
    const auto read = co_await read_on(store_, queue.window, loop_);
    if (!read) co_return stop_all(read.error());
    if (!*read) break;
    tick(queue, loop_.time());
    mark(queue);
    if (!queue.window.wants_load(loop_.time())) break;
  }
  mark(queue);
}

// The store has failed: nobody gets anything any more.
void Broker::stop_all(const Error& error) {
  for (Caller& caller : std::exchange(callers_, {})) {
    leave(caller);
    if (!caller.answer.done()) caller.answer.set_result(std::unexpected(error));
  }
}

// --- queues --------------------------------------------------------------------------------------------------------

Broker::Queue& Broker::add_queue(StoredQueue stored) {
  if (Queue* known = queues_.find_erased_too(stored.id)) {
    if (std::exchange(known->erased, false)) known->window.configure(std::move(stored.config), loop_.time());
    mark(*known);
    for (Caller& caller : callers_) join(caller, *known);
    return *known;
  }
  Queue& queue = queues_.add(std::make_unique<Queue>(loop_, std::move(stored), options_.window, clock_));
  queue.window.jobs().set_due_log(&due_log_);
  queue.pass = least_pass_;
  queue.is_free = is_free_queue(queue.name());
  wakeups_.push(kNever, static_cast<std::uint32_t>(queues_.size() - 1), wakeup_place());
  mark(queue);
  for (Caller& caller : callers_) join(caller, queue);
  return queue;
}

// One asker has half of them at most, so that the others can make some.
Result<void> Broker::check_may_make(std::string_view name, const JobReach* asker) const {
  const std::size_t most = options_.most_queues;
  if (most == EngineOptions{}.most_queues || is_free_queue(name)) return {};
  if (queues_.counted() >= most) return too_many_queues(name, most);
  const std::size_t share = std::max<std::size_t>(most / 2, 1);
  if (asker == nullptr || asker->who.empty() || queues_.counted_of(*asker) < share) return {};
  return too_many_queues_of(name, asker->who, share);
}

Coro<Result<Broker::Queue*>> Broker::queue_named(std::string name, bool may_create, JobReachRef asker) {
  if (Queue* known = queues_.find(name)) co_return known;
  co_await or_return(check_queue_name(name));
  if (!may_create) co_return queue_not_made(name);
  co_await or_return(check_may_make(name, asker.get()));
  auto stored = co_await or_return(store_(&Store::open_queue, name, options_.new_queue));
  Queue& queue = add_queue(std::move(stored));
  queue.maker = asker == nullptr ? std::string() : asker->who;
  co_return &queue;
}

Coro<Result<void>> Broker::configure_queue(std::string name, QueueConfig config, JobReachRef asker) {
  Queue& queue = *co_await or_return(queue_named(std::move(name), true, std::move(asker)));
  queue.is_free = is_free_queue(queue.name());
  co_await or_return(store_(&Store::configure, queue.window.id(), config));
  queue.window.configure(std::move(config), loop_.time());
  tell(JobEventKind::queue_changed, 0, queue);
  queue.room.look_again();
  mark(queue);
  co_return Result<void>{};
}

// Not found from here on, so that a put that comes meanwhile has the store make it again.
Coro<Result<void>> Broker::erase_named_queue(std::string name) {
  Queue* const queue = queues_.find(name);
  if (queue == nullptr) co_return no_such_queue(name);
  if (queue->room.live() > 0) co_return std::unexpected(job_rules::not_empty(name));
  queue->erased = true;
  auto done = co_await store_(&Store::erase_queue, queue->window.id());
  if (!done) {
    queue->erased = false;
    for (Caller& caller : callers_) join(caller, *queue);  // who asked for it meanwhile
    mark(*queue);
  } else {
    tell(JobEventKind::queue_changed, 0, *queue);
  }
  co_return done;
}

// The time of its pause is over. The store goes on to say until when it was: whoever looks there knows what that means.
void Broker::end_pause(Queue& queue, TimePoint now) {
  QueueConfig config = queue.config();
  end_pause_if_over(config, config.paused_until);
  queue.window.configure(std::move(config), now);
  tell(JobEventKind::queue_changed, 0, queue);
}

const StoredQueue* Broker::queue(std::string_view name) const {
  const Queue* queue = queues_.find(name);
  return queue == nullptr ? nullptr : &queue->window.stored();
}

Result<QueueConfig> Broker::config(std::string_view name) const {
  const Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  return queue->window.config();
}

std::vector<std::string> Broker::queue_names() const { return queues_.names(); }

Result<void> Broker::rest_key(std::string_view name, std::string_view key, TimePoint until) {
  Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  JobQueue& jobs = queue->window.jobs();
  jobs.rest_key(jobs.key(key), until, loop_.time());
  mark(*queue);
  return {};
}

Result<void> Broker::wake_key(std::string_view name, std::string_view key) {
  Queue* queue = queues_.find(name);
  if (queue == nullptr) return no_such_queue(name);
  JobQueue& jobs = queue->window.jobs();
  jobs.wake_key(jobs.key(key), loop_.time());
  mark(*queue);
  return {};
}

std::size_t Broker::in_memory() const {
  std::size_t count = 0;
  for (const auto& queue : queues_) count += queue->window.jobs().size();
  return count;
}

// --- telling -------------------------------------------------------------------------------------------------------

void Broker::tell(JobEventKind kind, JobId id, const Queue& queue, std::string_view text, std::uint32_t attempt,
                  WallTime due_at, double fraction, const EndedRun& run) {
  const auto bit = static_cast<std::uint32_t>(kind);
  if (!listeners_.listens(bit)) return;
  const JobEvent event{.kind = kind,
                       .id = id,
                       .queue = queue.window.name(),
                       .at = clock_.to_calendar(clock_.now()),
                       .attempt = attempt,
                       .due_at = clock_.to_calendar(due_at),
                       .text = text,
                       .fraction = fraction,
                       .schedule = run.schedule,
                       .run = run.number};
  listeners_.tell(bit, event);
}

std::string_view to_string(JobEventKind kind) noexcept {
  using enum JobEventKind;
  switch (kind) {
    case added: return "added";
    case changed: return "changed";
    case due: return "due";
    case leased: return "leased";
    case done: return "done";
    case retrying: return "retrying";
    case buried: return "buried";
    case cancelled: return "cancelled";
    case released: return "released";
    case expired: return "expired";
    case kicked: return "kicked";
    case unblocked: return "unblocked";
    case progress: return "progress";
    case erased: return "erased";
    case queue_changed: return "queue changed";
  }
  return "";
}

}  // namespace argiope

#include "argiope/engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "engine/engine_state.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {
namespace {

constexpr Duration kTryInterval = std::chrono::milliseconds{50}, kLongestTryInterval = std::chrono::seconds{1};

// An owner that is just ending, or one who looks whether there is one, is waited for; and so is a server that goes
// meanwhile.
Coro<Result<std::unique_ptr<Store>>> open_owned(std::string where, Duration limit) {
  EventLoop& loop = EventLoop::current();
  const TimePoint until = saturating_add(loop.time(), limit);
  bool has_owner = false, told = false;
  for (Duration pause = kTryInterval;; pause = std::min(pause * 2, kLongestTryInterval)) {
    auto store = open_store(where);
    if (store) co_return store;
    const Errc code = store.error().code;
    has_owner = has_owner || code == Errc::busy;
    const bool may_pass = code == Errc::busy || (code == Errc::network && has_owner);
    if (!may_pass || loop.time() >= until) co_return store;
    if (pause == kLongestTryInterval && !std::exchange(told, true)) {
      spdlog::warn("stands by, and takes over when it may: {}", store.error().message);
    }
    co_await sleep(std::min(pause, until - loop.time()));
  }
}

}  // namespace

Coro<Result<Engine>> Engine::open(std::string where, EngineOptions options) {
  auto store = co_await or_return(open_owned(std::move(where), options.owner_limit));
  Engine engine = co_await or_return(open(*store, std::move(options)));
  engine.state_->opened = std::move(store);
  co_return engine;
}

Coro<Result<Engine>> Engine::open(Store& store, EngineOptions options) {
  Engine engine(std::make_shared<State>());
  State& state = *engine.state_;
  const SchedulerOptions of_scheduler = options.schedules;
  const QueueConfig new_queue = options.new_queue;
  const bool fires = options.fires_schedules;
  state.store = &store;
  state.broker = co_await or_return(Broker::open(store, std::move(options)));
  std::shared_ptr<SchedulerImpl> scheduler;
  if (fires) {
    scheduler = co_await or_return(SchedulerImpl::open(store, state.broker, of_scheduler));
    state.scheduler.emplace(scheduler);
  }
  state.book = Book::of_owner(store, state.broker, std::move(scheduler), new_queue);
  co_return engine;
}

Engine::Engine(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  if (this != &other) let_go();
  state_ = std::move(other.state_);
  return *this;
}
Engine::~Engine() { let_go(); }
void Engine::let_go() noexcept {
  if (state_ != nullptr) state_->let_go();
}

void Engine::State::let_go() noexcept {
  book.reset();
  scheduler.reset();
  if (broker != nullptr) broker->let_go();
  opened.reset();
}

Coro<Result<void>> Engine::close() { return State::close(state_); }

Coro<Result<void>> Engine::State::close(std::shared_ptr<State> state) {
  const std::shared_ptr<Broker> broker = state->broker;
  Result<void> result;
  if (state->scheduler) result = co_await state->scheduler->shutdown(false);
  if (auto closed = co_await broker->close(); result) result = std::move(closed);
  if (state->opened == nullptr) co_return result;
  if (auto closed = state->opened->close(); result) result = std::move(closed);
  co_return result;
}

Book& Engine::book() const noexcept { return *state_->book; }
Scheduler& Engine::scheduler() const {
  if (!state_->scheduler) throw std::logic_error("this engine was opened with fires_schedules off");
  return *state_->scheduler;
}
Store& Engine::store() const noexcept { return *state_->store; }

Result<QueueConfig> Engine::config(std::string_view queue) const { return state_->broker->queues.config(queue); }
std::vector<std::string> Engine::queue_names() const { return state_->broker->queues.names(); }
Result<void> Engine::rest_key(std::string_view queue, std::string_view key, TimePoint until) {
  return state_->broker->queues.rest_key(queue, key, until);
}
Result<void> Engine::wake_key(std::string_view queue, std::string_view key) {
  return state_->broker->queues.wake_key(queue, key);
}

Coro<Result<std::vector<LeasedJob>>> Engine::lease(LeaseCall call) { return state_->broker->lease(std::move(call)); }
Coro<Result<std::vector<LeasedJob>>> Engine::lease_now(LeaseCall call) {
  return state_->broker->leases.lease_now(std::move(call));
}
Coro<Result<std::optional<LeasedJob>>> Engine::lease_job(JobId id, LeaseCall call) {
  return state_->broker->leases.lease_job(id, std::move(call));
}
Coro<Result<bool>> Engine::settle(std::uint64_t token, Verdict verdict) {
  return state_->broker->settle(token, std::move(verdict));
}
bool Engine::renew(std::uint64_t token) { return state_->broker->renew(token).has_value(); }
Coro<Result<std::vector<SettleReply>>> Engine::settle_each(std::vector<RunEnd> ends) {
  return state_->broker->ends.settle_each(std::move(ends));
}
Coro<Result<OnceReply>> Engine::settle_once(RequestKey key, std::vector<RunEnd> ends) {
  return state_->broker->ends.settle_once(std::move(key), std::move(ends));
}
std::optional<RunningJob> Engine::running(std::uint64_t token) const { return state_->broker->runs.find(token); }
std::vector<RunningJob> Engine::running() const { return state_->broker->runs.all(); }
bool Engine::set_progress(std::uint64_t token, double fraction, std::string message) {
  return state_->broker->set_progress(token, fraction, std::move(message));
}
bool Engine::set_output(std::uint64_t token, std::string output) {
  return state_->broker->set_output(token, std::move(output));
}
Coro<Result<void>> Engine::worker_gone(std::string worker) {
  return state_->broker->leases.worker_gone(std::move(worker));
}
Coro<Result<std::size_t>> Engine::end_leases(std::vector<std::uint64_t> tokens) {
  return state_->broker->leases.end_leases(std::move(tokens));
}
Coro<Result<std::vector<Result<FireReply>>>> Engine::fire(std::vector<FireCall> calls) {
  return state_->broker->puts.fire(std::move(calls));
}

WallTime Engine::calendar_now() const { return state_->broker->house.calendar_now(); }
void Engine::look_at_calendar() { state_->broker->house.look_at_calendar(); }
std::size_t Engine::in_memory() const { return state_->broker->queues.in_memory(); }
std::optional<Error> Engine::failure() const { return state_->broker->failure(); }
Engine::ListenerId Engine::add_listener(std::uint32_t mask, JobListener listener) {
  return state_->broker->listeners().add(mask, std::move(listener));
}
void Engine::remove_listener(ListenerId id) { state_->broker->listeners().remove(id); }
std::uint64_t Engine::listener_errors() const { return state_->broker->listeners().errors(); }

}  // namespace argiope

#include "engine/broker.hpp"

#include <utility>

#include "argiope/async/coro.hpp"

namespace argiope {

Coro<Result<std::shared_ptr<Broker>>> Broker::open(Store& store, EngineOptions options) {
  const StoreUse use(store);
  auto calendar = co_await or_return(recall_calendar(use));
  auto broker = std::make_shared<Broker>(store, std::move(options), std::move(calendar));
  broker->owned_.broker = broker;
  co_await or_return(broker->start());
  co_return broker;
}

Broker::Broker(Store& store, EngineOptions options, CalendarMemory calendar)
    : owned_(store, std::move(options), std::move(calendar)),
      queues(owned_,
             [this] {
               const auto self = owned_.broker.lock();  // a listener may destroy the broker meanwhile
               leases.pump();
             }),
      runs(owned_),
      ends(owned_, queues, runs),
      leases(owned_, queues, ends),
      puts(owned_, queues, leases),
      house(owned_, queues, ends) {}

void Broker::let_go() noexcept {
  owned_.store.let_go();
  owned_.listeners.clear();
  house.on_schedules_changed({});
  house.on_calendar_jump({});
  if (EventLoop::is_alive(&owned_.loop) && !std::exchange(owned_.closing, true)) hand_out_nothing_more();
}

Coro<Result<void>> Broker::start() {
  auto stored = co_await or_return(owned_.store(&Store::queues));
  for (StoredQueue& queue : stored) queues.add(std::move(queue));
  co_await or_return(ends.end_old_leases());
  co_await or_return(queues.recount());
  house.start();
  // Only now may windows read: a job under an old lease would have been passed over, and not be looked for again.
  owned_.started = true;
  queues.look_soon();
  co_return Result<void>{};
}

void Broker::hand_out_nothing_more() {
  owned_.callers.answer_all(std::vector<LeasedJob>{});
  for (auto& queue : owned_.queues) queue->room.close();
  queues.stop();
  house.stop();
  leases.stop();
}

Coro<Result<void>> Broker::close_all() {
  if (!std::exchange(owned_.closing, true)) {
    hand_out_nothing_more();
    const std::vector<std::uint64_t> tokens = owned_.runs.tokens();
    for (const std::uint64_t token : tokens) {
      if (const Run* run = owned_.runs.find(token); run != nullptr && !runs.outlives_us(*run)) {
        const std::shared_ptr<const LeaseCall> call = run->call;
        RunDesk::tell_holder(*call, token);
      }
    }
    for (const std::uint64_t token : tokens) {
      if (const Run* run = owned_.runs.find(token); run != nullptr && !runs.outlives_us(*run)) ends.give_back(token);
    }
  }
  co_await house.ended();
  co_await owned_.background.quiet();
  if (auto failed = failure()) co_return std::unexpected(std::move(*failed));
  co_return Result<void>{};
}

std::optional<Error> Broker::failure() const {
  auto failed = owned_.store.failure();
  return failed ? failed : house.failure();
}

// --- telling -------------------------------------------------------------------------------------------------------

void Desk::tell(JobEventKind kind, JobId id, const Queue& queue, std::string_view text, std::uint32_t attempt,
                WallTime due_at, double fraction, const EndedRun& run) const {
  const auto bit = static_cast<std::uint32_t>(kind);
  if (!owned_.listeners.listens(bit)) return;
  const JobEvent event{.kind = kind,
                       .id = id,
                       .queue = queue.window.name(),
                       .at = calendar_now(),
                       .attempt = attempt,
                       .due_at = clock_.to_calendar(due_at),
                       .text = text,
                       .fraction = fraction,
                       .schedule = run.schedule,
                       .run = run.number};
  owned_.listeners.tell(bit, event);
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

#include "serve/api/worker_registry.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

void WorkerRegistry::Worker::end_polls() const {
  for (Timeout* const poll : polls) {
    if (!poll->expired()) poll->reschedule(TimePoint::min());
  }
}

namespace {

// Each text costs its object, too.
constexpr std::size_t kBytesOfText = sizeof(std::string);

std::size_t bytes_of(std::string_view who, std::string_view name, const std::vector<std::string>& queues) noexcept {
  std::size_t bytes = 2 * (who.size() + name.size()) + sizeof(WorkerRegistry::Worker);
  for (const std::string& queue : queues) bytes += queue.size() + kBytesOfText;
  return bytes;
}

}  // namespace

WorkerRegistry::WorkerRef WorkerRegistry::seen(std::string_view who, std::string_view name,
                                               const std::vector<std::string>& queues, WallTime now) {
  const std::size_t bytes = bytes_of(who, name, queues);
  Key key(name, who);
  const auto known = workers_.find(key);
  const WorkerRef there = known == workers_.end() ? nullptr : known->second;
  const std::size_t before = there == nullptr ? 0 : there->bytes;
  const Room more{.workers = there == nullptr ? std::size_t{1} : 0, .bytes = bytes - std::min(bytes, before)};
  if (!make_room(who, more)) return nullptr;
  const WorkerRef worker =
      there != nullptr ? there : std::make_shared<Worker>(Worker{.name = key.first, .who = key.second});
  const bool is_added = workers_.try_emplace(std::move(key), worker).second;  // it may have been forgotten to make room
  count(worker->who, {.workers = is_added ? std::size_t{1} : 0, .bytes = bytes},
        {.bytes = is_added ? 0 : worker->bytes});
  worker->queues = queues;
  worker->bytes = bytes;
  worker->seen_at = now;
  return worker;
}

void WorkerRegistry::count(const std::string& who, Room more, Room less) {
  const auto its = of_askers_.try_emplace(who).first;
  for (Room* const room : {&its->second, &all_}) {
    room->workers += more.workers - less.workers;
    room->bytes += more.bytes - less.bytes;
  }
  if (its->second.workers == 0) of_askers_.erase(its);
}

WorkerRegistry::Room WorkerRegistry::room_of(std::string_view who) const {
  const auto found = of_askers_.find(who);
  return found == of_askers_.end() ? Room{} : found->second;
}

bool WorkerRegistry::has_room(std::string_view who, Room more) const {
  const auto fits = [&](const Room& room, std::size_t part) {
    return room.workers + more.workers <= kMostWorkers / part && room.bytes + more.bytes <= kMostBytes / part;
  };
  return fits(room_of(who), 2) && fits(all_, 1);
}

bool WorkerRegistry::make_room(std::string_view who, Room more) {
  if (!has_room(who, more)) forget_idle(who);
  if (!has_room(who, more)) forget_idle({});
  return has_room(who, more);
}

WorkerRegistry::WorkerRef WorkerRegistry::find(std::string_view who, std::string_view name) const {
  const auto found = workers_.find(Key(name, who));
  return found == workers_.end() ? nullptr : found->second;
}

void WorkerRegistry::forget(const Worker& worker) {
  const auto found = workers_.find(Key(worker.name, worker.who));
  if (found == workers_.end()) return;
  const WorkerRef kept = found->second;
  workers_.erase(found);
  count(kept->who, {}, {.workers = 1, .bytes = kept->bytes});
}

std::vector<WorkerRegistry::WorkerRef> WorkerRegistry::all() const {
  std::vector<WorkerRef> all;
  all.reserve(workers_.size());
  for (const auto& [key, worker] : workers_) all.push_back(worker);
  return all;
}

// Of those that do not wait, of `who` or of all, those first that were seen last: until half of the room that they may
// have is free. How many wait is bounded elsewhere.
void WorkerRegistry::forget_idle(std::optional<std::string_view> who) {
  std::vector<WorkerRef> idle;
  for (const auto& [key, worker] : workers_) {
    if (worker->waiting == 0 && (!who || worker->who == *who)) idle.push_back(worker);
  }
  std::ranges::sort(idle, {}, [](const WorkerRef& worker) { return worker->seen_at; });
  const std::size_t part = who ? 4 : 2;
  for (const WorkerRef& worker : idle) {
    const Room room = who ? room_of(*who) : all_;
    if (room.workers <= kMostWorkers / part && room.bytes <= kMostBytes / part) return;
    forget(*worker);
  }
}

}  // namespace argiope

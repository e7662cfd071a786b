#include "store/jobs/memory_queues.hpp"

namespace argiope {

QueueId MemoryQueues::add(const std::string& name, const QueueConfig& config) {
  const QueueId id = queues_.add(name, config);
  if (of_queues_.size() < id) of_queues_.emplace_back();
  return id;
}

const MemoryQueues::Ranked& MemoryQueues::ranked(QueueId queue, const std::string* key) {
  static const Ranked kNone;
  const Queue& its = of(queue);
  if (key == nullptr) return its.ready;
  const auto found = its.set_aside.find(*key);
  return found == its.set_aside.end() ? kNone : found->second;
}

JobId MemoryQueues::find_unique(QueueId queue, const std::string& unique) const {
  const auto found = uniques_.find({queue, unique});
  return found == uniques_.end() ? 0 : found->second;
}

std::vector<QueueCounts> MemoryQueues::counts() const {
  std::vector<QueueCounts> all;
  for (std::size_t i = 0; i < of_queues_.size(); ++i) {
    all.push_back({static_cast<QueueId>(i + 1), of_queues_[i].counts, of_queues_[i].ended});
  }
  return all;
}

void MemoryQueues::index(const JobRow& row) {
  Queue& queue = of(row.queue);
  ++queue.counts.of(row.shown_state());
  if (row.has_ended()) {
    queue.ended_jobs[row.state].emplace(row.ended_ms, row.id);
    return;
  }
  if (!row.unique.empty()) uniques_[{row.queue, row.unique}] = row.id;
  if (row.runs()) return;
  if (row.state == RowState::ready) queue.ready.insert({row.rank, row.id});
  if (row.state == RowState::set_aside) queue.set_aside[row.key].insert({row.rank, row.id});
  if (row.state == RowState::delayed) queue.delayed.emplace(row.due_ms, row.id);
}

void MemoryQueues::unindex(const JobRow& row) {
  Queue& queue = of(row.queue);
  --queue.counts.of(row.shown_state());
  if (row.has_ended()) {
    queue.ended_jobs[row.state].erase({row.ended_ms, row.id});
    return;
  }
  if (!row.unique.empty()) {
    const auto holder = uniques_.find({row.queue, row.unique});
    if (holder != uniques_.end() && holder->second == row.id) uniques_.erase(holder);
  }
  if (row.runs()) return;
  if (row.state == RowState::ready) queue.ready.erase({row.rank, row.id});
  if (row.state == RowState::set_aside) {
    const auto found = queue.set_aside.find(row.key);
    found->second.erase({row.rank, row.id});
    if (found->second.empty()) queue.set_aside.erase(found);
  }
  if (row.state == RowState::delayed) queue.delayed.erase({row.due_ms, row.id});
}

void MemoryQueues::take_back() {
  queues_.take_back();
  of_queues_.resize(queues_.all().size());
}

}  // namespace argiope

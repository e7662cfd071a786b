// The three orders a queue can keep: as they came, the most urgent first, the newest first.
//
// Equals leave a PriorityQueue in the order they came, and what "urgent" means is a parameter. A LifoQueue suits work
// that grows stale, or that is cheapest while it is fresh.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "argiope/async.hpp"

using namespace argiope;

struct Patient {
  int urgency;
  std::string name;
};
struct MoreUrgent {
  bool operator()(const Patient& a, const Patient& b) const { return a.urgency > b.urgency; }
};

template <class AnyQueue>
Coro<void> treat(const char* order, AnyQueue& queue) {
  const std::vector<Patient> patients = {{1, "cold"}, {5, "burn"}, {3, "cut"}, {5, "fall"}, {1, "cough"}};
  for (const Patient& patient : patients) co_await queue.put(patient);
  queue.shutdown();
  fmt::print("{}:", order);
  try {
    for (;;) fmt::print(" {}", (co_await queue.get()).name);
  } catch (const QueueShutDown&) {
    fmt::print("\n");
  }
}

Coro<void> run() {
  Queue<Patient> as_they_came;
  PriorityQueue<Patient, MoreUrgent> most_urgent_first;
  LifoQueue<Patient> newest_first;
  co_await treat("as they came", as_they_came);
  co_await treat("most urgent first", most_urgent_first);
  co_await treat("newest first", newest_first);
}

int main() {
  VirtualBackend backend;
  run(backend, run());
}

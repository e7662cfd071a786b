// What is left of some queues, for a worker that ends when nothing is.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

struct Backlog {
  bool is_left = false;       // jobs that run, are ready, or are to be tried again before long
  std::size_t due_later = 0;  // where none is: those that wait for a time of their own
  WallTime next_due = WallTime::max();
};

// The delayed jobs of a queue that wait for their time, some thousands at most.
using DelayedJobs = std::function<Coro<Result<std::vector<WaitingJob>>>(StoredQueue queue)>;
DelayedJobs delayed_in(Store& store);
DelayedJobs delayed_in(Book& book);

struct BacklogLook {
  std::vector<std::string> queues;
  WallTime now{};
  Duration linger{};  // how soon a retry has to be due to be waited for
};
// Queues that are paused have nothing.
Coro<Result<Backlog>> look_for_backlog(Book& book, DelayedJobs delayed, BacklogLook look);

}  // namespace argiope

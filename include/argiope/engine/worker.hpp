// Worker: runs the functions that jobs name, at most `concurrency` at a time, and tells the engine how they ended.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/engine/detail/lease.hpp"

namespace argiope {

class Engine;
class JobSource;

// Thrown by a job's function to say more than "it failed", which by the queue's policy is tried again or buried.
struct RetryJob : std::runtime_error {
  RetryJob(const std::string& why, Duration after) : runtime_error(why), delay(after) {}
  Duration delay;
};
struct BuryJob : std::runtime_error {
  using runtime_error::runtime_error;
};
// Not a failure: to be run later, and this run does not count as an attempt.
struct SnoozeJob : std::exception {
  explicit SnoozeJob(Duration after) : delay(after) {}
  const char* what() const noexcept override { return "snoozed"; }
  Duration delay;
};

// Thrown by a function when the worker itself cannot work, which is no fault of the job. The job is given back as if it
// had not been leased; the worker takes no more jobs, lets running ones end, and its run() gives this error.
struct WorkerUnfit : std::runtime_error {
  using runtime_error::runtime_error;
};

// A function's view of the job it runs, and its way to report while it does. Ends with the run.
// Threads: the loop's own.
class JobContext {
 public:
  const JobRecord& job() const noexcept { return leased_.job; }
  const std::string& payload() const noexcept { return leased_.job.payload; }
  std::uint32_t attempt() const noexcept { return leased_.attempt; }  // from 1
  std::uint64_t token() const noexcept { return leased_.token; }
  // How far it is, from 0 to 1; explain() shows it.
  void progress(double fraction, std::string message = {});
  // All that this run has left so far, for who follows it (Book::output()): the job's result until the run ends, and
  // after an end that gives none. Each call is a write of the store: call it no more often than people look.
  void output(std::string so_far);
  // Kept with the job; when the function fails after it, too.
  void set_result(std::string result) { result_ = std::move(result); }
  // One line on a run that goes well: the job's `error`, and that of the schedule's run. A function that fails has its
  // error there. A daemon elsewhere does not keep it.
  void remark(std::string text) { remark_ = std::move(text), is_finding_ = false; }
  // The same, and people should look at it: the event `done` has it as its text, and notifications of findings tell it.
  void finding(std::string text) { remark_ = std::move(text), is_finding_ = true; }
  // Puts `job` in the same transaction that settles this one as done.
  void follow_up(NewJob job) { follow_ups_.push_back(std::move(job)); }

 private:
  friend class Worker;
  JobContext(JobSource& source, LeasedJob&& leased) : source_(source), leased_(std::move(leased)) {}

  JobSource& source_;
  LeasedJob leased_;
  std::string result_, remark_;
  bool is_finding_ = false;
  std::vector<NewJob> follow_ups_;
};

using JobFunction = std::function<Coro<void>(JobContext&)>;

// A function that blocks, as one that runs on `executor`'s threads: gets the payload, gives the result.
// Cancel: its result is dropped; the function itself runs to its end.
JobFunction on_threads(ThreadPoolExecutor& executor, std::function<std::string(const JobRecord&)> function);

struct WorkerOptions {
  std::string name = "worker";
  std::vector<std::string> queues;  // none: those that have a function of their name
  std::size_t concurrency = 16;
  // How long stop() lets jobs run on before they are cancelled and given back.
  Duration drain_limit = std::chrono::seconds{10};
  // Ends when no job of the queues is ready or runs, here or at another worker, and none that has failed is due again
  // within `linger`. Rates and limits are waited for; jobs that were put with a later time, and queues that are paused
  // or have a rate of 0, are not: due_later() tells of them.
  bool until_empty = false;
  Duration linger = std::chrono::seconds{60};
  // Judges exceptions that are none of the above; default: Outcome::retry with what() as the error, also when this
  // throws.
  std::function<Verdict(const JobRecord&, const std::exception_ptr&)> verdict;
};

// Heartbeats are its own: a lease is renewed three times in its length for as long as the function runs. A function
// whose lease is still lost, or whose job is cancelled, is cancelled.
//
// Every run is settled, whatever becomes of its task. How long a stop takes is bounded by the drain limit, by what
// functions do when they are cancelled, and by the store.
//
// Lifetime: may be destroyed at any moment, which is stop(true) without waiting: what it needs lives until its runs
//           have ended. The caller keeps alive what the functions themselves refer to. It may outlive its engine: calls
//           after that are answered `cancelled`, so it ends then.
// Threads:  the loop's own.
class Worker {
 public:
  Worker(const Engine& engine, WorkerOptions options);
  // Of jobs that are not this process's own.
  Worker(std::shared_ptr<JobSource> source, WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;

  // For jobs that name `function`, or, naming none, are in the queue of that name. Before run().
  void add(std::string function, JobFunction run);
  // For jobs that name nothing known.
  void add_default(JobFunction run);

  // Works until stop(), until the engine closes or, with until_empty, until there is nothing left. May be called again
  // when it has ended.
  // Cancel: as stop(), and throws CancelledError at the end of the drain.
  // Errors: std::logic_error while it runs already; those of the engine.
  Coro<Result<void>> run();
  // Takes no more jobs and lets running ones end within the drain limit, or, `at_once`, cancels them and gives them
  // back. Called before run(), it makes that end at once.
  void stop(bool at_once = false);

  struct Counts {
    std::uint64_t done = 0;
    std::uint64_t failed = 0;     // retried or buried
    std::uint64_t cancelled = 0;  // or lost, or given back
    std::size_t running = 0;
  };
  const Counts& counts() const noexcept;

  // Of one that has ended by until_empty: jobs of its queues that wait for a time of their own. 10,000 of a queue are
  // counted at most.
  struct DueLater {
    std::size_t jobs = 0;
    WallTime first = WallTime::max();
  };
  DueLater due_later() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace argiope

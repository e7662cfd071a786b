// The messages between the owner of a store and those who run its jobs: leases, and how runs ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

struct LeasedJob {
  JobRecord job;
  std::uint64_t token = 0;
  std::uint32_t attempt = 0;  // from 1
  TimePoint until{};          // of the lease
  Duration lease_time{};      // how long it lasts, from now and from each renewal: the job's own, or its queue's
};

struct LeaseCall {
  std::vector<std::string> queues;
  std::size_t most = 1;  // jobs
  // The most important job of all the queues comes first, and of equals the one put first. Else they share by their
  // weights.
  bool most_important_first = false;
  std::string worker;
  // Asked to stop a job that was cancelled, by its token; runs on the loop. Not for jobs that the lease has not given
  // yet: those that are cancelled on the way are never given. An exception of it is logged.
  std::function<void(std::uint64_t)> on_cancel;
  // The worker is not in this process: its leases may outlive the engine, see EngineOptions::adopt_leases.
  bool remote = false;
  std::string asked_by;  // for the worker, where others might use its name: RunningJob tells it
};

// A run under way.
struct RunningJob {
  std::uint64_t token = 0;
  JobId id = 0;
  std::string queue;
  std::string worker;
  std::uint32_t attempt = 0;  // from 1
  TimePoint until{};          // of its lease
  Duration lease_time{};
  bool remote = false;
  bool cancel_asked = false;  // it is to stop
  double progress = 0;        // as set_progress() has said last
  std::string progress_message;
  std::string asked_by;  // empty, too, where the owner before this one had leased it
};

// How a run ended.
struct Verdict {
  Outcome outcome = Outcome::done;
  std::string result;             // done; retry, bury: what is kept of the failed attempt
  std::string error;              // retry, bury, cancel; done: a remark
  bool is_finding = false;        // done: the remark is told with the event
  std::optional<Duration> delay;  // retry, release: from now; nullopt: retry by the queue's policy, release at once
  std::optional<std::int32_t> priority;  // retry, release, bury: the job's from now on
  std::vector<NewJob> follow_ups;        // put in the same transaction
};

struct RunEnd {
  std::uint64_t token = 0;
  Verdict verdict;
};

// One step of one schedule, as FireRequest; the jobs are the caller's.
struct FireJob {
  NewJob job;
  std::uint64_t run = 0;        // the entry it is the run of
  std::uint64_t after_run = 0;  // the entry whose job it waits for
};
struct FireCall {
  ScheduleId id = 0;
  std::uint64_t version = 0;
  SchedulePlace place;
  std::vector<ScheduleRun> runs;
  std::vector<FireJob> jobs;
  std::optional<ScheduleRun> amended;
};

}  // namespace argiope

// A command line as a job: one that a program names, or one that the job's payload names.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/worker.hpp"

namespace argiope {

class Scheduler;

struct CommandOptions {
  std::vector<std::string> args;         // the program and its arguments
  std::optional<std::string> input;      // instead of the payload
  std::vector<std::string> environment;  // "NAME=value", besides what is said below
  std::string directory;                 // where it runs, and where a relative program counts from; empty: ours
  Duration timeout = Duration::max();
  std::size_t most_output = 1024 * 1024;
  // Between SIGTERM and SIGKILL, when it is cancelled or out of time.
  Duration grace = std::chrono::seconds{5};
  // A lack that keeps any command from being started (no descriptors, no memory, no room for processes) is no failure
  // of the job: it is tried again, at growing intervals, for so long. Then WorkerUnfit.
  Duration patience = std::chrono::seconds{30};
  // Exit statuses that are success. Empty: 0, and of our own `argiope crawl` 1, too: what it has found is no failure of
  // it.
  std::vector<int> ok_status;
  // The job's payload names the program: that it cannot be run is the job's failure. Else it is the worker's: see
  // below.
  bool is_from_job = false;
};
// A command line: the payload is its standard input, its standard output is the result. It also has ARGIOPE_JOB_ID,
// ARGIOPE_JOB_NAME, ARGIOPE_JOB_QUEUE, ARGIOPE_JOB_KEY, ARGIOPE_JOB_ATTEMPT and ARGIOPE_JOB_TOKEN (which grows from run
// to run, over all jobs) in its environment. Exit status 0, or those of `ok_status`, is success, 75 (EX_TEMPFAIL of
// sysexits.h) and others are failures that are tried again, 65 (EX_DATAERR) buries the job; the last line of standard
// error is the error, and what it printed, with the end of standard error, stays the job's result. After a success with
// another status than 0 that line is the job's remark (JobContext::remark), as findings. Killed with all that descends
// from it at the timeout, when it is cancelled, and when this process ends, however it does:
// SubprocessOptions::supervised says what holds where.
// Errors: std::invalid_argument for no program, std::system_error when there is no such program or it cannot be run,
//         unless is_from_job.
JobFunction as_command(CommandOptions options);

// A function for jobs whose payload says what to run:
// {"args":["./backup","--all"],"directory":"/home/ann","timeout":"1h","input":"…","environment":{"NAME":"value"},
// "ok_status":[0,1]}. As as_command(), in that directory (ours, if none is given), and the command
// has ARGIOPE_SCHEDULE_NAME, ARGIOPE_SCHEDULE_PLANNED_AT and ARGIOPE_SCHEDULE_RUN in its environment besides: those of
// run_of(), unless the payload says them itself, as a template with `fill_in` can, whose runs then know them however
// many have followed. `grace`: between SIGTERM and SIGKILL, as CommandOptions has it.
JobFunction as_command_call(Scheduler& scheduler, Duration grace = std::chrono::seconds{5});
// Whether `payload` is one that as_command_call() takes: invalid_input naming the member.
Result<CommandOptions> parse_command_call(std::string_view payload);

}  // namespace argiope

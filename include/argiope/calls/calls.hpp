// Commands and HTTP requests as jobs.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// A command line as a job: one that a program names, or one that the job's payload names.

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

// An HTTP request as a job: what a schedule calls when it is due.

struct HttpCall {
  static constexpr std::size_t kMostHeaders = 100;

  HttpRequest request;
  std::vector<std::pair<int, int>> expect{{200, 299}};  // statuses, from and to, that are success
};

// {"method":"POST","url":"https://example.org/hook","headers":{"Authorization":"Bearer x"},"body":{"run":7},
//  "expect":[200,"3xx"],"timeout":"10s"}
// All but `url` may be missing: GET, no headers, no body, any 2xx, 30 s. A body that is no string is sent as the JSON
// text it is, as application/json unless a header says otherwise. `expect` is a status, a class of them, or a list.
// Errors: invalid_input naming the member that is unknown, of the wrong type or out of range, or a header that is
//         the client's own business (Host, Connection, Content-Length, …).
Result<HttpCall> parse_http_call(std::string_view json);

struct HttpCallOptions {
  // Bytes of a response's body that are kept as the job's result; what follows is not read.
  std::size_t most_kept = 64 * 1024;
  // Whether a job waits where the transport's address guard refuses its address; else that is a failed attempt.
  bool refused_waits = true;
};

// A function for jobs whose payload is such a form. The result is {"status":200,"content_type":"…","body":"…"}, with
// "truncated":true when the body was longer than what is kept. Redirects are not followed.
//
// Fails:  to be tried again by the queue's policy, with any other status and with every trouble of the network; not
//         before what the server's Retry-After says. Buried at once when the payload is none of the above.
// Waits:  where the transport's address guard refuses the address (`refused_waits`), which is no fault of the job: it
//         is given back for five minutes, without an attempt, and the log says why.
// Cancel: the connection is closed; what the server has made of the request stays.
// `transport` outlives the function and its runs.
JobFunction as_http_call(HttpTransport& transport, HttpCallOptions options = {});

// A queue whose jobs are sent to a web server: each job is one request, and the answer says how it ended.

struct HttpPush {
  // Where to, how (POST unless another method is asked for), and with which headers besides those below. Its body and
  // `expect` are not used.
  HttpCall call;
  // Not empty: signs each request, so that the receiver knows who sent it.
  std::string secret;
  // The transport should be one that connects to private addresses.
  bool allow_private = false;
};

// {"url":"https://shop.example/hooks/mail","method":"POST","headers":{…},"timeout":"10s","secret":"…",
//  "allow_private":false}
// All but `url` may be missing. Errors: as parse_http_call().
Result<HttpPush> parse_http_push(std::string_view json);

// The payload is the body, as application/octet-stream unless a header says otherwise, with Argiope-Job-Id,
// Argiope-Job-Queue, Argiope-Job-Attempt and Argiope-Job-Token (which grows from run to run, over all jobs), and, where
// the job has them, Argiope-Job-Name and Argiope-Job-Key in %XX. The answer settles the job, as with Cloud Tasks:
//
//   2xx                                done; the body is its result. One that breaks off is a failed attempt, and one
//                                     longer than is kept ends with a line that says so
//   429 or 503 with Retry-After       given back until then, for 24 hours at most: no attempt has failed. Of one job
//                                     20 times; 0 or a past date says nothing
//   408, 425, 429, 5xx                 failed, tried again by the queue's policy
//   other                              buried; redirects are not followed
//
// A network that fails is a failed attempt. An address that the transport's guard refuses throws WorkerUnfit: the jobs
// wait. Errors name the scheme and host alone, for paths of webhooks are secrets.
//
// With a secret it has Argiope-Signature, "t=1764000000,v1=HEX": HEX is the HMAC-SHA-256 (RFC 2104) under the secret of
// the t, ".", the job's id, "." and the body. A receiver that compares it, and refuses what is older than some minutes,
// cannot be fooled by others, nor by a repetition of what it has seen.
//
// Cancel: the connection is closed; what the server has made of the request stays.
// `transport` outlives the function and its runs.
JobFunction as_http_push(HttpTransport& transport, HttpPush push, HttpCallOptions options = {});

// That signature's value. `at` in whole seconds.
std::string sign_push(std::string_view secret, WallTime at, JobId id, std::string_view body);

}  // namespace argiope

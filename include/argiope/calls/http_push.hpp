// A queue whose jobs are sent to a web server: each job is one request, and the answer says how it ended.
#pragma once

#include <string>
#include <string_view>

#include "argiope/calls/http_call.hpp"
#include "argiope/engine/worker.hpp"

namespace argiope {

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

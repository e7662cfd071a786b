// An HTTP request as a job: what a schedule calls when it is due.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

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

}  // namespace argiope

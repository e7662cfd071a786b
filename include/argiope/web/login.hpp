// The login step: a form is fetched, filled in and sent, as a person does it in a browser, and the cookies that come of
// it are kept. For pages that need no script for it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/web/cookies.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

struct LoginStep {
  Url page;  // where the form is
  // The values to fill in, by the names that the form has for it; UTF-8. Everything else is sent as the page has it,
  // hidden fields too. Values are in no message.
  std::vector<std::pair<std::string, std::string>> fields;
  // How to tell that it worked. Without either: the form does not come again, and there is a cookie.
  std::string expected_text;    // on the page that comes
  std::string expected_cookie;  // the name of one
};

struct LoginOptions {
  Duration timeout = std::chrono::seconds{30};  // of each request
  Duration pause{};                             // between two
  int max_redirects = 10;
  std::size_t body_limit = std::size_t{2} * 1024 * 1024;
};

struct LoginOutcome {
  Url page;                 // what came in the end
  std::size_t cookies = 0;  // that the page of the form is sent from now on
};

// Logs in over `session`, an HttpSession whose jar is `jar`.
// Errors: those of send(); not_found when the page has no such form, naming the fields of those that it has; refused
//         when the server said no, or what was expected did not come; protocol for what cannot be followed.
//         A password is never sent in the clear from a page that came over TLS.
Coro<Result<LoginOutcome>> log_in(HttpTransport& session, CookieJar& jar, const LoginStep& step,
                                  const LoginOptions& options, Random random);

}  // namespace argiope

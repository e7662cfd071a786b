// What many requests have in common: cookies, HttpSession, and the login by a form.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// Cookies: what servers ask to be told again, and a jar that tells each of them what is its own. By RFC 6265 and what
// its successor (RFC 6265bis) adds: prefixes of names, sizes, control characters, secure cookies that nobody overlays
// in the clear. SameSite and Partitioned are about pages inside of pages, and have no meaning here.

struct Cookie {
  std::string name;  // may be empty
  std::string value;
  std::string domain;  // as Url spells a host: lower case, IDNA in its ASCII form
  std::string path = "/";
  std::optional<WallTime> expires;  // nullopt: with the session
  bool host_only = true;            // for `domain` alone, and not for its subdomains
  bool secure = false;              // not over plain HTTP, but to this machine itself
  bool http_only = false;           // not for scripts; kept for whoever reads it next

  friend bool operator==(const Cookie&, const Cookie&) = default;
};

// Beyond a limit those go first that have expired, then those that were used longest ago; of a site's own, those that
// are not secure before others. A site is a registrable domain with all its hosts, or an address.
struct CookieLimits {
  std::size_t cookies_per_site = 180;
  std::size_t bytes_per_site = std::size_t{256} * 1024;
  std::size_t cookies = 100'000;
  std::size_t bytes = std::size_t{16} * 1024 * 1024;
};

// No cookie is for a public suffix (libpsl), which many owners would share, but of that host itself. Secure cookies are
// sent and taken over TLS, and where nothing leaves this machine.
//
// Time is passed in; nothing expires by itself.
// Cost:    reading an empty jar is one load of an atomic. A look-up takes a lock and a hash for each label of the host.
// Threads: any.
class CookieJar {
 public:
  explicit CookieJar(CookieLimits limits = {});
  ~CookieJar();
  CookieJar(const CookieJar&) = delete;
  CookieJar& operator=(const CookieJar&) = delete;

  // Does what an answer from `from` asks for in one Set-Cookie field; what it may not ask for is ignored. True when a
  // request would be sent other cookies now: one is new, gone, or has another value.
  bool take(const Url& from, std::string_view set_cookie, WallTime now);
  // Puts in a cookie as it stands, of a file or of an earlier run. False, and nothing happens: it has expired, its
  // domain is no host or a public suffix of others, or its name or value has control characters.
  bool put(Cookie cookie, WallTime now);
  // The value of the Cookie field of a request for `url`; empty: nothing. Longest paths first, then the oldest; what
  // would make the field longer than servers read (8,000 bytes) is left out.
  std::string field_for(const Url& url, WallTime now);

  bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }
  std::size_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
  }  // those that have expired included
  // All that have not expired: sites by name, each site's in the order in which they came.
  std::vector<Cookie> all(WallTime now) const;

  // From now on take_changes() tells which sites have other cookies than before.
  void watch();
  // Each of those since the last call, with all that it has now; nothing: it has none any more.
  std::vector<std::pair<std::string, std::vector<Cookie>>> take_changes(WallTime now);

 private:
  class Impl;
  std::atomic<std::size_t> size_{0};
  std::unique_ptr<Impl> impl_;
};

// The cookies.txt that Netscape began with, and that browsers' extensions, curl and wget read and write: a line a
// cookie, seven fields with tabs between, "#HttpOnly_" before the domain of those that are http_only. 0 as the time
// stands for a session.
// Errors: invalid_input, naming the line and never what it holds.
// Cost:   linear in the text.
Result<std::vector<Cookie>> parse_cookies_txt(std::string_view text);
// A cookie whose name has a tab cannot be written so, and is left out.
std::string format_cookies_txt(const std::vector<Cookie>& cookies);

// HttpSession: what makes one of many requests: cookies, and answers to servers that ask who is there. It stands
// between the caller and the transport that sends the requests.

struct HttpSessionOptions {
  // For servers that ask by HTTP authentication (basic, digest).
  std::vector<HttpCredentials> credentials;
  // Fields of the transport itself. Those named Cookie are joined with the jar's: a request has one such field.
  std::vector<HeaderFor> headers_for;
};

// Sends each request with the cookies that are its URL's, and with Authorization once its server has asked for it;
// takes what answers set. Nothing is sent twice: HttpResponse::challenged says when to ask again, for who paces
// requests. A Cookie or Authorization field of the request itself stays as it is. An anonymous request only passes
// through.
//
// Cost:    of a request that nothing is known for, a look into the empty jar and that of credentials; its frame
//          besides.
// Threads: the loop's own. Several sessions may share a jar.
class HttpSession final : public HttpTransport {
 public:
  // `jar` may be null: without cookies. It and `below` must outlive the session. `random` is for digest's cnonces.
  HttpSession(HttpTransport& below, CookieJar* jar, HttpSessionOptions options, Random random);
  ~HttpSession() override;

  // See HttpTransport; sets HttpResponse::new_cookies and challenged.
  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The login step: a form is fetched, filled in and sent, as a person does it in a browser, and the cookies that come of
// it are kept. For pages that need no script for it.

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

// HttpSession: what makes one of many requests: cookies, and answers to servers that ask who is there. It stands
// between whoever sends requests and the transport that does.
#pragma once

#include <memory>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/web/cookies.hpp"
#include "argiope/web/credentials.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

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

}  // namespace argiope

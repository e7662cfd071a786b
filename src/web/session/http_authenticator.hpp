// Answers what servers ask for with a 401 (RFC 7617, RFC 7616), and from then on without being asked within what the
// server has said, or may be taken, to be the same protection space. Used by HttpSession.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/http.hpp"
#include "web/http/internal/digest_auth.hpp"

namespace argiope {

// A server's name and password that were refused are not sent again: it might lock the account.
//
// Threads: one at a time.
class HttpAuthenticator {
 public:
  // Of several for one server the first counts. `random` draws cnonces.
  HttpAuthenticator(std::vector<HttpCredentials> credentials, Random random);

  bool empty() const noexcept { return servers_.empty(); }

  // The field that goes with one request, and what it was made from.
  struct Answer {
    std::string field;  // the value of Authorization; empty: none
    std::size_t space = 0;
    std::uint32_t version = 0;
  };
  Answer answer_for(const HttpRequest& request);

  // The request was answered with 401 and these fields, one a line: whether another attempt makes sense. A server that
  // keeps changing its mind may be told so for ever: callers count.
  HttpChallenged challenged(const HttpRequest& request, const Answer& sent, std::string_view fields);
  // It was answered otherwise.
  void accepted(const HttpRequest& request, const Answer& sent);

 private:
  struct Space {
    bool is_digest = false;
    DigestChallenge digest;
    std::string realm;
    std::vector<std::string> paths;  // those that begin so belong to it
    std::string cnonce;
    std::uint32_t count = 0;    // requests with this nonce
    std::uint32_t version = 0;  // of the nonce
    std::uint32_t renewed = 0;  // nonces in a row that came to nothing
    bool proven = false;        // something was answered otherwise than with 401
    bool refused = false;
  };
  struct Server {
    HttpCredentials credentials;
    std::vector<Space> spaces;
  };

  Server* server_of(const Url& url);
  Space* space_of(const HttpRequest& request, const Answer& sent);
  static const Space* covering(const Server& server, std::string_view path, std::size_t& index);
  static Space* known_space(Server& server, const Space& like);
  HttpChallenged challenged_again(Space& space, Space news);
  void renew(Space& space, DigestChallenge digest);

  std::unordered_map<std::string, Server> servers_;  // by scheme, name and port
  Random random_;
};

}  // namespace argiope

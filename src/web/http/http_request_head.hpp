// The front of a request as it is sent: its first line and header fields, and which of the client's, its user's and the
// request's own fields count. Used by HttpClient.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_client.hpp"

namespace argiope {

// Whether the field is for requests to that URL; see HeaderFor::where.
bool goes_to(const HeaderFor& field, const Url& url);

// Lifetime: `options` must outlive it.
class HttpRequestHead {
 public:
  // Throws std::invalid_argument when a field of the options has a control character or a malformed name.
  explicit HttpRequestHead(const HttpClientOptions& options);
  // Appends the head and the body of `request`. Its own fields replace those of the client of the same names, and those
  // are left out that are not safe. `asked`: the proxy that gets it instead of the server (RFC 9112, 3.2.2).
  void write(const HttpRequest& request, std::string& out, const Proxy* asked = nullptr) const;

 private:
  const HttpClientOptions& options_;
  std::vector<std::pair<std::string, std::string>> common_;  // the fields of every request
  std::string common_lines_;                                 // the same, as they are sent
};

}  // namespace argiope

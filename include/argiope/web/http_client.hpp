// HTTP/1.1 and HTTP/2 over sockets, directly or by proxies: connections kept alive per host, TLS always verified, every
// connection's address checked.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/web/detail/byte_rate.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/detail/http_versions.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/detail/tls.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

struct HttpClientOptions {
  std::string user_agent = "argiope";
  std::string accept = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5";
  // Sent with every request; names and values must be free of control characters.
  std::vector<std::pair<std::string, std::string>> headers;
  // Sent to some servers only, in the place of the client's own of the same name.
  std::vector<HeaderFor> headers_for;
  // Of one address: until the connection is there, TLS included. A host's addresses are tried one after the other.
  Duration connect_timeout = std::chrono::seconds{10};
  // Idle connections are closed after so long, and the oldest when there are more.
  Duration keep_alive = std::chrono::seconds{15};
  std::size_t max_idle = 1024;
  HttpVersions versions = HttpVersions::best;
  // Requests at a time on one connection of HTTP/2, where the server allows as many; further ones open another. At
  // least 1.
  std::uint32_t http2_streams = 100;
  std::size_t header_limit = 256 * 1024;  // bytes of one response's head
  std::size_t header_fields_limit = 1000;
  // A PEM file of certificate authorities trusted beside the system's; for tests and private networks.
  std::string extra_ca_file;
  // Whom servers are asked by. Where a proxy looks up names, a server's address is not ours to check: see
  // AddressGuard::check_name(). The addresses of proxies are not checked, since the user has named them.
  ProxySettings proxies;
  // How fast answers may come, over all connections and all clients that share it; null: as fast as they do. Time that
  // is waited for it is not counted in HttpRequest::timeout.
  std::shared_ptr<ByteRate> byte_rate;
  // Shown to the servers of these sites alone ("https://example.org", as Url::site_key() has it), if they ask for one.
  ClientCertificate client_certificate;
  std::vector<std::string> client_certificate_for;
};

// See HttpTransport for the contract of send().
//
// By HTTP/2 requests to a server share a connection. While the first is being opened, further requests wait for it. A
// request that the server says it has not looked at (GOAWAY, REFUSED_STREAM) is sent again on another one, whatever its
// method; what a server wants by HTTP/1.1 is sent by that.
//
// A request on a kept connection that turns out to be closed before the first byte of a response is sent once more
// on a new one (RFC 9112, 9.3.1). A request that must not be sent twice (POST, PATCH, unless
// HttpRequest::is_repeatable) never goes over a kept connection of HTTP/1.1, and over one of HTTP/2 once: a request
// lost with that is an error.
//
// A proxy that fails (nothing accepts, no answer, 407) is refused or network, and names the proxy; another one is tried
// first where there are several. The word of a proxy on a server, 502 for one, is a response to http URLs and an error
// else.
//
// Errors:   the constructor throws std::invalid_argument when a header could split the request.
// Threads:  the loop's own. Destroy it when no send() is under way.
class HttpClient final : public HttpTransport {
 public:
  // All of them must outlive the client. `backend` is the running loop's.
  HttpClient(HttpClientOptions options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard);
  ~HttpClient() override;

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override;

  // Without a request under way.
  std::size_t idle_connections() const noexcept;
  std::uint64_t connections_opened() const noexcept;
  // Closes what is kept alive.
  void close_idle();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// True when `text` may stand in a header field: no control characters but tab.
bool is_header_safe(std::string_view text) noexcept;

// Whether a field of this name says where a request goes, how its body comes or what becomes of the connection, which
// the client says itself: with a second one servers refuse the request, or wait for a body that never comes.
bool is_clients_own(std::string_view name) noexcept;

// The value of the Authorization field (Basic) that a URL's name and password stand for, which are taken out of the
// URL; empty when it has none.
std::string take_credentials(Url& url);

// Sends `request` and follows at most `max_redirects` redirects, each resolved against the URL it came from.
// `request.url` is left at the last hop. `after_each` is called after each response, with request and response as they
// are then.
// Errors: those of send(); network when a response is cut short; not_found when there are more redirects, or a Location
// is no http(s) URL.
Coro<Result<void>> send_following_redirects(HttpTransport& transport, HttpRequest& request, HttpResponse& response,
                                            int max_redirects, std::function<void()> after_each = {});

// 301, 302, 303, 307 and 308.
constexpr bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace argiope

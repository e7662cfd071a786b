// An HTTP exchange as the rest of Argiope sees it: a request, a response, and a transport that turns one into the
// other. HttpClient (http_client.hpp) does it over sockets; simulations do it without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

enum class HttpMethod : std::uint8_t { get, head, post, put, patch, delete_, options };

// "GET", as it is sent.
constexpr std::string_view to_string(HttpMethod method) noexcept {
  constexpr std::string_view kNames[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  return kNames[static_cast<std::size_t>(method)];
}
// Whether sending a request twice does no more than sending it once (RFC 9110, 9.2.2).
constexpr bool is_idempotent(HttpMethod method) noexcept {
  return method != HttpMethod::post && method != HttpMethod::patch;
}

// How single requests get to their servers, where that is another way than all others' of the same client. A request
// never goes over a connection that was opened for another way.
struct HttpWay {
  // The one proxy that is asked, whatever the client's are. Nobody vouches for it: the client's guard checks its
  // address as it does those of servers.
  std::optional<Proxy> proxy;
  // Where no proxy is said: none is asked, whatever the client's are.
  bool is_direct = false;
  // False: the peer is taken for the server, whatever certificate it has. A proxy's certificate is checked
  // nevertheless.
  bool verifies = true;
  // As HttpClientOptions has it; zero: the client's.
  Duration connect_timeout{};
  friend bool operator==(const HttpWay&, const HttpWay&) = default;

  // Whether what is said to that server may be heard by whom the client's user has not chosen: such a request should be
  // anonymous.
  bool may_be_heard(const Url& url) const noexcept { return url.scheme() == "https" ? !verifies : proxy.has_value(); }
};

class ByteQuota;

struct HttpRequest {
  HttpMethod method = HttpMethod::get;
  Url url;
  // In the order sent, after Host, User-Agent, Accept and Accept-Encoding; one that is named as one of those the client
  // sends by itself stands for it, but for Host.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // with its Content-Length
  // Decoded bytes of the body that are kept; the rest is not read, and the response says `truncated`.
  std::size_t body_limit = 10 * 1024 * 1024;
  // Media types whose bodies are wanted, in lower case: "text/html", or "text/*". Empty: all. The body of another one
  // is not read, and the response says `unwanted`. The types must outlive send().
  std::span<const std::string> wanted_types;
  // From the start, or from the end of the wait for a connection slot, to the last byte.
  Duration timeout = std::chrono::seconds{30};
  bool keep_fields = false;  // whether HttpResponse::fields is filled
  bool keep_wire = false;    // whether HttpResponse::wire is
  // Bytes that come are taken from it as they come; once it is used up, an answer that is not whole yet ends with
  // too_large.
  // Null: no quota. A transport that is no HttpClient may ignore it.
  ByteQuota* quota = nullptr;
  // Null: that of all requests. A transport that is no HttpClient may ignore it.
  std::shared_ptr<const HttpWay> way;
  // Sending it twice does no more than sending it once, though its method promises no such thing.
  bool is_repeatable = false;
  // It goes without anything that says who we are: cookies, Authorization, fields that are for some servers only, a
  // client certificate. A server that would be shown a certificate is not asked: refused.
  bool is_anonymous = false;
};

// The header fields a crawler asks for, gathered while parsing; absent ones are empty.
struct HttpHeaders {
  std::string content_type;
  std::string etag;
  std::string last_modified;
  std::string location;
  std::string retry_after;
  // As it came: a delay and a URL, as `meta http-equiv=refresh` has them.
  std::string refresh;
  // All X-Robots-Tag fields, one a line.
  std::string robots_tag;
  std::string content_encoding;
  // All Set-Cookie fields, and all WWW-Authenticate fields, one a line.
  std::string set_cookie;
  std::string authenticate;
  std::optional<std::uint64_t> content_length;
  void clear();
};

// A field for some servers only.
struct HeaderFor {
  // "http://host:8080" (scheme, name and port), "host" (whatever the scheme and port), "host:8080", "*.host" (its
  // subdomains, and not itself), or "*" (every server).
  std::string where;
  std::string name;
  std::string value;
  friend bool operator==(const HeaderFor&, const HeaderFor&) = default;
};

// A trait of a response that broke RFC 9112 and was still read, as browsers do.
enum class HttpOddity : std::uint8_t {
  blank_lines,        // before the status line
  status_line,        // "HTTP/1.1 200" without a reason or the space before it, "ICY 200 OK", "200OK"
  line_feeds,         // lines that end without CR
  header_line,        // without a colon, with a control character, a space in its name: it is passed over
  folded_line,        // a field on several lines
  repeated_length,    // the same Content-Length again
  length_and_chunks,  // Transfer-Encoding beside Content-Length: the former holds
  transfer_coding,    // Transfer-Encoding that does not end in chunked, has other codings, or comes by HTTP/1.0
  content_coding,     // an unknown Content-Encoding: the body is taken as it is
  needless_length,    // of a body where there must be none
  chunks,             // without CR, or without the end of the last one
  cut_short,          // the body: see HttpResponse::damage
};
inline constexpr std::size_t kHttpOddities = 12;
// "bare_line_feeds". Stable: it appears in summaries.
std::string_view to_string(HttpOddity oddity) noexcept;
// All that are in HttpResponse::oddities, for people: "bare line feeds, cut short".
std::string describe_oddities(std::uint16_t oddities);

// The next step after an answer with status 401.
enum class HttpChallenged : std::uint8_t {
  none,     // nothing: it was none, or nobody has a name and password for that server
  again,    // the same request, sent again, goes with an answer to the challenge
  refused,  // the name and password were not taken, and are not sent there any more
};

// An exchange as it went over the wire, for archives. One not of HTTP/1.1 is as that would have it, or `head` is empty.
struct HttpWire {
  std::string request;  // head and body, as they were sent
  std::string head;     // of the response, from the status line to the blank line, as it came
  // The response's body with its content codings, and without the transfer coding. Where it has no content coding this
  // is empty, and HttpResponse::body is what came.
  std::string coded_body;
  bool is_coded = false;
  // Of the coded body only the first HttpRequest::body_limit bytes are here.
  bool is_cut = false;
  void clear();
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  // All header fields as they came, in their order, where the request asked for them (keep_fields). Else empty.
  std::vector<std::pair<std::string, std::string>> fields;
  // Decoded (gzip, br, zstd, deflate undone), in the charset it came in.
  std::string body;
  // True when the body was longer than the request's body_limit.
  bool truncated = false;
  // True when its type, by Content-Type or without one by its first bytes, is none of the request's `wanted_types`:
  // nothing is in `body`. Not of answers without a body, to HEAD above all.
  bool unwanted = false;
  // Bit `i` is HttpOddity(i).
  std::uint16_t oddities = 0;
  // Why the body ends before its end, in words: the connection was closed or broke, or what came cannot be decoded. The
  // part that came of it is in `body`. Empty when it is whole.
  std::string damage;
  // Bytes received, headers and undecoded body.
  std::uint64_t wire_bytes = 0;
  // Those of them that were taken from the request's quota. A transport that takes none leaves it alone.
  std::uint64_t quota_bytes = 0;
  HttpWire wire;  // where the request asked for it (keep_wire). Else empty.
  // Of the server; of the proxy, where that looks up names.
  IpAddress remote;
  // When the request's first byte was handed to the kernel, on the loop's clock: what politeness counts from. When
  // there was no connection: when send() began.
  TimePoint sent_at;
  // When its first byte came. Not after `sent_at` where a transport does not tell.
  TimePoint answered_at;
  // Whether there was a connection, TLS included. Set by a send() that fails, too: what fails before is the host's
  // trouble, what fails after may be that of one URL.
  bool connected = false;
  // Set by an HttpSession alone: whether other cookies would be sent from now on, and whether to ask again.
  bool new_cookies = false;
  HttpChallenged challenged = HttpChallenged::none;
};

// Threads: the loop's own.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Sends one request and gives its response; redirects are not followed. Any HTTP status is a response;
  // an Error is: refused (address guard), dns, network, tls, timeout, protocol, too_large. A body that is cut short is
  // a response that says so.
  // `sent_at` and `connected` are set even when no response comes.
  // Suspends: until the response is complete. Cancel: throws CancelledError; the connection is closed.
  // `response` is the caller's to reuse, so that a body's memory need not be allocated for each page.
  virtual Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) = 0;
};

}  // namespace argiope

// What a server says by HTTP/2, in pieces, to a client with three requests under way. The first byte says how large the
// pieces are, and whether the second request is broken off on the way.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "web/http/http2_session.hpp"

namespace {

using namespace argiope;

struct Request {
  Request(Http2Session& its_session, HttpMethod method, std::string text, const HttpReaderLimits& limits)
      : session(its_session), head(std::move(text)), stream(response, decoder, limits, method) {
    session.start(stream, head);
  }
  ~Request() { session.stop(stream); }

  Http2Session& session;
  std::string head;
  HttpResponse response;
  ContentDecoder decoder;
  Http2Stream stream;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] % 64 + 1;
  const bool is_stopped_early = data[0] >= 128;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  constexpr std::size_t kMostBody = 64 * 1024;
  constexpr std::size_t kMostHead = 4096;
  HttpReaderLimits limits{kMostHead, 32, kMostBody};
  limits.keep_wire = limits.keep_fields = data[0] % 3 == 0;
  Http2Session session({kMostHead, 10});
  std::vector<std::unique_ptr<Request>> requests;
  requests.push_back(
      std::make_unique<Request>(session, HttpMethod::get, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", limits));
  requests.push_back(std::make_unique<Request>(
      session, HttpMethod::post, "POST /form HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\na=b", limits));
  requests.push_back(
      std::make_unique<Request>(session, HttpMethod::head, "HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n", limits));

  std::string sent;
  while (!bytes.empty() && !session.is_over()) {
    session.receive(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    sent.clear();
    session.fill(sent, 1024 * 1024);
    if (is_stopped_early && bytes.size() < size / 2) requests[1]->session.stop(requests[1]->stream);
  }
  session.lose(nullptr);
  require(session.active() == 0);  // else a stream outlives its connection
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = *requests[i];
    const bool is_stopped = i == 1 && is_stopped_early;
    require(is_stopped || request.stream.end != Http2End::open);  // else a stream without an end
    require(request.response.body.size() <= kMostBody);           // else a body beyond its limit
    require(request.response.wire.head.size() <= 2 * kMostHead);  // else a head beyond its limit
    require(request.stream.end != Http2End::failed ||
            !request.stream.error.message.empty());  // else an error without words
  }
  return 0;
}

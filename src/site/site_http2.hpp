// One connection of `argiope site` by HTTP/2, without its socket: requests become calls, replies become frames.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "site/internal/synthetic_web.hpp"

struct nghttp2_session;

namespace argiope {

// A request's account of itself.
struct SiteHttp2Request {
  std::string method;
  std::string target;
  std::map<std::string, std::string, std::less<>> fields;
  std::string body;
  std::string_view field(std::string_view name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string_view() : std::string_view(found->second);
  }
};

// Replies come when their latency has passed, each by itself. Of a reply's Behaviour what HTTP/2 has no word for is
// nearest to it: a connection that would be torn down is a stream that is reset.
//
// Threads: the loop's own.
class SiteHttp2 {
 public:
  using Answer = std::function<SyntheticReply(const SiteHttp2Request&)>;

  SiteHttp2(EventLoop& loop, Answer answer);
  ~SiteHttp2();
  SiteHttp2(const SiteHttp2&) = delete;
  SiteHttp2& operator=(const SiteHttp2&) = delete;

  // False: what came was no HTTP/2.
  bool receive(std::string_view bytes);
  // Appends up to about `most` bytes that wait to be sent.
  void fill(std::string& out, std::size_t most);
  // Set when there is something to send. The sender clears it.
  Event wants_to_send;

 private:
  struct Stream {
    SiteHttp2Request request;
    SyntheticReply reply;
    std::size_t sent = 0;  // of the reply's body
    std::size_t until = 0;
    bool repeats = false;  // the body, without an end
    bool breaks = false;   // off, at `until`
    bool is_due = true;    // the next byte, of a body that drips
    Handle timer;
  };
  struct Callbacks;

  void take(std::int32_t id);
  void respond(std::int32_t id);
  void drip(std::int32_t id);

  EventLoop& loop_;
  const Answer answer_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;
};

}  // namespace argiope

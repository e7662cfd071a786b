// Which servers speak HTTP/2, and the connections to them: HttpClient's, beside those of HTTP/1.1 that it keeps.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/web/http_client.hpp"
#include "web/http/http2_connection.hpp"

namespace argiope {

// Threads:  the loop's own.
// Lifetime: held by a shared_ptr. Its backend must outlive it; what frames hold of it may outlive the client.
class Http2Origins : public std::enable_shared_from_this<Http2Origins> {
 public:
  using Shared = std::shared_ptr<Http2Connection>;
  using IdleConnections = std::list<Shared>;  // that has waited longest first

  // Those that may be asked over the same connections: a Route's key.
  struct Origin {
    struct Kept {
      Shared connection;
      std::optional<IdleConnections::iterator> idle_at;
    };
    std::string key;
    std::vector<Kept> connections;
    IntrusiveList<detail::ListWaiter> waiting;  // for an opening to end, or a stream to
    // Of the opening that ended last, and how many ended before.
    std::optional<Error> failure;
    std::uint64_t openings = 0;
    bool is_opening = false;
    // The server has not chosen HTTP/2, or does not want it.
    bool speaks_http1 = false;
  };
  using OriginPtr = std::shared_ptr<Origin>;

  // One connection to an origin is being opened: further requests wait for it. Its end wakes them.
  class Opening {
   public:
    explicit Opening(OriginPtr origin) : origin_(std::move(origin)) { origin_->is_opening = true; }
    ~Opening();
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    // All waiters get the same error.
    void fail(const Error& error) { failure_ = error; }

   private:
    const OriginPtr origin_;
    std::optional<Error> failure_;
  };

  // `options` must outlive the calls of the other functions, but for close() of a connection.
  explicit Http2Origins(const HttpClientOptions& options);

  OriginPtr at(std::string_view key);
  // A connection with room for a stream; null: there is none.
  Shared take(Origin& origin);
  // Until an opening or a stream of the origin has ended. Errors: the opening's.
  static Coro<Result<void>> wait(OriginPtr origin);
  // A new one, whose server has chosen HTTP/2.
  Shared add(OriginPtr origin, ConnectionPtr connection);

  std::size_t idle() const noexcept { return idle_.size(); }
  // Closes those that have been idle for too long, and the oldest where there are more than `most`.
  void trim(std::size_t most);
  void close_idle();
  // All of them, with their streams.
  void close();

 private:
  void changed(OriginPtr origin, Http2Connection& connection);
  void forget(OriginPtr origin, Http2Connection& connection);

  const HttpClientOptions& options_;
  const std::shared_ptr<std::string> read_buffer_;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, OriginPtr, Hash, std::equal_to<>> origins_;
  IdleConnections idle_;
};

}  // namespace argiope

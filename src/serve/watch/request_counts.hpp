// RequestCounts: how many requests each route has answered, how, and how long that took.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "argiope/web/http_server.hpp"
#include "serve/watch/tally.hpp"

namespace argiope {

// Of one route.
struct RouteCounts {
  std::array<std::uint64_t, 6> by_class{};  // [2]: answers 200 to 299; [0]: the client left, or the handler has thrown
  SpanHistogram took;                       // until the answer was there, without the time a stream takes
};

// Threads: the loop's own.
class RequestCounts {
 public:
  // `handler`, whose requests are counted as those of `route`: the pattern, never a path that a client made up.
  HttpHandler counted(std::string route, HttpHandler handler);
  const std::map<std::string, std::shared_ptr<RouteCounts>>& routes() const noexcept { return routes_; }

 private:
  std::map<std::string, std::shared_ptr<RouteCounts>> routes_;
};

}  // namespace argiope

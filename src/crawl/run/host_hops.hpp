// Where files that any host may have are redirected to: each such request is in the turn of the host that it goes to,
// which may be another shard's.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "crawl/run/leaving.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::HostHops : private Part {
 public:
  HostHops(Core& core, HostDesk& desk);

  // Asks the host for a file that any host may have, and follows redirects. nullopt: nothing is known yet; the
  // question is asked once more, and goes on where it has come to.
  Coro<std::optional<Result<void>>> ask_for_file(Host& host, ExchangeKind kind, HttpRequest& request,
                                                 HttpResponse& response);

  // Serves what other shards ask of its hosts.
  void take_hops();
  // Those that ask wait for no answer any more.
  void refuse_hops();
  bool is_serving() const noexcept { return !served_hops_.empty(); }

 private:
  class FileTransport;
  struct Hop;
  // A place among the requests to a host; without one: how long to wait before asking for one again.
  struct HopTurn {
    Duration put_off{};
    std::optional<Leaving> place = std::nullopt;
  };
  Coro<HopTurn> await_hop_turn(Host& host);
  Coro<Result<void>> ask_as_hop(ExchangeKind kind, const HttpRequest& request, HttpResponse& response,
                                Duration& put_off);
  Coro<Result<void>> ask_by(HostHops& owner, ExchangeKind kind, const HttpRequest& request, HttpResponse& response,
                            Duration& put_off);
  bool post(std::shared_ptr<Hop> hop);
  Coro<void> serve(std::shared_ptr<Hop> hop);

  HostDesk& desk_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Hop>> hops_;  // under mutex_, as the next
  bool takes_no_hops_ = false;
  std::list<Task<void>> served_hops_;
};

}  // namespace argiope
